package msl

import "slices"

// deduceClass finds a class template's arguments as C++17 does: from an object of such a class, from the deduction
// guides and from the constructors of the primary template. An aggregate needs a guide.
func (ch *chooser) deduceClass(tm *tmplInfo, args []value, at Pos) qtype {
	if len(args) == 1 && args[0].k != vList && args[0].q.T.kind == tClass {
		for cls := args[0].q.T.class; ; cls = cls.bases[0].class {
			if cls.tmpl == tm {
				return qt(cls.typ)
			}
			if len(cls.bases) == 0 || cls.bases[0].kind != tClass {
				break
			}
		}
	}
	var guides []*funcEnt
	if ent := ch.c.find(tm.env, guidePrefix+tm.name, 0); ent != nil {
		guides = ent.funcs
	}
	if !ch.c.enter(at) { // a guide may need the template itself
		return badType
	}
	defer ch.c.leave()
	all := append(slices.Clip(ch.ctorGuides(tm)), guides...)
	inst, why := ch.resolve(all, nil, args, nil, false)
	if inst == nil && len(guides) > 0 { // of equals a guide that is written goes before a constructor
		inst, _ = ch.resolve(guides, nil, args, nil, true)
	}
	if inst == nil {
		text := ""
		for i := range args {
			if i > 0 {
				text += ", "
			}
			text += argText(&args[i])
		}
		if len(all) == 0 {
			why = ": it has neither a constructor nor a deduction guide"
		}
		ch.c.errorf(BadTemplateArgs, at, "the arguments of the template '%s' cannot be deduced from (%s): write %s<...>%s",
			tm.name, text, tm.name, why)
		return badType
	}
	t := inst.ret
	if t.T.kind != tBad && (t.T.kind != tClass || t.T.class.tmpl != tm) {
		ch.c.errorf(BadTemplateArgs, at, "the deduction guide yields %s, which is no '%s'", t, tm.name)
		return badType
	}
	return t.bare()
}

// guidePrefix stands before a template's name in the name its deduction guides are looked up by.
const guidePrefix = "(guide) "

// ctorGuides returns a function template for each constructor of a class template, with the parameters of both, that
// yields the class.
func (ch *chooser) ctorGuides(tm *tmplInfo) []*funcEnt {
	if list, ok := ch.c.guides[tm]; ok {
		return list
	}
	var list []*funcEnt
	st := tm.decl.Decl.(*ClassDecl)
	params, ret := guideResult(tm, st.Pos())
	for _, m := range st.Members {
		all := params
		if t, ok := m.(*TemplateDecl); ok {
			all = append(append([]*TemplateParam(nil), params...), t.Params...)
			m = t.Decl
		}
		f, ok := m.(*FuncDecl)
		if !ok || f.Kind != FuncConstructor || f.Delete {
			continue
		}
		guide := &FuncDecl{declNode: f.declNode, Kind: FuncGuide, Name: f.Name, Params: f.Params, Ret: ret}
		list = append(list, &funcEnt{
			decl: guide, env: tm.env, ofUnit: true, tmpl: &TemplateDecl{declNode: f.declNode, Params: all, Decl: guide},
		})
	}
	ch.c.guides[tm] = list
	return list
}

// guideResult returns a template's parameters, all of them with names, and the class that they make.
func guideResult(tm *tmplInfo, at Pos) ([]*TemplateParam, *TypeExpr) {
	named := func(ident string) *Name {
		return &Name{Base: Base{at}, NamePart: NamePart{PartAt: at, Ident: ident}}
	}
	cls := named(tm.name)
	cls.HasArgs = true
	var params []*TemplateParam
	for i, p := range tm.decl.Params {
		if p.Name == "" {
			q := *p
			q.Name = "(" + itoa(i) + ")"
			p = &q
		}
		params = append(params, p)
		a := TemplateArg{Pack: p.Pack}
		if p.ValueType != nil {
			a.X = &NameExpr{exprNode{Base{at}}, named(p.Name)}
		} else {
			a.Type = &TypeExpr{Base: Base{at}, Kind: TypeNamed, Name: named(p.Name)}
		}
		cls.Args = append(cls.Args, a)
	}
	return params, &TypeExpr{Base: Base{at}, Kind: TypeNamed, Name: cls}
}

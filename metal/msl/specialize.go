package msl

// instantiateType returns the type that a class or alias template gives for arguments; ok is false for a variable
// template.
func (rs *resolver) instantiateType(tm *tmplInfo, args []boundArg, at Pos) (qtype, bool) {
	if tm.built != "" {
		if isTexture(tm.built) {
			rs.c.errorf(Unsupported, at, "textures are not supported: '%s'; pass a buffer and index it", tm.built)
			return badType, true
		}
		t, msg := builtinTemplate(tm.built, flattenPacks(args))
		if t == nil {
			rs.c.errorf(BadTemplateArgs, at, "%s", msg)
			return badType, true
		}
		return qt(t), true
	}
	if tm.decl == nil {
		return badType, false
	}
	if _, isVar := tm.decl.Decl.(*VarDecl); isVar {
		return badType, false
	}
	args, ok := rs.completeArgs(tm, args, at)
	if !ok {
		return badType, true
	}
	if al, isAlias := tm.decl.Decl.(*AliasDecl); isAlias {
		if !rs.c.enter(at) {
			return badType, true
		}
		defer rs.c.leave()
		h := rs.c.resolverIn(bindEnv(tm.env, tm.decl.Params, args))
		return h.typeOf(al.Type), true
	}
	known := rs.c.insts[tm]
	if known == nil {
		known = &instances[*classInfo]{}
		rs.c.insts[tm] = known
	}
	if cls, ok := known.find(args, classArgs); ok {
		return qt(cls.typ), true
	}
	rs.c.countInstance(at)
	spec, bind := rs.chooseSpec(tm, args)
	decl, _ := spec.Decl.(*ClassDecl)
	cls := &classInfo{name: tm.name, decl: decl, args: args, tmpl: tm, union: decl.Key == "union"}
	cls.typ = &ctype{kind: tClass, class: cls}
	cls.scope = &env{kind: envClass, up: bind, class: cls}
	known.add(cls, classArgs)
	return qt(cls.typ), true
}

// completeArgs checks the number and kinds of a template's arguments and adds defaults.
func (rs *resolver) completeArgs(tm *tmplInfo, args []boundArg, at Pos) ([]boundArg, bool) {
	d := newDeduction(rs.c, tm.decl.Params, tm.env)
	if !rs.explicitArgs(d, flattenPacks(args)) {
		rs.c.errorf(BadTemplateArgs, at, "the arguments %s do not fit the template '%s'", argsString(args), tm.name)
		return nil, false
	}
	if missing, ok := rs.fill(d, at); !ok {
		rs.c.errorf(BadTemplateArgs, at, "the template '%s' has no argument for its parameter '%s'", tm.name, missing)
		return nil, false
	}
	return d.got, true
}

// chooseSpec picks the most specialised declaration of a template that fits, and the scope with its parameters.
func (rs *resolver) chooseSpec(tm *tmplInfo, args []boundArg) (*TemplateDecl, *env) {
	best, bestEnv, bestScore := tm.decl, bindEnv(tm.env, tm.decl.Params, args), -1
	flat := flattenPacks(args)
	for _, list := range [][]*TemplateDecl{tm.specs, rs.c.extraTmpl[tm]} {
		for _, s := range list {
			pats := specArgs(s)
			d := newDeduction(rs.c, s.Params, tm.env)
			if !d.args(pats, flat, false) {
				continue
			}
			bind := bindEnv(tm.env, s.Params, d.got)
			if !rs.specFits(tm, pats, flat, bind) {
				continue
			}
			score := 1
			for i := range pats {
				score += specificity(d, &pats[i])
			}
			if len(s.Params) == 0 {
				score += 1 << 20
			}
			if score > bestScore {
				best, bestEnv, bestScore = s, bind, score
			}
		}
	}
	return best, bestEnv
}

// specFits substitutes what was deduced into the patterns, adds the default arguments of the template that they leave
// out, and compares.
func (rs *resolver) specFits(tm *tmplInfo, pats []TemplateArg, args []boundArg, bind *env) bool {
	fits := false
	ok := rs.c.trial(func() {
		h := rs.c.resolverIn(bind)
		got, good := h.templateArgs(pats)
		if !good {
			return
		}
		if got = flattenPacks(got); len(got) < len(args) {
			got, good = rs.completeArgs(tm, got, tm.decl.Pos())
			got = flattenPacks(got)
		}
		if !good || len(got) != len(args) {
			return
		}
		for i := range got {
			if got[i].isVal && args[i].isVal {
				got[i].vt, got[i].val = args[i].vt, convertConst(got[i].val, args[i].val.ty)
			}
		}
		fits = sameArgs(got, args)
	})
	return ok && fits
}

// specificity counts what a pattern fixes.
func specificity(d *deduction, p *TemplateArg) int {
	if p.Type == nil {
		if ne, ok := p.X.(*NameExpr); ok && d.param(ne.Name) >= 0 {
			return 0
		}
		return 2
	}
	return typeSpecificity(d, p.Type)
}

func typeSpecificity(d *deduction, t *TypeExpr) int {
	n := 0
	if t.Quals.Const || t.Quals.Volatile {
		n++
	}
	if t.Quals.Space != SpaceNone {
		n++
	}
	switch t.Kind {
	case TypeNamed:
		if d.param(t.Name) >= 0 && !t.Name.HasArgs {
			return n
		}
		n++
		for i := range t.Name.Args {
			n += specificity(d, &t.Name.Args[i])
		}
		return n
	case TypePointer, TypeReference, TypeArray:
		return n + 1 + typeSpecificity(d, t.Elem)
	}
	return n + 2
}

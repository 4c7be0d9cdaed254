package msl

import "reflect"

// templateArgs evaluates template arguments as written; packs are expanded.
func (rs *resolver) templateArgs(list []TemplateArg) ([]boundArg, bool) {
	out := make([]boundArg, 0, len(list))
	ok := true
	for i := range list {
		a := &list[i]
		if a.Pack {
			rs.expandPack(a, func() {
				t, k := rs.templateArg(a)
				ok = ok && k
				out = append(out, t)
			})
			continue
		}
		t, k := rs.templateArg(a)
		ok = ok && k
		out = append(out, t)
	}
	return out, ok
}

func (rs *resolver) templateArg(a *TemplateArg) (boundArg, bool) {
	if a.Type != nil {
		if a.Type.Kind == TypeNamed {
			ent := rs.resolveEntity(a.Type.Name)
			switch {
			case ent == nil:
				return boundArg{}, false
			case ent.kind == eTemplate && !a.Type.Name.HasArgs && rs.enclosingInstance(ent.tmpl) == nil:
				return boundArg{tmpl: ent}, true
			case ent.kind == eConst || ent.kind == eVar: // the parser took a value for a type
				return rs.valueArg(&NameExpr{exprNode{a.Type.Base}, a.Type.Name})
			}
		}
		t := rs.typeOf(a.Type)
		return boundArg{q: t}, t.T.kind != tBad
	}
	if ne, ok := a.X.(*NameExpr); ok { // a type may have been taken for a value
		if ent := rs.resolveQuiet(ne.Name); ent != nil {
			switch {
			case ent.kind == eType:
				t := rs.c.typeEntity(ent)
				return boundArg{q: t}, t.T.kind != tBad
			case ent.kind == eTemplate && !ne.Name.HasArgs:
				return boundArg{tmpl: ent}, true
			case ent.kind == eTemplate && ent.tmpl.decl != nil:
				if _, isVar := ent.tmpl.decl.Decl.(*VarDecl); !isVar {
					t, _ := rs.entityType(ent, ne.Name)
					return boundArg{q: t}, t.T.kind != tBad
				}
			}
		}
		rs.badQual = false
	}
	return rs.valueArg(a.X)
}

func (rs *resolver) valueArg(x Expr) (boundArg, bool) {
	if ne, ok := stripParens(x).(*NameExpr); ok {
		if ent := rs.resolveQuiet(ne.Name); ent != nil && (ent.kind == eFunc || ent.kind == eConst && ent.val.k == vFuncs) {
			v := rs.eval().exprs.entityValue(ent, ne)
			return boundArg{fn: v.fn}, !v.bad()
		}
		rs.badQual = false
	}
	if o, addr := rs.constObject(x); o != nil {
		return boundArg{obj: o, addr: addr}, true
	}
	if u, is := stripParens(x).(*UnaryExpr); is && u.Operator == OperatorAddrOf {
		if o := rs.wholeOf(u.X); o != nil {
			rs.c.errorf(BadTemplateArgs, x.Pos(), "a template argument points to a part of '%s': C++ has none such before "+
				"C++20. Pass the whole and an index", o.name)
			return boundArg{}, false
		}
	}
	v, ok := rs.eval().consts.constExpr(x, "a template argument")
	if !ok || v.bad() {
		return boundArg{}, false
	}
	if len(v.comps) != 1 || !v.q.T.isScalar() {
		rs.c.errorf(BadTemplateArgs, x.Pos(), "a template argument of type %s is neither a type nor a number", v.q)
		return boundArg{}, false
	}
	return boundArg{isVal: true, val: v.comps[0], vt: v.q.T}, true
}

// wholeOf returns the constant that an expression names a part of, nil if it names none.
func (rs *resolver) wholeOf(x Expr) *object {
	for part := false; ; part = true {
		switch y := stripParens(x).(type) {
		case *IndexExpr:
			x = y.X
			continue
		case *MemberExpr:
			x = y.X
			continue
		case *NameExpr:
			if part {
				o, _ := rs.constObject(y)
				return o
			}
		}
		return nil
	}
}

// constObject returns the table or class in constant memory that a template argument names, or any constant whose
// address it takes; nil for other arguments.
func (rs *resolver) constObject(x Expr) (o *object, addr bool) {
	x = stripParens(x)
	if u, ok := x.(*UnaryExpr); ok && u.Operator == OperatorAddrOf {
		x, addr = stripParens(u.X), true
	}
	ne, ok := x.(*NameExpr)
	if !ok {
		return nil, false
	}
	ent := rs.resolveQuiet(ne.Name)
	rs.badQual = false
	if ent == nil || ent.kind != eVar && ent.kind != eConst || ent.kind == eVar && ent.vdecl != nil && ent.vdecl.Field {
		return nil, false
	}
	var v value
	if !rs.c.trial(func() { v = rs.entityConst(ent, ne) }) || v.k != vSlot || !v.obj.fixed || v.q.T != v.obj.q.T {
		return nil, false
	}
	if addr = addr || ent.addr; !addr && v.q.T.kind != tArray &&
		(v.q.T.kind != tClass || len(rs.c.methods(v.q.T, "(conversion)")) > 0) {
		return nil, false
	}
	return v.obj, addr
}

// entityConst is what a name stands for before its address is taken.
func (rs *resolver) entityConst(ent *entity, x *NameExpr) value {
	if ent.addr {
		return ent.val
	}
	return rs.eval().exprs.entityValue(ent, x)
}

// fill completes arguments with defaults and packs: given explicit ones and what was deduced. It reports the first
// parameter that has no argument.
func (rs *resolver) fill(d *deduction, at Pos) (missing string, ok bool) {
	if !rs.c.enter(at) { // a default argument may need the template itself
		return "", false
	}
	defer rs.c.leave()
	for i, p := range d.params {
		if p.Pack || d.set[i] {
			continue
		}
		if p.DefaultType == nil && p.Default == nil {
			name := p.Name
			if name == "" {
				name = "(unnamed)"
			}
			return name, false
		}
		h := rs.c.resolverIn(bindEnv(d.env, d.params[:i], d.got))
		if p.DefaultType != nil {
			if p.Templ != nil {
				if p.DefaultType.Kind == TypeNamed {
					if ent := h.resolveEntity(p.DefaultType.Name); ent != nil && ent.kind == eTemplate {
						d.got[i] = boundArg{tmpl: ent}
						d.set[i] = true
						continue
					}
				}
				return p.Name, false
			}
			d.got[i].q = h.typeOf(p.DefaultType)
			if d.got[i].q.T.kind == tBad {
				return p.Name, false
			}
		} else {
			a, ok := h.valueArg(p.Default)
			if !ok {
				return p.Name, false
			}
			d.got[i] = h.convertValueArg(a, p)
		}
		d.set[i] = true
	}
	return "", true
}

// fitsParam reports whether an object can be the argument of a pointer or reference parameter; no number can.
func (rs *resolver) fitsParam(a *boundArg, p *TemplateParam) bool {
	if a.tmpl != nil || a.isPack {
		return false
	}
	t := rs.typeOf(p.ValueType)
	if a.fn != nil {
		return rs.c.chooserIn(rs.env).fitsFunction(a.fn, t)
	}
	if t.T.kind == tAuto {
		return true
	}
	if a.obj == nil {
		return t.T.kind != tPtr || a.vt != nil && a.vt.kind == tNull
	}
	if t.T.kind != tPtr && t.T.kind != tRef || t.T.elem.Space != SpaceConstant {
		return false
	}
	want, o := t.T.elem.T, a.obj.q.T
	switch {
	case want.kind == tAuto:
		return true
	case t.T.kind == tPtr && !a.addr:
		return o.kind == tArray && o.elem.T == want
	}
	return o == want && a.addr == (t.T.kind == tPtr)
}

// convertValueArg converts a value argument to its parameter's type.
func (rs *resolver) convertValueArg(a boundArg, p *TemplateParam) boundArg {
	if p.ValueType == nil || !a.isVal {
		return a
	}
	t := rs.typeOf(p.ValueType).noRef()
	if t.T.kind == tAuto || !t.T.isScalar() {
		return a
	}
	a.val, a.vt = convertConst(a.val, t.T.kt), t.T
	return a
}

// explicitArgs assigns arguments given in angle brackets to parameters.
func (rs *resolver) explicitArgs(d *deduction, args []boundArg) bool {
	for i := 0; i < len(args); i++ {
		if i >= len(d.params) {
			return false
		}
		p := d.params[i]
		if p.Pack {
			d.got[i].pack = append(d.got[i].pack, args[i:]...)
			d.set[i] = true
			return true
		}
		a := args[i]
		switch {
		case p.TypeParam && a.q.T == nil, p.ValueType != nil && a.q.T != nil, p.Templ != nil && a.tmpl == nil:
			return false
		}
		if p.ValueType != nil {
			h := rs.c.resolverIn(bindEnv(d.env, d.params[:i], d.got))
			if !h.fitsParam(&a, p) {
				return false
			}
			a = h.convertValueArg(a, p)
		}
		d.got[i], d.set[i] = a, true
		if d.fixed == nil {
			d.fixed = make([]bool, len(d.params))
		}
		d.fixed[i] = true
	}
	return true
}

// packsIn returns the packs that an AST value names in the current scope, and their common length (-1 if they
// differ).
func (rs *resolver) packsIn(x any) (packs []*entity, n int) {
	n = -1
	bad := false
	walkNames(reflect.ValueOf(x), func(name string) {
		ent := rs.lookup(name)
		if ent == nil || ent.kind != ePack {
			return
		}
		for _, p := range packs {
			if p == ent {
				return
			}
		}
		packs = append(packs, ent)
		l := len(ent.boundArgs) + len(ent.vals)
		bad = bad || n >= 0 && l != n
		n = l
	})
	if bad {
		n = -1
	}
	return packs, n
}

// expandPack calls f once for each element of the packs that x names, with the names standing for that element
// in g.env.
func (rs *resolver) expandPack(x any, f func()) {
	packs, n := rs.packsIn(x)
	if len(packs) == 0 || n < 0 {
		at := *rs.at
		if nd, ok := x.(Node); ok {
			at = nd.Pos()
		}
		rs.c.errorf(BadTemplateArgs, at, "what is expanded by ... holds no parameter pack, or packs of different lengths")
		return
	}
	if n > maxPack {
		rs.c.fatal(TooLarge, *rs.at, "a parameter pack of %d elements is expanded: the limit is %d", n, maxPack)
	}
	rs.c.spend(*rs.at, n)
	saved := rs.env
	for i := range n {
		e := &env{kind: envBlock, up: saved}
		for _, p := range packs {
			if p.boundArgs != nil {
				e.put(argEntity(p.name, p.boundArgs[i]))
			} else {
				e.put(&entity{kind: eVar, name: p.name, local: true, val: p.vals[i]})
			}
		}
		rs.env = e
		f()
	}
	rs.env = saved
}

// bindEnv makes the scope in which a template's parameters stand for their arguments.
func bindEnv(up *env, params []*TemplateParam, args []boundArg) *env {
	e := &env{kind: envTemplate, up: up}
	for i, p := range params {
		if i >= len(args) {
			break
		}
		if p.Name == "" {
			continue
		}
		e.put(argEntity(p.Name, args[i]))
	}
	return e
}

func argEntity(name string, a boundArg) *entity {
	switch {
	case a.isPack:
		return &entity{kind: ePack, name: name, boundArgs: a.pack}
	case a.fn != nil:
		return &entity{kind: eConst, name: name, local: true, val: value{k: vFuncs, q: qt(typeVoid), fn: a.fn}}
	case a.isVal:
		return &entity{kind: eConst, name: name, local: true, val: rval(a.vt, a.val)}
	case a.obj != nil:
		return &entity{kind: eConst, name: name, local: true, addr: a.addr, val: value{k: vSlot, q: a.obj.q, obj: a.obj}}
	case a.tmpl != nil:
		return &entity{kind: eTemplate, name: name, tmpl: a.tmpl.tmpl}
	}
	return &entity{kind: eType, name: name, ty: a.q}
}

func specArgs(s *TemplateDecl) []TemplateArg {
	switch x := s.Decl.(type) {
	case *ClassDecl:
		return x.Name.Args
	case *VarDecl:
		return x.Name.Args
	}
	return nil
}

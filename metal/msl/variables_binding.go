package msl

// bindings declares the names of a structured binding: the elements of an array, components of a vector or fields of
// a class without bases.
func (vs *variables) bindings(d *BindingDecl) {
	v := vs.boundValue(d)
	parts, ok := vs.boundParts(v, d.Pos())
	if ok && len(parts) != len(d.Names) {
		vs.c.errorf(BadInit, d.Pos(), "%d names for the %d parts of %s", len(d.Names), len(parts), v.q.T)
		ok = false
	}
	for i, n := range d.Names {
		x := &entity{kind: eVar, name: n.Ident, local: true, at: n.Pos(), val: badValue}
		if ok {
			x.val = parts[i]
		}
		if old := vs.res.env.put(x); old != nil {
			vs.c.redefined(n.Ident, n.Pos(), old)
		}
	}
}

// boundValue makes the hidden variable of a structured binding. Unlike others it may be a copy of an array.
func (vs *variables) boundValue(d *BindingDecl) value {
	if d.Var.Type.Kind == TypeAuto && d.Var.Style == InitCopy {
		if t, ok := vs.exprs.lvalueType(d.Var.Init); ok && t.T.kind == tArray {
			c := t.bare()
			c.Const = t.Const || d.Var.Type.Quals.Const
			return vs.mem.newLocal(d.Var.Name.Ident, c, vs.mem.load(vs.exprs.expr(d.Var.Init)))
		}
	}
	held := vs.res.env
	vs.res.env = &env{kind: envBlock, up: held}
	defer func() { vs.res.env = held }()
	vs.localVar(d.Var)
	if x := vs.res.env.own(d.Var.Name.Ident); x != nil {
		return x.val
	}
	return badValue
}

func (vs *variables) boundParts(v value, at Pos) (parts []value, ok bool) {
	if v.bad() {
		return nil, false
	}
	switch t := v.q.T; t.kind {
	case tVec:
		for i := range t.n {
			parts = append(parts, vs.mem.component(v, i))
		}
		return parts, true
	case tArray:
		for i := range t.n {
			e := t.elem
			e.Space, e.Const, e.Vol = v.q.Space, e.Const || v.q.Const, e.Vol || v.q.Vol
			parts = append(parts, vs.mem.part(v, e, i*e.T.comps, i*e.T.size))
		}
		return parts, true
	case tClass:
		if t.class.union || t.class.lambda != nil {
			break
		}
		for i := range t.class.fields {
			f := &t.class.fields[i]
			if f.base || f.anon {
				vs.c.errorf(Unsupported, at, "a structured binding of %s, whose members are not all its own", t)
				return nil, false
			}
			parts = append(parts, vs.mem.member(v, []*field{f}))
		}
		return parts, true
	}
	vs.c.errorf(BadType, at, "a structured binding of %s: it has no parts", v.q)
	return nil, false
}

package msl

// sizeofExpr evaluates sizeof, alignof and sizeof...
func (xs *expressions) sizeofExpr(x *SizeofExpr) value {
	if x.Pack != "" {
		ent := xs.res.lookup(x.Pack)
		if ent == nil || ent.kind != ePack {
			xs.c.errorf(BadTemplateArgs, x.Pos(), "'%s' is no parameter pack", x.Pack)
			return badValue
		}
		return intVal(typeUlong, int64(len(ent.boundArgs)+len(ent.vals)))
	}
	var t qtype
	if x.Type != nil {
		t = xs.res.typeOf(x.Type).noRef()
	} else {
		var ok bool
		if t, ok = xs.lvalueType(x.X); !ok {
			return badValue
		}
	}
	if t.T.kind == tBad {
		return badValue
	}
	if !xs.c.isComplete(t.T) {
		xs.c.errorf(Incomplete, x.Pos(), "the size of the incomplete type %s", t)
		return badValue
	}
	if x.Align {
		return intVal(typeUlong, int64(t.T.align))
	}
	return intVal(typeUlong, int64(t.T.size))
}

// lvalueType returns the type of an expression that is not evaluated, without references.
func (xs *expressions) lvalueType(x Expr) (qtype, bool) {
	var v value
	xs.consts.unevaluated(func(h *generator) { v = h.exprs.expr(x) })
	if v.k == vType {
		return v.q, true
	}
	return v.q, !v.bad()
}

// quietType is the type of an rvalue expression, ok is false if it has errors; they are not reported.
func (xs *expressions) quietType(x Expr) (qtype, bool) {
	var t qtype
	ok := xs.c.trial(func() {
		xs.consts.unevaluated(func(h *generator) {
			v := h.mem.rvalue(h.exprs.expr(x))
			t = v.q
		})
	})
	return t, ok && t.T != nil && t.T.kind != tBad && t.T.kind != tVoid
}

// decltype returns the declared type of a name, else the type of an expression with & for lvalues.
func (xs *expressions) decltype(x Expr) qtype {
	switch y := x.(type) {
	case *NameExpr:
		return xs.decltypeName(y)
	case *MemberExpr:
		t, ok := xs.lvalueType(y)
		if !ok {
			return badType
		}
		return t
	}
	var v value
	xs.consts.unevaluated(func(h *generator) { v = h.exprs.expr(x) })
	switch {
	case v.bad():
		return badType
	case v.k == vFuncs:
		return xs.choose.functionType(v.fn)
	case v.isLvalue() && v.k != vSwz && v.k != vDyn && !v.isBits():
		return qt(xs.c.types.refTo(v.q))
	}
	return v.q.bare()
}

func (xs *expressions) decltypeName(x *NameExpr) qtype {
	ent := xs.res.resolveEntity(x.Name)
	if ent == nil {
		return badType
	}
	if ent.kind == eFunc {
		if v := xs.entityValue(ent, x); v.k == vFuncs {
			return xs.choose.functionType(v.fn)
		}
		return badType
	}
	var v value
	xs.consts.unevaluated(func(h *generator) { v = h.exprs.entityValue(ent, x) })
	if v.bad() {
		return badType
	}
	if ent.isRef {
		return qt(xs.c.types.refTo(v.q))
	}
	t := v.q
	t.Space = SpaceNone
	return t
}

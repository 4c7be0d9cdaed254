package msl

// place evaluates an expression that an lvalue is wanted of.
func (xs *expressions) place(x Expr) value { return xs.mem.placed(xs.expr(x)) }

// condExpr evaluates Cond ? X : Y.
func (xs *expressions) condExpr(x *CondExpr) value {
	cv := xs.expr(x.Cond)
	if x.X == nil { // Cond is evaluated once
		object := cv
		if cv = xs.mem.rvalue(cv); object.isLvalue() && cv.k == vRight && cv.q.T == object.q.T {
			cv = chosenFrom(cv, object.q, object.isBits(), func() value { return xs.mem.placed(object) })
		}
		held := &heldExpr{exprNode{Base{x.Cond.Pos()}}, cv}
		x = &CondExpr{exprNode: x.exprNode, Cond: held, X: held, Y: x.Y}
	}
	if cv.q.T.kind == tVec {
		xs.c.errorf(TypeMismatch, x.Pos(), "the condition of ?: has type %s: use select()", cv.q.T)
		return badValue
	}
	c := xs.conv.condition(cv, x.Cond.Pos())
	y := &conditional{xs: xs, x: x.X, y: x.Y, fork: fork{mem: xs.mem, cond: c, at: x.Pos()}}
	switch {
	case !c.isConst():
		return y.sides()
	case c.bits == 0:
		y.x, y.y = y.y, y.x
	}
	if xs.em.exec {
		return y.evaluated()
	}
	return y.known()
}

// conditional is a ?: that is evaluated. Its sides are x and y.
type conditional struct {
	xs   *expressions
	x, y Expr
	fork fork
}

// sides evaluates a ?: whose condition is known at run time only.
func (y *conditional) sides() value {
	xs, f, a, b := y.xs, &y.fork, &y.fork.a, &y.fork.b
	a.blk = xs.em.inBlock(func() { xs.evalSide(a, y.x) })
	b.blk = xs.em.inBlock(func() { xs.evalSide(b, y.y) })
	xs.em.at(f.at)
	if a.v.bad() || b.v.bad() {
		return badValue
	}
	if a.v.k == vVoid || b.v.k == vVoid {
		f.branch()
		return voidValue
	}
	q, isObject := f.object()
	if isObject && (xs.mem.inMemory(q.T) || q.T.kind == tAtomic) { // too large to be read, or never read like this
		f.addresses()
		if a.v.bad() || b.v.bad() {
			return badValue
		}
		return value{k: vMem, q: q, ptr: f.join(xs.c.types.ptrTo(q)).comps[0]}
	}
	t := y.valueType()
	if t == nil {
		return badValue
	}
	f.both(func(s *side) { s.v = xs.conv.convertTo(s.v, qt(t), f.at, "a side of ?:") })
	if a.v.bad() || b.v.bad() {
		return badValue
	}
	r := f.join(t)
	switch {
	case !isObject:
	case q.T.kind == tArray:
		return value{k: vMem, q: q, ptr: r.comps[0]}
	default:
		r = chosenFrom(r, q, a.object.isBits() || b.object.isBits(), f.selected)
	}
	return r
}

// evalSide evaluates a side of ?:.
func (xs *expressions) evalSide(s *side, x Expr) {
	s.object = xs.expr(x)
	s.v = xs.mem.rvalue(s.object)
}

// known evaluates a ?: of which side x is taken; y is checked, and decides the type with it.
func (y *conditional) known() value {
	xs, f, a, b := y.xs, &y.fork, &y.fork.a, &y.fork.b
	xs.evalSide(a, y.x)
	xs.em.discard(func() { xs.evalSide(b, y.y) })
	if a.v.bad() || b.v.bad() || a.v.k == vVoid || b.v.k == vVoid {
		return a.v
	}
	if q, ok := f.object(); ok {
		if xs.mem.inMemory(q.T) || q.T.kind == tAtomic || q.T.kind == tArray {
			a.object.q = q
			return xs.mem.placed(a.object)
		}
		if a.v.q.T != q.T.unpacked() { // the object is of a class that derives from this one
			a.v = xs.mem.rvalue(a.object)
		}
		return chosenFrom(a.v, q, a.object.isBits(), func() value { return xs.mem.placed(a.object) })
	}
	t := y.valueType()
	if t == nil {
		return badValue
	}
	return xs.conv.convertTo(a.v, qt(t), f.at, "a side of ?:")
}

// evaluated is known in a constant evaluation. What is not taken is not evaluated: it need not be constant.
func (y *conditional) evaluated() value {
	xs, f, a, b := y.xs, &y.fork, &y.fork.a, &y.fork.b
	a.object = xs.expr(y.x)
	known := xs.c.trial(func() {
		xs.consts.unevaluated(func(h *generator) { h.exprs.evalSide(b, y.y) })
	}) && !b.v.bad() && b.v.k != vVoid
	if known && !a.object.bad() {
		if q, ok := f.object(); ok {
			a.object.q = q
			return a.object
		}
	}
	v := xs.mem.rvalue(a.object)
	if known && !v.bad() && v.k == vRight {
		o := value{k: vRight, q: b.v.q}
		if t := xs.choose.condType(v, o); t != nil && t != v.q.T {
			return xs.conv.convertTo(v, qt(t), f.at, "a side of ?:")
		}
	}
	return v
}

// valueType returns the type of ?: where it is no lvalue, nil after an error.
func (y *conditional) valueType() *ctype {
	a, b := y.fork.a.v, y.fork.b.v
	t := y.xs.choose.condType(a, b)
	if t == nil {
		y.xs.c.errorf(TypeMismatch, y.fork.at, "?: has the unlike types %s and %s", a.q.T, b.q.T)
	}
	return t
}

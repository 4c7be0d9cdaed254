package msl

// place evaluates an expression that an lvalue is wanted of.
func (g *gen) place(x Expr) value { return g.mem.placed(g.expr(x)) }

// condExpr evaluates Cond ? X : Y.
func (g *gen) condExpr(x *CondExpr) value {
	cv := g.expr(x.Cond)
	if x.X == nil { // Cond is evaluated once
		object := cv
		if cv = g.mem.rvalue(cv); object.isLvalue() && cv.k == vRight && cv.q.T == object.q.T {
			cv = chosenFrom(cv, object.q, object.isBits(), func() value { return g.mem.placed(object) })
		}
		held := &heldExpr{exprNode{Base{x.Cond.Pos()}}, cv}
		x = &CondExpr{exprNode: x.exprNode, Cond: held, X: held, Y: x.Y}
	}
	if cv.q.T.kind == tVec {
		g.c.errorf(TypeMismatch, x.Pos(), "the condition of ?: has type %s: use select()", cv.q.T)
		return badValue
	}
	c := g.condition(cv, x.Cond.Pos())
	y := &conditional{g: g, x: x.X, y: x.Y, fork: fork{mem: g.mem, cond: c, at: x.Pos()}}
	switch {
	case !c.isConst():
		return y.sides()
	case c.bits == 0:
		y.x, y.y = y.y, y.x
	}
	if g.em.exec {
		return y.evaluated()
	}
	return y.known()
}

// conditional is a ?: that is evaluated. Its sides are x and y.
type conditional struct {
	g    *gen
	x, y Expr
	fork fork
}

// sides evaluates a ?: whose condition is known at run time only.
func (y *conditional) sides() value {
	g, f, a, b := y.g, &y.fork, &y.fork.a, &y.fork.b
	a.blk = g.em.inBlock(func() { g.evalSide(a, y.x) })
	b.blk = g.em.inBlock(func() { g.evalSide(b, y.y) })
	g.em.at(f.at)
	if a.v.bad() || b.v.bad() {
		return badValue
	}
	if a.v.k == vVoid || b.v.k == vVoid {
		f.branch()
		return voidValue
	}
	q, isObject := f.object()
	if isObject && (g.mem.inMemory(q.T) || q.T.kind == tAtomic) { // too large to be read, or never read like this
		f.addresses()
		if a.v.bad() || b.v.bad() {
			return badValue
		}
		return value{k: vMem, q: q, ptr: f.join(g.c.types.ptrTo(q)).comps[0]}
	}
	t := y.valueType()
	if t == nil {
		return badValue
	}
	f.both(func(s *side) { s.v = g.convertTo(s.v, qt(t), f.at, "a side of ?:") })
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
func (g *gen) evalSide(s *side, x Expr) {
	s.object = g.expr(x)
	s.v = g.mem.rvalue(s.object)
}

// known evaluates a ?: of which side x is taken; y is checked, and decides the type with it.
func (y *conditional) known() value {
	g, f, a, b := y.g, &y.fork, &y.fork.a, &y.fork.b
	g.evalSide(a, y.x)
	g.em.discard(func() { g.evalSide(b, y.y) })
	if a.v.bad() || b.v.bad() || a.v.k == vVoid || b.v.k == vVoid {
		return a.v
	}
	if q, ok := f.object(); ok {
		if g.mem.inMemory(q.T) || q.T.kind == tAtomic || q.T.kind == tArray {
			a.object.q = q
			return g.mem.placed(a.object)
		}
		if a.v.q.T != q.T.unpacked() { // the object is of a class that derives from this one
			a.v = g.mem.rvalue(a.object)
		}
		return chosenFrom(a.v, q, a.object.isBits(), func() value { return g.mem.placed(a.object) })
	}
	t := y.valueType()
	if t == nil {
		return badValue
	}
	return g.convertTo(a.v, qt(t), f.at, "a side of ?:")
}

// evaluated is known in a constant evaluation. What is not taken is not evaluated: it need not be constant.
func (y *conditional) evaluated() value {
	g, f, a, b := y.g, &y.fork, &y.fork.a, &y.fork.b
	a.object = g.expr(y.x)
	known := g.c.trial(func() {
		g.evalOff(func(h *gen) { h.evalSide(b, y.y) })
	}) && !b.v.bad() && b.v.k != vVoid
	if known && !a.object.bad() {
		if q, ok := f.object(); ok {
			a.object.q = q
			return a.object
		}
	}
	v := g.mem.rvalue(a.object)
	if known && !v.bad() && v.k == vRight {
		o := value{k: vRight, q: b.v.q}
		if t := g.choose.condType(v, o); t != nil && t != v.q.T {
			return g.convertTo(v, qt(t), f.at, "a side of ?:")
		}
	}
	return v
}

// valueType returns the type of ?: where it is no lvalue, nil after an error.
func (y *conditional) valueType() *ctype {
	a, b := y.fork.a.v, y.fork.b.v
	t := y.g.choose.condType(a, b)
	if t == nil {
		y.g.c.errorf(TypeMismatch, y.fork.at, "?: has the unlike types %s and %s", a.q.T, b.q.T)
	}
	return t
}

// condType is the common type of the sides of ?:, nil if there is none.
func (ch *chooser) condType(a, b value) *ctype {
	ta, tb := a.q.T, b.q.T
	switch {
	case a.k == vList || b.k == vList:
		return nil
	case ta == tb:
		return ta
	case (ta.isArith() || ta.isUnscopedEnum()) && (tb.isArith() || tb.isUnscopedEnum()):
		return usualType(ta, tb)
	case ta.kind == tPtr && isNullConst(&b):
		return ta
	case tb.kind == tPtr && isNullConst(&a):
		return tb
	case ta.kind == tPtr && tb.kind == tPtr:
		if ch.ptrRank(ta.elem, tb.elem) != rankNone {
			return tb
		}
		if ch.ptrRank(tb.elem, ta.elem) != rankNone {
			return ta
		}
		return nil
	}
	ra, rb := ch.convRank(&a, qt(tb)), ch.convRank(&b, qt(ta))
	switch {
	case ra != rankNone && (rb == rankNone || tb.kind == tVec):
		return tb
	case rb != rankNone:
		return ta
	}
	return nil
}

package msl

import (
	"github.com/mlxlua/mlxlua/metal/kir"
)

// selection is an lvalue that is one of two: a if cond holds, else b. They are variables that are not in memory or,
// where one is a bit-field, places in memory; all that they are made of is in scope where the selection is.
type selection struct {
	cond operand
	a, b value
}

// load reads what the selection chooses.
func (s *selection) load(g *gen) value {
	y := conditional{g: g, cond: s.cond, at: g.pos}
	y.a.blk = g.inBlock(func() { y.a.v = g.load(s.a) })
	y.b.blk = g.inBlock(func() { y.b.v = g.load(s.b) })
	if y.a.v.bad() || y.b.v.bad() {
		return badValue
	}
	return y.join(y.a.v.q.T)
}

// store writes to the object that the selection chooses.
func (s *selection) store(g *gen, x value) {
	a := g.inBlock(func() { g.store(s.a, x) })
	b := g.inBlock(func() { g.store(s.b, x) })
	g.structured(&kir.Instr{Op: kir.If, Args: []*kir.Instr{g.instr(s.cond)}, Body: a, Else: b})
}

// part returns the selection of a part of both, as gen.part does.
func (s *selection) part(g *gen, t qtype, comp, off int) value {
	return value{k: vSel, q: t, choice: &selection{s.cond, g.part(s.a, t, comp, off), g.part(s.b, t, comp, off)}}
}

// address returns a pointer to what the selection chooses.
func (s *selection) address(g *gen) operand {
	a, b := g.addressOf(s.a, g.pos), g.addressOf(s.b, g.pos)
	return g.op(kir.Select, a.comps[0].ty, s.cond, a.comps[0], b.comps[0])
}

// chosen is kept by a value that ?: has read from an object. Most uses want the value only, and it is read on the side
// where the object stands; object makes the lvalue for the others.
type chosen struct {
	object func() value
	bits   bool // one of the objects is a bit-field
}

// placed returns a value as an lvalue of the object that it was read from, if ?: has read it.
func (g *gen) placed(v value) value {
	if v.chosen == nil {
		return v
	}
	if g.unevaluated {
		return g.c.types.dummy(v.q)
	}
	o := v.chosen.object()
	o.q = v.q
	return o
}

// place evaluates an expression that an lvalue is wanted of.
func (g *gen) place(x Expr) value { return g.placed(g.expr(x)) }

// chosenFrom returns a value that was read from an object of type q.
func chosenFrom(v value, q qtype, bits bool, object func() value) value {
	v.q, v.chosen = q, &chosen{object, bits}
	return v
}

// condExpr evaluates Cond ? X : Y.
func (g *gen) condExpr(x *CondExpr) value {
	cv := g.expr(x.Cond)
	if x.X == nil { // Cond is evaluated once
		object := cv
		if cv = g.rvalue(cv); object.isLvalue() && cv.k == vRight && cv.q.T == object.q.T {
			cv = chosenFrom(cv, object.q, object.isBits(), func() value { return g.placed(object) })
		}
		held := &heldExpr{exprNode{Base{x.Cond.Pos()}}, cv}
		x = &CondExpr{exprNode: x.exprNode, Cond: held, X: held, Y: x.Y}
	}
	if cv.q.T.kind == tVec {
		g.c.errorf(TypeMismatch, x.Pos(), "the condition of ?: has type %s: use select()", cv.q.T)
		return badValue
	}
	c := g.condition(cv, x.Cond.Pos())
	y := &conditional{g: g, cond: c, at: x.Pos(), a: side{x: x.X}, b: side{x: x.Y}}
	switch {
	case !c.isConst():
		return y.sides()
	case c.bits == 0:
		y.a, y.b = y.b, y.a
	}
	if g.exec {
		return y.evaluated()
	}
	return y.known()
}

// conditional is a ?: that is evaluated.
type conditional struct {
	g    *gen
	cond operand
	at   Pos
	a, b side
}

// side is a side of ?: and the code that evaluates it.
type side struct {
	x      Expr
	blk    *kir.Block // nil: the code stands before what follows
	object value      // where it is, if it is an lvalue
	v      value      // what it holds
}

// eval evaluates a side.
func (s *side) eval(g *gen) {
	s.object = g.expr(s.x)
	s.v = g.rvalue(s.object)
}

// emit emits into the code of the side.
func (s *side) emit(g *gen, f func()) {
	if s.blk == nil {
		f()
		return
	}
	saved := g.blk
	g.blk = s.blk
	f()
	g.blk = saved
}

// both emits f into the code of either side.
func (y *conditional) both(f func(s *side)) {
	for _, s := range []*side{&y.a, &y.b} {
		s.emit(y.g, func() { f(s) })
	}
}

// branch emits the code of the sides under the condition.
func (y *conditional) branch() {
	cond := []*kir.Instr{y.g.instr(y.cond)}
	y.g.structured(&kir.Instr{Op: kir.If, Args: cond, Body: y.a.blk, Else: y.b.blk})
}

// sides evaluates a ?: whose condition is known at run time only.
func (y *conditional) sides() value {
	g, a, b := y.g, &y.a, &y.b
	a.blk = g.inBlock(func() { a.eval(g) })
	b.blk = g.inBlock(func() { b.eval(g) })
	g.at(y.at)
	if a.v.bad() || b.v.bad() {
		return badValue
	}
	if a.v.k == vVoid || b.v.k == vVoid {
		y.branch()
		return voidValue
	}
	q, isObject := y.object()
	if isObject && (g.inMemory(q.T) || q.T.kind == tAtomic) { // too large to be read, or never read like this
		y.addresses()
		if a.v.bad() || b.v.bad() {
			return badValue
		}
		return value{k: vMem, q: q, ptr: y.join(g.c.types.ptrTo(q)).comps[0]}
	}
	t := y.valueType()
	if t == nil {
		return badValue
	}
	y.both(func(s *side) { s.v = g.convertTo(s.v, qt(t), y.at, "a side of ?:") })
	if a.v.bad() || b.v.bad() {
		return badValue
	}
	r := y.join(t)
	switch {
	case !isObject:
	case q.T.kind == tArray:
		return value{k: vMem, q: q, ptr: r.comps[0]}
	default:
		r = chosenFrom(r, q, a.object.isBits() || b.object.isBits(), y.selected)
	}
	return r
}

// known evaluates a ?: of which side a is taken; b is checked, and decides the type with it.
func (y *conditional) known() value {
	g, a, b := y.g, &y.a, &y.b
	a.eval(g)
	g.discard(func() { b.eval(g) })
	if a.v.bad() || b.v.bad() || a.v.k == vVoid || b.v.k == vVoid {
		return a.v
	}
	if q, ok := y.object(); ok {
		if g.inMemory(q.T) || q.T.kind == tAtomic || q.T.kind == tArray {
			a.object.q = q
			return g.placed(a.object)
		}
		if a.v.q.T != q.T.unpacked() { // the object is of a class that derives from this one
			a.v = g.rvalue(a.object)
		}
		return chosenFrom(a.v, q, a.object.isBits(), func() value { return g.placed(a.object) })
	}
	t := y.valueType()
	if t == nil {
		return badValue
	}
	return g.convertTo(a.v, qt(t), y.at, "a side of ?:")
}

// evaluated is known in a constant evaluation. What is not taken is not evaluated: it need not be constant.
func (y *conditional) evaluated() value {
	g, a, b := y.g, &y.a, &y.b
	a.object = g.expr(a.x)
	known := g.c.trial(func() { g.evalOff(b.eval) }) && !b.v.bad() && b.v.k != vVoid
	if known && !a.object.bad() {
		if q, ok := y.object(); ok {
			a.object.q = q
			return a.object
		}
	}
	v := g.rvalue(a.object)
	if known && !v.bad() && v.k == vRight {
		o := value{k: vRight, q: b.v.q}
		if t := g.condType(v, o); t != nil && t != v.q.T {
			return g.convertTo(v, qt(t), y.at, "a side of ?:")
		}
	}
	return v
}

// valueType returns the type of ?: where it is no lvalue, nil after an error.
func (y *conditional) valueType() *ctype {
	t := y.g.condType(y.a.v, y.b.v)
	if t == nil {
		y.g.c.errorf(TypeMismatch, y.at, "?: has the unlike types %s and %s", y.a.v.q.T, y.b.v.q.T)
	}
	return t
}

// join emits the sides, whose values are of type t, and returns the one that is chosen. Where the code of both is short
// and pure it stands before what follows.
func (y *conditional) join(t *ctype) value {
	g, a, b := y.g, &y.a, &y.b
	if a.v.k == vRight && b.v.k == vRight && speculable(a.blk) && speculable(b.blk) {
		g.blk.Instrs = append(append(g.blk.Instrs, a.blk.Instrs...), b.blk.Instrs...)
		a.blk, b.blk = nil, nil
		r := value{k: vRight, q: qt(t), comps: make([]operand, len(a.v.comps))}
		for i := range r.comps {
			r.comps[i] = g.op(kir.Select, a.v.comps[i].ty, y.cond, a.v.comps[i], b.v.comps[i])
		}
		return r
	}
	o := g.newObject("?:", qt(t))
	y.both(func(s *side) { g.store(g.objVal(o), s.v) })
	y.branch()
	return g.load(g.objVal(o))
}

// object returns the type of the lvalue that ?: is: both sides are lvalues of one type and address space, or one is of
// a class that the other's derives from, and what is const or volatile in one is so in all. Several components of a
// vector are no such object, as in Clang.
func (y *conditional) object() (q qtype, ok bool) {
	a, b := &y.a.object, &y.b.object
	if !a.isLvalue() || !b.isLvalue() || a.q.Space.normal() != b.q.Space.normal() {
		return q, false
	}
	for _, v := range []*value{a, b} {
		if v.k == vSwz || v.k == vDyn {
			return q, false
		}
	}
	if a.q.T != b.q.T {
		if path, is := derivesFrom(a.q.T, b.q.T); is {
			*a = y.g.member(*a, path)
		} else if path, is := derivesFrom(b.q.T, a.q.T); is {
			*b = y.g.member(*b, path)
		} else {
			return q, false
		}
	}
	q = a.q
	q.Const, q.Vol = a.q.Const || b.q.Const, a.q.Vol || b.q.Vol
	return q, q.sameCV(a.q) || q.sameCV(b.q)
}

// addresses makes the sides' values the addresses of their objects.
func (y *conditional) addresses() {
	y.both(func(s *side) { s.v = y.g.addressOf(s.object, y.at) })
}

// selected returns the object that ?: has chosen, after its sides are emitted.
func (y *conditional) selected() value {
	g, a, b := y.g, y.a, y.b // the sides stay as they are: more may ask
	y = &conditional{g: g, cond: y.cond, at: y.at, a: a, b: b}
	y.both(func(s *side) { s.object = g.placed(s.object) })
	if !y.a.object.inSlots() || !y.b.object.inSlots() {
		if !y.a.object.isBits() && !y.b.object.isBits() {
			y.addresses()
			return value{k: vMem, ptr: y.pick(y.a.v.comps[0], y.b.v.comps[0])}
		}
		y.both(y.anchor)
	}
	return value{k: vSel, choice: &selection{
		y.cond, y.carried(y.a.object, &y.a, &y.b), y.carried(y.b.object, &y.b, &y.a),
	}}
}

// pick returns the scalar that is chosen, after the sides are emitted. Each is one of its side's code.
func (y *conditional) pick(a, b operand) operand {
	g := y.g
	if y.a.blk == nil {
		return g.op(kir.Select, a.ty, y.cond, a, b)
	}
	v := g.newVar("?:", a.ty)
	y.a.emit(g, func() { g.varSet(v, a) })
	y.b.emit(g, func() { g.varSet(v, b) })
	return g.varGet(v)
}

// carried returns the object of a side for use behind the sides, where what the side's code has computed is not in
// scope.
func (y *conditional) carried(v value, s, other *side) value {
	g := y.g
	carry := func(o operand) operand {
		if o.in == nil || s.blk == nil {
			return o
		}
		n := g.newVar("?:", o.ty)
		s.emit(g, func() { g.varSet(n, o) })
		other.emit(g, func() { g.varSet(n, operand{ty: o.ty}) })
		return g.varGet(n)
	}
	switch v.k {
	case vSel:
		c := v.choice
		v.choice = &selection{carry(c.cond), y.carried(c.a, s, other), y.carried(c.b, s, other)}
	case vMem, vBits:
		v.ptr = carry(v.ptr)
	}
	return v
}

// anchor gathers the address of a side's object in its ptr. Those of a selection are.
func (y *conditional) anchor(s *side) {
	v := &s.object
	switch {
	case v.k == vBits:
		v.ptr, v.idx, v.imm = y.g.addr(*v), operand{}, 0
	case v.k != vSel || !v.isBits():
		*v = value{k: vMem, q: v.q, ptr: y.g.addressOf(*v, y.at).comps[0]}
	}
}

// condType is the common type of the sides of ?:, nil if there is none.
func (g *gen) condType(a, b value) *ctype {
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
		if g.ptrRank(ta.elem, tb.elem) != rankNone {
			return tb
		}
		if g.ptrRank(tb.elem, ta.elem) != rankNone {
			return ta
		}
		return nil
	}
	ra, rb := g.convRank(&a, qt(tb)), g.convRank(&b, qt(ta))
	switch {
	case ra != rankNone && (rb == rankNone || tb.kind == tVec):
		return tb
	case rb != rankNone:
		return ta
	}
	return nil
}

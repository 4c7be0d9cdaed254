package msl

import (
	"github.com/mlxlua/mlxlua/metal/kir"
)

// fork is a condition and the code on both of its sides.
type fork struct {
	mem  *memory
	cond operand
	at   Pos
	a, b side
}

// side is one side of a fork and the code that evaluates it.
type side struct {
	blk    *kir.Block // nil: the code stands before what follows
	object value      // where it is, if it is an lvalue
	v      value      // what it holds
}

// emit emits into the code of the side.
func (s *side) emit(em *emitter, f func()) {
	if s.blk == nil {
		f()
		return
	}
	saved := em.blk
	em.blk = s.blk
	f()
	em.blk = saved
}

// both emits do into the code of either side.
func (f *fork) both(do func(s *side)) {
	for _, s := range []*side{&f.a, &f.b} {
		s.emit(f.mem.em, func() { do(s) })
	}
}

// branch emits the code of the sides under the condition.
func (f *fork) branch() {
	cond := []*kir.Instr{f.mem.em.instr(f.cond)}
	f.mem.em.structured(&kir.Instr{Op: kir.If, Args: cond, Body: f.a.blk, Else: f.b.blk})
}

// join emits the sides, whose values are of type t, and returns the one that is chosen. Where the code of both is short
// and pure it stands before what follows.
func (f *fork) join(t *ctype) value {
	mem, em, a, b := f.mem, f.mem.em, &f.a, &f.b
	if a.v.k == vRight && b.v.k == vRight && speculable(a.blk) && speculable(b.blk) {
		em.blk.Instrs = append(append(em.blk.Instrs, a.blk.Instrs...), b.blk.Instrs...)
		a.blk, b.blk = nil, nil
		r := value{k: vRight, q: qt(t), comps: make([]operand, len(a.v.comps))}
		for i := range r.comps {
			r.comps[i] = em.op(kir.Select, a.v.comps[i].ty, f.cond, a.v.comps[i], b.v.comps[i])
		}
		return r
	}
	o := mem.newObject("?:", qt(t))
	f.both(func(s *side) { mem.store(objVal(o), s.v) })
	f.branch()
	return mem.load(objVal(o))
}

// object returns the type of the lvalue that the sides are together: both are lvalues of one type and address space, or
// one is of a class that the other's derives from, and what is const or volatile in one is so in all. Several
// components of a vector are no such object, as in Clang.
func (f *fork) object() (q qtype, ok bool) {
	a, b := &f.a.object, &f.b.object
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
			*a = f.mem.member(*a, path)
		} else if path, is := derivesFrom(b.q.T, a.q.T); is {
			*b = f.mem.member(*b, path)
		} else {
			return q, false
		}
	}
	q = a.q
	q.Const, q.Vol = a.q.Const || b.q.Const, a.q.Vol || b.q.Vol
	return q, q.sameCV(a.q) || q.sameCV(b.q)
}

// addresses makes the sides' values the addresses of their objects.
func (f *fork) addresses() {
	f.both(func(s *side) { s.v = f.mem.addressOf(s.object, f.at) })
}

// selected returns the object that is chosen, after the sides are emitted. It leaves the fork as it is: more may ask.
func (f *fork) selected() value {
	y := *f
	y.both(func(s *side) { s.object = y.mem.placed(s.object) })
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
func (f *fork) pick(a, b operand) operand {
	em := f.mem.em
	if f.a.blk == nil {
		return em.op(kir.Select, a.ty, f.cond, a, b)
	}
	v := em.newVar("?:", a.ty)
	f.a.emit(em, func() { em.varSet(v, a) })
	f.b.emit(em, func() { em.varSet(v, b) })
	return em.varGet(v)
}

// carried returns the object of a side for use behind the sides, where what the side's code has computed is not in
// scope.
func (f *fork) carried(v value, s, other *side) value {
	em := f.mem.em
	carry := func(o operand) operand {
		if o.in == nil || s.blk == nil {
			return o
		}
		n := em.newVar("?:", o.ty)
		s.emit(em, func() { em.varSet(n, o) })
		other.emit(em, func() { em.varSet(n, operand{ty: o.ty}) })
		return em.varGet(n)
	}
	switch v.k {
	case vSel:
		c := v.choice
		v.choice = &selection{carry(c.cond), f.carried(c.a, s, other), f.carried(c.b, s, other)}
	case vMem, vBits:
		v.ptr = carry(v.ptr)
	}
	return v
}

// anchor gathers the address of a side's object in its ptr. Those of a selection are.
func (f *fork) anchor(s *side) {
	v := &s.object
	switch {
	case v.k == vBits:
		v.ptr, v.idx, v.imm = f.mem.addr(*v), operand{}, 0
	case v.k != vSel || !v.isBits():
		*v = value{k: vMem, q: v.q, ptr: f.mem.addressOf(*v, f.at).comps[0]}
	}
}

// selection is an lvalue that is one of two: a if cond holds, else b. They are variables that are not in memory or,
// where one is a bit-field, places in memory; all that they are made of is in scope where the selection is.
type selection struct {
	cond operand
	a, b value
}

// load reads what the selection chooses.
func (s *selection) load(mem *memory) value {
	f := fork{mem: mem, cond: s.cond, at: mem.em.pos}
	f.a.blk = mem.em.inBlock(func() { f.a.v = mem.load(s.a) })
	f.b.blk = mem.em.inBlock(func() { f.b.v = mem.load(s.b) })
	if f.a.v.bad() || f.b.v.bad() {
		return badValue
	}
	return f.join(f.a.v.q.T)
}

// store writes to the object that the selection chooses.
func (s *selection) store(mem *memory, x value) {
	f := fork{mem: mem, cond: s.cond}
	f.a.blk = mem.em.inBlock(func() { mem.store(s.a, x) })
	f.b.blk = mem.em.inBlock(func() { mem.store(s.b, x) })
	f.branch()
}

// part returns the selection of a part of both, as memory.part does.
func (s *selection) part(mem *memory, t qtype, comp, off int) value {
	return value{k: vSel, q: t, choice: &selection{s.cond, mem.part(s.a, t, comp, off), mem.part(s.b, t, comp, off)}}
}

// address returns a pointer to what the selection chooses.
func (s *selection) address(mem *memory) operand {
	a, b := mem.addressOf(s.a, mem.em.pos), mem.addressOf(s.b, mem.em.pos)
	return mem.em.op(kir.Select, a.comps[0].ty, s.cond, a.comps[0], b.comps[0])
}

// chosen is kept by a value that ?: has read from an object. Most uses want the value only, and it is read on the side
// where the object stands; object makes the lvalue for the others.
type chosen struct {
	object func() value
	bits   bool // one of the objects is a bit-field
}

// chosenFrom returns a value that was read from an object of type q.
func chosenFrom(v value, q qtype, bits bool, object func() value) value {
	v.q, v.chosen = q, &chosen{object, bits}
	return v
}

// placed returns a value as an lvalue of the object that it was read from, if ?: has read it.
func (mem *memory) placed(v value) value {
	if v.chosen == nil {
		return v
	}
	if mem.em.unevaluated {
		return mem.c.types.dummy(v.q)
	}
	o := v.chosen.object()
	o.q = v.q
	return o
}

package jit

import (
	"github.com/mlxlua/mlxlua/metal/jit/amd64"
	"github.com/mlxlua/mlxlua/metal/kir"
)

// Loads of one block that each read one address for all lanes, a small constant offset apart (a[0], a[1], ...), are
// checked together, at the first of them, and done each in its place from one register: products of matrices read
// their left operand so, and a check for each would take as long as the arithmetic. Where the check fails, the elements
// are loaded one by one, each with its own, into a copy in the frame, and the register points there.

// uniformGroup does a Load of such a group; ok is false if i is in none.
func (s *selector) uniformGroup(i *kir.Instr) (v val, ok bool) {
	groups := &s.memory.groups
	if g := groups.uniform[i.ID]; g != nil {
		s.checkUniform(g)
	}
	m, ok := groups.at[i.ID]
	if ok {
		v = s.loadOne(i, m)
	}
	return v, ok
}

// checkUniform checks the Loads of a group and notes where their elements are.
func (s *selector) checkUniform(g []*kir.Instr) {
	xs, all, need := s.together(g)
	first, low := xs[0], all.a.Disp
	copied := int32(s.lay.spills)
	s.lay.spills = align(s.lay.spills+int(need), 64)
	s.checkWraps(all.a, first.slow)
	s.check(all.a.Object, all.l, need, first.cold)
	from := s.place(all, 0)
	s.prefetch(g[0], from, need)
	at := s.lea(from)
	s.f.ColdBegin()
	s.bind(first.cold)
	s.bind(first.slow)
	for _, x := range xs {
		slot, r := s.coldOne(x), s.reg(amd64.GPR)
		w := uint8(max(x.size, 4))
		s.loadR(w, r, slot)
		s.storeR(uint8(x.size), amd64.Mem{Base: regFrame, Disp: copied + int32(x.a.Disp-low)}, r)
	}
	s.gopM(amd64.Lea, 8, at, amd64.Mem{Base: regFrame, Disp: copied})
	s.jump(first.done)
	s.f.ColdEnd()
	s.bind(first.done)
	for _, x := range xs {
		s.memory.groups.at[x.i.ID] = amd64.Mem{Base: at, Disp: int32(x.a.Disp - low)}
	}
}

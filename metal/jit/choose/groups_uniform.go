package choose

import (
	"github.com/mlxlua/mlxlua/metal/jit/arena"
	"github.com/mlxlua/mlxlua/metal/jit/code"
	"github.com/mlxlua/mlxlua/metal/kir"
)

// Loads of one block that each read one address for all lanes, a small constant offset apart (a[0], a[1], ...), are
// checked together, at the first of them, and done each in its place from one register: products of matrices read
// their left operand so, and a check for each would take as long as the arithmetic. Where the check fails, the elements
// are loaded one by one, each with its own, into a copy in the frame, and the register points there.

// loadUniform does a Load of such a group; ok is false if i is in none.
func (s *groups) loadUniform(i *kir.Instr) (v val, ok bool) {
	if g := s.uniform[i.ID]; g != nil {
		s.checkUniform(g)
	}
	m, ok := s.at[i.ID]
	if ok {
		v = s.mem.loadOne(i, m)
	}
	return v, ok
}

// checkUniform checks the Loads of a group and notes where their elements are.
func (s *groups) checkUniform(g []*kir.Instr) {
	xs, all, need := s.together(g)
	first, low := xs[0], all.a.Disp
	copied := int32(s.lay.Spills)
	s.lay.Spills = arena.Align(s.lay.Spills+int(need), 64)
	s.addr.checkWraps(all.a, first.slow)
	s.addr.check(all.a.Object, all.l, need, first.cold)
	from := s.mem.place(all, 0)
	s.mem.prefetch(g[0], from, need)
	at := s.e.lea(from)
	s.e.f.ColdBegin()
	s.e.bind(first.cold)
	s.e.bind(first.slow)
	for _, x := range xs {
		slot, r := s.mem.coldOne(x), s.e.reg(code.GPR)
		w := uint8(max(x.size, 4))
		s.e.loadReg(w, r, slot)
		s.e.storeReg(uint8(x.size), code.Mem{Base: regFrame, Disp: copied + int32(x.a.Disp-low)}, r)
	}
	s.e.gopMem(code.Lea, 8, at, code.Mem{Base: regFrame, Disp: copied})
	s.e.jump(first.done)
	s.e.f.ColdEnd()
	s.e.bind(first.done)
	for _, x := range xs {
		s.at[x.i.ID] = code.Mem{Base: at, Disp: int32(x.a.Disp - low)}
	}
}

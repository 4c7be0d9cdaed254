package choose

import (
	"github.com/mlxlua/mlxlua/metal/jit/arena"
	"github.com/mlxlua/mlxlua/metal/jit/code"
	"github.com/mlxlua/mlxlua/metal/jit/lanes"
	"github.com/mlxlua/mlxlua/metal/kir"
)

// Loads of one block that each read one address for all lanes, a small constant offset apart (a[0], a[1], ...), are
// checked together, at the first of them, and done each in its place from one register: products of matrices read
// their left operand so, and a check for each would take as long as the arithmetic. So are those in loops that read
// neighbouring elements (b[lane], b[64 + lane], ...), as products read their right operand. Where the check fails, the
// elements are loaded one by one, each with its own, into a copy in the frame, and the register points there.

// rowReach bounds how far apart in bytes Loads of neighbouring elements are that are checked together.
const rowReach = 2048

// loadChecked does a Load of such a group; ok is false if i is in none.
func (s *groups) loadChecked(i *kir.Instr) (v val, ok bool) {
	if g := s.checked[i.ID]; g != nil {
		s.check(g)
	}
	m, ok := s.at[i.ID]
	switch {
	case !ok:
	case s.info.Access[i.ID].Mode == lanes.AccessUniform:
		v = s.mem.loadOne(i, m)
	default:
		v.typ = i.Type
		for p := range s.e.parts {
			v.setUnit(p, s.el.loadPart(i.Type, plus(m, int32(p)*int32(s.e.w)), 0))
		}
	}
	return v, ok
}

// check checks the Loads of a group and notes where their elements are.
func (s *groups) check(g []*kir.Instr) {
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
		to := code.Mem{Base: regFrame, Disp: copied + int32(x.a.Disp-low)}
		if x.a.Mode != lanes.AccessUniform {
			s.copyRow(to, x)
			continue
		}
		slot, r := s.mem.coldOne(x), s.e.reg(code.GPR)
		w := uint8(max(x.size, 4))
		s.e.loadReg(w, r, slot)
		s.e.storeReg(uint8(x.size), to, r)
	}
	s.e.gopMem(code.Lea, 8, at, code.Mem{Base: regFrame, Disp: copied})
	s.e.jump(first.done)
	s.e.f.ColdEnd()
	s.e.bind(first.done)
	for _, x := range xs {
		s.at[x.i.ID] = code.Mem{Base: at, Disp: int32(x.a.Disp - low)}
	}
}

// copyRow loads lane by lane, and stores what the lanes have one after the other.
func (s *groups) copyRow(to code.Mem, x *access) {
	s.each.pointers(x)
	s.each.follow(x, subLoad)
	v := s.each.result(x)
	for p := range s.e.parts {
		s.e.emit(code.Inst{Op: code.VMovUPS, W: s.e.w, Mem: plus(to, int32(p)*int32(s.e.w)), A: v.unitOf(p).r[0]})
	}
}

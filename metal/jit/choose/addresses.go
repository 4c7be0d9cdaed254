package choose

import (
	"math"

	"github.com/mlxlua/mlxlua/metal/jit/arena"
	"github.com/mlxlua/mlxlua/metal/jit/code"
	"github.com/mlxlua/mlxlua/metal/jit/lanes"
	"github.com/mlxlua/mlxlua/metal/kir"
)

// maxDisp bounds displacements that instructions carry; larger ones are computed in registers.
const maxDisp = 1 << 30

// linear is the uniform part of an access's offset in its object: idx*scale + disp, in 64 bits.
type linear struct {
	idx   code.R // 0: none
	scale uint8
	disp  int64 // fits an instruction's displacement, with room for spans
	// nonneg: it is known not to be negative, whatever idx is.
	nonneg bool
}

// sum is a sum of registers under way: plain + idx*scale.
type sum struct {
	plain, idx code.R
	scale      uint8
}

// addresses computes where accesses go, and checks that they stay inside their objects.
type addresses struct {
	e    *emitter
	vals *values
	k    *kir.Kernel
	lay  *arena.Layout
}

// linear sums the uniform terms of an access.
func (s *addresses) linear(a *lanes.Access) linear {
	var sum sum
	l := linear{disp: a.Disp, nonneg: true}
	for _, t := range a.Terms {
		switch t.Op {
		case kir.ParamAddr, kir.RegionAddr: // offset 0
		case kir.Const:
			l.disp += int64(t.Imm)
		default:
			s.addTerm(&sum, s.vals.base(t), 1)
			l.nonneg = false
		}
	}
	for _, b := range a.Bases {
		t := b.Value.Type
		if b.Value.Op == kir.Const {
			l.disp += b.Scale * signExtend(t, b.Value.Imm)
			continue
		}
		r := s.vals.base(b.Value)
		if t.IsSigned() && !wide(t) {
			e := s.e.reg(code.GPR)
			s.e.gop(code.MovSXD, 8, e, r)
			r = e
		}
		l.nonneg = l.nonneg && !t.IsSigned() && !wide(t) && b.Scale > 0
		s.addTerm(&sum, r, b.Scale)
	}
	if l.disp != int64(int32(l.disp)) || l.disp > maxDisp || l.disp < -maxDisp {
		l.nonneg = l.nonneg && l.disp >= 0
		s.addTerm(&sum, s.e.gload(8, uint64(l.disp)), 1)
		l.disp = 0
	}
	l.nonneg = l.nonneg && l.disp >= 0
	l.idx, l.scale = s.total(&sum)
	return l
}

// signExtend is the number that a constant of an integer type stands for.
func signExtend(t kir.Type, bits uint64) int64 {
	sh := 64 - t.Bits()
	if t.IsSigned() {
		return int64(bits<<sh) >> sh
	}
	return int64(bits << sh >> sh)
}

// addTerm adds r*scale.
func (s *addresses) addTerm(t *sum, r code.R, scale int64) {
	switch scale {
	case 0:
		return
	case 1, 2, 4, 8:
	default:
		p := s.e.reg(code.GPR)
		if scale == int64(int32(scale)) {
			s.e.emit(code.Inst{Op: code.IMul3, W: 8, Dst: p, A: r, Imm: scale})
		} else {
			s.e.gopImm(code.Mov, 8, p, scale)
			s.e.gop(code.IMul, 8, p, r)
		}
		r, scale = p, 1
	}
	if scale == 1 && t.plain == 0 {
		t.plain = r
		return
	}
	switch {
	case t.idx != 0 && t.plain == 0 && t.scale > 1: // its scale has to be applied here
		t.plain = s.e.lea(code.Mem{Index: t.idx, Scale: t.scale})
	case t.idx != 0:
		t.plain, _ = s.total(t)
	}
	t.idx, t.scale = r, uint8(scale)
}

// total returns the sum as one register and its scale.
func (s *addresses) total(t *sum) (r code.R, scale uint8) {
	switch {
	case t.idx == 0:
		return t.plain, 1
	case t.plain == 0 && t.scale == 1:
		return t.idx, 1
	case t.plain == 0:
		return t.idx, t.scale
	}
	return s.e.lea(code.Mem{Base: t.plain, Index: t.idx, Scale: t.scale}), 1
}

// mem returns the memory operand of a linear offset plus add from a base register and its displacement.
func (l linear) mem(base code.R, disp int32, add int64) code.Mem {
	m := code.Mem{Base: base, Disp: disp + int32(l.disp+add)}
	if l.idx != 0 {
		m.Index, m.Scale = l.idx, l.scale
	}
	return m
}

// value returns a register with the offset plus add.
func (s *addresses) value(l linear, add int64) code.R {
	d := l.disp + add
	switch {
	case l.idx == 0:
		return s.e.gload(8, uint64(d))
	case l.scale == 1 && d == 0:
		return l.idx
	}
	m := code.Mem{Index: l.idx, Scale: l.scale, Disp: int32(d)}
	if l.scale == 1 {
		m = code.Mem{Base: l.idx, Disp: int32(d)}
	}
	return s.e.lea(m)
}

// region returns the region that an object is, or nil.
func (s *addresses) region(obj int) (r *kir.Region, index int) {
	if index = obj - 1 - len(s.k.Params); index >= 0 {
		return &s.k.Regions[index], index
	}
	return nil, -1
}

// isThread reports whether an object is the lanes' own memory.
func (s *addresses) isThread(obj int) bool {
	r, _ := s.region(obj)
	return r != nil && r.Space == kir.Thread
}

// refuses reports whether an object is known to be one that a kernel must not write. Such an access is done lane by
// lane, which finds the fault.
func (s *addresses) refuses(obj int) bool {
	return obj > 0 && obj <= len(s.k.Params) && s.k.Params[obj-1].ReadOnly
}

// objectWord is a word of an object's entry in the arena's table.
func (s *addresses) objectWord(obj int, word int32) code.Mem {
	return inArena(int32(s.lay.Objects) + int32(obj)*arena.ObjectBytes + word)
}

// objectBase returns the address of an object's first byte (of lane 0's, for Thread regions).
func (s *addresses) objectBase(obj int) (base code.R, disp int32) {
	r, n := s.region(obj)
	switch {
	case r != nil && r.Space == kir.Threadgroup:
		return regArena, int32(s.lay.Threadgroup + s.lay.RegionOffset[n])
	case r != nil && r.Space == kir.Thread:
		return regFrame, int32(s.lay.RegionOffset[n])
	}
	b := s.e.reg(code.GPR)
	s.e.loadReg(8, b, s.objectWord(obj, arena.ObjectBase))
	return b, 0
}

// lengthOf returns an object's length if it is known when code is made, and the least it can be.
func (s *addresses) lengthOf(obj int) (exact, least int64) {
	if r, _ := s.region(obj); r != nil {
		return int64(r.Size), int64(r.Size)
	}
	return -1, int64(s.k.Params[obj-1].MinBytes)
}

// length returns a register with an object's length in bytes.
func (s *addresses) length(obj int) code.R {
	r := s.e.reg(code.GPR)
	if exact, _ := s.lengthOf(obj); exact >= 0 {
		s.e.gopImm(code.Mov, 8, r, exact)
	} else {
		s.e.loadReg(8, r, s.objectWord(obj, arena.ObjectLen))
	}
	return r
}

// check emits the range check of the bytes [l, l+need) of an object: it goes to cold if they are not all inside.
func (s *addresses) check(obj int, l linear, need int64, cold code.Label) {
	exact, least := s.lengthOf(obj)
	switch {
	case exact >= 0 && need > exact:
		s.e.jump(cold)
		return
	case l.idx == 0 && l.disp < 0:
		s.e.jump(cold)
		return
	case l.idx == 0 && l.disp+need <= least:
		return
	case l.idx == 0 && exact >= 0:
		s.e.jump(cold)
		return
	case l.idx == 0:
		s.e.emit(code.Inst{Op: code.Cmp, W: 8, Mem: s.objectWord(obj, arena.ObjectLen), Imm: l.disp + need})
		s.e.jcc(code.CondB, cold)
		return
	case l.nonneg:
		end := s.value(l, need)
		if exact >= 0 {
			s.e.cmpImm(end, exact)
		} else {
			s.e.emit(code.Inst{Op: code.Cmp, W: 8, A: end, Mem: s.objectWord(obj, arena.ObjectLen)})
		}
		s.e.jcc(code.CondA, cold)
		return
	}
	at := s.value(l, 0)
	if exact >= 0 {
		s.e.cmpImm(at, exact-need)
		s.e.jcc(code.CondA, cold)
		return
	}
	room := s.e.reg(code.GPR)
	s.e.loadReg(8, room, s.objectWord(obj, arena.ObjectLen))
	if need == int64(int32(need)) {
		s.e.gopImm(code.Sub, 8, room, need)
	} else {
		s.e.gop(code.Sub, 8, room, s.e.gload(8, uint64(need)))
	}
	s.e.jcc(code.CondB, cold)
	s.e.emit(code.Inst{Op: code.Cmp, W: 8, A: at, B: room})
	s.e.jcc(code.CondA, cold)
}

// checkWraps goes to cold if a lane's index may not be base + offset because that wraps in the index's type.
func (s *addresses) checkWraps(a *lanes.Access, cold code.Label) {
	for _, b := range a.Bases {
		if b.Span <= 0 || b.Value.Op == kir.Const {
			continue
		}
		t := b.Value.Type
		limit := int64(t.Mask()) - b.Span
		cond := code.CondA
		if t.IsSigned() {
			limit = int64(t.Mask()>>1) - b.Span
			cond = code.CondG
		}
		if limit < 0 || limit < math.MinInt32 {
			s.e.jump(cold)
			continue
		}
		s.e.emit(code.Inst{Op: code.Cmp, W: 4, A: s.vals.base(b.Value), Imm: int64(int32(uint32(limit)))})
		s.e.jcc(cond, cold)
	}
}

// plus adds to a memory operand's displacement.
func plus(m code.Mem, d int32) code.Mem {
	m.Disp += d
	return m
}

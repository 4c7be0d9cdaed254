package jit

import (
	"math"

	"github.com/mlxlua/mlxlua/metal/jit/amd64"
	"github.com/mlxlua/mlxlua/metal/jit/lanes"
	"github.com/mlxlua/mlxlua/metal/kir"
)

// linear is the uniform part of an access's offset in its object: idx*scale + disp, in 64 bits.
type linear struct {
	idx   amd64.R // 0: none
	scale uint8
	disp  int64 // fits an instruction's displacement, with room for spans
	// nonneg: it is known not to be negative, whatever idx is.
	nonneg bool
}

// maxDisp bounds displacements that instructions carry; larger ones are computed in registers.
const maxDisp = 1 << 30

// gop emits dst = dst op a on general registers.
func (s *selector) gop(op amd64.Opcode, w uint8, dst, a amd64.R) {
	s.emit(amd64.Inst{Op: op, W: w, Dst: dst, A: a})
}

// gopI emits dst = dst op imm on a general register (Mov: dst = imm).
func (s *selector) gopI(op amd64.Opcode, w uint8, dst amd64.R, imm int64) {
	s.emit(amd64.Inst{Op: op, W: w, Dst: dst, Imm: imm})
}

// gopM emits dst = dst op memory on a general register (Mov: dst = memory).
func (s *selector) gopM(op amd64.Opcode, w uint8, dst amd64.R, m amd64.Mem) {
	s.emit(amd64.Inst{Op: op, W: w, Dst: dst, Mem: m})
}

// lea returns a register with the address m.
func (s *selector) lea(m amd64.Mem) amd64.R {
	r := s.reg(amd64.GPR)
	s.gopM(amd64.Lea, 8, r, m)
	return r
}

// imm64 returns a register with a constant.
func (s *selector) imm64(v int64) amd64.R {
	r := s.reg(amd64.GPR)
	s.gopI(amd64.Mov, 8, r, v)
	return r
}

// cmpRI emits a comparison of a register with a constant, in 64 bits.
func (s *selector) cmpRI(r amd64.R, v int64) {
	if v != int64(int32(v)) {
		s.emit(amd64.Inst{Op: amd64.Cmp, W: 8, A: r, B: s.imm64(v)})
		return
	}
	s.emit(amd64.Inst{Op: amd64.Cmp, W: 8, A: r, Imm: v})
}

// linear sums the uniform terms of an access.
func (s *selector) linear(a *lanes.Access) linear {
	var sum sum
	l := linear{disp: a.Disp, nonneg: true}
	for _, t := range a.Terms {
		switch t.Op {
		case kir.ParamAddr, kir.RegionAddr: // offset 0
		case kir.Const:
			l.disp += int64(t.Imm)
		default:
			s.addTerm(&sum, s.base(t), 1)
			l.nonneg = false
		}
	}
	for _, b := range a.Bases {
		t := b.Value.Type
		if b.Value.Op == kir.Const {
			l.disp += b.Scale * signExtend(t, b.Value.Imm)
			continue
		}
		r := s.base(b.Value)
		if t.IsSigned() && !wide(t) {
			e := s.reg(amd64.GPR)
			s.gop(amd64.MovSXD, 8, e, r)
			r = e
		}
		l.nonneg = l.nonneg && !t.IsSigned() && !wide(t) && b.Scale > 0
		s.addTerm(&sum, r, b.Scale)
	}
	if l.disp != int64(int32(l.disp)) || l.disp > maxDisp || l.disp < -maxDisp {
		l.nonneg = l.nonneg && l.disp >= 0
		s.addTerm(&sum, s.imm64(l.disp), 1)
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

// sum is a sum of registers under way: plain + idx*scale.
type sum struct {
	plain, idx amd64.R
	scale      uint8
}

// addTerm adds r*scale.
func (s *selector) addTerm(t *sum, r amd64.R, scale int64) {
	switch scale {
	case 0:
		return
	case 1, 2, 4, 8:
	default:
		p := s.reg(amd64.GPR)
		if scale == int64(int32(scale)) {
			s.emit(amd64.Inst{Op: amd64.IMul3, W: 8, Dst: p, A: r, Imm: scale})
		} else {
			s.gopI(amd64.Mov, 8, p, scale)
			s.gop(amd64.IMul, 8, p, r)
		}
		r, scale = p, 1
	}
	if scale == 1 && t.plain == 0 {
		t.plain = r
		return
	}
	switch {
	case t.idx != 0 && t.plain == 0 && t.scale > 1: // its scale has to be applied here
		t.plain = s.lea(amd64.Mem{Index: t.idx, Scale: t.scale})
	case t.idx != 0:
		t.plain, _ = s.total(t)
	}
	t.idx, t.scale = r, uint8(scale)
}

// total returns the sum as one register and its scale.
func (s *selector) total(t *sum) (r amd64.R, scale uint8) {
	switch {
	case t.idx == 0:
		return t.plain, 1
	case t.plain == 0 && t.scale == 1:
		return t.idx, 1
	case t.plain == 0:
		return t.idx, t.scale
	}
	return s.lea(amd64.Mem{Base: t.plain, Index: t.idx, Scale: t.scale}), 1
}

// mem returns the memory operand of a linear offset plus add from a base register and its displacement.
func (l linear) mem(base amd64.R, disp int32, add int64) amd64.Mem {
	m := amd64.Mem{Base: base, Disp: disp + int32(l.disp+add)}
	if l.idx != 0 {
		m.Index, m.Scale = l.idx, l.scale
	}
	return m
}

// value returns a register with the offset plus add.
func (s *selector) value(l linear, add int64) amd64.R {
	d := l.disp + add
	switch {
	case l.idx == 0:
		return s.imm64(d)
	case l.scale == 1 && d == 0:
		return l.idx
	}
	m := amd64.Mem{Index: l.idx, Scale: l.scale, Disp: int32(d)}
	if l.scale == 1 {
		m = amd64.Mem{Base: l.idx, Disp: int32(d)}
	}
	return s.lea(m)
}

// region returns the region that an object is, or nil.
func (s *selector) region(obj int) (r *kir.Region, index int) {
	if index = obj - 1 - len(s.k.Params); index >= 0 {
		return &s.k.Regions[index], index
	}
	return nil, -1
}

// isThread reports whether an object is the lanes' own memory.
func (s *selector) isThread(obj int) bool {
	r, _ := s.region(obj)
	return r != nil && r.Space == kir.Thread
}

// objectWord is a word of an object's entry in the block's table.
func (s *selector) objectWord(obj int, word int32) amd64.Mem {
	return block(int32(s.lay.objects) + int32(obj)*objectBytes + word)
}

// objectBase returns the address of an object's first byte (of lane 0's, for Thread regions).
func (s *selector) objectBase(obj int) (base amd64.R, disp int32) {
	r, n := s.region(obj)
	switch {
	case r != nil && r.Space == kir.Threadgroup:
		return regBlock, int32(s.lay.tgMem + s.lay.regionOff[n])
	case r != nil && r.Space == kir.Thread:
		return regFrame, int32(s.lay.regionOff[n])
	}
	b := s.reg(amd64.GPR)
	s.loadR(8, b, s.objectWord(obj, objectBase))
	return b, 0
}

// lenOf returns an object's length if it is known when code is made, and the least it can be.
func (s *selector) lenOf(obj int) (exact, least int64) {
	if r, _ := s.region(obj); r != nil {
		return int64(r.Size), int64(r.Size)
	}
	return -1, int64(s.k.Params[obj-1].MinBytes)
}

// check emits the range check of the bytes [l, l+need) of an object: it goes to cold if they are not all inside.
func (s *selector) check(obj int, l linear, need int64, cold amd64.Label) {
	exact, least := s.lenOf(obj)
	switch {
	case exact >= 0 && need > exact:
		s.jump(cold)
		return
	case l.idx == 0 && l.disp < 0:
		s.jump(cold)
		return
	case l.idx == 0 && l.disp+need <= least:
		return
	case l.idx == 0 && exact >= 0:
		s.jump(cold)
		return
	case l.idx == 0:
		s.emit(amd64.Inst{Op: amd64.Cmp, W: 8, Mem: s.objectWord(obj, objectLen), Imm: l.disp + need})
		s.jcc(amd64.CondB, cold)
		return
	case l.nonneg:
		end := s.value(l, need)
		if exact >= 0 {
			s.cmpRI(end, exact)
		} else {
			s.emit(amd64.Inst{Op: amd64.Cmp, W: 8, A: end, Mem: s.objectWord(obj, objectLen)})
		}
		s.jcc(amd64.CondA, cold)
		return
	}
	at := s.value(l, 0)
	if exact >= 0 {
		s.cmpRI(at, exact-need)
		s.jcc(amd64.CondA, cold)
		return
	}
	room := s.reg(amd64.GPR)
	s.loadR(8, room, s.objectWord(obj, objectLen))
	if need == int64(int32(need)) {
		s.gopI(amd64.Sub, 8, room, need)
	} else {
		s.gop(amd64.Sub, 8, room, s.imm64(need))
	}
	s.jcc(amd64.CondB, cold)
	s.emit(amd64.Inst{Op: amd64.Cmp, W: 8, A: at, B: room})
	s.jcc(amd64.CondA, cold)
}

// checkWraps goes to cold if a lane's index may not be base + offset because that wraps in the index's type.
func (s *selector) checkWraps(a *lanes.Access, cold amd64.Label) {
	for _, b := range a.Bases {
		if b.Span <= 0 || b.Value.Op == kir.Const {
			continue
		}
		t := b.Value.Type
		limit := int64(t.Mask()) - b.Span
		cond := amd64.CondA
		if t.IsSigned() {
			limit = int64(t.Mask()>>1) - b.Span
			cond = amd64.CondG
		}
		if limit < 0 || limit < math.MinInt32 {
			s.jump(cold)
			continue
		}
		s.emit(amd64.Inst{Op: amd64.Cmp, W: 4, A: s.base(b.Value), Imm: int64(int32(uint32(limit)))})
		s.jcc(cond, cold)
	}
}

package choose

import (
	"github.com/mlxlua/mlxlua/metal/jit/code"
	"github.com/mlxlua/mlxlua/metal/kir"
)

// scan selects ScanInclusive and ScanExclusive.
func (s *crossing) scan(i *kir.Instr, in val) val {
	t := in.typ
	op, as := combiner(i.Mode, t)
	x := s.v
	id := identityLane(i.Mode, t)
	r := s.activeOr(t, in.registers(s.e.parts), id)
	fill := x.load(id, wide(t))
	for d := 1; d < int(i.Imm); d *= 2 {
		up, moved := lanePermutes{x}.shiftUp(t, r, d, fill, int(i.Imm))
		for n := range r {
			if moved[n] { // else only the identity comes in
				r[n] = x.lanewise().op(op, as, [3]operand{inReg(up[n]), inReg(r[n])})
			}
		}
	}
	if as != t {
		for n := range r {
			r[n] = x.integers().canon(t, r[n])
		}
	}
	if i.Op == kir.ScanInclusive {
		return value(t, r)
	}
	floatSum := t.IsFloat() && i.Mode == kir.ModeAdd // begins with +0, not with the identity
	if floatSum {
		fill = x.load(0, wide(t))
	}
	r, _ = lanePermutes{x}.shiftUp(t, r, 1, fill, int(i.Imm))
	if floatSum && !s.on.all {
		r = s.chooseEach(t, s.m.fromBits(s.afterFirst(int(i.Imm))), r, konst(0))
	}
	return value(t, r)
}

// afterFirst returns bits for the lanes that have an active lane below them in their group of 32 or 4.
func (s *crossing) afterFirst(group int) code.R {
	b := s.m.bits(s.on.exec)
	if group == kir.Lanes {
		d := s.e.reg(code.GPR)
		s.e.emit(code.Inst{Op: code.BlsMsk, W: 4, Dst: d, A: b}) // up to the lowest
		s.e.emit(code.Inst{Op: code.Not, W: 4, Dst: d})
		return d
	}
	const notFirst = 0xeeeeeeee
	for step := range 3 {
		up := s.e.gmove(4, b)
		s.e.emit(code.Inst{Op: code.Shl, W: 4, Dst: up, Imm: 1})
		s.g.withImm(code.And, 4, up, notFirst)
		if step > 0 {
			s.e.emit(code.Inst{Op: code.Or, W: 4, Dst: up, A: b})
		}
		b = up
	}
	return b
}

// shiftUp moves every lane d lanes up in its group of 32 or 4; fill comes in from below. moved says of each
// register whether anything but fill is in it.
func (x lanePermutes) shiftUp(t kir.Type, r []code.R, d int, fill code.R, group int) (up []code.R, moved []bool) {
	up, moved = make([]code.R, len(r)), make([]bool, len(r))
	if group == 4 {
		for n := range r {
			up[n], moved[n] = x.shiftQuads(t, r[n], d, fill), true
		}
		return up, moved
	}
	per := int(x.v.w) / 4
	if wide(t) {
		per /= 2
	}
	whole, part := d/per, d%per
	at := func(n int) code.R {
		if n < 0 {
			return fill
		}
		return r[n]
	}
	for n := range r {
		from := n - whole
		moved[n] = from >= 0
		switch {
		case part == 0 || from < 0:
			up[n] = at(from)
		default:
			up[n] = x.funnel(wide(t), at(from-1), r[from], part)
		}
	}
	return up, moved
}

// funnel returns the lanes of hi moved d up, the top lanes of lo coming in.
func (x lanePermutes) funnel(big bool, lo, hi code.R, d int) code.R {
	if x.v.avx512() {
		per := int64(16)
		if big {
			per = 8
		}
		return x.v.op2Imm(by(big, code.VAlignD, code.VAlignQ), hi, lo, per-int64(d))
	}
	if big {
		var order, mask int64
		for l := range 4 {
			order |= int64((l-d)&3) << (2 * l)
		}
		mask = 1<<(2*d) - 1
		return x.v.op2Imm(code.VPBlendD, x.v.op1Imm(code.VPermQ, hi, order), x.v.op1Imm(code.VPermQ, lo, order), mask)
	}
	idx := x.v.reg(code.Vec)
	x.v.emit(code.Inst{Op: code.VMovUPS, W: x.v.w, Dst: idx,
		Mem: x.v.constLanes(func(l int) uint64 { return uint64((l - d) & 7) })})
	return x.v.op2Imm(code.VPBlendD, x.v.op2(code.VPermD, idx, hi), x.v.op2(code.VPermD, idx, lo), 1<<d-1)
}

// shiftQuads moves the lanes of each quad d lanes up.
func (x lanePermutes) shiftQuads(t kir.Type, r code.R, d int, fill code.R) code.R {
	if !wide(t) {
		return x.v.op2Imm(code.VPAlignR, r, fill, int64(16-4*d))
	}
	order, low := int64(0x90), int64(1)
	if d == 2 {
		order, low = 0x40, 3
	}
	p := x.v.op1Imm(code.VPermQ, r, order)
	if !x.v.avx512() {
		return x.v.op2Imm(code.VPBlendD, p, fill, 1<<(2*d)-1)
	}
	k := x.v.reg(code.Mask)
	x.v.emit(code.Inst{Op: code.KMov, W: 2, Dst: k, A: x.v.e.gload(4, uint64(low*0x11))})
	m := x.v.reg(code.Vec)
	x.v.emit(code.Inst{Op: code.VPBlendMQ, W: x.v.w, Dst: m, A: p, B: fill, KM: k})
	return m
}

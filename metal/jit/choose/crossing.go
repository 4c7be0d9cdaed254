package choose

import (
	"github.com/mlxlua/mlxlua/metal/jit/code"
	"github.com/mlxlua/mlxlua/metal/jit/lanes"
	"github.com/mlxlua/mlxlua/metal/kir"
)

// crossing selects operations between lanes: kir/lanes.go says what they yield. They run on all 32 lanes, those that
// are not active holding the operation's identity.
type crossing struct {
	e    *emitter
	v    vector
	m    masks
	g    general
	on   *active
	info *lanes.Info
}

// activeOr returns registers whose lanes that are not active hold a constant, given as a lane holds it.
func (s *crossing) activeOr(t kir.Type, r []code.R, bits uint64) []code.R {
	if s.on.all {
		return append([]code.R(nil), r...)
	}
	x := s.v
	other := konst(0)
	if bits != 0 {
		other = inReg(x.load(bits, wide(t)))
	}
	return s.chooseEach(t, s.on.exec, r, other)
}

// chooseEach takes r's lanes where a mask (of all parts) is on, else b's.
func (s *crossing) chooseEach(t kir.Type, mask, r []code.R, b operand) []code.R {
	masks, d := s.m.perRegister(t, mask), make([]code.R, len(r))
	for n := range r {
		d[n] = s.v.comparisons().chooseRegister(masks[n], inReg(r[n]), b, wide(t))
	}
	return d
}

// combiner returns the operation of a Reduce or scan on registers, and the type to do it in: sums and products of
// narrow integers are cut to their width once, at the end.
func combiner(mode kir.Mode, t kir.Type) (op kir.Op, as kir.Type) {
	if t.IsInt() && t.Size() < 4 && (mode == kir.ModeAdd || mode == kir.ModeMul) {
		t = kir.U32
	}
	return mode.Op(), t
}

// identityLane is the identity of a mode as a lane holds it.
func identityLane(mode kir.Mode, t kir.Type) uint64 {
	id, _ := kir.Identity(mode, t)
	bits, _ := laneBits(t, id)
	return bits
}

// reduce selects a Reduce.
func (s *crossing) reduce(i *kir.Instr, in val) val {
	if in.typ == kir.Bool {
		return s.reduceBools(i, in)
	}
	t := in.typ
	op, as := combiner(i.Mode, t)
	x := s.v
	r := s.activeOr(t, in.registers(s.e.parts), identityLane(i.Mode, t))
	apply := func(x vector, a, b code.R) code.R {
		return x.lanewise().op(op, as, [3]operand{inReg(a), inReg(b)})
	}
	if t.IsFloat() && (op == kir.Min || op == kir.Max) && s.e.extras() {
		mode := int64(0b0100)
		if op == kir.Max {
			mode = 0b0101
		}
		big := wide(t)
		for n := range r { // signalling NaNs become quiet once, not at each step
			if t != kir.F16 {
				r[n] = x.opX(by(big, code.VMulPS, code.VMulPD), r[n], konst(oneLane(big)), big)
			}
		}
		apply = func(x vector, a, b code.R) code.R { return x.floats().quickMinMax(a, b, mode, big) }
	}
	if i.Imm == 4 {
		for n := range r {
			r[n] = lanePermutes{x}.reduceQuads(t, r[n], apply)
			if as != t {
				r[n] = x.integers().canon(t, r[n])
			}
		}
		return value(t, r)
	}
	for len(r) > 1 {
		h := len(r) / 2
		for n := range h {
			r[n] = apply(x, r[n], r[n+h])
		}
		r = r[:h]
	}
	v := r[0]
	for x.w > 16 {
		hi := x.upper(v)
		x.w /= 2
		v = apply(x, v, hi)
	}
	v = apply(x, v, x.upper(v))
	if !wide(t) {
		v = apply(x, v, x.op1Imm(code.VPShufD, v, 0x55))
	}
	if t.IsFloat() {
		x.w = s.e.w
		return val{typ: t, vec: [maxRegs]code.R{x.first(v, wide(t))}, splat: true}
	}
	base := s.e.splatToScalar(v, t)
	if as != t {
		base = s.g.canon(t, base)
	}
	return val{typ: t, base: base}
}

// reduceBools selects a Reduce of Bools: on bits in a general register, or in quads as numbers.
func (s *crossing) reduceBools(i *kir.Instr, in val) val {
	if i.Imm == 4 {
		x := s.v
		r := in.registers(s.e.parts)
		for p := range r {
			r[p] = x.comparisons().chooseRegister(r[p], konst(1), konst(0), false)
		}
		n := s.reduce(&kir.Instr{Op: i.Op, Mode: i.Mode, Imm: 4, ID: i.ID}, value(kir.U32, r))
		for p := range r {
			r[p] = x.comparisons().register(kir.Ne, kir.U32, inReg(n.vec[p]), konst(0))
		}
		return value(kir.Bool, r)
	}
	var bits code.R
	want := code.CondNE
	switch i.Mode {
	case kir.ModeAnd: // no active lane is off
		bits = s.m.bits(s.m.each(s.m.andNot, s.on.exec, in.registers(s.e.parts)))
		want = code.CondE
	default:
		bits = s.m.bits(s.on.masksOf(in))
	}
	if i.Mode == kir.ModeXor {
		d := s.e.reg(code.GPR)
		s.e.emit(code.Inst{Op: code.PopCnt, W: 4, Dst: d, A: bits})
		s.e.emit(code.Inst{Op: code.And, W: 4, Dst: d, Imm: 1})
		return val{typ: kir.Bool, base: d}
	}
	s.e.emit(code.Inst{Op: code.Test, W: 4, A: bits, B: bits})
	return val{typ: kir.Bool, base: s.g.setCC(want)}
}

// ballot selects a Ballot.
func (s *crossing) ballot(_ *kir.Instr, in val) val {
	return val{typ: kir.U64, base: s.m.bits(s.on.masksOf(in))}
}

// broadcastFirst selects a BroadcastFirst.
func (s *crossing) broadcastFirst(i *kir.Instr, in val) val {
	t := in.typ
	if i.Imm == 4 {
		return s.firstOfQuads(in)
	}
	if in.splat && t != kir.Bool {
		x := s.v
		return val{typ: t, vec: [maxRegs]code.R{x.move(in.vec[0])}, splat: true}
	}
	active := s.m.bits(s.on.exec)
	if t == kir.Bool {
		low, on := s.e.reg(code.GPR), s.m.bits(in.registers(s.e.parts))
		s.e.emit(code.Inst{Op: code.BlsI, W: 4, Dst: low, A: active})
		s.e.emit(code.Inst{Op: code.Test, W: 4, A: on, B: low})
		return val{typ: t, base: s.g.setCC(code.CondNE)}
	}
	s.e.emit(code.Inst{Op: code.TZCnt, W: 4, Dst: code.RAX, A: active})
	return s.pickLane(t, in.registers(s.e.parts))
}

// firstOfQuads is broadcastFirst in each quad: a shuffle from its lowest active lane.
func (s *crossing) firstOfQuads(in val) val {
	table := s.v.constBytes(16, func(n int) uint64 { // the lowest bit of four
		for b := range 4 {
			if n>>b&1 != 0 {
				return uint64(b)
			}
		}
		return 0
	})
	x := s.v
	bits := s.e.scalarToSplat(s.m.bits(s.on.exec), kir.U32)
	idx := val{typ: kir.U32}
	for p := range s.e.parts {
		counts := s.v.constLanes(func(l int) uint64 { return uint64((p*s.e.per + l) &^ 3) })
		n := x.and(x.op2Mem(code.VPSrlVD, bits, counts), konst(15), false)
		lut := x.e.reg(code.Vec)
		x.e.emit(code.Inst{Op: code.VMovUPS, W: x.w, Dst: lut, Mem: table})
		idx.vec[p] = x.and(x.op2(code.VPShufB, lut, n), konst(3), false)
	}
	return s.shuffleQuads(in, idx)
}

// pickLane returns the value of the lane whose number is in RAX, through the scratch.
func (s *crossing) pickLane(t kir.Type, r []code.R) val {
	for n := range r {
		s.e.emit(code.Inst{Op: code.VMovUPS, W: s.e.w, Mem: s.e.scratchMem(scratchVal + n*int(s.e.w)), A: r[n]})
	}
	m := s.e.scratchMem(scratchVal)
	m.Index, m.Scale = code.RAX, 4
	if wide(t) {
		m.Scale = 8
	}
	v := val{typ: t}
	if t.IsFloat() {
		v.vec[0], v.splat = s.e.reg(code.Vec), true
		s.e.emit(code.Inst{Op: by(wide(t), code.VPBroadcastD, code.VPBroadcastQ), W: s.e.w, Dst: v.vec[0], Mem: m})
		return v
	}
	v.base = s.e.reg(code.GPR)
	s.e.loadReg(gprWidth(t), v.base, m)
	return v
}

// shuffle selects a Shuffle.
func (s *crossing) shuffle(i *kir.Instr, in, idx val) val {
	t := in.typ
	if i.Imm == 4 {
		return s.shuffleQuads(in, idx)
	}
	if s.info.Patterns[i.ID].Kind != lanes.Uniform {
		return s.shuffleLanes(in, idx)
	}
	n := idx.base
	if n == 0 {
		n = s.e.splatToScalar(idx.vec[0], kir.U32)
	}
	if t == kir.Bool {
		d := s.m.bits(s.on.masksOf(in))
		s.e.emit(code.Inst{Op: code.ShrX, W: 4, Dst: d, A: d, B: n})
		s.e.emit(code.Inst{Op: code.And, W: 4, Dst: d, Imm: 1})
		return val{typ: t, base: d}
	}
	r := s.activeOr(t, in.registers(s.e.parts), 0)
	s.e.emit(code.Inst{Op: code.Mov, W: 4, Dst: code.RAX, A: n})
	s.e.emit(code.Inst{Op: code.And, W: 4, Dst: code.RAX, Imm: kir.Lanes - 1})
	return s.pickLane(t, r)
}

// shuffleLanes gives each lane the value of the lane idx, modulo 32; lanes that are not active count as zero.
func (s *crossing) shuffleLanes(in, idx val) val {
	t := in.typ
	x := s.v
	from := make([]code.R, s.e.parts)
	for p := range from {
		from[p] = idx.unitOf(p).r[0]
	}
	if t == kir.Bool {
		bits := s.e.scalarToSplat(s.m.bits(s.on.masksOf(in)), kir.U32)
		m := make([]code.R, s.e.parts)
		for p := range m {
			bit := x.op2(code.VPSrlVD, bits, x.and(from[p], konst(kir.Lanes-1), false))
			if s.e.avx512() {
				m[p] = s.e.reg(code.Mask)
				s.e.emit(code.Inst{Op: code.VPTestMD, W: s.e.w, Dst: m[p], A: bit, Mem: x.constMem(1, false)})
			} else {
				m[p] = x.shift(code.VPSraD, x.shift(code.VPSllD, bit, 31), 31)
			}
		}
		return value(t, m)
	}
	r := s.activeOr(t, in.registers(s.e.parts), 0)
	if !wide(t) {
		return value(t, lanePermutes{x}.gatherLanes(r, from))
	}
	// Both halves of 64-bit lanes apart, as 32-bit lanes.
	lo, hi := make([]code.R, s.e.parts), make([]code.R, s.e.parts)
	for p := range lo {
		lo[p], hi[p] = lanePermutes{x}.unzip(r[2*p], r[2*p+1])
	}
	lo, hi = lanePermutes{x}.gatherLanes(lo, from), lanePermutes{x}.gatherLanes(hi, from)
	for p := range lo {
		r[2*p], r[2*p+1] = lanePermutes{x}.zip(lo[p], hi[p])
	}
	return value(t, r)
}

// shuffleQuads gives each lane the value of lane idx, modulo 4, of its quad.
func (s *crossing) shuffleQuads(in, idx val) val {
	t := in.typ
	x := s.v
	own := val{typ: kir.U32}
	if t != kir.Bool && !wide(t) {
		r := s.activeOr(t, in.registers(s.e.parts), 0)
		for p := range r {
			r[p] = x.op2(code.VPermilVPS, r[p], idx.unitOf(p).r[0])
		}
		return value(t, r)
	}
	for p := range s.e.parts {
		quad := s.v.constLanes(func(l int) uint64 { return uint64((p*s.e.per + l) &^ 3) })
		n := x.and(idx.unitOf(p).r[0], konst(3), false)
		own.vec[p] = x.op2Mem(x.logic(code.VPOr, code.VPOrD, 0, false), n, quad)
	}
	return s.shuffleLanes(in, own)
}

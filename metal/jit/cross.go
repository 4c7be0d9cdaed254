package jit

import (
	"github.com/mlxlua/mlxlua/metal/jit/amd64"
	"github.com/mlxlua/mlxlua/metal/jit/lanes"
	"github.com/mlxlua/mlxlua/metal/kir"
)

// Operations between lanes: kir/lanes.go says what they yield. They run on all 32 lanes, those that are not active
// holding the operation's identity.

// registers returns the vector registers of all lanes of a value, in the order of lanes.
func (s *selector) registers(v val) []amd64.R {
	var r []amd64.R
	for p := range s.parts {
		u := v.unitOf(p)
		r = append(r, u.r[0])
		if wide(v.typ) {
			r = append(r, u.r[1])
		}
	}
	return r
}

// value makes a value of its registers.
func value(t kir.Type, r []amd64.R) val {
	v := val{typ: t}
	copy(v.vec[:], r)
	return v
}

// perRegister returns the masks of the registers of a type's lanes from those of the parts.
func (s *selector) perRegister(t kir.Type, mask []amd64.R) []amd64.R {
	if !wide(t) {
		return mask
	}
	var r []amd64.R
	for _, m := range mask {
		r = append(r, s.halfMask(m, 0), s.halfMask(m, 1))
	}
	return r
}

// activeOr returns registers whose lanes that are not active hold a constant, given as a lane holds it.
func (s *selector) activeOr(t kir.Type, r []amd64.R, bits uint64) []amd64.R {
	if s.allActive {
		return append([]amd64.R(nil), r...)
	}
	x := lane{selector: s, w: s.w}
	other := konst(0)
	if bits != 0 {
		other = inReg(x.load(bits, wide(t)))
	}
	return x.chooseEach(t, s.exec, r, other)
}

// chooseEach takes r's lanes where a mask (of all parts) is on, else b's.
func (x lane) chooseEach(t kir.Type, mask, r []amd64.R, b operand) []amd64.R {
	masks, d := x.perRegister(t, mask), make([]amd64.R, len(r))
	for n := range r {
		d[n] = x.choose1(masks[n], inReg(r[n]), b, wide(t))
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
func (s *selector) reduce(i *kir.Instr, in val) val {
	if in.typ == kir.Bool {
		return s.reduceBools(i, in)
	}
	t := in.typ
	op, as := combiner(i.Mode, t)
	x := lane{selector: s, w: s.w}
	r := s.activeOr(t, s.registers(in), identityLane(i.Mode, t))
	apply := func(x lane, a, b amd64.R) amd64.R {
		return x.lanewise(op, as, [3]operand{inReg(a), inReg(b)})
	}
	if t.IsFloat() && (op == kir.Min || op == kir.Max) && s.level == amd64.AVX512 {
		mode := int64(0b0100)
		if op == kir.Max {
			mode = 0b0101
		}
		big := wide(t)
		for n := range r { // signalling NaNs become quiet once, not at each step
			if t != kir.F16 {
				r[n] = x.opX(by(big, amd64.VMulPS, amd64.VMulPD), r[n], konst(oneLane(big)), big)
			}
		}
		apply = func(x lane, a, b amd64.R) amd64.R { return x.quickMinMax(a, b, mode, big) }
	}
	if i.Imm == 4 {
		for n := range r {
			r[n] = x.reduceQuads(t, r[n], apply)
			if as != t {
				r[n] = x.canon(t, r[n])
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
		v = apply(x, v, x.op1i(amd64.VPShufD, v, 0x55))
	}
	if t.IsFloat() {
		x.w = s.w
		return val{typ: t, vec: [maxRegs]amd64.R{x.first(v, wide(t))}, splat: true}
	}
	base := s.splatToScalar(v, t)
	if as != t {
		base = s.gcanon(t, base)
	}
	return val{typ: t, base: base}
}

// quadShuffle moves lanes within quads; the constant is that of VPSHUFD or VPERMQ.
func (x lane) quadShuffle(t kir.Type, r amd64.R, order int64) amd64.R {
	return x.op1i(by(wide(t), amd64.VPShufD, amd64.VPermQ), r, order)
}

func (x lane) reduceQuads(t kir.Type, r amd64.R, apply func(x lane, a, b amd64.R) amd64.R) amd64.R {
	r = apply(x, r, x.quadShuffle(t, r, 0xee))
	r = apply(x, r, x.quadShuffle(t, r, 0x55))
	return x.quadShuffle(t, r, 0)
}

// activeMasks returns the registers of a Bool's parts, only active lanes on.
func (s *selector) activeMasks(in val) []amd64.R {
	m := s.registers(in)
	if s.allActive {
		return m
	}
	return s.eachMask(s.maskAnd, m, s.exec)
}

// reduceBools selects a Reduce of Bools: on bits in a general register, or in quads as numbers.
func (s *selector) reduceBools(i *kir.Instr, in val) val {
	if i.Imm == 4 {
		x := lane{selector: s, w: s.w}
		r := s.registers(in)
		for p := range r {
			r[p] = x.choose1(r[p], konst(1), konst(0), false)
		}
		n := s.reduce(&kir.Instr{Op: i.Op, Mode: i.Mode, Imm: 4, ID: i.ID}, value(kir.U32, r))
		for p := range r {
			r[p] = x.compare1(kir.Ne, kir.U32, inReg(n.vec[p]), konst(0))
		}
		return value(kir.Bool, r)
	}
	var bits amd64.R
	want := amd64.CondNE
	switch i.Mode {
	case kir.ModeAnd: // no active lane is off
		bits = s.maskBits(s.eachMask(s.maskAndNot, s.exec, s.registers(in)))
		want = amd64.CondE
	default:
		bits = s.maskBits(s.activeMasks(in))
	}
	if i.Mode == kir.ModeXor {
		d := s.reg(amd64.GPR)
		s.emit(amd64.Inst{Op: amd64.PopCnt, W: 4, Dst: d, A: bits})
		s.emit(amd64.Inst{Op: amd64.And, W: 4, Dst: d, Imm: 1})
		return val{typ: kir.Bool, base: d}
	}
	s.emit(amd64.Inst{Op: amd64.Test, W: 4, A: bits, B: bits})
	return val{typ: kir.Bool, base: s.setCC(want)}
}

// ballot selects a Ballot.
func (s *selector) ballot(_ *kir.Instr, in val) val {
	return val{typ: kir.U64, base: s.maskBits(s.activeMasks(in))}
}

// broadcastFirst selects a BroadcastFirst.
func (s *selector) broadcastFirst(i *kir.Instr, in val) val {
	t := in.typ
	if i.Imm == 4 {
		return s.firstOfQuads(in)
	}
	if in.splat && t != kir.Bool {
		x := lane{selector: s, w: s.w}
		return val{typ: t, vec: [maxRegs]amd64.R{x.move(in.vec[0])}, splat: true}
	}
	active := s.maskBits(s.exec)
	if t == kir.Bool {
		low, on := s.reg(amd64.GPR), s.maskBits(s.registers(in))
		s.emit(amd64.Inst{Op: amd64.BlsI, W: 4, Dst: low, A: active})
		s.emit(amd64.Inst{Op: amd64.Test, W: 4, A: on, B: low})
		return val{typ: t, base: s.setCC(amd64.CondNE)}
	}
	s.emit(amd64.Inst{Op: amd64.TZCnt, W: 4, Dst: amd64.RAX, A: active})
	return s.pickLane(t, s.registers(in))
}

// firstOfQuads is broadcastFirst in each quad: a shuffle from its lowest active lane.
func (s *selector) firstOfQuads(in val) val {
	table := s.constBytes(16, func(n int) uint64 { // the lowest bit of four
		for b := range 4 {
			if n>>b&1 != 0 {
				return uint64(b)
			}
		}
		return 0
	})
	x := lane{selector: s, w: s.w}
	bits := s.scalarToSplat(s.maskBits(s.exec), kir.U32)
	idx := val{typ: kir.U32}
	for p := range s.parts {
		counts := s.constLanes(func(l int) uint64 { return uint64((p*s.per + l) &^ 3) })
		n := x.and(x.op2m(amd64.VPSrlVD, bits, counts), konst(15), false)
		lut := x.reg(amd64.Vec)
		x.emit(amd64.Inst{Op: amd64.VMovUPS, W: x.w, Dst: lut, Mem: table})
		idx.vec[p] = x.and(x.op2(amd64.VPShufB, lut, n), konst(3), false)
	}
	return s.shuffleQuads(in, idx)
}

// constLanes is a memory operand with a 32-bit constant for each lane of a register.
func (s *selector) constLanes(f func(l int) uint64) amd64.Mem {
	var b []byte
	for l := range s.per {
		b = appendBits(b, f(l), 4)
	}
	return amd64.Mem{Const: s.f.Const(b)}
}

// constBytes is a memory operand that repeats n bytes.
func (s *selector) constBytes(n int, f func(n int) uint64) amd64.Mem {
	var b []byte
	for k := range n {
		b = appendBits(b, f(k), 1)
	}
	return lane{selector: s, w: s.w}.pattern(b)
}

// pickLane returns the value of the lane whose number is in RAX, through the scratch.
func (s *selector) pickLane(t kir.Type, r []amd64.R) val {
	for n := range r {
		s.emit(amd64.Inst{Op: amd64.VMovUPS, W: s.w, Mem: s.scratchMem(scratchVal + n*int(s.w)), A: r[n]})
	}
	m := s.scratchMem(scratchVal)
	m.Index, m.Scale = amd64.RAX, 4
	if wide(t) {
		m.Scale = 8
	}
	v := val{typ: t}
	if t.IsFloat() {
		v.vec[0], v.splat = s.reg(amd64.Vec), true
		s.emit(amd64.Inst{Op: by(wide(t), amd64.VPBroadcastD, amd64.VPBroadcastQ), W: s.w, Dst: v.vec[0], Mem: m})
		return v
	}
	v.base = s.reg(amd64.GPR)
	s.loadR(gprWidth(t), v.base, m)
	return v
}

// shuffle selects a Shuffle.
func (s *selector) shuffle(i *kir.Instr, in, idx val) val {
	t := in.typ
	if i.Imm == 4 {
		return s.shuffleQuads(in, idx)
	}
	if s.info.Patterns[i.ID].Kind != lanes.Uniform {
		return s.shuffleLanes(in, idx)
	}
	n := idx.base
	if n == 0 {
		n = s.splatToScalar(idx.vec[0], kir.U32)
	}
	if t == kir.Bool {
		d := s.maskBits(s.activeMasks(in))
		s.emit(amd64.Inst{Op: amd64.ShrX, W: 4, Dst: d, A: d, B: n})
		s.emit(amd64.Inst{Op: amd64.And, W: 4, Dst: d, Imm: 1})
		return val{typ: t, base: d}
	}
	r := s.activeOr(t, s.registers(in), 0)
	s.emit(amd64.Inst{Op: amd64.Mov, W: 4, Dst: amd64.RAX, A: n})
	s.emit(amd64.Inst{Op: amd64.And, W: 4, Dst: amd64.RAX, Imm: kir.Lanes - 1})
	return s.pickLane(t, r)
}

// shuffleLanes gives each lane the value of the lane idx, modulo 32; lanes that are not active count as zero.
func (s *selector) shuffleLanes(in, idx val) val {
	t := in.typ
	x := lane{selector: s, w: s.w}
	from := make([]amd64.R, s.parts)
	for p := range from {
		from[p] = idx.unitOf(p).r[0]
	}
	if t == kir.Bool {
		bits := s.scalarToSplat(s.maskBits(s.activeMasks(in)), kir.U32)
		m := make([]amd64.R, s.parts)
		for p := range m {
			bit := x.op2(amd64.VPSrlVD, bits, x.and(from[p], konst(kir.Lanes-1), false))
			if s.level == amd64.AVX512 {
				m[p] = s.reg(amd64.Mask)
				s.emit(amd64.Inst{Op: amd64.VPTestMD, W: s.w, Dst: m[p], A: bit, Mem: x.constMem(1, false)})
			} else {
				m[p] = x.shift(amd64.VPSraD, x.shift(amd64.VPSllD, bit, 31), 31)
			}
		}
		return value(t, m)
	}
	r := s.activeOr(t, s.registers(in), 0)
	if !wide(t) {
		return value(t, x.gatherLanes(r, from))
	}
	// Both halves of 64-bit lanes apart, as 32-bit lanes.
	lo, hi := make([]amd64.R, s.parts), make([]amd64.R, s.parts)
	for p := range lo {
		lo[p], hi[p] = x.unzip(r[2*p], r[2*p+1])
	}
	lo, hi = x.gatherLanes(lo, from), x.gatherLanes(hi, from)
	for p := range lo {
		r[2*p], r[2*p+1] = x.zip(lo[p], hi[p])
	}
	return value(t, r)
}

// unzip takes 64-bit lanes apart.
func (x lane) unzip(a, b amd64.R) (lo, hi amd64.R) {
	if x.level == amd64.AVX512 {
		return x.evens(a, b, 0), x.evens(a, b, 1)
	}
	return x.evenDwords(a, b), x.op1i(amd64.VPermQ, x.op2i(amd64.VShufPS, a, b, 0xdd), 0xd8)
}

// zip makes 64-bit lanes of their halves.
func (x lane) zip(lo, hi amd64.R) (a, b amd64.R) {
	if x.level == amd64.AVX512 {
		half := func(first int) amd64.R {
			d := x.reg(amd64.Vec)
			x.emit(amd64.Inst{Op: amd64.VMovUPS, W: 64, Dst: d,
				Mem: x.constLanes(func(l int) uint64 { return uint64(first + l/2 + l%2*16) })})
			x.emit(amd64.Inst{Op: amd64.VPermI2D, W: 64, Dst: d, A: lo, B: hi})
			return d
		}
		return half(0), half(8)
	}
	lo, hi = x.op1i(amd64.VPermQ, lo, 0xd8), x.op1i(amd64.VPermQ, hi, 0xd8)
	return x.op2(amd64.VPUnpckLDQ, lo, hi), x.op2(amd64.VPUnpckHDQ, lo, hi)
}

// gatherLanes gives each 32-bit lane the value of lane idx, modulo 32, of the registers of all parts.
func (x lane) gatherLanes(r, idx []amd64.R) []amd64.R {
	d := make([]amd64.R, len(r))
	for p := range d {
		if x.level == amd64.AVX512 {
			d[p] = x.move(idx[p])
			x.emit(amd64.Inst{Op: amd64.VPermI2D, W: x.w, Dst: d[p], A: r[0], B: r[1]})
			continue
		}
		var q [4]amd64.R
		for n := range q {
			q[n] = x.op2(amd64.VPermD, idx[p], r[n])
		}
		bit3, bit4 := x.shift(amd64.VPSllD, idx[p], 28), x.shift(amd64.VPSllD, idx[p], 27) // at the sign
		d[p] = x.blend(x.blend(q[0], q[1], bit3, false), x.blend(q[2], q[3], bit3, false), bit4, false)
	}
	return d
}

// shuffleQuads gives each lane the value of lane idx, modulo 4, of its quad.
func (s *selector) shuffleQuads(in, idx val) val {
	t := in.typ
	x := lane{selector: s, w: s.w}
	own := val{typ: kir.U32}
	if t != kir.Bool && !wide(t) {
		r := s.activeOr(t, s.registers(in), 0)
		for p := range r {
			r[p] = x.op2(amd64.VPermilVPS, r[p], idx.unitOf(p).r[0])
		}
		return value(t, r)
	}
	for p := range s.parts {
		quad := s.constLanes(func(l int) uint64 { return uint64((p*s.per + l) &^ 3) })
		n := x.and(idx.unitOf(p).r[0], konst(3), false)
		own.vec[p] = x.op2m(x.logic(amd64.VPOr, amd64.VPOrD, 0, false), n, quad)
	}
	return s.shuffleLanes(in, own)
}

package jit

import (
	"github.com/mlxlua/mlxlua/metal/jit/amd64"
	"github.com/mlxlua/mlxlua/metal/kir"
)

// Predicates of float comparisons that raise no exception.
const (
	cmpEq    = 0x00
	cmpUnord = 0x03
	cmpNe    = 0x04 // or unordered
	cmpOrd   = 0x07
	cmpLt    = 0x11
	cmpLe    = 0x12
	cmpGe    = 0x1d
	cmpGt    = 0x1e
)

// Predicates of AVX-512's integer comparisons.
const (
	icmpEq = iota
	icmpLt
	icmpLe
	_
	icmpNe
	icmpGe
	icmpGt
)

func floatPredicate(op kir.Op) int64 {
	switch op {
	case kir.Eq:
		return cmpEq
	case kir.Ne:
		return cmpNe
	case kir.Lt:
		return cmpLt
	case kir.Le:
		return cmpLe
	case kir.Gt:
		return cmpGt
	}
	return cmpGe
}

func intPredicate(op kir.Op) int64 {
	switch op {
	case kir.Eq:
		return icmpEq
	case kir.Ne:
		return icmpNe
	case kir.Lt:
		return icmpLt
	case kir.Le:
		return icmpLe
	case kir.Gt:
		return icmpGt
	}
	return icmpGe
}

// mirrored is the comparison with its operands exchanged.
func mirrored(op kir.Op) kir.Op {
	switch op {
	case kir.Lt:
		return kir.Gt
	case kir.Le:
		return kir.Ge
	case kir.Gt:
		return kir.Lt
	case kir.Ge:
		return kir.Le
	}
	return op
}

// compare compares one part and returns a mask.
func (x lane) compare(op kir.Op, t kir.Type, args []unit, consts []*uint64) amd64.R {
	if t == kir.Bool {
		return x.compareBools(op, x.mask(args, consts, 0), x.mask(args, consts, 1))
	}
	var m [2]amd64.R
	for h := range x.halves(t) {
		m[h] = x.compare1(op, t, operandOf(t, args, consts, 0, h), operandOf(t, args, consts, 1, h))
	}
	return x.joinMasks(t, m)
}

// joinMasks makes a part's mask of those of its registers.
func (x lane) joinMasks(t kir.Type, m [2]amd64.R) amd64.R {
	if !wide(t) {
		return m[0]
	}
	if x.level == amd64.AVX512 {
		if x.splat {
			m[1] = m[0]
		}
		return x.unpackMask(m[1], m[0])
	}
	if x.splat {
		return m[0]
	}
	return x.evenDwords(m[0], m[1])
}

// unpackMask joins two masks of 8 lanes.
func (x lane) unpackMask(hi, lo amd64.R) amd64.R {
	d := x.reg(amd64.Mask)
	x.emit(amd64.Inst{Op: amd64.KUnpck, W: 2, Dst: d, A: hi, B: lo})
	return d
}

// evenDwords takes the low halves of the 64-bit lanes of two AVX2 registers.
func (x lane) evenDwords(lo, hi amd64.R) amd64.R {
	return x.op1i(amd64.VPermQ, x.op2i(amd64.VShufPS, lo, hi, 0x88), 0xd8)
}

func (x lane) compareBools(op kir.Op, a, b amd64.R) amd64.R {
	switch op {
	case kir.Eq:
		return x.maskNot(x.maskXor(a, b))
	case kir.Ne:
		return x.maskXor(a, b)
	case kir.Lt:
		return x.maskAndNot(b, a)
	case kir.Le:
		return x.maskOr(x.maskNot(a), b)
	case kir.Gt:
		return x.maskAndNot(a, b)
	}
	return x.maskOr(a, x.maskNot(b))
}

// compare1 compares one register's lanes. The mask has a bit (AVX-512) or a lane (AVX2) for each.
func (x lane) compare1(op kir.Op, t kir.Type, a, b operand) amd64.R {
	if a.k && !b.k {
		a, b, op = b, a, mirrored(op)
	}
	big := wide(t)
	p := x.in(a, big)
	switch {
	case x.level == amd64.AVX512:
		return x.compareK(op, t, p, b)
	case t.IsFloat():
		d := x.reg(amd64.Vec)
		i := amd64.Inst{Op: by(big, amd64.VCmpPS, amd64.VCmpPD), W: x.w, Dst: d, A: p, Imm: floatPredicate(op)}
		if b.k {
			i.Mem = x.constMem(b.bits, big)
		} else {
			i.B = b.r
		}
		x.emit(i)
		return d
	}
	return x.compareInts(op, t, p, b)
}

// compareK compares to a mask register.
func (x lane) compareK(op kir.Op, t kir.Type, p amd64.R, b operand) amd64.R {
	big := wide(t)
	i := amd64.Inst{W: x.w, Dst: x.reg(amd64.Mask), A: p}
	switch {
	case t.IsFloat():
		i.Op, i.Imm = by(big, amd64.VCmpPSK, amd64.VCmpPDK), floatPredicate(op)
	case b.k && b.bits == 0 && op == kir.Eq:
		i.Op, i.B, b.k, b.r = by(big, amd64.VPTestNMD, amd64.VPTestNMQ), p, false, p
	case b.k && b.bits == 0 && op == kir.Ne:
		i.Op, i.B, b.k, b.r = by(big, amd64.VPTestMD, amd64.VPTestMQ), p, false, p
	case t.IsSigned():
		i.Op, i.Imm = by(big, amd64.VPCmpD, amd64.VPCmpQ), intPredicate(op)
	default:
		i.Op, i.Imm = by(big, amd64.VPCmpUD, amd64.VPCmpUQ), intPredicate(op)
	}
	if b.k {
		i.Mem = x.constMem(b.bits, big)
	} else {
		i.B = b.r
	}
	x.emit(i)
	return i.Dst
}

// cmpK compares floats to a mask register.
func (x lane) cmpK(op amd64.Opcode, a, b amd64.R, predicate int64) amd64.R {
	k := x.reg(amd64.Mask)
	x.emit(amd64.Inst{Op: op, W: x.w, Dst: k, A: a, B: b, Imm: predicate})
	return k
}

// compareInts compares integers with AVX2, which has equal and signed greater only.
func (x lane) compareInts(op kir.Op, t kir.Type, p amd64.R, b operand) amd64.R {
	big := wide(t)
	eq, gt := by(big, amd64.VPCmpEqD, amd64.VPCmpEqQ), by(big, amd64.VPCmpGtD, amd64.VPCmpGtQ)
	unsigned := !t.IsSigned() && t.Size() >= 4
	if !big && unsigned && (op == kir.Le || op == kir.Ge) {
		q := x.in(b, big)
		m := amd64.VPMinUD
		if op == kir.Ge {
			m = amd64.VPMaxUD
		}
		return x.op2(eq, x.op2(m, p, q), p)
	}
	if op == kir.Eq || op == kir.Ne {
		m := x.opX(eq, p, b, big)
		if op == kir.Ne {
			m = x.maskNot(m)
		}
		return m
	}
	q := x.in(b, big)
	if unsigned {
		p, q = x.xor(p, konst(signBit(big)), big), x.xor(q, konst(signBit(big)), big)
	}
	switch op {
	case kir.Gt:
		return x.op2(gt, p, q)
	case kir.Lt:
		return x.op2(gt, q, p)
	case kir.Le:
		return x.maskNot(x.op2(gt, p, q))
	}
	return x.maskNot(x.op2(gt, q, p))
}

// choose computes Select on one part.
func (x lane) choose(t kir.Type, args []unit, consts []*uint64) unit {
	m := x.mask(args, consts, 0)
	if t == kir.Bool {
		a, b := x.mask(args, consts, 1), x.mask(args, consts, 2)
		return unit{r: [2]amd64.R{x.maskOr(x.maskAnd(m, a), x.maskAndNot(b, m))}}
	}
	halves := [2]amd64.R{m}
	if wide(t) && !x.splat {
		halves = x.splitMask(m)
	}
	var u unit
	for h := range x.halves(t) {
		u.r[h] = x.choose1(halves[h], operandOf(t, args, consts, 1, h), operandOf(t, args, consts, 2, h), wide(t))
	}
	return u
}

// splitMask returns the masks of the two halves of a part's 64-bit lanes.
func (x lane) splitMask(m amd64.R) [2]amd64.R {
	return [2]amd64.R{x.halfMask(m, 0), x.halfMask(m, 1)}
}

// choose1 takes a's lanes where the mask is on, else b's.
func (x lane) choose1(m amd64.R, a, b operand, big bool) amd64.R {
	d := x.reg(amd64.Vec)
	zero := b.k && b.bits == 0
	if x.level == amd64.AVX512 {
		i := amd64.Inst{Op: by(big, amd64.VPBlendMD, amd64.VPBlendMQ), W: x.w, Dst: d, KM: m}
		switch {
		case zero && a.k:
			i.Op, i.Zero = by(big, amd64.VPBroadcastD, amd64.VPBroadcastQ), true
			i.Mem = x.constMem(a.bits, big)
			i.Mem.Bcast = false
		case zero:
			i.Op, i.A, i.Zero = by(big, amd64.VMovAPS, amd64.VMovAPD), a.r, true
		case a.k:
			i.A, i.Mem = x.in(b, big), x.constMem(a.bits, big)
		default:
			i.A, i.B = x.in(b, big), a.r
		}
		x.emit(i)
		return d
	}
	switch {
	case zero:
		return x.and(m, a, big)
	case a.k && a.bits == 0:
		return x.andNot(m, b, big)
	}
	return x.blend(x.in(b, big), x.in(a, big), m, big)
}

// extreme reports whether i takes the smaller or the larger of two floats by comparing them, which is what the
// processor's minimum and maximum do: both give the second unless the first is smaller (or larger).
func extreme(i *kir.Instr) (amd64.Opcode, bool) {
	if i.Op != kir.Select || !i.Type.IsFloat() {
		return 0, false
	}
	c, yes, no := i.Args[0], i.Args[1], i.Args[2]
	if c.Op != kir.Lt && c.Op != kir.Gt {
		return 0, false
	}
	smaller := c.Op == kir.Lt
	switch {
	case alike(c.Args[0], yes) && alike(c.Args[1], no):
	case alike(c.Args[0], no) && alike(c.Args[1], yes):
		smaller = !smaller
	default:
		return 0, false
	}
	big := i.Type == kir.F64
	if smaller {
		return by(big, amd64.VMinPS, amd64.VMinPD), true
	}
	return by(big, amd64.VMaxPS, amd64.VMaxPD), true
}

// alike reports whether two operands are one value or constants of the same bits.
func alike(a, b *kir.Instr) bool {
	return a == b || a.Op == kir.Const && b.Op == kir.Const && a.Type == b.Type && a.Imm == b.Imm
}

// smallerOrLarger computes a Select that is extreme.
func (s *selector) smallerOrLarger(op amd64.Opcode, i *kir.Instr) val {
	x, v, consts := lane{selector: s, w: s.w}, val{typ: i.Type}, constsOf(i)
	big := i.Type == kir.F64
	a, b := s.laneVal(i.Args[1]), s.laneVal(i.Args[2])
	for p := range s.parts {
		var u unit
		args := []unit{{}, a.unitOf(p), b.unitOf(p)}
		for h := range x.halves(i.Type) {
			yes, no := operandOf(i.Type, args, consts, 1, h), operandOf(i.Type, args, consts, 2, h)
			u.r[h] = x.opX(op, x.in(yes, big), no, big)
		}
		v.setUnit(p, u)
	}
	return v
}

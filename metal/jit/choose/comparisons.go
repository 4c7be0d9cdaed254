package choose

import (
	"github.com/mlxlua/mlxlua/metal/jit/code"
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

// comparisons compares lanes and chooses between them.
type comparisons struct{ v vector }

// conditions says how the processor names a comparison: of floats, of integers in AVX-512, of signed and of unsigned
// general registers.
var conditions = map[kir.Op]struct {
	float, integer   int64
	signed, unsigned code.Cond
}{
	kir.Eq: {cmpEq, icmpEq, code.CondE, code.CondE},
	kir.Ne: {cmpNe, icmpNe, code.CondNE, code.CondNE},
	kir.Lt: {cmpLt, icmpLt, code.CondL, code.CondB},
	kir.Le: {cmpLe, icmpLe, code.CondLE, code.CondBE},
	kir.Gt: {cmpGt, icmpGt, code.CondG, code.CondA},
	kir.Ge: {cmpGe, icmpGe, code.CondGE, code.CondAE},
}

// compare compares one part and returns a mask.
func (x comparisons) compare(op kir.Op, t kir.Type, args []unit, consts []*uint64) code.R {
	if t == kir.Bool {
		return x.bools(op, x.v.lanewise().mask(args, consts, 0), x.v.lanewise().mask(args, consts, 1))
	}
	var m [2]code.R
	for h := range x.v.halves(t) {
		m[h] = x.register(op, t, operandOf(t, args, consts, 0, h), operandOf(t, args, consts, 1, h))
	}
	return x.join(t, m)
}

// join makes a part's mask of those of its registers.
func (x comparisons) join(t kir.Type, m [2]code.R) code.R {
	if !wide(t) {
		return m[0]
	}
	if x.v.avx512() {
		if x.v.splat {
			m[1] = m[0]
		}
		return x.v.masks().unpack(m[1], m[0])
	}
	if x.v.splat {
		return m[0]
	}
	return x.v.evenDwords(m[0], m[1])
}

// bools compares masks: false is less than true.
func (x comparisons) bools(op kir.Op, a, b code.R) code.R {
	switch op {
	case kir.Eq:
		return x.v.masks().not(x.v.masks().xor(a, b))
	case kir.Ne:
		return x.v.masks().xor(a, b)
	case kir.Lt:
		return x.v.masks().andNot(b, a)
	case kir.Le:
		return x.v.masks().or(x.v.masks().not(a), b)
	case kir.Gt:
		return x.v.masks().andNot(a, b)
	}
	return x.v.masks().or(a, x.v.masks().not(b))
}

// register compares one register's lanes. The mask has a bit (AVX-512) or a lane (AVX2) for each.
func (x comparisons) register(op kir.Op, t kir.Type, a, b operand) code.R {
	if a.k && !b.k {
		a, b, op = b, a, op.Mirrored()
	}
	big := wide(t)
	p := x.v.in(a, big)
	switch {
	case x.v.avx512():
		return x.toMask(op, t, p, b)
	case t.IsFloat():
		d := x.v.reg(code.Vec)
		i := code.Inst{Op: by(big, code.VCmpPS, code.VCmpPD), W: x.v.w, Dst: d, A: p, Imm: conditions[op].float}
		if b.k {
			i.Mem = x.v.constMem(b.bits, big)
		} else {
			i.B = b.r
		}
		x.v.emit(i)
		return d
	}
	return x.ints(op, t, p, b)
}

// toMask compares to a mask register.
func (x comparisons) toMask(op kir.Op, t kir.Type, p code.R, b operand) code.R {
	big := wide(t)
	i := code.Inst{W: x.v.w, Dst: x.v.reg(code.Mask), A: p}
	switch {
	case t.IsFloat():
		i.Op, i.Imm = by(big, code.VCmpPSK, code.VCmpPDK), conditions[op].float
	case b.k && b.bits == 0 && op == kir.Eq:
		i.Op, i.B, b.k, b.r = by(big, code.VPTestNMD, code.VPTestNMQ), p, false, p
	case b.k && b.bits == 0 && op == kir.Ne:
		i.Op, i.B, b.k, b.r = by(big, code.VPTestMD, code.VPTestMQ), p, false, p
	case t.IsSigned():
		i.Op, i.Imm = by(big, code.VPCmpD, code.VPCmpQ), conditions[op].integer
	default:
		i.Op, i.Imm = by(big, code.VPCmpUD, code.VPCmpUQ), conditions[op].integer
	}
	if b.k {
		i.Mem = x.v.constMem(b.bits, big)
	} else {
		i.B = b.r
	}
	x.v.emit(i)
	return i.Dst
}

// ints compares integers with AVX2, which has equal and signed greater only.
func (x comparisons) ints(op kir.Op, t kir.Type, p code.R, b operand) code.R {
	big := wide(t)
	eq, gt := by(big, code.VPCmpEqD, code.VPCmpEqQ), by(big, code.VPCmpGtD, code.VPCmpGtQ)
	unsigned := !t.IsSigned() && t.Size() >= 4
	if !big && unsigned && (op == kir.Le || op == kir.Ge) {
		q := x.v.in(b, big)
		m := code.VPMinUD
		if op == kir.Ge {
			m = code.VPMaxUD
		}
		return x.v.op2(eq, x.v.op2(m, p, q), p)
	}
	if op == kir.Eq || op == kir.Ne {
		m := x.v.opX(eq, p, b, big)
		if op == kir.Ne {
			m = x.v.masks().not(m)
		}
		return m
	}
	q := x.v.in(b, big)
	if unsigned {
		p, q = x.v.xor(p, konst(signBit(big)), big), x.v.xor(q, konst(signBit(big)), big)
	}
	switch op {
	case kir.Gt:
		return x.v.op2(gt, p, q)
	case kir.Lt:
		return x.v.op2(gt, q, p)
	case kir.Le:
		return x.v.masks().not(x.v.op2(gt, p, q))
	}
	return x.v.masks().not(x.v.op2(gt, q, p))
}

// choose computes Select on one part.
func (x comparisons) choose(t kir.Type, args []unit, consts []*uint64) unit {
	m := x.v.lanewise().mask(args, consts, 0)
	if t == kir.Bool {
		a, b := x.v.lanewise().mask(args, consts, 1), x.v.lanewise().mask(args, consts, 2)
		return unit{r: [2]code.R{x.v.masks().or(x.v.masks().and(m, a), x.v.masks().andNot(b, m))}}
	}
	halves := [2]code.R{m}
	if wide(t) && !x.v.splat {
		halves = x.v.masks().split(m)
	}
	var u unit
	for h := range x.v.halves(t) {
		u.r[h] = x.chooseRegister(halves[h], operandOf(t, args, consts, 1, h), operandOf(t, args, consts, 2, h), wide(t))
	}
	return u
}

// chooseRegister takes a's lanes where the mask is on, else b's.
func (x comparisons) chooseRegister(m code.R, a, b operand, big bool) code.R {
	d := x.v.reg(code.Vec)
	zero := b.k && b.bits == 0
	if x.v.avx512() {
		i := code.Inst{Op: by(big, code.VPBlendMD, code.VPBlendMQ), W: x.v.w, Dst: d, KM: m}
		switch {
		case zero && a.k:
			i.Op, i.Zero = by(big, code.VPBroadcastD, code.VPBroadcastQ), true
			i.Mem = x.v.constMem(a.bits, big)
			i.Mem.Bcast = false
		case zero:
			i.Op, i.A, i.Zero = by(big, code.VMovAPS, code.VMovAPD), a.r, true
		case a.k:
			i.A, i.Mem = x.v.in(b, big), x.v.constMem(a.bits, big)
		default:
			i.A, i.B = x.v.in(b, big), a.r
		}
		x.v.emit(i)
		return d
	}
	switch {
	case zero:
		return x.v.and(m, a, big)
	case a.k && a.bits == 0:
		return x.v.andNot(m, b, big)
	}
	return x.v.blend(x.v.in(b, big), x.v.in(a, big), m, big)
}

// atLeast returns the AVX2 mask of lanes that are at least a constant.
func (x comparisons) atLeast(r code.R, f float64, big bool) code.R {
	d := x.v.reg(code.Vec)
	x.v.emit(code.Inst{Op: by(big, code.VCmpPS, code.VCmpPD), W: x.v.w, Dst: d, A: r,
		Mem: x.v.constMem(floatLane(f, big), big), Imm: cmpGe})
	return d
}

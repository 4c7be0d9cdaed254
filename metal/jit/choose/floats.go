package choose

import (
	"math"

	"github.com/mlxlua/mlxlua/metal/jit/code"
	"github.com/mlxlua/mlxlua/metal/kir"
)

const (
	signF32 = 1 << 31
	signF64 = 1 << 63
)

// floats computes on lanes of floats. F16 and BF16 are lanes of F32; what F32's operation gives is rounded.
type floats struct{ v vector }

// signBit is the sign of a float lane.
func signBit(big bool) uint64 {
	if big {
		return signF64
	}
	return signF32
}

// oneLane is 1 in a float lane.
func oneLane(big bool) uint64 { return floatLane(1, big) }

// floatLane is the bits of a number in a float lane.
func floatLane(f float64, big bool) uint64 {
	if big {
		return math.Float64bits(f)
	}
	return uint64(math.Float32bits(float32(f)))
}

// The modes of rounding instructions: without an inexact exception.
const (
	roundNearest = 8
	roundDown    = 9
	roundUp      = 10
	roundZero    = 11
)

// op computes an operation on one register of floats.
func (x floats) op(op kir.Op, t kir.Type, a [3]operand) code.R {
	big := t == kir.F64
	switch op {
	case kir.Add:
		return x.rounded(t, x.v.op2X(by(big, code.VAddPS, code.VAddPD), a[0], a[1], big, true))
	case kir.Sub:
		return x.rounded(t, x.v.op2X(by(big, code.VSubPS, code.VSubPD), a[0], a[1], big, false))
	case kir.Mul:
		return x.rounded(t, x.v.op2X(by(big, code.VMulPS, code.VMulPD), a[0], a[1], big, true))
	case kir.Div:
		return x.rounded(t, x.v.op2X(by(big, code.VDivPS, code.VDivPD), a[0], a[1], big, false))
	case kir.Fma:
		return x.rounded(t, x.fma(a, big))
	case kir.PairDot:
		return x.pairDot(a)
	case kir.Sqrt:
		return x.rounded(t, x.v.op1(by(big, code.VSqrtPS, code.VSqrtPD), x.v.in(a[0], big)))
	case kir.Floor:
		return x.toIntegral(x.v.in(a[0], big), roundDown, big)
	case kir.Ceil:
		return x.toIntegral(x.v.in(a[0], big), roundUp, big)
	case kir.Trunc:
		return x.toIntegral(x.v.in(a[0], big), roundZero, big)
	case kir.Rint:
		return x.toIntegral(x.v.in(a[0], big), roundNearest, big)
	case kir.Neg:
		return x.v.xor(x.v.in(a[0], big), konst(signBit(big)), big)
	case kir.Abs:
		return x.v.and(x.v.in(a[0], big), konst(signBit(big)-1), big)
	case kir.Min, kir.Max:
		return x.minMax(op, t, a[0], a[1])
	case kir.Scale:
		return x.rounded(t, x.scale(x.v.in(a[0], big), x.v.in(a[1], big), known{}, big))
	case kir.Rem:
		return x.fmod(x.v.in(a[0], big), x.v.in(a[1], big), big)
	}
	x.v.e.unsupported(&kir.Instr{Op: op}, "not for floats")
	return x.v.in(a[0], big)
}

// fma computes a[0]*a[1] + a[2].
func (x floats) fma(a [3]operand, big bool) code.R {
	p, q, c := a[0], a[1], a[2]
	if p.k {
		p, q = q, p
	}
	d := x.v.reg(code.Vec)
	switch {
	case c.k && !x.v.e.target.FromMemory:
		x.v.loadTo(d, c.bits, big)
		x.v.emit(code.Inst{Op: by(big, code.VFMAdd231PS, code.VFMAdd231PD), W: x.v.w, Dst: d, A: x.v.in(p, big),
			B: x.v.in(q, big)})
	case c.k && !p.k: // the constant from memory
		r := x.v.in(q, big)
		x.v.moveTo(d, p.r, 0)
		x.v.emit(code.Inst{Op: by(big, code.VFMAdd213PS, code.VFMAdd213PD), W: x.v.w, Dst: d, A: r,
			Mem: x.v.constMem(c.bits, big)})
	case q.k:
		r := x.v.in(p, big)
		x.v.moveTo(d, x.v.in(c, big), 0)
		x.v.emit(code.Inst{Op: by(big, code.VFMAdd231PS, code.VFMAdd231PD), W: x.v.w, Dst: d, A: r,
			Mem: x.v.constMem(q.bits, big)})
	default:
		x.v.moveTo(d, x.v.in(c, big), 0)
		x.v.emit(code.Inst{Op: by(big, code.VFMAdd231PS, code.VFMAdd231PD), W: x.v.w, Dst: d, A: p.r, B: q.r})
	}
	return d
}

// Values of MXCSR: as Go has it, and with denormal operands and results as zeros.
const (
	ordinaryMXCSR = 0x1f80
	flushingMXCSR = ordinaryMXCSR | 1<<15 | 1<<6
)

// pairDot adds the products of the upper and then of the lower halves of a[0] and a[1] to a[2]. Only the arithmetic
// stands between the two changes of MXCSR: nothing there can fault or leave.
func (x floats) pairDot(a [3]operand) code.R {
	p, q, d := x.v.in(a[0], false), x.v.in(a[1], false), x.v.reg(code.Vec)
	x.v.moveTo(d, x.v.in(a[2], false), 0)
	if x.v.e.target.PairDots {
		x.v.emit(code.Inst{Op: code.VDPBF16PS, W: x.v.w, Dst: d, A: p, B: q})
		return d
	}
	upper := konst(0xffff0000)
	halves := [2][2]code.R{{x.v.and(p, upper, false), x.v.and(q, upper, false)},
		{x.v.shift(code.VPSllD, p, 16), x.v.shift(code.VPSllD, q, 16)}}
	if !x.v.e.target.MXCSR {
		for _, h := range halves {
			d = x.flushingFma(h[0], h[1], d)
		}
		return d
	}
	x.setMXCSR(flushingMXCSR)
	for _, h := range halves {
		x.v.emit(code.Inst{Op: code.VFMAdd231PS, W: x.v.w, Dst: d, A: h[0], B: h[1]})
	}
	x.setMXCSR(ordinaryMXCSR)
	return d
}

// flushed replaces denormal numbers by zeros.
func (x floats) flushed(r code.R) code.R {
	normal := x.v.opX(code.VPCmpGtD, x.v.and(r, konst(signF32-1), false), konst(0x7fffff), false)
	return x.v.and(r, inReg(x.v.or(normal, konst(signF32), false)), false)
}

// flushingFma computes a*b + c where denormal numbers count as zeros. A result is denormal if it is so when it has been
// rounded to 24 bits: it is rounded so where it is larger by a power of two.
func (x floats) flushingFma(a, b, c code.R) code.R {
	const scale = 1 << 64
	a, b, c = x.flushed(a), x.flushed(b), x.flushed(c)
	r, large := x.v.move(c), x.v.opX(code.VMulPS, c, konst(floatLane(scale, false)), false)
	x.v.emit(code.Inst{Op: code.VFMAdd231PS, W: x.v.w, Dst: r, A: a, B: b})
	x.v.emit(code.Inst{Op: code.VFMAdd231PS, W: x.v.w, Dst: large,
		A: x.v.opX(code.VMulPS, a, konst(floatLane(scale, false)), false), B: b})
	size := x.v.and(large, konst(signF32-1), false)
	tiny := x.v.op2Imm(code.VCmpPS, size, x.v.load(floatLane(scale*0x1p-126, false), false), cmpLt)
	return x.v.blend(r, x.v.and(r, konst(signF32), false), tiny, false)
}

func (x floats) setMXCSR(bits uint64) {
	x.v.emit(code.Inst{Op: code.LdMXCSR, Mem: code.Mem{Const: x.v.e.f.Const(appendBits(nil, bits, 4))}})
}

// toIntegral rounds to a whole number.
func (x floats) toIntegral(r code.R, mode int64, big bool) code.R {
	if x.v.avx512() {
		return x.v.op1Imm(by(big, code.VRndScalePS, code.VRndScalePD), r, mode)
	}
	return x.v.op1Imm(by(big, code.VRoundPS, code.VRoundPD), r, mode)
}

// rounded rounds the F32 result of an operation on numbers of type t to t.
func (x floats) rounded(t kir.Type, r code.R) code.R {
	switch t {
	case kir.F16:
		return x.roundF16(r)
	case kir.BF16:
		// A NaN that came of BF16 operands has its low half zero, so that rounding leaves it alone.
		return x.roundBF16(r)
	}
	return r
}

// roundF16 rounds F32 lanes to F16.
func (x floats) roundF16(r code.R) code.R {
	h := x.v.op1Imm(code.VCvtPS2PH, r, 0)
	return x.v.op1(code.VCvtPH2PS, h)
}

// roundBF16 rounds to the nearest BF16, ties to even: numbers, and NaNs whose low 16 bits are zero.
func (x floats) roundBF16(r code.R) code.R {
	const half, low = 0x7fff, 1 << 16
	if x.v.e.target.RoundsBF16 {
		return x.toBF16(r)
	}
	if x.v.avx512() {
		k := x.v.reg(code.Mask)
		x.v.emit(code.Inst{Op: code.VPTestMD, W: x.v.w, Dst: k, A: r, Mem: x.v.constMem(low, false)})
		d := x.v.opX(code.VPAddD, r, konst(half), false)
		x.v.emit(code.Inst{Op: code.VPAddD, W: x.v.w, Dst: d, A: r, Mem: x.v.constMem(half+1, false), KM: k})
		return x.v.and(d, konst(0xffff0000), false)
	}
	odd := x.v.and(x.v.shift(code.VPSrlD, r, 16), konst(1), false)
	d := x.v.op2(code.VPAddD, x.v.opX(code.VPAddD, r, konst(half), false), odd)
	return x.v.and(d, konst(0xffff0000), false)
}

// toBF16 rounds any F32 to BF16.
func (x floats) toBF16(r code.R) code.R {
	if x.v.e.target.RoundsBF16 {
		return x.v.shift(code.VPSllD, x.v.op1(code.VPMovZXWD, x.v.op1(code.VCvtNEPS2BF16, r)), 16)
	}
	d := x.roundBF16(r)
	const top, quiet = 0xffff0000, 0x400000
	if x.v.avx512() {
		k := x.v.cmpK(code.VCmpPSK, r, r, cmpUnord)
		nan := x.v.and(r, konst(top), false)
		x.v.emit(code.Inst{Op: code.VPOrD, W: x.v.w, Dst: d, A: nan, Mem: x.v.constMem(quiet, false), KM: k})
		return d
	}
	k := x.v.op2Imm(code.VCmpPS, r, r, cmpUnord)
	nan := x.v.or(x.v.and(r, konst(top), false), konst(quiet), false)
	return x.v.blend(d, nan, k, false)
}

// minMax computes Min or Max: a number beats a NaN, and -0 is less than +0.
func (x floats) minMax(op kir.Op, t kir.Type, a, b operand) code.R {
	big := t == kir.F64
	hw := by(big, code.VMinPS, code.VMinPD)
	keep := uint64(signBit(big)) // this zero wins against every zero
	mode := int64(0b0100)        // VRANGE: the sign of the result of the comparison; minimum
	if op == kir.Max {
		hw, keep, mode = by(big, code.VMaxPS, code.VMaxPD), 0, 0b0101
	}
	if a.k {
		a, b = b, a
	}
	if b.k && !a.k && !isNaN(b.bits, big) && (b.bits&(signBit(big)-1) != 0 || b.bits == keep) {
		return x.v.opX(hw, a.r, b, big) // the processor takes the second if they are equal or one is a NaN
	}
	p, q := x.v.in(a, big), x.v.in(b, big)
	if x.v.extras() {
		// VRANGE does all of it but for signalling NaNs, which beat numbers there. Nothing makes them but the bits
		// of a program's memory; F16's become quiet as they are loaded.
		if t != kir.F16 {
			mul := by(big, code.VMulPS, code.VMulPD)
			p, q = x.v.opX(mul, p, konst(oneLane(big)), big), x.v.opX(mul, q, konst(oneLane(big)), big)
		}
		return x.quickMinMax(p, q, mode, big)
	}
	// Two results that differ only if the operands are zeros or one is a NaN.
	m, n := x.v.op2(hw, q, p), x.v.op2(hw, p, q)
	var r code.R
	if op == kir.Min {
		r = x.v.or(m, inReg(n), big)
	} else {
		r = x.v.and(m, inReg(n), big)
	}
	cmp := by(big, code.VCmpPS, code.VCmpPD)
	r = x.v.blend(r, q, x.v.op2Imm(cmp, p, p, cmpUnord), big)
	return x.v.blend(r, p, x.v.op2Imm(cmp, q, q, cmpUnord), big)
}

// quickMinMax is minMax with AVX-512 for operands that are no signalling NaNs.
func (x floats) quickMinMax(p, q code.R, mode int64, big bool) code.R {
	return x.v.op2Imm(by(big, code.VRangePS, code.VRangePD), p, q, mode)
}

// isNaN reports whether the bits of a float lane are a NaN.
func isNaN(bits uint64, big bool) bool {
	if big {
		return math.IsNaN(math.Float64frombits(bits))
	}
	f := math.Float32frombits(uint32(bits))
	return f != f
}

package kir

import "math"

// This file is the table of what every operation yields. Nothing is undefined: executors agree byte for byte, but for
// the payload and sign of NaNs that arithmetic makes.
//
// Values. A value is kept as its bits, zero-extended to 64: I8 -1 is 0xff. Bool is 0 or 1; a Bool loaded from
// memory is true for every byte but 0, and is stored as 0 or 1.
//
// Integers wrap. Shift counts are taken modulo the width. x / 0 is 0 and x % 0 is x. MIN / -1 is MIN and MIN % -1
// is 0. Abs(MIN) is MIN. Clz(0) and Ctz(0) are the width. Rem has the sign of the dividend.
//
// Floats are IEEE 754 with denormals kept. + - * / Sqrt and Fma round once, to nearest, ties to even. F16 and BF16
// operations convert their operands to F32 (exact), do the F32 operation, and round its result once more.
// Min and Max prefer a number to a NaN and take -0 for less than +0. Rem is C's fmod. Neg flips the sign bit and
// Abs clears it, also of NaNs. Comparisons with a NaN are false but for Ne. Rint takes ties to even.
// Scale is a * 2^floor(n), rounded once: NaN if either is, and with infinite n what it is with a large one: 0,
// infinity, or a itself if that is 0 or infinite.
//
// PairDot reads the bits of a and b as two BF16 each. It is two Fma, the first of the upper halves and c, the second of
// the lower halves and what came of the first. In these, and nowhere else, a denormal operand counts as a zero of its
// sign, and so does a result that would be below 2^-126 if it were rounded with any exponent. It is what processors
// have as one instruction. Where nothing is denormal it equals the two Fma.
//
// Convert:
//
//	to Bool               true unless zero (NaN is true)
//	Bool to number        0 or 1
//	integer to integer    sign- or zero-extended by the source's type, then cut to the width
//	integer to float      rounded once to nearest even; to F16 and BF16 by way of F32
//	float to integer      truncated towards zero; saturates at the type's bounds; NaN is 0
//	float to float        rounded to nearest even, overflow to infinity; F64 to F16 and BF16 by way of F32
//
// Pointers: PtrAdd moves the low 48 bits and wraps there; comparisons are on the 64 bits, unsigned. A Load or Store
// of a null pointer, of bytes outside the object, or of an object that is not in the pointer's space fails the
// dispatch.
//
// Reduce works on all 32 (or 4) lanes in a tree: inactive lanes hold the identity, and for d = 16, 8, 4, 2, 1
// (quad: 2, 1) lane i < d becomes op(lane i, lane i+d); lane 0 is the result. Scans: for d = 1, 2, 4, 8, 16 (quad:
// 1, 2) all lanes i >= d become op(lane i-d, lane i) at once; an exclusive scan then yields lane i-1's result, and
// the identity in the lowest active lane. F16 and BF16 round at each step. ReduceLanes and ScanLanes are this
// paragraph as code. The identity of float Add is -0 in the tree, and +0 where an exclusive scan yields it; of float
// Min and Max, NaN.
//
// MatMulAcc multiplies 8 by 8 matrices that lie in the lanes of a SIMD-group as MatrixPlace says; a lane that is not
// active holds zeros. Exact: an element begins as C's, and for k = 0..7 becomes Fma(A's element k of its row, B's
// element k of its column, what it is). MatMulLanes is this sentence as code. Free: within 2 K eps (|A||B| + |C|) of
// the exact sum, with K = 8 and eps of the type; interp computes it as if it were exact.
//
// Memory starts as zero where it is not a caller's. Shuffle from a lane that is not active yields zero.
//
// Atomics of one instruction act in the order of lanes. Float Add, Sub, Min and Max act as the operations above.

// OperandType is the type that a pure operation works on: that of its first operand, or of what a Select chooses from.
func (in *Instr) OperandType() Type {
	switch {
	case in.Op == Select:
		return in.Args[1].Type
	case len(in.Args) == 0:
		return in.Type
	}
	return in.Args[0].Type
}

// Eval computes a pure operation from the bits of its operands, as the function Eval does.
func (in *Instr) Eval(args ...uint64) (bits uint64, ok bool) {
	return Eval(in.Op, in.Type, in.OperandType(), args...)
}

// Eval returns the bits of one pure scalar operation on raw bits: Add to Bitcast, PtrAdd (by its two arguments) and
// PtrDiff. t is the type of the result, argType that of the operands (Instr.OperandType; only comparisons and
// conversions need it). ok is false if the operation is not pure or not defined on the type, or the number of arguments
// is wrong. Bits above a type's width in args are ignored; the result is canonical.
func Eval(op Op, t, argType Type, args ...uint64) (bits uint64, ok bool) {
	if t >= numTypes || argType >= numTypes || op >= numOps {
		return 0, false
	}
	switch op {
	case Select:
		if len(args) != 3 || t == Void {
			return 0, false
		}
		if args[0]&1 != 0 {
			return args[1] & t.Mask(), true
		}
		return args[2] & t.Mask(), true
	case PtrAdd:
		if len(args) != 2 || !t.IsPtr() {
			return 0, false
		}
		return PtrMove(args[0], int64(args[1])), true
	case PtrDiff:
		if len(args) != 2 || !argType.IsPtr() || t != I64 {
			return 0, false
		}
		return uint64(PtrOffset(args[0]) - PtrOffset(args[1])), true
	case Convert:
		if len(args) != 1 || !(t.IsArith() || t == Bool) || !(argType.IsArith() || argType == Bool) {
			return 0, false
		}
		return convert(t, argType, args[0]&argType.Mask()), true
	case Bitcast:
		ok = len(args) == 1 && t.Size() == argType.Size() && (t.IsArith() && argType.IsArith() ||
			t.IsPtr() && argType == U64 || t == U64 && argType.IsPtr())
		if !ok {
			return 0, false
		}
		return args[0] & t.Mask(), true
	}
	d := opDescs[op]
	n, fits := 0, false
	switch d.kind {
	case arith1, arith2:
		n, fits = int(d.kind-arith1)+1, t.IsArith()
	case int1, int2:
		n, fits = int(d.kind-int1)+1, t.IsInt()
	case bits1, bits2:
		n, fits = int(d.kind-bits1)+1, t.IsInt() || t == Bool
	case float1, float2, float3:
		n, fits = int(d.kind-float1)+1, t.IsFloat()
	case single3:
		n, fits = 3, t == F32
	case compare:
		n, fits = 2, t == Bool && argType != Void
	}
	if n == 0 || !fits || len(args) != n {
		return 0, false
	}
	var a [3]uint64
	copy(a[:], args)
	switch {
	case d.kind == compare:
		return evalCompare(op, argType, a[0]&argType.Mask(), a[1]&argType.Mask())
	case t.IsFloat():
		return evalFloat(op, t, a)
	}
	m := t.Mask()
	bits, ok = evalInt(op, t, a[0]&m, a[1]&m)
	return bits & m, ok
}

// ToFloat64 returns the number that bits of a float type stand for, exactly; 0 for other types.
func ToFloat64(t Type, bits uint64) float64 {
	switch t {
	case F16:
		return float64(F16ToF32(uint16(bits)))
	case BF16:
		return float64(BF16ToF32(uint16(bits)))
	case F32:
		return float64(math.Float32frombits(uint32(bits)))
	case F64:
		return math.Float64frombits(bits)
	}
	return 0
}

// FromFloat64 returns the bits of f converted to a float type as Convert does it; 0 for other types.
func FromFloat64(t Type, f float64) uint64 {
	switch t {
	case F16:
		return uint64(F32ToF16(float32(f)))
	case BF16:
		return uint64(F32ToBF16(float32(f)))
	case F32:
		return uint64(math.Float32bits(float32(f)))
	case F64:
		return math.Float64bits(f)
	}
	return 0
}

func signExtend(t Type, bits uint64) int64 {
	sh := 64 - t.Bits()
	return int64(bits<<sh) >> sh
}

func convert(t, from Type, bits uint64) uint64 {
	switch {
	case t == Bool:
		if from.IsFloat() {
			return b2u(ToFloat64(from, bits) != 0)
		}
		return b2u(bits != 0)
	case from.IsFloat() && t == from: // NaN payloads stay
		return bits
	case from.IsFloat() && t.IsFloat():
		return FromFloat64(t, ToFloat64(from, bits))
	case from.IsFloat():
		return floatToInt(t, ToFloat64(from, bits))
	case t.IsFloat():
		return intToFloat(t, from, bits)
	case from.IsSigned():
		return uint64(signExtend(from, bits)) & t.Mask()
	}
	return bits & t.Mask()
}

func intToFloat(t, from Type, bits uint64) uint64 {
	if t == F64 {
		if from.IsSigned() {
			return math.Float64bits(float64(signExtend(from, bits)))
		}
		return math.Float64bits(float64(bits))
	}
	f := float32(bits)
	if from.IsSigned() {
		f = float32(signExtend(from, bits))
	}
	return FromFloat64(t, float64(f))
}

func floatToInt(t Type, f float64) uint64 {
	n := t.Bits()
	switch {
	case f != f:
		return 0
	case t.IsSigned():
		limit := math.Ldexp(1, n-1)
		if f >= limit {
			return uint64(1)<<(n-1) - 1
		}
		if f < -limit {
			return uint64(1) << (n - 1)
		}
		return uint64(int64(f)) & t.Mask()
	case f <= 0:
		return 0
	case f >= math.Ldexp(1, n):
		return t.Mask()
	case f >= 1<<63: // Go defines uint64(f) for these, but not every processor has the instruction
		return uint64(int64(f-1<<63)) + 1<<63
	}
	return uint64(int64(f))
}

func b2u(b bool) uint64 {
	if b {
		return 1
	}
	return 0
}

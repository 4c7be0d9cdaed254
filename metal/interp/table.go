package interp

import "github.com/mlxlua/mlxlua/metal/kir"

const (
	maxOps   = 128
	maxTypes = 32
)

// lane holds the function of each pure operation by the type it works on: the result's, or the operands' for
// comparisons. F16 and BF16 have few rows: prepare.go computes them in F32. Gt and Ge are Lt and Le with their operands
// exchanged.
var lane = makeLane()

// convs holds the functions of Convert: from, to. Conversions from and to F16 and BF16 go through F32.
var convs = makeConvs()

func makeLane() (t [maxOps][maxTypes]laneFunc) {
	ints[int8](&t, kir.I8)
	ints[int16](&t, kir.I16)
	ints[int32](&t, kir.I32)
	ints[int64](&t, kir.I64)
	ints[uint8](&t, kir.U8)
	ints[uint16](&t, kir.U16)
	ints[uint32](&t, kir.U32)
	ints[uint64](&t, kir.U64)
	t[kir.MulHi][kir.I8] = mulHiSmall[int8]
	t[kir.MulHi][kir.I16] = mulHiSmall[int16]
	t[kir.MulHi][kir.I32] = mulHiSmall[int32]
	t[kir.MulHi][kir.I64] = mulHi64
	t[kir.MulHi][kir.U8] = mulHiSmall[uint8]
	t[kir.MulHi][kir.U16] = mulHiSmall[uint16]
	t[kir.MulHi][kir.U32] = mulHiSmall[uint32]
	t[kir.MulHi][kir.U64] = mulHiU64
	floats[float32](&t, kir.F32)
	floats[float64](&t, kir.F64)
	t[kir.Fma][kir.F32] = fma32
	t[kir.Fma][kir.F64] = fma64
	t[kir.PairDot][kir.F32] = pairDot
	patterns[uint8](&t, kir.I8, kir.U8)
	patterns[uint16](&t, kir.I16, kir.U16, kir.F16, kir.BF16)
	patterns[uint32](&t, kir.I32, kir.U32, kir.F32)
	patterns[uint64](&t, kir.I64, kir.U64, kir.F64, kir.PtrDevice, kir.PtrConstant, kir.PtrThreadgroup, kir.PtrThread)
	for _, p := range []kir.Type{kir.PtrDevice, kir.PtrConstant, kir.PtrThreadgroup, kir.PtrThread} {
		compares[uint64](&t, p)
		t[kir.PtrAdd][p] = ptrAdd
	}
	t[kir.PtrDiff][kir.I64] = ptrDiff
	b := kir.Bool
	t[kir.And][b], t[kir.Or][b], t[kir.Xor][b], t[kir.Not][b] = boolAnd, boolOr, boolXor, boolNot
	t[kir.Eq][b], t[kir.Ne][b], t[kir.Lt][b], t[kir.Le][b] = boolEq, boolXor, boolLt, boolLe
	t[kir.Select][b], t[kir.VarGet][b], t[kir.VarSet][b] = boolSel, boolCopy, boolSet
	return t
}

func ints[T integer](t *[maxOps][maxTypes]laneFunc, k kir.Type) {
	t[kir.Add][k], t[kir.Sub][k], t[kir.Mul][k] = add[T], sub[T], mul[T]
	t[kir.Div][k], t[kir.Rem][k] = divInt[T], remInt[T]
	t[kir.Neg][k], t[kir.Abs][k] = negInt[T], absInt[T]
	t[kir.Min][k], t[kir.Max][k] = minInt[T], maxInt[T]
	t[kir.Shl][k], t[kir.Shr][k] = shl[T], shr[T]
	compares[T](t, k)
}

func floats[T float](t *[maxOps][maxTypes]laneFunc, k kir.Type) {
	t[kir.Add][k], t[kir.Sub][k], t[kir.Mul][k] = add[T], sub[T], mul[T]
	t[kir.Div][k], t[kir.Rem][k] = divFloat[T], remFloat[T]
	t[kir.Min][k], t[kir.Max][k] = minFloat[T], maxFloat[T]
	t[kir.Sqrt][k], t[kir.Rint][k], t[kir.Trunc][k] = sqrtFloat[T], rintFloat[T], truncFloat[T]
	t[kir.Floor][k], t[kir.Ceil][k], t[kir.Scale][k] = floorFloat[T], ceilFloat[T], scaleFloat[T]
	compares[T](t, k)
}

func compares[T number](t *[maxOps][maxTypes]laneFunc, k kir.Type) {
	t[kir.Eq][k], t[kir.Ne][k], t[kir.Lt][k], t[kir.Le][k] = eq[T], ne[T], lt[T], le[T]
}

// patterns fills what depends on the width alone.
func patterns[T unsignedInt](t *[maxOps][maxTypes]laneFunc, types ...kir.Type) {
	for _, k := range types {
		t[kir.Select][k], t[kir.VarGet][k], t[kir.VarSet][k] = sel[T], copyLanes[T], setLanes[T]
		t[kir.Load][k], t[kir.Store][k] = load[T], store[T]
		t[kir.Shuffle][k], t[kir.BroadcastFirst][k] = shuffle[T], broadcastFirst[T]
		if k.IsInt() {
			t[kir.And][k], t[kir.Or][k], t[kir.Xor][k], t[kir.Not][k] = and[T], or[T], xor[T], not[T]
			t[kir.Popcount][k], t[kir.Clz][k], t[kir.Ctz][k] = popcount[T], clz[T], ctz[T]
			t[kir.BitReverse][k] = bitReverse[T]
		}
		if k.IsFloat() {
			t[kir.Neg][k], t[kir.Abs][k] = negBits[T], absBits[T]
		}
	}
}

func makeConvs() (t [maxTypes][maxTypes]laneFunc) {
	fromInt[int8](&t, kir.I8)
	fromInt[int16](&t, kir.I16)
	fromInt[int32](&t, kir.I32)
	fromInt[int64](&t, kir.I64)
	fromInt[uint8](&t, kir.U8)
	fromInt[uint16](&t, kir.U16)
	fromInt[uint32](&t, kir.U32)
	fromInt[uint64](&t, kir.U64)
	fromFloat[float32](&t, kir.F32)
	fromFloat[float64](&t, kir.F64)
	t[kir.F16][kir.F32], t[kir.F32][kir.F16] = f16ToF32, f32ToF16
	t[kir.BF16][kir.F32], t[kir.F32][kir.BF16] = bf16ToF32, f32ToBF16
	t[kir.Bool][kir.Bool] = boolCopy
	return t
}

func fromInt[A integer](t *[maxTypes][maxTypes]laneFunc, k kir.Type) {
	r := &t[k]
	r[kir.I8], r[kir.I16], r[kir.I32], r[kir.I64] = conv[A, int8], conv[A, int16], conv[A, int32], conv[A, int64]
	r[kir.U8], r[kir.U16], r[kir.U32], r[kir.U64] = conv[A, uint8], conv[A, uint16], conv[A, uint32], conv[A, uint64]
	r[kir.F32], r[kir.F64] = conv[A, float32], conv[A, float64]
	r[kir.Bool], t[kir.Bool][k] = numToBool[A], boolToNum[A]
}

func fromFloat[A float](t *[maxTypes][maxTypes]laneFunc, k kir.Type) {
	r := &t[k]
	r[kir.I8], r[kir.I16] = floatToInt[A, int8], floatToInt[A, int16]
	r[kir.I32], r[kir.I64] = floatToInt[A, int32], floatToInt[A, int64]
	r[kir.U8], r[kir.U16] = floatToInt[A, uint8], floatToInt[A, uint16]
	r[kir.U32], r[kir.U64] = floatToInt[A, uint32], floatToInt[A, uint64]
	r[kir.F32], r[kir.F64] = conv[A, float32], conv[A, float64]
	r[kir.Bool], t[kir.Bool][k] = numToBool[A], boolToNum[A]
}

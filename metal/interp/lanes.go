package interp

import (
	"math"
	"math/bits"
	"unsafe"

	"github.com/mlxlua/mlxlua/metal/kir"
)

// laneFunc executes one instruction on all lanes of a SIMD-group. Pure operations compute every lane, active or
// not: no operation traps, and a value of an inactive lane is never observed.
type laneFunc func(f *frame, in *inst)

const (
	lanes    = kir.Lanes
	allLanes = ^uint32(0)
)

type signedInt interface{ int8 | int16 | int32 | int64 }
type unsignedInt interface {
	uint8 | uint16 | uint32 | uint64
}
type integer interface{ signedInt | unsignedInt }
type float interface{ float32 | float64 }
type number interface{ integer | float }

// at returns the lanes of the value at an offset of the frame's registers.
func at[T any](f *frame, off uint32) *[lanes]T { return (*[lanes]T)(unsafe.Add(f.base, off)) }

// boolAt returns a Bool value: bit i is lane i.
func boolAt(f *frame, off uint32) *uint32 { return (*uint32)(unsafe.Add(f.base, off)) }

func add[T number](f *frame, in *inst) {
	d, a, b := at[T](f, in.d), at[T](f, in.a), at[T](f, in.b)
	for i := range d {
		d[i] = a[i] + b[i]
	}
}

func sub[T number](f *frame, in *inst) {
	d, a, b := at[T](f, in.d), at[T](f, in.a), at[T](f, in.b)
	for i := range d {
		d[i] = a[i] - b[i]
	}
}

func mul[T number](f *frame, in *inst) {
	d, a, b := at[T](f, in.d), at[T](f, in.a), at[T](f, in.b)
	for i := range d {
		d[i] = a[i] * b[i]
	}
}

func divInt[T integer](f *frame, in *inst) {
	d, a, b := at[T](f, in.d), at[T](f, in.a), at[T](f, in.b)
	for i := range d {
		if b[i] == 0 {
			d[i] = 0
		} else {
			d[i] = a[i] / b[i]
		}
	}
}

func remInt[T integer](f *frame, in *inst) {
	d, a, b := at[T](f, in.d), at[T](f, in.a), at[T](f, in.b)
	for i := range d {
		if b[i] == 0 {
			d[i] = a[i]
		} else {
			d[i] = a[i] % b[i]
		}
	}
}

func divFloat[T float](f *frame, in *inst) {
	d, a, b := at[T](f, in.d), at[T](f, in.a), at[T](f, in.b)
	for i := range d {
		d[i] = a[i] / b[i]
	}
}

func remFloat[T float](f *frame, in *inst) {
	d, a, b := at[T](f, in.d), at[T](f, in.a), at[T](f, in.b)
	for m := f.mask; m != 0; m &= m - 1 { // slow: active lanes only
		i := bits.TrailingZeros32(m) % lanes
		d[i] = T(math.Mod(float64(a[i]), float64(b[i])))
	}
}

func negInt[T integer](f *frame, in *inst) {
	d, a := at[T](f, in.d), at[T](f, in.a)
	for i := range d {
		d[i] = -a[i]
	}
}

func absInt[T integer](f *frame, in *inst) {
	d, a := at[T](f, in.d), at[T](f, in.a)
	for i := range d {
		if x := a[i]; x < 0 {
			d[i] = -x
		} else {
			d[i] = x
		}
	}
}

// negBits and absBits work on the sign bit of a float kept in T.
func negBits[T unsignedInt](f *frame, in *inst) {
	d, a := at[T](f, in.d), at[T](f, in.a)
	sign := ^(^T(0) >> 1)
	for i := range d {
		d[i] = a[i] ^ sign
	}
}

func absBits[T unsignedInt](f *frame, in *inst) {
	d, a := at[T](f, in.d), at[T](f, in.a)
	rest := ^T(0) >> 1
	for i := range d {
		d[i] = a[i] & rest
	}
}

func minInt[T integer](f *frame, in *inst) {
	d, a, b := at[T](f, in.d), at[T](f, in.a), at[T](f, in.b)
	for i := range d {
		d[i] = min(a[i], b[i])
	}
}

func maxInt[T integer](f *frame, in *inst) {
	d, a, b := at[T](f, in.d), at[T](f, in.a), at[T](f, in.b)
	for i := range d {
		d[i] = max(a[i], b[i])
	}
}

func fmin[T float](x, y T) T {
	if y != y || x < y || x == y && math.Signbit(float64(x)) {
		return x
	}
	return y
}

func fmax[T float](x, y T) T {
	if y != y || x > y || x == y && !math.Signbit(float64(x)) {
		return x
	}
	return y
}

func minFloat[T float](f *frame, in *inst) {
	d, a, b := at[T](f, in.d), at[T](f, in.a), at[T](f, in.b)
	for i := range d {
		d[i] = fmin(a[i], b[i])
	}
}

func maxFloat[T float](f *frame, in *inst) {
	d, a, b := at[T](f, in.d), at[T](f, in.a), at[T](f, in.b)
	for i := range d {
		d[i] = fmax(a[i], b[i])
	}
}

func width[T any]() uint64 {
	var z T
	return uint64(unsafe.Sizeof(z)) * 8
}

func mulHiSmall[T integer](f *frame, in *inst) { // the product modulo 2^64 has the right high half
	d, a, b := at[T](f, in.d), at[T](f, in.a), at[T](f, in.b)
	w := width[T]()
	for i := range d {
		d[i] = T(int64(a[i]) * int64(b[i]) >> w)
	}
}

func mulHi64(f *frame, in *inst) {
	d, a, b := at[int64](f, in.d), at[int64](f, in.a), at[int64](f, in.b)
	for i := range d {
		hi, _ := bits.Mul64(uint64(a[i]), uint64(b[i]))
		d[i] = int64(hi) - a[i]>>63&b[i] - b[i]>>63&a[i]
	}
}

func mulHiU64(f *frame, in *inst) {
	d, a, b := at[uint64](f, in.d), at[uint64](f, in.a), at[uint64](f, in.b)
	for i := range d {
		d[i], _ = bits.Mul64(a[i], b[i])
	}
}

func fma32(f *frame, in *inst) {
	d, a, b, c := at[float32](f, in.d), at[float32](f, in.a), at[float32](f, in.b), at[float32](f, in.c)
	for i := range d {
		d[i] = kir.FMA32(a[i], b[i], c[i])
	}
}

func pairDot(f *frame, in *inst) {
	d, a, b, c := at[float32](f, in.d), at[uint32](f, in.a), at[uint32](f, in.b), at[float32](f, in.c)
	for i := range d {
		d[i] = kir.PairDot32(a[i], b[i], c[i])
	}
}

func fma64(f *frame, in *inst) {
	d, a, b, c := at[float64](f, in.d), at[float64](f, in.a), at[float64](f, in.b), at[float64](f, in.c)
	for i := range d {
		d[i] = math.FMA(a[i], b[i], c[i])
	}
}

func sqrtFloat[T float](f *frame, in *inst) {
	d, a := at[T](f, in.d), at[T](f, in.a)
	for i := range d {
		d[i] = T(math.Sqrt(float64(a[i])))
	}
}

func floorFloat[T float](f *frame, in *inst) {
	d, a := at[T](f, in.d), at[T](f, in.a)
	for i := range d {
		d[i] = T(math.Floor(float64(a[i])))
	}
}

func ceilFloat[T float](f *frame, in *inst) {
	d, a := at[T](f, in.d), at[T](f, in.a)
	for i := range d {
		d[i] = T(math.Ceil(float64(a[i])))
	}
}

func truncFloat[T float](f *frame, in *inst) {
	d, a := at[T](f, in.d), at[T](f, in.a)
	for i := range d {
		d[i] = T(math.Trunc(float64(a[i])))
	}
}

func rintFloat[T float](f *frame, in *inst) {
	d, a := at[T](f, in.d), at[T](f, in.a)
	for i := range d {
		d[i] = T(math.RoundToEven(float64(a[i])))
	}
}

func scaleFloat[T float](f *frame, in *inst) {
	d, a, b := at[T](f, in.d), at[T](f, in.a), at[T](f, in.b)
	for i := range d {
		d[i] = T(kir.ScaleFloat(float64(a[i]), float64(b[i])))
	}
}

func and[T unsignedInt](f *frame, in *inst) {
	d, a, b := at[T](f, in.d), at[T](f, in.a), at[T](f, in.b)
	for i := range d {
		d[i] = a[i] & b[i]
	}
}

func or[T unsignedInt](f *frame, in *inst) {
	d, a, b := at[T](f, in.d), at[T](f, in.a), at[T](f, in.b)
	for i := range d {
		d[i] = a[i] | b[i]
	}
}

func xor[T unsignedInt](f *frame, in *inst) {
	d, a, b := at[T](f, in.d), at[T](f, in.a), at[T](f, in.b)
	for i := range d {
		d[i] = a[i] ^ b[i]
	}
}

func not[T unsignedInt](f *frame, in *inst) {
	d, a := at[T](f, in.d), at[T](f, in.a)
	for i := range d {
		d[i] = ^a[i]
	}
}

func shl[T integer](f *frame, in *inst) {
	d, a, b := at[T](f, in.d), at[T](f, in.a), at[T](f, in.b)
	w := width[T]() - 1
	for i := range d {
		d[i] = a[i] << (uint64(b[i]) & w & 63)
	}
}

func shr[T integer](f *frame, in *inst) {
	d, a, b := at[T](f, in.d), at[T](f, in.a), at[T](f, in.b)
	w := width[T]() - 1
	for i := range d {
		d[i] = a[i] >> (uint64(b[i]) & w & 63)
	}
}

func popcount[T unsignedInt](f *frame, in *inst) {
	d, a := at[T](f, in.d), at[T](f, in.a)
	for i := range d {
		d[i] = T(bits.OnesCount64(uint64(a[i])))
	}
}

func clz[T unsignedInt](f *frame, in *inst) {
	d, a := at[T](f, in.d), at[T](f, in.a)
	w := width[T]()
	for i := range d {
		d[i] = T(uint64(bits.LeadingZeros64(uint64(a[i]))) + w - 64)
	}
}

func ctz[T unsignedInt](f *frame, in *inst) {
	d, a := at[T](f, in.d), at[T](f, in.a)
	w := width[T]()
	for i := range d {
		d[i] = T(min(uint64(bits.TrailingZeros64(uint64(a[i]))), w))
	}
}

func bitReverse[T unsignedInt](f *frame, in *inst) {
	d, a := at[T](f, in.d), at[T](f, in.a)
	w := width[T]()
	for i := range d {
		d[i] = T(bits.Reverse64(uint64(a[i])) >> (64 - w))
	}
}

func bit(b bool) uint32 {
	if b {
		return 1
	}
	return 0
}

func eq[T number](f *frame, in *inst) {
	a, b := at[T](f, in.a), at[T](f, in.b)
	var m uint32
	for i := range a {
		m |= bit(a[i] == b[i]) << i
	}
	*boolAt(f, in.d) = m
}

func ne[T number](f *frame, in *inst) {
	a, b := at[T](f, in.a), at[T](f, in.b)
	var m uint32
	for i := range a {
		m |= bit(a[i] != b[i]) << i
	}
	*boolAt(f, in.d) = m
}

func lt[T number](f *frame, in *inst) {
	a, b := at[T](f, in.a), at[T](f, in.b)
	var m uint32
	for i := range a {
		m |= bit(a[i] < b[i]) << i
	}
	*boolAt(f, in.d) = m
}

func le[T number](f *frame, in *inst) {
	a, b := at[T](f, in.a), at[T](f, in.b)
	var m uint32
	for i := range a {
		m |= bit(a[i] <= b[i]) << i
	}
	*boolAt(f, in.d) = m
}

// sel selects on the bits, so it serves every type of T's size.
func sel[T unsignedInt](f *frame, in *inst) {
	m := *boolAt(f, in.a)
	d, a, b := at[T](f, in.d), at[T](f, in.b), at[T](f, in.c)
	for i := range d {
		d[i] = b[i] ^ (a[i]^b[i])&-T(m>>i&1)
	}
}

// copyLanes copies all lanes: VarGet.
func copyLanes[T unsignedInt](f *frame, in *inst) { *at[T](f, in.d) = *at[T](f, in.a) }

// setLanes copies the active lanes: VarSet.
func setLanes[T unsignedInt](f *frame, in *inst) {
	d, a := at[T](f, in.d), at[T](f, in.a)
	m := f.mask
	if m == allLanes {
		*d = *a
		return
	}
	for i := range d {
		d[i] ^= (a[i] ^ d[i]) & -T(m>>i&1)
	}
}

func ptrAdd(f *frame, in *inst) {
	d, a, b := at[uint64](f, in.d), at[uint64](f, in.a), at[uint64](f, in.b)
	k := in.imm
	for i := range d {
		d[i] = a[i]&^uint64(kir.PtrOffsetMask) | (a[i]+b[i]+k)&kir.PtrOffsetMask
	}
}

func ptrDiff(f *frame, in *inst) {
	d, a, b := at[int64](f, in.d), at[uint64](f, in.a), at[uint64](f, in.b)
	for i := range d {
		d[i] = kir.PtrOffset(a[i]) - kir.PtrOffset(b[i])
	}
}

// Operations on Bool, whose lanes are the bits of one word.

func boolAnd(f *frame, in *inst)  { *boolAt(f, in.d) = *boolAt(f, in.a) & *boolAt(f, in.b) }
func boolOr(f *frame, in *inst)   { *boolAt(f, in.d) = *boolAt(f, in.a) | *boolAt(f, in.b) }
func boolXor(f *frame, in *inst)  { *boolAt(f, in.d) = *boolAt(f, in.a) ^ *boolAt(f, in.b) }
func boolNot(f *frame, in *inst)  { *boolAt(f, in.d) = ^*boolAt(f, in.a) }
func boolEq(f *frame, in *inst)   { *boolAt(f, in.d) = ^(*boolAt(f, in.a) ^ *boolAt(f, in.b)) }
func boolLt(f *frame, in *inst)   { *boolAt(f, in.d) = ^*boolAt(f, in.a) & *boolAt(f, in.b) }
func boolLe(f *frame, in *inst)   { *boolAt(f, in.d) = ^*boolAt(f, in.a) | *boolAt(f, in.b) }
func boolCopy(f *frame, in *inst) { *boolAt(f, in.d) = *boolAt(f, in.a) }

func boolSel(f *frame, in *inst) {
	m := *boolAt(f, in.a)
	*boolAt(f, in.d) = *boolAt(f, in.b)&m | *boolAt(f, in.c)&^m
}

func boolSet(f *frame, in *inst) {
	d := boolAt(f, in.d)
	*d = *d&^f.mask | *boolAt(f, in.a)&f.mask
}

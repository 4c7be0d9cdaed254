package interp

import (
	"github.com/mlxlua/mlxlua/metal/kir"
)

// conv is Go's conversion where it is kir's: integer to integer, integer to float, float to float.
func conv[A, B number](f *frame, in *inst) {
	d, a := at[B](f, in.d), at[A](f, in.a)
	for i := range d {
		d[i] = B(a[i])
	}
}

// floatToInt truncates, saturates at B's bounds and makes 0 of NaN.
func floatToInt[A float, B integer](f *frame, in *inst) {
	d, a := at[B](f, in.d), at[A](f, in.a)
	w := width[B]()
	signed := ^B(0) < 0
	lo, hi := B(0), ^B(0)
	if signed {
		hi = B(uint64(1)<<(w-1) - 1)
		lo = -hi - 1
	}
	// The first value past each bound is a power of two (or its negative less one): exact in float64, so that values
	// between -2^(w-1)-1 and -2^(w-1) may saturate too, where truncation gives the same.
	top := float64(uint64(1) << (w - 1))
	if !signed {
		top *= 2
	}
	bottom := -top
	if !signed {
		bottom = 0
	}
	for i := range d {
		switch x := float64(a[i]); {
		case x != x:
			d[i] = 0
		case x >= top:
			d[i] = hi
		case x < bottom:
			d[i] = lo
		case x >= 1<<63:
			d[i] = B(uint64(int64(x-1<<63)) + 1<<63)
		default:
			d[i] = B(int64(x))
		}
	}
}

func numToBool[A number](f *frame, in *inst) {
	a := at[A](f, in.a)
	var m uint32
	for i := range a {
		m |= bit(a[i] != 0) << i
	}
	*boolAt(f, in.d) = m
}

func boolToNum[B number](f *frame, in *inst) {
	d := at[B](f, in.d)
	m := *boolAt(f, in.a)
	for i := range d {
		d[i] = B(m >> i & 1)
	}
}

func f16ToF32(f *frame, in *inst) {
	d, a := at[float32](f, in.d), at[uint16](f, in.a)
	for i := range d {
		d[i] = kir.F16ToF32(a[i])
	}
}

func f32ToF16(f *frame, in *inst) {
	d, a := at[uint16](f, in.d), at[float32](f, in.a)
	for i := range d {
		d[i] = kir.F32ToF16(a[i])
	}
}

func bf16ToF32(f *frame, in *inst) {
	d, a := at[float32](f, in.d), at[uint16](f, in.a)
	for i := range d {
		d[i] = kir.BF16ToF32(a[i])
	}
}

func f32ToBF16(f *frame, in *inst) {
	d, a := at[uint16](f, in.d), at[float32](f, in.a)
	for i := range d {
		d[i] = kir.F32ToBF16(a[i])
	}
}

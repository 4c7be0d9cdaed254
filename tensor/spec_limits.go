package tensor

import "math"

// IntRange is the least and the greatest value of an integer dtype; Bool's are 0 and 1.
func (d DType) IntRange() (least int64, greatest uint64) {
	bits := 8 * d.Size()
	switch {
	case d == Bool:
		return 0, 1
	case d.IsUnsigned():
		return 0, math.MaxUint64 >> (64 - bits)
	}
	return math.MinInt64 >> (64 - bits), math.MaxInt64 >> (64 - bits)
}

// MaxFinite is the greatest finite value of a floating-point dtype, and of a complex dtype's parts; the least is its
// negative.
func (d DType) MaxFinite() float64 {
	switch d {
	case Float16:
		return 0x1.ffcp15
	case BFloat16:
		return 0x1.fep127
	case Float64:
		return math.MaxFloat64
	}
	return math.MaxFloat32
}

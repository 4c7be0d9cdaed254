package kit

import (
	"github.com/mlxlua/mlxlua/tensor"
)

// Accumulator is the dtype in which sums of dtype d are computed: float for the half types, rounded once at the end.
func Accumulator(d tensor.DType) tensor.DType {
	if d.IsFloat() && d.Size() == 2 {
		return tensor.Float32
	}
	return d
}

// Zero is the number 0 of dtype d in MSL.
func Zero(d tensor.DType) string {
	if d.IsComplex() {
		return "complex64_t(0.0f, 0.0f)"
	}
	return d.MSL() + "(0)"
}

// One is the number 1 of dtype d in MSL.
func One(d tensor.DType) string {
	if d.IsComplex() {
		return "complex64_t(1.0f, 0.0f)"
	}
	return d.MSL() + "(1)"
}

// Bits is an unsigned MSL type of the elements' size, for kernels that move elements and do not look at them.
func Bits(d tensor.DType) string {
	return map[int]string{1: "uchar", 2: "ushort", 4: "uint", 8: "ulong"}[d.Size()]
}

package kit

import "github.com/mlxlua/mlxlua/tensor"

// ProductFlops is the Flops rule of matrix products whose first input has the inner dimension last: a product and a sum
// for each of its elements, for each element of the output.
func ProductFlops[A comparable](in, out []tensor.Spec, _ A) float64 {
	s := in[0].Shape
	return 2 * float64(out[0].Shape.Size()) * float64(s[len(s)-1])
}

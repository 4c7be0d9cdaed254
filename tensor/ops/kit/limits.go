package kit

import (
	"fmt"
	"strconv"

	"github.com/mlxlua/mlxlua/tensor"
)

// Least is the least value of dtype d in MSL: what a maximum begins with.
func Least(d tensor.DType) string {
	switch {
	case d.IsComplex():
		return "complex64_t(-INFINITY, -INFINITY)"
	case d.IsFloat():
		return d.MSL() + "(-INFINITY)"
	case d.IsSigned():
		least, _ := d.IntRange()
		return fmt.Sprintf("%s(%dL - 1)", d.MSL(), least+1) // there is no literal of the least long
	}
	return d.MSL() + "(0)"
}

// Greatest is the greatest value of dtype d in MSL: what a minimum begins with.
func Greatest(d tensor.DType) string {
	switch {
	case d.IsComplex():
		return "complex64_t(INFINITY, INFINITY)"
	case d.IsFloat():
		return d.MSL() + "(INFINITY)"
	}
	_, greatest := d.IntRange()
	return fmt.Sprintf("%s(%dul)", d.MSL(), greatest)
}

// LeastFinite is the least finite value of a floating-point dtype in MSL.
func LeastFinite(d tensor.DType) string {
	return d.MSL() + "(" + strconv.FormatFloat(-d.MaxFinite(), 'g', 17, 64) + suffix(d) + ")"
}

// suffix makes a literal one of type float, unless d is float64.
func suffix(d tensor.DType) string {
	if d == tensor.Float64 {
		return ""
	}
	return "f"
}

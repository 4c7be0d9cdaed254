package ops

import (
	"fmt"
	"strings"

	"github.com/mlxlua/mlxlua/tensor"
	"github.com/mlxlua/mlxlua/tensor/ops/kit"
	"github.com/mlxlua/mlxlua/tensor/ops/sig"
)

// roundAttrs are round's arguments as the user wrote them.
type roundAttrs struct{ Decimals int }

var round = tensor.Declare[roundAttrs]("round")

func init() {
	round.Define(tensor.Rules[roundAttrs]{
		Shape: func(in []tensor.Spec, _ roundAttrs, outs []tensor.Shape) ([]tensor.Shape, error) {
			return append(outs, in[0].Shape), nil
		},
		DType:    kit.SameDType[roundAttrs],
		Expr:     func(a roundAttrs, in []tensor.DType) string { return roundExpr(a.Decimals, in[0]) },
		Constant: true,
	})
}

// roundExpr is the MSL of an element of dtype d rounded to decimals.
func roundExpr(decimals int, d tensor.DType) string {
	switch {
	case d.IsComplex():
		part := func(name string) string {
			return strings.ReplaceAll(roundedFloat(decimals, tensor.Float32), "$0", "$0."+name)
		}
		return "complex64_t(" + part("real") + ", " + part("imag") + ")"
	case d.IsFloat():
		return roundedFloat(decimals, d)
	case decimals >= 0:
		return "$0"
	case d == tensor.Bool:
		return "false"
	}
	return roundedInteger(decimals, d)
}

// roundedFloat multiplies by a power of ten, rounds and divides. The product of a half type is one of that type, as in
// MLX and NumPy, so that what looks like a tie in it is one. A number without a fraction there stays: the product of a
// large one may be infinite.
func roundedFloat(decimals int, d tensor.DType) string {
	if decimals == 0 {
		return "metal::rint($0)"
	}
	acc := "float"
	if d == tensor.Float64 {
		acc = "double"
	}
	most := 38 // a power of ten that acc has
	if d == tensor.Float64 {
		most = 308
	}
	scale := func(n int) string {
		if d == tensor.Float64 {
			return fmt.Sprintf("1e%d", n)
		}
		return fmt.Sprintf("1e%df", n)
	}
	switch {
	case decimals > most:
		return "$0"
	case decimals < -most: // below half of that power, all numbers are
		return "metal::isfinite($0) ? " + acc + "($0) * 0 : " + acc + "($0)"
	case decimals > 0:
		product := fmt.Sprintf("(%s)(%s($0) * %s)", d.MSL(), acc, scale(decimals))
		return fmt.Sprintf("metal::isfinite(%s) ? metal::rint(%s(%s)) / %s : %s($0)", product, acc, product,
			scale(decimals), acc)
	}
	quotient := fmt.Sprintf("(%s)(%s($0) / %s)", d.MSL(), acc, scale(-decimals))
	return fmt.Sprintf("metal::rint(%s(%s)) * %s", acc, quotient, scale(-decimals))
}

// roundedInteger is the nearest multiple of a power of ten, of two equally near ones the even multiple.
func roundedInteger(decimals int, d tensor.DType) string {
	_, most := d.IntRange()
	power := uint64(1)
	for range -decimals {
		if power > most/10 { // 10 times as much is beyond the dtype: see Round
			return "0"
		}
		power *= 10
	}
	t, s := d.MSL(), fmt.Sprintf("%d", power)
	if d.Size() == 8 {
		s += "l"
	}
	if d.IsUnsigned() {
		s += "u"
	}
	rest := "($0 % " + s + ")"
	below := "($0 / " + s + ")"
	if d.IsSigned() {
		below = "($0 / " + s + " - ($0 % " + s + " < 0 ? 1 : 0))"
		rest = "($0 % " + s + " + ($0 % " + s + " < 0 ? " + s + " : 0))"
	}
	more := s + " - " + rest
	up := "(" + rest + " > " + more + " || (" + rest + " == " + more + " && (" + below + " & 1) != 0))"
	return t + "((" + below + " + (" + up + " ? 1 : 0)) * " + s + ")"
}

var _ = sig.Def("round", "a decimals:int=0", func(a *sig.Args) any { return Round(a.Array(0), a.Int(1), a.Ctx) })

// Round rounds each element to decimals places after the point, or with negative decimals to a multiple of a power of
// ten, in a's dtype; of two equally near numbers it takes the one whose last place is even. The parts of complex64 are
// rounded by themselves. Integers are rounded exactly; a power of ten beyond their dtype gives 0. The derivative is
// zero.
func Round(a *tensor.Array, decimals int, ctx ...*tensor.Ctx) *tensor.Array {
	return round.One(tensor.Call(ctx), roundAttrs{decimals}, a)
}

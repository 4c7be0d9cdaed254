package ops

import (
	"github.com/mlxlua/mlxlua/tensor"
	"github.com/mlxlua/mlxlua/tensor/ops/sig"
)

var (
	conjugate = unaryOp("conjugate")
	realOf    = unaryOp("real")
	imagOf    = unaryOp("imag")
)

func init() {
	conjugate.define(row{
		Expr: exprs{Any: "$0", Complex: "complex64_t($0.real, -$0.imag)"},
		Gradient: func(g *tensor.VJP[tensor.None]) *tensor.Array {
			return Conjugate(g.Cot[0], g.Ctx)
		},
		Tangent: func(g *tensor.JVP[tensor.None]) *tensor.Array {
			return Conjugate(g.Tan[0], g.Ctx)
		},
	})
	realOf.define(row{
		Out:  realPart,
		Expr: exprs{Any: "$0", Complex: "$0.real"},
		Gradient: func(g *tensor.VJP[tensor.None]) *tensor.Array {
			return AsType(g.Cot[0], g.In[0].DType(), g.Ctx)
		},
		Tangent: partTangent(Real),
	})
	imagOf.define(row{
		Out:  realPart,
		Expr: exprs{Any: "0", Complex: "$0.imag"},
		Gradient: func(g *tensor.VJP[tensor.None]) *tensor.Array {
			if g.In[0].DType() != tensor.Complex64 {
				return nil
			}
			i := FromSlice([]complex64{1i}, []int{}, g.Ctx)
			return Multiply(g.Cot[0], i, g.Ctx)
		},
		Tangent: partTangent(Imag),
	})
}

// partTangent is the derivative of a part of a number, which is the same part of the tangent.
func partTangent(part func(*tensor.Array, ...*tensor.Ctx) *tensor.Array) func(*tensor.JVP[tensor.None]) *tensor.Array {
	return func(g *tensor.JVP[tensor.None]) *tensor.Array { return part(g.Tan[0], g.Ctx) }
}

var _ = sig.Unary("conjugate", Conjugate)
var _ = sig.Alias("conj", "conjugate")

// Conjugate changes the sign of the imaginary part of each element of a complex64 array; other arrays stay.
func Conjugate(a *tensor.Array, ctx ...*tensor.Ctx) *tensor.Array {
	return conjugate.call(tensor.Call(ctx), a)
}

var _ = sig.Unary("real", Real)

// Real is the real part of each element: float32 for complex64; other arrays stay as they are.
func Real(a *tensor.Array, ctx ...*tensor.Ctx) *tensor.Array { return realOf.call(tensor.Call(ctx), a) }

var _ = sig.Unary("imag", Imag)

// Imag is the imaginary part of each element: float32 for complex64; zeros of a's dtype for other arrays.
func Imag(a *tensor.Array, ctx ...*tensor.Ctx) *tensor.Array { return imagOf.call(tensor.Call(ctx), a) }

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
		VJP: func(g *tensor.VJP[tensor.None]) []*tensor.Array {
			if g.Cot[0] == nil {
				return []*tensor.Array{nil}
			}
			return []*tensor.Array{Conjugate(g.Cot[0], g.Ctx)}
		},
		JVP: func(g *tensor.JVP[tensor.None]) []*tensor.Array {
			if g.Tan[0] == nil {
				return []*tensor.Array{nil}
			}
			return []*tensor.Array{Conjugate(g.Tan[0], g.Ctx)}
		},
	})
	realOf.define(row{
		Out:  realPart,
		Expr: exprs{Any: "$0", Complex: "$0.real"},
		VJP: func(g *tensor.VJP[tensor.None]) []*tensor.Array {
			if g.Cot[0] == nil {
				return []*tensor.Array{nil}
			}
			return []*tensor.Array{AsType(g.Cot[0], g.In[0].DType(), g.Ctx)}
		},
		JVP: partJVP(Real),
	})
	imagOf.define(row{
		Out:  realPart,
		Expr: exprs{Any: "0", Complex: "$0.imag"},
		VJP: func(g *tensor.VJP[tensor.None]) []*tensor.Array {
			if g.Cot[0] == nil || g.In[0].DType() != tensor.Complex64 {
				return []*tensor.Array{nil}
			}
			i := FromSlice([]complex64{1i}, []int{}, g.Ctx)
			return []*tensor.Array{Multiply(g.Cot[0], i, g.Ctx)}
		},
		JVP: partJVP(Imag),
	})
}

// partJVP is the derivative of a part of a number, which is the same part of the tangent.
func partJVP(part func(*tensor.Array, ...*tensor.Ctx) *tensor.Array) func(*tensor.JVP[tensor.None]) []*tensor.Array {
	return func(g *tensor.JVP[tensor.None]) []*tensor.Array {
		if g.Tan[0] == nil {
			return []*tensor.Array{nil}
		}
		return []*tensor.Array{part(g.Tan[0], g.Ctx)}
	}
}

var _ = sig.Unary("conjugate", Conjugate)

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

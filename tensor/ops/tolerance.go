package ops

import (
	"github.com/mlxlua/mlxlua/tensor"
	"github.com/mlxlua/mlxlua/tensor/ops/kit"
	"github.com/mlxlua/mlxlua/tensor/ops/sig"
)

// Tolerance is how far elements may lie apart: Abs plus Rel times the second one's absolute value.
type Tolerance struct {
	Rel, Abs float64
	NaN      bool // NaN is close to NaN
}

const closeParameters = "a:operand b:operand rtol:number=1e-5 atol:number=1e-8 equal_nan:bool=false"

func tolerance(a *sig.Args) Tolerance {
	return Tolerance{Rel: a.Number(2), Abs: a.Number(3), NaN: a.Bool(4)}
}

var _ = sig.Def("isclose", closeParameters, func(a *sig.Args) any {
	return IsClose(a.Array(0), a.Array(1), tolerance(a), a.Ctx)
})

// IsClose reports of each two elements whether abs(a - b) <= atol + rtol * abs(b), as bool; shapes are broadcast. An
// infinity is close to itself only; NaN is close to nothing, with equal_nan to NaN.
func IsClose(a, b *tensor.Array, tol Tolerance, ctx ...*tensor.Ctx) *tensor.Array {
	c := tensor.Call(ctx)
	if f := kit.Unusable(c, "isclose", a, b); f != nil {
		return f
	}
	limit := Add(Number(tol.Abs, tensor.Float32, c), Multiply(Number(tol.Rel, tensor.Float32, c), Abs(b, c), c), c)
	near := LessEqual(Abs(Subtract(a, b, c), c), limit, c)
	infinite := LogicalOr(IsInf(a, c), IsInf(b, c), c)
	near = Where(infinite, Equal(a, b, c), near, c)
	if tol.NaN {
		near = LogicalOr(near, LogicalAnd(IsNaN(a, c), IsNaN(b, c), c), c)
	}
	return near
}

var _ = sig.Def("allclose", closeParameters, func(a *sig.Args) any {
	return AllClose(a.Array(0), a.Array(1), tolerance(a), a.Ctx)
})

// AllClose reports whether all elements of a and b are close, as a scalar of bool: see [IsClose]. Shapes are broadcast,
// and no elements are close.
func AllClose(a, b *tensor.Array, tol Tolerance, ctx ...*tensor.Ctx) *tensor.Array {
	c := tensor.Call(ctx)
	return All(IsClose(a, b, tol, c), nil, false, c)
}

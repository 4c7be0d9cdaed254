// Package linalg is the linear algebra that runs on the host, in float64: decompositions, inverses and solutions for
// batches of matrices.
package linalg

import (
	"fmt"

	"github.com/mlxlua/mlxlua/tensor"
	"github.com/mlxlua/mlxlua/tensor/ops"
	"github.com/mlxlua/mlxlua/tensor/ops/kit"
)

// matrix refuses an input 0 that is not a batch of matrices, and returns their rows and columns.
func matrix(in []tensor.Spec) (rows, columns int, err error) {
	s := in[0].Shape
	if len(s) < 2 {
		return 0, 0, fmt.Errorf("want matrices, not an array of shape %v", s)
	}
	return s[len(s)-2], s[len(s)-1], nil
}

// squareMatrix refuses an input 0 that is not a batch of square matrices, and returns their size.
func squareMatrix(in []tensor.Spec) (int, error) {
	s := in[0].Shape
	if n := len(s); n < 2 || s[n-1] != s[n-2] {
		return 0, fmt.Errorf("want square matrices, not an array of shape %v", s)
	}
	return s[len(s)-1], nil
}

// square is the Shape rule of an op from square matrices to ones of the same size.
func square[A comparable](in []tensor.Spec, _ A, outs []tensor.Shape) ([]tensor.Shape, error) {
	if _, err := squareMatrix(in); err != nil {
		return nil, err
	}
	return append(outs, in[0].Shape), nil
}

// batchOf is the shape of a batch of matrices, without the matrices' own sizes, and with others in their place.
func batchOf(s tensor.Shape, sizes ...int) tensor.Shape {
	return append(s[:len(s)-2].Clone(), sizes...)
}

// real64 is the DType rule of ops that take float32 and float64, and whose outputs have that dtype.
func real64[A comparable](outputs int) func([]tensor.Spec, A, []tensor.DType) ([]tensor.DType, error) {
	return func(in []tensor.Spec, _ A, outs []tensor.DType) ([]tensor.DType, error) {
		d := in[0].DType
		if d != tensor.Float32 && d != tensor.Float64 {
			return nil, fmt.Errorf("does not take dtype %v, want float32 or float64", d)
		}
		for range outputs {
			outs = append(outs, d)
		}
		return outs, nil
	}
}

// real64OrComplex refuses dtypes but float32, float64 and complex64, and returns that of the absolute values.
func real64OrComplex(in []tensor.Spec) (d, abs tensor.DType, err error) {
	switch d = in[0].DType; d {
	case tensor.Float32, tensor.Float64:
		return d, d, nil
	case tensor.Complex64:
		return d, tensor.Float32, nil
	}
	return d, d, fmt.Errorf("does not take dtype %v, want float32, float64 or complex64", d)
}

// transposed are the matrices' transposes.
func transposed(c *tensor.Ctx, a *tensor.Array) *tensor.Array { return ops.SwapAxes(a, -1, -2, c) }

// adjoint is the transpose of the complex conjugate.
func adjoint(c *tensor.Ctx, a *tensor.Array) *tensor.Array {
	if a.DType().IsComplex() {
		a = ops.Conjugate(a, c)
	}
	return ops.SwapAxes(a, -1, -2, c)
}

// product multiplies matrices from left to right.
func product(c *tensor.Ctx, a ...*tensor.Array) *tensor.Array {
	p := a[0]
	for _, x := range a[1:] {
		p = ops.Matmul(p, x, c)
	}
	return p
}

// leading is a matrix with ones on its diagonal, as many rows as p's dimension pd has and as many columns as q's qd:
// products with it take the first rows or columns of another matrix, or put zeros behind them, whatever the sizes
// are.
func leading(c *tensor.Ctx, p *tensor.Array, pd int, q *tensor.Array, qd int) *tensor.Array {
	rows := ops.ExpandDims(ops.Iota(c, tensor.DimOf(p, pd)), []int{1}, c)
	return ops.AsType(ops.Equal(rows, ops.Iota(c, tensor.DimOf(q, qd)), c), p.DType(), c)
}

// orZeros is g, or zeros like x where there is no cotangent.
func orZeros(c *tensor.Ctx, g, x *tensor.Array) *tensor.Array {
	if g != nil {
		return g
	}
	return ops.ZerosLike(x, c)
}

// asMatrices calls op with an array, or passes on that it cannot be used.
func asMatrices[A comparable](c *tensor.Ctx, op *tensor.OpOf[A], attrs A, a *tensor.Array) []*tensor.Array {
	if f := kit.Unusable(c, op.Op().Name(), a); f != nil {
		return []*tensor.Array{f}
	}
	return op.Call(c, attrs, a)
}

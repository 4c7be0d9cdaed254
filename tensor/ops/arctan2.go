package ops

import "github.com/mlxlua/mlxlua/tensor"

var arcTan2 = binaryOp("arctan2")

func init() {
	// t * x / (a^2 + b^2) is the derivative by a, where x is b, and by b, where x is -a.
	by := func(x func(c *tensor.Ctx, p point) *tensor.Array) diff {
		return func(c *tensor.Ctx, t *tensor.Array, p point) *tensor.Array {
			return Divide(Multiply(t, x(c, p), c), Add(Square(p.A, c), Square(p.B, c), c), c)
		}
	}
	arcTan2.define(row{
		Arg:  refuse(inexact, "", tensor.Complex64),
		Expr: exprs{Float: "metal::atan2($0, $1)"},
		Diff: []diff{
			by(func(_ *tensor.Ctx, p point) *tensor.Array { return p.B }),
			by(func(c *tensor.Ctx, p point) *tensor.Array { return Negative(p.A, c) }),
		},
	})
}

// ArcTan2 is the angle of the point (b, a), element by element, in radians from -pi to pi: the arc tangent of a/b in
// the quadrant of the two signs, 0 or pi with a's sign where a is 0. Shapes are broadcast. Integers and bool give
// float32, other dtypes the common one; complex64 is an error. The derivative at (0, 0) is NaN.
func ArcTan2(a, b *tensor.Array, ctx ...*tensor.Ctx) *tensor.Array {
	return arcTan2.call(tensor.Call(ctx), a, b)
}

package ops

import (
	"github.com/mlxlua/mlxlua/tensor"
	"github.com/mlxlua/mlxlua/tensor/ops/kit"
	"github.com/mlxlua/mlxlua/tensor/ops/sig"
)

var (
	where        = tensor.Declare[tensor.None]("where")
	asType       = tensor.Declare[tensor.DType]("astype")
	stopGradient = tensor.Declare[tensor.None]("stop_gradient")
)

func init() {
	where.Define(tensor.Rules[tensor.None]{
		Shape: broadcastRule,
		DType: func(in []tensor.Spec, _ tensor.None, outs []tensor.DType) ([]tensor.DType, error) {
			return kit.OneDTypeOf(outs, in[1:]...)
		},
		Expr: func(tensor.None, []tensor.DType) string { return "$0 ? $1 : $2" },
		VJP: func(g *tensor.VJP[tensor.None]) []*tensor.Array {
			grads := make([]*tensor.Array, 3)
			t := g.Cot[0]
			zero := Scalar(0, t, g.Ctx)
			if g.Want[1] {
				grads[1] = SumTo(Where(g.In[0], t, zero, g.Ctx), tensor.ShapeOf(g.In[1]), g.Ctx)
			}
			if g.Want[2] {
				grads[2] = SumTo(Where(g.In[0], zero, t, g.Ctx), tensor.ShapeOf(g.In[2]), g.Ctx)
			}
			return grads
		},
		JVP: func(g *tensor.JVP[tensor.None]) []*tensor.Array {
			x, y := g.Tan[1], g.Tan[2]
			switch {
			case x == nil && y == nil: // only cond has a tangent
				return nil
			case x == nil:
				x = Scalar(0, y, g.Ctx)
			case y == nil:
				y = Scalar(0, x, g.Ctx)
			}
			t := Where(g.In[0], x, y, g.Ctx)
			return []*tensor.Array{BroadcastTo(t, tensor.ShapeOf(g.Out[0]), g.Ctx)}
		},
	})

	asType.Define(tensor.Rules[tensor.DType]{
		Shape: sameShape[tensor.DType],
		DType: func(_ []tensor.Spec, to tensor.DType, outs []tensor.DType) ([]tensor.DType, error) {
			return append(outs, to), nil
		},
		Expr: func(to tensor.DType, in []tensor.DType) string { return conversion(in[0], to) },
		Gradient: func(g *tensor.VJP[tensor.DType]) *tensor.Array {
			return AsType(g.Cot[0], g.In[0].DType(), g.Ctx)
		},
		Tangent: func(g *tensor.JVP[tensor.DType]) *tensor.Array {
			return AsType(g.Tan[0], g.Attrs, g.Ctx)
		},
	})

	stopGradient.Define(tensor.Rules[tensor.None]{
		Shape:    sameShape[tensor.None],
		DType:    kit.SameDType[tensor.None],
		View:     tensor.SameView[tensor.None],
		Constant: true,
		VMap: func(g *tensor.VMap[tensor.None]) ([]*tensor.Array, []int) {
			return []*tensor.Array{StopGradient(g.In[0], g.Ctx)}, g.Axes
		},
	})
}

// conversion is $0 of dtype from as one of dtype to.
func conversion(from, to tensor.DType) string {
	switch {
	case from == to:
		return "$0"
	case from.IsComplex() && to == tensor.Bool:
		return "$0.real != 0 || $0.imag != 0"
	case from.IsComplex():
		return to.MSL() + "($0.real)"
	case to.IsComplex():
		return "complex64_t(float($0), 0.0f)"
	case to == tensor.Bool:
		return "$0 != 0"
	}
	return to.MSL() + "($0)"
}

// sameShape is the rule of an op whose output has input 0's shape.
func sameShape[A any](in []tensor.Spec, _ A, outs []tensor.Shape) ([]tensor.Shape, error) {
	return append(outs, in[0].Shape), nil
}

var _ = sig.Def("where", "condition x:operand y:operand", func(a *sig.Args) any {
	return Where(a.Array(0), a.Array(1), a.Array(2), a.Ctx)
})

// Where is x where condition is true and y elsewhere, element by element, in the common dtype of x and y and the
// common shape of all three. A condition that is not bool counts as true where it is not zero. No gradient flows into
// condition.
func Where(condition, x, y *tensor.Array, ctx ...*tensor.Ctx) *tensor.Array {
	c := tensor.Call(ctx)
	if f := kit.Unusable(c, "where", condition, x, y); f != nil {
		return f
	}
	in, f := Convert(c, "where", kit.AnyDType, x, y)
	if f != nil {
		return f
	}
	return where.One(c, tensor.None{}, AsType(condition, tensor.Bool, c), in[0], in[1])
}

var _ = sig.Def("astype", "a dtype:dtype", func(a *sig.Args) any {
	return AsType(a.Array(0), a.DType(1), a.Ctx)
})

// AsType converts a to a dtype; if it has it already, the result is a itself. Floats become integers by dropping
// the fraction, complex numbers become real by dropping the imaginary part, and anything but zero becomes true. The
// gradient is converted back.
func AsType(a *tensor.Array, d tensor.DType, ctx ...*tensor.Ctx) *tensor.Array {
	c := tensor.Call(ctx)
	if f := kit.Unusable(c, "astype", a); f != nil {
		return f
	}
	if a.DType() == d {
		return a
	}
	return asType.One(c, d, a)
}

var _ = sig.Unary("stop_gradient", StopGradient)

// StopsGradient reports whether op is that of [StopGradient].
func StopsGradient(op *tensor.Op) bool { return op == stopGradient.Op() }

// StopGradient is a, through which no gradient flows. What comes out may choose elements, as indices: indices that are
// computed from what a function is differentiated by in another way are an error.
func StopGradient(a *tensor.Array, ctx ...*tensor.Ctx) *tensor.Array {
	c := tensor.Call(ctx)
	return stopGradient.One(c, tensor.None{}, a)
}

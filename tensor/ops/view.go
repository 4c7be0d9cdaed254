package ops

import (
	"fmt"

	"github.com/mlxlua/mlxlua/tensor"
	"github.com/mlxlua/mlxlua/tensor/ops/kit"
	"github.com/mlxlua/mlxlua/tensor/ops/sig"
)

// viewAttrs is the dtype that bytes are read as.
type viewAttrs struct{ DType tensor.DType }

var view = tensor.Declare[viewAttrs]("view")

func init() {
	view.Define(tensor.Rules[viewAttrs]{
		Shape: func(in []tensor.Spec, a viewAttrs, outs []tensor.Shape) ([]tensor.Shape, error) {
			s, err := viewedShape(in[0], a.DType)
			return append(outs, s), err
		},
		DType: func(_ []tensor.Spec, a viewAttrs, outs []tensor.DType) ([]tensor.DType, error) {
			return append(outs, a.DType), nil
		},
		View: func(in []tensor.Spec, v tensor.View, a viewAttrs, out []tensor.Operand) bool {
			return viewBytes(in[0], v, a.DType, &out[0])
		},
		VMap: func(g *tensor.VMap[viewAttrs]) ([]*tensor.Array, []int) {
			return []*tensor.Array{view.One(g.Ctx, g.Attrs, FrontOf(g, 0, 0))}, []int{0}
		},
	})
}

// viewedShape is the shape of the elements of dtype d that x's bytes are: the last dimension changes.
func viewedShape(x tensor.Spec, d tensor.DType) (tensor.Shape, error) {
	from, to := x.DType.Size(), d.Size()
	if from == to {
		return x.Shape, nil
	}
	last := len(x.Shape) - 1
	if last < 0 {
		return nil, fmt.Errorf("a scalar of %v has %s, an element of %v takes %d", x.DType, tensor.Count(from, "byte"), d, to)
	}
	n := x.Shape[last] * from
	if n%to != 0 {
		return nil, fmt.Errorf("the last dimension of %v has %s, which are no multiple of the %d that an element of %v takes",
			x, tensor.Count(n, "byte"), to, d)
	}
	s := x.Shape.Clone()
	s[last] = n / to
	return s, nil
}

// viewBytes reports whether the elements of dtype d can lie where x's bytes lie, and fills in their strides.
func viewBytes(x tensor.Spec, v tensor.View, d tensor.DType, out *tensor.Operand) bool {
	from, to := x.DType.Size(), d.Size()
	if from == to {
		copy(out.Strides, v.Strides)
		return true
	}
	last := len(x.Shape) - 1
	if x.Shape[last] != 1 && v.Strides[last] != 1 || v.OffsetBytes%int64(to) != 0 {
		return false
	}
	for i, stride := range v.Strides[:last] {
		if stride*from%to != 0 {
			return false
		}
		out.Strides[i] = stride * from / to
	}
	out.Strides[last] = 1
	return true
}

var _ = sig.Def("view", "a dtype:dtype", func(a *sig.Args) any { return View(a.Array(0), a.DType(1), a.Ctx) })

// View is the bytes of a read as elements of dtype: the last dimension's size changes as the elements' does. It is an
// error where the bytes of the last dimension are no whole number of elements, and of a scalar where the sizes differ.
// Bytes stay also as bool, where all but 0 are true. It has no derivative.
func View(a *tensor.Array, dtype tensor.DType, ctx ...*tensor.Ctx) *tensor.Array {
	c := tensor.Call(ctx)
	if f := kit.Unusable(c, "view", a); f != nil {
		return f
	}
	if a.DType() == dtype {
		return a
	}
	return view.One(c, viewAttrs{dtype}, a)
}

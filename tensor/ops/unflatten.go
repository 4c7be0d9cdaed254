package ops

import (
	"errors"
	"fmt"
	"slices"

	"github.com/mlxlua/mlxlua/tensor"
	"github.com/mlxlua/mlxlua/tensor/ops/kit"
	"github.com/mlxlua/mlxlua/tensor/ops/sig"
)

// unflattenAttrs are an axis and the sizes that take its place, as the user wrote them; references of the shape are
// the inputs from 1 on.
type unflattenAttrs struct {
	Axis  int
	Shape tensor.Dims
}

var unflatten = tensor.Declare[unflattenAttrs]("unflatten")

func init() {
	unflatten.Define(inOrder(tensor.Rules[unflattenAttrs]{
		Shape: func(in []tensor.Spec, a unflattenAttrs, outs []tensor.Shape) ([]tensor.Shape, error) {
			s, err := unflattened(in, a)
			return append(outs, s), err
		},
		SpecFrom: afterFirst[unflattenAttrs],
		VMap: func(g *tensor.VMap[unflattenAttrs]) ([]*tensor.Array, []int) {
			to, _, err := kit.Unbound(g, g.Attrs.Shape)
			if err != nil {
				return []*tensor.Array{tensor.Fail(g.Ctx, "unflatten", "%w", err)}, []int{0}
			}
			axis, _ := tensor.Axis(g.Attrs.Axis, kit.ExampleRank(g, 0))
			return []*tensor.Array{Unflatten(FrontOf(g, 0, 0), axis+1, to, g.Ctx)}, []int{0}
		},
	}))
}

// unflattened is unflatten's output shape: a -1 is inferred.
func unflattened(in []tensor.Spec, a unflattenAttrs) (tensor.Shape, error) {
	s := in[0].Shape
	axis, err := tensor.Axis(a.Axis, len(s))
	if err != nil {
		return nil, err
	}
	n, err := a.Shape.Resolve(in)
	if err == nil && len(n) == 0 {
		err = errors.New("no sizes are given")
	}
	if err != nil {
		return nil, err
	}
	wrong := fmt.Errorf("axis %d of shape %v cannot take the sizes %v", axis, s, tensor.Shape(n).Clone())
	infer, rest := -1, 1
	for i, d := range n {
		switch {
		case d == -1 && infer < 0:
			infer = i
		case d < 0 || d > 0 && rest > (1<<62)/d:
			return nil, wrong
		default:
			rest *= d
		}
	}
	if infer >= 0 && rest > 0 {
		n[infer] = s[axis] / rest
		rest *= n[infer]
	}
	if rest != s[axis] || infer >= 0 && n[infer] < 0 {
		return nil, wrong
	}
	return slices.Concat(s[:axis], n, s[axis+1:]), nil
}

var _ = sig.Def("unflatten", "a axis:int shape:shape", func(a *sig.Args) any {
	return Unflatten(a.Array(0), a.Int(1), a.Shape(2), a.Ctx)
})

// Unflatten makes the dimension at axis (negative: from the end) several, of the sizes in shape, whose product is its
// size. One of them may be -1: it is inferred. It undoes [Flatten]. Sizes that do not fit are an error.
func Unflatten(a *tensor.Array, axis int, shape tensor.ShapeArg, ctx ...*tensor.Ctx) *tensor.Array {
	dims, in := shape.Bind([]*tensor.Array{a})
	return unflatten.One(tensor.Call(ctx), unflattenAttrs{axis, dims}, in...)
}

package ops

import (
	"fmt"
	"math"

	"github.com/mlxlua/mlxlua/tensor"
	"github.com/mlxlua/mlxlua/tensor/ops/kit"
)

// iota numbers the elements of a shape in row-major order, as int32. Gathers use it to name the dimensions that an
// index array leaves as they are, and their batching rules to name the batch.
var iotaOp = tensor.Declare[shapeAttrs]("iota")

func init() {
	iotaOp.Define(tensor.Rules[shapeAttrs]{
		Shape: func(in []tensor.Spec, a shapeAttrs, outs []tensor.Shape) ([]tensor.Shape, error) {
			s, err := a.Shape.Shape(in)
			if err == nil && s.Size() > math.MaxInt32 {
				err = fmt.Errorf("shape %v has more than 2147483647 elements", s)
			}
			return append(outs, s), err
		},
		DType:    kit.Always[shapeAttrs](tensor.Int32),
		SpecFrom: func(shapeAttrs, int) int { return 0 },
		Run: func(r *tensor.Run, _ shapeAttrs) error {
			n := r.Out[0].Shape.Size()
			return arangeKernels.Launch(r, arangeVariant{tensor.Int32, tensor.Int32}, "arange", kit.Line(n), r.Out[0].Arg(),
				tensor.Const(int32(0)), tensor.Const(int32(1)))
		},
		Constant: true,
		VMap: func(g *tensor.VMap[shapeAttrs]) ([]*tensor.Array, []int) {
			to, _, err := kit.Unbound(g, g.Attrs.Shape)
			if err != nil {
				return []*tensor.Array{tensor.Fail(g.Ctx, "iota", "%w", err)}, []int{0}
			}
			return []*tensor.Array{Iota(g.Ctx, to)}, []int{-1}
		},
	})
}

// Iota is 0, 1, 2, ... as int32 in that shape, whose references are not read: a replay follows them.
func Iota(c *tensor.Ctx, shape tensor.ShapeArg) *tensor.Array {
	dims, in := shape.Bind(nil)
	return iotaOp.One(c, shapeAttrs{dims}, in...)
}

// IotaAlong counts along one dimension of x: its shape is x's with ones in the place of the other dimensions.
func IotaAlong(c *tensor.Ctx, x *tensor.Array, axis int) *tensor.Array {
	others := make([]int, 0, x.NDim())
	for i := range x.NDim() {
		if i != axis {
			others = append(others, i)
		}
	}
	n := Iota(c, tensor.DimOf(x, axis))
	if len(others) == 0 {
		return n
	}
	return ExpandDims(n, others, c)
}

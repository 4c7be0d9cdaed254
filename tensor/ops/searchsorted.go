package ops

import (
	_ "embed"
	"fmt"
	"math"

	"github.com/mlxlua/mlxlua/tensor"
	"github.com/mlxlua/mlxlua/tensor/ops/kit"
	"github.com/mlxlua/mlxlua/tensor/ops/sig"
)

// searchAttrs: whether places are behind equal keys, and how many leading dimensions of both inputs are a batch.
type searchAttrs struct {
	Right bool
	Batch int
}

var (
	// searchSorted takes sorted keys of one dimension behind the batch, and values.
	searchSorted = tensor.Declare[searchAttrs]("searchsorted")
	//go:embed searchsorted.metal
	searchText    string
	searchKernels = kit.NewKernels[searchVariant](searchText)
)

// searchVariant is the dtype of keys and values.
type searchVariant struct{ keys tensor.DType }

// Macros defines the type of keys and their order.
func (v searchVariant) Macros() string { return orderMSL(v.keys) }

func init() {
	searchSorted.Define(tensor.Rules[searchAttrs]{
		Shape: func(in []tensor.Spec, a searchAttrs, outs []tensor.Shape) ([]tensor.Shape, error) {
			keys, values := in[0].Shape, in[1].Shape
			if len(keys) != a.Batch+1 {
				return nil, fmt.Errorf("the sorted sequence has shape %v, want one dimension", keys)
			}
			if !keys[:a.Batch].Equal(values[:a.Batch]) {
				return nil, fmt.Errorf("sorted sequences %v and values %v are batches of different sizes", keys, values)
			}
			return append(outs, values), nil
		},
		DType: func(in []tensor.Spec, _ searchAttrs, outs []tensor.DType) ([]tensor.DType, error) {
			if _, err := kit.OneDTypeOf(nil, in...); err != nil {
				return nil, err
			}
			return append(outs, tensor.Uint32), nil
		},
		Run: func(r *tensor.Run, a searchAttrs) error {
			in, err := r.AllContiguous(2)
			if err != nil {
				return err
			}
			n, total := in[0].Shape[a.Batch], in[1].Shape.Size()
			if err := kit.CheckCount(n, math.MaxUint32, "keys"); err != nil {
				return err
			}
			right := 0
			if a.Right {
				right = 1
			}
			params := kit.Params{}.Uint(n, in[1].Shape[a.Batch:].Size(), right)
			return searchKernels.Launch(r, searchVariant{in[0].DType}, "search", kit.Line(total), in[0].Arg(), in[1].Arg(),
				r.Out[0].Arg(), params.Arg())
		},
		Constant: true,
		VMap: func(g *tensor.VMap[searchAttrs]) ([]*tensor.Array, []int) {
			if g.Axes[0] < 0 && g.Attrs.Batch == 0 { // one row for all values
				return []*tensor.Array{searchSorted.One(g.Ctx, g.Attrs, g.In[0], FrontOf(g, 1, 0))}, []int{0}
			}
			in := make([]*tensor.Array, 2)
			for i := range in {
				if in[i] = FrontOf(g, i, 0); g.Axes[i] < 0 {
					x := ExpandDims(g.In[i], []int{0}, g.Ctx)
					in[i] = BroadcastTo(x, tensor.Concat(kit.BatchDim(g), tensor.ShapeOf(g.In[i])), g.Ctx)
				}
			}
			a := g.Attrs
			a.Batch++
			return []*tensor.Array{searchSorted.One(g.Ctx, a, in...)}, []int{0}
		},
	})
}

var _ = sig.Def("searchsorted", "sorted_sequence values side:string=left", func(a *sig.Args) any {
	return SearchSorted(a.Array(0), a.Array(1), a.Text(2), a.Ctx)
})

// SearchSorted is the places, as uint32, at which values can be put into a sorted sequence of one dimension so that it
// stays sorted, in the order of [Sort]: before equal elements if side is "left", behind them if it is "right". Both are
// compared in their common dtype. If the sequence is not sorted, the places mean nothing. No gradient flows.
func SearchSorted(sorted, values *tensor.Array, side string, ctx ...*tensor.Ctx) *tensor.Array {
	const op = "searchsorted"
	c := tensor.Call(ctx)
	in, f := Convert(c, op, kit.AnyDType, sorted, values)
	if f != nil {
		return f
	}
	if side != "left" && side != "right" {
		return tensor.Fail(c, op, "side is %q, want \"left\" or \"right\"", side)
	}
	return searchSorted.One(c, searchAttrs{Right: side == "right"}, in...)
}

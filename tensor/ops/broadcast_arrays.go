package ops

import (
	"fmt"

	"github.com/mlxlua/mlxlua/tensor"
	"github.com/mlxlua/mlxlua/tensor/ops/kit"
	"github.com/mlxlua/mlxlua/tensor/ops/sig"
)

// broadcastWith is input 0 in the common shape of all inputs; of the others only the shapes are read.
var broadcastWith = tensor.Declare[tensor.None]("broadcast_arrays")

func init() {
	broadcastWith.Define(tensor.Rules[tensor.None]{
		Shape:    broadcastRule,
		DType:    kit.SameDType[tensor.None],
		SpecFrom: afterFirst[tensor.None],
		View: func(in []tensor.Spec, v tensor.View, _ tensor.None, out []tensor.Operand) bool {
			broadcastStrides(in[0].Shape, v, &out[0])
			return true
		},
		Gradient: func(g *tensor.VJP[tensor.None]) *tensor.Array {
			return SumTo(g.Cot[0], tensor.ShapeOf(g.In[0]), g.Ctx)
		},
		Tangent: func(g *tensor.JVP[tensor.None]) *tensor.Array {
			return BroadcastTo(g.Tan[0], tensor.ShapeOf(g.Out[0]), g.Ctx)
		},
		VMap: func(g *tensor.VMap[tensor.None]) ([]*tensor.Array, []int) {
			rank := 0
			for i := range g.In {
				rank = max(rank, kit.ExampleRank(g, i))
			}
			in := make([]*tensor.Array, len(g.In))
			for i := range in {
				in[i] = FrontOf(g, i, rank)
			}
			return []*tensor.Array{broadcastWith.One(g.Ctx, g.Attrs, in...)}, []int{0}
		},
	})
}

var _ = sig.Def("broadcast_arrays", "arrays:array...", func(a *sig.Args) any {
	return BroadcastArrays(a.Arrays(0), a.Ctx)
})

// BroadcastArrays are views of the arrays in their common shape, by NumPy's rule: see [BroadcastTo]. Nothing is
// copied, and each keeps its dtype. Shapes that have no common one are an error, which one array carries.
func BroadcastArrays(arrays []*tensor.Array, ctx ...*tensor.Ctx) []*tensor.Array {
	c := tensor.Call(ctx)
	if f := kit.Unusable(c, "broadcast_arrays", arrays...); f != nil {
		return []*tensor.Array{f}
	}
	out := make([]*tensor.Array, len(arrays))
	for i, x := range arrays {
		in := make([]*tensor.Array, 0, len(arrays))
		in = append(append(append(in, x), arrays[:i]...), arrays[i+1:]...)
		if out[i] = broadcastWith.One(c, tensor.None{}, in...); out[i].Err() != nil {
			return out[i : i+1]
		}
	}
	return out
}

var _ = sig.Def("broadcast_shapes", "shapes:intlists...", func(a *sig.Args) any {
	lists, _ := sig.As[[]any](a, 0)
	shapes := make([]tensor.Shape, len(lists))
	for i, v := range lists {
		list := v.(*sig.IntLists)
		if list.Depth != 1 {
			return a.Ctx.Errorf("broadcast_shapes", "shape %d is no list of sizes", i)
		}
		shapes[i] = list.Lists[0]
	}
	s, err := BroadcastShapes(shapes, a.Ctx)
	if err != nil {
		return err
	}
	return s
})

// BroadcastShapes is the common shape that arrays of those shapes are broadcast to, by NumPy's rule: missing dimensions
// and those of size 1 are repeated. Shapes that have no common one, negative sizes, and no shapes at all are errors.
func BroadcastShapes(shapes []tensor.Shape, ctx ...*tensor.Ctx) (tensor.Shape, error) {
	const op = "broadcast_shapes"
	c := tensor.Call(ctx)
	if len(shapes) == 0 {
		return nil, c.Errorf(op, "no shapes are given")
	}
	specs := make([]tensor.Spec, len(shapes))
	for i, s := range shapes {
		if err := s.Check(tensor.Bool); err != nil {
			return nil, c.Errorf(op, "%v", err)
		}
		specs[i].Shape = s
	}
	s, err := broadcastSpecs(specs)
	if err != nil {
		return nil, c.Errorf(op, "%v", err)
	}
	return s.Clone(), nil
}

var _ = sig.Def("meshgrid", "arrays:array... sparse:bool=false indexing:string=xy", func(a *sig.Args) any {
	return Meshgrid(a.Arrays(0), a.Bool(1), a.Text(2), a.Ctx)
})

// Meshgrid are the coordinates of the points of a grid: result i is array i, flattened, along a dimension of its own,
// repeated along those of the other arrays. They are views. Indexing "xy" gives array 0 the second dimension and
// array 1 the first one, "ij" leaves them in order. Sparse ones have size 1 along the other arrays' dimensions. Other
// words for indexing are errors, which one array carries.
func Meshgrid(arrays []*tensor.Array, sparse bool, indexing string, ctx ...*tensor.Ctx) []*tensor.Array {
	const op = "meshgrid"
	c := tensor.Call(ctx)
	if f := kit.Unusable(c, op, arrays...); f != nil {
		return []*tensor.Array{f}
	}
	if indexing != "xy" && indexing != "ij" {
		return []*tensor.Array{tensor.Fail(c, op, "indexing is %q, want \"xy\" or \"ij\"", indexing)}
	}
	out := make([]*tensor.Array, len(arrays))
	for i, x := range arrays {
		own := i
		if indexing == "xy" && i < 2 && len(arrays) > 1 {
			own = 1 - i
		}
		others := make([]int, 0, len(arrays))
		for k := range arrays {
			if k != own {
				others = append(others, k)
			}
		}
		if out[i] = ExpandDims(Flatten(x, 0, -1, c), others, c); out[i].Err() != nil {
			return out[i : i+1]
		}
	}
	if sparse {
		return out
	}
	return BroadcastArrays(out, c)
}

// atLeast are the arrays with at least rank dimensions: the new ones stand at those places for each rank before.
func atLeast(name string, places [][]int) *sig.Func {
	rank := len(places)
	return sig.Def(name, "arys:array...", func(a *sig.Args) any {
		out := atLeastOf(a.Ctx, name, a.Arrays(0), places)
		if len(out) == 1 {
			return out[0]
		}
		return sig.Table(out)
	}, sig.Doc(fmt.Sprintf("Atleast%dD", rank)))
}

func atLeastOf(c *tensor.Ctx, op string, arrays []*tensor.Array, places [][]int) []*tensor.Array {
	if f := kit.Unusable(c, op, arrays...); f != nil {
		return []*tensor.Array{f}
	}
	out := make([]*tensor.Array, len(arrays))
	for i, x := range arrays {
		if out[i] = x; x.NDim() < len(places) {
			out[i] = ExpandDims(x, places[x.NDim()], c)
		}
	}
	return out
}

// The places of new dimensions, for arrays of no, one and two dimensions.
var (
	upTo1 = [][]int{{0}}
	upTo2 = [][]int{{0, 1}, {0}}
	upTo3 = [][]int{{0, 1, 2}, {0, 2}, {2}}
	_     = atLeast("atleast_1d", upTo1)
	_     = atLeast("atleast_2d", upTo2)
	_     = atLeast("atleast_3d", upTo3)
)

// Atleast1D are the arrays, scalars as views with one dimension; in a script one array gives one, several a table.
func Atleast1D(arys []*tensor.Array, ctx ...*tensor.Ctx) []*tensor.Array {
	return atLeastOf(tensor.Call(ctx), "atleast_1d", arys, upTo1)
}

// Atleast2D are the arrays, those of fewer than two dimensions as views with two: a vector becomes a row. In a script
// one array gives one, several a table.
func Atleast2D(arys []*tensor.Array, ctx ...*tensor.Ctx) []*tensor.Array {
	return atLeastOf(tensor.Call(ctx), "atleast_2d", arys, upTo2)
}

// Atleast3D are the arrays, those of fewer than three dimensions as views with three: a vector of n elements gets shape
// (1, n, 1), a matrix a last dimension of 1. In a script one array gives one, several a table.
func Atleast3D(arys []*tensor.Array, ctx ...*tensor.Ctx) []*tensor.Array {
	return atLeastOf(tensor.Call(ctx), "atleast_3d", arys, upTo3)
}

package products

import (
	"fmt"
	"math"

	"github.com/mlxlua/mlxlua/tensor"
	"github.com/mlxlua/mlxlua/tensor/ops"
	"github.com/mlxlua/mlxlua/tensor/ops/kit"
	"github.com/mlxlua/mlxlua/tensor/ops/kit/panels"
	"github.com/mlxlua/mlxlua/tensor/ops/sig"
)

// segmentedAttrs: the first Batch dimensions of a, b and the segments, each of size 1 or the batch's, are a batch.
type segmentedAttrs struct{ Batch int }

// segmentedMM takes a, b, of one dtype, and segments.
var segmentedMM = tensor.Declare[segmentedAttrs]("segmented_mm")

func init() {
	segmentedMM.Define(tensor.Rules[segmentedAttrs]{
		Shape: func(in []tensor.Spec, attrs segmentedAttrs, outs []tensor.Shape) ([]tensor.Shape, error) {
			n := attrs.Batch
			a, b, segments := in[0].Shape, in[1].Shape, in[2].Shape
			if len(a) != n+2 || len(b) != n+2 {
				return nil, fmt.Errorf("a and b need two dimensions: a %v, b %v", a[n:], b[n:])
			}
			if a[n+1] != b[n] {
				return nil, fmt.Errorf("inner dimensions differ: a %v, b %v", a[n:], b[n:])
			}
			last := len(segments) - 1
			if last < n || segments[last] != 2 {
				return nil, fmt.Errorf("segments need a start and an end each in their last dimension: shape %v",
					segments[n:])
			}
			batch, err := tensor.Broadcast(a[:n], b[:n])
			if err == nil {
				batch, err = tensor.Broadcast(batch, segments[:n])
			}
			return append(outs, append(append(batch.Clone(), segments[n:last]...), a[n], b[n+1])), err
		},
		IndicesFrom: func(segmentedAttrs, int) int { return 2 },
		DType: func(in []tensor.Spec, _ segmentedAttrs, outs []tensor.DType) ([]tensor.DType, error) {
			if err := kit.CheckIndex(in[2].DType); err != nil {
				return nil, err
			}
			return kit.OneDTypeOf(outs, in[:2]...)
		},
		Run: runSegmentedMM,
		VJP: segmentedVJP,
		JVP: func(g *tensor.JVP[segmentedAttrs]) []*tensor.Array {
			var sum *tensor.Array
			if g.Tan[0] != nil {
				sum = segmentedMM.One(g.Ctx, g.Attrs, g.Tan[0], g.In[1], g.In[2])
			}
			if g.Tan[1] != nil {
				sum = ops.AddTerm(g.Ctx, sum, segmentedMM.One(g.Ctx, g.Attrs, g.In[0], g.Tan[1], g.In[2]))
			}
			return []*tensor.Array{sum}
		},
		VMap: func(g *tensor.VMap[segmentedAttrs]) ([]*tensor.Array, []int) {
			in := make([]*tensor.Array, len(g.In))
			for i, axis := range g.Axes {
				if axis < 0 {
					in[i] = ops.ExpandDims(g.In[i], []int{0}, g.Ctx)
				} else {
					in[i] = ops.FrontOf(g, i, 0)
				}
			}
			return []*tensor.Array{segmentedMM.One(g.Ctx, segmentedAttrs{g.Attrs.Batch + 1}, in...)}, []int{0}
		},
	})
}

func runSegmentedMM(r *tensor.Run, attrs segmentedAttrs) error {
	a, b, segments, out := r.In[0], r.In[1], r.In[2], r.Out[0]
	n, last := attrs.Batch, len(out.Shape)-1
	batch, rows, cols := out.Shape[:last-1], out.Shape[last-1], out.Shape[last]
	// A matrix is the same for all segments of its example.
	over := func(o tensor.Operand, dims int) []int {
		strides := make([]int, len(batch))
		for i := range dims {
			if o.Shape[i] > 1 {
				strides[i] = o.Strides[i]
			}
		}
		return strides
	}
	dims := kit.Collapse(batch, over(a, n), over(b, n), over(segments, len(batch)))
	notes, err := kit.NewNotes(r, 2)
	if err != nil {
		return err
	}
	depth := a.Shape[n+1]
	strides := kit.Params{}.Long(a.Strides[n], a.Strides[n+1], 0, b.Strides[n], b.Strides[n+1], 0, 0, 0).
		Uint(rows, depth, cols)
	args := func(p kit.Params) []tensor.Arg {
		return []tensor.Arg{a.Arg(), b.Arg(), out.Arg(), segments.Arg(),
			tensor.Const(int64(segments.Strides[len(batch)])), p.Arg(), dims.Shape(), dims.Strides(0), dims.Strides(1),
			dims.Strides(2), notes.Arg(0)}
	}
	if err := segmentedKernel(r, b, [3]int{batch.Size(), rows, cols}, strides, dims.N, args); err != nil {
		return err
	}
	notes.Check(r.OpName(), func(i int, place string) string {
		return fmt.Sprintf("the %s %s of a segment is out of range for %d columns of a",
			[...]string{"start", "end"}[i], place, depth)
	})
	return nil
}

// segmentedKernel launches a kernel for the host's processors where kernels run on these, elsewhere the plain one, for
// a batch of rows by columns in ndim dimensions.
func segmentedKernel(r *tensor.Run, b tensor.Operand, size [3]int, strides kit.Params, ndim int,
	args func(p kit.Params) []tensor.Arg) error {
	d, index := r.Out[0].DType, r.In[2].DType
	if !r.Info().Host {
		v := plainVariant{panels.ElementsOf(d), orderOf(b, true), index, index}
		over, err := overElements(v.Order, size[1], size[2], size[0])
		if err != nil {
			return err
		}
		return plainKernels.Launch(r, v, "segmented_mm", over, args(strides.Uint(ndim))...)
	}
	v, blocks, each := chooseRows(b, d, size[1])
	v.LHS, v.RHS = index, index
	if err := kit.CheckCount(size[0], math.MaxUint32/blocks, "segments"); err != nil {
		return err
	}
	over := kit.Simds((size[2]+each-1)/each, size[0]*blocks, 8)
	return gatherKernels.Launch(r, v, "segmented_mm", over, args(strides.Uint(blocks, ndim))...)
}

// segmentedVJP multiplies the cotangents of all segments by the whole other matrix and adds up, for each place along
// the inner dimension, those of the segments that it is in.
func segmentedVJP(g *tensor.VJP[segmentedAttrs]) []*tensor.Array {
	c, n := g.Ctx, g.Attrs.Batch
	segments, cot := ops.ExpandDims(g.In[2], []int{n}, c), ops.ExpandDims(g.Cot[0], []int{n}, c)
	segments, cot = ops.Flatten(segments, n, -2, c), ops.Flatten(cot, n, -3, c) // (batch, segments, ...)
	end := func(i int) *tensor.Array {
		return ops.Take(segments, ops.Number(float64(i), tensor.Int32, c), new(-1), c)
	}
	places := ops.Iota(c, tensor.DimOf(g.In[1], n))
	starts, ends := ops.ExpandDims(end(0), []int{-1}, c), ops.ExpandDims(end(1), []int{-1}, c)
	inside := ops.LogicalAnd(ops.GreaterEqual(places, starts, c), ops.Less(places, ends, c), c) // (batch, segments, inner)
	turned := func(x *tensor.Array) *tensor.Array {
		return ops.ExpandDims(ops.SwapAxes(x, -1, -2, c), []int{n}, c)
	}
	grads := make([]*tensor.Array, 3)
	add := func(i, across int, y *tensor.Array) {
		y = ops.Where(ops.ExpandDims(inside, []int{across}, c), y, ops.Scalar(0, y, c), c)
		grads[i] = ops.SumTo(ops.Sum(y, []int{n}, false, c), tensor.ShapeOf(g.In[i]), c)
	}
	if g.Want[0] {
		add(0, -2, ops.Matmul(cot, turned(g.In[1]), c))
	}
	if g.Want[1] {
		add(1, -1, ops.Matmul(turned(g.In[0]), cot, c))
	}
	return grads
}

var _ = sig.Def("segmented_mm", "a b segments:indices", func(a *sig.Args) any {
	return SegmentedMM(a.Array(0), a.Array(1), a.Array(2), a.Ctx)
})

// SegmentedMM cuts the inner dimension of the product of two matrices into segments and gives the product of each:
// that of a's columns and b's rows from a start to an end, without the end. segments holds both in its last dimension,
// of size 2; its other dimensions are the result's before the rows and columns. Segments may overlap, and leave places
// out; one that ends where it starts, or before, gives zeros. A start or an end below 0 or above the size of the inner
// dimension is an error when the result is computed. The common dtype of a and b must be a real floating-point one;
// half types are added up in float32. Gradients flow to a and b.
func SegmentedMM(a, b, segments *tensor.Array, ctx ...*tensor.Ctx) *tensor.Array {
	const op = "segmented_mm"
	c := tensor.Call(ctx)
	in, f := ops.Convert(c, op, kit.Floats("the common dtype of a and b is"), a, b)
	if f != nil {
		return f
	}
	return segmentedMM.One(c, segmentedAttrs{}, in[0], in[1], segments)
}

package fast

import (
	_ "embed"
	"fmt"
	"math"

	"github.com/mlxlua/mlxlua/tensor"
	"github.com/mlxlua/mlxlua/tensor/ops"
	"github.com/mlxlua/mlxlua/tensor/ops/kit"
	"github.com/mlxlua/mlxlua/tensor/ops/sig"
)

// ropeAttrs describe a rotary encoding. Its inputs are x (examples, ..., positions, elements), offsets (a scalar,
// or one for each example) as int32 and, unless Base is used, the reciprocal frequencies in the dtype of computing.
type ropeAttrs struct {
	Dims        int
	Traditional bool
	Base        tensor.F64
	Scale       tensor.F64
	Inverse     bool
}

var (
	rope = tensor.Declare[ropeAttrs]("rope")
	//go:embed rope.metal
	ropeText    string
	ropeKernels = kit.NewKernels[ropeVariant](ropeText)
)

func init() {
	rope.Define(tensor.Rules[ropeAttrs]{
		Shape: func(in []tensor.Spec, a ropeAttrs, outs []tensor.Shape) ([]tensor.Shape, error) {
			s := in[0].Shape
			return append(outs, s), checkRope(in, a)
		},
		DType: kit.SameDType[ropeAttrs],
		Run:   runRope,
		VJP: func(g *tensor.VJP[ropeAttrs]) []*tensor.Array {
			grads := make([]*tensor.Array, len(g.In))
			back := g.Attrs
			back.Inverse = !back.Inverse
			if g.Want[0] {
				grads[0] = rope.One(g.Ctx, back, append([]*tensor.Array{g.Cot[0]}, g.In[1:]...)...)
			}
			if len(g.In) > 2 && g.Want[2] {
				grads[2] = ropeFreqsVJP(g)
			}
			return grads
		},
		VMap: vmapRope,
	})
}

func checkRope(in []tensor.Spec, a ropeAttrs) error {
	s := in[0].Shape
	if len(s) < 3 {
		return fmt.Errorf("x has shape %v, it needs 3 dimensions or more", s)
	}
	if last := s[len(s)-1]; a.Dims < 2 || a.Dims%2 != 0 || a.Dims > last {
		return fmt.Errorf("dims is %d, want an even number from 2 to the last dimension of x %v", a.Dims, s)
	}
	if o := in[1].Shape; len(o) > 1 || len(o) == 1 && o[0] != 1 && o[0] != s[0] {
		return fmt.Errorf("offset has shape %v, want a scalar or one for each of the %d examples", o, s[0])
	}
	if len(in) > 2 {
		if f := in[2].Shape; len(f) != 1 || f[0] != a.Dims/2 {
			return fmt.Errorf("freqs has shape %v, want (%d,)", f, a.Dims/2)
		}
	}
	return nil
}

// ropeHeads is how many heads a thread turns.
const ropeHeads = 4

type ropeVariant struct {
	T, ACC                      tensor.DType
	heads                       int
	traditional, freqs, inverse bool
}

func runRope(r *tensor.Run, a ropeAttrs) error {
	out := r.Out[0]
	x := r.In[0]
	if len(x.Shape) > 4 {
		var err error
		if x, err = r.Contiguous(0); err != nil {
			return err
		}
	}
	offsets, err := r.Contiguous(1)
	if err != nil {
		return err
	}
	rank := len(x.Shape)
	examples, positions, size := x.Shape[0], x.Shape[rank-2], x.Shape[rank-1]
	heads := x.Shape[1 : rank-2].Size()
	blocks := (heads + ropeHeads - 1) / ropeHeads
	if err := kit.CheckCount(max(positions, size, heads), math.MaxInt32, "elements along a dimension"); err != nil {
		return err
	}
	if err := kit.CheckCount(blocks*examples, math.MaxUint32, "parts of examples"); err != nil {
		return err
	}
	d, acc := out.DType, kit.Accumulator(out.DType)
	freqs := len(r.In) > 2
	headStride := 0
	if rank > 3 { // of more dimensions x is contiguous
		headStride = x.Strides[rank-3]
	}
	half, offset := a.Dims/2, 0
	if len(offsets.Shape) == 1 && offsets.Shape[0] > 1 {
		offset = 1
	}
	exponent := 0.0
	if !freqs {
		exponent = -math.Log2(a.Base.Float()) / float64(half)
	}
	params := kit.Params{}.Long(x.Strides[0], headStride, x.Strides[rank-2], x.Strides[rank-1], positions, size).
		Uint(heads, half, offset).Float(acc, a.Scale.Float(), exponent)
	args := []tensor.Arg{x.Arg(), offsets.Arg()}
	if freqs {
		f, err := r.Contiguous(2)
		if err != nil {
			return err
		}
		args = append(args, f.Arg())
	}
	args = append(args, out.Arg(), params.Arg(), kit.Uint(blocks))
	v := ropeVariant{d, acc, ropeHeads, a.Traditional, freqs, a.Inverse}
	return ropeKernels.Launch(r, v, "rope", kit.Tiles(half+size-a.Dims, positions, examples*blocks), args...)
}

// ropeFreqsVJP is the gradient of the frequencies f: the angle is position/f, whose derivative is -angle/f, and the
// derivative of a turned pair by the angle is the pair turned by a right angle more.
func ropeFreqsVJP(g *tensor.VJP[ropeAttrs]) *tensor.Array {
	c, f := g.Ctx, g.In[2]
	acc := f.DType()
	turned := func(x *tensor.Array) (a, b *tensor.Array) {
		x = ops.Slice(ops.AsType(x, acc, c), []ops.Part{ops.Ellipsis(), ops.Span(0, g.Attrs.Dims, 1)}, c)
		if g.Attrs.Traditional {
			return ops.Slice(x, []ops.Part{ops.Ellipsis(), ops.Span(0, ops.None, 2)}, c),
				ops.Slice(x, []ops.Part{ops.Ellipsis(), ops.Span(1, ops.None,
					2)}, c)
		}
		halves := ops.Split(x, 2, -1, c)
		return halves[0], halves[1]
	}
	ya, yb := turned(g.Out[0])
	ca, cb := turned(g.Cot[0])
	slope := ops.Subtract(ops.Multiply(cb, ya, c), ops.Multiply(ca, yb, c), c)
	if g.Attrs.Inverse {
		slope = ops.Negative(slope, c)
	}
	angle := ops.Divide(ropePositions(c, g.In[0], g.In[1], g.Attrs.Scale, acc), f, c)
	return ops.Negative(ops.Divide(ops.SumTo(ops.Multiply(slope, angle, c), tensor.ShapeOf(f), c), f, c), c)
}

// ropePositions are the scaled positions of x's rows, in a shape that broadcasts to x's.
func ropePositions(c *tensor.Ctx, x, offset *tensor.Array, scale tensor.F64, acc tensor.DType) *tensor.Array {
	at := ops.IotaAlong(c, x, x.NDim()-2)
	if offset.NDim() == 1 { // one for each example
		after := make([]int, x.NDim()-1)
		for i := range after {
			after[i] = i + 1
		}
		offset = ops.ExpandDims(offset, after, c)
	}
	return ops.Multiply(ops.AsType(ops.Add(at, offset, c), acc, c), ops.Number(scale.Float(), acc, c), c)
}

func vmapRope(g *tensor.VMap[ropeAttrs]) ([]*tensor.Array, []int) {
	c := g.Ctx
	x := ops.FrontOf(g, 0, 0)
	if len(g.In) > 2 && g.Axes[2] >= 0 {
		return []*tensor.Array{vmapRopeFreqs(g, x)}, []int{0}
	}
	if kit.ExampleRank(g, 1) == 0 && g.Axes[1] < 0 {
		// One offset for all: the batch's first dimension stands for the examples.
		return []*tensor.Array{rope.One(c, g.Attrs, append([]*tensor.Array{x}, g.In[1:]...)...)}, []int{0}
	}
	// The batch and its examples become examples, each with its offset.
	offset := ops.FrontOf(g, 1, 1)
	offset = ops.Flatten(ops.BroadcastTo(offset, tensor.Concat(tensor.DimOf(x, 0), tensor.DimOf(x, 1)), c), 0, 1, c)
	in := append([]*tensor.Array{ops.Flatten(x, 0, 1, c), offset}, g.In[2:]...)
	return []*tensor.Array{ops.Reshape(rope.One(c, g.Attrs, in...), tensor.ShapeOf(x), c)}, []int{0}
}

// vmapRopeFreqs serves a batch of frequencies, by ops: x has the batch axis first.
func vmapRopeFreqs(g *tensor.VMap[ropeAttrs], x *tensor.Array) *tensor.Array {
	c, acc, rank := g.Ctx, g.In[2].DType(), x.NDim()
	freqs := ops.FrontOf(g, 2, rank-1)
	offset := ops.FrontOf(g, 1, 1) // (batch, 1 or examples)
	after := make([]int, rank-2)
	for i := range after {
		after[i] = i + 2
	}
	at := ops.Add(ops.IotaAlong(c, x, rank-2), ops.ExpandDims(offset, after, c), c)
	angle := ops.Divide(ops.Multiply(ops.AsType(at, acc, c), ops.Number(g.Attrs.Scale.Float(), acc, c), c), freqs, c)
	cos, sin := ops.Cos(angle, c), ops.Sin(angle, c)
	if g.Attrs.Inverse {
		sin = ops.Negative(sin, c)
	}
	part := func(v *tensor.Array, start, stop, step int) *tensor.Array {
		return ops.Slice(v, []ops.Part{ops.Ellipsis(), ops.Span(start, stop, step)}, c)
	}
	first, second := part(x, 0, g.Attrs.Dims/2, 1), part(x, g.Attrs.Dims/2, g.Attrs.Dims, 1)
	if g.Attrs.Traditional {
		first, second = part(x, 0, g.Attrs.Dims, 2), part(x, 1, g.Attrs.Dims, 2)
	}
	a, b := ops.AsType(first, acc, c), ops.AsType(second, acc, c)
	a, b = ops.Subtract(ops.Multiply(a, cos, c), ops.Multiply(b, sin, c), c),
		ops.Add(ops.Multiply(a, sin, c), ops.Multiply(b, cos, c), c)
	var y *tensor.Array
	if g.Attrs.Traditional {
		y = ops.Flatten(ops.Stack([]*tensor.Array{a, b}, -1, c), -2, -1, c)
	} else {
		y = ops.Concatenate([]*tensor.Array{a, b}, new(-1), c)
	}
	return ops.Concatenate([]*tensor.Array{ops.AsType(y, x.DType(), c), part(x, g.Attrs.Dims, ops.None, 1)}, new(-1), c)
}

// RoPEOptions are the arguments of RoPE.
type RoPEOptions struct {
	// Dims is how many elements of a row are turned: even, 2 or more.
	Dims int
	// Traditional turns neighbouring elements as a pair; otherwise element i goes with element i + Dims/2.
	Traditional bool
	// Base gives the frequencies: pair i turns by Base^(-2i/Dims) at each position. Either it or Freqs is given.
	Base *float64
	// Freqs are the reciprocal frequencies, one for each pair; nil: Base gives them.
	Freqs *tensor.Array
	// Scale multiplies the positions.
	Scale float64
	// Offset is added to the positions before: an integer array, a scalar or one number for each example; nil: 0.
	Offset *tensor.Array
}

var _ = sig.Def("fast.rope",
	"a dims:int traditional:bool=false base:number? scale:number=1 offset:array? freqs:array?",
	func(a *sig.Args) any {
		return RoPE(a.Array(0), RoPEOptions{Dims: a.Int(1), Traditional: a.Bool(2), Base: a.NumberOrNone(3),
			Scale: a.Number(4), Offset: a.Array(5), Freqs: a.Array(6)}, a.Ctx)
	})

// RoPE is rotary positional encoding of a, whose shape is (examples, ..., positions, elements): pairs of elements of a
// row are turned by an angle that grows with the position. The first dims elements of a row are turned, neighbours as a
// pair if traditional is true, else element i with element i + dims/2; pair i by base^(-2i/dims) at each position, or
// by the reciprocal of element i of freqs. The position is offset (none: 0; an integer, or one for each example) plus
// the place in the row of positions, times scale. The dtype is a's and must be floating-point; the half types are
// computed in float32 and rounded once. Fewer than three dimensions, a dims that is odd, below 2 or more than the last
// dimension, an offset that is no integer or of another shape, and both or none of base and freqs are errors. Gradients
// flow to a and to freqs.
func RoPE(a *tensor.Array, opt RoPEOptions, ctx ...*tensor.Ctx) *tensor.Array {
	const op = "rope"
	c := tensor.Call(ctx)
	in, f := ops.Convert(c, op, kit.Floats("a has dtype"), a)
	if f != nil {
		return f
	}
	if (opt.Base == nil) == (opt.Freqs == nil) {
		return tensor.Fail(c, op, "want either base or freqs, not both or none")
	}
	if opt.Offset == nil {
		opt.Offset = ops.Number(0, tensor.Int32, c)
	}
	if f := kit.Unusable(c, op, opt.Offset); f != nil {
		return f
	}
	if f := kit.Integers("offset has dtype").Refused(c, op, opt.Offset.DType()); f != nil {
		return f
	}
	in = append(in, ops.AsType(opt.Offset, tensor.Int32, c))
	attrs := ropeAttrs{Dims: opt.Dims, Traditional: opt.Traditional, Scale: tensor.MakeF64(opt.Scale)}
	if opt.Base != nil {
		attrs.Base = tensor.MakeF64(*opt.Base)
	} else {
		if f := kit.Unusable(c, op, opt.Freqs); f != nil {
			return f
		}
		in = append(in, ops.AsType(opt.Freqs, kit.Accumulator(a.DType()), c))
	}
	return rope.One(c, attrs, in...)
}

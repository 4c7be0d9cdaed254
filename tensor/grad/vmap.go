package grad

import (
	"math"
	"slices"

	"github.com/mlxlua/mlxlua/tensor"
	"github.com/mlxlua/mlxlua/tensor/ops"
)

// NoAxis in VMap's axes: the input has no batch axis, or the output must not have one.
const NoAxis = math.MinInt

// VMap is f over a batch: f sees inputs without their batch axes, and the outputs get one. inAxes has an axis for
// each input, negative ones counted from the end, NoAxis for inputs that all calls share; outAxes likewise for the
// outputs (an output that does not depend on the batch is repeated). nil means 0 for all. All batch axes must have
// one size.
func VMap(f Func, inAxes, outAxes []int, ctx ...*tensor.Ctx) Func {
	outAxes = slices.Clone(outAxes)
	return VMapTo(f, inAxes, func() ([]int, error) { return outAxes, nil }, tensor.Call(ctx))
}

// VMapTo is as VMap, and asks for the outputs' axes when f has been called: they may depend on what f has returned.
func VMapTo(f Func, inAxes []int, outAxes func() ([]int, error), ctx ...*tensor.Ctx) Func {
	c := tensor.Call(ctx)
	inAxes = slices.Clone(inAxes)
	return func(in []*tensor.Array) ([]*tensor.Array, error) {
		axes, size, err := batchAxes(c, in, inAxes)
		if err != nil {
			return nil, err
		}
		b := &batch{holder: c.Holder, size: size, to: map[tensor.Value]batched{}}
		defer c.Building()()
		trace := tensor.NewTrace("vmap", b.onRead)
		defer trace.End()
		args := slices.Clone(in)
		for i, x := range in {
			if axes[i] < 0 {
				continue
			}
			s := x.Spec()
			s.Shape = slices.Delete(s.Shape.Clone(), axes[i], axes[i]+1)
			args[i] = trace.Placeholder(c, s)
			b.to[args[i].Value()] = batched{x, axes[i]}
			b.sized = batched{x, axes[i]}
		}
		outs, err := call(c, "vmap", f, args)
		if err != nil {
			return nil, err
		}
		to, err := outAxes()
		if err != nil {
			return nil, err
		}
		b.closed = true
		if err := b.run(c, trace, outs); err != nil {
			return nil, err
		}
		return b.outputs(c, outs, to)
	}
}

// batchAxes normalises the axes (-1: none) and gives the batch's size.
func batchAxes(c *tensor.Ctx, in []*tensor.Array, inAxes []int) (axes []int, size int, err error) {
	if inAxes != nil && len(inAxes) != len(in) {
		return nil, 0, c.Errorf("vmap", "the function has %s, but the number of in_axes is %d",
			tensor.Count(len(in), "input"), len(inAxes))
	}
	if err := firstError(c, "vmap", "argument", in); err != nil {
		return nil, 0, err
	}
	axes, size = make([]int, len(in)), -1
	for i, x := range in {
		axis := 0
		if inAxes != nil {
			axis = inAxes[i]
		}
		if axis == NoAxis {
			axes[i] = -1
			continue
		}
		shape := x.Spec().Shape
		if axes[i], err = tensor.Axis(axis, len(shape)); err != nil {
			return nil, 0, c.Errorf("vmap", "input %d of shape %v has no axis %d", i, shape, axis)
		}
		n := shape[axes[i]]
		if size >= 0 && n != size {
			return nil, 0, c.Errorf("vmap", "batch axes differ in size: %d and, for input %d of shape %v, %d", size, i, shape, n)
		}
		size = n
	}
	if size < 0 {
		return nil, 0, c.Errorf("vmap", "no input has a batch axis")
	}
	return axes, size, nil
}

// batched is an array that stands for one without its batch axis; -1: it has none.
type batched struct {
	x    *tensor.Array
	axis int
}

// batch builds the graph over the batch from the one that f built.
type batch struct {
	holder *tensor.Holder
	size   int
	sized  batched // an input with a batch axis, for the batch's size
	to     map[tensor.Value]batched
	reads  []read
	closed bool
}

// read is a dimension of an array in the trace that someone read as a number.
type read struct {
	x    *tensor.Array
	axis int
}

func (b *batch) onRead(x *tensor.Array, axis int) {
	if !b.closed {
		b.reads = append(b.reads, read{x, axis})
	}
}

func (b *batch) run(c *tensor.Ctx, trace *tensor.Trace, outs []*tensor.Array) error {
	roots := slices.Clone(outs)
	for _, r := range b.reads {
		roots = append(roots, r.x)
	}
	nodes, err := nodesOf(c, trace, roots, 0)
	if err != nil {
		return err
	}
	groups := groupsOf(nodes)
	for _, n := range nodes {
		if _, done := b.to[tensor.Value{Node: n}]; done {
			continue
		}
		if g := groups[n]; g != nil {
			if done, err := b.group(g); err != nil {
				return err
			} else if done {
				continue
			}
		}
		if err := b.node(n); err != nil {
			return err
		}
	}
	// What f read of its arrays it has read of those that they stand for: a surrounding trace must know.
	for _, r := range b.reads {
		y := b.to[r.x.Value()]
		axis := r.axis
		if y.axis >= 0 && axis >= y.axis {
			axis++
		}
		if _, err := y.x.Read(axis); err != nil {
			return err
		}
	}
	return nil
}

// inputs gives what stands for values, and their batch axes.
func (b *batch) inputs(c *tensor.Ctx, values []tensor.Value) (in []*tensor.Array, axes []int, any bool) {
	in, axes = make([]*tensor.Array, len(values)), make([]int, len(values))
	for i, v := range values {
		if y, ok := b.to[v]; ok {
			in[i], axes[i] = y.x, y.axis
		} else {
			in[i], axes[i] = v.Node.Handle(c, v.Out), -1
		}
		any = any || axes[i] >= 0
	}
	return in, axes, any
}

func (b *batch) node(n *tensor.Node) error {
	c := ctxOf(b.holder, n)
	in, axes, any := b.inputs(c, n.Inputs())
	var out []*tensor.Array
	var outAxes []int
	var err error
	switch {
	case !any:
		out, outAxes = n.Replay(c, in), slices.Repeat([]int{-1}, n.NumOut())
	case n.HasVMap():
		out, outAxes, err = n.CallVMap(c, in, axes, b.size)
	case n.IsElementwise():
		var axis int
		in, axis = alignBatch(c, in, axes)
		out, outAxes = n.Replay(c, in), []int{axis}
	case n.Op().HasFormula():
		out, err = VMap(formulaOf(c, n), batchAxesOf(axes), nil, c)(in)
		outAxes = make([]int, len(out))
	default:
		err = c.Errorf("vmap", "%s has no batching rule: give it one with custom_function", n.Op().Name())
	}
	if err != nil {
		return err
	}
	if err := firstError(c, "vmap", "output", out); err != nil {
		return err
	}
	if len(out) != n.NumOut() || len(outAxes) != n.NumOut() {
		return c.Errorf("vmap", "BUG: the rule of %s gives %d outputs of %d", n.Op().Name(), len(out), n.NumOut())
	}
	for i, y := range out {
		v := tensor.Value{Node: n, Out: i}
		s := y.Spec()
		if outAxes[i] >= 0 && outAxes[i] < len(s.Shape) {
			s.Shape = slices.Delete(s.Shape.Clone(), outAxes[i], outAxes[i]+1)
		}
		if want := v.Spec(); s.DType != want.DType || !s.Shape.Equal(want.Shape) {
			return c.Errorf("vmap", "BUG: %s: output %d is %v with batch axis %d, must be %v",
				n.Op().Name(), i, y.Spec(), outAxes[i], want)
		}
		b.to[v] = batched{y, outAxes[i]}
	}
	return nil
}

// batchAxesOf turns the axes of a rule, where -1 is none, into those of VMap.
func batchAxesOf(axes []int) []int {
	out := slices.Clone(axes)
	for i, axis := range out {
		if axis < 0 {
			out[i] = NoAxis
		}
	}
	return out
}

// alignBatch makes operands that broadcast against each other do so over a batch too, and gives the result's batch
// axis. Batch axes are compared by their distance from the end, for that is how broadcasting lines axes up.
func alignBatch(c *tensor.Ctx, in []*tensor.Array, axes []int) ([]*tensor.Array, int) {
	in = slices.Clone(in)
	rank, fromEnd, same := 0, -1, true
	for i, x := range in {
		r := x.NDim()
		if axes[i] >= 0 {
			r--
			e := r - axes[i]
			same = same && (fromEnd < 0 || e == fromEnd)
			fromEnd = e
		}
		rank = max(rank, r)
	}
	if !same {
		fromEnd = rank // the batch axis comes first
		for i, x := range in {
			if axes[i] < 0 {
				continue
			}
			x = ops.MoveAxis(x, axes[i], 0, c)
			if missing := rank - (x.NDim() - 1); missing > 0 {
				fill := make([]int, missing)
				for k := range fill {
					fill[k] = k + 1
				}
				x = ops.ExpandDims(x, fill, c)
			}
			in[i] = x
		}
	}
	for i, x := range in {
		if axes[i] < 0 && x.NDim() > fromEnd {
			in[i] = ops.ExpandDims(x, []int{x.NDim() - fromEnd}, c)
		}
	}
	return in, rank - fromEnd
}

// outputs puts the outputs' batch axes where they belong.
func (b *batch) outputs(c *tensor.Ctx, outs []*tensor.Array, outAxes []int) ([]*tensor.Array, error) {
	if outAxes != nil && len(outAxes) != len(outs) {
		return nil, c.Errorf("vmap", "the function has %s, but the number of out_axes is %d",
			tensor.Count(len(outs), "output"), len(outAxes))
	}
	res := make([]*tensor.Array, len(outs))
	for i, x := range outs {
		y, ok := b.to[x.Value()]
		if !ok {
			y = batched{x, -1}
		}
		want := 0
		if outAxes != nil {
			want = outAxes[i]
		}
		if want == NoAxis {
			if y.axis >= 0 {
				return nil, c.Errorf("vmap", "output %d has a batch axis: its out_axes cannot be none", i)
			}
			res[i] = y.x
			continue
		}
		axis, err := tensor.Axis(want, x.NDim()+1)
		if err != nil {
			return nil, c.Errorf("vmap", "output %d of shape %v cannot have its batch axis at %d", i, x.Spec().Shape, want)
		}
		res[i] = b.at(c, y, axis)
	}
	return res, firstError(c, "vmap", "output", res)
}

// at is y with its batch axis there, repeated along it if it has none.
func (b *batch) at(c *tensor.Ctx, y batched, axis int) *tensor.Array {
	switch {
	case y.axis == axis:
		return y.x
	case y.axis >= 0:
		return ops.MoveAxis(y.x, y.axis, axis, c)
	}
	var dims []tensor.ShapeArg
	for k := range y.x.NDim() {
		dims = append(dims, tensor.DimOf(y.x, k))
	}
	dims = slices.Insert(dims, axis, tensor.DimOf(b.sized.x, b.sized.axis))
	return ops.BroadcastTo(ops.ExpandDims(y.x, []int{axis}, c), tensor.Concat(dims...), c)
}

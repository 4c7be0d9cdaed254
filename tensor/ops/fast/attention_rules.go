package fast

import (
	"github.com/mlxlua/mlxlua/tensor"
	"github.com/mlxlua/mlxlua/tensor/ops"
	"github.com/mlxlua/mlxlua/tensor/ops/kit"
)

// The derivative and the batching rule of attention. Arrays of heads have an axis more here: (examples, kv_heads,
// group, queries, ...), where the heads of a group share their keys.

// weighed is an attention taken apart: the operands in the dtype of computing, the weights of the keys, and that of the
// sink (nil: none).
type weighed struct {
	q, k, v *tensor.Array // q times scale; k and v with a group of one
	mask    *tensor.Array // true where a score counts; nil: everywhere
	weights *tensor.Array
	sink    *tensor.Array
}

// heads splits the heads of x, which is like q in its first three dimensions.
func (w *weighed) heads(c *tensor.Ctx, x, k *tensor.Array) *tensor.Array {
	// How many heads share a key is read off an array of the heads alone: x may be empty, where any size would do for -1.
	heads := ops.Zeros(tensor.DimOf(x, 1), tensor.Bool, c)
	shared := ops.Reshape(heads, tensor.Concat(tensor.DimOf(k, 1), tensor.Sizes(-1)), c)
	shape := tensor.Concat(tensor.DimOf(x, 0), tensor.DimOf(k, 1), tensor.DimOf(shared, 1), tensor.DimOf(x, 2),
		tensor.DimOf(x, 3))
	return ops.Reshape(x, shape, c)
}

func weigh(c *tensor.Ctx, in []*tensor.Array, a attentionAttrs) *weighed {
	acc := kit.Accumulator(in[0].DType())
	q, k := in[0], in[1]
	w := &weighed{k: ops.ExpandDims(ops.AsType(k, acc, c), []int{2}, c),
		v: ops.ExpandDims(ops.AsType(in[2], acc, c), []int{2}, c)}
	w.q = ops.Multiply(w.heads(c, ops.AsType(q, acc, c), k), ops.Number(a.Scale.Float(), acc, c), c)
	scores := ops.Matmul(w.q, ops.SwapAxes(w.k, -1, -2, c), c)
	full := tensor.Concat(tensor.DimOf(q, 0), tensor.DimOf(q, 1), tensor.DimOf(q, 2), tensor.DimOf(k, 2))
	switch a.Mask {
	case causalMask:
		ahead := ops.Subtract(ops.Size(k, []int{2}, tensor.Int32, c), ops.Size(q, []int{2}, tensor.Int32, c), c)
		w.mask = ops.LessEqual(ops.IotaAlong(c, scores, 4), ops.Add(ops.IotaAlong(c, scores, 3), ahead, c), c)
	case boolMask:
		w.mask = w.heads(c, ops.BroadcastTo(in[3], full, c), k)
	case addedMask:
		scores = ops.Add(scores, w.heads(c, ops.BroadcastTo(ops.AsType(in[3], acc, c), full, c), k), c)
	}
	if w.mask != nil {
		scores = ops.Where(w.mask, scores, ops.Number(-acc.MaxFinite(), acc, c), c)
	}
	last := []int{-1}
	if !a.Sinks {
		w.weights = ops.Softmax(scores, last, c)
		return w
	}
	top := ops.MaxOrLowest(scores, last, true, c)
	s := ops.AsType(in[len(in)-1], acc, c)
	s = ops.Reshape(s, tensor.Concat(tensor.DimOf(s, 0), tensor.DimOf(k, 1), tensor.Sizes(-1, 1, 1)), c)
	top = ops.StopGradient(ops.Maximum(top, s, c), c)
	e, rest := ops.Exp(ops.Subtract(scores, top, c), c), ops.Exp(ops.Subtract(s, top, c), c)
	total := ops.Add(ops.Sum(e, last, true, c), rest, c)
	w.weights, w.sink = ops.Divide(e, total, c), ops.Divide(rest, total, c)
	return w
}

// shared adds up what the heads of a group have for x, keys or values that they share. Where a group is one head there
// is nothing to add.
func (w *weighed) shared(c *tensor.Ctx, heads, x *tensor.Array) *tensor.Array {
	return ops.Squeeze(ops.SumTo(heads, tensor.ShapeOf(x), c), []int{2}, c)
}

func attentionVJP(g *tensor.VJP[attentionAttrs]) []*tensor.Array {
	grads := make([]*tensor.Array, len(g.In))
	c, a, d := g.Ctx, g.Attrs, g.In[0].DType()
	acc := kit.Accumulator(d)
	w := weigh(c, g.In, a)
	cot := w.heads(c, ops.AsType(g.Cot[0], acc, c), g.In[1])
	set := func(i int, x *tensor.Array) { grads[i] = ops.AsType(x, d, c) }
	if g.Want[2] {
		set(2, w.shared(c, ops.Matmul(ops.SwapAxes(w.weights, -1, -2, c), cot, c), w.v))
	}
	dw := ops.Matmul(cot, ops.SwapAxes(w.v, -1, -2, c), c)
	mean := ops.Sum(ops.Multiply(dw, w.weights, c), []int{-1}, true, c)
	scores := ops.Multiply(w.weights, ops.Subtract(dw, mean, c), c)
	if w.mask != nil {
		scores = ops.Where(w.mask, scores, ops.Number(0, acc, c), c)
	}
	if g.Want[0] {
		dq := ops.Multiply(ops.Matmul(scores, w.k, c), ops.Number(a.Scale.Float(), acc, c), c)
		set(0, ops.Reshape(dq, tensor.ShapeOf(g.In[0]), c))
	}
	if g.Want[1] {
		set(1, w.shared(c, ops.Matmul(ops.SwapAxes(scores, -1, -2, c), w.q, c), w.k))
	}
	if a.Mask == addedMask && g.Want[3] {
		x := ops.Flatten(scores, 1, 2, c)
		set(3, ops.SumTo(x, tensor.ShapeOf(g.In[3]), c))
	}
	if last := len(g.In) - 1; a.Sinks && g.Want[last] {
		x := ops.Negative(ops.Multiply(w.sink, mean, c), c)
		x = ops.Flatten(ops.Sum(x, []int{3, 4}, false, c), 1, 2, c)
		set(last, ops.SumTo(x, tensor.ShapeOf(g.In[last]), c))
	}
	return grads
}

// vmapAttention makes examples of the batch and its examples.
func vmapAttention(g *tensor.VMap[attentionAttrs]) ([]*tensor.Array, []int) {
	c := g.Ctx
	in := make([]*tensor.Array, len(g.In))
	var q, v *tensor.Array
	for i := range in {
		x := ops.FrontOf(g, i, 0)
		switch {
		case i == 0:
			q = x
		case i == 2:
			v = x
		case i == 3 && g.Attrs.maskArray() && g.Axes[i] < 0 && g.In[i].NDim() < 4:
			in[i] = g.In[i] // one mask for all examples
			continue
		case i >= 3: // one for each example, or one for all
			if i == 3 && g.Attrs.maskArray() {
				x = ops.FrontOf(g, i, 4)
			}
			shape := tensor.Concat(tensor.DimOf(x, 0), tensor.DimOf(q, 1))
			for k := 2; k < x.NDim(); k++ {
				shape = tensor.Concat(shape, tensor.DimOf(x, k))
			}
			x = ops.BroadcastTo(x, shape, c)
		}
		in[i] = ops.Flatten(x, 0, 1, c)
	}
	y := attention.One(c, g.Attrs, in...)
	shape := tensor.Concat(tensor.DimOf(q, 0), tensor.DimOf(q, 1), tensor.DimOf(q, 2), tensor.DimOf(q, 3),
		tensor.DimOf(v, 4))
	return []*tensor.Array{ops.Reshape(y, shape, c)}, []int{0}
}

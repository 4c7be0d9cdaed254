package ops

import (
	"math"

	"github.com/mlxlua/mlxlua/tensor"
)

// The derivative and the batching rule of attention. Arrays of heads have an axis more here: (examples, kv_heads,
// group,
// queries, ...), where the heads of a group share their keys.

// weighed is an attention taken apart: the operands in the dtype of computing, the weights of the keys, and that of
// the
// sink (nil: none).
type weighed struct {
	q, k, v *tensor.Array // q times scale; k and v with a group of one
	mask    *tensor.Array // true where a score counts; nil: everywhere
	weights *tensor.Array
	sink    *tensor.Array
}

// heads splits the heads of x, which is like q in its first three dimensions.
func (w *weighed) heads(c *tensor.Ctx, x, k *tensor.Array) *tensor.Array {
	shape := []tensor.ShapeArg{tensor.DimOf(x, 0), tensor.DimOf(k, 1), tensor.Sizes(-1), tensor.DimOf(x, 2),
		tensor.DimOf(x, 3)}
	return Reshape(x, tensor.Concat(shape...), c)
}

func weigh(c *tensor.Ctx, in []*tensor.Array, a attentionAttrs) *weighed {
	acc := accumulator(in[0].DType())
	q, k := in[0], in[1]
	w := &weighed{k: ExpandDims(AsType(k, acc, c), []int{2}, c), v: ExpandDims(AsType(in[2], acc, c), []int{2}, c)}
	w.q = Multiply(w.heads(c, AsType(q, acc, c), k), Number(a.Scale.Float(), acc, c), c)
	scores := Matmul(w.q, SwapAxes(w.k, -1, -2, c), c)
	full := tensor.Concat(tensor.DimOf(q, 0), tensor.DimOf(q, 1), tensor.DimOf(q, 2), tensor.DimOf(k, 2))
	switch a.Mask {
	case causalMask:
		ahead := Subtract(Size(k, []int{2}, tensor.Int32, c), Size(q, []int{2}, tensor.Int32, c), c)
		w.mask = LessEqual(iotaAlong(c, scores, 4), Add(iotaAlong(c, scores, 3), ahead, c), c)
	case boolMask:
		w.mask = w.heads(c, BroadcastTo(in[3], full, c), k)
	case addedMask:
		scores = Add(scores, w.heads(c, BroadcastTo(AsType(in[3], acc, c), full, c), k), c)
	}
	if w.mask != nil {
		lowest := -math.MaxFloat32
		if acc == tensor.Float64 {
			lowest = -math.MaxFloat64
		}
		scores = Where(w.mask, scores, Number(lowest, acc, c), c)
	}
	last := []int{-1}
	top := callReduction(c, maxOrLowest, scores, last, true)
	if !a.Sinks {
		e := Exp(Subtract(scores, StopGradient(top, c), c), c)
		w.weights = Divide(e, Sum(e, last, true, c), c)
		return w
	}
	s := AsType(in[len(in)-1], acc, c)
	s = Reshape(s, tensor.Concat(tensor.DimOf(s, 0), tensor.DimOf(k, 1), tensor.Sizes(-1, 1, 1)), c)
	top = StopGradient(Maximum(top, s, c), c)
	e, rest := Exp(Subtract(scores, top, c), c), Exp(Subtract(s, top, c), c)
	total := Add(Sum(e, last, true, c), rest, c)
	w.weights, w.sink = Divide(e, total, c), Divide(rest, total, c)
	return w
}

func attentionVJP(g *tensor.VJP[attentionAttrs]) []*tensor.Array {
	grads := make([]*tensor.Array, len(g.In))
	if g.Cot[0] == nil {
		return grads
	}
	c, a, d := g.Ctx, g.Attrs, g.In[0].DType()
	acc := accumulator(d)
	w := weigh(c, g.In, a)
	cot := w.heads(c, AsType(g.Cot[0], acc, c), g.In[1])
	set := func(i int, x *tensor.Array) { grads[i] = AsType(x, d, c) }
	if g.Want[2] {
		set(2, Sum(Matmul(SwapAxes(w.weights, -1, -2, c), cot, c), []int{2}, false, c))
	}
	dw := Matmul(cot, SwapAxes(w.v, -1, -2, c), c)
	mean := Sum(Multiply(dw, w.weights, c), []int{-1}, true, c)
	scores := Multiply(w.weights, Subtract(dw, mean, c), c)
	if w.mask != nil {
		scores = Where(w.mask, scores, Number(0, acc, c), c)
	}
	if g.Want[0] {
		dq := Multiply(Matmul(scores, w.k, c), Number(a.Scale.Float(), acc, c), c)
		set(0, Reshape(dq, tensor.ShapeOf(g.In[0]), c))
	}
	if g.Want[1] {
		set(1, Sum(Matmul(SwapAxes(scores, -1, -2, c), w.q, c), []int{2}, false, c))
	}
	if a.Mask == addedMask && g.Want[3] {
		x := Flatten(scores, 1, 2, c)
		set(3, SumTo(x, tensor.ShapeOf(g.In[3]), c))
	}
	if last := len(g.In) - 1; a.Sinks && g.Want[last] {
		x := Negative(Multiply(w.sink, mean, c), c)
		x = Flatten(Sum(x, []int{3, 4}, false, c), 1, 2, c)
		set(last, SumTo(x, tensor.ShapeOf(g.In[last]), c))
	}
	return grads
}

// vmapAttention makes examples of the batch and its examples.
func vmapAttention(g *tensor.VMap[attentionAttrs]) ([]*tensor.Array, []int) {
	c := g.Ctx
	in := make([]*tensor.Array, len(g.In))
	var q, v *tensor.Array
	for i := range in {
		x := frontOf(g, i, 0)
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
				x = frontOf(g, i, 4)
			}
			shape := tensor.Concat(tensor.DimOf(x, 0), tensor.DimOf(q, 1))
			for k := 2; k < x.NDim(); k++ {
				shape = tensor.Concat(shape, tensor.DimOf(x, k))
			}
			x = BroadcastTo(x, shape, c)
		}
		in[i] = Flatten(x, 0, 1, c)
	}
	y := attention.One(c, g.Attrs, in...)
	shape := tensor.Concat(tensor.DimOf(q, 0), tensor.DimOf(q, 1), tensor.DimOf(q, 2), tensor.DimOf(q, 3),
		tensor.DimOf(v, 4))
	return []*tensor.Array{Reshape(y, shape, c)}, []int{0}
}

package fast

import (
	"github.com/mlxlua/mlxlua/tensor"
	"github.com/mlxlua/mlxlua/tensor/ops"
	"github.com/mlxlua/mlxlua/tensor/ops/kit"
)

// The derivative of the gated delta rule goes through its steps one by one, so a trace holds for one number of steps
// and of heads.

// deltaSteps is a call taken apart, in the dtype of computing. Operands of a step are (batch, heads, width or 1, depth
// or 1).
type deltaSteps struct {
	c                        *tensor.Ctx
	q, k, v, gamma, beta     *tensor.Array
	mask                     *tensor.Array // nil: none
	steps, keyHeads, sharing int
	vector                   bool
}

// deltaStep is what the derivative needs of a step.
type deltaStep struct {
	q, k, gamma, beta, mask *tensor.Array
	before, kept            *tensor.Array // the state, and times gamma
	wrong, learnt           *tensor.Array // v minus what is known, and times beta
}

// at is step t of x, with ones at those axes.
func (d *deltaSteps) at(x *tensor.Array, t int, ones ...int) *tensor.Array {
	return ops.ExpandDims(ops.Slice(x, []ops.Part{ops.Whole(), ops.At(t)}, d.c), ones, d.c)
}

// shared repeats the key heads of x for the heads that share them.
func (d *deltaSteps) shared(x *tensor.Array) *tensor.Array {
	lead := tensor.Concat(tensor.DimOf(x, 0), tensor.DimOf(x, 1))
	wide := tensor.Concat(lead, tensor.Sizes(d.keyHeads, d.sharing), tensor.DimOf(x, 3))
	y := ops.BroadcastTo(ops.ExpandDims(x, []int{3}, d.c), wide, d.c)
	return ops.Reshape(y, tensor.Concat(lead, tensor.Sizes(d.keyHeads*d.sharing), tensor.DimOf(x, 3)), d.c)
}

// summed adds up what heads that share a key head have for it.
func (d *deltaSteps) summed(x *tensor.Array) *tensor.Array {
	shape := tensor.Concat(tensor.DimOf(x, 0), tensor.DimOf(x, 1), tensor.Sizes(d.keyHeads, d.sharing),
		tensor.DimOf(x, 3))
	return ops.Sum(ops.Reshape(x, shape, d.c), []int{3}, false, d.c)
}

// takeApart reads the sizes that the steps depend on, or returns the error of that.
func takeApart(g *tensor.VJP[deltaAttrs]) (*deltaSteps, error) {
	acc := kit.Accumulator(g.In[0].DType())
	d := &deltaSteps{c: g.Ctx, vector: g.In[3].NDim() == 4}
	var err error
	if d.steps, err = g.In[0].Dim(1); err != nil {
		return nil, err
	}
	if d.keyHeads, err = g.In[0].Dim(2); err != nil {
		return nil, err
	}
	heads, err := g.In[2].Dim(2)
	if err != nil {
		return nil, err
	}
	d.sharing = heads / max(d.keyHeads, 1)
	as := func(i int) *tensor.Array { return ops.AsType(g.In[i], acc, g.Ctx) }
	d.q, d.k, d.v, d.gamma, d.beta = d.shared(as(0)), d.shared(as(1)), as(2), as(3), as(4)
	if g.Attrs.Mask {
		d.mask = g.In[6]
	}
	return d, nil
}

// forward runs all steps from a state.
func (d *deltaSteps) forward(state *tensor.Array) []deltaStep {
	c := d.c
	steps := make([]deltaStep, d.steps)
	for t := range steps {
		s := &steps[t]
		s.q, s.k, s.beta = d.at(d.q, t, 2), d.at(d.k, t, 2), d.at(d.beta, t, 2, 3)
		if d.vector {
			s.gamma = d.at(d.gamma, t, 2)
		} else {
			s.gamma = d.at(d.gamma, t, 2, 3)
		}
		s.before, s.kept = state, ops.Multiply(state, s.gamma, c)
		s.wrong = ops.Subtract(d.at(d.v, t, 3), ops.Sum(ops.Multiply(s.kept, s.k, c), []int{3}, true, c), c)
		s.learnt = ops.Multiply(s.wrong, s.beta, c)
		state = ops.Add(s.kept, ops.Multiply(s.learnt, s.k, c), c)
		if d.mask != nil {
			s.mask = d.at(d.mask, t, 1, 2, 3)
			state = ops.Where(s.mask, state, s.before, c)
		}
	}
	return steps
}

func deltaVJP(g *tensor.VJP[deltaAttrs]) []*tensor.Array {
	grads := make([]*tensor.Array, len(g.In))
	d, err := takeApart(g)
	if err != nil {
		grads[0] = tensor.Fail(g.Ctx, "gated_delta_update", "%w", err)
		return grads
	}
	c := g.Ctx
	dt, acc := g.In[0].DType(), kit.Accumulator(g.In[0].DType())
	initial := ops.AsType(g.In[5], acc, c)
	steps := d.forward(initial)
	cot := g.Cot[1]
	if cot == nil {
		cot = ops.ZerosLike(initial, c)
	}
	var y *tensor.Array
	if g.Cot[0] != nil {
		y = ops.AsType(g.Cot[0], acc, c)
	}
	sum := func(x *tensor.Array, axes ...int) *tensor.Array { return ops.Sum(x, axes, false, c) }
	times := func(a, b *tensor.Array) *tensor.Array { return ops.Multiply(a, b, c) }
	parts := make([][]*tensor.Array, 5)
	for i := range parts {
		parts[i] = make([]*tensor.Array, d.steps)
	}
	for t := d.steps - 1; t >= 0; t-- {
		s := &steps[t]
		passed := cot // to the state before, where the step does not happen
		if s.mask != nil {
			cot = times(cot, ops.AsType(s.mask, acc, c))
		}
		after := ops.Add(s.kept, times(s.learnt, s.k), c)
		dq := ops.Multiply(ops.Number(0, acc, c), s.q, c)
		if y != nil {
			dy := d.at(y, t, 3)
			if s.mask != nil {
				dy = times(dy, ops.AsType(s.mask, acc, c))
			}
			cot = ops.Add(cot, times(dy, s.q), c)
			dq = ops.Sum(times(after, dy), []int{2}, true, c)
		}
		dLearnt := ops.Sum(times(cot, s.k), []int{3}, true, c)
		dKnown := ops.Negative(times(dLearnt, s.beta), c)
		dKept := ops.Add(cot, times(dKnown, s.k), c)
		parts[0][t] = ops.Squeeze(dq, []int{2}, c)
		parts[1][t] = sum(ops.Add(times(cot, s.learnt), times(s.kept, dKnown), c), 2)
		parts[2][t] = ops.Squeeze(ops.Negative(dKnown, c), []int{3}, c)
		if d.vector {
			parts[3][t] = sum(times(dKept, s.before), 2)
		} else {
			parts[3][t] = sum(times(dKept, s.before), 2, 3)
		}
		parts[4][t] = sum(times(dLearnt, s.wrong), 2, 3)
		cot = times(dKept, s.gamma)
		if s.mask != nil {
			cot = ops.Where(s.mask, cot, passed, c)
		}
	}
	for i := range parts {
		if g.Want[i] {
			x := ops.Stack(parts[i], 1, c)
			if i < 2 {
				x = d.summed(x)
			}
			grads[i] = ops.AsType(x, dt, c)
		}
	}
	if g.Want[5] {
		grads[5] = ops.AsType(cot, g.In[5].DType(), c)
	}
	return grads
}

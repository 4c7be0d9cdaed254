package grad

import (
	"fmt"
	"slices"
	"strconv"
	"strings"

	"github.com/mlxlua/mlxlua/tensor"
	"github.com/mlxlua/mlxlua/tensor/ops"
)

// Custom is a function with transforms of its own. Transforms that are nil are those of F.
type Custom struct {
	F Func
	// VJP gives the gradients by the primals from the outputs' cotangents: one for each primal, nil for zero.
	VJP func(primals, cotangents, outs []*tensor.Array) ([]*tensor.Array, error)
	// JVP gives the outputs' tangents from those of the primals: one for each output, nil for zero.
	JVP func(primals, tangents []*tensor.Array) ([]*tensor.Array, error)
	// VMap gives the outputs over a batch and their batch axes. An axis is NoAxis where there is none.
	VMap func(in []*tensor.Array, axes []int) (outs []*tensor.Array, outAxes []int, err error)

	recompute bool // Checkpoint: the gradient is that of F, whose values are computed again for it
}

// Call calls F. Arrays that F uses but that are not among its inputs get no gradient through VJP.
func (k *Custom) Call(in []*tensor.Array, ctx ...*tensor.Ctx) ([]*tensor.Array, error) {
	c := tensor.Call(ctx)
	defer c.Building()()
	if err := firstError(c, "custom_function", "argument", in); err != nil {
		return nil, err
	}
	outs, err := call(c, "custom_function", k.F, in)
	if err != nil || len(in) == 0 {
		return outs, err
	}
	return k.wrap(c, in, outs), nil
}

// Checkpoint is f, whose intermediate values are not kept for its gradient but computed again. f must give the same
// values when it is called again: a random key must be an input.
func Checkpoint(f Func, ctx ...*tensor.Ctx) Func {
	k, c := &Custom{F: f, recompute: true}, tensor.Call(ctx)
	return func(in []*tensor.Array) ([]*tensor.Array, error) { return k.Call(in, c) }
}

// customAttrs says which output of which custom function a node is. The node's inputs are that output as F gave it,
// whose bytes it views, then the primals and all outputs, of which it needs the shapes only: they are there for the
// transforms.
type customAttrs struct {
	k              *Custom
	primals, index int
}

// StandsFor implements tensor.StandIn: what is exported is F.
func (customAttrs) StandsFor() int { return 0 }

var customOp = tensor.Declare[customAttrs]("custom_function")

// recomputeOp is the identity of its first input, once the others are there. It keeps a value that is computed
// again from being merged with the first one, and from being computed before it is needed.
var recomputeOp = tensor.Declare[tensor.None]("recompute")

func init() {
	customOp.Define(tensor.Rules[customAttrs]{
		Shape: func(in []tensor.Spec, _ customAttrs, outs []tensor.Shape) ([]tensor.Shape, error) {
			return append(outs, in[0].Shape), nil
		},
		DType: func(in []tensor.Spec, _ customAttrs, outs []tensor.DType) ([]tensor.DType, error) {
			return append(outs, in[0].DType), nil
		},
		View:     tensor.SameView[customAttrs],
		SpecFrom: func(customAttrs, int) int { return 1 },
		// These serve where the transform at hand is F's own.
		VJP: func(g *tensor.VJP[customAttrs]) []*tensor.Array {
			return append([]*tensor.Array{g.Cot[0]}, make([]*tensor.Array, len(g.In)-1)...)
		},
		JVP:  func(g *tensor.JVP[customAttrs]) []*tensor.Array { return g.Tan[:1] },
		VMap: func(g *tensor.VMap[customAttrs]) ([]*tensor.Array, []int) { return g.In[:1], g.Axes[:1] },
	})
	recomputeOp.Define(tensor.Rules[tensor.None]{
		Shape: func(in []tensor.Spec, _ tensor.None, outs []tensor.Shape) ([]tensor.Shape, error) {
			return append(outs, in[0].Shape), nil
		},
		DType: func(in []tensor.Spec, _ tensor.None, outs []tensor.DType) ([]tensor.DType, error) {
			return append(outs, in[0].DType), nil
		},
		View:    tensor.SameView[tensor.None],
		NoMerge: true,
		VJP: func(g *tensor.VJP[tensor.None]) []*tensor.Array {
			return append([]*tensor.Array{g.Cot[0]}, make([]*tensor.Array, len(g.In)-1)...)
		},
		JVP: func(g *tensor.JVP[tensor.None]) []*tensor.Array { return g.Tan[:1] },
		VMap: func(g *tensor.VMap[tensor.None]) ([]*tensor.Array, []int) {
			return recomputeOp.Call(g.Ctx, tensor.None{}, g.In...), g.Axes[:1]
		},
	})
}

// wrap gives the arrays that stand for F's outputs.
func (k *Custom) wrap(c *tensor.Ctx, in, outs []*tensor.Array) []*tensor.Array {
	wrapped := make([]*tensor.Array, len(outs))
	for i, y := range outs {
		if err := c.Step(); err != nil { // as many as there are read each other's shapes
			wrapped[i] = tensor.FailWith(c, "custom_function", err)
			continue
		}
		args := slices.Concat([]*tensor.Array{y}, in, outs)
		wrapped[i] = customOp.One(c, customAttrs{k, len(in), i}, args...)
	}
	return wrapped
}

func (k *Custom) handlesVJP() bool { return k.VJP != nil || k.recompute }

// group is the nodes of one call of a custom function.
type group struct {
	call    *Custom
	primals int
	inputs  []tensor.Value // after the first, which differs: primals, outputs
	nodes   map[int]*tensor.Node
	first   *tensor.Node // the oldest: newer than all inputs, and older than what reads any of the outputs
}

// groupsOf finds the calls of custom functions among nodes, which are sorted by age.
func groupsOf(nodes []*tensor.Node) map[*tensor.Node]*group {
	type key struct {
		k      *Custom
		inputs string
	}
	calls, of := map[key]*group{}, map[*tensor.Node]*group{}
	for _, n := range nodes {
		a, ok := n.Attrs().(customAttrs)
		if !ok || n.Op() != customOp.Op() {
			continue
		}
		inputs := n.Inputs()[1:]
		var b strings.Builder
		for _, v := range inputs {
			b.WriteString(strconv.FormatUint(v.Node.ID(), 36) + "." + strconv.Itoa(v.Out) + " ")
		}
		id := key{a.k, b.String()}
		g := calls[id]
		if g == nil {
			g = &group{a.k, a.primals, inputs, map[int]*tensor.Node{}, n}
			calls[id] = g
		}
		if g.nodes[a.index] == nil {
			g.nodes[a.index] = n
		}
		of[n] = g
	}
	return of
}

// outs gives arrays on all outputs, made anew where none is in use.
func (g *group) outs(c *tensor.Ctx) []*tensor.Array {
	in, raw := handles(c, g.inputs[:g.primals]), handles(c, g.inputs[g.primals:])
	outs := g.call.wrapMissing(c, in, raw, g.nodes)
	return outs
}

func (k *Custom) wrapMissing(c *tensor.Ctx, in, raw []*tensor.Array, have map[int]*tensor.Node) []*tensor.Array {
	outs := make([]*tensor.Array, len(raw))
	for i, y := range raw {
		if n := have[i]; n != nil {
			outs[i] = n.Handle(c, 0)
		} else {
			outs[i] = customOp.One(c, customAttrs{k, len(in), i}, slices.Concat([]*tensor.Array{y}, in, raw)...)
		}
	}
	return outs
}

// group is the turn of a call of a custom function in the reverse walk.
func (r *reverse) group(g *group) error {
	c := ctxOf(r.holder, g.first)
	cots, any := make([]*tensor.Array, len(g.inputs)-g.primals), false
	for i, n := range g.nodes {
		cots[i] = r.cots[tensor.Value{Node: n}]
		any = any || cots[i] != nil
	}
	if !any {
		return nil
	}
	primals := handles(c, g.inputs[:g.primals])
	if g.call.recompute {
		return r.recompute(c, g.call, primals, cots)
	}
	outs := g.outs(c)
	for i, t := range cots {
		if t == nil {
			cots[i] = ops.ZerosLike(outs[i], c)
		}
	}
	grads, err := g.call.VJP(primals, cots, outs)
	if err != nil {
		return err
	}
	if len(grads) != len(primals) {
		return c.Errorf("custom_function", "its vjp gave %s for %s", tensor.Count(len(grads), "gradient"),
			tensor.Count(len(primals), "input"))
	}
	if grads, err = likes(c, "custom_function", "gradient", "input", grads, primals); err != nil {
		return err
	}
	for i, x := range grads {
		if x != nil && r.trace.Has(g.inputs[i].Node) {
			r.add(c, g.inputs[i], x)
		}
	}
	return nil
}

// recompute calls the function again and walks what that built. What it reaches beyond, primals and arrays that the
// function captured, gets its cotangent here and its turn in the surrounding walk.
func (r *reverse) recompute(c *tensor.Ctx, k *Custom, primals, cots []*tensor.Array) error {
	var wait []*tensor.Array
	for _, t := range cots {
		if t != nil {
			wait = append(wait, t)
		}
	}
	again := make([]*tensor.Array, len(primals))
	for i, x := range primals {
		again[i] = recomputeOp.One(c, tensor.None{}, append([]*tensor.Array{x}, wait...)...)
	}
	start := again[0].Value().Node.ID() - 1
	outs, err := call(c, "checkpoint", k.F, again)
	if err != nil {
		return err
	}
	if len(outs) != len(cots) {
		return c.Errorf("checkpoint", "the function gave %s, and %d when it was called again",
			tensor.Count(len(cots), "output"),
			len(outs))
	}
	if cots, err = likes(c, "checkpoint", "cotangent", "output", cots, outs); err != nil {
		return err
	}
	for i, x := range outs {
		if cots[i] != nil && r.trace.DependsOn(x) {
			r.add(c, x.Value(), cots[i])
		}
	}
	nodes, err := nodesOf(c, r.trace, outs, start)
	if err != nil {
		return err
	}
	return r.walk(nodes, nil)
}

// group is the turn of a call of a custom function in the forward walk.
func (f *forward) group(g *group) error {
	c := ctxOf(f.holder, g.first)
	primals := handles(c, g.inputs[:g.primals])
	tans, any := make([]*tensor.Array, g.primals), false
	for i, v := range g.inputs[:g.primals] {
		tans[i] = f.tans[v]
		any = any || tans[i] != nil
	}
	if !any {
		return nil
	}
	for i, t := range tans {
		if t == nil {
			tans[i] = ops.ZerosLike(primals[i], c)
		}
	}
	out, err := g.call.JVP(primals, tans)
	if err != nil {
		return err
	}
	raw := handles(c, g.inputs[g.primals:])
	if len(out) != len(raw) {
		return c.Errorf("custom_function", "its jvp gave %s for %s", tensor.Count(len(out), "tangent"),
			tensor.Count(len(raw), "output"))
	}
	if out, err = likes(c, "custom_function", "tangent", "output", out, raw); err != nil {
		return err
	}
	for i, n := range g.nodes {
		if out[i] != nil {
			f.tans[tensor.Value{Node: n}] = out[i]
		}
	}
	return nil
}

// group is the turn of a call of a custom function in a batch: false if there is nothing special to do.
func (b *batch) group(g *group) (bool, error) {
	c := ctxOf(b.holder, g.first)
	in, axes, any := b.inputs(c, g.inputs)
	if !any || (g.call.VMap == nil && g.call.VJP == nil && g.call.JVP == nil) {
		return false, nil
	}
	p := g.primals
	var outs []*tensor.Array
	var outAxes []int
	if g.call.VMap != nil {
		user := slices.Clone(axes[:p])
		for i, a := range user {
			if a < 0 {
				user[i] = NoAxis
			}
		}
		var err error
		if outs, outAxes, err = g.call.VMap(in[:p], user); err != nil {
			return false, err
		}
		if len(outs) != len(g.inputs)-p || len(outAxes) != len(outs) {
			return false, c.Errorf("custom_function", "its vmap gave %d outputs and %d axes for %d outputs",
				len(outs), len(outAxes), len(g.inputs)-p)
		}
		outAxes = slices.Clone(outAxes)
	} else {
		raw := make([]*tensor.Array, len(in)-p)
		for i := range raw {
			raw[i] = b.at(c, batched{in[p+i], axes[p+i]}, 0)
		}
		outs, outAxes = g.call.over(c, axes[:p], len(raw)).wrap(c, in[:p], raw), make([]int, len(raw))
	}
	if err := firstError(c, "custom_function", "output", outs); err != nil {
		return false, err
	}
	for i, y := range outs {
		axis, err := b.fits(c, y, outAxes[i], g.inputs[p+i].Spec())
		if err != nil {
			return false, err
		}
		if n := g.nodes[i]; n != nil {
			b.to[tensor.Value{Node: n}] = batched{y, axis}
		}
	}
	return true, nil
}

// fits checks what a custom function's vmap gave for an output, of which the function gives one for each call, and
// gives its batch axis (-1: none).
func (b *batch) fits(c *tensor.Ctx, y *tensor.Array, axis int, one tensor.Spec) (int, error) {
	have, want := y.Spec(), one.Shape
	where := "no batch axis"
	if axis == NoAxis {
		axis = -1
	} else {
		at, err := tensor.Axis(axis, len(have.Shape))
		if err != nil {
			return 0, c.Errorf("custom_function", "its vmap gave batch axis %d for an output of shape %v", axis, have.Shape)
		}
		where = fmt.Sprintf("batch axis %d", axis)
		axis = at
		want = slices.Insert(want.Clone(), min(at, len(want)), b.size)
	}
	if !have.Shape.Equal(want) || have.DType != one.DType {
		return 0, c.Errorf("custom_function", "its vmap gave an output %v with %s, want %v: the function's output is %v, "+
			"and the batch has %d", have, where, tensor.Spec{Shape: want, DType: one.DType}, one, b.size)
	}
	return axis, nil
}

// over is the custom function over a batch, for its transforms: the primals' batch axes are given, the outputs' are 0.
func (k *Custom) over(c *tensor.Ctx, axes []int, outs int) *Custom {
	primalAxes := make([]int, len(axes))
	for i, a := range axes {
		if primalAxes[i] = a; a < 0 {
			primalAxes[i] = NoAxis
		}
	}
	outAxes := make([]int, outs)
	p := len(axes)
	res := &Custom{F: k.F}
	if k.VJP != nil {
		res.VJP = func(primals, cots, outs []*tensor.Array) ([]*tensor.Array, error) {
			one := func(in []*tensor.Array) ([]*tensor.Array, error) {
				grads, err := k.VJP(in[:p], in[p:p+len(cots)], in[p+len(cots):])
				if err != nil {
					return nil, err
				}
				return zerosFor(c, grads, in[:p]), nil
			}
			to := slices.Clone(primalAxes)
			for i, a := range to {
				if a == NoAxis {
					to[i] = 0
				}
			}
			grads, err := VMap(one, slices.Concat(primalAxes, outAxes, outAxes), to, c)(slices.Concat(primals, cots, outs))
			if err != nil {
				return nil, err
			}
			for i, a := range primalAxes {
				if a == NoAxis { // every call of the batch reads it
					grads[i] = ops.Sum(grads[i], []int{0}, false, c)
				}
			}
			return grads, nil
		}
	}
	if k.JVP != nil {
		res.JVP = func(primals, tans []*tensor.Array) ([]*tensor.Array, error) {
			one := func(in []*tensor.Array) ([]*tensor.Array, error) { return k.JVP(in[:p], in[p:]) }
			return VMap(one, slices.Concat(primalAxes, primalAxes), outAxes, c)(slices.Concat(primals, tans))
		}
	}
	return res
}

// zerosFor replaces nil gradients by zeros.
func zerosFor(c *tensor.Ctx, grads, like []*tensor.Array) []*tensor.Array {
	grads = slices.Clone(grads)
	for i, g := range grads {
		if g == nil && i < len(like) {
			grads[i] = ops.ZerosLike(like[i], c)
		}
	}
	return grads
}

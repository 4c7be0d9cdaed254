package grad

import (
	"slices"

	"github.com/mlxlua/mlxlua/tensor"
	"github.com/mlxlua/mlxlua/tensor/ops"
)

// JVP calls f and gives its outputs and the Jacobian-vector product for each output: tangents has one vector for
// each primal, of its shape, converted to its dtype; nil means zero. The products have the outputs' shapes and
// dtypes, but those of bool have the tangents' dtype. An integer primal that is used as indices is an error, as it is
// for VJP.
func JVP(f Func, primals, tangents []*tensor.Array, ctx ...*tensor.Ctx) (outs, tans []*tensor.Array, err error) {
	c := tensor.Call(ctx)
	if len(primals) != len(tangents) {
		return nil, nil, c.Errorf("jvp", "the function has %s, but the number of tangents is %d",
			tensor.Count(len(primals), "input"), len(tangents))
	}
	if err := firstError(c, "jvp", "argument", primals); err != nil {
		return nil, nil, err
	}
	if tangents, err = likes(c, "jvp", "tangent", "input", tangents, primals); err != nil {
		return nil, nil, err
	}
	defer c.Building()()
	trace := tensor.NewTrace("jvp", nil)
	defer trace.End()
	in := slices.Clone(primals)
	for i, x := range primals {
		if tangents[i] != nil {
			in[i] = trace.Watch(c, x)
		}
	}
	if outs, err = call(c, "jvp", f, in); err != nil {
		return nil, nil, err
	}
	if tans, err = pushforward(c, trace, in, tangents, outs); err != nil {
		return nil, nil, err
	}
	for i, t := range tans {
		if t == nil {
			tans[i] = noTangent(c, outs[i], tangents)
		}
	}
	return outs, tans, nil
}

// noTangent is the tangent of an output that does not depend on the inputs, or has no derivative: zeros. That of bool
// has the dtype of the tangents given: a script may go on to compute with it, and bool has no negative.
func noTangent(c *tensor.Ctx, out *tensor.Array, tangents []*tensor.Array) *tensor.Array {
	d := out.DType()
	for _, t := range tangents {
		if t != nil && out.DType() == tensor.Bool {
			d = tensor.Promote(d, t.DType())
		}
	}
	return ops.Zeros(tensor.ShapeOf(out), d, c)
}

// forward is a walk from inputs to outputs with tangents.
type forward struct {
	tans    map[tensor.Value]*tensor.Array
	holder  *tensor.Holder
	watched *watched
}

// pushforward gives the tangents of outs, nil for zero, from those of ins.
func pushforward(c *tensor.Ctx, trace *tensor.Trace, ins, tangents, outs []*tensor.Array) ([]*tensor.Array, error) {
	f := &forward{map[tensor.Value]*tensor.Array{}, c.Holder, watchedIn(trace, nil)}
	for i, x := range ins {
		if tangents[i] != nil {
			f.tans[x.Value()] = tangents[i]
			f.watched.inputs[x.Value().Node] = true
		}
	}
	nodes, err := nodesOf(c, trace, outs, 0)
	if err != nil {
		return nil, err
	}
	groups := groupsOf(nodes)
	for _, n := range nodes {
		if f.tans[tensor.Value{Node: n}] != nil { // an input, or an output of a group that has had its turn
			continue
		}
		if g := groups[n]; g != nil && g.call.JVP != nil {
			if g.first == n {
				if err := f.group(g); err != nil {
					return nil, err
				}
			}
			continue
		}
		if err := f.node(n); err != nil {
			return nil, err
		}
	}
	tans := make([]*tensor.Array, len(outs))
	for i, x := range outs {
		tans[i] = f.tans[x.Value()]
	}
	return tans, nil
}

func (f *forward) node(n *tensor.Node) error {
	c, values := ctxOf(f.holder, n), n.Inputs()
	tans, any := make([]*tensor.Array, len(values)), false
	for i, v := range values {
		switch {
		case n.SpecOnly(i, len(values)):
		case n.IsIndex(i, len(values)):
			if f.watched.reachedFrom(v) {
				return indexed(c, "jvp", n)
			}
		case f.tans[v] != nil:
			tans[i], any = f.tans[v], true
		}
	}
	if !any {
		return nil
	}
	var out []*tensor.Array
	var err error
	switch {
	case n.HasJVP():
		out, err = n.CallJVP(c, handles(c, values), outputs(c, n), tans)
	case n.Op().HasFormula():
		_, out, err = JVP(formulaOf(c, n), handles(c, values), tans, c)
	case n.HasVJP():
		out, err = transpose(c, n, handles(c, values), tans)
	case discrete(n):
		return nil
	default:
		err = c.Errorf("jvp", "%s has no derivative", n.Op().Name())
	}
	if err != nil {
		return err
	}
	for i, t := range out {
		if t == nil {
			continue
		}
		v := tensor.Value{Node: n, Out: i}
		if f.tans[v], err = fit(c, n, "tangent", i, t, v.Spec()); err != nil {
			return err
		}
	}
	return nil
}

// transpose is the Jacobian-vector product of a node whose op has a VJP only. The VJP is linear in the cotangent,
// and the transpose of that linear map is J itself; so it is the VJP of the VJP, at any cotangent.
func transpose(c *tensor.Ctx, n *tensor.Node, in, tans []*tensor.Array) ([]*tensor.Array, error) {
	trace := tensor.NewTrace("jvp", nil)
	defer trace.End()
	out := outputs(c, n)
	cots := make([]*tensor.Array, len(out))
	for i, x := range out {
		cots[i] = trace.Watch(c, ops.ZerosLike(x, c))
	}
	want := make([]bool, len(in))
	for i, t := range tans {
		want[i] = t != nil
	}
	grads, err := n.CallVJP(c, in, out, cots, want)
	if err != nil {
		return nil, err
	}
	var roots, vectors []*tensor.Array
	for i, g := range grads {
		if want[i] && g != nil {
			if g, err = fit(c, n, "gradient", i, g, in[i].Spec()); err != nil {
				return nil, err
			}
			roots, vectors = append(roots, g), append(vectors, tans[i])
		}
	}
	return pullback(c, trace, roots, vectors, cots)
}

package grad

import (
	"slices"

	"github.com/mlxlua/mlxlua/tensor"
	"github.com/mlxlua/mlxlua/tensor/ops"
)

// nodesOf lists the nodes that outs depend on and that belong to the trace, in an order in which each comes after
// what it reads. Nodes that are not newer than after are left out.
func nodesOf(c *tensor.Ctx, trace *tensor.Trace, outs []*tensor.Array, after uint64) ([]*tensor.Node, error) {
	var nodes, stack []*tensor.Node
	seen := map[*tensor.Node]bool{}
	push := func(n *tensor.Node) {
		if !seen[n] && n.ID() > after && trace.Has(n) {
			seen[n] = true
			stack = append(stack, n)
		}
	}
	for _, x := range outs {
		push(x.Value().Node)
	}
	for len(stack) > 0 {
		if err := c.Step(); err != nil {
			return nil, err
		}
		n := stack[len(stack)-1]
		stack = stack[:len(stack)-1]
		nodes = append(nodes, n)
		for _, v := range n.Inputs() {
			push(v.Node)
		}
	}
	// A node is made after what it reads.
	slices.SortFunc(nodes, func(a, b *tensor.Node) int {
		if a.ID() < b.ID() {
			return -1
		}
		return 1
	})
	return nodes, nil
}

// ctxOf is the Ctx for what a rule builds for a node: the node's stream and line, and the transform's holder.
func ctxOf(h *tensor.Holder, n *tensor.Node) *tensor.Ctx {
	return &tensor.Ctx{Stream: n.Stream(), Place: n.Place(), Holder: h}
}

// handles gives arrays that stand for a node's inputs.
func handles(c *tensor.Ctx, values []tensor.Value) []*tensor.Array {
	out := make([]*tensor.Array, len(values))
	for i, v := range values {
		out[i] = v.Node.Handle(c, v.Out)
	}
	return out
}

func outputs(c *tensor.Ctx, n *tensor.Node) []*tensor.Array {
	out := make([]*tensor.Array, n.NumOut())
	for i := range out {
		out[i] = n.Handle(c, i)
	}
	return out
}

// discrete says that no output of the node can have a derivative other than zero: all are integers or bool.
func discrete(n *tensor.Node) bool {
	for i := range n.NumOut() {
		if (tensor.Value{Node: n, Out: i}).Spec().DType.IsInexact() {
			return false
		}
	}
	return true
}

// reverse is a walk from outputs to inputs that gathers cotangents.
type reverse struct {
	trace   *tensor.Trace
	cots    map[tensor.Value]*tensor.Array
	holder  *tensor.Holder
	watched *watched
}

// watched are the nodes of what is differentiated by.
type watched struct {
	trace  *tensor.Trace
	inputs map[*tensor.Node]bool
	apart  map[*tensor.Node]bool // nodes that are not computed from one, as far as is known
}

func watchedIn(trace *tensor.Trace, xs []*tensor.Array) *watched {
	w := &watched{trace, map[*tensor.Node]bool{}, map[*tensor.Node]bool{}}
	for _, x := range xs {
		w.inputs[x.Value().Node] = true
	}
	return w
}

// reachedFrom reports whether v is computed from what is differentiated by, other than through stop_gradient.
func (w *watched) reachedFrom(v tensor.Value) bool {
	stack := []*tensor.Node{v.Node}
	for len(stack) > 0 {
		n := stack[len(stack)-1]
		stack = stack[:len(stack)-1]
		if w.inputs[n] {
			return true
		}
		if w.apart[n] || !w.trace.Has(n) || ops.StopsGradient(n.Op()) {
			continue
		}
		w.apart[n] = true
		values := n.Inputs()
		for i, v := range values {
			if !n.SpecOnly(i, len(values)) && (i == 0 || n.Op() != recomputeOp.Op()) {
				stack = append(stack, v.Node)
			}
		}
	}
	return false
}

// indexed is the error of differentiating by indices. Zeros would hide that they choose elements.
func indexed(c *tensor.Ctx, transform string, n *tensor.Node) error {
	return c.Errorf(transform, "%s has no derivative by its indices, which are computed from what the function is "+
		"differentiated by: pass them through mx.stop_gradient", n.Op().Name())
}

// pullback gives the cotangents of ins, nil for zero, from those of outs.
func pullback(c *tensor.Ctx, trace *tensor.Trace, outs, cots, ins []*tensor.Array) ([]*tensor.Array, error) {
	r := &reverse{trace, map[tensor.Value]*tensor.Array{}, c.Holder, watchedIn(trace, ins)}
	for i, x := range outs {
		if cots[i] != nil && trace.DependsOn(x) {
			r.add(c, x.Value(), cots[i])
		}
	}
	nodes, err := nodesOf(c, trace, outs, 0)
	if err != nil {
		return nil, err
	}
	if err := r.walk(nodes, r.watched.inputs); err != nil {
		return nil, err
	}
	grads := make([]*tensor.Array, len(ins))
	for i, x := range ins {
		grads[i] = r.cots[x.Value()]
	}
	return grads, nil
}

func (r *reverse) add(c *tensor.Ctx, v tensor.Value, g *tensor.Array) {
	if old := r.cots[v]; old != nil {
		g = ops.Add(old, g, c)
	}
	r.cots[v] = g
}

// walk handles nodes from the last to the first: when a node's turn comes, all that reads it has been handled.
func (r *reverse) walk(nodes []*tensor.Node, stop map[*tensor.Node]bool) error {
	groups := groupsOf(nodes)
	for _, n := range slices.Backward(nodes) {
		if stop[n] {
			continue
		}
		if g := groups[n]; g != nil && g.call.handlesVJP() {
			if g.first == n {
				if err := r.group(g); err != nil {
					return err
				}
			}
			continue
		}
		if err := r.node(n); err != nil {
			return err
		}
	}
	return nil
}

func (r *reverse) node(n *tensor.Node) error {
	cots, any := make([]*tensor.Array, n.NumOut()), false
	for i := range cots {
		cots[i] = r.cots[tensor.Value{Node: n, Out: i}]
		any = any || cots[i] != nil
	}
	if !any {
		return nil
	}
	c := ctxOf(r.holder, n)
	if err := c.Step(); err != nil {
		return err
	}
	if !n.HasVJP() && !n.Op().HasFormula() {
		if discrete(n) {
			return nil
		}
		return c.Errorf("vjp", "%s has no gradient: give it one with custom_function", n.Op().Name())
	}
	values := n.Inputs()
	want, in := make([]bool, len(values)), handles(c, values)
	for i, v := range values {
		want[i] = r.trace.Has(v.Node) && !n.SpecOnly(i, len(values))
		if want[i] && n.IsIndex(i, len(values)) {
			if r.watched.reachedFrom(v) {
				return indexed(c, "vjp", n)
			}
			want[i] = false
		}
	}
	grads, err := nodeVJP(c, n, in, cots, want)
	if err != nil {
		return err
	}
	if len(grads) != len(values) {
		return c.Errorf("vjp", "BUG: the rule of %s gives %d gradients for %d inputs", n.Op().Name(), len(grads),
			len(values))
	}
	for i, g := range grads {
		if !want[i] || g == nil {
			continue
		}
		if g, err = fit(c, n, "gradient", i, g, values[i].Spec()); err != nil {
			return err
		}
		r.add(c, values[i], g)
	}
	return nil
}

// nodeVJP gives the gradients of a node's inputs by its op's rule, or by its formula.
func nodeVJP(c *tensor.Ctx, n *tensor.Node, in, cots []*tensor.Array, want []bool) ([]*tensor.Array, error) {
	if n.HasVJP() {
		return n.CallVJP(c, in, outputs(c, n), cots, want)
	}
	var argnums []int
	for i, w := range want {
		if w {
			argnums = append(argnums, i)
		}
	}
	grads := make([]*tensor.Array, len(in))
	if len(argnums) == 0 {
		return grads, nil
	}
	_, some, err := vjp(c, "vjp", formulaOf(c, n), in, argnums, func([]*tensor.Array) ([]*tensor.Array, error) {
		return cots, nil
	})
	for i, g := range some {
		grads[argnums[i]] = g
	}
	return grads, err
}

// formulaOf is a node's op as a function of other ops.
func formulaOf(c *tensor.Ctx, n *tensor.Node) Func {
	return func(in []*tensor.Array) ([]*tensor.Array, error) { return n.Op().CallFormula(c, n, in) }
}

// fit is what a rule gave, or what is wrong with it. Derivatives of integers and bool are computed in the dtypes that
// numbers beside them have, which need not be theirs.
func fit(c *tensor.Ctx, n *tensor.Node, what string, i int, x *tensor.Array, want tensor.Spec) (*tensor.Array, error) {
	if err := x.Err(); err != nil {
		return nil, err
	}
	have := x.Spec()
	if !have.Shape.Equal(want.Shape) || have.DType != want.DType && want.DType.IsInexact() {
		return nil, c.Errorf("grad", "BUG: %s: %s %d is %v, must be %v", n.Op().Name(), what, i, have, want)
	}
	if have.DType != want.DType {
		x = ops.AsType(x, want.DType, c)
	}
	return x, nil
}

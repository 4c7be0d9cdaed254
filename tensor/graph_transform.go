package tensor

import (
	"runtime/debug"
	"slices"
	"weak"
)

// HasVJP reports whether the node's op has a vector-Jacobian rule.
func (n *Node) HasVJP() bool { return n.op.vjp != nil }

// HasJVP reports whether the node's op has a Jacobian-vector rule.
func (n *Node) HasJVP() bool { return n.op.jvp != nil }

// HasVMap reports whether the node's op has a batching rule.
func (n *Node) HasVMap() bool { return n.op.vmap != nil }

// HasFormula reports whether other ops can compute what this one does.
func (p *Op) HasFormula() bool { return p.formula != nil }

// IsElementwise reports whether the op is an expression of its broadcast operands: it needs no batching rule.
func (n *Node) IsElementwise() bool { return n.op.expr != nil }

// CallVJP runs the op's vector-Jacobian rule on the node's inputs, outputs and the outputs' cotangents (nil where
// there is none). The result has one gradient for each input, nil where there is none. It fails if the op has no
// such rule.
func (n *Node) CallVJP(c *Ctx, in, out, cot []*Array, want []bool) (grads []*Array, err error) {
	if n.op.vjp == nil {
		return nil, c.Errorf(n.op.name, "it has no gradient (vjp) rule")
	}
	defer n.recoverRule(c, "vjp", &err)
	grads = n.op.vjp(c, n, in, out, cot, want)
	if grads == nil {
		grads = make([]*Array, len(in))
	}
	if len(grads) != len(in) {
		return nil, c.Errorf(n.op.name, "BUG: the vjp rule gave %d gradients for %d inputs", len(grads), len(in))
	}
	return grads, nil
}

// CallJVP runs the op's Jacobian-vector rule on the tangents of the inputs (nil for zero) and gives those of the
// outputs, nil for zero. It fails if the op has no such rule.
func (n *Node) CallJVP(c *Ctx, in, out, tan []*Array) (tans []*Array, err error) {
	if n.op.jvp == nil {
		return nil, c.Errorf(n.op.name, "it has no jvp rule")
	}
	defer n.recoverRule(c, "jvp", &err)
	tans = n.op.jvp(c, n, in, out, tan)
	if tans == nil {
		tans = make([]*Array, len(out))
	}
	if len(tans) != len(out) {
		return nil, c.Errorf(n.op.name, "BUG: the jvp rule gave %d tangents for %d outputs", len(tans), len(out))
	}
	return tans, nil
}

// CallVMap runs the op's batching rule on inputs whose batch axes are axes (-1: none) and gives the outputs with
// theirs. It fails if the op has no such rule.
func (n *Node) CallVMap(c *Ctx, in []*Array, axes []int, size int) (out []*Array, outAxes []int, err error) {
	if n.op.vmap == nil {
		return nil, nil, c.Errorf(n.op.name, "it has no vmap rule")
	}
	defer n.recoverRule(c, "vmap", &err)
	out, outAxes = n.op.vmap(c, n, in, axes, size)
	for _, x := range out {
		if x != nil && x.Err() != nil {
			return nil, nil, x.Err()
		}
	}
	if len(out) != len(n.out) || len(outAxes) != len(n.out) {
		return nil, nil, c.Errorf(n.op.name, "BUG: the vmap rule gave %d outputs and %d axes for %d outputs",
			len(out),
			len(outAxes), len(n.out))
	}
	return out, outAxes, nil
}

// CallFormula gives the outputs of a node that calls the op, as other ops compute them from inputs. It fails if the op
// has no formula.
func (p *Op) CallFormula(c *Ctx, n *Node, in []*Array) (out []*Array, err error) {
	if p.formula == nil {
		return nil, c.Errorf(p.name, "it has no formula")
	}
	defer n.recoverRule(c, "formula", &err)
	out = p.formula(c, n, in)
	if len(out) != len(n.out) {
		return nil, c.Errorf(p.name, "BUG: the formula gave %d outputs, want %d", len(out), len(n.out))
	}
	for _, x := range out {
		if x.Err() != nil {
			return nil, x.Err()
		}
	}
	return out, nil
}

// recoverRule turns a rule's panic into an error: no panic crosses the API.
func (n *Node) recoverRule(c *Ctx, rule string, err *error) {
	if r := recover(); r != nil {
		*err = c.Errorf(n.op.name, "BUG: the %s rule panicked: %v\n%s", rule, r, debug.Stack())
	}
}

// Handle is an Array on output i: for transforms that walk the graph. It watches the output in place of an earlier
// handle that is gone; an earlier one that is still there is the result. Where the Ctx is not of the output's holder,
// the output escapes.
func (n *Node) Handle(c *Ctx, i int) *Array {
	n.mu.Lock()
	defer n.mu.Unlock()
	o := &n.out[i]
	o.dead = false
	n.hold(i, c.holder())
	a := &Array{node: n, out: int32(i)}
	if !o.weak {
		return a
	}
	switch old := o.handle.Value(); {
	case old == nil:
		o.handle = weak.Make(a)
	case old.freed.Load() == nil:
		old.owned.CompareAndSwap(ended, notOwned)
		return old
	default:
		a.of = old // which further owners may keep, too
	}
	return a
}

// Order lists the nodes that roots depend on, and their own, so that each comes after its inputs. Where stop says
// true the walk goes no further: that node is left out. It sees what Inputs gives: nodes that were evaluated
// outside of a trace have none.
func Order(roots []*Array, stop func(*Node) bool) []*Node {
	order, _ := (*Ctx)(nil).Order(roots, stop) // which nothing ends
	return order
}

// Order is the function of that name, in steps of the call: see Step.
func (c *Ctx) Order(roots []*Array, stop func(*Node) bool) ([]*Node, error) {
	type frame struct {
		n    *Node
		in   []Value
		next int
	}
	claimAll(nil) // no goroutine takes inputs away that the walk comes to
	seen := map[*Node]bool{}
	var order []*Node
	var stack []frame
	push := func(n *Node) {
		if !seen[n] {
			seen[n] = true
			if stop == nil || !stop(n) {
				stack = append(stack, frame{n: n, in: n.Inputs()})
			}
		}
	}
	for _, r := range roots {
		push(r.vertex())
		for len(stack) > 0 {
			f := &stack[len(stack)-1]
			if f.next == len(f.in) {
				if err := c.Step(); err != nil {
					return nil, err
				}
				order = append(order, f.n)
				stack = stack[:len(stack)-1]
				continue
			}
			f.next++
			push(f.in[f.next-1].Node)
		}
	}
	return slices.Clip(order), nil
}

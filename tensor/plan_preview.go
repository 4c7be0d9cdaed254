package tensor

import "slices"

// PlannedKernel is what the planner computes in one go: a kernel of fused ops, or the kernels of one op.
type PlannedKernel struct {
	Ops  []string // in their order
	In   []Spec   // the arrays that it reads, each once
	Out  []Spec   // the arrays that it writes
	Host bool     // Go code computes it, not a kernel
	// Text is the kernel, if it was printed for these ops: MSL for placeholders that lie in row-major order. Of a
	// reduction in several passes it is the first one. "" for ops with kernels of their own.
	Text string
	// Elements is how many elements the ops go over: those of the largest output, or of what is reduced. How many
	// threads share them depends on layouts.
	Elements int
}

// PlannedKernels lists what an evaluation of xs would run if the placeholders that they depend on had values and
// nobody read other results, with or without the fusion of ops. It computes nothing. It is for transforms that explain
// what they recorded: no other goroutine may use xs and what they depend on. Arrays that depend on no placeholder count
// as there; views, and what gives no element, are left out, since they compute nothing. It fails where Step does.
func PlannedKernels(c *Ctx, xs []*Array, fused bool) ([]PlannedKernel, error) {
	order, err := computed(c, xs)
	if err != nil {
		return nil, err
	}
	seg := &segment{tasks: make([]task, len(order))}
	in := make(map[*Node]bool, len(order))
	for i, n := range order {
		seg.tasks[i] = task{node: n, in: n.Inputs(), from: n.specFrom(len(n.in))}
		in[n] = true
	}
	for i, n := range order {
		n.seg, n.slot = seg, int32(i)
	}
	p := &plan{fuse: fused && fuse.Load()}
	p.countReaders(seg)
	for _, x := range xs {
		if in[x.node] {
			p.live[p.base[x.node.slot]+int32(x.out)] = true
		}
	}
	p.makeUnits(seg)
	var kernels []PlannedKernel
	texts := newPreview(seg, p)
	for _, u := range p.units {
		if err := c.Step(); err != nil {
			return nil, err
		}
		if p.isView(seg, u) {
			continue
		}
		k := p.kernel(seg, u)
		k.Text = texts.text(u)
		if slices.ContainsFunc(k.Out, func(s Spec) bool { return s.Shape.Size() > 0 }) { // else nothing is launched
			kernels = append(kernels, k)
		}
	}
	return kernels, nil
}

// isView reports whether a unit computes nothing.
func (p *plan) isView(seg *segment, u unit) bool {
	for _, slot := range p.members(u, nil) {
		if !seg.tasks[slot].isView() {
			return false
		}
	}
	return true
}

// computed lists the nodes that an evaluation of xs computes, each after its inputs: what only gives its shape and
// dtype is not among them.
func computed(c *Ctx, xs []*Array) ([]*Node, error) {
	order, err := c.Order(xs, func(n *Node) bool { return n.IsPlaceholder() || n.abstractTrace() == nil })
	if err != nil {
		return nil, err
	}
	read := map[*Node]bool{}
	for _, x := range xs {
		read[x.node] = true
	}
	for _, n := range slices.Backward(order) {
		if in := n.Inputs(); read[n] {
			for _, v := range in[:n.specFrom(len(in))] {
				read[v.Node] = true
			}
		}
	}
	return slices.DeleteFunc(order, func(n *Node) bool { return !read[n] }), nil
}

// kernel describes a unit.
func (p *plan) kernel(seg *segment, u unit) PlannedKernel {
	var k PlannedKernel
	seen := map[Value]bool{}
	for _, slot := range p.members(u, nil) {
		n := seg.tasks[slot].node
		k.Ops = append(k.Ops, n.op.name)
		k.Host = n.op.host != nil
		for _, v := range seg.tasks[slot].reads() {
			inside := v.Node.seg == seg && p.cluster[v.Node.slot] == u.root
			if !inside && !seen[v] {
				seen[v] = true
				k.In = append(k.In, v.Spec())
			}
		}
		for i := range n.out {
			if slot == u.root || p.live[p.base[slot]+int32(i)] {
				k.Out = append(k.Out, n.out[i].spec)
				k.Elements = max(k.Elements, n.out[i].spec.Shape.Size())
			}
		}
		if n.op.reduce != nil {
			k.Elements = max(k.Elements, seg.tasks[slot].in[0].Spec().Shape.Size())
		}
	}
	return k
}

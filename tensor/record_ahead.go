package tensor

import "slices"

// What may fail by its indices alone is checked ahead of what writes over values that are kept for its sake, though the
// call itself comes later, as the other updates of a step do: see Rules.CheckIndices.

// checkable reports whether the indices of a node that is to be recorded later can be checked now.
func (g *gates) checkable(n *Node) bool {
	if n.op.checkIndices == nil || n.seg != g.rec.seg || g.rec.seg.tasks[n.slot].node != n {
		return false
	}
	t := &g.rec.seg.tasks[n.slot]
	return !slices.ContainsFunc(t.indices(), func(v Value) bool {
		switch v.Node.now() {
		case Ready:
			return false
		case Scheduled:
			d := &v.Node.out[v.Out].data
			return v.Node.runs != g.rec.s || d.buf == nil && d.inline == nil
		}
		return true
	})
}

// indices are the inputs of a task that are indices.
func (t *task) indices() []Value {
	return t.in[t.node.op.indicesFrom(t.node.attrs, len(t.in)):t.from]
}

// checkAhead checks them.
func (g *gates) checkAhead(n *Node) bool {
	t := &g.rec.seg.tasks[n.slot]
	first := len(t.in[:t.from]) - len(t.indices())
	r := &Run{e: g.rec, node: n, in: t.in, task: t, In: make([]Operand, len(t.in)), Out: make([]Operand, len(n.out))}
	for i, v := range t.in {
		spec := v.Spec()
		r.In[i] = Operand{spec, View{Strides: spec.Shape.Strides()}}
		if i < first || i >= t.from {
			continue
		}
		o, err := g.rec.operand(v)
		if err == nil && slices.ContainsFunc(o.Strides, func(s int) bool { return s < 0 }) {
			o, err = g.rec.contiguous(o)
		}
		if err != nil {
			return false
		}
		r.In[i] = o
	}
	for i := range n.out {
		spec := n.out[i].spec
		r.Out[i] = Operand{spec, View{Strides: spec.Shape.Strides()}}
	}
	if n.op.checkIndices(r, n.attrs) != nil {
		return false
	}
	g.ahead = append(g.ahead, n)
	return true
}

package tensor

import "github.com/mlxlua/mlxlua/tensor/kernelgen"

// preview prints the kernels of a plan that is not run.
type preview struct {
	exec  *executor
	views map[Value]View
}

func newPreview(seg *segment, p *plan) *preview {
	at := &current{seg: seg, plan: *p}
	w := &preview{&executor{current: at, places: &placer{current: at}}, map[Value]View{}}
	at.preview = w
	return w
}

// view is where a value would lie: as it does if it is there, as its View rule has it, else in row-major order.
func (w *preview) view(v Value) View {
	if known, ok := w.views[v]; ok {
		return known
	}
	n := v.Node
	lies := View{Strides: v.Spec().Shape.Strides()}
	switch {
	case n.now() == Ready:
		n.mu.Lock()
		if data := n.out[v.Out].data; len(data.Strides) == len(lies.Strides) {
			lies.Strides = data.Strides
		}
		n.mu.Unlock()
	case (n.op.view != nil || n.op.same) && len(n.in) > 0:
		w.follow(n)
		if seen, ok := w.views[v]; ok {
			return seen
		}
	}
	w.views[v] = lies
	return lies
}

// follow notes the views that a node's View rule makes of its input, if it can.
func (w *preview) follow(n *Node) {
	values := n.Inputs()
	if len(values) == 0 {
		return
	}
	specs := make([]Spec, len(values))
	for i, v := range values {
		specs[i] = v.Spec()
	}
	in, out := w.view(values[0]), make([]Operand, len(n.out))
	for i := range out {
		out[i].Spec = n.out[i].spec
		out[i].Strides = make([]int, len(n.out[i].spec.Shape))
	}
	if t := (task{n, values, len(values)}); t.isView() && t.view(specs, in, out) {
		for i := range out {
			w.views[Value{n, i}] = View{Strides: out[i].Strides}
		}
	}
}

// text is the kernel of a unit, "" if it has none that is printed.
func (w *preview) text(u unit) string {
	e := w.exec
	members := e.plan.members(u, nil)
	last := &e.seg.tasks[members[len(members)-1]]
	root := last.node
	k := &e.kernel
	defer k.begin()
	shape := root.out[0].spec.Shape
	switch {
	case shape.Size() == 0:
	case last.elementwise():
		linear, err := e.expression(members, shape)
		if err != nil {
			return ""
		}
		if linear {
			return kernelgen.PrintLinear(&k.expr)
		}
		var outs []Operand
		for _, v := range k.outs {
			outs = append(outs, Operand{v.Spec(), View{Strides: shape.Strides()}})
		}
		return kernelgen.PrintGeneral(&k.expr, k.strided(shape, outs).Wide())
	case root.op.reduce != nil:
		if _, err := e.reduction(members); err != nil {
			return ""
		}
		k.beginPass()
		return kernelgen.PrintReduce(&k.red)
	}
	return ""
}

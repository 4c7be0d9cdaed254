package tensor

import (
	"errors"
	"fmt"
)

// viewRule gives a node views of its input's bytes; where the rule cannot, of a contiguous copy.
func (x *executor) viewRule(t *task) error {
	n, k := t.node, &x.kernel
	k.specs = k.specs[:0]
	for _, v := range t.in {
		k.specs = append(k.specs, v.Spec())
	}
	specs := k.specs
	in, err := x.places.located(t.in[0]) // a view of another device's array lies there: who reads it moves its range only
	if err != nil {
		return err
	}
	out := x.blankOutputs(n, in.View)
	if !t.view(specs, in.View, out) {
		if in, err = x.places.operand(t.in[0]); err != nil {
			return err
		}
		if in, err = x.copied(in); err != nil {
			return err
		}
		if in.owner != nil { // a user of its own, until the outputs have theirs
			in.owner.hold()
			defer x.places.release(in.owner)
		}
		if out = x.blankOutputs(n, in.View); !t.view(specs, in.View, out) {
			return errors.New("BUG: the View rule refuses a contiguous input")
		}
	}
	from := t.in[0]
	filled := from.Node.out[from.Out].filled || n.op.fills && from.Spec().Shape.Size() == 1
	for i := range out {
		n.out[i].filled = filled
		spec, v := n.out[i].spec, out[i].View
		v.buf, v.owner, v.inline = in.buf, in.owner, in.inline
		if spec.Shape.Size() == 0 {
			v = View{inline: []byte{}, Strides: spec.Shape.Strides()}
		} else if err := v.within(spec); err != nil {
			return err
		}
		if v.owner == nil && v.buf != nil { // a temporary of this call: another device's bytes, or an uploaded constant
			v.buf.Retain()
			x.memory.lend(v.buf)
			v.owner = &storage{dev: x.dev, stream: x.s, buf: v.buf, external: true}
		}
		x.places.setData(n, i, v)
	}
	return nil
}

// view is the View rule of the task's op, or of an op that gives its input.
func (t *task) view(specs []Spec, in View, out []Operand) bool {
	if t.same() {
		copy(out[0].Strides, in.Strides)
		return true
	}
	return t.node.op.view(specs, in, t.node.attrs, out)
}

// isView reports whether the task's outputs are views of its first input's bytes, where these lie well.
func (t *task) isView() bool { return t.node.op.view != nil || t.same() }

// blankOutputs is the outputs of a node as its View rule finds them.
func (x *executor) blankOutputs(n *Node, v View) []Operand {
	out := resize(x.kernel.outOps, len(n.out))
	x.kernel.outOps = out
	for i := range out {
		out[i].Spec = n.out[i].spec
		out[i].OffsetBytes = v.OffsetBytes
		out[i].Strides = x.memory.cut(len(out[i].Shape))
	}
	return out
}

// within reports whether elements of that spec lie within the view's memory.
func (v View) within(s Spec) error {
	if len(v.Strides) != len(s.Shape) {
		return fmt.Errorf("BUG: a view of %v has %d strides", s, len(v.Strides))
	}
	low, high := v.span(s)
	size := int64(len(v.inline))
	if v.buf != nil {
		size = v.buf.Len()
	}
	if v.OffsetBytes+low < 0 || v.OffsetBytes+high > size {
		return fmt.Errorf("BUG: a view of %v covers bytes %d to %d of %d", s, v.OffsetBytes+low,
			v.OffsetBytes+high, size)
	}
	return nil
}

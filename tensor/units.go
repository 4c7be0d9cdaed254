package tensor

import (
	"errors"
	"fmt"
	"slices"

	"github.com/mlxlua/mlxlua/metal"
	"github.com/mlxlua/mlxlua/tensor/kernelgen"
)

// reduce encodes a reduction, with the element-wise members that only it reads computed on the way.
func (e *recorder) reduce(members []int32) error {
	k := &e.kernel
	root := &e.seg.tasks[members[len(members)-1]]
	k.specs = k.specs[:0]
	for _, v := range root.in {
		k.specs = append(k.specs, v.Spec())
	}
	specs := k.specs
	axes, reducer, err := root.node.op.reduce(root.node.attrs, specs)
	if err != nil {
		return err
	}
	shape := specs[0].Shape
	k.reduced = resize(k.reduced, len(shape))
	reduced := k.reduced
	outputs, elements := 1, 1
	for _, a := range axes {
		reduced[a] = true
	}
	inner := false
	for d, n := range shape {
		if reduced[d] {
			elements *= n
		} else {
			outputs *= n
		}
		if n != 1 {
			inner = reduced[d]
		}
	}
	out := root.node.out[0].spec
	if outputs != out.Shape.Size() {
		return fmt.Errorf("BUG: reducing axes %v of %v does not give %v", axes, shape, out.Shape)
	}
	if err := e.program(members[:len(members)-1], shape); err != nil {
		return err
	}
	if len(members) == 1 {
		if err := e.addOperand(root.in[0], shape); err != nil {
			return err
		}
	}
	if err := e.allot(root.node, 0); err != nil || outputs == 0 {
		return err
	}
	k.plan.Plan(k.arrange(shape, k.ops), reduced)
	pass := kernelgen.FirstPass(outputs, elements, inner, reducer.Acc)
	k.red = kernelgen.Reduction{Program: k.prog, Reducer: reducer, OutType: out.DType.MSL(), Pass: pass}
	data := root.node.out[0].data
	return e.passes(root.node.op.name, shape, Operand{out, data})
}

// passes encodes the kernels of the scratch's reduction: one, or more through temporaries for long ones.
func (e *recorder) passes(label string, shape Shape, out Operand) error {
	k := &e.kernel
	red, plan, ops := &k.red, &k.plan, k.ops
	for {
		pass := &red.Pass
		*pass = pass.For(plan, len(red.Program.Steps))
		for i := range plan.Strides {
			if red.Program.Operands[i].Class != kernelgen.Scalar {
				red.Program.Operands[i].Class = plan.Class(i)
			}
		}
		next, more := pass.NextPass()
		to := out
		if more {
			acc := kernelgen.AccSize(red.Reducer.Acc)
			origin := e.origin(e.op.temporary)
			buf, err := e.alloc(int64(pass.Outputs)*int64(pass.Parts)*int64(acc), &origin)
			if err != nil {
				return err
			}
			e.temps = append(e.temps, buf)
			to = Operand{View: View{buf: buf}}
		}
		if err := e.pass(label, shape, ops, to); err != nil || !more {
			return err
		}
		// The accumulators are the next pass's elements.
		acc := red.Reducer.Acc
		*red = kernelgen.Reduction{Reducer: red.Reducer, OutType: red.OutType, Pass: next}
		red.Reducer.Load = "$0"
		red.Program.Operands = []kernelgen.Operand{{Type: acc}}
		stride := []int{next.Reduced, 1}
		if next.Form == kernelgen.Lane {
			stride = []int{1, next.Outputs}
		}
		l := kernelgen.Layout{Shape: []int{next.Outputs, next.Reduced}, Strides: [][]int{stride}, Base: []int{0}}
		plan.Plan(&l, []bool{false, true})
		ops = []Operand{{View: to.View}}
		shape = nil
	}
}

// pass encodes one kernel of the scratch's reduction. A nil shape says that the only operand is a whole buffer.
func (e *recorder) pass(label string, shape Shape, ops []Operand, to Operand) error {
	k := &e.kernel
	red, plan := &k.red, &k.plan
	e.key = red.Key(append(e.key[:0], 'r'))
	float64s := red.Program.Float64() || red.OutType == "double" || red.Reducer.Acc == "double"
	src := e.source(label, float64s, func() string { return kernelgen.PrintReduce(red) })
	p, err := e.pipeline(src, kernelgen.ReduceEntry)
	if err != nil {
		return err
	}
	scalar := func(i int) bool { return red.Program.Operands[i].Class == kernelgen.Scalar }
	numbers, err := e.numbers(plan.Numbers(k.list[:0], red.Pass, scalar), red.Pass.Wide)
	if err != nil {
		return err
	}
	enc := e.encoder(label)
	enc.SetPipeline(p)
	for i, o := range ops {
		switch {
		case shape == nil:
			enc.SetBuffer(i, o.buf, 0)
		case shape.Size() == 0 && o.buf == nil:
			enc.SetBytes(i, make([]byte, leastBuffer))
		case shape.Size() == 0:
			enc.SetBuffer(i, o.buf, 0)
		case scalar(i):
			bind(enc, i, o.View, o.OffsetBytes, int64(o.DType.Size()))
		default:
			bindSpan(enc, i, o, shape)
		}
	}
	enc.SetBuffer(len(ops), to.buf, to.OffsetBytes)
	bind(enc, len(ops)+1, numbers, 0, int64(len(k.numbers)))
	return enc.Dispatch(threads(red.Pass.Threads()), groupSize)
}

// view gives a node views of its input's bytes; where the rule cannot, of a contiguous copy.
func (e *recorder) view(t *task) error {
	n, k := t.node, &e.kernel
	k.specs = k.specs[:0]
	for _, v := range t.in {
		k.specs = append(k.specs, v.Spec())
	}
	specs := k.specs
	in, err := e.operand(t.in[0])
	if err != nil {
		return err
	}
	out := e.outlook(n, in.View)
	if !n.op.view(specs, in.View, n.attrs, out) {
		if in, err = e.copied(in); err != nil {
			return err
		}
		if in.owner != nil { // a user of its own, until the outputs have theirs
			in.owner.users.Add(1)
			defer e.release(in.owner)
		}
		if out = e.outlook(n, in.View); !n.op.view(specs, in.View, n.attrs, out) {
			return errors.New("BUG: the View rule refuses a contiguous input")
		}
	}
	for i := range out {
		spec, v := n.out[i].spec, out[i].View
		v.buf, v.owner, v.inline = in.buf, in.owner, in.inline
		if spec.Shape.Size() == 0 {
			v = View{inline: []byte{}, Strides: spec.Shape.Strides()}
		} else if err := v.check(spec); err != nil {
			return err
		}
		if v.owner == nil && v.buf != nil { // a temporary of this call: another device's bytes, or an uploaded constant
			v.buf.Retain()
			e.lend(v.buf)
			v.owner = &storage{dev: e.dev, stream: e.s, buf: v.buf, external: true}
		}
		e.settleIn(n, i, v)
	}
	return nil
}

// outlook is the outputs of a node as its View rule finds them.
func (e *recorder) outlook(n *Node, v View) []Operand {
	out := resize(e.kernel.outOps, len(n.out))
	e.kernel.outOps = out
	for i := range out {
		out[i].Spec = n.out[i].spec
		out[i].OffsetBytes = v.OffsetBytes
		out[i].Strides = e.cut(len(out[i].Shape))
	}
	return out
}

// release gives a user of a storage back.
func (e *recorder) release(st *storage) {
	if st.users.Add(-1) == 0 {
		if buf := st.take(); buf != nil {
			e.recycle(buf)
		}
	}
}

// check says whether elements of that spec lie within the view's memory.
func (v View) check(s Spec) error {
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

// call runs a Run rule.
func (e *recorder) call(t *task) error {
	n := t.node
	r := &e.rule // no rule keeps it
	defer func() {
		clear(r.In)
		clear(r.Out)
		*r = Run{In: r.In[:0], Out: r.Out[:0]}
	}()
	*r = Run{e: e, node: n, In: resize(r.In, len(t.in)), Out: resize(r.Out, len(n.out))}
	if n.op.prepare != nil {
		r.Prepared = n.rare.prepared
	}
	for i, v := range t.in {
		r.In[i].Spec = v.Spec()
		if i >= t.from {
			continue
		}
		o, err := e.operand(v)
		if err == nil && slices.ContainsFunc(o.Strides, func(s int) bool { return s < 0 }) {
			o, err = e.contiguous(o)
		}
		if err != nil {
			return err
		}
		r.In[i] = o
	}
	for i := range n.out {
		if i == 0 && n.op.updates > 0 {
			if err := e.update(t, r); err != nil {
				return err
			}
		} else if err := e.allot(n, i); err != nil {
			return err
		}
		r.Out[i] = Operand{n.out[i].spec, n.out[i].data}
	}
	return n.op.run(r, n.attrs)
}

// update makes output 0 a copy of the input that the op changes in place, or its storage where nothing else reads
// it.
func (e *recorder) update(t *task, r *Run) error {
	n := t.node
	i := n.op.updates - 1
	if i >= t.from || !r.In[i].Shape.Equal(n.out[0].spec.Shape) {
		return errors.New("BUG: Updates names an input of another shape")
	}
	v, o := t.in[i], r.In[i]
	st := o.owner
	if st != nil && !e.plan.check && o.RowContiguous() && o.OffsetBytes == 0 && o.DType == n.out[0].spec.DType &&
		o.buf.Len() == max(o.NBytes(), leastBuffer) && st.users.Load() == 1 && e.lastRead(v, []int32{n.slot}) &&
		st.writable(e.s) {
		e.settleIn(n, 0, View{buf: o.buf, owner: st, Strides: o.Shape.Strides()})
		return nil
	}
	if err := e.allot(n, 0); err != nil {
		return err
	}
	return e.copyTo(Operand{n.out[0].spec, n.out[0].data}, o)
}

// contiguous copies an operand to a temporary.
func (e *recorder) contiguous(o Operand) (Operand, error) {
	to, err := e.temp(o.Spec)
	if err != nil {
		return Operand{}, err
	}
	return to, e.copyTo(to, o)
}

// copied copies an operand to a storage of its own.
func (e *recorder) copied(o Operand) (Operand, error) {
	origin := e.origin(e.op.copied)
	buf, err := e.alloc(o.NBytes(), &origin)
	if err != nil {
		return Operand{}, err
	}
	st := &storage{dev: e.dev, stream: e.s, buf: buf}
	to := Operand{o.Spec, View{buf: buf, owner: st, Strides: o.Shape.Strides()}}
	if err := e.copyTo(to, o); err != nil {
		buf.Release()
		return Operand{}, err
	}
	return to, nil
}

// copyTo encodes a copy with broadcasting and conversion.
func (e *recorder) copyTo(dst, src Operand) error {
	if s, err := Broadcast(src.Shape, dst.Shape); err != nil || !s.Equal(dst.Shape) {
		return fmt.Errorf("an array of shape %v cannot be copied to shape %v", src.Shape, dst.Shape)
	}
	if dst.Shape.Size() == 0 {
		return nil
	}
	if dst.buf == nil {
		return errors.New("BUG: copy into a constant")
	}
	src.View = src.broadcast(src.Shape, dst.Shape)
	n := dst.NBytes()
	if dst.DType == src.DType && src.buf != nil && src.Contiguous(dst.Shape) && dst.RowContiguous() {
		return e.encoder("copy").Copy(metal.Range{Buf: dst.buf, Offset: dst.OffsetBytes, Bytes: n},
			metal.Range{Buf: src.buf, Offset: src.OffsetBytes, Bytes: n})
	}
	k := &e.kernel
	*k, e.spare = e.spare, *k
	defer func() {
		k.begin()
		*k, e.spare = e.spare, *k
	}()
	k.ops = []Operand{src}
	if done, err := e.tiled(dst, src); done || err != nil {
		return err
	}
	k.prog.Operands = []kernelgen.Operand{{Type: src.DType.MSL(), Class: classIn(src.View, dst.Shape)}}
	k.prog.Steps = []kernelgen.Step{{Op: "copy", Type: dst.DType.MSL(), Text: conversion(src.DType, dst.DType),
		Args: []int{0}}}
	k.prog.Outputs, k.prog.Out = []int{1}, []kernelgen.Class{kernelgen.Linear}
	return e.general("copy", dst.Shape, []Operand{dst})
}

// tiled encodes a copy between layouts that run along different dimensions, if it is one and long enough.
func (e *recorder) tiled(dst, src Operand) (done bool, err error) {
	layout := e.kernel.arrange(dst.Shape, []Operand{src, dst})
	layout.Plan()
	t, ok := layout.Tile(src.DType.Size())
	if !ok {
		return false, nil
	}
	list, wide := t.Numbers()
	from, to, element := src.DType.MSL(), dst.DType.MSL(), conversion(src.DType, dst.DType)
	e.key = fmt.Appendf(e.key[:0], "t %s %s %s %v", from, to, element, wide)
	source := e.source("copy", from == "double" || to == "double", func() string {
		return kernelgen.PrintTile(from, to, element, src.DType.Size(), wide)
	})
	p, err := e.pipeline(source, kernelgen.TileEntry)
	if err != nil {
		return false, err
	}
	numbers, err := e.numbers(list, wide)
	if err != nil {
		return false, err
	}
	enc := e.encoder("copy")
	enc.SetPipeline(p)
	bindSpan(enc, 0, src, dst.Shape)
	bindSpan(enc, 1, dst, dst.Shape)
	bind(enc, 2, numbers, 0, int64(len(e.kernel.numbers)))
	return true, enc.Dispatch(threads(t.Threads()), groupSize)
}

// conversion is the MSL expression of an element in another dtype.
func conversion(from, to DType) string {
	switch {
	case from == to || !from.IsComplex():
		return "$0"
	case to == Bool:
		return "$0.real != 0 || $0.imag != 0"
	}
	return "$0.real"
}

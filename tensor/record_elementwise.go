package tensor

import (
	"encoding/binary"
	"math"

	"github.com/mlxlua/mlxlua/tensor/kernelgen"
)

// elementwise encodes a cluster of element-wise nodes as one kernel. It writes what someone may read: the root, and
// members that are live or that others of the segment read.
func (x *executor) elementwise(members []int32) error {
	if x.nothing(members) {
		for _, slot := range members {
			if err := x.viewRule(&x.seg.tasks[slot]); err != nil {
				return err
			}
		}
		return nil
	}
	k := &x.kernel
	root := x.seg.tasks[members[len(members)-1]].node
	shape := root.out[0].spec.Shape
	if shape.Size() == 0 {
		for _, slot := range members {
			n := x.seg.tasks[slot].node
			x.places.setData(n, 0, View{inline: []byte{}, Strides: n.out[0].spec.Shape.Strides()})
		}
		return nil
	}
	linear, err := x.expression(members, shape)
	if err != nil {
		return err
	}
	for _, v := range k.outs {
		if x.donate(v, members) {
			continue
		}
		if err := x.places.allot(v.Node, 0, true); err != nil {
			return err
		}
	}
	if linear {
		return x.linear(root.op.name, shape)
	}
	k.outOps = k.outOps[:0]
	for _, v := range k.outs {
		k.outOps = append(k.outOps, Operand{v.Spec(), v.Node.out[0].data})
	}
	return x.general(root.op.name, shape, k.outOps)
}

// nothing reports whether all that the members compute is their one input.
func (x *executor) nothing(members []int32) bool {
	for _, slot := range members {
		if !x.seg.tasks[slot].same() {
			return false
		}
	}
	return true
}

// expression fills the scratch with the members' expression and its outputs. It reports whether the kernel may go over
// elements in one line.
func (x *executor) expression(members []int32, shape Shape) (linear bool, err error) {
	k := &x.kernel
	if err := x.addSteps(members, shape); err != nil {
		return false, err
	}
	last := len(members) - 1
	for i, slot := range members {
		if i == last || x.plan.live[x.plan.base[slot]] {
			k.expr.Outputs = append(k.expr.Outputs, len(k.values)+i)
			k.expr.Out = append(k.expr.Out, kernelgen.Linear)
			k.outs = append(k.outs, Value{x.seg.tasks[slot].node, 0})
		}
	}
	linear = shape.Size() <= math.MaxInt32-kernelgen.RunLength
	for _, o := range k.expr.Operands {
		linear = linear && o.Class != kernelgen.Strided
	}
	return linear, nil
}

// donate gives an output of the cluster the storage of an operand that the cluster is the last to read. Each thread
// reads an element before it writes the one in its place. For a take it is an input's if one will do: in a replay the
// memory of others serves what comes next, and that of inputs does not.
func (x *executor) donate(out Value, members []int32) bool {
	k := &x.kernel
	if x.plan.single {
		return false // the operand is still to be looked at
	}
	if x.dry != nil {
		for i := range k.values {
			if x.dry.isInput(k.ops[i].buf) && x.donateFrom(i, out, members) {
				return true
			}
		}
	}
	for i := range k.values {
		if x.donateFrom(i, out, members) {
			return true
		}
	}
	return false
}

// donateFrom is donate for an operand of that number.
func (x *executor) donateFrom(i int, out Value, members []int32) bool {
	k := &x.kernel
	v, o, need := k.values[i], k.ops[i], out.Spec().NBytes()
	st := o.owner
	if st == nil || k.expr.Operands[i].Class != kernelgen.Linear || o.OffsetBytes != 0 ||
		v.Spec().NBytes() != need || o.buf.Len() != max(need, leastBuffer) || st.users.Load() != 1 {
		return false
	}
	if !x.places.mayOverwrite(v, st, members) {
		return false
	}
	o.buf.SetOrigin(out.Node.origin(0))
	x.job.bytes.Add(need)
	x.places.setData(out.Node, 0, View{buf: o.buf, owner: st, Strides: out.Spec().Shape.Strides()})
	x.batcher.indivisible()
	return true
}

// linear encodes the scratch's expression where all operands are contiguous or scalars.
func (x *executor) linear(label string, shape Shape) error {
	k := &x.kernel
	x.key = k.expr.Key(append(x.key[:0], 'l'))
	src := x.source(label, k.expr.Float64(), func() string { return kernelgen.PrintLinear(&k.expr) })
	p, err := x.pipeline(src, kernelgen.LinearEntry)
	if err != nil {
		return err
	}
	enc := x.batcher.encoder(label)
	enc.SetPipeline(p)
	at := 0
	for i, o := range k.ops {
		size := int64(o.DType.Size())
		if k.expr.Operands[i].Class == kernelgen.Linear {
			size *= int64(shape.Size())
		}
		bind(enc, at, o.View, o.OffsetBytes, size)
		at++
	}
	for _, v := range k.outs {
		d := v.Node.out[0].data
		bind(enc, at, d, d.OffsetBytes, v.Spec().NBytes())
		at++
	}
	n := shape.Size()
	k.numbers = binary.LittleEndian.AppendUint32(k.numbers[:0], uint32(n))
	enc.SetBytes(at, k.numbers)
	return enc.Dispatch(threads((n+kernelgen.RunLength-1)/kernelgen.RunLength*32), groupSize)
}

// strided is the layout of the scratch's operands and of outputs; the expression gets their classes in it.
func (k *kernelScratch) strided(shape Shape, outs []Operand) *kernelgen.Layout {
	k.all = append(append(k.all[:0], k.ops...), outs...)
	layout := k.arrange(shape, k.all)
	layout.PlanLanes(len(outs))
	for i := range k.expr.Operands {
		if k.expr.Operands[i].Class != kernelgen.Scalar {
			k.expr.Operands[i].Class = layout.Class(i)
		}
	}
	for i := range outs {
		k.expr.Out[i] = layout.Class(len(k.ops) + i)
		if k.expr.Out[i] == kernelgen.Repeat { // one element
			k.expr.Out[i] = kernelgen.Strided
		}
	}
	k.expr.Fold, k.expr.Rows = layout.Fold(k.expr.Fold.Strides), layout.Rows()
	return layout
}

// general encodes the scratch's expression over operands and outputs of any strides.
func (x *executor) general(label string, shape Shape, outs []Operand) error {
	k := &x.kernel
	layout := k.strided(shape, outs)
	all, wide := k.all, layout.Wide()
	x.key = append(x.key[:0], 'g')
	if wide {
		x.key[0] = 'w'
	}
	x.key = k.expr.Key(x.key)
	src := x.source(label, k.expr.Float64(), func() string { return kernelgen.PrintGeneral(&k.expr, wide) })
	p, err := x.pipeline(src, kernelgen.GeneralEntry)
	if err != nil {
		return err
	}
	scalar := func(i int) bool { return i < len(k.ops) && k.expr.Operands[i].Class == kernelgen.Scalar }
	numbers, err := x.numbers(layout.General(k.list[:0], scalar), wide)
	if err != nil {
		return err
	}
	enc := x.batcher.encoder(label)
	enc.SetPipeline(p)
	for i, o := range all {
		if scalar(i) {
			bind(enc, i, o.View, o.OffsetBytes, int64(o.DType.Size()))
		} else {
			bindSpan(enc, i, o, shape)
		}
	}
	bind(enc, len(all), numbers, 0, int64(len(k.numbers)))
	return enc.Dispatch(threads(layout.Runs()*32), groupSize)
}

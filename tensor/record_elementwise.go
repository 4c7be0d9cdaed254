package tensor

import (
	"encoding/binary"
	"math"

	"github.com/mlxlua/mlxlua/tensor/kernelgen"
)

// elementwise encodes a cluster of element-wise nodes as one kernel. It writes what someone may read: the root, and
// members that are live or that others of the segment read.
func (rec *recorder) elementwise(members []int32) error {
	if rec.nothing(members) {
		for _, slot := range members {
			if err := rec.viewRule(&rec.seg.tasks[slot]); err != nil {
				return err
			}
		}
		return nil
	}
	k := &rec.kernel
	root := rec.seg.tasks[members[len(members)-1]].node
	shape := root.out[0].spec.Shape
	if shape.Size() == 0 {
		for _, slot := range members {
			n := rec.seg.tasks[slot].node
			rec.setData(n, 0, View{inline: []byte{}, Strides: n.out[0].spec.Shape.Strides()})
		}
		return nil
	}
	linear, err := rec.expression(members, shape)
	if err != nil {
		return err
	}
	for _, v := range k.outs {
		if rec.donate(v, members) {
			continue
		}
		if err := rec.allot(v.Node, 0, true); err != nil {
			return err
		}
	}
	if linear {
		return rec.linear(root.op.name, shape)
	}
	k.outOps = k.outOps[:0]
	for _, v := range k.outs {
		k.outOps = append(k.outOps, Operand{v.Spec(), v.Node.out[0].data})
	}
	return rec.general(root.op.name, shape, k.outOps)
}

// nothing reports whether all that the members compute is their one input.
func (rec *recorder) nothing(members []int32) bool {
	for _, slot := range members {
		if !rec.seg.tasks[slot].same() {
			return false
		}
	}
	return true
}

// expression fills the scratch with the members' expression and its outputs. It reports whether the kernel may go over
// elements in one line.
func (rec *recorder) expression(members []int32, shape Shape) (linear bool, err error) {
	k := &rec.kernel
	if err := rec.addSteps(members, shape); err != nil {
		return false, err
	}
	last := len(members) - 1
	for i, slot := range members {
		if i == last || rec.plan.live[rec.plan.base[slot]] {
			k.expr.Outputs = append(k.expr.Outputs, len(k.values)+i)
			k.expr.Out = append(k.expr.Out, kernelgen.Linear)
			k.outs = append(k.outs, Value{rec.seg.tasks[slot].node, 0})
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
func (rec *recorder) donate(out Value, members []int32) bool {
	k := &rec.kernel
	if rec.plan.single {
		return false // the operand is still to be looked at
	}
	if rec.dry != nil {
		for i := range k.values {
			if rec.dry.isInput(k.ops[i].buf) && rec.donateFrom(i, out, members) {
				return true
			}
		}
	}
	for i := range k.values {
		if rec.donateFrom(i, out, members) {
			return true
		}
	}
	return false
}

// donateFrom is donate for an operand of that number.
func (rec *recorder) donateFrom(i int, out Value, members []int32) bool {
	k := &rec.kernel
	v, o, need := k.values[i], k.ops[i], out.Spec().NBytes()
	st := o.owner
	if st == nil || k.expr.Operands[i].Class != kernelgen.Linear || o.OffsetBytes != 0 ||
		v.Spec().NBytes() != need || o.buf.Len() != max(need, leastBuffer) || st.users.Load() != 1 {
		return false
	}
	if !rec.mayOverwrite(v, st, members) {
		return false
	}
	o.buf.SetOrigin(out.Node.origin(0))
	rec.job.bytes.Add(need)
	rec.setData(out.Node, 0, View{buf: o.buf, owner: st, Strides: out.Spec().Shape.Strides()})
	rec.batcher.indivisible()
	return true
}

// mayOverwrite reports whether the members may write over a value that lies in st: nothing reads it after them. In this
// order: without a handle no host view opens any more, what may be spent is behind a gate from now on, and an undoing
// that was faster has given it a handle.
func (rec *recorder) mayOverwrite(v Value, st *storage, members []int32) bool {
	return rec.lastRead(v, members) && st.writable(rec.s) && rec.gates.maySpend(v) && v.unheld(rec.job.proof)
}

// lastRead reports whether nothing reads the value after the members have. Who asked for it and let go of it does not.
func (rec *recorder) lastRead(v Value, members []int32) bool {
	var reads int32
	for _, slot := range members {
		for _, r := range rec.seg.tasks[slot].reads() {
			if r == v {
				reads++
			}
		}
	}
	o := &v.Node.out[v.Out]
	return o.readers.waiting() == reads && v.unheld(rec.job.proof)
}

// linear encodes the scratch's expression where all operands are contiguous or scalars.
func (rec *recorder) linear(label string, shape Shape) error {
	k := &rec.kernel
	rec.key = k.expr.Key(append(rec.key[:0], 'l'))
	src := rec.source(label, k.expr.Float64(), func() string { return kernelgen.PrintLinear(&k.expr) })
	p, err := rec.pipeline(src, kernelgen.LinearEntry)
	if err != nil {
		return err
	}
	enc := rec.batcher.encoder(label)
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
func (rec *recorder) general(label string, shape Shape, outs []Operand) error {
	k := &rec.kernel
	layout := k.strided(shape, outs)
	all, wide := k.all, layout.Wide()
	rec.key = append(rec.key[:0], 'g')
	if wide {
		rec.key[0] = 'w'
	}
	rec.key = k.expr.Key(rec.key)
	src := rec.source(label, k.expr.Float64(), func() string { return kernelgen.PrintGeneral(&k.expr, wide) })
	p, err := rec.pipeline(src, kernelgen.GeneralEntry)
	if err != nil {
		return err
	}
	scalar := func(i int) bool { return i < len(k.ops) && k.expr.Operands[i].Class == kernelgen.Scalar }
	numbers, err := rec.numbers(layout.General(k.list[:0], scalar), wide)
	if err != nil {
		return err
	}
	enc := rec.batcher.encoder(label)
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

package tensor

import (
	"encoding/binary"
	"math"
	"slices"

	"github.com/mlxlua/mlxlua/metal"
	"github.com/mlxlua/mlxlua/tensor/kernelgen"
)

// kernelScratch is what printing and binding a generated kernel needs, kept between kernels.
type kernelScratch struct {
	prog    kernelgen.Expression
	values  []Value // the operands
	ops     []Operand
	outs    []Value
	numbers []byte
	all     []Operand // operands and outputs
	outOps  []Operand
	layout  kernelgen.Layout
	ints    []int // where shapes and strides are cut from
	list    []int
	dtypes  []DType
	specs   []Spec // of a reduction's inputs
	reduced []bool // which dimensions it reduces
	red     kernelgen.Reduction
	plan    kernelgen.ReduceLayout
}

// maxTexts bounds the generated texts that a stream remembers; their libraries have a cache of their own.
const maxTexts = 4096

// begin empties the scratch.
func (k *kernelScratch) begin() {
	k.prog.Operands, k.prog.Steps = k.prog.Operands[:0], k.prog.Steps[:0]
	k.prog.Outputs, k.prog.Out = k.prog.Outputs[:0], k.prog.Out[:0]
	clear(k.values)
	clear(k.ops)
	clear(k.outs)
	clear(k.all)
	clear(k.outOps)
	k.values, k.ops, k.outs = k.values[:0], k.ops[:0], k.outs[:0]
	k.ints = k.ints[:0]
}

// keep copies a shape or strides into the scratch, until begin.
func (k *kernelScratch) keep(v []int) []int {
	at := len(k.ints)
	k.ints = append(k.ints, v...)
	return k.ints[at:len(k.ints):len(k.ints)]
}

// cut is n zeros of the scratch, until begin.
func (k *kernelScratch) cut(n int) []int {
	at := len(k.ints)
	for range n {
		k.ints = append(k.ints, 0)
	}
	return k.ints[at:len(k.ints):len(k.ints)]
}

// arrange makes the scratch's layout that of operands seen over a shape.
func (k *kernelScratch) arrange(shape Shape, ops []Operand) *kernelgen.Layout {
	l := &k.layout
	l.Shape, l.Strides, l.Base = k.keep(shape), l.Strides[:0], l.Base[:0]
	for _, o := range ops {
		low, _ := o.span(Spec{shape, o.DType})
		l.Strides = append(l.Strides, k.keep(o.Strides))
		l.Base = append(l.Base, int(-low)/o.DType.Size())
	}
	return l
}

// addOperand makes a value an operand of the program, unless it is one already: its number is its place in k.values.
func (e *recorder) addOperand(v Value, shape Shape) error {
	k := &e.kernel
	if slices.Contains(k.values, v) {
		return nil
	}
	o, err := e.operand(v)
	if err != nil {
		return err
	}
	if !slices.Equal(o.Shape, shape) { // a shape of its own keeps its strides
		o.View = o.broadcastInto(k.cut(len(shape)), o.Shape, shape)
	}
	k.values, k.ops = append(k.values, v), append(k.ops, o)
	k.prog.Operands = append(k.prog.Operands, kernelgen.Operand{Type: o.DType.MSL(), Class: classIn(o.View, shape)})
	return nil
}

// classIn is Scalar, Linear, or else Strided.
func classIn(v View, shape Shape) kernelgen.Class {
	scalar := true
	for d, n := range shape {
		scalar = scalar && (n == 1 || v.Strides[d] == 0)
	}
	switch {
	case scalar:
		return kernelgen.Scalar
	case v.Contiguous(shape):
		return kernelgen.Linear
	}
	return kernelgen.Strided
}

// program fills the scratch with the members' expressions: first all operands, then the steps.
func (e *recorder) program(members []int32, shape Shape) error {
	k, p := &e.kernel, &e.plan
	for _, slot := range members {
		p.step[slot] = 0
	}
	defer func() {
		for _, slot := range members {
			p.step[slot] = notMember
		}
	}()
	for _, slot := range members {
		for _, v := range e.seg.tasks[slot].reads() {
			if e.stepOf(v) == notMember {
				if err := e.addOperand(v, shape); err != nil {
					return err
				}
			}
		}
	}
	for i, slot := range members {
		t := &e.seg.tasks[slot]
		args := k.cut(t.from)
		k.dtypes = k.dtypes[:0]
		for j, v := range t.reads() {
			if args[j] = e.stepOf(v); args[j] == notMember {
				args[j] = slices.Index(k.values, v)
			}
			k.dtypes = append(k.dtypes, v.Spec().DType)
		}
		p.step[slot] = int32(len(k.values) + i)
		k.prog.Steps = append(k.prog.Steps, kernelgen.Step{Op: t.node.op.name, Type: t.node.out[0].spec.DType.MSL(),
			Text: t.node.op.expr(t.node.attrs, k.dtypes), Args: args})
	}
	return nil
}

// stepOf is the place in the program of a value that a member computes, else notMember.
func (e *recorder) stepOf(v Value) int {
	if v.Node.seg != e.seg {
		return notMember
	}
	return int(e.plan.step[v.Node.slot])
}

// elementwise encodes a cluster of element-wise nodes as one kernel. It writes what someone may read: the root, and
// members that are live or that others of the segment read.
func (e *recorder) elementwise(members []int32) error {
	k := &e.kernel
	root := e.seg.tasks[members[len(members)-1]].node
	shape := root.out[0].spec.Shape
	if shape.Size() == 0 {
		for _, slot := range members {
			n := e.seg.tasks[slot].node
			e.settleIn(n, 0, View{inline: []byte{}, Strides: n.out[0].spec.Shape.Strides()})
		}
		return nil
	}
	if err := e.program(members, shape); err != nil {
		return err
	}
	for i, slot := range members {
		t := &e.seg.tasks[slot]
		if t.node == root || e.plan.live[e.plan.base[slot]] {
			k.prog.Outputs = append(k.prog.Outputs, len(k.values)+i)
			k.prog.Out = append(k.prog.Out, kernelgen.Linear)
			k.outs = append(k.outs, Value{t.node, 0})
		}
	}
	for _, v := range k.outs {
		if e.donate(v, members) {
			continue
		}
		if err := e.allot(v.Node, 0); err != nil {
			return err
		}
	}
	linear := shape.Size() <= math.MaxInt32-kernelgen.RunLength
	for _, o := range k.prog.Operands {
		linear = linear && o.Class != kernelgen.Strided
	}
	if linear {
		return e.linear(root.op.name, shape)
	}
	k.outOps = k.outOps[:0]
	for _, v := range k.outs {
		k.outOps = append(k.outOps, Operand{v.Spec(), v.Node.out[0].data})
	}
	return e.general(root.op.name, shape, k.outOps)
}

// donate gives an output of the cluster the storage of an operand that the cluster is the last to read. Each thread
// reads an element before it writes the one in its place.
func (e *recorder) donate(out Value, members []int32) bool {
	k := &e.kernel
	if e.plan.check {
		return false // the operand is still to be looked at
	}
	need := out.Spec().NBytes()
	for i, v := range k.values {
		o := k.ops[i]
		st := o.owner
		if st == nil || k.prog.Operands[i].Class != kernelgen.Linear || o.OffsetBytes != 0 ||
			v.Spec().NBytes() != need || o.buf.Len() != max(need, leastBuffer) || st.users.Load() != 1 {
			continue
		}
		if !e.lastRead(v, members) || !st.writable(e.s) { // in this order: without a handle no host view opens any more
			continue
		}
		e.settleIn(out.Node, 0, View{buf: o.buf, owner: st, Strides: out.Spec().Shape.Strides()})
		return true
	}
	return false
}

// lastRead says whether nothing reads the value after the members have.
func (e *recorder) lastRead(v Value, members []int32) bool {
	var reads int32
	for _, slot := range members {
		for _, r := range e.seg.tasks[slot].reads() {
			if r == v {
				reads++
			}
		}
	}
	o := &v.Node.out[v.Out]
	return o.uses.Load() == reads && (!o.asked || v.Node.now() >= Ready) && v.unheld()
}

// source is the kernel of the scratch's key, printed on first use.
func (e *recorder) source(label string, float64s bool, print func() string) metal.Source {
	if src, ok := e.texts[string(e.key)]; ok {
		return src
	}
	if len(e.texts) >= maxTexts {
		clear(e.texts)
	}
	src := metal.Source{Label: label, Text: print(),
		Options: metal.Options{MathMode: metal.MathSafe, Float64: float64s, Portable: true}}
	e.texts[string(e.key)] = src
	return src
}

// linear encodes the scratch's program where all operands are contiguous or scalars.
func (e *recorder) linear(label string, shape Shape) error {
	k := &e.kernel
	e.key = k.prog.Key(append(e.key[:0], 'l'))
	src := e.source(label, k.prog.Float64(), func() string { return kernelgen.PrintLinear(&k.prog) })
	p, err := e.pipeline(src, kernelgen.LinearEntry)
	if err != nil {
		return err
	}
	enc := e.encoder(label)
	enc.SetPipeline(p)
	at := 0
	for i, o := range k.ops {
		size := int64(o.DType.Size())
		if k.prog.Operands[i].Class == kernelgen.Linear {
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

var groupSize = metal.Size{X: kernelgen.GroupThreads, Y: 1, Z: 1}

func threads(n int) metal.Size { return metal.Size{X: n, Y: 1, Z: 1} }

// bind binds n bytes of a view's memory from an offset on.
func bind(enc *metal.Encoder, param int, v View, offset, n int64) {
	if v.buf != nil {
		enc.SetBufferRange(param, metal.Range{Buf: v.buf, Offset: offset, Bytes: n})
		return
	}
	enc.SetBytes(param, v.inline[offset:offset+n])
}

// bindSpan binds the bytes that elements of the shape occupy; the layout's Base says which is the first one's.
func bindSpan(enc *metal.Encoder, param int, o Operand, shape Shape) {
	low, high := o.span(Spec{shape, o.DType})
	bind(enc, param, o.View, o.OffsetBytes+low, high-low)
}

// general encodes the scratch's program over operands and outputs of any strides.
func (e *recorder) general(label string, shape Shape, outs []Operand) error {
	k := &e.kernel
	k.all = append(append(k.all[:0], k.ops...), outs...)
	all := k.all
	layout := k.arrange(shape, all)
	layout.Plan()
	for i := range k.prog.Operands {
		if k.prog.Operands[i].Class != kernelgen.Scalar {
			k.prog.Operands[i].Class = layout.Class(i)
		}
	}
	for i := range outs {
		k.prog.Out[i] = layout.Class(len(k.ops) + i)
		if k.prog.Out[i] == kernelgen.Repeat { // one element
			k.prog.Out[i] = kernelgen.Strided
		}
	}
	wide := layout.Wide()
	e.key = append(e.key[:0], 'g')
	if wide {
		e.key[0] = 'w'
	}
	e.key = k.prog.Key(e.key)
	src := e.source(label, k.prog.Float64(), func() string { return kernelgen.PrintGeneral(&k.prog, wide) })
	p, err := e.pipeline(src, kernelgen.GeneralEntry)
	if err != nil {
		return err
	}
	scalar := func(i int) bool { return i < len(k.ops) && k.prog.Operands[i].Class == kernelgen.Scalar }
	numbers, err := e.numbers(layout.General(k.list[:0], scalar), wide)
	if err != nil {
		return err
	}
	enc := e.encoder(label)
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

// numbers are int or long arguments: inline, or in a temporary buffer where they are many.
func (e *recorder) numbers(v []int, wide bool) (View, error) {
	k := &e.kernel
	k.list, k.numbers = v, k.numbers[:0]
	for _, x := range v {
		if wide {
			k.numbers = binary.LittleEndian.AppendUint64(k.numbers, uint64(x))
		} else {
			k.numbers = binary.LittleEndian.AppendUint32(k.numbers, uint32(x))
		}
	}
	view := View{inline: k.numbers}
	if len(k.numbers) > e.dev.Info().Limits.InlineBytes {
		return e.upload(view)
	}
	return view, nil
}

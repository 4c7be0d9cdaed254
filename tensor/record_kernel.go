package tensor

import (
	"encoding/binary"
	"slices"
	"time"

	"github.com/mlxlua/mlxlua/metal"
	"github.com/mlxlua/mlxlua/tensor/kernelgen"
)

// kernelScratch is what printing and binding a generated kernel needs, kept between kernels.
type kernelScratch struct {
	expr    kernelgen.Expression
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
	rest    []bool // which ones it reduces in a second step
	red     kernelgen.Reduction
	plan    kernelgen.ReduceLayout
}

// maxTexts bounds the generated texts that a stream remembers; their libraries have a cache of their own.
const maxTexts = 4096

// begin empties the scratch.
func (k *kernelScratch) begin() {
	k.expr.Operands, k.expr.Steps = k.expr.Operands[:0], k.expr.Steps[:0]
	k.expr.Outputs, k.expr.Out = k.expr.Outputs[:0], k.expr.Out[:0]
	k.expr.Fold.Size, k.expr.Rows = 0, false
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

// addOperand makes a value an operand of the expression, unless it is one already: its number is its place in k.values.
func (rec *recorder) addOperand(v Value, shape Shape) error {
	k := &rec.kernel
	if slices.Contains(k.values, v) {
		return nil
	}
	o, err := rec.operand(v)
	if err != nil {
		return err
	}
	if !slices.Equal(o.Shape, shape) { // a shape of its own keeps its strides
		o.View = o.broadcastInto(k.cut(len(shape)), o.Shape, shape)
	}
	k.values, k.ops = append(k.values, v), append(k.ops, o)
	k.expr.Operands = append(k.expr.Operands, kernelgen.Operand{Type: o.DType.MSL(), Class: classIn(o.View, shape)})
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

// addSteps fills the scratch with the members' expressions: first all operands, then the steps.
func (rec *recorder) addSteps(members []int32, shape Shape) error {
	k, p := &rec.kernel, &rec.plan
	for _, slot := range members {
		p.step[slot] = 0
	}
	defer func() {
		for _, slot := range members {
			p.step[slot] = notMember
		}
	}()
	for _, slot := range members {
		for _, v := range rec.seg.tasks[slot].reads() {
			if rec.stepOf(v) == notMember {
				if err := rec.addOperand(v, shape); err != nil {
					return err
				}
			}
		}
	}
	for i, slot := range members {
		t := &rec.seg.tasks[slot]
		args := k.cut(t.from)
		k.dtypes = k.dtypes[:0]
		for j, v := range t.reads() {
			if args[j] = rec.stepOf(v); args[j] == notMember {
				args[j] = slices.Index(k.values, v)
			}
			k.dtypes = append(k.dtypes, v.Spec().DType)
		}
		text := "$0"
		if t.node.op.expr != nil {
			text = t.node.op.expr(t.node.attrs, k.dtypes)
		}
		p.step[slot] = int32(len(k.values) + i)
		k.expr.Steps = append(k.expr.Steps, kernelgen.Step{Op: t.node.op.name, Type: t.node.out[0].spec.DType.MSL(),
			Text: text, Args: args})
	}
	return nil
}

// stepOf is the place in the expression of a value that a member computes, else notMember.
func (rec *recorder) stepOf(v Value) int {
	if v.Node.seg != rec.seg {
		return notMember
	}
	return int(rec.plan.step[v.Node.slot])
}

// source is the kernel of the scratch's key, printed on first use.
func (rec *recorder) source(label string, float64s bool, print func() string) metal.Source {
	if src, ok := rec.texts[string(rec.key)]; ok {
		return src
	}
	if len(rec.texts) >= maxTexts {
		clear(rec.texts)
	}
	src := metal.Source{Label: label, Text: print(),
		Options: metal.Options{MathMode: metal.MathSafe, Float64: float64s, Portable: true}}
	rec.texts[string(rec.key)] = src
	return src
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

// numbers are int or long arguments: inline, or in a temporary buffer where they are many.
func (rec *recorder) numbers(v []int, wide bool) (View, error) {
	k := &rec.kernel
	k.list, k.numbers = v, k.numbers[:0]
	for _, x := range v {
		if wide {
			k.numbers = binary.LittleEndian.AppendUint64(k.numbers, uint64(x))
		} else {
			k.numbers = binary.LittleEndian.AppendUint32(k.numbers, uint32(x))
		}
	}
	view := View{inline: k.numbers}
	if len(k.numbers) > rec.dev.Info().Limits.InlineBytes {
		return rec.memory.upload(view)
	}
	return view, nil
}

// pipeline compiles, or finds, a kernel.
func (rec *recorder) pipeline(src metal.Source, entry string) (*metal.Pipeline, error) {
	var compiling Span
	if timeline.Load() != nil && !rec.dev.LibraryCached(src) {
		compiling = rec.span("compile", src.Label)
	}
	var begun time.Time
	p := profile.Load()
	if p != nil && !rec.dev.LibraryCached(src) {
		begun = time.Now()
	}
	lib, err := rec.dev.LibraryFor(rec.job.ctx, src, rec.job.proof.holder.Libraries())
	compiling.End(rec.batcher.place)
	if !begun.IsZero() {
		p.add(profileKey{src.Label, "compile", rec.batcher.place}, ProfileRow{Calls: 1, Time: time.Since(begun)})
	}
	if err != nil {
		return nil, err
	}
	return lib.Pipeline(entry)
}

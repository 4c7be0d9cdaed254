package tensor

import (
	"encoding/binary"
	"fmt"
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

// executor encodes what needs no rule of an op's own: kernels that are printed, copies and views.
type executor struct {
	*current
	s       *Stream
	dev     *metal.Device
	memory  *allocator
	batcher *batcher
	places  *placer

	texts  map[string]metal.Source // generated kernels by key
	key    []byte
	kernel kernelScratch
	spare  kernelScratch // for a copy that a rule makes while its own kernel is being prepared
}

// addOperand makes a value an operand of the expression, unless it is one already: its number is its place in k.values.
func (x *executor) addOperand(v Value, shape Shape) error {
	k := &x.kernel
	if slices.Contains(k.values, v) {
		return nil
	}
	o, err := x.places.operand(v)
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
func (x *executor) addSteps(members []int32, shape Shape) error {
	k, p := &x.kernel, &x.plan
	for _, slot := range members {
		p.step[slot] = 0
	}
	defer func() {
		for _, slot := range members {
			p.step[slot] = notMember
		}
	}()
	for _, slot := range members {
		for _, v := range x.seg.tasks[slot].reads() {
			if x.stepOf(v) == notMember {
				if err := x.addOperand(v, shape); err != nil {
					return err
				}
			}
		}
	}
	for i, slot := range members {
		t := &x.seg.tasks[slot]
		args := k.cut(t.from)
		k.dtypes = k.dtypes[:0]
		for j, v := range t.reads() {
			if args[j] = x.stepOf(v); args[j] == notMember {
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
func (x *executor) stepOf(v Value) int {
	if v.Node.seg != x.seg {
		return notMember
	}
	return int(x.plan.step[v.Node.slot])
}

// source is the kernel of the scratch's key, printed on first use.
func (x *executor) source(label string, float64s bool, print func() string) metal.Source {
	if src, ok := x.texts[string(x.key)]; ok {
		return src
	}
	if len(x.texts) >= maxTexts {
		clear(x.texts)
	}
	src := metal.Source{Label: label, Text: print(),
		Options: metal.Options{MathMode: metal.MathSafe, Float64: float64s, Portable: true}}
	x.texts[string(x.key)] = src
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
func (x *executor) numbers(v []int, wide bool) (View, error) {
	k := &x.kernel
	k.list, k.numbers = v, k.numbers[:0]
	for _, x := range v {
		if wide {
			k.numbers = binary.LittleEndian.AppendUint64(k.numbers, uint64(x))
		} else {
			k.numbers = binary.LittleEndian.AppendUint32(k.numbers, uint32(x))
		}
	}
	view := View{inline: k.numbers}
	if len(k.numbers) > x.dev.Info().Limits.InlineBytes {
		return x.memory.upload(view)
	}
	return view, nil
}

// pipeline compiles, or finds, a kernel.
func (x *executor) pipeline(src metal.Source, entry string) (*metal.Pipeline, error) {
	var compiling Span
	if timeline.Load() != nil && !x.dev.LibraryCached(src) {
		compiling = x.s.span("compile", src.Label)
	}
	var begun time.Time
	p := profile.Load()
	if p != nil && !x.dev.LibraryCached(src) {
		begun = time.Now()
	}
	lib, err := x.dev.LibraryFor(x.job.ctx, src, x.job.proof.holder.Libraries())
	compiling.End(x.batcher.place)
	if !begun.IsZero() {
		p.add(profileKey{src.Label, "compile", x.batcher.place}, ProfileRow{Calls: 1, Time: time.Since(begun)})
	}
	if err != nil {
		return nil, err
	}
	return lib.Pipeline(entry)
}

// dispatch binds arguments and encodes a launch.
func (x *executor) dispatch(label string, p *metal.Pipeline, grid, threadgroup metal.Size, args []Arg) error {
	if len(args) != len(p.Params()) {
		return fmt.Errorf("kernel %s has %d parameters, %d were given", p.Name(), len(p.Params()), len(args))
	}
	for i := range args {
		if a := &args[i]; a.kind == argBad {
			return fmt.Errorf("kernel %s, argument %d: %s", p.Name(), i, string(a.view.inline))
		} else if (a.kind == argView || a.kind == argSpan) && a.view.buf == nil && p.Params()[i].Write {
			v, err := x.memory.upload(a.view)
			if err != nil {
				return err
			}
			a.view = v
		}
	}
	enc := x.batcher.encoder(label)
	enc.SetPipeline(p)
	for i := range args {
		a := &args[i]
		switch {
		case a.kind == argBytes:
			if n := p.Params()[i].ElemSize; n > 0 && len(a.view.inline)%n != 0 {
				return fmt.Errorf("kernel %s, argument %d: %d bytes, an element of %s has %d", p.Name(), i, len(a.view.inline),
					p.Params()[i].Name, n)
			}
			enc.SetBytes(i, a.view.inline)
		case a.kind == argSmall:
			if n := p.Params()[i].ElemSize; n != int(a.n) {
				return fmt.Errorf("kernel %s, argument %d: %d bytes, %s has %d", p.Name(), i, a.n, p.Params()[i].Name, n)
			}
			var word [8]byte
			binary.LittleEndian.PutUint64(word[:], uint64(a.view.OffsetBytes))
			enc.SetBytes(i, word[:a.n])
		case a.kind == argSpan:
			bind(enc, i, a.view, a.view.OffsetBytes, a.bytes)
		case a.view.buf != nil:
			enc.SetBuffer(i, a.view.buf, a.view.OffsetBytes)
		case a.view.OffsetBytes <= int64(len(a.view.inline)):
			enc.SetBytes(i, a.view.inline[a.view.OffsetBytes:])
		}
	}
	return enc.Dispatch(grid, threadgroup)
}

package tensor

import (
	"context"
	"encoding/binary"
	"fmt"
	"math"

	"github.com/mlxlua/mlxlua/metal"
)

// Operand is an input or output of a call that is being executed: what it is, and where its elements lie. An input
// of which only the spec is read has no View.
type Operand struct {
	Spec
	View
}

// RowContiguous says whether the elements lie in row-major order without gaps.
func (o Operand) RowContiguous() bool { return o.Contiguous(o.Shape) }

// Arg binds the operand: its first element comes first, the bytes reach to the end of its buffer.
func (o Operand) Arg() Arg { return Arg{kind: argView, view: o.View} }

// Arg is an argument of Run.Dispatch.
type Arg struct {
	view View // of argBytes inline, of argSmall OffsetBytes alone: the bytes themselves
	kind argKind
	n    uint8 // of argSmall: how many bytes
}

type argKind uint8

const (
	argBytes argKind = iota
	argSmall
	argView
	argBad
)

func bytesArg(b []byte) Arg { return Arg{view: View{inline: b}} }

func wordsArg[T int32 | uint32](v []T) Arg {
	b := make([]byte, 0, 4*len(v))
	for _, x := range v {
		b = binary.LittleEndian.AppendUint32(b, uint32(x))
	}
	return bytesArg(b)
}

// smallArg is the first n bytes of v, in the argument itself.
func smallArg(n uint8, v uint64) Arg {
	return Arg{kind: argSmall, n: n, view: View{OffsetBytes: int64(v)}}
}

func badArg(format string, v any) Arg {
	return Arg{kind: argBad, view: View{inline: fmt.Appendf(nil, format, v)}}
}

// Const is inline bytes: a bool, a sized integer or float, complex64, or a slice of such, or bytes as they are, which
// are no copy: they must not change before Dispatch. An int is an int32, and must fit. Anything else is an error at
// Dispatch.
func Const[T any](v T) Arg {
	switch v := any(v).(type) { // what rules use all the time becomes no object that the value is put into
	case []byte:
		return bytesArg(v)
	case []int32:
		return wordsArg(v)
	case []uint32:
		return wordsArg(v)
	case []int64:
		b := make([]byte, 0, 8*len(v))
		for _, x := range v {
			b = binary.LittleEndian.AppendUint64(b, uint64(x))
		}
		return bytesArg(b)
	case int:
		if v < math.MinInt32 || v > math.MaxInt32 {
			return badArg("%d does not fit in an int32", v)
		}
		return smallArg(4, uint64(uint32(v)))
	case int32:
		return smallArg(4, uint64(uint32(v)))
	case uint32:
		return smallArg(4, uint64(v))
	case float32:
		return smallArg(4, uint64(math.Float32bits(v)))
	case int64:
		return smallArg(8, uint64(v))
	case uint64:
		return smallArg(8, v)
	}
	b, err := binary.Append(nil, binary.LittleEndian, v)
	if err != nil {
		return badArg("a %T cannot be a kernel argument", v)
	}
	return bytesArg(b)
}

// Run is a call that is being executed: a Run rule encodes its kernels with it. It is valid during the rule only.
type Run struct {
	// In are the inputs; those of which only the spec is read have no View. Their strides are not negative.
	In []Operand
	// Out are the outputs: allocated, row-contiguous, with any contents; with Rules.Updates output 0 holds the
	// input's elements.
	Out []Operand
	// Prepared is what the Prepare rule gave.
	Prepared any

	e    *recorder
	node *Node
}

// Context is done when the evaluation is cancelled.
func (r *Run) Context() context.Context { return r.e.job.ctx }

// Device is where the call runs.
func (r *Run) Device() *metal.Device { return r.e.dev }

// Info describes the device.
func (r *Run) Info() metal.Info { return r.e.dev.Info() }

// OpName is the op's name.
func (r *Run) OpName() string { return r.node.op.name }

// Place is the line that called the op.
func (r *Run) Place() Place { return r.node.Place() }

// Contiguous is input i, in row-major order: copied to a temporary if it is not. It fails when memory is short.
func (r *Run) Contiguous(i int) (Operand, error) { return r.ContiguousOf(r.In[i]) }

// AllContiguous is the first n inputs as Contiguous gives them, also in In from now on.
func (r *Run) AllContiguous(n int) ([]Operand, error) {
	for i := range n {
		var err error
		if r.In[i], err = r.Contiguous(i); err != nil {
			return nil, err
		}
	}
	return r.In[:n], nil
}

// ContiguousOf is o in row-major order: copied to a temporary if it is not.
func (r *Run) ContiguousOf(o Operand) (Operand, error) {
	if o.RowContiguous() {
		return o, nil
	}
	return r.e.contiguous(o)
}

// Temp is memory for an array of the spec, in row-major order, with any contents. It is given back after the call.
func (r *Run) Temp(spec Spec) (Operand, error) { return r.e.temp(spec) }

// CopyTo copies src, broadcast to dst's shape and converted to its dtype, to dst; both may lie in any way, but must
// not overlap. It fails if the shapes do not fit.
func (r *Run) CopyTo(dst, src Operand) error { return r.e.copyTo(dst, src) }

// Fill sets all elements of out to pattern, which is one element.
func (r *Run) Fill(out Operand, pattern []byte) error {
	if len(pattern) != out.DType.Size() {
		return fmt.Errorf("a pattern of %d bytes does not fill %v", len(pattern), out.DType)
	}
	if out.Shape.Size() == 0 {
		return nil
	}
	if !out.RowContiguous() || out.buf == nil {
		return r.e.copyTo(out, Operand{Spec{Shape{}, out.DType}, View{inline: append([]byte(nil), pattern...)}})
	}
	enc := r.e.encoder(r.node.op.name)
	return enc.Fill(metal.Range{Buf: out.buf, Offset: out.OffsetBytes, Bytes: out.NBytes()}, pattern)
}

// Kernel is the pipeline of an entry point of MSL text: compiled on first use. It fails with the text's errors, and
// with the context's cause when the evaluation is cancelled.
func (r *Run) Kernel(src metal.Source, entry string) (*metal.Pipeline, error) {
	return r.e.pipeline(src, entry)
}

// Dispatch encodes a run of a kernel over a grid of threads, with arguments in the order of its parameters. It
// fails if one does not fit.
func (r *Run) Dispatch(p *metal.Pipeline, grid, threadgroup metal.Size, args ...Arg) error {
	return r.e.dispatch(r.node.op.name, p, grid, threadgroup, args)
}

// Check has f called with the bytes of o (a temporary or an output, row-contiguous) when the kernels have run: its
// error becomes the node's. F runs on a goroutine of the driver: it must be quick, and must not keep the bytes.
func (r *Run) Check(o Operand, f func(b []byte) error) { r.e.check(r.node, o, f) }

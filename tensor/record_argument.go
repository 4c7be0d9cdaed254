package tensor

import (
	"encoding/binary"
	"fmt"
	"math"
)

// Operand is an input or output of a call that is being executed: what it is, and where its elements lie. An input
// of which only the spec is read has no View.
type Operand struct {
	Spec
	View
}

// RowContiguous reports whether the elements lie in row-major order without gaps.
func (o Operand) RowContiguous() bool { return o.Contiguous(o.Shape) }

// Arg binds the operand: its first element comes first, the bytes reach to the end of its buffer.
func (o Operand) Arg() Arg { return Arg{kind: argView, view: o.View} }

// Only is Arg of the operand's elements alone: a kernel that goes beyond them finds nothing, be it another array's. Its
// strides are not negative.
func (o Operand) Only() Arg {
	_, high := o.span(o.Spec)
	return Arg{kind: argSpan, view: o.View, bytes: high}
}

// Arg is an argument of Run.Dispatch.
type Arg struct {
	view  View  // of argBytes inline, of argSmall OffsetBytes alone: the bytes themselves
	bytes int64 // of argSpan: how many
	kind  argKind
	n     uint8 // of argSmall: how many bytes
}

type argKind uint8

const (
	argBytes argKind = iota
	argSmall
	argView
	argSpan
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

// BadArg is an argument that cannot be bound: the launch fails with that reason.
func BadArg(err error) Arg { return badArg("%v", err) }

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

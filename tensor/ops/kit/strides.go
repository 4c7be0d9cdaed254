package kit

import (
	_ "embed"
	"encoding/binary"
	"fmt"
	"math"

	"github.com/mlxlua/mlxlua/tensor"
	"github.com/mlxlua/mlxlua/tensor/kernelgen"
)

// CheckBroadcast returns why from does not broadcast to exactly to.
func CheckBroadcast(from, to tensor.Shape) error {
	if s, err := tensor.Broadcast(from, to); err != nil || !s.Equal(to) {
		return fmt.Errorf("shape %v does not broadcast to %v", from, to)
	}
	return nil
}

// BroadcastOperand is o seen in a shape that its own broadcasts to.
func BroadcastOperand(o tensor.Operand, to tensor.Shape) tensor.Operand {
	strides := make([]int, len(to))
	lead := len(to) - len(o.Shape)
	for i, n := range o.Shape {
		if n == to[lead+i] {
			strides[lead+i] = o.Strides[i]
		}
	}
	o.Shape, o.Strides = to, strides
	return o
}

// CopyPart copies n places of src along an axis, from place from on, to those of dst from place to on.
func CopyPart(r *tensor.Run, dst, src tensor.Operand, axis, to, from, n int) error {
	if n == 0 {
		return nil
	}
	part := func(v tensor.Operand, start int) tensor.Operand {
		v.Shape = v.Shape.Clone()
		v.Shape[axis] = n
		v.OffsetBytes += int64(start) * int64(v.Strides[axis]) * int64(v.DType.Size())
		return v
	}
	return r.CopyTo(part(dst, to), part(src, from))
}

// StridesMSL is offset_of in MSL, for kernels that step through Dims.
//
//go:embed strides.metal
var StridesMSL string

// Merge is a shape, with strides of arrays over it, in which dimensions that each array walks through by one stride are
// one, and none has size 1. There may be none left.
func Merge(s tensor.Shape, strides ...[]int) (shape []int, steps [][]int) {
	rank := len(s)
	room := make([]int, 0, rank*(1+len(strides)))
	room = append(room, s...)
	steps = make([][]int, len(strides))
	for k, st := range strides {
		room = append(room, st...)
		steps[k] = room[len(room)-rank:]
	}
	return kernelgen.Collapse(room[:rank], steps), steps
}

// Dims are dimensions that a kernel steps through, the innermost last: there is at least one.
type Dims struct {
	// N is how many there are.
	N     int
	bytes []byte // the sizes, then each array's strides
	bad   error
}

// Collapse is a shape and strides of arrays over it, merged, as a kernel's arguments.
func Collapse(s tensor.Shape, strides ...[]int) Dims {
	shape, steps := Merge(s, strides...)
	none := len(shape) == 0
	if none {
		shape = []int{1}
	}
	d := Dims{N: len(shape), bytes: make([]byte, 0, len(shape)*(4+8*len(steps)))}
	for _, n := range shape {
		if n > math.MaxUint32 {
			d.bad = fmt.Errorf("dimensions of %d elements that lie as one, the most are %d", n, math.MaxUint32)
		}
		d.bytes = binary.LittleEndian.AppendUint32(d.bytes, uint32(n))
	}
	for _, st := range steps {
		if none {
			st = []int{0}
		}
		for _, n := range st {
			d.bytes = binary.LittleEndian.AppendUint64(d.bytes, uint64(n))
		}
	}
	return d
}

// Shape binds the sizes: constant uint*.
func (d Dims) Shape() tensor.Arg {
	if d.bad != nil {
		return tensor.BadArg(d.bad)
	}
	return tensor.Const(d.bytes[:4*d.N])
}

// Strides binds array k's strides in elements: constant long*.
func (d Dims) Strides(k int) tensor.Arg {
	at := d.N * (4 + 8*k)
	return tensor.Const(d.bytes[at : at+8*d.N])
}

// Rank binds the number of dimensions: constant int&.
func (d Dims) Rank() tensor.Arg { return tensor.Const(int32(d.N)) }

package kit

import (
	"encoding/binary"
	"fmt"
	"math"

	"github.com/mlxlua/mlxlua/tensor"
)

// Uint binds n to a kernel's uint. A number that does not fit is an error at the launch.
func Uint(n int) tensor.Arg {
	if n < 0 || n > math.MaxUint32 {
		return tensor.BadArg(fmt.Errorf("%d does not fit in a uint", n))
	}
	return tensor.Const(uint32(n))
}

// Float binds v to a kernel's ACC: double where d is float64, else float.
func Float(v float64, d tensor.DType) tensor.Arg {
	if d == tensor.Float64 {
		return tensor.Const(v)
	}
	return tensor.Const(float32(v))
}

// Params are a kernel's constants as a struct of MSL holds them: each field begins at a multiple of its size, and so
// does the next struct. The zero value has none; methods add fields in the struct's order.
type Params struct {
	bytes []byte
	align int
	bad   error
}

// field appends a field of that many bytes, and returns them.
func (p *Params) field(size int) []byte {
	if p.bytes == nil {
		p.bytes = make([]byte, 0, 160)
	}
	for len(p.bytes)%size != 0 {
		p.bytes = append(p.bytes, 0)
	}
	p.align = max(p.align, size)
	at := len(p.bytes)
	for range size {
		p.bytes = append(p.bytes, 0)
	}
	return p.bytes[at:]
}

// Long adds fields of type long or ulong.
func (p Params) Long(v ...int) Params {
	for _, n := range v {
		binary.LittleEndian.PutUint64(p.field(8), uint64(n))
	}
	return p
}

// Uint adds fields of type uint, or of int that are not negative.
func (p Params) Uint(v ...int) Params {
	for _, n := range v {
		if n < 0 || n > math.MaxUint32 {
			p.bad = fmt.Errorf("%d does not fit in a uint", n)
		}
		binary.LittleEndian.PutUint32(p.field(4), uint32(n))
	}
	return p
}

// Float adds fields of type ACC: double where d is float64, else float.
func (p Params) Float(d tensor.DType, v ...float64) Params {
	for _, x := range v {
		if d == tensor.Float64 {
			binary.LittleEndian.PutUint64(p.field(8), math.Float64bits(x))
		} else {
			binary.LittleEndian.PutUint32(p.field(4), math.Float32bits(float32(x)))
		}
	}
	return p
}

// Arg binds the struct. A number that did not fit its field is an error at the launch.
func (p Params) Arg() tensor.Arg {
	if p.bad != nil {
		return tensor.BadArg(p.bad)
	}
	for p.align > 0 && len(p.bytes)%p.align != 0 {
		p.bytes = append(p.bytes, 0)
	}
	return tensor.Const(p.bytes)
}

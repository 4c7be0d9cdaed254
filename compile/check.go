package compile

import (
	"bytes"
	"context"
	"encoding/binary"
	"math"

	"github.com/mlxlua/mlxlua/tensor"
)

// check calls the function and compares with what the replay gave.
func (fn *Function) check(c *tensor.Ctx, in, got []*tensor.Array) error {
	ctx := context.Background()
	if fn.opt.Context != nil {
		ctx = fn.opt.Context()
	}
	want, err := fn.f(in)
	if err != nil {
		return err
	}
	if len(want) != len(got) {
		return c.Errorf("compile", "check: the function gives %s, its trace %d", tensor.Count(len(want), "output"), len(got))
	}
	for i := range got {
		a, b := got[i].Spec(), want[i].Spec()
		if a.DType != b.DType || !a.Shape.Equal(b.Shape) {
			return c.Errorf("compile", "check: output %d is %v, but %v in the trace: "+
				"the function reads something that changed", i, b, a)
		}
		x, err := got[i].Bytes(ctx)
		if err != nil {
			return err
		}
		y, err := want[i].Bytes(ctx)
		if err != nil {
			return err
		}
		size := a.DType.Size()
		for at := 0; at+size <= len(x); at += size {
			if u, v := x[at:at+size], y[at:at+size]; !bytes.Equal(u, v) && !(isNaN(a.DType, u) && isNaN(a.DType, v)) {
				return c.Errorf("compile", "check: element %d of output %d is %v, but %v in the trace: "+
					"the function reads something that changed", at/size, i, number(a.DType, v), number(a.DType, u))
			}
		}
	}
	return nil
}

// number is an element for a message.
func number(d tensor.DType, b []byte) any {
	le := binary.LittleEndian
	switch {
	case d == tensor.Bool:
		return b[0] != 0
	case d == tensor.Float16:
		return tensor.Float16Value(le.Uint16(b))
	case d == tensor.BFloat16:
		return tensor.BFloat16Value(le.Uint16(b))
	case d == tensor.Float32:
		return math.Float32frombits(le.Uint32(b))
	case d == tensor.Float64:
		return math.Float64frombits(le.Uint64(b))
	case d == tensor.Complex64:
		return complex(math.Float32frombits(le.Uint32(b)), math.Float32frombits(le.Uint32(b[4:])))
	}
	var full [8]byte
	copy(full[:], b)
	v := le.Uint64(full[:])
	if d.IsSigned() {
		shift := 64 - 8*d.Size()
		return int64(v<<shift) >> shift
	}
	return v
}

// isNaN reports whether the element is a NaN, whose payload does not matter.
func isNaN(d tensor.DType, b []byte) bool {
	switch v := number(d, b).(type) {
	case float32:
		return v != v
	case float64:
		return v != v
	case complex64:
		return real(v) != real(v) || imag(v) != imag(v)
	}
	return false
}

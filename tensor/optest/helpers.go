package optest

// What the tests of ops say again and again.

import (
	"context"
	"encoding/binary"
	"math"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/mlxlua/mlxlua/tensor"
	"github.com/mlxlua/mlxlua/tensor/ops"
)

// Noise are floats of both signs whose sums depend on the order of adding.
func Noise(d tensor.DType, shape ...int) *tensor.Array {
	v, seed := make([]float32, tensor.Shape(shape).Size()), uint32(len(shape))
	for i := range v {
		seed = seed*1664525 + 1013904223
		v[i] = 3 * float32(int32(seed)) / (1 << 31)
	}
	if d == tensor.Float64 { // which the tests' device may not compute with
		wide := make([]float64, len(v))
		for i := range v {
			wide[i] = float64(v[i])
		}
		return ops.FromSlice(wide, shape)
	}
	return ops.AsType(ops.FromSlice(v, shape), d)
}

// FloatTypes are the floating-point dtypes.
var FloatTypes = []tensor.DType{tensor.Float32, tensor.Float16, tensor.BFloat16, tensor.Float64}

// Zeros are float32 zeros of that shape.
func Zeros(n ...int) *tensor.Array { return ops.Zeros(tensor.Sizes(n...), tensor.Float32) }

// Func is an op as a Subject takes it.
type Func = func(in []*tensor.Array) []*tensor.Array

// One is a function of one result as a Subject takes it.
func One(f func(in []*tensor.Array) *tensor.Array) Func {
	return func(in []*tensor.Array) []*tensor.Array { return []*tensor.Array{f(in)} }
}

// Of is a case of inputs that are differentiated.
func Of(dims ...string) Case {
	var c Case
	for _, d := range dims {
		c.Inputs = append(c.Inputs, In(d, Uniform(-2, 2)))
	}
	return c
}

// With adds inputs to a case.
func With(c Case, in ...Input) Case {
	c.Inputs = append(c.Inputs, in...)
	return c
}

// Indices is an input of indices into a dimension whose size is at least n.
func Indices(dims string, n int) Input {
	return In(dims, Ints(-n, n-1)).As(tensor.Int32)
}

// Fails evaluates x, which must fail with that text at a line of a test.
func Fails(t *testing.T, x *tensor.Array, text string) {
	t.Helper()
	err := tensor.Eval(context.Background(), x)
	require.ErrorContains(t, err, text)
	require.NotContains(t, err.Error(), "BUG")
	require.Contains(t, err.Error(), "_test.go:")
}

// Values32 are x's elements, which are float32 or 32-bit integers.
func Values32(t *testing.T, x *tensor.Array) []float64 {
	t.Helper()
	b, err := x.Bytes(context.Background())
	require.NoError(t, err)
	out := make([]float64, len(b)/4)
	for i := range out {
		v := binary.LittleEndian.Uint32(b[4*i:])
		switch x.DType() {
		case tensor.Float32:
			out[i] = float64(math.Float32frombits(v))
		case tensor.Int32:
			out[i] = float64(int32(v))
		default:
			require.Equal(t, tensor.Uint32, x.DType())
			out[i] = float64(v)
		}
	}
	return out
}

// Floats reads an element as one or two floats.
func Floats(b []byte, d tensor.DType) []float64 {
	le := binary.LittleEndian
	switch d {
	case tensor.Float16:
		return []float64{float64(tensor.Float16Value(le.Uint16(b)))}
	case tensor.BFloat16:
		return []float64{float64(tensor.BFloat16Value(le.Uint16(b)))}
	case tensor.Float32:
		return []float64{float64(math.Float32frombits(le.Uint32(b)))}
	case tensor.Float64:
		return []float64{math.Float64frombits(le.Uint64(b))}
	}
	return []float64{float64(math.Float32frombits(le.Uint32(b))), float64(math.Float32frombits(le.Uint32(b[4:])))}
}

// ULP is the distance of floats of dtype d near v.
func ULP(v float64, d tensor.DType) float64 {
	bits, least := 24, -149
	switch d {
	case tensor.Float16:
		bits, least = 11, -24
	case tensor.BFloat16:
		bits, least = 8, -133
	case tensor.Float64:
		bits, least = 53, -1074
	}
	_, exp := math.Frexp(v)
	return math.Ldexp(1, max(exp-bits, least))
}

// Bytes are x's bytes.
func Bytes(t *testing.T, x *tensor.Array) []byte {
	t.Helper()
	Open(t)
	b, err := x.Bytes(context.Background())
	require.NoError(t, err)
	return b
}

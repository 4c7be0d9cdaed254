package ops

import (
	"bytes"
	"context"
	"encoding/binary"
	"fmt"
	"math"

	"github.com/mlxlua/mlxlua/tensor"
	"github.com/mlxlua/mlxlua/tensor/ops/kit"
)

// Element is a Go type that array elements can be made of: one for each dtype but the half types, for which see
// FromFloats.
type Element interface {
	bool | uint8 | uint16 | uint32 | uint64 | int8 | int16 | int32 | int64 | float32 | float64 | complex64
}

// FromSlice is an array of that shape with a copy of v's elements in row-major order; its dtype is T's. The shape's
// size must be len(v).
//
//sig:none mx.array makes arrays of tables
func FromSlice[T Element](v []T, shape []int, ctx ...*tensor.Ctx) *tensor.Array {
	c := tensor.Call(ctx)
	spec, err := checkedSpec(shape, dtypeOf[T](), len(v))
	if err != nil {
		return tensor.Fail(c, "array", "%w", err)
	}
	var b bytes.Buffer
	b.Grow(int(spec.NBytes()))
	if err := binary.Write(&b, binary.LittleEndian, v); err != nil {
		return tensor.Fail(c, "array", "%w", err)
	}
	return tensor.FromBytes(c, spec, b.Bytes())
}

// ToSlice evaluates x and gives its elements in row-major order. T must be that of x's dtype, see Element; the half
// types have none, and AsType makes a float32 array of theirs.
func ToSlice[T Element](ctx context.Context, x *tensor.Array) ([]T, error) {
	b, err := x.Bytes(ctx)
	if err != nil {
		return nil, err
	}
	if have, want := x.DType(), dtypeOf[T](); have != want {
		return nil, fmt.Errorf("[to_slice] the array is %v, but %T holds %v", x.Spec(), []T(nil), want)
	}
	out := make([]T, x.Spec().Shape.Size())
	if _, err := binary.Decode(b, binary.LittleEndian, out); err != nil {
		return nil, fmt.Errorf("[to_slice] %w", err)
	}
	return out, nil
}

func dtypeOf[T Element]() tensor.DType {
	switch any([]T(nil)).(type) {
	case []bool:
		return tensor.Bool
	case []uint8:
		return tensor.Uint8
	case []uint16:
		return tensor.Uint16
	case []uint32:
		return tensor.Uint32
	case []uint64:
		return tensor.Uint64
	case []int8:
		return tensor.Int8
	case []int16:
		return tensor.Int16
	case []int32:
		return tensor.Int32
	case []int64:
		return tensor.Int64
	case []float32:
		return tensor.Float32
	case []float64:
		return tensor.Float64
	}
	return tensor.Complex64
}

// FromFloats is an array of that shape and dtype with v's elements in row-major order. Integer dtypes drop
// fractions, and a number that is out of their range is an error; other dtypes round once. The shape's size must be
// len(v).
//
//sig:none mx.array makes arrays of tables
func FromFloats(v []float64, shape []int, d tensor.DType, ctx ...*tensor.Ctx) *tensor.Array {
	c := tensor.Call(ctx)
	spec, err := checkedSpec(shape, d, len(v))
	if err != nil {
		return tensor.Fail(c, "array", "%w", err)
	}
	b := make([]byte, 0, spec.NBytes())
	for _, x := range v {
		if b, err = AppendNumber(b, x, d); err != nil {
			return tensor.Fail(c, "array", "%w", err)
		}
	}
	return tensor.FromBytes(c, spec, b)
}

func checkedSpec(shape []int, d tensor.DType, n int) (tensor.Spec, error) {
	s := tensor.Shape(shape).Clone()
	if err := s.Check(d); err != nil {
		return tensor.Spec{}, err
	}
	if s.Size() != n {
		return tensor.Spec{}, fmt.Errorf("%d elements do not fill shape %v", n, s)
	}
	return tensor.Spec{Shape: s, DType: d}, nil
}

// integerRange gives the bounds of what the integer dtypes take, as floats: low <= v < high. uint64 takes negative
// integers too, modulo 2^64: MLX takes whatever 64 bits hold for a 64-bit dtype.
func integerRange(d tensor.DType) (low, high float64) {
	least, greatest := d.IntRange()
	if d == tensor.Uint64 {
		least, _ = tensor.Int64.IntRange()
	}
	return float64(least), float64(greatest) + 1
}

// AppendNumber appends v's bytes as an element of dtype d: rounded once, the fraction dropped for an integer dtype, for
// which a number out of range is an error; for uint64, negative ones count modulo 2^64.
func AppendNumber(b []byte, v float64, d tensor.DType) ([]byte, error) {
	le := binary.LittleEndian
	switch {
	case d == tensor.Bool:
		if v != 0 {
			return append(b, 1), nil
		}
		return append(b, 0), nil
	case d.IsInteger():
		low, high := integerRange(d)
		t := math.Trunc(v)
		if !(t >= low && t < high) {
			return b, fmt.Errorf("%v does not fit %v", v, d)
		}
		bits := uint64(int64(t))
		if t >= math.MaxInt64 {
			bits = uint64(t)
		}
		var full [8]byte
		le.PutUint64(full[:], bits)
		return append(b, full[:d.Size()]...), nil
	}
	switch d {
	case tensor.Float16:
		return le.AppendUint16(b, tensor.Float16Bits(roundToOdd(v))), nil
	case tensor.BFloat16:
		return le.AppendUint16(b, tensor.BFloat16Bits(roundToOdd(v))), nil
	case tensor.Float64:
		return le.AppendUint64(b, math.Float64bits(v)), nil
	case tensor.Complex64:
		return append(le.AppendUint32(b, math.Float32bits(float32(v))), 0, 0, 0, 0), nil
	}
	return le.AppendUint32(b, math.Float32bits(float32(v))), nil
}

// roundToOdd is v as a float32 from which a half type can be rounded without rounding twice: an inexact result gets
// an odd last bit.
func roundToOdd(v float64) float32 {
	f := float32(v)
	if float64(f) == v || f != f || math.IsInf(float64(f), 0) {
		return f
	}
	if math.Float32bits(f)&1 == 1 {
		return f
	}
	if math.Abs(float64(f)) > math.Abs(v) { // truncate, then set the last bit
		return math.Float32frombits(math.Float32bits(f) - 1)
	}
	return math.Float32frombits(math.Float32bits(f) + 1)
}

// Number is a scalar array of dtype d. For integer dtypes v's fraction is dropped, and a v out of range is an error.
//
//sig:none a number of Lua is one where an array is wanted
func Number(v float64, d tensor.DType, ctx ...*tensor.Ctx) *tensor.Array {
	c := tensor.Call(ctx)
	b, err := AppendNumber(nil, v, d)
	if err != nil {
		return tensor.Fail(c, "array", "%w", err)
	}
	return tensor.FromBytes(c, tensor.Spec{Shape: tensor.Shape{}, DType: d}, b)
}

// Scalar is v as an operand beside like, typed weakly as MLX types Python's numbers. An integral v acts as a Python
// int: it takes like's dtype, int32 beside bool; a v that is out of an integer dtype's range is an error. Any other
// v acts as a Python float: it takes like's dtype if that is inexact, else float32. Infinities, NaN and integral
// numbers beyond int64 are floats.
//
//sig:none a number of Lua is one beside an array
func Scalar(v float64, like *tensor.Array, ctx ...*tensor.Ctx) *tensor.Array {
	c := tensor.Call(ctx)
	if f := kit.Unusable(c, "array", like); f != nil {
		return f
	}
	return Number(v, WeakDType(v, like.DType()), c)
}

// WeakDType is the dtype that Scalar gives a number beside an operand of dtype d.
func WeakDType(v float64, d tensor.DType) tensor.DType {
	switch {
	case d.IsInexact():
		return d
	case !IsIntegral(v):
		return tensor.Float32
	case d == tensor.Bool:
		return tensor.Int32
	}
	return d
}

// IsIntegral reports whether a Lua number acts as an integer: it has no fraction and fits an int64.
func IsIntegral(v float64) bool {
	return v == math.Trunc(v) && v >= math.MinInt64 && v < math.MaxInt64
}

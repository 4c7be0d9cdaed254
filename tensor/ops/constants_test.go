package ops_test

import (
	"encoding/binary"
	"math"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/mlxlua/mlxlua/tensor"
	"github.com/mlxlua/mlxlua/tensor/ops"
	"github.com/mlxlua/mlxlua/tensor/optest"
)

func sliceBytes[T ops.Element](t *testing.T, v []T, d tensor.DType) {
	t.Helper()
	x := ops.FromSlice(v, []int{len(v)})
	require.Equal(t, d, x.DType())
	want, err := binary.Append([]byte{}, binary.LittleEndian, v)
	require.NoError(t, err)
	require.Equal(t, want, optest.Bytes(t, x))
	got, err := ops.ToSlice[T](t.Context(), x)
	require.NoError(t, err)
	require.Equal(t, v, got)
}

// A slice of another type than the dtype's, and arrays without elements or values.
func TestToSlice(t *testing.T) {
	t.Parallel()
	optest.Open(t)
	m := ops.Transpose(ops.FromSlice([]int32{1, 2, 3, 4, 5, 6}, []int{2, 3}), nil)
	v, err := ops.ToSlice[int32](t.Context(), m)
	require.NoError(t, err)
	require.Equal(t, []int32{1, 4, 2, 5, 3, 6}, v)
	_, err = ops.ToSlice[float32](t.Context(), ops.AsType(m, tensor.Float16))
	require.EqualError(t, err, "[to_slice] the array is float16 (3, 2), but []float32 holds float32")
	_, err = ops.ToSlice[float32](t.Context(), ops.FromSlice([]float32{1}, []int{2}))
	require.ErrorContains(t, err, "1 elements do not fill shape (2,)")
	require.Equal(t, "array int32 (3, 2)", m.String())
	require.Equal(t, "no array", (*array)(nil).String())
	failed := ops.Add(m, ops.FromSlice([]int32{1, 2, 3}, []int{3}))
	require.Equal(t, "failed array: "+failed.Err().Error(), failed.String())
}

func TestFromSlice(t *testing.T) {
	t.Parallel()
	sliceBytes(t, []bool{true, false}, tensor.Bool)
	sliceBytes(t, []uint8{0, 255}, tensor.Uint8)
	sliceBytes(t, []uint16{0, 65535}, tensor.Uint16)
	sliceBytes(t, []uint32{0, math.MaxUint32}, tensor.Uint32)
	sliceBytes(t, []uint64{0, math.MaxUint64}, tensor.Uint64)
	sliceBytes(t, []int8{-128, 127}, tensor.Int8)
	sliceBytes(t, []int16{-32768, 32767}, tensor.Int16)
	sliceBytes(t, []int32{math.MinInt32, math.MaxInt32}, tensor.Int32)
	sliceBytes(t, []int64{math.MinInt64, math.MaxInt64}, tensor.Int64)
	sliceBytes(t, []float32{-0.5, float32(math.Inf(1))}, tensor.Float32)
	sliceBytes(t, []float64{math.Copysign(0, -1), math.MaxFloat64}, tensor.Float64)
	sliceBytes(t, []complex64{1 + 2i, -3i}, tensor.Complex64)
	sliceBytes(t, []float32{}, tensor.Float32)
}

// TestNumbersRoundOnce: a number between two halves, nearer to one by less than float32 shows, goes to that one.
func TestNumbersRoundOnce(t *testing.T) {
	t.Parallel()
	for _, c := range []struct {
		v    float64
		d    tensor.DType
		want uint16
	}{
		{1 + 0x1p-11 + 0x1p-40, tensor.Float16, 0x3c01},    // just above the middle of 1 and its successor
		{1 + 0x1p-11, tensor.Float16, 0x3c00},              // the middle: to even
		{1 + 3*0x1p-11 - 0x1p-40, tensor.Float16, 0x3c01},  // just below the next middle
		{-(1 + 0x1p-11 + 0x1p-40), tensor.Float16, 0xbc01}, // the same below zero
		{65520 - 0x1p-20, tensor.Float16, 0x7bff},          // just below what becomes infinite
		{65520, tensor.Float16, 0x7c00},
		{0x1p-25 + 0x1p-60, tensor.Float16, 0x0001},     // just above half of the least subnormal
		{1 + 0x1p-8 + 0x1p-40, tensor.BFloat16, 0x3f81}, // as above, for bfloat16
		{1 + 3*0x1p-8 - 0x1p-40, tensor.BFloat16, 0x3f81},
		{math.Inf(-1), tensor.BFloat16, 0xff80},
		{math.MaxFloat64, tensor.BFloat16, 0x7f80}, // infinite in float32 already
		{math.Copysign(0, -1), tensor.Float16, 0x8000},
		{0.1, tensor.Float16, tensor.Float16Bits(0.1)},
		{-0.1, tensor.BFloat16, tensor.BFloat16Bits(-0.1)},
		{0x1p-149, tensor.BFloat16, 0},
		{0x1p-134 + 0x1p-149, tensor.BFloat16, 1},
		{float64(math.MaxFloat32), tensor.Float16, 0x7c00},
		{-float64(math.MaxFloat32), tensor.Float16, 0xfc00},
	} {
		require.Equal(t, c.want, binary.LittleEndian.Uint16(optest.Bytes(t, ops.Number(c.v, c.d))), "%v of %v", c.v, c.d)
	}
}

func TestNumberRange(t *testing.T) {
	t.Parallel()
	for _, d := range tensor.DTypes() {
		if !d.IsInteger() {
			continue
		}
		bits := 8 * d.Size()
		low, high := 0.0, math.Ldexp(1, bits)
		if d.IsSigned() {
			low, high = -math.Ldexp(1, bits-1), math.Ldexp(1, bits-1)
		}
		if d == tensor.Uint64 { // mx.array([1], mx.uint64) + -1 is [0] in MLX; uint8 to uint32 refuse
			low = -math.Ldexp(1, 63)
		}
		require.NoError(t, ops.Number(low, d).Err(), d)
		require.NoError(t, ops.Number(math.Nextafter(high, 0), d).Err(), d)
		require.Error(t, ops.Number(high, d).Err(), d)
		require.Error(t, ops.Number(math.Nextafter(low, math.Inf(-1))-1, d).Err(), d)
		require.Error(t, ops.Number(math.NaN(), d).Err(), d)
	}
	b := optest.Bytes(t, ops.Number(0x1.fffffffffffffp63, tensor.Uint64)) // the greatest float64 below 2^64
	require.Equal(t, uint64(1<<64-1<<11), binary.LittleEndian.Uint64(b))
	b = optest.Bytes(t, ops.Number(-2, tensor.Uint64))
	require.Equal(t, uint64(math.MaxUint64-1), binary.LittleEndian.Uint64(b))
}

// TestFilled: arrays that are made of one element are whole, whatever they are made of.
func TestFilled(t *testing.T) {
	t.Parallel()
	like := ops.FromSlice(counting(6, 0, 1), []int{2, 3})
	require.Equal(t, make([]byte, 24), optest.Bytes(t, ops.ZerosLike(like)))
	require.Equal(t, []byte{1, 1, 1}, optest.Bytes(t, ops.Ones(tensor.DimOf(like, -1), tensor.Uint8)))
	require.Equal(t, []byte{7, 7}, optest.Bytes(t, ops.Full(tensor.Sizes(2), ops.Number(7.9, tensor.Float32),
		tensor.Int8)))
	require.Empty(t, optest.Bytes(t, ops.Ones(tensor.Sizes(3, 0), tensor.Float32)))
	require.Equal(t, []byte{0, 1, 0, 0, 0, 1}, optest.Bytes(t, ops.Eye(2, 3, 1, tensor.Uint8)))
	require.Equal(t, []byte{0, 0, 1, 0, 0, 1}, optest.Bytes(t, ops.Eye(3, 2, -1, tensor.Uint8)))
	require.Error(t, ops.Eye(-1, 2, 0, tensor.Uint8).Err())
	three := ops.FullLike(like, ops.Number(3, tensor.Float32), tensor.Uint8)
	require.Equal(t, []byte{3, 3, 3, 3, 3, 3}, optest.Bytes(t, three))
	require.Equal(t, []byte{6, 0, 0, 0}, optest.Bytes(t, ops.Size(like, nil, tensor.Int32)))
	require.Equal(t, []byte{3, 0}, optest.Bytes(t, ops.Size(like, []int{-1}, tensor.Int16)))
}

// A step that is infinite towards stop goes beyond it at once, as in MLX; one away from it has nothing to pass.
func TestArangeInfiniteStep(t *testing.T) {
	t.Parallel()
	optest.Open(t)
	inf := math.Inf(1)
	for _, d := range []tensor.DType{tensor.Float32, tensor.Int32, tensor.Float64} {
		if !optest.Computes(t, d) {
			continue
		}
		require.Equal(t, []float64{3}, optest.Values32(t, ops.AsType(ops.Arange(3, 10, inf, d), tensor.Float32)))
		require.Equal(t, []float64{3}, optest.Values32(t, ops.AsType(ops.Arange(3, -10, -inf, d), tensor.Float32)))
		require.Empty(t, optest.Values32(t, ops.AsType(ops.Arange(10, 0, inf, d), tensor.Float32)))
	}
	for _, step := range []float64{1, inf} {
		require.ErrorContains(t, ops.Arange(0, inf, step, tensor.Float32).Err(), "[arange] has no length from 0 to +Inf")
	}
}

func TestArangeDType(t *testing.T) {
	t.Parallel()
	require.Equal(t, tensor.Int32, ops.ArangeDType(0, 5, 1))
	require.Equal(t, tensor.Float32, ops.ArangeDType(0, 5, 0.5))
	require.Equal(t, tensor.Int64, ops.ArangeDType(0, 3e9, 1e9))
	require.Error(t, ops.Arange(0, 5, 1, tensor.Bool).Err())
	b := optest.Bytes(t, ops.Arange(0x1p63, 0x1p63+3*0x1p11, 0x1p11, tensor.Uint64))
	require.Equal(t, uint64(1<<63+2<<11), binary.LittleEndian.Uint64(b[16:]))
}

// 1 + 2^-11 is halfway between two float16s; what is above it by less than a float32 shows must not be rounded twice.
func TestFromFloatsRoundsOnce(t *testing.T) {
	t.Parallel()
	above := 1 + math.Ldexp(1, -11) + math.Ldexp(1, -40)
	x := ops.FromFloats([]float64{above, above - math.Ldexp(1, -39)}, []int{2}, tensor.Float16)
	require.Equal(t, []byte{0x01, 0x3c, 0x00, 0x3c}, optest.Bytes(t, x))
	require.ErrorContains(t, ops.FromFloats([]float64{-1}, []int{1}, tensor.Uint8).Err(), "-1 does not fit uint8")
}

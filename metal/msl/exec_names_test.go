package msl_test

import (
	"math"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/mlxlua/mlxlua/metal/msl"
)

// The names by which Apple's headers call the library mean the same functions.
func TestInternalNames(t *testing.T) {
	t.Parallel()
	f := func(x float64) func(int) float32 { return func(int) float32 { return float32(x) } }
	for _, c := range []struct {
		expr string
		want func(i int) float32
	}{
		{"__metal_fabs(-2.5f, __METAL_MAYBE_FAST_MATH__)", f(2.5)},
		{"__metal_fmax(1.0f, 3.0f, __METAL_FAST_MATH__) + __metal_fmin3(4.0f, 2.0f, 9.0f, __METAL_PRECISE_MATH__)", f(5)},
		{"__metal_fma(2.0f, 3.0f, 4.0f)", f(10)},
		{"__metal_pair_dot(as_type<float>(0x40003f80u), as_type<float>(0x40404080u), 0.5f)", f(10.5)}, // 2 * 3 + 1 * 4
		{"__metal_sqrt(16.0f, 0) + __metal_floor(1.75f, 0) + __metal_rint(2.5f, 0)", f(7)},
		{"__metal_ldexp(3.0f, 4, 0) + __metal_pow(2.0f, 3.0f, 0)", f(56)},
		{"__metal_nextafter(1.0f, 2.0f)", f(float64(math.Nextafter32(1, 2)))},
		{"__metal_fmod(7.5f, 2.0f, 0) + __metal_divide(1.0f, 4.0f, 0)", f(1.75)},
		{"__metal_simd_shuffle_xor(lane, ushort(1))", func(i int) float32 { return float32(i ^ 1) }},
		{"__metal_simd_prefix_inclusive_sum(1)", func(i int) float32 { return float32(i + 1) }},
		{"__metal_get_thread_index_in_simdgroup(ushort()) + __metal_get_simdgroup_size(ushort())",
			func(i int) float32 { return float32(i + 32) }},
		{"__metal_simd_xor(lane == 3 ? 2.5f : 0.0f)", f(2.5)},
		{"__metal_simd_xor(lane < 5 ? 6 : 0)", f(6)},
	} {
		require.Equal(t, lanes(c.want), runLanes(t, "", "out[lane] = float("+c.expr+");", 32, 32, msl.Options{}), c.expr)
	}
	got := runLanes(t, "", "int e; out[lane] = __metal_frexp(12.0f, &e); out[lane] += e;", 32, 32, msl.Options{})
	require.Equal(t, lanes(f(0.75+4)), got)
}

// Overloads for a half type in namespace metal that call the internal names leave calls with other types alone.
func TestOverloadsInMetal(t *testing.T) {
	t.Parallel()
	pre := `namespace metal {
bfloat sqrt(bfloat x) {
  return static_cast<bfloat>(__metal_sqrt(static_cast<float>(x), __METAL_FAST_MATH__)) + bfloat(1); }
bfloat max(bfloat x, bfloat y) { return static_cast<bfloat>(__metal_fmax(float(x), float(y), 0)); }
}
`
	got := runLanes(t, pre,
		"out[lane] = metal::sqrt(float(in[16])) + float(sqrt(bfloat(9))) + max(1.0f, 2.0f) + max(3, 4);",
		32, 32, msl.Options{})
	require.Equal(t, lanes(func(int) float32 { return 4 + 4 + 2 + 4 }), got)
}

package msl_test

import (
	"encoding/binary"
	"fmt"
	"math"
	"math/cmplx"
	"strings"
	"testing"

	"github.com/stretchr/testify/require"
)

func TestIntegerFunctions(t *testing.T) {
	t.Parallel()
	runRows(t, "", `
  char c = -128, d = 127; uchar uc = 250; short s = -300; int i = -7; uint u = 0xf0f0f0f0; ulong ul = 1ul << 40;
  int4 v = int4(1, -2, 2147483647, -2147483647 - 1), w = int4(5, 5, 5, -5);`, []row{
		{"absdiff(c, d)", 255}, {"absdiff(-3, 4)", 7}, {"absdiff(uc, uchar(255))", 5}, {"addsat(d, char(1))", 127},
		{"addsat(c, char(-1))", -128}, {"addsat(uc, uchar(10))", 255}, {"subsat(uc, uchar(255))", 0},
		{"subsat(c, char(1))", -128},
		{"subsat(d, char(-1))", 127}, {"addsat(3, 4)", 7}, {"addsat(v, w).z == 2147483647", 1},
		{"addsat(v, w).w == INT_MIN", 1},
		{"addsat(v, w).x", 6}, {"absdiff(v, w).y", 7}, {"hadd(d, char(126))", 126}, {"rhadd(d, char(126))", 127},
		{"hadd(-3, -4)", -4},
		{"rhadd(-3, -4)", -3}, {"hadd(uc, uchar(255))", 252}, {"mulhi(i, i)", 0}, {"mulhi(1 << 30, 8)", 2},
		{"madhi(1 << 30, 8, 5)", 7},
		{"madsat(1 << 30, 8, -5) == 2147483647", 1}, {"madsat(1 << 30, -8, 5) == INT_MIN", 1},
		{"madsat(65536, 32768, -1) == 2147483647", 1},
		{"madsat(65536, -32768, 0) == INT_MIN", 1}, {"madsat(3u, 4u, 5u)", 17},
		{"madsat(65536u, 65536u, 0u) == 4294967295u", 1},
		{"mul24(-3, 5)", -15}, {"mad24(2u, 3u, 4u)", 10}, {"mul24(int2(3), int2(-4)).y", -12},
		{"rotate(u, 4u) == 0x0f0f0f0f", 1},
		{"rotate(uchar(0x81), uchar(1))", 3}, {"rotate(ushort(1), ushort(17))", 2}, {"rotate(c, char(1))", 1},
		{"extract_bits(u, 4, 8)", 15}, {"extract_bits(-16, 4, 4)", -1}, {"extract_bits(u, 0, 0)", 0},
		{"extract_bits(i, 0, 32)", -7},
		{"insert_bits(0u, 0xffu, 8, 4)", 0xf00}, {"insert_bits(~0u, 0u, 0, 32)", 0}, {"popcount(u)", 16},
		{"clz(uc)", 0}, {"clz(1)", 31},
		{"ctz(ul)", 40}, {"reverse_bits(1u) == 0x80000000", 1}, {"max3(1, 5, 3)", 5},
		{"min3(1.5f, 5.0f, 3.0f)", 1.5}, {"median3(9, 5, 7)", 7},
		{"clamp(5, 1, 3)", 3}, {"abs(s)", 300},
	})
}

func TestCommonAndGeometricFunctions(t *testing.T) {
	t.Parallel()
	runRows(t, "", `
  float3 a = float3(1, 2, 2), b = float3(3, 0, 4); half3 h = half3(1, 2, 2); int e = 0; float m = frexp(-20.0f, e);
  float whole = 0; float part = modf(-3.75f, whole); int e0 = 9; float m0 = frexp(0.0f, e0); float nan = NAN;
  float3 fr = fract(float3(1.25f, -1.25f, 3)); int2 e2; float2 m2 = frexp(float2(8, 0.75f), e2);
  float2 sc; float2 sn = sincos(float2(0), sc);`, []row{
		{"dot(a, b)", 11}, {"length(a)", 3}, {"length_squared(h)", 9},
		{"distance(a, b)", float64(float32(math.Sqrt(12)))}, {"distance_squared(a, b)", 12},
		{"cross(a, b).x", 8}, {"cross(a, b).y", 2}, {"cross(a, b).z", -6},
		{"normalize(float2(3, 4)).y", float64(float32(0.8))},
		{"length(h)", 3}, {"faceforward(a, b, b).x", -1}, {"reflect(float2(1, -1), float2(0, 1)).y", 1},
		{"refract(float2(0, -1), float2(0, 1), 0.5f).y", -1}, {"e", 5}, {"m", -0.625}, {"whole", -3},
		{"part", -0.75}, {"e0", 0}, {"m0", 0},
		{"fr.x", 0.25}, {"fr.y", 0.75}, {"fract(half(-0.00000006h)) < 1", 1}, {"e2.x", 4}, {"m2.y", 0.75},
		{"e2.y", 0}, {"sc.y", 1}, {"sn.x", 0},
		{"mix(1.0f, 3.0f, 0.5f)", 2}, {"mix(float2(1), float2(3), 0.5f).y", 2}, {"step(1.0f, 0.5f)", 0},
		{"step(float2(1), float2(1)).x", 1},
		{"smoothstep(0.0f, 2.0f, 1.0f)", 0.5}, {"saturate(1.5f)", 1}, {"saturate(nan)", 0}, {"sign(-2.0f)", -1},
		{"sign(nan)", 0}, {"1 / sign(-0.0f)", math.Inf(-1)},
		{"sign(half(3))", 1}, {"isnan(nan)", 1}, {"isinf(INFINITY)", 1}, {"isfinite(1.0f)", 1},
		{"isnormal(0x1p-127f)", 0},
		{"isnormal(half(0x1p-14h))", 1}, {"isnormal(half(0x1p-15h))", 0}, {"signbit(-0.0f)", 1},
		{"ilogb(10.0f)", 3}, {"ilogb(0.0f)", -2147483648.0},
		{"ldexp(1.5f, 3)", 12}, {"ldexp(half(1), 15)", 32768}, {"ldexp(float2(1, 2), int2(2, 3)).y", 16},
		{"nextafter(1.0f, 2.0f) == 1 + FLT_EPSILON", 1},
		{"nextafter(half(1), half(2)) == half(1) + HALF_EPSILON", 1}, {"copysign(2.0f, -0.0f)", -2},
		{"copysign(half(2), half(-1))", -2},
		{"fmod(7.5f, -2.0f)", 1.5}, {"fdim(5.0f, 3.0f)", 2}, {"max3(float2(1), float2(2), float2(0)).x", 2},
		{"fmedian3(3.0f, 1.0f, 2.0f)", 2},
		{"rsqrt(4.0f)", 0.5}, {"metal::precise::divide(1.0f, 4.0f)", 0.25},
		{"round(float3(0.5f, -1.5f, 2.4f)).y", -2}, {"exp(float4(0)).w", 1},
		{"metal::fast::exp(0.0f)", 1}, {"metal::precise::log(bfloat(1))", 0}, {"sizeof(exp(half(1)))", 2},
		{"sizeof(exp(bfloat2(1)))", 4},
		{"sizeof(sin(1.0f))", 4}, {"pow(2.0f, 3)", 8}, {"log2(half(8))", 3},
		{"atan2(half(0), half(1))", 0},
	})
}

func TestPreludeNames(t *testing.T) {
	t.Parallel()
	runRows(t, `
template <typename T> struct Pick { using type = metal::conditional_t<metal::is_same_v<T, half>, float, T>; };
constant metal::array<int, 3> arr = {1, 2, 3};
constant mlx::os_log logger("mlx", "test");
`, `logger.log_debug("%d", 1);
  bfloat16_t b = bfloat(1.5f); float16_t h = 2.5h; metal::array<float, 2> a2 = {{4, 5}}; a2[1] = 6;`, []row{
		{"b", 1.5}, {"h", 2.5}, {"a2[0] + a2[1]", 10}, {"a2.size()", 2}, {"Limits<float>::max", math.Inf(1)},
		{"Limits<float>::min", math.Inf(-1)},
		{"Limits<float>::finite_max", math.MaxFloat32}, {"Limits<half>::finite_max", 65504},
		{"Limits<int>::max == INT_MAX", 1},
		{"Limits<int8_t>::min", -128}, {"Limits<uint16_t>::max", 65535}, {"Limits<bool>::max", 1},
		{"Limits<bfloat16_t>::min", math.Inf(-1)},
		{"numeric_limits<float>::epsilon()", 0x1p-23}, {"metal::numeric_limits<half>::max()", 65504},
		{"numeric_limits<float>::lowest()", -math.MaxFloat32},
		{"numeric_limits<bfloat>::min()", 0x1p-126}, {"numeric_limits<float>::quiet_NaN()", math.NaN()},
		{"numeric_limits<int>::digits", 31},
		{"numeric_limits<ulong>::max() == ~0ul", 1}, {"numeric_limits<float>::denorm_min()", 0x1p-149},
		{"numeric_limits<float>::max_exponent", 128},
		{"INFINITY", math.Inf(1)}, {"NAN", math.NaN()}, {"M_PI_F", float64(float32(math.Pi))},
		{"FLT_MAX", math.MaxFloat32}, {"MAXFLOAT", math.MaxFloat32},
		{"HALF_MAX", 65504}, {"M_PI_H", 3.140625}, {"ceildiv(7, 2)", 4}, {"sizeof(Pick<half>::type)", 4},
		{"is_integral_v<uchar>", 1},
		{"is_floating_point_v<bfloat>", 1}, {"is_signed_v<uint>", 0}, {"is_unsigned_v<ulong>", 1},
		{"is_same_v<remove_cv_t<const int>, int>", 1},
		{"is_pointer_v<device float*>", 1}, {"is_convertible_v<int, half>", 1},
		{"is_arithmetic_v<complex64_t>", 0}, {"sizeof(make_unsigned_t<short>)", 2},
		{"integral_constant<int, 4>::value", 4}, {"is_vector_v<float3>", 1}, {"WorkPerThread<half>::n", 4},
		{"ConditionalType<true, half, float>::type(3)", 3},
		{"sizeof(complex64_t)", 8}, {"hypot(3.0f, 4.0f)", 5}, {"floor_mod(-7.0f, 3.0f)", 2},
		{"integer_power(3, 4)", 81}, {"integer_power(2, -1)", 0},
		{"integer_power(uchar(3), uchar(6))", 217}, {"cast_to<bool>(0x1p-149f)", 1}, {"cast_to<float>(3)", 3},
		{"sizeof(metal::declval<half>() + metal::declval<float>())", 4}, {"__is_valid_simdgroup_type<half4>::value", 1},
		{"__is_valid_simdgroup_type<long>::value", 0}, {"_fp_encoding_traits<half>::inf_mask", 0x7c00},
		{"as_type<uint>(-0.0f) == _fp_encoding_traits<float>::sign_mask", 1}, {"__builtin_expect(3, 1)", 3},
		{"erf(0.0f)", 0}, {"log1p(half(0))", 0},
		{"uint16_to_bfloat16(0x3f80)", 1}, {"bfloat16_to_uint16(1.0bf)", 0x3f80}, {"arr[1]", 2},
		{"erfinv(0.0f)", 0}, {"expm1f(0.0f)", 0},
	})
}

func TestElemToLoc(t *testing.T) {
	t.Parallel()
	shape, strides, strides2 := []int32{2, 3, 4, 5}, []int64{7, -100, 13, 2}, []int64{1, 0, 3, 50}
	var sh, st, st2 []byte
	for i := range shape {
		sh = binary.LittleEndian.AppendUint32(sh, uint32(shape[i]))
		st = binary.LittleEndian.AppendUint64(st, uint64(strides[i]))
		st2 = binary.LittleEndian.AppendUint64(st2, uint64(strides2[i]))
	}
	at := func(e int, by []int64) (loc int64) {
		for d := 3; d >= 0; d-- {
			loc += int64(e%int(shape[d])) * by[d]
			e /= int(shape[d])
		}
		return loc
	}
	var body strings.Builder
	body.WriteString("LoopedElemToLoc<2, long, true> walk(4); LoopedElemToLoc<4, long, false> hop(4);\n")
	var want []float32
	put := func(w int64, format string, args ...any) {
		fmt.Fprintf(&body, "out[%d] = float("+format+");\n", append([]any{len(want)}, args...)...)
		want = append(want, float32(w))
	}
	for e := range 120 {
		x, y, z := e%5, e/5%4, e/20
		put(at(e, strides), "walk.location()")
		body.WriteString("walk.next(shape, strides);\n")
		if e%7 == 0 {
			put(at(e, strides), "hop.location()")
			body.WriteString("hop.next(7, shape, strides);\n")
		}
		if e%11 == 0 {
			put(at(e, strides), "elem_to_loc<int64_t>(%d, shape, strides, 4)", e)
			put(at(e, strides), "elem_to_loc<int>(%d, shape, strides, 4)", e)
			put(at(e, strides), "elem_to_loc(uint3(%d, %d, %d), shape, strides, 4)", x, y, z)
			put(at(e, strides2), "elem_to_loc_2_nd<int>(uint3(%d, %d, %d), shape, strides, strides2, 4).y", x, y, z)
			put(at(e, strides2), "elem_to_loc_3_nd(uint3(%d, %d, %d), shape, strides, strides, strides2, 4).z", x,
				y, z)
		}
	}
	put(21, "elem_to_loc_1(3, strides[0])")
	put(3*-100+2*7, "elem_to_loc_2(uint2(3, 2), strides)")
	put(13-100+7, "elem_to_loc_3(uint3(1, 1, 1), strides)")
	require.Equal(t, want, runOne(t, "", body.String(), len(want), sh, st, st2))
}

// TestComplexFunctions compares with Go's complex128, in units of float's precision times the modulus.
func TestComplexFunctions(t *testing.T) {
	t.Parallel()
	values := []complex128{complex(1, 2), complex(-0.5, 0.25), complex(0, 1), complex(-3, -4), complex(0.001, -2),
		complex(2, 0), complex(-2, 0), complex(1e-3, 1e-3)}
	type check struct {
		expr string
		f    func(a, b complex128) complex128
	}
	one := func(f func(complex128) complex128) func(a, b complex128) complex128 {
		return func(a, _ complex128) complex128 { return f(a) }
	}
	checks := []check{
		{"a + b", func(a, b complex128) complex128 { return a + b }},
		{"a - b", func(a, b complex128) complex128 { return a - b }},
		{"a * b", func(a, b complex128) complex128 { return a * b }},
		{"a / b", func(a, b complex128) complex128 { return a / b }},
		{"a * 2.0f", func(a, _ complex128) complex128 { return a * 2 }},
		{"1 / a", func(a, _ complex128) complex128 { return 1 / a }},
		{"-a", func(a, _ complex128) complex128 { return -a }}, {"complex_exp(a)", one(cmplx.Exp)},
		{"complex_log(a)", one(cmplx.Log)},
		{"complex_sqrt(a)", one(cmplx.Sqrt)}, {"complex_sin(a)", one(cmplx.Sin)}, {"complex_cos(a)", one(cmplx.Cos)},
		{"complex_tan(a)", one(cmplx.Tan)}, {"complex_sinh(a)", one(cmplx.Sinh)},
		{"complex_cosh(a)", one(cmplx.Cosh)},
		{"complex_tanh(a)", one(cmplx.Tanh)}, {"complex_pow(a, b)", cmplx.Pow},
		{"complex64_t(complex_abs(a))", one(func(a complex128) complex128 { return complex(cmplx.Abs(a), 0) })},
		{"complex_sign(a)", one(func(a complex128) complex128 { return a / complex(cmplx.Abs(a), 0) })},
		{"log1p(a)", one(func(a complex128) complex128 { return cmplx.Log(1 + a) })},
		{"complex_rsqrt(a)", one(func(a complex128) complex128 { return 1 / cmplx.Sqrt(a) })},
		{"(a += b, a)", func(a, b complex128) complex128 { return a + b }},
	}
	for _, a := range values {
		b := values[0]*a + complex(0.5, -1)
		var body strings.Builder
		for i, c := range checks {
			fmt.Fprintf(&body, "{ complex64_t a(%.9e, %.9e), b(%.9e, %.9e);\n", real(a), imag(a), real(b), imag(b))
			fmt.Fprintf(&body, "cs[0] = %s; complex64_t r = cs[0]; out[%d] = r.real; out[%d] = r.imag; }\n",
				c.expr, 2*i, 2*i+1)
		}
		got := runOne(t, "", body.String(), 2*len(checks))
		a, b := complex128(complex64(a)), complex128(complex64(b))
		for i, c := range checks {
			want := c.f(a, b)
			err := cmplx.Abs(complex(float64(got[2*i]), float64(got[2*i+1])) - want)
			tol := 0x1p-20
			if c.expr == "complex_pow(a, b)" { // its exponential magnifies the error of b log a
				tol *= max(1, cmplx.Abs(b*cmplx.Log(a)))
			}
			require.LessOrEqual(t, err, cmplx.Abs(want)*tol, "%s at a = %v, b = %v: got %v, want %v", c.expr, a, b,
				got[2*i:2*i+2], want)
		}
	}
	order := runOne(t,
		"", `complex64_t a(1, 2), b(1, 3); out[0] = a < b; out[1] = a == b; out[2] = a != b; out[3] = a >= b;
out[4] = a == complex64_t(1,
	2); out[5] = float(b); out[6] = Limits<complex64_t>::max.imag; out[7] = (a * complex64_t(0, 1)).real;
cs[1] = a; cs[1] += b; out[8] = cs[1].imag; out[9] = simd_sum(a).imag; out[10] = simd_shuffle_down(a,
	0).real; out[11] = complex64_t(3).real;
out[12] = (b % complex64_t(2, 2)).imag; float2 v = a; out[13] = v.y;`, 14)
	inf := float32(math.Inf(1))
	require.Equal(t, []float32{1, 0, 1, 0, 1, 1, inf, -2, 5, 2, 1, 3, 1, 2}, order)
}

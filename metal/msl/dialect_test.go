package msl

import (
	"slices"
	"strings"
	"testing"

	"github.com/stretchr/testify/require"

	std "github.com/mlxlua/mlxlua/metal/prelude"
)

// TestApple: what Apple's compiler refuses is refused where the option asks for that, and of built-in kernels, and else
// taken; what it takes is taken.
func TestApple(t *testing.T) {
	t.Parallel()
	compile := func(text string, o Options) error {
		_, err := Compile(Source{Name: "source", Text: text}, o)
		return err
	}
	for body, says := range map[string]string{
		"float4 v = 0; f(v.x); out[0] = v.x;":                               "has no address",
		"float4 v = 0; thread float &r = v[1]; r = 1; out[0] = v.y;":        "has no address",
		"device float4 *p = (device float4 *)out; g(p->y);":                 "has no address",
		"bfloat b = 1.5bf; out[0] = saturate(b);":                           "there is no 'saturate' of bfloat",
		"bfloat b = 1.5bf; out[0] = metal::clamp(b, b, b);":                 "there is no 'clamp' of bfloat",
		"bfloat4 b = bfloat4(1.5bf); out[0] = exp(b).x;":                    "there is no 'exp' of bfloat4",
		"bfloat b = 1.5bf; out[0] = simd_broadcast_first(b);":               "there is no 'simd_broadcast_first' of bfloat",
		"atomic_store_explicit(n, 1u, memory_order_seq_cst);":               "memory_order_relaxed only",
		"atomic_thread_fence(mem_flags::mem_device, memory_order_seq_cst);": "Metal 3.2's",
		"thread device float *p = out; p[0] = 1;":                           "two address spaces",
		"auto f = [](float x) { return x; }; out[0] = f(1);":                "lambdas are Metal 3.2's",
	} {
		text := "void f(thread float &x) { x = 1; }\nvoid g(device float &x) { x = 1; }\n" +
			"kernel void k(device float *out [[buffer(0)]], device atomic_uint *n [[buffer(1)]]) {\n" + body + "\n}"
		require.NoError(t, compile(text, Options{}), body)
		require.ErrorContains(t, compile(text, Options{Apple: true}), says, body)
		require.ErrorContains(t, compile(text, Options{Portable: true}), says, body)
	}
	require.ErrorContains(t, compile("kernel void k(device float *out [[buffer(0)]]) { bfloat4 v = 1.0f; out[0] = v.x; }",
		Options{}), "bfloat4", "a float spreads over no vector of bfloat")
	for _, body := range []string{
		"bfloat b = bfloat(1.5f); out[0] = exp(b) + metal::fast::sin(b) + max(b, b);",
		"bfloat b = bfloat(1.5f); out[0] = isnan(b) ? 1.0f : float(b);",
		"bfloat b = simd_sum(bfloat(1.5f)); out[0] = b;",
		"const float4 v = 1; const thread float &r = v.x; out[0] = r;",
		"atomic_fetch_add_explicit(n, 1u, memory_order_relaxed);",
		"bfloat4 v = bfloat4(1.0bf); v.x = 2.0bf; out[0] = v.x + as_type<uint2>(v).x;",
		"float3 v = 1; v.y += 2; f(out[0]);",
	} {
		text := "void f(device float &x) { x = 1; }\nkernel void k(device float *out [[buffer(0)]], " +
			"device atomic_uint *n [[buffer(1)]]) {\n" + body + "\n}"
		require.NoError(t, compile(text, Options{Apple: true}), body)
	}
}

// TestHelpersAreMetal: what the driver of Apple's GPUs puts in front of every text is such a text too, on what Apple's
// headers declare.
func TestHelpersAreMetal(t *testing.T) {
	t.Parallel()
	helpers := map[string]bool{}
	var text strings.Builder
	for _, s := range append(std.BFloat(), std.Helpers()...) {
		helpers[s.Name] = true
		text.WriteString("#line 1 \"" + s.Name + "\"\n" + s.Text)
	}
	pre, err := freeze(slices.DeleteFunc(preludeSources(), func(s Source) bool { return helpers[s.Name] }))
	require.NoError(t, err)
	text.WriteString(`
#line 1 "source"
template <typename T> void all(device T *out, constant int *shape, constant int64_t *strides, uint3 i) {
  complex_t<T> a(out[0], out[1]), b = complex_t<T>(out[2]);
  a += b; a = a * b / (a - b) % b; a *= T(2); b = -a + T(1);
  out[0] = a.real + (a == b || a < b || a >= T(3) ? T(1) : T(0));
  out[1] = floor_mod(out[1], out[2]) + Limits<T>::max + Limits<complex_t<T>>::min.real;
  out[2] = T(cast_to<bool>(out[3])) + T(WorkPerThread<T>::n) + T(typename ConditionalType<true, T, int>::type(1));
  out[3] = T(elem_to_loc<uint>(i, shape, strides, 3) + elem_to_loc<long>(long(i.x), shape, strides, 3));
  out[4] = T(elem_to_loc_1<int>(i.x, strides[0]) + elem_to_loc_2<int>(i.xy, strides) + elem_to_loc_3<int>(i, strides));
  out[5] = T(elem_to_loc_2_nd<int>(i, shape, strides, strides, 3).x);
  LoopedElemToLoc<2> at(3); at.next(shape, strides); at.next(2, shape, strides); out[6] = T(at.location());
  out[7] = simd_sum(a).real + simd_shuffle(a, ushort(1)).imag + simd_shuffle_down(a, ushort(1)).real;
  out[8] = simd_prefix_inclusive_sum(a).real + simd_broadcast(a, ushort(0)).real;
}
kernel void k(device float *f [[buffer(0)]], device half *h [[buffer(1)]], constant int *shape [[buffer(2)]],
              constant int64_t *strides [[buffer(3)]], uint3 i [[thread_position_in_grid]]) {
  all<float>(f, shape, strides, i);
  all<half>(h, shape, strides, i);
  f[9] = float(integer_power(3, 4)) + float(ceildiv(7, 2)) + complex_sign(complex64_t(f[0], f[1])).real;
  bfloat b = metal::precise::exp(bfloat(f[0])); b = metal::fast::pow(b, b); b = simd_max(b) + erf(b) > 0 ? b : 1.0bf;
  f[10] = b;
}`)
	l := &Library{pre: pre, src: Source{Name: "helpers", Text: text.String()}, opt: Options{Apple: true}}
	require.NoError(t, l.read(everything))
	require.Equal(t, []string{"k"}, l.Names())
}

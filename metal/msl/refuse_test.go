package msl

import (
	"errors"
	"testing"

	"github.com/stretchr/testify/require"
)

// Other floats become bfloat by a cast only, and bfloat half, as Metal's compiler has it: "cannot initialize a variable
// of type 'bfloat' with an rvalue of type 'float'", "assigning to 'bfloat' from incompatible type 'float'".
func TestBfloatConversions(t *testing.T) {
	t.Parallel()
	const head = "using namespace metal;\nbfloat two(bfloat x) { return x * 2; }\n" +
		"kernel void k(device bfloat *b, device half *h, device float *x) {\n"
	for _, text := range []string{
		"b[0] = x[0];", "bfloat v = 0.0;", "b[0] = 1.5f;", "b[0] = 1.0h;", "b[0] = h[0];", "h[0] = b[0];", "b[0] = INFINITY;",
		"b[0] = x[0] > 0 ? b[1] : 0.0f;", "b[0] = b[1] + 0.5;", "b[0] = max(b[1], 0.0f);", "b[0] = two(x[0]);",
		"bfloat v[2] = {b[0], 2.0f};", "bfloat v{1.0f};", "bfloat2 v; v.x = 1.0f;",
	} {
		_, err := Compile(Source{Name: "source", Text: head + text + "\n}"}, Options{})
		var errs ErrorList
		require.True(t, errors.As(err, &errs), text)
		require.Contains(t, []Code{TypeMismatch, NoMatch}, errs[0].Code, text)
		require.Contains(t, errs[0].Msg, "by a cast only: write ", text)
	}
	for _, text := range []string{
		"b[0] = bfloat(x[0]);", "b[0] = static_cast<bfloat>(1.5f);", "b[0] = (bfloat)h[0];", "h[0] = half(b[0]);",
		"x[0] = b[0];", "x[0] = b[0] + 0.5f;", "b[0] = b[1] * b[2];", "b[0] = 3;", "b[0] = b[1] / 2;", "b[0] = 1.0bf;",
		"b[0] = max(b[1], b[2]);", "x[0] = max(b[1], 0.0f);", "b[0] = exp(b[1]);", "b[0] += x[0];", "b[0] = two(2);",
		"b[0] = simd_sum(b[1]);", "b[0] = x[0] > 0 ? b[1] : bfloat(0);", "bfloat2 v = bfloat2(1.0f, 2.0f); b[0] = v.y;",
	} {
		_, err := Compile(Source{Name: "source", Text: head + text + "\n}"}, Options{})
		require.NoError(t, err, text)
	}
}

// What Metal refuses is refused, with a code; each text has one fault.
func TestRefusedAsByMetal(t *testing.T) {
	t.Parallel()
	for _, c := range []struct {
		text string
		want Code
	}{
		{"kernel void k(float *x) {}", AddressSpace},
		{"kernel void k(device float *x) { thread float *p = x; }", AddressSpace},
		{"kernel void k(device float *x) { float l; x = &l; }", AddressSpace},
		{"int f(int n) { return g(n); }", Undeclared},
		{"kernel void k(device float *x) { long double d = 1; }", BadSpecifiers},
		{"kernel void k(device float *x) { int *p = new int; }", NotInMetal},
		{"kernel void k(device float *x) { try { } catch (...) { } }", NotInMetal},
		{"kernel void k(device float *x) { throw 1; }", NotInMetal},
		{"struct S { virtual void f(); };", NotInMetal},
		{"kernel void k(device int *x) { int n = x[0]; int a[n]; }", NotConstant},
		{"threadgroup float t[8];", AddressSpace},
		{"int g = 1;\nkernel void k(device int *x) { x[0] = g; }", AddressSpace},
		{"kernel int k(device int *x) { return 1; }", BadReturn},
		{"kernel void k(device int *x [[buffer(0)]], device int *y [[buffer(0)]]) {}", Redefinition},
		{"[[max_total_threads_per_threadgroup(0)]] kernel void k(device int *x) {}", UnknownAttribute},
		{"[[max_total_threads_per_threadgroup(2048)]] kernel void k(device int *x) {}", UnknownAttribute},
		{"[[required_threads_per_threadgroup(32, 33)]] kernel void k(device int *x) {}", UnknownAttribute},
		{"[[required_threads_per_threadgroup(0)]] kernel void k(device int *x) {}", UnknownAttribute},
		{"[[required_threads_per_threadgroup]] kernel void k(device int *x) {}", UnknownAttribute},
		{"kernel void k(device int *x, float i [[thread_position_in_grid]]) {}", KernelParam},
		{"kernel void k(device int *x, uint i [[thread_position_in_gird]]) {}", UnknownAttribute},
		{"kernel void a(device int *x) {}\nkernel void k(device int *x) { a(x); }", Unsupported},
		{"kernel void k(device metal::atomic_uint *x) { *x += 1; }", BadOperands},
		{"kernel void k(device int *x) { static int n = 0; x[0] = n++; }", Unsupported},
	} {
		_, err := Compile(Source{Name: "source", Text: c.text}, Options{})
		var errs ErrorList
		if !errors.As(err, &errs) {
			t.Errorf("accepted: %s", c.text)
			continue
		}
		if errs[0].Code != c.want {
			t.Errorf("want %s, got %s: %s", c.want, errs[0], c.text)
		}
		require.NotZero(t, errs[0].Pos.Line, c.text)
	}
}

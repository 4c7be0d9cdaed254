package msl

import (
	"errors"
	"testing"

	"github.com/stretchr/testify/require"
)

// What Metal refuses is refused, with a code; each text has one fault.
func TestRefusedAsByMetal(t *testing.T) {
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

package msl_test

import (
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/mlxlua/mlxlua/metal/kerneltest"
	"github.com/mlxlua/mlxlua/metal/launch"
	"github.com/mlxlua/mlxlua/metal/msl"
)

// A computed index beyond a vector is a fault that names kernel and line, for the interpreter and machine code of every
// level; one inside gives the component. LLVM's extractelement, which Metal compiles it to, gives any value at all.
func TestIndexBeyondVectors(t *testing.T) {
	t.Parallel()
	for body, name := range map[string]string{
		"float4 v(1, 2, 3, 4);\nx = v[n];":                                      "read of v",
		"float4 v(1, 2, 3, 4);\nv[n] = x;":                                      "write of v",
		"float4 v(1, 2, 3, 4);\nv[n] += x; x = v.x + v.w;":                      "read of v",
		"packed_float4 v(1, 2, 3, 4);\nx = v[n];":                               "read of v",
		"vec<float, 4> v(1, 2, 3, 4);\nuint u = n; x = v[u];":                   "read of v",
		"float4 v(1, 2, 3, 4);\nx = v[long(n)];":                                "read of v",
		"float4 v(1, 2, 3, 4);\nx = v.wzyx[n];":                                 "read of float4",
		"float4x4 m(1.0f);\nx = m[1][n];":                                       "read of float4",
		"struct { int a; float4 v; } s = {1, float4(2)};\nx = s.v[n];":          "read of float4",
		"device float4 *p = (device float4 *)out;\nx = p[0][n];":                "read of float4",
		"device float4 *p = (device float4 *)out;\np[0][n] = 2;":                "read of float4",
		"threadgroup float4 s[2]; s[0] = 1;\nx = s[0][n];":                      "read of float4",
		"float4 a[2] = {float4(1), float4(2)};\nx = a[n & 1][n];":               "read of float4",
		"float4 v(1, 2, 3, 4); thread float4 &r = v;\nx = r[n];":                "read of v",
		"float4 v(1, 2, 3, 4); for (int i = n; i < n + 2; i++)\nx += v[i - 1];": "read of v",
	} {
		text := "using namespace metal;\nkernel void k(device float *out [[buffer(0)]], constant int &n [[buffer(1)]]) {\n" +
			"float x = 0;\n" + body + "\nout[8] = x;\n}\n"
		mod, err := msl.Compile(msl.Source{Name: "bounds", Text: text}, msl.Options{})
		require.NoError(t, err, body)
		e, err := prepare(mod.Kernels[0], mod.Files)
		require.NoError(t, err, body)
		runs := []func(launch.Launch) error{func(l launch.Launch) error { return kerneltest.Run(e.ref.NewRun, l, 0) }}
		for _, p := range e.jits {
			runs = append(runs, func(l launch.Launch) error { return kerneltest.Run(p.NewRun, l, 0) })
		}
		for i, run := range runs {
			for _, n := range []int{3, 5, 7, -1, 1 << 30} {
				err := run(launch.Launch{Grid: [3]int{1, 1, 1}, Threadgroup: [3]int{1, 1, 1},
					Buffers: [][]byte{make([]byte, 64), {byte(n), byte(n >> 8), byte(n >> 16), byte(n >> 24)}}})
				if n == 3 {
					require.NoError(t, err, "%d: %s", i, body)
					continue
				}
				require.ErrorContains(t, err, "[k] "+name+"[", "%d: %d: %s", i, n, body)
				require.ErrorContains(t, err, "is out of range: ", "%d: %d: %s", i, n, body)
				require.ErrorContains(t, err, "(bounds:5:", "%d: %d: %s", i, n, body)
			}
		}
	}
}

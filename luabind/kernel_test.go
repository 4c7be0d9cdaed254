package luabind

import (
	"context"
	"strings"
	"testing"

	"github.com/stretchr/testify/require"
)

// Calls give function constants their values; what is wrong with one says so.
func TestKernelConstants(t *testing.T) {
	t.Parallel()
	s := newTestState(t)
	const kernel = `local k = mx.fast.metal_kernel{name = "k", input_names = {"x"}, output_names = {"out"},
			header = "constant bool on [[function_constant(0)]]; constant int n [[function_constant(4)]];" ..
				"constant float2 v [[function_constant(1)]]; constant ulong big [[function_constant(2)]];",
			source = "out[0] = on ? n : -1; if (is_function_constant_defined(v)) out[1] = v.x - v.y;" ..
				"if (is_function_constant_defined(big)) out[2] = big == 9007199254740993ul;"}
		local function call(c) return k{inputs = {mx.array({1})}, constants = c, grid = {1, 1, 1}, threadgroup = {1, 1, 1},
			output_shapes = {{3}}, output_dtypes = {mx.float32}, init_value = 0} end `
	for call, want := range map[string]string{
		"{on = true, n = 3}":                            "array([3, 0, 0], dtype=float32)",
		"{[0] = true, [4] = -3}":                        "array([-3, 0, 0], dtype=float32)",
		"{on = false, n = 1, v = {2.5, 1}}":             "array([-1, 1.5, 0], dtype=float32)",
		`{on = false, n = 1, big = "9007199254740993"}`: "array([-1, 0, 1], dtype=float32)",
	} {
		out, err := s.Run(context.Background(), strings.NewReader(kernel+"return tostring(call("+call+"))"), "chunk")
		require.NoError(t, err, call)
		require.Equal(t, want, out[0].String(), call)
	}
	for call, want := range map[string]string{
		"nil":                         "the function constant 'on' (index 0) has no value: a kernel takes it by",
		"{on = true}":                 "the function constant 'n' (index 4) has no value",
		"{on = 1, n = 1}":             "'on' (index 0) of type bool is given the number 1, want true or false",
		"{on = true, n = 1.5}":        "'n' (index 4) of type int is given the number 1.5, want an integer in its range",
		"{on = true, n = true}":       "'n' (index 4) of type int is given true, want a number",
		"{on = true, n = 1, v = 2}":   "'v' (index 1) of type float2 is given 1 of the 2 values that it has",
		"{on = true, n = 1, m = 2}":   "given for 'm', which is no function constant of the text: it has on (0), n (4)",
		"{true, on = true, n = 1}":    "'v' (index 1) of type float2 is given",
		"{on = true, n = 1, [4] = 2}": "'n' (index 4) is given two values",
		"{on = true, n = mx.ones(1)}": "constants: n is an array float32 (1,), want true, false, a number or a table",
		"{on = true, n = {}}":         "the function constant n has no value",
		"{on = true, [1.5] = 1}":      "constants has the key the number 1.5, want a name or the number",
		`{on = true, n = "four"}`:     `the function constant n is "four", want digits`,
		"mx.ones(2)":                  "constants is an array float32 (2,), want a table",
	} {
		_, err := s.Run(context.Background(), strings.NewReader(kernel+"mx.eval(call("+call+"))"), "chunk")
		require.ErrorContains(t, err, want, call)
	}
}

// An index beyond what a kernel has declared is told in what the kernel's text counts: elements of an array,
// components, columns; of a structure it is the byte.
func TestKernelIndicesBeyond(t *testing.T) {
	t.Parallel()
	for _, c := range []struct{ body, want string }{
		{"float2x3 m = float2x3(1.0f); o[0] = m[int(x[5])][1];", "read of m[5] is out of range: m has 2 elements"},
		{"float2x3 m = float2x3(1.0f); o[0] = m[5][1];", "read of m[5] is out of range: m has 2 elements"},
		{"float4x4 m(1.0f); m[int(x[5])] = float4(1); o[0] = m[2][1];",
			"write of m[5] is out of range: m has 4 elements"},
		{"half2x2 m(1.0h); m[-int(x[1])][0] = 1; o[0] = m[1][1];",
			"write of m[-1] is out of range: m has 2 elements"},
		{"threadgroup float2x2 m; m[int(x[5])][0] = 1; o[0] = m[0][0];",
			"write of m[5] is out of range: m has 2 elements"},
		{"float2x2 a[4]; a[int(x[5])] = float2x2(1.0f); o[0] = a[0][0][0];",
			"write of a[5] is out of range: a has 4 elements"},
		{"float3 a[4]; a[int(x[5])] = 2; o[0] = a[0].x;", "write of a[5] is out of range: a has 4 elements"},
		{"float a[3][4]; a[int(x[5])][0] = 1; o[0] = a[0][0];", "write of a[5] is out of range: a has 3 elements"},
		{"const float3 a[2] = {1, 2}; o[0] = a[int(x[5])].x;", "read of a[5] is out of range: a has 2 elements"},
		{"S a[2]; a[int(x[5])].q = 1; o[0] = a[0].p;", "write of a[5] is out of range: a has 2 elements"},
		{"T s; s.a[int(x[5])] = 2; o[0] = s.a[0] + s.b;", "write of byte 20 of s is out of range: it has 20 bytes"},
		{"float3 v = x[2]; o[0] = v[int(x[5])];", "read of v[5] is out of range: v has 3 elements"},
	} {
		err := runLua(t, strings.Replace(kernelOf, "struct S", "struct T { float a[4]; int b; };\nstruct S", 1)+
			`call("`+c.body+`"):tolist()`)
		require.ErrorContains(t, err, c.want, c.body)
	}
}

package msl

import (
	"errors"
	"testing"

	"github.com/stretchr/testify/require"
)

// What a text declares and does not have is an error of the kernels that reach it, and of no others: function constants
// without a value, functions without a body.
func TestReachedOnly(t *testing.T) {
	t.Parallel()
	const head = "using namespace metal;\nconstant bool f [[function_constant(0)]]; constant bool g = !f;\n" +
		"constant int n [[function_constant(1)]]; constant int m = is_function_constant_defined(n) ? n : 4;\n" +
		"inline float far(float x); template <typename T> T farT(T x); struct S { float m(float x) const; float v; };\n" +
		"constant mlx::os_log logger(\"mlx\", \"test\"); void logs(int x) { logger.log_debug(\"%d\", x); }\n"
	const own = "kernel void k(device float *x [[buffer(0)]]) { x[0] = m; }\n"
	for _, text := range []string{
		"", "float u(float x) { return f ? x : -x; }", "float u(float x) { return g ? x : -x; }",
		"float u(float x) { float a[3]; for (int i = 0; i < n; i++) a[i] = x; return a[0]; }",
		"float u(float x) { return far(x) + farT(x) + farT<half>(x); }", "float u(float x) { S s; return s.m(x); }",
		"float u(float x) { if (g && m > n) return far(x); return u2; } ",
		"kernel void other(device float *x [[buffer(0)]]) { x[0] = g; }",
		"kernel void other(device float *x [[buffer(0)]]) { x[0] = far(1) + n; }",
		"kernel void other(device float *x [[buffer(0)]], device float *y [[buffer(1), function_constant(f)]]) {}",
		"template <typename T> kernel void other(device T *x [[buffer(0)]]) { x[0] = farT(x[1]); }\n" +
			"template [[host_name(\"of\")]] kernel decltype(other<float>) other<float>;",
		"float u(float x) { return is_function_constant_defined(n) ? n : x; }",
	} {
		if text == "float u(float x) { if (g && m > n) return far(x); return u2; } " {
			_, err := Load(Source{Name: "s", Text: head + text + "\n" + own}, Options{})
			require.ErrorContains(t, err, "'u2' is not declared", "what is wrong with any text is wrong here")
			continue
		}
		l, err := Load(Source{Name: "s", Text: head + text + "\n" + own}, Options{})
		require.NoError(t, err, text)
		for i, name := range l.Names() {
			_, err := l.Kernel(i)
			if name == "k" {
				require.NoError(t, err, text)
				continue
			}
			var errs ErrorList
			require.True(t, errors.As(err, &errs), text)
			require.Contains(t, []Code{NoFunctionConstant, NoBody}, errs[0].Code)
		}
	}
	for body, want := range map[string]string{
		"x[0] = f;":      "the function constant 'f' (index 0) has no value: a kernel takes it by constants = {f = ...}",
		"x[0] = g;":      "the function constant 'f' (index 0) has no value",
		"x[0] = far(1);": "far(float) is declared, but has no body",
		"x[0] = m; if (x[1] > 0) x[0] = farT(x[2]);": "farT(T) is declared, but has no body",
		"S s; x[0] = s.m(1);":                        "S::m(float) is declared, but has no body",
	} {
		_, err := Compile(Source{Name: "s", Text: head + "kernel void k(device float *x [[buffer(0)]]) {" + body + "}"},
			Options{})
		require.ErrorContains(t, err, want)
	}
	given := Options{FunctionConstants: []FunctionConstant{{Name: "f", Values: []any{true}}}}
	mod, err := Compile(Source{Name: "s", Text: head +
		"kernel void k(device float *x [[buffer(0)]]) { x[0] = g; if (g) x[1] = far(1); }"}, given)
	require.NoError(t, err, "a branch that a function constant closes is not reached")
	require.Len(t, mod.Kernels, 1)
}

// Values of function constants have the constant's type; a name or an index that the text has not is an error.
func TestFunctionConstantValues(t *testing.T) {
	t.Parallel()
	const text = "using namespace metal;\n" +
		"constant bool b [[function_constant(0)]]; constant uchar c [[function_constant(1)]];\n" +
		"constant half h [[function_constant(2)]]; constant int3 v [[function_constant(3)]];\n" +
		"constant ulong u [[function_constant(4)]]; namespace a { constant bool2 w [[function_constant(5)]]; }\n" +
		"struct P { int x; }; constant P p [[function_constant(6)]];\n" +
		"kernel void k(device float *x [[buffer(0)]]) { x[0] = 1; }"
	one := func(v ...any) []any { return v }
	for _, c := range []struct {
		FunctionConstant
		want string
	}{
		{FunctionConstant{Name: "b", Values: one(true)}, ""},
		{FunctionConstant{Name: "c", Values: one(255.0)}, ""},
		{FunctionConstant{Index: 1, Values: one("0")}, ""},
		{FunctionConstant{Name: "h", Values: one(0.1)}, ""},
		{FunctionConstant{Name: "v", Values: one(1.0, -2.0, "3")}, ""},
		{FunctionConstant{Name: "u", Values: one("18446744073709551615")}, ""},
		{FunctionConstant{Name: "a::w", Values: one(true, false)}, ""},
		{FunctionConstant{Name: "b", Values: one(1.0)}, "'b' (index 0) of type bool is given the number 1, want true"},
		{FunctionConstant{Name: "c", Values: one(true)}, "'c' (index 1) of type uchar is given true, want a number"},
		{FunctionConstant{Name: "c", Values: one(256.0)}, "is given the number 256, want an integer in its range"},
		{FunctionConstant{Name: "c", Values: one(-1.0)}, "is given the number -1, want an integer in its range"},
		{FunctionConstant{Name: "c", Values: one(0.5)}, "is given the number 0.5, want an integer in its range"},
		{FunctionConstant{Name: "c", Values: one("256")}, `is given the text "256", want the digits of an integer`},
		{FunctionConstant{Name: "h", Values: one("1")}, `is given the text "1", want half`},
		{FunctionConstant{Name: "v", Values: one(1.0)}, "'v' (index 3) of type int3 is given 1 of the 3 values that it has"},
		{FunctionConstant{Index: 0, Values: one(true, true)}, "is given 2 of the 1 values that it has"},
		{FunctionConstant{Name: "p", Values: one(1.0)}, "is given a value: function constants are scalars and vectors"},
		{FunctionConstant{Name: "w", Values: one(true, true)}, "a value is given for 'w', which is no function constant of " +
			"the text: it has b (0), c (1), h (2), v (3), u (4), a::w (5), p (6)"},
		{FunctionConstant{Index: 9, Values: one(true)}, "a value is given for the index 9, which is no function constant"},
	} {
		_, err := Compile(Source{Name: "s", Text: text}, Options{FunctionConstants: []FunctionConstant{c.FunctionConstant}})
		if c.want == "" {
			require.NoError(t, err, "%v", c)
		} else {
			require.ErrorContains(t, err, c.want)
		}
	}
	_, err := Compile(Source{Name: "s", Text: text}, Options{FunctionConstants: []FunctionConstant{
		{Name: "b", Values: one(true)}, {Index: 0, Values: one(false)}}})
	require.ErrorContains(t, err, "'b' (index 0) is given two values")
}

// A function constant has its value when a kernel is made, not when the text is compiled: as in Metal it is no constant
// expression.
func TestFunctionConstantsAreNoConstantExpressions(t *testing.T) {
	t.Parallel()
	const head = "using namespace metal;\nconstant int n [[function_constant(0)]]; constant int twice = 2 * n;\n" +
		"template <int N> int get() { return N; }\n"
	opt := Options{FunctionConstants: []FunctionConstant{{Name: "n", Values: []any{4.0}}}}
	for _, text := range []string{
		"float a[n];", "float a[twice];", "const int k = n; float a[k];", "x[0] = get<n>();", "static_assert(n == 4);",
		"switch (int(x[0])) { case n: x[1] = 1; }", "if constexpr (n > 2) x[0] = 1;", "constexpr int c = n;",
		"enum E { A = n };", "threadgroup float t[twice];", "if constexpr (is_function_constant_defined(n)) x[0] = 1;",
	} {
		_, err := Compile(Source{Name: "s", Text: head + "kernel void k(device float *x [[buffer(0)]]) {" + text + "}"}, opt)
		require.ErrorContains(t, err, "a function constant", text)
	}
	_, err := Compile(Source{Name: "s", Text: head + "constexpr constant int c = n;\n" +
		"kernel void k(device float *x [[buffer(0)]]) { x[0] = c; }"}, opt)
	require.ErrorContains(t, err, "a function constant")
	for _, text := range []string{
		"for (int i = 0; i < n; i++) x[i] = twice;", "const int k = n; if (k > 2) x[0] = k; float a[4]; x[1] = a[n - 1];",
		"x[0] = n > 2 ? 1 : 2; switch (n) { case 4: x[1] = 1; }",
	} {
		_, err := Compile(Source{Name: "s", Text: head + "kernel void k(device float *x [[buffer(0)]]) {" + text + "}"}, opt)
		require.NoError(t, err, text)
	}
}

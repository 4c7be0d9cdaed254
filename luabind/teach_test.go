package luabind

import (
	"bytes"
	"context"
	"strings"
	"testing"

	"github.com/stretchr/testify/require"
)

// Errors say what to write.
func TestErrorsTeach(t *testing.T) {
	t.Parallel()
	s := newTestState(t)
	kernel := `local function k(source, n)
			local x = mx.arange(n) * 1
			mx.eval(x)
			return mx.fast.metal_kernel{name = "mine", input_names = {"inp"}, output_names = {"out"}, source = source}{
				inputs = {x}, grid = {n, 1, 1}, threadgroup = {32, 1, 1}, output_shapes = {{n}}, output_dtypes = {mx.float32}}
		end `
	for script, want := range map[string]string{
		"return a[0,1]":             `near ','; an index of several parts is a text: a["0,1"]`,
		"return a[0, 1:]":           `a["0, 1:"]`,
		"x.y[:, None] = 3":          `x.y[":, None"]`,
		"return f(a[i, j])":         "an index of several parts is a:index(i, j)",
		"return a[i, 1:, None, ..]": `a:index(i, "1:", "None", "..")`,
		"return a[1:2]":             `a slice is a text: x["1:2"]`,
		"return {[1] = f(1, [2])}":  "a list is written {1, 2}",
		"return mx.array({mx.ones(2), mx.ones(3)})": "" +
			"[array] val is not rectangular: item 2 has shape (3,), item 1 has (2,)",
		"return mx.array({mx.ones(2), 'x'})":                 `[array] val has the string "x"`,
		"local t = {mx.ones(2)} t[2] = t return mx.array(t)": "[array] val is a table nested deeper than 64 levels",
		"return mx.complex('a')": "" +
			`[complex] re is the string "a", want an array or a number`,
		"return mx.complex(mx.array(mx.complex(1, 2)), 2)": "re and im are real: one is an array complex64 ()",
		"return mx.grad(function(x) coroutine.yield() return x end)(mx.array(1))": "" +
			"; the function that mx.grad calls runs in one go, and cannot yield",
		"return mx.compile(function(x) coroutine.yield() return x end)(mx.array(1))": "" +
			"; the function that mx.compile calls runs in one go, and cannot yield",
		"return coroutine.wrap(function() return mx.vmap(coroutine.yield)(mx.ones(2)) end)()": "" +
			"mx.vmap calls runs in one go",
		"local f = mx.custom_function(function(x) return x end) f:vjp(function() return 'no' end) " +
			"return mx.grad(function(x) return f(x) end)(mx.array(1))": "" +
			`result 1 of its vjp is the string "no", want a gradient for each primal, arrays`,
		"local f = mx.custom_function(function(x) return x end) f:jvp(function(_, t) return true end) " +
			"return mx.jvp(f, {mx.array(1)}, {mx.array(1)})": "" +
			`result 1 of its jvp is true, want a tangent for each output, arrays`,
		kernel + "return tostring(k('', 64))": "" +
			"64 of the 64 elements of float32 (64,) were never written, the first at 0, by " +
			"kernel custom_kernel_mine",
		kernel + "return tostring(k('" +
			"uint i = thread_position_in_grid.x; ((device float*)inp)[i] = 1; out[i] = inp[i];', 64))": "" +
			"mine: source:1:61: error MSL0346: write to 'inp', which is an input: kernels only read those",
		kernel + "return tostring(k('" +
			"uint i = thread_position_in_grid.x; const_cast<device int*>(inp)[i]++; out[i] = inp[i];', 64))": "" +
			"mine: source:1:68: error MSL0346: write to 'inp', which is an input: kernels only read those",
	} {
		_, err := s.Run(context.Background(), strings.NewReader("mx.metal.validate(true) "+script), "teach")
		require.ErrorContains(t, err, want, script)
	}
	_, err := s.Run(context.Background(), strings.NewReader("mx.metal.validate(false)"), "teach")
	require.NoError(t, err)
}

// TestLongTextsInErrors: an error shows the begin and the end of what is too long to read.
func TestLongTextsInErrors(t *testing.T) {
	t.Parallel()
	s := newTestState(t)
	for script, want := range map[string][2]string{
		`mx.einsum(long, mx.ones({2}))`:       {`[einsum] subscripts "aaaa`, `operand 0 has shape (2,)`},
		`mx.pad(mx.ones({2}), 1, long)`:       {`[pad] mode is "aaaa`, `aaa", want "constant", "edge"`},
		`mx.nn[long]`:                         {`[mx] there is no mx.nn.aaaa`, `aaaa`},
		`mx.save(long .. ".npy", mx.ones(2))`: {`[save] cannot create aaaa`, `too long`},
		`mx.transpose(mx.ones({2}), all)`:     {`[transpose] axes (3, 3, 3`, ` 3)`},
		`mx.nn.Upsample(2, long)`:             {`[nn.Upsample] mode is "aaaa`, `a", want`},
	} {
		_, err := s.Run(context.Background(), strings.NewReader(
			"long, all = ('a'):rep(1e4), {} for i = 1, 1e4 do all[i] = 3 end return "+script), "long")
		require.Error(t, err, script)
		text := err.Error()
		require.Less(t, len(text), 1100, script)
		require.Contains(t, text, want[0])
		require.Contains(t, text, want[1])
		require.Contains(t, text, " bytes ... ")
	}
}

// A table of arrays is what MLX 0.32.4's mx.array makes of the list.
func TestArrayOfArrays(t *testing.T) {
	t.Parallel()
	s := newTestState(t)
	for script, want := range map[string]string{
		"{mx.ones(2), mx.zeros(2)}":                             "array([[1, 1],\n       [0, 0]], dtype=float32)",
		"{{mx.ones(2)}, {mx.zeros(2)}}":                         "array([[[1, 1]],\n       [[0, 0]]], dtype=float32)",
		"{mx.array(1, mx.int32), 2}":                            "array([1, 2], dtype=int32)",
		"{mx.array(1, mx.int32), 2.5}":                          "array([1, 2.5], dtype=float32)",
		"{mx.array({1}, mx.int32), mx.zeros(1)}":                "array([[1],\n       [0]], dtype=float32)",
		"{mx.ones(2), {1, 2}}":                                  "array([[1, 1],\n       [1, 2]], dtype=float32)",
		"{{1, 2}, mx.ones(2)}":                                  "array([[1, 2],\n       [1, 1]], dtype=float32)",
		"{mx.ones(2), mx.ones(2)}, mx.int32":                    "array([[1, 1],\n       [1, 1]], dtype=int32)",
		"{true, mx.array(2, mx.int32)}":                         "array([1, 2], dtype=int32)",
		"{mx.array(true), mx.array(2, mx.float16)}, mx.float32": "array([1, 2], dtype=float32)",
	} {
		require.Equal(t, want, runText(t, s, "return tostring(mx.array("+script+"))"), script)
	}
	// The derivative of what was stacked reaches the arrays.
	require.Equal(t, "array(3, dtype=float32)", runText(t, s,
		"return tostring(mx.grad(function(x) return (mx.array({x, 2 * x})):sum() end)(mx.array(1)))"))
}

// mx.complex of arrays is re + im*1j, element by element, with gradients.
func TestComplexOfArrays(t *testing.T) {
	t.Parallel()
	s := newTestState(t)
	for script, want := range map[string]string{
		"mx.complex(mx.array({1, 2}), mx.array({3, 4}))": "" +
			"array([1+3j, 2+4j], dtype=complex64)",
		"mx.complex(mx.array({1, 2}))": "" +
			"array([1+0j, 2+0j], dtype=complex64)",
		"mx.complex(1, mx.array({{3}, {4}}, mx.int32))": "" +
			"array([[1+3j],\n       [1+4j]], dtype=complex64)",
		"mx.complex(1, 2)": "1+2j",
		"mx.grad(function(y) return mx.abs(mx.complex(3, y)):sum() end)(mx.array({4}))": "array([0.8], dtype=float32)",
	} {
		require.Equal(t, want, runText(t, s, "return tostring("+script+")"), script)
	}
}

// A condition that is an array is told of once for each line, and is an error of a strict state; an array that a name
// holds is not, unless it is a bool of no dimensions.
func TestConditionsThatAreArrays(t *testing.T) {
	t.Parallel()
	script := `local a = mx.array({0, 0})
for i = 1, 3 do if mx.any(a) then end end
local mask, b = mx.zeros({3})
if mask then end
b = b or mx.zeros(3) b = b or mx.zeros(3)
if mx.any(a):item() or mx.any(a) == nil then end
local any = mx.any(a)
while not any do end
local t = {found = mx.all(a)}
local x = t.found and 1
if a:sum({axis = 0, keepdims = true}) then end`
	var out bytes.Buffer
	s := New(Options{Stderr: &out})
	defer s.Close()
	_, err := s.Run(context.Background(), strings.NewReader(script), "c.lua")
	require.NoError(t, err)
	told := "the condition is an array bool (), and Lua takes any array for true; " +
		"item() gives its value, as in mx.any(x):item()\n"
	require.Equal(t, "warning: c.lua:2: "+told+"warning: c.lua:8: "+told+"warning: c.lua:10: "+told+
		"warning: c.lua:11: the condition is an array float32 (1,), and Lua takes any array for true; "+
		"mx.any(x):item() and mx.all(x):item() are conditions, and so is x ~= nil\n", out.String())
	strict := New(Options{Strict: true})
	defer strict.Close()
	for line, want := range map[string]string{"if mx.any(mx.ones(2)) then end": "" +
		"array bool ()", "return mx.ones(2) and 1": "float32 (2,)"} {
		_, err = strict.Run(context.Background(), strings.NewReader("\n"+line), "c.lua")
		require.ErrorContains(t, err, "c.lua:2: [condition] the condition is an array")
		require.ErrorContains(t, err, want)
	}
}

// runText runs a script that returns a string.
func runText(t *testing.T, s *State, script string) string {
	t.Helper()
	out, err := s.Run(context.Background(), strings.NewReader(script), "test")
	require.NoError(t, err, script)
	require.Len(t, out, 1)
	return out[0].String()
}

// Who indexes a method of arrays is told how methods are called, and who indexes another function is not.
func TestHintOfIndexedMethods(t *testing.T) {
	t.Parallel()
	s := newTestState(t)
	for script, hinted := range map[string]bool{
		"return mx.ones({2}).at[{0}]": true, "mx.ones({2}).at[1] = 2": true, "local f = mx.ones({2}).rows return f.x": true,
		"return mx.ones({2}).rows:x()": true, "return pcall(mx.sin, 1), mx.sin.x": true,
		"return math.sin[1]": false, "math.sin.x = 1": false, "local function f() end return 1 + f.x": false,
		"local x = mx.ones({2}).at return math.sin[x]": false, "return (function() return print.x end)()": false,
	} {
		_, err := s.Run(t.Context(), strings.NewReader(script), "hint")
		require.Regexp(t, `attempt to index (\w+ '\w+' \()?a function value`, err.Error(), script)
		require.Equal(t, hinted, strings.Contains(err.Error(), "methods are called with a colon"), script)
	}
}

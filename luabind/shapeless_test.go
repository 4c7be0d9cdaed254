package luabind

import (
	"context"
	"flag"
	"fmt"
	"math/rand/v2"
	"slices"
	"strings"
	"testing"

	"github.com/stretchr/testify/require"
	lua "github.com/yuin/gopher-lua"

	"github.com/mlxlua/mlxlua/internal/brief"
	"github.com/mlxlua/mlxlua/tensor"
)

// shapelessCount is how many random functions TestShapelessFunctions makes:
//
//	go test ./luabind -run ShapelessFunctions -shapeless 10000 -timeout 2h
var shapelessCount = flag.Int("shapeless", 200, "random functions to replay at other shapes")

// sized is a Lua variable that holds an array, and the names of its dimensions' sizes: where two are equal, so are the
// sizes, whatever the inputs' are.
type sized struct {
	name string
	dims []string
}

// shapelessFunction writes a random Lua function of arrays, which reads no size as a number: views, reductions,
// gathers, scatters, products, sorts, custom kernels, gradients and batches of others, on two streams.
type shapelessFunction struct {
	*rand.Rand
	text  strings.Builder
	xs    []sized // float32
	count int
}

func (f *shapelessFunction) pick() sized { return f.xs[f.IntN(len(f.xs))] }

// add defines a variable.
func (f *shapelessFunction) add(dims []string, format string, args ...any) {
	f.count++
	name := fmt.Sprintf("v%d", f.count)
	fmt.Fprintf(&f.text, "  local %s = %s\n", name, fmt.Sprintf(format, args...))
	f.xs = append(f.xs, sized{name, dims})
}

// like is another array whose shape broadcasts with x's, or a number.
func (f *shapelessFunction) like(x sized) string {
	var fits []string
	for _, y := range f.xs {
		if len(y.dims) <= len(x.dims) && slices.Equal(y.dims, x.dims[len(x.dims)-len(y.dims):]) {
			fits = append(fits, y.name)
		}
	}
	if f.IntN(4) == 0 {
		return "0.75"
	}
	return fits[f.IntN(len(fits))]
}

var unaryCalls = strings.Fields(`mx.tanh mx.sin mx.abs mx.square mx.sigmoid mx.negative mx.floor mx.cos mx.erf
	mx.log1p_abs mx.stop_gradient mx.contiguous mx.nan_to_num`)

func (f *shapelessFunction) step() {
	x := f.pick()
	n := len(x.dims)
	axis := 0
	if n > 0 {
		axis = f.IntN(n)
	}
	without := func() []string { return slices.Delete(slices.Clone(x.dims), axis, axis+1) }
	with := func(d string) []string {
		dims := slices.Clone(x.dims)
		dims[axis] = d
		return dims
	}
	kind := f.IntN(28)
	if n == 0 && kind > 4 {
		kind %= 4
	}
	switch kind {
	case 0, 1:
		call := unaryCalls[f.IntN(len(unaryCalls))]
		if call == "mx.log1p_abs" {
			f.add(x.dims, "mx.log1p(mx.abs(%s))", x.name)
			return
		}
		f.add(x.dims, "%s(%s)", call, x.name)
	case 2, 3:
		op := []string{"%s + %s", "%s - %s", "%s * %s", "mx.maximum(%s, %s)", "mx.arctan2(%s, %s)",
			"mx.where(mx.greater(%[1]s, 0.1), %[2]s, %[1]s)", "%s / (mx.abs(%s) + 1)"}[f.IntN(7)]
		f.add(x.dims, op, x.name, f.like(x))
	case 4:
		f.add(append([]string{"1"}, x.dims...), "%s:expand_dims(0)", x.name)
	case 5, 6:
		call := []string{"sum", "mean", "max", "min", "logsumexp", "var", "prod"}[f.IntN(7)]
		if f.IntN(2) == 0 {
			f.add(with("1"), "mx.%s(%s, %d, true)", call, x.name, axis)
			return
		}
		f.add(without(), "mx.%s(%s, %d)", call, x.name, axis)
	case 7:
		dims := slices.Clone(x.dims)
		slices.Reverse(dims)
		f.add(dims, "%s.T", x.name)
	case 8:
		f.add([]string{"(" + strings.Join(x.dims, "*") + ")"}, "%s:reshape({-1})", x.name)
	case 9:
		step := []string{"::2", "::-1", "1:", ":-1", "-1:"}[f.IntN(5)]
		f.add(append([]string{x.dims[0] + "[" + step + "]"}, x.dims[1:]...), "%s[%q]", x.name, step)
	case 10:
		f.add(x.dims, "mx.softmax(%s, %d)", x.name, axis)
	case 11:
		call := []string{"sort", "cumsum", "cummax", "flip"}[f.IntN(4)]
		f.add(x.dims, "mx.%s(%s, %d)", call, x.name, axis)
	case 12:
		f.add(x.dims, "mx.take_along_axis(%[1]s, mx.stop_gradient(mx.argsort(%[1]s, %[2]d)), %[2]d)", x.name, axis)
	case 13:
		f.add(with("k"), "mx.take(%s, picks, %d)", x.name, axis)
	case 14:
		f.add(x.dims, "%[1]s:at(picks):add(mx.take(%[1]s, picks, 0) * 0.5)", x.name)
	case 15:
		f.add(with(x.dims[axis]+"+"+x.dims[axis]), "mx.concatenate({%[1]s, mx.sin(%[1]s)}, %[2]d)", x.name, axis)
	case 16:
		f.add(with("3"+x.dims[axis]), "mx['repeat'](%s, 3, %d)", x.name, axis)
	case 17:
		f.add(with(x.dims[axis]+"|"), "mx.pad(%s, {%s})", x.name,
			strings.Join(slices.Concat(slices.Repeat([]string{"{0, 0}"}, axis), []string{"{1, 2}"},
				slices.Repeat([]string{"{0, 0}"}, n-axis-1)), ", "))
	case 18:
		f.add(x.dims, "mx.roll(%s, 1, %d)", x.name, axis)
	case 19:
		if n > 1 {
			f.add([]string{x.dims[n-2], x.dims[n-2]}, "mx.matmul(%[1]s, %[1]s:swapaxes(-1, -2)):reshape({-1})", x.name)
			f.xs[len(f.xs)-1].dims = []string{"(" + strings.Join(x.dims[:n-1], "*") + "*" + x.dims[n-2] + ")"}
		}
	case 20:
		f.add(x.dims, "scaled(%s)", x.name)
	case 24:
		f.add(x.dims, "strided(%s)", x.name)
	case 25:
		f.add(x.dims, "counted(%s)", x.name)
	case 26, 27:
		f.add(x.dims, "beside(function() return mx.cos(%s) * %s end)", x.name, f.like(x))
	case 21:
		y := f.like(x)
		f.add(x.dims, "mx.grad(function(z) return mx.sum(mx.tanh(z * 0.5) * mx.cos(z + %s)) end)(%s)", y, x.name)
	case 22:
		f.add(x.dims, "mx.vmap(function(z) return z * mx.sum(z) + 1 end, {in_axes = %d, out_axes = %d})(%s)", axis, axis,
			x.name)
	default:
		f.add(x.dims, "mx.checkpoint(function(z) return mx.exp(z * 0.01) - %s end)(%s)", f.like(x), x.name)
	}
}

// scaledKernel has custom kernels whose outputs have their inputs' shapes: one of a flat input, one that looks at how
// its input lies, and one that adds up in a mutable input and atomically, from what its outputs are filled with, with
// functions of shapes. Beside calls a function on another stream.
const scaledKernel = `local kernel = mx.fast.metal_kernel{name = "scaled", input_names = {"a"}, output_names = {"out"},
  source = "uint i = thread_position_in_grid.x; out[i] = a[i] * 2 + float(i % 3u);"}
local function scaled(a)
  local flat = a:reshape({-1})
  return kernel{inputs = {flat}, grid = flat, threadgroup = {32, 1, 1}, output_shapes = {flat},
    output_dtypes = {mx.float32}}:reshape(a)
end
local lying = mx.fast.metal_kernel{name = "lying", input_names = {"a"}, output_names = {"out"},
  ensure_row_contiguous = false, source = [[
    uint i = thread_position_in_grid.x, rest = i;
    long at = 0;
    float strides = 0;
    for (int d = a_ndim - 1; d >= 0; d--) {
      at += long(rest % a_shape[d]) * a_strides[d];
      rest /= a_shape[d];
      strides += a_shape[d] > 1 ? float(a_strides[d] % 7) : 0;
    }
    out[i] = a[at] + 0 * strides;]]}
local function strided(a)
  return lying{inputs = {a}, grid = a, threadgroup = {8, 1, 1}, output_shapes = {a}, output_dtypes = {mx.float32}}
end
local counts = mx.fast.metal_kernel{name = "counts", input_names = {"a", "b"}, output_names = {"out"},
  mutable_inputs = {"b"}, atomic_outputs = true, source = [[
    uint i = thread_position_in_grid.x;
    b[i] = b[i] * 0.5f + a[i];
    atomic_fetch_add_explicit(&out[0], int(i), memory_order_relaxed);]]}
local function counted(a)
  local flat = a:reshape({-1})
  local n, b = counts{inputs = {flat, mx.sin(flat)}, grid = function(s) return {s[1][1]} end,
    threadgroup = {16, 1, 1}, output_shapes = {function() return {1} end}, output_dtypes = {mx.int32}, init_value = 3}
  return (b + n * 0.001):reshape(a)
end
local other = mx.new_stream(mx.default_device())
local function beside(f) return mx.stream(other, f) end
`

// shapelessProgram is a program that gives what a random function gives for inputs of two shapes, eager and by one
// shapeless trace, then the same again, where the trace's calls are recorded ones if they can be, and what explains
// that.
func shapelessProgram(seed uint64) string {
	f := &shapelessFunction{Rand: rand.New(rand.NewPCG(seed, 14))}
	f.xs = []sized{{"a", []string{"n", "m"}}, {"b", []string{"m"}}, {"c", []string{"p", "n", "m"}}}
	for range 4 + f.IntN(12) {
		f.step()
	}
	last := f.xs[max(3, len(f.xs)-4):]
	outs := make([]string, len(last))
	for i, x := range last {
		outs[i] = x.name
	}
	text := scaledKernel + "local function f(a, b, c, picks)\n" + f.text.String() +
		"  return {" + strings.Join(outs, ", ") + "}\nend\n" +
		`local g = mx.compile(f, {shapeless = true})
local function values(n, ...)
  return mx.sin(mx.arange(n) * 12.9898):astype(mx.float32):reshape({...})
end
local function run(f, n, m, p, k)
  return f(values(n * m, n, m), values(m, m), values(p * n * m, p, n, m), mx.arange(k):astype(mx.int32) * -1)
end
`
	sizes := func() string { // the first indices fit any dimension
		return fmt.Sprintf("%d, %d, %d, %d", 2+f.IntN(5), 2+f.IntN(9), 2+f.IntN(3), 1+f.IntN(2))
	}
	first, second := sizes(), sizes()
	return text + fmt.Sprintf("local a, b, c, d = run(f, %[1]s), run(g, %[1]s), run(f, %[2]s), run(g, %[2]s)\n"+
		"return a, b, c, d, a, run(g, %[1]s), c, run(g, %[2]s), g:explain()", first, second)
}

// TestShapelessFunctions: a shapeless trace of a random function, replayed at random other shapes, gives the eager
// function's bytes, and the function runs once.
func TestShapelessFunctions(t *testing.T) {
	t.Parallel()
	brief.OnlyValues(t)
	s := newTestState(t)
	failures, bad := 0, 0
	for seed := range uint64(*shapelessCount) {
		program := shapelessProgram(seed)
		eager := strings.ReplaceAll(program, "run(g", "run(f")
		if _, err := s.Run(t.Context(), strings.NewReader("local mx = require('mx')\n"+eager), "function"); err != nil {
			bad++ // the largest element of none
			continue
		}
		if diff := shapelessDiffers(t.Context(), s, program); diff != "" {
			t.Errorf("function %d: %s\n%s", seed, diff, program)
			if failures++; failures > 5 {
				return
			}
		}
	}
	require.Less(t, bad, *shapelessCount/10)
	t.Logf("%d functions, of which %d are errors by themselves", *shapelessCount, bad)
}

// shapelessDiffers says what a program's results should not be, "" if nothing.
func shapelessDiffers(ctx context.Context, s *State, program string) string {
	results, err := s.Run(ctx, strings.NewReader("local mx = require('mx')\n"+program), "function")
	if err != nil {
		return err.Error()
	}
	if text := results[8].String(); !strings.Contains(text, ": 4 calls, 1 trace, 3 replays ") {
		return text
	}
	lists := make([][]*tensor.Array, 8)
	for i := range lists {
		table := results[i].(*lua.LTable)
		for k := 1; k <= table.Len(); k++ {
			x, _ := array(table.RawGetInt(k))
			lists[i] = append(lists[i], x)
		}
	}
	if err := tensor.Eval(ctx, slices.Concat(lists...)...); err != nil {
		return err.Error()
	}
	for i := 0; i < len(lists); i += 2 {
		for k, want := range lists[i] {
			if diff := bytesDiffer(ctx, want, lists[i+1][k]); diff != "" {
				return fmt.Sprintf("pair %d, output %d: %s", i/2+1, k+1, diff)
			}
		}
	}
	return ""
}

// bytesDiffer says how two float32 arrays differ; a NaN is a NaN.
func bytesDiffer(ctx context.Context, want, got *tensor.Array) string {
	if !want.Shape().Equal(got.Shape()) || want.DType() != got.DType() {
		return fmt.Sprintf("it is %v, want %v", got.Spec(), want.Spec())
	}
	x, err := elementTexts(want)
	if err != nil {
		return err.Error()
	}
	y, err := elementTexts(got)
	if err != nil {
		return err.Error()
	}
	for i := range x {
		if x[i] != y[i] {
			return fmt.Sprintf("element %d is %s, want %s", i, y[i], x[i])
		}
	}
	return ""
}

// A program whose trace has read a size is found: the test can fail.
func TestShapelessFunctionsCanFail(t *testing.T) {
	t.Parallel()
	s := newTestState(t)
	program := shapelessProgram(1)
	require.Empty(t, shapelessDiffers(t.Context(), s, program))
	read := strings.Replace(program, "picks)\n", "picks)\n  a = a * a.shape[1]\n", 1)
	require.Contains(t, shapelessDiffers(t.Context(), s, read), "dimension 0 of input 0")
	counts := strings.Replace(program, "  return {", "  count = (count or 0) + 1\n  return {a * count, ", 1)
	require.Contains(t, shapelessDiffers(t.Context(), s, counts), "output 1: element ")
}

package fast_test

import (
	"context"
	"encoding/binary"
	"errors"
	"fmt"
	"math"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/mlxlua/mlxlua/compile"
	"github.com/mlxlua/mlxlua/metal"
	"github.com/mlxlua/mlxlua/tensor"
	"github.com/mlxlua/mlxlua/tensor/ops"
	"github.com/mlxlua/mlxlua/tensor/ops/fast"
	"github.com/mlxlua/mlxlua/tensor/optest"
)

// kernel declares a kernel of inputs and one output.
func kernel(t *testing.T, source string, inputs ...string) *fast.MetalKernel {
	t.Helper()
	k, err := fast.NewMetalKernel(fast.KernelConfig{Name: "k", InputNames: inputs, OutputNames: []string{"out"},
		Source: source, MathMode: metal.MathSafe})
	require.NoError(t, err)
	return k
}

// floatsOf evaluates a float32 array.
func floatsOf(t *testing.T, x *tensor.Array) []float32 {
	t.Helper()
	require.Equal(t, tensor.Float32, x.DType())
	b, err := x.Bytes(context.Background())
	require.NoError(t, err)
	out := make([]float32, len(b)/4)
	for i := range out {
		out[i] = math.Float32frombits(binary.LittleEndian.Uint32(b[4*i:]))
	}
	return out
}

// covering is a call over x with an output like it.
func covering(x *tensor.Array, more ...*tensor.Array) fast.KernelCall {
	return fast.KernelCall{Inputs: append([]*tensor.Array{x}, more...), Grid: fast.Extent{Cover: x},
		Threadgroup: fast.Threads(32), OutputShapes: []fast.OutputShape{{Dims: tensor.ShapeOf(x)}},
		OutputDTypes: []tensor.DType{tensor.Float32}}
}

const thread = "uint i = thread_position_in_grid.x;\n"

// A body compiles whether its inputs are bound in device or constant memory, or as references.
func TestKernelInputsBySize(t *testing.T) {
	optest.Open(t)
	double := kernel(t, thread+"auto p = x + i; out[i] = *p * scale;", "x", "scale")
	for _, n := range []int{1, 7, 8, 9, 100} {
		x := ops.Arange(0, float64(n), 1, tensor.Float32)
		got := floatsOf(t, double.Call(covering(x, ops.Number(3, tensor.Float32)))[0])
		for i, v := range got {
			require.Equal(t, float32(3*i), v, "%d elements", n)
		}
	}
}

// The kernel sees shapes, strides and ranks of inputs that it names, of strided ones as they lie if it asks for it.
func TestKernelShapesAndStrides(t *testing.T) {
	optest.Open(t)
	source := "out[0] = x_ndim; out[1] = x_shape[0]; out[2] = x_shape[1]; out[3] = x_strides[0]; out[4] = x_strides[1];" +
		"out[5] = x[1];"
	x := ops.Transpose(ops.Reshape(ops.Arange(0, 12, 1, tensor.Float32), tensor.Sizes(3, 4)), nil)
	for strided, want := range map[bool][]float32{false: {2, 4, 3, 3, 1, 4}, true: {2, 4, 3, 1, 4, 1}} {
		k, err := fast.NewMetalKernel(fast.KernelConfig{Name: "look", InputNames: []string{"x"},
			OutputNames: []string{"out"}, Source: source, Strided: strided})
		require.NoError(t, err)
		out := k.Call(fast.KernelCall{Inputs: []*tensor.Array{x}, Grid: fast.Threads(1), Threadgroup: fast.Threads(1),
			OutputShapes: []fast.OutputShape{{Dims: tensor.Sizes(6)}}, OutputDTypes: []tensor.DType{tensor.Float32}})
		require.Equal(t, want, floatsOf(t, out[0]), "strided %v", strided)
	}
}

// What creation functions make has all its elements in memory for a kernel that takes inputs as they lie, whatever
// views of it are taken, as in MLX 0.32.4; what is broadcast has not.
func TestKernelReadsCreatedArrays(t *testing.T) {
	optest.Open(t)
	// The kernel ignores strides, as those may that are given dense arrays: element i is that of the buffer.
	k, err := fast.NewMetalKernel(fast.KernelConfig{Name: "flat", InputNames: []string{"x"}, OutputNames: []string{"out"},
		Source: thread + "out[i] = i < 12 ? x[i] : float(x_strides[i - 12]);", Strided: true})
	require.NoError(t, err)
	call := func(x *array) []float32 {
		return floatsOf(t, k.Call(fast.KernelCall{Inputs: []*array{x}, Grid: fast.Threads(14), Threadgroup: fast.Threads(14),
			OutputShapes: []fast.OutputShape{{Dims: tensor.Sizes(14)}}, OutputDTypes: []tensor.DType{tensor.Float32}})[0])
	}
	f := tensor.Float32
	like := ops.Transpose(ops.Reshape(ops.Arange(0, 12, 1, f), tensor.Sizes(3, 4)), nil)
	evaluated := ops.Full(tensor.Sizes(3, 4), ops.Number(7, f), f)
	require.NoError(t, tensor.Eval(context.Background(), evaluated))
	seven := func(n ...int) *array { return ops.Full(tensor.Sizes(n...), ops.Number(7, tensor.Int32), f) }
	for name, c := range map[string]struct {
		x             *array
		value, stride float32
	}{
		"zeros":      {ops.Zeros(tensor.Sizes(3, 4), f), 0, 4},
		"ones":       {ops.Ones(tensor.Sizes(3, 4), f), 1, 4},
		"full":       {seven(3, 4), 7, 4},
		"of one":     {ops.Full(tensor.Sizes(3, 4), ops.FromSlice([]float32{7}, []int{1}), f), 7, 4},
		"zeros_like": {ops.ZerosLike(like), 0, 3},
		"ones_like":  {ops.OnesLike(like), 1, 3},
		"evaluated":  {evaluated, 7, 4},
		"a view":     {ops.Reshape(evaluated, tensor.Sizes(2, 6)), 7, 6},
		"reshaped":   {ops.Reshape(seven(12), tensor.Sizes(6, 2)), 7, 2},
		// MLX steps through the larger array here, which the elements do not tell.
		"sliced": {ops.Slice(seven(9, 8), []ops.Part{ops.Span(2, 5, 1), ops.Span(0, 8, 2)}), 7, 4},
	} {
		got := call(c.x)
		for i := range 12 {
			require.Equal(t, c.value, got[i], "%s, element %d of %v", name, i, got)
		}
		require.Equal(t, []float32{c.stride, 1}, got[12:], name)
	}
	look, err := fast.NewMetalKernel(fast.KernelConfig{Name: "strides", InputNames: []string{"x"},
		OutputNames: []string{"out"}, Source: thread + "out[i] = x_strides[i];", Strided: true})
	require.NoError(t, err)
	for name, c := range map[string]struct {
		x    *array
		want []float32
	}{
		"broadcast": {ops.BroadcastTo(ops.Number(1, f), tensor.Sizes(3, 4)), []float32{0, 0}},
		"full of a column": {ops.Full(tensor.Sizes(3, 4), ops.FromSlice([]float32{1, 2, 3}, []int{3, 1}), f),
			[]float32{1, 0}},
	} {
		got := look.Call(fast.KernelCall{Inputs: []*array{c.x}, Grid: fast.Threads(2), Threadgroup: fast.Threads(2),
			OutputShapes: []fast.OutputShape{{Dims: tensor.Sizes(2)}}, OutputDTypes: []tensor.DType{tensor.Float32}})[0]
		require.Equal(t, c.want, floatsOf(t, got), name)
	}
}

// Template arguments are types, integers and bools; a type T and an input named T are both fine.
func TestKernelTemplate(t *testing.T) {
	optest.Open(t)
	k := kernel(t, thread+"T v = x[i]; for (int j = 1; j < N; ++j) { v += x[i]; } out[i] = B ? -v : v;", "x")
	call := covering(ops.Arange(0, 10, 1, tensor.Float32))
	call.Template = []fast.TemplateArg{{Name: "T", Value: tensor.Float32}, {Name: "N", Value: 3}, {Name: "B", Value: true}}
	require.Equal(t, float32(-27), floatsOf(t, k.Call(call)[0])[9])
	call.Template[0].Value, call.Template[2].Value = tensor.Int32, false
	require.Equal(t, float32(27), floatsOf(t, k.Call(call)[0])[9])
	input := kernel(t, thread+"out[i] = T[i] + 1;", "T")
	require.Equal(t, float32(10), floatsOf(t, input.Call(covering(call.Inputs[0]))[0])[9])
}

// Outputs may be atomic and start from a value; several come in their order.
func TestKernelOutputs(t *testing.T) {
	optest.Open(t)
	k, err := fast.NewMetalKernel(fast.KernelConfig{Name: "count", InputNames: []string{"x"},
		OutputNames: []string{"sum", "count"}, AtomicOutputs: true, Source: thread +
			"atomic_fetch_add_explicit(&sum[0], x[i], memory_order_relaxed);" +
			"atomic_fetch_add_explicit(&count[0], 1, memory_order_relaxed);"})
	require.NoError(t, err)
	x := ops.Arange(0, 1000, 1, tensor.Int32)
	start := 5.0
	out := k.Call(fast.KernelCall{Inputs: []*tensor.Array{x}, Grid: fast.Extent{Cover: x}, Threadgroup: fast.Threads(64),
		OutputShapes: []fast.OutputShape{{Dims: tensor.Sizes(1)}, {Dims: tensor.Sizes(1)}},
		OutputDTypes: []tensor.DType{tensor.Int32, tensor.Uint32}, InitValue: &start})
	for i, want := range []uint32{1000*999/2 + 5, 1005} {
		b, err := out[i].Bytes(context.Background())
		require.NoError(t, err)
		require.Equal(t, want, binary.LittleEndian.Uint32(b))
	}
}

// Equal names with other bodies, in one graph, are other kernels.
func TestKernelsOfOneName(t *testing.T) {
	optest.Open(t)
	x := ops.Arange(0, 64, 1, tensor.Float32)
	sum := x
	for i := range 12 {
		sum = ops.Add(sum, kernel(t, thread+fmt.Sprintf("out[i] = x[i] * %d;", i), "x").Call(covering(x))[0])
	}
	require.Equal(t, float32(63*(1+66)), floatsOf(t, sum)[63])
}

// A call gives function constants their values: those are part of what the kernel is, for calls in one graph, replays
// and its file.
func TestKernelConstants(t *testing.T) {
	optest.Open(t)
	k, err := fast.NewMetalKernel(fast.KernelConfig{Name: "k", InputNames: []string{"x"}, OutputNames: []string{"out"},
		Header: "constant float scale [[function_constant(0)]]; constant bool negative [[function_constant(7)]];\n" +
			"constant int2 plus [[function_constant(2)]]; constant bool unused [[function_constant(1)]];\n" +
			"inline float other(float x) { return unused ? x : 0; }",
		Source: thread + "float y = scale * x[i]; if (is_function_constant_defined(negative) && negative) y = -y;\n" +
			"if (is_function_constant_defined(plus)) y += plus.x * 10 + plus.y;\nout[i] = y;"})
	require.NoError(t, err)
	x := ops.Arange(0, 16, 1, tensor.Float32)
	call := func(c ...metal.Constant) *tensor.Array {
		kc := covering(x)
		kc.Constants = c
		return k.Call(kc)[0]
	}
	scale := func(v float64) metal.Constant { return metal.Constant{Name: "scale", Values: []any{v}} }
	negative := metal.Constant{Index: 7, Values: []any{true}}
	plus := metal.Constant{Name: "plus", Values: []any{2.0, 3.0}}
	all := []*tensor.Array{call(scale(2)), call(scale(3)), call(scale(2), negative), call(negative, scale(2)),
		call(scale(0.5), plus)}
	for i, want := range []float32{10, 15, -10, -10, 25.5} {
		require.Equal(t, want, floatsOf(t, all[i])[5], "call %d", i)
	}
	f := compile.New(func(in []*tensor.Array) ([]*tensor.Array, error) {
		kc := covering(in[0])
		kc.Constants = []metal.Constant{scale(4), negative}
		return k.Call(kc), nil
	}, compile.Options{})
	for range 2 {
		out, err := f.Call(nil, x)
		require.NoError(t, err)
		require.Equal(t, float32(-20), floatsOf(t, out[0])[5])
	}
	for want, c := range map[string][]metal.Constant{
		"the function constant 'scale' (index 0) has no value: a kernel takes it by constants = {scale = ...}": nil,
		"a value is given for 'scael', which is no function constant of the text: it has scale (0), negative (7), " +
			"plus (2), unused (1)": {{Name: "scael", Values: []any{1.0}}},
		"'negative' (index 7) of type bool is given the number 1, want true or false": {scale(1),
			{Name: "negative", Values: []any{1.0}}},
		"k: constants: the function constant scale is given twice": {scale(1), scale(2)},
	} {
		_, err := call(c...).Bytes(context.Background())
		require.ErrorContains(t, err, want)
	}
}

// Shape functions run where the call is made or replayed; calls that name no numbers replay at any shape, others are
// traced again where their inputs' shapes change.
func TestKernelReplay(t *testing.T) {
	optest.Open(t)
	k := kernel(t, thread+"out[i] = x[i] + x[i + x_shape[0] / 2];", "x")
	for name, c := range map[string]struct {
		half  func(x *tensor.Array) tensor.ShapeArg
		fn    *tensor.ShapeFunc
		runs  int
		width func(n int) int
	}{
		"functions": {fn: &tensor.ShapeFunc{F: func(in []tensor.Shape) ([]int, error) { return []int{in[0][0] / 2}, nil }},
			runs: 1, width: func(n int) int { return n / 2 }},
		"numbers": {half: func(*tensor.Array) tensor.ShapeArg { return tensor.Sizes(2) }, runs: 4,
			width: func(int) int { return 2 }},
	} {
		runs := 0
		f := compile.New(func(in []*tensor.Array) ([]*tensor.Array, error) {
			runs++
			call := fast.KernelCall{Inputs: in, Threadgroup: fast.Threads(32), OutputDTypes: []tensor.DType{tensor.Float32}}
			if c.fn != nil {
				call.Grid.Func, call.OutputShapes = c.fn, []fast.OutputShape{{Func: c.fn}}
			} else {
				call.Grid.Dims, call.OutputShapes = c.half(in[0]), []fast.OutputShape{{Dims: c.half(in[0])}}
			}
			return k.Call(call), nil
		}, compile.Options{Shapeless: true})
		for _, n := range []int{4, 14, 16, 200} {
			out, err := f.Call(nil, ops.Arange(0, float64(n), 1, tensor.Float32))
			require.NoError(t, err)
			got := floatsOf(t, out[0])
			require.Len(t, got, c.width(n), name)
			for i, v := range got {
				require.Equal(t, float32(i+i+n/2), v, "%s at %d", name, n)
			}
		}
		require.Equal(t, c.runs, runs, name)
	}
}

// What is wrong with a call says so, and what is wrong with a launch fails its outputs alone.
func TestKernelErrors(t *testing.T) {
	optest.Open(t)
	for text, cfg := range map[string]fast.KernelConfig{
		"name is empty":           {OutputNames: []string{"o"}},
		"output_names is empty":   {Name: "k"},
		`"1x" is not a valid`:     {Name: "k", InputNames: []string{"1x"}, OutputNames: []string{"o"}},
		`the name "o" is given t`: {Name: "k", InputNames: []string{"o"}, OutputNames: []string{"o"}},
	} {
		_, err := fast.NewMetalKernel(cfg)
		require.ErrorContains(t, err, text)
	}
	x := ops.Arange(0, 64, 1, tensor.Float32)
	k := kernel(t, thread+"out[i] = x[i + N];", "x")
	for text, change := range map[string]func(c *fast.KernelCall){
		"inputs has 2 entries, the kernel declares 1": func(c *fast.KernelCall) { c.Inputs = []*tensor.Array{x, x} },
		"output_dtypes has 0 entries":                 func(c *fast.KernelCall) { c.OutputDTypes = nil },
		"it has 4 sizes (1, 2, 3, 4), want 1 to 3":    func(c *fast.KernelCall) { c.Grid = fast.Threads(1, 2, 3, 4) },
		"size -1 of (-1,) is not between":             func(c *fast.KernelCall) { c.Grid = fast.Threads(-1) },
		"threadgroup (0, 1, 1) has no threads":        func(c *fast.KernelCall) { c.Threadgroup = fast.Threads(0) },
		"limit of 1024 threads":                       func(c *fast.KernelCall) { c.Threadgroup = fast.Threads(64, 64) },
		"template argument N is a string":             func(c *fast.KernelCall) { c.Template[0].Value = "3" },
		"template argument N = 4294967296 is not":     func(c *fast.KernelCall) { c.Template[0].Value = 1 << 32 },
		"'x' is the name of a template argument and of an input": func(c *fast.KernelCall) {
			c.Template[0].Name = "x"
		},
		"'out' is the name of a template argument and of an output": func(c *fast.KernelCall) {
			c.Template[0].Name = "out"
		},
		"x[64] is out of range: x has 64 elements": func(c *fast.KernelCall) { c.Template[0].Value = 1 },
		"init_value: 300 does not fit uint8": func(c *fast.KernelCall) {
			c.InitValue, c.OutputDTypes = new(float64), []tensor.DType{tensor.Uint8}
			*c.InitValue = 300
		},
		"negative dimension in shape (-3,)": func(c *fast.KernelCall) {
			c.OutputShapes = []fast.OutputShape{{Dims: tensor.Sizes(-3)}}
		},
		"the shape of output out: no luck": func(c *fast.KernelCall) {
			c.OutputShapes = []fast.OutputShape{{Func: &tensor.ShapeFunc{F: func([]tensor.Shape) ([]int, error) {
				return nil, errors.New("no luck")
			}}}}
		},
	} {
		call := covering(x)
		call.Template = []fast.TemplateArg{{Name: "N", Value: 0}}
		change(&call)
		out := k.Call(call)
		err := tensor.Eval(context.Background(), out...)
		require.ErrorContains(t, err, text)
		require.ErrorContains(t, err, "[metal_kernel]")
	}
	require.Equal(t, float32(126), floatsOf(t, ops.Multiply(x, ops.Number(2, tensor.Float32)))[63], "the device lives on")
}

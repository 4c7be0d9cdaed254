package export_test

import (
	"bytes"
	"context"
	"fmt"
	"io"
	"os"
	"path/filepath"
	"reflect"
	"slices"
	"strings"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/mlxlua/mlxlua/compile"
	"github.com/mlxlua/mlxlua/export"
	"github.com/mlxlua/mlxlua/internal/brief"
	"github.com/mlxlua/mlxlua/tensor"
	"github.com/mlxlua/mlxlua/tensor/grad"
	"github.com/mlxlua/mlxlua/tensor/ops"
	"github.com/mlxlua/mlxlua/tensor/ops/fast"
	_ "github.com/mlxlua/mlxlua/tensor/ops/rooms"
	"github.com/mlxlua/mlxlua/tensor/ops/sig"
	"github.com/mlxlua/mlxlua/tensor/optest"
)

type (
	array  = tensor.Array
	arrays = []*tensor.Array
)

func vec(v ...float32) *array { return ops.FromSlice(v, []int{len(v)}) }

// inputs are positional ones.
func inputs(xs ...*array) export.Inputs { return export.Inputs{Positional: xs} }

// written exports calls of f, one for each of the inputs.
func written(t testing.TB, shapeless bool, f func(in export.Inputs) arrays, calls ...export.Inputs) []byte {
	t.Helper()
	optest.Open(t)
	file := &export.File{Shapeless: shapeless, Metadata: "about"}
	for _, in := range calls {
		trace, err := export.Record(nil, func(in export.Inputs) (arrays, error) { return f(in), nil }, in, nil)
		require.NoError(t, err)
		file.Traces = append(file.Traces, trace)
	}
	var b bytes.Buffer
	require.NoError(t, file.Write(t.Context(), &b))
	return b.Bytes()
}

// read reads an exported function.
func read(t testing.TB, b []byte) *export.File {
	t.Helper()
	file, err := export.Read(bytes.NewReader(b), int64(len(b)))
	require.NoError(t, err)
	return file
}

// called calls a function of a file.
func called(t testing.TB, f *export.File, in ...*array) arrays {
	t.Helper()
	outs, err := f.Call(nil, inputs(in...))
	require.NoError(t, err)
	return outs
}

func sameBytes(t testing.TB, want, got *array, msg ...any) {
	t.Helper()
	require.Equal(t, want.Spec(), got.Spec(), msg...)
	a, err := want.Bytes(context.Background())
	require.NoError(t, err, msg...)
	b, err := got.Bytes(context.Background())
	require.NoError(t, err, msg...)
	require.Equal(t, a, b, msg...)
}

// weight is captured by the functions below: a constant of the file.
var weight = sync(func() *array { return ops.Multiply(ops.Arange(0, 6, 1, tensor.Float32), vec(0.5)) })

func sync(f func() *array) func() *array {
	var x *array
	return func() *array {
		if x == nil {
			x = f()
		}
		return x
	}
}

func layer(in export.Inputs) arrays {
	x := in.Positional[0]
	y := ops.Add(ops.Matmul(x, ops.Reshape(weight(), tensor.Sizes(2, 3))), vec(1, 2, 3))
	if b := in.Named["bias"]; b != nil {
		y = ops.Subtract(y, b)
	}
	return arrays{ops.Tanh(y), ops.Sum(y, []int{-1}, false)}
}

// What is imported gives the bytes of the function itself, at other sizes too, and has its gradients and batches.
func TestImported(t *testing.T) {
	x := func(n int) *array {
		return ops.Reshape(ops.Arange(0, float64(2*n), 1, tensor.Float32), tensor.Sizes(n, 2))
	}
	named := export.Inputs{Positional: arrays{x(4)}, Named: map[string]*array{"bias": vec(5)}}
	f := read(t, written(t, true, layer, inputs(x(4)), named))
	require.Equal(t, "about", f.Metadata)
	require.True(t, f.Shapeless)
	for _, n := range []int{4, 1, 7} {
		want, got := layer(inputs(x(n))), called(t, f, x(n))
		require.Len(t, got, 2)
		sameBytes(t, want[0], got[0])
		sameBytes(t, want[1], got[1])
	}
	got, err := f.Call(nil, named)
	require.NoError(t, err)
	sameBytes(t, layer(named)[0], got[0])

	of := func(g func(in arrays) arrays) grad.Func {
		return func(in []*array) ([]*array, error) { return g(in), nil }
	}
	loss := func(f func(in export.Inputs) arrays) grad.Func {
		return of(func(in arrays) arrays { return arrays{ops.Sum(f(inputs(in...))[0], nil, false)} })
	}
	imported := func(in export.Inputs) arrays { return called(t, f, in.Positional...) }
	_, want, err := grad.ValueAndGrad(loss(layer), []int{0})(arrays{x(3)})
	require.NoError(t, err)
	_, have, err := grad.ValueAndGrad(loss(imported), []int{0})(arrays{x(3)})
	require.NoError(t, err)
	sameBytes(t, want[0], have[0])

	batch := ops.Reshape(ops.Arange(0, 12, 1, tensor.Float32), tensor.Sizes(3, 2, 2))
	zeros := []int{0, 0}
	want, err = grad.VMap(of(func(in arrays) arrays { return layer(inputs(in...)) }), zeros[:1], zeros)(arrays{batch})
	require.NoError(t, err)
	have, err = grad.VMap(of(func(in arrays) arrays { return imported(inputs(in...)) }), zeros[:1], zeros)(arrays{batch})
	require.NoError(t, err)
	sameBytes(t, want[0], have[0])

	fn := compile.New(of(func(in arrays) arrays { return imported(inputs(in...)) }), compile.Options{Shapeless: true})
	for _, n := range []int{2, 5} {
		have, err := fn.Call(nil, x(n))
		require.NoError(t, err)
		sameBytes(t, layer(inputs(x(n)))[0], have[0])
	}
}

// Inputs that no trace was made for are refused, and so is a size that the function read as a number.
func TestImportedRefuses(t *testing.T) {
	f := read(t, written(t, false, layer, inputs(ops.Ones(tensor.Sizes(4, 2), tensor.Float32))))
	for _, in := range []export.Inputs{inputs(), inputs(vec(1)), inputs(vec(1), vec(2)),
		inputs(ops.Ones(tensor.Sizes(5, 2), tensor.Float32)), inputs(ops.Ones(tensor.Sizes(4, 2), tensor.Float16)),
		{Positional: arrays{ops.Ones(tensor.Sizes(4, 2), tensor.Float32)}, Named: map[string]*array{"bias": vec(1)}}} {
		_, err := f.Call(nil, in)
		require.ErrorContains(t, err, "the function in the file takes (float32 (4, 2))")
	}
	half := func(in export.Inputs) arrays {
		n, _ := in.Positional[0].Dim(0)
		return arrays{ops.Multiply(in.Positional[0], vec(float32(n)))}
	}
	f = read(t, written(t, true, half, inputs(vec(1, 2)), inputs(vec(1, 2, 3))))
	sameBytes(t, vec(9, 6, 3), called(t, f, vec(3, 2, 1))[0])
	sameBytes(t, vec(6, 4), called(t, f, vec(3, 2))[0])
	_, err := f.Call(nil, inputs(vec(1, 2, 3, 4)))
	require.ErrorContains(t, err, "dimension 0 of input 0 was 2, is 4")
}

// Constants that traces share are written once, and equal ones too: what needs no input, as a sum of constants, is a
// constant of its own.
func TestSharedConstants(t *testing.T) {
	optest.Open(t)
	big := ops.Ones(tensor.Sizes(16, 2048), tensor.Float32)
	f := func(in export.Inputs) arrays {
		y := ops.Add(big, vec(0))
		for _, x := range in.Positional {
			y = ops.Add(y, x)
		}
		return arrays{y}
	}
	b := written(t, false, f, inputs(), inputs(vec(1)), inputs(vec(1), vec(2)), inputs(vec(1), vec(2), vec(3)))
	require.Less(t, len(b), int(big.Spec().NBytes())+8192)
	sameBytes(t, f(inputs(vec(1), vec(2)))[0], called(t, read(t, b), vec(1), vec(2))[0])
	sameBytes(t, big, called(t, read(t, b))[0])
}

// A custom function is exported as what it computes, and a custom kernel with its text; what functions of shapes give
// is kept for the shapes they were called with.
func TestCustomExport(t *testing.T) {
	custom := &grad.Custom{F: func(in []*array) ([]*array, error) { return arrays{ops.Square(in[0])}, nil },
		VJP: func(_, cot, _ []*array) ([]*array, error) { return cot, nil }}
	f := read(t, written(t, true, func(in export.Inputs) arrays {
		y, err := custom.Call(in.Positional)
		require.NoError(t, err)
		return y
	}, inputs(vec(2))))
	sameBytes(t, vec(9, 16), called(t, f, vec(3, 4))[0])

	k, err := fast.NewMetalKernel(fast.KernelConfig{Name: "twice", InputNames: []string{"a"}, OutputNames: []string{"out"},
		Header: "constant int n [[function_constant(3)]];",
		Source: "uint i = thread_position_in_grid.x; out[i] = T(N) * a[i] + n - 7;"})
	require.NoError(t, err)
	for _, functions := range []bool{false, true} {
		kernel := func(in export.Inputs) arrays {
			x := in.Positional[0]
			call := fast.KernelCall{Inputs: arrays{x}, Grid: fast.Extent{Cover: x}, Threadgroup: fast.Threads(32),
				Template:     []fast.TemplateArg{{Name: "T", Value: tensor.Float32}, {Name: "N", Value: 2}},
				Constants:    []fast.Constant{{Name: "n", Values: []any{7.0}}},
				OutputShapes: []fast.OutputShape{{Dims: tensor.ShapeOf(x)}}, OutputDTypes: []tensor.DType{tensor.Float32}}
			if functions {
				call.OutputShapes[0] = fast.OutputShape{Func: &tensor.ShapeFunc{
					F: func(in []tensor.Shape) ([]int, error) { return in[0], nil }}}
			}
			return k.Call(call)
		}
		f := read(t, written(t, true, kernel, inputs(vec(1, 2, 3))))
		sameBytes(t, vec(8, 10, 12), called(t, f, vec(4, 5, 6))[0])
		got, err := f.Call(nil, inputs(vec(1, 2)))
		if functions {
			require.ErrorContains(t, err, "was exported for the shapes [(3,)]: these are [(2,)]")
			continue
		}
		require.NoError(t, err)
		sameBytes(t, vec(2, 4), got[0])
	}
}

// A file is written whole or not at all, and one of another version is refused.
func TestFile(t *testing.T) {
	optest.Open(t)
	path := filepath.Join(t.TempDir(), "f.fn")
	trace, err := export.Record(nil, func(in export.Inputs) (arrays, error) { return layer(in), nil },
		inputs(ops.Ones(tensor.Sizes(1, 2), tensor.Float32)), nil)
	require.NoError(t, err)
	file := &export.File{Traces: []*export.Trace{trace}}
	require.NoError(t, file.Save(t.Context(), path))
	back, err := export.Load(path)
	require.NoError(t, err)
	sameBytes(t, called(t, file, ops.Ones(tensor.Sizes(1, 2), tensor.Float32))[0],
		called(t, back, ops.Ones(tensor.Sizes(1, 2), tensor.Float32))[0])

	stopped, stop := context.WithCancel(t.Context())
	stop()
	before, err := os.ReadFile(path)
	require.NoError(t, err)
	fresh, err := export.Record(nil, func(export.Inputs) (arrays, error) {
		return arrays{ops.Exp(vec(1, 2, 3, 4, 5, 6, 7, 8, 9, 10, 11, 12, 13, 14, 15, 16, 17))}, nil
	}, inputs(), nil)
	require.NoError(t, err)
	require.Error(t, (&export.File{Traces: []*export.Trace{fresh}}).Save(stopped, path))
	after, err := os.ReadFile(path)
	require.NoError(t, err)
	require.Equal(t, before, after)
	left, err := os.ReadDir(filepath.Dir(path))
	require.NoError(t, err)
	require.Len(t, left, 1)

	before[8] = 2
	_, err = export.Read(bytes.NewReader(before), int64(len(before)))
	require.ErrorContains(t, err, "it has format version 2, and this program reads version 1")
	_, err = export.Load(path + ".missing")
	require.ErrorContains(t, err, "cannot open")
	_, err = export.Load(t.TempDir())
	require.ErrorContains(t, err, "no regular file")
}

// notExported are ops of which no trace has a call.
var notExported = map[string]string{"load": "its outputs depend on no input, so that they are constants"}

// filled sets a value of attributes to something that is not zero.
func filled(v reflect.Value, n int) {
	switch x := v.Addr().Interface().(type) {
	case *tensor.DType:
		*x = tensor.DTypes()[n%len(tensor.DTypes())]
		return
	case *tensor.Ints:
		*x = tensor.MakeInts([][]int{nil, {}, {n, -n}, {1, 2, 3, 4, 5, 6, 7, -8, 1 << 40}}[n%4])
		return
	case *tensor.Dims:
		a, b := vec(1), vec(2)
		*x, _ = tensor.Concat(tensor.Sizes(n, -1), tensor.DimOf(a, -1), tensor.ShapeOf(b), tensor.Sizes(3)).Bind(nil)
		return
	}
	switch v.Kind() {
	case reflect.Bool:
		v.SetBool(n%2 == 1)
	case reflect.String:
		v.SetString(strings.Repeat("é\x00", n))
	case reflect.Struct:
		for i := range v.NumField() {
			if f := v.Field(i); f.CanInterface() {
				filled(f, n+i)
				continue
			}
			for k := range v.Field(i).NumField() { // embedded
				filled(v.Field(i).Field(k), n+i+k)
			}
		}
	default:
		if v.CanInt() {
			v.SetInt(int64(1 - 2*(n%2)*n))
		} else {
			v.SetUint(uint64(n))
		}
	}
}

// The attributes of every op that there is come back as they were.
func TestEveryOpsAttributes(t *testing.T) {
	for name, op := range tensor.Ops() {
		if notExported[name] != "" {
			continue
		}
		zero := reflect.New(op.AttrType()).Elem()
		if _, ok := zero.Interface().(tensor.StandIn); ok || name == "metal_kernel" { // see TestCustomExport
			continue
		}
		schema, err := op.AttrSchema()
		require.NoError(t, err)
		for n := range 6 {
			v := reflect.New(op.AttrType()).Elem()
			if n > 0 {
				filled(v, n)
			}
			b, err := op.AppendAttrs(nil, v.Interface(), nil)
			require.NoError(t, err, name)
			back, err := op.ParseAttrs(b)
			require.NoError(t, err, "%s %s", name, schema)
			require.True(t, back == v.Interface(), "%s: %v became %v", name, v, back)
			_, err = op.ParseAttrs(append(slices.Clip(b), 0))
			require.Error(t, err)
			if len(b) > 0 {
				_, err = op.ParseAttrs(b[:len(b)-1])
				require.Error(t, err, name)
			}
		}
	}
}

// Calls that MLX answered give the same bytes when they are exported and imported: each function with each kind of
// arguments once.
func TestExportedCalls(t *testing.T) {
	brief.OnlyValues(t)
	optest.Open(t)
	seen := map[string]bool{}
	for k, c := range optest.GoldenCalls(t) {
		if testing.Short() && k%4 != 0 {
			continue
		}
		for i := range c.Cases[:min(len(c.Cases), 1)] {
			in := c.Inputs(t, i)
			f := func(in []*array) ([]*array, error) {
				outs, err := c.Make(sig.Lookup, in, false)
				for _, y := range outs {
					if err == nil {
						err = y.Err()
					}
				}
				return outs, err
			}
			want, err := f(in)
			if err != nil {
				continue
			}
			for _, n := range tensor.Order(want, nil) {
				seen[n.Op().Name()] = true
			}
			trace, err := export.Record(nil, func(in export.Inputs) (arrays, error) { return f(in.Positional) },
				inputs(in...), nil)
			if err != nil { // it reads values: they are none of a stand-in's
				continue
			}
			var b bytes.Buffer
			require.NoError(t, (&export.File{Traces: []*export.Trace{trace}}).Write(t.Context(), &b), c)
			got, err := read(t, b.Bytes()).Call(nil, inputs(in...))
			require.NoError(t, err, "%v", c)
			require.Len(t, got, len(want))
			if tensor.Eval(t.Context(), append(slices.Clip(want), got...)...) != nil {
				continue // e.g. a matrix that is singular
			}
			for k := range want {
				sameBytes(t, want[k], got[k], fmt.Sprint(c, k))
			}
		}
	}
	require.Greater(t, len(seen), 50)
}

// A graph is drawn with the names of its arrays.
func TestDot(t *testing.T) {
	optest.Open(t)
	a, b := vec(1), vec(2)
	y := ops.Exp(ops.Add(a, b))
	var text strings.Builder
	require.NoError(t, export.Dot(nil, &text, arrays{y}, map[tensor.Value]string{a.Value(): "a", y.Value(): "y"}))
	add, exp := y.Value().Node.Inputs()[0].Node, y.Value().Node
	require.Equal(t, fmt.Sprintf(`digraph {
{ rank=source; "a"; }
{ rank=source; "A"; }
{ %[1]d [label ="add", shape=rectangle]; }
"a" -> %[1]d
"A" -> %[1]d
{ "B"; }
%[1]d -> "B"
{ %[2]d [label ="exp", shape=rectangle]; }
"B" -> %[2]d
{ rank=sink; "y"; }
%[2]d -> "y"
}`, add.ID(), exp.ID()), text.String())
	require.Error(t, export.Dot(nil, failing{}, arrays{y}, nil))
}

type failing struct{}

func (failing) Write([]byte) (int, error) { return 0, io.ErrClosedPipe }

// TestFunctionsOfMLX: a file that mx.export_function of MLX 0.32.4 has written is told from others, which these are the
// first bytes of.
func TestFunctionsOfMLX(t *testing.T) {
	theirs := append([]byte("\x06\x00\x00\x00\x00\x00\x00\x000.32.4\x01\x00\x00\x00\x00\x00\x00\x00"),
		make([]byte, 400)...)
	for text, want := range map[string]string{
		string(theirs):                          "MLX 0.32.4 wrote this function, and MLX alone reads that",
		string(theirs[:14]):                     "MLX 0.32.4 wrote this function",
		"\x06\x00\x00\x00\x00\x00\x00\x000.32.": "bytes are no exported function",
		"\x05\x00\x00\x00\x00\x00\x00\x00hello" + strings.Repeat(" ", 100): "it begins with",
		"": "0 bytes are no exported function",
	} {
		_, err := export.Read(strings.NewReader(text), int64(len(text)))
		require.ErrorContains(t, err, want)
	}
}

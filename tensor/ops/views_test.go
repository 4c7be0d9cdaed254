package ops_test

import (
	"context"
	"encoding/json"
	"fmt"
	"os"
	"strings"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/mlxlua/mlxlua/tensor"
	"github.com/mlxlua/mlxlua/tensor/ops"
	"github.com/mlxlua/mlxlua/tensor/ops/sig"
	"github.com/mlxlua/mlxlua/tensor/optest"
)

// TestViews: name begins with the function's name, op is the op that it is made of.
func TestViews(t *testing.T) {
	t.Parallel()
	view := func(name, op string, cases []optest.Case, args ...any) {
		optest.Run(t, optest.Subject{
			Name: name, Ops: []string{op}, Cases: cases, Second: true, Fn: optest.Call(strings.Fields(name)[0], args...),
		})
	}
	threes, all := inputs(uniform, "n,m,2"), inputs(uniform, "n,m", "", "0,n")
	view("reshape", "reshape", inputs(uniform, "n,4,m", "n,8"), "shape", []any{4, -1})
	view("flatten", "flatten", threes, "start_axis", 1, "end_axis", 2)
	view("flatten all", "flatten", all)
	view("transpose", "transpose", threes, "axes", []any{2, 0, 1})
	view("transpose all", "transpose", all)
	view("moveaxis", "transpose", threes, "source", 0, "destination", -1)
	view("swapaxes", "transpose", threes, "axis1", 0, "axis2", -1)
	view("expand_dims", "expand_dims", all, "axis", []any{0, -1})
	view("squeeze", "squeeze", inputs(uniform, "1,n,1"), "axis", []any{0, 2})
	view("flip", "flip", all)
	view("flip some", "flip", threes, "axis", []any{0, -1})
	view("unflatten", "unflatten", inputs(uniform, "n,m,6", "6"), "axis", -1, "shape", []any{3, -1})
	view("matrix_transpose", "transpose", threes)
	view("diagonal", "diagonal", inputs(uniform, "n,m", "n,m,2", "0,n"))
	view("diagonal some", "diagonal", inputs(uniform, "n,m,2", "n,4,2"), "offset", -1, "axis1", 2, "axis2", 0)
	view("broadcast_to", "broadcast_to", inputs(uniform, "3,1", ""), "shape", []any{2, 3, 4})
}

func TestSlices(t *testing.T) {
	t.Parallel()
	slice := func(name string, cases []optest.Case, parts ...ops.Part) {
		optest.Run(t, optest.Subject{
			Name: name, Ops: []string{"slice"}, Cases: cases, Second: true, Golden: "indexing.json",
			Fn: optest.One(func(in []*array) *array { return ops.Slice(in[0], parts) }),
		})
	}
	slice("slice", inputs(uniform, "n,m", "n,m,2"), ops.Span(1, ops.None, 1), ops.Span(ops.None, ops.None, -2))
	slice("slice at", inputs(uniform, "n,m"), ops.At(-1), ops.Ellipsis(), ops.NewAxis())
	set := []ops.Part{ops.Span(1, ops.None, 1), ops.Span(ops.None, ops.None, 2)}
	optest.Run(t, optest.Subject{
		Name: "slice_update", Cases: []optest.Case{optest.Of("n,m", ""), optest.Of("n,m", "1,1")}, Second: true,
		Golden: "indexing.json",
		Fn:     optest.One(func(in []*array) *array { return ops.SliceUpdate(in[0], in[1], set) }),
	})
}

// The shape is another array's.
func TestViewsLikeOthers(t *testing.T) {
	t.Parallel()
	like := func(name, prim string, f func(x *array, s tensor.ShapeArg, c ...*ctx) *array, cases ...optest.Case) {
		optest.Run(t, optest.Subject{
			Name: name, Ops: []string{prim}, Cases: cases, Second: true,
			Fn: optest.One(func(in []*array) *array { return f(in[0], tensor.ShapeOf(in[1])) }),
		})
	}
	like("reshape like", "reshape", ops.Reshape, optest.Of("n,2,m", "2,m,n"))
	like("broadcast like", "broadcast_to", ops.BroadcastTo, optest.Of("n,1", "m,n,k"))
	full := func(x *array, s tensor.ShapeArg, c ...*ctx) *array { return ops.Full(s, x, x.DType(), c...) }
	like("full like", "full", full, optest.Of("", "m,n"), optest.Of("n,1", "m,n,k"))
	like("sum_to", "sum_to", ops.SumTo, optest.Of("m,n,k", "n,1"), optest.Of("n,m", "n,m"))
}

// viewProgram is a case of testdata/views.json: steps applied to 0, 1, 2, ... in a shape, and NumPy's result.
type viewProgram struct {
	Shape    []int
	Steps    [][]json.RawMessage
	OutShape []int `json:"out_shape"`
	Out      []int64
}

func decode[T any](t *testing.T, b json.RawMessage) T {
	var v T
	require.NoError(t, json.Unmarshal(b, &v))
	return v
}

// partsOf reads [["at", i], ["span", start, stop, step], ["new"], ["dots"]].
func partsOf(t *testing.T, b json.RawMessage) []ops.Part {
	parts := []ops.Part{}
	for _, p := range decode[[][]json.RawMessage](t, b) {
		end := func(i int) int {
			if v := decode[*int](t, p[i]); v != nil {
				return *v
			}
			return ops.None
		}
		switch decode[string](t, p[0]) {
		case "at":
			parts = append(parts, ops.At(end(1)))
		case "span":
			parts = append(parts, ops.Span(end(1), end(2), end(3)))
		case "new":
			parts = append(parts, ops.NewAxis())
		case "dots":
			parts = append(parts, ops.Ellipsis())
		}
	}
	return parts
}

func counting(n int, from, step int32) []int32 {
	v := make([]int32, n)
	for i := range v {
		v[i] = from + int32(i)*step
	}
	return v
}

func (p viewProgram) run(t *testing.T) *array {
	x := ops.FromSlice(counting(tensor.Shape(p.Shape).Size(), 0, 1), p.Shape)
	for _, s := range p.Steps {
		switch op := decode[string](t, s[0]); op {
		case "slice":
			x = ops.Slice(x, partsOf(t, s[1]))
		case "slice_update":
			shape := decode[[]int](t, s[2])
			u := ops.FromSlice(counting(tensor.Shape(shape).Size(), -1, -1), shape)
			x = ops.SliceUpdate(x, u, partsOf(t, s[1]))
		case "flatten":
			x = ops.Flatten(x, 0, -1)
		default: // with a shape or with axes
			outs, err := optest.Invoke(sig.Lookup(op), []any{x, decode[[]any](t, s[1])}, nil)
			require.NoError(t, err)
			x = outs[0]
		}
	}
	return x
}

// TestViewPrograms runs random chains of views, which end in an assignment now and then, as NumPy does.
func TestViewPrograms(t *testing.T) {
	t.Parallel()
	optest.Open(t)
	text, err := os.ReadFile("testdata/views.json")
	require.NoError(t, err)
	var file struct{ Cases []viewProgram }
	require.NoError(t, json.Unmarshal(text, &file))
	require.NotEmpty(t, file.Cases)
	for i, p := range file.Cases {
		x := p.run(t)
		what := fmt.Sprintf("program %d: %v %s", i, p.Shape, p.Steps)
		require.NoError(t, x.Err(), what)
		require.Equal(t, tensor.Shape(p.OutShape), x.Spec().Shape, what)
		b, err := x.Bytes(context.Background())
		require.NoError(t, err, what)
		got := make([]int64, len(b)/4)
		for k := range got {
			got[k] = int64(int32(uint32(b[4*k]) | uint32(b[4*k+1])<<8 | uint32(b[4*k+2])<<16 | uint32(b[4*k+3])<<24))
		}
		require.Equal(t, p.Out, got, what)
	}
}

// TestBadViews: what cannot be done says so, with the op and the values.
func TestBadViews(t *testing.T) {
	t.Parallel()
	x := ops.FromSlice(counting(6, 0, 1), []int{2, 3})
	huge := int(^uint(0) >> 1)
	for _, c := range []struct {
		y    *array
		want string
	}{
		{ops.Slice(x, []ops.Part{ops.At(2)}), "[slice] axis 0 of shape (2, 3): index 2 is out of range for size 2"},
		{ops.Slice(x, []ops.Part{ops.At(-3)}), "index -3 is out of range for size 2"},
		{ops.Slice(x, []ops.Part{ops.Span(0, 1, 0)}), "step is 0"},
		{ops.Slice(x, []ops.Part{ops.Ellipsis(), ops.Ellipsis()}), "only one ellipsis"},
		{ops.Slice(x, []ops.Part{ops.At(0), ops.At(0), ops.At(0)}), "3 indices for an array with 2 dimensions"},
		{ops.SliceUpdate(x, x, []ops.Part{ops.At(0)}), "[squeeze] axis 0 of shape (2, 3) has size 2"},
		{ops.SliceUpdate(x, x, []ops.Part{ops.Span(0, 1, 1)}),
			"[slice_update] shape (2, 3) does not broadcast to (1, 3)"},
		{ops.Reshape(x, tensor.Sizes(4, -1)), "[reshape] cannot reshape (2, 3), of size 6, into shape (4, -1)"},
		{ops.Reshape(x, tensor.Sizes(huge, huge)), "[reshape] cannot reshape"},
		{ops.BroadcastTo(x, tensor.Sizes(2, 4)), "[broadcast_to] shape (2, 3) does not broadcast to (2, 4)"},
		{ops.Zeros(tensor.Sizes(1<<30, 1<<30, 1<<30), tensor.Int8),
			"[zeros] shape (1073741824, 1073741824, 1073741824) of int8"},
		{ops.Full(tensor.Sizes(-1), ops.Number(1, tensor.Int8), tensor.Int8),
			"[full] negative dimension in shape (-1,)"},
		{ops.Unflatten(x, 1, tensor.Sizes(2, -1)), "[unflatten] axis 1 of shape (2, 3) cannot take the sizes (2, -1)"},
		{ops.Unflatten(x, 1, tensor.Sizes(huge, huge, huge)), "[unflatten] axis 1 of shape (2, 3)"},
		{ops.Unflatten(x, 0, tensor.Sizes()), "[unflatten] no sizes are given"},
		{ops.MatrixTranspose(ops.Number(1, ints32)), "[matrix_transpose] an array with 0 dimensions is no matrix"},
		{ops.Diagonal(x, 0, 1, -1), "[diagonal] axis1 1 and axis2 -1 are one axis"},
		{ops.Diagonal(x, 0, 0, 2), "[diagonal] axis 2 is out of range"},
		{ops.Trace(x, 0, 0, -2, ints32), "[trace] axis1 0 and axis2 -2 are one axis"},
		{ops.Diag(ops.Number(1, ints32), 0), "[diag] an array with 0 dimensions, want 1 or 2"},
		{ops.Repeat(x, -1, nil), "[repeat] -1 repeats, want 0 or more"},
		{ops.Repeat(x, 2, axis(2)), "[repeat] axis 2 is out of range"},
		{ops.Tile(x, []int{1, -2}), "[tile] reps are (1, -2), want 0 or more"},
		{ops.Unstack(x, 2)[0], "[unstack] axis 2 is out of range"},
		{ops.BroadcastArrays([]*array{x, optest.Zeros(2)})[0], "[broadcast_arrays] shapes (2, 3) and (2,)"},
		{ops.Meshgrid([]*array{x}, false, "yx")[0], "[meshgrid] indexing is \"yx\""},
		{ops.SwapAxes(x, 0, 2), "[swapaxes] axis 2 is out of range"},
		{ops.FromSlice(counting(6, 0, 1), []int{4}), "[array] 6 elements do not fill shape (4,)"},
		{ops.Number(256, tensor.Uint8), "[array] 256 does not fit uint8"},
		{ops.Add(nil, x), "[add] an input is nil"},
		{ops.Add(ops.Slice(x, []ops.Part{ops.At(2)}), x), "[slice] axis 0"},
	} {
		require.Error(t, c.y.Err(), c.want)
		require.Contains(t, c.y.Err().Error(), c.want)
	}
	// An array whose elements are one number takes no memory, and its copy is refused instead of attempted.
	optest.Open(t)
	endless := ops.BroadcastTo(ops.Zeros(tensor.Sizes(1), tensor.Float32), tensor.Sizes(1024, 1024, 1024, 1024))
	_, err := endless.Bytes(context.Background())
	require.ErrorContains(t, err, "4398046511104 bytes, more than the memory limit")
	// The extremes of Python's slices are no errors.
	for _, p := range []ops.Part{ops.Span(huge, -huge, -huge), ops.Span(-huge, huge, huge),
		ops.Span(ops.None, ops.None, ops.None),
		ops.Span(ops.None+1, huge, 1)} {
		require.NoError(t, ops.Slice(x, []ops.Part{p}).Err())
	}
}

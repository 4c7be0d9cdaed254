package ops_test

import (
	"strings"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/mlxlua/mlxlua/tensor"
	"github.com/mlxlua/mlxlua/tensor/ops"
	"github.com/mlxlua/mlxlua/tensor/optest"
)

func TestGathers(t *testing.T) {
	t.Parallel()
	run := func(name, prim string, cases []optest.Case, args ...any) {
		optest.Run(t, optest.Subject{
			Name: name, Ops: strings.Fields(prim), Fn: optest.Call(strings.Fields(name)[0], args...), Cases: cases, Second: true,
		})
	}
	with := optest.With
	run("take", "gather scatter", []optest.Case{with(optest.Of("n,4,m"), optest.Indices("n,2", 4)),
		with(optest.Of("n,4"), optest.Indices("", 4)), with(optest.Of("n,4"), optest.Indices("0", 4))}, "axis", 1)
	run("take flat", "gather", []optest.Case{with(optest.Of("n,4"), optest.Indices("m", 4))})
	run("take_along_axis", "gather iota broadcast_axes", []optest.Case{
		with(optest.Of("n,4,m"), optest.Indices("n,2,m", 4)),
		with(optest.Of("n,4,m"), optest.Indices("1,k,1", 4)), with(optest.Of("1,4"), optest.Indices("n,k", 4))}, "axis", 1)
}

func TestIndexing(t *testing.T) {
	t.Parallel()
	run := func(name, prim string, f func(in []*array) *array, cases ...optest.Case) {
		optest.Run(t, optest.Subject{
			Name: name, Ops: []string{prim}, Golden: "indexing.json", Fn: optest.One(f), Cases: cases, Second: true,
		})
	}
	at := ops.ByArray
	whole := ops.Whole()
	run("index", "gather", func(in []*array) *array {
		return ops.Index(in[0], []ops.Part{at(in[1]), ops.Span(1, ops.None, 1), at(in[2])})
	}, optest.With(optest.Of("3,n,5"), optest.Indices("m,1", 3), optest.Indices("k", 5)))
	run("index beside", "gather", func(in []*array) *array {
		return ops.Index(in[0], []ops.Part{whole, at(in[1]), ops.At(0)})
	}, optest.With(optest.Of("n,4,m"), optest.Indices("k,2", 4)))
	run("index apart", "gather", func(in []*array) *array {
		return ops.Index(in[0], []ops.Part{ops.At(0), whole, at(in[1])})
	}, optest.With(optest.Of("n,m,5"), optest.Indices("k", 5)))
	run("index new", "gather", func(in []*array) *array {
		return ops.Index(in[0], []ops.Part{ops.NewAxis(), ops.Ellipsis(), at(in[1]), ops.NewAxis()})
	}, optest.With(optest.Of("n,m,5"), optest.Indices("k", 5)))
}

func TestScatters(t *testing.T) {
	t.Parallel()
	run := func(name, golden string, f func(in []*array) *array, cases ...optest.Case) {
		optest.Run(t, optest.Subject{
			Name: name, Ops: []string{"scatter"}, Golden: golden, Fn: optest.One(f), Cases: cases,
			Tol: optest.Tol{Rel: 1e-4, Abs: 1e-5},
		})
	}
	put := func(in []*array) *array { return ops.PutAlongAxis(in[0], in[1], in[2], new(0)) }
	idx := optest.Indices
	triple := func(x string, i optest.Input, u string) optest.Case {
		return optest.Case{Inputs: []optest.Input{optest.In(x, optest.Uniform(0.5, 2)), i, optest.In(u,
			optest.Uniform(0.5, 2))}}
	}
	run("put_along_axis", "", put, triple("4,n", idx("k,n", 4), "k,n"), triple("4,n", idx("1,n", 4), ""))
	for _, how := range []string{"set", "add", "subtract", "multiply", "divide"} {
		golden := "indexing.json"
		if how == "set" || how == "divide" {
			golden = "" // MLX leaves it open which update stays; its division by integers is no division
		}
		f := func(in []*array) *array { return ops.IndexUpdate(in[0], []ops.Part{ops.ByArray(in[1])}, how, in[2]) }
		op := optest.Subject{
			Name: "index_" + how, Ops: []string{"scatter"}, Golden: golden, Fn: optest.One(f),
			Tol:   optest.Tol{Rel: 1e-4, Abs: 1e-5},
			Cases: []optest.Case{triple("4,n", idx("k", 4), "k,n"), triple("4,n", idx("m,2", 4), "n")},
		}
		if how == "divide" || how == "subtract" {
			op.DTypes = []tensor.DType{tensor.Float32, tensor.Float16, tensor.BFloat16, tensor.Float64, tensor.Complex64}
		}
		optest.Run(t, op)
	}
	for _, how := range []string{"maximum", "minimum"} {
		f := func(in []*array) *array { return ops.IndexUpdate(in[0], []ops.Part{ops.ByArray(in[1])}, how, in[2]) }
		optest.Run(t, optest.Subject{
			Name: "index_" + how, Ops: []string{"scatter"}, Golden: "indexing.json", Fn: optest.One(f),
			Cases: []optest.Case{{Inputs: []optest.Input{optest.In("4,n", optest.Distinct(0)), idx("k", 4),
				optest.In("k,n", optest.Distinct(0.125))}}},
		})
	}
	mixed := func(in []*array) *array {
		parts := []ops.Part{ops.Span(1, ops.None, 1), ops.ByArray(in[1]), ops.NewAxis()}
		return ops.IndexUpdate(in[0], parts, "add", in[2])
	}
	run("index_add of a slice", "", mixed, triple("3,4,n", idx("k", 4), "2,k,1,n"))
	plain := func(in []*array) *array {
		return ops.IndexUpdate(in[0], []ops.Part{ops.At(0), ops.Span(ops.None, ops.None, 2)}, "multiply", in[1])
	}
	run("index_multiply of a slice", "", plain, optest.Of("n,m", ""))
}

// TestLastUpdateStays: of updates of one element the last one in the indices' order stays, and only it has a gradient.
func TestLastUpdateStays(t *testing.T) {
	t.Parallel()
	optest.Open(t)
	const n = 1000
	idx, u := make([]int32, n), make([]float32, n)
	want := make([]float64, 7)
	for i := range idx {
		idx[i], u[i] = int32(i*i%7), float32(i)
		want[idx[i]] = float64(i)
	}
	x := ops.Zeros(tensor.Sizes(7), tensor.Float32)
	y := ops.IndexUpdate(x, []ops.Part{ops.ByArray(ops.FromSlice(idx, []int{n}))}, "set", ops.FromSlice(u, []int{n}))
	require.Equal(t, want, optest.Values32(t, y))
}

func TestMasks(t *testing.T) {
	t.Parallel()
	optest.Open(t)
	mask := optest.In("n,m", optest.Ints(0, 1)).As(tensor.Bool)
	set := func(how string) optest.Func {
		return optest.One(func(in []*array) *array {
			return ops.IndexUpdate(in[0], []ops.Part{ops.ByArray(in[1])}, how, in[2])
		})
	}
	optest.Run(t, optest.Subject{
		Name: "masked set", Ops: []string{"mask_like"}, Fn: set("set"), Second: true,
		Cases: []optest.Case{optest.With(optest.Of("n,m,2"), mask, optest.In("2", uniform)),
			optest.With(optest.Of("n,m"), mask, optest.In("", uniform))},
	})
	optest.Run(t, optest.Subject{
		Name: "masked set in order", Ops: []string{"mask_rank"}, Fn: set("set"),
		NoReplay: "the updates' count is read: one is broadcast",
		Cases:    []optest.Case{optest.With(optest.Of("3,4,2"), mask, optest.In("12,2", uniform))},
	})
	m := ops.FromSlice([]bool{true, false, true, true}, []int{4})
	x := ops.FromSlice([]float32{1, 2, 3, 4}, []int{4})
	u := ops.FromSlice([]float32{10, 20, 30}, []int{3})
	part := []ops.Part{ops.ByArray(m)}
	require.Equal(t, []float64{10, 2, 20, 30}, optest.Values32(t, ops.IndexUpdate(x, part, "set", u)))
	require.Equal(t, []float64{11, 2, 23, 34}, optest.Values32(t, ops.IndexUpdate(x, part, "add", u)))
	optest.Fails(t, ops.IndexUpdate(x, part, "set", ops.Slice(u, []ops.Part{ops.Span(0, 2, 1)})),
		"[index_set] index 2 is out of range for axis 0 with size 2")
	optest.Fails(t, ops.IndexUpdate(u, part, "set", x), "[index_set]")
	optest.Fails(t, ops.Index(x, part), "[index] a bool array cannot index")

	// Ranks count on over many chunks.
	const n = 3000
	long, want := make([]bool, n), make([]float64, n)
	count := 0.0
	for i := range long {
		if long[i] = i%3 != 1; long[i] {
			want[i] = count
			count++
		} else {
			want[i] = -1
		}
	}
	y := ops.IndexUpdate(ops.Full(tensor.Sizes(n), ops.Number(-1, tensor.Int32), tensor.Int32),
		[]ops.Part{ops.ByArray(ops.FromSlice(long, []int{n}))}, "set", ops.Arange(0, count, 1, tensor.Int32))
	require.Equal(t, want, optest.Values32(t, y))
}

func TestIndexErrors(t *testing.T) {
	t.Parallel()
	optest.Open(t)
	x := ops.Zeros(tensor.Sizes(2, 3), tensor.Float32)
	idx := func(v ...int32) *array { return ops.FromSlice(v, []int{len(v)}) }
	optest.Fails(t, ops.Take(x, idx(0, 3, -5), new(1)), "[take] index 3 is out of range for axis 1 with size 3")
	optest.Fails(t, ops.Take(x, idx(-3), new(0)), "[take] index -3 is out of range for axis 0 with size 2")
	optest.Fails(t, ops.Take(x, ops.FromSlice([]uint64{1 << 63}, []int{1}), new(0)),
		"index 2147483647 or more is out of range")
	optest.Fails(t, ops.Take(x, ops.FromSlice([]int64{-1 << 40}, []int{1}), new(0)),
		"index -2147483647 or less is out of range")
	optest.Fails(t, ops.Take(x, ops.FromSlice([]float32{0}, []int{1}), new(0)),
		"[take] indices have dtype float32, want integers")
	optest.Fails(t, ops.Take(x, idx(0), new(2)), "[take] axis 2 is out of range for an array with 2 dimensions")
	optest.Fails(t, ops.Take(ops.Zeros(tensor.Sizes(0, 3), tensor.Float32), idx(0), new(0)),
		"[take] axis 0 of shape (0, 3) has no elements")
	optest.Fails(t, ops.TakeAlongAxis(x, idx(0), new(1)), "[take_along_axis] indices have 1 dimension, the array has 2")
	optest.Fails(t, ops.TakeAlongAxis(x, ops.FromSlice([]int32{0, 9}, []int{2, 1}), new(1)),
		"[take_along_axis] index 9 is out of range for axis 1 with size 3")
	optest.Fails(t, ops.TakeAlongAxis(x, ops.Zeros(tensor.Sizes(3, 1), tensor.Int32), new(1)),
		"[take_along_axis] shapes (2, 3) and (3, 1)")
	optest.Fails(t, ops.PutAlongAxis(x, ops.Zeros(tensor.Sizes(2, 1), tensor.Int32), ops.Zeros(tensor.Sizes(2, 2),
		tensor.Float32), new(1)),
		"[put_along_axis] shape (2, 2) does not broadcast to (2, 1)")
	at := func(parts ...ops.Part) *array { return ops.Index(x, parts) }
	optest.Fails(t, at(ops.ByArray(idx(0, 1)), ops.ByArray(idx(0, 1, 2))),
		"[index] indices: shapes (2,) and (3,) cannot be broadcast")
	optest.Fails(t, at(ops.At(0), ops.At(0), ops.ByArray(idx(0))), "[index] 3 indices for an array with 2 dimensions")
	optest.Fails(t, at(ops.At(5)), "[index] axis 0 of shape (2, 3): index 5 is out of range for size 2")
	optest.Fails(t, at(ops.ByArray(nil)), "[index] an input is nil")
	optest.Fails(t, ops.IndexUpdate(x, []ops.Part{ops.ByArray(idx(2))}, "add", x), "[index_add]")
	optest.Fails(t, ops.IndexUpdate(x, []ops.Part{ops.ByArray(idx(2))}, "add", ops.Number(1, tensor.Float32)),
		"[index_add] index 2 is out of range for axis 0 with size 2")
	optest.Fails(t, ops.IndexUpdate(x, nil, "grow", x), `"grow" is no update`)
}

// TestGatherRows: rows that lie in one piece are copied as wide elements where they begin and end at multiples of them.
func TestGatherRows(t *testing.T) {
	t.Parallel()
	optest.Open(t)
	rows := []int32{3, 0, -1, 3, 2}
	index := ops.FromSlice(rows, []int{len(rows)})
	for _, d := range []tensor.DType{tensor.Uint8, tensor.Float16, tensor.Float32, tensor.Complex64} {
		for _, n := range []int{31, 32, 33, 36, 128, 260, 300} {
			for _, from := range []int{0, 1, 2} {
				wide := ops.AsType(optest.Noise(tensor.Float32, 4, n+from), d)
				require.NoError(t, tensor.Eval(t.Context(), wide))
				x := ops.Slice(wide, []ops.Part{ops.Whole(), ops.Span(from, ops.None, 1)})
				all, err := x.Bytes(t.Context())
				require.NoError(t, err)
				var want []byte
				for _, i := range rows {
					size := n * d.Size()
					at := (int(i) + 4) % 4 * size
					want = append(want, all[at:at+size]...)
				}
				got, err := ops.Take(x, index, axis(0)).Bytes(t.Context())
				require.NoError(t, err)
				require.Equal(t, want, got, "%v, %d of %d", d, n, n+from)
			}
		}
	}
}

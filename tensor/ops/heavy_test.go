package ops_test

import (
	"context"
	"encoding/binary"
	"fmt"
	"math"
	"strings"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/mlxlua/mlxlua/tensor"
	"github.com/mlxlua/mlxlua/tensor/ops"
	"github.com/mlxlua/mlxlua/tensor/optest"
)

var uniform = optest.Uniform(-2, 2)

// of is a case of inputs that are differentiated.
func of(dims ...string) optest.Case {
	var c optest.Case
	for _, d := range dims {
		c.Inputs = append(c.Inputs, optest.In(d, uniform))
	}
	return c
}

// with adds inputs to a case.
func with(c optest.Case, in ...optest.Input) optest.Case {
	c.Inputs = append(c.Inputs, in...)
	return c
}

// indices is an input of indices into a dimension whose size is at least n.
func indices(dims string, n int) optest.Input {
	return optest.In(dims, optest.Ints(-n, n-1)).As(tensor.Int32)
}

var ints32 = tensor.Int32

func axis(i int) *int { return &i }

// fails evaluates x, which must fail with that text at a line of a test.
func fails(t *testing.T, x *array, text string) {
	t.Helper()
	err := tensor.Eval(context.Background(), x)
	require.ErrorContains(t, err, text)
	require.NotContains(t, err.Error(), "BUG")
	require.Contains(t, err.Error(), "_test.go:")
}

// values32 are x's elements, which are float32 or 32-bit integers.
func values32(t *testing.T, x *array) []float64 {
	t.Helper()
	b, err := x.Bytes(context.Background())
	require.NoError(t, err)
	out := make([]float64, len(b)/4)
	for i := range out {
		v := binary.LittleEndian.Uint32(b[4*i:])
		switch x.DType() {
		case tensor.Float32:
			out[i] = float64(math.Float32frombits(v))
		case tensor.Int32:
			out[i] = float64(int32(v))
		default:
			require.Equal(t, tensor.Uint32, x.DType())
			out[i] = float64(v)
		}
	}
	return out
}

func TestGathers(t *testing.T) {
	run := func(name, prim string, f func(in []*array) *array, cases ...optest.Case) {
		optest.Run(t, optest.Subject{
			Name: name, Ops: strings.Fields(prim), Golden: "gathers.json", Fn: one(f), Cases: cases, Second: true,
		})
	}
	at := ops.ByArray
	whole := ops.Whole()
	run("take", "gather scatter", func(in []*array) *array { return ops.Take(in[0], in[1], axis(1)) },
		with(of("n,4,m"), indices("n,2", 4)), with(of("n,4"), indices("", 4)), with(of("n,4"), indices("0", 4)))
	run("take flat", "gather", func(in []*array) *array { return ops.Take(in[0], in[1], nil) },
		with(of("n,4"), indices("m", 4)))
	run("take_along_axis", "gather iota broadcast_axes",
		func(in []*array) *array { return ops.TakeAlongAxis(in[0], in[1], axis(1)) },
		with(of("n,4,m"), indices("n,2,m", 4)), with(of("n,4,m"), indices("1,k,1", 4)), with(of("1,4"), indices("n,k", 4)))
	run("index", "gather", func(in []*array) *array {
		return ops.Index(in[0], []ops.Part{at(in[1]), ops.Span(1, ops.None, 1), at(in[2])})
	}, with(of("3,n,5"), indices("m,1", 3), indices("k", 5)))
	run("index beside", "gather", func(in []*array) *array {
		return ops.Index(in[0], []ops.Part{whole, at(in[1]), ops.At(0)})
	}, with(of("n,4,m"), indices("k,2", 4)))
	run("index apart", "gather", func(in []*array) *array {
		return ops.Index(in[0], []ops.Part{ops.At(0), whole, at(in[1])})
	}, with(of("n,m,5"), indices("k", 5)))
	run("index new", "gather", func(in []*array) *array {
		return ops.Index(in[0], []ops.Part{ops.NewAxis(), ops.Ellipsis(), at(in[1]), ops.NewAxis()})
	}, with(of("n,m,5"), indices("k", 5)))
}

func TestScatters(t *testing.T) {
	run := func(name, golden string, f func(in []*array) *array, cases ...optest.Case) {
		optest.Run(t, optest.Subject{
			Name: name, Ops: []string{"scatter"}, Golden: golden, Fn: one(f), Cases: cases,
			Tol: optest.Tol{Rel: 1e-4, Abs: 1e-5},
		})
	}
	put := func(in []*array) *array { return ops.PutAlongAxis(in[0], in[1], in[2], axis(0)) }
	idx := indices
	triple := func(x string, i optest.Input, u string) optest.Case {
		return optest.Case{Inputs: []optest.Input{optest.In(x, optest.Uniform(0.5, 2)), i, optest.In(u,
			optest.Uniform(0.5, 2))}}
	}
	run("put_along_axis", "gathers.json", put, triple("4,n", idx("k,n", 4), "k,n"), triple("4,n", idx("1,n", 4), ""))
	for _, how := range []string{"set", "add", "subtract", "multiply", "divide"} {
		golden := "gathers.json"
		if how == "set" || how == "divide" {
			golden = "" // MLX leaves it open which update stays; its division by integers is no division
		}
		f := func(in []*array) *array { return ops.IndexUpdate(in[0], []ops.Part{ops.ByArray(in[1])}, how, in[2]) }
		op := optest.Subject{
			Name: "index_" + how, Ops: []string{"scatter"}, Golden: golden, Fn: one(f), Tol: optest.Tol{Rel: 1e-4, Abs: 1e-5},
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
			Name: "index_" + how, Ops: []string{"scatter"}, Golden: "gathers.json", Fn: one(f),
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
	run("index_multiply of a slice", "", plain, of("n,m", ""))
}

// TestLastUpdateStays: of updates of one element the last one in the indices' order stays, and only it has a gradient.
func TestLastUpdateStays(t *testing.T) {
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
	require.Equal(t, want, values32(t, y))
}

func TestMasks(t *testing.T) {
	optest.Open(t)
	mask := optest.In("n,m", optest.Ints(0, 1)).As(tensor.Bool)
	set := func(how string) outs {
		return one(func(in []*array) *array {
			return ops.IndexUpdate(in[0], []ops.Part{ops.ByArray(in[1])}, how, in[2])
		})
	}
	optest.Run(t, optest.Subject{
		Name: "masked set", Ops: []string{"mask_like"}, Fn: set("set"), Second: true,
		Cases: []optest.Case{with(of("n,m,2"), mask, optest.In("2", uniform)), with(of("n,m"), mask, optest.In("", uniform))},
	})
	optest.Run(t, optest.Subject{
		Name: "masked set in order", Ops: []string{"mask_rank"}, Fn: set("set"),
		NoReplay: "the updates' count is read: one is broadcast",
		Cases:    []optest.Case{with(of("3,4,2"), mask, optest.In("12,2", uniform))},
	})
	m := ops.FromSlice([]bool{true, false, true, true}, []int{4})
	x := ops.FromSlice([]float32{1, 2, 3, 4}, []int{4})
	u := ops.FromSlice([]float32{10, 20, 30}, []int{3})
	part := []ops.Part{ops.ByArray(m)}
	require.Equal(t, []float64{10, 2, 20, 30}, values32(t, ops.IndexUpdate(x, part, "set", u)))
	require.Equal(t, []float64{11, 2, 23, 34}, values32(t, ops.IndexUpdate(x, part, "add", u)))
	fails(t, ops.IndexUpdate(x, part, "set", ops.Slice(u, []ops.Part{ops.Span(0, 2, 1)})),
		"[index_set] index 2 is out of range for axis 0 with size 2")
	fails(t, ops.IndexUpdate(u, part, "set", x), "[index_set]")
	fails(t, ops.Index(x, part), "[index] a bool array cannot index")

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
	require.Equal(t, want, values32(t, y))
}

func TestIndexErrors(t *testing.T) {
	optest.Open(t)
	x := ops.Zeros(tensor.Sizes(2, 3), tensor.Float32)
	idx := func(v ...int32) *array { return ops.FromSlice(v, []int{len(v)}) }
	fails(t, ops.Take(x, idx(0, 3, -5), axis(1)), "[take] index 3 is out of range for axis 1 with size 3")
	fails(t, ops.Take(x, idx(-3), axis(0)), "[take] index -3 is out of range for axis 0 with size 2")
	fails(t, ops.Take(x, ops.FromSlice([]uint64{1 << 63}, []int{1}), axis(0)), "index 2147483647 or more is out of range")
	fails(t, ops.Take(x, ops.FromSlice([]int64{-1 << 40}, []int{1}), axis(0)), "index -2147483647 or less is out of range")
	fails(t, ops.Take(x, ops.FromSlice([]float32{0}, []int{1}), axis(0)),
		"[take] indices have dtype float32, want integers")
	fails(t, ops.Take(x, idx(0), axis(2)), "[take] axis 2 is out of range for an array with 2 dimensions")
	fails(t, ops.Take(ops.Zeros(tensor.Sizes(0, 3), tensor.Float32), idx(0), axis(0)),
		"[take] axis 0 of shape (0, 3) has no elements")
	fails(t, ops.TakeAlongAxis(x, idx(0), axis(1)), "[take_along_axis] indices have 1 dimension, the array has 2")
	fails(t, ops.TakeAlongAxis(x, ops.FromSlice([]int32{0, 9}, []int{2, 1}), axis(1)),
		"[take_along_axis] index 9 is out of range for axis 1 with size 3")
	fails(t, ops.TakeAlongAxis(x, ops.Zeros(tensor.Sizes(3, 1), tensor.Int32), axis(1)),
		"[take_along_axis] shapes (2, 3) and (3, 1)")
	fails(t, ops.PutAlongAxis(x, ops.Zeros(tensor.Sizes(2, 1), tensor.Int32), ops.Zeros(tensor.Sizes(2, 2),
		tensor.Float32), axis(1)),
		"[put_along_axis] shape (2, 2) does not broadcast to (2, 1)")
	at := func(parts ...ops.Part) *array { return ops.Index(x, parts) }
	fails(t, at(ops.ByArray(idx(0, 1)), ops.ByArray(idx(0, 1, 2))),
		"[index] indices: shapes (2,) and (3,) cannot be broadcast")
	fails(t, at(ops.At(0), ops.At(0), ops.ByArray(idx(0))), "[index] 3 indices for an array with 2 dimensions")
	fails(t, at(ops.At(5)), "[index] axis 0 of shape (2, 3): index 5 is out of range for size 2")
	fails(t, at(ops.ByArray(nil)), "[index] an input is nil")
	fails(t, ops.IndexUpdate(x, []ops.Part{ops.ByArray(idx(2))}, "add", x), "[index_add]")
	fails(t, ops.IndexUpdate(x, []ops.Part{ops.ByArray(idx(2))}, "add", ops.Number(1, tensor.Float32)),
		"[index_add] index 2 is out of range for axis 0 with size 2")
	fails(t, ops.IndexUpdate(x, nil, "grow", x), `"grow" is no update`)
}

func TestMatmul(t *testing.T) {
	inexact := []tensor.DType{tensor.Float32, tensor.Float16, tensor.BFloat16, tensor.Float64, tensor.Complex64}
	zeros := func(d tensor.DType, n ...int) *array { return ops.Zeros(tensor.Sizes(n...), d) }
	f := tensor.Float32
	optest.Run(t, optest.Subject{
		Name: "matmul", Golden: "matmul.json", DTypes: inexact, Second: true, Tol: optest.Tol{Rel: 1e-5, Abs: 4e-5},
		Fn: one(func(in []*array) *array { return ops.Matmul(in[0], in[1]) }),
		Cases: []optest.Case{of("n,k", "k,m"), of("k", "k,m"), of("n,k", "k"), of("k", "k"), of("n,1,2,k", "3,k,m"),
			of("5,k", "k,m")},
		Refuse: []tensor.DType{tensor.Int32, tensor.Bool},
		Bad: []optest.Bad{
			{Name: "inner", Make: func() *array { return ops.Matmul(zeros(f, 3, 4), zeros(f, 5, 2)) },
				Text: "[matmul] inner dimensions differ: a (3, 4), b (5, 2)"},
			{Name: "row", Make: func() *array { return ops.Matmul(zeros(f, 3), zeros(f, 5, 2)) },
				Text: "[matmul] inner dimensions differ: a (3,), b (5, 2)"},
			{Name: "batch", Make: func() *array { return ops.Matmul(zeros(f, 2, 2, 3), zeros(f, 3, 3, 2)) },
				Text: "[matmul] batch dimensions of a (2, 2, 3) and b (3, 3, 2) cannot be broadcast"},
			{Name: "scalar", Make: func() *array { return ops.Matmul(zeros(f), zeros(f, 3)) }, Text: "[matmul] a scalar"},
			{Name: "ints", Make: func() *array { return ops.Matmul(zeros(ints32, 2, 2), zeros(ints32, 2, 2)) },
				Text: "[matmul] operands have dtypes int32 and int32"},
		},
	})
}

// TestMatmulBudget: the error of a product is at most 2 K eps |a||b|.
func TestMatmulBudget(t *testing.T) {
	optest.Open(t)
	const m, k, n = 9, 500, 40
	a, b := make([]float32, m*k), make([]float32, k*n)
	seed := uint32(1)
	next := func() float32 { seed = seed*1664525 + 1013904223; return float32(int32(seed)) / (1 << 31) }
	for i := range a {
		a[i] = next()
	}
	for i := range b {
		b[i] = next()
	}
	got := values32(t, ops.Matmul(ops.FromSlice(a, []int{m, k}), ops.FromSlice(b, []int{k, n})))
	for i := range m {
		for j := range n {
			exact, size := 0.0, 0.0
			for l := range k {
				p := float64(a[i*k+l]) * float64(b[l*n+j])
				exact, size = exact+p, size+math.Abs(p)
			}
			require.InDelta(t, exact, got[i*n+j], 2*k*math.Ldexp(1, -24)*size)
		}
	}
}

func TestSorts(t *testing.T) {
	d := optest.Distinct(0)
	sortOn := func(name string, axis *int, cases []optest.Case) {
		optest.Run(t, optest.Subject{
			Name: "sort" + name, Ops: []string{"sort"}, Golden: "sorts.json", Cases: cases, Second: true,
			Fn: one(func(in []*array) *array { return ops.Sort(in[0], axis) }),
		})
		if name != " flat" {
			optest.Run(t, optest.Subject{
				Name: "argsort" + name, Ops: []string{"argsort"}, Golden: "sorts.json", Cases: cases, NonDiff: true,
				Fn: one(func(in []*array) *array { return ops.ArgSort(in[0], axis) }),
			})
		}
	}
	sortOn("", axis(-1), inputs(d, "n,m", "k", "0,n"))
	sortOn(" first", axis(0), inputs(d, "n,m", "k"))
	sortOn(" flat", nil, inputs(d, "n,m", ""))
	fails(t, ops.Sort(ops.Number(1, tensor.Float32), axis(-1)),
		"[sort] axis -1 is out of range for an array with 0 dimensions")
	fails(t, ops.ArgSort(ops.Zeros(tensor.Sizes(2), tensor.Float32), axis(1)), "[argsort] axis 1 is out of range")
}

// TestSortStable: equal keys keep their order, in rows of lengths around powers of two and past a threadgroup.
func TestSortStable(t *testing.T) {
	optest.Open(t)
	for _, n := range []int{1, 2, 3, 31, 32, 33, 255, 256, 257, 1000, 4097} {
		keys := make([]uint8, 2*n)
		for i := range keys {
			keys[i] = uint8(uint32(i*2654435761) >> 13 % 5)
		}
		order := values32(t, ops.ArgSort(ops.FromSlice(keys, []int{2, n}), axis(1)))
		for row := range 2 {
			seen := make([]bool, n)
			for i := range n {
				at := int(order[row*n+i])
				require.False(t, seen[at], "n = %d", n)
				seen[at] = true
				if i > 0 {
					before := int(order[row*n+i-1])
					a, b := keys[row*n+before], keys[row*n+at]
					require.True(t, a < b || a == b && before < at, "n = %d: %d before %d", n, before, at)
				}
			}
		}
	}
}

func TestQuantize(t *testing.T) {
	floats := []tensor.DType{tensor.Float32, tensor.Float16, tensor.BFloat16, tensor.Float64}
	bits := optest.Ints(0, 1<<31)
	for _, b := range []int{1, 2, 3, 4, 5, 6, 8} {
		for _, group := range []int{32, 64, 128} {
			q := ops.Quantization{GroupSize: group, Bits: b}
			name := fmt.Sprintf(" %d bits by %d", b, group)
			in := func(front string) []optest.Input {
				return []optest.Input{optest.In(fmt.Sprintf("%s,%d", front, 128*b/32), bits).As(tensor.Uint32),
					optest.In(fmt.Sprintf("%s,%d", front, 128/group), uniform),
					optest.In(fmt.Sprintf("%s,%d", front, 128/group), uniform)}
			}
			quantize := optest.Subject{
				Name: "quantize" + name, Ops: []string{"quantize"}, Golden: "quantized.json", DTypes: floats,
				Fn: func(in []*array) []*array { return ops.Quantize(in[0], q) },
			}
			dequantize := optest.Subject{
				Name: "dequantize" + name, Ops: []string{"dequantize"}, Golden: "quantized.json", DTypes: floats,
				Fn: one(func(in []*array) *array { return ops.Dequantize(in[0], in[1], in[2], q, nil) }),
			}
			if b == 4 && group == 64 {
				x := optest.In("n,64", uniform)
				quantize.NonDiff = true
				quantize.Cases = []optest.Case{{Inputs: []optest.Input{x}}}
				quantize.Refuse = []tensor.DType{tensor.Int32, tensor.Complex64}
			}
			if b >= 3 && b <= 4 && group == 64 {
				dequantize.Cases = []optest.Case{{Inputs: in("n")}}
			}
			optest.Run(t, quantize)
			optest.Run(t, dequantize)
			if group != 64 {
				continue
			}
			for _, transpose := range []bool{true, false} {
				name, x := "quantized_matmul"+name, "n,128"
				if !transpose {
					name, x = strings.Replace(name, "matmul", "matmul plain", 1), "n,3"
				}
				op := optest.Subject{
					Name: name, Ops: []string{"quantized_matmul"}, Golden: "quantized.json", DTypes: floats,
					Tol: optest.Tol{Rel: 1e-5, Abs: 1e-3},
					Fn: one(func(in []*array) *array {
						return ops.QuantizedMatmul(in[0], in[1], in[2], in[3], transpose, q)
					}),
				}
				if b == 3 || b == 4 {
					op.Cases = []optest.Case{with(of(x), in("3")...)}
				}
				optest.Run(t, op)
			}
		}
	}
}

func TestGatherQMM(t *testing.T) {
	floats := []tensor.DType{tensor.Float32, tensor.Float16, tensor.BFloat16, tensor.Float64}
	gather := func(transpose bool) func(in []*array) *array {
		return func(in []*array) *array {
			return ops.GatherQMM(in[0], in[1], in[2], in[3], ops.GatherQMMCall{LHS: in[4], RHS: in[5], NoTranspose: !transpose})
		}
	}
	weights := []optest.Input{optest.In("3,2,8", optest.Ints(0, 1<<31)).As(tensor.Uint32), optest.In("3,2,1", uniform),
		optest.In("3,2,1", uniform)}
	c := func(x, lhs, rhs string) optest.Case {
		return with(with(of(x), weights...), indices(lhs, 2), indices(rhs, 3))
	}
	tol := optest.Tol{Rel: 1e-5, Abs: 1e-3}
	optest.Run(t, optest.Subject{
		Name: "gather_qmm", Golden: "quantized.json", DTypes: floats, Fn: one(gather(true)), Tol: tol,
		Cases: []optest.Case{c("2,n,64", "m,1", "3")},
	})
	optest.Run(t, optest.Subject{
		Name: "gather_qmm plain", Ops: []string{"gather_qmm"}, Golden: "quantized.json", DTypes: floats,
		Fn: one(gather(false)), Tol: tol, Cases: []optest.Case{c("2,n,2", "m", "m")},
	})
	optest.Run(t, optest.Subject{
		Name: "quantized_matmul of batches", Ops: []string{"gather_qmm"}, DTypes: floats, Tol: tol,
		Fn: one(func(in []*array) *array {
			return ops.QuantizedMatmul(in[0], in[1], in[2], in[3], true, ops.Quantization{})
		}),
		Cases: []optest.Case{with(of("n,3,2,64"), weights...)},
	})
}

// TestQuantizedProducts compares gathered products with those of unpacked matrices in float64, and sorted indices with
// others bit by bit; then what is refused.
func TestQuantizedProducts(t *testing.T) {
	optest.Open(t)
	w := ops.Sin(ops.Arange(0, 5*96*128, 1, tensor.Float32))
	w = ops.Reshape(w, tensor.Sizes(5, 96, 128))
	x := ops.Reshape(ops.Cos(ops.Arange(0, 2*3*128, 1, tensor.Float32)), tensor.Sizes(2, 3, 128))
	lhs, rhs := ops.FromSlice([]int32{0, 1, -1, 0}, []int{4}), ops.FromSlice([]uint32{4, 0, 2, 2}, []int{4})
	for _, bits := range []int{3, 4, 8} {
		q := ops.Quantization{Bits: bits, GroupSize: 32}
		p := ops.Quantize(w, q)
		plain := ops.Dequantize(p[0], p[1], p[2], q, &float64s)
		gather := func(sorted bool) *array {
			return ops.GatherQMM(x, p[0], p[1], p[2],
				ops.GatherQMMCall{LHS: lhs, RHS: rhs, Quantization: q, SortedIndices: sorted})
		}
		got := gather(false)
		near(t, got, ops.Take(x, lhs, axis(0)), ops.SwapAxes(ops.Take(plain, rhs, axis(0)), -1, -2))
		require.Equal(t, values32(t, got), values32(t, gather(true)), "%d bits", bits)
	}
	p := ops.Quantize(w, ops.Quantization{})
	call := func(lhs, rhs *array) *array {
		return ops.GatherQMM(x, p[0], p[1], p[2], ops.GatherQMMCall{LHS: lhs, RHS: rhs})
	}
	fails(t, call(nil, ops.FromSlice([]int32{0, 5}, []int{2})),
		"[gather_qmm] index 5 of rhs_indices is out of range for 5 matrices")
	fails(t, call(ops.FromSlice([]int32{0, -3}, []int{2}), rhs), "[gather_qmm]")
	fails(t, call(ops.FromSlice([]int32{-3}, []int{1}), rhs),
		"[gather_qmm] index -3 of lhs_indices is out of range for 2 matrices")
	fails(t, call(lhs, ops.FromSlice([]float32{0}, []int{1})), "[gather_qmm] indices have dtype float32, want integers")
	fails(t, call(nil, rhs), "[gather_qmm] lhs_indices and rhs_indices: shapes (2,) and (4,) cannot be broadcast")
	half := ops.Slice(x, []ops.Part{ops.Ellipsis(), ops.Span(0, 64, 1)})
	fails(t, ops.GatherQMM(half, p[0], p[1], p[2], ops.GatherQMMCall{}),
		"[gather_qmm] inner dimensions differ: x (2, 3, 64)")
	q := func(q ops.Quantization) *array { return ops.Quantize(w, q)[0] }
	fails(t, q(ops.Quantization{Bits: 7}), "[quantize] bits is 7, want 1, 2, 3, 4, 5, 6 or 8")
	fails(t, q(ops.Quantization{GroupSize: 16}), "[quantize] group_size is 16, want 32, 64 or 128")
	fails(t, q(ops.Quantization{Mode: "mxfp4"}), `[quantize] mode "mxfp4" is not supported, want affine`)
	fails(t, q(ops.Quantization{Mode: "none"}), `[quantize] unknown mode "none"`)
	fails(t, ops.Quantize(ops.Zeros(tensor.Sizes(2, 65), tensor.Float32), ops.Quantization{})[1],
		"[quantize] the last dimension of shape (2, 65) is no multiple of group_size=64")
	fails(t, ops.Quantize(ops.Zeros(tensor.Sizes(64), tensor.Float32), ops.Quantization{})[2],
		"[quantize] an array of shape (64,)")
	fails(t, ops.QuantizedMatmul(x, p[0], p[1], nil, true, ops.Quantization{}),
		"[quantized_matmul] mode affine needs biases")
	fails(t, ops.Dequantize(p[0], p[1], ops.Slice(p[2], []ops.Part{ops.At(0)}), ops.Quantization{}, nil),
		"[dequantize] scales have shape")
}

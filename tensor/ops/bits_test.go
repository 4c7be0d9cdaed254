package ops_test

import (
	"math"
	"strings"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/mlxlua/mlxlua/tensor"
	"github.com/mlxlua/mlxlua/tensor/ops"
	"github.com/mlxlua/mlxlua/tensor/optest"
)

func TestBits(t *testing.T) {
	t.Parallel()
	for _, name := range strings.Fields("bitwise_and bitwise_or bitwise_xor left_shift right_shift bitwise_invert") {
		dims := [][]string{{"n,m", "n,m"}, {"n,1", "m"}, {"", "n"}, {"0,n", "n"}}
		var cases []optest.Case
		for _, d := range dims {
			c := optest.Case{Inputs: []optest.Input{optest.In(d[0], optest.Ints(0, 9)).Const()}}
			if name != "bitwise_invert" {
				c.Inputs = append(c.Inputs, optest.In(d[1], optest.Ints(0, 7)).Const())
			}
			cases = append(cases, c)
		}
		optest.Run(t, optest.Subject{Name: name, Fn: optest.Call(name), Cases: cases, FD: ints32, NonDiff: true,
			DTypes: []tensor.DType{ints32, tensor.Uint8, tensor.Bool, tensor.Int64}})
	}
}

// constants are cases of one input each that is not differentiated.
func constants(g optest.Gen, dims ...string) []optest.Case {
	cases := inputs(g, dims...)
	for _, c := range cases {
		c.Inputs[0] = c.Inputs[0].Const()
	}
	return cases
}

// A count that is negative or not below the number of bits shifts all bits out, of all integer dtypes.
func TestShiftsBeyondTheBits(t *testing.T) {
	t.Parallel()
	optest.Open(t)
	for _, d := range tensor.DTypes() {
		if !d.IsInteger() {
			continue
		}
		bits := float64(8 * d.Size())
		a := ops.AsType(ops.FromSlice([]int32{5, 5, 5, -7, -7}, []int{5}), d)
		counts := []float32{float32(bits), float32(bits) + 1, 100, float32(bits), 100}
		if d.IsSigned() {
			counts[1] = -1
		}
		b := ops.AsType(ops.FromSlice(counts, []int{5}), d)
		left, right := []float32{0, 0, 0, 0, 0}, []float32{0, 0, 0, 0, 0}
		if d.IsSigned() {
			right[3], right[4] = -1, -1
		}
		for _, c := range []struct {
			got  *array
			want []float32
		}{{ops.LeftShift(a, b), left}, {ops.RightShift(a, b), right}} {
			got, err := ops.ToSlice[float32](t.Context(), ops.AsType(c.got, tensor.Float32))
			require.NoError(t, err)
			require.Equal(t, c.want, got, d.String())
		}
	}
}

func TestView(t *testing.T) {
	t.Parallel()
	for _, to := range []tensor.DType{tensor.Uint8, tensor.Int16, tensor.Float32, tensor.Int64} {
		optest.Run(t, optest.Subject{
			Name: "view " + to.String(), Ops: []string{"view"}, Fn: optest.Call("view", "dtype", to), NonDiff: true,
			DTypes: []tensor.DType{tensor.Int32, tensor.Uint8, tensor.Bool, tensor.Uint16},
			Cases:  constants(optest.Ints(0, 1), "n,8", "0,8"),
		})
	}
	fails := ops.View(optest.Zeros(2, 3), tensor.Int64)
	optest.Fails(t, fails, "[view] the last dimension of float32 (2, 3) has 12 bytes, which are no multiple of the 8")
	optest.Fails(t, ops.View(optest.Zeros(), tensor.Int8),
		"[view] a scalar of float32 has 4 bytes, an element of int8 takes 1")
}

// A bool whose byte is neither 0 nor 1 is true to every kernel, and its byte stays.
func TestViewAsBool(t *testing.T) {
	t.Parallel()
	optest.Open(t)
	x := ops.View(ops.FromSlice([]uint16{0x0200, 0, 0x0101}, []int{3}), tensor.Bool)
	bytes := func(x *array) []byte {
		b, err := x.Bytes(t.Context())
		require.NoError(t, err)
		return b
	}
	want := ops.FromSlice([]bool{false, true, false, false, true, true}, []int{6})
	require.Equal(t, []byte{0, 2, 0, 0, 1, 1}, bytes(ops.View(x, tensor.Uint8)))
	require.Equal(t, []byte{1}, bytes(ops.ArrayEqual(x, want, false)))
	require.Equal(t, bytes(want), bytes(ops.AsType(x, tensor.Uint8)))
	require.Equal(t, bytes(want), bytes(ops.LogicalAnd(x, want)))
	require.Equal(t, bytes(ops.Sum(ops.AsType(want, tensor.Int32), nil, false)), bytes(ops.Sum(x, nil, false)))
}

func TestFP8(t *testing.T) {
	t.Parallel()
	optest.Run(t, optest.Subject{
		Name: "to_fp8", NonDiff: true, DTypes: []tensor.DType{tensor.Float32, tensor.Float16},
		Cases: constants(uniform, "n,m", "", "0,n"), Refuse: []tensor.DType{tensor.Int32},
		Fn: optest.One(func(in []*array) *array { return ops.ToFP8(in[0]) }),
	})
	optest.Run(t, optest.Subject{
		Name: "from_fp8", DTypes: []tensor.DType{tensor.Uint8}, FD: tensor.Uint8, NonDiff: true,
		Cases: constants(optest.Ints(0, 126), "n,m", "", "0,n"), Refuse: []tensor.DType{tensor.Int8},
		Fn: optest.One(func(in []*array) *array { return ops.FromFP8(in[0], tensor.Float16) }),
	})
}

func TestRound(t *testing.T) {
	t.Parallel()
	for _, decimals := range []int{0, 1, -1} {
		optest.Run(t, optest.Subject{Name: "round", Fn: optest.Call("round", "decimals", decimals), NonDiff: true,
			Cases: inputs(uniform, "n,m", "", "0,n")})
	}
}

// What a power of ten would make infinite stays, and what is below half of one is 0, also if the dtype does not have
// it.
func TestRoundBeyondTheDType(t *testing.T) {
	t.Parallel()
	optest.Open(t)
	inf := float32(math.Inf(1))
	for decimals, want := range map[int][]float32{
		5: {3e38, -1.25, inf}, 39: {3e38, -1.25, inf}, 300: {3e38, -1.25, inf}, -36: {3e38, 0, inf}, -39: {0, 0, inf},
		-400: {0, 0, inf},
	} {
		x := ops.Round(ops.FromSlice([]float32{3e38, -1.25, inf}, []int{3}), decimals)
		got, err := ops.ToSlice[float32](t.Context(), x)
		require.NoError(t, err)
		for i := range want {
			if want[i] == 0 || want[i] == inf {
				require.Equal(t, want[i], got[i]+0, "%d decimals of element %d", decimals, i)
			} else {
				require.InEpsilon(t, want[i], got[i], 1e-6, "%d decimals of element %d", decimals, i)
			}
		}
	}
	for _, d := range []tensor.DType{tensor.Int64, tensor.Uint64, tensor.Int32, tensor.Uint8} {
		for decimals := -1; decimals >= -25; decimals-- {
			x, err := ops.ToSlice[float32](t.Context(), ops.AsType(ops.Round(ops.AsType(
				ops.FromSlice([]int32{4}, []int{1}), d), decimals), tensor.Float32))
			require.NoError(t, err)
			require.Equal(t, []float32{0}, x)
		}
	}
}

func TestArrayEqual(t *testing.T) {
	t.Parallel()
	same := func(in []*array) *array { return ops.ArrayEqual(in[0], in[1], true) }
	var cases []optest.Case
	for _, dims := range [][2]string{{"n,m", "n,m"}, {"n,m", "n,1"}, {"", ""}, {"0,n", "0,n"}, {"n", "m"}, {"n", "1,n"}} {
		cases = append(cases, optest.Case{Inputs: []optest.Input{optest.In(dims[0], optest.Ints(1, 1)).Const(),
			optest.In(dims[1], optest.Ints(1, 1)).Const()}})
	}
	optest.Run(t, optest.Subject{Name: "array_equal", Ops: []string{"match"}, Fn: optest.One(same), NonDiff: true,
		Cases: cases})
}

func TestDepends(t *testing.T) {
	t.Parallel()
	optest.Run(t, optest.Subject{
		Name: "depends", Second: true, Cases: []optest.Case{optest.With(optest.Of("n,m"), optest.In("n", uniform).Const())},
		Fn: func(in []*array) []*array { return ops.Depends(in[:1], in[1:]) },
	})
}

func TestHadamard(t *testing.T) {
	t.Parallel()
	for _, dims := range []string{"n,8", "n,1", "n,40", "28", "n,96"} {
		optest.Run(t, optest.Subject{
			Name: "hadamard_transform", Second: true, Cases: inputs(uniform, dims),
			Fn:     optest.One(func(in []*array) *array { return ops.HadamardTransform(in[0], nil) }),
			DTypes: []tensor.DType{tensor.Float32, tensor.Float16, tensor.Float64}, Refuse: []tensor.DType{tensor.Complex64},
		})
	}
	optest.Run(t, optest.Subject{
		Name: "hadamard_transform with a scale", Ops: []string{"hadamard_transform"}, Second: true,
		Cases: inputs(uniform, "", "n,8"), Fn: optest.Call("hadamard_transform", "scale", 0.5),
		DTypes: []tensor.DType{tensor.Float32},
	})
}

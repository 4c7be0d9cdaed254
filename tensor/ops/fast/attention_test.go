package fast_test

import (
	"context"
	"math"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/mlxlua/mlxlua/tensor"
	"github.com/mlxlua/mlxlua/tensor/ops"
	"github.com/mlxlua/mlxlua/tensor/ops/fast"
	"github.com/mlxlua/mlxlua/tensor/optest"
)

func TestAttention(t *testing.T) {
	const scale = 0.25
	call := func(opt fast.AttentionOptions, mask, sinks bool) optest.Func {
		return optest.One(func(in []*array) *array {
			o := opt
			if mask {
				o.Mask = in[3]
			}
			if sinks {
				o.Sinks = in[len(in)-1]
			}
			return fast.ScaledDotProductAttention(in[0], in[1], in[2], scale, o)
		})
	}
	run := func(name string, f optest.Func, cases ...optest.Case) {
		optest.Run(t, optest.Subject{
			Name: name, Ops: []string{"scaled_dot_product_attention"}, Fn: f, Cases: cases,
			DTypes: optest.FloatTypes, Second: true, Tol: optest.Tol{Rel: 2e-5, Abs: 1e-5},
		})
	}
	grouped, plain := optest.Of("n,4,m,6", "n,2,k,6", "n,2,k,5"), optest.Of("2,n,m,4", "2,n,k,4", "2,n,k,3")
	run("sdpa", call(fast.AttentionOptions{}, false, false), grouped, plain)
	run("sdpa causal", call(fast.AttentionOptions{Causal: true}, false, false), grouped, plain)
	boolean := func(dims string) optest.Input { return optest.In(dims, optest.Ints(0, 1)).As(tensor.Bool) }
	masked := call(fast.AttentionOptions{}, true, false)
	run("sdpa mask", masked, optest.With(grouped, boolean("n,4,m,k")), optest.With(plain, boolean("m,k")),
		optest.With(grouped, boolean("4,1,1")), optest.With(grouped, boolean("1,1,m,k")))
	run("sdpa added", masked, optest.Of("n,4,m,6", "n,2,k,6", "n,2,k,5", "4,m,1"),
		optest.Of("2,n,m,4", "2,n,k,4", "2,n,k,3", "2,1,m,k"))
	run("sdpa sinks", call(fast.AttentionOptions{}, false, true), optest.With(grouped, optest.In("4", uniform)))
	optest.Run(t, optest.Subject{
		Name: "sdpa all", Ops: []string{"scaled_dot_product_attention"}, Fn: call(fast.AttentionOptions{}, true, true),
		Cases:  []optest.Case{optest.With(grouped, boolean("n,1,m,k"), optest.In("4", uniform))},
		DTypes: optest.FloatTypes, Second: true, Tol: optest.Tol{Rel: 2e-5, Abs: 1e-5},
	})
}

func TestAttentionErrors(t *testing.T) {
	optest.Open(t)
	q, k, v := optest.Zeros(2, 4, 3, 8), optest.Zeros(2, 2, 5, 8), optest.Zeros(2, 2, 5, 6)
	attend := func(q, k, v *array, opt fast.AttentionOptions) *array {
		return fast.ScaledDotProductAttention(q, k, v, 1, opt)
	}
	none := fast.AttentionOptions{}
	as := func(x *array, d tensor.DType) *array { return ops.AsType(x, d) }
	optest.Fails(t, attend(optest.Zeros(2, 3, 3, 8), k, v, none), "has 3 heads, want a multiple of the 2 of k")
	optest.Fails(t, attend(optest.Zeros(2, 4, 3, 7), k, v, none), "last dimensions differ: q (2, 4, 3, 7), k (2, 2, 5, 8)")
	optest.Fails(t, attend(q, k, optest.Zeros(2, 2, 4, 6), none), "have different numbers of heads or rows")
	optest.Fails(t, attend(q, k, optest.Zeros(2, 1, 5, 6), none), "have different numbers of heads or rows")
	optest.Fails(t, attend(optest.Zeros(4, 3, 8), k, v, none), "q has shape (4, 3, 8), want 4 dimensions")
	optest.Fails(t, attend(optest.Zeros(1, 4, 3, 8), k, v, none), "batch dimensions differ")
	ints := func(x *array) *array { return as(x, tensor.Int32) }
	optest.Fails(t, attend(ints(q), ints(k), ints(v), none),
		"q, k and v have the common dtype int32, want a floating-point one")
	optest.Fails(t, attend(as(q, tensor.Complex64), k, v, none), "common dtype complex64")
	mask := func(n ...int) fast.AttentionOptions { return fast.AttentionOptions{Mask: optest.Zeros(n...)} }
	optest.Fails(t, attend(q, k, v, mask(2, 3, 5)), "mask: shape (2, 3, 5) does not broadcast to (2, 4, 3, 5)")
	optest.Fails(t, attend(q, k, v, mask(1, 2, 4, 3, 5)), "mask: shape")
	half := func(x *array) *array { return as(x, tensor.Float16) }
	optest.Fails(t, attend(half(q), half(k), half(v), mask(3, 5)),
		"mask has dtype float32, which does not promote to float16")
	both := fast.AttentionOptions{Mask: optest.Zeros(3, 5), Causal: true}
	optest.Fails(t, attend(q, k, v, both), "want either a causal mask or an array")
	optest.Fails(t, attend(q, k, v, fast.AttentionOptions{Sinks: optest.Zeros(3)}),
		"sinks have shape (3,), want one for each of the 4")
	optest.Fails(t, attend(q, k, v, fast.AttentionOptions{Sinks: optest.Zeros(4, 1)}),
		"sinks have shape (4, 1), want 1 dimension")
	optest.Fails(t, attend(nil, k, v, none), "an input is nil")
	require.Equal(t, tensor.Float32, attend(half(q), k, v, none).DType())

	// Keys that the mask takes away altogether weigh nothing, and a row of nothing but -inf is NaN, as in MLX.
	inf := float32(math.Inf(-1))
	added := ops.FromSlice([]float32{inf, inf, inf, inf, 0, 0}, []int{2, 3})
	values := ops.FromSlice([]float32{1, 2, 4}, []int{1, 1, 3, 1})
	y := attend(optest.Zeros(1, 1, 2, 4), optest.Zeros(1, 1, 3, 4), values, fast.AttentionOptions{Mask: added})
	b, err := y.Bytes(context.Background())
	require.NoError(t, err)
	got := optest.Floats(b, tensor.Float32)
	require.True(t, math.IsNaN(got[0]))
	require.Equal(t, []float64{3}, optest.Floats(b[4:], tensor.Float32))
}

// TestAttentionBlocks: the running maximum gives what one softmax over all keys gives, whatever the order of large and
// small scores, over many blocks of keys, tiles of rows and chunks of columns.
func TestAttentionBlocks(t *testing.T) {
	optest.Open(t)
	for _, s := range []struct{ heads, kvHeads, queries, keys, depth, width int }{
		{8, 1, 1, 333, 20, 40}, {2, 2, 9, 64, 64, 32}, {3, 1, 5, 97, 300, 280}, {1, 1, 33, 33, 128, 128},
	} {
		fill := func(seed float64, n ...int) *array {
			v := make([]float32, tensor.Shape(n).Size())
			for i := range v {
				v[i] = float32(math.Sin(seed + float64(i)*1.7))
			}
			return ops.FromSlice(v, n)
		}
		q, k := fill(1, 2, s.heads, s.queries, s.depth), fill(2, 2, s.kvHeads, s.keys, s.depth)
		v := fill(3, 2, s.kvHeads, s.keys, s.width)
		for _, causal := range []bool{false, true} {
			got := optest.Values32(t, fast.ScaledDotProductAttention(q, k, v, 0.5, fast.AttentionOptions{Causal: causal}))
			five := func(x *array, kv int) *array {
				return ops.Reshape(x, tensor.Sizes(2, kv, -1, x.Shape()[2], x.Shape()[3]))
			}
			scores := ops.Matmul(ops.Multiply(five(q, s.kvHeads), ops.Number(0.5, tensor.Float32)),
				ops.SwapAxes(five(k, s.kvHeads), -1, -2))
			if causal {
				ones := ops.Ones(tensor.Sizes(s.queries, s.keys), tensor.Float32)
				seen := ops.Tril(ones, s.keys-s.queries)
				scores = ops.Where(seen, scores, ops.Number(-1e30, tensor.Float32))
			}
			want := optest.Values32(t, ops.Matmul(ops.Softmax(scores, []int{-1}), five(v, s.kvHeads)))
			require.Len(t, got, len(want))
			for i := range want {
				require.InDelta(t, want[i], got[i], 2e-5, "%+v causal %v", s, causal)
			}
		}
	}
}

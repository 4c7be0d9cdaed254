package ops_test

import (
	"context"
	"math"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/mlxlua/mlxlua/tensor"
	"github.com/mlxlua/mlxlua/tensor/ops"
	"github.com/mlxlua/mlxlua/tensor/optest"
)

var floatTypes = []tensor.DType{tensor.Float32, tensor.Float16, tensor.BFloat16, tensor.Float64}

func TestNorms(t *testing.T) {
	const eps = 1e-3
	run := func(name, prim string, f func(in []*array) *array, cases ...optest.Case) {
		optest.Run(t, optest.Subject{
			Name: name, Ops: []string{prim}, Golden: "norms.json", Fn: one(f), Cases: cases, Second: true,
			DTypes: floatTypes, Tol: optest.Tol{Rel: 2e-5, Abs: 4e-6},
		})
	}
	run("rms_norm", "rms_norm", func(in []*array) *array { return ops.RMSNorm(in[0], in[1], eps) },
		of("n,m", "m"), of("2,n,m", "m"), of("m", "m"))
	run("rms_norm plain", "rms_norm", func(in []*array) *array { return ops.RMSNorm(in[0], nil, eps) }, of("n,m"))
	run("layer_norm", "layer_norm", func(in []*array) *array { return ops.LayerNorm(in[0], in[1], in[2], eps) },
		of("n,m", "m", "m"), of("2,n,m", "m", "m"))
	run("layer_norm weight", "layer_norm", func(in []*array) *array { return ops.LayerNorm(in[0], in[1], nil, eps) },
		of("n,m", "m"))
	run("layer_norm bias", "layer_norm", func(in []*array) *array { return ops.LayerNorm(in[0], nil, in[1], eps) },
		of("n,m", "m"))
	run("layer_norm plain", "layer_norm", func(in []*array) *array { return ops.LayerNorm(in[0], nil, nil, eps) },
		of("n,m"))

	ints := ops.Zeros(tensor.Sizes(2, 4), tensor.Int32)
	fails(t, ops.RMSNorm(ints, nil, eps), "[rms_norm] x has dtype int32, want a floating-point one")
	fails(t, ops.LayerNorm(ops.AsType(ints, tensor.Complex64), nil, nil, eps), "[layer_norm] x has dtype complex64")
	fails(t, ops.RMSNorm(zeros(), nil, eps), "[rms_norm] x is a scalar")
	fails(t, ops.RMSNorm(nil, nil, eps), "[rms_norm] an input is nil")
	fails(t, ops.RMSNorm(zeros(2, 4), zeros(3), eps),
		"[rms_norm] weight has shape (3,), want (4,), the last dimension of x (2, 4)")
	fails(t, ops.LayerNorm(zeros(2, 4), nil, zeros(1, 4), eps), "[layer_norm] bias has shape (1, 4), want (4,)")
	mixed := ops.LayerNorm(ops.AsType(ints, tensor.Float16), zeros(4), ops.AsType(zeros(4), tensor.BFloat16), eps)
	require.Equal(t, tensor.Float32, mixed.DType())
}

// TestNormDTypes compares the dtypes of results with MLX 0.32.4's, of which each letter is one: - is an error. Words go
// over the weight's dtypes, letters over the bias's: none, float16, bfloat16, float32, int32.
func TestNormDTypes(t *testing.T) {
	letters := map[byte]tensor.DType{'h': tensor.Float16, 'b': tensor.BFloat16, 'f': tensor.Float32, 'd': tensor.Float64,
		'i': tensor.Int32, 'c': tensor.Complex64}
	row := func(letter byte) *array {
		if letter == 'n' {
			return nil
		}
		return ops.AsType(ops.FromSlice([]float32{1, 2}, []int{2}), letters[letter])
	}
	check := func(want byte, y *array, what string) {
		if want == '-' {
			require.Error(t, y.Err(), what)
			return
		}
		require.NoError(t, y.Err(), what)
		require.Equal(t, letters[want], y.DType(), what)
	}
	for x, golden := range map[byte]struct{ rms, layer string }{
		'h': {"h h f f h", "hhhhh hhffh fffff fffff hhffh"}, 'b': {"b f b f b", "bbbbb fffff bfbfb fffff bfbfb"},
		'f': {"f f f f f", "fffff fffff fffff fffff fffff"}, 'd': {"d d d d d", "ddddd ddddd ddddd ddddd ddddd"},
		'i': {"- h b f -", "----- hhffh bfbfb fffff -hbf-"}, 'c': {"- - - - -", "----- ----- ----- ----- -----"},
	} {
		for i, w := range []byte("nhbfi") {
			name := string([]byte{x, ' ', w})
			check(golden.rms[2*i], ops.RMSNorm(row(x), row(w), 1e-5), "rms_norm "+name)
			for k, b := range []byte("nhbfi") {
				check(golden.layer[6*i+k], ops.LayerNorm(row(x), row(w), row(b), 1e-5), "layer_norm "+name+" "+string(b))
			}
		}
	}
}

// TestNormBudget: the rows' sums are trees, so that long rows lose no more than a few places.
func TestNormBudget(t *testing.T) {
	optest.Open(t)
	const n = 5000
	x := make([]float32, 2*n)
	mean, square := [2]float64{}, [2]float64{}
	for i := range x {
		x[i] = float32(math.Mod(float64(i)*0.61803, 1) + 3)
		mean[i/n] += float64(x[i]) / n
		square[i/n] += float64(x[i]) * float64(x[i]) / n
	}
	a := ops.FromSlice(x, []int{2, n})
	rms := values32(t, ops.RMSNorm(a, nil, 1e-5))
	layer := values32(t, ops.LayerNorm(a, nil, nil, 1e-5))
	for i, v := range x {
		row := i / n
		require.InEpsilon(t, float64(v)/math.Sqrt(square[row]+1e-5), rms[i], 1e-6)
		sigma := math.Sqrt(square[row] - mean[row]*mean[row] + 1e-5)
		require.InDelta(t, (float64(v)-mean[row])/sigma, layer[i], 1e-5)
	}
}

func TestRoPE(t *testing.T) {
	base := 100.0
	run := func(name string, opt ops.RoPEOptions, cases ...optest.Case) {
		optest.Run(t, optest.Subject{
			Name: name, Ops: []string{"rope"}, Golden: "ropes.json", Cases: cases, DTypes: floatTypes, Second: true,
			Tol: optest.Tol{Rel: 1e-5, Abs: 4e-6}, // the angles' own rounding
			Fn: one(func(in []*array) *array {
				opt := opt
				if len(in) > 1 {
					opt.Offset = in[1]
				}
				if len(in) > 2 {
					opt.Freqs = in[2]
				}
				return ops.RoPE(in[0], opt)
			}),
		})
	}
	offset := func(n int) *array { return ops.Number(float64(n), tensor.Int32) }
	like := ops.RoPEOptions{Dims: 8, Base: &base, Scale: 1}
	run("rope", like, of("n,m,k,8"), of("n,m,9"), of("2,n,m,2,8"), of("2,5,n,8"))
	back := like
	back.Traditional, back.Offset = true, offset(7)
	run("rope traditional", back, of("n,m,k,8"))
	part := like
	part.Dims, part.Scale, part.Offset = 6, 0.5, offset(2)
	run("rope part", part, of("n,m,k,8"))
	pair := like
	pair.Dims, pair.Traditional = 2, true
	run("rope traditional part", pair, of("n,m,9"))
	whole := optest.In("", optest.Ints(3, 3)).As(tensor.Int32)
	each := optest.In("n", optest.Ints(0, 5)).As(tensor.Int32)
	run("rope offset", like, with(of("n,m,k,8"), whole), with(of("n,m,8"), each), with(of("n,2,m,8"), whole.Whole()),
		with(of("2,n,8"), optest.In("1", optest.Ints(3, 3)).As(tensor.Int32)))
	freqs := optest.In("4", optest.Uniform(1, 4))
	given := ops.RoPEOptions{Dims: 8, Scale: 1}
	run("rope freqs", given, with(of("n,m,k,8"), whole, freqs), with(of("n,m,8"), each, freqs))
	neighbours := ops.RoPEOptions{Dims: 8, Scale: 0.5, Traditional: true}
	optest.Run(t, optest.Subject{
		Name: "rope freqs traditional", Ops: []string{"rope"}, DTypes: floatTypes, Second: true,
		Tol: optest.Tol{Rel: 1e-5, Abs: 4e-6}, Cases: []optest.Case{with(of("n,m,9"), each, freqs)},
		Fn: one(func(in []*array) *array {
			opt := neighbours
			opt.Offset, opt.Freqs = in[1], in[2]
			return ops.RoPE(in[0], opt)
		}),
	})

	change := func(f func(o *ops.RoPEOptions)) ops.RoPEOptions {
		o := like
		f(&o)
		return o
	}
	x := zeros(2, 3, 5, 8)
	fails(t, ops.RoPE(zeros(5, 8), like), "[rope] x has shape (5, 8), it needs 3 dimensions or more")
	for _, dims := range []int{3, 10, 0, -2} {
		fails(t, ops.RoPE(x, change(func(o *ops.RoPEOptions) { o.Dims = dims })), "want an even number from 2 to the last")
	}
	fails(t, ops.RoPE(x, change(func(o *ops.RoPEOptions) { o.Base = nil })), "[rope] want either base or freqs")
	fails(t, ops.RoPE(x, change(func(o *ops.RoPEOptions) { o.Freqs = zeros(4) })), "[rope] want either base or freqs")
	fails(t, ops.RoPE(x, change(func(o *ops.RoPEOptions) { o.Base, o.Freqs = nil, zeros(3) })),
		"[rope] freqs has shape (3,), want (4,)")
	fails(t, ops.RoPE(x, change(func(o *ops.RoPEOptions) { o.Offset = zeros(2) })),
		"[rope] offset has dtype float32, want integers")
	fails(t, ops.RoPE(x, change(func(o *ops.RoPEOptions) { o.Offset = ops.Zeros(tensor.Sizes(3), tensor.Int64) })),
		"[rope] offset has shape (3,), want a scalar or one for each of the 2 examples")
	fails(t, ops.RoPE(ops.AsType(x, tensor.Int32), like), "[rope] a has dtype int32")
	fails(t, ops.RoPE(nil, like), "[rope] an input is nil")
}

func TestAttention(t *testing.T) {
	const scale = 0.25
	call := func(opt ops.AttentionOptions, mask, sinks bool) outs {
		return one(func(in []*array) *array {
			o := opt
			if mask {
				o.Mask = in[3]
			}
			if sinks {
				o.Sinks = in[len(in)-1]
			}
			return ops.ScaledDotProductAttention(in[0], in[1], in[2], scale, o)
		})
	}
	run := func(name string, f outs, cases ...optest.Case) {
		optest.Run(t, optest.Subject{
			Name: name, Ops: []string{"scaled_dot_product_attention"}, Golden: "attention.json", Fn: f, Cases: cases,
			DTypes: floatTypes, Second: true, Tol: optest.Tol{Rel: 2e-5, Abs: 1e-5},
		})
	}
	grouped, plain := of("n,4,m,6", "n,2,k,6", "n,2,k,5"), of("2,n,m,4", "2,n,k,4", "2,n,k,3")
	run("sdpa", call(ops.AttentionOptions{}, false, false), grouped, plain)
	run("sdpa causal", call(ops.AttentionOptions{Causal: true}, false, false), grouped, plain)
	boolean := func(dims string) optest.Input { return optest.In(dims, optest.Ints(0, 1)).As(tensor.Bool) }
	masked := call(ops.AttentionOptions{}, true, false)
	run("sdpa mask", masked, with(grouped, boolean("n,4,m,k")), with(plain, boolean("m,k")),
		with(grouped, boolean("4,1,1")), with(grouped, boolean("1,1,m,k")))
	run("sdpa added", masked, of("n,4,m,6", "n,2,k,6", "n,2,k,5", "4,m,1"), of("2,n,m,4", "2,n,k,4", "2,n,k,3", "2,1,m,k"))
	run("sdpa sinks", call(ops.AttentionOptions{}, false, true), with(grouped, optest.In("4", uniform)))
	optest.Run(t, optest.Subject{
		Name: "sdpa all", Ops: []string{"scaled_dot_product_attention"}, Fn: call(ops.AttentionOptions{}, true, true),
		Cases:  []optest.Case{with(grouped, boolean("n,1,m,k"), optest.In("4", uniform))},
		DTypes: floatTypes, Second: true, Tol: optest.Tol{Rel: 2e-5, Abs: 1e-5},
	})
}

func TestAttentionErrors(t *testing.T) {
	optest.Open(t)
	q, k, v := zeros(2, 4, 3, 8), zeros(2, 2, 5, 8), zeros(2, 2, 5, 6)
	attend := func(q, k, v *array, opt ops.AttentionOptions) *array {
		return ops.ScaledDotProductAttention(q, k, v, 1, opt)
	}
	none := ops.AttentionOptions{}
	as := func(x *array, d tensor.DType) *array { return ops.AsType(x, d) }
	fails(t, attend(zeros(2, 3, 3, 8), k, v, none), "has 3 heads, want a multiple of the 2 of k")
	fails(t, attend(zeros(2, 4, 3, 7), k, v, none), "last dimensions differ: q (2, 4, 3, 7), k (2, 2, 5, 8)")
	fails(t, attend(q, k, zeros(2, 2, 4, 6), none), "have different numbers of heads or rows")
	fails(t, attend(q, k, zeros(2, 1, 5, 6), none), "have different numbers of heads or rows")
	fails(t, attend(zeros(4, 3, 8), k, v, none), "q has shape (4, 3, 8), want 4 dimensions")
	fails(t, attend(zeros(1, 4, 3, 8), k, v, none), "batch dimensions differ")
	ints := func(x *array) *array { return as(x, tensor.Int32) }
	fails(t, attend(ints(q), ints(k), ints(v), none), "q, k and v have the common dtype int32, want a floating-point one")
	fails(t, attend(as(q, tensor.Complex64), k, v, none), "common dtype complex64")
	mask := func(n ...int) ops.AttentionOptions { return ops.AttentionOptions{Mask: zeros(n...)} }
	fails(t, attend(q, k, v, mask(2, 3, 5)), "mask: shape (2, 3, 5) does not broadcast to (2, 4, 3, 5)")
	fails(t, attend(q, k, v, mask(1, 2, 4, 3, 5)), "mask: shape")
	half := func(x *array) *array { return as(x, tensor.Float16) }
	fails(t, attend(half(q), half(k), half(v), mask(3, 5)), "mask has dtype float32, which does not promote to float16")
	both := ops.AttentionOptions{Mask: zeros(3, 5), Causal: true}
	fails(t, attend(q, k, v, both), "want either a causal mask or an array")
	fails(t, attend(q, k, v, ops.AttentionOptions{Sinks: zeros(3)}), "sinks have shape (3,), want one for each of the 4")
	fails(t, attend(q, k, v, ops.AttentionOptions{Sinks: zeros(4, 1)}), "sinks have shape (4, 1), want 1 dimension")
	fails(t, attend(nil, k, v, none), "an input is nil")
	require.Equal(t, tensor.Float32, attend(half(q), k, v, none).DType())

	// Keys that the mask takes away altogether weigh nothing, and a row of nothing but -inf is NaN, as in MLX.
	inf := float32(math.Inf(-1))
	added := ops.FromSlice([]float32{inf, inf, inf, inf, 0, 0}, []int{2, 3})
	values := ops.FromSlice([]float32{1, 2, 4}, []int{1, 1, 3, 1})
	y := attend(zeros(1, 1, 2, 4), zeros(1, 1, 3, 4), values, ops.AttentionOptions{Mask: added})
	b, err := y.Bytes(context.Background())
	require.NoError(t, err)
	got := floats(b, tensor.Float32)
	require.True(t, math.IsNaN(got[0]))
	require.Equal(t, []float64{3}, floats(b[4:], tensor.Float32))
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
			got := values32(t, ops.ScaledDotProductAttention(q, k, v, 0.5, ops.AttentionOptions{Causal: causal}))
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
			want := values32(t, ops.Matmul(ops.Softmax(scores, []int{-1}), five(v, s.kvHeads)))
			require.Len(t, got, len(want))
			for i := range want {
				require.InDelta(t, want[i], got[i], 2e-5, "%+v causal %v", s, causal)
			}
		}
	}
}

package fast_test

import (
	"math"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/mlxlua/mlxlua/tensor"
	"github.com/mlxlua/mlxlua/tensor/ops"
	"github.com/mlxlua/mlxlua/tensor/ops/fast"
	"github.com/mlxlua/mlxlua/tensor/optest"
)

func TestNorms(t *testing.T) {
	const eps = 1e-3
	run := func(name, prim string, f func(in []*array) *array, cases ...optest.Case) {
		optest.Run(t, optest.Subject{
			Name: name, Ops: []string{prim}, Fn: optest.One(f), Cases: cases, Second: true,
			DTypes: optest.FloatTypes, Tol: optest.Tol{Rel: 2e-5, Abs: 4e-6},
		})
	}
	run("rms_norm", "rms_norm", func(in []*array) *array { return fast.RMSNorm(in[0], in[1], eps) },
		optest.Of("n,m", "m"), optest.Of("2,n,m", "m"), optest.Of("m", "m"))
	run("rms_norm plain", "rms_norm", func(in []*array) *array { return fast.RMSNorm(in[0], nil, eps) }, optest.Of("n,m"))
	run("layer_norm", "layer_norm", func(in []*array) *array { return fast.LayerNorm(in[0], in[1], in[2], eps) },
		optest.Of("n,m", "m", "m"), optest.Of("2,n,m", "m", "m"))
	run("layer_norm weight", "layer_norm", func(in []*array) *array { return fast.LayerNorm(in[0], in[1], nil, eps) },
		optest.Of("n,m", "m"))
	run("layer_norm bias", "layer_norm", func(in []*array) *array { return fast.LayerNorm(in[0], nil, in[1], eps) },
		optest.Of("n,m", "m"))
	run("layer_norm plain", "layer_norm", func(in []*array) *array { return fast.LayerNorm(in[0], nil, nil, eps) },
		optest.Of("n,m"))

	ints := ops.Zeros(tensor.Sizes(2, 4), tensor.Int32)
	optest.Fails(t, fast.RMSNorm(ints, nil, eps), "[rms_norm] x has dtype int32, want a floating-point one")
	optest.Fails(t, fast.LayerNorm(ops.AsType(ints, tensor.Complex64), nil, nil, eps),
		"[layer_norm] x has dtype complex64")
	optest.Fails(t, fast.RMSNorm(optest.Zeros(), nil, eps), "[rms_norm] x is a scalar")
	optest.Fails(t, fast.RMSNorm(nil, nil, eps), "[rms_norm] an input is nil")
	optest.Fails(t, fast.RMSNorm(optest.Zeros(2, 4), optest.Zeros(3), eps),
		"[rms_norm] weight has shape (3,), want (4,), the last dimension of x (2, 4)")
	optest.Fails(t, fast.LayerNorm(optest.Zeros(2, 4), nil, optest.Zeros(1, 4), eps),
		"[layer_norm] bias has shape (1, 4), want (4,)")
	mixed := fast.LayerNorm(ops.AsType(ints, tensor.Float16), optest.Zeros(4),
		ops.AsType(optest.Zeros(4), tensor.BFloat16), eps)
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
			check(golden.rms[2*i], fast.RMSNorm(row(x), row(w), 1e-5), "rms_norm "+name)
			for k, b := range []byte("nhbfi") {
				check(golden.layer[6*i+k], fast.LayerNorm(row(x), row(w), row(b), 1e-5), "layer_norm "+name+" "+string(b))
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
	rms := optest.Values32(t, fast.RMSNorm(a, nil, 1e-5))
	layer := optest.Values32(t, fast.LayerNorm(a, nil, nil, 1e-5))
	for i, v := range x {
		row := i / n
		require.InEpsilon(t, float64(v)/math.Sqrt(square[row]+1e-5), rms[i], 1e-6)
		sigma := math.Sqrt(square[row] - mean[row]*mean[row] + 1e-5)
		require.InDelta(t, (float64(v)-mean[row])/sigma, layer[i], 1e-5)
	}
}

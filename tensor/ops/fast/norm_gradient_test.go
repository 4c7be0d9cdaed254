package fast_test

import (
	"math"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/mlxlua/mlxlua/tensor"
	"github.com/mlxlua/mlxlua/tensor/grad"
	"github.com/mlxlua/mlxlua/tensor/ops"
	"github.com/mlxlua/mlxlua/tensor/ops/fast"
	"github.com/mlxlua/mlxlua/tensor/optest"
)

// layerGradientIn64 is layer_norm(x, w, 0) for rows of n elements in float64, by the definition, and its gradient with
// that cotangent, by the chain rule. With rms nothing is subtracted from the rows.
func layerGradientIn64(x, cot, w []float64, n int, eps float64, rms bool) (out, dx, dw, db []float64) {
	out, dx, dw, db = make([]float64, len(x)), make([]float64, len(x)), make([]float64, n), make([]float64, n)
	for at := 0; at < len(x); at += n {
		mean, square := 0.0, 0.0
		for _, v := range x[at : at+n] {
			mean += v / float64(n)
		}
		if rms {
			mean = 0
		}
		for _, v := range x[at : at+n] {
			square += (v - mean) * (v - mean) / float64(n)
		}
		scale := 1 / math.Sqrt(square+eps)
		along, middle := 0.0, 0.0
		for i, v := range x[at : at+n] {
			y, c := (v-mean)*scale, cot[at+i]
			out[at+i] = y * w[i]
			dw[i] += c * y
			db[i] += c
			along += c * w[i] * y / float64(n)
			middle += c * w[i] / float64(n)
		}
		if rms {
			middle = 0
		}
		for i, v := range x[at : at+n] {
			dx[at+i] = scale * (cot[at+i]*w[i] - (v-mean)*scale*along - middle)
		}
	}
	return out, dx, dw, db
}

// TestNormGradients: norms and their gradients, of rows that are several strips, and strips of strips, and of lengths
// that stay in registers and others.
func TestNormGradients(t *testing.T) {
	optest.Open(t)
	const eps = 1e-3
	for _, size := range [][2]int{{1, 40}, {3, 128}, {3, 160}, {2, 32}, {2, 256}, {3, 288}, {65, 33}, {4097, 5},
		{0, 4}} {
		rows, n := size[0], size[1]
		x, cot, w := make([]float64, rows*n), make([]float64, rows*n), make([]float64, n)
		for i := range x {
			x[i], cot[i] = math.Mod(float64(i)*0.61803, 2)-0.4, math.Mod(float64(i)*0.41421, 1)-0.3
		}
		for i := range w {
			w[i] = 1 + math.Mod(float64(i)*0.73205, 1)
		}
		array := func(v []float64, shape ...int) *tensor.Array {
			narrow := make([]float32, len(v))
			for i := range v {
				narrow[i] = float32(v[i])
			}
			return ops.FromSlice(narrow, shape)
		}
		in := []*tensor.Array{array(x, rows, n), array(w, n), array(make([]float64, n), n)}
		for _, rms := range []bool{false, true} {
			outs, grads, err := grad.VJP(func(in []*tensor.Array) ([]*tensor.Array, error) {
				if rms {
					return []*tensor.Array{fast.RMSNorm(in[0], in[1], eps)}, nil
				}
				return []*tensor.Array{fast.LayerNorm(in[0], in[1], in[2], eps)}, nil
			}, in, []*tensor.Array{array(cot, rows, n)})
			require.NoError(t, err)
			out, dx, dw, db := layerGradientIn64(x, cot, w, n, eps, rms)
			if rms {
				clear(db)
			}
			for i, want := range [][]float64{dx, dw, db, out} {
				got := optest.Values32(t, append(grads, outs...)[i])
				require.Len(t, got, len(want))
				for k, v := range want {
					require.InDelta(t, v, got[k], 2e-6*float64(max(rows, 4)), "rows %d, n %d, rms %v: gradient %d", rows, n, rms, i)
				}
			}
		}
	}
}

// TestNormGradientRules: the gradient as a function of its own, with its derivatives and batches.
func TestNormGradientRules(t *testing.T) {
	const eps = 1e-3
	run := func(name string, norm func(in []*array) *array, cases ...optest.Case) {
		optest.Run(t, optest.Subject{
			Name: name, Ops: []string{"norm_gradient"}, Cases: cases, DTypes: optest.FloatTypes,
			Tol: optest.Tol{Rel: 1e-4, Abs: 2e-5},
			Fn: func(in []*array) []*array {
				last := len(in) - 1
				one := func(in []*array) ([]*array, error) { return []*array{norm(in)}, nil }
				_, grads, err := grad.VJP(one, in[:last], in[last:])
				require.NoError(t, err)
				return grads
			},
		})
	}
	run("layer_norm's gradient", func(in []*array) *array { return fast.LayerNorm(in[0], in[1], in[2], eps) },
		optest.Of("n,m", "m", "m", "n,m"))
	run("layer_norm's gradient, plain", func(in []*array) *array { return fast.LayerNorm(in[0], nil, nil, eps) },
		optest.Of("n,m", "n,m"))
	run("rms_norm's gradient", func(in []*array) *array { return fast.RMSNorm(in[0], in[1], eps) },
		optest.Of("2,n,m", "m", "2,n,m"))
}

package fast_test

import (
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/mlxlua/mlxlua/tensor"
	"github.com/mlxlua/mlxlua/tensor/ops"
	"github.com/mlxlua/mlxlua/tensor/ops/fast"
	"github.com/mlxlua/mlxlua/tensor/optest"
)

func TestGatedDelta(t *testing.T) {
	run := func(name string, state, mask bool, in ...optest.Input) {
		optest.Run(t, optest.Subject{
			Name: name, Ops: []string{"gated_delta_update"}, DTypes: optest.FloatTypes, Second: true,
			Tol: optest.Tol{Rel: 5e-5, Abs: 5e-5},
			Fn: func(in []*array) []*array {
				var o fast.DeltaOptions
				if state {
					o.InitialState = in[5]
				}
				if mask {
					o.Mask = in[len(in)-1]
				}
				y, s := fast.GatedDeltaUpdate(in[0], in[1], in[2], in[3], in[4], o)
				return []*array{y, s}
			},
			Cases: []optest.Case{{Inputs: in}},
		})
	}
	small := optest.Uniform(-1, 1)
	in := func(dims ...string) []optest.Input {
		var out []optest.Input
		for _, d := range dims {
			out = append(out, optest.In(d, small))
		}
		return out
	}
	run("gated_delta", false, false, in("n,2,1,m", "n,2,1,m", "n,2,1,k", "n,2,1", "n,2,1")...)
	run("gated_delta state", true, false, in("2,2,2,m", "2,2,2,m", "2,2,4,3", "2,2,4,m", "2,2,4", "2,4,3,m")...)
	run("gated_delta mask", true, true, append(in("n,3,1,2", "n,3,1,2", "n,3,2,k", "n,3,2", "n,3,2", "n,2,k,2"),
		optest.In("n,3", optest.Ints(0, 1)).As(tensor.Bool))...)
}

func TestGatedDeltaErrors(t *testing.T) {
	optest.Open(t)
	zeros := optest.Zeros
	q, v, beta := zeros(2, 3, 2, 5), zeros(2, 3, 4, 6), zeros(2, 3, 4)
	call := func(q, k, v, gamma, beta *array, o fast.DeltaOptions) *array {
		y, state := fast.GatedDeltaUpdate(q, k, v, gamma, beta, o)
		require.Equal(t, y.Err(), state.Err())
		return y
	}
	none := fast.DeltaOptions{}
	optest.Fails(t, call(q, zeros(2, 3, 2, 4), v, beta, beta, none),
		"[gated_delta_update] q and k differ: shapes (2, 3, 2, 5) and (2, 3, 2, 4)")
	optest.Fails(t, call(q, q, zeros(2, 2, 4, 6), beta, beta, none), "the first two dimensions of q (2, 3, 2, 5) and v")
	optest.Fails(t, call(q, q, zeros(2, 3, 3, 6), beta, beta, none), "has 3 heads, want a multiple of the 2 of k")
	optest.Fails(t, call(q, q, v, zeros(2, 3, 1), beta, none), "gamma has shape (2, 3, 1), want (2, 3, 4) as q")
	optest.Fails(t, call(q, q, v, zeros(2, 3), beta, none), "gamma has shape (2, 3), want 3 or 4 dimensions")
	optest.Fails(t, call(q, q, v, beta, zeros(2, 3, 4, 5), none), "beta has shape (2, 3, 4, 5), want 3 dimensions")
	optest.Fails(t, call(zeros(3, 2, 5), q, v, beta, beta, none), "q has shape (3, 2, 5) and v (2, 3, 4, 6), want 4")
	optest.Fails(t, call(q, q, v, beta, beta, fast.DeltaOptions{InitialState: zeros(2, 4, 5, 6)}),
		"[gated_delta_update] the initial state: shape (2, 4, 5, 6) does not broadcast to (2, 4, 6, 5)")
	optest.Fails(t, call(q, q, v, beta, beta, fast.DeltaOptions{Mask: zeros(2, 4)}),
		"the mask has shape (2, 4), want (2, 3)")
	empty := zeros(2, 0, 2, 5)
	optest.Fails(t, call(empty, empty, zeros(2, 0, 4, 6), zeros(2, 0, 4), zeros(2, 0, 4), none), "there is no step")
	optest.Fails(t, call(ops.AsType(q, tensor.Complex64), q, v, beta, beta, none), "does not take dtype complex64")
	optest.Fails(t, call(nil, q, v, beta, beta, none), "an input is nil")
}

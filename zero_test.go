package mlxlua_test

import (
	"reflect"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/mlxlua/mlxlua"
	"github.com/mlxlua/mlxlua/tensor"
	"github.com/mlxlua/mlxlua/tensor/grad"
	"github.com/mlxlua/mlxlua/tensor/ops"
)

// TestZeroValues: every method of a zero Array, a zero State and nil ones returns, those that can fail with an error.
func TestZeroValues(t *testing.T) {
	t.Parallel()
	failing := reflect.TypeFor[error]()
	for _, v := range []any{&mlxlua.Array{}, (*mlxlua.Array)(nil), &mlxlua.State{}, (*mlxlua.State)(nil)} {
		x := reflect.ValueOf(v)
		for i := range x.NumMethod() {
			m := x.Type().Method(i)
			n := m.Type.NumIn() - 1
			if m.Type.IsVariadic() {
				n--
			}
			in := make([]reflect.Value, n)
			for k := range in {
				in[k] = reflect.Zero(m.Type.In(k + 1))
			}
			var out []reflect.Value
			require.NotPanics(t, func() { out = x.Method(i).Call(in) }, "%T %s", v, m.Name)
			if last := m.Type.NumOut() - 1; last >= 0 && m.Type.Out(last) == failing && m.Name != "Read" {
				require.False(t, out[last].IsNil(), "%T %s gives no error", v, m.Name)
			}
		}
	}
	state, err := mlxlua.Open(mlxlua.Options{})
	require.NoError(t, err)
	defer state.Close()
	x := mlxlua.FromSlice([]float32{1, 2})
	for _, none := range []*mlxlua.Array{{}, nil} {
		for name, y := range map[string]*mlxlua.Array{
			"add": ops.Add(x, none), "matmul": ops.Matmul(none, x), "softmax": ops.Softmax(none, nil),
			"sum": ops.Sum(none, nil, false), "reshape": ops.Reshape(x, tensor.ShapeOf(none)),
			"concatenate": ops.Concatenate([]*mlxlua.Array{x, none}, new(int)), "exp": ops.Exp(none),
		} {
			require.Error(t, y.Err(), name)
		}
		require.Error(t, tensor.Eval(t.Context(), x, none))
		require.Error(t, tensor.AsyncEval(none))
		tensor.Drop(none)
		_, _, err := grad.ValueAndGrad(func(in []*mlxlua.Array) ([]*mlxlua.Array, error) {
			return []*mlxlua.Array{none}, nil
		}, []int{0}, nil)([]*mlxlua.Array{x})
		require.Error(t, err)
		_, err = mlxlua.Bytes(t.Context(), none)
		require.Error(t, err)
		_, err = mlxlua.ToSlice[float32](t.Context(), none)
		require.Error(t, err)
		if err := state.Set("x", none); err == nil {
			_, err = state.Run(t.Context(), "zero", "return mx.eval(x + 1)")
			require.Error(t, err)
			_, err = state.Run(t.Context(), "zero", "return tostring(x), x.shape, mx.eval(x)")
			require.Error(t, err)
		}
	}
}

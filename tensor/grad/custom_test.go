package grad_test

import (
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/mlxlua/mlxlua/tensor"
	"github.com/mlxlua/mlxlua/tensor/grad"
	"github.com/mlxlua/mlxlua/tensor/ops"
)

// product is x*y with transforms that can be told from the true ones.
func product() *grad.Custom {
	return &grad.Custom{F: two(func(x, y *array) *array { return ops.Multiply(x, y) })}
}

func callOf(k *grad.Custom) grad.Func {
	return func(in []*array) ([]*array, error) { return k.Call(in) }
}

// summed is the sum of f's first output.
func summed(f grad.Func) grad.Func {
	return func(in []*array) ([]*array, error) {
		out, err := f(in)
		if err != nil {
			return nil, err
		}
		return arrays{total(out[0])}, nil
	}
}

func TestCustomWithoutTransforms(t *testing.T) {
	g, err := grad.Grad(summed(callOf(product())), []int{0, 1})(arrays{vec(1, 2), vec(3, 4)})
	require.NoError(t, err)
	near(t, []float64{3, 4}, g[0])
	near(t, []float64{1, 2}, g[1])
}

func TestCustomVJP(t *testing.T) {
	k := product()
	k.VJP = func(primals, cots, outs []*array) ([]*array, error) {
		require.Len(t, primals, 2)
		require.Len(t, outs, 1)
		return arrays{ops.Multiply(cots[0], num(7)), ops.Multiply(cots[0], outs[0])}, nil
	}
	x, y := vec(1, 2), vec(3, 4)
	g, err := grad.Grad(summed(callOf(k)), []int{0, 1})(arrays{x, y})
	require.NoError(t, err)
	near(t, []float64{7, 7}, g[0])
	near(t, []float64{3, 8}, g[1], "outs are the outputs")
	near(t, []float64{3, 8}, first(t, callOf(k), x, y))

	// Its gradients are differentiated by what they are: d(x*y)/dx in the gradient by y, through the custom
	// function again.
	h := two(func(x, y *array) *array {
		g, err := grad.Grad(summed(callOf(k)), []int{1})(arrays{x, y})
		require.NoError(t, err)
		return total(g[0])
	})
	near(t, []float64{7, 7}, first(t, grad.Grad(h, nil), x, y))

	// Over a batch it is kept, and what all calls share gets the sum.
	batched := grad.VMap(callOf(k), []int{0, grad.NoAxis}, nil)
	g, err = grad.Grad(summed(batched), []int{0, 1})(arrays{mat(2, 1, 2, 3, 4), y})
	require.NoError(t, err)
	near(t, []float64{7, 7, 7, 7}, g[0])
	near(t, []float64{1*3 + 3*3, 2*4 + 4*4}, g[1])
	perRow := grad.VMap(grad.Grad(summed(callOf(k)), []int{1}), []int{0, grad.NoAxis}, nil)
	near(t, []float64{3, 8, 9, 16}, first(t, perRow, mat(2, 1, 2, 3, 4), y))

	// Forward mode is F's own.
	_, d, err := grad.JVP(callOf(k), arrays{x, y}, arrays{vec(1, 0), vec(0, 1)})
	require.NoError(t, err)
	near(t, []float64{3, 2}, d[0])
}

func TestCustomSeveralOutputs(t *testing.T) {
	calls := 0
	k := &grad.Custom{
		F: func(in []*array) ([]*array, error) {
			return arrays{ops.Multiply(in[0], num(2)), ops.Multiply(in[0], num(3))}, nil
		},
		VJP: func(_, cots, _ []*array) ([]*array, error) {
			calls++
			return arrays{ops.Add(ops.Multiply(cots[0], num(10)), ops.Multiply(cots[1], num(100)))}, nil
		},
	}
	f := one(func(x *array) *array {
		out, err := k.Call(arrays{x})
		require.NoError(t, err)
		return total(ops.Add(out[0], ops.Multiply(out[1], out[0])))
	})
	// d = 10 (1 + 3x) + 100 (2x)
	near(t, []float64{10*4 + 200, 10*7 + 400}, first(t, grad.Grad(f, nil), vec(1, 2)))
	require.Equal(t, 1, calls, "one call has one gradient")
	// An output that nothing uses has a cotangent of zeros.
	f = one(func(x *array) *array {
		out, err := k.Call(arrays{x})
		require.NoError(t, err)
		return total(out[1])
	})
	near(t, []float64{100, 100}, first(t, grad.Grad(f, nil), vec(1, 2)))
}

func TestCustomJVPAndVMap(t *testing.T) {
	k := product()
	k.JVP = func(primals, tans []*array) ([]*array, error) { return arrays{ops.Multiply(tans[0], num(9))}, nil }
	_, d, err := grad.JVP(callOf(k), arrays{vec(1, 2), vec(3, 4)}, arrays{vec(1, 2), nil})
	require.NoError(t, err)
	near(t, []float64{9, 18}, d[0])

	k.VMap = func(in []*array, axes []int) ([]*array, []int, error) {
		require.Equal(t, []int{1, grad.NoAxis}, axes)
		return arrays{ops.Multiply(in[0], num(11))}, []int{1}, nil
	}
	out := first(t, grad.VMap(callOf(k), []int{1, grad.NoAxis}, nil), mat(2, 1, 2, 3, 4), vec(0, 0))
	near(t, []float64{11, 33, 22, 44}, out)
}

func TestCustomErrors(t *testing.T) {
	k := product()
	k.VJP = func(_, cots, _ []*array) ([]*array, error) { return cots, nil }
	_, err := grad.Grad(summed(callOf(k)), nil)(arrays{vec(1), vec(1)})
	require.ErrorContains(t, err, "[custom_function] its vjp gave 1 gradient for 2 inputs")
	k.VJP = func(_, _, _ []*array) ([]*array, error) { return arrays{vec(1, 2), nil}, nil }
	_, err = grad.Grad(summed(callOf(k)), nil)(arrays{vec(1), vec(1)})
	require.ErrorContains(t, err, "[custom_function] gradient 0 has shape (2,), but the input has shape (1,)")
	k.VMap = func(in []*array, _ []int) ([]*array, []int, error) { return in[:1], []int{4}, nil }
	_, err = grad.VMap(callOf(k), nil, nil)(arrays{vec(1), vec(1)})
	require.ErrorContains(t, err, "[custom_function] its vmap gave batch axis 4 for an output of shape (1,)")
}

func TestCheckpoint(t *testing.T) {
	runs := 0
	w := vec(2, 3)
	f := func(w *array) grad.Func {
		return grad.Checkpoint(one(func(x *array) *array {
			runs++
			return ops.Sin(ops.Multiply(ops.Multiply(x, x), w))
		}))
	}
	plain := two(func(x, w *array) *array { return total(ops.Sin(ops.Multiply(ops.Multiply(x, x), w))) })
	check := two(func(x, w *array) *array {
		out, err := f(w)(arrays{x})
		require.NoError(t, err)
		return total(out[0])
	})
	x := vec(0.5, 1.5)
	want, err := grad.Grad(plain, []int{0, 1})(arrays{x, w})
	require.NoError(t, err)
	got, err := grad.Grad(check, []int{0, 1})(arrays{x, w})
	require.NoError(t, err)
	require.Equal(t, 2, runs, "the function is called again for its gradient")
	near(t, floats(t, want[0]), got[0])
	near(t, floats(t, want[1]), got[1], "an array that the function captured")

	// Second derivatives, batches and forward mode.
	second := func(f grad.Func) *array {
		return first(t, grad.Grad(summed(grad.Grad(f, nil)), nil), x, w)
	}
	near(t, floats(t, second(plain)), second(check))
	rows := mat(2, 0.1, 0.2, 0.3, 0.4)
	near(t, floats(t, first(t, grad.VMap(grad.Grad(plain, nil), []int{0, grad.NoAxis}, nil), rows, w)),
		first(t, grad.VMap(grad.Grad(check, nil), []int{0, grad.NoAxis}, nil), rows, w))
	_, a, err := grad.JVP(plain, arrays{x, w}, arrays{vec(1, 1), nil})
	require.NoError(t, err)
	_, b, err := grad.JVP(check, arrays{x, w}, arrays{vec(1, 1), nil})
	require.NoError(t, err)
	near(t, floats(t, a[0]), b[0])
}

func TestCheckpointIsNotMerged(t *testing.T) {
	// Two exps are in the gradient's graph: one that was computed again, and the first, of which it reads the shape only.
	count := func(f grad.Func) (n int) {
		g, err := grad.Grad(summed(f), nil)(arrays{vec(1, 2)})
		require.NoError(t, err)
		for _, node := range tensor.Order(g, nil) {
			if node.Op().Name() == "exp" {
				n++
			}
		}
		return n
	}
	f := one(func(x *array) *array { return ops.Sin(ops.Exp(x)) })
	require.Equal(t, 1, count(f))
	require.Equal(t, 2, count(grad.Checkpoint(f)))
}

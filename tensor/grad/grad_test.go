package grad_test

import (
	"context"
	"errors"
	"math"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/mlxlua/mlxlua/tensor"
	"github.com/mlxlua/mlxlua/tensor/grad"
	"github.com/mlxlua/mlxlua/tensor/ops"
	"github.com/mlxlua/mlxlua/tensor/optest"
)

type (
	array  = tensor.Array
	arrays = []*tensor.Array
)

// vec is a float32 vector.
func vec(v ...float32) *array { return ops.FromSlice(v, []int{len(v)}) }

func mat(rows int, v ...float32) *array { return ops.FromSlice(v, []int{rows, len(v) / rows}) }

func num(v float64) *array { return ops.Number(v, tensor.Float32) }

// floats evaluates a float32 array.
func floats(t *testing.T, x *array) []float64 {
	t.Helper()
	optest.Open(t)
	require.NoError(t, x.Err())
	require.Equal(t, tensor.Float32, x.DType())
	b, err := x.Bytes(context.Background())
	require.NoError(t, err)
	out := make([]float64, len(b)/4)
	for i := range out {
		bits := uint32(b[4*i]) | uint32(b[4*i+1])<<8 | uint32(b[4*i+2])<<16 | uint32(b[4*i+3])<<24
		out[i] = float64(math.Float32frombits(bits))
	}
	return out
}

func near(t *testing.T, want []float64, x *array, msg ...any) {
	t.Helper()
	got := floats(t, x)
	require.Len(t, got, len(want), msg...)
	for i := range want {
		require.InDelta(t, want[i], got[i], 2e-5*(1+math.Abs(want[i])), msg...)
	}
}

// one makes a Func of a function of one array.
func one(f func(x *array) *array) grad.Func {
	return func(in []*array) ([]*array, error) { return arrays{f(in[0])}, nil }
}

func two(f func(x, y *array) *array) grad.Func {
	return func(in []*array) ([]*array, error) { return arrays{f(in[0], in[1])}, nil }
}

func total(x *array) *array { return ops.Sum(x, nil, false) }

// first calls f and gives its first result.
func first(t *testing.T, f grad.Func, in ...*array) *array {
	t.Helper()
	out, err := f(in)
	require.NoError(t, err)
	return out[0]
}

func TestGrad(t *testing.T) {
	x := vec(0.5, 1, 2)
	sumSin := one(func(x *array) *array { return total(ops.Sin(x)) })
	near(t, []float64{math.Cos(0.5), math.Cos(1), math.Cos(2)}, first(t, grad.Grad(sumSin, nil), x))

	// x*x through one array used twice, and a chain.
	f := one(func(x *array) *array { return total(ops.Multiply(ops.Exp(ops.Multiply(x, x)), num(3))) })
	want := []float64{3 * math.Exp(0.25), 6 * math.Exp(1), 12 * math.Exp(4)}
	near(t, want, first(t, grad.Grad(f, nil), x), "d 3exp(x^2)")

	// One array passed twice is two arguments.
	g := two(func(x, y *array) *array { return total(ops.Multiply(x, ops.Multiply(y, y))) })
	both, err := grad.Grad(g, []int{0, 1})([]*array{x, x})
	require.NoError(t, err)
	near(t, []float64{0.25, 1, 4}, both[0])
	near(t, []float64{0.5, 2, 8}, both[1])

	// The order of argnums is that of the results; what is not used has zeros.
	triple := two(func(x, _ *array) *array { return total(ops.Multiply(x, num(3))) })
	swapped, err := grad.Grad(triple, []int{1, 0})([]*array{x, vec(1)})
	require.NoError(t, err)
	near(t, []float64{0}, swapped[0])
	near(t, []float64{3, 3, 3}, swapped[1])
}

func TestHigherDerivatives(t *testing.T) {
	g := one(func(x *array) *array { return ops.Exp(ops.Multiply(x, num(2))) })
	want := math.Exp(0.6)
	for range 4 {
		near(t, []float64{want}, first(t, g, num(0.3)))
		g, want = grad.Grad(g, nil), want*2
	}
	// Forward over reverse: the Hessian of sum(x^3) times v is 6xv.
	cube := one(func(x *array) *array { return total(ops.Multiply(x, ops.Multiply(x, x))) })
	_, hv, err := grad.JVP(grad.Grad(cube, nil), arrays{vec(1, 2)}, arrays{vec(1, -1)})
	require.NoError(t, err)
	near(t, []float64{6, -12}, hv[0])
	// Reverse over forward.
	slope := one(func(x *array) *array {
		_, d, err := grad.JVP(cube, arrays{x}, arrays{vec(1, -1)})
		require.NoError(t, err)
		return d[0]
	})
	near(t, []float64{6, -12}, first(t, grad.Grad(slope, nil), vec(1, 2)))
}

func TestNesting(t *testing.T) {
	// Perturbations are not confused: d/dx [x * d/dy (x + y)] = 1.
	f := one(func(x *array) *array {
		inner := one(func(y *array) *array { return ops.Add(x, y) })
		return ops.Multiply(x, first(t, grad.Grad(inner, nil), num(5)))
	})
	near(t, []float64{1}, first(t, grad.Grad(f, nil), num(3)))
	_, d, err := grad.JVP(f, arrays{num(3)}, arrays{num(1)})
	require.NoError(t, err)
	near(t, []float64{1}, d[0])

	// jvp of vmap of grad of x^2*y, by both: the tangent of 2xy is 2(dx y + x dy).
	g := grad.Grad(two(func(x, y *array) *array { return ops.Multiply(ops.Multiply(x, x), y) }), nil)
	_, d, err = grad.JVP(grad.VMap(g, nil, nil), arrays{vec(1, 2), vec(3, 4)}, arrays{vec(1, 0), vec(0, 1)})
	require.NoError(t, err)
	near(t, []float64{6, 4}, d[0])

	// grad of a sum of vmap equals vmap of grad.
	h := one(func(x *array) *array { return total(ops.Sin(ops.Multiply(x, x))) })
	m := mat(2, 0.1, 0.2, 0.3, 0.4)
	a := first(t, grad.Grad(one(func(x *array) *array { return total(first(t, grad.VMap(h, nil, nil), x)) }), nil), m)
	b := first(t, grad.VMap(grad.Grad(h, nil), nil, nil), m)
	near(t, floats(t, b), a)
}

func TestTracedArraysStandForTheirValues(t *testing.T) {
	var kept *array
	f := one(func(x *array) *array {
		kept = ops.Multiply(x, x)
		b, err := kept.Bytes(context.Background()) // evaluation inside of grad
		require.NoError(t, err)
		require.Len(t, b, 8)
		return total(ops.Multiply(kept, x))
	})
	optest.Open(t)
	near(t, []float64{3, 12}, first(t, grad.Grad(f, nil), vec(1, 2)))
	near(t, []float64{1, 4}, kept)
	near(t, []float64{2, 5}, ops.Add(kept, num(1)))
}

func TestVJPAndJVPArguments(t *testing.T) {
	double := one(func(x *array) *array { return ops.Add(x, x) })
	x := vec(1, 2)
	_, _, err := grad.VJP(double, arrays{x}, arrays{vec(1, 2, 3)})
	require.ErrorContains(t, err, "[vjp] cotangent 0 has shape (3,), but the output has shape (2,)")
	_, _, err = grad.VJP(double, arrays{x}, arrays{x, x})
	require.ErrorContains(t, err, "[vjp] the function has 1 output, but the number of cotangents is 2")
	_, _, err = grad.JVP(double, arrays{x}, arrays{vec(1)})
	require.ErrorContains(t, err, "[jvp] tangent 0 has shape (1,), but the input has shape (2,)")
	_, _, err = grad.JVP(double, arrays{x}, arrays{x, x})
	require.ErrorContains(t, err, "[jvp] the function has 1 input, but the number of tangents is 2")

	// A vector of another dtype is converted, and nil is zero.
	_, g, err := grad.VJP(double, arrays{x}, arrays{ops.FromSlice([]int32{1, 3}, []int{2})})
	require.NoError(t, err)
	near(t, []float64{2, 6}, g[0])
	and3 := func(in []*array) ([]*array, error) { return arrays{in[0], num(3)}, nil }
	outs, d, err := grad.JVP(and3, arrays{x}, arrays{nil})
	require.NoError(t, err)
	near(t, []float64{0, 0}, d[0])
	near(t, []float64{0}, d[1])
	near(t, []float64{3}, outs[1])

	// Integers have derivatives too, as in MLX.
	i := ops.FromSlice([]int32{1, 2}, []int{2})
	_, g, err = grad.VJP(double, arrays{i}, arrays{i})
	require.NoError(t, err)
	require.Equal(t, tensor.Int32, g[0].DType())
}

func TestGradErrors(t *testing.T) {
	id := one(func(x *array) *array { return x })
	x := vec(1, 2)
	for _, c := range []struct {
		text string
		f    grad.Func
		args []int
	}{
		{"[grad] the function must return a scalar: its result has shape (2,)", id, nil},
		{"[grad] there is no argument 1: the function was called with 1", id, []int{1}},
		{"[grad] argument index -1 is negative", id, []int{-1}},
		{"[grad] argument index 0 is given twice", id, []int{0, 0}},
		{"[grad] the function must return a scalar: it returned nothing",
			func([]*array) ([]*array, error) { return nil, nil }, nil},
		{"no such thing", func([]*array) ([]*array, error) { return nil, errors.New("no such thing") }, nil},
		{"[grad] output 0 is nil", func([]*array) ([]*array, error) { return arrays{nil}, nil }, nil},
		{"cannot be broadcast", one(func(x *array) *array { return total(ops.Add(x, vec(1, 2, 3))) }), nil},
	} {
		_, err := grad.Grad(c.f, c.args)(arrays{x})
		require.ErrorContains(t, err, c.text)
	}
	_, err := grad.Grad(id, nil)(arrays{nil})
	require.ErrorContains(t, err, "[grad] argument 0 is nil")
}

func TestVMapAxes(t *testing.T) {
	rowSum := one(func(x *array) *array { return total(x) })
	m := mat(2, 1, 2, 3, 4, 5, 6)
	near(t, []float64{6, 15}, first(t, grad.VMap(rowSum, nil, nil), m))
	near(t, []float64{5, 7, 9}, first(t, grad.VMap(rowSum, []int{-1}, nil), m))

	// Operands of different ranks, batch axes in different places, one shared.
	f := two(func(x, y *array) *array { return ops.Add(x, y) })
	out := first(t, grad.VMap(f, []int{0, 1}, []int{-1}), mat(2, 1, 2), mat(3, 10, 20, 30, 40, 50, 60))
	require.Equal(t, tensor.Shape{3, 2}, out.Spec().Shape)
	near(t, []float64{11, 22, 31, 42, 51, 62}, out)
	out = first(t, grad.VMap(f, []int{0, grad.NoAxis}, nil), vec(1, 2), mat(2, 10, 20, 30, 40))
	near(t, []float64{11, 21, 31, 41, 12, 22, 32, 42}, out)

	// What does not depend on the batch is repeated, or stays as it is.
	outs, err := grad.VMap(func(in []*array) ([]*array, error) { return arrays{in[1], in[1]}, nil }, []int{0, grad.NoAxis},
		[]int{1, grad.NoAxis})(arrays{vec(1, 2), vec(7, 8, 9)})
	require.NoError(t, err)
	near(t, []float64{7, 7, 8, 8, 9, 9}, outs[0])
	near(t, []float64{7, 8, 9}, outs[1])

	// An empty batch.
	none := ops.Zeros(tensor.Sizes(0, 3), tensor.Float32)
	empty := first(t, grad.VMap(one(func(x *array) *array { return ops.Exp(x) }), nil, nil), none)
	require.Equal(t, tensor.Shape{0, 3}, empty.Spec().Shape)
}

func TestVMapErrors(t *testing.T) {
	id := func(in []*array) ([]*array, error) { return in[:1], nil }
	m := mat(2, 1, 2, 3, 4, 5, 6)
	for _, c := range []struct {
		text     string
		in, out  []int
		args     arrays
		function grad.Func
	}{
		{"[vmap] input 0 of shape (2, 3) has no axis 2", []int{2}, nil, arrays{m}, id},
		{"[vmap] input 0 of shape () has no axis 0", nil, nil, arrays{num(1)}, id},
		{"[vmap] no input has a batch axis", []int{grad.NoAxis}, nil, arrays{m}, id},
		{"[vmap] batch axes differ in size: 2 and, for input 1 of shape (3,), 3", nil, nil, arrays{m, vec(1, 2, 3)}, id},
		{"[vmap] the function has 1 input, but the number of in_axes is 2", []int{0, 0}, nil, arrays{m}, id},
		{"[vmap] the function has 1 output, but the number of out_axes is 2", nil, []int{0, 0}, arrays{m}, id},
		{"[vmap] output 0 of shape (3,) cannot have its batch axis at 5", nil, []int{5}, arrays{m}, id},
		{"[vmap] output 0 has a batch axis", nil, []int{grad.NoAxis}, arrays{m}, id},
		{"its values are not known", nil, nil, arrays{m}, func(in []*array) ([]*array, error) {
			_, err := in[0].Bytes(context.Background())
			return in, err
		}},
	} {
		_, err := grad.VMap(c.function, c.in, c.out)(c.args)
		require.ErrorContains(t, err, c.text)
	}
	// A placeholder kept after its trace has ended is an error that says so.
	var kept *array
	_, err := grad.VMap(func(in []*array) ([]*array, error) { kept = in[0]; return in, nil }, nil, nil)(arrays{m})
	require.NoError(t, err)
	require.ErrorContains(t, ops.Add(kept, kept).Err(), "vmap trace that has ended")
}

func TestZeroGradients(t *testing.T) {
	x := vec(3, 1, 2)
	f := one(func(x *array) *array {
		index := ops.AsType(ops.ArgMax(x, nil, false), tensor.Float32)
		above := ops.AsType(ops.Greater(x, num(1.5)), tensor.Float32)
		return total(ops.Multiply(ops.Add(x, index), ops.Multiply(above, ops.StopGradient(x))))
	})
	near(t, []float64{3, 0, 2}, first(t, grad.Grad(f, nil), x))
}

// Derivatives pass through bool as MLX's do: a conversion hands them on. Rules whose numbers beside bool are integers
// are no mistakes.
func TestGradientsThroughBool(t *testing.T) {
	x := vec(1, 2, 0)
	asBool := func(x *array) *array { return ops.AsType(x, tensor.Bool) }
	for name, c := range map[string]struct {
		f    func(x *array) *array
		want []float64 // mx.grad's in MLX, which has no answer for the sum
	}{
		"astype":  {asBool, []float64{1, 1, 1}},
		"maximum": {func(x *array) *array { return ops.Maximum(asBool(x), ops.Less(x, num(1))) }, []float64{1, 1, 0}},
		"where": {func(x *array) *array {
			return ops.Where(ops.Greater(x, num(1)), asBool(x), ops.Less(x, num(1)))
		}, []float64{0, 1, 0}},
		"sum": {func(x *array) *array { return total(asBool(x)) }, []float64{1, 1, 1}},
	} {
		f := one(func(x *array) *array { return total(ops.AsType(c.f(x), tensor.Float32)) })
		near(t, c.want, first(t, grad.Grad(f, nil), x), name)
	}
}

func TestTracesAreForgotten(t *testing.T) {
	// A parameter that is updated step by step must not gather what held it.
	w := num(1)
	f := one(func(w *array) *array { return ops.Multiply(w, w) })
	for range 3 {
		w = ops.Subtract(w, ops.Multiply(first(t, grad.Grad(f, nil), w), num(0.25)))
	}
	require.False(t, tensor.Traced(w))
	near(t, []float64{0.125}, w)
}

// bare is the identity, with no rules for transforms.
var bare = tensor.Declare[tensor.None]("bare")

func init() {
	bare.Define(tensor.Rules[tensor.None]{
		Shape: func(in []tensor.Spec, _ tensor.None, outs []tensor.Shape) ([]tensor.Shape, error) {
			return append(outs, in[0].Shape), nil
		},
		DType: func(in []tensor.Spec, _ tensor.None, outs []tensor.DType) ([]tensor.DType, error) {
			return append(outs, in[0].DType), nil
		},
		View: tensor.SameView[tensor.None],
	})
}

func TestMissingRules(t *testing.T) {
	f := one(func(x *array) *array { return bare.One(tensor.Call(nil), tensor.None{}, x) })
	_, err := grad.Grad(f, nil)(arrays{num(1)})
	require.ErrorContains(t, err, "[vjp] bare has no gradient: give it one with custom_function (grad_test.go:")
	_, _, err = grad.JVP(f, arrays{num(1)}, arrays{num(1)})
	require.ErrorContains(t, err, "[jvp] bare has no derivative (grad_test.go:")
	_, err = grad.VMap(f, nil, nil)(arrays{vec(1)})
	require.ErrorContains(t, err, "[vmap] bare has no batching rule: give it one with custom_function (grad_test.go:")
	// Outputs that are integers have no slope: nothing is missing.
	g := one(func(x *array) *array {
		return ops.Multiply(x, ops.AsType(first(t, f, ops.AsType(x, tensor.Int32)), tensor.Float32))
	})
	near(t, []float64{3}, first(t, grad.Grad(g, nil), num(3)))
}

func TestDeepGraphs(t *testing.T) {
	f := one(func(x *array) *array {
		for range 20_000 {
			x = ops.Add(x, x)
			x = ops.Multiply(x, num(0.5))
		}
		return x
	})
	g, err := grad.Grad(f, nil)(arrays{num(3)})
	require.NoError(t, err)
	require.Equal(t, "float32 ()", g[0].Spec().String())
}

// Indices choose elements: by an integer argument among them there is no derivative, and MLX too says so. Indices
// that no argument's integers reach are constants.
func TestIndicesHaveNoDerivative(t *testing.T) {
	x, i := vec(3, 1, 2), ops.FromSlice([]int32{1, 0}, []int{2})
	unit, axis := num(1), 0
	for name, f := range map[string]grad.Func{
		"take": two(func(x, i *array) *array { return ops.Take(x, i, nil) }),
		"along": two(func(x, i *array) *array {
			return ops.TakeAlongAxis(x, ops.Add(i, ops.Number(0, tensor.Int32)), &axis)
		}),
		"put": two(func(x, i *array) *array { return ops.PutAlongAxis(x, i, unit, &axis) }),
		"slice": two(func(x, i *array) *array {
			return ops.DynamicSlice(x, ops.Max(i, []int{0}, true), []int{0}, tensor.Sizes(1))
		}),
		"checkpoint": grad.Checkpoint(two(func(x, i *array) *array { return ops.Take(x, i, nil) })),
	} {
		loss := func(in []*array) ([]*array, error) {
			out, err := f(in)
			if err != nil {
				return nil, err
			}
			return arrays{ops.Sum(out[0], nil, false)}, nil
		}
		_, err := grad.Grad(loss, nil)(arrays{x, i})
		require.NoError(t, err, name)
		_, _, err = grad.VJP(loss, arrays{x, i}, arrays{unit})
		require.ErrorContains(t, err, "stop_gradient", name)
		_, _, err = grad.JVP(loss, arrays{x, i}, arrays{x, i})
		require.ErrorContains(t, err, "stop_gradient", name)
		_, _, err = grad.JVP(loss, arrays{x, i}, arrays{x, nil})
		require.NoError(t, err, name)
		_, _, err = grad.VJP(func(in []*array) ([]*array, error) {
			return loss(arrays{in[0], ops.StopGradient(in[1])})
		}, arrays{x, i}, arrays{unit})
		require.NoError(t, err, name)
	}
}

// TestComputedIndices: indices that are computed from what a function is differentiated by are an error, floats in
// between or not, but where stop_gradient stands on the way; MLX 0.32.4 refuses these and takes the last two. What
// chooses elements by itself, as sort does, has derivatives, also twice.
func TestComputedIndices(t *testing.T) {
	x, axis, weights := vec(3, 1, 2), 0, vec(1, 2, 3)
	by := func(index func(x *array) *array) grad.Func {
		return one(func(x *array) *array {
			return ops.Sum(ops.Multiply(ops.Take(x, index(x), nil), weights), nil, false)
		})
	}
	order := func(x *array) *array { return ops.ArgSort(x, &axis) }
	for name, f := range map[string]grad.Func{
		"argsort": by(order),
		"argmax":  by(func(x *array) *array { return ops.ArgMax(x, nil, true) }),
		"cast": by(func(x *array) *array {
			return ops.Subtract(ops.AsType(x, tensor.Int32), ops.Number(1, tensor.Int32))
		}),
		"back": by(func(x *array) *array { return ops.AsType(ops.AsType(order(x), tensor.Float32), tensor.Int32) }),
	} {
		_, err := grad.Grad(f, nil)(arrays{x})
		require.ErrorContains(t, err, "stop_gradient", name)
		_, _, err = grad.JVP(f, arrays{x}, arrays{x})
		require.ErrorContains(t, err, "stop_gradient", name)
		_, err = grad.Grad(grad.Checkpoint(f), nil)(arrays{x})
		require.ErrorContains(t, err, "stop_gradient", name)
	}
	for name, f := range map[string]grad.Func{
		"after":  by(func(x *array) *array { return ops.StopGradient(order(x)) }),
		"before": by(func(x *array) *array { return order(ops.StopGradient(x)) }),
		"sort": one(func(x *array) *array {
			return ops.Sum(ops.Multiply(ops.Sort(x, &axis), weights), nil, false)
		}),
	} {
		g, err := grad.Grad(f, nil)(arrays{x})
		require.NoError(t, err, name)
		near(t, []float64{3, 1, 2}, g[0], name)
		_, tans, err := grad.JVP(f, arrays{x}, arrays{vec(1, 10, 100)})
		require.NoError(t, err, name)
		near(t, []float64{213}, tans[0], name)
		_, err = grad.Grad(func(in []*array) ([]*array, error) {
			g, err := grad.Grad(f, nil)(in)
			if err != nil {
				return nil, err
			}
			return arrays{ops.Sum(ops.Square(g[0]), nil, false)}, nil
		}, nil)(arrays{x})
		require.NoError(t, err, name)
	}
}

// A tangent of bools has the tangents' dtype, so that a script can compute with it.
func TestTangentsOfBools(t *testing.T) {
	x := vec(1, -2)
	for name, f := range map[string]func(a, b *array, ctx ...*tensor.Ctx) *array{
		"greater": ops.Greater, "equal": ops.Equal, "logical_and": ops.LogicalAnd,
	} {
		_, tans, err := grad.JVP(one(func(x *array) *array { return f(x, num(0)) }), arrays{x}, arrays{x})
		require.NoError(t, err, name)
		near(t, []float64{0, 0}, ops.Negative(tans[0]), name)
	}
}

// TestProdGradient: the products of the others, where the whole product overflows or is 0, and along several axes.
func TestProdGradient(t *testing.T) {
	product := func(axes ...int) grad.Func {
		return one(func(x *array) *array { return ops.Sum(ops.Prod(x, axes, false), nil, false) })
	}
	of := func(x *array, axes ...int) *array {
		g, err := grad.Grad(product(axes...), nil)(arrays{x})
		require.NoError(t, err)
		return g[0]
	}
	near(t, []float64{1e20, 1e30}, of(vec(1e30, 1e20), 0))
	near(t, []float64{1e-30, 1e-20}, of(vec(1e-20, 1e-30), 0))
	near(t, []float64{6, 0, 0, 0}, of(vec(0, 1, 2, 3), 0))
	near(t, []float64{24, 12, 8, 6}, of(mat(2, 1, 2, 3, 4)))
	x := ops.FromSlice([]float32{1, 2, 3, 4, 5, 6, 7, 8}, []int{2, 2, 2})
	near(t, []float64{60, 30, 224, 168, 12, 10, 96, 84}, of(x, 2, 0))
	// the second derivative by the first element
	g, err := grad.Grad(func(in []*array) ([]*array, error) {
		g, err := grad.Grad(product(0), nil)(in)
		return arrays{ops.Sum(ops.Multiply(g[0], vec(1, 0, 0)), nil, false)}, err
	}, nil)(arrays{vec(2, 0, 3)})
	require.NoError(t, err)
	near(t, []float64{0, 3, 0}, g[0])
}

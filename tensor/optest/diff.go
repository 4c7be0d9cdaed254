package optest

import (
	"fmt"
	"math"
	"math/cmplx"
	"slices"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/mlxlua/mlxlua/tensor"
	"github.com/mlxlua/mlxlua/tensor/grad"
)

// problem is a case, ready to be differentiated: a function of the inputs that are differentiated.
type problem struct {
	f    grad.Func
	x    []tensor.Spec
	at   [][]complex128
	cots [][]complex128 // weights of the outputs' elements
	outs []tensor.Spec
}

func newProblem(t *testing.T, op Subject, c Case) problem {
	t.Helper()
	in := c.arrays(op.FD, c.sizes(nil))
	specs := c.specs(op.FD, c.sizes(nil))
	var p problem
	var index []int
	for i, x := range c.Inputs {
		if !x.konst {
			index = append(index, i)
			p.x = append(p.x, specs[i])
			p.at = append(p.at, x.gen.values(i, specs[i].Shape.Size(), specs[i].DType))
		}
	}
	fn, fixed := op.Fn, in
	p.f = func(x []*tensor.Array) ([]*tensor.Array, error) {
		in := slices.Clone(fixed)
		for k, i := range index {
			in[i] = x[k]
		}
		return fn(in), nil
	}
	outs, err := p.f(p.arrays(p.at))
	require.NoError(t, err)
	for k, y := range outs {
		require.NoError(t, y.Err())
		p.outs = append(p.outs, y.Spec())
		p.cots = append(p.cots, Uniform(-2, 2).values(50+k, y.Spec().Shape.Size(), y.DType()))
	}
	return p
}

func (p problem) arrays(v [][]complex128) []*tensor.Array {
	out := make([]*tensor.Array, len(v))
	for i, s := range p.x {
		out[i] = array(s, v[i])
	}
	return out
}

func (p problem) cotangents() []*tensor.Array {
	out := make([]*tensor.Array, len(p.outs))
	for i, s := range p.outs {
		out[i] = array(s, p.cots[i])
	}
	return out
}

// directions are ways to move the inputs: three into all dimensions, and two along single elements.
func (p problem) directions() [][][]complex128 {
	var out [][][]complex128
	for d := range 3 {
		v := make([][]complex128, len(p.x))
		for i, s := range p.x {
			v[i] = Uniform(-1, 1).values(60+10*d+i, s.Shape.Size(), s.DType)
		}
		out = append(out, v)
	}
	for d := range 2 {
		v := make([][]complex128, len(p.x))
		for i, s := range p.x {
			n := s.Shape.Size()
			if v[i] = make([]complex128, n); n > 0 && i == d%len(p.x) {
				v[i][(n-1)*(1-d)] = 1
			}
		}
		out = append(out, v)
	}
	return out
}

func (p problem) moved(v [][]complex128, h float64) []*tensor.Array {
	x := make([][]complex128, len(p.at))
	for i := range x {
		x[i] = slices.Clone(p.at[i])
		for k := range x[i] {
			x[i][k] += complex(h, 0) * v[i][k]
		}
	}
	return p.arrays(x)
}

// dot is the real inner product.
func dot(a, b []complex128) float64 {
	s := 0.0
	for i := range a {
		s += real(a[i])*real(b[i]) + imag(a[i])*imag(b[i])
	}
	return s
}

func norm(a []complex128) float64 {
	s := 0.0
	for _, z := range a {
		s += real(z * cmplx.Conj(z))
	}
	return math.Sqrt(s)
}

// step and slack of finite differences.
func fdStep(d tensor.DType) (h, slack float64) {
	if d == tensor.Float64 {
		return 1.0 / (1 << 16), 2e-6
	}
	return 1.0 / (1 << 6), 2e-2
}

// slope is the derivative of the weighted sum of g's outputs along a direction by finite differences.
func (p problem) slopes(t *testing.T, d tensor.DType, g grad.Func, weights [][]complex128) []float64 {
	t.Helper()
	h, _ := fdStep(d)
	var all []*tensor.Array
	dirs := p.directions()
	for _, v := range dirs {
		for _, s := range []float64{h, -h} {
			outs, err := g(p.moved(v, s))
			require.NoError(t, err)
			all = append(all, outs...)
		}
	}
	res := evaluate(t, all)
	out := make([]float64, len(dirs))
	for i := range dirs {
		for _, sign := range []float64{1, -1} {
			for k, w := range weights {
				out[i] += sign * dot(w, res[k].values()) / (2 * h)
			}
			res = res[len(weights):]
		}
	}
	return out
}

// along is the sum over inputs of <grad, direction>, and how large it could be.
func along(grads []result, v [][]complex128) (sum, scale float64) {
	for i, g := range grads {
		sum += dot(g.values(), v[i])
		scale += norm(g.values()) * norm(v[i])
	}
	return sum, scale
}

func (p problem) requireAlong(t *testing.T, d tensor.DType, want []float64, grads []result, what string) {
	t.Helper()
	_, slack := fdStep(d)
	for i, v := range p.directions() {
		got, scale := along(grads, v)
		require.False(t, math.IsNaN(got), "%s is NaN", what)
		if math.Abs(got-want[i]) > slack*(1+scale) {
			require.Fail(t, fmt.Sprintf("%s along direction %d is %v, finite differences give %v", what, i, got, want[i]),
				"at %v\ngradients %v", p.at, grads)
		}
	}
}

// checkGradient compares vjp with finite differences, jvp with vjp, and the gradients' shapes and dtypes with the
// inputs'.
func checkGradient(t *testing.T, op Subject) {
	for ci, c := range op.Cases {
		p := newProblem(t, op, c)
		if len(p.x) == 0 {
			continue
		}
		want := p.slopes(t, op.FD, p.f, p.cots)
		_, gs, err := grad.VJP(p.f, p.arrays(p.at), p.cotangents())
		require.NoError(t, err)
		grads := evaluate(t, gs)
		for i, g := range grads {
			require.Equal(t, p.x[i].String(), g.spec.String(), "case %d, gradient %d", ci, i)
		}
		p.requireAlong(t, op.FD, want, grads, fmt.Sprintf("case %d: vjp", ci))

		_, slack := fdStep(op.FD)
		for i, v := range p.directions() {
			outs, tans, err := grad.JVP(p.f, p.arrays(p.at), p.arrays(v))
			require.NoError(t, err)
			require.Len(t, tans, len(outs))
			forward := 0.0
			for k, r := range evaluate(t, tans) {
				require.Equal(t, p.outs[k].String(), r.spec.String(), "case %d, tangent %d", ci, k)
				forward += dot(p.cots[k], r.values())
			}
			back, scale := along(grads, v)
			require.InDelta(t, back, forward, slack*(1+scale)*1e-2, "case %d: u.Jv and v.J'u, direction %d", ci, i)
		}
	}
}

// checkZeroGradient wants zeros from vjp and jvp.
func checkZeroGradient(t *testing.T, op Subject) {
	for ci, c := range op.Cases {
		p := newProblem(t, op, c)
		if len(p.x) == 0 {
			continue
		}
		_, gs, err := grad.VJP(p.f, p.arrays(p.at), p.cotangents())
		require.NoError(t, err)
		_, tans, err := grad.JVP(p.f, p.arrays(p.at), p.arrays(p.at))
		require.NoError(t, err)
		for i, r := range evaluate(t, append(gs, tans...)) {
			for _, z := range r.values() {
				require.Zero(t, z, "case %d, result %d", ci, i)
			}
		}
	}
}

// checkSecond compares the gradient of a weighted sum of gradients with finite differences of the gradients, in
// reverse over reverse and forward over reverse.
func checkSecond(t *testing.T, op Subject) {
	for ci, c := range op.Cases {
		p := newProblem(t, op, c)
		if len(p.x) == 0 {
			continue
		}
		first := func(x []*tensor.Array) ([]*tensor.Array, error) {
			_, g, err := grad.VJP(p.f, x, p.cotangents())
			return g, err
		}
		weights := make([][]complex128, len(p.x))
		for i, s := range p.x {
			weights[i] = Uniform(-2, 2).values(90+i, s.Shape.Size(), s.DType)
		}
		want := p.slopes(t, op.FD, first, weights)
		_, gs, err := grad.VJP(first, p.arrays(p.at), p.arrays(weights))
		require.NoError(t, err)
		grads := evaluate(t, gs)
		p.requireAlong(t, op.FD, want, grads, fmt.Sprintf("case %d: second derivative", ci))
		v := p.directions()[0]
		_, tans, err := grad.JVP(first, p.arrays(p.at), p.arrays(v))
		require.NoError(t, err)
		forward := 0.0
		for k, r := range evaluate(t, tans) {
			forward += dot(weights[k], r.values())
		}
		back, scale := along(grads, v)
		_, slack := fdStep(op.FD)
		require.InDelta(t, back, forward, slack*(1+scale), "case %d: forward over reverse", ci)
	}
}

package optest

import (
	"fmt"
	"slices"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/mlxlua/mlxlua/compile"
	"github.com/mlxlua/mlxlua/tensor"
	"github.com/mlxlua/mlxlua/tensor/grad"
)

// resizings are the sizes that a case is traced at and then replayed at: every named size from its default to 1,
// from 1 to its default, and to 9, which is past the 8 elements where kernels take their arguments in another way.
func resizings(c Case) [][2]map[string]int {
	var names []string
	for _, in := range c.Inputs {
		names = append(names, in.names()...)
	}
	slices.Sort(names)
	names = slices.Compact(names)
	all := func(n int) map[string]int {
		m := map[string]int{}
		for _, name := range names {
			m[name] = n
		}
		return m
	}
	out := [][2]map[string]int{{nil, all(1)}, {all(1), nil}, {all(1), all(9)}, {all(9), all(2)}}
	if len(names) > 1 {
		out = append(out, [2]map[string]int{nil, {names[0]: 9}}, [2]map[string]int{{names[0]: 1}, {names[len(names)-1]: 1}})
	}
	return out
}

// checkReplay traces the op, and its gradient, under compile(shapeless) at one shape and calls it at another: the
// function does not run again, and the results are those of a plain call there.
func checkReplay(t *testing.T, op Subject) {
	f := func(in []*tensor.Array) ([]*tensor.Array, error) { return op.Fn(in), nil }
	for ci, c := range op.Cases {
		for _, sizes := range resizings(c) {
			from, to := c.sizes(sizes[0]), c.sizes(sizes[1])
			a, b := c.arrays(op.DTypes[0], from), c.arrays(op.DTypes[0], to)
			what := fmt.Sprintf("case %d from %v to %v", ci, from, to)
			replay(t, op, f, a, b, what)
			if op.NonDiff || !op.DTypes[0].IsInexact() || !op.differentiable() {
				continue
			}
			// The cotangents are inputs too: their shapes follow.
			n := len(a)
			g := func(in []*tensor.Array) ([]*tensor.Array, error) {
				return inexactGradients(f, in[:n:n], in[n:])
			}
			replay(t, op, g, append(a, cotsFor(t, op, a)...), append(b, cotsFor(t, op, b)...), "gradient of "+what)
		}
	}
}

// inexactGradients are the gradients of f's inputs of inexact dtypes: of others they are zero, or asking is an error.
func inexactGradients(f grad.Func, in, cots []*tensor.Array) ([]*tensor.Array, error) {
	var places []int
	var by []*tensor.Array
	for i, x := range in {
		if x.DType().IsInexact() {
			places, by = append(places, i), append(by, x)
		}
	}
	_, grads, err := grad.VJP(func(x []*tensor.Array) ([]*tensor.Array, error) {
		all := slices.Clone(in)
		for k, i := range places {
			all[i] = x[k]
		}
		return f(all)
	}, by, cots)
	return grads, err
}

func cotsFor(t *testing.T, op Subject, in []*tensor.Array) []*tensor.Array {
	t.Helper()
	outs := op.Fn(in)
	cots := make([]*tensor.Array, len(outs))
	for i, y := range outs {
		require.NoError(t, y.Err())
		s := y.Spec()
		cots[i] = array(s, Uniform(-2, 2).values(50+i, s.Shape.Size(), s.DType))
	}
	return cots
}

func replay(t *testing.T, op Subject, f grad.Func, a, b []*tensor.Array, what string) {
	t.Helper()
	runs := 0
	fn := compile.New(func(in []*tensor.Array) ([]*tensor.Array, error) {
		runs++
		return f(in)
	}, compile.Options{Shapeless: true})
	for _, in := range [][]*tensor.Array{a, b} {
		got, err := fn.Call(nil, in...)
		require.NoError(t, err, what)
		want, err := f(in)
		require.NoError(t, err, what)
		w, g := evaluate(t, want), evaluate(t, got)
		require.Len(t, g, len(w))
		for i := range w {
			same(t, w[i], g[i], op.tol(w[i].spec.DType), "%s, output %d", what, i)
		}
	}
	require.Equal(t, 1, runs, "%s: the function ran again at the second shape:\n%s", what, fn.Explain(nil, false))
}

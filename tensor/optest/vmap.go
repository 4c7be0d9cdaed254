package optest

import (
	"fmt"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/mlxlua/mlxlua/tensor"
	"github.com/mlxlua/mlxlua/tensor/grad"
)

// batchSize is the batches' size: odd, and not one of the default sizes.
const batchSize = 2

// maxBatchings bounds the combinations of axes that are tried for a case.
const maxBatchings = 20

// checkVMap compares vmap with a loop, over combinations of batch axes, and vmap of the gradient with a loop of
// gradients.
func checkVMap(t *testing.T, op Subject) {
	d := op.DTypes[0]
	for ci, c := range op.Cases {
		specs := c.specs(d, c.sizes(nil))
		f := func(in []*tensor.Array) ([]*tensor.Array, error) { return op.Fn(in), nil }
		checkBatchings(t, op, c, specs, f, fmt.Sprintf("case %d", ci), batchings(c, specs))
		p := newProblem(t, op, c)
		if op.NonDiff || len(p.x) == 0 || !d.IsInexact() {
			continue
		}
		g := func(in []*tensor.Array) ([]*tensor.Array, error) {
			cots := make([]*tensor.Array, len(p.outs))
			for i, s := range p.outs {
				out := op.Fn(in)[i]
				cots[i] = array(tensor.Spec{Shape: s.Shape, DType: out.DType()}, p.cots[i])
			}
			return inexactGradients(f, in, cots)
		}
		first := make([]int, len(specs))
		for i, in := range c.Inputs {
			if in.whole {
				first[i] = grad.NoAxis
			}
		}
		checkBatchings(t, op, c, specs, g, fmt.Sprintf("gradient of case %d", ci), [][]int{first})
	}
}

// batchings lists combinations of batch axes.
func batchings(c Case, specs []tensor.Spec) [][]int {
	all := [][]int{{}}
	for i, s := range specs {
		choices := []int{grad.NoAxis}
		if !c.Inputs[i].whole {
			for a := range len(s.Shape) + 1 {
				choices = append(choices, a)
			}
		}
		var next [][]int
		for _, head := range all {
			for _, a := range choices {
				next = append(next, append(head[:len(head):len(head)], a))
			}
		}
		all = next
	}
	all = all[1:] // no input has a batch axis
	if n := len(all); n > maxBatchings {
		some := make([][]int, maxBatchings)
		for i := range some {
			some[i] = all[i*(n-1)/(maxBatchings-1)]
		}
		all = some
	}
	return all
}

func checkBatchings(t *testing.T, op Subject, c Case, specs []tensor.Spec, f grad.Func, what string, combos [][]int) {
	t.Helper()
	var got, want []*tensor.Array
	var names []string
	for _, axes := range combos {
		in := make([]*tensor.Array, len(specs))
		each := make([][]*tensor.Array, batchSize)
		for b := range each {
			each[b] = make([]*tensor.Array, len(specs))
		}
		for i, s := range specs {
			n := s.Shape.Size()
			if axes[i] == grad.NoAxis {
				in[i] = array(s, c.Inputs[i].gen.values(i, n, s.DType))
				for b := range each {
					each[b][i] = in[i]
				}
				continue
			}
			v := c.Inputs[i].gen.values(i, n*batchSize, s.DType)
			for b := range each {
				each[b][i] = array(s, v[b*n:(b+1)*n])
			}
			in[i] = array(withAxis(s, axes[i]), batchAt(s.Shape, v, axes[i]))
		}
		outs, err := grad.VMap(f, axes, nil)(in)
		require.NoError(t, err, "%s, axes %v", what, axes)
		got = append(got, outs...)
		for k := range outs {
			names = append(names, fmt.Sprintf("%s, axes %v, output %d", what, axes, k))
		}
		for b := range each {
			outs, err := f(each[b])
			require.NoError(t, err)
			want = append(want, outs...)
		}
	}
	g, w := evaluate(t, got), evaluate(t, want)
	perCombo := len(g) / len(combos)
	for ci := range combos {
		for k := range perCombo {
			at := ci*perCombo + k
			full := g[at]
			require.Equal(t, batchSize, full.spec.Shape[0], "%s", names[at])
			size := len(full.bytes) / batchSize
			for b := range batchSize {
				part := result{tensor.Spec{Shape: full.spec.Shape[1:], DType: full.spec.DType}, full.bytes[b*size : (b+1)*size]}
				same(t, w[(ci*batchSize+b)*perCombo+k], part, op.tol(part.spec.DType), "%s, call %d", names[at], b)
			}
		}
	}
}

func withAxis(s tensor.Spec, axis int) tensor.Spec {
	shape := append(tensor.Shape{}, s.Shape[:axis]...)
	shape = append(append(shape, batchSize), s.Shape[axis:]...)
	return tensor.Spec{Shape: shape, DType: s.DType}
}

// batchAt moves v's leading batch axis to another place.
func batchAt(s tensor.Shape, v []complex128, axis int) []complex128 {
	inner := tensor.Shape(s[axis:]).Size()
	outer := tensor.Shape(s[:axis]).Size()
	out := make([]complex128, 0, len(v))
	for o := range outer {
		for b := range batchSize {
			at := (b*outer + o) * inner
			out = append(out, v[at:at+inner]...)
		}
	}
	return out
}

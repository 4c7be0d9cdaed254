package rooms_test

import (
	"fmt"
	"strings"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/mlxlua/mlxlua/tensor"
	"github.com/mlxlua/mlxlua/tensor/grad"
	"github.com/mlxlua/mlxlua/tensor/ops"
	"github.com/mlxlua/mlxlua/tensor/ops/sig"
	"github.com/mlxlua/mlxlua/tensor/optest"
)

type array = tensor.Array

// ruled is a call whose derivative and batching rules TestRules tries, at certain shapes.
type ruled struct {
	call *optest.GoldenCall
	in   []tensor.Spec
}

func (r ruled) String() string { return fmt.Sprint(r.call, " of ", r.in) }

func (r ruled) f(in []*array) ([]*array, error) { return r.call.Make(sig.Lookup, in, false) }

// ruledCalls are the golden calls of float32 arrays that MLX does not refuse, once for each shape.
func ruledCalls(t *testing.T) []ruled {
	t.Helper()
	var out []ruled
	seen := map[string]bool{}
	for _, c := range optest.GoldenCalls(t) {
		for i := range c.Cases {
			r := ruled{c, c.Specs(t, i)}
			floats := len(r.in) > 0 && !c.Cases[i].Refused
			for _, s := range r.in {
				floats = floats && (s.DType == tensor.Float32 || !s.DType.IsInexact())
			}
			if floats && !seen[r.String()] {
				seen[r.String()] = true
				out = append(out, r)
			}
		}
	}
	return out
}

// TestRules builds first and second derivatives and batches of every function and compares the shapes and dtypes: a
// gradient is like its input, a tangent like its output, and a batch like its examples.
func TestRules(t *testing.T) {
	optest.Open(t)
	trace := tensor.NewTrace("test", nil)
	defer trace.End()
	calls := ruledCalls(t)
	require.Greater(t, len(calls), 500)
	for _, r := range calls {
		t.Run(r.call.Fn, func(t *testing.T) { rules(t, trace, r) })
	}
}

func rules(t *testing.T, trace *tensor.Trace, r ruled) {
	t.Helper()
	in := make([]*array, len(r.in))
	for i, s := range r.in {
		in[i] = trace.Placeholder(&tensor.Ctx{}, s)
	}
	outs, err := r.f(in)
	require.NoError(t, err, r)
	if len(outs) == 0 { // of unstack, along a dimension of size 0
		return
	}
	require.NoError(t, outs[0].Err(), r)
	if outs[0].DType().IsInexact() && r.in[0].DType.IsInexact() && r.call.Fn != "view" { // which has no derivative
		derivatives(t, r, in, outs)
	}
	for axes := range batchings(min(len(in), 3)) {
		batch(t, r, trace, axes, outs)
	}
}

func like(x *array) *array { return ops.OnesLike(x) }

func likeAll(xs []*array) []*array {
	out := make([]*array, len(xs))
	for i, x := range xs {
		out[i] = like(x)
	}
	return out
}

// derivatives are by the inputs that have any.
func derivatives(t *testing.T, r ruled, in, outs []*array) {
	t.Helper()
	var x []*array
	var at []int
	for i, s := range r.in {
		if s.DType.IsInexact() {
			x, at = append(x, in[i]), append(at, i)
		}
	}
	f := func(x []*array) ([]*array, error) {
		all := append([]*array{}, in...)
		for k, i := range at {
			all[i] = x[k]
		}
		return r.f(all)
	}
	first := func(x []*array) ([]*array, error) {
		_, grads, err := grad.VJP(f, x, likeAll(outs))
		return grads, err
	}
	grads, err := first(x)
	require.NoError(t, err, r)
	for i, g := range grads {
		require.Equal(t, x[i].Spec(), g.Spec(), "gradient %d of %v", i, r)
	}
	tangents := func(tans []*array, what string) {
		_, y, err := grad.JVP(f, x, tans)
		require.NoError(t, err, r)
		for i := range y {
			require.Equal(t, outs[i].Spec(), y[i].Spec(), "%s of %v", what, r)
		}
	}
	tangents(likeAll(x), "tangent")
	for i := range x { // of one input only
		one := make([]*array, len(x))
		one[i] = like(x[i])
		tangents(one, "tangent of one input")
	}
	_, second, err := grad.JVP(first, x, likeAll(x))
	require.NoError(t, err, r)
	for i, g := range second {
		require.Equal(t, x[i].Spec(), g.Spec(), "second derivative %d of %v", i, r)
	}
}

// batchings gives each way to batch n inputs along axis 0, 1 or not at all, but all not at all.
func batchings(n int) func(yield func(axes []int) bool) {
	return func(yield func(axes []int) bool) {
		ways := 1
		for range n {
			ways *= 3
		}
		for w := 1; w < ways; w++ {
			axes := make([]int, n)
			for i, k := 0, w; i < n; i, k = i+1, k/3 {
				axes[i] = []int{grad.NoAxis, 0, 1}[k%3]
			}
			if !yield(axes) {
				return
			}
		}
	}
}

// batch batches the first inputs, at most three.
func batch(t *testing.T, r ruled, trace *tensor.Trace, axes []int, want []*array) {
	t.Helper()
	if strings.HasPrefix(r.call.Fn, "random.") { // a batch of keys is another matter: see package random
		return
	}
	in, all := make([]*array, len(r.in)), make([]int, len(r.in))
	for i, s := range r.in {
		all[i] = grad.NoAxis
		shape := s.Shape.Clone()
		if i < len(axes) {
			switch axis := axes[i]; {
			case axis == 0 || axis == 1 && len(shape) == 0:
				shape = append(tensor.Shape{7}, shape...)
				all[i] = 0
			case axis == 1:
				shape = append(tensor.Shape{shape[0], 7}, shape[1:]...)
				all[i] = 1
			}
		}
		in[i] = trace.Placeholder(&tensor.Ctx{}, tensor.Spec{Shape: shape, DType: s.DType})
	}
	out, err := grad.VMap(r.f, all, nil)(in)
	require.NoError(t, err, "%v over %v", r, all)
	require.Len(t, out, len(want))
	for i, y := range out {
		require.Equal(t, want[i].DType(), y.DType(), "%v over %v", r, all)
		require.Equal(t, append(tensor.Shape{7}, want[i].Spec().Shape...), y.Spec().Shape, "%v over %v", r, all)
	}
}

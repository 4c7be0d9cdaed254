package ops_test

import (
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/mlxlua/mlxlua/tensor"
	"github.com/mlxlua/mlxlua/tensor/grad"
	"github.com/mlxlua/mlxlua/tensor/ops"
)

// ruled is a call whose derivative and batching rules TestRules tries.
type ruled struct {
	name string
	f    func(in []*array) *array
	in   []tensor.Shape
}

func shapes(s ...tensor.Shape) []tensor.Shape { return s }

func ruledCalls() []ruled {
	var calls []ruled
	for name, f := range unaryFuncs {
		for _, s := range shapes(tensor.Shape{}, tensor.Shape{2, 3}, tensor.Shape{0, 2}) {
			calls = append(calls, ruled{name, func(in []*array) *array { return f(in[0]) }, shapes(s)})
		}
	}
	for name, f := range binaryFuncs {
		for _, s := range [][]tensor.Shape{{{2, 3}, {2, 3}}, {{2, 1}, {3}}, {{}, {2, 1}}, {{3}, {4, 1, 1}}} {
			calls = append(calls, ruled{name, func(in []*array) *array { return f(in[0], in[1]) }, s})
		}
	}
	for name, f := range reduceFuncs {
		for _, axes := range [][]int{nil, {0}, {-1}, {2, 0}, {}} {
			for _, keep := range []bool{false, true} {
				call := func(in []*array) *array { return f(in[0], axes, keep) }
				calls = append(calls, ruled{name, call, shapes(tensor.Shape{2, 3, 4})})
			}
		}
	}
	other := func(name string, f func(in []*array) *array, in ...tensor.Shape) {
		calls = append(calls, ruled{name, f, in})
	}
	type s = tensor.Shape
	other("where", func(in []*array) *array { return ops.Where(in[0], in[1], in[2]) }, s{2, 1}, s{3}, s{})
	other("astype", func(in []*array) *array { return ops.AsType(in[0], tensor.Float16) }, s{2})
	other("stop_gradient", func(in []*array) *array { return ops.StopGradient(in[0]) }, s{2})
	other("reshape", func(in []*array) *array { return ops.Reshape(in[0], tensor.Sizes(3, -1)) }, s{2, 3})
	other("reshape", func(in []*array) *array { return ops.Reshape(in[0], tensor.ShapeOf(in[1])) }, s{2, 3}, s{3, 2})
	other("flatten", func(in []*array) *array { return ops.Flatten(in[0], 1, -1) }, s{2, 3, 4})
	other("flatten", func(in []*array) *array { return ops.Flatten(in[0], 0, -1) }, s{})
	other("transpose", func(in []*array) *array { return ops.Transpose(in[0], []int{2, 0, 1}) }, s{2, 3, 4})
	other("transpose", func(in []*array) *array { return ops.Transpose(in[0], nil) }, s{2, 3, 4})
	other("expand_dims", func(in []*array) *array { return ops.ExpandDims(in[0], []int{0, -1}) }, s{2, 3})
	other("squeeze", func(in []*array) *array { return ops.Squeeze(in[0], []int{-1}) }, s{2, 1})
	other("broadcast_to", func(in []*array) *array { return ops.BroadcastTo(in[0], tensor.Sizes(2, 4, 3)) }, s{4, 1})
	broadcast := func(in []*array) *array { return ops.BroadcastTo(in[0], tensor.ShapeOf(in[1])) }
	other("broadcast_to", broadcast, s{3}, s{2, 3})
	other("sum_to", func(in []*array) *array { return ops.SumTo(in[0], tensor.ShapeOf(in[1])) }, s{2, 4, 3}, s{4, 1})
	other("zeros_like", func(in []*array) *array { return ops.ZerosLike(in[0]) }, s{2, 3})
	parts := []ops.Part{ops.At(-1), ops.NewAxis(), ops.Span(ops.None, ops.None, -2)}
	other("slice", func(in []*array) *array { return ops.Slice(in[0], parts) }, s{2, 5, 3})
	other("slice_update", func(in []*array) *array { return ops.SliceUpdate(in[0], in[1], parts) }, s{2, 5, 3}, s{3, 1})
	return calls
}

// TestRules builds first and second derivatives and batches of every op and compares the shapes and dtypes: a
// gradient is like its input, a tangent like its output, and a batch like its examples.
func TestRules(t *testing.T) {
	trace := tensor.NewTrace("test", nil)
	defer trace.End()
	for _, r := range ruledCalls() {
		in := make([]*array, len(r.in))
		for i, s := range r.in {
			in[i] = trace.Placeholder(&ctx{}, tensor.Spec{Shape: s, DType: tensor.Float32})
		}
		f := func(in []*array) ([]*array, error) { return []*array{r.f(in)}, nil }
		out := r.f(in)
		require.NoError(t, out.Err(), r.name)
		if out.DType().IsInexact() {
			derivatives(t, r, f, in, out)
		}
		for axes := range batchings(len(in)) {
			batch(t, r, trace, f, axes, out.Spec())
		}
	}
}

func like(x *array) *array { return ops.OnesLike(x) }

func derivatives(t *testing.T, r ruled, f grad.Func, in []*array, out *array) {
	tans := make([]*array, len(in))
	for i, x := range in {
		tans[i] = like(x)
	}
	first := func(in []*array) ([]*array, error) {
		_, grads, err := grad.VJP(f, in, []*array{like(out)})
		return grads, err
	}
	grads, err := first(in)
	require.NoError(t, err, r.name)
	for i, g := range grads {
		require.Equal(t, in[i].Spec(), g.Spec(), "gradient %d of %s", i, r.name)
	}
	_, y, err := grad.JVP(f, in, tans)
	require.NoError(t, err, r.name)
	require.Equal(t, out.Spec(), y[0].Spec(), "tangent of %s", r.name)
	for i := range in { // the tangent of one operand only
		one := make([]*array, len(in))
		one[i] = tans[i]
		_, y, err := grad.JVP(f, in, one)
		require.NoError(t, err, r.name)
		require.Equal(t, out.Spec(), y[0].Spec(), "tangent %d of %s", i, r.name)
	}
	_, second, err := grad.JVP(first, in, tans)
	require.NoError(t, err, r.name)
	for i, g := range second {
		require.Equal(t, in[i].Spec(), g.Spec(), "second derivative %d of %s", i, r.name)
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

func batch(t *testing.T, r ruled, trace *tensor.Trace, f grad.Func, axes []int, want tensor.Spec) {
	in := make([]*array, len(axes))
	for i, axis := range axes {
		s := r.in[i].Clone()
		switch {
		case axis == 0 || axis == 1 && len(s) == 0:
			s = append(tensor.Shape{7}, s...)
			axes[i] = 0
		case axis == 1:
			s = append(tensor.Shape{s[0], 7}, s[1:]...)
		}
		in[i] = trace.Placeholder(&ctx{}, tensor.Spec{Shape: s, DType: tensor.Float32})
	}
	out, err := grad.VMap(f, axes, nil)(in)
	require.NoError(t, err, "%s over %v", r.name, axes)
	require.Equal(t, want.DType, out[0].DType(), "%s over %v", r.name, axes)
	require.Equal(t, append(tensor.Shape{7}, want.Shape...), out[0].Spec().Shape, "%s over %v", r.name, axes)
}

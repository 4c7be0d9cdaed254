package fast_test

import (
	"fmt"
	"testing"

	"github.com/mlxlua/mlxlua/internal/brief"
	"github.com/mlxlua/mlxlua/tensor"
	"github.com/mlxlua/mlxlua/tensor/ops"
	"github.com/mlxlua/mlxlua/tensor/ops/fast"
	"github.com/mlxlua/mlxlua/tensor/optest"
)

// attentionSize is a size of attention but for the queries.
type attentionSize struct{ heads, kvHeads, keys, depth, width int }

// attentions is attention of noise with every kind of mask and with sinks, keys lying by heads and apart.
func (s attentionSize) attentions(d tensor.DType, queries int) func(c *tensor.Ctx) map[string]*tensor.Array {
	return func(c *tensor.Ctx) map[string]*tensor.Array {
		q := optest.Noise(d, 2, s.heads, queries, s.depth)
		keys, v := optest.Noise(d, 2, s.kvHeads, s.keys, s.depth), optest.Noise(d, 2, s.kvHeads, s.keys, s.width)
		turned := ops.SwapAxes(ops.Contiguous(ops.SwapAxes(keys, 1, 2, c), false, c), 1, 2, c)
		added := optest.Noise(d, 2, 1, queries, s.keys)
		sinks := optest.Noise(d, s.heads)
		seen := ops.Greater(added, ops.Scalar(0, added, c), c)
		all := map[string]*tensor.Array{}
		for name, opt := range map[string]fast.AttentionOptions{
			"plain": {}, "causal": {Causal: true}, "bool": {Mask: seen}, "added": {Mask: added},
			"sinks": {Sinks: sinks}, "causal, sinks": {Causal: true, Sinks: sinks},
		} {
			what := fmt.Sprint(s, " of ", queries, ", ", d, ", ", name)
			all[what] = fast.ScaledDotProductAttention(q, keys, v, 0.3, opt, c)
			all[what+", keys of heads apart"] = fast.ScaledDotProductAttention(q, turned, v, 0.3, opt, c)
		}
		return all
	}
}

// TestPlainAttention: the kernels for the host's processors give the plain kernel's bytes, with every kind of mask,
// with sinks, for both classes of queries, sizes that fill SIMD-groups and that do not, and every dtype.
func TestPlainAttention(t *testing.T) {
	brief.OnlyValues(t)
	sizes := []attentionSize{
		{4, 2, 75, 64, 64}, {2, 2, 33, 40, 37}, {3, 1, 130, 300, 290}, {2, 1, 9, 128, 8},
	}
	for i, s := range sizes {
		for k, queries := range []int{1, 5, 16, 17, 42} {
			if optest.Spared(i + k) {
				continue
			}
			d := optest.FloatTypes[(i+k)%len(optest.FloatTypes)]
			optest.AsPlain(t, s.attentions(d, queries))
		}
	}
}

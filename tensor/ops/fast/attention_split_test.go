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

// TestGPUAttention: attention as GPUs do it, of few queries in parts and of many by a library's products, is near that
// of other kernels: one part and several, with every kind of mask, with sinks, rows that fill a threadgroup's tiles and
// that do not.
func TestGPUAttention(t *testing.T) {
	brief.OnlyValues(t)
	for i, s := range []struct{ heads, kvHeads, keys, depth, width int }{
		{4, 2, 75, 64, 64}, {8, 2, 700, 128, 64}, {3, 1, 513, 64, 128}, {2, 2, 300, 96, 64},
	} {
		for k, queries := range []int{1, 3, 16, 42} {
			d := optest.FloatTypes[(i+k)%len(optest.FloatTypes)]
			optest.AsGPU(t, 40, func(c *tensor.Ctx) map[string]*tensor.Array {
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
			})
		}
	}
}

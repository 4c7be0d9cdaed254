package fast_test

import (
	"testing"

	"github.com/mlxlua/mlxlua/internal/brief"
	"github.com/mlxlua/mlxlua/tensor/optest"
)

// TestGPUAttention: attention as GPUs do it, of few queries in parts and of many by a library's products, is near that
// of other kernels: one part and several, with every kind of mask, with sinks, rows that fill a threadgroup's tiles and
// that do not.
func TestGPUAttention(t *testing.T) {
	brief.OnlyValues(t)
	for i, s := range []attentionSize{
		{4, 2, 75, 64, 64}, {8, 2, 700, 128, 64}, {3, 1, 513, 64, 128}, {2, 2, 300, 96, 64},
	} {
		for k, queries := range []int{1, 3, 16, 42} {
			d := optest.FloatTypes[(i+k)%len(optest.FloatTypes)]
			optest.AsGPU(t, 40, s.attentions(d, queries))
		}
	}
}

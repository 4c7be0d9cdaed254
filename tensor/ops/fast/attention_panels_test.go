package fast_test

import (
	"math"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/mlxlua/mlxlua/internal/brief"
	"github.com/mlxlua/mlxlua/tensor"
	"github.com/mlxlua/mlxlua/tensor/ops"
	"github.com/mlxlua/mlxlua/tensor/ops/fast"
	"github.com/mlxlua/mlxlua/tensor/optest"
)

// attendIn64 is softmax(scale * q k^T + bias) v in float64 for arrays of (examples, heads, rows, elements), by the
// definition. Bias is the mask as numbers to add; sinks may be nil. Within is how far off float32 may be: weights are
// off by what their scores are, 2 K eps |q||k|, and v is at most 3.
func attendIn64(q, k, v, bias, sinks []float64, n attentionSizes) (out, within []float64) {
	for row := range 2 * n.heads * n.queries {
		head := row / n.queries
		at := (head/n.heads*n.kvHeads + head%n.heads/(n.heads/n.kvHeads)) * n.keys
		scores, top, total, most := make([]float64, n.keys), math.Inf(-1), 0.0, 0.0
		for i := range scores {
			size := 0.0
			for d := range n.depth {
				p := attentionScale * q[row*n.depth+d] * k[(at+i)*n.depth+d]
				scores[i] += p
				size += math.Abs(p)
			}
			most = max(most, size)
			scores[i] += bias[row%n.queries*n.keys+i]
			top = max(top, scores[i])
		}
		if sinks != nil {
			top = max(top, sinks[head%n.heads])
			total = math.Exp(sinks[head%n.heads] - top)
		}
		sums := make([]float64, n.width)
		for i, s := range scores {
			w := math.Exp(s - top)
			total += w
			for c := range sums {
				sums[c] += w * v[(at+i)*n.width+c]
			}
		}
		for _, s := range sums {
			out = append(out, s/total)
			within = append(within, 3*(2*2*float64(n.depth+4)*0x1p-24*most+0x1p-20))
		}
	}
	return out, within
}

const attentionScale = 0.25

type attentionSizes struct{ heads, kvHeads, queries, keys, depth, width int }

// TestAttentionOfManyQueries compares attention in panels with float64: heads that share keys, sizes that fill panels
// and that do not, v's rows in one chunk and in two, every mask, rows that see no key, sinks, arrays whose heads lie
// within their rows.
func TestAttentionOfManyQueries(t *testing.T) {
	brief.OnlyValues(t)
	optest.Open(t)
	const none = -math.MaxFloat32
	for i, n := range []attentionSizes{{4, 2, 16, 70, 33, 40}, {1, 1, 130, 65, 8, 300}, {2, 1, 20, 7, 64, 64},
		{6, 3, 65, 129, 128, 32}, {2, 2, 64, 64, 1, 1}} {
		for j, d := range optest.Computed(t, tensor.Float32, tensor.Float16, tensor.BFloat16, tensor.Float64) {
			mask := (i + j) % 4
			var in [3]*array
			var values [3][]float64
			for a, s := range [][3]int{{n.heads, n.queries, n.depth}, {n.kvHeads, n.keys, n.depth},
				{n.kvHeads, n.keys, n.width}} {
				x := optest.Noise(d, 2, s[0], s[1], s[2])
				if (i+j)%2 == 1 {
					x = ops.SwapAxes(optest.Noise(d, 2, s[1], s[0], s[2]), 1, 2)
				}
				in[a], values[a] = x, optest.Values32(t, ops.AsType(x, tensor.Float32))
			}
			opt, bias := fast.AttentionOptions{Causal: mask == 1}, make([]float64, n.queries*n.keys)
			added := optest.Noise(d, n.queries, n.keys)
			numbers, seen := optest.Values32(t, ops.AsType(added, tensor.Float32)), make([]bool, len(bias))
			for at := range bias {
				row, key := at/n.keys, at%n.keys
				seen[at] = row%9 != 4 && (row+key)%3 != 0
				switch {
				case mask == 1 && key > row+n.keys-n.queries, mask == 2 && !seen[at]:
					bias[at] = none
				case mask == 3:
					bias[at] = numbers[at]
				}
			}
			switch mask {
			case 2:
				opt.Mask = ops.FromSlice(seen, []int{n.queries, n.keys})
			case 3:
				opt.Mask = added
			}
			var sinks []float64
			if j%2 == i/2%2 {
				opt.Sinks = optest.Noise(d, n.heads)
				sinks = optest.Values32(t, ops.AsType(opt.Sinks, tensor.Float32))
			}
			want, within := attendIn64(values[0], values[1], values[2], bias, sinks, n)
			got := optest.Values32(t, ops.AsType(fast.ScaledDotProductAttention(in[0], in[1], in[2], attentionScale, opt),
				tensor.Float32))
			once := map[tensor.DType]float64{tensor.Float16: 0x1p-11, tensor.BFloat16: 0x1p-8}[d]
			require.Len(t, got, len(want))
			for at, v := range want {
				least := within[at] + once*math.Abs(v)
				require.InDelta(t, v, got[at], least, "%+v %v mask %d, element %d", n, d, mask, at)
			}
		}
	}
}

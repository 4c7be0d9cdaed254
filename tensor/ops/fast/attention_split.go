package fast

import (
	_ "embed"
	"math"

	"github.com/mlxlua/mlxlua/tensor"
	"github.com/mlxlua/mlxlua/tensor/ops/kit"
)

//go:embed attention_split.metal
var attentionSplitText string

// splitAttention chooses the kernels of attention in parts: rows of queries of a threadgroup, lanes for a key's row and
// for a value's, elements of a lane's piece, and pieces of which a lane loads so many at a time.
type splitAttention struct {
	attentionKind
	rows, depth, width, each, ahead int
	alone                           bool
}

var splitKernels = kit.NewKernels[splitAttention](attentionSplitText)

// partKeys is how many keys a part has.
const partKeys = 256

// splits chooses the kernels for few queries on GPUs, if rows of keys and values are pieces of as many lanes as
// divide a SIMD-group, and lie so.
func (o attentionOperands) splits(r *tensor.Run, a attentionAttrs) (v splitAttention, ok bool) {
	const pieceBytes = 16
	d := r.Out[0].DType
	if !r.Info().GPU || kit.Accumulator(d) != tensor.Float32 {
		return v, false
	}
	v = splitAttention{attentionKind: kindOf(d, a), each: pieceBytes / d.Size()}
	v.depth, v.width = o.q.Shape[3]/v.each, o.v.Shape[3]/v.each
	v.ahead = min(8, v.depth, v.width)
	v.rows = 1
	for v.rows < min(o.q.Shape[1]/o.k.Shape[1]*o.q.Shape[2], 4) {
		v.rows *= 2
	}
	v.alone = o.k.Shape[2] <= partKeys
	ok = true
	for _, lanes := range []int{v.depth, v.width} {
		ok = ok && lanes >= 4 && lanes <= 32 && lanes&(lanes-1) == 0
	}
	for _, x := range []tensor.Operand{o.q, o.k, o.v} {
		ok = ok && x.Shape[3]%v.each == 0
		for _, s := range x.Strides[:3] {
			ok = ok && s%v.each == 0
		}
	}
	return v, ok
}

// attendInParts multiplies few queries with keys a part at a time, and joins the parts.
func attendInParts(r *tensor.Run, a attentionAttrs, o attentionOperands, v splitAttention) error {
	out, batch, heads, kvHeads, queries := r.Out[0], o.q.Shape[0], o.q.Shape[1], o.k.Shape[1], o.q.Shape[2]
	groups, width, keys := heads/kvHeads, o.v.Shape[3], o.k.Shape[2]
	parts, tiles := (keys+partKeys-1)/partKeys, (groups*queries+v.rows-1)/v.rows
	if err := kit.CheckCount(batch*heads*queries, math.MaxUint32/tiles, "rows of queries"); err != nil {
		return err
	}
	params := o.params(out.DType, a, groups, parts)
	sums := out
	if !v.alone {
		var err error
		spec := tensor.Spec{Shape: tensor.Shape{batch * heads * queries, parts, width + 2}, DType: v.ACC}
		if sums, err = r.Temp(spec); err != nil {
			return err
		}
	}
	args := append([]tensor.Arg{o.q.Arg(), o.k.Arg(), o.v.Arg(), out.Arg(), sums.Arg(), params.Arg()}, o.optional...)
	over := kit.Simds(parts*partKeys/32, batch*kvHeads*tiles, partKeys/32)
	if err := splitKernels.Launch(r, v, "attend", over, args...); err != nil || v.alone {
		return err
	}
	args = []tensor.Arg{sums.Arg(), out.Arg(), params.Arg()}
	if a.Sinks {
		args = append(args, o.optional[len(o.optional)-1])
	}
	return splitKernels.Launch(r, v, "join", kit.Plane(width, batch*heads*queries), args...)
}

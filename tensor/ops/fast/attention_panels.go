package fast

import (
	_ "embed"
	"math"

	"github.com/mlxlua/mlxlua/tensor"
	"github.com/mlxlua/mlxlua/tensor/ops/kit"
	"github.com/mlxlua/mlxlua/tensor/ops/kit/panels"
)

//go:embed attention_panels.metal
var attentionPanelsText string

// manyQueriesVariant chooses a kernel: width is in elements of v's rows for a lane.
type manyQueriesVariant struct {
	attentionKind
	panel, width, simds int
	wholeWidth          bool // chunks fill v's rows
}

var manyQueriesKernels = kit.NewKernels[manyQueriesVariant](attentionPanelsText)

// attendMany multiplies many queries of each head with its keys, both in panels.
func attendMany(r *tensor.Run, a attentionAttrs, o attentionOperands) error {
	out, batch := r.Out[0], o.q.Shape[0]
	heads, kvHeads, queries, keys := o.q.Shape[1], o.k.Shape[1], o.q.Shape[2], o.k.Shape[2]
	depth, width := o.q.Shape[3], o.v.Shape[3]
	packed := func(x tensor.Operand, rows int) (tensor.Operand, []int, error) {
		s := panels.Matrices{Operand: x, Step: [2]int(x.Strides[2:])}
		s.Shape, s.Strides = x.Shape[:2], x.Strides[:2]
		p := &panels.Product{Run: r, DType: out.DType, Batch: s.Shape, Depth: depth}
		return p.Pack(s, rows)
	}
	q, qs, err := packed(o.q, queries)
	if err != nil {
		return err
	}
	k, ks, err := packed(o.k, keys)
	if err != nil {
		return err
	}
	share, simds := min((width+31)/32, 8), 4
	chunk := 32 * share
	chunks, tiles := (width+chunk-1)/chunk, (queries+7)/8
	if err := kit.CheckCount(heads*chunks, math.MaxUint32/batch, "heads in parts"); err != nil {
		return err
	}
	variant := manyQueriesVariant{kindOf(out.DType, a), panels.Width(out.DType), share, simds, width%chunk == 0}
	params := kit.Params{}.Long(qs...).Long(ks...).Long(o.v.Strides[:3]...).Long(o.mask.Strides...).Long(o.sinkStride).
		Uint(heads, heads/kvHeads, queries, keys, depth, width, chunks).Float(kit.Accumulator(out.DType), a.Scale.Float())
	args := append([]tensor.Arg{q.Arg(), k.Arg(), o.v.Arg(), out.Arg(), params.Arg()}, o.optional...)
	return manyQueriesKernels.Launch(r, variant, "attention", kit.Simds(tiles, batch*heads*chunks, simds), args...)
}

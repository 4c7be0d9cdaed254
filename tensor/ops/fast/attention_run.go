package fast

import (
	_ "embed"
	"math"

	"github.com/mlxlua/mlxlua/tensor"
	"github.com/mlxlua/mlxlua/tensor/ops/kit"
	"github.com/mlxlua/mlxlua/tensor/ops/kit/panels"
)

//go:embed attention_plain.metal
var attentionPlainText string

// plainAttention chooses a plain kernel: how many keys are taken at a time, and a lane's share of v's columns.
type plainAttention struct {
	attentionKind
	many        bool
	keys, width int
}

var plainAttentionKernels = kit.NewKernels[plainAttention](attentionPlainText)

// attend computes an attention by kernels for the host's processors where kernels run on these, for few queries on GPUs
// by those for them, elsewhere by the plain one. Whether queries are many decides on the order of sums.
func attend(r *tensor.Run, a attentionAttrs, o attentionOperands) error {
	many := !kit.Few(r, o.q.Shape[2]) && o.q.Shape[3] > 0
	if v, ok := o.splits(r, a); ok && !many {
		return attendInParts(r, a, o, v)
	}
	if many {
		if done, err := o.byProducts(r, a); done || err != nil {
			return err
		}
	}
	switch {
	case !r.Info().Host:
		return attendPlainly(r, a, o, many)
	case many:
		return attendMany(r, a, o)
	}
	return attendFew(r, a, o)
}

// attendPlainly computes by the kernel that any device can run.
func attendPlainly(r *tensor.Run, a attentionAttrs, o attentionOperands, many bool) error {
	out, batch, heads, kvHeads, width := r.Out[0], o.q.Shape[0], o.q.Shape[1], o.k.Shape[1], o.v.Shape[3]
	v := plainAttention{kindOf(out.DType, a), many, 32, min((width+31)/32, 8)}
	if many {
		v.keys = panels.Width(out.DType)
	}
	chunks := (width + 32*v.width - 1) / (32 * v.width)
	if err := kit.CheckCount(heads*chunks, math.MaxUint32/batch, "heads in parts"); err != nil {
		return err
	}
	params := o.params(out.DType, a, heads/kvHeads, chunks)
	args := append([]tensor.Arg{o.q.Arg(), o.k.Arg(), o.v.Arg(), out.Arg(), params.Arg()}, o.optional...)
	return plainAttentionKernels.Launch(r, v, "attention", kit.Simds(o.q.Shape[2], batch*heads*chunks, 4), args...)
}

// params are the constants of kernels that read q, k and v where they lie.
func (o attentionOperands) params(d tensor.DType, a attentionAttrs, groups, chunks int) kit.Params {
	return kit.Params{}.Long(o.q.Strides[:3]...).Long(o.k.Strides[:3]...).Long(o.v.Strides[:3]...).
		Long(o.mask.Strides...).Long(o.sinkStride).
		Uint(groups, o.k.Shape[1], o.q.Shape[2], o.k.Shape[2], o.q.Shape[3], o.v.Shape[3], chunks).
		Float(kit.Accumulator(d), a.Scale.Float())
}

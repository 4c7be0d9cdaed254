package fast

import (
	_ "embed"
	"fmt"
	"math"
	"slices"

	"github.com/mlxlua/mlxlua/metal"
	"github.com/mlxlua/mlxlua/tensor"
	"github.com/mlxlua/mlxlua/tensor/ops/kit"
	"github.com/mlxlua/mlxlua/tensor/ops/kit/panels"
)

//go:embed attention_panels.metal
var attentionRowsText string

// manyQueries is the least queries of a head that pay for laying them and the keys out in panels.
const manyQueries = 16

// attentionRowsTexts are the kernels' texts.
var attentionRowsTexts kit.Texts[attentionRows]

// attentionRows chooses a kernel: width is in elements of v's rows for a lane.
type attentionRows struct {
	dtype        tensor.DType
	attrs        attentionAttrs // but for the scale
	width, simds int
	whole        bool // chunks fill v's rows
}

func (v attentionRows) text() string {
	flag := map[bool]int{true: 1}
	return attentionDefines(v.dtype, v.attrs) + fmt.Sprintf("#define PANEL %d\n#define WIDTH %d\n#define SIMDS %d\n"+
		"#define WHOLE_WIDTH %d\n", panels.Width(v.dtype), v.width, v.simds, flag[v.whole]) + attentionRowsText
}

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
	v := attentionRows{dtype: out.DType, attrs: a, width: min((width+31)/32, 8), simds: 4}
	chunk := 32 * v.width
	v.attrs.Scale, v.whole = 0, width%chunk == 0
	chunks, tiles := (width+chunk-1)/chunk, (queries+7)/8
	if heads*chunks > math.MaxUint32/batch {
		return fmt.Errorf("q %v, k %v and v %v are too large", o.q.Shape, o.k.Shape, o.v.Shape)
	}
	pipe, err := r.Kernel(metal.Source{
		Label:   r.OpName(),
		Text:    attentionRowsTexts.Get(v, attentionRows.text),
		Options: metal.Options{MathMode: metal.MathSafe, Portable: true, Float64: out.DType == tensor.Float64},
	}, "attention")
	if err != nil {
		return err
	}
	strides := slices.Concat(qs, ks, o.v.Strides[:3], o.mask.Strides, []int{o.sinkStride})
	params := scaleOf(kit.Numbers(strides, heads, heads/kvHeads, queries, keys, depth, width, chunks), out.DType, a)
	args := []tensor.Arg{q.Arg(), k.Arg(), o.v.Arg(), out.Arg(), tensor.Const(params)}
	return r.Dispatch(pipe, metal.Size{X: 32, Y: tiles, Z: batch * heads * chunks},
		metal.Size{X: 32, Y: min(tiles, v.simds), Z: 1}, append(args, o.more...)...)
}

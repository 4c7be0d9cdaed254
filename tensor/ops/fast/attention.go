package fast

import (
	_ "embed"
	"errors"
	"fmt"
	"math"
	"slices"
	"strings"

	"github.com/mlxlua/mlxlua/tensor"
	"github.com/mlxlua/mlxlua/tensor/ops"
	"github.com/mlxlua/mlxlua/tensor/ops/kit"
	"github.com/mlxlua/mlxlua/tensor/ops/sig"
)

// attentionMask is the kind of an attention's mask.
type attentionMask uint8

const (
	noMask attentionMask = iota
	causalMask
	boolMask
	addedMask
)

// attentionAttrs describe an attention. Its inputs are q, k, v, the mask if it is an array, and the sinks, one for each
// example (or one for all) and head of q.
type attentionAttrs struct {
	Scale tensor.F64
	Mask  attentionMask
	Sinks bool
}

func (a attentionAttrs) maskArray() bool { return a.Mask >= boolMask }

var (
	attention = tensor.Declare[attentionAttrs]("scaled_dot_product_attention")
	//go:embed attention.metal
	attentionText string
)

func init() {
	attention.Define(tensor.Rules[attentionAttrs]{
		Shape: func(in []tensor.Spec, a attentionAttrs, outs []tensor.Shape) ([]tensor.Shape, error) {
			if err := checkAttention(in, a); err != nil {
				return nil, err
			}
			s := in[0].Shape.Clone()
			s[3] = in[2].Shape[3]
			return append(outs, s), nil
		},
		Flops: func(in, out []tensor.Spec, _ attentionAttrs) float64 { // two products, each along all keys
			return 2 * float64(in[0].Shape.Size()+out[0].Shape.Size()) * float64(in[1].Shape[2])
		},
		DType: func(in []tensor.Spec, a attentionAttrs, outs []tensor.DType) ([]tensor.DType, error) {
			if a.Mask == boolMask {
				in = slices.Delete(slices.Clone(in), 3, 4)
			}
			return kit.OneDTypeOf(outs, in...)
		},
		Run:  runAttention,
		VJP:  attentionVJP,
		VMap: vmapAttention,
	})
}

func checkAttention(in []tensor.Spec, a attentionAttrs) error {
	q, k, v := in[0].Shape, in[1].Shape, in[2].Shape
	for i, s := range []tensor.Shape{q, k, v} {
		if len(s) != 4 {
			return fmt.Errorf("%c has shape %v, want 4 dimensions", "qkv"[i], s)
		}
	}
	switch {
	case q[0] != k[0] || q[0] != v[0]:
		return fmt.Errorf("batch dimensions differ: q %v, k %v, v %v", q, k, v)
	case q[3] != k[3]:
		return fmt.Errorf("last dimensions differ: q %v, k %v", q, k)
	case k[1] != v[1] || k[2] != v[2]:
		return fmt.Errorf("k %v and v %v have different numbers of heads or rows", k, v)
	case k[1] == 0 && q[1] != 0 || k[1] != 0 && q[1]%k[1] != 0:
		return fmt.Errorf("q %v has %d heads, want a multiple of the %d of k %v", q, q[1], k[1], k)
	}
	next := 3
	if a.maskArray() {
		to := tensor.Shape{q[0], q[1], q[2], k[2]}
		if err := kit.CheckBroadcast(in[next].Shape, to); err != nil {
			return fmt.Errorf("mask: %w", err)
		}
		next++
	}
	if a.Sinks {
		if s := in[next].Shape; len(s) != 2 || s[0] != 1 && s[0] != q[0] || s[1] != q[1] {
			return fmt.Errorf("sinks have shape %v, want one for each of the %d heads of q", s[1:], q[1])
		}
	}
	return nil
}

// attentionTile is how a SIMD-group works: rows of queries, elements of a lane's share of k (0: read in a loop) and
// of v, and chunks of v's columns.
type attentionTile struct{ rows, depth, width, chunks int }

func planAttention(rows, depth, width int) attentionTile {
	const most = 8 // elements of a lane
	t := attentionTile{rows: min(rows, 4), depth: (depth + 31) / 32, width: min((width+31)/32, most)}
	if max(t.depth, t.width) > 4 {
		t.rows = min(rows, 2)
	}
	if t.depth > most {
		t.depth = 0
	}
	t.chunks = (width + 32*t.width - 1) / (32 * t.width)
	return t
}

func runAttention(r *tensor.Run, a attentionAttrs) error {
	out := r.Out[0]
	in := make([]tensor.Operand, 3)
	for i := range in {
		in[i] = r.In[i]
		if s := in[i].Shape; s[3] != 1 && in[i].Strides[3] != 1 {
			var err error
			if in[i], err = r.Contiguous(i); err != nil {
				return err
			}
		}
	}
	q, k, v := in[0], in[1], in[2]
	o := attentionOperands{q: q, k: k, v: v}
	heads, queries, kvHeads, keys, depth, width := q.Shape[1], q.Shape[2], k.Shape[1], k.Shape[2], q.Shape[3], v.Shape[3]
	if keys == 0 {
		return r.Fill(out, make([]byte, out.DType.Size()))
	}
	const what = "queries of heads that share keys, keys, or elements of one"
	if err := kit.CheckCount(max(heads/kvHeads*queries, keys, depth, width), math.MaxInt32-64, what); err != nil {
		return err
	}
	o.mask = tensor.Operand{View: tensor.View{Strides: make([]int, 4)}}
	next := 3
	if a.maskArray() {
		o.mask = kit.BroadcastOperand(r.In[next], tensor.Shape{q.Shape[0], heads, queries, keys})
		o.optional = append(o.optional, o.mask.Arg())
		next++
	}
	if a.Sinks {
		sinks, err := r.Contiguous(next)
		if err != nil {
			return err
		}
		if sinks.Shape[0] > 1 {
			o.sinkStride = heads
		}
		o.optional = append(o.optional, sinks.Arg())
	}
	return attend(r, a, o)
}

// attentionOperands are an attention's arrays. The strides of the mask are those of all dimensions of the scores.
type attentionOperands struct {
	q, k, v, mask tensor.Operand
	sinkStride    int
	optional      []tensor.Arg // the mask and the sinks, if there are such
}

// attendFew multiplies rows of queries, those of all heads that share their keys, with keys where they lie.
func attendFew(r *tensor.Run, a attentionAttrs, o attentionOperands) error {
	q, k, v, out := o.q, o.k, o.v, r.Out[0]
	heads, queries, kvHeads, depth, width := q.Shape[1], q.Shape[2], k.Shape[1], q.Shape[3], v.Shape[3]
	groups := heads / kvHeads
	tile := planAttention(groups*queries, depth, width)
	batches := q.Shape[0] * kvHeads * tile.chunks
	if err := kit.CheckCount(batches, math.MaxUint32, "heads of keys in parts"); err != nil {
		return err
	}
	params := o.params(out.DType, a, groups, tile.chunks)
	tiles := (groups*queries + tile.rows - 1) / tile.rows
	args := append([]tensor.Arg{q.Arg(), k.Arg(), v.Arg(), out.Arg(), params.Arg()}, o.optional...)
	variant := fewQueries{attentionKind: kindOf(out.DType, a), rows: tile.rows, width: tile.width, depth: tile.depth,
		wide: tile.depth == 0, wholeDepth: depth%32 == 0, wholeWidth: width%(32*tile.width) == 0}
	return fewQueriesKernels.Launch(r, variant, "attention", kit.Simds(tiles, batches, 4), args...)
}

// fewQueries chooses a kernel: how many rows of queries a SIMD-group takes, and a lane's share of k and v.
type fewQueries struct {
	attentionKind
	rows, width, depth           int
	wide, wholeDepth, wholeWidth bool
}

var fewQueriesKernels = kit.NewKernels[fewQueries](attentionText)

// Macros defines loops over the rows and a lane's elements that are written out.
func (v fewQueries) Macros() string {
	each := func(name string, n int) string {
		var b strings.Builder
		b.WriteString("#define " + name + "(F)")
		for i := range n {
			fmt.Fprintf(&b, " F(%d)", i)
		}
		return b.String() + "\n"
	}
	pairs := func(name string, n int) string {
		var b strings.Builder
		b.WriteString("#define " + name + "(F)")
		for r := range v.rows {
			for i := range n {
				fmt.Fprintf(&b, " F(%d, %d)", r, i)
			}
		}
		return b.String() + "\n"
	}
	return v.attentionKind.Macros() + each("EACH_ROW", v.rows) + each("EACH_DEPTH", v.depth) +
		each("EACH_WIDTH", v.width) +
		pairs("EACH_ROW_DEPTH", v.depth) + pairs("EACH_ROW_WIDTH", v.width)
}

// attentionKind is what both kernels of attention depend on: M is the mask's dtype.
type attentionKind struct {
	T, ACC, M    tensor.DType
	mask         attentionMask
	array, sinks bool
}

// Macros defines the score of a key that is not seen.
func (k attentionKind) Macros() string { return "#define LOWEST " + kit.LeastFinite(k.ACC) + "\n" }

func kindOf(d tensor.DType, a attentionAttrs) attentionKind {
	acc := kit.Accumulator(d)
	k := attentionKind{T: d, ACC: acc, M: tensor.Bool, mask: a.Mask, array: a.maskArray(), sinks: a.Sinks}
	if a.Mask == addedMask {
		k.M = d
	}
	return k
}

// AttentionOptions are the optional arguments of ScaledDotProductAttention.
type AttentionOptions struct {
	// Causal lets each query see the keys up to its own place only: the last query and the last key stand together.
	Causal bool
	// Mask, broadcast to (examples, heads, queries, keys), says which keys a query sees, if it is bool, or is added to
	// the scores.
	Mask *tensor.Array
	// Sinks are scores of a key without a value, one for each head of q.
	Sinks *tensor.Array
}

var _ = sig.Def("fast.scaled_dot_product_attention",
	"q k v scale:number mask:'causal'|array? sinks:array? force_fused:bool=false", func(a *sig.Args) any {
		opt := AttentionOptions{Sinks: a.Array(5)}
		opt.Mask, _ = sig.As[*tensor.Array](a, 4)
		_, opt.Causal = sig.As[string](a, 4)
		return ScaledDotProductAttention(a.Array(0), a.Array(1), a.Array(2), a.Number(3), opt, a.Ctx)
	}, sig.Same("the default of force_fused", "there is one kernel, which is a fused one"))

var attentionDType = kit.Floats("q, k and v have the common dtype")

// ScaledDotProductAttention is softmax(scale * q k^T + mask) v, without an array of the scores. Q is (examples, heads,
// queries, depth), k and v are (examples, kv_heads, keys, depth) and (examples, kv_heads, keys, width); heads is a
// multiple of kv_heads, and neighbouring heads share their keys. In scripts mask is an array that broadcasts to
// (examples, heads, queries, keys), of bool (true: the query sees the key) or to be added to the scores, or "causal":
// then query i of L sees the first S - L + i + 1 of S keys. Sinks hold a score for each head, of a key whose value is
// 0. There is one kernel, which is fused: force_fused changes nothing. The dtype is the common one of q, k and v and
// must be floating-point; the half types are computed in float32 and rounded once. A query that sees no key sees all
// alike; without keys the result is 0. Shapes that do not fit, a mask or sinks whose dtype does not promote to the
// result's, and both kinds of mask are errors. Gradients flow to q, k, v, an added mask and the sinks.
func ScaledDotProductAttention(q, k, v *tensor.Array, scale float64, opt AttentionOptions,
	ctx ...*tensor.Ctx) *tensor.Array {
	const op = "scaled_dot_product_attention"
	c := tensor.Call(ctx)
	in, f := ops.Convert(c, op, attentionDType, q, k, v)
	if f != nil {
		return f
	}
	d := in[0].DType()
	a := attentionAttrs{Scale: tensor.MakeF64(scale), Sinks: opt.Sinks != nil}
	promotes := func(what string, x *tensor.Array) (*tensor.Array, error) {
		if tensor.Promote(x.DType(), d) != d {
			return nil, fmt.Errorf("%s has dtype %v, which does not promote to %v", what, x.DType(), d)
		}
		return ops.AsType(x, d, c), nil
	}
	var err error
	switch m := opt.Mask; {
	case m != nil && opt.Causal:
		err = errors.New("want either a causal mask or an array, not both")
	case opt.Causal:
		a.Mask = causalMask
	case m != nil && m.Err() != nil:
		return m
	case m != nil && m.DType() == tensor.Bool:
		a.Mask, in = boolMask, append(in, m)
	case m != nil:
		a.Mask = addedMask
		m, err = promotes("mask", m)
		in = append(in, m)
	}
	if s := opt.Sinks; err == nil && s != nil {
		if s.Err() != nil {
			return s
		}
		if s.NDim() != 1 {
			err = fmt.Errorf("sinks have shape %v, want 1 dimension", s.Spec().Shape)
		} else if s, err = promotes("sinks", s); err == nil {
			in = append(in, ops.ExpandDims(s, []int{0}, c))
		}
	}
	if err != nil {
		return tensor.Fail(c, op, "%w", err)
	}
	return attention.One(c, a, in...)
}

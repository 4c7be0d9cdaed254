package ops

import (
	"fmt"
	"slices"

	"github.com/mlxlua/mlxlua/tensor"
	"github.com/mlxlua/mlxlua/tensor/ops/kit"
	"github.com/mlxlua/mlxlua/tensor/ops/sig"
)

// padMode says what stands beside an array's elements.
type padMode uint8

const (
	padConstant  padMode = iota // input 1, a scalar
	padEdge                     // the first or last element
	padReflect                  // the elements mirrored at the first or last one
	padSymmetric                // the elements mirrored beside it, so that it is repeated
)

var padModes = map[string]padMode{
	"constant": padConstant, "edge": padEdge, "reflect": padReflect, "symmetric": padSymmetric,
}

// padAttrs are how many elements each dimension gets before and behind its own.
type padAttrs struct {
	Widths tensor.Ints // two for each dimension
	Mode   padMode
}

var pad = tensor.Declare[padAttrs]("pad")

func init() {
	pad.Define(tensor.Rules[padAttrs]{
		Shape: func(in []tensor.Spec, a padAttrs, outs []tensor.Shape) ([]tensor.Shape, error) {
			s, w := in[0].Shape.Clone(), a.Widths.Slice()
			if len(w) != 2*len(s) {
				return nil, fmt.Errorf("widths of %s for an array with %d", tensor.Count(len(w)/2, "dimension"), len(s))
			}
			for i, n := range s {
				low, high := w[2*i], w[2*i+1]
				switch {
				case low < 0 || high < 0:
					return nil, fmt.Errorf("axis %d has widths %d and %d, want 0 or more", i, low, high)
				case n == 0 && low+high > 0 && a.Mode != padConstant:
					return nil, fmt.Errorf("axis %d of shape %v has no elements to pad it with", i, in[0].Shape)
				}
				s[i] = n + low + high
			}
			return append(outs, s), nil
		},
		DType: kit.OneDType[padAttrs],
		Run:   runPad,
		VJP: func(g *tensor.VJP[padAttrs]) []*tensor.Array {
			grads := make([]*tensor.Array, len(g.In))
			cot, parts := g.Cot[0], g.Attrs.inner()
			if g.Want[0] {
				if grads[0] = cot; g.Attrs.Mode == padConstant {
					grads[0] = Slice(cot, parts, g.Ctx)
				} else {
					grads[0] = g.Attrs.fold(g.Ctx, cot, g.In[0])
				}
			}
			if len(g.In) > 1 && g.Want[1] {
				border := SliceUpdate(cot, Number(0, cot.DType(), g.Ctx), parts, g.Ctx)
				grads[1] = SumTo(border, tensor.ShapeOf(g.In[1]), g.Ctx)
			}
			return grads
		},
		JVP: func(g *tensor.JVP[padAttrs]) []*tensor.Array {
			return []*tensor.Array{pad.One(g.Ctx, g.Attrs, WithZeros(g.Ctx, g.Tan, g.In)...)}
		},
		VMap: func(g *tensor.VMap[padAttrs]) ([]*tensor.Array, []int) {
			c, x := g.Ctx, FrontOf(g, 0, 0)
			a := padAttrs{tensor.MakeInts(append([]int{0, 0}, g.Attrs.Widths.Slice()...)), g.Attrs.Mode}
			switch {
			case a.Mode != padConstant:
				return []*tensor.Array{pad.One(c, a, x)}, []int{0}
			case g.Axes[1] < 0:
				return []*tensor.Array{pad.One(c, a, x, g.In[1])}, []int{0}
			}
			// Each example has its own constant.
			own := pad.One(c, a, OnesLike(x, c), Number(0, x.DType(), c))
			y := pad.One(c, a, x, Number(0, x.DType(), c))
			value := g.In[1]
			if x.NDim() > 1 {
				value = ExpandDims(value, kit.Shifted(kit.Identity(x.NDim()-1)), c)
			}
			return []*tensor.Array{Where(NotEqual(own, Number(0, x.DType(), c), c), y, value, c)}, []int{0}
		},
	})
}

// inner are the places of the array's own elements in the padded one.
func (a padAttrs) inner() []Part {
	w := a.Widths.Slice()
	parts := make([]Part, len(w)/2)
	for i := range parts {
		if parts[i] = Span(w[2*i], None, 1); w[2*i+1] > 0 {
			parts[i].stop = -w[2*i+1]
		}
	}
	return parts
}

// runPad copies the array into place, then fills the space beside it dimension by dimension: along each, all that
// stands there of the dimensions before, and the array's own part of those behind.
func runPad(r *tensor.Run, a padAttrs) error {
	x, out := r.In[0], r.Out[0]
	w := a.Widths.Slice()
	b := bordered{whole: out, low: make([]int, len(x.Shape)), n: x.Shape.Clone()}
	for i := range b.low {
		b.low[i] = w[2*i]
	}
	if a.Mode == padConstant && x.Shape.Size() == 0 {
		return r.CopyTo(out, r.In[1])
	}
	if err := r.CopyTo(b.region(0, b.low[:0], b.n[:0]), x); err != nil {
		return err
	}
	for i := range x.Shape {
		var err error
		if a.Mode == padConstant {
			err = b.fill(r, i, r.In[1])
		} else {
			err = b.extend(r, i, a.Mode)
		}
		if err != nil {
			return err
		}
		b.low[i], b.n[i] = 0, out.Shape[i]
	}
	return nil
}

// bordered is an array of which a part is filled: n elements from low on along each dimension.
type bordered struct {
	whole  tensor.Operand
	low, n []int
}

// region is the filled part; along axis the elements from at[0] on, n[0] of them, if there are any numbers.
func (b bordered) region(axis int, at, n []int) tensor.Operand {
	o := b.whole
	o.Shape, o.Strides = slices.Clone(b.n), slices.Clone(b.whole.Strides)
	low := slices.Clone(b.low)
	if len(at) > 0 {
		low[axis], o.Shape[axis] = at[0], n[0]
	}
	for i, k := range low {
		o.OffsetBytes += int64(k) * int64(o.Strides[i]) * int64(o.DType.Size())
	}
	return o
}

// fill makes the elements beside the filled part along an axis value.
func (b bordered) fill(r *tensor.Run, axis int, value tensor.Operand) error {
	end := b.low[axis] + b.n[axis]
	for _, p := range [][2]int{{0, b.low[axis]}, {end, b.whole.Shape[axis]}} {
		if p[1] == p[0] {
			continue
		}
		if err := r.CopyTo(b.region(axis, p[:1], []int{p[1] - p[0]}), value); err != nil {
			return err
		}
	}
	return nil
}

// extend fills the elements beside the filled part along an axis from that part. What is mirrored at once is as long
// as what lies between the mirror and another one, so that a wide space takes few steps.
func (b bordered) extend(r *tensor.Run, axis int, mode padMode) error {
	begin, stop := b.low[axis], b.low[axis]+b.n[axis]
	skip := 0 // elements at the mirror that are not repeated
	if mode == padReflect && b.n[axis] > 1 {
		skip = 1
	}
	put := func(to, from, n int) error { // mirrored, or one element n times
		src := b.region(axis, []int{from}, []int{1})
		if mode != padEdge {
			src = mirrored(b.region(axis, []int{from}, []int{n}), axis)
		}
		return r.CopyTo(b.region(axis, []int{to}, []int{n}), src)
	}
	for first := begin; first > 0; {
		n, from := first, first
		if mode != padEdge {
			n, from = min(first, stop-first-skip), first+skip
		}
		first -= n
		if err := put(first, from, n); err != nil {
			return err
		}
	}
	for end, size := stop, b.whole.Shape[axis]; end < size; {
		n, from := size-end, end-1
		if mode != padEdge {
			n = min(n, end-begin-skip)
			from = end - skip - n
		}
		if err := put(end, from, n); err != nil {
			return err
		}
		end += n
	}
	return nil
}

// mirrored is o with its elements along an axis in the opposite order.
func mirrored(o tensor.Operand, axis int) tensor.Operand {
	o.OffsetBytes += int64(o.Shape[axis]-1) * int64(o.Strides[axis]) * int64(o.DType.Size())
	o.Strides[axis] = -o.Strides[axis]
	return o
}

// fold is the gradient of x: each element of the padded array's goes to the one that it is a copy of.
func (a padAttrs) fold(c *tensor.Ctx, cot, x *tensor.Array) *tensor.Array {
	w := a.Widths.Slice()
	for axis := x.NDim() - 1; axis >= 0; axis-- {
		if w[2*axis]+w[2*axis+1] == 0 {
			continue
		}
		dims := make([]tensor.ShapeArg, x.NDim())
		for i := range dims {
			if dims[i] = tensor.DimOf(cot, i); i >= axis {
				dims[i] = tensor.DimOf(x, i)
			}
		}
		index := a.source(c, cot, x, axis, w[2*axis])
		g := gatherAttrs{"pad", tensor.MakeInts([]int{axis}), axis}
		zeros := Zeros(tensor.Concat(dims...), cot.DType(), c)
		cot = scatter.One(c, scatterAttrs{g, scatterAdd}, zeros, cot, index)
	}
	return cot
}

// source is, for the places of the padded array along an axis, the places in x whose elements stand there.
func (a padAttrs) source(c *tensor.Ctx, padded, x *tensor.Array, axis, low int) *tensor.Array {
	number := func(v int) *tensor.Array { return Number(float64(v), tensor.Int64, c) }
	i := Subtract(AsType(Iota(c, tensor.DimOf(padded, axis)), tensor.Int64, c), number(low), c)
	n := Size(x, []int{axis}, tensor.Int64, c)
	last := Subtract(n, number(1), c)
	switch a.Mode {
	case padEdge:
		return Minimum(Maximum(i, number(0), c), last, c)
	case padReflect:
		period := Maximum(Multiply(last, number(2), c), number(1), c)
		i = Remainder(i, period, c)
		return Minimum(i, Remainder(Subtract(period, i, c), period, c), c)
	default:
		period := Multiply(n, number(2), c)
		i = Remainder(i, period, c)
		return Minimum(i, Subtract(Subtract(period, number(1), c), i, c), c)
	}
}

var _ = sig.Def("pad", "a:operand pad_width:intlists mode:string=constant constant_values:operand=0",
	func(a *sig.Args) any {
		x := a.Array(0)
		if f := kit.Unusable(a.Ctx, "pad", x); f != nil {
			return f
		}
		list, rank := a.IntLists(1), x.NDim()
		pairs := list.Lists
		if list.Depth < 2 {
			switch w := pairs[0]; len(w) {
			case 0: // {}: the pairs of a scalar
				pairs = nil
			case 1, 2:
				pairs = [][]int{{w[0], w[len(w)-1]}}
			}
		}
		if len(pairs) == 1 {
			pairs = slices.Repeat(pairs, rank)
		}
		return Pad(x, pairs, a.Text(2), a.Array(3), a.Ctx)
	})

// Pad is a with elements before and behind its own along each dimension, as many as pad_width says: a pair for each
// dimension; one pair, or one number for both of it, stands for all. Mode "constant" puts constant_values there, a
// scalar that is converted to a's dtype; "edge" the first or last element of the dimension, "reflect" the elements
// mirrored at that one, "symmetric" those mirrored so that it is repeated. Negative widths, other words, and modes
// that copy elements along a dimension without any are errors.
func Pad(a *tensor.Array, widths [][]int, mode string, value *tensor.Array, ctx ...*tensor.Ctx) *tensor.Array {
	const op = "pad"
	c := tensor.Call(ctx)
	if f := kit.Unusable(c, op, a, value); f != nil {
		return f
	}
	m, ok := padModes[mode]
	if !ok {
		return tensor.Fail(c, op, "mode is %q, want \"constant\", \"edge\", \"reflect\" or \"symmetric\"", mode)
	}
	var flat []int
	for _, w := range widths {
		if len(w) != 2 {
			return tensor.Fail(c, op, "widths %v are no pair", tensor.Shape(w))
		}
		flat = append(flat, w...)
	}
	attrs := padAttrs{tensor.MakeInts(append([]int{}, flat...)), m}
	if m != padConstant {
		return pad.One(c, attrs, a)
	}
	if value.NDim() > 0 {
		value = kit.FailedAs(c, op, Reshape(value, tensor.Sizes(), c))
	}
	return pad.One(c, attrs, a, AsType(value, a.DType(), c))
}

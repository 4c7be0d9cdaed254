package ops

import (
	_ "embed"
	"slices"

	"github.com/mlxlua/mlxlua/tensor"
	"github.com/mlxlua/mlxlua/tensor/ops/kit"
	"github.com/mlxlua/mlxlua/tensor/ops/sig"
)

// matchAttrs say whether NaN equals NaN, and how many leading axes are a batch's.
type matchAttrs struct {
	NaN   bool
	Batch int
}

var (
	// match compares two arrays of one rank where their shapes are the same; where they are not, it is false once for each
	// element of the batch.
	match = tensor.Declare[matchAttrs]("match")
	//go:embed array_equal.metal
	matchText    string
	matchKernels = kit.NewKernels[matchVariant](matchText)
)

type matchVariant struct {
	T         tensor.DType
	nanEqual  bool
	isComplex bool
}

func init() {
	match.Define(tensor.Rules[matchAttrs]{
		Shape: func(in []tensor.Spec, a matchAttrs, outs []tensor.Shape) ([]tensor.Shape, error) {
			s := in[0].Shape
			if !slices.Equal(s, in[1].Shape) {
				s = s.Clone()
				for i := a.Batch; i < len(s); i++ {
					s[i] = 1
				}
			}
			return append(outs, s), nil
		},
		DType:    kit.Always[matchAttrs](tensor.Bool),
		Run:      runMatch,
		Constant: true,
		VMap: func(g *tensor.VMap[matchAttrs]) ([]*tensor.Array, []int) {
			a := matchAttrs{g.Attrs.NaN, g.Attrs.Batch + 1}
			return []*tensor.Array{match.One(g.Ctx, a, FrontOf(g, 0, 0), FrontOf(g, 1, 0))}, []int{0}
		},
	})
}

func runMatch(r *tensor.Run, a matchAttrs) error {
	out := r.Out[0]
	if !slices.Equal(r.In[0].Shape, r.In[1].Shape) {
		return r.Fill(out, []byte{0})
	}
	in, err := r.AllContiguous(2)
	if err != nil {
		return err
	}
	d := in[0].DType
	v := matchVariant{d, a.NaN && d.IsInexact(), d.IsComplex()}
	return matchKernels.Launch(r, v, "match", kit.Line(out.Shape.Size()), in[0].Arg(), in[1].Arg(), out.Arg())
}

var _ = sig.Def("array_equal", "a:operand b:operand equal_nan:bool=false", func(a *sig.Args) any {
	return ArrayEqual(a.Array(0), a.Array(1), a.Bool(2), a.Ctx)
}, sig.Commutative)

// ArrayEqual reports whether a and b have the same shape and the same elements, as a scalar of bool; both are converted
// to their common dtype first. With equal_nan NaN equals NaN, otherwise nothing.
func ArrayEqual(a, b *tensor.Array, equalNaN bool, ctx ...*tensor.Ctx) *tensor.Array {
	const op = "array_equal"
	c := tensor.Call(ctx)
	in, f := Convert(c, op, kit.AnyDType, a, b)
	if f != nil {
		return f
	}
	if in[0].NDim() != in[1].NDim() {
		return FromSlice([]bool{false}, []int{}, c)
	}
	return kit.FailedAs(c, op, All(match.One(c, matchAttrs{NaN: equalNaN}, in...), nil, false, c))
}

package fast

import (
	_ "embed"

	"github.com/mlxlua/mlxlua/metal"
	"github.com/mlxlua/mlxlua/tensor"
	"github.com/mlxlua/mlxlua/tensor/ops"
	"github.com/mlxlua/mlxlua/tensor/ops/kit"
)

// normGradientAttrs describe the gradient of a normalisation of rows. Its inputs are x, the cotangent, which has x's
// spec, and the weight, if there is one. Output 0 is x's gradient; output 1, (parameters, n), has those of weight and
// bias, which are wanted if OfWeight and OfBias say so.
type normGradientAttrs struct {
	Eps                           tensor.F64
	RMS, Weight, OfWeight, OfBias bool
}

func (a normGradientAttrs) parameters() int {
	n := 0
	for _, wanted := range []bool{a.OfWeight, a.OfBias} {
		if wanted {
			n++
		}
	}
	return n
}

var (
	normGradient = tensor.Declare[normGradientAttrs]("norm_gradient")
	//go:embed norm_gradient.metal
	normGradientText    string
	normGradientKernels = kit.NewKernels[normGradientVariant](normGradientText)
)

func init() {
	normGradient.Define(tensor.Rules[normGradientAttrs]{
		Shape: func(in []tensor.Spec, a normGradientAttrs, outs []tensor.Shape) ([]tensor.Shape, error) {
			s := in[0].Shape
			if outs = append(outs, s); a.parameters() > 0 {
				outs = append(outs, tensor.Shape{a.parameters(), s[len(s)-1]})
			}
			return outs, nil
		},
		DType: func(in []tensor.Spec, a normGradientAttrs, outs []tensor.DType) ([]tensor.DType, error) {
			if outs = append(outs, in[0].DType); a.parameters() > 0 {
				outs = append(outs, in[0].DType)
			}
			return outs, nil
		},
		Run:     runNormGradient,
		Formula: normGradientFormula,
	})
}

// normGradientVariant chooses a kernel: OUT is what sums over strips of rows are stored as.
type normGradientVariant struct {
	T, ACC, Out                   tensor.DType
	rms, weight, ofWeight, ofBias bool
	strip, each                   int
}

// normStrip is how many rows a lane adds up: so many that what it stores is little, and so few that rounding is.
const normStrip = 64

func runNormGradient(r *tensor.Run, a normGradientAttrs) error {
	in, err := r.AllContiguous(len(r.In))
	if err != nil {
		return err
	}
	x, cot, d := in[0], in[1], r.Out[0].DType
	rows, n, err := kit.RowsOf(x.Shape)
	if err != nil {
		return err
	}
	acc := kit.Accumulator(d)
	v := normGradientVariant{d, acc, acc, a.RMS, a.Weight, a.OfWeight, a.OfBias, normStrip, kit.EachLane(n)}
	if rows == 0 { // sums of nothing
		return r.Fill(r.Out[1], make([]byte, d.Size()))
	}
	args := []tensor.Arg{x.Arg(), cot.Arg(), r.Out[0].Arg(), kit.Uint(n), kit.Float(a.Eps.Float(), acc)}
	if a.Weight {
		args = append(args, in[2].Arg())
	}
	var row tensor.Operand // the mean of each and what it was multiplied by
	if a.OfWeight {
		if row, err = r.Temp(tensor.Spec{Shape: tensor.Shape{rows, 2}, DType: acc}); err != nil {
			return err
		}
		args = append(args, row.Arg())
	}
	if err := normGradientKernels.Launch(r, v, "norm_gradient_rows", kit.Rows(rows), args...); err != nil {
		return err
	}
	if a.parameters() == 0 {
		return nil
	}
	return sumStrips(r, v, rows, n, func(sums tensor.Operand) []tensor.Arg {
		args := []tensor.Arg{cot.Arg(), sums.Arg(), kit.Uint(n), kit.Uint(rows)}
		if a.OfWeight {
			args = append(args, x.Arg(), row.Arg())
		}
		return args
	})
}

// sumStrips adds up what the rows have for the parameters: strips of rows, then strips of these, until one is left:
// output 1. columns gives the arguments of the first kernel.
func sumStrips(r *tensor.Run, v normGradientVariant, rows, n int,
	columns func(sums tensor.Operand) []tensor.Arg) error {
	parameters := r.Out[1].Shape[0]
	var parts tensor.Operand
	for left, entry := rows, "norm_gradient_columns"; entry != ""; {
		strips := (left + normStrip - 1) / normStrip
		sums := r.Out[1]
		if v.Out = sums.DType; strips > 1 {
			v.Out = v.ACC
			var err error
			if sums, err = r.Temp(tensor.Spec{Shape: tensor.Shape{parameters, strips, n}, DType: v.ACC}); err != nil {
				return err
			}
		}
		args, layers := []tensor.Arg{parts.Arg(), sums.Arg(), kit.Uint(n), kit.Uint(left)}, parameters
		if entry == "norm_gradient_columns" {
			args, layers = columns(sums), 1
		}
		over := kit.Grid{Threads: metal.Size{X: (n + 31) / 32 * 32, Y: strips, Z: layers},
			Group: metal.Size{X: 32, Y: min(strips, 4), Z: 1}}
		if err := normGradientKernels.Launch(r, v, entry, over, args...); err != nil {
			return err
		}
		parts, left, entry = sums, strips, "norm_gradient_strips"
		if strips == 1 {
			entry = ""
		}
	}
	return nil
}

// normGradientFormula is the gradient as other ops compute it.
func normGradientFormula(c *tensor.Ctx, a normGradientAttrs, in []*tensor.Array) []*tensor.Array {
	d := in[0].DType()
	acc := kit.Accumulator(d)
	y, scale := normalised(c, in[0], a.Eps, acc, a.RMS)
	cot := ops.AsType(in[1], acc, c)
	t := cot
	if a.Weight {
		t = ops.Multiply(t, ops.AsType(in[2], acc, c), c)
	}
	out := []*tensor.Array{ops.AsType(normTangent(c, t, y, scale, a.RMS), d, c)}
	var parameters []*tensor.Array
	like := tensor.Concat(tensor.DimOf(in[0], -1))
	if a.OfWeight {
		parameters = append(parameters, ops.SumTo(ops.Multiply(cot, y, c), like, c))
	}
	if a.OfBias {
		parameters = append(parameters, ops.SumTo(cot, like, c))
	}
	if len(parameters) > 0 {
		out = append(out, ops.AsType(ops.Stack(parameters, 0, c), d, c))
	}
	return out
}

// normVJP is the gradient of a normalisation in one pass over its rows.
func normVJP(g *tensor.VJP[normAttrs], rms bool) []*tensor.Array {
	grads := make([]*tensor.Array, len(g.In))
	c, last := g.Ctx, len(g.In)-1
	a := normGradientAttrs{Eps: g.Attrs.Eps, RMS: rms, Weight: g.Attrs.Weight,
		OfWeight: g.Attrs.Weight && g.Want[min(1, last)], OfBias: g.Attrs.Bias && g.Want[last]}
	in := []*tensor.Array{g.In[0], g.Cot[0]}
	if a.Weight {
		in = append(in, g.In[1])
	}
	out := normGradient.Call(c, a, in...)
	if g.Want[0] {
		grads[0] = out[0]
	}
	row := 0
	parameter := func(i int) {
		grads[i] = ops.Slice(out[1], []ops.Part{ops.At(row)}, c)
		row++
	}
	if a.OfWeight {
		parameter(1)
	}
	if a.OfBias {
		parameter(last)
	}
	return grads
}

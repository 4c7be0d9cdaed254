// Package fast is MLX's mx.fast: fused kernels of what models compute most, and kernels of users.
package fast

import (
	_ "embed"
	"errors"
	"fmt"

	"github.com/mlxlua/mlxlua/tensor"
	"github.com/mlxlua/mlxlua/tensor/ops"
	"github.com/mlxlua/mlxlua/tensor/ops/kit"
	"github.com/mlxlua/mlxlua/tensor/ops/sig"
)

// normAttrs describe a normalisation of rows: which inputs follow x.
type normAttrs struct {
	Eps          tensor.F64
	Weight, Bias bool
}

var (
	rmsNorm   = tensor.Declare[normAttrs]("rms_norm")
	layerNorm = tensor.Declare[normAttrs]("layer_norm")
	//go:embed norms.metal
	normText    string
	normKernels = kit.NewKernels[normVariant](kit.KeptMSL, normText)
)

func init() {
	rmsNorm.Define(normRules(rmsNorm, true))
	layerNorm.Define(normRules(layerNorm, false))
}

func normRules(op *tensor.OpOf[normAttrs], rms bool) tensor.Rules[normAttrs] {
	return tensor.Rules[normAttrs]{
		Shape: func(in []tensor.Spec, a normAttrs, outs []tensor.Shape) ([]tensor.Shape, error) {
			s := in[0].Shape
			if len(s) == 0 {
				return nil, errors.New("x is a scalar, it needs 1 dimension or more")
			}
			for i, what := range a.parameters() {
				if p := in[i+1].Shape; len(p) != 1 || p[0] != s[len(s)-1] {
					return nil, fmt.Errorf("%s has shape %v, want (%d,), the last dimension of x %v", what, p,
						s[len(s)-1], s)
				}
			}
			return append(outs, s), nil
		},
		DType: kit.OneDType[normAttrs],
		Run:   func(r *tensor.Run, a normAttrs) error { return runNorm(r, a, rms) },
		VJP:   func(g *tensor.VJP[normAttrs]) []*tensor.Array { return normVJP(g, rms) },
		JVP:   func(g *tensor.JVP[normAttrs]) []*tensor.Array { return normJVP(g, rms) },
		VMap: func(g *tensor.VMap[normAttrs]) ([]*tensor.Array, []int) {
			return []*tensor.Array{vmapNorm(op, g)}, []int{0}
		},
	}
}

// parameters names the inputs after x.
func (a normAttrs) parameters() []string {
	var names []string
	if a.Weight {
		names = append(names, "weight")
	}
	if a.Bias {
		names = append(names, "bias")
	}
	return names
}

// normVariant chooses a kernel. Each is how many elements of a row a lane has, 0 if rows do not stay in registers.
type normVariant struct {
	kit.Kept
	T, ACC            tensor.DType
	rms, weight, bias bool
	each              int
}

func runNorm(r *tensor.Run, a normAttrs, rms bool) error {
	out := r.Out[0]
	in, err := r.AllContiguous(len(r.In))
	if err != nil {
		return err
	}
	rows, n, err := kit.RowsOf(out.Shape)
	if err != nil {
		return err
	}
	acc := kit.Accumulator(out.DType)
	args := append(make([]tensor.Arg, 0, 6), in[0].Arg(), out.Arg(), kit.Uint(n), kit.Float(a.Eps.Float(), acc))
	for _, x := range in[1:] {
		args = append(args, x.Arg())
	}
	v := normVariant{T: out.DType, ACC: acc, rms: rms, weight: a.Weight, bias: a.Bias, each: kit.EachLane(n)}
	if v.each == 0 {
		v.Kept = kit.KeepRows(r, n, acc, 16)
	}
	return normKernels.Launch(r, v, "norm_rows", v.Over(rows), args...)
}

// normalised is x without its parameters' effect, in dtype acc, and what it was multiplied by.
func normalised(c *tensor.Ctx, x *tensor.Array, eps tensor.F64, acc tensor.DType, rms bool) (y, scale *tensor.Array) {
	last := []int{-1}
	y = ops.AsType(x, acc, c)
	if !rms {
		y = ops.Subtract(y, ops.Mean(y, last, true, c), c)
	}
	scale = ops.Rsqrt(ops.Add(ops.Mean(ops.Square(y, c), last, true, c), ops.Number(eps.Float(), acc, c), c), c)
	return ops.Multiply(y, scale, c), scale
}

// normTangent is the derivative of the normalised rows y along t, which is also its own transpose.
func normTangent(c *tensor.Ctx, t, y, scale *tensor.Array, rms bool) *tensor.Array {
	last := []int{-1}
	d := ops.Subtract(t, ops.Multiply(y, ops.Mean(ops.Multiply(t, y, c), last, true, c), c), c)
	if !rms {
		d = ops.Subtract(d, ops.Mean(t, last, true, c), c)
	}
	return ops.Multiply(scale, d, c)
}

func normJVP(g *tensor.JVP[normAttrs], rms bool) []*tensor.Array {
	c, d := g.Ctx, g.In[0].DType()
	acc := kit.Accumulator(d)
	y, scale := normalised(c, g.In[0], g.Attrs.Eps, acc, rms)
	var sum *tensor.Array
	add := func(t *tensor.Array) { sum = ops.AddTerm(c, sum, t) }
	if t := g.Tan[0]; t != nil {
		t = normTangent(c, ops.AsType(t, acc, c), y, scale, rms)
		if g.Attrs.Weight {
			t = ops.Multiply(t, ops.AsType(g.In[1], acc, c), c)
		}
		add(t)
	}
	if g.Attrs.Weight && g.Tan[1] != nil {
		add(ops.Multiply(y, ops.AsType(g.Tan[1], acc, c), c))
	}
	if last := len(g.In) - 1; g.Attrs.Bias && g.Tan[last] != nil {
		add(ops.BroadcastTo(ops.AsType(g.Tan[last], acc, c), tensor.ShapeOf(g.In[0]), c))
	}
	return []*tensor.Array{ops.AsType(sum, d, c)}
}

// vmapNorm applies a batch of parameters after the rows are normalised.
func vmapNorm(op *tensor.OpOf[normAttrs], g *tensor.VMap[normAttrs]) *tensor.Array {
	x := ops.FrontOf(g, 0, 0)
	batched := false
	for _, axis := range g.Axes[1:] {
		batched = batched || axis >= 0
	}
	if !batched {
		return op.One(g.Ctx, g.Attrs, append([]*tensor.Array{x}, g.In[1:]...)...)
	}
	c, d := g.Ctx, g.In[0].DType()
	acc := kit.Accumulator(d)
	y := op.One(c, normAttrs{Eps: g.Attrs.Eps}, ops.AsType(x, acc, c))
	parameter := func(i int) *tensor.Array { return ops.AsType(ops.FrontOf(g, i, kit.ExampleRank(g, 0)), acc, c) }
	if g.Attrs.Weight {
		y = ops.Multiply(y, parameter(1), c)
	}
	if g.Attrs.Bias {
		y = ops.Add(y, parameter(len(g.In)-1), c)
	}
	return ops.AsType(y, d, c)
}

var normDType = kit.Floats("x has dtype")

func callNorm(c *tensor.Ctx, op *tensor.OpOf[normAttrs], x, weight, bias *tensor.Array, eps float64) *tensor.Array {
	name := op.Op().Name()
	in := []*tensor.Array{x}
	for _, p := range []*tensor.Array{weight, bias} {
		if p != nil {
			in = append(in, p)
		}
	}
	if weight == nil && bias != nil { // MLX lets x decide then
		in[1] = ops.AsType(bias, x.DType(), c)
	}
	in, f := ops.Convert(c, name, normDType, in...)
	if f != nil {
		return f
	}
	return op.One(c, normAttrs{tensor.MakeF64(eps), weight != nil, bias != nil}, in...)
}

var _ = sig.Def("fast.rms_norm", "x weight:array? eps:number", func(a *sig.Args) any {
	return RMSNorm(a.Array(0), a.Array(1), a.Number(2), a.Ctx)
})

// RMSNorm divides each row of x, along the last axis, by the root of its mean square plus eps, and multiplies it by
// weight, which has the shape of a row and may be nil. The dtype is the common one of x and weight, and must be
// floating-point; the half types are computed in float32 and rounded once. A scalar x and a weight of another shape are
// errors.
func RMSNorm(x, weight *tensor.Array, eps float64, ctx ...*tensor.Ctx) *tensor.Array {
	return callNorm(tensor.Call(ctx), rmsNorm, x, weight, nil, eps)
}

var _ = sig.Def("fast.layer_norm", "x weight:array? bias:array? eps:number", func(a *sig.Args) any {
	return LayerNorm(a.Array(0), a.Array(1), a.Array(2), a.Number(3), a.Ctx)
})

// LayerNorm subtracts from each row of x, along the last axis, its mean, divides it by the root of its variance plus
// eps, multiplies it by weight and adds bias, which have the shape of a row and may be nil. The dtype is the common
// one of the three, or x's where there is no weight. Errors are those of [RMSNorm].
func LayerNorm(x, weight, bias *tensor.Array, eps float64, ctx ...*tensor.Ctx) *tensor.Array {
	return callNorm(tensor.Call(ctx), layerNorm, x, weight, bias, eps)
}

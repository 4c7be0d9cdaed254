package ops

import (
	"github.com/mlxlua/mlxlua/tensor"
	"github.com/mlxlua/mlxlua/tensor/ops/kit"
	"github.com/mlxlua/mlxlua/tensor/ops/sig"
)

var depends = tensor.Declare[tensor.None]("depends")

func init() {
	depends.Define(tensor.Rules[tensor.None]{
		Shape: func(in []tensor.Spec, _ tensor.None, outs []tensor.Shape) ([]tensor.Shape, error) {
			return append(outs, in[0].Shape), nil
		},
		DType: func(in []tensor.Spec, _ tensor.None, outs []tensor.DType) ([]tensor.DType, error) {
			return append(outs, in[0].DType), nil
		},
		View:     tensor.SameView[tensor.None],
		Gradient: func(g *tensor.VJP[tensor.None]) *tensor.Array { return g.Cot[0] },
		Tangent:  func(g *tensor.JVP[tensor.None]) *tensor.Array { return g.Tan[0] },
		VMap: func(g *tensor.VMap[tensor.None]) ([]*tensor.Array, []int) {
			return []*tensor.Array{depends.One(g.Ctx, tensor.None{}, g.In...)}, []int{g.Axes[0]}
		},
	})
}

var _ = sig.Def("depends", "inputs:array|arrays dependencies:array|arrays", func(a *sig.Args) any {
	list := func(i int) ([]*tensor.Array, bool) {
		if x, ok := sig.As[*tensor.Array](a, i); ok {
			return []*tensor.Array{x}, true
		}
		xs, _ := sig.As[[]*tensor.Array](a, i)
		return xs, false
	}
	inputs, one := list(0)
	dependencies, _ := list(1)
	out := Depends(inputs, dependencies, a.Ctx)
	if one {
		return out[0]
	}
	return sig.Table(out)
})

// Depends is inputs, an array or a list of them, that depend on dependencies too: whoever evaluates one of the results
// has these computed as well. Derivatives flow to the inputs.
func Depends(inputs, dependencies []*tensor.Array, ctx ...*tensor.Ctx) []*tensor.Array {
	c := tensor.Call(ctx)
	out := make([]*tensor.Array, len(inputs))
	for i, x := range inputs {
		in := append([]*tensor.Array{x}, dependencies...)
		if out[i] = kit.Unusable(c, "depends", in...); out[i] == nil {
			out[i] = depends.One(c, tensor.None{}, in...)
		}
	}
	return out
}

package ops

import (
	"github.com/mlxlua/mlxlua/tensor"
	"github.com/mlxlua/mlxlua/tensor/ops/kit"
)

// partOps are a pair of ops with attributes A that name some of an array's elements: see is a view of them, update a
// copy of input 0 in which they are input 1's, broadcast. Each is the other's derivative.
type partOps[A comparable] struct {
	see, update *tensor.OpOf[A]
	// shape is the part's in an array of shape s.
	shape func(s tensor.Shape, a A) (tensor.Shape, error)
	// place makes v, which has the part's shape and lies at the start of an array of shape s, the part of it: it fills in
	// the strides, of the array's, and adds to the offset.
	place func(s tensor.Shape, strides []int, a A, v *tensor.Operand)
	// batched is the part in a batch whose batch axis is first; rank is an example's.
	batched func(a A, rank int) A
	// fewer is how many dimensions the part has less than the array.
	fewer int
}

func (p partOps[A]) define() {
	p.see.Define(tensor.Rules[A]{
		Shape: func(in []tensor.Spec, a A, outs []tensor.Shape) ([]tensor.Shape, error) {
			s, err := p.shape(in[0].Shape, a)
			return append(outs, s), err
		},
		DType: kit.SameDType[A],
		View: func(in []tensor.Spec, v tensor.View, a A, out []tensor.Operand) bool {
			p.place(in[0].Shape, v.Strides, a, &out[0])
			return true
		},
		Gradient: func(g *tensor.VJP[A]) *tensor.Array {
			zeros := Zeros(tensor.ShapeOf(g.In[0]), g.Cot[0].DType(), g.Ctx)
			return p.update.One(g.Ctx, g.Attrs, zeros, g.Cot[0])
		},
		Tangent: func(g *tensor.JVP[A]) *tensor.Array { return p.see.One(g.Ctx, g.Attrs, g.Tan[0]) },
		VMap: func(g *tensor.VMap[A]) ([]*tensor.Array, []int) {
			a := p.batched(g.Attrs, kit.ExampleRank(g, 0))
			return []*tensor.Array{p.see.One(g.Ctx, a, FrontOf(g, 0, 0))}, []int{0}
		},
	})
	p.update.Define(tensor.Rules[A]{
		Shape: func(in []tensor.Spec, a A, outs []tensor.Shape) ([]tensor.Shape, error) {
			s, err := p.shape(in[0].Shape, a)
			if err != nil {
				return nil, err
			}
			return append(outs, in[0].Shape), kit.CheckBroadcast(in[1].Shape, s)
		},
		DType:   kit.OneDType[A],
		Updates: tensor.UpdatesFirst[A],
		Run: func(r *tensor.Run, a A) error {
			to, err := r.Updated()
			if err != nil {
				return err
			}
			if to.Shape, err = p.shape(r.Out[0].Shape, a); err != nil {
				return err
			}
			r.Changed(to.NBytes())
			if to.Shape.Size() == 0 {
				return nil
			}
			to.Strides = make([]int, len(to.Shape))
			p.place(r.Out[0].Shape, r.Out[0].Strides, a, &to)
			return r.CopyTo(to, kit.BroadcastOperand(r.In[1], to.Shape))
		},
		VJP: func(g *tensor.VJP[A]) []*tensor.Array {
			grads := make([]*tensor.Array, 2)
			if g.Want[0] {
				grads[0] = p.update.One(g.Ctx, g.Attrs, g.Cot[0], Number(0, g.Cot[0].DType(), g.Ctx))
			}
			if g.Want[1] {
				grads[1] = SumTo(p.see.One(g.Ctx, g.Attrs, g.Cot[0]), tensor.ShapeOf(g.In[1]), g.Ctx)
			}
			return grads
		},
		JVP: func(g *tensor.JVP[A]) []*tensor.Array {
			return []*tensor.Array{p.update.One(g.Ctx, g.Attrs, WithZeros(g.Ctx, g.Tan, g.In)...)}
		},
		VMap: func(g *tensor.VMap[A]) ([]*tensor.Array, []int) {
			rank := kit.ExampleRank(g, 0)
			x, u := FrontOf(g, 0, 0), FrontOf(g, 1, rank-p.fewer)
			return []*tensor.Array{p.update.One(g.Ctx, p.batched(g.Attrs, rank), x, u)}, []int{0}
		},
	})
}

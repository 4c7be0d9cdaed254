package tensor_test

import (
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/mlxlua/mlxlua/tensor"
)

// derived are ops of n inputs whose derivative rules want what the engine promises; rules names which they have.
func derived(name string, rules func(r *tensor.Rules[tensor.None])) *tensor.OpOf[tensor.None] {
	op := tensor.Declare[tensor.None](name)
	r := tensor.Rules[tensor.None]{
		Shape: func(in []tensor.Spec, _ tensor.None, outs []tensor.Shape) ([]tensor.Shape, error) {
			return append(outs, in[0].Shape, in[0].Shape), nil
		},
		DType: func(in []tensor.Spec, _ tensor.None, outs []tensor.DType) ([]tensor.DType, error) {
			return append(outs, in[0].DType, in[0].DType), nil
		},
		View: tensor.SameView[tensor.None],
	}
	rules(&r)
	op.Define(r)
	return op
}

var (
	alone = derived("test_gradient", func(r *tensor.Rules[tensor.None]) {
		r.Gradient = func(g *tensor.VJP[tensor.None]) *tensor.Array {
			if g.Cot[0] == nil {
				return g.Cot[1]
			}
			return g.Cot[0]
		}
		r.Tangent = func(g *tensor.JVP[tensor.None]) *tensor.Array { return g.Tan[0] }
	})
	both = derived("test_vjp", func(r *tensor.Rules[tensor.None]) {
		r.VJP = func(g *tensor.VJP[tensor.None]) []*tensor.Array { return g.Cot }
		r.JVP = func(g *tensor.JVP[tensor.None]) []*tensor.Array { return g.Tan }
	})
	constant = derived("test_constant", func(r *tensor.Rules[tensor.None]) { r.Constant = true })
)

// Derivative rules are called where there is something to derive, and give nothing elsewhere.
func TestNoDerivativeOfNothing(t *testing.T) {
	c := &tensor.Ctx{}
	x := tensor.FromBytes(c, tensor.Spec{Shape: tensor.Shape{1}, DType: tensor.Float32}, make([]byte, 4))
	type list = []*tensor.Array
	for _, s := range []struct {
		op         *tensor.OpOf[tensor.None]
		given      list // cotangents and tangents alike
		want       []bool
		grads, tan list
	}{
		{alone, list{nil, nil}, []bool{true, true}, list{nil, nil}, list{nil, nil}},
		{alone, list{nil, x}, []bool{true, true}, list{x, nil}, list{nil, nil}},
		{alone, list{x, nil}, []bool{false, true}, list{nil, nil}, list{x, nil}},
		{both, list{nil, nil}, []bool{true, true}, list{nil, nil}, list{nil, nil}},
		{both, list{nil, x}, []bool{true, true}, list{nil, x}, list{nil, x}},
		{constant, list{x, x}, []bool{true, true}, list{nil, nil}, list{nil, nil}},
	} {
		out := s.op.Call(c, tensor.None{}, x, x)
		node := out[0].Value().Node
		grads, err := node.CallVJP(c, list{x, x}, out, s.given, s.want)
		require.NoError(t, err)
		require.Equal(t, s.grads, grads, node.Op().Name())
		tan, err := node.CallJVP(c, list{x, x}, out, s.given)
		require.NoError(t, err)
		require.Equal(t, s.tan, tan, node.Op().Name())
	}
}

// Rules that contradict each other are refused.
func TestContradictingDerivatives(t *testing.T) {
	vjp := func(*tensor.VJP[tensor.None]) []*tensor.Array { return nil }
	gradient := func(*tensor.VJP[tensor.None]) *tensor.Array { return nil }
	for name, rules := range map[string]func(r *tensor.Rules[tensor.None]){
		"two rules for one derivative": func(r *tensor.Rules[tensor.None]) { r.VJP, r.Gradient = vjp, gradient },
		"a constant with a derivative": func(r *tensor.Rules[tensor.None]) { r.Constant, r.Gradient = true, gradient },
	} {
		require.PanicsWithValue(t, "BUG: op test "+name+": "+name, func() { derived("test "+name, rules) })
	}
}

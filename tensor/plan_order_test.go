package tensor_test

import (
	"math/rand/v2"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/mlxlua/mlxlua/metal"
	"github.com/mlxlua/mlxlua/tensor"
	"github.com/mlxlua/mlxlua/tensor/kernelgen"
)

// sumToOp sums the leading axes that its result does not have: none where that has the input's shape.
var sumToOp = tensor.Declare[dimsAttrs]("test_sum_to")

func init() {
	sumToOp.Define(tensor.Rules[dimsAttrs]{
		Shape: func(in []tensor.Spec, a dimsAttrs, outs []tensor.Shape) ([]tensor.Shape, error) {
			s, err := a.Shape.Shape(in)
			return append(outs, s), err
		},
		DType:    first[dimsAttrs],
		SpecFrom: func(dimsAttrs, int) int { return 1 },
		Reduce: func(a dimsAttrs, in []tensor.Spec) ([]int, kernelgen.Reducer, error) {
			s, err := a.Shape.Shape(in)
			var axes []int
			for i := range len(in[0].Shape) - len(s) {
				axes = append(axes, i)
			}
			return axes, kernelgen.Reducer{Acc: "float", Init: "0", Load: "$0", Combine: "$0 + $1", Finish: "$0"}, err
		},
		Same: true,
	})
}

func sumTo(a *tensor.Array, n ...int) *tensor.Array {
	return sumToOp.One(ctx(), dimsAttrs{tensor.MakeDims(n...)}, a)
}

// TestGradientsOfWeightsRunWhereTheirCotangentsAre: in the graph of a backward pass every cotangent and every
// activation has a second reader, the gradient of a weight. A walk from the gradients comes to all cotangents first.
func TestGradientsOfWeightsRunWhereTheirCotangentsAre(t *testing.T) {
	_, dev := withDevice(t, metal.DeviceOptions{})
	const layers, side = 12, 256 // 256 KiB for each array
	activations := []*tensor.Array{iota(side, side)}
	eval(t, activations[0])
	var all []*tensor.Array
	made := func(x *tensor.Array) *tensor.Array {
		all = append(all, x)
		return x
	}
	for i := range layers {
		activations = append(activations, made(mul(activations[i], array([]float32{0.5}, 1))))
	}
	cotangent := made(neg(activations[layers]))
	grads := make([]*tensor.Array, layers)
	for i := layers - 1; i >= 0; i-- {
		grads[i] = sum(made(mul(cotangent, trans(activations[i]))), 0)
		cotangent = made(add(cotangent, activations[i]))
	}
	tensor.Drop(all...)
	dev.ResetPeak()
	before := dev.Memory().Active
	eval(t, grads...)
	used := dev.Memory().Peak - before
	require.Less(t, used, int64(layers+4)*side*side*4, "the activations, and a few cotangents")
}

// TestOrderOfRandomGraphs: what is computed in one evaluation is what is computed call by call.
func TestOrderOfRandomGraphs(t *testing.T) {
	const side = 48 // 9 KiB for each array
	for seed := range uint64(8) {
		build := func(each func(x *tensor.Array)) []*tensor.Array {
			r := rand.New(rand.NewPCG(seed, 0))
			xs := []*tensor.Array{iota(side, side), neg(iota(side, side))}
			for range 240 {
				a, b := xs[len(xs)-1-r.IntN(min(len(xs), 12))], xs[r.IntN(len(xs))]
				var x *tensor.Array
				switch r.IntN(9) {
				case 0:
					x = trans(a)
				case 1:
					x = reshape(trans(reshape(a, side/2, 2*side)), side, side)
				case 2:
					x = expand(reshape(sum(a, 1), side, 1), side, side)
				case 3:
					x = sumTo(a, side, side) // a itself
				case 4:
					x = neg(a)
				case 5:
					x = expand(slice(reshape(a, side*side), 7, 7+side, 1), side, side)
				default:
					x = mul(add(a, trans(b)), array([]float32{0.25}, 1))
				}
				each(x)
				xs = append(xs, x)
			}
			return xs
		}
		want := build(func(x *tensor.Array) { eval(t, x) })
		got := build(func(*tensor.Array) {})
		r := rand.New(rand.NewPCG(seed, 1))
		var roots, dropped []*tensor.Array
		for i, x := range got[2:] {
			switch {
			case i > 230 || r.IntN(30) == 0:
				roots = append(roots, x)
			case r.IntN(3) > 0:
				dropped = append(dropped, x)
				got[2+i] = nil
			}
		}
		tensor.Drop(dropped...)
		eval(t, roots...)
		for i, x := range got {
			if x != nil {
				require.Equal(t, floats(t, want[i]), floats(t, x), "seed %d, array %d", seed, i)
			}
		}
	}
}

// TestSumsOverNothingAreTheirInput: a cotangent that has the shape of its operand is not copied, and what comes before
// and after it is one kernel.
func TestSumsOverNothingAreTheirInput(t *testing.T) {
	x := iota(64, 64)
	y := sumTo(sumTo(x, 64, 64), 64, 64)
	require.Empty(t, commands(func() { eval(t, y) }))
	require.Equal(t, floats(t, x), floats(t, y))
	require.Len(t, commands(func() { eval(t, sumTo(x, 64)) }), 1)

	before := neg(x)
	nothing := sumTo(before, 64, 64)
	after := mul(nothing, x)
	tensor.Drop(before, nothing)
	require.Len(t, commands(func() { eval(t, after) }), 1)
	require.Equal(t, float32(-9), floats(t, after)[3])

	defer tensor.SetFusion(tensor.SetFusion(false))
	z := mul(sumTo(neg(x), 64, 64), x)
	require.Len(t, commands(func() { eval(t, z) }), 2)
	require.Equal(t, float32(-9), floats(t, z)[3])
}

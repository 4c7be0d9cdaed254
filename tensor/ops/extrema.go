package ops

import (
	"strings"

	"github.com/mlxlua/mlxlua/tensor"
	"github.com/mlxlua/mlxlua/tensor/kernelgen"
	"github.com/mlxlua/mlxlua/tensor/ops/kit"
	"github.com/mlxlua/mlxlua/tensor/ops/sig"
)

var (
	maxReduce = tensor.Declare[reduceAttrs]("max")
	minReduce = tensor.Declare[reduceAttrs]("min")
	// The maximum that is -inf (or the lowest number) where there is nothing: softmax of an empty axis needs it.
	maxOrLowest = tensor.Declare[reduceAttrs]("max_or_lowest")
	argMax      = tensor.Declare[reduceAttrs]("argmax")
	argMin      = tensor.Declare[reduceAttrs]("argmin")
)

func init() {
	extremum := func(op *tensor.OpOf[reduceAttrs], relation string, limit func(d tensor.DType) string, nonEmpty bool) {
		defineReduction(op, reduction{
			NonEmpty: nonEmpty,
			Reducer: func(d, _ tensor.DType) kernelgen.Reducer {
				return kernelgen.Reducer{Acc: d.MSL(), Init: limit(d), Load: "$0", Combine: pick(relation).at(d),
					Finish: "$0"}
			},
			Gradient: func(g *tensor.VJP[reduceAttrs]) *tensor.Array {
				cot := kept(g.Ctx, g.Cot[0], g.Attrs, g.In[0].NDim())
				return Multiply(cot, shares(g.Ctx, g.In[0], g.Out[0], g.Attrs, cot.DType()), g.Ctx)
			},
			Tangent: func(g *tensor.JVP[reduceAttrs]) *tensor.Array {
				t := Multiply(g.Tan[0], shares(g.Ctx, g.In[0], g.Out[0], g.Attrs, g.Tan[0].DType()), g.Ctx)
				return sum.One(g.Ctx, g.Attrs, t)
			},
		})
	}
	extremum(maxReduce, ">=", kit.Least, true)
	extremum(minReduce, "<=", kit.Greatest, true)
	extremum(maxOrLowest, ">=", kit.Least, false)

	position := func(op *tensor.OpOf[reduceAttrs], relation string, limit func(d tensor.DType) string) {
		defineReduction(op, reduction{
			NonEmpty: true,
			Out:      func(tensor.DType) tensor.DType { return tensor.Uint32 },
			Reducer: func(d, _ tensor.DType) kernelgen.Reducer {
				return positionReducer(op.Op().Name(), relation, d, limit(d))
			},
		})
	}
	position(argMax, ">", kit.Least)
	position(argMin, "<", kit.Greatest)
}

// shares is, for each element of x, its part of the derivative of the extremum: equal elements share it equally, as
// in MLX.
func shares(c *tensor.Ctx, x, out *tensor.Array, a reduceAttrs, d tensor.DType) *tensor.Array {
	mask := AsType(Equal(x, kept(c, out, a, x.NDim()), c), d, c)
	axes := axesOf(a, x.NDim())
	return Divide(mask, Sum(mask, axes, true, c), c)
}

// positionReducer keeps the first of the most extreme elements with its index; NaN is more extreme than all numbers.
// limit is the least extreme value: where nothing beats it all elements are equal to it, and the first has index 0.
func positionReducer(name, relation string, d tensor.DType, limit string) kernelgen.Reducer {
	acc := name + "_" + d.MSL()
	// loses: a gives way to b, wherever the two are. That no comparison holds for NaN lets it win.
	loses := "b.value " + relation + " a.value"
	same := "a.value == b.value"
	switch {
	case d.IsFloat():
		opposite := map[string]string{">": "<=", "<": ">="}[relation]
		loses = "!(b.value " + opposite + " a.value) && a.value == a.value"
		same += " || a.value != a.value && b.value != b.value"
	case d.IsComplex():
		nan := func(v string) string { return v + ".real != " + v + ".real || " + v + ".imag != " + v + ".imag" }
		loses = strings.NewReplacer("NAN_A", nan("a.value"), "NAN_B", nan("b.value"), "BEATS",
			strings.NewReplacer("$0", "b.value", "$1", "a.value").Replace(lexicographic(relation, relation))).
			Replace("!(NAN_A) && ((NAN_B) || (BEATS))")
		same += " || (" + nan("a.value") + ") && (" + nan("b.value") + ")"
	}
	header := strings.NewReplacer("ACC", acc, "TYPE", d.MSL(), "LOSES", loses, "SAME", same).Replace(`
struct ACC {
    TYPE value;
    uint index;
};
inline ACC ACC_make(TYPE value, uint index) {
    ACC r;
    r.value = value;
    r.index = index;
    return r;
}
inline ACC ACC_next(ACC a, ACC b) {
    bool loses = LOSES;
    return ACC_make(loses ? b.value : a.value, loses ? b.index : a.index);
}
inline ACC ACC_pick(ACC a, ACC b) {
    bool loses = (LOSES) || (SAME) && b.index < a.index;
    return ACC_make(loses ? b.value : a.value, loses ? b.index : a.index);
}
`)
	return kernelgen.Reducer{Acc: acc, Header: header, Init: acc + "_make(" + limit + ", 0u)",
		Load: acc + "_make($0, uint($i))", Next: acc + "_next($0, $1)", Combine: acc + "_pick($0, $1)",
		Finish: "$0.index", Down: positionDown(acc, d)}
}

// positionDown is how lanes pass a position on, if its value is a number of at most 32 bits.
func positionDown(acc string, d tensor.DType) string {
	by := "int"
	switch {
	case d.Size() > 4:
		return ""
	case d.IsFloat():
		by = "float"
	case d.Size() == 4:
		by = d.MSL()
	}
	return acc + "_make(" + d.MSL() + "(simd_shuffle_down(" + by + "($0.value), $1)), simd_shuffle_down($0.index, $1))"
}

var _ = sig.Reduce("max", Max)

// Max is the largest of a's elements along axes (nil: all; negative ones count from the end), NaN if one is NaN, in
// a's dtype. With keepdims the reduced dimensions stay as ones. An axis without elements is an error. Equal
// elements share the gradient. Complex numbers compare by their real parts, then by their imaginary ones.
func Max(a *tensor.Array, axes []int, keepdims bool, ctx ...*tensor.Ctx) *tensor.Array {
	return callReduction(tensor.Call(ctx), maxReduce, a, axes, keepdims)
}

// MaxOrLowest is Max that gives the lowest value where there are no elements: for rules that subtract a maximum.
//
//sig:none softmax and logsumexp start from it
func MaxOrLowest(a *tensor.Array, axes []int, keepdims bool, ctx ...*tensor.Ctx) *tensor.Array {
	return callReduction(tensor.Call(ctx), maxOrLowest, a, axes, keepdims)
}

var _ = sig.Reduce("min", Min)

// Min is the smallest of a's elements along axes: see [Max].
func Min(a *tensor.Array, axes []int, keepdims bool, ctx ...*tensor.Ctx) *tensor.Array {
	return callReduction(tensor.Call(ctx), minReduce, a, axes, keepdims)
}

// position declares a reduction to the place of an element along one axis, or none for all.
func position(name string, f func(*tensor.Array, []int, bool, ...*tensor.Ctx) *tensor.Array) *sig.Func {
	return sig.Def(name, "a axis:axis? keepdims:bool=false", func(a *sig.Args) any {
		var axes []int
		if axis := a.Axis(1); axis != nil {
			axes = []int{*axis}
		}
		return f(a.Array(0), axes, a.Bool(2), a.Ctx)
	})
}

var _ = position("argmax", ArgMax)

// ArgMax is the index of the first largest element along an axis, as uint32; without one, into the flattened array.
// NaN counts as larger than all numbers. With keepdims the reduced dimensions stay as ones. An empty axis is an error.
// No gradient flows.
func ArgMax(a *tensor.Array, axes []int, keepdims bool, ctx ...*tensor.Ctx) *tensor.Array {
	return callReduction(tensor.Call(ctx), argMax, a, axes, keepdims)
}

var _ = position("argmin", ArgMin)

// ArgMin is the index of the first smallest element along an axis, as uint32. NaN counts as smaller than all numbers:
// see [ArgMax].
func ArgMin(a *tensor.Array, axes []int, keepdims bool, ctx ...*tensor.Ctx) *tensor.Array {
	return callReduction(tensor.Call(ctx), argMin, a, axes, keepdims)
}

package quant

import (
	"math"

	"github.com/mlxlua/mlxlua/tensor"
	"github.com/mlxlua/mlxlua/tensor/ops"
	"github.com/mlxlua/mlxlua/tensor/ops/kit"
	"github.com/mlxlua/mlxlua/tensor/ops/sig"
)

// Products of which both operands have few bits.

// roundTrip takes an array and perhaps a global scale, and gives what unpacking makes of the packed array, in its
// dtype. Its gradient is that of doing nothing: the steps of rounding have none.
var roundTrip = tensor.Declare[quantAttrs]("quantized_values")

func init() {
	roundTrip.Define(tensor.Rules[quantAttrs]{
		Shape: func(in []tensor.Spec, a quantAttrs, outs []tensor.Shape) ([]tensor.Shape, error) {
			_, err := a.groupsOf(in)
			return append(outs, in[0].Shape), err
		},
		DType:    kit.SameDType[quantAttrs],
		Run:      runRoundTrip,
		Gradient: func(g *tensor.VJP[quantAttrs]) *tensor.Array { return g.Cot[0] },
		Tangent:  func(g *tensor.JVP[quantAttrs]) *tensor.Array { return g.Tan[0] },
		VMap:     batchFactors(roundTrip, 1),
	})
}

func runRoundTrip(r *tensor.Run, a quantAttrs) error {
	x, err := r.Contiguous(0)
	if err != nil {
		return err
	}
	groups := x.Shape.Size() / a.Group
	if err := kit.CheckCount(groups, math.MaxUint32, "groups"); err != nil {
		return err
	}
	factors, err := factorArgs(r, 1, groups)
	if err != nil {
		return err
	}
	return groupKernels.Launch(r, a.variant(x.DType, x.DType, factors != nil), "round_trip", kit.Line(groups),
		append([]tensor.Arg{x.Arg(), r.Out[0].Arg()}, factors...)...)
}

// valuesCall is what both products check: the mode and the global scales.
type valuesCall struct {
	c  *tensor.Ctx
	op string
	q  Quantization
	quantAttrs
}

func newValuesCall(c *tensor.Ctx, op string, x, w, scales, globalX, globalW *tensor.Array, q Quantization) (valuesCall,
	*tensor.Array) {
	if q.Mode == "" {
		q.Mode = formats[nvfp4].name
	}
	v := valuesCall{c: c, op: op, q: q}
	if f := kit.Unusable(c, op, x, w); f != nil {
		return v, f
	}
	var err error
	if v.quantAttrs, err = q.resolve(); err != nil {
		return v, tensor.Fail(c, op, "%w", err)
	}
	if v.Mode == affine || v.blocks() != nil {
		return v, tensor.Fail(c, op, "mode %s is not for products of two packed operands, want nvfp4, mxfp8 or mxfp4",
			formats[v.Mode].name)
	}
	if f := kit.Floats("x has dtype").Refused(c, op, x.DType()); f != nil {
		return v, f
	}
	if d := w.DType(); d != tensor.Uint32 && !d.IsFloat() {
		return v, tensor.Fail(c, op, "w has dtype %v, want a floating-point one, or uint32 for packed words", d)
	}
	switch packed := w.DType() == tensor.Uint32; {
	case packed && scales == nil:
		return v, tensor.Fail(c, op, "a packed w needs scales")
	case !packed && scales != nil:
		return v, tensor.Fail(c, op, "scales are for packed words, w has dtype %v", w.DType())
	case (globalX == nil) != (globalW == nil):
		return v, tensor.Fail(c, op, "one of global_scale_x and global_scale_w is given, want both or none")
	}
	for _, g := range []*tensor.Array{globalX, globalW} {
		if f := checkGlobal(c, op, v.quantAttrs, g); f != nil {
			return v, f
		}
	}
	return v, nil
}

// values are those of an array that was packed.
func (v valuesCall) values(x, global *tensor.Array) *tensor.Array {
	if global != nil {
		return roundTrip.One(v.c, v.quantAttrs, x, global)
	}
	return roundTrip.One(v.c, v.quantAttrs, x)
}

// of is the quantization of a packed w with its global scale.
func (v valuesCall) of(global *tensor.Array) Quantization {
	q := v.q
	q.GlobalScale = global
	return q
}

// QQMMCall are the optional arguments of QQMM and GatherQQMM. The mode is nvfp4 where none is named.
type QQMMCall struct {
	Quantization
	// Scales are those of a packed w, nil for one that is not packed.
	Scales *tensor.Array
	// GlobalX and GlobalW are the global scales of x and w: both or none.
	GlobalX, GlobalW *tensor.Array
}

var _ = sig.Def("qqmm", "x w scales:array? group_size:int? bits:int? mode:string=nvfp4 global_scale_x:array? "+
	"global_scale_w:array?", func(a *sig.Args) any {
	q, err := quantization(a, 3, -1)
	if err != nil {
		return err
	}
	return QQMM(a.Array(0), a.Array(1), QQMMCall{q, a.Array(2), a.Array(6), a.Array(7)}, a.Ctx)
})

// QQMM is x times the transpose of w, where both are of few bits: x, which is rounded to the values that [Quantize] can
// pack, and w, which is packed with its scales or is rounded as x is. The mode is "nvfp4", "mxfp8" or "mxfp4", and both
// have global scales or none has. The result has x's dtype and is added up in float32 (float64 for float64). Dimensions
// of x before the last are rows. Shapes that do not fit are errors. Gradients flow to x and to a w that is not packed,
// as if nothing were rounded on the way back.
func QQMM(x, w *tensor.Array, call QQMMCall, ctx ...*tensor.Ctx) *tensor.Array {
	const op = "qqmm"
	c := tensor.Call(ctx)
	v, f := newValuesCall(c, op, x, w, call.Scales, call.GlobalX, call.GlobalW, call.Quantization)
	if f != nil {
		return f
	}
	if w.NDim() != 2 {
		return tensor.Fail(c, op, "w has shape %v, want a matrix", w.Spec().Shape)
	}
	d := x.DType()
	x = v.values(x, call.GlobalX)
	if call.Scales == nil {
		w = ops.AsType(v.values(w, call.GlobalW), d, c)
		return kit.FailedAs(c, op, ops.Matmul(x, ops.SwapAxes(w, -1, -2, c), c))
	}
	return kit.FailedAs(c, op, QuantizedMatmul(x, w, call.Scales, nil, true, v.of(call.GlobalW), c))
}

var _ = sig.Def("gather_qqmm", "x w scales:array? lhs_indices:indices? rhs_indices:indices? group_size:int? bits:int? "+
	"mode:string=nvfp4 global_scale_x:array? global_scale_w:array? sorted_indices:bool=false",
	func(a *sig.Args) any {
		q, err := quantization(a, 5, -1)
		if err != nil {
			return err
		}
		return GatherQQMM(a.Array(0), a.Array(1), a.Array(3), a.Array(4), QQMMCall{q, a.Array(2), a.Array(8), a.Array(9)},
			a.Ctx)
	}, sig.Same("the default of sorted_indices", "each product is made alone: no kernel needs an order of them"))

// GatherQQMM is a batch of the products of [QQMM]: lhs_indices picks matrices of x and rhs_indices those of w, as in
// [GatherQMM]. sorted_indices promises an order of rhs_indices, on which neither result nor speed depends.
func GatherQQMM(x, w, lhs, rhs *tensor.Array, call QQMMCall, ctx ...*tensor.Ctx) *tensor.Array {
	const op = "gather_qqmm"
	c := tensor.Call(ctx)
	v, f := newValuesCall(c, op, x, w, call.Scales, call.GlobalX, call.GlobalW, call.Quantization)
	if f != nil {
		return f
	}
	if x.NDim() < 2 || w.NDim() < 2 {
		return tensor.Fail(c, op, "x has shape %v and w %v, they need 2 dimensions or more", x.Spec().Shape, w.Spec().Shape)
	}
	d := x.DType()
	x = v.values(x, call.GlobalX)
	if call.Scales != nil {
		q := v.of(call.GlobalW)
		if q.GlobalScale != nil {
			q.GlobalScale = ops.Reshape(q.GlobalScale, tensor.Sizes(), c)
		}
		return kit.FailedAs(c, op, GatherQMM(x, w, call.Scales, nil, GatherQMMCall{LHS: lhs, RHS: rhs, Quantization: q}, c))
	}
	w = ops.AsType(v.values(w, call.GlobalW), d, c)
	pick := func(y, index *tensor.Array) *tensor.Array {
		if index == nil {
			return y
		}
		return ops.Take(flatBatch(c, y), index, new(0), c)
	}
	return kit.FailedAs(c, op, ops.Matmul(pick(x, lhs), ops.SwapAxes(pick(w, rhs), -1, -2, c), c))
}

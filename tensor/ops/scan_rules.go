package ops

import (
	"github.com/mlxlua/mlxlua/tensor"
	"github.com/mlxlua/mlxlua/tensor/ops/kit"
)

// The derivatives of cumulative ops.

// back are the attributes of the scan that carries cotangents: it runs the other way.
func (a scanAttrs) back() scanAttrs {
	a.Reverse = !a.Reverse
	return a
}

func cumSumGradient(g *tensor.VJP[scanAttrs]) *tensor.Array {
	return cumSum.One(g.Ctx, g.Attrs.back(), g.Cot[0])
}

// cumProdGradient: the derivative of a product by a factor is the product divided by it. From the first zero on that
// is the product with the zero replaced by 1, and for other elements 0.
func cumProdGradient(g *tensor.VJP[scanAttrs]) *tensor.Array {
	c, a, cot := g.Ctx, g.Attrs, g.Cot[0]
	x, y := conj(c, g.In[0]), conj(c, g.Out[0])
	inclusive := scanAttrs{Axis: a.Axis, Reverse: a.Reverse}
	one, zero := Number(1, x.DType(), c), Number(0, x.DType(), c)
	isZero := Equal(x, zero, c)
	zeros := cumSum.One(c, inclusive, AsType(isZero, tensor.Int32, c))
	first := LogicalAnd(isZero, Equal(zeros, Number(1, tensor.Int32, c), c), c)
	divided := cumProd.One(c, a, Where(first, one, x, c))
	plain := Divide(cumSum.One(c, a.back(), Multiply(cot, y, c)), Where(isZero, one, x, c), c)
	atZero := cumSum.One(c, a.back(), Multiply(cot, divided, c))
	return Where(first, atZero, plain, c)
}

// cumExtremumGradient gives each cotangent to the last element that set the record.
func cumExtremumGradient(op *tensor.OpOf[scanAttrs], g *tensor.VJP[scanAttrs]) *tensor.Array {
	c, a, x, cot := g.Ctx, g.Attrs, g.In[0], g.Cot[0]
	axis, err := tensor.Axis(a.Axis, x.NDim())
	if err != nil {
		return tensor.Fail(c, op.Op().Name(), "%w", err)
	}
	inclusive := scanAttrs{Axis: axis, Reverse: a.Reverse}
	record := Equal(x, op.One(c, inclusive, x), c)
	place := IotaAlong(c, x, axis)
	later, none := cumMax, Number(-1, tensor.Int32, c)
	if a.Reverse {
		later, none = cumMin, Number(1<<31-1, tensor.Int32, c)
	}
	last := later.One(c, scanAttrs{Axis: axis, Reverse: a.Reverse, Exclusive: a.Exclusive}, Where(record, place,
		none, c))
	known := LogicalAnd(GreaterEqual(last, Number(0, tensor.Int32, c), c),
		Less(last, Number(1<<31-1, tensor.Int32, c), c), c)
	zero := Number(0, cot.DType(), c)
	last = StopGradient(Where(known, last, Number(0, tensor.Int32, c), c), c)
	to, index, attrs, fail := alongAxis(c, op.Op().Name(), Zeros(tensor.ShapeOf(x), cot.DType(), c), last, &axis)
	if fail != nil {
		return fail
	}
	in := append([]*tensor.Array{to, Where(known, cot, zero, c)}, index...)
	return scatter.One(c, scatterAttrs{attrs, scatterAdd}, in...)
}

// logCumSumExpGradient: with y = logcumsumexp(x), dx[i] = sum over j >= i of cot[j] exp(x[i] - y[j]) = exp(x[i] - y[i])
// s[i], where s[i] = cot[i] + exp(y[i] - y[i+1]) s[i+1]. No exponential here is above 1.
func logCumSumExpGradient(g *tensor.VJP[scanAttrs]) *tensor.Array {
	c, a, cot := g.Ctx, g.Attrs, g.Cot[0]
	x, y := conj(c, g.In[0]), conj(c, g.Out[0])
	inclusive := scanAttrs{Axis: a.Axis, Reverse: a.Reverse}
	if a.Exclusive {
		y = logCumSumExp.One(c, inclusive, x)
		cot = shiftAlong(c, cot, inclusive.back())
	}
	// Where all so far are -inf their share is 0, not exp(-inf + inf).
	finite := Where(IsInf(y, c), Number(0, y.DType(), c), y, c)
	// After the last y comes itself: exp(y - 0) could be infinite, and 0 times that is none of its derivative.
	decay := Exp(Subtract(y, shift(c, finite, inclusive.back(), true), c), c)
	s := linearScan.One(c, inclusive.back(), decay, cot)
	return Multiply(Exp(Subtract(x, finite, c), c), s, c)
}

// shiftAlong moves x's elements by one place in the direction of the scan; a zero comes first.
func shiftAlong(c *tensor.Ctx, x *tensor.Array, a scanAttrs) *tensor.Array {
	return shift(c, x, a, false)
}

// shift is shiftAlong, or with repeat the first element comes twice.
func shift(c *tensor.Ctx, x *tensor.Array, a scanAttrs, repeat bool) *tensor.Array {
	axis, err := tensor.Axis(a.Axis, x.NDim())
	if err != nil {
		return tensor.Fail(c, "shift", "%w", err)
	}
	cut := func(start, stop int) *tensor.Array {
		parts := make([]Part, axis+1)
		for i := range parts {
			parts[i] = Whole()
		}
		parts[axis] = Span(start, stop, 1)
		return Slice(x, parts, c)
	}
	first := cut(0, 1)
	if a.Reverse {
		first = cut(-1, None)
	}
	if !repeat {
		first = ZerosLike(first, c)
	}
	if a.Reverse {
		return concatenate.One(c, axisAttrs{axis}, cut(1, None), first)
	}
	return concatenate.One(c, axisAttrs{axis}, first, cut(None, -1))
}

func linearScanRules() tensor.Rules[scanAttrs] {
	return tensor.Rules[scanAttrs]{
		Shape: sameAttrsShape,
		DType: kit.OneDType[scanAttrs],
		Run:   runLinearScan,
		VJP: func(g *tensor.VJP[scanAttrs]) []*tensor.Array {
			c := g.Ctx
			db := linearScan.One(c, g.Attrs.back(), shiftAlong(c, conj(c, g.In[0]), g.Attrs.back()), g.Cot[0])
			return []*tensor.Array{Multiply(db, shiftAlong(c, conj(c, g.Out[0]), g.Attrs), c), db}
		},
		VMap: func(g *tensor.VMap[scanAttrs]) ([]*tensor.Array, []int) {
			y := linearScan.One(g.Ctx, pastBatch(g), FrontOf(g, 0, 0), FrontOf(g, 1, 0))
			return []*tensor.Array{y}, []int{0}
		},
	}
}

func runLinearScan(r *tensor.Run, a scanAttrs) error {
	out := r.Out[0]
	x, err := r.Contiguous(0)
	if err != nil {
		return err
	}
	b, err := r.Contiguous(1)
	if err != nil {
		return err
	}
	n, outer, inner, err := scanSizes(x.Shape, a.Axis)
	if err != nil {
		return err
	}
	v := scanVariant{T: x.DType, ACC: kit.Accumulator(x.DType), reverse: a.Reverse, exclusive: a.Exclusive, linear: true}
	return scanKernels.Launch(r, v, "scan_linear", kit.Plane(inner, outer), x.Arg(), b.Arg(), out.Arg(), kit.Uint(n),
		tensor.Const(uint64(inner)))
}

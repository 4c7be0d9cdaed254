package ops

import (
	_ "embed"
	"errors"
	"fmt"
	"math"

	"github.com/mlxlua/mlxlua/tensor"
	"github.com/mlxlua/mlxlua/tensor/ops/kit"
	"github.com/mlxlua/mlxlua/tensor/ops/sig"
)

// filling is what argument i fills an array of dtype d with.
func filling(a *sig.Args, i int, d tensor.DType) *tensor.Array {
	f := a.Fill(i)
	if f.Array != nil {
		return f.Array
	}
	if d == tensor.Complex64 {
		d = tensor.Float32
	}
	return Number(f.Number, d, a.Ctx)
}

var _ = sig.Def("full", "shape:shape vals:fill dtype:dtype?", func(a *sig.Args) any {
	d := a.DTypeOr(2, a.Fill(1).DType(tensor.Float32))
	return Full(a.Shape(0), filling(a, 1, d), d, a.Ctx)
})

// Full is an array of that shape whose elements are those of vals, converted to dtype and broadcast. It costs no
// memory: all elements share the bytes of vals. A shape with a negative size, one that vals does not broadcast to, and
// one whose elements would be more than the memory limit are errors.
func Full(shape tensor.ShapeArg, vals *tensor.Array, dtype tensor.DType, ctx ...*tensor.Ctx) *tensor.Array {
	return fill(tensor.Call(ctx), "full", shape, vals, dtype)
}

func fill(c *tensor.Ctx, name string, shape tensor.ShapeArg, value *tensor.Array, d tensor.DType) *tensor.Array {
	if f := kit.Unusable(c, name, value); f != nil {
		return f
	}
	if n, ok := shape.Numbers(); ok {
		err := tensor.Shape(n).Check(d)
		if err == nil { // what would read it needs the memory that it does without
			err = tensor.Fits(c, tensor.Spec{Shape: n, DType: d})
		}
		if err != nil {
			return tensor.Fail(c, name, "%w", err)
		}
	}
	return kit.FailedAs(c, name, callShaped(c, full, AsType(value, d, c), shape))
}

var _ = sig.Def("zeros", "shape:shape dtype:dtype=float32", func(a *sig.Args) any {
	return Zeros(a.Shape(0), a.DType(1), a.Ctx)
})

var _ = sig.Alias("empty", "zeros")

// Zeros is an array of zeros. It costs no memory: all elements share one zero's bytes.
func Zeros(shape tensor.ShapeArg, d tensor.DType, ctx ...*tensor.Ctx) *tensor.Array {
	c := tensor.Call(ctx)
	return fill(c, "zeros", shape, Number(0, d, c), d)
}

var _ = sig.Def("ones", "shape:shape dtype:dtype=float32", func(a *sig.Args) any {
	return Ones(a.Shape(0), a.DType(1), a.Ctx)
})

// Ones is an array of ones. It costs no memory: all elements share one one's bytes.
func Ones(shape tensor.ShapeArg, d tensor.DType, ctx ...*tensor.Ctx) *tensor.Array {
	c := tensor.Call(ctx)
	return fill(c, "ones", shape, Number(1, d, c), d)
}

var _ = sig.Def("full_like", "a vals:fill dtype:dtype?", func(a *sig.Args) any {
	d := a.DTypeOr(2, a.Array(0).DType())
	return FullLike(a.Array(0), filling(a, 1, d), d, a.Ctx)
})

// FullLike is vals, converted to dtype and broadcast to a's shape, which is not read: a replay follows it.
func FullLike(a, vals *tensor.Array, dtype tensor.DType, ctx ...*tensor.Ctx) *tensor.Array {
	c := tensor.Call(ctx)
	if f := kit.Unusable(c, "full_like", a, vals); f != nil {
		return f
	}
	return fill(c, "full_like", tensor.ShapeOf(a), vals, dtype)
}

var _ = sig.Def("zeros_like", "a dtype:dtype?", func(a *sig.Args) any {
	return Zeros(tensor.ShapeOf(a.Array(0)), a.DTypeOr(1, a.Array(0).DType()), a.Ctx)
})

var _ = sig.Alias("empty_like", "zeros_like")

// ZerosLike is zeros of a's shape, and of its dtype unless a script gives another.
func ZerosLike(a *tensor.Array, ctx ...*tensor.Ctx) *tensor.Array {
	c := tensor.Call(ctx)
	if f := kit.Unusable(c, "zeros_like", a); f != nil {
		return f
	}
	return Zeros(tensor.ShapeOf(a), a.DType(), c)
}

var _ = sig.Def("ones_like", "a dtype:dtype?", func(a *sig.Args) any {
	return Ones(tensor.ShapeOf(a.Array(0)), a.DTypeOr(1, a.Array(0).DType()), a.Ctx)
})

// OnesLike is ones of a's shape, and of its dtype unless a script gives another.
func OnesLike(a *tensor.Array, ctx ...*tensor.Ctx) *tensor.Array {
	c := tensor.Call(ctx)
	if f := kit.Unusable(c, "ones_like", a); f != nil {
		return f
	}
	return Ones(tensor.ShapeOf(a), a.DType(), c)
}

var _ = sig.Def("eye", "n:int m:int? k:int=0 dtype:dtype=float32", func(a *sig.Args) any {
	cols := a.Int(0)
	if a.Given(1) {
		cols = a.Int(1)
	}
	return Eye(a.Int(0), cols, a.Int(2), a.DType(3), a.Ctx)
})

// Eye is a matrix of n rows and m columns (in a script n, where m is nil) with ones on the k-th diagonal (above the
// main one if k > 0) and zeros elsewhere.
func Eye(n, m, k int, d tensor.DType, ctx ...*tensor.Ctx) *tensor.Array {
	c := tensor.Call(ctx)
	if n < 0 || m < 0 {
		return tensor.Fail(c, "eye", "negative dimension in shape %v", tensor.Shape{n, m})
	}
	lo := float64(k)
	row := Arange(lo, lo+float64(n), 1, tensor.Int64, c)
	col := Arange(0, float64(m), 1, tensor.Int64, c)
	column := ExpandDims(row, []int{1}, c)
	equal := Equal(column, col, c)
	out := AsType(equal, d, c)
	tensor.Drop(row, col, column)
	if out != equal {
		tensor.Drop(equal) // so that the matrix of bools need not be stored
	}
	return out
}

// arangeAttrs are arange's arguments as the user wrote them.
type arangeAttrs struct {
	Start, Stop, Step tensor.F64
	DType             tensor.DType
}

var (
	arange = tensor.Declare[arangeAttrs]("arange")
	//go:embed arange.metal
	arangeText    string
	arangeKernels = kit.NewKernels[arangeVariant](arangeText)
)

// arangeVariant is the dtypes of elements and of what they are counted in.
type arangeVariant struct{ T, counter tensor.DType }

func init() {
	arange.Define(tensor.Rules[arangeAttrs]{
		Shape: func(_ []tensor.Spec, a arangeAttrs, outs []tensor.Shape) ([]tensor.Shape, error) {
			n, err := arangeLen(a.Start.Float(), a.Stop.Float(), a.Step.Float())
			return append(outs, tensor.Shape{n}), err
		},
		DType: func(_ []tensor.Spec, a arangeAttrs, outs []tensor.DType) ([]tensor.DType, error) {
			if a.DType == tensor.Bool {
				return nil, errors.New("does not make dtype bool")
			}
			return append(outs, a.DType), nil
		},
		Run:      runArange,
		Constant: true,
	})
}

func arangeLen(start, stop, step float64) (int, error) {
	if step == 0 {
		return 0, errors.New("step is 0")
	}
	n := math.Ceil((stop - start) / step)
	if n == 0 && math.IsInf(step, 0) && step > 0 == (stop > start) && stop != start {
		n = 1 // a step beyond stop
	}
	switch {
	case math.IsNaN(n) || math.IsInf(n, 0) || math.IsInf(start, 0):
		return 0, fmt.Errorf("has no length from %v to %v by %v", start, stop, step)
	case n > math.MaxInt32:
		return 0, fmt.Errorf("has %v elements from %v to %v by %v, more than 2147483647", n, start, stop, step)
	}
	return max(int(n), 0), nil
}

// runArange counts in 64-bit integers, in double for float64, and in float for the other dtypes, which are rounded
// once. As in MLX, an integer dtype drops the fractions of start and start+step, and steps by their difference.
func runArange(r *tensor.Run, a arangeAttrs) error {
	out := r.Out[0]
	n := out.Shape.Size()
	if n == 1 {
		a.Step = tensor.MakeF64(0) // 0 times an infinite one is NaN
	}
	counter := tensor.Float32
	start, step := tensor.Const(float32(a.Start.Float())), tensor.Const(float32(a.Step.Float()))
	switch {
	case a.DType.IsInteger():
		counter = tensor.Int64
		first := wholePart(a.Start.Float())
		start, step = tensor.Const(first), tensor.Const(wholePart(a.Start.Float()+a.Step.Float())-first)
	case a.DType == tensor.Float64:
		counter = tensor.Float64
		start, step = tensor.Const(a.Start.Float()), tensor.Const(a.Step.Float())
	}
	return arangeKernels.Launch(r, arangeVariant{a.DType, counter}, "arange", kit.Line(n), out.Arg(), start, step)
}

// wholePart drops v's fraction; what is beyond int64 becomes its nearest bound, or its unsigned pattern up to 2^64.
func wholePart(v float64) int64 {
	switch {
	case v >= math.MaxInt64 && v < math.MaxUint64:
		return int64(uint64(v))
	case v >= math.MaxInt64:
		return math.MaxInt64
	case v <= math.MinInt64:
		return math.MinInt64
	}
	return int64(v)
}

var _ = sig.Def("arange", "start:number? stop:number? step:number? dtype:dtype?", func(a *sig.Args) any {
	start, stop, step := a.Number(0), a.Number(1), 1.0
	if !a.Given(1) {
		switch {
		case !a.Given(0):
			return tensor.Fail(a.Ctx, "arange", "stop is missing")
		case a.Positional == 0:
			return tensor.Fail(a.Ctx, "arange", "start is %v, and stop is missing", start)
		}
		start, stop = 0, start
	}
	if a.Given(2) {
		step = a.Number(2)
	}
	return Arange(start, stop, step, a.DTypeOr(3, ArangeDType(start, stop, step)), a.Ctx)
}, sig.Overloaded)

// Arange is the numbers start, start+step, ... before stop, along one axis: ceil((stop-start)/step) of them, none if
// that is negative, and start alone if step is infinite towards stop; in a script one number is the stop of a range
// from 0, and so is a stop given by name alone. Element i is start + i*step, computed in 64-bit integers or floats and
// rounded to dtype once. A step of 0, a bool dtype, and infinite or more than 2^31-1 elements are errors.
func Arange(start, stop, step float64, dtype tensor.DType, ctx ...*tensor.Ctx) *tensor.Array {
	a := arangeAttrs{tensor.MakeF64(start), tensor.MakeF64(stop), tensor.MakeF64(step), dtype}
	return arange.One(tensor.Call(ctx), a)
}

// ArangeDType is the dtype of an arange of those numbers when none is given: int32 if all are integral, int64 if
// one does not fit int32, float32 otherwise.
func ArangeDType(start, stop, step float64) tensor.DType {
	d := tensor.Int32
	for _, v := range []float64{start, stop, step} {
		switch {
		case !IsIntegral(v):
			return tensor.Float32
		case v < math.MinInt32 || v > math.MaxInt32:
			d = tensor.Int64
		}
	}
	return d
}

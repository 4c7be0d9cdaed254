package ops

import (
	_ "embed"
	"errors"
	"fmt"
	"math"

	"github.com/mlxlua/mlxlua/metal"
	"github.com/mlxlua/mlxlua/tensor"
	"github.com/mlxlua/mlxlua/tensor/ops/kit"
)

// Full is an array of that shape whose elements are value's, converted to d and broadcast. It costs no memory: all
// elements share value's bytes. A shape with a negative size, one that value's does not broadcast to, and one whose
// elements would be more than the memory limit are errors.
func Full(shape tensor.ShapeArg, value *tensor.Array, d tensor.DType, ctx ...*tensor.Ctx) *tensor.Array {
	return fill(tensor.Call(ctx), "full", shape, value, d)
}

func fill(c *tensor.Ctx, name string, shape tensor.ShapeArg, value *tensor.Array, d tensor.DType) *tensor.Array {
	if f := kit.Unusable(c, name, value); f != nil {
		return f
	}
	if n, ok := shape.Numbers(); ok {
		err := tensor.Shape(n).Check(d)
		if err == nil { // what would read it needs the memory that it does without
			err = tensor.Fits(tensor.Spec{Shape: n, DType: d})
		}
		if err != nil {
			return tensor.Fail(c, name, "%w", err)
		}
	}
	return BroadcastTo(AsType(value, d, c), shape, c)
}

// Zeros is an array of zeros. It costs no memory: all elements share one zero's bytes.
func Zeros(shape tensor.ShapeArg, d tensor.DType, ctx ...*tensor.Ctx) *tensor.Array {
	c := tensor.Call(ctx)
	return fill(c, "zeros", shape, Number(0, d, c), d)
}

// Ones is an array of ones. It costs no memory: all elements share one one's bytes.
func Ones(shape tensor.ShapeArg, d tensor.DType, ctx ...*tensor.Ctx) *tensor.Array {
	c := tensor.Call(ctx)
	return fill(c, "ones", shape, Number(1, d, c), d)
}

// FullLike is value converted to d and broadcast to a's shape, which is not read: a replay follows it.
func FullLike(a, value *tensor.Array, d tensor.DType, ctx ...*tensor.Ctx) *tensor.Array {
	c := tensor.Call(ctx)
	if f := kit.Unusable(c, "full_like", a, value); f != nil {
		return f
	}
	return fill(c, "full_like", tensor.ShapeOf(a), value, d)
}

// ZerosLike is zeros of a's shape and dtype.
func ZerosLike(a *tensor.Array, ctx ...*tensor.Ctx) *tensor.Array {
	c := tensor.Call(ctx)
	if f := kit.Unusable(c, "zeros_like", a); f != nil {
		return f
	}
	return Zeros(tensor.ShapeOf(a), a.DType(), c)
}

// OnesLike is ones of a's shape and dtype.
func OnesLike(a *tensor.Array, ctx ...*tensor.Ctx) *tensor.Array {
	c := tensor.Call(ctx)
	if f := kit.Unusable(c, "ones_like", a); f != nil {
		return f
	}
	return Ones(tensor.ShapeOf(a), a.DType(), c)
}

// Eye is a matrix of rows times cols with ones on the k-th diagonal (above the main one if k > 0) and zeros
// elsewhere.
func Eye(rows, cols, k int, d tensor.DType, ctx ...*tensor.Ctx) *tensor.Array {
	c := tensor.Call(ctx)
	if rows < 0 || cols < 0 {
		return tensor.Fail(c, "eye", "negative dimension in shape %v", tensor.Shape{rows, cols})
	}
	lo := float64(k)
	row := Arange(lo, lo+float64(rows), 1, tensor.Int64, c)
	col := Arange(0, float64(cols), 1, tensor.Int64, c)
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
	arangeText string
)

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
		Run: runArange,
		VJP: func(*tensor.VJP[arangeAttrs]) []*tensor.Array { return nil },
		JVP: func(*tensor.JVP[arangeAttrs]) []*tensor.Array { return []*tensor.Array{nil} },
	})
}

func arangeLen(start, stop, step float64) (int, error) {
	if step == 0 {
		return 0, errors.New("step is 0")
	}
	n := math.Ceil((stop - start) / step)
	switch {
	case math.IsNaN(n) || math.IsInf(n, 0) || math.IsInf(start, 0) || math.IsInf(step, 0):
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
	if n == 0 {
		return nil
	}
	src := metal.Source{Label: "arange", Options: metal.Options{MathMode: metal.MathSafe, Portable: true}}
	counter := "float"
	start, step := tensor.Const(float32(a.Start.Float())), tensor.Const(float32(a.Step.Float()))
	switch {
	case a.DType.IsInteger():
		counter = "long"
		first := wholePart(a.Start.Float())
		start, step = tensor.Const(first), tensor.Const(wholePart(a.Start.Float()+a.Step.Float())-first)
	case a.DType == tensor.Float64:
		counter = "double"
		src.Options.Float64 = true
		start, step = tensor.Const(a.Start.Float()), tensor.Const(a.Step.Float())
	}
	src.Text = "#define T " + a.DType.MSL() + "\n#define COUNTER " + counter + "\n" + arangeText
	p, err := r.Kernel(src, "arange")
	if err != nil {
		return err
	}
	return r.Dispatch(p, metal.Size{X: n, Y: 1, Z: 1}, metal.Size{X: min(n, 256), Y: 1, Z: 1}, out.Arg(), start, step)
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

// Arange is the numbers start, start+step, ... before stop, along one axis: ceil((stop-start)/step) of them, none
// if that is negative. Element i is start + i*step, computed in 64-bit integers or floats and rounded to d once. A
// step of 0, a bool d, and infinite or more than 2^31-1 elements are errors.
func Arange(start, stop, step float64, d tensor.DType, ctx ...*tensor.Ctx) *tensor.Array {
	a := arangeAttrs{tensor.MakeF64(start), tensor.MakeF64(stop), tensor.MakeF64(step), d}
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

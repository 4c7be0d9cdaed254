package ops

import (
	_ "embed"
	"errors"

	"github.com/mlxlua/mlxlua/tensor"
	"github.com/mlxlua/mlxlua/tensor/ops/kit"
	"github.com/mlxlua/mlxlua/tensor/ops/sig"
)

var (
	// softmax of the last axis has a kernel; other axes are a formula.
	softmax = tensor.Declare[tensor.None]("softmax")
	//go:embed softmax.metal
	softmaxText string
)

func init() {
	softmax.Define(tensor.Rules[tensor.None]{
		Shape: func(in []tensor.Spec, _ tensor.None, outs []tensor.Shape) ([]tensor.Shape, error) {
			if len(in[0].Shape) == 0 {
				return nil, errors.New("BUG: a scalar has no rows")
			}
			return append(outs, in[0].Shape), nil
		},
		DType: kit.SameDType[tensor.None],
		Run:   runSoftmax,
		Gradient: func(g *tensor.VJP[tensor.None]) *tensor.Array {
			return softmaxTangent(g.Ctx, g.Cot[0], g.Out[0])
		},
		Tangent: func(g *tensor.JVP[tensor.None]) *tensor.Array {
			return softmaxTangent(g.Ctx, g.Tan[0], g.Out[0])
		},
		VMap: BatchFirst(softmax),
	})
}

type softmaxVariant struct {
	kit.Kept
	T, ACC tensor.DType
	same   bool
}

var softmaxKernels = kit.NewKernels[softmaxVariant](kit.KeptMSL, softmaxText)

func runSoftmax(r *tensor.Run, _ tensor.None) error {
	out := r.Out[0]
	x, err := r.Contiguous(0)
	if err != nil {
		return err
	}
	rows, n, err := kit.RowsOf(out.Shape)
	if err != nil {
		return err
	}
	d, acc := out.DType, kit.Accumulator(out.DType)
	simds := 16
	if rows >= 2*r.Info().Threads { // other rows have something to do while one of them adds up
		simds = 4
	}
	v := softmaxVariant{kit.KeepRows(r, n, acc, simds), d, acc, d == acc}
	return softmaxKernels.Launch(r, v, "softmax_rows", v.Over(rows), x.Arg(), out.Arg(), kit.Uint(n))
}

// softmaxTangent is the derivative of rows y = softmax(x) along t, which is also its own transpose.
func softmaxTangent(c *tensor.Ctx, t, y *tensor.Array) *tensor.Array {
	d := y.DType()
	acc := kit.Accumulator(d)
	t, y = AsType(t, acc, c), AsType(y, acc, c)
	ty := Multiply(t, y, c)
	return AsType(Subtract(ty, Multiply(y, Sum(ty, []int{-1}, true, c), c), c), d, c)
}

var _ = sig.Def("softmax", "a axis:axes? precise:bool=false", func(a *sig.Args) any {
	return Softmax(a.Array(0), a.Ints(1), a.Ctx)
}, sig.Same("the default of precise", "it always computes as that asks: half types in float32, rounded once"))

// Softmax is exp(a) / sum(exp(a)) along axes (nil: all; negative ones count from the end). The largest element is
// subtracted first, so that nothing overflows. Integers and bool give float32, other dtypes their own; the half
// types are computed in float32 and rounded once, which is what MLX's precise asks for. Rows whose largest element
// is infinite are NaN.
func Softmax(a *tensor.Array, axes []int, ctx ...*tensor.Ctx) *tensor.Array {
	c := tensor.Call(ctx)
	if f := checkAxes(c, "softmax", a, axes); f != nil {
		return f
	}
	d := a.DType().Inexact()
	if at, _ := tensor.Axes(axes, a.NDim()); d.IsFloat() && len(at) == 1 && at[0] == a.NDim()-1 {
		return softmax.One(c, tensor.None{}, AsType(a, d, c))
	}
	x := AsType(a, kit.Accumulator(d), c)
	// The result does not depend on what is subtracted: no gradient flows through the maximum.
	top := StopGradient(MaxOrLowest(x, axes, true, c), c)
	e := Exp(Subtract(x, top, c), c)
	return AsType(Divide(e, Sum(e, axes, true, c), c), d, c)
}

var _ = sig.Reduce("logsumexp", LogSumExp)

// LogSumExp is log(sum(exp(a))) along axes (nil: all; negative ones count from the end), computed without overflow.
// With keepdims the reduced dimensions stay as ones. Integers and bool give float32, other dtypes their own; the
// half types are computed in float32 and rounded once. An axis without elements is an error.
func LogSumExp(a *tensor.Array, axes []int, keepdims bool, ctx ...*tensor.Ctx) *tensor.Array {
	c := tensor.Call(ctx)
	if f := checkAxes(c, "logsumexp", a, axes); f != nil {
		return f
	}
	d := a.DType().Inexact()
	x := AsType(a, kit.Accumulator(d), c)
	top := StopGradient(Max(x, axes, true, c), c)
	// An infinite maximum must not be subtracted from itself.
	top = Where(IsInf(top, c), Number(0, x.DType(), c), top, c)
	y := Add(Log(Sum(Exp(Subtract(x, top, c), c), axes, true, c), c), top, c)
	if !keepdims {
		dropped, _ := tensor.Axes(axes, a.NDim())
		y = Squeeze(y, dropped, c)
	}
	return kit.FailedAs(c, "logsumexp", AsType(y, d, c))
}

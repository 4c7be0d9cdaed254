package ops

import (
	_ "embed"
	"fmt"
	"math"
	"strings"

	"github.com/mlxlua/mlxlua/tensor"
	"github.com/mlxlua/mlxlua/tensor/ops/kit"
	"github.com/mlxlua/mlxlua/tensor/ops/sig"
)

// scanAttrs describe a cumulative op along an axis.
type scanAttrs struct {
	Axis      int
	Reverse   bool // from the end
	Exclusive bool // each element of the output leaves out its own element
}

var (
	cumSum       = tensor.Declare[scanAttrs]("cumsum")
	cumProd      = tensor.Declare[scanAttrs]("cumprod")
	cumMax       = tensor.Declare[scanAttrs]("cummax")
	cumMin       = tensor.Declare[scanAttrs]("cummin")
	logCumSumExp = tensor.Declare[scanAttrs]("logcumsumexp")
	// linearScan is y[i] = a[i] y[i-1] + b[i] along an axis, for inputs a and b of one shape and floating-point or
	// complex dtype: the derivative of logCumSumExp.
	linearScan = tensor.Declare[scanAttrs]("linear_scan")
	//go:embed scan.metal
	scanText    string
	scanKernels = kit.NewKernels[scanVariant](scanText)
)

// scanner is how a cumulative op combines elements, in MSL.
type scanner struct {
	init     func(d tensor.DType) string   // what combines to nothing, in dtype d
	combine  func(acc tensor.DType) string // of $0 and $1
	header   func(acc tensor.DType) string // functions that combine calls; nil: none
	gradient func(g *tensor.VJP[scanAttrs]) *tensor.Array
	tangent  func(g *tensor.JVP[scanAttrs]) *tensor.Array // nil: derived from gradient
}

func init() {
	text := func(s string) func(tensor.DType) string { return func(tensor.DType) string { return s } }
	cumSum.Define(scanRules(cumSum, scanner{
		init: kit.Zero, combine: text("$0 + $1"), gradient: cumSumGradient,
		tangent: func(g *tensor.JVP[scanAttrs]) *tensor.Array {
			return cumSum.One(g.Ctx, g.Attrs, g.Tan[0])
		},
	}))
	cumProd.Define(scanRules(cumProd, scanner{init: kit.One, combine: text("$0 * $1"), gradient: cumProdGradient}))
	extremum := func(op *tensor.OpOf[scanAttrs], limit func(tensor.DType) string, relation string) {
		op.Define(scanRules(op, scanner{init: limit, combine: pick(relation).at,
			gradient: func(g *tensor.VJP[scanAttrs]) *tensor.Array { return cumExtremumGradient(op, g) }}))
	}
	extremum(cumMax, kit.Least, ">=")
	extremum(cumMin, kit.Greatest, "<=")
	logCumSumExp.Define(scanRules(logCumSumExp, scanner{
		init: func(d tensor.DType) string {
			if d.IsComplex() {
				return "complex64_t(-INFINITY, 0.0f)"
			}
			return d.MSL() + "(-INFINITY)"
		},
		combine: text("log_add($0, $1)"), header: logAddText, gradient: logCumSumExpGradient,
	}))
	linearScan.Define(linearScanRules())
}

// logAddText is log(exp(a) + exp(b)) without overflow.
func logAddText(d tensor.DType) string {
	if d.IsComplex() {
		return `inline complex64_t log_add(complex64_t a, complex64_t b) {
    if (metal::isnan(a.real) || metal::isnan(a.imag) || metal::isnan(b.real) || metal::isnan(b.imag)) {
        return complex64_t(NAN, NAN);
    }
    complex64_t high = a.real > b.real ? a : b;
    complex64_t low = a.real > b.real ? b : a;
    if (low.real == -INFINITY || high.real == INFINITY) {
        return high;
    }
    return high + complex_log(complex64_t(1.0f, 0.0f) + complex_exp(low - high));
}`
	}
	return strings.ReplaceAll(`inline ACC log_add(ACC a, ACC b) {
    if (a != a || b != b) {
        return a + b;
    }
    ACC high = metal::max(a, b);
    ACC low = metal::min(a, b);
    if (low == -INFINITY || high == INFINITY) {
        return high;
    }
    return high + log1p(metal::exp(low - high));
}`, "ACC", d.MSL())
}

func sameAttrsShape(in []tensor.Spec, a scanAttrs, outs []tensor.Shape) ([]tensor.Shape, error) {
	_, err := tensor.Axis(a.Axis, len(in[0].Shape))
	if err == nil && len(in) > 1 && !in[0].Shape.Equal(in[1].Shape) {
		err = fmt.Errorf("BUG: operands of shapes %v and %v", in[0].Shape, in[1].Shape)
	}
	return append(outs, in[0].Shape), err
}

func scanRules(op *tensor.OpOf[scanAttrs], s scanner) tensor.Rules[scanAttrs] {
	return tensor.Rules[scanAttrs]{
		Shape:    sameAttrsShape,
		DType:    kit.SameDType[scanAttrs],
		Run:      func(r *tensor.Run, a scanAttrs) error { return runScan(r, a, &s) },
		Gradient: s.gradient,
		Tangent:  s.tangent,
		VMap: func(g *tensor.VMap[scanAttrs]) ([]*tensor.Array, []int) {
			return []*tensor.Array{op.One(g.Ctx, pastBatch(g), FrontOf(g, 0, 0))}, []int{0}
		},
	}
}

// pastBatch are the attributes for a batch whose batch axis is first.
func pastBatch(g *tensor.VMap[scanAttrs]) scanAttrs {
	a := g.Attrs
	axis, _ := tensor.Axis(a.Axis, kit.ExampleRank(g, 0))
	a.Axis = axis + 1
	return a
}

// scanAccumulator is the dtype in which elements of dtype d are combined: results are converted back, so that integers
// wrap around as in their own dtype.
func scanAccumulator(d tensor.DType) tensor.DType { return kit.Accumulator(accumulated(d)) }

// shuffled are UP and LAST: SIMD-groups pass 32 bits from lane to lane, so that 64-bit integers go in halves.
func shuffled(acc tensor.DType) string {
	up, last := "simd_shuffle_up(v, ushort(d))", "simd_broadcast(v, ushort(31))"
	if acc.IsInteger() && acc.Size() == 8 {
		halves := func(call string) string {
			return "as_type<" + acc.MSL() + ">(" + strings.Replace(call, "(v,", "(as_type<uint2>(v),", 1) + ")"
		}
		up, last = halves(up), halves(last)
	}
	return "#define UP(v, d) " + up + "\n#define LAST(v) " + last + "\n"
}

// scanSizes are the scanned size, the product of the sizes before it, and of those after it.
func scanSizes(s tensor.Shape, axis int) (n, outer, inner int, err error) {
	if axis, err = tensor.Axis(axis, len(s)); err != nil {
		return 0, 0, 0, err
	}
	n, outer, inner = s[axis], s[:axis].Size(), s[axis+1:].Size()
	return n, outer, inner, kit.CheckRows(max(outer, inner), n)
}

// Rows of at most mostShort elements have a kernel for their length, if there are at least leastShort: it must be
// compiled.
const mostShort, leastShort = 16, 1024

// scanVariant chooses a kernel of scans; a linear one combines by no scanner.
type scanVariant struct {
	T, ACC                     tensor.DType
	reverse, exclusive, linear bool
	by                         *scanner
	short                      int // the length of rows, if there is a kernel for that
}

// Macros defines how elements are combined.
func (v scanVariant) Macros() string {
	text, first, combine := "", kit.Zero(v.ACC), "a"
	if v.by != nil {
		first = v.ACC.MSL() + "(" + v.by.init(v.T) + ")"
		combine = strings.NewReplacer("$0", "(a)", "$1", "(b)").Replace(v.by.combine(v.ACC))
		if v.by.header != nil {
			text = v.by.header(v.ACC) + "\n"
		}
	}
	return text + "#define INIT " + first + "\n#define COMBINE(a, b) (" + combine + ")\n" + shuffled(v.ACC)
}

func runScan(r *tensor.Run, a scanAttrs, s *scanner) error {
	out := r.Out[0]
	x, err := r.Contiguous(0)
	if err != nil {
		return err
	}
	n, outer, inner, err := scanSizes(x.Shape, a.Axis)
	if err != nil {
		return err
	}
	v := scanVariant{T: x.DType, ACC: scanAccumulator(x.DType), reverse: a.Reverse, exclusive: a.Exclusive, by: s}
	if inner == 1 && n <= mostShort && outer >= leastShort && outer*n <= math.MaxInt32 {
		v.short = n
		return scanKernels.Launch(r, v, "scan_short", kit.Line(outer), x.Arg(), out.Arg())
	}
	if inner == 1 {
		return scanKernels.Launch(r, v, "scan_rows", kit.Rows(outer), x.Arg(), out.Arg(), kit.Uint(n))
	}
	return scanKernels.Launch(r, v, "scan_columns", kit.Plane(inner, outer), x.Arg(), out.Arg(), kit.Uint(n),
		tensor.Const(uint64(inner)))
}

// countBools adds bools up as int32.
func countBools(d tensor.DType) (tensor.DType, error) {
	if d == tensor.Bool {
		return tensor.Int32, nil
	}
	return d, nil
}

// callScan calls a cumulative op along an axis; nil: along the flattened array.
func callScan(c *tensor.Ctx, op *tensor.OpOf[scanAttrs], rule kit.DTypeRule, a *tensor.Array, axis *int, reverse,
	inclusive bool) *tensor.Array {
	in, f := Convert(c, op.Op().Name(), rule, a)
	if f != nil {
		return f
	}
	a = in[0]
	attrs := scanAttrs{Reverse: reverse, Exclusive: !inclusive}
	if axis != nil {
		attrs.Axis = *axis
	} else {
		a = Flatten(a, 0, -1, c)
	}
	return op.One(c, attrs, a)
}

// cumulate declares a cumulative function. Those of sums and products take a dtype to convert to first.
func cumulate(name string, typed bool,
	f func(a *tensor.Array, axis *int, reverse, inclusive bool, c ...*tensor.Ctx) *tensor.Array) *sig.Func {
	text := "a axis:axis? reverse:bool=false inclusive:bool=true"
	if typed {
		text += " dtype:dtype?"
	}
	return sig.Def(name, text, func(a *sig.Args) any {
		x := a.Array(0)
		if typed && a.Given(4) {
			x = AsType(x, a.DType(4), a.Ctx)
		}
		return f(x, a.Axis(1), a.Bool(2), a.Bool(3), a.Ctx)
	})
}

var _ = cumulate("cumsum", true, CumSum)
var _ = sig.Alias("cumulative_sum", "cumsum")

// CumSum is the sums of a's elements along an axis (nil: of the flattened array) up to each, with reverse from the end;
// without inclusive each element itself is left out, and the first sum is 0. The dtype is a's, int32 for bool; integers
// wrap around; the half types are added up in float32. In a script a is converted first to a dtype that is given. An
// axis out of range is an error.
func CumSum(a *tensor.Array, axis *int, reverse, inclusive bool, ctx ...*tensor.Ctx) *tensor.Array {
	return callScan(tensor.Call(ctx), cumSum, countBools, a, axis, reverse, inclusive)
}

var _ = cumulate("cumprod", true, CumProd)
var _ = sig.Alias("cumulative_prod", "cumprod")

// CumProd is the products of a's elements along an axis up to each, in a's dtype or one that a script gives: see
// [CumSum]. Without inclusive the first is 1. The gradient is right beside zeros too; second derivatives take the zeros
// as constants.
func CumProd(a *tensor.Array, axis *int, reverse, inclusive bool, ctx ...*tensor.Ctx) *tensor.Array {
	return callScan(tensor.Call(ctx), cumProd, kit.AnyDType, a, axis, reverse, inclusive)
}

var _ = cumulate("cummax", false, CumMax)

// CumMax is the largest of a's elements along an axis up to each, in a's dtype: see [CumSum]. NaN stays once it has
// come; complex numbers compare by their real parts, then by their imaginary ones. Without inclusive the first is
// -inf, or the dtype's least number. The gradient goes to the last of equal elements.
func CumMax(a *tensor.Array, axis *int, reverse, inclusive bool, ctx ...*tensor.Ctx) *tensor.Array {
	return callScan(tensor.Call(ctx), cumMax, kit.AnyDType, a, axis, reverse, inclusive)
}

var _ = cumulate("cummin", false, CumMin)

// CumMin is the smallest of a's elements along an axis up to each: see [CumMax]. Without inclusive the first is inf,
// or the dtype's greatest number.
func CumMin(a *tensor.Array, axis *int, reverse, inclusive bool, ctx ...*tensor.Ctx) *tensor.Array {
	return callScan(tensor.Call(ctx), cumMin, kit.AnyDType, a, axis, reverse, inclusive)
}

var _ = cumulate("logcumsumexp", false, LogCumSumExp)

// LogCumSumExp is log(cumsum(exp(a))) along an axis, computed without overflow: see [CumSum]. Without inclusive the
// first is -inf. Integers and bool give float32, other dtypes their own; the half types are computed in float32.
func LogCumSumExp(a *tensor.Array, axis *int, reverse, inclusive bool, ctx ...*tensor.Ctx) *tensor.Array {
	return callScan(tensor.Call(ctx), logCumSumExp, kit.Inexact, a, axis, reverse, inclusive)
}

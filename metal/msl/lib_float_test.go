package msl_test

import (
	"math"
	"testing"

	"github.com/stretchr/testify/require"
)

// unary32 are the float functions of one operand: a reference in float64, the most units of the last place that the
// result may be off, and ranges worth extra points.
var unary32 = []struct {
	expr   string
	ref    func(float64) float64
	budget float64
	ranges [][2]float64
}{
	{"exp(x)", math.Exp, 4, [][2]float64{{-104, 89}, {-1, 1}}},
	{"exp2(x)", math.Exp2, 4, [][2]float64{{-150, 129}, {-1, 1}}},
	{"exp10(x)", func(x float64) float64 { return math.Pow(10, x) }, 4, [][2]float64{{-46, 39}, {-1, 1}}},
	{"expm1f(x)", math.Expm1, 4, [][2]float64{{-20, 89}, {-1, 1}}},
	{"log(x)", math.Log, 4, [][2]float64{{0, 3}, {0.9, 1.1}}},
	{"log2(x)", math.Log2, 4, [][2]float64{{0, 3}, {0.9, 1.1}}},
	{"log10(x)", math.Log10, 4, [][2]float64{{0, 3}, {0.9, 1.1}}},
	{"log1p(x)", math.Log1p, 4, [][2]float64{{-1, 3}, {-0.1, 0.1}}},
	{"sin(x)", func(x float64) float64 { return math.Sin(reduceBig(x)) }, 4, [][2]float64{{-10, 10}, {0, 70000}}},
	{"cos(x)", func(x float64) float64 { return math.Cos(reduceBig(x)) }, 4, [][2]float64{{-10, 10}, {0, 70000}}},
	{"sincos(x, y)", func(x float64) float64 { return math.Sin(reduceBig(x)) }, 4, [][2]float64{{-10, 10}}},
	{"(sincos(x, y), y)", func(x float64) float64 { return math.Cos(reduceBig(x)) }, 4, [][2]float64{{-10, 10}}},
	{"tan(x)", func(x float64) float64 { return math.Tan(reduceBig(x)) }, 4, [][2]float64{{-10, 10}, {0, 70000}}},
	{"sinpi(x)", sinPi, 4, [][2]float64{{-2, 2}, {0, 1000}}},
	{"cospi(x)", cosPi, 4, [][2]float64{{-2, 2}, {0, 1000}}},
	{"tanpi(x)", func(x float64) float64 { return sinPi(x) / cosPi(x) }, 4, [][2]float64{{-2, 2}, {0, 1000}}},
	{"asin(x)", math.Asin, 4, [][2]float64{{-1, 1}, {0.99, 1}}},
	{"acos(x)", math.Acos, 4, [][2]float64{{-1, 1}, {0.99, 1}}},
	{"atan(x)", math.Atan, 4, [][2]float64{{-2, 2}, {0, 100}}},
	{"sinh(x)", math.Sinh, 4, [][2]float64{{-90, 90}, {-2, 2}}},
	{"cosh(x)", math.Cosh, 4, [][2]float64{{-90, 90}, {-2, 2}}},
	{"tanh(x)", math.Tanh, 4, [][2]float64{{-10, 10}, {-1, 1}}},
	{"asinh(x)", math.Asinh, 4, [][2]float64{{-10, 10}, {-1, 1}}},
	{"acosh(x)", math.Acosh, 4, [][2]float64{{1, 10}, {1, 1.1}}},
	{"atanh(x)", math.Atanh, 4, [][2]float64{{-1, 1}}},
	{"erf(x)", math.Erf, 4, [][2]float64{{-4, 4}, {-1, 1}}},
	{"erfinv(x)", math.Erfinv, 4, [][2]float64{{-1, 1}, {0.99, 1}}},
	{"sqrt(x)", math.Sqrt, 0.5, [][2]float64{{0, 2}}},
	{"rsqrt(x)", func(x float64) float64 { return 1 / math.Sqrt(x) }, 2, [][2]float64{{0, 2}}},
	{"rint(x)", math.RoundToEven, 0, [][2]float64{{-10, 10}}},
	{"round(x)", math.Round, 0, [][2]float64{{-10, 10}}},
}

// TestUnaryFloatAccuracy holds each function to its budget over the whole range, specials and denormals included.
func TestUnaryFloatAccuracy(t *testing.T) {
	for _, f := range unary32 {
		t.Run(f.expr, func(t *testing.T) {
			t.Parallel()
			m := newMapper(t, "float", f.expr)
			xs := floatSweep(60000)
			for _, r := range f.ranges {
				xs = append(xs, between(r[0], r[1], 25000)...)
			}
			worst, at := worst32(m.floats(t, xs, xs), xs, f.ref)
			if *floatPoints > 0 {
				step := max(1<<32/uint64(*floatPoints), 1)
				for u := uint64(0); u < 1<<32; {
					for xs = xs[:0]; u < 1<<32 && len(xs) < 1<<20; u += step {
						xs = append(xs, math.Float32frombits(uint32(u)))
					}
					if w, a := worst32(m.floats(t, xs, xs), xs, f.ref); w > worst {
						worst, at = w, a
					}
				}
			}
			t.Logf("%s: %.2f ULP at %v", f.expr, worst, at)
			require.LessOrEqual(t, worst, f.budget, "%s at %v (%#08x)", f.expr, at, math.Float32bits(at))
		})
	}
}

func worst32(got, xs []float32, ref func(float64) float64) (worst float64, at float32) {
	for i, x := range xs {
		if u := ulps32(got[i], ref(float64(x))); u > worst {
			worst, at = u, x
		}
	}
	return worst, at
}

// TestReductionNextToMultiples: the floats nearest to multiples of pi/2, where all leading digits cancel.
func TestReductionNextToMultiples(t *testing.T) {
	t.Parallel()
	var xs []float32
	for n := 1; n < 50000; n++ {
		xs = append(xs, float32(float64(n)*math.Pi/2))
	}
	for k := 16; k < 126; k++ {
		for n := range 50 {
			xs = append(xs, float32(math.Ldexp(math.Pi/2*(1+float64(n)/50), k)))
		}
	}
	for expr, ref := range map[string]func(float64) float64{"sin(x)": math.Sin, "cos(x)": math.Cos, "tan(x)": math.Tan} {
		worst, at := worst32(newMapper(t, "float", expr).floats(t, xs, xs), xs, func(x float64) float64 {
			return ref(reduceBig(x))
		})
		t.Logf("%s: %.2f ULP at %v", expr, worst, at)
		require.LessOrEqual(t, worst, 4.0, "%s at %v", expr, at)
	}
}

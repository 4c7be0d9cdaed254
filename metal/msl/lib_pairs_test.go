package msl_test

import (
	"math"
	"math/rand/v2"
	"testing"

	"github.com/stretchr/testify/require"
)

// TestPowAccuracy: pow over exponents for which the result stays in range, for all specials, and powr.
func TestPowAccuracy(t *testing.T) {
	t.Parallel()
	m := newMapper(t, "float", "pow(x, y)")
	rnd := rand.New(rand.NewPCG(1, 2))
	var xs, ys []float32
	for range 60000 {
		x := math.Exp2(rnd.Float64()*297 - 149)
		if rnd.IntN(3) == 0 {
			x = 0.5 + 1.5*rnd.Float64()
		}
		if rnd.IntN(4) == 0 {
			x = 1 + (rnd.Float64()-0.5)/1000
		}
		y := (rnd.Float64()*280 - 150) / math.Log2(x)
		if rnd.IntN(4) == 0 {
			x, y = -x, math.Round(y)
		}
		xs, ys = append(xs, float32(x)), append(ys, float32(y))
	}
	sp := specials32()
	for _, x := range sp {
		for _, y := range sp {
			xs, ys = append(xs, x), append(ys, y)
		}
	}
	got := m.floats(t, xs, ys)
	worst, wx, wy := 0.0, float32(0), float32(0)
	for i := range xs {
		if u := ulps32(got[i], math.Pow(float64(xs[i]), float64(ys[i]))); u > worst {
			worst, wx, wy = u, xs[i], ys[i]
		}
	}
	t.Logf("pow: %.2f ULP at (%v, %v)", worst, wx, wy)
	require.LessOrEqual(t, worst, 8.0, "pow(%v, %v)", wx, wy)
}

// TestBinaryFloatAccuracy: functions of two operands on all pairs of specials and on random pairs.
func TestBinaryFloatAccuracy(t *testing.T) {
	t.Parallel()
	nan := math.NaN()
	for _, f := range []struct {
		expr   string
		ref    func(x, y float64) float64
		budget float64
	}{
		{"atan2(x, y)", math.Atan2, 4},
		{"fmod(x, y)", math.Mod, 0},
		{"hypot(x, y)", math.Hypot, 2},
		{"copysign(x, y)", math.Copysign, 0},
		{"fdim(x, y)", func(x, y float64) float64 {
			if x == y {
				return 0
			}
			return math.Dim(x, y)
		}, 0.5},
		{"nextafter(x, y)", func(x, y float64) float64 {
			return float64(math.Nextafter32(float32(x),
				float32(y)))
		}, 0},
		{"powr(x, y)", func(x, y float64) float64 {
			if x < 0 || y == 0 && (x == 0 || math.IsInf(x, 0)) || x == 1 && math.IsInf(y, 0) || x != x || y != y {
				return nan
			}
			return math.Pow(math.Abs(x), y)
		}, 4},
		{"ldexp(x, int(y))", func(x, y float64) float64 {
			if y != y {
				y = 0
			}
			return float64(float32(math.Ldexp(x, int(max(min(y, 1000), -1000)))))
		}, 0},
	} {
		t.Run(f.expr, func(t *testing.T) {
			m := newMapper(t, "float", f.expr)
			var xs, ys []float32
			sp := specials32()
			for _, x := range sp {
				for _, y := range sp {
					xs, ys = append(xs, x), append(ys, y)
				}
			}
			rnd := rand.New(rand.NewPCG(3, 4))
			for range 20000 {
				xs, ys = append(xs, math.Float32frombits(rnd.Uint32())), append(ys,
					math.Float32frombits(rnd.Uint32()))
				xs, ys = append(xs, float32(rnd.NormFloat64())), append(ys, float32(rnd.NormFloat64()*10))
			}
			got := m.floats(t, xs, ys)
			worst, wx, wy := 0.0, float32(0), float32(0)
			for i := range xs {
				if u := ulps32(got[i], f.ref(float64(xs[i]), float64(ys[i]))); u > worst {
					worst, wx, wy = u, xs[i], ys[i]
				}
			}
			t.Logf("%s: %.2f ULP at (%v, %v)", f.expr, worst, wx, wy)
			require.LessOrEqual(t, worst, f.budget, "%s at (%v, %v)", f.expr, wx, wy)
		})
	}
}

package msl_test

import (
	"flag"
	"math"
	"os"
	"strconv"
	"strings"
	"testing"

	"github.com/stretchr/testify/require"
)

var golden64 = flag.String("golden64", "testdata/math64.txt",
	"values to test the float64 functions on, by lib/gen/golden64.py")

// TestDoubleAccuracy compares with values that mpmath computed: 4 units of the last place at most.
func TestDoubleAccuracy(t *testing.T) {
	t.Parallel()
	text, err := os.ReadFile(*golden64)
	require.NoError(t, err)
	type point struct{ x, y, want, tail float64 }
	points := map[string][]point{}
	var order []string
	for _, line := range strings.Split(strings.TrimSpace(string(text)), "\n") {
		if line[0] == '#' {
			continue
		}
		f := strings.Split(line, "\t")
		require.Len(t, f, 5)
		var v [3]float64
		for i := range v {
			u, err := strconv.ParseUint(f[i+1], 16, 64)
			require.NoError(t, err)
			v[i] = math.Float64frombits(u)
		}
		tail, err := strconv.ParseFloat(f[4], 64)
		require.NoError(t, err)
		if points[f[0]] == nil {
			order = append(order, f[0])
		}
		points[f[0]] = append(points[f[0]], point{v[0], v[1], v[2], tail})
	}
	require.Len(t, order, 28)
	for _, expr := range order {
		m := newMapper(t, "double", expr)
		var xs, ys []float64
		for _, p := range points[expr] {
			xs, ys = append(xs, p.x), append(ys, p.y)
		}
		worst, at := 0.0, 0
		for i, g := range m.doubles(t, xs, ys) {
			p := points[expr][i]
			if u := math.Abs(float64(ordinal(g)-ordinal(p.want)) - p.tail); !(u <= worst) {
				worst, at = u, i
			}
		}
		p := points[expr][at]
		t.Logf("%s: %.2f ULP at (%v, %v)", expr, worst, p.x, p.y)
		require.LessOrEqual(t, worst, 4.0, "%s at (%v, %v), want %v", expr, p.x, p.y, p.want)
	}
}

// ordinal numbers the doubles in order, so that neighbours differ by 1.
func ordinal(x float64) int64 {
	if b := int64(math.Float64bits(x)); b >= 0 {
		return b
	}
	return -int64(math.Float64bits(-x))
}

// TestDoubleSpecials: what C's Annex F says of zeros, infinities and NaN.
func TestDoubleSpecials(t *testing.T) {
	t.Parallel()
	inf, nan, negZero := math.Inf(1), math.NaN(), math.Copysign(0, -1)
	for _, c := range []struct {
		expr string
		x, y float64
		want float64
	}{
		{"exp(x)", inf, 0, inf}, {"exp(x)", -inf, 0, 0}, {"exp(x)", nan, 0, nan}, {"exp(x)", 710, 0, inf},
		{"exp(x)", -746, 0, 0},
		{"exp(x)", 0, 0, 1}, {"exp2(x)", 1024, 0, inf}, {"exp2(x)", -1074, 0, 0x1p-1074}, {"exp2(x)", -1e300, 0, 0},
		{"exp10(x)", inf, 0, inf}, {"exp10(x)", -inf, 0, 0}, {"expm1f(x)", negZero, 0, negZero},
		{"expm1f(x)", -inf, 0, -1},
		{"expm1f(x)", inf, 0, inf}, {"log(x)", 0, 0, -inf}, {"log(x)", -1, 0, nan}, {"log(x)", inf, 0, inf},
		{"log(x)", -inf, 0, nan}, {"log(x)", 1, 0, 0}, {"log2(x)", 0x1p-1074, 0, -1074}, {"log10(x)", 0, 0, -inf},
		{"log1p(x)", -1, 0, -inf}, {"log1p(x)", negZero, 0, negZero}, {"log1p(x)", -2, 0, nan},
		{"log1p(x)", inf, 0, inf},
		{"log1p(x)", math.MaxFloat64, 0, math.Log(math.MaxFloat64)}, {"sin(x)", negZero, 0, negZero},
		{"sin(x)", inf, 0, nan},
		{"cos(x)", -inf, 0, nan}, {"cos(x)", 0, 0, 1}, {"tan(x)", negZero, 0, negZero}, {"tan(x)", nan, 0, nan},
		{"sinpi(x)", 1e300, 0, 0}, {"sinpi(x)", 1, 0, 0}, {"sinpi(x)", -3, 0, negZero}, {"cospi(x)", 0.5, 0, 0},
		{"tanpi(x)", 0.5, 0, inf}, {"tanpi(x)", 1.5, 0, -inf},
		{"asin(x)", 2, 0, nan}, {"asin(x)", 1, 0, math.Pi / 2}, {"acos(x)", -1, 0, math.Pi}, {"acos(x)", 1, 0, 0},
		{"atan(x)", inf, 0, math.Pi / 2}, {"atan(x)", negZero, 0, negZero}, {"atan2(x, y)", 0, -1, math.Pi},
		{"atan2(x, y)", negZero, -1, -math.Pi}, {"atan2(x, y)", inf, -inf, 3 * math.Pi / 4}, {"atan2(x, y)", 0, 0, 0},
		{"atan2(x, y)", nan, 1, nan}, {"sinh(x)", -inf, 0, -inf}, {"sinh(x)", negZero, 0, negZero},
		{"cosh(x)", -inf, 0, inf},
		{"tanh(x)", inf, 0, 1}, {"tanh(x)", -inf, 0, -1}, {"tanh(x)", nan, 0, nan}, {"tanh(x)", negZero, 0, negZero},
		{"asinh(x)", -inf, 0, -inf}, {"acosh(x)", 0.5, 0, nan}, {"acosh(x)", 1, 0, 0}, {"acosh(x)", inf, 0, inf},
		{"atanh(x)", 1, 0, inf}, {"atanh(x)", -1, 0, -inf}, {"atanh(x)", 2, 0, nan}, {"erf(x)", inf, 0, 1},
		{"erf(x)", -7, 0, -1},
		{"erf(x)", nan, 0, nan}, {"erf(x)", negZero, 0, negZero}, {"erfinv(x)", 1, 0, inf},
		{"erfinv(x)", -1, 0, -inf},
		{"erfinv(x)", 2, 0, nan}, {"erfinv(x)", 0, 0, 0}, {"pow(x, y)", nan, 0, 1}, {"pow(x, y)", 1, nan, 1},
		{"pow(x, y)", -1, inf, 1},
		{"pow(x, y)", 0, -1, inf}, {"pow(x, y)", negZero, -1, -inf}, {"pow(x, y)", negZero, 3, negZero},
		{"pow(x, y)", negZero, 2, 0},
		{"pow(x, y)", -2, 3, -8}, {"pow(x, y)", -2, 0.5, nan}, {"pow(x, y)", -inf, 3, -inf},
		{"pow(x, y)", -inf, -3, negZero},
		{"pow(x, y)", 0.5, inf, 0}, {"pow(x, y)", 0.5, -inf, inf}, {"pow(x, y)", 2, 1024, inf},
		{"pow(x, y)", 2, -1074, 0x1p-1074},
		{"pow(x, y)", 10, 2, 100}, {"pow(x, y)", 3, 4, 81}, {"powr(x, y)", -2, 2, nan}, {"powr(x, y)", 0, 0, nan},
		{"rsqrt(x)", 0, 0, inf}, {"round(x)", 2.5, 0, 3}, {"round(x)", -0.5, 0, -1}, {"rint(x)", 2.5, 0, 2},
		{"fract(x)", -0.25, 0, 0.75},
		{"fract(x)", -1e-300, 0, 1 - 0x1p-53}, {"sign(x)", -3, 0, -1}, {"ldexp(x, int(y))", 1, -1074, 0x1p-1074},
		{"ldexp(x, int(y))", 1, 1024, inf},
		{"ldexp(x, int(y))", 0x1p-1074, 1074, 1}, {"fmod(x, y)", -7, 3, -1}, {"floor_mod(x, y)", -7, 3, 2},
		{"floor_mod(x, y)", 7, -3, -2},
		{"nextafter(x, y)", 1, 2, 1 + 0x1p-52}, {"nextafter(x, y)", 0, -1, -0x1p-1074}, {"mix(x, y, 0.5)", 2, 4, 3},
	} {
		got := newMapper(t, "double", c.expr).doubles(t, []float64{c.x}, []float64{c.y})[0]
		if math.IsNaN(c.want) {
			require.True(t, math.IsNaN(got), "%s at (%v, %v) = %v", c.expr, c.x, c.y, got)
			continue
		}
		require.Equal(t, math.Float64bits(c.want), math.Float64bits(got), "%s at (%v, %v) = %v, want %v", c.expr,
			c.x, c.y, got, c.want)
	}
}

package msl_test

import (
	"encoding/binary"
	"flag"
	"math"
	"math/big"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/mlxlua/mlxlua/metal/launch"
	"github.com/mlxlua/mlxlua/metal/msl"
)

var floatPoints = flag.Int("floats", 0, "how many more floats to test math functions on; 1<<32 is all, and takes hours")

// mapper runs out[i] = expr on arrays of the type T, with x and y as operands.
type mapper struct {
	prog executors
	size int
}

func newMapper(t testing.TB, T, expr string) mapper {
	t.Helper()
	text := "kernel void k(device " + T + "* out [[buffer(0)]], const device " + T + "* a [[buffer(1)]],\n" +
		"const device " + T + "* b [[buffer(2)]], uint i [[thread_position_in_grid]]) {\n" +
		"#pragma clang fp contract(off)\n" +
		T + " x = a[i], y = b[i];\nout[i] = " + T + "(" + expr + ");\n}\n"
	mod, err := msl.Compile(msl.Source{Name: expr, Text: text}, msl.Options{Float64: true})
	require.NoError(t, err)
	require.NoError(t, mod.Verify())
	prog, err := prepare(mod.Kernels[0], mod.Files)
	require.NoError(t, err)
	size := map[string]int{"float": 4, "double": 8, "half": 2, "bfloat": 2}[T]
	return mapper{prog, size}
}

func (m mapper) run(t testing.TB, a, b []byte) []byte {
	t.Helper()
	n := len(a) / m.size
	out := make([]byte, len(a))
	require.NoError(t, m.prog.Run(launch.Launch{
		Grid: [3]int{n, 1, 1}, Threadgroup: [3]int{min(n, 256), 1, 1}, Buffers: [][]byte{out, a, b},
	}))
	return out
}

func (m mapper) floats(t testing.TB, a, b []float32) []float32 {
	out := m.run(t, floatBytes(a), floatBytes(b))
	r := make([]float32, len(a))
	for i := range r {
		r[i] = math.Float32frombits(binary.LittleEndian.Uint32(out[4*i:]))
	}
	return r
}

func (m mapper) doubles(t testing.TB, a, b []float64) []float64 {
	out := m.run(t, doubleBytes(a), doubleBytes(b))
	r := make([]float64, len(a))
	for i := range r {
		r[i] = math.Float64frombits(binary.LittleEndian.Uint64(out[8*i:]))
	}
	return r
}

func floatBytes(x []float32) []byte {
	b := make([]byte, 0, 4*len(x))
	for _, v := range x {
		b = binary.LittleEndian.AppendUint32(b, math.Float32bits(v))
	}
	return b
}

func doubleBytes(x []float64) []byte {
	b := make([]byte, 0, 8*len(x))
	for _, v := range x {
		b = binary.LittleEndian.AppendUint64(b, math.Float64bits(v))
	}
	return b
}

// ulps32 is the distance of got from want in units of the last place of a float of want's size. Past the largest
// float infinity stands for 2^128.
func ulps32(got float32, want float64) float64 {
	g := float64(got)
	if math.IsNaN(want) || math.IsNaN(g) {
		if math.IsNaN(want) && math.IsNaN(g) {
			return 0
		}
		return math.Inf(1)
	}
	limit := math.Ldexp(1, 128)
	if math.Abs(want) > limit {
		want = math.Copysign(limit, want)
	}
	if math.IsInf(g, 0) {
		g = math.Copysign(limit, g)
	}
	if g == want {
		return 0
	}
	_, e := math.Frexp(want)
	return math.Abs(g-want) / math.Ldexp(1, max(e-24, -149))
}

// floatSweep returns n floats over all exponents and signs, with the special values and their neighbours.
func floatSweep(n int) []float32 {
	var xs []float32
	step := uint64(1<<32) / uint64(n)
	for u, k := uint64(0), uint64(0); u < 1<<32; u, k = u+step, k+1 {
		// the low bits vary as well
		v := uint32(u) + uint32(k*0x9e3779b9)%uint32(step)
		xs = append(xs, math.Float32frombits(v))
	}
	return append(xs, specials32()...)
}

func specials32() []float32 {
	nan := float32(math.NaN())
	inf := float32(math.Inf(1))
	xs := []float32{0, inf, nan, 1, 2, 0.5, 0.75, 1.5, 3, 10, 88.72283, 88.72284, 103.97, 104, 128, 149.5, 150,
		65536, 65537, 71476, 1e5, 1e10, 1e38,
		math.MaxFloat32, 0x1p-126, 0x1p-149, 0x1p-127, 1e-20, 1e-5, 0.92, 0.925, 0.55, 4, 3.9, 38.5, 45,
		0.70710677, 0.70710678, 1.4142135,
		1.5707964, 3.1415927, 0.7853982, 16777216, 8388607.5, 2147483648, 1e30, 0.99999994, 1.0000001, 6.125, 17.3,
		90, 89.4}
	var out []float32
	for _, x := range xs {
		for _, d := range []float32{float32(math.Inf(-1)), x, inf} {
			y := x
			if d != x {
				y = math.Nextafter32(x, d)
			}
			out = append(out, y, -y)
		}
	}
	return out
}

// between returns n floats evenly spread between a and b.
func between(a, b float64, n int) []float32 {
	xs := make([]float32, n)
	for i := range xs {
		xs[i] = float32(a + (b-a)*(float64(i)+0.37)/float64(n))
	}
	return xs
}

// sinPi, cosPi: of exact fractions, so that no reduction is needed.
func sinPi(x float64) float64 {
	if math.IsInf(x, 0) || math.IsNaN(x) {
		return math.NaN()
	}
	s := math.Copysign(1, x)
	x = math.Mod(math.Abs(x), 2)
	if x >= 1 {
		x, s = x-1, -s
	}
	if x > 0.5 {
		x = 1 - x
	}
	if x > 0.25 {
		return s * math.Cos(math.Pi*(0.5-x))
	}
	return s * math.Sin(math.Pi*x)
}

func cosPi(x float64) float64 {
	if math.IsInf(x, 0) || math.IsNaN(x) {
		return math.NaN()
	}
	x = math.Mod(math.Abs(x), 2)
	if x > 1 {
		x = 2 - x
	}
	return sinPi(0.5 - x)
}

// reduceBig is x modulo 2 pi for finite x, by big numbers: Go's own reduction is good, but not meant as a reference.
func reduceBig(x float64) float64 {
	if math.IsInf(x, 0) || math.IsNaN(x) {
		return math.NaN()
	}
	if math.Abs(x) < 1 {
		return x
	}
	const prec = 1400
	b := new(big.Float).SetPrec(prec).SetFloat64(x)
	q := new(big.Float).SetPrec(prec).Quo(b, twoPi)
	n, _ := q.Int(nil)
	b.Sub(b, new(big.Float).SetPrec(prec).Mul(new(big.Float).SetPrec(prec).SetInt(n), twoPi))
	r, _ := b.Float64()
	return r
}

// twoPi by Machin's formula, to 1400 bits.
var twoPi = func() *big.Float {
	const prec = 1400
	arctan := func(inv int64) *big.Float {
		sum, term := new(big.Float).SetPrec(prec), new(big.Float).SetPrec(prec)
		term.Quo(big.NewFloat(1).SetPrec(prec), new(big.Float).SetInt64(inv))
		sq := new(big.Float).SetInt64(inv * inv)
		for k := int64(1); k < 1300; k += 2 {
			t := new(big.Float).SetPrec(prec).Quo(term, new(big.Float).SetInt64(k))
			if k%4 == 1 {
				sum.Add(sum, t)
			} else {
				sum.Sub(sum, t)
			}
			term.Quo(term, sq)
		}
		return sum
	}
	a := arctan(5)
	a.Mul(a, big.NewFloat(4))
	a.Sub(a, arctan(239))
	return a.Mul(a, big.NewFloat(8))
}()

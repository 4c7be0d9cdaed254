package optest

import (
	"context"
	"encoding/binary"
	"fmt"
	"math"
	"strconv"
	"strings"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/mlxlua/mlxlua/tensor"
)

// Gen is a formula for an input's elements, which golden/golden.py shares. Its numbers are multiples of 1/16, so
// that the half types hold them exactly.
type Gen struct {
	Kind   string
	Lo, Hi float64
}

// Uniform spreads over [lo, hi].
func Uniform(lo, hi float64) Gen { return Gen{"uniform", lo, hi} }

// Ints spreads over the integers from lo to hi.
func Ints(lo, hi int) Gen { return Gen{"ints", float64(lo), float64(hi)} }

// Distinct gives different numbers around lo, 1/4 apart: for max, sort and the like, which have no derivative at ties.
func Distinct(lo float64) Gen { return Gen{"distinct", lo, 0} }

// specials are what golden data of the kind "special" consist of: zeros of both signs, infinities, NaN and plain
// numbers.
var specials = []float64{0, math.Copysign(0, -1), 1, -1, 0.5, math.Inf(1), math.Inf(-1), math.NaN(), 2.5, -2.5, 100,
	-100}

// at is element i of n of input k.
func (g Gen) at(k, i, n int) float64 {
	h := uint32(i+1)*2654435761 + uint32(k+1)*0x9e3779b1
	h ^= h >> 15
	h *= 0x2c1b3c6d
	h ^= h >> 12
	h *= 0x297a2d39
	h ^= h >> 15
	switch g.Kind {
	case "uniform":
		return g.Lo + float64(h%uint32((g.Hi-g.Lo)*16+1))/16
	case "ints":
		return g.Lo + float64(h%uint32(g.Hi-g.Lo+1))
	case "distinct":
		for _, p := range []int{7, 11, 13, 17, 19} {
			if n%p != 0 {
				return g.Lo + float64((i*p+k)%n-n/2)/4
			}
		}
		return g.Lo + float64(i-n/2)/4
	case "special":
		return specials[(i+i/len(specials)*k)%len(specials)]
	}
	panic("unknown generator " + g.Kind)
}

// values are n elements of input k as real and imaginary parts, in the way dtype d sees them.
func (g Gen) values(k, n int, d tensor.DType) []complex128 {
	out := make([]complex128, n)
	for i := range out {
		v := g.at(k, i, n)
		switch {
		case d == tensor.Bool:
			v = math.Mod(math.Abs(math.Floor(v*4)), 2)
		case d.IsUnsigned():
			v = math.Abs(math.Floor(v))
		case d.IsSigned():
			v = math.Floor(v)
		}
		out[i] = complex(v, 0)
		if d.IsComplex() {
			out[i] = complex(v, g.at(k+100, i, n))
		}
	}
	return out
}

func (i Input) names() []string {
	var out []string
	for _, p := range strings.Split(i.dims, ",") {
		if _, err := strconv.Atoi(p); err != nil && p != "" {
			out = append(out, p)
		}
	}
	return out
}

func (i Input) shape(sizes map[string]int) tensor.Shape {
	s := tensor.Shape{}
	if i.dims == "" {
		return s
	}
	for _, p := range strings.Split(i.dims, ",") {
		n, err := strconv.Atoi(p)
		if err != nil {
			var ok bool
			if n, ok = sizes[p]; !ok {
				panic(fmt.Sprintf("unknown size %q", p))
			}
		}
		s = append(s, n)
	}
	return s
}

// arrays are a case's inputs. Indices and other inputs that are not differentiated keep their values.
func (c Case) arrays(d tensor.DType, sizes map[string]int) []*tensor.Array {
	out := make([]*tensor.Array, len(c.Inputs))
	for i, s := range c.specs(d, sizes) {
		out[i] = array(s, c.Inputs[i].gen.values(i, s.Shape.Size(), s.DType))
	}
	return out
}

// array is an array of those elements.
func array(s tensor.Spec, v []complex128) *tensor.Array {
	return tensor.FromBytes(&tensor.Ctx{}, s, encode(s.DType, v))
}

func encode(d tensor.DType, v []complex128) []byte {
	b := make([]byte, 0, len(v)*d.Size())
	le := binary.LittleEndian
	for _, z := range v {
		x := real(z)
		switch d {
		case tensor.Bool, tensor.Uint8:
			b = append(b, uint8(x))
		case tensor.Int8:
			b = append(b, uint8(int8(x)))
		case tensor.Uint16:
			b = le.AppendUint16(b, uint16(x))
		case tensor.Int16:
			b = le.AppendUint16(b, uint16(int16(x)))
		case tensor.Uint32:
			b = le.AppendUint32(b, uint32(x))
		case tensor.Int32:
			b = le.AppendUint32(b, uint32(int32(x)))
		case tensor.Uint64:
			b = le.AppendUint64(b, uint64(x))
		case tensor.Int64:
			b = le.AppendUint64(b, uint64(int64(x)))
		case tensor.Float16:
			b = le.AppendUint16(b, tensor.Float16Bits(float32(x)))
		case tensor.BFloat16:
			b = le.AppendUint16(b, tensor.BFloat16Bits(float32(x)))
		case tensor.Float32:
			b = le.AppendUint32(b, math.Float32bits(float32(x)))
		case tensor.Float64:
			b = le.AppendUint64(b, math.Float64bits(x))
		case tensor.Complex64:
			b = le.AppendUint32(b, math.Float32bits(float32(x)))
			b = le.AppendUint32(b, math.Float32bits(float32(imag(z))))
		}
	}
	return b
}

// decode gives elements as numbers. 64-bit integers beyond 2^53 are rounded: compare those as bytes.
func decode(d tensor.DType, b []byte) []complex128 {
	out := make([]complex128, len(b)/d.Size())
	le := binary.LittleEndian
	for i := range out {
		e := b[i*d.Size():]
		var x, y float64
		switch d {
		case tensor.Bool, tensor.Uint8:
			x = float64(e[0])
		case tensor.Int8:
			x = float64(int8(e[0]))
		case tensor.Uint16:
			x = float64(le.Uint16(e))
		case tensor.Int16:
			x = float64(int16(le.Uint16(e)))
		case tensor.Uint32:
			x = float64(le.Uint32(e))
		case tensor.Int32:
			x = float64(int32(le.Uint32(e)))
		case tensor.Uint64:
			x = float64(le.Uint64(e))
		case tensor.Int64:
			x = float64(int64(le.Uint64(e)))
		case tensor.Float16:
			x = float64(tensor.Float16Value(le.Uint16(e)))
		case tensor.BFloat16:
			x = float64(tensor.BFloat16Value(le.Uint16(e)))
		case tensor.Float32:
			x = float64(math.Float32frombits(le.Uint32(e)))
		case tensor.Float64:
			x = math.Float64frombits(le.Uint64(e))
		case tensor.Complex64:
			x, y = float64(math.Float32frombits(le.Uint32(e))), float64(math.Float32frombits(le.Uint32(e[4:])))
		}
		out[i] = complex(x, y)
	}
	return out
}

// result is an evaluated array.
type result struct {
	spec  tensor.Spec
	bytes []byte
}

func (r result) values() []complex128 { return decode(r.spec.DType, r.bytes) }

// evaluate computes arrays together.
func evaluate(t *testing.T, xs []*tensor.Array) []result {
	t.Helper()
	for i, x := range xs {
		require.NotNil(t, x, "output %d", i)
		require.NoError(t, x.Err(), "output %d", i)
	}
	ctx := context.Background()
	require.NoError(t, tensor.Eval(ctx, xs...))
	out := make([]result, len(xs))
	for i, x := range xs {
		b, err := x.Bytes(ctx)
		require.NoError(t, err)
		s := x.Spec()
		require.Len(t, b, int(s.NBytes()), "output %d: %v", i, s)
		out[i] = result{s, b}
	}
	return out
}

// tolerances are what a few roundings cost.
var tolerances = map[tensor.DType]Tol{
	tensor.Float16:   {2e-3, 1e-3},
	tensor.BFloat16:  {1.6e-2, 1e-2},
	tensor.Float32:   {4e-6, 1e-6},
	tensor.Float64:   {1e-13, 1e-14},
	tensor.Complex64: {8e-6, 2e-6},
}

// tol is the op's tolerance for a dtype.
func (op Subject) tol(d tensor.DType) Tol {
	t := tolerances[d]
	if d == tensor.Float64 { // Op.Tol speaks of float32
		return Tol{max(t.Rel, op.Tol.Rel*1e-7), max(t.Abs, op.Tol.Abs*1e-7)}
	}
	return Tol{max(t.Rel, op.Tol.Rel), max(t.Abs, op.Tol.Abs)}
}

// same compares two results: bytes for integers, within the tolerance for the rest. NaNs are equal, and so are
// infinities of one sign.
func same(t *testing.T, want, got result, tol Tol, msg string, args ...any) {
	t.Helper()
	require.Equal(t, want.spec.String(), got.spec.String(), "%s", fmt.Sprintf(msg, args...))
	if !want.spec.DType.IsInexact() {
		require.Equal(t, want.bytes, got.bytes, "%s: %v, not %v", fmt.Sprintf(msg, args...), got.values(), want.values())
		return
	}
	w, g := want.values(), got.values()
	for i := range w {
		if !near(real(w[i]), real(g[i]), tol) || !near(imag(w[i]), imag(g[i]), tol) {
			require.Fail(t, fmt.Sprintf("%s: element %d is %v, not %v\ngot  %v\nwant %v", fmt.Sprintf(msg, args...), i,
				g[i], w[i], g, w))
		}
	}
}

func near(want, got float64, tol Tol) bool {
	switch {
	case math.IsNaN(want) || math.IsNaN(got):
		return math.IsNaN(want) && math.IsNaN(got)
	case math.IsInf(want, 0) || math.IsInf(got, 0):
		return want == got
	}
	return math.Abs(want-got) <= tol.Abs+tol.Rel*math.Abs(want)
}

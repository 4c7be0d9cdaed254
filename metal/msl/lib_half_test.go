package msl_test

import (
	"encoding/binary"
	"math"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/mlxlua/mlxlua/metal/kir"
	"github.com/mlxlua/mlxlua/metal/launch"
	"github.com/mlxlua/mlxlua/metal/msl"
)

// TestHalfFunctions: on all 65536 values of a half type, a function is the float function rounded once. The float
// result is within 4 units of its last place, so the half may differ from the rounded truth only beside a tie.
func TestHalfFunctions(t *testing.T) {
	t.Parallel()
	for _, typ := range []struct {
		name   string
		t      kir.Type
		digits int
		least  int
	}{{"half", kir.F16, 11, -24}, {"bfloat", kir.BF16, 8, -133}} {
		var in []byte
		for u := range 1 << 16 {
			in = binary.LittleEndian.AppendUint16(in, uint16(u))
		}
		for _, f := range []struct {
			expr string
			ref  func(float64) float64
		}{
			{"exp(x)", math.Exp}, {"log(x)", math.Log},
			{"sin(x)", func(x float64) float64 { return math.Sin(reduceBig(x)) }},
			{"metal::precise::tanh(x)", math.Tanh}, {"metal::fast::sqrt(x)", math.Sqrt}, {"erf(x)", math.Erf},
			{"log1p(x)", math.Log1p},
			{"round(x)", math.Round}, {"rint(x)", math.RoundToEven}, {"metal::fast::exp2(x)", math.Exp2},
			{"pow(x, " + typ.name + "(2))", func(x float64) float64 { return x * x }},
		} {
			out := newMapper(t, typ.name, f.expr).run(t, in, in)
			for u := range 1 << 16 {
				x := kir.ToFloat64(typ.t, uint64(u))
				got := kir.ToFloat64(typ.t, uint64(binary.LittleEndian.Uint16(out[2*u:])))
				want := f.ref(x)
				if math.IsNaN(want) {
					require.True(t, math.IsNaN(got), "%s %s at %v: %v", typ.name, f.expr, x, got)
					continue
				}
				rounded := kir.ToFloat64(typ.t, kir.FromFloat64(typ.t, want))
				if got == rounded {
					continue
				}
				_, e := math.Frexp(want)
				ulp := math.Ldexp(1, max(e-typ.digits, typ.least))
				require.LessOrEqual(t, math.Abs(got-want), ulp*(0.5+0.01), "%s %s at %v: %v, want %v", typ.name,
					f.expr, x, got, want)
			}
		}
	}
}

// runOne compiles statements that fill out[0..n) and returns them.
func runOne(t *testing.T, pre, body string, n int, bufs ...[]byte) []float32 {
	t.Helper()
	text := pre + "\nkernel void k(device float* out [[buffer(0)]], constant int* shape [[buffer(1)]],\n" +
		"constant int64_t* strides [[buffer(2)]], constant int64_t* strides2 [[buffer(3)]],\n" +
		"device complex64_t* cs [[buffer(4)]], uint lane [[thread_index_in_simdgroup]]) {\n" +
		"#line 1 \"body\"\n" + body + "\n}\n"
	mod, err := msl.Compile(msl.Source{Name: "test", Text: text}, msl.Options{})
	require.NoError(t, err)
	require.NoError(t, mod.Verify())
	prog, err := prepare(mod.Kernels[0], mod.Files)
	require.NoError(t, err)
	out := make([]byte, 4*n)
	all := append([][]byte{out}, bufs...)
	for len(all) < 5 {
		all = append(all, make([]byte, 64))
	}
	require.NoError(t, prog.Run(launch.Launch{Grid: [3]int{1, 1, 1}, Threadgroup: [3]int{1, 1, 1}, Buffers: all}))
	r := make([]float32, n)
	for i := range r {
		r[i] = math.Float32frombits(binary.LittleEndian.Uint32(out[4*i:]))
	}
	return r
}

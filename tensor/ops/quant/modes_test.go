package quant_test

import (
	"fmt"
	"math"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/mlxlua/mlxlua/internal/brief"
	"github.com/mlxlua/mlxlua/tensor"
	"github.com/mlxlua/mlxlua/tensor/grad"
	"github.com/mlxlua/mlxlua/tensor/ops"
	"github.com/mlxlua/mlxlua/tensor/ops/quant"
	"github.com/mlxlua/mlxlua/tensor/optest"
)

// floatModes are the modes whose elements are floats.
var floatModes = []struct {
	name        string
	group, bits int
	// scales are bytes of scales near 1.
	scales optest.Gen
}{
	{"mxfp4", 32, 4, optest.Ints(125, 128)},
	{"mxfp8", 32, 8, optest.Ints(120, 123)},
	{"nvfp4", 16, 4, optest.Ints(48, 63)},
}

// TestFloatModes runs the ops over each mode whose elements are floats.
func TestFloatModes(t *testing.T) {
	floats := optest.Computed(t, tensor.Float32, tensor.Float16, tensor.BFloat16, tensor.Float64)
	tol := optest.Tol{Rel: 1e-5, Abs: 1e-3}
	for _, m := range floatModes {
		q := quant.Quantization{Mode: m.name}
		word := optest.Ints(0, 1<<31)
		words := func(w *array) *array { return w }
		if m.bits == 8 { // no NaN
			word = optest.Ints(0, 126)
			words = func(w *array) *array { return ops.Multiply(w, ops.Number(0x01010101, tensor.Uint32)) }
		}
		packed := func(front string) []optest.Input {
			return []optest.Input{optest.In(fmt.Sprintf("%s,%d", front, 64*m.bits/32), word).As(tensor.Uint32),
				optest.In(fmt.Sprintf("%s,%d", front, 64/m.group), m.scales).As(tensor.Uint8)}
		}
		factor := optest.In("1", optest.Uniform(1, 3)).As(tensor.Float32).Const()
		global := func(in []*array, i int) quant.Quantization {
			if q := q; len(in) > i {
				q.GlobalScale = in[i]
				return q
			}
			return q
		}
		run := func(name string, ops []string, f optest.Func, cases ...optest.Case) {
			optest.Run(t, optest.Subject{Name: m.name + " " + name, Ops: ops, DTypes: floats, Tol: tol, Fn: f, Cases: cases})
		}
		with := func(c optest.Case) []optest.Case {
			if m.name == "nvfp4" {
				return []optest.Case{c, optest.With(c, factor)}
			}
			return []optest.Case{c}
		}
		indexed := func(x optest.Case) optest.Case {
			return optest.With(optest.With(x, packed("3,3")...), optest.Indices("m,1", 2), optest.Indices("3", 3))
		}
		x := optest.In("n,64", uniform)
		run("quantize", []string{"quantize"}, func(in []*array) []*array { return quant.Quantize(in[0], global(in, 1)) },
			with(optest.Case{Inputs: []optest.Input{x.Const()}})...)
		run("values", []string{"quantized_values", "qqmm"}, optest.One(func(in []*array) *array {
			call := quant.QQMMCall{Quantization: q, Scales: in[2]}
			if len(in) > 3 {
				call.GlobalX, call.GlobalW = in[3], in[3]
			}
			return quant.QQMM(in[0], words(in[1]), call)
		}), with(optest.With(optest.Case{Inputs: []optest.Input{x.Const()}}, packed("3")...))...)
		run("dequantize", []string{"dequantize"}, optest.One(func(in []*array) *array {
			return quant.Dequantize(words(in[0]), in[1], nil, global(in, 2), new(tensor.Float32))
		}), with(optest.Case{Inputs: packed("n")})...)
		for _, transpose := range []bool{true, false} {
			x := map[bool]string{true: "n,64", false: "n,3"}[transpose]
			name := fmt.Sprintf("quantized_matmul %v", transpose)
			run(name, []string{"quantized_matmul"}, optest.One(func(in []*array) *array {
				return quant.QuantizedMatmul(in[0], words(in[1]), in[2], nil, transpose, global(in, 3))
			}), with(optest.With(optest.Of(x), packed("3")...))...)
			run(fmt.Sprintf("gather_qmm %v", transpose), []string{"gather_qmm"}, optest.One(func(in []*array) *array {
				return quant.GatherQMM(in[0], words(in[1]), in[2], nil, quant.GatherQMMCall{LHS: in[3], RHS: in[4],
					NoTranspose: !transpose, Quantization: q})
			}), indexed(optest.Of("2,"+x)))
		}
		run("gather_qqmm", []string{"gather_qqmm"}, optest.One(func(in []*array) *array {
			return quant.GatherQQMM(in[0], words(in[1]), in[3], in[4], quant.QQMMCall{Quantization: q, Scales: in[2]})
		}), indexed(optest.Case{Inputs: []optest.Input{optest.In("2,n,64", uniform).Const()}}))
	}
}

// e2m1 and e4m3 are the values of elements by the definition of the formats: sign, exponent, mantissa.
func small(b, exponent, mantissa int) float64 {
	m, e := float64(b&(1<<mantissa-1)), b>>mantissa&(1<<exponent-1)
	bias := 1<<(exponent-1) - 1
	v := math.Ldexp(m, 1-bias-mantissa)
	if e > 0 {
		v = math.Ldexp(m+float64(int(1)<<mantissa), e-bias-mantissa)
	}
	if exponent == 4 && b&127 == 127 {
		v = math.NaN()
	}
	if b>>(exponent+mantissa) == 1 {
		return -v
	}
	return v
}

func e2m1(b int) float64 { return small(b, 2, 1) }
func e4m3(b int) float64 { return small(b, 4, 3) }

// TestFloatFormats unpacks each element with each scale, and compares with the definition of the formats.
func TestFloatFormats(t *testing.T) {
	brief.OnlyValues(t)
	optest.Open(t)
	for _, m := range floatModes {
		words := m.group * m.bits / 32
		w, scales := make([]uint32, 256*words), make([]uint8, 256)
		element := map[int]func(int) float64{4: e2m1, 8: e4m3}[m.bits]
		var want []float64
		for s := range 256 {
			scale := math.Ldexp(1, s-127)
			switch {
			case m.name == "nvfp4":
				scale = e4m3(s)
			case s == 255:
				scale = math.Inf(1)
			}
			scales[s] = uint8(s)
			for i := range m.group {
				q := (i*7 + s) & (1<<m.bits - 1)
				w[s*words+i*m.bits/32] |= uint32(q) << (i * m.bits % 32)
				want = append(want, element(q)*scale)
			}
		}
		packed, s := ops.FromSlice(w, []int{256, words}), ops.FromSlice(scales, []int{256, 1})
		for _, d := range optest.Computed(t, tensor.Float64, tensor.Float32, tensor.Float16) {
			got := quant.Dequantize(packed, s, nil, quant.Quantization{Mode: m.name}, &d)
			rounded := ops.AsType(ops.FromSlice(want, []int{256, m.group}), d, optest.Wide(t))
			all := optest.Values32(t, ops.AsType(got, tensor.Float32))
			for i, v := range optest.Values32(t, ops.AsType(rounded, tensor.Float32, optest.Wide(t))) {
				g := all[i]
				require.True(t, g == v || g != g && v != v, "%s %v: element %d: %v, want %v", m.name, d, i, g, v)
			}
		}
	}
}

// TestNaNInProducts multiplies with packed matrices of which one element is the NaN of 8 bits: the results that it
// takes part in are NaN, in each way to compute them, and no others.
func TestNaNInProducts(t *testing.T) {
	optest.Open(t)
	const rows, depth = 5, 96
	for k := range 8 {
		w := make([]uint32, rows*depth/4)
		w[depth/4+k] = []uint32{0x7f, 0xff00, 0x7f0000, 0x7fffffff}[k%4]
		scales := ops.Full(tensor.Sizes(rows, depth/32), ops.Number(127, tensor.Uint8), tensor.Uint8)
		for _, n := range []int{1, 3, 40} {
			x := optest.Noise(tensor.Float32, n, depth)
			y := quant.QuantizedMatmul(x, ops.FromSlice(w, []int{rows, depth / 4}), scales, nil, true,
				quant.Quantization{Mode: "mxfp8"})
			for i, v := range optest.Values32(t, y) {
				require.Equal(t, i%rows == 1, v != v, "word %d, %d rows, element %d: %v", k, n, i, v)
			}
		}
	}
}

// TestFloatExtremes packs what MLX packs wrongly: groups whose scale is below the least one, whose elements are far
// above the greatest, and that are not finite.
func TestFloatExtremes(t *testing.T) {
	optest.Open(t)
	values := func(mode string, v ...float64) []float64 {
		x := make([]float32, 32)
		for i, e := range v {
			x[i] = float32(e)
		}
		p := quant.Quantize(ops.FromSlice(x, []int{1, 32}), quant.Quantization{Mode: mode})
		y := quant.Dequantize(p[0], p[1], nil, quant.Quantization{Mode: mode}, new(tensor.Float32))
		return optest.Values32(t, y)[:len(v)]
	}
	least := math.Ldexp(1, -127)
	require.Equal(t, []float64{least, -least / 2}, values("mxfp4", least, -least/2))
	require.Equal(t, []float64{least, -least / 8}, values("mxfp8", least, -least/8))
	require.Equal(t, []float64{6 * 448, -6 * 448}, values("nvfp4", 1e30, -1e30))
	for _, mode := range []string{"mxfp4", "mxfp8", "nvfp4"} {
		for _, bad := range []float64{math.Inf(1), math.Inf(-1), math.NaN()} {
			for _, v := range values(mode, 1, bad) {
				require.False(t, v-v == 0, "%s of %v gives %v", mode, bad, v)
			}
		}
		require.Equal(t, []float64{0, 0}, values(mode, 0, 0))
	}
}

// TestGlobalScale compares products whose packed matrices have global scales with those of unpacked ones, in half types
// too, where the products without the scale would overflow.
func TestGlobalScale(t *testing.T) {
	optest.Open(t)
	const experts = 3
	q := quant.Quantization{Mode: "nvfp4"}
	x := optest.Noise(tensor.Float16, 2, 5, 128)
	var words, scales, plain []*array
	global := []float32{0.5, 300, 7}
	for i := range experts {
		w := optest.Noise(tensor.Float32, 9, 128)
		w = ops.Multiply(ops.Divide(w, ops.Max(ops.Abs(w), nil, false)), ops.Scalar(float64(global[i]), w))
		q.GlobalScale = ops.FromSlice(global[i:i+1], nil)
		p := quant.Quantize(w, q)
		words, scales = append(words, p[0]), append(scales, p[1])
		plain = append(plain, quant.Dequantize(p[0], p[1], nil, q, new(tensor.Float64), optest.Wide(t)))
		off := ops.Max(ops.Abs(ops.Subtract(ops.AsType(plain[i], tensor.Float32, optest.Wide(t)), w)), nil, false)
		require.InDelta(t, 0, optest.Values32(t, off)[0], float64(global[i])/5)
		near(t, quant.QuantizedMatmul(x, p[0], p[1], nil, true, q), x, ops.SwapAxes(plain[i], 0, 1))
	}
	w, s, all := ops.Stack(words, 0), ops.Stack(scales, 0), ops.Stack(plain, 0, optest.Wide(t))
	lhs, rhs := ops.FromSlice([]int32{0, 1, -1}, []int{3, 1}), ops.FromSlice([]int32{2, 0, -2, 1}, []int{4})
	q.GlobalScale = ops.FromSlice(global, []int{experts})
	got := quant.GatherQMM(x, w, s, nil, quant.GatherQMMCall{LHS: lhs, RHS: rhs, Quantization: q})
	taken := ops.BroadcastTo(ops.Take(x, lhs, new(0)), tensor.Sizes(3, 4, 5, 128))
	near(t, got, taken, ops.SwapAxes(ops.Take(all, rhs, new(0), optest.Wide(t)), -1, -2))
	q.GlobalScale = ops.FromSlice(global[:2], []int{2})
	optest.Fails(t, quant.GatherQMM(x, w, s, nil, quant.GatherQMMCall{RHS: rhs, Quantization: q}), "[gather_qmm]")
	q.Mode, q.GlobalScale = "mxfp4", ops.FromSlice(global, []int{experts})
	optest.Fails(t, quant.GatherQMM(x, w, s, nil, quant.GatherQMMCall{RHS: rhs, Quantization: q}),
		"[gather_qmm] a global scale is for mode nvfp4, the mode is mxfp4")
}

// TestQQMM compares products of two packed operands, and their gradients, with products of unpacked ones.
func TestQQMM(t *testing.T) {
	optest.Open(t)
	for _, m := range floatModes {
		call := quant.QQMMCall{Quantization: quant.Quantization{Mode: m.name}}
		x, w := optest.Noise(tensor.Float32, 7, 64), optest.Noise(tensor.Float32, 5, 64)
		if m.name == "nvfp4" {
			call.GlobalX, call.GlobalW = ops.Max(ops.Abs(x), nil, false), ops.Max(ops.Abs(w), nil, false)
		}
		values := func(x, global *array) (p []*array, plain *array) {
			q := call.Quantization
			q.GlobalScale = global
			p = quant.Quantize(x, q)
			return p, quant.Dequantize(p[0], p[1], nil, q, new(tensor.Float64), optest.Wide(t))
		}
		_, xs := values(x, call.GlobalX)
		p, ws := values(w, call.GlobalW)
		near(t, quant.QQMM(x, w, call), xs, ops.SwapAxes(ws, 0, 1))
		cot := optest.Noise(tensor.Float32, 7, 5)
		f := func(in []*array) ([]*array, error) { return []*array{quant.QQMM(in[0], in[1], call)}, nil }
		_, grads, err := grad.VJP(f, []*array{x, w}, []*array{cot})
		require.NoError(t, err)
		near(t, grads[0], cot, ws)
		near(t, grads[1], ops.SwapAxes(cot, 0, 1), xs)

		lhs, rhs := ops.FromSlice([]int32{0, -1}, []int{2, 1}), ops.FromSlice([]int32{0, 1, 0}, []int{3})
		x2, w2 := ops.Stack([]*array{x, x}, 0), ops.Stack([]*array{w, w}, 0)
		want := ops.SwapAxes(ops.BroadcastTo(ws, tensor.Sizes(2, 3, 5, 64)), -1, -2)
		wide := ops.BroadcastTo(xs, tensor.Sizes(2, 3, 7, 64))
		near(t, quant.GatherQQMM(x2, w2, lhs, rhs, call), wide, want)
		call.Scales = p[1]
		near(t, quant.QQMM(x, p[0], call), xs, ops.SwapAxes(ws, 0, 1))
		near(t, quant.QQMM(ops.Reshape(x, tensor.Sizes(7, 1, 64)), p[0], call), ops.Reshape(xs, tensor.Sizes(7, 1, 64)),
			ops.SwapAxes(ws, 0, 1))
		call.Scales = ops.Stack([]*array{p[1], p[1]}, 0)
		near(t, quant.GatherQQMM(x2, ops.Stack([]*array{p[0], p[0]}, 0), lhs, rhs, call), wide, want)
	}
	x := optest.Noise(tensor.Float32, 2, 64)
	one := ops.Ones(tensor.Sizes(), tensor.Float32)
	packed := quant.Quantize(x, quant.Quantization{Mode: "nvfp4"})
	call := func(w *array, call quant.QQMMCall) *array { return quant.QQMM(x, w, call) }
	optest.Fails(t, call(packed[0], quant.QQMMCall{}), "[qqmm] a packed w needs scales")
	optest.Fails(t, call(x, quant.QQMMCall{Scales: packed[1]}), "[qqmm] scales are for packed words, w has dtype float32")
	optest.Fails(t, call(x, quant.QQMMCall{GlobalX: one}), "[qqmm] one of global_scale_x and global_scale_w is given")
	optest.Fails(t, call(x, quant.QQMMCall{GlobalX: one, GlobalW: one, Quantization: quant.Quantization{Mode: "mxfp8"}}),
		"[qqmm] a global scale is for mode nvfp4, the mode is mxfp8")
	optest.Fails(t, call(x, quant.QQMMCall{Quantization: quant.Quantization{Mode: "affine"}}), "[qqmm] mode affine is not")
	optest.Fails(t, call(ops.Ones(tensor.Sizes(2, 64), tensor.Int32), quant.QQMMCall{}), "[qqmm] w has dtype int32")
	optest.Fails(t, call(ops.Ones(tensor.Sizes(2, 48), tensor.Float32), quant.QQMMCall{}), "[qqmm]")
	two := quant.Quantization{Mode: "nvfp4", GlobalScale: ops.Ones(tensor.Sizes(2), tensor.Float32)}
	optest.Fails(t, quant.Quantize(x, two)[0],
		"[quantize] the global scale has shape (2,), want a single number")
	optest.Fails(t, quant.Dequantize(packed[0], packed[1], packed[1], quant.Quantization{Mode: "nvfp4"}, nil),
		"[dequantize] mode nvfp4 has no biases")
	optest.Fails(t, quant.Dequantize(packed[0], x, nil, quant.Quantization{Mode: "nvfp4"}, nil),
		"[dequantize] scales have dtype float32, want uint8 for mode nvfp4")
}

// TestNoGradientByBits asks for gradients by packed words and by scales in bytes, which are errors as in MLX.
func TestNoGradientByBits(t *testing.T) {
	optest.Open(t)
	x, rhs := optest.Noise(tensor.Float32, 1, 64), ops.FromSlice([]int32{0}, []int{1})
	for _, q := range []quant.Quantization{{}, {Mode: "mxfp4"}} {
		p := pack(optest.Noise(tensor.Float32, 1, 2, 64), q)
		products := map[string]func(w, scales *array) *array{
			"quantized_matmul": func(w, scales *array) *array { return quant.QuantizedMatmul(x, w, scales, p[2], true, q) },
			"gather_qmm": func(w, scales *array) *array {
				return quant.GatherQMM(x, w, scales, p[2], quant.GatherQMMCall{RHS: rhs, Quantization: q})
			},
		}
		for name, f := range products {
			for i, what := range []string{"packed matrix", "scales of mode mxfp4"} {
				if q.Mode == "" && i == 1 { // affine scales have one
					continue
				}
				in := []*array{p[0], p[1]}
				cot := ops.Ones(tensor.Sizes(f(p[0], p[1]).Shape()...), tensor.Float32)
				_, grads, err := grad.VJP(func(y []*array) ([]*array, error) {
					at := []*array{in[0], in[1]}
					at[i] = y[0]
					return []*array{f(at[0], at[1])}, nil
				}, in[i:i+1], []*array{cot})
				if err == nil {
					err = tensor.Eval(t.Context(), grads...)
				}
				require.ErrorContains(t, err, "there is no gradient by the "+what, name)
			}
		}
	}
}

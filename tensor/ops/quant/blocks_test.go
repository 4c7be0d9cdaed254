package quant_test

import (
	"encoding/binary"
	"fmt"
	"math"
	"os"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/mlxlua/mlxlua/internal/brief"
	"github.com/mlxlua/mlxlua/tensor"
	"github.com/mlxlua/mlxlua/tensor/ops"
	"github.com/mlxlua/mlxlua/tensor/ops/quant"
	"github.com/mlxlua/mlxlua/tensor/optest"
)

// goldenBlocks are six blocks of each type with random bytes and factors of all kinds, and their elements, as
// testdata/make_blocks.py makes them with llama.cpp's Python package.
func goldenBlocks(t *testing.T, each func(mode string, blocks []byte, want []float32)) {
	t.Helper()
	b, err := os.ReadFile("testdata/blocks.bin")
	require.NoError(t, err)
	for _, mode := range quant.BlockModes() {
		elements, size, _, ok := quant.BlockSize(mode)
		require.True(t, ok)
		const n = 6
		blocks, rest := b[:n*size], b[n*size:]
		want := make([]float32, n*elements)
		for i := range want {
			want[i] = math.Float32frombits(binary.LittleEndian.Uint32(rest[4*i:]))
		}
		b = rest[4*len(want):]
		each(mode, blocks, want)
	}
	require.Empty(t, b)
}

// TestBlocksAreLlamas: blocks unpack to llama.cpp's values to the bit, of subnormal and infinite factors, too, and in
// other dtypes to those rounded once.
func TestBlocksAreLlamas(t *testing.T) {
	brief.OnlyValues(t)
	optest.Open(t)
	goldenBlocks(t, func(mode string, blocks []byte, want []float32) {
		w := ops.FromSlice(blocks, []int{2, len(blocks) / 2})
		got := quant.Dequantize(w, nil, nil, quant.Quantization{Mode: mode}, nil)
		require.Equal(t, tensor.Spec{Shape: tensor.Shape{2, len(want) / 2}, DType: tensor.Float32}, got.Spec(), mode)
		b, err := got.Bytes(t.Context())
		require.NoError(t, err)
		for i, v := range want {
			bits := binary.LittleEndian.Uint32(b[4*i:])
			if g := math.Float32frombits(bits); v != v && g != g {
				continue
			}
			require.Equal(t, math.Float32bits(v), bits, "%s: element %d is %v", mode, i, v)
		}
		all := ops.FromSlice(want, []int{2, len(want) / 2})
		for _, d := range optest.Computed(t, tensor.Float64, tensor.Float16, tensor.BFloat16) {
			got := quant.Dequantize(w, nil, nil, quant.Quantization{Mode: mode}, &d)
			rounded := optest.Values32(t, ops.AsType(ops.AsType(all, d), tensor.Float32))
			for i, g := range optest.Values32(t, ops.AsType(got, tensor.Float32)) {
				v := rounded[i]
				require.True(t, g == v || g != g && v != v, "%s %v: element %d: %v, want %v", mode, d, i, g, v)
			}
		}
	})
}

// someBlocks are rows of blocks of a mode with ordinary factors.
func someBlocks(mode string, rows, columns int) *array {
	elements, size, _, _ := quant.BlockSize(mode)
	b := make([]byte, rows*columns/elements*size)
	seed := uint32(rows + columns)
	for i := range b {
		seed = seed*1664525 + 1013904223
		b[i] = byte(seed >> 24)
	}
	at := map[string][]int{"q2_k": {80, 82}, "q3_k": {108}, "q4_1": {0, 2}, "q5_1": {0, 2}, "q4_k": {0, 2},
		"q5_k": {0, 2}, "q6_k": {208}}[mode]
	if at == nil {
		at = []int{0}
	}
	for i := 0; i < len(b); i += size {
		for _, at := range at {
			b[i+at+1] = 0x18 | b[i+at+1]&0x83 // of either sign, 0.002 to 0.03
		}
	}
	return ops.FromSlice(b, []int{rows, columns / elements * size})
}

// TestBlocksNearExact compares products with blocks with float64, in each way to compute them.
func TestBlocksNearExact(t *testing.T) {
	brief.OnlyValues(t)
	optest.Open(t)
	for _, mode := range quant.BlockModes() {
		q := quant.Quantization{Mode: mode}
		w := someBlocks(mode, 71, 1280)
		plain := quant.Dequantize(w, nil, nil, q, new(tensor.Float64), optest.Wide(t))
		for _, rows := range []int{1, 8, 9} {
			for _, d := range optest.Computed(t, tensor.Float32, tensor.BFloat16, tensor.Float64) {
				x := optest.Noise(d, rows, 1280)
				near(t, quant.QuantizedMatmul(x, w, nil, nil, true, q), x, ops.SwapAxes(plain, 0, 1))
				x = optest.Noise(d, rows, 71)
				near(t, quant.QuantizedMatmul(x, w, nil, nil, false, q), x, plain)
			}
		}
	}
}

// TestBlocks runs the ops over matrices of blocks: gradients by x, batches, views.
func TestBlocks(t *testing.T) {
	floats := optest.Computed(t, tensor.Float32, tensor.Float16, tensor.BFloat16, tensor.Float64)
	tol := optest.Tol{Rel: 1e-5, Abs: 1e-3}
	for _, mode := range []string{"q5_0", "q4_k"} {
		q := quant.Quantization{Mode: mode}
		elements, size, _, _ := quant.BlockSize(mode)
		// bytes of a factor are of a half from 1 to 4
		blocks := func(front string) optest.Input {
			return optest.In(fmt.Sprintf("%s,%d", front, size), optest.Ints(60, 64)).As(tensor.Uint8)
		}
		run := func(name string, op string, f optest.Func, cases ...optest.Case) {
			optest.Run(t, optest.Subject{Name: mode + " " + name, Ops: []string{op}, DTypes: floats, Tol: tol, Fn: f,
				Cases: cases})
		}
		run("dequantize", "dequantize", optest.One(func(in []*array) *array {
			return quant.Dequantize(in[0], nil, nil, q, nil)
		}), optest.Case{Inputs: []optest.Input{blocks("n")}})
		for _, transpose := range []bool{true, false} {
			x := map[bool]string{true: fmt.Sprintf("n,%d", elements), false: "n,3"}[transpose]
			run(fmt.Sprintf("quantized_matmul %v", transpose), "quantized_matmul", optest.One(func(in []*array) *array {
				return quant.QuantizedMatmul(in[0], in[1], nil, nil, transpose, q)
			}), optest.With(optest.Of(x), blocks("3")))
			run(fmt.Sprintf("gather_qmm %v", transpose), "gather_qmm", optest.One(func(in []*array) *array {
				return quant.GatherQMM(in[0], in[1], nil, nil, quant.GatherQMMCall{LHS: in[2], RHS: in[3],
					NoTranspose: !transpose, Quantization: q})
			}), optest.With(optest.Of("2,"+x), blocks("3,3"), optest.Indices("m,1", 2), optest.Indices("3", 3)))
		}
	}
}

// TestBlocksAreRefused: what modes of blocks do not take is named.
func TestBlocksAreRefused(t *testing.T) {
	brief.OnlyValues(t)
	optest.Open(t)
	q, sixes := quant.Quantization{Mode: "q4_k"}, quant.Quantization{Mode: "q6_k"}
	w, x := someBlocks("q4_k", 2, 256), optest.Noise(tensor.Float32, 1, 256)
	times, unpacked := quant.QuantizedMatmul, quant.Dequantize
	narrow := quant.Quantization{Mode: "q4_k", GroupSize: 32}
	for _, c := range []struct {
		want string
		got  *array
	}{
		{"mode q4_k is only read", quant.Quantize(x, q)[0]},
		{"mode q4_k has its scales in its blocks, and none beside them", unpacked(w, x, nil, q, nil)},
		{"mode q4_k has no biases", unpacked(w, nil, x, q, nil)},
		{"mode affine needs scales", times(x, w, nil, nil, true, quant.Quantization{})},
		{"dtype float32, want uint8 for the blocks of mode q4_k", times(x, x, nil, nil, true, q)},
		{"(2, 144) has no rows of whole blocks: those of mode q6_k have 210 bytes", times(x, w, nil, nil, true, sixes)},
		{"group_size is 32, want 256 for mode q4_k", unpacked(w, nil, nil, narrow, nil)},
		{"dimensions differ: x (1, 256), the unpacked matrix (2, 256)", times(x, w, nil, nil, false, q)},
		{"mode q4_k is not for products of two packed", quant.QQMM(x, x, quant.QQMMCall{Quantization: q})},
	} {
		require.ErrorContains(t, c.got.Err(), c.want)
	}
}

package mlxlua_test

import (
	"bytes"
	"context"
	"slices"
	"strconv"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/mlxlua/mlxlua/tensor"
	"github.com/mlxlua/mlxlua/tensor/ops"
	"github.com/mlxlua/mlxlua/tensor/ops/fast"
	"github.com/mlxlua/mlxlua/tensor/ops/quant"
)

// What products of matrices reach of the machine's limits: of its multiply-adds, and of reading the larger operand.
//
//	go test . -run '^$' -bench Products -benchtime 21x

// productRow is a product: m rows times a matrix of depth k and n columns.
type productRow struct {
	name string
	read bool // its limit is reading, not computing
	// flops and bytes that it must do and read.
	flops, bytes float64
	make         func(array func(shape ...int) *tensor.Array) func() *tensor.Array
}

// dense is x w for an x of m rows, with operands that lie by columns where turned.
func dense(m, k, n int, turnA, turnB bool, d tensor.DType) productRow {
	name := map[bool]string{false: "N", true: "T"}
	return productRow{
		name: d.String() + "_" + name[turnA] + name[turnB] + "_" + strconv.Itoa(m) + "x" + strconv.Itoa(k) + "x" +
			strconv.Itoa(n),
		read: m <= 4, flops: 2 * float64(m) * float64(k) * float64(n), bytes: float64(d.Size()) * float64(k) * float64(n),
		make: func(array func(shape ...int) *tensor.Array) func() *tensor.Array {
			operand := func(rows, cols int, turned bool) *tensor.Array {
				if turned {
					return ops.Transpose(ops.AsType(array(cols, rows), d), nil)
				}
				return ops.AsType(array(rows, cols), d)
			}
			a, b := operand(m, k, turnA), operand(k, n, turnB)
			return func() *tensor.Array { return ops.Matmul(a, b) }
		},
	}
}

// packed is x W^T for an x of m rows and a W of n rows of k elements of so many bits, or of a mode of floats.
func packed(m, k, n, bits int, mode ...string) productRow {
	q := quant.Quantization{Bits: bits}
	size := float64(k) * float64(n)
	name, perGroup := strconv.Itoa(bits)+"bit", size/64*8
	switch {
	case len(mode) == 0:
	case mode[0] == "nvfp4":
		q.Mode, name, perGroup = mode[0], mode[0], size/16
	default:
		q.Mode, name, perGroup = mode[0], mode[0], size/32
	}
	return productRow{
		name: name + "_" + strconv.Itoa(m) + "x" + strconv.Itoa(k) + "x" + strconv.Itoa(n),
		read: m <= 4, flops: 2 * float64(m) * size, bytes: size*float64(bits)/8 + perGroup,
		make: func(array func(shape ...int) *tensor.Array) func() *tensor.Array {
			x, w := array(m, k), append(quant.Quantize(array(n, k), q), nil)
			return func() *tensor.Array { return quant.QuantizedMatmul(x, w[0], w[1], w[2], true, q) }
		},
	}
}

// attention is scaled dot product attention of 16 heads.
func attention(queries, keys, depth int) productRow {
	size := 16 * float64(keys) * float64(depth)
	return productRow{
		name: "attention_" + strconv.Itoa(queries) + "x" + strconv.Itoa(keys) + "x" + strconv.Itoa(depth),
		read: queries == 1, flops: 4 * float64(queries) * size, bytes: 8 * size,
		make: func(array func(shape ...int) *tensor.Array) func() *tensor.Array {
			q, k, v := array(1, 16, queries, depth), array(1, 16, keys, depth), array(1, 16, keys, depth)
			return func() *tensor.Array {
				return fast.ScaledDotProductAttention(q, k, v, 0.125, fast.AttentionOptions{})
			}
		},
	}
}

func productRows() []productRow {
	f, h := tensor.Float32, tensor.BFloat16
	rows := []productRow{dense(1, 128, 512, false, false, f), dense(1, 1024, 4096, false, false, f),
		dense(1, 4096, 4096, false, false, f), dense(1, 4096, 4096, false, true, f), dense(1, 4096, 4096, false, true, h),
		dense(4, 4096, 4096, false, true, f), dense(8, 512, 512, false, true, f), dense(16, 512, 512, false, true, f)}
	for _, n := range []int{64, 256, 512, 1024, 2048} {
		rows = append(rows, dense(n, n, n, false, false, f))
	}
	for layout := 1; layout < 4; layout++ {
		rows = append(rows, dense(1024, 1024, 1024, layout&1 != 0, layout&2 != 0, f))
	}
	rows = append(rows, dense(1024, 1024, 1024, false, true, h), packed(1, 4096, 4096, 4), packed(1, 4096, 4096, 8),
		packed(8, 4096, 4096, 4), packed(64, 4096, 4096, 4))
	for _, bits := range []int{1, 2, 3, 5, 6} {
		rows = append(rows, packed(1, 4096, 4096, bits))
	}
	for _, m := range []int{1, 64} {
		rows = append(rows, packed(m, 4096, 4096, 4, "mxfp4"), packed(m, 4096, 4096, 8, "mxfp8"),
			packed(m, 4096, 4096, 4, "nvfp4"))
	}
	return append(rows, attention(512, 512, 64), attention(1, 4096, 128))
}

const peakSource = `
    float a = x[0];
    float s0 = a, s1 = a, s2 = a, s3 = a, s4 = a, s5 = a, s6 = a, s7 = a, s8 = a, s9 = a;
    for (int i = 0; i < 4096; i++) {
        s0 = fma(s0, a, a); s1 = fma(s1, a, a); s2 = fma(s2, a, a); s3 = fma(s3, a, a); s4 = fma(s4, a, a);
        s5 = fma(s5, a, a); s6 = fma(s6, a, a); s7 = fma(s7, a, a); s8 = fma(s8, a, a); s9 = fma(s9, a, a);
    }
    out[thread_position_in_grid.x] = s0 + s1 + s2 + s3 + s4 + s5 + s6 + s7 + s8 + s9;`

// peakFlops is what peakSource does in 1024 threads.
const peakFlops = 2 * 10 * 4096 * 1024

// BenchmarkProducts is each row's milliseconds and its share of the limit.
func BenchmarkProducts(b *testing.B) { benchmarkProducts(b, productRows()) }

func benchmarkProducts(b *testing.B, rows []productRow) {
	peak, err := fast.NewMetalKernel(fast.KernelConfig{Name: "peak", InputNames: []string{"x"},
		OutputNames: []string{"out"},
		Source:      peakSource})
	require.NoError(b, err)
	call := func(f func() *tensor.Array) float64 {
		start := time.Now()
		y := f()
		require.NoError(b, tensor.Eval(context.Background(), y))
		took := time.Since(start).Seconds()
		tensor.Drop(y)
		return took
	}
	for _, n := range []int{1, 2} {
		onThreads(b, n, func(in *opInputs, lim *limits) {
			one := ops.FromSlice([]float32{0.5, 0.5, 0.5, 0.5, 0.5, 0.5, 0.5, 0.5}, []int{8})
			compute := func() *tensor.Array {
				return peak.Call(fast.KernelCall{Inputs: []*tensor.Array{one}, Grid: fast.Threads(1024),
					Threadgroup: fast.Threads(128), OutputShapes: []fast.OutputShape{{Dims: tensor.Sizes(1024)}},
					OutputDTypes: []tensor.DType{tensor.Float32}})[0]
			}
			for _, row := range rows {
				b.Run(row.name+"/threads="+strconv.Itoa(n), func(b *testing.B) {
					f := row.make(func(shape ...int) *tensor.Array { return noiseOf(b, shape...) })
					call(f)
					call(f)
					call(compute)
					var times, least []float64
					for b.Loop() {
						if row.read {
							size := int(min(row.bytes, most))
							scale := row.bytes / float64(size)
							least = append(least, scale*lim.seconds(size, func(_, from []byte) {
								sink.Add(int64(bytes.IndexByte(from, 2)))
							}))
						} else {
							least = append(least, call(compute)*row.flops/peakFlops)
						}
						times = append(times, call(f))
					}
					took, limit := quartile(times), quartile(least)
					b.ReportMetric(0, "ns/op")
					b.ReportMetric(took*1e3, "ms")
					b.ReportMetric(slices.Min(times)*1e3, "best-ms")
					b.ReportMetric(row.flops/took/1e9, "GFLOP/s")
					b.ReportMetric(100*limit/took, "%limit")
				})
			}
		})
	}
}

package mlxlua_test

import (
	"bytes"
	"context"
	"runtime"
	"slices"
	"strconv"
	"sync"
	"sync/atomic"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/mlxlua/mlxlua"
	"github.com/mlxlua/mlxlua/metal"
	"github.com/mlxlua/mlxlua/metal/drivers"
	"github.com/mlxlua/mlxlua/tensor"
	"github.com/mlxlua/mlxlua/tensor/ops"
	"github.com/mlxlua/mlxlua/tensor/ops/fast"
)

// What built-in ops reach of the machine's limits, on one thread and on two.
//
//	go test . -run '^$' -bench Ops -count 5
//
// Each round measures the limit and then the op, so that both see the same machine; the metrics are lower quartiles
// over rounds, because what disturbs a measurement on a shared machine only ever makes it slower.

// The sizes: 4 Mi elements, and rows of 4096.
const (
	elements = 4 << 20
	rows     = 2048
	columns  = 4096
)

// opRow is an op at a size.
type opRow struct {
	name  string
	bytes int  // that it must read and write
	read  bool // its limit is reading them, not copying as many
	call  func(in *opInputs) *tensor.Array
}

// opInputs are the arrays that the rows compute with.
type opInputs struct{ a, b, c, matrix *tensor.Array }

const geluSource = `
    uint i = thread_position_in_grid.x;
    float x = a[i] * b[i] + c[i];
    out[i] = 0.5f * x * (1.0f + tanh(0.7978845608f * (x + 0.044715f * x * x * x)));`

// gelu is gelu(a*b+c) as a user's kernel.
var gelu = sync.OnceValues(func() (*fast.MetalKernel, error) {
	return fast.NewMetalKernel(fast.KernelConfig{Name: "gelu", InputNames: []string{"a", "b", "c"},
		OutputNames: []string{"out"}, Source: geluSource})
})

var opRows = []opRow{
	{"add", 12 * elements, false, func(in *opInputs) *tensor.Array { return ops.Add(in.a, in.b) }},
	{"multiply", 12 * elements, false, func(in *opInputs) *tensor.Array { return ops.Multiply(in.a, in.b) }},
	{"x*2+1", 8 * elements, false, func(in *opInputs) *tensor.Array {
		two, one := ops.Number(2, tensor.Float32), ops.Number(1, tensor.Float32)
		twice := ops.Multiply(in.a, two)
		y := ops.Add(twice, one)
		tensor.Drop(twice) // as a compiled function's temporary
		return y
	}},
	{"exp", 8 * elements, false, func(in *opInputs) *tensor.Array { return ops.Exp(in.a) }},
	{"tanh", 8 * elements, false, func(in *opInputs) *tensor.Array { return ops.Tanh(in.a) }},
	{"sum", 4 * elements, true, func(in *opInputs) *tensor.Array { return ops.Sum(in.a, nil, false) }},
	{"sum_rows", 4 * rows * columns, true, func(in *opInputs) *tensor.Array {
		return ops.Sum(in.matrix, []int{1}, false)
	}},
	{"sum_columns", 4 * rows * columns, true, func(in *opInputs) *tensor.Array {
		return ops.Sum(in.matrix, []int{0}, false)
	}},
	{"softmax_rows", 8 * rows * columns, false, func(in *opInputs) *tensor.Array {
		return ops.Softmax(in.matrix, []int{-1})
	}},
	{"transpose", 8 * rows * columns, false, func(in *opInputs) *tensor.Array {
		turned := ops.Transpose(in.matrix, nil)
		defer tensor.Drop(turned)
		return ops.Reshape(turned, tensor.Sizes(rows*columns))
	}},
	{"gelu_kernel", 16 * elements, false, func(in *opInputs) *tensor.Array {
		k, err := gelu()
		if err != nil {
			return tensor.FailWith(tensor.Call(nil), "metal_kernel", err)
		}
		return k.Call(fast.KernelCall{Inputs: []*tensor.Array{in.a, in.b, in.c}, Grid: fast.Threads(elements),
			Threadgroup: fast.Threads(256), OutputShapes: []fast.OutputShape{{Dims: tensor.Sizes(elements)}},
			OutputDTypes: []tensor.DType{tensor.Float32}})[0]
	}},
}

// noiseOf is an array of numbers between -3 and 3.
func noiseOf(b *testing.B, shape ...int) *tensor.Array {
	size := 1
	for _, n := range shape {
		size *= n
	}
	v, seed := make([]float32, size), uint32(1)
	for i := range v {
		seed = seed*1664525 + 1013904223
		v[i] = 3 * float32(int32(seed)) / (1 << 31)
	}
	x := ops.FromSlice(v, shape)
	require.NoError(b, tensor.Eval(context.Background(), x))
	return x
}

// onThreads runs f with the process limited to n processors and a device of as many threads.
func onThreads(b *testing.B, n int, f func(in *opInputs, lim *limits)) {
	defer runtime.GOMAXPROCS(runtime.GOMAXPROCS(n))
	require.NoError(b, mlxlua.OpenDevice(""))
	dev, err := drivers.Open(drivers.Options{})
	require.NoError(b, err)
	before, err := tensor.MetalDevice(tensor.DefaultDevice())
	require.NoError(b, err)
	tensor.SetDevice(dev)
	defer func() {
		tensor.SetDevice(before)
		require.NoError(b, dev.Close())
	}()
	array := func(shape ...int) *tensor.Array { return noiseOf(b, shape...) }
	lim := newLimits(b, dev, n)
	defer func() {
		for _, buf := range lim.bufs {
			buf.Release()
		}
	}()
	f(&opInputs{array(elements), array(elements), array(elements), array(rows, columns)}, lim)
}

// sink keeps the compiler from dropping what is measured.
var sink atomic.Int64

// limits measures copying and reading as many bytes as a row does, with Go's own routines, which are vector code, on n
// threads and in memory like the arrays'.
type limits struct {
	from, to []byte
	bufs     []*metal.Buffer
	n        int
}

// most is the size of the two arrays that limits are measured with.
const most = 4 * rows * columns

func newLimits(b *testing.B, dev *metal.Device, n int) *limits {
	l := &limits{n: n}
	for _, p := range []*[]byte{&l.from, &l.to} {
		buf, err := dev.Alloc(context.Background(), most)
		require.NoError(b, err)
		l.bufs = append(l.bufs, buf)
		*p = buf.Host()
		for i := range *p {
			(*p)[i] = 1
		}
	}
	return l
}

// seconds is the time of f over parts of the first size bytes of the arrays.
func (l *limits) seconds(size int, f func(to, from []byte)) float64 {
	start := time.Now()
	part := size / l.n
	var others sync.WaitGroup
	for i := 1; i < l.n; i++ {
		others.Go(func() { f(l.to[i*part:(i+1)*part], l.from[i*part:(i+1)*part]) })
	}
	f(l.to[:part], l.from[:part])
	others.Wait()
	return time.Since(start).Seconds()
}

// of is how long a row's bytes take at least.
func (l *limits) of(row opRow) float64 {
	if row.read {
		return l.seconds(row.bytes, func(_, from []byte) { sink.Add(int64(bytes.IndexByte(from, 2))) })
	}
	return l.seconds(min(row.bytes/2, most), func(to, from []byte) { copy(to, from) })
}

func quartile(v []float64) float64 {
	slices.Sort(v)
	return v[len(v)/4]
}

// BenchmarkOps is each row's milliseconds and its share of the limit.
func BenchmarkOps(b *testing.B) {
	for _, n := range []int{1, 2} {
		onThreads(b, n, func(in *opInputs, lim *limits) {
			for _, row := range opRows {
				b.Run(row.name+"/threads="+strconv.Itoa(n), func(b *testing.B) { benchRow(b, row, in, lim) })
			}
		})
	}
}

func benchRow(b *testing.B, row opRow, in *opInputs, lim *limits) {
	once := func() float64 {
		start := time.Now()
		y := row.call(in)
		require.NoError(b, tensor.Eval(context.Background(), y))
		took := time.Since(start).Seconds()
		tensor.Drop(y)
		return took
	}
	for range 3 {
		once()
	}
	var times, least []float64
	for b.Loop() {
		least = append(least, lim.of(row))
		times = append(times, once())
	}
	took, limit := quartile(times), quartile(least)
	b.ReportMetric(0, "ns/op")
	b.ReportMetric(took*1e3, "ms")
	b.ReportMetric(float64(row.bytes)/limit/1e9, "limit-GB/s")
	b.ReportMetric(100*limit/took, "%limit")
}

package ops_test

import (
	"context"
	"fmt"
	"os"
	"strings"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/mlxlua/mlxlua/internal/serial"
	"github.com/mlxlua/mlxlua/metal"
	"github.com/mlxlua/mlxlua/metal/soft"
	"github.com/mlxlua/mlxlua/metal/testdevice"
	"github.com/mlxlua/mlxlua/tensor"
	"github.com/mlxlua/mlxlua/tensor/ops"
	"github.com/mlxlua/mlxlua/tensor/ops/conv"
	"github.com/mlxlua/mlxlua/tensor/ops/fast"
	"github.com/mlxlua/mlxlua/tensor/ops/products"
	"github.com/mlxlua/mlxlua/tensor/ops/quant"
	"github.com/mlxlua/mlxlua/tensor/ops/random"
	"github.com/mlxlua/mlxlua/tensor/ops/sig"
	"github.com/mlxlua/mlxlua/tensor/optest"
)

// onDevice makes a device the default one while f runs, which is told its name.
func onDevice(t *testing.T, o soft.Options, f func(name string)) { onDriver(t, soft.New(o), f) }

// onDriver is onDevice for a driver that is the CPU's.
func onDriver(t *testing.T, d metal.Driver, f func(name string)) {
	serial.Because(t, "another device is the default one of the process")
	optest.Open(t)
	dev, err := metal.NewDevice(d, metal.DeviceOptions{})
	require.NoError(t, err)
	dev.SetValidate(false)
	before, err := tensor.MetalDevice(tensor.DeviceID{Kind: tensor.CPU})
	require.NoError(t, err)
	tensor.SetDevice(dev)
	defer func() {
		tensor.SetDevice(before)
		require.NoError(t, dev.Close())
	}()
	f(dev.Info().Name)
}

// places are n indices below limit, many of them more than once.
func places(n, limit int) *array {
	v, seed := make([]int32, n), uint32(7)
	for i := range v {
		seed = seed*1664525 + 1013904223
		v[i] = int32(seed >> 8 % uint32(limit))
	}
	return ops.Remainder(ops.FromSlice(v, []int{n}), ops.Number(float64(limit), tensor.Int32))
}

// manyOps are results of the built-in kernels at sizes that several threads share.
func manyOps(t *testing.T) map[string]*array {
	t.Helper()
	all := map[string]*array{}
	x, y := optest.Noise(tensor.Float32, 130, 517), optest.Noise(tensor.Float32, 130, 517)
	big := optest.Noise(tensor.Float32, 300_001)
	cube := optest.Noise(tensor.Float32, 31, 65, 70)
	for _, f := range sig.All() {
		if f.Room != "ops" || f.Name == "matmul" {
			continue
		}
		call := func(what string, args ...any) {
			outs, err := optest.Invoke(f, args, nil)
			require.NoError(t, err, f.Name)
			all[f.Name+what] = outs[0]
		}
		x, y := x, y
		if strings.HasPrefix(f.Name, "bitwise") || strings.HasSuffix(f.Name, "_shift") {
			x, y = ops.AsType(x, tensor.Int32), ops.AsType(y, tensor.Int32)
		}
		switch name := f.Params[len(f.Params)-1].Name; {
		case len(f.Params) == 1 && f.Params[0].Is(sig.KindArray): // element by element
			call("", x)
		case len(f.Params) == 2 && name == "b":
			call("", x, ops.Slice(y, []ops.Part{ops.Span(3, 4, 1)}))
		case name == "keepdims" || name == "ddof" || f.Name == "softmax":
			for i := range 3 {
				call(fmt.Sprint(" ", i), cube, i)
			}
			if f.Params[1].Is(sig.KindAxes) {
				for _, axes := range [][]any{{0, 1}, {0, 2}, {1, 2}} {
					call(fmt.Sprint(" ", axes), cube, axes)
				}
			}
			call(" of all", cube)
			call(" of many", big)
			call(" of transposed", ops.Transpose(cube, nil), 1)
			call(" of half", ops.AsType(cube, tensor.Float16), 0)
		}
	}
	for i, a := range []int{0, 1, 2} {
		at := new(a)
		all[fmt.Sprint("sort ", i)], all[fmt.Sprint("argsort ", i)] = ops.Sort(cube, at), ops.ArgSort(cube, at)
		all[fmt.Sprint("topk ", i)] = ops.TopK(cube, 5, at)
		all[fmt.Sprint("partition ", i)] = ops.Partition(cube, 9, at)
		for name, f := range map[string]func(*array, *int, bool, bool, ...*ctx) *array{"sum": ops.CumSum, "prod": ops.CumProd,
			"max": ops.CumMax, "logsumexp": ops.LogCumSumExp} {
			all[fmt.Sprint("cum", name, " ", i)] = f(cube, at, a == 1, a != 2)
		}
	}
	all["cumsum of many"] = ops.CumSum(big, new(0), false, true)
	all["sort of many"] = ops.Sort(big, new(0))
	for name, rows := range map[string]*array{"rows": x, "one row": big, "ties": ops.Floor(big)} {
		all["topk of "+name], all["median of "+name] = ops.TopK(rows, 5, new(-1)), ops.Median(rows, []int{-1}, false)
		all["partition of "+name] = ops.Partition(rows, 99, new(-1))
		all["argpartition of "+name] = ops.ArgPartition(rows, 99, new(-1))
	}
	all["argsort of ties"] = ops.ArgSort(ops.Floor(big), new(0))
	for _, d := range []tensor.DType{tensor.Float32, tensor.BFloat16} {
		a, b, v := optest.Noise(d, 2, 70, 300), optest.Noise(d, 300, 150), optest.Noise(d, 4096)
		all[d.String()+" matmul"] = ops.Matmul(a, b)
		all[d.String()+" matmul of large matrices"] = ops.Matmul(optest.Noise(d, 40, 900), optest.Noise(d, 900, 400))
		all[d.String()+" matmul of views"] = ops.Matmul(optest.Noise(d, 40, 900),
			ops.Transpose(optest.Noise(d, 400, 900), nil))
		all[d.String()+" gather_mm"] = products.GatherMM(optest.Noise(d, 3, 40, 70), optest.Noise(d, 3, 70, 50), nil,
			ops.FromSlice([]int32{2, 0, 2}, []int{3}))
		all[d.String()+" matvec"] = ops.Matmul(optest.Noise(d, 300, 4096), v)
		all[d.String()+" vecmat"] = ops.Matmul(v, optest.Noise(d, 4096, 70))
		all[d.String()+" dot"] = ops.Matmul(v, v)
		q, k := optest.Noise(d, 2, 4, 33, 64), optest.Noise(d, 2, 2, 200, 64)
		all[d.String()+" attention"] = fast.ScaledDotProductAttention(q, k, k, 0.125, fast.AttentionOptions{Causal: true})
		all[d.String()+" attention of one query"] = fast.ScaledDotProductAttention(optest.Noise(d, 2, 4, 1, 64), k, k, 0.125,
			fast.AttentionOptions{})
		all[d.String()+" rms_norm"] = fast.RMSNorm(optest.Noise(d, 90, 1030), optest.Noise(d, 1030), 1e-5)
		all[d.String()+" layer_norm"] = fast.LayerNorm(optest.Noise(d, 90, 1030), optest.Noise(d, 1030),
			optest.Noise(d, 1030), 1e-5)
		base := 10000.0
		all[d.String()+" rope"] = fast.RoPE(q, fast.RoPEOptions{Dims: 64, Base: &base, Scale: 1})
		packing := quant.Quantization{GroupSize: 64, Bits: 4}
		w := quant.Quantize(optest.Noise(d, 260, 512), packing)
		for _, rows := range []int{1, 40} {
			all[fmt.Sprint(d, " quantized_matmul ", rows)] = quant.QuantizedMatmul(optest.Noise(d, rows, 512), w[0], w[1],
				w[2], true,
				packing)
		}
		image, window := optest.Noise(d, 3, 17, 19, 40), optest.Noise(d, 33, 3, 3, 40)
		all[d.String()+" conv"] = conv.Conv2D(image, window, nil, []int{1}, nil, 1)
		all[d.String()+" conv of stride 2"] = conv.Conv2D(image, window, []int{2}, nil, nil, 1)
		all[d.String()+" conv of each channel"] = conv.Conv2D(image, optest.Noise(d, 40, 3, 3, 1), nil, nil, nil, 40)
		all[d.String()+" conv of long windows"] = conv.Conv2D(image, optest.Noise(d, 5, 11, 13, 40), nil, nil, nil, 1)
		all[d.String()+" dequantize"] = quant.Dequantize(w[0], w[1], w[2], packing, nil)
	}
	at := places(20_000, 500)
	for _, how := range []string{"add", "maximum", "multiply"} {
		all["scatter "+how] = ops.IndexUpdate(optest.Noise(tensor.Float32, 500, 3), []ops.Part{ops.ByArray(at)}, how,
			optest.Noise(tensor.Float32, 20_000, 3))
	}
	all["scatter add of few"] = ops.IndexUpdate(optest.Noise(tensor.Float32, 3), []ops.Part{
		ops.ByArray(places(20_000, 3))}, "add",
		optest.Noise(tensor.Float32, 20_000))
	all["gather"] = ops.Take(optest.Noise(tensor.Float32, 500, 30), at, new(0))
	all["concatenate"] = ops.Concatenate([]*array{x, y, x}, new(1))
	all["random"] = random.Normal(tensor.Sizes(100_003), tensor.Float32, nil, nil, random.Key(5))
	return all
}

// TestFiguresDoNotMatter: what a device says of its caches, lanes and threads may change who computes, and no byte.
func TestFiguresDoNotMatter(t *testing.T) {
	if testing.Short() {
		t.Skip("it computes all ops thrice")
	}
	testdevice.NeedsCPU(t, "it is in place of the CPU that the devices stand")
	results := func(change func(info *metal.Info)) map[string][]byte {
		all := map[string][]byte{}
		onDriver(t, testdevice.NewAs(change), func(string) {
			for name, x := range manyOps(t) {
				b, err := x.Bytes(context.Background())
				require.NoError(t, err, name)
				all[name] = b
			}
		})
		return all
	}
	want := results(func(*metal.Info) {})
	for name, change := range map[string]func(info *metal.Info){
		"a small cache": func(info *metal.Info) { info.Cache, info.Lanes, info.PairDots = 16<<10, 8, false },
		"a large cache": func(info *metal.Info) { info.Cache, info.Lanes, info.Threads, info.Simds = 64<<20, 32, 64, 32 },
	} {
		for op, b := range results(change) {
			if string(b) != string(want[op]) {
				t.Errorf("%s: other bytes on a device of %s", op, name)
			}
		}
	}
}

// TestThreadsDoNotMatter: every op gives the same bytes on one thread and on four. It runs several times: the first
// launch of a kernel is spread over threads by guess, later ones by what the first took.
func TestThreadsDoNotMatter(t *testing.T) {
	if os.Getenv("MLXLUA_JIT") == "0" && testing.Short() {
		t.Skip("it takes the interpreter long")
	}
	results := func(threads, rounds int) (all []map[string][]byte) {
		onDevice(t, soft.Options{Workers: threads}, func(string) {
			for range rounds {
				round := map[string][]byte{}
				for name, x := range manyOps(t) {
					b, err := x.Bytes(context.Background())
					require.NoError(t, err, name)
					round[name] = b
				}
				all = append(all, round)
			}
		})
		return all
	}
	want := results(1, 1)[0]
	require.Greater(t, len(want), 150)
	for _, got := range results(4, 2) {
		require.Len(t, got, len(want))
		for name, b := range want {
			if string(b) != string(got[name]) {
				t.Errorf("%s: other bytes on four threads than on one", name)
			}
		}
	}
}

// TestTurnedValidated: small matrices times transposed ones read nothing that was not written.
func TestTurnedValidated(t *testing.T) {
	serial.Because(t, "another device is the default one of the process")
	testdevice.NeedsCPU(t, "a device of its own takes the CPU's place")
	optest.Open(t)
	dev, err := metal.NewDevice(soft.New(soft.Options{}), metal.DeviceOptions{Validate: true})
	require.NoError(t, err)
	before, err := tensor.MetalDevice(tensor.DeviceID{Kind: tensor.CPU})
	require.NoError(t, err)
	tensor.SetDevice(dev)
	defer func() {
		tensor.SetDevice(before)
		require.NoError(t, dev.Close())
	}()
	for _, n := range [][2]int{{2, 3}, {3, 33}, {7, 16}, {33, 5}, {40, 47}} {
		x := optest.Noise(tensor.Float32, n[0], n[1])
		_, err := ops.Matmul(x, ops.SwapAxes(x, -1, -2)).Bytes(t.Context())
		require.NoError(t, err, "%v", n)
	}
}

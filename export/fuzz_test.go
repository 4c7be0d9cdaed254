package export_test

import (
	"bytes"
	"encoding/binary"
	"flag"
	"hash/crc32"
	"math/rand/v2"
	"runtime/metrics"
	"slices"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/mlxlua/mlxlua/export"
	"github.com/mlxlua/mlxlua/tensor"
	"github.com/mlxlua/mlxlua/tensor/ops"
	"github.com/mlxlua/mlxlua/tensor/ops/fast"
)

// damaged is how many damaged files TestDamagedFiles tries, and one in a hundred of them with -short:
//
//	go test ./export -run DamagedFiles -damaged 1000000 -timeout 2h
var damaged = flag.Int("damaged", 400_000, "damaged files to try")

// seeds are whole files.
func seeds(t testing.TB) [][]byte {
	mixed := func(in export.Inputs) arrays {
		x := in.Positional[0]
		n, _ := x.Dim(0)
		y := ops.Concatenate(arrays{ops.Reshape(x, tensor.Sizes(-1)), ops.Zeros(tensor.Sizes(n), tensor.Float32)}, axis(0))
		parts := ops.Split(y, 2, 0)
		return arrays{ops.AsType(ops.Softmax(y, nil), tensor.Float16), parts[0], ops.CumSum(parts[1], axis(0), true, true)}
	}
	k, err := fast.NewMetalKernel(fast.KernelConfig{Name: "twice", InputNames: []string{"a"}, OutputNames: []string{"out"},
		Source: "uint i = thread_position_in_grid.x; out[i] = T(N) * a[i];"})
	require.NoError(t, err)
	picked := func(in export.Inputs) arrays {
		x := ops.Take(in.Positional[0], ops.StopGradient(ops.ArgSort(in.Positional[0], axis(0))), axis(0))
		return k.Call(fast.KernelCall{Inputs: arrays{x}, Grid: fast.Extent{Cover: x}, Threadgroup: fast.Threads(32),
			Template:     []fast.TemplateArg{{Name: "T", Value: tensor.Float32}, {Name: "N", Value: 2}},
			OutputShapes: []fast.OutputShape{{Dims: tensor.ShapeOf(x)}}, OutputDTypes: []tensor.DType{tensor.Float32}})
	}
	return [][]byte{
		written(t, true, picked, inputs(vec(3, 1, 2))),
		written(t, true, layer, inputs(ops.Ones(tensor.Sizes(3, 2), tensor.Float32))),
		written(t, true, mixed, inputs(ops.Ones(tensor.Sizes(2, 2), tensor.Float32)), inputs(vec(1, 2))),
	}
}

// allocated is how many bytes the program has allocated so far.
func allocated() uint64 {
	sample := []metrics.Sample{{Name: "/gc/heap/allocs:bytes"}}
	metrics.Read(sample)
	return sample[0].Value.Uint64()
}

// allocating is how many bytes the process allocates while f runs.
func allocating(f func()) uint64 {
	before := allocated()
	f()
	return allocated() - before
}

// mostAllocated bounds what reading a file of so many bytes, and calling what it holds, may allocate. Small objects are
// counted when a span of theirs is full, so that a count may be late by some hundred KiB.
func mostAllocated(size int) uint64 { return 2<<20 + 64*uint64(size) }

// tryDamaged reads a file that may be damaged, and calls what comes out: both may fail.
func tryDamaged(t testing.TB, b []byte) (ok bool) {
	file, err := export.Read(bytes.NewReader(b), int64(len(b)))
	if err != nil {
		return false
	}
	for _, trace := range file.Traces {
		in := tensor.NewTrace("test", nil)
		var xs arrays
		for _, s := range trace.Inputs {
			xs = append(xs, in.Placeholder(&tensor.Ctx{}, s))
		}
		if outs, err := trace.Program.Call(nil, xs...); err == nil {
			for _, y := range outs {
				require.NotNil(t, y)
			}
		}
		in.End()
	}
	return true
}

// sealed puts the right length and checksum to the end of a description that was changed, so that it is read at all.
func sealed(b []byte, about int) []byte {
	const foot = 20
	if len(b) < about+foot {
		return b
	}
	end := b[len(b)-foot:]
	binary.LittleEndian.PutUint64(end, uint64(len(b)-foot-about))
	sum := crc32.Checksum(b[about:len(b)-foot], crc32.MakeTable(crc32.Castagnoli))
	binary.LittleEndian.PutUint32(end[8:], sum)
	copy(end[12:], "mlxluafn")
	return b
}

// A damaged file is an error, whether the checksum tells or what it says makes no sense; none makes the program panic
// or allocate without bounds.
func TestDamagedFiles(t *testing.T) {
	files := seeds(t)
	for _, b := range files {
		require.True(t, tryDamaged(t, b))
		about := len(b) - 20 - int(binary.LittleEndian.Uint64(b[len(b)-20:]))
		for _, i := range []int{0, 9, about, about + 9, len(b) - 1, len(b) - 15, len(b) - 10} { // the checksums tell
			c := slices.Clone(b)
			c[i] ^= 4
			require.False(t, tryDamaged(t, c), i)
		}
		for n := range len(b) {
			if n < 30 || n%7 == 0 {
				require.False(t, tryDamaged(t, b[:n]), n)
			}
		}
	}
	c := slices.Clone(files[1])
	c[64+3] ^= 1
	_, err := export.Read(bytes.NewReader(c), int64(len(c)))
	require.ErrorContains(t, err, "constant 0, float32 (2, 3), is damaged")

	count := *damaged
	if testing.Short() {
		count /= 100
	}
	r := rand.New(rand.NewPCG(1, 2))
	for range count {
		b := slices.Clone(files[r.IntN(len(files))])
		about := len(b) - 20 - int(binary.LittleEndian.Uint64(b[len(b)-20:]))
		for range 1 + r.IntN(4) {
			i := about + r.IntN(len(b)-20-about)
			switch r.IntN(4) {
			case 0:
				b[i] = byte(r.Uint32())
			case 1:
				b[i] ^= 1 << r.IntN(8)
			case 2:
				b = slices.Insert(b, i, binary.AppendVarint(nil, int64(r.Uint64())>>r.IntN(64))...)
			default:
				b = slices.Delete(b, i, min(i+1+r.IntN(3), len(b)-20))
			}
			if len(b)-20 <= about {
				break
			}
		}
		b = sealed(b, about)
		n := allocating(func() { tryDamaged(t, b) })
		if n > mostAllocated(len(b)) { // the first call may have compiled a kernel
			n = allocating(func() { tryDamaged(t, b) })
		}
		if n > mostAllocated(len(b)) {
			t.Fatalf("a file of %d bytes had %d bytes allocated:\n%q", len(b), n, b)
		}
	}
}

func axis(n int) *int { return &n }

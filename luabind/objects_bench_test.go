package luabind

import (
	"context"
	"runtime"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/mlxlua/mlxlua/internal/brief"
	"github.com/mlxlua/mlxlua/internal/serial"
	"github.com/mlxlua/mlxlua/metal"
	"github.com/mlxlua/mlxlua/tensor"
)

// allocated is how many objects and bytes f allocates, on all goroutines.
func allocated(f func()) (objects, bytes uint64) {
	var before, after runtime.MemStats
	runtime.ReadMemStats(&before)
	f()
	runtime.ReadMemStats(&after)
	return after.Mallocs - before.Mallocs, after.TotalAlloc - before.TotalAlloc
}

// BenchmarkObjects is what Go's collector gets to do: the objects and bytes that building a graph, and planning and
// recording it, allocate for each node. Both hardly differ from run to run, whatever else the machine does.
//
//	go test ./luabind -run '^$' -bench Objects -benchtime 10x
func BenchmarkObjects(b *testing.B) {
	count := func(b *testing.B, build func() []*tensor.Array) {
		var total [4]uint64
		nodes := 0
		require.NoError(b, tensor.Eval(context.Background(), build()...)) // compiles
		for b.Loop() {
			var x []*tensor.Array
			objects, bytes := allocated(func() { x = build() })
			nodes = nodesOf(x)
			evalObjects, evalBytes := allocated(func() { require.NoError(b, tensor.Eval(context.Background(), x...)) })
			for i, n := range [4]uint64{objects, bytes, evalObjects, evalBytes} {
				total[i] += n
			}
		}
		b.ReportMetric(0, "ns/op")
		for i, unit := range [4]string{"build-objects", "build-bytes", "eval-objects", "eval-bytes"} {
			b.ReportMetric(float64(total[i])/float64(b.N*nodes), unit)
		}
	}
	b.Run("thousand", func(b *testing.B) {
		p := newBenchState(b, true)
		count(b, func() []*tensor.Array {
			x, _ := p.call(b, p.build)
			return []*tensor.Array{x}
		})
	})
	for _, mode := range hybridModes {
		b.Run("hybrid-"+mode, func(b *testing.B) {
			onIdleDevice(b, metal.DeviceOptions{})
			h := newHybridStep(b, mode, 1, nil)
			count(b, func() []*tensor.Array { return h.build(b) })
		})
	}
}

// TestObjects holds the figures of BenchmarkObjects to bounds: a call from Lua makes the array's node, its Lua value
// and the place of its line, and what tables and attributes the script's own line asks for; planning and recording make
// what watches an array that only the collector can know to be dead.
func TestObjects(t *testing.T) {
	serial.Because(t, "it counts the objects of the process")
	if brief.Run() {
		t.Skip("under the race detector a sync.Pool forgets some of what it is given, to find who relies on it")
	}
	p := newBenchState(t, true)
	var best [4]uint64
	for i := range 6 {
		var x *tensor.Array
		objects, bytes := allocated(func() { x, _ = p.call(t, p.build) })
		evalObjects, evalBytes := allocated(func() { require.NoError(t, tensor.Eval(context.Background(), x)) })
		for k, n := range [4]uint64{objects, bytes, evalObjects, evalBytes} {
			if i == 0 || n < best[k] {
				best[k] = n
			}
		}
	}
	for k, most := range [4]uint64{6000, 750_000, 4500, 650_000} { // of 1,000 nodes
		require.LessOrEqual(t, best[k], most, "objects and bytes of building, of evaluating: %v", best)
	}
}

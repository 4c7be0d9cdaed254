package jit_test

import (
	"encoding/binary"
	"flag"
	"fmt"
	"io"
	"runtime"
	"runtime/pprof"
	"slices"
	"sync"
	"sync/atomic"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/mlxlua/mlxlua/internal/serial"
	"github.com/mlxlua/mlxlua/metal/interp"
	"github.com/mlxlua/mlxlua/metal/jit"
	"github.com/mlxlua/mlxlua/metal/kerneltest"
	"github.com/mlxlua/mlxlua/metal/kir"
	"github.com/mlxlua/mlxlua/metal/launch"
	"github.com/mlxlua/mlxlua/metal/msl"
)

var soak = flag.Duration("jit.soak", 2*time.Second, "how long TestSoak runs")

const kernels = `
#include <metal_stdlib>
using namespace metal;
kernel void add(device const uint *a [[buffer(0)]], device uint *out [[buffer(1)]], constant uint &by [[buffer(2)]],
                uint i [[thread_position_in_grid]]) { out[i] = a[i] + by; }
kernel void box(device uint *out [[buffer(0)]], uint3 p [[thread_position_in_grid]], uint3 n [[threads_per_grid]],
                uint3 t [[thread_position_in_threadgroup]], uint3 s [[threads_per_threadgroup]]) {
  out[p.x + n.x * (p.y + n.y * p.z)] = t.x + 100 * t.y + 10000 * t.z + 1000000 * s.x; }
kernel void total(device const uint *a [[buffer(0)]], device uint *out [[buffer(1)]],
	uint i [[thread_position_in_grid]],
                  uint t [[thread_index_in_threadgroup]], uint g [[threadgroup_position_in_grid]],
                  uint n [[threads_per_threadgroup]], threadgroup uint *part [[threadgroup(0)]]) {
  part[t] = a[i];
  for (uint d = 1; d < n; d *= 2) {
    threadgroup_barrier(mem_flags::mem_threadgroup);
    uint v = t % (2 * d) == 0 && t + d < n ? part[t + d] : 0;
    threadgroup_barrier(mem_flags::mem_threadgroup);
    part[t] += v;
  }
  if (t == 0) out[g] = part[0]; }
kernel void clean(device uint *out [[buffer(0)]], uint i [[thread_position_in_grid]],
	uint t [[thread_index_in_threadgroup]]) {
  threadgroup uint seen[64]; uint own[5];
  out[i] = seen[t] + own[i % 5]; seen[t] = 7; own[i % 5] = 9; out[i] += 0 * own[t % 5]; }
kernel void chain(device atomic_uint *turn [[buffer(0)]], device uint *out [[buffer(1)]],
	uint n [[threadgroups_per_grid]],
                  uint g [[threadgroup_position_in_grid]]) {
  while (atomic_load_explicit(turn, memory_order_relaxed) != n - 1 - g) {}
  out[g] = g * 3;
  atomic_fetch_add_explicit(turn, 1u, memory_order_relaxed); }
kernel void endless(device uint *out [[buffer(0)]]) { while (out[0] == 0) {} }
kernel void rounds(device uint *out [[buffer(0)]], constant uint &n [[buffer(1)]],
	uint i [[thread_position_in_grid]]) {
  uint x = i; for (uint j = 0; j < n; j++) x = x * 1664525u + 1013904223u + out[i] * j; out[i] = x; }
kernel void nothing(device uint *out [[buffer(0)]], uint i [[thread_position_in_grid]]) { if (i == 0) out[0] = 1; }
`

// programs compiles a text for a level.
func programs(tb testing.TB, text string, l jit.Level) map[string]*jit.Executable {
	mod, err := msl.Compile(msl.Source{Name: "t", Text: text}, msl.Options{})
	require.NoError(tb, err)
	all := map[string]*jit.Executable{}
	for _, k := range mod.Kernels {
		p, err := jit.Prepare(k, mod.Files, jit.Options{Level: l})
		require.NoError(tb, err)
		all[k.Name] = p
	}
	return all
}

func each(t *testing.T, f func(t *testing.T, p map[string]*jit.Executable)) {
	for _, l := range levels(t) {
		t.Run(l.String(), func(t *testing.T) { f(t, programs(t, kernels, l)) })
	}
}

func u32s(b []byte) []uint32 {
	v := make([]uint32, len(b)/4)
	for i := range v {
		v[i] = binary.LittleEndian.Uint32(b[4*i:])
	}
	return v
}

func bytesOf(v ...uint32) []byte {
	var b []byte
	for _, x := range v {
		b = binary.LittleEndian.AppendUint32(b, x)
	}
	return b
}

func iota32(n int) []byte {
	v := make([]uint32, n)
	for i := range v {
		v[i] = uint32(i)
	}
	return bytesOf(v...)
}

func line(n int) [3]int { return [3]int{n, 1, 1} }

func TestLaunches(t *testing.T) {
	t.Parallel()
	each(t, func(t *testing.T, p map[string]*jit.Executable) {
		for _, n := range []int{1, 7, 8, 16, 31, 32, 33, 100, 1000, 70_001} {
			for _, tg := range []int{1, 7, 32, 64, 1000, 1024} {
				out := make([]byte, 4*n)
				require.NoError(t, kerneltest.Run(p["add"].NewRun, launch.Launch{Grid: line(n), Threadgroup: line(tg),
					Buffers: [][]byte{iota32(n), out, bytesOf(5)}}, 0))
				for i, v := range u32s(out) {
					require.Equal(t, uint32(i+5), v, "grid %d threadgroup %d", n, tg)
				}
				a := iota32(n)
				out = make([]byte, 4*((n+tg-1)/tg))
				require.NoError(t, kerneltest.Run(p["total"].NewRun,
					launch.Launch{Grid: line(n), Threadgroup: line(tg),
						Buffers: [][]byte{a, out, nil}, ThreadgroupBytes: []int{0, 0, 4 * tg}}, 0))
				for g, v := range u32s(out) {
					lo, hi := g*tg, min(n, g*tg+tg)
					require.Equal(t, uint32((lo+hi-1)*(hi-lo)/2), v, "grid %d threadgroup %d", n, tg)
				}
			}
		}
		require.NoError(t, kerneltest.Run(p["endless"].NewRun,
			launch.Launch{Grid: [3]int{4, 0, 1}, Threadgroup: line(4),
				Buffers: [][]byte{nil}}, 0))
	})
}

// TestBoxes: positions in three dimensions, with smaller threadgroups at every edge.
func TestBoxes(t *testing.T) {
	t.Parallel()
	each(t, func(t *testing.T, p map[string]*jit.Executable) {
		for _, tg := range [][3]int{{4, 3, 2}, {8, 2, 2}, {32, 2, 1}, {16, 1, 3}, {5, 5, 5}} {
			grid := [3]int{37, 7, 5}
			out := make([]byte, 4*37*7*5)
			require.NoError(t, kerneltest.Run(p["box"].NewRun,
				launch.Launch{Grid: grid, Threadgroup: tg, Buffers: [][]byte{out}}, 0))
			for i, v := range u32s(out) {
				x, y, z := i%37, i/37%7, i/37/7
				size := min(tg[0], 37-x/tg[0]*tg[0])
				require.Equal(t, uint32(x%tg[0]+100*(y%tg[1])+10000*(z%tg[2])+1000000*size), v, "%v at %d", tg, i)
			}
		}
	})
}

func TestMemoryBeginsAsZero(t *testing.T) {
	t.Parallel()
	each(t, func(t *testing.T, p map[string]*jit.Executable) {
		for range 3 {
			out := make([]byte, 4*64*50)
			require.NoError(t, kerneltest.Run(p["clean"].NewRun,
				launch.Launch{Grid: line(64 * 50), Threadgroup: line(64),
					Buffers: [][]byte{out}}, 0))
			require.Equal(t, make([]byte, len(out)), out)
		}
	})
}

// TestThreadgroupsThatWait: each waits for the one after it, so that all must be in execution at once.
func TestThreadgroupsThatWait(t *testing.T) {
	t.Parallel()
	each(t, func(t *testing.T, p map[string]*jit.Executable) {
		const n = 100
		for workers := 1; workers <= 3; workers++ {
			turn, out := make([]byte, 4), make([]byte, 4*n)
			require.NoError(t, kerneltest.Run(p["chain"].NewRun, launch.Launch{Grid: line(n), Threadgroup: line(1),
				Buffers: [][]byte{turn, out}}, workers))
			for g, v := range u32s(out) {
				require.Equal(t, uint32(3*g), v)
			}
		}
	})
}

func TestInterrupt(t *testing.T) {
	serial.Because(t, "it measures how processors are shared")
	each(t, func(t *testing.T, p map[string]*jit.Executable) {
		var stop atomic.Bool
		time.AfterFunc(5*time.Millisecond, func() { stop.Store(true) })
		start := time.Now()
		err := kerneltest.Run(p["endless"].NewRun,
			launch.Launch{Grid: line(100), Threadgroup: line(10), Interrupt: &stop,
				Buffers: [][]byte{make([]byte, 4)}}, 0)
		require.ErrorIs(t, err, launch.ErrInterrupted)
		require.Less(t, time.Since(start), 20*time.Second) // a bound for a hang, not for a busy machine
	})
}

// TestBadLaunches: the same errors as the reference executor's.
func TestBadLaunches(t *testing.T) {
	t.Parallel()
	mod, err := msl.Compile(msl.Source{Name: "t", Text: kernels}, msl.Options{})
	require.NoError(t, err)
	add := mod.Kernels[slices.IndexFunc(mod.Kernels, func(k *kir.Kernel) bool { return k.Name == "add" })]
	ref, err := interp.Prepare(add, mod.Files)
	require.NoError(t, err)
	each(t, func(t *testing.T, p map[string]*jit.Executable) {
		k := p["add"]
		good := [][]byte{make([]byte, 40), make([]byte, 40), make([]byte, 4)}
		for _, l := range []launch.Launch{
			{Grid: line(-1), Threadgroup: line(1), Buffers: good},
			{Grid: line(1 << 32), Threadgroup: line(1), Buffers: good},
			{Grid: line(10), Threadgroup: line(0), Buffers: good},
			{Grid: line(10), Threadgroup: [3]int{64, 32, 1}, Buffers: good},
			{Grid: line(10), Threadgroup: line(10), Buffers: good[:2]},
			{Grid: line(10), Threadgroup: line(10), Buffers: [][]byte{good[0], good[1], nil}},
			{Grid: line(10), Threadgroup: line(10), Buffers: [][]byte{good[0][:36], good[1], good[2]}},
			{Grid: line(10), Threadgroup: line(10), Buffers: [][]byte{good[0], good[1][:20], good[2]}},
		} {
			want := kerneltest.Run(ref.NewRun, l, 0)
			require.Error(t, want)
			require.EqualError(t, kerneltest.Run(k.NewRun, l, 0), want.Error())
		}
		require.NoError(t, kerneltest.Run(k.NewRun,
			launch.Launch{Grid: line(10), Threadgroup: line(10), Buffers: good}, 0))
	})
}

// TestConcurrentFirstUse: a kernel that many start at once is compiled and right for all of them.
func TestConcurrentFirstUse(t *testing.T) {
	t.Parallel()
	each(t, func(t *testing.T, p map[string]*jit.Executable) {
		var wg sync.WaitGroup
		errs := make(chan error, 16)
		for w := range 16 {
			wg.Go(func() {
				out := make([]byte, 400)
				err := kerneltest.Run(p["add"].NewRun, launch.Launch{Grid: line(100), Threadgroup: line(1 + w),
					Buffers: [][]byte{iota32(100), out, bytesOf(uint32(w))}}, 1)
				for i, v := range u32s(out) {
					if err == nil && v != uint32(i+w) {
						err = fmt.Errorf("out[%d] is %d", i, v)
					}
				}
				errs <- err
			})
		}
		wg.Wait()
		for range 16 {
			require.NoError(t, <-errs)
		}
	})
}

// TestSoak launches from many goroutines while the garbage collector runs without pause and a profiler interrupts;
// some launches fault. No result is wrong. The levels share -jit.soak.
func TestSoak(t *testing.T) {
	serial.Because(t, "it measures how processors are shared")
	if f := flag.Lookup("test.cpuprofile"); f == nil || f.Value.String() == "" { // that one interrupts as well
		require.NoError(t, pprof.StartCPUProfile(io.Discard))
		defer pprof.StopCPUProfile()
	}
	l := levels(t)
	for _, level := range l {
		t.Run(level.String(), func(t *testing.T) { soakLevel(t, level, *soak/time.Duration(len(l))) })
	}
}

func soakLevel(t *testing.T, level jit.Level, d time.Duration) {
	p := programs(t, kernels, level)
	var over atomic.Bool
	time.AfterFunc(d, func() { over.Store(true) })
	var wg sync.WaitGroup
	var launches, faults, collections atomic.Int64
	failures := make(chan error, 8)
	for w := range 8 {
		wg.Go(func() {
			for n := 1; !over.Load(); n = n*7%3001 + 1 {
				if err := soakOnce(p, n, w, &faults); err != nil {
					failures <- err
					return
				}
				launches.Add(1)
			}
		})
	}
	wg.Go(func() {
		for !over.Load() {
			runtime.GC()
			collections.Add(1)
		}
	})
	wg.Wait()
	close(failures)
	for err := range failures {
		t.Error(err)
	}
	t.Logf("%d launches, %d faults, %d collections", launches.Load(), faults.Load(), collections.Load())
	require.Positive(t, launches.Load())
	require.Positive(t, faults.Load())
	require.Positive(t, collections.Load())
}

func soakOnce(p map[string]*jit.Executable, n, w int, faults *atomic.Int64) error {
	a, out := iota32(n), make([]byte, 4*n)
	if n%5 == 0 {
		err := kerneltest.Run(p["add"].NewRun, launch.Launch{Grid: line(n + 1), Threadgroup: line(32),
			Buffers: [][]byte{a, out, bytesOf(1)}}, 1+w%2)
		if err == nil {
			return fmt.Errorf("no fault with %d elements", n)
		}
		faults.Add(1)
		return nil
	}
	err := kerneltest.Run(p["add"].NewRun, launch.Launch{Grid: line(n), Threadgroup: line(64),
		Buffers: [][]byte{a, out, bytesOf(uint32(w))}}, 1+w%2)
	for i, v := range u32s(out) {
		if err == nil && v != uint32(i+w) {
			err = fmt.Errorf("out[%d] of %d is %d, want %d", i, n, v, i+w)
		}
	}
	if err != nil {
		return err
	}
	sums := make([]byte, 4*((n+63)/64))
	err = kerneltest.Run(p["total"].NewRun, launch.Launch{Grid: line(n), Threadgroup: line(64),
		Buffers: [][]byte{a, sums, nil}, ThreadgroupBytes: []int{0, 0, 256}}, 1)
	for g, v := range u32s(sums) {
		lo, hi := g*64, min(n, g*64+64)
		if want := uint32((lo + hi - 1) * (hi - lo) / 2); err == nil && v != want {
			err = fmt.Errorf("sum %d of %d is %d, want %d", g, n, v, want)
		}
	}
	return err
}

// BenchmarkEmptyLaunch is what starting a kernel costs: on one thread, and shared by two.
func BenchmarkEmptyLaunch(b *testing.B) {
	p := programs(b, kernels, levels(b)[0])["nothing"]
	out := make([]byte, 4)
	for _, workers := range []int{1, 2} {
		b.Run(fmt.Sprint(workers), func(b *testing.B) {
			l := launch.Launch{Grid: line(64), Threadgroup: line(32), Buffers: [][]byte{out}}
			b.ReportAllocs()
			for b.Loop() {
				require.NoError(b, kerneltest.Run(p.NewRun, l, workers))
			}
		})
	}
}

// BenchmarkCollectionLatency is how long a forced garbage collection takes, in turn with nothing else to do and while
// long kernels run on some goroutines: the median and the worst of each, and of how much longer the latter takes.
func BenchmarkCollectionLatency(b *testing.B) {
	p := programs(b, kernels, levels(b)[0])["rounds"]
	for workers := 1; workers <= 2; workers++ {
		b.Run(fmt.Sprint(workers), func(b *testing.B) {
			var idle, busy, more []time.Duration
			for b.Loop() {
				i := collection()
				var stop atomic.Bool
				var wg sync.WaitGroup
				for range workers {
					wg.Go(func() {
						_ = kerneltest.Run(p.NewRun,
							launch.Launch{Grid: line(64), Threadgroup: line(64), Interrupt: &stop,
								Buffers: [][]byte{make([]byte, 4*64), bytesOf(1 << 31)}}, 1) // interrupted
					})
				}
				time.Sleep(time.Millisecond)
				j := collection()
				stop.Store(true)
				wg.Wait()
				idle, busy, more = append(idle, i), append(busy, j), append(more, j-i)
			}
			for name, took := range map[string][]time.Duration{"idle": idle, "busy": busy, "more": more} {
				slices.Sort(took)
				b.ReportMetric(float64(took[len(took)/2].Nanoseconds())/1e3, "us/"+name+"-median")
				b.ReportMetric(float64(took[len(took)-1].Nanoseconds())/1e3, "us/"+name+"-worst")
			}
		})
	}
}

func collection() time.Duration {
	start := time.Now()
	runtime.GC()
	return time.Since(start)
}

// BenchmarkCancellation is how soon a long kernel stops.
func BenchmarkCancellation(b *testing.B) {
	p := programs(b, kernels, levels(b)[0])["rounds"]
	out := make([]byte, 4*64)
	var took time.Duration
	for b.Loop() {
		var stop atomic.Bool
		at := make(chan time.Time, 1)
		time.AfterFunc(time.Millisecond, func() { at <- time.Now(); stop.Store(true) })
		err := kerneltest.Run(p.NewRun, launch.Launch{Grid: line(64), Threadgroup: line(64), Interrupt: &stop,
			Buffers: [][]byte{out, bytesOf(1 << 31)}}, 1)
		took += time.Since(<-at)
		require.ErrorIs(b, err, launch.ErrInterrupted)
	}
	b.ReportMetric(float64(took.Microseconds())/float64(b.N), "us/cancel")
}

// TestSimdGroupsThatWait: a SIMD-group waits for another one of its threadgroup without a barrier.
func TestSimdGroupsThatWait(t *testing.T) {
	t.Parallel()
	const text = `
#include <metal_stdlib>
using namespace metal;
kernel void k(device uint *out [[buffer(0)]], uint sg [[simdgroup_index_in_threadgroup]],
              uint n [[simdgroups_per_threadgroup]], uint i [[thread_position_in_grid]]) {
  threadgroup atomic_uint turn;
  while (atomic_load_explicit(&turn, memory_order_relaxed) != n - 1 - sg) {}
  out[i] = sg + 1;
  if (simd_is_first()) atomic_fetch_add_explicit(&turn, 1u, memory_order_relaxed);
}`
	for _, l := range levels(t) {
		var late atomic.Bool
		timer := time.AfterFunc(patience, func() { late.Store(true) })
		out := make([]byte, 4*128*3)
		require.NoError(t, kerneltest.Run(programs(t, text, l)["k"].NewRun,
			launch.Launch{Grid: line(128 * 3), Threadgroup: line(128),
				Buffers: [][]byte{out}, Interrupt: &late}, 0))
		timer.Stop()
		for i, v := range u32s(out) {
			require.Equal(t, uint32(i%128/32+1), v)
		}
	}
}

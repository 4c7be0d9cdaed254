package jit_test

import (
	"sync/atomic"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/mlxlua/mlxlua/metal/interp"
	"github.com/mlxlua/mlxlua/metal/jit"
	"github.com/mlxlua/mlxlua/metal/launch"
	"github.com/mlxlua/mlxlua/metal/msl"
)

// endless are bodies that never end by themselves: whichever way control goes round, it must come by a place where the
// code asks whether to go on.
var endless = []string{
	"for (;;) {}",
	"while (true) { if (lane < 100) continue; o[0] = 1; }",
	"while (true) { if (lane > o[1]) continue; else continue; }",
	"while (true) { if (o[lane] == 0) continue; o[lane]++; }",
	"do { if (o[lane] == 0) continue; o[lane]++; } while (true);",
	"uint i = 0; while (i < 10) { if (lane == 3) continue; i++; }",
	"for (uint i = 0; i < 10; i *= 1) { if (lane == 3) continue; i++; }",
	`for (uint i = 0; i < 10;) {
		if (o[lane] == 0) { while (true) { if (o[lane + 1] == 0) break; } continue; }
		i++;
	}`,
	"while (true) { switch (o[lane] & 3) { case 0: continue; case 1: break; default: continue; } }",
	"while (true) { threadgroup_barrier(mem_flags::mem_threadgroup); }",
	"while (true) { if (o[5] == 0) continue; threadgroup_barrier(mem_flags::mem_threadgroup); }",
	"while (true) { if (simd_any(o[lane] == 0)) continue; threadgroup_barrier(mem_flags::mem_threadgroup); }",
	"while (atomic_load_explicit(a, memory_order_relaxed) == 0) {}",
	"while (true) { if (atomic_load_explicit(a + lane, memory_order_relaxed) == 0) continue; o[3] = 4; }",
	`while (true) {
		if (lane & 1) { if (atomic_load_explicit(a + lane, memory_order_relaxed) == 0) continue; o[3] = 4; }
		else { if (o[7] > 3) break; }
	}`,
	"for (uint i = 0; i < 0xffffffffu; i++) for (uint j = 0; j < 0xffffffffu; j++) o[lane] += i * j;",
	"for (long i = 0; i != -1; i += 2) { o[lane] ^= uint(i); }",
	`while (true) {
		uint e = 0;
		while (!atomic_compare_exchange_weak_explicit(a + 9, &e, 1u, memory_order_relaxed, memory_order_relaxed)) e = 7;
	}`,
	"while (o[lane] == 0) { if (lane == 2) return; for (uint k = 0; k < 4; k++) { if (o[k] == 5) return; } }",
}

// TestEndlessKernelsStop: every form of endless loop ends soon after Interrupt says so, on every executor.
func TestEndlessKernelsStop(t *testing.T) {
	t.Parallel()
	l := levels(t)
	for _, body := range endless {
		text := "#include <metal_stdlib>\nusing namespace metal;\nkernel void k(device uint *o [[buffer(0)]], " +
			"device atomic_uint *a [[buffer(1)]], uint lane [[thread_position_in_grid]]) { " + body + " }"
		m, err := msl.Compile(msl.Source{Name: "k", Text: text}, msl.Options{})
		require.NoError(t, err, body)
		k := m.Kernels[0]
		ref, err := interp.Prepare(k, m.Files)
		require.NoError(t, err)
		all := []runner{runs(ref.NewRun)}
		for _, level := range l {
			p, err := jit.Prepare(k, m.Files, jit.Options{Level: level, PairAlways: true})
			require.NoError(t, err)
			all = append(all, runs(p.NewRun))
		}
		for n, r := range all {
			for _, sizes := range [][2]int{{64, 64}, {1 << 16, 48}} {
				stopsSoon(t, r, sizes, body, n)
			}
		}
	}
}

func stopsSoon(t *testing.T, r runner, sizes [2]int, body string, n int) {
	var stop atomic.Bool
	o, a := make([]byte, 1<<19), make([]byte, 1<<19)
	ended := make(chan error, 1)
	time.AfterFunc(time.Millisecond, func() { stop.Store(true) })
	go func() {
		ended <- r(launch.Launch{Grid: [3]int{sizes[0], 1, 1}, Threadgroup: [3]int{sizes[1], 1, 1},
			Buffers: [][]byte{o, a}, Interrupt: &stop}, 0)
	}()
	select {
	case err := <-ended:
		require.ErrorIs(t, err, launch.ErrInterrupted, "executor %d: %s", n, body)
	case <-time.After(20 * time.Second): // the process cannot go on: machine code that does not ask stops the collector
		panic("an endless kernel does not stop: " + body)
	}
}

package jit_test

import (
	"math"
	"sync/atomic"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/mlxlua/mlxlua/internal/serial"
	"github.com/mlxlua/mlxlua/metal/kerneltest"
	"github.com/mlxlua/mlxlua/metal/launch"
)

const longKernels = `
#include <metal_stdlib>
using namespace metal;
kernel void rounds(device float *out [[buffer(0)]], uint i [[thread_position_in_grid]]) {
  float x = out[i]; // each loop alone would be too short to ask
  for (int a = 0; a < 700; a++)
    for (int b = 0; b < 700; b++)
      for (int c = 0; c < 700; c++) x = x * 0.5f + 1.0f;
  out[i] = x;
}
kernel void meeting(device atomic_uint *flag [[buffer(0)]], uint i [[thread_position_in_grid]]) {
  while (atomic_load_explicit(flag, memory_order_relaxed) == 0) threadgroup_barrier(mem_flags::mem_none);
}
kernel void nested(device float *out [[buffer(0)]], uint i [[thread_position_in_grid]]) {
  float x = out[i];
  for (int a = 0; a < 30; a++)
    for (int b = 0; b < 30; b++)
      for (int c = 0; c < 30; c++) x = x * 0.5f + float(c);
  out[i] = x;
}
kernel void phases(device uint *out [[buffer(0)]], uint i [[thread_position_in_grid]],
                   uint t [[thread_index_in_threadgroup]], uint n [[threads_per_threadgroup]]) {
  threadgroup uint sums[1024];
  uint x = t;
  for (int r = 0; r < 300; r++) {
    sums[t] = x;
    threadgroup_barrier(mem_flags::mem_threadgroup);
    x += sums[(t + 1) % n];
    threadgroup_barrier(mem_flags::mem_threadgroup);
  }
  out[i] = x;
}`

// TestLongStops: a kernel that would run for minutes or for ever stops soon, though all its loops have bounds, or
// nothing but barriers in them.
func TestLongStops(t *testing.T) {
	serial.Because(t, "it measures how processors are shared")
	for _, l := range levels(t) {
		for _, name := range []string{"rounds", "meeting"} {
			p := programs(t, longKernels, l)[name]
			var stop atomic.Bool
			at := make(chan time.Time, 1)
			time.AfterFunc(5*time.Millisecond, func() { at <- time.Now(); stop.Store(true) })
			err := kerneltest.Run(p.NewRun, launch.Launch{Grid: line(1024), Threadgroup: line(1024), Interrupt: &stop,
				Buffers: [][]byte{make([]byte, 4096)}}, 1)
			require.ErrorIs(t, err, launch.ErrInterrupted, "%s %s", l, name)
			require.Less(t, time.Since(<-at), 20*time.Second, "%s %s", l, name) // a bound for a hang
		}
	}
}

// TestLeavesAndGoesOn: kernels whose calls are cut between groups of lanes and between barriers compute what they
// should.
func TestLeavesAndGoesOn(t *testing.T) {
	t.Parallel()
	const n = 1024
	sums := make([]uint32, n)
	for i := range sums {
		sums[i] = uint32(i)
	}
	for range 300 {
		next := make([]uint32, n)
		for i := range sums {
			next[i] = sums[i] + sums[(i+1)%n]
		}
		sums = next
	}
	for _, l := range levels(t) {
		p := programs(t, longKernels, l)
		out := make([]byte, 4*2*n)
		require.NoError(t, kerneltest.Run(p["phases"].NewRun,
			launch.Launch{Grid: line(2 * n), Threadgroup: line(n), Buffers: [][]byte{out}}, 0))
		require.Equal(t, append(append([]uint32(nil), sums...), sums...), u32s(out))
		require.NoError(t, kerneltest.Run(p["nested"].NewRun,
			launch.Launch{Grid: line(n), Threadgroup: line(n), Buffers: [][]byte{out[:4*n]}}, 0))
		// In the end the start is forgotten: x is the sum of c/2^(29-c), which float32 holds but for the last bits.
		want := float32(0)
		for r := range 60 {
			want = want*0.5 + float32(r%30)
		}
		require.InDelta(t, want, math.Float32frombits(u32s(out[:4])[0]), 1e-4)
	}
}

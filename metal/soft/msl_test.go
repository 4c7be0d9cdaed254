package soft

import (
	"context"
	"encoding/binary"
	"math"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/mlxlua/mlxlua/metal"
)

// TestMSLEndToEnd runs Metal text: a reduction per SIMD-group, and a sum through threadgroup memory.
func TestMSLEndToEnd(t *testing.T) {
	dev, err := metal.NewDevice(New(Options{Workers: 2}), metal.DeviceOptions{Validate: true})
	require.NoError(t, err)
	defer func() { require.NoError(t, dev.Close()) }()
	lib, err := dev.Library(context.Background(), metal.Source{Label: "sums.metal", Text: `
#include <metal_stdlib>
using namespace metal;
kernel void sums(device const float* in [[buffer(0)]], device float* out [[buffer(1)]],
                 uint i [[thread_position_in_grid]], uint l [[thread_position_in_threadgroup]],
                 uint g [[threadgroup_position_in_grid]], uint n [[threads_per_threadgroup]],
                 uint sg [[simdgroup_index_in_threadgroup]], uint lane [[thread_index_in_simdgroup]]) {
  threadgroup float part[32];
  float s = simd_sum(in[i] * 2.0f);
  if (lane == 0) part[sg] = s;
  threadgroup_barrier(mem_flags::mem_threadgroup);
  if (l == 0) {
    float total = 0;
    for (uint j = 0; j < (n + 31) / 32; j++) total += part[j];
    out[g] = total;
  }
}`})
	require.NoError(t, err)
	p, err := lib.Pipeline("sums")
	require.NoError(t, err)
	const n, tg = 300, 128
	in, out := alloc(t, dev, 4*n), alloc(t, dev, 4*3)
	for i := range n {
		binary.LittleEndian.PutUint32(in.Host()[4*i:], math.Float32bits(float32(i)))
	}
	cb := dev.NewCommandBuffer(0, "")
	e := cb.Encoder()
	e.SetPipeline(p)
	e.SetBuffer(0, in, 0)
	e.SetBuffer(1, out, 0)
	require.NoError(t, e.Dispatch(x(n), x(tg)))
	require.NoError(t, cb.Commit())
	require.NoError(t, cb.Wait(context.Background()))
	for g := range 3 {
		want := float32(0)
		for i := g * tg; i < min(n, (g+1)*tg); i++ {
			want += 2 * float32(i) // integers below 2^24: exact in any order
		}
		require.Equal(t, want, math.Float32frombits(binary.LittleEndian.Uint32(out.Host()[4*g:])))
	}
	_, err = dev.Library(context.Background(), metal.Source{Label: "bad.metal", Text: "kernel void k() { nonsense; }"})
	require.ErrorContains(t, err, "nonsense")

	lib, err = dev.Library(context.Background(), metal.Source{Label: "large.metal", Text: `
kernel void small(device int *x) { x[0] = 1; }
kernel void large(device int *x) { threadgroup int a[9000]; a[0] = 2; x[0] = a[0]; }`})
	require.NoError(t, err)
	_, err = lib.Pipeline("small")
	require.NoError(t, err)
	_, err = lib.Pipeline("large")
	require.ErrorContains(t, err, "large.metal:3:52: error MSL0331: with 'a' the kernel needs 36000 bytes")

	lib, err = dev.Library(context.Background(), metal.Source{Label: "exact.metal", Text: `
[[kernel, required_threads_per_threadgroup(32, 2)]] void exact(device int *x) { x[0] = 1; }`})
	require.NoError(t, err)
	p, err = lib.Pipeline("exact")
	require.NoError(t, err)
	cb = dev.NewCommandBuffer(0, "")
	e = cb.Encoder()
	e.SetPipeline(p)
	e.SetBuffer(0, in, 0)
	require.EqualError(t, e.Dispatch(metal.Size{X: 64, Y: 2, Z: 1}, x(32)),
		"[dispatch] kernel exact: threadgroup (32, 1, 1), and the kernel requires (32, 2, 1)")
	require.NoError(t, e.Dispatch(metal.Size{X: 64, Y: 2, Z: 1}, metal.Size{X: 32, Y: 2, Z: 1}))
	require.NoError(t, cb.Commit())
	require.NoError(t, cb.Wait(context.Background()))
}

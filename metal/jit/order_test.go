package jit_test

import (
	"encoding/binary"
	"math"
	"sync/atomic"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/mlxlua/mlxlua/internal/serial"
	"github.com/mlxlua/mlxlua/metal/interp"
	"github.com/mlxlua/mlxlua/metal/jit"
	"github.com/mlxlua/mlxlua/metal/launch"
	"github.com/mlxlua/mlxlua/metal/msl"
)

// executors are a text's only kernel on the interpreter and on machine code of every level.
func executors(t *testing.T, text string) map[string]runner {
	m, err := msl.Compile(msl.Source{Name: "k", Text: "#include <metal_stdlib>\nusing namespace metal;\n" + text},
		msl.Options{})
	require.NoError(t, err)
	k := m.Kernels[0]
	ref, err := interp.Prepare(k, m.Files)
	require.NoError(t, err)
	all := map[string]runner{"interp": runs(ref.NewRun)}
	for _, l := range levels(t) {
		p, err := jit.Prepare(k, m.Files, jit.Options{Level: l, PairAlways: true})
		require.NoError(t, err)
		all[l.String()] = runs(p.NewRun)
	}
	return all
}

// TestTheFirstThreadgroupsFaultIsReported: though it takes long until it has it, and others have theirs before.
func TestTheFirstThreadgroupsFaultIsReported(t *testing.T) {
	t.Parallel()
	const text = `kernel void k(device uint *o [[buffer(0)]], constant uint &rounds [[buffer(1)]],
		uint g [[threadgroup_position_in_grid]], uint i [[thread_position_in_threadgroup]]) {
		uint x = i, n = g == 37 ? rounds : 1;
		for (uint k = 0; k < n; k++) x = x * 1664525 + o[k & 63] + 1013904223;
		if (g >= 37) o[1000000 + g] = x;
		o[i] = 0;
	}`
	for name, r := range executors(t, text) {
		rounds := make([]byte, 4)
		binary.LittleEndian.PutUint32(rounds, 300_000)
		if name == "interp" {
			binary.LittleEndian.PutUint32(rounds, 3000)
		}
		for range 5 {
			err := r(launch.Launch{Grid: line(64 * 500), Threadgroup: line(64),
				Buffers: [][]byte{make([]byte, 256), rounds}}, 4)
			var f *launch.Fault
			require.ErrorAs(t, err, &f, name)
			require.Equal(t, int64(1000037), f.Index, name)
		}
	}
}

// TestManyThreadgroupsWaitForEachOther: all of them have begun after work in proportion to their number.
func TestManyThreadgroupsWaitForEachOther(t *testing.T) {
	serial.Because(t, "it measures how processors are shared")
	const groups = 10_000
	for name, r := range executors(t, `kernel void k(device atomic_uint *a [[buffer(0)]], device uint *o [[buffer(1)]],
		constant uint &all [[buffer(2)]], uint g [[thread_position_in_grid]]) {
		atomic_fetch_add_explicit(a, 1u, memory_order_relaxed);
		while (atomic_load_explicit(a, memory_order_relaxed) < all) {}
		o[g] = g + 1;
	}`) {
		out := make([]byte, 4*groups)
		start := time.Now()
		require.NoError(t, r(launch.Launch{Grid: line(groups), Threadgroup: line(1),
			Buffers: [][]byte{make([]byte, 4), out, bytesOf(groups)}}, 2))
		for i, v := range u32s(out) {
			require.Equal(t, uint32(i+1), v)
		}
		t.Logf("%s: %v", name, time.Since(start))
	}
}

// TestHugeGridsCanBeStopped: however many threadgroups there are; a number that no counter holds is refused.
func TestHugeGridsCanBeStopped(t *testing.T) {
	t.Parallel()
	for name, r := range executors(t, "kernel void k(uint i [[thread_position_in_grid]]) {}") {
		for _, grid := range [][3]int{{math.MaxUint32, 1, 1}, {1 << 31, 1 << 31, 1}, {1, math.MaxUint32, 1 << 29}} {
			for _, tg := range [][3]int{line(1), line(1024), {1, 32, 32}} {
				var stop atomic.Bool
				defer time.AfterFunc(2*time.Millisecond, func() { stop.Store(true) }).Stop()
				err := r(launch.Launch{Grid: grid, Threadgroup: tg, Interrupt: &stop}, 0)
				if stop.Load() {
					require.ErrorIs(t, err, launch.ErrInterrupted, name)
				}
			}
		}
		huge := [3]int{math.MaxUint32, math.MaxUint32, math.MaxUint32}
		err := r(launch.Launch{Grid: huge, Threadgroup: line(1)}, 0)
		require.EqualError(t, err, "[k] grid is out of range: [4294967295 4294967295 4294967295]", name)
		require.Error(t, r(launch.Launch{Grid: [3]int{1 << 32, 1, 1}, Threadgroup: line(1)}, 0), name)
		require.Error(t, r(launch.Launch{Grid: [3]int{-1, 1, 1}, Threadgroup: line(1)}, 0), name)
	}
}

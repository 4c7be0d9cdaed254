package jit_test

import (
	"errors"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/mlxlua/mlxlua/metal/launch"
)

// wild are bodies that do what no kernel should: pointers far outside, misaligned ones, indices of every kind, numbers
// that machines trap on.
var wild = []string{
	"o[i] = a[-1 - int(i)];",
	"o[i] = *(a + (1l << 40));",
	"o[i] = *(a + (1l << 45) * int(i));",
	"o[i] = *(a - (1l << 62));",
	"o[i] = *(device int *)((device char *)a + (long(i) << 33));",
	"o[i] = (a + i)[long(0x7fffffffffffffff)];",
	"o[i] = int((o + i) - (o + 3 * i));",
	"o[i] = *((device int *)((device char *)a + i + 1));",
	"o[i] = ((device int4 *)(a + i))->w;",
	"*(device int4 *)((device char *)o + 16 * i + 2) = int4(1, 2, 3, 4);",
	"device long *p = (device long *)((device char *)o + 3); p[0] = 0x0102030405060708;",
	"int t[7]; for (int k = 0; k < 7; k++) t[k] = k; o[i] = t[i];",
	"int t[7]; t[a[i]] = 3; o[i] = t[2];",
	"int t[4] = {1, 2, 3, 4}; o[i] = t[int(i) - 2];",
	"threadgroup int t[64]; t[i * 3] = 1; threadgroup_barrier(mem_flags::mem_threadgroup); o[i] = t[i];",
	"threadgroup int t[64]; t[i] = 1; threadgroup_barrier(mem_flags::mem_threadgroup); o[i] = t[i - 70];",
	"o[i] = a[i & 15] / (int(i) - 3);",
	"o[i] = a[i & 15] % (int(i) - 3);",
	"o[i] = int(0x80000000) / (int(i) - 4); o[i] ^= int(0x80000000) % (int(i) - 4);",
	"long m = long(1) << 63; o[i] = int((m / (long(i) - 4)) >> 32) ^ int(m % (long(i) - 4));",
	"o[i] = (1 << (i * 5)) ^ (a[i & 15] >> (40 - int(i)));",
	"o[i] = int((1l << (i * 9)) >> (int(i) - 5)) ^ int(char(1) << i);",
	"o[i] = int(1e30f * float(i)) ^ int(uint(-3.5f * float(i))) ^ int(NAN);",
	"z[i] = 1;",
	"o[i] = z[0];",
	"if (i > 100) z[i] = 1; o[i] = 3;",
	"atomic_fetch_add_explicit((device atomic_int *)((device char *)o + i), 1, memory_order_relaxed);",
	"atomic_fetch_add_explicit((device atomic_int *)(o + i * 9), 1, memory_order_relaxed);",
	"atomic_store_explicit((device atomic_int *)z, 1, memory_order_relaxed);",
	"device int *p = i & 1 ? o : z; p[i] = 2;",
	"device int *p[2] = {o, z}; p[i & 1][i & 1] = 2;",
	"device int *p = o; for (uint k = 0; k < i; k++) p -= 3; *p = 1;",
	"device int *p = o; for (uint k = 0; k < i; k++) p += 1 << 24; *p = 1;",
	"o[i] = simd_shuffle(int(i), ushort(a[i & 15]));",
	"if (i == 5) o[1 << 20] = 1; o[i] = 1; return;",
	"uint big = 0xfffffff0u + i; o[big] = 1;",
	"ushort s = ushort(65530 + i); o[s] = 1;",
	"o[(i << 30) + i] = int(i);",
}

// TestWildKernels: each body faults on every executor, or on none, which then agree; no byte around the buffers
// changes.
func TestWildKernels(t *testing.T) {
	t.Parallel()
	faults := 0
	for _, body := range wild {
		all := executors(t, "kernel void k(device int *o [[buffer(0)]], device int *a [[buffer(1)]], "+
			"device int *z [[buffer(2)]], uint i [[thread_position_in_grid]]) { "+body+" }")
		for _, n := range []int{3, 16, 33} {
			run := func(r runner) ([]byte, error) {
				// o, a and z lie in one array, with what nobody may write between them.
				m := make([]byte, 1024)
				for k := range m {
					m[k] = byte(k * 7)
				}
				err := r(launch.Launch{Grid: line(n), Threadgroup: line(n),
					Buffers: [][]byte{m[128:256:256], m[512:576:576], m[700:700:700]}}, 1)
				var f *launch.Fault
				require.True(t, err == nil || errors.As(err, &f), "%s: %v", body, err)
				for k, b := range m {
					if k < 128 || k >= 256 && k < 512 || k >= 576 {
						require.Equal(t, byte(k*7), b, "%s: byte %d is nobody's", body, k)
					}
				}
				return m, err
			}
			want, fault := run(all["interp"])
			for name, r := range all {
				got, err := run(r)
				if fault != nil {
					faults++
					var f *launch.Fault
					require.ErrorAs(t, err, &f, "%s: %s, %d threads", name, body, n)
					if n <= 8 { // else it may be another of several faults
						require.EqualError(t, err, fault.Error(), "%s: %s", name, body)
					}
					continue
				}
				require.NoError(t, err, "%s: %s, %d threads", name, body, n)
				require.Equal(t, want, got, "%s: %s, %d threads", name, body, n)
			}
		}
	}
	require.Greater(t, faults, 100)
}

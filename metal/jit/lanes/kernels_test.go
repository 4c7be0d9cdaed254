package lanes_test

import (
	"fmt"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/mlxlua/mlxlua/metal/jit/lanes"
	"github.com/mlxlua/mlxlua/metal/kerneltest"
	"github.com/mlxlua/mlxlua/metal/kir"
	"github.com/mlxlua/mlxlua/metal/kir/opt"
	"github.com/mlxlua/mlxlua/metal/msl"
)

const head = "#include <metal_stdlib>\nusing namespace metal;\n"

// kernels of kinds that matter, each with the size of its buffers in elements of 4 bytes.
var kernels = map[string]string{
	"gelu": `kernel void gelu(device const float* a [[buffer(0)]], device const float* b [[buffer(1)]],
		device float* out [[buffer(2)]], uint i [[thread_position_in_grid]]) {
		float x = a[i] * b[i];
		out[i] = 0.5f * x * (1.0f + tanh(0.7978845608f * (x + 0.044715f * x * x * x)));
	}`,
	"guarded": `kernel void guarded(device const float* a [[buffer(0)]], constant int& n [[buffer(1)]],
		device float* out [[buffer(2)]], uint i [[thread_position_in_grid]]) {
		if (int(i) >= n) return;
		float s = 0;
		for (int j = 0; j < n; j++) {
			if (a[j] > 0.5f) continue;
			if (a[j] < -2.0f) break;
			s += a[i] * j;
		}
		out[i] = s;
	}`,
	"qmv": `kernel void qmv(device const uint* w [[buffer(0)]], device const float* scales [[buffer(1)]],
		device const float* x [[buffer(2)]], device float* out [[buffer(3)]],
		uint lane [[thread_index_in_simdgroup]], uint sg [[simdgroup_index_in_threadgroup]],
		uint3 tgp [[threadgroup_position_in_grid]]) {
		const int K = 512;
		uint row = tgp.x * 2 + sg;
		float acc = 0;
		for (uint k = lane; k < K / 8; k += 32) {
			uint p = w[row * (K / 8) + k];
			float s = scales[row * (K / 64) + k / 8];
			float dot = 0;
			for (int j = 0; j < 8; j++) dot += x[k * 8 + j] * float((p >> (4 * j)) & 0xf);
			acc += s * dot;
		}
		acc = simd_sum(acc);
		if (lane == 0) out[row] = acc;
	}`,
	"delta": `kernel void delta(device const float* k [[buffer(0)]], device const float* v [[buffer(1)]],
		device const float* state_in [[buffer(2)]], constant int& T [[buffer(3)]], device float* y [[buffer(4)]],
		uint3 pos [[thread_position_in_grid]], uint3 tp [[thread_position_in_threadgroup]],
		uint lane [[thread_index_in_simdgroup]]) {
		auto k_ = k + pos.y * 128;
		auto v_ = v + pos.y;
		float state[4];
		for (int i = 0; i < 4; ++i) state[i] = state_in[pos.y * 128 + 4 * tp.x + i];
		for (int t = 0; t < T; ++t) {
			float mem = 0;
			for (int i = 0; i < 4; ++i) mem += state[i] * k_[4 * tp.x + i];
			mem = simd_sum(mem);
			for (int i = 0; i < 4; ++i) state[i] += k_[4 * tp.x + i] * (v_[0] - mem);
			if (lane == 0) y[pos.y] = mem;
			k_ += 128;
			v_ += 4;
		}
	}`,
	"softmax": `kernel void softmax(device const float* x [[buffer(0)]], constant int& n [[buffer(1)]],
		device float* out [[buffer(2)]], uint row [[threadgroup_position_in_grid]],
		uint lid [[thread_position_in_threadgroup]], uint size [[threads_per_threadgroup]]) {
		threadgroup float part[32];
		x += row * n; out += row * n;
		float top = -1e30f;
		for (int i = lid; i < n; i += size) top = max(top, x[i]);
		top = simd_max(top);
		if (lid % 32 == 0) part[lid / 32] = top;
		threadgroup_barrier(mem_flags::mem_threadgroup);
		for (uint i = 0; i < size / 32; i++) top = max(top, part[i]);
		float sum = 0;
		for (int i = lid; i < n; i += size) { float e = exp(x[i] - top); out[i] = e; sum += e; }
		sum = simd_sum(sum);
		for (int i = lid; i < n; i += size) out[i] /= sum;
	}`,
	"walk": `kernel void walk(device const float* x [[buffer(0)]], constant int& n [[buffer(1)]],
		device float* out [[buffer(2)]], uint row [[threadgroup_position_in_grid]],
		uint lane [[thread_index_in_simdgroup]]) {
		const device float* p = x + row * n + lane * 2;
		float s = 0;
		for (int k = 0; k < n; k += 64) { s += p[0] + p[1]; p += 64; }
		s = simd_sum(s);
		if (lane == 0) out[row] = s;
	}`,
	"matmul": `kernel void matmul(device const float* a [[buffer(0)]], device const float* b [[buffer(1)]],
		device float* c [[buffer(2)]], uint2 l [[thread_position_in_threadgroup]],
		uint2 g [[threadgroup_position_in_grid]]) {
		threadgroup float ta[8][8], tb[8][8];
		float sum = 0;
		for (uint k = 0; k < 16; k += 8) {
			ta[l.y][l.x] = a[(g.y * 8 + l.y) * 16 + k + l.x];
			tb[l.y][l.x] = b[(k + l.y) * 16 + g.x * 8 + l.x];
			threadgroup_barrier(mem_flags::mem_threadgroup);
			for (uint i = 0; i < 8; i++) sum += ta[l.y][i] * tb[i][l.x];
			threadgroup_barrier(mem_flags::mem_threadgroup);
		}
		c[(g.y * 8 + l.y) * 16 + g.x * 8 + l.x] = sum;
	}`,
	"flip": `kernel void flip(device const float* a [[buffer(0)]], device float* out [[buffer(1)]],
		uint i [[thread_position_in_grid]], uint n [[threads_per_grid]]) {
		out[i] = a[n - 1 - i] + a[(i * 7) % n] + a[i ^ 1];
	}`,
	"wrap": `kernel void wrap(device const float* a [[buffer(0)]], device float* out [[buffer(1)]],
		uint i [[thread_position_in_grid]]) {
		ulong j = i - 3u;
		if (i >= 3) out[j] = a[j] + a[i - 2u];
		out[200 + i] = float(j);
	}`,
	"late": `kernel void late(device const float* a [[buffer(0)]], device int* out [[buffer(1)]],
		constant int& n [[buffer(2)]], uint i [[thread_position_in_grid]]) {
		int last = -1;
		for (int k = 0; k < n / 10; k++) {
			out[k] += last;
			last = k;
			if (a[i] + k > 4.0f || int(i) % 7 == k) break;
		}
		out[i + 16] = last;
	}`,
	"again": `kernel void again(device const float* a [[buffer(0)]], device int* out [[buffer(1)]],
		constant int& n [[buffer(2)]], uint i [[thread_position_in_grid]]) {
		int seen = 0, total = 0, k = 0;
		while (k < n / 8) {
			total += seen;
			k++;
			if ((int(i) + k) % 3 == 0) continue;
			seen = k;
			if (seen > 7) total -= 2;
		}
		out[i] = total;
	}`,
	"rounds": `kernel void rounds(device const float* a [[buffer(0)]], device int* out [[buffer(1)]],
		constant int& n [[buffer(2)]], uint i [[thread_position_in_grid]]) {
		int seen = 0, total = 0;
		for (int r = 0; r < n / 16; r++) {
			total += seen * r;
			for (int k = 0; k < n / 24; k++) {
				if ((int(i) + k + r) % 5 == 0) break;
				seen = k * r;
			}
		}
		out[i] = total;
	}`,
	"swap": `kernel void swap(device const uint* a [[buffer(0)]], device uint* out [[buffer(1)]],
		constant int& n [[buffer(2)]], uint i [[thread_position_in_grid]]) {
		uint x = a[i]; int y = int(a[i + 1]);
		for (int k = 0; k < n; k++) {
			int was = int(x);
			x = uint(y) * 3;
			y = was + k;
		}
		out[i] = x ^ uint(y);
	}`,
	"histogram": `kernel void histogram(device const uint* x [[buffer(0)]], device uint* out [[buffer(1)]],
		uint i [[thread_position_in_grid]]) {
		uint v = x[i] % 64;
		uint run = 0;
		while (v > 40) { v -= 7; run++; if (run > 3) break; }
		out[v]++;
	}`,
}

func compile(t testing.TB, name string) *kir.Kernel {
	m, err := msl.Compile(msl.Source{Text: head + kernels[name]}, msl.Options{})
	require.NoError(t, err, name)
	return m.Kernels[0]
}

// buffers returns memory for all objects of a kernel; the first word of constants is 96.
func buffers(k *kir.Kernel) map[int][]byte {
	b := map[int][]byte{}
	for i, p := range k.Params {
		b[1+i] = make([]byte, 1<<16)
		for j := range b[1+i] {
			b[1+i][j] = byte(j*j>>3 ^ j)
		}
		if p.Space == kir.Constant {
			b[1+i] = []byte{96, 0, 0, 0}
		}
	}
	addRegions(k, b)
	return b
}

// addRegions adds a kernel's own memory to its objects.
func addRegions(k *kir.Kernel, objects map[int][]byte) {
	for i, r := range k.Regions {
		if r.Space != kir.Thread {
			mem := make([]byte, r.Size)
			copy(mem, r.Data)
			objects[1+len(k.Params)+i] = mem
		}
	}
}

func TestClaimsHoldInKernels(t *testing.T) {
	shapes := map[string][]pattern{
		"matmul": {{[3]int{16, 16, 1}, [3]int{8, 8, 1}, 32, lanes.Geometry{}},
			{[3]int{16, 16, 1}, [3]int{8, 8, 1}, 8, lanes.Geometry{Row: true, Aligned: true}}},
		"delta": {{[3]int{32, 4, 1}, [3]int{32, 2, 1}, 32, lanes.Geometry{Row: true, Aligned: true}},
			{[3]int{32, 4, 1}, [3]int{32, 2, 1}, 32, lanes.Geometry{}}},
	}
	for name := range kernels {
		k := compile(t, name)
		o := opt.Run(k, opt.Launch{})
		require.NoError(t, o.Verify(), name)
		list := shapes[name]
		if list == nil {
			list = launches[:2]
		}
		for i, l := range list {
			t.Run(fmt.Sprint(name, i), func(t *testing.T) {
				check(t, k, l, buffers(k), "")
				check(t, o, l, buffers(o), "optimised")
			})
		}
	}
}

// find returns the accesses to an object, by the name of the parameter.
func find(t *testing.T, k *kir.Kernel, info *lanes.Info, name string) []*lanes.Access {
	var found []*lanes.Access
	for i, p := range k.Params {
		if p.Name != name {
			continue
		}
		for _, a := range info.Access {
			if a != nil && a.Object == 1+i {
				found = append(found, a)
			}
		}
	}
	require.NotEmpty(t, found, name)
	return found
}

// stride holds an access against lane*bytes/lanesEach.
func stride(t *testing.T, a *lanes.Access, group, bytes, each int) {
	require.Equal(t, lanes.AccessOffsets, a.Mode)
	for l := range group {
		require.EqualValues(t, l/each*bytes, a.Offsets[l])
	}
	require.EqualValues(t, (group-1)/each*bytes, a.Span)
}

func TestAccessesThatMatter(t *testing.T) {
	row := lanes.Geometry{Row: true, Aligned: true}
	analyse := func(name string) (*kir.Kernel, *lanes.Info) {
		k := opt.Run(compile(t, name), opt.Launch{})
		return k, lanes.Analyse(k, 32, row)
	}
	k, info := analyse("gelu")
	for _, name := range []string{"a", "b", "out"} {
		stride(t, find(t, k, info, name)[0], 32, 4, 1)
	}
	require.False(t, info.Crossing || info.Barriers || info.Waits)

	k, info = analyse("qmv")
	stride(t, find(t, k, info, "w")[0], 32, 4, 1)
	stride(t, find(t, k, info, "scales")[0], 32, 4, 8)
	for i, a := range find(t, k, info, "x") {
		stride(t, a, 32, 32, 1)
		require.EqualValues(t, 4*i, a.Disp)
		require.Equal(t, find(t, k, info, "x")[0].Bases, a.Bases, "loads that can be shared")
	}
	require.True(t, info.Crossing)
	k.Body.Walk(func(in *kir.Instr) {
		require.False(t, in.Op == kir.Loop && info.Divergent[in.ID], "the bound is a multiple of the step")
	})

	k, info = analyse("delta")
	for i, a := range find(t, k, info, "k") {
		stride(t, a, 32, 16, 1)
		require.EqualValues(t, 4*(i%4), a.Disp)
	}
	require.Equal(t, lanes.AccessUniform, find(t, k, info, "v")[0].Mode)

	k, info = analyse("walk")
	for i, a := range find(t, k, info, "x") {
		stride(t, a, 32, 8, 1)
		require.EqualValues(t, 4*i, a.Disp)
	}

	k, info = analyse("softmax")
	for _, a := range find(t, k, info, "x") {
		stride(t, a, 32, 4, 1)
	}
	require.True(t, info.Barriers)

	k, info = analyse("flip")
	modes := map[lanes.AccessMode]int{}
	for _, a := range find(t, k, info, "a") {
		modes[a.Mode]++
	}
	require.Equal(t, map[lanes.AccessMode]int{lanes.AccessOffsets: 2, lanes.AccessGather: 1}, modes)

	k, info = analyse("histogram")
	require.Equal(t, lanes.AccessGather, find(t, k, info, "out")[0].Mode)
}

// TestWaits tells loops that other threadgroups may have to end from others.
func TestWaits(t *testing.T) {
	text := head + `kernel void spin(device atomic_uint* flag [[buffer(0)]], device uint* out [[buffer(1)]]) {
		while (atomic_load_explicit(flag, memory_order_relaxed) == 0) {}
		out[0] = 1;
	}
	kernel void poll(device volatile uint* flag [[buffer(0)]], device uint* out [[buffer(1)]]) {
		while (flag[0] == 0) {}
		out[0] = 1;
	}
	kernel void grab(device atomic_uint* next [[buffer(0)]], device uint* out [[buffer(1)]],
		constant uint& n [[buffer(2)]]) {
		uint i = 0;
		while ((i = atomic_fetch_add_explicit(next, 1u, memory_order_relaxed)) < n) out[i] = i;
	}
	kernel void search(device const float* x [[buffer(0)]], device uint* out [[buffer(1)]],
		constant uint& n [[buffer(2)]]) {
		uint i = 0;
		while (i < n && x[i] != 0.0f) i++;
		out[0] = i;
	}
	kernel void bins(device const uint* x [[buffer(0)]], device atomic_uint* out [[buffer(1)]],
		constant uint& n [[buffer(2)]], uint t [[thread_position_in_grid]], uint size [[threads_per_grid]]) {
		for (uint i = t; i < n; i += size) atomic_fetch_add_explicit(out + x[i] % 64, 1u, memory_order_relaxed);
	}
	kernel void count(device uint* out [[buffer(0)]], constant uint& n [[buffer(1)]]) {
		uint s = 0;
		for (uint i = 0; i < n; i++) s = s * 3 + i;
		out[0] = s;
	}`
	m, err := msl.Compile(msl.Source{Text: text}, msl.Options{})
	require.NoError(t, err)
	for i, want := range []bool{true, true, true, false, false, false} {
		k := m.Kernels[i]
		require.Equal(t, want, lanes.Analyse(opt.Run(k, opt.Launch{}), 32, lanes.Geometry{Row: true}).Waits, k.Name)
	}
}

// TestRepeatedSums looks at addresses that name one value again and again.
func TestRepeatedSums(t *testing.T) {
	b := kerneltest.NewBuilder("sums")
	in := b.Param("in", kir.Device, kir.U8)
	x := b.Op(kir.Convert, kir.I64, b.Builtin(kir.ThreadIndexInSimdgroup, 0))
	for range 60 {
		x = b.Op(kir.Add, kir.I64, x, x)
	}
	b.Op(kir.Store, kir.Void, b.Op(kir.PtrAdd, kir.PtrDevice, in, x), b.Int(kir.U8, 1))
	b.Loop(func(l *kir.Instr) {
		y := b.Op(kir.Load, kir.U8, in)
		for range 60 {
			y = b.Op(kir.Add, kir.U8, y, y)
		}
		b.If(b.Op(kir.Lt, kir.Bool, y, b.Int(kir.U8, 3)), func() { b.Break(l) }, nil)
	})
	k := b.Kernel()
	require.NoError(t, k.Verify())
	info := lanes.Analyse(k, 32, lanes.Geometry{Row: true})
	k.Body.Walk(func(in *kir.Instr) {
		if in.Op == kir.Store {
			require.Equal(t, 1, info.Access[in.ID].Object)
		}
	})
	require.True(t, info.Waits)
	require.NoError(t, opt.Run(k, opt.Launch{}).Verify())
}

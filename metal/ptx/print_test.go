package ptx_test

import (
	"encoding/binary"
	"strings"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/mlxlua/mlxlua/metal/kerneltest"
	"github.com/mlxlua/mlxlua/metal/kir"
	"github.com/mlxlua/mlxlua/metal/msl"
	"github.com/mlxlua/mlxlua/metal/ptx"
)

func compile(t *testing.T, text string) *kir.Kernel {
	t.Helper()
	mod, err := msl.Compile(msl.Source{Name: "k", Text: "#include <metal_stdlib>\nusing namespace metal;\n" + text},
		msl.Options{Float64: true})
	require.NoError(t, err)
	return mod.Kernels[0]
}

// after returns the lines of a text that come after the first one with a word, as many as there are in n.
func after(t *testing.T, text, word string, n int) string {
	t.Helper()
	_, rest, ok := strings.Cut(text, word)
	require.True(t, ok, "no %s in:\n%s", word, text)
	_, rest, _ = strings.Cut(rest, "\n")
	return strings.Join(strings.SplitN(rest, "\n", n+1)[:n], "\n")
}

// TestReads: a text reads as what it does. Index and element are known to be no more than 2^32, so that one addition
// makes the check, and the access takes one instruction.
func TestReads(t *testing.T) {
	t.Parallel()
	k := compile(t, `kernel void twice(device const float *in, device float *out, uint i [[thread_position_in_grid]]) {
  out[i] = in[i] * 2;
}`)
	text, err := ptx.Print(k, ptx.Options{SM: 90})
	require.NoError(t, err)
	s := text.String()
	require.True(t, strings.HasPrefix(s, ".version 7.8\n.target sm_90\n.address_size 64\n"), s)
	require.Equal(t, `cvt.u64.u32 %d7, %r27;
mul.lo.u64 %d8, %d7, 4;
add.u64 %d9, %d8, 4;
setp.lt.u64 %p5, %d3, %d9;
@%p5 bra L4;
add.u64 %d10, %d4, %d8;
ld.global.b32 %r30, [%d10];
mul.rn.f32 %r31, %r30, 0f40000000;
add.u64 %d12, %d8, 4;
setp.lt.u64 %p6, %d5, %d12;
@%p6 bra L5;
add.u64 %d13, %d6, %d8;
st.global.b32 [%d13], %r31;
exit;`, after(t, s, "cvta.to.global.u64 %d6", 14))
	require.Len(t, text.Sites, 2)
	line := strings.Count(s[:strings.Index(s, "mul.rn.f32")], "\n") + 1
	require.Equal(t, uint32(4), text.Place(line).Line)
	assemble(t, s, 90)
}

func TestRefusals(t *testing.T) {
	t.Parallel()
	for _, c := range []struct {
		text string
		want error
	}{
		{"kernel void f(device double *p) { p[0] = p[1]; }", ptx.ErrFloat64},
		{`kernel void f(device float *p, device atomic_uint *flag, uint i [[threadgroup_position_in_grid]]) {
  while (atomic_load_explicit(flag, memory_order_relaxed) != i) {}
  p[i] = 1;
}`, ptx.ErrWaits},
		{`kernel void f(device float *p, device atomic_uint *flag, uint i [[threadgroup_position_in_grid]]) {
  while (atomic_fetch_add_explicit(flag, 0u, memory_order_relaxed) < i) {}
  p[i] = 1;
}`, ptx.ErrWaits},
		// Whoever is waited for runs, or nobody is.
		{`kernel void f(device float *p, device atomic_uint *lock, uint i [[threadgroup_position_in_grid]]) {
  while (atomic_exchange_explicit(lock, 1u, memory_order_relaxed) != 0u) {}
  p[i] = 1;
}`, nil},
		{`kernel void f(device atomic_uint *a) {
  uint old = atomic_load_explicit(a, memory_order_relaxed);
  while (!atomic_compare_exchange_weak_explicit(a, &old, old * 3, memory_order_relaxed, memory_order_relaxed)) {}
}`, nil},
		{`kernel void f(device int *p, device const int *n) {
  int x = p[0];
  while (x != n[0]) x = x * 5 + 1;
  p[0] = x;
}`, nil},
	} {
		text, err := ptx.Print(compile(t, c.text), ptx.Options{SM: 80})
		if c.want != nil {
			require.ErrorIs(t, err, c.want, c.text)
			require.Contains(t, err.Error(), "[f] ", "the kernel's name")
			continue
		}
		require.NoError(t, err, c.text)
		assemble(t, text.String(), 80)
	}
	k := compile(t, "kernel void f(device int *p) { p[0] = 1; }")
	for _, o := range []ptx.Options{{SM: 70}, {SM: 80, MaxThreads: 2000}, {SM: 80, Align: []int{3}},
		{SM: 80, Inline: []int{-1}}, {SM: 80, Align: []int{4, 4}}} {
		_, err := ptx.Print(k, o)
		require.Error(t, err, "%v", o)
	}
}

// TestPolls: loops that are not known to be short ask whether to stop.
func TestPolls(t *testing.T) {
	t.Parallel()
	for _, c := range []struct {
		loop  string
		polls bool
	}{
		{"for (int i = 0; i < 1000; i++)", false},
		{"for (int i = 1000; i > 0; i--)", false},
		{"for (int i = 0; i < 1000; i += 7)", false},
		{"for (int i = 0; i < 100000000; i++)", true},
		{"for (int i = 0; i < n; i++)", true},
		{"for (uint i = 0; i < 0xffffffffu; i += 2)", true}, // never ends
		{"for (int i = 0; i != 999; i += 2)", true},         // nor this
		{"while (x != 3)", true},
	} {
		k := compile(t, "kernel void f(device int *p, constant int &n) { int x = p[0]; "+c.loop+
			" { x = x * x + p[x & 3]; } p[0] = x; }")
		text, err := ptx.Print(k, ptx.Options{SM: 80})
		require.NoError(t, err)
		require.Equal(t, c.polls, text.Asks, c.loop)
		assemble(t, text.String(), 80)
		text, err = ptx.Print(k, ptx.Options{SM: 80, Ends: true})
		require.NoError(t, err)
		require.False(t, text.Asks, "who knows that it ends does not ask")
	}
}

// TestLayout: the parameter has everything where Layout says.
func TestLayout(t *testing.T) {
	t.Parallel()
	k := compile(t, `kernel void f(device float *p, constant int4 &c, threadgroup float *s, device half *q,
  constant int *far, uint i [[thread_position_in_grid]]) {
  threadgroup float own[5];
  own[i % 5] = c[i & 3];
  s[i] = own[i % 5];
  p[i] = s[i] + q[i] + far[i];
}`)
	opt := ptx.Options{SM: 75, MaxThreads: 100, Align: []int{4, 16, 16, 2, 4}, Inline: []int{0, 16, 0, 0, 5000}}
	text, err := ptx.Print(k, opt)
	require.NoError(t, err)
	l := text.Layout
	require.Equal(t, ptx.Layout{Bytes: 208, RegionBytes: 32, MaxThreads: 128, Objects: []ptx.Object{{Align: 4},
		{Align: 16, Inline: 16, Offset: 192}, {Align: 16, Shared: true}, {Align: 2}, {Align: 4}}}, l)
	a := ptx.Arguments{Control: 0x1000, Stop: 0x100, Skips: [2]uint64{0x200, 0x300}, FaultWord: 0x400, Notice: 0x500,
		Tag: 9, Grid: [3]int{100, 3, 1}, Threadgroup: [3]int{32, 2, 1},
		Origin: [3]int{0, 1, 0}, Addresses: []uint64{0x2004, 0, 0, 0x3002, 0x4004}, Lengths: []uint64{400, 0, 100, 200, 300},
		Inline: [][]byte{nil, {1, 0, 0, 0, 2}, nil, nil, nil}}
	require.Equal(t, 32+112, l.Shared(&a))
	b, err := a.Bytes(&l)
	require.NoError(t, err)
	word := func(at int) uint32 { return binary.LittleEndian.Uint32(b[at:]) }
	words := func(at, n, step int) (all []uint32) {
		for i := range n {
			all = append(all, word(at+step*i))
		}
		return all
	}
	require.Equal(t, []uint32{0x1000, 0x100, 0x200, 0x300, 0x400, 0x500}, words(0, 6, 8))
	require.Equal(t, []uint32{9, 144, 100, 3, 1, 32, 2, 1, 4, 2, 1, 0, 1, 0}, words(48, 14, 4))
	require.Equal(t, []uint32{0x2004, 400, 0, 5, 32, 100, 0x3002, 200, 0x4004, 300}, words(112, 10, 8))
	require.Equal(t, []uint32{1, 2}, []uint32{word(192), word(196)})
	a.Addresses[0]++
	_, err = a.Bytes(&l)
	require.ErrorContains(t, err, "no multiple of 4")
	require.Equal(t, 64, ptx.Block(a.Threadgroup))
	require.Equal(t, [3]int{4, 2, 1}, ptx.Blocks(a.Grid, a.Threadgroup))
	for _, sm := range ptx.Targets() {
		opt.SM = sm
		text, err := ptx.Print(k, opt)
		require.NoError(t, err)
		assemble(t, text.String(), sm)
	}
}

func TestFaultIn(t *testing.T) {
	t.Parallel()
	b := make([]byte, ptx.ControlBytes)
	_, ok := ptx.FaultIn(b)
	require.False(t, ok)
	binary.LittleEndian.PutUint32(b[4:], 1)
	binary.LittleEndian.PutUint32(b[8:], 7)
	binary.LittleEndian.PutUint32(b[12:], 3)
	binary.LittleEndian.PutUint64(b[16:], 1<<48|40)
	f, ok := ptx.FaultIn(b)
	require.True(t, ok)
	require.Equal(t, ptx.Fault{Tag: 7, Site: 3, Pointer: 1<<48 | 40}, f)
}

// TestModule: kernels of one source go into one text.
func TestModule(t *testing.T) {
	t.Parallel()
	a := compile(t, "kernel void f(device int *p) { p[0] = 1; }")
	b := compile(t, "constant int table[3] = {1, 2, 3}; kernel void g(device int *p, uint i [[thread_position_in_grid]]) "+
		"{ p[i] = table[i % 3]; }")
	c := *a
	c.Name = "f<float>::x y"
	var texts []*ptx.Text
	for _, k := range []*kir.Kernel{a, b, &c} {
		text, err := ptx.Print(k, ptx.Options{SM: 89})
		require.NoError(t, err)
		texts = append(texts, text)
	}
	s, err := ptx.Module(texts...)
	require.NoError(t, err)
	require.Equal(t, 3, strings.Count(s, ".visible .entry"))
	assemble(t, s, 89)
	_, err = ptx.Module(texts[0], texts[0])
	require.ErrorContains(t, err, "this name")
	other, err := ptx.Print(b, ptx.Options{SM: 75})
	require.NoError(t, err)
	_, err = ptx.Module(texts[0], other)
	require.ErrorContains(t, err, "sm_75")
}

// TestAlignments: what may not be aligned is accessed in pieces, what cannot be is not asked.
func TestAlignments(t *testing.T) {
	t.Parallel()
	build := func(step int64) *kir.Kernel {
		b := kerneltest.NewBuilder("k")
		p := b.Param("p", kir.Device, kir.U8)
		i := b.Op(kir.Convert, kir.I64, b.Builtin(kir.ThreadPositionInGrid, 0))
		at := b.Op(kir.PtrAdd, kir.PtrDevice, p, b.Op(kir.Mul, kir.I64, i, b.Int(kir.I64, step)))
		b.Op(kir.Store, kir.Void, at, b.Int(kir.U64, 3))
		return b.Kernel()
	}
	for _, c := range []struct {
		step  int64
		align int
		bytes int // stores of one byte
	}{{8, 16, 0}, {12, 16, 0}, {1, 16, 8}, {8, 1, 8}, {8, 8, 0}} {
		text, err := ptx.Print(build(c.step), ptx.Options{SM: 80, Align: []int{c.align}})
		require.NoError(t, err)
		require.Equal(t, c.bytes, strings.Count(text.String(), "st.global.u8"), "%v", c)
		assemble(t, text.String(), 80)
	}
}

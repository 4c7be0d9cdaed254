package interp

import (
	"testing"
	"unsafe"

	"github.com/stretchr/testify/require"

	"github.com/mlxlua/mlxlua/metal/kerneltest"
	"github.com/mlxlua/mlxlua/metal/kir"
	"github.com/mlxlua/mlxlua/metal/launch"
)

func ptrOf(b []byte) unsafe.Pointer { return unsafe.Pointer(unsafe.SliceData(b)) }

type parts struct{ out, tid, tile, lane, sg *kir.Instr }

// halfMatrix multiplies by a matrix of which only rows 0 to 3 are set, and has lanes on one side of 16 write theirs.
func halfMatrix(side kir.Op) func(b *kerneltest.Builder, p parts) {
	return func(b *kerneltest.Builder, p parts) {
		v, half, one := b.Var("a", kir.F32), b.Int(kir.U32, 16), b.Float(1)
		b.K.Vars[v].Unset = true
		b.If(b.Op(kir.Lt, kir.Bool, p.lane, half), func() { b.Set(v, one) }, nil)
		a := b.Get(v)
		x := b.Append(&kir.Instr{Op: kir.MatMulAcc, Mode: kir.ModeExact, Type: kir.F32,
			Args: []*kir.Instr{a, a, one, one, one}})
		b.If(b.Op(side, kir.Bool, p.lane, half), func() {
			b.Store(p.out, p.tid, b.Op(kir.Convert, kir.U32, x))
		}, nil)
	}
}

// TestValidation: each kernel runs without validation; with it, the fault is found or there is none.
func TestValidation(t *testing.T) {
	t.Parallel()
	u := func(b *kerneltest.Builder, n int64) *kir.Instr { return b.Int(kir.U32, n) }
	for name, c := range map[string]struct {
		build func(b *kerneltest.Builder, p parts)
		want  string // "" if the kernel is right
	}{
		"uninitialised threadgroup memory": {func(b *kerneltest.Builder, p parts) {
			b.Store(p.out, p.tid, b.Load(kir.U32, p.tile, p.tid))
		}, "[k] read of threadgroup memory tile[0] before anything was written to it (source:7:3)"},
		"missing barrier": {func(b *kerneltest.Builder, p parts) {
			b.Store(p.tile, p.tid, p.tid)
			b.Store(p.out, p.tid, b.Load(kir.U32, p.tile, b.Op(kir.Xor, kir.U32, p.tid, u(b, 32))))
		}, "[k] read of threadgroup memory tile[32] before anything was written to it (source:7:3)"},
		"missing second barrier": {func(b *kerneltest.Builder, p parts) {
			b.Store(p.tile, p.tid, p.tid)
			b.Barrier(kir.MemThreadgroup)
			b.Store(p.out, p.tid, b.Load(kir.U32, p.tile, b.Op(kir.Xor, kir.U32, p.tid, u(b, 32))))
			b.Store(p.tile, p.tid, u(b, 77))
		}, "[k] race on threadgroup memory: read of tile[0], which another SIMD-group wrote" +
			" with no barrier between them" +
			" (source:7:3)"},
		"barrier that orders other memory": {func(b *kerneltest.Builder, p parts) {
			b.Store(p.tile, p.tid, p.tid)
			b.Barrier(kir.MemThreadgroup)
			b.Store(p.tile, b.Op(kir.Xor, kir.U32, p.tid, u(b, 32)), u(b, 5))
			b.Barrier(kir.MemDevice)
			b.Store(p.out, p.tid, b.Load(kir.U32, p.tile, p.tid))
		}, "[k] race on threadgroup memory: read of tile[0], which another SIMD-group wrote" +
			" with no barrier between them" +
			" (source:7:3)"},
		"right barriers": {func(b *kerneltest.Builder, p parts) {
			b.Store(p.tile, p.tid, p.tid)
			b.Barrier(kir.MemThreadgroup)
			v := b.Load(kir.U32, p.tile, b.Op(kir.Xor, kir.U32, p.tid, u(b, 32)))
			b.Barrier(kir.MemThreadgroup)
			b.Store(p.tile, p.tid, v)
		}, ""},
		"a matrix of which the needed rows are set": {halfMatrix(kir.Lt), ""},
		"a matrix of which the needed rows are unset": {halfMatrix(kir.Ge),
			"[k] read of the variable a before anything was assigned to it (source:7:3)"},
		"all write the same": {func(b *kerneltest.Builder, p parts) {
			b.Store(p.tile, u(b, 0), u(b, 3))
			b.Store(p.out, u(b, 0), u(b, 4))
		}, ""},
		"device race": {func(b *kerneltest.Builder, p parts) {
			b.Store(p.out, u(b, 0), p.tid)
		}, "[k] race on device memory: write of out[0], which another thread of the SIMD-group wrote" +
			" with no barrier between them (source:7:3)"},
		"device race of SIMD-groups": {func(b *kerneltest.Builder, p parts) {
			b.Store(p.out, u(b, 0), p.sg)
		}, "[k] race on device memory: write of out[0], which another SIMD-group wrote" +
			" with no barrier between them (source:7:3)"},
		"device race between threadgroups": {func(b *kerneltest.Builder, p parts) {
			b.If(b.Op(kir.Eq, kir.Bool, p.lane, u(b, 0)), func() {
				b.Store(p.out, b.Op(kir.And, kir.U32, p.sg, u(b, 1)), b.Op(kir.Add, kir.U32, p.tid, u(b, 1)))
			}, nil)
		}, "[k] race on device memory: write of out[0], which another threadgroup wrote" +
			" with no barrier between them (source:7:3)"},
		"lanes in step": {func(b *kerneltest.Builder, p parts) {
			b.Store(p.tile, p.tid, p.tid)
			b.Append(&kir.Instr{Op: kir.SimdBarrier, Mode: kir.MemThreadgroup})
			b.Store(p.out, p.tid, b.Load(kir.U32, p.tile, b.Op(kir.Xor, kir.U32, p.tid, u(b, 1))))
		}, ""},
		"barrier in divergent flow": {func(b *kerneltest.Builder, p parts) {
			b.If(b.Op(kir.Lt, kir.Bool, p.lane, u(b, 5)), func() { b.Barrier(kir.MemNone) }, nil)
		}, "[k] barrier is not reached by all threads: 27 of the 32 threads of" +
			" SIMD-group 0 are elsewhere (source:7:3)"},
		"two barriers": {func(b *kerneltest.Builder, p parts) {
			b.If(b.Op(kir.Eq, kir.Bool, p.sg, u(b, 0)), func() { b.Barrier(kir.MemNone) }, func() {
				b.Pos.Line = 9
				b.Barrier(kir.MemNone)
			})
		}, "[k] SIMD-group 1 waits at this barrier while SIMD-group 0 waits at another, line 7 (source:9:3)"},
		"barrier after return": {func(b *kerneltest.Builder, p parts) {
			b.If(b.Op(kir.Lt, kir.Bool, p.lane, u(b, 5)), func() { b.Op(kir.Return, kir.Void) }, nil)
			b.Barrier(kir.MemNone)
			b.Store(p.out, p.tid, p.tid)
		}, ""},
		"atomics initialise": {func(b *kerneltest.Builder, p parts) {
			b.If(b.Op(kir.Eq, kir.Bool, p.lane, u(b, 0)), func() {
				b.Op(kir.AtomicStore, kir.Void, p.tile, u(b, 0))
			}, nil)
			b.Barrier(kir.MemThreadgroup)
			b.Append(&kir.Instr{Op: kir.AtomicRMW, Mode: kir.ModeAdd, Type: kir.U32, Args: []*kir.Instr{p.tile,
				u(b, 1)}})
		}, ""},
		"atomic on uninitialised memory": {func(b *kerneltest.Builder, p parts) {
			b.Append(&kir.Instr{Op: kir.AtomicRMW, Mode: kir.ModeAdd, Type: kir.U32, Args: []*kir.Instr{p.tile,
				u(b, 1)}})
		}, "[k] atomic access of threadgroup memory tile[0] before anything was written to it (source:7:3)"},
	} {
		t.Run(name, func(t *testing.T) {
			b, out, tid := kernel1("k")
			p := parts{out: out, tid: tid, tile: b.Region("tile", kir.Threadgroup, kir.U32, 128),
				lane: b.Builtin(kir.ThreadIndexInSimdgroup, 0), sg: b.Builtin(kir.SimdgroupIndexInThreadgroup, 0)}
			c.build(b, p)
			exe := prepare(t, b)
			l := launch.Launch{Grid: [3]int{128, 1, 1}, Threadgroup: [3]int{64, 1, 1}, Buffers: [][]byte{make([]byte,
				128*4)}}
			require.NoError(t, kerneltest.Run(exe.NewRun, l, 1))
			l.Validate = true
			l.Buffers[0] = make([]byte, 128*4)
			err := kerneltest.Run(exe.NewRun, l, 1)
			if c.want == "" {
				require.NoError(t, err)
			} else {
				require.EqualError(t, err, c.want)
			}
		})
	}
}

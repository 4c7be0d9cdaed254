package interp

import (
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/mlxlua/mlxlua/metal/kir"
)

// TestRaces: what Metal's memory model orders is not reported, and what it does not order is, although lanes go in step
// and SIMD-groups one after another here.
func TestRaces(t *testing.T) {
	type parts struct{ out, tid, tile, flags, bools, lane, sg, group *kir.Instr }
	u := func(b *kir.Builder, n int64) *kir.Instr { return b.Int(kir.U32, n) }
	bit := func(b *kir.Builder, x *kir.Instr, n int64) *kir.Instr { return b.Op(kir.Xor, kir.U32, x, u(b, n)) }
	is := func(b *kir.Builder, x *kir.Instr, n int64) *kir.Instr { return b.Op(kir.Eq, kir.Bool, x, u(b, n)) }
	at := func(b *kir.Builder, p *kir.Instr, n int64) *kir.Instr {
		return b.Append(&kir.Instr{Op: kir.PtrAdd, Type: p.Type, Args: []*kir.Instr{p, b.Int(kir.I64, 0)},
			Imm: uint64(4 * n)})
	}
	add := func(b *kir.Builder, p, v *kir.Instr) *kir.Instr {
		return b.Append(&kir.Instr{Op: kir.AtomicRMW, Mode: kir.ModeAdd, Type: kir.U32, Args: []*kir.Instr{p, v}})
	}
	simdBarrier := func(b *kir.Builder, flags kir.Mode) { b.Append(&kir.Instr{Op: kir.SimdBarrier, Mode: flags}) }
	// fill sets tile to tid, with a barrier after it.
	fill := func(b *kir.Builder, p parts) {
		b.Store(p.tile, p.tid, p.tid)
		b.Barrier(kir.MemThreadgroup)
		b.Pos.Line = 9
	}
	race := func(what string) string { return "[k] race on " + what + " with no barrier between them (source:9:3)" }
	const thread, simdgroup, threadgroup = "another thread of the SIMD-group", "another SIMD-group", "another threadgroup"
	for name, c := range map[string]struct {
		build func(b *kir.Builder, p parts)
		want  string // "" if the kernel is right
	}{
		"lanes write to one place": {func(b *kir.Builder, p parts) {
			fill(b, p)
			b.Store(p.tile, b.Op(kir.And, kir.U32, p.tid, u(b, 62)), p.tid)
		}, race("threadgroup memory: write of tile[0], which " + thread + " wrote")},
		"lanes write the same to one place": {func(b *kir.Builder, p parts) {
			fill(b, p)
			b.Store(p.tile, u(b, 0), u(b, 5))
			b.Store(p.bools, u(b, 0), b.Op(kir.Eq, kir.Bool, p.tid, p.tid))
		}, ""},
		"lanes write different bools": {func(b *kir.Builder, p parts) {
			fill(b, p)
			b.Store(p.bools, u(b, 0), is(b, p.lane, 3))
		}, race("threadgroup memory: write of bools[0], which " + thread + " wrote")},
		"a lane writes, another reads": {func(b *kir.Builder, p parts) {
			fill(b, p)
			b.Store(p.tile, p.tid, u(b, 77))
			b.Store(p.out, p.tid, b.Load(kir.U32, p.tile, bit(b, p.tid, 1)))
		}, race("threadgroup memory: read of tile[1], which " + thread + " wrote")},
		"a lane reads, another writes": {func(b *kir.Builder, p parts) {
			fill(b, p)
			b.Store(p.out, p.tid, b.Load(kir.U32, p.tile, bit(b, p.tid, 1)))
			b.Store(p.tile, p.tid, u(b, 77))
		}, race("threadgroup memory: write of tile[0], which " + thread + " read")},
		"both lanes read, one writes": {func(b *kir.Builder, p parts) {
			fill(b, p)
			v := b.Load(kir.U32, p.tile, u(b, 31))
			b.If(is(b, p.tid, 31), func() { b.Store(p.tile, u(b, 31), b.Op(kir.Add, kir.U32, v, v)) }, nil)
		}, race("threadgroup memory: write of tile[31], which " + thread + " read")},
		"branches of a condition": {func(b *kir.Builder, p parts) {
			fill(b, p)
			b.If(is(b, p.lane, 2), func() { b.Store(p.tile, u(b, 3), u(b, 8)) }, func() {
				b.If(is(b, p.tid, 3), func() { b.Store(p.out, p.tid, b.Load(kir.U32, p.tile, p.tid)) }, nil)
			})
		}, race("threadgroup memory: read of tile[3], which " + thread + " wrote")},
		"a simdgroup_barrier between": {func(b *kir.Builder, p parts) {
			fill(b, p)
			b.Store(p.tile, p.tid, u(b, 77))
			simdBarrier(b, kir.MemThreadgroup)
			b.Store(p.out, p.tid, b.Load(kir.U32, p.tile, bit(b, p.tid, 1)))
			simdBarrier(b, kir.MemThreadgroup|kir.MemDevice)
			b.Store(p.tile, bit(b, p.tid, 2), u(b, 78))
		}, ""},
		"a simdgroup_barrier orders one SIMD-group": {func(b *kir.Builder, p parts) {
			fill(b, p)
			b.Store(p.tile, p.tid, u(b, 77))
			simdBarrier(b, kir.MemThreadgroup)
			b.Store(p.out, p.tid, b.Load(kir.U32, p.tile, bit(b, p.tid, 32)))
		}, race("threadgroup memory: write of tile[32], which " + simdgroup + " read")},
		"a simdgroup_barrier for other memory": {func(b *kir.Builder, p parts) {
			fill(b, p)
			b.Store(p.tile, p.tid, u(b, 77))
			simdBarrier(b, kir.MemDevice)
			simdBarrier(b, kir.MemNone)
			b.Store(p.out, p.tid, b.Load(kir.U32, p.tile, bit(b, p.tid, 1)))
		}, race("threadgroup memory: read of tile[1], which " + thread + " wrote")},
		"a shuffle between": {func(b *kir.Builder, p parts) {
			fill(b, p)
			b.Store(p.out, p.tid, p.tid)
			v := b.Append(&kir.Instr{Op: kir.Shuffle, Type: kir.U32, Args: []*kir.Instr{p.tid, bit(b, p.lane, 1)}, Imm: 32})
			b.Store(p.tile, p.tid, b.Op(kir.Add, kir.U32, v, b.Load(kir.U32, p.out, bit(b, p.tid, 1))))
		}, race("device memory: read of out[1], which " + thread + " wrote")},
		"a lane and itself": {func(b *kir.Builder, p parts) {
			b.Store(p.out, p.tid, u(b, 3))
			b.Store(p.out, p.tid, b.Op(kir.Add, kir.U32, b.Load(kir.U32, p.out, p.tid), p.tid))
		}, ""},
		"two threadgroups read, one writes": {func(b *kir.Builder, p parts) {
			b.Pos.Line = 9
			v := b.Load(kir.U32, p.out, u(b, 0))
			b.Barrier(kir.MemDevice)
			b.If(is(b, p.tid, 127), func() { b.Store(p.out, u(b, 0), b.Op(kir.Add, kir.U32, v, p.tid)) }, nil)
		}, race("device memory: write of out[0], which " + threadgroup + " read")},

		"atomic beside an ordinary write": {func(b *kir.Builder, p parts) {
			b.Pos.Line = 9
			add(b, p.out, u(b, 1))
			b.If(is(b, p.tid, 40), func() { b.Store(p.out, u(b, 0), p.tid) }, nil)
		}, race("device memory: write of out[0], which " + thread + " touched by an atomic operation")},
		"ordinary write beside an atomic": {func(b *kir.Builder, p parts) {
			b.Pos.Line = 9
			b.If(is(b, p.tid, 0), func() { b.Store(p.out, u(b, 0), u(b, 0)) }, nil)
			add(b, p.out, u(b, 1))
		}, race("device memory: atomic access of out[0], which " + thread + " wrote")},
		"all write zero, then all add": {func(b *kir.Builder, p parts) {
			b.Pos.Line = 9
			b.Store(p.flags, u(b, 0), u(b, 0))
			simdBarrier(b, kir.MemThreadgroup)
			add(b, p.flags, u(b, 1))
		}, race("threadgroup memory: write of flags[0], which " + simdgroup + " touched by an atomic operation")},
		"ordinary read of what others add to": {func(b *kir.Builder, p parts) {
			b.Pos.Line = 9
			add(b, p.out, u(b, 1))
			b.Store(p.out, b.Op(kir.Add, kir.U32, p.tid, u(b, 1)), b.Load(kir.U32, p.out, u(b, 0)))
		}, race("device memory: read of out[0], which " + thread + " touched by an atomic operation")},
		"ordinary and atomic reads": {func(b *kir.Builder, p parts) {
			fill(b, p)
			b.Store(p.flags, u(b, 0), u(b, 6))
			b.Barrier(kir.MemThreadgroup)
			v := b.Append(&kir.Instr{Op: kir.AtomicLoad, Type: kir.U32, Args: []*kir.Instr{p.flags}})
			b.Store(p.out, p.tid, b.Op(kir.Add, kir.U32, v, b.Load(kir.U32, p.flags, u(b, 0))))
		}, ""},
		"a histogram": {func(b *kir.Builder, p parts) {
			b.If(is(b, p.lane, 0), func() { b.Store(p.flags, p.sg, u(b, 0)) }, nil)
			b.Barrier(kir.MemThreadgroup)
			add(b, at(b, p.flags, 1), u(b, 2))
			b.Barrier(kir.MemThreadgroup)
			b.Store(p.out, p.tid, b.Load(kir.U32, p.flags, u(b, 1)))
		}, ""},
		"races beside atomics": {func(b *kir.Builder, p parts) {
			b.Pos.Line = 9
			add(b, p.out, u(b, 1))
			b.Store(p.out, b.Op(kir.Add, kir.U32, p.lane, u(b, 1)), p.group)
		}, race("device memory: write of out[1], which " + threadgroup + " wrote")},
		"the last threadgroup sums up": {func(b *kir.Builder, p parts) {
			b.Store(p.out, b.Op(kir.Add, kir.U32, p.tid, u(b, 2)), p.tid)
			b.Barrier(kir.MemDevice)
			b.If(is(b, p.lane, 0), func() { add(b, p.out, u(b, 1)) }, nil)
			b.Barrier(kir.MemDevice)
			b.If(is(b, p.tid, 127), func() { b.Store(p.out, u(b, 1), b.Load(kir.U32, p.out, u(b, 2))) }, nil)
		}, ""},
	} {
		t.Run(name, func(t *testing.T) {
			b, out, tid := kernel1("k")
			c.build(b, parts{out: out, tid: tid, tile: b.Region("tile", kir.Threadgroup, kir.U32, 128),
				flags: b.Region("flags", kir.Threadgroup, kir.U32, 4), bools: b.Region("bools", kir.Threadgroup, kir.Bool, 4),
				lane: b.Builtin(kir.ThreadIndexInSimdgroup, 0), sg: b.Builtin(kir.SimdgroupIndexInThreadgroup, 0),
				group: b.Builtin(kir.ThreadgroupPositionInGrid, 0)})
			err := prepare(t, b).Run(Launch{Grid: [3]int{128, 1, 1}, Threadgroup: [3]int{64, 1, 1},
				Buffers: [][]byte{make([]byte, 130*4)}, Workers: 1, Validate: true})
			if c.want == "" {
				require.NoError(t, err)
			} else {
				require.EqualError(t, err, c.want)
			}
		})
	}
}

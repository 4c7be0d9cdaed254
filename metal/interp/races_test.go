package interp

import (
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/mlxlua/mlxlua/metal/kerneltest"
	"github.com/mlxlua/mlxlua/metal/kir"
	"github.com/mlxlua/mlxlua/metal/launch"
)

// raceParts is what the kernels of race cases are made of.
type raceParts struct {
	*kerneltest.Builder
	out, tid, tile, flags, bools, lane, sg, group *kir.Instr
}

func (b raceParts) u(n int64) *kir.Instr { return b.Int(kir.U32, n) }

func (b raceParts) xor(x *kir.Instr, n int64) *kir.Instr { return b.Op(kir.Xor, kir.U32, x, b.u(n)) }

func (b raceParts) plus(x, y *kir.Instr) *kir.Instr { return b.Op(kir.Add, kir.U32, x, y) }

func (b raceParts) when(x *kir.Instr, is int64, then func()) {
	b.If(b.Op(kir.Eq, kir.Bool, x, b.u(is)), then, nil)
}

func (b raceParts) second(p *kir.Instr) *kir.Instr {
	return b.Append(&kir.Instr{Op: kir.PtrAdd, Type: p.Type, Args: []*kir.Instr{p, b.Int(kir.I64, 0)}, Imm: 4})
}

func (b raceParts) add(p, v *kir.Instr) {
	b.Append(&kir.Instr{Op: kir.AtomicRMW, Mode: kir.ModeAdd, Type: kir.U32, Args: []*kir.Instr{p, v}})
}

func (b raceParts) simdBarrier(flags kir.Mode) {
	b.Append(&kir.Instr{Op: kir.SimdBarrier, Mode: flags})
}

// fill sets tile to tid, with a barrier after it.
func (b raceParts) fill() {
	b.Store(b.tile, b.tid, b.tid)
	b.Barrier(kir.MemThreadgroup)
	b.Pos.Line = 9
}

// raceOn is the message of a race in line 9.
func raceOn(what string) string {
	return "[k] race on " + what + " with no barrier between them (source:9:3)"
}

const (
	otherThread      = "another thread of the SIMD-group"
	otherSIMDGroup   = "another SIMD-group"
	otherThreadgroup = "another threadgroup"
)

// raceCase is a kernel and what validation says of it, "" if it is right.
type raceCase struct {
	build func(b raceParts)
	want  string
}

var raceCases = map[string]raceCase{
	"lanes write to one place": {func(b raceParts) {
		b.fill()
		b.Store(b.tile, b.Op(kir.And, kir.U32, b.tid, b.u(62)), b.tid)
	}, raceOn("threadgroup memory: write of tile[0], which " + otherThread + " wrote")},
	"lanes write the same to one place": {func(b raceParts) {
		b.fill()
		b.Store(b.tile, b.u(0), b.u(5))
		b.Store(b.bools, b.u(0), b.Op(kir.Eq, kir.Bool, b.tid, b.tid))
	}, ""},
	"lanes write different bools": {func(b raceParts) {
		b.fill()
		b.Store(b.bools, b.u(0), b.Op(kir.Eq, kir.Bool, b.lane, b.u(3)))
	}, raceOn("threadgroup memory: write of bools[0], which " + otherThread + " wrote")},
	"a lane writes, another reads": {func(b raceParts) {
		b.fill()
		b.Store(b.tile, b.tid, b.u(77))
		b.Store(b.out, b.tid, b.Load(kir.U32, b.tile, b.xor(b.tid, 1)))
	}, raceOn("threadgroup memory: read of tile[1], which " + otherThread + " wrote")},
	"a lane reads, another writes": {func(b raceParts) {
		b.fill()
		b.Store(b.out, b.tid, b.Load(kir.U32, b.tile, b.xor(b.tid, 1)))
		b.Store(b.tile, b.tid, b.u(77))
	}, raceOn("threadgroup memory: write of tile[0], which " + otherThread + " read")},
	"both lanes read, one writes": {func(b raceParts) {
		b.fill()
		v := b.Load(kir.U32, b.tile, b.u(31))
		b.when(b.tid, 31, func() { b.Store(b.tile, b.u(31), b.plus(v, v)) })
	}, raceOn("threadgroup memory: write of tile[31], which " + otherThread + " read")},
	"branches of a condition": {func(b raceParts) {
		b.fill()
		b.If(b.Op(kir.Eq, kir.Bool, b.lane, b.u(2)), func() { b.Store(b.tile, b.u(3), b.u(8)) }, func() {
			b.when(b.tid, 3, func() { b.Store(b.out, b.tid, b.Load(kir.U32, b.tile, b.tid)) })
		})
	}, raceOn("threadgroup memory: read of tile[3], which " + otherThread + " wrote")},
	"a simdgroup_barrier between": {func(b raceParts) {
		b.fill()
		b.Store(b.tile, b.tid, b.u(77))
		b.simdBarrier(kir.MemThreadgroup)
		b.Store(b.out, b.tid, b.Load(kir.U32, b.tile, b.xor(b.tid, 1)))
		b.simdBarrier(kir.MemThreadgroup | kir.MemDevice)
		b.Store(b.tile, b.xor(b.tid, 2), b.u(78))
	}, ""},
	"a simdgroup_barrier orders one SIMD-group": {func(b raceParts) {
		b.fill()
		b.Store(b.tile, b.tid, b.u(77))
		b.simdBarrier(kir.MemThreadgroup)
		b.Store(b.out, b.tid, b.Load(kir.U32, b.tile, b.xor(b.tid, 32)))
	}, raceOn("threadgroup memory: write of tile[32], which " + otherSIMDGroup + " read")},
	"a simdgroup_barrier for other memory": {func(b raceParts) {
		b.fill()
		b.Store(b.tile, b.tid, b.u(77))
		b.simdBarrier(kir.MemDevice)
		b.simdBarrier(kir.MemNone)
		b.Store(b.out, b.tid, b.Load(kir.U32, b.tile, b.xor(b.tid, 1)))
	}, raceOn("threadgroup memory: read of tile[1], which " + otherThread + " wrote")},
	"a shuffle between": {func(b raceParts) {
		b.fill()
		b.Store(b.out, b.tid, b.tid)
		v := b.Append(&kir.Instr{Op: kir.Shuffle, Type: kir.U32, Args: []*kir.Instr{b.tid, b.xor(b.lane, 1)}, Imm: 32})
		b.Store(b.tile, b.tid, b.plus(v, b.Load(kir.U32, b.out, b.xor(b.tid, 1))))
	}, raceOn("device memory: read of out[1], which " + otherThread + " wrote")},
	"a lane and itself": {func(b raceParts) {
		b.Store(b.out, b.tid, b.u(3))
		b.Store(b.out, b.tid, b.plus(b.Load(kir.U32, b.out, b.tid), b.tid))
	}, ""},
	"two threadgroups read, one writes": {func(b raceParts) {
		b.Pos.Line = 9
		v := b.Load(kir.U32, b.out, b.u(0))
		b.Barrier(kir.MemDevice)
		b.when(b.tid, 127, func() { b.Store(b.out, b.u(0), b.plus(v, b.tid)) })
	}, raceOn("device memory: write of out[0], which " + otherThreadgroup + " read")},
}

var atomicRaceCases = map[string]raceCase{
	"atomic beside an ordinary write": {func(b raceParts) {
		b.Pos.Line = 9
		b.add(b.out, b.u(1))
		b.when(b.tid, 40, func() { b.Store(b.out, b.u(0), b.tid) })
	}, raceOn("device memory: write of out[0], which " + otherThread + " touched by an atomic operation")},
	"ordinary write beside an atomic": {func(b raceParts) {
		b.Pos.Line = 9
		b.when(b.tid, 0, func() { b.Store(b.out, b.u(0), b.u(0)) })
		b.add(b.out, b.u(1))
	}, raceOn("device memory: atomic access of out[0], which " + otherThread + " wrote")},
	"all write zero, then all add": {func(b raceParts) {
		b.Pos.Line = 9
		b.Store(b.flags, b.u(0), b.u(0))
		b.simdBarrier(kir.MemThreadgroup)
		b.add(b.flags, b.u(1))
	}, raceOn("threadgroup memory: write of flags[0], which " + otherSIMDGroup + " touched by an atomic operation")},
	"ordinary read of what others add to": {func(b raceParts) {
		b.Pos.Line = 9
		b.add(b.out, b.u(1))
		b.Store(b.out, b.plus(b.tid, b.u(1)), b.Load(kir.U32, b.out, b.u(0)))
	}, raceOn("device memory: read of out[0], which " + otherThread + " touched by an atomic operation")},
	"ordinary and atomic reads": {func(b raceParts) {
		b.fill()
		b.Store(b.flags, b.u(0), b.u(6))
		b.Barrier(kir.MemThreadgroup)
		v := b.Append(&kir.Instr{Op: kir.AtomicLoad, Type: kir.U32, Args: []*kir.Instr{b.flags}})
		b.Store(b.out, b.tid, b.plus(v, b.Load(kir.U32, b.flags, b.u(0))))
	}, ""},
	"a histogram": {func(b raceParts) {
		b.when(b.lane, 0, func() { b.Store(b.flags, b.sg, b.u(0)) })
		b.Barrier(kir.MemThreadgroup)
		b.add(b.second(b.flags), b.u(2))
		b.Barrier(kir.MemThreadgroup)
		b.Store(b.out, b.tid, b.Load(kir.U32, b.flags, b.u(1)))
	}, ""},
	"races beside atomics": {func(b raceParts) {
		b.Pos.Line = 9
		b.add(b.out, b.u(1))
		b.Store(b.out, b.plus(b.lane, b.u(1)), b.group)
	}, raceOn("device memory: write of out[1], which " + otherThreadgroup + " wrote")},
	"the last threadgroup sums up": {func(b raceParts) {
		b.Store(b.out, b.plus(b.tid, b.u(2)), b.tid)
		b.Barrier(kir.MemDevice)
		b.when(b.lane, 0, func() { b.add(b.out, b.u(1)) })
		b.Barrier(kir.MemDevice)
		b.when(b.tid, 127, func() { b.Store(b.out, b.u(1), b.Load(kir.U32, b.out, b.u(2))) })
	}, ""},
}

// TestRaces: what Metal's memory model orders is not reported, and what it does not order is, although lanes go in step
// and SIMD-groups one after another here.
func TestRaces(t *testing.T) {
	t.Parallel()
	for _, cases := range []map[string]raceCase{raceCases, atomicRaceCases} {
		for name, c := range cases {
			t.Run(name, func(t *testing.T) {
				b, out, tid := kernel1("k")
				c.build(raceParts{Builder: b, out: out, tid: tid, tile: b.Region("tile", kir.Threadgroup, kir.U32, 128),
					flags: b.Region("flags", kir.Threadgroup, kir.U32, 4), bools: b.Region("bools", kir.Threadgroup, kir.Bool, 4),
					lane: b.Builtin(kir.ThreadIndexInSimdgroup, 0), sg: b.Builtin(kir.SimdgroupIndexInThreadgroup, 0),
					group: b.Builtin(kir.ThreadgroupPositionInGrid, 0)})
				err := kerneltest.Run(prepare(t, b).NewRun,
					launch.Launch{Grid: [3]int{128, 1, 1}, Threadgroup: [3]int{64, 1, 1},
						Buffers: [][]byte{make([]byte, 130*4)}, Validate: true}, 1)
				if c.want == "" {
					require.NoError(t, err)
				} else {
					require.EqualError(t, err, c.want)
				}
			})
		}
	}
}

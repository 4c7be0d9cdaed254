package interp

import (
	"encoding/binary"
	"math"
	"sync/atomic"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/mlxlua/mlxlua/metal/kerneltest"
	"github.com/mlxlua/mlxlua/metal/kir"
	"github.com/mlxlua/mlxlua/metal/kir/opt"
	"github.com/mlxlua/mlxlua/metal/launch"
)

var arithTypes = []kir.Type{
	kir.Bool, kir.I8, kir.U8, kir.I16, kir.U16, kir.I32, kir.U32, kir.I64, kir.U64, kir.F16, kir.BF16, kir.F32, kir.F64,
}

func u32s(v ...uint32) []byte {
	b := make([]byte, 4*len(v))
	for i, x := range v {
		binary.LittleEndian.PutUint32(b[4*i:], x)
	}
	return b
}

func toU32(b []byte) []uint32 {
	v := make([]uint32, len(b)/4)
	for i := range v {
		v[i] = binary.LittleEndian.Uint32(b[4*i:])
	}
	return v
}

func prepare(t testing.TB, b *kerneltest.Builder) *Executable {
	t.Helper()
	p, err := Prepare(b.Kernel(), []string{"source"})
	require.NoError(t, err, "%s", b.K)
	return p
}

func run1(t testing.TB, b *kerneltest.Builder, grid, tg int, buffers ...[]byte) {
	t.Helper()
	require.NoError(t, kerneltest.Run(prepare(t, b).NewRun,
		launch.Launch{Grid: [3]int{grid, 1, 1}, Threadgroup: [3]int{tg, 1, 1},
			Buffers: buffers}, 0))
}

// kernel1 starts a kernel with one U32 output and the thread's position.
func kernel1(name string) (b *kerneltest.Builder, out, tid *kir.Instr) {
	b = kerneltest.NewBuilder(name)
	b.Pos = kir.Pos{Line: 7, Col: 3}
	return b, b.Param("out", kir.Device, kir.U32), b.Builtin(kir.ThreadPositionInGrid, 0)
}

func TestDivergentLoopsWithBreakAndContinue(t *testing.T) {
	t.Parallel()
	// for (i = 0;; i++) { if (i > tid) break; if (i % 3 == 0) continue; sum += i; }
	b, out, tid := kernel1("loops")
	i, sum := b.Var("i", kir.U32), b.Var("sum", kir.U32)
	one := b.Int(kir.U32, 1)
	b.Loop(func(l *kir.Instr) {
		n := b.Get(i)
		b.Set(i, b.Op(kir.Add, kir.U32, n, one))
		b.If(b.Op(kir.Gt, kir.Bool, n, tid), func() { b.Break(l) }, nil)
		b.If(b.Op(kir.Eq, kir.Bool, b.Op(kir.Rem, kir.U32, n, b.Int(kir.U32, 3)), b.Int(kir.U32, 0)),
			func() { b.Continue(l) }, nil)
		b.Set(sum, b.Op(kir.Add, kir.U32, b.Get(sum), n))
	})
	b.Store(out, tid, b.Get(sum))
	res := make([]byte, 4*100)
	run1(t, b, 100, 64, res)
	for tid, got := range toU32(res) {
		want := 0
		for i := 0; i <= tid; i++ {
			if i%3 != 0 {
				want += i
			}
		}
		require.Equal(t, uint32(want), got, "thread %d", tid)
	}
}

func TestBarriersInLoopsAndEarlyReturn(t *testing.T) {
	t.Parallel()
	// A tree sum over threadgroup memory; threads past n return before the first barrier.
	const n, tg = 200, 128
	b, out, tid := kernel1("tree")
	tile := b.Region("tile", kir.Threadgroup, kir.U32, tg)
	l := b.Builtin(kir.ThreadIndexInThreadgroup, 0)
	b.Store(tile, l, b.Op(kir.Add, kir.U32, tid, b.Int(kir.U32, 1)))
	b.Barrier(kir.MemThreadgroup)
	b.If(b.Op(kir.Ge, kir.Bool, l, b.Int(kir.U32, tg/2+3)), func() { b.Op(kir.Return, kir.Void) }, nil)
	s := b.Var("s", kir.U32)
	b.Set(s, b.Int(kir.U32, tg/2))
	size := b.Builtin(kir.ThreadsPerThreadgroup, 0)
	b.While(func() *kir.Instr { return b.Op(kir.Ne, kir.Bool, b.Get(s), b.Int(kir.U32, 0)) }, func(*kir.Instr) {
		other := b.Op(kir.Add, kir.U32, l, b.Get(s))
		ok := b.Op(kir.And, kir.Bool, b.Op(kir.Lt, kir.Bool, l, b.Get(s)), b.Op(kir.Lt, kir.Bool, other, size))
		b.If(ok, func() {
			b.Store(tile, l, b.Op(kir.Add, kir.U32, b.Load(kir.U32, tile, l), b.Load(kir.U32, tile, other)))
		}, nil)
		b.Barrier(kir.MemThreadgroup)
		b.Set(s, b.Op(kir.Shr, kir.U32, b.Get(s), b.Int(kir.U32, 1)))
	})
	b.If(b.Op(kir.Eq, kir.Bool, l, b.Int(kir.U32, 0)), func() {
		b.Store(out, b.Builtin(kir.ThreadgroupPositionInGrid, 0), b.Load(kir.U32, tile, b.Int(kir.U32, 0)))
	}, nil)
	res := make([]byte, 8)
	p := prepare(t, b)
	for _, validate := range []bool{false, true} {
		clear(res)
		require.NoError(t, kerneltest.Run(p.NewRun, launch.Launch{Grid: [3]int{n, 1, 1}, Threadgroup: [3]int{tg, 1, 1},
			Buffers: [][]byte{res}, Validate: validate}, 0))
		require.Equal(t, []uint32{tg * (tg + 1) / 2, n*(n+1)/2 - tg*(tg+1)/2}, toU32(res))
	}
}

func TestConvergentOpsInDivergentFlow(t *testing.T) {
	t.Parallel()
	b, out, tid := kernel1("divergent")
	lane := b.Builtin(kir.ThreadIndexInSimdgroup, 0)
	store := func(slot int, v *kir.Instr) {
		b.Store(out, b.Op(kir.Add, kir.U32, b.Op(kir.Mul, kir.U32, tid, b.Int(kir.U32, 8)), b.Int(kir.U32,
			int64(slot))), v)
	}
	b.If(b.Op(kir.Lt, kir.Bool, lane, b.Int(kir.U32, 5)), func() {
		store(0, b.Lane(kir.Reduce, kir.ModeAdd, kir.U32, tid))
		store(1, b.Lane(kir.ScanExclusive, kir.ModeAdd, kir.U32, tid))
		odd := b.Op(kir.Ne, kir.Bool, b.Op(kir.And, kir.U32, lane, b.Int(kir.U32, 1)), b.Int(kir.U32, 0))
		store(2, b.Op(kir.Convert, kir.U32, b.Lane(kir.Ballot, 0, kir.U64, odd)))
		store(3, b.Lane(kir.Shuffle, 0, kir.U32, tid, b.Int(kir.U32, 6))) // an inactive lane
		store(4, b.Lane(kir.Shuffle, 0, kir.U32, tid, b.Op(kir.Xor, kir.U32, lane, b.Int(kir.U32, 1))))
	}, func() {
		store(0, b.Lane(kir.BroadcastFirst, 0, kir.U32, tid))
		store(1, b.Lane(kir.Reduce, kir.ModeMin, kir.U32, tid))
		all := b.Lane(kir.Reduce, kir.ModeAnd, kir.Bool, b.Op(kir.Ge, kir.Bool, lane, b.Int(kir.U32, 5)))
		store(2, b.Op(kir.Convert, kir.U32, all))
	})
	res := make([]byte, 40*8*4)
	run1(t, b, 40, 40, res) // SIMD-groups of 32 and 8
	got := toU32(res)
	row := func(tid int) []uint32 { return got[tid*8 : tid*8+5] }
	require.Equal(t, []uint32{10, 0, 10, 0, 1}, row(0))
	require.Equal(t, []uint32{10, 3, 10, 0, 2}, row(3))
	require.Equal(t, []uint32{10, 6, 10, 0, 0}, row(4)) // its partner, lane 5, is elsewhere
	require.Equal(t, []uint32{5, 5, 1, 0, 0}, row(31))
	require.Equal(t, []uint32{170, 0, 10, 0, 33}, row(32))
	require.Equal(t, []uint32{37, 37, 1, 0, 0}, row(39))
}

// TestGroupOpsAgainstTheTable runs every Reduce and scan on every type, in part of a SIMD-group and in quads.
func TestGroupOpsAgainstTheTable(t *testing.T) {
	t.Parallel()
	const active = 0xdffff37b
	for _, op := range []kir.Op{kir.Reduce, kir.ScanInclusive, kir.ScanExclusive} {
		for mode := kir.ModeAdd; mode <= kir.ModeXor; mode++ {
			for _, ty := range arithTypes {
				for _, size := range []int{32, 4} {
					var v [lanes]uint64
					in := make([]byte, lanes*8)
					for i := range v {
						v[i] = uint64(i*37+11) & ty.Mask()
						if ty.IsFloat() {
							v[i] = kir.FromFloat64(ty, float64(i)*0.37-3)
						}
						binary.LittleEndian.PutUint64(in[8*i:], v[i])
					}
					ok := false
					if op == kir.Reduce {
						ok = kir.ReduceLanes(mode, ty, size, active, &v)
					} else if mode == kir.ModeAdd || mode == kir.ModeMul {
						ok = kir.ScanLanes(op, mode, ty, size, active, &v)
					}
					if !ok || ty == kir.Bool && mode < kir.ModeAnd {
						continue
					}
					b := kerneltest.NewBuilder("group")
					src := b.Param("in", kir.Constant, kir.U64)
					out := b.Param("out", kir.Device, kir.U64)
					lane := b.Builtin(kir.ThreadIndexInSimdgroup, 0)
					x := b.Op(kir.Load, ty, b.Index(src, lane, 8))
					on := b.Op(kir.And, kir.U32, b.Op(kir.Shr, kir.U32, b.Int(kir.U32, active), lane),
						b.Int(kir.U32, 1))
					b.If(b.Op(kir.Convert, kir.Bool, on), func() {
						r := b.Append(&kir.Instr{Op: op, Mode: mode, Type: ty, Imm: uint64(size),
							Args: []*kir.Instr{x}})
						b.Op(kir.Store, kir.Void, b.Index(out, lane, 8), r)
					}, nil)
					res := make([]byte, lanes*8)
					run1(t, b, 32, 32, in, res)
					for i := range v {
						require.Equal(t, v[i], binary.LittleEndian.Uint64(res[8*i:]), "%s %s %s of %d, lane %d",
							op, mode, ty, size, i)
					}
				}
			}
		}
	}
}

// TestMatMulAgainstTheTable multiplies matrices of which some lanes are missing.
func TestMatMulAgainstTheTable(t *testing.T) {
	t.Parallel()
	for _, active := range []uint32{allLanes, 0xdffff37b} {
		for _, ty := range []kir.Type{kir.F32, kir.F64} {
			for _, mode := range []kir.Mode{kir.ModeExact, kir.ModeFree} {
				var v [5][lanes]uint64
				in := make([]byte, 5*lanes*8)
				for n := range v {
					for i := range lanes {
						bits := kir.FromFloat64(ty, float64((i*37+n*11)%23)*0.37-3)
						binary.LittleEndian.PutUint64(in[8*(n*lanes+i):], bits)
						if v[n][i] = bits; active>>i&1 == 0 && n < 4 {
							v[n][i] = 0
						}
					}
				}
				b := kerneltest.NewBuilder("matmul")
				src, out := b.Param("in", kir.Constant, kir.U64), b.Param("out", kir.Device, kir.U64)
				lane := b.Builtin(kir.ThreadIndexInSimdgroup, 0)
				var args []*kir.Instr
				for n := range v {
					at := b.Op(kir.Add, kir.U32, lane, b.Int(kir.U32, int64(n*lanes)))
					args = append(args, b.Op(kir.Load, ty, b.Index(src, at, 8)))
				}
				on := b.Op(kir.And, kir.U32, b.Op(kir.Shr, kir.U32, b.Int(kir.U32, int64(active)), lane), b.Int(kir.U32, 1))
				b.If(b.Op(kir.Convert, kir.Bool, on), func() {
					for e := range 2 {
						r := b.Append(&kir.Instr{Op: kir.MatMulAcc, Mode: mode, Type: ty, Imm: uint64(e), Args: args})
						at := b.Op(kir.Add, kir.U32, lane, b.Int(kir.U32, int64(e*lanes)))
						b.Op(kir.Store, kir.Void, b.Index(out, at, 8), r)
					}
				}, nil)
				for _, k := range []*kir.Kernel{b.Kernel(), opt.Run(b.Kernel(), opt.Launch{})} {
					exe, err := Prepare(k, nil)
					require.NoError(t, err)
					res := make([]byte, 2*lanes*8)
					require.NoError(t, kerneltest.Run(exe.NewRun, launch.Launch{Grid: [3]int{lanes, 1, 1},
						Threadgroup: [3]int{lanes, 1, 1}, Buffers: [][]byte{in, res}}, 0))
					for e := range 2 {
						want := v[4]
						kir.MatMulLanes(ty, e, &[2][lanes]uint64{v[0], v[1]}, &[2][lanes]uint64{v[2], v[3]}, &want)
						for i := range want {
							if active>>i&1 == 0 {
								want[i] = 0
							}
							require.Equal(t, want[i], binary.LittleEndian.Uint64(res[8*(e*lanes+i):]), "%s, lane %d", k, i)
						}
					}
				}
			}
		}
	}
}

func TestBuiltinsInEdgeThreadgroups(t *testing.T) {
	t.Parallel()
	modes := []kir.Mode{}
	for m := kir.ThreadPositionInGrid; m <= kir.GridSize; m++ {
		modes = append(modes, m)
	}
	b := kerneltest.NewBuilder("builtins")
	out := b.Param("out", kir.Device, kir.U32)
	grid, tg := [3]int{7, 5, 3}, [3]int{4, 4, 2}
	pos := func(c int) *kir.Instr { return b.Builtin(kir.ThreadPositionInGrid, c) }
	flat := b.Op(kir.Add, kir.U32, b.Op(kir.Mul, kir.U32, b.Op(kir.Add, kir.U32, b.Op(kir.Mul, kir.U32, pos(2),
		b.Int(kir.U32, 5)), pos(1)), b.Int(kir.U32, 7)), pos(0))
	slot := 0
	for _, m := range modes {
		for c := range m.Components() {
			i := b.Op(kir.Add, kir.U32, b.Op(kir.Mul, kir.U32, flat, b.Int(kir.U32, 64)), b.Int(kir.U32, int64(slot)))
			b.Store(out, i, b.Builtin(m, c))
			slot++
		}
	}
	res := make([]byte, 7*5*3*64*4)
	require.NoError(t, kerneltest.Run(prepare(t, b).NewRun,
		launch.Launch{Grid: grid, Threadgroup: tg, Buffers: [][]byte{res}}, 0))
	got := toU32(res)
	for z := range 3 {
		for y := range 5 {
			for x := range 7 {
				p, g, s := [3]int{x, y, z}, [3]int{}, [3]int{}
				var l [3]int
				for c := range 3 {
					g[c], l[c] = p[c]/tg[c], p[c]%tg[c]
					s[c] = min(tg[c], grid[c]-g[c]*tg[c])
				}
				idx := (l[2]*s[1]+l[1])*s[0] + l[0]
				n := s[0] * s[1] * s[2]
				var want []uint32
				for _, v := range [][]int{p[:], l[:], g[:], s[:], tg[:], {2, 2, 2}, grid[:], {idx}, {idx % 32},
					{idx / 32},
					{(n + 31) / 32}, {1}, {32}, {idx % 4}, {idx / 4}, {(n + 3) / 4}, {0, 0, 0}, grid[:]} {
					for _, e := range v {
						want = append(want, uint32(e))
					}
				}
				at := ((z*5+y)*7 + x) * 64
				require.Equal(t, want, got[at:at+len(want)], "%v", p)
			}
		}
	}
}

func TestAtomicsAcrossWorkers(t *testing.T) {
	t.Parallel()
	const n = 20000
	b := kerneltest.NewBuilder("atomics")
	out := b.Param("out", kir.Device, kir.U32)
	tid := b.Builtin(kir.ThreadPositionInGrid, 0)
	at := func(i int64) *kir.Instr { return b.Index(out, b.Int(kir.U32, i), 4) }
	rmw := func(i int64, m kir.Mode, v *kir.Instr) *kir.Instr {
		return b.Append(&kir.Instr{Op: kir.AtomicRMW, Mode: m, Type: v.Type, Args: []*kir.Instr{at(i), v}})
	}
	rmw(0, kir.ModeAdd, tid)
	rmw(1, kir.ModeMax, tid)
	rmw(2, kir.ModeMin, b.Op(kir.Sub, kir.I32, b.Int(kir.I32, 0), b.Op(kir.Bitcast, kir.I32, tid)))
	rmw(3, kir.ModeAdd, b.Float(1))
	rmw(4, kir.ModeXor, tid)
	rmw(5, kir.ModeOr, tid)
	// A counter by compare and exchange: the loop gives up turns.
	done := b.Var("done", kir.Bool)
	b.While(func() *kir.Instr { return b.Op(kir.Not, kir.Bool, b.Get(done)) }, func(*kir.Instr) {
		old := b.Op(kir.AtomicLoad, kir.U32, at(6))
		seen := b.Op(kir.AtomicCAS, kir.U32, at(6), old, b.Op(kir.Add, kir.U32, old, b.Int(kir.U32, 2)))
		b.Set(done, b.Op(kir.Eq, kir.Bool, seen, old))
	})
	// Each thread draws its own ticket.
	ticket := rmw(7, kir.ModeAdd, b.Int(kir.U32, 1))
	b.Store(out, b.Op(kir.Add, kir.U32, ticket, b.Int(kir.U32, 8)), b.Int(kir.U32, 1))
	res := make([]byte, (8+n)*4)
	require.NoError(t, kerneltest.Run(prepare(t, b).NewRun,
		launch.Launch{Grid: [3]int{n, 1, 1}, Threadgroup: [3]int{100, 1, 1},
			Buffers: [][]byte{res}}, 4))
	got := toU32(res)
	var xor, or, sum uint32
	for i := uint32(0); i < n; i++ {
		xor, or, sum = xor^i, or|i, sum+i
	}
	minus := int32(-(n - 1))
	require.Equal(t, []uint32{sum, n - 1, uint32(minus), math.Float32bits(n), xor, or, 2 * n, n}, got[:8])
	for i, v := range got[8:] {
		require.Equal(t, uint32(1), v, "ticket %d", i)
	}
}

// TestGridWideBarrier has all threadgroups wait for each other, far more of them than workers.
func TestGridWideBarrier(t *testing.T) {
	t.Parallel()
	const groups = 300
	b := kerneltest.NewBuilder("gridbarrier")
	count := b.Param("count", kir.Device, kir.U32)
	out := b.Param("out", kir.Device, kir.U32)
	tid := b.Builtin(kir.ThreadPositionInGrid, 0)
	first := b.Op(kir.Eq, kir.Bool, b.Builtin(kir.ThreadIndexInThreadgroup, 0), b.Int(kir.U32, 0))
	b.Store(out, tid, tid)
	b.Barrier(kir.MemDevice)
	b.If(first, func() {
		b.Append(&kir.Instr{Op: kir.AtomicRMW, Mode: kir.ModeAdd, Type: kir.U32, Args: []*kir.Instr{count,
			b.Int(kir.U32, 1)}})
		b.While(func() *kir.Instr {
			return b.Op(kir.Lt, kir.Bool, b.Op(kir.AtomicLoad, kir.U32, count), b.Builtin(kir.ThreadgroupsPerGrid, 0))
		}, func(*kir.Instr) {})
	}, nil)
	b.Barrier(kir.MemDevice)
	n := b.Builtin(kir.ThreadsPerGrid, 0)
	mirror := b.Op(kir.Sub, kir.U32, b.Op(kir.Sub, kir.U32, n, b.Int(kir.U32, 1)), tid)
	v := b.Load(kir.U32, out, mirror)
	b.Store(out, b.Op(kir.Add, kir.U32, n, tid), v)
	p := prepare(t, b)
	for _, workers := range []int{1, 3} {
		res := make([]byte, 2*groups*40*4)
		require.NoError(t, kerneltest.Run(p.NewRun,
			launch.Launch{Grid: [3]int{groups * 40, 1, 1}, Threadgroup: [3]int{40, 1, 1},
				Buffers: [][]byte{u32s(0), res}}, workers))
		for i, v := range toU32(res)[groups*40:] {
			require.Equal(t, uint32(groups*40-1-i), v)
		}
	}
}

func TestSpinBetweenSimdgroupsOfAThreadgroup(t *testing.T) {
	t.Parallel()
	// SIMD-group 0 waits for a flag that SIMD-group 1 sets: it runs first, so it must let the other run.
	b, out, tid := kernel1("spin")
	flag := b.Region("flag", kir.Threadgroup, kir.U32, 1)
	sg := b.Builtin(kir.SimdgroupIndexInThreadgroup, 0)
	b.If(b.Op(kir.Eq, kir.Bool, sg, b.Int(kir.U32, 0)), func() {
		b.While(func() *kir.Instr {
			return b.Op(kir.Eq, kir.Bool, b.Op(kir.AtomicLoad, kir.U32, flag), b.Int(kir.U32, 0))
		}, func(*kir.Instr) {})
	}, func() { b.Op(kir.AtomicStore, kir.Void, flag, b.Int(kir.U32, 9)) })
	b.Store(out, tid, b.Op(kir.AtomicLoad, kir.U32, flag))
	res := make([]byte, 64*4)
	run1(t, b, 64, 64, res)
	require.Equal(t, uint32(9), toU32(res)[5])
}

func TestEndlessLoopsAreInterrupted(t *testing.T) {
	t.Parallel()
	for _, withAtomics := range []bool{false, true} {
		b, out, _ := kernel1("endless")
		b.Loop(func(*kir.Instr) {
			one := b.Int(kir.U32, 1)
			if withAtomics {
				b.Append(&kir.Instr{Op: kir.AtomicRMW, Mode: kir.ModeAdd, Type: kir.U32, Args: []*kir.Instr{out,
					one}})
			} else {
				b.Op(kir.Store, kir.Void, out, one)
			}
		})
		p := prepare(t, b)
		var stop atomic.Bool
		l := launch.Launch{Grid: [3]int{1000, 1, 1}, Threadgroup: [3]int{64, 1, 1}, Buffers: [][]byte{u32s(0)},
			Interrupt: &stop}
		stop.Store(true)
		require.ErrorIs(t, kerneltest.Run(p.NewRun, l, 2), launch.ErrInterrupted)
		stop.Store(false)
		ended := make(chan error)
		go func() { ended <- kerneltest.Run(p.NewRun, l, 2) }()
		// It has begun when the kernel has written, and cannot end by itself.
		word := l.Buffers[0]
		for loadFlag(word) == 0 {
		}
		stop.Store(true)
		require.ErrorIs(t, <-ended, launch.ErrInterrupted)
	}
}

//go:norace
func loadFlag(b []byte) uint32 { return atomic.LoadUint32((*uint32)(ptrOf(b))) }

func TestFaults(t *testing.T) {
	t.Parallel()
	type build func(b *kerneltest.Builder, out, tid *kir.Instr)
	for name, c := range map[string]struct {
		build build
		want  string
		index int64
	}{
		"read past the end": {func(b *kerneltest.Builder, out, tid *kir.Instr) {
			b.Load(kir.U32, out, b.Op(kir.Add, kir.U32, tid, b.Int(kir.U32, 60)))
		}, `[k] read of out[64] is out of range: out has 64 elements (source:7:3)`, 64},
		"write below": {func(b *kerneltest.Builder, out, tid *kir.Instr) {
			b.Store(out, b.Op(kir.Sub, kir.I64, b.Op(kir.Convert, kir.I64, tid), b.Int(kir.I64, 1)), tid)
		}, `[k] write of out[-1] is out of range: out has 64 elements (source:7:3)`, -1},
		"half outside": {func(b *kerneltest.Builder, out, tid *kir.Instr) {
			b.Op(kir.Load, kir.U64, b.Index(out, b.Op(kir.Add, kir.U32, tid, b.Int(kir.U32, 59)), 4))
		}, `[k] read of 8 bytes at out[63] is out of range: out has 64 elements (source:7:3)`, 63},
		"threadgroup": {func(b *kerneltest.Builder, out, tid *kir.Instr) {
			b.Store(b.Region("tile", kir.Threadgroup, kir.F32, 3), tid, b.Float(1))
		}, `[k] write of tile[3] is out of range: tile has 3 elements (source:7:3)`, 3},
		"thread": {func(b *kerneltest.Builder, out, tid *kir.Instr) {
			b.Store(b.Region("acc", kir.Thread, kir.F32, 2), tid, b.Float(1))
		}, `[k] write of acc[2] is out of range: acc has 2 elements (source:7:3)`, 2},
		"null": {func(b *kerneltest.Builder, out, tid *kir.Instr) {
			b.Op(kir.Load, kir.U32, b.Const(kir.PtrDevice, 0))
		}, `[k] read through a null pointer (source:7:3)`, 0},
		"no object": {func(b *kerneltest.Builder, out, tid *kir.Instr) {
			b.Op(kir.Store, kir.Void, b.Const(kir.PtrDevice, kir.PtrParam(9)), tid)
		}, `[k] write through a pointer to no object: 0xa000000000000 (source:7:3)`, 0},
		"space": {func(b *kerneltest.Builder, out, tid *kir.Instr) {
			b.Op(kir.Load, kir.U32, b.Op(kir.Bitcast, kir.PtrThread, b.Op(kir.Bitcast, kir.U64, out)))
		}, `[k] read of device memory through a pointer to thread memory: out (source:7:3)`, 0},
		"misaligned": {func(b *kerneltest.Builder, out, tid *kir.Instr) {
			p := b.Op(kir.PtrAdd, kir.PtrDevice, out, b.Int(kir.I64, 6))
			b.Op(kir.AtomicLoad, kir.U32, p)
		}, `[k] atomic access is not aligned: byte 6 of out (source:7:3)`, 1},
		"atomic outside": {func(b *kerneltest.Builder, out, tid *kir.Instr) {
			b.Op(kir.AtomicStore, kir.Void, b.Index(out, b.Int(kir.U32, 64), 4), tid)
		}, `[k] atomic access of out[64] is out of range: out has 64 elements (source:7:3)`, 64},
		"bool": {func(b *kerneltest.Builder, out, tid *kir.Instr) {
			b.Op(kir.Load, kir.Bool, b.Index(out, b.Int(kir.U32, 256), 1))
		}, `[k] read of out[64] is out of range: out has 64 elements (source:7:3)`, 64},
	} {
		t.Run(name, func(t *testing.T) {
			b, out, tid := kernel1("k")
			c.build(b, out, tid)
			err := kerneltest.Run(prepare(t, b).NewRun, launch.Launch{Grid: [3]int{8, 1, 1}, Threadgroup: [3]int{8, 1, 1},
				Buffers: [][]byte{make([]byte, 256)}}, 0)
			var f *launch.Fault
			require.ErrorAs(t, err, &f)
			require.Equal(t, c.want, f.Error())
			require.Equal(t, c.index, f.Index)
		})
	}
}

func TestTheFirstThreadgroupsFaultIsReported(t *testing.T) {
	t.Parallel()
	b, out, tid := kernel1("k")
	b.Store(out, tid, tid)
	p := prepare(t, b)
	for range 20 {
		err := kerneltest.Run(p.NewRun,
			launch.Launch{Grid: [3]int{640, 1, 1}, Threadgroup: [3]int{64, 1, 1}, Buffers: [][]byte{nil}}, 1)
		var f *launch.Fault
		require.ErrorAs(t, err, &f)
		require.Equal(t, int64(0), f.Index)
		require.Equal(t, int64(0), f.Len)
		require.Equal(t, "out", f.Object)
	}
}

func TestLaunchErrors(t *testing.T) {
	t.Parallel()
	b, out, tid := kernel1("k")
	b.K.Params = append(b.K.Params, kir.Param{Name: "dyn", Space: kir.Threadgroup, Elem: kir.U32, ElemSize: 4})
	b.K.Params[0].MinBytes = 8
	b.Store(out, tid, tid)
	p := prepare(t, b)
	good := launch.Launch{Grid: [3]int{2, 1, 1}, Threadgroup: [3]int{1, 1, 1}, Buffers: [][]byte{make([]byte, 8), nil},
		ThreadgroupBytes: []int{0, 16}}
	require.NoError(t, kerneltest.Run(p.NewRun, good, 0))
	short := [][]byte{make([]byte, 4), nil}
	large := [3]int{64, 32, 1}
	for want, change := range map[string]func(*launch.Launch){
		"[k] grid is out of range: [-1 1 1]":                            func(l *launch.Launch) { l.Grid[0] = -1 },
		"[k] threadgroup is out of range: [0 1 1]":                      func(l *launch.Launch) { l.Threadgroup[0] = 0 },
		"[k] threadgroup [64 32 1] has 2048 threads, the limit is 1024": func(l *launch.Launch) { l.Threadgroup = large },
		"[k] 1 buffers bound, the kernel has 2 parameters":              func(l *launch.Launch) { l.Buffers = l.Buffers[:1] },
		`[k] buffer "out" has 4 bytes, the kernel needs 8`:              func(l *launch.Launch) { l.Buffers = short },
		"[k] Fixed has 1 entries, the kernel has 2 parameters":          func(l *launch.Launch) { l.Fixed = make([]bool, 1) },
		`[k] no valid length given for threadgroup memory "dyn"`:        func(l *launch.Launch) { l.ThreadgroupBytes = nil },
	} {
		l := good
		change(&l)
		require.EqualError(t, kerneltest.Run(p.NewRun, l, 0), want)
	}
	empty := good
	empty.Grid[1] = 0
	require.NoError(t, kerneltest.Run(p.NewRun, empty, 0))
}

func TestThreadRegionsAndDynamicThreadgroupMemory(t *testing.T) {
	t.Parallel()
	// Each thread writes its own array at its own index, and shares through dynamic memory.
	b, out, tid := kernel1("k")
	dyn := b.Append(&kir.Instr{Op: kir.ParamAddr, Type: kir.PtrThreadgroup, Imm: 1})
	b.K.Params = append(b.K.Params, kir.Param{Name: "dyn", Space: kir.Threadgroup, Elem: kir.U32, ElemSize: 4})
	tab := b.Append(&kir.Instr{Op: kir.RegionAddr, Type: kir.PtrConstant, Imm: 0})
	b.K.Regions = append(b.K.Regions, kir.Region{Name: "tab", Space: kir.Constant, Size: 8, Align: 4,
		Elem: kir.U32, Data: u32s(100, 200)})
	arr := b.Region("arr", kir.Thread, kir.U32, 4)
	i := b.Op(kir.And, kir.U32, tid, b.Int(kir.U32, 3))
	b.Store(arr, i, b.Op(kir.Add, kir.U32, tid, b.Load(kir.U32, tab, b.Op(kir.And, kir.U32, tid, b.Int(kir.U32, 1)))))
	sum := b.Load(kir.U32, arr, b.Int(kir.U32, 0))
	for j := 1; j < 4; j++ {
		sum = b.Op(kir.Add, kir.U32, sum, b.Load(kir.U32, arr, b.Int(kir.U32, int64(j))))
	}
	b.Store(dyn, tid, sum)
	b.Barrier(kir.MemThreadgroup)
	b.Store(out, tid, b.Load(kir.U32, dyn, b.Op(kir.Xor, kir.U32, tid, b.Int(kir.U32, 33))))
	res := make([]byte, 64*4)
	l := launch.Launch{Grid: [3]int{64, 1, 1}, Threadgroup: [3]int{64, 1, 1}, Buffers: [][]byte{res, nil},
		ThreadgroupBytes: []int{0, 256}}
	p := prepare(t, b)
	require.NoError(t, kerneltest.Run(p.NewRun, l, 0))
	for i, v := range toU32(res) {
		j := i ^ 33
		require.Equal(t, uint32(j+100+100*(j&1)), v)
	}
	l.Validate = true // the sum reads what was never written
	require.EqualError(t, kerneltest.Run(p.NewRun,
		l, 0), "[k] read of thread memory arr[0] before anything was written to it (source:7:3)")
}

func TestPrepareRefusesBadKernels(t *testing.T) {
	t.Parallel()
	b, _, tid := kernel1("k")
	b.Op(kir.Add, kir.F32, tid, tid)
	_, err := Prepare(b.Kernel(), nil)
	require.ErrorContains(t, err, `[kir] kernel "k"`)
	b, _, _ = kernel1("big")
	for range 3 {
		b.Region("r", kir.Thread, kir.U8, 1<<25)
	}
	_, err = Prepare(b.Kernel(), nil)
	require.ErrorContains(t, err, "[big] the kernel's own memory is too large")
}

// BenchmarkLanes times one lane of one instruction in a loop of arithmetic and loads.
func BenchmarkLanes(bm *testing.B) {
	b := kerneltest.NewBuilder("bench")
	in := b.Param("in", kir.Constant, kir.F32)
	out := b.Param("out", kir.Device, kir.F32)
	tid := b.Builtin(kir.ThreadPositionInGrid, 0)
	i, acc := b.Var("i", kir.U32), b.Var("acc", kir.F32)
	const rounds = 64
	b.While(func() *kir.Instr { return b.Op(kir.Lt, kir.Bool, b.Get(i), b.Int(kir.U32, rounds)) }, func(*kir.Instr) {
		x := b.Load(kir.F32, in, b.Get(i))
		b.Set(acc, b.Op(kir.Fma, kir.F32, x, x, b.Get(acc)))
		b.Set(i, b.Op(kir.Add, kir.U32, b.Get(i), b.Int(kir.U32, 1)))
	})
	b.Store(out, tid, b.Get(acc))
	p := prepare(bm, b)
	const n = 1 << 14
	l := launch.Launch{Grid: [3]int{n, 1, 1}, Threadgroup: [3]int{256, 1, 1}, Buffers: [][]byte{make([]byte, rounds*4),
		make([]byte, n*4)}}
	for bm.Loop() {
		if err := kerneltest.Run(p.NewRun, l, 1); err != nil {
			bm.Fatal(err)
		}
	}
	bm.ReportMetric(float64(bm.Elapsed().Nanoseconds())/float64(bm.N)/n/(rounds*10), "ns/lane-op")
}

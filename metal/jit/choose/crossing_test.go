//go:build (amd64 && (linux || darwin || windows)) || (arm64 && (linux || darwin))

package choose

import (
	"encoding/binary"
	"fmt"
	"math/bits"
	"math/rand/v2"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/mlxlua/mlxlua/metal/jit/code"
	"github.com/mlxlua/mlxlua/metal/jit/lanes"
	"github.com/mlxlua/mlxlua/metal/kir"
)

// crossBench makes code of a convergent operation on operands of all lanes.
func crossBench(t *testing.T, target *code.Target, i *kir.Instr, all bool, types []kir.Type, kind lanes.Kind,
	f func(b *bench, args []val) val) *bench {
	return newBench(t, target, kir.Lanes, func(b *bench) {
		s := b.s
		r := s.e.reg(code.GPR)
		s.e.loadReg(4, r, inArena(benchMask))
		s.crossing.on.exec, s.crossing.on.all = b.v.masks().fromBits(r), all
		b.info.Patterns[0].Kind = kind
		args := make([]val, len(types))
		for n, ta := range types {
			args[n].typ = ta
			for p := range s.e.parts {
				args[n].setUnit(p, b.arg(ta, n, p))
			}
		}
		out := f(b, args)
		out.typ = i.Type
		if out.vec[0] == 0 {
			if i.Type == kir.Bool {
				out.vec[0] = b.v.masks().fromBool(out.base)
			} else {
				out.vec[0] = s.e.scalarToSplat(out.base, i.Type)
			}
			out.splat = true
		}
		for p := range s.e.parts {
			b.result(i.Type, p, out.unitOf(p))
		}
	})
}

// activeSets are sets of active lanes.
func activeSets(r *rand.Rand) []uint32 {
	m := []uint32{1, 1 << 31, 1 << 16, 0xffff, 0xffff0000, 0xffffffff, 0x7fffffff, 0xfffffffe, 0x11111111, 0x88888888}
	for range 20 {
		if v := r.Uint32() & r.Uint32(); v != 0 {
			m = append(m, v)
		}
	}
	return m
}

// checkCross runs a bench on random lanes and compares the active lanes with want.
func checkCross(t *testing.T, b *bench, i *kir.Instr, all bool, types []kir.Type, same1 bool,
	want func(active uint32, args [][kir.Lanes]uint64) [kir.Lanes]uint64) {
	r := rand.New(rand.NewPCG(7, 8))
	for _, active := range activeSets(r) {
		if all {
			active = 1<<32 - 1
		}
		args := make([][kir.Lanes]uint64, len(types))
		for n, ta := range types {
			e := edges(ta)
			for l := range args[n] {
				args[n][l] = random(r, ta)
				if r.IntN(8) == 0 {
					args[n][l] = e[r.IntN(len(e))]
				}
				if n == 1 && same1 {
					args[n][l] = args[n][0]
				}
				b.set(ta, n, l, args[n][l])
			}
		}
		binary.LittleEndian.PutUint32(b.mem[benchMask:], active)
		b.run()
		w := want(active, args)
		for l := range w {
			if active>>l&1 != 0 && !sameLane(i.Type, b.get(i.Type, l), w[l]) {
				require.Failf(t, fmt.Sprint(i.Op, i.Mode, i.Type, i.Imm), "active %#x of %#x, lane %d: %#x, want %#x", active,
					args, l, b.get(i.Type, l), w[l])
			}
		}
	}
}

var crossModes = []kir.Mode{kir.ModeAdd, kir.ModeMul, kir.ModeMin, kir.ModeMax, kir.ModeAnd, kir.ModeOr, kir.ModeXor}

func TestReduceAndScan(t *testing.T) {
	types := append([]kir.Type{kir.Bool}, numberTypes...)
	benches(t, func(t *testing.T, target *code.Target) {
		for _, op := range []kir.Op{kir.Reduce, kir.ScanInclusive, kir.ScanExclusive} {
			for _, mode := range crossModes {
				if op != kir.Reduce && mode > kir.ModeMul {
					continue
				}
				for _, ty := range types {
					if _, ok := kir.Identity(mode, ty); !ok {
						continue
					}
					for _, group := range []uint64{32, 4} {
						for _, all := range []bool{false, true} {
							i := &kir.Instr{Op: op, Mode: mode, Type: ty, Imm: group}
							b := crossBench(t, target, i, all, []kir.Type{ty}, lanes.Varying, func(b *bench, a []val) val {
								if op == kir.Reduce {
									return b.s.crossing.reduce(i, a[0])
								}
								return b.s.crossing.scan(i, a[0])
							})
							checkCross(t, b, i, all, []kir.Type{ty}, false,
								func(active uint32, args [][kir.Lanes]uint64) [kir.Lanes]uint64 {
									v := args[0]
									if op == kir.Reduce {
										require.True(t, kir.ReduceLanes(mode, ty, int(group), active, &v))
									} else {
										require.True(t, kir.ScanLanes(op, mode, ty, int(group), active, &v))
									}
									return v
								})
						}
					}
				}
			}
		}
	})
}

func TestShuffle(t *testing.T) {
	types := append([]kir.Type{kir.Bool}, numberTypes...)
	benches(t, func(t *testing.T, target *code.Target) {
		for _, ty := range types {
			for _, group := range []int{32, 4} {
				for _, kind := range []lanes.Kind{lanes.Varying, lanes.Uniform} {
					i := &kir.Instr{Op: kir.Shuffle, Type: ty, Imm: uint64(group)}
					both := []kir.Type{ty, kir.U32}
					b := crossBench(t, target, i, false, both, kind, func(b *bench, a []val) val {
						return b.s.crossing.shuffle(i, a[0], a[1])
					})
					checkCross(t, b, i, false, both, kind == lanes.Uniform,
						func(active uint32, args [][kir.Lanes]uint64) (w [kir.Lanes]uint64) {
							for l := range w {
								from := l/group*group + int(args[1][l]%uint64(group))
								if active>>from&1 != 0 {
									w[l] = args[0][from]
								}
							}
							return w
						})
				}
			}
		}
	})
}

func TestBallotAndBroadcastFirst(t *testing.T) {
	types := append([]kir.Type{kir.Bool}, numberTypes...)
	benches(t, func(t *testing.T, target *code.Target) {
		i := &kir.Instr{Op: kir.Ballot, Type: kir.U64, Imm: 32}
		b := crossBench(t, target, i, false, []kir.Type{kir.Bool}, lanes.Uniform, func(b *bench, a []val) val {
			return b.s.crossing.ballot(i, a[0])
		})
		checkCross(t, b, i, false, []kir.Type{kir.Bool}, false,
			func(active uint32, args [][kir.Lanes]uint64) (w [kir.Lanes]uint64) {
				var m uint64
				for l, v := range args[0] {
					m |= v << l & uint64(active)
				}
				for l := range w {
					w[l] = m
				}
				return w
			})
		for _, ty := range types {
			for _, group := range []int{32, 4} {
				i := &kir.Instr{Op: kir.BroadcastFirst, Type: ty, Imm: uint64(group)}
				b := crossBench(t, target, i, false, []kir.Type{ty}, lanes.Varying, func(b *bench, a []val) val {
					return b.s.crossing.broadcastFirst(i, a[0])
				})
				checkCross(t, b, i, false, []kir.Type{ty}, false,
					func(active uint32, args [][kir.Lanes]uint64) (w [kir.Lanes]uint64) {
						for l := range w {
							base := l / group * group
							mine := active >> base & uint32(1<<group-1)
							w[l] = args[0][base+bits.TrailingZeros32(mine)%group]
						}
						return w
					})
			}
		}
	})
}

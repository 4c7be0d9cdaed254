//go:build (amd64 && (linux || darwin || windows)) || (arm64 && (linux || darwin))

package choose

import (
	"encoding/binary"
	"fmt"
	"math"
	"math/rand/v2"
	"testing"
	"unsafe"

	"github.com/mlxlua/mlxlua/metal/jit/native"

	"github.com/stretchr/testify/require"

	"github.com/mlxlua/mlxlua/metal/jit/arena"
	"github.com/mlxlua/mlxlua/metal/jit/code"
	"github.com/mlxlua/mlxlua/metal/jit/lanes"
	"github.com/mlxlua/mlxlua/metal/kir"
)

// These tests run each operation's machine code, and nothing else, on edge values and random bits, and compare with
// kir.Eval.

// Where things are in a bench's arena.
const (
	benchArgs   = 4096  // operand n at benchArgs + n*benchStep
	benchStep   = 512   // 32 lanes of 64 bits, or of 32 bits
	benchResult = 8192  // as an operand
	benchMask   = 12288 // uint32: which lanes are active
	benchFrame  = 16384
	benchBytes  = 1 << 16
)

// bench runs the code of one operation.
type bench struct {
	s    *selector
	v    vector
	info *lanes.Info
	mem  []byte
	code *native.Code
}

var benchMemory []byte

// newBench makes code of what body selects. group is the number of lanes that run together, 0 for one register of
// 32-bit ones.
func newBench(tb testing.TB, target *code.Target, group int, body func(b *bench)) *bench {
	tb.Helper()
	if group == 0 {
		group = int(target.VecBytes) / 4
	}
	lay, info := &arena.Layout{Scratch: 1024}, &lanes.Info{Patterns: []lanes.Pattern{{Kind: lanes.Varying}}}
	s := newSelector(newEmitter(code.NewFunc(), target, group, "bench", lay.Scratch), &kir.Kernel{}, info, lay,
		lanes.Geometry{}, false)
	b := &bench{s: s, v: vector{e: s.e, w: s.e.w}, info: info}
	s.e.emit(code.Inst{Op: code.Lea, W: 8, Dst: regFrame, Mem: inArena(benchFrame)})
	body(b)
	require.NoError(tb, s.e.err)
	s.e.emit(code.Inst{Op: code.VZeroUpper})
	s.e.emit(code.Inst{Op: code.Ret})
	c, _, err := target.Finish(s.e.f, code.Placing{Frame: regFrame, Slots: arena.FrameBody})
	require.NoError(tb, err)
	b.code, err = native.New(c.Bytes)
	require.NoError(tb, err)
	if benchMemory == nil {
		benchMemory, err = native.Map(benchBytes)
		require.NoError(tb, err)
	}
	b.mem = benchMemory
	return b
}

func (b *bench) run() { b.code.Call(0, unsafe.Pointer(unsafe.SliceData(b.mem))) }

// arg loads part p of operand n.
func (b *bench) arg(t kir.Type, n, p int) unit {
	s := b.s
	x := b.v
	load := func(off int) code.R {
		r := s.e.reg(code.Vec)
		s.e.emit(code.Inst{Op: code.VMovUPS, W: s.e.w, Dst: r, Mem: inArena(int32(benchArgs + n*benchStep + off))})
		return r
	}
	w := int(s.e.w)
	switch {
	case wide(t):
		return unit{r: [2]code.R{load(2 * p * w), load((2*p + 1) * w)}}
	case t == kir.Bool:
		r := load(p * w)
		if !s.e.avx512() {
			return unit{r: [2]code.R{x.op2(code.VPCmpGtD, r, x.load(0, false))}}
		}
		k := s.e.reg(code.Mask)
		s.e.emit(code.Inst{Op: code.VPTestMD, W: s.e.w, Dst: k, A: r, B: r})
		return unit{r: [2]code.R{k}}
	}
	return unit{r: [2]code.R{load(p * w)}}
}

// result stores part p of a result.
func (b *bench) result(t kir.Type, p int, u unit) {
	s := b.s
	store := func(off int, r code.R) {
		s.e.emit(code.Inst{Op: code.VMovUPS, W: s.e.w, Mem: inArena(int32(benchResult + off)), A: r})
	}
	w := int(s.e.w)
	switch {
	case wide(t):
		store(2*p*w, u.r[0])
		store((2*p+1)*w, u.r[1])
	case t == kir.Bool:
		store(p*w, b.v.comparisons().chooseRegister(u.r[0], konst(1), konst(0), false))
	default:
		store(p*w, u.r[0])
	}
}

// set writes lane l of an operand.
func (b *bench) set(t kir.Type, n, l int, bits uint64) {
	v, size := laneBits(t, bits&t.Mask())
	at := benchArgs + n*benchStep + l*size
	if size == 8 {
		binary.LittleEndian.PutUint64(b.mem[at:], v)
	} else {
		binary.LittleEndian.PutUint32(b.mem[at:], uint32(v))
	}
}

// get reads lane l of the result.
func (b *bench) get(t kir.Type, l int) uint64 {
	if wide(t) {
		return binary.LittleEndian.Uint64(b.mem[benchResult+l*8:])
	}
	return uint64(binary.LittleEndian.Uint32(b.mem[benchResult+l*4:]))
}

// sameLane reports whether a lane holds what it should: any NaN will do for a NaN, but BF16's must be one in its
// upper half.
func sameLane(t kir.Type, got, want uint64) bool {
	if t.IsFloat() && isNaNBits(t, want) {
		if t == kir.F64 {
			return isNaN(got, true)
		}
		return isNaN(got, false) && (t != kir.BF16 || got&0xffff == 0)
	}
	w, _ := laneBits(t, want)
	return got == w
}

func isNaNBits(t kir.Type, bits uint64) bool {
	f := kir.ToFloat64(t, bits)
	return f != f
}

var numberTypes = []kir.Type{kir.I8, kir.U8, kir.I16, kir.U16, kir.I32, kir.U32, kir.I64, kir.U64, kir.F16, kir.BF16,
	kir.F32, kir.F64}

// edges are the values of a type that operations may stumble over.
func edges(t kir.Type) []uint64 {
	var e []uint64
	switch {
	case t == kir.Bool:
		return []uint64{0, 1}
	case t.IsFloat():
		for _, f := range []float64{0, 1, 1.5, 2.5, 0.5, 3, 7, 100.25, 127.9, 128, 255.5, 32768, 65504, 65535, 65536, 1e10,
			1 << 31, 1<<31 - 1, 1 << 32, 1<<32 - 1, 1 << 63, 1 << 62, 1 << 53, 1.8446744073709552e19, 1e30,
			3e38, 1e300, 1e-7, 1e-40, 1e-310, math.Inf(1), 8388607.5, 4503599627370495.5, 0.1} {
			e = append(e, kir.FromFloat64(t, f), kir.FromFloat64(t, -f))
		}
		m := t.Mask()
		e = append(e, 1, m>>1, m, m^1, kir.FromFloat64(t, math.NaN()))
		inf := kir.FromFloat64(t, math.Inf(1))
		e = append(e, inf-1, inf+1, inf+1|m^m>>1) // the largest number, signalling NaNs
	case t.IsPtr():
		e = []uint64{0, 1 << 48, 1<<48 | 100, 2<<48 - 1, 2<<48 - 16, 1<<48 | 1<<47, 0xffff << 48, 3<<48 | 0x7fff_ffff_ffff}
	default:
		m := t.Mask()
		e = []uint64{0, 1, 2, 3, 5, 7, 8, 10, 16, 31, 33, 63, 100, m, m - 1, m - 2, m - 6, m >> 1, m>>1 + 1, m>>1 - 1,
			m>>1 + 2, 0x5555555555555555 & m, 0xff & m, 0x10001 & m, 0x1000001 & m,
			0xffffff7f & m, 0x80000080 & m, 0x7fffffbf & m,
			0x7fffff40_00000001 & m, 0x7fffffbf_ffffffff & m, 0xffffffff & m, 0x100000000 & m, 1<<53 + 1&m}
	}
	return e
}

// random returns random bits of a type, numbers of moderate size among them.
func random(r *rand.Rand, t kir.Type) uint64 {
	if t.IsFloat() && r.IntN(2) == 0 {
		return kir.FromFloat64(t, r.NormFloat64()*math.Ldexp(1, r.IntN(40)-20))
	}
	b := r.Uint64() >> r.IntN(64)
	if r.IntN(2) == 0 {
		b = -b
	}
	return b & t.Mask()
}

// tuples returns operands for an operation of the given operand types.
func tuples(r *rand.Rand, types []kir.Type) [][]uint64 {
	out := [][]uint64{nil}
	for n, t := range types {
		e := edges(t)
		if n == 2 || len(types) == 3 && n == 1 { // three operands: a few of each
			r.Shuffle(len(e), func(i, j int) { e[i], e[j] = e[j], e[i] })
			e = e[:min(len(e), 8)]
		}
		var next [][]uint64
		for _, o := range out {
			for _, v := range e {
				next = append(next, append(append([]uint64(nil), o...), v))
			}
		}
		out = next
	}
	for range 300 {
		var o []uint64
		for _, t := range types {
			o = append(o, random(r, t))
		}
		out = append(out, o)
	}
	return out
}

// opCase is an operation on types.
type opCase struct {
	op   kir.Op
	t    kir.Type
	args []kir.Type
}

func (c opCase) argT() kir.Type {
	if c.op == kir.Select {
		return c.args[1]
	}
	return c.args[0]
}

func (c opCase) String() string { return fmt.Sprint(c.op, " ", c.t, " of ", c.args) }

func (c opCase) want(a []uint64) uint64 {
	w, _ := kir.Eval(c.op, c.t, c.argT(), a...)
	if c.op == kir.Bitcast && (c.argT() == kir.F16 || c.t == kir.F16) && isNaNBits(kir.F16, a[0]) {
		w |= 0x200 // numbers of this type are kept as F32, which makes NaNs quiet
	}
	return w
}

// opCases returns every pure operation on every type it is defined on.
func opCases() []opCase {
	var cases []opCase
	all := append([]kir.Type{kir.Bool, kir.PtrDevice}, numberTypes...)
	add := func(op kir.Op, t kir.Type, args ...kir.Type) {
		if _, ok := kir.Eval(op, t, opCase{op, t, args}.argT(), make([]uint64, len(args))...); ok {
			cases = append(cases, opCase{op, t, args})
		}
	}
	for op := kir.Add; op <= kir.BitReverse; op++ {
		for _, t := range all {
			add(op, t, t)
			add(op, t, t, t)
			add(op, t, t, t, t)
		}
	}
	for op := kir.Eq; op <= kir.Ge; op++ {
		for _, t := range all {
			add(op, kir.Bool, t, t)
		}
	}
	for _, t := range all {
		add(kir.Select, t, kir.Bool, t, t)
		for _, from := range all {
			add(kir.Convert, t, from)
			add(kir.Bitcast, t, from)
		}
	}
	add(kir.PtrAdd, kir.PtrDevice, kir.PtrDevice, kir.I64)
	add(kir.PtrDiff, kir.I64, kir.PtrDevice, kir.PtrDevice)
	return cases
}

// constSets returns which operands to make constants, and their values: none, then each operand alone with a few.
func constSets(r *rand.Rand, c opCase) [][]*uint64 {
	sets := [][]*uint64{make([]*uint64, len(c.args))}
	for n, t := range c.args {
		e := edges(t)
		r.Shuffle(len(e), func(i, j int) { e[i], e[j] = e[j], e[i] })
		for _, v := range e[:min(4, len(e))] {
			s := make([]*uint64, len(c.args))
			s[n] = &v
			sets = append(sets, s)
		}
	}
	if len(c.args) == 2 {
		e := edges(c.args[1])
		sets = append(sets, []*uint64{&e[len(e)/2], &e[len(e)/3]})
	}
	return sets
}

func withConsts(a []uint64, consts []*uint64) []uint64 {
	a = append([]uint64(nil), a...)
	for n, c := range consts {
		if c != nil {
			a[n] = *c
		}
	}
	return a
}

func constString(consts []*uint64) string {
	out := ""
	for _, c := range consts {
		if c == nil {
			out += " _"
		} else {
			out += fmt.Sprintf(" %#x", *c)
		}
	}
	return out
}

func TestPureOnLanes(t *testing.T) {
	benches(t, func(t *testing.T, target *code.Target) {
		r := rand.New(rand.NewPCG(1, 2))
		for _, c := range opCases() {
			in := tuples(r, c.args)
			for k, consts := range constSets(r, c) {
				b := newBench(t, target, 0, func(b *bench) {
					units := make([]unit, len(c.args))
					for n, ta := range c.args {
						if consts[n] == nil {
							units[n] = b.arg(ta, n, 0)
						}
					}
					b.result(c.t, 0, b.v.lanewise().pure(c.op, c.t, c.argT(), units, consts))
				})
				if k > 0 {
					in = in[:min(len(in), 600)]
				}
				per := b.s.e.per
				for first := 0; first < len(in); first += per {
					for l := range per {
						a := in[min(first+l, len(in)-1)]
						for n, ta := range c.args {
							b.set(ta, n, l, a[n])
						}
					}
					b.run()
					for l := range per {
						a := withConsts(in[min(first+l, len(in)-1)], consts)
						if got, want := b.get(c.t, l), c.want(a); !sameLane(c.t, got, want) {
							require.Failf(t, c.String(), "of %#x (consts%s), lane %d: %#x, want %#x", a, constString(consts), l,
								got, want)
						}
					}
				}
			}
		}
	})
}

func TestPureOnSplats(t *testing.T) {
	benches(t, func(t *testing.T, target *code.Target) {
		r := rand.New(rand.NewPCG(3, 4))
		for _, c := range opCases() {
			b := newBench(t, target, 0, func(b *bench) {
				units := make([]unit, len(c.args))
				for n, ta := range c.args {
					units[n] = b.arg(ta, n, 0)
					units[n].r[1] = 0
				}
				u := b.v.ofSplats().lanewise().pure(c.op, c.t, c.argT(), units, nil)
				b.result(c.t, 0, unit{r: [2]code.R{u.r[0], u.r[0]}})
			})
			in := tuples(r, c.args)
			r.Shuffle(len(in), func(i, j int) { in[i], in[j] = in[j], in[i] })
			for _, a := range in[:min(len(in), 200)] {
				for n, ta := range c.args {
					for l := range b.s.e.per {
						b.set(ta, n, l, a[n])
					}
				}
				b.run()
				for l := range b.s.e.per {
					if got, want := b.get(c.t, l), c.want(a); !sameLane(c.t, got, want) {
						require.Failf(t, c.String(), "of %#x, lane %d: %#x, want %#x", a, l, got, want)
					}
				}
			}
		}
	})
}

func TestScalar(t *testing.T) {
	benches(t, func(t *testing.T, target *code.Target) {
		r := rand.New(rand.NewPCG(5, 6))
	next:
		for _, c := range opCases() {
			for _, ta := range append([]kir.Type{c.t}, c.args...) {
				if ta.IsFloat() {
					continue next
				}
			}
			in := tuples(r, c.args)
			for _, consts := range constSets(r, c) {
				b := newBench(t, target, 0, func(b *bench) {
					args := make([]code.R, len(c.args))
					for n := range c.args {
						if consts[n] == nil {
							args[n] = b.s.e.reg(code.GPR)
							b.s.e.loadReg(8, args[n], inArena(int32(benchArgs+n*benchStep)))
						}
					}
					b.s.e.storeReg(8, inArena(benchResult), general{b.s.e}.pure(c.op, c.t, c.argT(), args, consts))
				})
				for _, a := range in {
					for n, ta := range c.args {
						v, _ := laneBits(ta, a[n])
						binary.LittleEndian.PutUint64(b.mem[benchArgs+n*benchStep:], v)
					}
					b.run()
					a = withConsts(a, consts)
					want, _ := laneBits(c.t, c.want(a))
					if got := binary.LittleEndian.Uint64(b.mem[benchResult:]); got != want {
						require.Failf(t, c.String(), "of %#x (consts%s): %#x, want %#x", a, constString(consts), got, want)
					}
				}
			}
		}
	})
}

func TestMaskMoves(t *testing.T) {
	benches(t, func(t *testing.T, target *code.Target) {
		b := newBench(t, target, 32, func(b *bench) {
			s, masks := b.s, b.v.masks()
			r := s.e.reg(code.GPR)
			s.e.loadReg(4, r, inArena(benchMask))
			m := masks.fromBits(r)
			s.e.storeReg(4, inArena(benchResult), masks.bits(m))
			none, done := s.e.label(), s.e.label()
			masks.jumpIfNone(m, none)
			yes := s.e.gload(4, 1)
			s.e.storeReg(4, inArena(benchResult+4), yes)
			s.e.jump(done)
			s.e.bind(none)
			s.e.storeReg(4, inArena(benchResult+4), s.e.gload(4, 0))
			s.e.bind(done)
			low := general{s.e}.binary(code.And, 4, kir.U32, inReg(r), konst(1))
			splat := masks.fromBool(low)
			s.e.storeReg(4, inArena(benchResult+8), masks.toBool(splat))
			s.e.storeReg(4, inArena(benchResult+12), masks.bits([]code.R{splat}))
			s.e.storeReg(8, inArena(benchResult+16), s.e.splatToScalar(s.e.scalarToSplat(r, kir.U32), kir.U32))
		})
		for _, m := range []uint32{0, 1, 2, 0x80000000, 0xffffffff, 0x10000, 0x8000, 0x12345678, 0xff00ff01} {
			binary.LittleEndian.PutUint32(b.mem[benchMask:], m)
			b.run()
			word := func(n int) uint32 { return binary.LittleEndian.Uint32(b.mem[benchResult+4*n:]) }
			require.Equal(t, m, word(0))
			require.Equal(t, m != 0, word(1) == 1)
			require.Equal(t, m&1, word(2))
			require.Equal(t, (m&1)*(1<<b.s.e.per-1), word(3))
			require.Equal(t, m, word(4))
			require.Zero(t, word(5))
		}
	})
}

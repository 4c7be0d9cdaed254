package regalloc_test

import (
	"math/rand/v2"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/mlxlua/mlxlua/metal/jit/regalloc"
)

// fake is an instruction of the machine of these tests: dst = op(srcs), or, tied, dst = op(dst, srcs).
type fake struct {
	kind  regalloc.Kind
	point int32
	dst   int32 // -1: none; what it reads goes to the trace
	tied  bool
	early bool
	copy  bool
	remat bool
	srcs  []int32
	op    int
}

type list []fake

func (l list) Len() int                 { return len(l) }
func (l list) Kind(i int) regalloc.Kind { return l[i].kind }

func (l list) Inst(i int, in *regalloc.Inst) {
	x := &l[i]
	in.Kind, in.Safepoint, in.Ops, in.Copy, in.Remat = x.kind, x.point, in.Ops[:0], x.copy, x.remat
	if x.kind != regalloc.Plain {
		return
	}
	for _, s := range x.srcs {
		in.Ops = append(in.Ops, regalloc.Operand{V: s, Role: regalloc.Use})
	}
	if x.dst >= 0 {
		o := regalloc.Operand{V: x.dst, Role: regalloc.Def, Early: x.early}
		if x.tied {
			o.Role |= regalloc.Use
		}
		in.Ops = append(in.Ops, o)
	}
}

// state is where values are while a list is run: in virtual registers, or (res is set) where the result put them.
type state struct {
	res   *regalloc.Result
	class func(v int32) int
	vregs map[int32]uint64
	regs  [2][64]uint64
	slots map[int32]uint64
	trace []uint64
	l     list
}

func mix(a, b uint64) uint64 {
	a = (a ^ b) * 0x9e3779b97f4a7c15
	return a ^ a>>31
}

func (s *state) read(v int32) uint64 {
	switch {
	case s.res == nil:
		return s.vregs[v]
	case s.res.Reg[v] >= 0:
		return s.regs[s.class(v)][s.res.Reg[v]]
	case s.res.Remat[v] >= 0:
		return mix(uint64(s.l[s.res.Remat[v]].op), 1)
	}
	return s.slots[s.res.Slot[v]]
}

func (s *state) write(v int32, x uint64) {
	switch {
	case s.res == nil:
		s.vregs[v] = x
	case s.res.Reg[v] >= 0:
		s.regs[s.class(v)][s.res.Reg[v]] = x
	case s.res.Remat[v] < 0:
		s.slots[s.res.Slot[v]] = x
	}
}

// run executes a list, loops three times. At a Load all registers are lost but for what the result says is kept.
func (s *state) run(from, to int) {
	for i := from; i < to; i++ {
		x := &s.l[i]
		switch x.kind {
		case regalloc.LoopBegin:
			end, depth := i+1, 1
			for ; depth > 0; end++ {
				switch s.l[end].kind {
				case regalloc.LoopBegin:
					depth++
				case regalloc.LoopEnd:
					depth--
				}
			}
			for range 3 {
				s.run(i+1, end-1)
			}
			i = end - 1
			continue
		case regalloc.Load:
			if s.res == nil {
				continue
			}
			old := s.regs
			s.regs = [2][64]uint64{}
			for _, v := range s.res.Points[x.point] {
				s.regs[s.class(v)][s.res.Reg[v]] = old[s.class(v)][s.res.Reg[v]]
			}
			continue
		case regalloc.Plain:
		default:
			continue
		}
		h := mix(uint64(x.op), 1)
		if x.early && s.res != nil && s.res.Reg[x.dst] >= 0 {
			s.write(x.dst, 0) // before the sources are read
		}
		if x.tied {
			h = mix(h, s.read(x.dst))
		}
		for _, v := range x.srcs {
			h = mix(h, s.read(v))
		}
		switch {
		case x.copy:
			s.write(x.dst, s.read(x.srcs[0]))
		case x.dst >= 0:
			s.write(x.dst, h)
		default:
			s.trace = append(s.trace, h)
		}
	}
}

// random makes a list; virtual registers below half are of class 0, the others of class 1.
func random(rnd *rand.Rand, n, live, half int) list {
	var l list
	var alive [2][]int32
	next := [2]int32{0, int32(half)}
	depth, points := 0, int32(0)
	fresh := func(c int) int32 {
		v := next[c]
		next[c]++
		if len(alive[c]) >= live || depth > 0 {
			alive[c][rnd.IntN(len(alive[c]))] = v
		} else {
			alive[c] = append(alive[c], v)
		}
		return v
	}
	for c := range 2 {
		for k := range live {
			l = append(l, fake{dst: fresh(c), op: k*2 + c, remat: k&1 == 0})
		}
	}
	for k := range n {
		c := rnd.IntN(2)
		some := func() int32 { return alive[c][rnd.IntN(len(alive[c]))] }
		x := fake{op: 1000 + k, dst: -1}
		switch rnd.IntN(12) {
		case 0:
			x.srcs = []int32{some(), some()}
		case 1, 2, 3:
			x.srcs = []int32{some(), some()}
			x.dst = fresh(c)
		case 4, 5:
			x.srcs, x.dst, x.tied = []int32{some()}, some(), true
		case 6:
			x.srcs, x.copy = []int32{some()}, true
			x.dst = fresh(c)
		case 7:
			x.srcs, x.early = []int32{some(), some()}, true
			x.dst = fresh(c)
		case 8:
			x.dst, x.remat = fresh(c), true
		case 9:
			if depth == 4 {
				continue
			}
			x.kind = regalloc.LoopBegin
			depth++
		case 10:
			if depth == 0 {
				continue
			}
			x.kind = regalloc.LoopEnd
			depth--
		default:
			l = append(l, fake{kind: regalloc.Save, point: points})
			x.kind, x.point = regalloc.Load, points
			points++
		}
		l = append(l, x)
	}
	for ; depth > 0; depth-- {
		l = append(l, fake{kind: regalloc.LoopEnd})
	}
	for c := range 2 {
		for _, v := range alive[c] {
			l = append(l, fake{dst: -1, srcs: []int32{v}})
		}
	}
	return l
}

// TestRandom runs random lists on virtual registers and on what they were given.
func TestRandom(t *testing.T) {
	const half = 2000
	var a regalloc.Allocator
	class := func(v int32) int { return int(v) / half }
	for seed := range uint64(1500) {
		rnd := rand.New(rand.NewPCG(seed, 3))
		l := random(rnd, 10+rnd.IntN(300), 1+rnd.IntN(30), half)
		want := state{vregs: map[int32]uint64{}, l: l}
		want.run(0, len(l))
		r := a.Run(l, []regalloc.Class{{Count: half, Regs: []uint8{3, 5, 7, 9, 11}, Slot: 8},
			{Count: half, Regs: []uint8{0, 1, 2, 3, 4, 5, 6, 7, 8}, Slot: 64}}, 24)
		got := state{res: r, class: class, slots: map[int32]uint64{}, l: l}
		got.run(0, len(l))
		require.Equal(t, want.trace, got.trace, "seed %d", seed)
		for v, s := range r.Slot {
			size := []int32{8, 64}[class(int32(v))]
			if s >= 0 && (s < 24 || s%size != 0 || int(s+size) > r.Bytes) {
				t.Fatalf("seed %d: slot at %d of %d", seed, s, r.Bytes)
			}
		}
	}
}

// TestPressure: with as many registers as are alive at once nothing is spilled, with one fewer only what costs least.
func TestPressure(t *testing.T) {
	const n = 8
	var l list
	for k := range int32(n) {
		l = append(l, fake{dst: k, op: int(k)})
	}
	l = append(l, fake{kind: regalloc.LoopBegin})
	for k := range int32(n - 1) { // all but the last are used in a loop
		l = append(l, fake{dst: -1, srcs: []int32{k}})
	}
	l = append(l, fake{kind: regalloc.LoopEnd}, fake{dst: -1, srcs: []int32{n - 1}})
	var a regalloc.Allocator
	regs := []uint8{0, 1, 2, 3, 4, 5, 6, 7}
	require.Zero(t, a.Run(l, []regalloc.Class{{Count: n, Regs: regs, Slot: 8}}, 0).Spills)
	r := a.Run(l, []regalloc.Class{{Count: n, Regs: regs[:n-1], Slot: 8}}, 0)
	require.Equal(t, 1, r.Spills)
	require.Equal(t, int16(-1), r.Reg[n-1])
	require.Equal(t, int32(0), r.Slot[n-1])
	require.Equal(t, 8, r.Bytes)
}

// TestCopies: a copy of what ends there takes its register.
func TestCopies(t *testing.T) {
	l := list{{dst: 0}, {dst: 1, op: 1}, {dst: 2, copy: true, srcs: []int32{1}}, {dst: -1, srcs: []int32{2, 0}}}
	var a regalloc.Allocator
	r := a.Run(l, []regalloc.Class{{Count: 3, Regs: []uint8{0, 1, 2}, Slot: 8}}, 0)
	require.Equal(t, r.Reg[1], r.Reg[2])
	require.NotEqual(t, r.Reg[0], r.Reg[2])
}

func BenchmarkRun(b *testing.B) {
	rnd := rand.New(rand.NewPCG(1, 2))
	var l list
	for _, x := range random(rnd, 3000, 24, 4000) {
		if x.kind != regalloc.Save && x.kind != regalloc.Load {
			l = append(l, x)
		}
	}
	var a regalloc.Allocator
	c := []regalloc.Class{{Count: 4000, Regs: []uint8{0, 1, 2, 3, 4, 5, 6, 7}, Slot: 8},
		{Count: 4000, Regs: []uint8{0, 1, 2, 3, 4, 5, 6, 7, 8, 9, 10, 11, 12, 13, 14, 15}, Slot: 64}}
	for b.Loop() {
		a.Run(l, c, 0)
	}
}

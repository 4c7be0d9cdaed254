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
	label int32
	ends  bool
	dst   int32 // -1: none; what it reads goes to the trace
	tied  bool
	early bool
	copy  bool
	remat bool
	srcs  []int32
	op    int
}

type list []fake

func (l list) Len() int { return len(l) }

func (l list) Labels() int {
	n := 0
	for k := range l {
		n = max(n, int(l[k].label))
	}
	return n
}

func (l list) Inst(i int, in *regalloc.Inst) {
	x := &l[i]
	in.Kind, in.Safepoint, in.Label, in.Ends = x.kind, x.point, x.label, x.ends
	in.Copy, in.Hint, in.Remat = x.copy, x.copy, x.remat
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

// jump makes a jump: always, or on a condition that the machine draws.
func jump(label int32, always bool) fake { return fake{label: label, ends: always, dst: -1} }

func place(label int32) fake { return fake{kind: regalloc.Place, label: label, dst: -1} }

func mark(k regalloc.Kind) fake { return fake{kind: k, dst: -1} }

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

// run executes a list, drawing for each jump whether it is taken, and stops after some thousands of
// instructions. At a Load all registers are lost but for what the result says is kept.
func (s *state) run(seed uint64) {
	rnd := rand.New(rand.NewPCG(seed, 8))
	labels := map[int32]int{}
	over := map[int]int{} // where cold code ends
	var open []int
	for i := range s.l {
		switch s.l[i].kind {
		case regalloc.Place:
			labels[s.l[i].label] = i
		case regalloc.ColdBegin:
			open = append(open, i)
		case regalloc.ColdEnd:
			over[open[len(open)-1]] = i
			open = open[:len(open)-1]
		}
	}
	for i, steps := 0, 0; i < len(s.l) && steps < 5000; i, steps = i+1, steps+1 {
		x := &s.l[i]
		switch x.kind {
		case regalloc.ColdBegin:
			i = over[i]
		case regalloc.Load:
			if s.res != nil {
				s.load(x.point)
			}
		case regalloc.Plain:
			if x.label == 0 {
				s.step(x)
			} else if x.ends || rnd.IntN(2) == 0 {
				i = labels[x.label]
			}
		}
	}
}

func (s *state) load(point int32) {
	old := s.regs
	s.regs = [2][64]uint64{}
	for _, v := range s.res.Points[point] {
		s.regs[s.class(v)][s.res.Reg[v]] = old[s.class(v)][s.res.Reg[v]]
	}
}

func (s *state) step(x *fake) {
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

// maker makes random lists. Virtual registers below half are of class 0, the others of class 1.
type maker struct {
	rnd    *rand.Rand
	l      list
	alive  [2][]int32
	next   [2]int32
	labels int32
	points int32
	op     int
	live   int
}

func (m *maker) label() int32 {
	m.labels++
	return m.labels
}

func (m *maker) emit(f ...fake) { m.l = append(m.l, f...) }

func (m *maker) fresh(c int) int32 {
	v := m.next[c]
	m.next[c]++
	if len(m.alive[c]) >= m.live {
		m.alive[c][m.rnd.IntN(len(m.alive[c]))] = v
	} else {
		m.alive[c] = append(m.alive[c], v)
	}
	return v
}

func (m *maker) some(c int) int32 { return m.alive[c][m.rnd.IntN(len(m.alive[c]))] }

// body makes about n instructions; what they make is not alive afterwards, what they change is.
func (m *maker) body(n, depth int) {
	saved := [2][]int32{append([]int32(nil), m.alive[0]...), append([]int32(nil), m.alive[1]...)}
	for range n {
		if depth < 4 && m.rnd.IntN(10) == 0 {
			m.flow(n/2, depth+1)
			continue
		}
		c := m.rnd.IntN(2)
		m.op++
		x := fake{op: 1000 + m.op, dst: -1}
		switch m.rnd.IntN(10) {
		case 0:
			x.srcs = []int32{m.some(c), m.some(c)}
		case 1, 2, 3:
			x.srcs = []int32{m.some(c), m.some(c)}
			x.dst = m.fresh(c)
		case 4:
			x.srcs, x.dst, x.tied = []int32{m.some(c)}, m.some(c), true
		case 5:
			x.srcs, x.copy = []int32{m.some(c)}, true
			x.dst = m.fresh(c)
		case 6, 7: // a variable is set
			x.srcs, x.dst, x.copy = []int32{m.some(c)}, m.some(c), true
		case 8:
			x.srcs, x.early = []int32{m.some(c), m.some(c)}, true
			x.dst = m.fresh(c)
		case 9:
			x.dst, x.remat = m.fresh(c), true
		}
		m.emit(x)
	}
	m.alive = saved
}

// flow makes something with jumps.
func (m *maker) flow(n, depth int) {
	a, b := m.label(), m.label()
	switch m.rnd.IntN(6) {
	case 0:
		m.emit(jump(a, false))
		m.body(n, depth)
		m.emit(place(a))
	case 1:
		m.emit(jump(a, false))
		m.body(n, depth)
		m.emit(jump(b, true), place(a))
		m.body(n, depth)
		m.emit(place(b))
	case 2, 3:
		m.emit(mark(regalloc.LoopBegin), place(a))
		m.body(n, depth)
		m.emit(jump(b, false))
		m.body(n, depth)
		m.emit(jump(a, m.rnd.IntN(2) == 0), mark(regalloc.LoopEnd), place(b))
	case 4:
		m.emit(jump(a, false))
		m.body(n/2, depth)
		m.emit(mark(regalloc.ColdBegin), place(a))
		m.body(n, depth)
		m.emit(jump(b, true), mark(regalloc.ColdEnd), place(b))
	default:
		p := m.points
		m.points++
		m.emit(fake{kind: regalloc.Save, point: p, dst: -1}, jump(a, true), place(a),
			fake{kind: regalloc.Load, point: p, dst: -1})
	}
}

func random(rnd *rand.Rand, n, live, half int) list {
	m := maker{rnd: rnd, next: [2]int32{0, int32(half)}, live: live}
	for c := range 2 {
		for k := range live {
			m.emit(fake{dst: m.fresh(c), op: k*2 + c, remat: k&1 == 0})
		}
	}
	for len(m.l) < n {
		m.body(8, 0)
	}
	for c := range 2 {
		for _, v := range m.alive[c] {
			m.emit(fake{dst: -1, srcs: []int32{v}})
		}
	}
	return m.l
}

// TestRandom runs random lists on virtual registers and on what they were given.
func TestRandom(t *testing.T) {
	for _, coarse := range []bool{false, true} {
		randomLists(t, &regalloc.Allocator{Coarse: coarse})
	}
}

func randomLists(t *testing.T, a *regalloc.Allocator) {
	const half = 4000
	class := func(v int32) int { return int(v) / half }
	lists := uint64(1500)
	if testing.Short() {
		lists = 300
	}
	for seed := range lists {
		rnd := rand.New(rand.NewPCG(seed, 3))
		l := random(rnd, 10+rnd.IntN(300), 1+rnd.IntN(30), half)
		r := a.Run(l, []regalloc.Class{{Count: half, Regs: []uint8{3, 5, 7, 9, 11}, Slot: 8},
			{Count: half, Regs: []uint8{0, 1, 2, 3, 4, 5, 6, 7, 8}, Slot: 64}}, 24)
		for path := range uint64(4) {
			want := state{vregs: map[int32]uint64{}, l: l}
			want.run(path)
			got := state{res: r, class: class, slots: map[int32]uint64{}, l: l}
			got.run(path)
			require.Equal(t, want.trace, got.trace, "seed %d", seed)
		}
		for v, s := range r.Slot {
			size := []int32{8, 64}[class(int32(v))]
			if s >= 0 && (s < 24 || s%size != 0 || int(s+size) > r.Bytes) {
				t.Fatalf("seed %d: slot at %d of %d", seed, s, r.Bytes)
			}
		}
	}
}

// TestPressure: with as many registers as are alive at once nothing is spilled, with one fewer only what costs
// least.
func TestPressure(t *testing.T) {
	const n = 8
	var l list
	for k := range int32(n) {
		l = append(l, fake{dst: k, op: int(k)})
	}
	l = append(l, mark(regalloc.LoopBegin), place(1))
	for k := range int32(n - 1) { // all but the last are used in a loop
		l = append(l, fake{dst: -1, srcs: []int32{k}})
	}
	l = append(l, jump(1, false), mark(regalloc.LoopEnd), fake{dst: -1, srcs: []int32{n - 1}})
	var a regalloc.Allocator
	regs := []uint8{0, 1, 2, 3, 4, 5, 6, 7}
	require.Zero(t, a.Run(l, []regalloc.Class{{Count: n, Regs: regs, Slot: 8}}, 0).Spills)
	r := a.Run(l, []regalloc.Class{{Count: n, Regs: regs[:n-1], Slot: 8}}, 0)
	require.Equal(t, 1, r.Spills)
	require.Equal(t, int16(-1), r.Reg[n-1])
	require.Equal(t, int32(0), r.Slot[n-1])
	require.Equal(t, 8, r.Bytes)
}

// TestCopies: a copy of what ends there takes its register, and so does one that lives on unchanged beside it.
func TestCopies(t *testing.T) {
	regs := []regalloc.Class{{Count: 4, Regs: []uint8{0, 1, 2, 3}, Slot: 8}}
	var a regalloc.Allocator
	l := list{{dst: 0}, {dst: 1, op: 1}, {dst: 2, copy: true, srcs: []int32{1}}, {dst: -1, srcs: []int32{2, 0}}}
	r := a.Run(l, regs, 0)
	require.Equal(t, r.Reg[1], r.Reg[2])
	require.NotEqual(t, r.Reg[0], r.Reg[2])

	// A loop's variable 0 is set to 1, which is read once more.
	l = list{{dst: 0}, mark(regalloc.LoopBegin), place(1), {dst: 1, srcs: []int32{0}, op: 1},
		{dst: 0, copy: true, srcs: []int32{1}}, {dst: -1, srcs: []int32{1}}, jump(1, false), mark(regalloc.LoopEnd),
		{dst: -1, srcs: []int32{0}}}
	r = a.Run(l, regs, 0)
	require.Equal(t, r.Reg[0], r.Reg[1])

	// But not if the variable's old value is still wanted, or if 1 changes.
	l[3].srcs, l[4], l[5] = nil, fake{dst: -1, srcs: []int32{0}}, fake{dst: 0, copy: true, srcs: []int32{1}}
	r = a.Run(l, regs, 0)
	require.NotEqual(t, r.Reg[0], r.Reg[1])
}

// TestHoles: a variable's register is free between its last use and its next definition.
func TestHoles(t *testing.T) {
	l := list{{dst: 0}, {dst: -1, srcs: []int32{0}}, {dst: 1, op: 1}, {dst: -1, srcs: []int32{1}}, {dst: 0, op: 2},
		{dst: -1, srcs: []int32{0}}}
	var a regalloc.Allocator
	r := a.Run(l, []regalloc.Class{{Count: 2, Regs: []uint8{6}, Slot: 8}}, 0)
	require.Zero(t, r.Spills)
	require.Equal(t, []int16{6, 6}, r.Reg)
}

// TestManyLives: tens of thousands of values that all live over tens of thousands of blocks, in a loop, are shared out
// with work in proportion to the list, and are where they should be.
func TestManyLives(t *testing.T) {
	const n = 28000
	l := list{{dst: n}, mark(regalloc.LoopBegin), place(1)}
	for v := range int32(n) {
		l = append(l, jump(2+v, false), fake{dst: -1, srcs: []int32{n}}, place(2+v), fake{dst: v, op: int(v)})
	}
	for v := range int32(n) {
		l = append(l, fake{dst: n, tied: true, srcs: []int32{v}, op: int(v)}, fake{dst: -1, srcs: []int32{n}})
	}
	l = append(l, jump(1, false), mark(regalloc.LoopEnd), fake{dst: -1, srcs: []int32{n}})
	var a regalloc.Allocator
	r := a.Run(l, []regalloc.Class{{Count: n + 1, Regs: []uint8{0, 1, 2, 3}, Slot: 8}}, 0)
	require.LessOrEqual(t, r.Bytes, 8*(n+1))
	require.Greater(t, r.Bytes, 8*n*9/10)
	for v, at := range r.Slot[:n] { // all live at once: no two are in one place
		require.True(t, at >= 0 || r.Reg[v] >= 0, "%d", v)
	}
	used := map[int32]bool{}
	for _, at := range r.Slot {
		require.False(t, at >= 0 && used[at], "slot at %d", at)
		used[at] = true
	}
}

func BenchmarkRun(b *testing.B) {
	l := random(rand.New(rand.NewPCG(1, 2)), 3000, 24, 4000)
	var a regalloc.Allocator
	c := []regalloc.Class{{Count: 4000, Regs: []uint8{0, 1, 2, 3, 4, 5, 6, 7}, Slot: 8},
		{Count: 4000, Regs: []uint8{0, 1, 2, 3, 4, 5, 6, 7, 8, 9, 10, 11, 12, 13, 14, 15}, Slot: 64}}
	for b.Loop() {
		a.Run(l, c, 0)
	}
	b.ReportMetric(float64(len(l)), "instructions")
}

// BenchmarkPressure is a long list of instructions with some two hundred values alive everywhere, most of them
// without a register, in many blocks.
func BenchmarkPressure(b *testing.B) {
	const live, length = 200, 20000
	rnd := rand.New(rand.NewPCG(7, 1))
	l := make(list, 0, length+live)
	for v := range int32(live) {
		l = append(l, fake{dst: v, op: int(v)})
	}
	n := int32(live)
	for label := int32(1); len(l) < length; {
		if len(l)%8 == 0 { // a way round some instructions
			l = append(l, jump(label, false), fake{dst: -1, srcs: []int32{n - 1}}, place(label))
			label++
			continue
		}
		l = append(l, fake{dst: n, op: int(n), srcs: []int32{n - 1 - rnd.Int32N(live), n - 1 - rnd.Int32N(live)}})
		n++
	}
	var a regalloc.Allocator
	c := []regalloc.Class{{Count: int(n), Regs: []uint8{0, 1, 2, 3, 4, 5, 6, 7, 8, 9, 10, 11, 12}, Slot: 32}}
	for b.Loop() {
		a.Run(l, c, 0)
	}
	b.ReportMetric(float64(len(l)), "instructions")
}

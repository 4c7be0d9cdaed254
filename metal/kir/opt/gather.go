package opt

import "github.com/mlxlua/mlxlua/metal/kir"

// mostGathered is how many bytes the loads, or stores, have that are brought together: they hold registers until they
// are used.
const mostGathered = 192

// Gather changes a kernel that Run returned: loads that nothing keeps apart stand together, behind all that their
// addresses are made of, and so do stores. Whoever prints them can check the ranges of all of them at once, has several
// on the way at a time, and sees which are neighbours. The order of loads, of stores, and of both among each other
// stays, and so does which access is the first that faults.
func Gather(k *kir.Kernel) {
	g := &gatherer{at: make([]int, k.NumInstrs), last: map[uint64]access{}}
	g.block(k.Body)
	k.Renumber()
}

// gatherer is the state of one Gather.
type gatherer struct {
	at      []int // by ID: 1 + the place in the segment at hand, 0: before it
	segment []*kir.Instr
	before  [][]int // by place: the accesses to the same variable that must stay in front
	done    []bool  // by place
	asked   []int   // by place: 1 + how much was done when it was found to wait for no access, 0: it was not
	out     []*kir.Instr
	last    map[uint64]access
}

// access is the last setting of a variable in a segment and what has read it since, as places.
type access struct {
	set  int // -1: none
	gets []int
}

// block gathers within a block: between control flow, atomics and what concerns other lanes nothing moves.
func (g *gatherer) block(b *kir.Block) {
	if b == nil {
		return
	}
	out := make([]*kir.Instr, 0, len(b.Instrs))
	from := 0
	for i, in := range b.Instrs {
		if moves(in) {
			continue
		}
		out = append(g.gather(out, b.Instrs[from:i]), in)
		from = i + 1
		g.block(in.Body)
		g.block(in.Else)
	}
	b.Instrs = g.gather(out, b.Instrs[from:])
}

// moves reports whether an instruction may change places with others.
func moves(in *kir.Instr) bool {
	switch in.Op {
	case kir.Load, kir.Store, kir.VarGet, kir.VarSet:
		return true
	}
	return in.Op.Pure()
}

func touches(in *kir.Instr) bool { return in.Op == kir.Load || in.Op == kir.Store }

// gather appends a segment in its new order.
func (g *gatherer) gather(out, segment []*kir.Instr) []*kir.Instr {
	accesses := 0
	for _, in := range segment {
		if touches(in) {
			accesses++
		}
	}
	if accesses < 2 {
		return append(out, segment...)
	}
	n := len(segment)
	g.segment, g.out, g.done, g.asked = segment, out, make([]bool, n), make([]int, n)
	g.before = make([][]int, n)
	clear(g.last)
	for i, in := range segment {
		g.at[in.ID] = i + 1
		g.variable(i, in)
	}
	for i, in := range segment {
		switch {
		case g.done[i]:
		case touches(in):
			g.group(i)
		default:
			g.emit(i)
		}
	}
	for _, in := range segment {
		g.at[in.ID] = 0
	}
	return g.out
}

// variable notes which accesses to a variable must stay in front of one.
func (g *gatherer) variable(i int, in *kir.Instr) {
	if in.Op != kir.VarGet && in.Op != kir.VarSet {
		return
	}
	a, ok := g.last[in.Imm]
	if !ok {
		a.set = -1
	}
	if a.set >= 0 {
		g.before[i] = append(g.before[i], a.set)
	}
	if in.Op == kir.VarGet {
		a.gets = append(a.gets, i)
	} else {
		g.before[i] = append(g.before[i], a.gets...)
		a = access{set: i}
	}
	g.last[in.Imm] = a
}

// group appends the access at a place and those of its kind behind it that need not wait for another one.
func (g *gatherer) group(first int) {
	op, members, bytes := g.segment[first].Op, []int{first}, held(g.segment[first])
	g.needs(first)
	for i := first + 1; i < len(g.segment) && bytes < mostGathered; i++ {
		in := g.segment[i]
		if !touches(in) || g.done[i] {
			continue
		}
		if in.Op != op || g.waits(i) {
			break
		}
		g.needs(i)
		members, bytes = append(members, i), bytes+held(in)
	}
	for _, i := range members {
		g.done[i], g.out = true, append(g.out, g.segment[i])
	}
}

// held is how many bytes of registers an access holds, at least.
func held(in *kir.Instr) int {
	if in.Op == kir.Store {
		return max(2, in.Args[1].Type.Size())
	}
	return max(2, in.Type.Size())
}

// waits reports whether the operands of what stands at a place are made of a load that is not done yet.
func (g *gatherer) waits(i int) bool {
	for _, d := range g.operands(i) {
		if !g.done[d] && (touches(g.segment[d]) || g.blocked(d)) {
			return true
		}
	}
	return false
}

// blocked is waits of what is no access itself. That it does not wait is remembered.
func (g *gatherer) blocked(i int) bool {
	if g.asked[i] != len(g.out)+1 {
		if g.waits(i) {
			return true
		}
		g.asked[i] = len(g.out) + 1
	}
	return false
}

// needs appends what the operands of a place are made of.
func (g *gatherer) needs(i int) {
	for _, d := range g.operands(i) {
		if !g.done[d] {
			g.emit(d)
		}
	}
}

// emit appends what stands at a place, and before it what it is made of.
func (g *gatherer) emit(i int) {
	g.needs(i)
	g.done[i], g.out = true, append(g.out, g.segment[i])
}

// operands are the places in the segment that what stands at a place depends on.
func (g *gatherer) operands(i int) []int {
	places := g.before[i]
	for _, a := range g.segment[i].Args {
		if at := g.at[a.ID]; at > 0 {
			places = append(places[:len(places):len(places)], at-1)
		}
	}
	return places
}

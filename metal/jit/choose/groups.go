package choose

import (
	"github.com/mlxlua/mlxlua/metal/jit/arena"
	"github.com/mlxlua/mlxlua/metal/jit/code"
	"github.com/mlxlua/mlxlua/metal/jit/lanes"
	"github.com/mlxlua/mlxlua/metal/kir"
)

// Loads of one block that pick neighbouring elements of the same stride (k[4*lane], k[4*lane+1], ...) are done
// together, at the first of them: their words are loaded once and transposed. Stores that fill a stride are done
// together at the last.

// maxGroupRegs bounds the registers that one group of Loads fills, groupReach how far apart in the block they may be.
const (
	maxGroupRegs = 16
	groupReach   = 256
)

// groups finds and selects the groups of Loads and Stores of a kernel.
type groups struct {
	e    *emitter
	v    vector
	m    masks
	el   elements
	on   *active
	vals *values
	addr *addresses
	each *laneByLane
	mem  *memory
	offs *offsets
	k    *kir.Kernel
	info *lanes.Info
	lay  *arena.Layout

	found  bool
	loads  map[int][]*kir.Instr // by the first Load's Instr.ID
	stores map[int][]*kir.Instr // by the last Store's
	// checked: groups of Loads of one address each, or of neighbouring elements, by the first one; at: where the elements
	// of each are, once that is known.
	checked map[int][]*kir.Instr
	at      map[int]code.Mem
	// done: Loads whose value an earlier Load brought along, and Stores that a later one does.
	done map[int]bool
}

// has reports whether i is done with another access. The first call finds all groups.
func (s *groups) has(i *kir.Instr) bool {
	if !s.found {
		s.found = true
		s.loads, s.stores, s.checked = map[int][]*kir.Instr{}, map[int][]*kir.Instr{}, map[int][]*kir.Instr{}
		s.at, s.done = map[int]code.Mem{}, map[int]bool{}
		s.find(s.k.Body, false)
	}
	return s.done[i.ID]
}

// together describes the accesses of a group, and all of them as one access of need bytes from the lowest address
// on. The labels of the first one stand for all.
func (s *groups) together(g []*kir.Instr) (xs []*access, all *access, need int64) {
	a := *s.info.Access[g[0].ID]
	low, high := a.Disp, a.Disp
	for _, i := range g {
		x := s.info.Access[i.ID]
		xs = append(xs, &access{i: i, a: x, t: elementOf(i), size: int64(x.Size)})
		low, high = min(low, x.Disp), max(high, x.Disp)
	}
	bases := a.Bases
	a.Disp, a.Bases = low, nil
	for n, b := range bases {
		for _, x := range xs {
			b.Span = max(b.Span, x.a.Bases[n].Span)
		}
		a.Bases = append(a.Bases, b)
	}
	xs[0].slow, xs[0].cold, xs[0].done = s.e.label(), s.e.label(), s.e.label()
	all = &access{i: g[0], a: &a, t: xs[0].t, size: xs[0].size, l: s.addr.linear(&a)}
	return xs, all, high - low + a.Span + xs[0].size
}

// load does the Loads of a group.
func (s *groups) load(g []*kir.Instr) {
	xs, all, need := s.together(g)
	first, low := xs[0], all.a.Disp
	s.addr.checkWraps(all.a, first.slow)
	s.addr.check(all.a.Object, all.l, need, first.cold)
	w := newWords(s.v, s.mem.place(all, 0), int32(need))
	s.mem.prefetch(g[0], w.m, need)
	s.columnsOf(w, xs, low)
	vals := make([]val, len(xs))
	for n, x := range xs {
		offs := make([]int32, s.e.group)
		for l := range offs {
			offs[l] = x.a.Offsets[l] + int32(x.a.Disp-low)
		}
		vals[n] = s.offs.loadOffsets(w, x.t, offs)
	}
	s.e.f.ColdBegin()
	s.e.bind(first.cold)
	s.e.bind(first.slow)
	for n, x := range xs {
		s.each.pointers(x)
		s.each.follow(x, subLoad)
		s.e.moveVal(vals[n], s.each.result(x))
	}
	s.e.jump(first.done)
	s.e.f.ColdEnd()
	s.e.bind(first.done)
	for n, x := range xs {
		s.vals.result(x.i, vals[n])
		s.done[x.i.ID] = true
	}
}

// columnsOf transposes the words that the Loads want, where at least half of those loaded are.
func (s *groups) columnsOf(w *wordLoad, xs []*access, low int64) {
	offsets := xs[0].a.Offsets
	pitch := strideOf(offsets[:s.e.group])
	if !s.e.avx512() && w.end%4 != 0 {
		return // masks are of whole words
	}
	n := columnsIn(pitch)
	for from := int64(0); from < int64(pitch); from += int64(4 * n) {
		wanted, count := make([]bool, n), 0
		for _, x := range xs {
			if c := (x.a.Disp - low - from) / 4; x.a.Disp-low >= from && c < int64(n) && !wanted[c] {
				wanted[c] = true
				count++
			}
		}
		if 2*count < n || count < 2 {
			continue
		}
		for p := range s.e.parts {
			w.transpose(p, offsets[p*s.e.per]+int32(from), pitch, wanted)
		}
	}
}

package jit

import (
	"github.com/mlxlua/mlxlua/metal/jit/amd64"
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

// groups are the groups of Loads and Stores of a kernel.
type groups struct {
	found  bool
	loads  map[int][]*kir.Instr // by the first Load's Instr.ID
	stores map[int][]*kir.Instr // by the last Store's
	// uniform: groups of Loads of one address each, by the first one; at: where their elements are, once that is known.
	uniform map[int][]*kir.Instr
	at      map[int]amd64.Mem
	// done: Loads whose value an earlier Load brought along, and Stores that a later one does.
	done map[int]bool
}

// openGroups are the groups that may still grow, in a walk over a block.
type openGroups struct {
	*selector
	loads, stores [][]*kir.Instr
	since         int // where the first of them began
}

// inGroups reports whether i is done with another access. The first call finds all groups.
func (s *selector) inGroups(i *kir.Instr) bool {
	g := &s.memory.groups
	if !g.found {
		*g = groups{found: true, loads: map[int][]*kir.Instr{}, stores: map[int][]*kir.Instr{},
			uniform: map[int][]*kir.Instr{}, at: map[int]amd64.Mem{}, done: map[int]bool{}}
		s.findGroups(s.k.Body)
	}
	return g.done[i.ID]
}

// findGroups finds the groups of a block and those in it.
func (s *selector) findGroups(b *kir.Block) {
	if b == nil {
		return
	}
	o := &openGroups{selector: s}
	for n, i := range b.Instrs {
		if len(o.loads)+len(o.stores) == 0 {
			o.since = n
		}
		switch {
		case n-o.since > groupReach:
			o.flush(kir.Void, kir.Void)
			o.since = n
		case i.Op == kir.Fence || i.Op >= kir.SimdBarrier || i.Op.IsAtomic():
			o.flush(kir.Void, kir.Void)
		}
		switch {
		case i.Op == kir.Load:
			o.load(i)
		case i.Op == kir.Store:
			o.store(i)
		case i.Op == kir.VarSet:
			o.set(i.Imm)
		case i.Op.HasBody():
			s.findGroups(i.Body)
			s.findGroups(i.Else)
		}
	}
	o.flush(kir.Void, kir.Void)
}

func (o *openGroups) load(i *kir.Instr) {
	o.flushOnly(false, i.Args[0].Type)
	if o.groupable(i) {
		o.loads = o.join(o.loads, i)
	}
}

func (o *openGroups) store(i *kir.Instr) {
	t := i.Args[0].Type
	o.flushOnly(true, t)
	if o.groupable(i) && len(o.stores) > 0 && o.alike(o.stores[len(o.stores)-1][0], i) {
		o.stores = o.join(o.stores, i)
		return
	}
	o.flushOnly(false, t)
	if o.groupable(i) {
		o.stores = o.join(o.stores, i)
	}
}

// set closes the groups with a Store of the variable that is about to change: it may be read from its own register.
func (o *openGroups) set(v uint64) {
	for _, g := range o.stores {
		for _, i := range g {
			if x := i.Args[1]; x.Op == kir.VarGet && x.Imm == v {
				o.flushOnly(false, kir.Void)
				return
			}
		}
	}
}

// join adds an access to the group that it is like, or begins one.
func (o *openGroups) join(open [][]*kir.Instr, i *kir.Instr) [][]*kir.Instr {
	for g, list := range open {
		if o.alike(list[0], i) && len(list)*o.regsOf(i) < maxGroupRegs {
			open[g] = append(list, i)
			return open
		}
	}
	return append(open, []*kir.Instr{i})
}

// flush closes the groups of Loads and of Stores whose memory an access through pointers of those types may touch;
// Void means any.
func (o *openGroups) flush(loads, stores kir.Type) {
	o.flushOnly(true, loads)
	o.flushOnly(false, stores)
}

// flushOnly closes groups of Loads, or of Stores.
func (o *openGroups) flushOnly(loads bool, t kir.Type) {
	open, closeGroup := &o.stores, o.closeStores
	if loads {
		open, closeGroup = &o.loads, o.closeLoads
	}
	keep := (*open)[:0]
	for _, g := range *open {
		if t != kir.Void && !mayAlias(g[0].Args[0].Type, t) {
			keep = append(keep, g)
			continue
		}
		closeGroup(g)
	}
	*open = keep
}

// mayAlias reports whether memory behind pointers of two types may be the same: buffers may be bound twice.
func mayAlias(a, b kir.Type) bool {
	buffer := func(t kir.Type) bool { return t == kir.PtrDevice || t == kir.PtrConstant }
	return a == b || buffer(a) && buffer(b)
}

// groupable reports whether an access may be of a group.
func (s *selector) groupable(i *kir.Instr) bool {
	a := s.info.Access[i.ID]
	if i.Op == kir.Load && !s.info.NeedBase[i.ID] && !s.info.NeedVec[i.ID] {
		return false
	}
	if a.Object == 0 || s.isThread(a.Object) {
		return false
	}
	if a.Mode == lanes.AccessUniform {
		return i.Op == kir.Load
	}
	if a.Mode != lanes.AccessOffsets || a.Size > 4 || a.Span > maxSpan {
		return false
	}
	return s.stride(a.Offsets[:s.group]) != 0 && a.Offsets[0] == 0
}

// elementOf is the type of what a Load or Store moves.
func elementOf(i *kir.Instr) kir.Type {
	if i.Op == kir.Store {
		return i.Args[1].Type
	}
	return i.Type
}

// alike reports whether two Loads, or two Stores, differ in a small constant offset only.
func (s *selector) alike(x, y *kir.Instr) bool {
	a, b := s.info.Access[x.ID], s.info.Access[y.ID]
	if a.Object != b.Object || elementOf(x) != elementOf(y) || a.Offsets != b.Offsets ||
		len(a.Terms) != len(b.Terms) || len(a.Bases) != len(b.Bases) {
		return false
	}
	for n := range a.Terms {
		if a.Terms[n] != b.Terms[n] {
			return false
		}
	}
	for n := range a.Bases {
		if a.Bases[n].Value != b.Bases[n].Value || a.Bases[n].Scale != b.Bases[n].Scale {
			return false
		}
	}
	d := b.Disp - a.Disp
	return d > -1024 && d < 1024
}

// regsOf is how many registers each Load of a group like i holds from the first one on: those of one address are
// loaded where they stand.
func (o *openGroups) regsOf(i *kir.Instr) int {
	if o.info.Access[i.ID].Mode == lanes.AccessUniform {
		return 0
	}
	return o.parts
}

// closeLoads keeps a group of several Loads for the first of them to do.
func (o *openGroups) closeLoads(g []*kir.Instr) {
	switch {
	case len(g) <= 1:
	case o.info.Access[g[0].ID].Mode == lanes.AccessUniform:
		o.memory.groups.uniform[g[0].ID] = g
	default:
		o.memory.groups.loads[g[0].ID] = g
	}
}

// closeStores keeps a group of Stores that fill the stride for the last of them to do.
func (o *openGroups) closeStores(g []*kir.Instr) {
	a := o.info.Access[g[0].ID]
	pitch, size, low := int64(a.Offsets[1]), int64(a.Size), a.Disp
	for _, i := range g {
		low = min(low, o.info.Access[i.ID].Disp)
	}
	var filled int64 // a bit for each element of the stride
	for _, i := range g {
		d := o.info.Access[i.ID].Disp - low
		if d%size != 0 || d >= pitch || filled>>(d/size)&1 != 0 {
			return
		}
		filled |= 1 << (d / size)
	}
	if int64(len(g))*size != pitch || pitch > 32 {
		return
	}
	o.memory.groups.stores[g[len(g)-1].ID] = g
	for _, i := range g[:len(g)-1] {
		o.memory.groups.done[i.ID] = true
	}
}

// together describes the accesses of a group, and all of them as one access of need bytes from the lowest address
// on. The labels of the first one stand for all.
func (s *selector) together(g []*kir.Instr) (xs []*access, all *access, need int64) {
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
	xs[0].slow, xs[0].cold, xs[0].done = s.label(), s.label(), s.label()
	all = &access{i: g[0], a: &a, t: xs[0].t, size: xs[0].size, l: s.linear(&a)}
	return xs, all, high - low + a.Span + xs[0].size
}

// groupLoad does the Loads of a group.
func (s *selector) groupLoad(g []*kir.Instr) {
	xs, all, need := s.together(g)
	first, low := xs[0], all.a.Disp
	s.checkWraps(all.a, first.slow)
	s.check(all.a.Object, all.l, need, first.cold)
	w := newWords(s.place(all, 0), int32(need))
	s.prefetch(g[0], w.m, need)
	s.columnsOf(w, xs, low)
	vals := make([]val, len(xs))
	for n, x := range xs {
		offs := make([]int32, s.group)
		for l := range offs {
			offs[l] = x.a.Offsets[l] + int32(x.a.Disp-low)
		}
		vals[n] = s.loadOffsets(w, x.t, offs)
	}
	s.f.ColdBegin()
	s.bind(first.cold)
	s.bind(first.slow)
	for n, x := range xs {
		s.lanePointers(x)
		s.laneCall(x, subLoad)
		s.moveVal(vals[n], s.laneResult(x))
	}
	s.jump(first.done)
	s.f.ColdEnd()
	s.bind(first.done)
	for n, x := range xs {
		s.result(x.i, vals[n])
		s.memory.groups.done[x.i.ID] = true
	}
}

// columnsOf transposes the words that the Loads want, where at least half of those loaded are.
func (s *selector) columnsOf(w *wordLoad, xs []*access, low int64) {
	offsets := xs[0].a.Offsets
	pitch := s.stride(offsets[:s.group])
	if s.level == amd64.AVX2 && w.end%4 != 0 {
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
		for p := range s.parts {
			s.transpose(w, p, offsets[p*s.per]+int32(from), pitch, wanted)
		}
	}
}

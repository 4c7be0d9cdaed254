package choose

import (
	"github.com/mlxlua/mlxlua/metal/jit/lanes"
	"github.com/mlxlua/mlxlua/metal/kir"
)

// openGroups are the groups that may still grow, in a walk over a block.
type openGroups struct {
	g             *groups
	loads, stores [][]*kir.Instr
	since         int  // where the first of them began
	loop          bool // the block is within a loop
}

// find finds the groups of a block and those in it.
func (s *groups) find(b *kir.Block, loop bool) {
	if b == nil {
		return
	}
	o := &openGroups{g: s, loop: loop}
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
			o.flushRows()
			s.find(i.Body, loop || i.Op == kir.Loop)
			s.find(i.Else, loop)
		}
	}
	o.flush(kir.Void, kir.Void)
}

// load adds a Load to the groups.
func (o *openGroups) load(i *kir.Instr) {
	o.flushOnly(false, i.Args[0].Type)
	if o.g.groupable(i) || o.loop && o.g.inRow(i) {
		o.loads = o.join(o.loads, i)
	}
}

// store adds a Store to the groups.
func (o *openGroups) store(i *kir.Instr) {
	t := i.Args[0].Type
	o.flushOnly(true, t)
	if o.g.groupable(i) && len(o.stores) > 0 && o.g.alike(o.stores[len(o.stores)-1][0], i) {
		o.stores = o.join(o.stores, i)
		return
	}
	o.flushOnly(false, t)
	if o.g.groupable(i) {
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
		if o.g.alike(list[0], i) && len(list)*o.regsOf(i) < maxGroupRegs {
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

// flushRows closes the groups of Loads of neighbouring elements: what comes may end lanes that would not have loaded.
func (o *openGroups) flushRows() {
	keep := o.loads[:0]
	for _, g := range o.loads {
		if a := o.g.info.Access[g[0].ID]; a.Mode == lanes.AccessOffsets && a.Offsets[1] == 4 {
			o.closeLoads(g)
			continue
		}
		keep = append(keep, g)
	}
	o.loads = keep
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

// checkedOnly reports whether the Loads of a group like i are checked together, and done each in its place.
func (s *groups) checkedOnly(i *kir.Instr) bool {
	a := s.info.Access[i.ID]
	return a.Mode == lanes.AccessUniform || i.Op == kir.Load && a.Offsets[1] == 4
}

// groupable reports whether an access may be of a group.
func (s *groups) groupable(i *kir.Instr) bool {
	a := s.info.Access[i.ID]
	if i.Op == kir.Load && !s.info.NeedBase[i.ID] && !s.info.NeedVec[i.ID] {
		return false
	}
	if a.Object == 0 || s.addr.isThread(a.Object) || i.Op == kir.Store && s.addr.refuses(a.Object) {
		return false
	}
	if a.Mode == lanes.AccessUniform {
		return i.Op == kir.Load
	}
	if a.Mode != lanes.AccessOffsets || a.Size > 4 || a.Span > maxSpan {
		return false
	}
	return strideOf(a.Offsets[:s.e.group]) != 0 && a.Offsets[0] == 0
}

// inRow reports whether a Load is of neighbouring elements, whole words, one for each lane.
func (s *groups) inRow(i *kir.Instr) bool {
	a := s.info.Access[i.ID]
	return s.info.NeedVec[i.ID] && a.Object != 0 && !s.addr.isThread(a.Object) && a.Mode == lanes.AccessOffsets &&
		a.Size == 4 && a.Span <= maxSpan && a.Offsets[0] == 0 && consecutive(a.Offsets[:s.e.group], 4)
}

// elementOf is the type of what a Load or Store moves.
func elementOf(i *kir.Instr) kir.Type {
	if i.Op == kir.Store {
		return i.Args[1].Type
	}
	return i.Type
}

// alike reports whether two Loads, or two Stores, differ in a small constant offset only.
func (s *groups) alike(x, y *kir.Instr) bool {
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
	d, reach := b.Disp-a.Disp, int64(1024)
	if a.Mode == lanes.AccessOffsets && a.Offsets[1] == 4 {
		reach = rowReach
	}
	return d > -reach && d < reach
}

// regsOf is how many registers each Load of a group like i holds from the first one on: those of one address are
// loaded where they stand.
func (o *openGroups) regsOf(i *kir.Instr) int {
	if o.g.checkedOnly(i) {
		return 0
	}
	return o.g.e.parts
}

// closeLoads keeps a group of several Loads for the first of them to do.
func (o *openGroups) closeLoads(g []*kir.Instr) {
	switch {
	case len(g) <= 1:
	case o.g.checkedOnly(g[0]):
		o.g.checked[g[0].ID] = g
	default:
		o.g.loads[g[0].ID] = g
	}
}

// closeStores keeps a group of Stores that fill the stride for the last of them to do.
func (o *openGroups) closeStores(g []*kir.Instr) {
	a := o.g.info.Access[g[0].ID]
	pitch, size, low := int64(a.Offsets[1]), int64(a.Size), a.Disp
	for _, i := range g {
		low = min(low, o.g.info.Access[i.ID].Disp)
	}
	var filled int64 // a bit for each element of the stride
	for _, i := range g {
		d := o.g.info.Access[i.ID].Disp - low
		if d%size != 0 || d >= pitch || filled>>(d/size)&1 != 0 {
			return
		}
		filled |= 1 << (d / size)
	}
	if int64(len(g))*size != pitch || pitch > 32 {
		return
	}
	o.g.stores[g[len(g)-1].ID] = g
	for _, i := range g[:len(g)-1] {
		o.g.done[i.ID] = true
	}
}

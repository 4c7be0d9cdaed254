package lanes

import "github.com/mlxlua/mlxlua/metal/kir"

// place is a block of the kernel in the tree of blocks.
type place struct {
	block  *kir.Block
	owner  *kir.Instr // nil: the kernel's body
	parent int32
	depth  int32
}

// scanner finds positions, loops and the scopes of variables.
type scanner struct {
	*analysis
	places []place
	at     int32   // the current block
	home   []int32 // by variable: the smallest block with all its accesses so far, -1 without any
	first  []*kir.Instr
	where  []int32 // by variable: the block of its first access
}

// scan walks the kernel once, before the fixpoint.
func (a *analysis) scan() {
	n := len(a.vars)
	s := &scanner{analysis: a, home: make([]int32, n), first: make([]*kir.Instr, n), where: make([]int32, n)}
	for i := range s.home {
		s.home[i] = -1
	}
	s.places = append(s.places, place{block: a.k.Body, parent: -1})
	s.scanBlock(a.k.Body, -1)
	for i := range a.vars {
		s.scopeOf(i)
	}
}

func (s *scanner) scanBlock(b *kir.Block, loop int32) {
	for _, in := range b.Instrs {
		id := in.ID
		s.pos[id] = int32(len(s.order))
		s.loop[id] = loop
		s.order = append(s.order, in)
		switch {
		case in.Op == kir.VarGet || in.Op == kir.VarSet:
			s.access(in)
		case in.Op == kir.Barrier:
			s.info.Barriers = true
		case in.Op >= kir.Reduce && in.Op <= kir.SimdBarrier:
			s.info.Crossing = true
		case in.Op.HasBody():
			inner := loop
			if in.Op == kir.Loop {
				inner = s.pos[id]
				s.inner = append(s.inner, inner)
			}
			s.nested(in, in.Body, inner)
			if in.Else != nil {
				s.nested(in, in.Else, inner)
			}
		}
		s.end[id] = int32(len(s.order))
	}
}

func (s *scanner) nested(owner *kir.Instr, b *kir.Block, loop int32) {
	s.places = append(s.places, place{b, owner, s.at, s.places[s.at].depth + 1})
	outer := s.at
	s.at = int32(len(s.places) - 1)
	s.scanBlock(b, loop)
	s.at = outer
}

func (s *scanner) access(in *kir.Instr) {
	v := &s.vars[in.Imm]
	if in.Op == kir.VarGet {
		v.gets = append(v.gets, s.pos[in.ID])
	} else {
		v.sets = append(v.sets, s.pos[in.ID])
	}
	h := s.home[in.Imm]
	if h < 0 {
		s.first[in.Imm], s.where[in.Imm], s.home[in.Imm] = in, s.at, s.at
		return
	}
	c := s.at
	for h != c {
		if s.places[h].depth >= s.places[c].depth {
			h = s.places[h].parent
		} else {
			c = s.places[c].parent
		}
	}
	s.home[in.Imm] = h
}

// scopeOf finds the smallest block that holds all accesses of a variable and in which it is set before it is read,
// the kernel's with a zero at entry if there is none.
func (s *scanner) scopeOf(i int) {
	v := &s.vars[i]
	v.object = noObject
	h := s.home[i]
	if h < 0 {
		return
	}
	child, c := s.first[i], s.where[i]
	for c != h {
		child = s.places[c].owner
		c = s.places[c].parent
	}
	if s.setsFirst(v, child, uint64(i)) {
		v.scope = int(s.places[h].depth)
		return
	}
	if len(v.gets) == 0 {
		return
	}
	s.info.VarInit[i] = true
	v.seen, v.pattern, v.object = true, uniformPattern(maxAlign), noObject
	if s.k.Vars[i].Type.IsPtr() {
		v.object = 0
	}
	if t := s.k.Vars[i].Type; !isIndex(t) {
		v.pattern.Align = 1
	}
}

// setsFirst reports whether the instruction sets the variable in every lane before it reads it.
func (s *scanner) setsFirst(v *variable, in *kir.Instr, index uint64) bool {
	switch in.Op {
	case kir.VarSet:
		return true
	case kir.If:
		return in.Else != nil && s.blockSetsFirst(v, in.Body, index) && s.blockSetsFirst(v, in.Else, index)
	}
	return false
}

func (s *scanner) blockSetsFirst(v *variable, b *kir.Block, index uint64) bool {
	for _, in := range b.Instrs {
		switch {
		case (in.Op == kir.VarGet || in.Op == kir.VarSet) && in.Imm == index:
			return in.Op == kir.VarSet
		case in.Op.HasBody() && (within(v.gets, s.pos[in.ID], s.end[in.ID]) || within(v.sets, s.pos[in.ID], s.end[in.ID])):
			return s.setsFirst(v, in, index)
		case in.Op == kir.Break || in.Op == kir.Continue || in.Op == kir.Return:
			return true // nothing after this runs
		}
	}
	return false
}

// within reports whether one of the ascending positions is in from..to-1.
func within(s []int32, from, to int32) bool {
	i := after(s, from-1)
	return i < len(s) && s[i] < to
}

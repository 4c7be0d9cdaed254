package msl

import (
	"github.com/mlxlua/mlxlua/metal/kir"
)

// The portable dialect, which every built-in kernel keeps to: a function of the SIMD-group or the quad stands where
// all lanes of the group arrive together, a barrier where all threads of the threadgroup do, and no thread waits for
// another threadgroup. checkPortable proves it on a finished kernel and reports what it cannot prove.
//
// The proof tracks how far a value is equal: over the threadgroup, over each SIMD-group, or not at all. It relies on
// the kernel having no data race: an unsynchronised load of one address by all lanes then gives one value. What
// variables and thread memory hold counts from all writes together, wherever they stand.

// extent says over which threads a value is the same, or arrives together.
type extent uint8

const (
	perThread      extent = iota
	perSimdgroup          // the same in all lanes of a SIMD-group
	perThreadgroup        // the same in all threads of a threadgroup
)

// escape is a way out of a structured instruction that ends elsewhere than behind it. The target is nil for a return.
type escape struct {
	target *kir.Instr
	ext    extent
}

// uniformity is the state of the proof. What it holds only ever gets worse, so the rounds end.
type uniformity struct {
	vals    []extent
	vars    []extent
	regions []extent // of thread memory: what it holds
	loops   map[*kir.Instr]extent
	changed bool

	// Values that depend on an atomic read of device memory, and the Ifs and loops that do.
	atomVals    []bool
	atomVars    []bool
	atomRegions []bool
	atomIfs     int
	waits       map[*kir.Instr]*wait
	open        []*wait // the Loops and Blocks around
}

// wait is what the end of a Loop or Block depends on.
type wait struct {
	in    *kir.Instr
	ifs   int  // Ifs on atomic values around it
	reads bool // it holds an atomic access to device memory
	free  bool // some exit does not depend on device atomics
	exits bool
}

func checkPortable(c *compiler, k *kir.Kernel) {
	if !needsProof(k) {
		return
	}
	s := &uniformity{
		vals: make([]extent, k.NumInstrs), vars: make([]extent, len(k.Vars)),
		regions: make([]extent, len(k.Regions)), loops: map[*kir.Instr]extent{},
		atomVals: make([]bool, k.NumInstrs), atomVars: make([]bool, len(k.Vars)),
		atomRegions: make([]bool, len(k.Regions)),
	}
	for i := range s.vars {
		s.vars[i] = perThreadgroup
	}
	for i := range s.regions {
		s.regions[i] = perThreadgroup
	}
	for s.changed = true; s.changed; {
		s.changed = false
		s.waits = map[*kir.Instr]*wait{}
		s.block(k.Body, perThreadgroup, nil)
	}
	s.block(k.Body, perThreadgroup, func(in *kir.Instr, here extent) {
		at := c.places[in.Pos]
		switch {
		case in.Op == kir.Barrier && here < perThreadgroup:
			c.errorf(DivergentBarrier, at, "not all threads of the threadgroup arrive at this barrier together: "+
				"what stands around or before it depends on more than the threadgroup")
		case in.Op != kir.Barrier && here < perSimdgroup:
			c.errorf(DivergentCollective, at, "not all lanes of the SIMD-group arrive at this function together: "+
				"what stands around or before it depends on the lane")
		}
	})
	k.Body.Walk(func(in *kir.Instr) {
		if w := s.waits[in]; in.Op == kir.Loop && w != nil && w.reads && w.exits && !w.free {
			c.errorf(WaitsForOthers, c.places[in.Pos], "this loop ends only when an atomic of device memory says so: "+
				"threadgroups must not wait for one another")
		}
	})
}

// needsProof reports whether a kernel has anything that the dialect restricts.
func needsProof(k *kir.Kernel) bool {
	found := false
	k.Body.Walk(func(in *kir.Instr) { found = found || in.Op.Convergent() || in.Op.IsAtomic() })
	return found
}

// block walks a block that is entered by the threads of one extent together. It returns the ways out of it.
func (s *uniformity) block(b *kir.Block, here extent, visit func(*kir.Instr, extent)) []escape {
	var out []escape
	if b == nil {
		return nil
	}
	for _, in := range b.Instrs {
		ways := s.instr(in, here, visit)
		for _, w := range ways { // who has left is missing from here on
			here = min(here, w.ext)
		}
		out = append(out, ways...)
	}
	return out
}

func (s *uniformity) instr(in *kir.Instr, here extent, visit func(*kir.Instr, extent)) []escape {
	if visit != nil && in.Op.Convergent() {
		visit(in, here)
	}
	switch in.Op {
	case kir.If:
		inside := min(here, s.vals[in.Args[0].ID])
		atomic := s.atomVals[in.Args[0].ID]
		if atomic {
			s.atomIfs++
		}
		ways := s.block(in.Body, inside, visit)
		ways = append(ways, s.block(in.Else, inside, visit)...)
		if atomic {
			s.atomIfs--
		}
		return ways
	case kir.BlockOp:
		return outside(s.body(in, here, visit), in)
	case kir.Loop:
		return s.loop(in, here, visit)
	case kir.Break, kir.Continue, kir.Return:
		s.exit(in)
		return []escape{{in.Target, here}}
	case kir.VarSet:
		s.worsen(&s.vars[in.Imm], min(here, s.vals[in.Args[0].ID]))
		s.taint(&s.atomVars[in.Imm], s.atomVals[in.Args[0].ID])
	case kir.Store:
		s.store(in, here)
	default:
		s.vals[in.ID] = s.value(in, here)
		s.atomVals[in.ID] = s.atomic(in)
	}
	return nil
}

// body walks a Loop or Block, keeping account of how it ends.
func (s *uniformity) body(in *kir.Instr, here extent, visit func(*kir.Instr, extent)) []escape {
	w := &wait{in: in, ifs: s.atomIfs}
	s.waits[in] = w
	s.open = append(s.open, w)
	ways := s.block(in.Body, here, visit)
	s.open = s.open[:len(s.open)-1]
	if len(s.open) > 0 && w.reads {
		s.open[len(s.open)-1].reads = true
	}
	return ways
}

// outside drops the ways that end behind the target.
func outside(ways []escape, target *kir.Instr) []escape {
	out := ways[:0]
	for _, w := range ways {
		if w.target != target {
			out = append(out, w)
		}
	}
	return out
}

func (s *uniformity) loop(in *kir.Instr, here extent, visit func(*kir.Instr, extent)) []escape {
	known, ok := s.loops[in]
	if !ok {
		known = perThreadgroup
	}
	inside := min(here, known)
	ways := s.body(in, inside, visit)
	for _, x := range ways { // the next round is without those
		inside = min(inside, x.ext)
	}
	if inside < min(here, known) || !ok {
		s.loops[in] = inside
		s.changed = true
	}
	return outside(ways, in)
}

// exit notes for the loops that a jump leaves whether it depends on a device atomic.
func (s *uniformity) exit(in *kir.Instr) {
	if in.Op == kir.Continue {
		return
	}
	for i := len(s.open) - 1; i >= 0; i-- {
		w := s.open[i]
		w.exits = true
		w.free = w.free || s.atomIfs == w.ifs
		if in.Target == w.in {
			return
		}
	}
}

// value returns how far the result of an instruction is equal.
func (s *uniformity) value(in *kir.Instr, here extent) extent {
	e := perThreadgroup
	for _, a := range in.Args {
		e = min(e, s.vals[a.ID])
	}
	switch in.Op {
	case kir.Builtin:
		switch {
		case in.Mode == kir.SimdgroupIndexInThreadgroup:
			return perSimdgroup
		case in.Mode.Uniform():
			return perThreadgroup
		}
		return perThread
	case kir.VarGet:
		return s.vars[in.Imm]
	case kir.Div, kir.Shr:
		// thread_index_in_threadgroup / 32 is the number of the SIMD-group.
		if x, n := in.Args[0], in.Args[1]; s.isFlatIndex(x) && n.Op == kir.Const && in.Type == kir.U32 &&
			(in.Op == kir.Div && n.Imm >= 32 && n.Imm%32 == 0 || in.Op == kir.Shr && n.Imm >= 5 && n.Imm < 32) {
			return perSimdgroup
		}
	case kir.Load:
		if in.Args[0].Type == kir.PtrThread {
			r, ok := regionOf(in.Args[0])
			if !ok {
				return perThread
			}
			return min(e, s.regions[r])
		}
		return min(e, here)
	case kir.AtomicLoad, kir.AtomicRMW, kir.AtomicCAS, kir.ScanInclusive, kir.ScanExclusive:
		return perThread
	case kir.Reduce, kir.Ballot, kir.BroadcastFirst:
		if in.Imm != 32 {
			return perThread
		}
		return perSimdgroup
	case kir.Shuffle:
		if in.Imm != 32 || s.vals[in.Args[1].ID] == perThread {
			return perThread
		}
		return perSimdgroup
	}
	return e
}

func (s *uniformity) isFlatIndex(in *kir.Instr) bool {
	return in.Op == kir.Builtin && in.Mode == kir.ThreadIndexInThreadgroup
}

// regionOf returns the region a pointer was made from.
func regionOf(p *kir.Instr) (int, bool) {
	for p.Op == kir.PtrAdd {
		p = p.Args[0]
	}
	return int(p.Imm), p.Op == kir.RegionAddr
}

// store notes what thread memory holds now, and which memory of the threadgroup holds an atomic's value.
func (s *uniformity) store(in *kir.Instr, here extent) {
	p, x := in.Args[0], in.Args[1]
	if p.Type != kir.PtrThread && p.Type != kir.PtrThreadgroup {
		return
	}
	e := min(here, s.vals[p.ID], s.vals[x.ID])
	r, ok := regionOf(p)
	for i := range s.regions {
		if ok && i != r {
			continue
		}
		s.worsen(&s.regions[i], e)
		s.taint(&s.atomRegions[i], s.atomVals[x.ID])
	}
}

func (s *uniformity) worsen(e *extent, to extent) {
	if to < *e {
		*e = to
		s.changed = true
	}
}

// taint notes that something depends on a device atomic: by its value, or because it is set under such a condition.
func (s *uniformity) taint(b *bool, x bool) {
	if (x || s.atomIfs > 0) && !*b {
		*b = true
		s.changed = true
	}
}

// atomic reports whether the result of an instruction depends on an atomic read of device memory.
func (s *uniformity) atomic(in *kir.Instr) bool {
	switch in.Op {
	case kir.VarGet:
		return s.atomVars[in.Imm]
	case kir.AtomicLoad, kir.AtomicRMW, kir.AtomicCAS:
		if in.Args[0].Type == kir.PtrDevice {
			if len(s.open) > 0 {
				s.open[len(s.open)-1].reads = true
			}
			return true
		}
	case kir.Load:
		if r, ok := regionOf(in.Args[0]); ok && s.atomRegions[r] {
			return true
		}
	}
	for _, a := range in.Args {
		if s.atomVals[a.ID] {
			return true
		}
	}
	return false
}

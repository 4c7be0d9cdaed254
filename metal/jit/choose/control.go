package choose

import (
	"github.com/mlxlua/mlxlua/metal/jit/code"
	"github.com/mlxlua/mlxlua/metal/jit/lanes"
	"github.com/mlxlua/mlxlua/metal/kir"
)

// construct is a Loop or BlockOp being selected.
type construct struct {
	of        *kir.Instr
	end, next code.Label // after it; its next round (loops)
	latch     bool       // next is not the round's begin but where masks are put together first
	left      []code.R   // lanes that left for its end, nil if nobody needs to know
	back      []code.R   // lanes that wait for the next round, nil if there is no divergent Continue
}

// control selects control flow. Uniform conditions are branches. Where lanes part, masks say who runs: a scope (the
// kernel, a branch, a loop's or a block's body) owns the registers of its mask, which change when lanes leave it early,
// and has a place to go when none is left. So no instruction ever runs for no lane.
type control struct {
	e       *emitter
	m       masks
	g       general
	vals    *values
	on      *active
	polls   *polls
	info    *lanes.Info
	block   func(*kir.Block) (ends bool) // selects a block
	empty   code.Label                   // where to go when no lane is left in the scope
	open    []*construct                 // loops and blocks around, the innermost last
	leaves  []bool                       // by Instr.ID, of Ifs, Loops, BlockOps: some lanes may leave to beyond its end
	uses    []uint8                      // by Instr.ID: how often a value is used; 255 is many
	compare *kir.Instr                   // a comparison that was left to the If that comes next
	end     code.Label                   // of the body
}

// inLoop reports whether a Loop is being selected.
func (s *control) inLoop() bool {
	for _, e := range s.open {
		if e.of.Op == kir.Loop {
			return true
		}
	}
	return false
}

// findLeaves fills leaves and uses, and returns whether lanes may leave b's scope for somewhere beyond
// stop's end: from the targets of its divergent escapes.
func (s *control) findLeaves(b *kir.Block) (targets []*kir.Instr, returns bool) {
	if b == nil {
		return nil, false
	}
	for _, i := range b.Instrs {
		for _, a := range i.Args {
			if s.uses[a.ID] < 255 {
				s.uses[a.ID]++
			}
		}
		switch i.Op {
		case kir.Break, kir.Continue:
			if s.info.Divergent[i.ID] {
				targets = append(targets, i.Target)
			}
		case kir.Return:
			returns = returns || s.info.Divergent[i.ID]
		case kir.If, kir.Loop, kir.BlockOp:
			in, r := s.findLeaves(i.Body)
			in2, r2 := s.findLeaves(i.Else)
			r = r || r2
			outer := 0
			for _, t := range append(in, in2...) {
				if t != i {
					targets = append(targets, t)
					outer++
				}
			}
			s.leaves[i.ID] = r || outer > 0
			returns = returns || r
		}
	}
	return targets, returns
}

// scope runs body with mask as its own, leaving for empty when no lane is left.
func (s *control) scope(mask []code.R, empty code.Label, body func() bool) (ends bool) {
	exec, out, all := s.on.exec, s.empty, s.on.all
	s.on.exec, s.empty, s.on.all = mask, empty, false
	ends = body()
	s.on.exec, s.empty, s.on.all = exec, out, all
	return ends
}

// ifInstr selects an If.
func (s *control) ifInstr(i *kir.Instr) (ends bool) {
	if s.info.Divergent[i.ID] {
		return s.divergentIf(i)
	}
	if x := s.plainBreak(i); x != nil {
		s.e.emit(code.Inst{Op: code.Jcc, Cond: s.condition(i.Args[0]), Label: x.end})
		return false
	}
	otherwise, end := s.e.label(), s.e.label()
	s.e.emit(code.Inst{Op: code.Jcc, Cond: s.condition(i.Args[0]).Not(), Label: otherwise})
	thenEnds := s.block(i.Body)
	if i.Else == nil {
		s.e.bind(otherwise)
		return false
	}
	if !thenEnds {
		s.e.jump(end)
	}
	s.e.bind(otherwise)
	elseEnds := s.block(i.Else)
	s.e.bind(end)
	return thenEnds && elseEnds
}

// plainBreak returns what i leaves if all it does is to leave a loop or block where a jump is enough.
func (s *control) plainBreak(i *kir.Instr) *construct {
	if i.Else != nil || len(i.Body.Instrs) != 1 {
		return nil
	}
	b := i.Body.Instrs[0]
	if b.Op != kir.Break || s.info.Divergent[b.ID] {
		return nil
	}
	if x := s.target(b); x != nil && x.left == nil {
		return x
	}
	return nil
}

// condition sets the flags for a uniform condition, and returns what holds if it is true.
func (s *control) condition(c *kir.Instr) code.Cond {
	if c == s.compare {
		consts := constsOf(c)
		var args [2]operand
		for n, a := range c.Args {
			if consts[n] != nil {
				lane, _ := laneBits(a.Type, a.Imm)
				args[n] = operand{bits: lane, k: true}
			} else {
				args[n] = operand{r: s.vals.base(a)}
			}
		}
		return s.g.compare(c.Op, c.Args[0].Type, args[0], args[1])
	}
	b := s.vals.base(c)
	s.e.emit(code.Inst{Op: code.Test, W: 4, A: b, B: b})
	return code.CondNE
}

// decides reports whether i, a comparison, only decides the branch that follows it, in general registers.
func (s *control) decides(i, next *kir.Instr) bool {
	return next.Op == kir.If && next.Args[0] == i && s.uses[i.ID] == 1 && !s.info.Divergent[next.ID] &&
		i.Op >= kir.Eq && i.Op <= kir.Ge && !i.Args[0].Type.IsFloat() && !i.Args[0].Type.IsPtr() &&
		s.info.Patterns[i.Args[0].ID].Kind == lanes.Uniform && s.info.Patterns[i.Args[1].ID].Kind == lanes.Uniform
}

// divergentIf runs both branches, each for its lanes.
func (s *control) divergentIf(i *kir.Instr) (ends bool) {
	c := s.vals.laneVal(i.Args[0])
	cond := make([]code.R, s.e.parts)
	for p := range cond {
		cond[p] = c.unitOf(p).r[0]
	}
	leaves := s.leaves[i.ID]
	yes := s.m.each(s.m.and, s.on.exec, cond)
	var no []code.R
	if i.Else != nil || leaves {
		no = s.m.each(func(a, b code.R) code.R { return s.m.andNot(a, b) }, s.on.exec, cond)
	}
	// What is left of yes is empty where control comes to skip without passing the branch's end.
	skip, end := s.e.label(), s.e.label()
	s.m.jumpIfNone(yes, skip)
	thenEnds := s.scope(yes, skip, func() bool { return s.block(i.Body) })
	elseEnds := false
	if i.Else != nil {
		s.e.bind(skip)
		s.m.jumpIfNone(no, end)
		elseEnds = s.scope(no, end, func() bool { return s.block(i.Else) })
		s.e.bind(end)
	} else {
		s.e.bind(skip)
	}
	if !leaves {
		return false
	}
	s.on.all = false
	switch {
	case thenEnds && elseEnds:
		// Nobody is left, but for what "skip" brought: a branch whose lanes all left jumped there.
		s.gone()
		return true
	case thenEnds:
		s.m.set(s.on.exec, no)
	case elseEnds:
		s.m.set(s.on.exec, yes)
	default:
		s.m.set(s.on.exec, s.m.each(s.m.or, yes, no))
	}
	s.m.jumpIfNone(s.on.exec, s.empty)
	return false
}

// gone clears the scope's mask and leaves it: no lane goes on.
func (s *control) gone() {
	for _, r := range s.on.exec {
		s.e.zeroReg(r)
	}
	s.e.jump(s.empty)
}

// loop selects a Loop.
func (s *control) loop(i *kir.Instr) (ends bool) {
	x := &construct{of: i, end: s.e.label(), next: s.e.label()}
	s.open = append(s.open, x)
	defer func() { s.open = s.open[:len(s.open)-1] }()
	if !s.info.Divergent[i.ID] && !s.leaves[i.ID] {
		s.e.f.Loop()
		s.e.bind(x.next)
		if !s.block(i.Body) {
			s.polls.poll(i)
			s.e.jump(x.next)
		}
		s.e.f.EndLoop()
		s.e.bind(x.end)
		return false
	}
	mask := s.m.copyAll(s.on.exec)
	if s.leaves[i.ID] {
		x.left = s.m.empty()
	}
	if s.continues(i.Body, i) {
		x.back = s.m.empty()
	}
	round, latch := s.e.label(), s.e.label()
	s.e.f.Loop()
	s.e.bind(round)
	x.next, x.latch = latch, true
	s.scope(mask, latch, func() bool { return s.block(i.Body) })
	s.e.bind(latch)
	if x.back != nil {
		s.m.set(mask, s.m.each(s.m.or, mask, x.back))
		for _, r := range x.back {
			s.e.zeroReg(r)
		}
	}
	s.polls.poll(i) // here, where every way to the next round comes by
	s.m.jumpIfAny(mask, round)
	s.e.f.EndLoop()
	s.e.bind(x.end)
	s.leave(x)
	return false
}

// leave goes on after a Loop or BlockOp: with the lanes that came to its end, if some went elsewhere.
func (s *control) leave(x *construct) {
	if x.left != nil {
		s.on.all = false
		s.m.set(s.on.exec, x.left)
		s.m.jumpIfNone(s.on.exec, s.empty)
	}
}

// continues reports whether there is a divergent Continue of the loop in b.
func (s *control) continues(b *kir.Block, loop *kir.Instr) bool {
	if b == nil {
		return false
	}
	for _, i := range b.Instrs {
		if i.Op == kir.Continue && i.Target == loop && s.info.Divergent[i.ID] ||
			s.continues(i.Body, loop) || s.continues(i.Else, loop) {
			return true
		}
	}
	return false
}

// blockOp selects a BlockOp.
func (s *control) blockOp(i *kir.Instr) (ends bool) {
	x := &construct{of: i, end: s.e.label()}
	s.open = append(s.open, x)
	defer func() { s.open = s.open[:len(s.open)-1] }()
	if !s.info.Divergent[i.ID] && !s.leaves[i.ID] {
		s.block(i.Body)
		s.e.bind(x.end)
		return false
	}
	mask := s.m.copyAll(s.on.exec)
	if s.leaves[i.ID] {
		x.left = s.m.empty()
	}
	s.scope(mask, x.end, func() bool {
		if !s.block(i.Body) && x.left != nil {
			s.m.set(x.left, s.m.each(s.m.or, x.left, mask))
		}
		return false
	})
	s.e.bind(x.end)
	s.leave(x)
	return false
}

// target returns the open loop or block that a Break or Continue names.
func (s *control) target(i *kir.Instr) *construct {
	for n := len(s.open) - 1; n >= 0; n-- {
		if s.open[n].of == i.Target {
			return s.open[n]
		}
	}
	return nil
}

// escape selects a Break, Continue or Return.
func (s *control) escape(i *kir.Instr) {
	if i.Op == kir.Return {
		if s.info.Divergent[i.ID] {
			s.gone()
		} else {
			s.e.jump(s.end)
		}
		return
	}
	x := s.target(i)
	if x == nil {
		s.e.unsupported(i, "its target is not open")
		return
	}
	if !s.info.Divergent[i.ID] {
		// All lanes that run in the target go.
		if i.Op == kir.Continue {
			if !x.latch {
				s.polls.poll(i.Target)
			}
			s.e.jump(x.next)
			return
		}
		if x.left != nil {
			s.m.set(x.left, s.m.each(s.m.or, x.left, s.on.exec))
		}
		s.e.jump(x.end)
		return
	}
	to := x.left
	if i.Op == kir.Continue {
		to = x.back
	}
	if to != nil {
		s.m.set(to, s.m.each(s.m.or, to, s.on.exec))
	}
	s.gone()
}

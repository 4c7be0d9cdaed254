package jit

import (
	"github.com/mlxlua/mlxlua/metal/jit/amd64"
	"github.com/mlxlua/mlxlua/metal/jit/lanes"
	"github.com/mlxlua/mlxlua/metal/kir"
)

// Control flow. Uniform conditions are branches. Where lanes part, masks say who runs: a scope (the kernel, a
// branch, a loop's or a block's body) owns the registers of its mask, which change when lanes leave it early, and
// has a place to go when none is left. So no instruction ever runs for no lane.

// flow is the state of control flow while code is made.
type flow struct {
	empty amd64.Label // where to go when no lane is left in the scope
	// Loops and blocks that lanes may leave at different times, by their Instr.
	open       []*exits
	leaves     []bool      // by Instr.ID: of Ifs, Loops and BlockOps: some lanes may leave from inside to beyond its end
	uses       []uint8     // by Instr.ID: how often a value is used; 255 is many
	compare    *kir.Instr  // a comparison that was left to the If that comes next
	end        amd64.Label // of the body
	polls      bool        // something leaves by saveAll
	cost       []int       // by Instr.ID, of loops: see costs
	body       int         // what the kernel's body costs
	barriers   int         // in the body
	safepoints int32       // handed out
	resume     amd64.Label // saveAll
	next       amd64.Label // barrier kernels: where the next group of lanes gets its turn
}

// exits is a Loop or BlockOp being selected.
type exits struct {
	of        *kir.Instr
	end, next amd64.Label // after it; its next round (loops)
	latch     bool        // next is not the round's begin but where masks are put together first
	left      []amd64.R   // lanes that left for its end, nil if nobody needs to know
	back      []amd64.R   // lanes that wait for the next round, nil if there is no divergent Continue
}

// findLeaves fills flow.leaves and flow.uses, and returns whether lanes may leave b's scope for somewhere beyond
// stop's end: from the targets of its divergent escapes.
func (s *selector) findLeaves(b *kir.Block) (targets []*kir.Instr, returns bool) {
	if b == nil {
		return nil, false
	}
	for _, i := range b.Instrs {
		for _, a := range i.Args {
			if s.flow.uses[a.ID] < 255 {
				s.flow.uses[a.ID]++
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
			s.flow.leaves[i.ID] = r || outer > 0
			returns = returns || r
		}
	}
	return targets, returns
}

// scope runs body with mask as its own, leaving for empty when no lane is left.
func (s *selector) scope(mask []amd64.R, empty amd64.Label, body func() bool) (ends bool) {
	exec, out, all := s.exec, s.flow.empty, s.allActive
	s.exec, s.flow.empty, s.allActive = mask, empty, false
	ends = body()
	s.exec, s.flow.empty, s.allActive = exec, out, all
	return ends
}

func (s *selector) bind(l amd64.Label) { s.f.Bind(l) }
func (s *selector) label() amd64.Label { return s.f.NewLabel() }

func (s *selector) jump(l amd64.Label) { s.emit(amd64.Inst{Op: amd64.Jmp, Label: l}) }

// copyMask returns registers of a mask's own.
func (s *selector) copyMask(m []amd64.R) []amd64.R {
	c := make([]amd64.R, len(m))
	for p := range m {
		c[p] = s.copyReg(m[p])
	}
	return c
}

// eachMask combines two masks part by part.
func (s *selector) eachMask(op func(a, b amd64.R) amd64.R, a, b []amd64.R) []amd64.R {
	c := make([]amd64.R, len(a))
	for p := range a {
		c[p] = op(a[p], b[p])
	}
	return c
}

// setMask writes a mask's registers.
func (s *selector) setMask(dst, src []amd64.R) {
	for p := range dst {
		s.moveReg(dst[p], src[p])
	}
}

// selectIf selects an If.
func (s *selector) selectIf(i *kir.Instr) (ends bool) {
	if s.info.Divergent[i.ID] {
		return s.divergentIf(i)
	}
	if x := s.plainBreak(i); x != nil {
		s.emit(amd64.Inst{Op: amd64.Jcc, Cond: s.condition(i.Args[0]), Label: x.end})
		return false
	}
	otherwise, end := s.label(), s.label()
	s.emit(amd64.Inst{Op: amd64.Jcc, Cond: s.condition(i.Args[0]).Not(), Label: otherwise})
	thenEnds := s.block(i.Body)
	if i.Else == nil {
		s.bind(otherwise)
		return false
	}
	if !thenEnds {
		s.jump(end)
	}
	s.bind(otherwise)
	elseEnds := s.block(i.Else)
	s.bind(end)
	return thenEnds && elseEnds
}

// plainBreak returns what i leaves if all it does is to leave a loop or block where a jump is enough.
func (s *selector) plainBreak(i *kir.Instr) *exits {
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
func (s *selector) condition(c *kir.Instr) amd64.Cond {
	if c == s.flow.compare {
		consts := constsOf(c)
		var args [2]operand
		for n, a := range c.Args {
			if consts[n] != nil {
				lane, _ := laneBits(a.Type, a.Imm)
				args[n] = operand{bits: lane, k: true}
			} else {
				args[n] = operand{r: s.base(a)}
			}
		}
		return s.scalarCompare(c.Op, c.Args[0].Type, args[0], args[1])
	}
	b := s.base(c)
	s.emit(amd64.Inst{Op: amd64.Test, W: 4, A: b, B: b})
	return amd64.CondNE
}

// decides reports whether i, a comparison, only decides the branch that follows it, in general registers.
func (s *selector) decides(i, next *kir.Instr) bool {
	return next.Op == kir.If && next.Args[0] == i && s.flow.uses[i.ID] == 1 && !s.info.Divergent[next.ID] &&
		i.Op >= kir.Eq && i.Op <= kir.Ge && !i.Args[0].Type.IsFloat() && !i.Args[0].Type.IsPtr() &&
		s.info.Patterns[i.Args[0].ID].Kind == lanes.Uniform && s.info.Patterns[i.Args[1].ID].Kind == lanes.Uniform
}

// divergentIf runs both branches, each for its lanes.
func (s *selector) divergentIf(i *kir.Instr) (ends bool) {
	c := s.laneVal(i.Args[0])
	cond := make([]amd64.R, s.parts)
	for p := range cond {
		cond[p] = c.unitOf(p).r[0]
	}
	leaves := s.flow.leaves[i.ID]
	yes := s.eachMask(s.maskAnd, s.exec, cond)
	var no []amd64.R
	if i.Else != nil || leaves {
		no = s.eachMask(func(a, b amd64.R) amd64.R { return s.maskAndNot(a, b) }, s.exec, cond)
	}
	// What is left of yes is empty where control comes to skip without passing the branch's end.
	skip, end := s.label(), s.label()
	s.jumpIfNone(yes, skip)
	thenEnds := s.scope(yes, skip, func() bool { return s.block(i.Body) })
	elseEnds := false
	if i.Else != nil {
		s.bind(skip)
		s.jumpIfNone(no, end)
		elseEnds = s.scope(no, end, func() bool { return s.block(i.Else) })
		s.bind(end)
	} else {
		s.bind(skip)
	}
	if !leaves {
		return false
	}
	s.allActive = false
	switch {
	case thenEnds && elseEnds:
		// Nobody is left, but for what "skip" brought: a branch whose lanes all left jumped there.
		s.gone()
		return true
	case thenEnds:
		s.setMask(s.exec, no)
	case elseEnds:
		s.setMask(s.exec, yes)
	default:
		s.setMask(s.exec, s.eachMask(s.maskOr, yes, no))
	}
	s.jumpIfNone(s.exec, s.flow.empty)
	return false
}

// gone clears the scope's mask and leaves it: no lane goes on.
func (s *selector) gone() {
	for _, r := range s.exec {
		s.zeroReg(r)
	}
	s.jump(s.flow.empty)
}

// selectLoop selects a Loop.
func (s *selector) selectLoop(i *kir.Instr) (ends bool) {
	x := &exits{of: i, end: s.label(), next: s.label()}
	s.flow.open = append(s.flow.open, x)
	defer func() { s.flow.open = s.flow.open[:len(s.flow.open)-1] }()
	if !s.info.Divergent[i.ID] && !s.flow.leaves[i.ID] {
		s.f.Loop()
		s.bind(x.next)
		if !s.block(i.Body) {
			s.poll(i)
			s.jump(x.next)
		}
		s.f.EndLoop()
		s.bind(x.end)
		return false
	}
	mask := s.copyMask(s.exec)
	if s.flow.leaves[i.ID] {
		x.left = s.newMask()
	}
	if s.continues(i.Body, i) {
		x.back = s.newMask()
	}
	round, latch := s.label(), s.label()
	s.f.Loop()
	s.bind(round)
	x.next, x.latch = latch, true
	s.scope(mask, latch, func() bool { return s.block(i.Body) })
	s.bind(latch)
	if x.back != nil {
		s.setMask(mask, s.eachMask(s.maskOr, mask, x.back))
		for _, r := range x.back {
			s.zeroReg(r)
		}
	}
	s.poll(i) // here, where every way to the next round comes by
	s.jumpIfAny(mask, round)
	s.f.EndLoop()
	s.bind(x.end)
	s.leave(x)
	return false
}

// newMask returns an empty mask.
func (s *selector) newMask() []amd64.R {
	m := make([]amd64.R, s.parts)
	for p := range m {
		m[p] = s.reg(s.classOf(kir.Bool))
		s.zeroReg(m[p])
	}
	return m
}

// leave goes on after a Loop or BlockOp: with the lanes that came to its end, if some went elsewhere.
func (s *selector) leave(x *exits) {
	if x.left != nil {
		s.allActive = false
		s.setMask(s.exec, x.left)
		s.jumpIfNone(s.exec, s.flow.empty)
	}
}

// continues reports whether there is a divergent Continue of the loop in b.
func (s *selector) continues(b *kir.Block, loop *kir.Instr) bool {
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

// selectBlock selects a BlockOp.
func (s *selector) selectBlock(i *kir.Instr) (ends bool) {
	x := &exits{of: i, end: s.label()}
	s.flow.open = append(s.flow.open, x)
	defer func() { s.flow.open = s.flow.open[:len(s.flow.open)-1] }()
	if !s.info.Divergent[i.ID] && !s.flow.leaves[i.ID] {
		s.block(i.Body)
		s.bind(x.end)
		return false
	}
	mask := s.copyMask(s.exec)
	if s.flow.leaves[i.ID] {
		x.left = s.newMask()
	}
	s.scope(mask, x.end, func() bool {
		if !s.block(i.Body) && x.left != nil {
			s.setMask(x.left, s.eachMask(s.maskOr, x.left, mask))
		}
		return false
	})
	s.bind(x.end)
	s.leave(x)
	return false
}

// target returns the open loop or block that a Break or Continue names.
func (s *selector) target(i *kir.Instr) *exits {
	for n := len(s.flow.open) - 1; n >= 0; n-- {
		if s.flow.open[n].of == i.Target {
			return s.flow.open[n]
		}
	}
	return nil
}

// escape selects a Break, Continue or Return.
func (s *selector) escape(i *kir.Instr) {
	if i.Op == kir.Return {
		if s.info.Divergent[i.ID] {
			s.gone()
		} else {
			s.jump(s.flow.end)
		}
		return
	}
	x := s.target(i)
	if x == nil {
		s.unsupported(i, "its target is not open")
		return
	}
	if !s.info.Divergent[i.ID] {
		// All lanes that run in the target go.
		if i.Op == kir.Continue {
			if !x.latch {
				s.poll(i.Target)
			}
			s.jump(x.next)
			return
		}
		if x.left != nil {
			s.setMask(x.left, s.eachMask(s.maskOr, x.left, s.exec))
		}
		s.jump(x.end)
		return
	}
	to := x.left
	if i.Op == kir.Continue {
		to = x.back
	}
	if to != nil {
		s.setMask(to, s.eachMask(s.maskOr, to, s.exec))
	}
	s.gone()
}

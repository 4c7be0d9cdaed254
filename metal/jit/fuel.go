package jit

import (
	"github.com/mlxlua/mlxlua/metal/jit/amd64"
	"github.com/mlxlua/mlxlua/metal/jit/lanes"
	"github.com/mlxlua/mlxlua/metal/kir"
)

// Machine code cannot be interrupted: it asks, by taking fuel from the block, and leaves when that is spent. Loops ask
// at the end of each round, groups of lanes when they have had their turn, unless what they do is little whatever the
// data.
const (
	// smallLoop is how many instructions a loop may execute in all, inner loops included, without asking.
	smallLoop = 20_000
	// smallGroup is how many the groups of lanes of a threadgroup may execute one after the other without asking.
	smallGroup = 40_000
)

// costs finds what blocks cost between two questions: of each loop, in flow.cost, roughly the instructions of a round,
// and returns the sum for b. Inner loops count with all their rounds if they do not ask, with one if they do.
func (s *selector) costs(b *kir.Block) int {
	if b == nil {
		return 0
	}
	sum := 0
	for _, i := range b.Instrs {
		switch i.Op {
		case kir.Loop:
			round := max(1, s.costs(i.Body))
			s.flow.cost[i.ID] = round
			if s.asks(i) {
				sum += round
			} else {
				sum += s.info.Bounded[i.ID] * round
			}
		case kir.If, kir.BlockOp:
			sum += 1 + s.costs(i.Body) + s.costs(i.Else)
		case kir.AtomicRMW, kir.AtomicCAS:
			sum += 16
		default:
			if a := s.info.Access[i.ID]; a != nil && a.Mode >= lanes.AccessGather {
				sum += 8
			} else {
				sum++
			}
		}
	}
	return min(sum, 1<<24)
}

// asks reports whether a loop asks whether to stop, given what a round costs.
func (s *selector) asks(loop *kir.Instr) bool {
	n := s.info.Bounded[loop.ID]
	return n <= 0 || n > smallLoop/s.flow.cost[loop.ID]
}

// poll lets the code leave at the end of a loop's round, to go on later, when its fuel is spent.
func (s *selector) poll(loop *kir.Instr) {
	if !s.asks(loop) {
		return
	}
	cold, back := s.label(), s.label()
	s.spend(s.flow.cost[loop.ID], cold)
	s.bind(back)
	s.f.ColdBegin()
	s.bind(cold)
	if s.info.Waits {
		s.yield(back)
	} else {
		s.exitFor(back)
	}
	s.f.ColdEnd()
}

// spend takes fuel, and jumps if none is left.
func (s *selector) spend(cost int, spent amd64.Label) {
	s.emit(amd64.Inst{Op: amd64.Sub, W: 8, Mem: block(blockFuel), Imm: int64(cost)})
	s.jcc(amd64.CondS, spent)
}

// afterGroup lets the code leave after a group of lanes, before the next one.
func (s *selector) afterGroup() {
	if s.flow.body*(maxThreads/s.group) <= smallGroup {
		return
	}
	s.leaveIf(func(cold amd64.Label) { s.spend(s.flow.body, cold) })
}

// beforeTurn lets the code leave before a group of lanes goes on to its next barrier. Where groups may wait for each
// other each has fuel of its own: what the one before spent of it is taken from blockLeft, that of all turns.
func (s *selector) beforeTurn() {
	cost := max(16, s.flow.body/(1+s.flow.barriers))
	s.leaveIf(func(cold amd64.Label) {
		if !s.info.Waits {
			s.spend(cost, cold)
			return
		}
		s.loadR(8, amd64.RAX, block(blockFuel))
		s.emit(amd64.Inst{Op: amd64.Sub, W: 8, Dst: amd64.RAX, Mem: block(blockTurn)})
		s.emit(amd64.Inst{Op: amd64.Sub, W: 8, Dst: amd64.RAX, Imm: int64(cost)})
		s.emit(amd64.Inst{Op: amd64.Add, W: 8, Mem: block(blockLeft), A: amd64.RAX})
		s.jcc(amd64.CondS, cold)
	})
}

// leaveIf leaves the code, to go on here, where a test says so by jumping to its label.
func (s *selector) leaveIf(test func(cold amd64.Label)) {
	cold, back := s.label(), s.label()
	test(cold)
	s.bind(back)
	s.f.ColdBegin()
	s.bind(cold)
	s.exitFor(back)
	s.f.ColdEnd()
}

// exitFor saves all registers and leaves, to go on at a label.
func (s *selector) exitFor(back amd64.Label) {
	s.flow.polls = true
	s.emit(amd64.Inst{Op: amd64.Lea, W: 8, Dst: amd64.RAX, Label: back})
	s.jump(s.flow.resume)
}

// countBarriers returns how many barriers stand in a block.
func countBarriers(b *kir.Block) (n int) {
	b.Walk(func(i *kir.Instr) {
		if i.Op == kir.Barrier {
			n++
		}
	})
	return n
}

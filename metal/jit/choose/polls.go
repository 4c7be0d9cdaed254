package choose

import (
	"github.com/mlxlua/mlxlua/metal/jit/arena"
	"github.com/mlxlua/mlxlua/metal/jit/code"
	"github.com/mlxlua/mlxlua/metal/jit/lanes"
	"github.com/mlxlua/mlxlua/metal/kir"
)

// Machine code cannot be interrupted: it asks, by taking fuel from the arena, and leaves when that is spent. Loops ask
// at the end of each round, groups of lanes when they have had their turn, unless what they do is little whatever the
// data.
const (
	// smallLoop is how many instructions a loop may execute in all, inner loops included, without asking.
	smallLoop = 20_000
	// smallGroup is how many the groups of lanes of a threadgroup may execute one after the other without asking.
	smallGroup = 40_000
)

// polls decides where code asks whether to stop, and emits the questions, barriers and turns.
type polls struct {
	e          *emitter
	out        *leaver
	info       *lanes.Info
	cost       []int      // by Instr.ID, of loops: see costs
	body       int        // what the kernel's body costs
	barriers   int        // in the body
	safepoints int32      // handed out
	next       code.Label // where the next group of lanes gets its turn, if they take turns
}

// costs finds what blocks cost between two questions: of each loop, in cost, roughly the instructions of a round,
// and returns the sum for b. Inner loops count with all their rounds if they do not ask, with one if they do.
func (s *polls) costs(b *kir.Block) int {
	if b == nil {
		return 0
	}
	sum := 0
	for _, i := range b.Instrs {
		switch i.Op {
		case kir.Loop:
			round := max(1, s.costs(i.Body))
			s.cost[i.ID] = round
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
func (s *polls) asks(loop *kir.Instr) bool {
	n := s.info.Bounded[loop.ID]
	return n <= 0 || n > smallLoop/s.cost[loop.ID]
}

// poll lets the code leave at the end of a loop's round, to go on later, when its fuel is spent.
func (s *polls) poll(loop *kir.Instr) {
	if !s.asks(loop) {
		return
	}
	cold, back := s.e.label(), s.e.label()
	s.spend(s.cost[loop.ID], cold)
	s.e.bind(back)
	s.e.f.ColdBegin()
	s.e.bind(cold)
	if s.info.Waits {
		s.yield(back)
	} else {
		s.out.exitFor(back)
	}
	s.e.f.ColdEnd()
}

// spend takes fuel, and jumps if none is left.
func (s *polls) spend(cost int, spent code.Label) {
	s.e.emit(code.Inst{Op: code.Sub, W: 8, Mem: inArena(arena.Fuel), Imm: int64(cost)})
	s.e.jcc(code.CondS, spent)
}

// afterGroup lets the code leave after a group of lanes, before the next one.
func (s *polls) afterGroup() {
	if s.body*(arena.MaxThreads/s.e.group) <= smallGroup {
		return
	}
	s.out.leaveIf(func(cold code.Label) { s.spend(s.body, cold) })
}

// beforeTurn lets the code leave before a group of lanes goes on to its next barrier. Where groups may wait for each
// other each has fuel of its own: what the one before spent of it is taken from arena.Left, that of all turns.
func (s *polls) beforeTurn() {
	cost := max(16, s.body/(1+s.barriers))
	s.out.leaveIf(func(cold code.Label) {
		if !s.info.Waits {
			s.spend(cost, cold)
			return
		}
		s.e.loadReg(8, code.RAX, inArena(arena.Fuel))
		s.e.emit(code.Inst{Op: code.Sub, W: 8, Dst: code.RAX, Mem: inArena(arena.Turn)})
		s.e.emit(code.Inst{Op: code.Sub, W: 8, Dst: code.RAX, Imm: int64(cost)})
		s.e.emit(code.Inst{Op: code.Add, W: 8, Mem: inArena(arena.Left), A: code.RAX})
		s.e.jcc(code.CondS, cold)
	})
}

// yield gives up the group's turn, for the others of its threadgroup and for Go, and then goes back.
func (s *polls) yield(back code.Label) {
	s.giveUp(inFrame(arena.FrameYield), inArena(arena.Yields), func() {
		s.e.storeImm(inFrame(arena.FrameYield), 0)
	})
	s.e.jump(back)
}

// barrier ends the group's phase.
func (s *polls) barrier() {
	s.giveUp(inFrame(arena.FrameResume), inArena(arena.Alive), func() {})
}

// giveUp leaves the group's turn: place is where it goes on, flag a word that becomes 1, begin what it then does first.
func (s *polls) giveUp(place, flag code.Mem, begin func()) {
	again := s.e.label()
	n := s.safepoints
	s.safepoints++
	s.e.f.SaveLive(n)
	s.e.leaLabel(code.RAX, again)
	s.e.storeReg(8, place, code.RAX)
	s.e.storeImm(flag, 1)
	s.e.jump(s.next)
	s.e.bind(again)
	begin()
	s.e.f.LoadLive(n)
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

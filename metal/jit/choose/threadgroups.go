package choose

import (
	"github.com/mlxlua/mlxlua/metal/jit/arena"
	"github.com/mlxlua/mlxlua/metal/jit/code"
	"github.com/mlxlua/mlxlua/metal/jit/lanes"
	"github.com/mlxlua/mlxlua/metal/kir"
)

// entries are the labels of a kernel's code that the runtime enters.
type entries struct{ start, resume code.Label }

// entry selects what calls the groups of lanes of threadgroups, one after the other or in turns.
type entry struct {
	e     *emitter
	m     masks
	vars  *variables
	on    *active
	polls *polls
	out   *leaver
	ctrl  *control
	subs  *subroutines
	block func(*kir.Block) (ends bool) // selects a block
	k     *kir.Kernel
	info  *lanes.Info
	lay   *arena.Layout
	step  int64 // groups of lanes that the kernel does at once: 2 if it was made by lanes.Pair
}

// emit selects the whole kernel: what calls groups of lanes one after the other, and the body.
func (s *entry) emit() entries {
	e := entries{s.e.label(), s.e.label()}
	s.ctrl.leaves, s.ctrl.uses = make([]bool, s.k.NumInstrs), make([]uint8, s.k.NumInstrs)
	s.ctrl.findLeaves(s.k.Body)
	s.polls.cost, s.polls.barriers = make([]int, s.k.NumInstrs), countBarriers(s.k.Body)
	s.polls.body = s.polls.costs(s.k.Body)
	s.out.resume, s.ctrl.end, s.ctrl.empty = s.e.label(), s.e.label(), 0
	s.ctrl.empty = s.ctrl.end
	if s.info.InTurns() {
		s.phases(e.start)
	} else {
		s.oneByOne(e.start)
	}
	if s.out.used {
		s.out.saveAll()
		s.e.bind(e.resume)
		s.out.loadAll()
	}
	s.subs.emitAll()
	return e
}

// oneByOne calls the groups of lanes of a threadgroup one after the other, in one frame, and then the next
// threadgroups along x.
func (s *entry) oneByOne(start code.Label) {
	threadgroup, next, done := s.e.label(), s.e.label(), s.e.label()
	s.e.bind(start)
	s.e.f.Loop()
	s.e.bind(threadgroup)
	s.e.loadReg(8, regFrame, inArena(arena.Frame0))
	s.e.storeImm(inArena(arena.Group), 0)
	s.e.bind(next)
	s.startGroup()
	s.body()
	s.polls.afterGroup()
	s.e.loadReg(8, code.RAX, inArena(arena.Group))
	s.e.emit(code.Inst{Op: code.Add, W: 8, Dst: code.RAX, Imm: s.step})
	s.e.storeReg(8, inArena(arena.Group), code.RAX)
	s.e.emit(code.Inst{Op: code.Cmp, W: 8, A: code.RAX, Mem: inArena(arena.Groups)})
	s.e.jcc(code.CondB, next)
	s.e.loadReg(8, code.RAX, inArena(arena.Count))
	s.e.emit(code.Inst{Op: code.Sub, W: 8, Dst: code.RAX, Imm: 1})
	s.e.storeReg(8, inArena(arena.Count), code.RAX)
	s.e.jumpIfZero(code.RAX, done)
	s.e.loadReg(4, code.RAX, inArena(arena.Builtins+4*arena.SlotOrigin))
	s.e.emit(code.Inst{Op: code.Add, W: 4, Dst: code.RAX,
		Mem: inArena(arena.Builtins + 4*int32(arena.BuiltinSlots[kir.DispatchThreadsPerThreadgroup]))})
	s.e.storeReg(4, inArena(arena.Builtins+4*arena.SlotOrigin), code.RAX)
	pos := inArena(arena.Builtins + 4*int32(arena.BuiltinSlots[kir.ThreadgroupPositionInGrid]))
	s.e.loadReg(4, code.RAX, pos)
	s.e.emit(code.Inst{Op: code.Add, W: 4, Dst: code.RAX, Imm: 1})
	s.e.storeReg(4, pos, code.RAX)
	s.e.jump(threadgroup)
	s.e.f.EndLoop()
	s.e.bind(done)
	s.out.leave(arena.ExitDone)
}

// startGroup computes the group's lanes from arena.Group, into its frame.
func (s *entry) startGroup() {
	bits := int64(log2(s.e.group))
	full := s.e.label()
	s.e.loadReg(4, code.RAX, inArena(arena.Group))
	s.e.storeReg(4, inFrame(arena.FrameIndex), code.RAX)
	s.e.emit(code.Inst{Op: code.IMul3, W: 8, Dst: code.RDX, A: code.RAX, Imm: int64(3 * 4 * s.e.group)})
	s.e.emit(code.Inst{Op: code.Lea, W: 8, Dst: code.RDX,
		Mem: code.Mem{Base: regArena, Index: code.RDX, Scale: 1, Disp: int32(s.lay.Positions)}})
	s.e.storeReg(8, inFrame(arena.FramePositions), code.RDX)
	if s.on.all {
		return // nobody asks which lanes there are
	}
	s.e.emit(code.Inst{Op: code.Shl, W: 4, Dst: code.RAX, Imm: bits})
	s.e.loadReg(4, code.RCX, inArena(arena.Threads))
	s.e.emit(code.Inst{Op: code.Sub, W: 4, Dst: code.RCX, A: code.RAX})
	s.e.emit(code.Inst{Op: code.Mov, W: 4, Dst: code.RDX, Imm: int64(1)<<s.e.group - 1})
	s.e.emit(code.Inst{Op: code.Cmp, W: 4, A: code.RCX, Imm: int64(s.e.group)})
	s.e.jcc(code.CondAE, full)
	s.e.emit(code.Inst{Op: code.BZHi, W: 4, Dst: code.RDX, A: code.RDX, B: code.RCX})
	s.e.bind(full)
	s.e.storeReg(4, inFrame(arena.FrameMask), code.RDX)
}

// body selects the kernel's body for the group of lanes in regFrame.
func (s *entry) body() {
	if s.on.all {
		s.on.exec = s.m.full()
	} else {
		r := s.e.reg(code.GPR)
		s.e.loadReg(4, r, inFrame(arena.FrameMask))
		s.on.exec = s.m.fromBits(r)
	}
	s.zeroRegions()
	s.vars.create()
	s.block(s.k.Body)
	s.e.bind(s.ctrl.end)
}

// zeroRegions clears the Thread regions of the group's lanes.
func (s *entry) zeroRegions() {
	from, to := int32(arena.FrameBody), int32(s.lay.Spills)
	if from == to {
		return
	}
	z := s.e.reg(code.Vec)
	s.e.zeroReg(z)
	step := int32(s.e.w)
	if to-from <= 16*step {
		for ; from < to; from += step {
			s.e.emit(code.Inst{Op: code.VMovUPS, W: s.e.w, Mem: inFrame(from), A: z})
		}
		return
	}
	again := s.e.label()
	s.e.emit(code.Inst{Op: code.Mov, W: 4, Dst: code.RAX, Imm: int64(from)})
	s.e.f.Loop()
	s.e.bind(again)
	s.e.emit(code.Inst{Op: code.VMovUPS, W: s.e.w, A: z, Mem: code.Mem{Base: regFrame, Index: code.RAX, Scale: 1}})
	s.e.emit(code.Inst{Op: code.Add, W: 4, Dst: code.RAX, Imm: int64(step)})
	s.e.emit(code.Inst{Op: code.Cmp, W: 4, A: code.RAX, Imm: int64(to)})
	s.e.jcc(code.CondB, again)
	s.e.f.EndLoop()
}

// phases calls the groups of lanes of a threadgroup in turns: each runs to its next barrier, or to its end.
func (s *entry) phases(start code.Label) {
	begin, phase, turn, next, over := s.e.label(), s.e.label(), s.e.label(), s.e.label(), s.e.label()
	first, init := s.e.label(), s.e.label()
	s.polls.next = next
	s.e.bind(start)
	// Every group begins with the body.
	s.e.loadReg(8, regFrame, inArena(arena.Frame0))
	s.e.storeImm(inArena(arena.Group), 0)
	s.e.bind(init)
	s.startGroup()
	s.e.leaLabel(code.RAX, begin)
	s.e.storeReg(8, inFrame(arena.FrameResume), code.RAX)
	s.e.storeImm(inFrame(arena.FrameYield), 0)
	s.nextGroup(first)
	s.e.jump(init)
	s.e.bind(first)

	s.e.bind(phase)
	s.e.storeImm(inArena(arena.Alive), 0)
	s.e.storeImm(inArena(arena.Yielding), 0)
	pass := s.e.label()
	s.e.bind(pass)
	s.e.loadReg(8, regFrame, inArena(arena.Frame0))
	s.e.storeImm(inArena(arena.Group), 0)
	s.e.storeImm(inArena(arena.Yields), 0)
	s.e.bind(turn)
	s.polls.beforeTurn()
	if s.info.Waits {
		s.takeUp(next)
	}
	s.e.emit(code.Inst{Op: code.Jmp, W: 8, Mem: inFrame(arena.FrameResume)})
	s.e.bind(next)
	s.nextGroup(over)
	s.e.jump(turn)
	s.e.bind(over)
	if s.info.Waits { // those who gave up their turns get another one before the phase is over
		all := s.e.label()
		s.e.loadReg(8, code.RAX, inArena(arena.Yields))
		s.e.jumpIfZero(code.RAX, all)
		s.e.storeImm(inArena(arena.Yielding), 1)
		s.out.exitFor(pass)
		s.e.bind(all)
	}
	s.e.loadReg(8, code.RAX, inArena(arena.Alive))
	done := s.e.label()
	s.e.jumpIfZero(code.RAX, done)
	s.e.jump(phase)
	s.e.bind(done)
	s.out.leave(arena.ExitDone)

	s.e.bind(begin)
	s.body()
	s.e.leaLabel(code.RAX, next)
	s.e.storeReg(8, inFrame(arena.FrameResume), code.RAX)
	s.e.jump(next)
}

// takeUp goes on where the group of lanes gave up its turn, if it did. While such groups have their turns others are
// at next.
func (s *entry) takeUp(next code.Label) {
	plain := s.e.label()
	s.e.loadReg(8, code.RAX, inArena(arena.Turn))
	s.e.storeReg(8, inArena(arena.Fuel), code.RAX)
	s.e.loadReg(8, code.RAX, inFrame(arena.FrameYield))
	s.e.jumpIfZero(code.RAX, plain)
	s.e.emit(code.Inst{Op: code.Jmp, W: 8, Mem: inFrame(arena.FrameYield)})
	s.e.bind(plain)
	s.e.loadReg(8, code.RAX, inArena(arena.Yielding))
	s.e.emit(code.Inst{Op: code.Test, W: 8, A: code.RAX, B: code.RAX})
	s.e.jcc(code.CondNE, next)
}

// nextGroup goes to the frame of the next group of lanes, or jumps if there is none.
func (s *entry) nextGroup(none code.Label) {
	s.e.loadReg(8, code.RAX, inArena(arena.Group))
	s.e.emit(code.Inst{Op: code.Add, W: 8, Dst: code.RAX, Imm: 1})
	s.e.storeReg(8, inArena(arena.Group), code.RAX)
	s.e.emit(code.Inst{Op: code.Cmp, W: 8, A: code.RAX, Mem: inArena(arena.Groups)})
	s.e.jcc(code.CondAE, none)
	s.e.emit(code.Inst{Op: code.Add, W: 8, Dst: regFrame, Mem: inArena(arena.FrameStep)})
}

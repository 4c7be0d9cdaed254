package x86

import (
	"github.com/mlxlua/mlxlua/metal/jit/amd64"
	"github.com/mlxlua/mlxlua/metal/jit/block"
	"github.com/mlxlua/mlxlua/metal/jit/lanes"
	"github.com/mlxlua/mlxlua/metal/kir"
)

// entries are the labels of a kernel's code that the runtime enters.
type entries struct{ start, resume amd64.Label }

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
	lay   *block.Layout
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
func (s *entry) oneByOne(start amd64.Label) {
	threadgroup, next, done := s.e.label(), s.e.label(), s.e.label()
	s.e.bind(start)
	s.e.f.Loop()
	s.e.bind(threadgroup)
	s.e.loadReg(8, regFrame, inBlock(block.Frame0))
	s.e.storeImm(inBlock(block.Group), 0)
	s.e.bind(next)
	s.startGroup()
	s.body()
	s.polls.afterGroup()
	s.e.loadReg(8, amd64.RAX, inBlock(block.Group))
	s.e.emit(amd64.Inst{Op: amd64.Add, W: 8, Dst: amd64.RAX, Imm: s.step})
	s.e.storeReg(8, inBlock(block.Group), amd64.RAX)
	s.e.emit(amd64.Inst{Op: amd64.Cmp, W: 8, A: amd64.RAX, Mem: inBlock(block.Groups)})
	s.e.jcc(amd64.CondB, next)
	s.e.loadReg(8, amd64.RAX, inBlock(block.Count))
	s.e.emit(amd64.Inst{Op: amd64.Sub, W: 8, Dst: amd64.RAX, Imm: 1})
	s.e.storeReg(8, inBlock(block.Count), amd64.RAX)
	s.e.jumpIfZero(amd64.RAX, done)
	s.e.loadReg(4, amd64.RAX, inBlock(block.Builtins+4*block.SlotOrigin))
	s.e.emit(amd64.Inst{Op: amd64.Add, W: 4, Dst: amd64.RAX,
		Mem: inBlock(block.Builtins + 4*int32(block.BuiltinSlots[kir.DispatchThreadsPerThreadgroup]))})
	s.e.storeReg(4, inBlock(block.Builtins+4*block.SlotOrigin), amd64.RAX)
	pos := inBlock(block.Builtins + 4*int32(block.BuiltinSlots[kir.ThreadgroupPositionInGrid]))
	s.e.loadReg(4, amd64.RAX, pos)
	s.e.emit(amd64.Inst{Op: amd64.Add, W: 4, Dst: amd64.RAX, Imm: 1})
	s.e.storeReg(4, pos, amd64.RAX)
	s.e.jump(threadgroup)
	s.e.f.EndLoop()
	s.e.bind(done)
	s.out.leave(block.ExitDone)
}

// startGroup computes the group's lanes from block.Group, into its frame.
func (s *entry) startGroup() {
	bits := int64(log2(s.e.group))
	full := s.e.label()
	s.e.loadReg(4, amd64.RAX, inBlock(block.Group))
	s.e.storeReg(4, inFrame(block.FrameIndex), amd64.RAX)
	s.e.emit(amd64.Inst{Op: amd64.IMul3, W: 8, Dst: amd64.RDX, A: amd64.RAX, Imm: int64(3 * 4 * s.e.group)})
	s.e.emit(amd64.Inst{Op: amd64.Lea, W: 8, Dst: amd64.RDX,
		Mem: amd64.Mem{Base: regBlock, Index: amd64.RDX, Scale: 1, Disp: int32(s.lay.Positions)}})
	s.e.storeReg(8, inFrame(block.FramePositions), amd64.RDX)
	s.e.emit(amd64.Inst{Op: amd64.Shl, W: 4, Dst: amd64.RAX, Imm: bits})
	s.e.loadReg(4, amd64.RCX, inBlock(block.Threads))
	s.e.emit(amd64.Inst{Op: amd64.Sub, W: 4, Dst: amd64.RCX, A: amd64.RAX})
	s.e.emit(amd64.Inst{Op: amd64.Mov, W: 4, Dst: amd64.RDX, Imm: int64(1)<<s.e.group - 1})
	s.e.emit(amd64.Inst{Op: amd64.Cmp, W: 4, A: amd64.RCX, Imm: int64(s.e.group)})
	s.e.jcc(amd64.CondAE, full)
	s.e.emit(amd64.Inst{Op: amd64.BZHi, W: 4, Dst: amd64.RDX, A: amd64.RDX, B: amd64.RCX})
	s.e.bind(full)
	s.e.storeReg(4, inFrame(block.FrameMask), amd64.RDX)
}

// body selects the kernel's body for the group of lanes in regFrame.
func (s *entry) body() {
	r := s.e.reg(amd64.GPR)
	s.e.loadReg(4, r, inFrame(block.FrameMask))
	s.on.exec = s.m.fromBits(r)
	s.zeroRegions()
	s.vars.create()
	s.block(s.k.Body)
	s.e.bind(s.ctrl.end)
}

// zeroRegions clears the Thread regions of the group's lanes.
func (s *entry) zeroRegions() {
	from, to := int32(block.FrameBody), int32(s.lay.Spills)
	if from == to {
		return
	}
	z := s.e.reg(amd64.Vec)
	s.e.zeroReg(z)
	step := int32(s.e.w)
	if to-from <= 16*step {
		for ; from < to; from += step {
			s.e.emit(amd64.Inst{Op: amd64.VMovUPS, W: s.e.w, Mem: inFrame(from), A: z})
		}
		return
	}
	again := s.e.label()
	s.e.emit(amd64.Inst{Op: amd64.Mov, W: 4, Dst: amd64.RAX, Imm: int64(from)})
	s.e.f.Loop()
	s.e.bind(again)
	s.e.emit(amd64.Inst{Op: amd64.VMovUPS, W: s.e.w, A: z, Mem: amd64.Mem{Base: regFrame, Index: amd64.RAX, Scale: 1}})
	s.e.emit(amd64.Inst{Op: amd64.Add, W: 4, Dst: amd64.RAX, Imm: int64(step)})
	s.e.emit(amd64.Inst{Op: amd64.Cmp, W: 4, A: amd64.RAX, Imm: int64(to)})
	s.e.jcc(amd64.CondB, again)
	s.e.f.EndLoop()
}

// phases calls the groups of lanes of a threadgroup in turns: each runs to its next barrier, or to its end.
func (s *entry) phases(start amd64.Label) {
	begin, phase, turn, next, over := s.e.label(), s.e.label(), s.e.label(), s.e.label(), s.e.label()
	first, init := s.e.label(), s.e.label()
	s.polls.next = next
	s.e.bind(start)
	// Every group begins with the body.
	s.e.loadReg(8, regFrame, inBlock(block.Frame0))
	s.e.storeImm(inBlock(block.Group), 0)
	s.e.bind(init)
	s.startGroup()
	s.e.leaLabel(amd64.RAX, begin)
	s.e.storeReg(8, inFrame(block.FrameResume), amd64.RAX)
	s.e.storeImm(inFrame(block.FrameYield), 0)
	s.nextGroup(first)
	s.e.jump(init)
	s.e.bind(first)

	s.e.bind(phase)
	s.e.storeImm(inBlock(block.Alive), 0)
	s.e.storeImm(inBlock(block.Yielding), 0)
	pass := s.e.label()
	s.e.bind(pass)
	s.e.loadReg(8, regFrame, inBlock(block.Frame0))
	s.e.storeImm(inBlock(block.Group), 0)
	s.e.storeImm(inBlock(block.Yields), 0)
	s.e.bind(turn)
	s.polls.beforeTurn()
	if s.info.Waits {
		s.takeUp(next)
	}
	s.e.emit(amd64.Inst{Op: amd64.Jmp, W: 8, Mem: inFrame(block.FrameResume)})
	s.e.bind(next)
	s.nextGroup(over)
	s.e.jump(turn)
	s.e.bind(over)
	if s.info.Waits { // those who gave up their turns get another one before the phase is over
		all := s.e.label()
		s.e.loadReg(8, amd64.RAX, inBlock(block.Yields))
		s.e.jumpIfZero(amd64.RAX, all)
		s.e.storeImm(inBlock(block.Yielding), 1)
		s.out.exitFor(pass)
		s.e.bind(all)
	}
	s.e.loadReg(8, amd64.RAX, inBlock(block.Alive))
	done := s.e.label()
	s.e.jumpIfZero(amd64.RAX, done)
	s.e.jump(phase)
	s.e.bind(done)
	s.out.leave(block.ExitDone)

	s.e.bind(begin)
	s.body()
	s.e.leaLabel(amd64.RAX, next)
	s.e.storeReg(8, inFrame(block.FrameResume), amd64.RAX)
	s.e.jump(next)
}

// takeUp goes on where the group of lanes gave up its turn, if it did. While such groups have their turns others are
// at next.
func (s *entry) takeUp(next amd64.Label) {
	plain := s.e.label()
	s.e.loadReg(8, amd64.RAX, inBlock(block.Turn))
	s.e.storeReg(8, inBlock(block.Fuel), amd64.RAX)
	s.e.loadReg(8, amd64.RAX, inFrame(block.FrameYield))
	s.e.jumpIfZero(amd64.RAX, plain)
	s.e.emit(amd64.Inst{Op: amd64.Jmp, W: 8, Mem: inFrame(block.FrameYield)})
	s.e.bind(plain)
	s.e.loadReg(8, amd64.RAX, inBlock(block.Yielding))
	s.e.emit(amd64.Inst{Op: amd64.Test, W: 8, A: amd64.RAX, B: amd64.RAX})
	s.e.jcc(amd64.CondNE, next)
}

// nextGroup goes to the frame of the next group of lanes, or jumps if there is none.
func (s *entry) nextGroup(none amd64.Label) {
	s.e.loadReg(8, amd64.RAX, inBlock(block.Group))
	s.e.emit(amd64.Inst{Op: amd64.Add, W: 8, Dst: amd64.RAX, Imm: 1})
	s.e.storeReg(8, inBlock(block.Group), amd64.RAX)
	s.e.emit(amd64.Inst{Op: amd64.Cmp, W: 8, A: amd64.RAX, Mem: inBlock(block.Groups)})
	s.e.jcc(amd64.CondAE, none)
	s.e.emit(amd64.Inst{Op: amd64.Add, W: 8, Dst: regFrame, Mem: inBlock(block.FrameStep)})
}

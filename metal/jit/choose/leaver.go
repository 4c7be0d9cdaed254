package choose

import (
	"github.com/mlxlua/mlxlua/metal/jit/arena"
	"github.com/mlxlua/mlxlua/metal/jit/code"
)

// leaver emits the ways out of machine code, for good or to go on later.
type leaver struct {
	e           *emitter
	lay         *arena.Layout
	nonTemporal bool       // code stores past the cache, so that a fence is due
	used        bool       // something leaves to go on later
	resume      code.Label // of saveAll
}

// leave leaves for Go.
func (s *leaver) leave(why arena.Exit) {
	s.e.emit(code.Inst{Op: code.Mov, W: 4, Dst: code.RAX, Imm: int64(why)})
	s.e.storeReg(8, inArena(arena.ExitReason), code.RAX)
	if s.nonTemporal {
		s.e.emit(code.Inst{Op: code.MFence})
	}
	s.e.emit(code.Inst{Op: code.VZeroUpper})
	s.e.emit(code.Inst{Op: code.Ret})
}

// saveAll stores every register and leaves with arena.ExitFuel; RAX is where to go on.
func (s *leaver) saveAll() {
	s.e.bind(s.resume)
	s.e.storeReg(8, inArena(arena.Resume), code.RAX)
	s.e.emit(code.Inst{Op: code.SaveRegs, Mem: inArena(int32(s.lay.Save))})
	s.leave(arena.ExitFuel)
}

// loadAll loads what saveAll stored and goes on.
func (s *leaver) loadAll() {
	s.e.emit(code.Inst{Op: code.LoadRegs, Mem: inArena(int32(s.lay.Save))})
	s.e.emit(code.Inst{Op: code.Jmp, W: 8, Mem: inArena(arena.Resume)})
}

// leaveIf leaves the code, to go on here, where a test says so by jumping to its label.
func (s *leaver) leaveIf(test func(cold code.Label)) {
	cold, back := s.e.label(), s.e.label()
	test(cold)
	s.e.bind(back)
	s.e.f.ColdBegin()
	s.e.bind(cold)
	s.exitFor(back)
	s.e.f.ColdEnd()
}

// exitFor saves all registers and leaves, to go on at a label.
func (s *leaver) exitFor(back code.Label) {
	s.used = true
	s.e.emit(code.Inst{Op: code.Lea, W: 8, Dst: code.RAX, Label: back})
	s.e.jump(s.resume)
}

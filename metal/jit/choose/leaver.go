package choose

import (
	"github.com/mlxlua/mlxlua/metal/jit/block"
	"github.com/mlxlua/mlxlua/metal/jit/code"
)

// The save area: general registers, mask registers, vector registers.
const (
	saveGPR  = 0
	saveMask = 128
	saveVec  = 192
	_        = uint(block.SavedBytes - (saveVec + 32*64)) // it fits
)

// leaver emits the ways out of machine code, for good or to go on later.
type leaver struct {
	e      *emitter
	lay    *block.Layout
	past   bool       // code stores past the cache, so that a fence is due
	used   bool       // something leaves to go on later
	resume code.Label // of saveAll
}

// leave leaves for Go.
func (s *leaver) leave(why block.Exit) {
	s.e.emit(code.Inst{Op: code.Mov, W: 4, Dst: code.RAX, Imm: int64(why)})
	s.e.storeReg(8, inBlock(block.ExitReason), code.RAX)
	if s.past {
		s.e.emit(code.Inst{Op: code.MFence})
	}
	s.e.emit(code.Inst{Op: code.VZeroUpper})
	s.e.emit(code.Inst{Op: code.Ret})
}

// savedGPRs are the general registers that machine code may hold values in.
var savedGPRs = []code.R{code.RBX, code.RSI, code.RDI, code.R8, code.R9, code.R12, code.R13, code.R14,
	code.R15}

// saveAll stores every register and leaves with block.ExitFuel; RAX is where to go on.
func (s *leaver) saveAll() {
	s.e.bind(s.resume)
	s.e.storeReg(8, inBlock(block.Resume), code.RAX)
	at := int32(s.lay.Save)
	for n, r := range savedGPRs {
		s.e.storeReg(8, inBlock(at+saveGPR+8*int32(n)), r)
	}
	s.eachVec(func(v code.R, off int32) {
		s.e.emit(code.Inst{Op: code.VMovUPS, W: s.e.w, Mem: inBlock(at + off), A: v})
	})
	s.eachMask(func(k code.R, off int32) {
		s.e.emit(code.Inst{Op: code.KMov, W: 8, Mem: inBlock(at + off), A: k})
	})
	s.leave(block.ExitFuel)
}

// loadAll loads what saveAll stored and goes on.
func (s *leaver) loadAll() {
	at := int32(s.lay.Save)
	for n, r := range savedGPRs {
		s.e.loadReg(8, r, inBlock(at+saveGPR+8*int32(n)))
	}
	s.eachVec(func(v code.R, off int32) {
		s.e.emit(code.Inst{Op: code.VMovUPS, W: s.e.w, Dst: v, Mem: inBlock(at + off)})
	})
	s.eachMask(func(k code.R, off int32) {
		s.e.emit(code.Inst{Op: code.KMov, W: 8, Dst: k, Mem: inBlock(at + off)})
	})
	s.e.emit(code.Inst{Op: code.Jmp, W: 8, Mem: inBlock(block.Resume)})
}

// eachVec calls f with each vector register and its place in the save area, eachMask with each mask register.
func (s *leaver) eachVec(f func(v code.R, off int32)) {
	n := 16
	if s.e.avx512() {
		n = 32
	}
	for i := range n {
		f(code.V(i), int32(saveVec+64*i))
	}
}

func (s *leaver) eachMask(f func(k code.R, off int32)) {
	if !s.e.avx512() {
		return
	}
	for i := 1; i < 8; i++ {
		f(code.K(i), int32(saveMask+8*i))
	}
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

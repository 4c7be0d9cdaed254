package x86

import (
	"github.com/mlxlua/mlxlua/metal/jit/amd64"
	"github.com/mlxlua/mlxlua/metal/jit/block"
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
	past   bool        // code stores past the cache, so that a fence is due
	used   bool        // something leaves to go on later
	resume amd64.Label // of saveAll
}

// leave leaves for Go.
func (s *leaver) leave(why block.Exit) {
	s.e.emit(amd64.Inst{Op: amd64.Mov, W: 4, Dst: amd64.RAX, Imm: int64(why)})
	s.e.storeReg(8, inBlock(block.ExitReason), amd64.RAX)
	if s.past {
		s.e.emit(amd64.Inst{Op: amd64.MFence})
	}
	s.e.emit(amd64.Inst{Op: amd64.VZeroUpper})
	s.e.emit(amd64.Inst{Op: amd64.Ret})
}

// savedGPRs are the general registers that machine code may hold values in.
var savedGPRs = []amd64.R{amd64.RBX, amd64.RSI, amd64.RDI, amd64.R8, amd64.R9, amd64.R12, amd64.R13, amd64.R14,
	amd64.R15}

// saveAll stores every register and leaves with block.ExitFuel; RAX is where to go on.
func (s *leaver) saveAll() {
	s.e.bind(s.resume)
	s.e.storeReg(8, inBlock(block.Resume), amd64.RAX)
	at := int32(s.lay.Save)
	for n, r := range savedGPRs {
		s.e.storeReg(8, inBlock(at+saveGPR+8*int32(n)), r)
	}
	s.eachVec(func(v amd64.R, off int32) {
		s.e.emit(amd64.Inst{Op: amd64.VMovUPS, W: s.e.w, Mem: inBlock(at + off), A: v})
	})
	s.eachMask(func(k amd64.R, off int32) {
		s.e.emit(amd64.Inst{Op: amd64.KMov, W: 8, Mem: inBlock(at + off), A: k})
	})
	s.leave(block.ExitFuel)
}

// loadAll loads what saveAll stored and goes on.
func (s *leaver) loadAll() {
	at := int32(s.lay.Save)
	for n, r := range savedGPRs {
		s.e.loadReg(8, r, inBlock(at+saveGPR+8*int32(n)))
	}
	s.eachVec(func(v amd64.R, off int32) {
		s.e.emit(amd64.Inst{Op: amd64.VMovUPS, W: s.e.w, Dst: v, Mem: inBlock(at + off)})
	})
	s.eachMask(func(k amd64.R, off int32) {
		s.e.emit(amd64.Inst{Op: amd64.KMov, W: 8, Dst: k, Mem: inBlock(at + off)})
	})
	s.e.emit(amd64.Inst{Op: amd64.Jmp, W: 8, Mem: inBlock(block.Resume)})
}

// eachVec calls f with each vector register and its place in the save area, eachMask with each mask register.
func (s *leaver) eachVec(f func(v amd64.R, off int32)) {
	n := 16
	if s.e.avx512() {
		n = 32
	}
	for i := range n {
		f(amd64.V(i), int32(saveVec+64*i))
	}
}

func (s *leaver) eachMask(f func(k amd64.R, off int32)) {
	if !s.e.avx512() {
		return
	}
	for i := 1; i < 8; i++ {
		f(amd64.K(i), int32(saveMask+8*i))
	}
}

// leaveIf leaves the code, to go on here, where a test says so by jumping to its label.
func (s *leaver) leaveIf(test func(cold amd64.Label)) {
	cold, back := s.e.label(), s.e.label()
	test(cold)
	s.e.bind(back)
	s.e.f.ColdBegin()
	s.e.bind(cold)
	s.exitFor(back)
	s.e.f.ColdEnd()
}

// exitFor saves all registers and leaves, to go on at a label.
func (s *leaver) exitFor(back amd64.Label) {
	s.used = true
	s.e.emit(amd64.Inst{Op: amd64.Lea, W: 8, Dst: amd64.RAX, Label: back})
	s.e.jump(s.resume)
}

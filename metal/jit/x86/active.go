package x86

import (
	"github.com/mlxlua/mlxlua/metal/jit/amd64"
)

// active is which lanes run where code is being made.
type active struct {
	e *emitter
	m masks
	// exec is the mask of active lanes, one register a part (mask registers, or vector registers with AVX2). These
	// registers change where control flow parts: use them at once.
	exec []amd64.R
	// all: exec is known to be all lanes when code is made.
	all bool
}

// masksOf returns the registers of a Bool's parts, only active lanes on.
func (s *active) masksOf(in val) []amd64.R {
	m := in.registers(s.e.parts)
	if s.all {
		return m
	}
	return s.m.each(s.m.and, m, s.exec)
}

// bits puts the active lanes' bits into a general register.
func (s *active) bits(r amd64.R) {
	if s.all {
		s.e.gopImm(amd64.Mov, 4, r, int64(int32(uint32(1<<s.e.group-1))))
		return
	}
	s.e.gop(amd64.Mov, 4, r, s.m.bits(s.exec))
}

// jumpUnlessAll jumps unless all lanes are active.
func (s *active) jumpUnlessAll(to amd64.Label) {
	all := s.exec[0]
	for _, e := range s.exec[1:] {
		all = s.m.and(all, e)
	}
	if s.e.avx512() {
		s.e.emit(amd64.Inst{Op: amd64.KOrTest, W: 2, A: all, B: all})
		s.e.jcc(amd64.CondAE, to)
		return
	}
	s.e.emit(amd64.Inst{Op: amd64.VMovMskPS, W: s.e.w, Dst: amd64.RAX, A: all})
	s.e.emit(amd64.Inst{Op: amd64.Cmp, W: 4, A: amd64.RAX, Imm: 0xff})
	s.e.jcc(amd64.CondNE, to)
}

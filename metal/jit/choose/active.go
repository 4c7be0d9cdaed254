package choose

import (
	"github.com/mlxlua/mlxlua/metal/jit/code"
)

// active is which lanes run where code is being made.
type active struct {
	e *emitter
	m masks
	// exec is the mask of active lanes, one register a part (mask registers, or vector registers with AVX2). These
	// registers change where control flow parts: use them at once.
	exec []code.R
	// all: exec is known to be all lanes when code is made.
	all bool
}

// masksOf returns the registers of a Bool's parts, only active lanes on.
func (s *active) masksOf(in val) []code.R {
	m := in.registers(s.e.parts)
	if s.all {
		return m
	}
	return s.m.each(s.m.and, m, s.exec)
}

// bits puts the active lanes' bits into a general register.
func (s *active) bits(r code.R) {
	if s.all {
		s.e.gopImm(code.Mov, 4, r, int64(int32(uint32(1<<s.e.group-1))))
		return
	}
	s.e.gop(code.Mov, 4, r, s.m.bits(s.exec))
}

// jumpUnlessAll jumps unless all lanes are active.
func (s *active) jumpUnlessAll(to code.Label) {
	all := s.exec[0]
	for _, e := range s.exec[1:] {
		all = s.m.and(all, e)
	}
	if s.e.avx512() {
		s.e.emit(code.Inst{Op: code.KOrTest, W: 2, A: all, B: all})
		s.e.jcc(code.CondAE, to)
		return
	}
	s.e.emit(code.Inst{Op: code.VMovMskPS, W: s.e.w, Dst: code.RAX, A: all})
	s.e.emit(code.Inst{Op: code.Cmp, W: 4, A: code.RAX, Imm: 0xff})
	s.e.jcc(code.CondNE, to)
}

package jit

import (
	"github.com/mlxlua/mlxlua/metal/jit/amd64"
	"github.com/mlxlua/mlxlua/metal/kir"
)

// Masks, and moves between general, vector and mask registers.

// mask2 combines two masks of one part: with a mask instruction, or with AVX2's logic.
func (s *selector) mask2(k, v amd64.Opcode, a, b amd64.R) amd64.R {
	if s.level == amd64.AVX512 {
		d := s.reg(amd64.Mask)
		s.emit(amd64.Inst{Op: k, W: 2, Dst: d, A: a, B: b})
		return d
	}
	d := s.reg(amd64.Vec)
	s.emit(amd64.Inst{Op: v, W: s.w, Dst: d, A: a, B: b})
	return d
}

// maskAnd returns a and b.
func (s *selector) maskAnd(a, b amd64.R) amd64.R { return s.mask2(amd64.KAnd, amd64.VPAnd, a, b) }

// maskOr returns a or b.
func (s *selector) maskOr(a, b amd64.R) amd64.R { return s.mask2(amd64.KOr, amd64.VPOr, a, b) }

// maskXor returns a xor b.
func (s *selector) maskXor(a, b amd64.R) amd64.R { return s.mask2(amd64.KXor, amd64.VPXor, a, b) }

// maskAndNot returns a and not b.
func (s *selector) maskAndNot(a, b amd64.R) amd64.R { return s.mask2(amd64.KAndN, amd64.VPAndN, b, a) }

// maskNot returns not a.
func (s *selector) maskNot(a amd64.R) amd64.R {
	if s.level == amd64.AVX512 {
		d := s.reg(amd64.Mask)
		s.emit(amd64.Inst{Op: amd64.KNot, W: 2, Dst: d, A: a})
		return d
	}
	d, ones := s.reg(amd64.Vec), s.reg(amd64.Vec)
	s.emit(amd64.Inst{Op: amd64.VPCmpEqD, W: s.w, Dst: ones, A: a, B: a})
	s.emit(amd64.Inst{Op: amd64.VPXor, W: s.w, Dst: d, A: a, B: ones})
	return d
}

// maskCopy returns a register of its own with the same mask.
func (s *selector) maskCopy(a amd64.R) amd64.R { return s.copyReg(a) }

// testMask sets the zero flag if no lane of a mask is on.
func (s *selector) testMask(mask []amd64.R) {
	if s.level == amd64.AVX512 {
		last := mask[len(mask)-1]
		s.emit(amd64.Inst{Op: amd64.KOrTest, W: 2, A: mask[0], B: last})
		return
	}
	m := mask[0]
	for _, r := range mask[1:] {
		m = s.maskOr(m, r)
	}
	s.emit(amd64.Inst{Op: amd64.VPTest, W: s.w, A: m, B: m})
}

// jumpIfNone jumps if no lane of a mask (of all parts) is on.
func (s *selector) jumpIfNone(mask []amd64.R, l amd64.Label) {
	s.testMask(mask)
	s.jcc(amd64.CondE, l)
}

// jumpIfAny jumps if a lane of a mask (of all parts) is on.
func (s *selector) jumpIfAny(mask []amd64.R, l amd64.Label) {
	s.testMask(mask)
	s.jcc(amd64.CondNE, l)
}

// maskBits returns a mask (of all parts) as bits in a general register, lane 0 lowest; the bits above the lanes are
// 0.
func (s *selector) maskBits(mask []amd64.R) amd64.R {
	r := s.reg(amd64.GPR)
	if s.level == amd64.AVX512 {
		if len(mask) == 1 {
			s.emit(amd64.Inst{Op: amd64.KMov, W: 2, Dst: r, A: mask[0]})
			return r
		}
		k := s.reg(amd64.Mask)
		s.emit(amd64.Inst{Op: amd64.KUnpck, W: 4, Dst: k, A: mask[1], B: mask[0]})
		s.emit(amd64.Inst{Op: amd64.KMov, W: 4, Dst: r, A: k})
		return r
	}
	s.emit(amd64.Inst{Op: amd64.VMovMskPS, W: s.w, Dst: r, A: mask[0]})
	for p, m := range mask[1:] {
		t := s.reg(amd64.GPR)
		s.emit(amd64.Inst{Op: amd64.VMovMskPS, W: s.w, Dst: t, A: m})
		s.emit(amd64.Inst{Op: amd64.Shl, W: 4, Dst: t, Imm: int64((p + 1) * s.per)})
		s.emit(amd64.Inst{Op: amd64.Or, W: 4, Dst: r, A: t})
	}
	return r
}

// bitsToMask makes a mask (of all parts) of the bits in a general register. Bits above a part's lanes are 0.
func (s *selector) bitsToMask(r amd64.R) []amd64.R {
	mask := make([]amd64.R, s.parts)
	if s.level == amd64.AVX512 {
		for p := range mask {
			mask[p] = s.reg(amd64.Mask)
			if p > 0 {
				t := s.reg(amd64.GPR)
				s.emit(amd64.Inst{Op: amd64.Mov, W: 4, Dst: t, A: r})
				s.emit(amd64.Inst{Op: amd64.Shr, W: 4, Dst: t, Imm: int64(p * s.per)})
				r = t
			}
			s.emit(amd64.Inst{Op: amd64.KMov, W: 2, Dst: mask[p], A: r})
		}
		return mask
	}
	all := s.scalarToSplat(r, kir.U32)
	for p := range mask {
		var table []byte
		for l := range s.per {
			table = appendBits(table, 1<<(p*s.per+l), 4)
		}
		bit, on := amd64.Mem{Const: s.f.Const(table)}, s.reg(amd64.Vec)
		mask[p] = s.reg(amd64.Vec)
		s.emit(amd64.Inst{Op: amd64.VPAnd, W: s.w, Dst: on, A: all, Mem: bit})
		s.emit(amd64.Inst{Op: amd64.VPCmpEqD, W: s.w, Dst: mask[p], A: on, Mem: bit})
	}
	return mask
}

// scalarToSplat broadcasts an integer or pointer: to 32-bit lanes for types of up to 32 bits, else to 64-bit ones.
func (s *selector) scalarToSplat(r amd64.R, t kir.Type) amd64.R {
	d := s.reg(amd64.Vec)
	if s.level == amd64.AVX512 {
		s.emit(amd64.Inst{Op: by(wide(t), amd64.VPBroadcastGD, amd64.VPBroadcastGQ), W: s.w, Dst: d, A: r})
		return d
	}
	low := s.reg(amd64.Vec)
	s.emit(amd64.Inst{Op: by(wide(t), amd64.VMovD, amd64.VMovQ), W: 16, Dst: low, A: r})
	s.emit(amd64.Inst{Op: by(wide(t), amd64.VPBroadcastD, amd64.VPBroadcastQ), W: s.w, Dst: d, A: low})
	return d
}

// splatToScalar returns lane 0 of a register in a general register: of the lane's 32 bits, or all 64 for 64-bit
// types.
func (s *selector) splatToScalar(v amd64.R, t kir.Type) amd64.R {
	d := s.reg(amd64.GPR)
	s.emit(amd64.Inst{Op: by(wide(t), amd64.VMovD, amd64.VMovQ), W: 16, Dst: d, A: v})
	return d
}

// boolToMask returns a mask (one register, good for every part) of a Bool in a general register.
func (s *selector) boolToMask(r amd64.R) amd64.R {
	t := s.reg(amd64.GPR)
	s.emit(amd64.Inst{Op: amd64.Mov, W: 4, Dst: t, A: r})
	s.emit(amd64.Inst{Op: amd64.Neg, W: 4, Dst: t})
	if s.level == amd64.AVX2 {
		return s.scalarToSplat(t, kir.U32)
	}
	k := s.reg(amd64.Mask)
	s.emit(amd64.Inst{Op: amd64.KMov, W: 2, Dst: k, A: t})
	return k
}

// maskToBool returns a mask that is the same in all lanes as a Bool in a general register.
func (s *selector) maskToBool(m amd64.R) amd64.R {
	r := s.reg(amd64.GPR)
	if s.level == amd64.AVX512 {
		s.emit(amd64.Inst{Op: amd64.KMov, W: 2, Dst: r, A: m})
	} else {
		s.emit(amd64.Inst{Op: amd64.VMovD, W: 16, Dst: r, A: m})
	}
	s.emit(amd64.Inst{Op: amd64.And, W: 4, Dst: r, Imm: 1})
	return r
}

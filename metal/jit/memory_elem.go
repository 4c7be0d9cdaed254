package jit

import (
	"github.com/mlxlua/mlxlua/metal/jit/amd64"
	"github.com/mlxlua/mlxlua/metal/kir"
)

// How elements in memory become lanes and back, a part at a time. "Raw" lanes are 32 bits that hold an element's
// bytes zero-extended, as lane-by-lane code keeps them.

// vop emits dst = op a, b on whole vector registers and returns dst.
func (s *selector) vop(op amd64.Opcode, a, b amd64.R) amd64.R {
	d := s.reg(amd64.Vec)
	s.emit(amd64.Inst{Op: op, W: s.w, Dst: d, A: a, B: b})
	return d
}

// vopI emits dst = op a, imm on whole vector registers and returns dst.
func (s *selector) vopI(op amd64.Opcode, a amd64.R, imm int64) amd64.R {
	d := s.reg(amd64.Vec)
	s.emit(amd64.Inst{Op: op, W: s.w, Dst: d, A: a, Imm: imm})
	return d
}

// vopM emits dst = op a, memory on whole vector registers and returns dst; a may be 0.
func (s *selector) vopM(op amd64.Opcode, a amd64.R, m amd64.Mem) amd64.R {
	d := s.reg(amd64.Vec)
	s.emit(amd64.Inst{Op: op, W: s.w, Dst: d, A: a, Mem: m})
	return d
}

// vandC emits an And with a constant of 32 bits in every lane and returns the result.
func (s *selector) vandC(a amd64.R, c uint32) amd64.R {
	return s.vopM(s.pick(amd64.VPAndD, amd64.VPAnd), a, s.splatConst(c))
}

// pick chooses an operation by the instruction set.
func (s *selector) pick(avx512, avx2 amd64.Opcode) amd64.Opcode {
	if s.level == amd64.AVX512 {
		return avx512
	}
	return avx2
}

// splatConst is a constant of 32 bits as an operand of a vector instruction of the whole width.
func (s *selector) splatConst(v uint32) amd64.Mem {
	if s.level == amd64.AVX512 {
		return amd64.Mem{Const: s.f.Const(appendBits(nil, uint64(v), 4)), Bcast: true}
	}
	return amd64.Mem{Const: s.f.Const(splatBytes(v, int(s.w)))}
}

func splatBytes(v uint32, n int) []byte {
	b := make([]byte, 0, n)
	for len(b) < n {
		b = appendBits(b, uint64(v), 4)
	}
	return b
}

// loadPart loads one part's lanes from consecutive elements at m. Lanes that are off in mask (0: none are) are not
// read; with AVX2 that serves elements of 4 and 8 bytes only.
func (s *selector) loadPart(t kir.Type, m amd64.Mem, mask amd64.R) unit {
	if wide(t) {
		lo, hi := mask, mask
		if mask != 0 {
			lo, hi = s.halfMask(mask, 0), s.halfMask(mask, 1)
		}
		u := unit{r: [2]amd64.R{s.loadFull(amd64.VMovDQU64, amd64.VPMaskMovQ, m, lo)}}
		m.Disp += int32(s.w)
		u.r[1] = s.loadFull(amd64.VMovDQU64, amd64.VPMaskMovQ, m, hi)
		return u
	}
	if t.Size() == 4 {
		return unit{r: [2]amd64.R{s.loadFull(amd64.VMovUPS, amd64.VPMaskMovD, m, mask)}}
	}
	op := amd64.VPMovZXWD
	switch t {
	case kir.I8:
		op = amd64.VPMovSXBD
	case kir.U8, kir.Bool:
		op = amd64.VPMovZXBD
	case kir.I16:
		op = amd64.VPMovSXWD
	case kir.F16:
		op = amd64.VCvtPH2PS
	}
	r := s.reg(amd64.Vec)
	s.emit(amd64.Inst{Op: op, W: s.w, Dst: r, Mem: m, KM: mask, Zero: mask != 0})
	switch t {
	case kir.BF16:
		r = s.vopI(amd64.VPSllD, r, 16)
	case kir.Bool:
		r = s.nonzero(r)
	}
	return unit{r: [2]amd64.R{r}}
}

// loadFull loads a vector register, or those lanes of it that are on.
func (s *selector) loadFull(op, masked amd64.Opcode, m amd64.Mem, mask amd64.R) amd64.R {
	r := s.reg(amd64.Vec)
	switch {
	case mask == 0:
		s.emit(amd64.Inst{Op: amd64.VMovUPS, W: s.w, Dst: r, Mem: m})
	case s.level == amd64.AVX512:
		s.emit(amd64.Inst{Op: op, W: s.w, Dst: r, Mem: m, KM: mask, Zero: true})
	default:
		s.emit(amd64.Inst{Op: masked, W: s.w, Dst: r, A: mask, Mem: m})
	}
	return r
}

// nonzero makes a mask of the 32-bit lanes that are not zero; they must not be negative.
func (s *selector) nonzero(r amd64.R) amd64.R {
	if s.level == amd64.AVX512 {
		k := s.reg(amd64.Mask)
		s.emit(amd64.Inst{Op: amd64.VPTestMD, W: s.w, Dst: k, A: r, B: r})
		return k
	}
	z := s.reg(amd64.Vec)
	s.zeroReg(z)
	return s.vop(amd64.VPCmpGtD, r, z)
}

// ones makes raw lanes, 0 or 1, of a mask.
func (s *selector) ones(mask amd64.R) amd64.R {
	if s.level == amd64.AVX512 {
		r := s.reg(amd64.Vec)
		s.emit(amd64.Inst{Op: amd64.VPBroadcastD, W: s.w, Dst: r, KM: mask, Zero: true,
			Mem: amd64.Mem{Const: s.f.Const(appendBits(nil, 1, 4))}})
		return r
	}
	return s.vopI(amd64.VPSrlD, mask, 31)
}

// toRaw makes raw lanes of a part of up to 32 bits.
func (s *selector) toRaw(t kir.Type, r amd64.R) amd64.R {
	switch t {
	case kir.Bool:
		return s.ones(r)
	case kir.F16:
		h := s.reg(amd64.Vec)
		s.emit(amd64.Inst{Op: amd64.VCvtPS2PH, W: s.w, Dst: h, A: r})
		return s.vopM(amd64.VPMovZXWD, h, amd64.Mem{})
	case kir.BF16:
		return s.vopI(amd64.VPSrlD, r, 16)
	}
	return r
}

// fromRaw makes a part's lanes of raw lanes, of which only the element's own low bytes count.
func (s *selector) fromRaw(t kir.Type, r amd64.R) amd64.R {
	switch t {
	case kir.Bool:
		return s.nonzero(s.vandC(r, 0xff))
	case kir.I8, kir.I16:
		n := int64(32 - 8*t.Size())
		return s.vopI(amd64.VPSraD, s.vopI(amd64.VPSllD, r, n), n)
	case kir.U8:
		return s.vandC(r, 0xff)
	case kir.U16:
		return s.vandC(r, 0xffff)
	case kir.BF16:
		return s.vopI(amd64.VPSllD, r, 16)
	case kir.F16:
		h := s.words(r)
		d := s.reg(amd64.Vec)
		s.emit(amd64.Inst{Op: amd64.VCvtPH2PS, W: s.w, Dst: d, A: h})
		return d
	}
	return r
}

// words packs the low halves of 32-bit lanes into the lower half of a register.
func (s *selector) words(r amd64.R) amd64.R {
	if s.level == amd64.AVX512 {
		d := s.reg(amd64.Vec)
		s.emit(amd64.Inst{Op: amd64.VPMovDW, W: s.w, Dst: d, A: r})
		return d
	}
	low := s.vandC(r, 0xffff)
	return s.vopI(amd64.VPermQ, s.vop(amd64.VPackUSDW, low, low), 0xd8)
}

// storePart stores one part's lanes to consecutive elements at m. Lanes that are off in mask (0: none are) are not
// written; with AVX2 that serves elements of 4 and 8 bytes only.
func (s *selector) storePart(t kir.Type, u unit, m amd64.Mem, mask amd64.R) {
	if wide(t) {
		lo, hi := mask, mask
		if mask != 0 {
			lo, hi = s.halfMask(mask, 0), s.halfMask(mask, 1)
		}
		s.storeFull(amd64.VMovDQU64, amd64.VPMaskMovQSt, m, u.r[0], lo)
		m.Disp += int32(s.w)
		s.storeFull(amd64.VMovDQU64, amd64.VPMaskMovQSt, m, u.r[1], hi)
		return
	}
	if t.Size() == 4 {
		s.storeFull(amd64.VMovUPS, amd64.VPMaskMovDSt, m, u.r[0], mask)
		return
	}
	if t == kir.F16 {
		s.emit(amd64.Inst{Op: amd64.VCvtPS2PH, W: s.w, Mem: m, A: u.r[0], KM: mask})
		return
	}
	r := s.toRaw(t, u.r[0])
	switch {
	case s.level == amd64.AVX512 && t.Size() == 2:
		s.emit(amd64.Inst{Op: amd64.VPMovDW, W: s.w, Mem: m, A: r, KM: mask})
	case s.level == amd64.AVX512:
		s.emit(amd64.Inst{Op: amd64.VPMovDB, W: s.w, Mem: m, A: r, KM: mask})
	case t.Size() == 2:
		s.emit(amd64.Inst{Op: amd64.VMovDQU, W: 16, Mem: m, A: s.words(r)})
	default: // the low bytes of each half together, then both halves
		pick := make([]byte, 0, 32)
		for range 2 {
			pick = append(pick, 0, 4, 8, 12, 128, 128, 128, 128, 128, 128, 128, 128, 128, 128, 128, 128)
		}
		b := s.vopM(amd64.VPShufB, r, amd64.Mem{Const: s.f.Const(pick)})
		q := s.reg(amd64.Vec)
		order := s.table([]int32{0, 4, 1, 1, 1, 1, 1, 1}, 4)
		idx := s.vopM(amd64.VMovDQU, 0, order)
		s.emit(amd64.Inst{Op: amd64.VPermD, W: s.w, Dst: q, A: idx, B: b})
		s.emit(amd64.Inst{Op: amd64.VMovQ, W: 16, Mem: m, A: q})
	}
}

// storeFull stores a vector register, or those lanes of it that are on.
func (s *selector) storeFull(op, masked amd64.Opcode, m amd64.Mem, r, mask amd64.R) {
	switch {
	case mask == 0:
		s.emit(amd64.Inst{Op: amd64.VMovUPS, W: s.w, Mem: m, A: r})
	case s.level == amd64.AVX512:
		s.emit(amd64.Inst{Op: op, W: s.w, Mem: m, A: r, KM: mask})
	default:
		s.emit(amd64.Inst{Op: masked, W: s.w, Mem: m, A: r, B: mask})
	}
}

// loadScalar loads one element at m as a uniform value.
func (s *selector) loadScalar(t kir.Type, m amd64.Mem) val {
	v := val{typ: t}
	if t.IsFloat() {
		v.vec[0], v.splat = s.loadSplat(t, m), true
		return v
	}
	v.base = s.reg(amd64.GPR)
	switch t {
	case kir.Bool:
		s.emit(amd64.Inst{Op: amd64.Cmp, W: 1, Mem: m, Imm: 0})
		s.emit(amd64.Inst{Op: amd64.SetCC, W: 1, Cond: amd64.CondNE, Dst: amd64.RAX})
		s.gop(amd64.MovZXB, 4, v.base, amd64.RAX)
	case kir.I8:
		s.gopM(amd64.MovSXB, 4, v.base, m)
	case kir.U8:
		s.gopM(amd64.MovZXB, 4, v.base, m)
	case kir.I16:
		s.gopM(amd64.MovSXW, 4, v.base, m)
	case kir.U16:
		s.gopM(amd64.MovZXW, 4, v.base, m)
	default:
		s.gopM(amd64.Mov, uint8(t.Size()), v.base, m)
	}
	return v
}

// loadSplat loads one float at m into all lanes.
func (s *selector) loadSplat(t kir.Type, m amd64.Mem) amd64.R {
	r := s.reg(amd64.Vec)
	switch t {
	case kir.F32:
		s.emit(amd64.Inst{Op: amd64.VBroadcastSS, W: s.w, Dst: r, Mem: m})
	case kir.F64:
		s.emit(amd64.Inst{Op: amd64.VBroadcastSD, W: s.w, Dst: r, Mem: m})
	case kir.F16:
		h := s.reg(amd64.Vec)
		s.emit(amd64.Inst{Op: amd64.VPBroadcastW, W: s.w / 2, Dst: h, Mem: m})
		s.emit(amd64.Inst{Op: amd64.VCvtPH2PS, W: s.w, Dst: r, A: h})
	case kir.BF16:
		s.emit(amd64.Inst{Op: amd64.VPBroadcastW, W: s.w, Dst: r, Mem: m})
		return s.vopI(amd64.VPSllD, r, 16)
	}
	return r
}

// storeScalar stores a uniform value (or the lowest lane of v.vec[0]) as one element at m.
func (s *selector) storeScalar(t kir.Type, m amd64.Mem, v val) {
	if !t.IsFloat() && v.base != 0 {
		s.storeR(uint8(t.Size()), m, v.base)
		return
	}
	x := v.vec[0]
	switch t {
	case kir.F32, kir.I32, kir.U32:
		s.emit(amd64.Inst{Op: amd64.VMovD, W: 16, Mem: m, A: x})
	case kir.F16, kir.BF16, kir.I8, kir.U8, kir.I16, kir.U16:
		s.emit(amd64.Inst{Op: amd64.VMovD, W: 16, Dst: amd64.RAX, A: s.toRaw(t, x)})
		s.storeR(uint8(t.Size()), m, amd64.RAX)
	default:
		s.emit(amd64.Inst{Op: amd64.VMovQ, W: 16, Mem: m, A: x})
	}
}

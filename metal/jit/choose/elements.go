package choose

import (
	"github.com/mlxlua/mlxlua/metal/jit/code"
	"github.com/mlxlua/mlxlua/metal/kir"
)

// elements turns elements in memory into lanes and back, a part at a time. "Raw" lanes are 32 bits that hold an
// element's bytes zero-extended, as lane-by-lane code keeps them.
type elements struct{ v vector }

// loadPart loads one part's lanes from consecutive elements at m. Lanes that are off in mask (0: none are) are not
// read; with AVX2 that serves elements of 4 and 8 bytes only.
func (s elements) loadPart(t kir.Type, m code.Mem, mask code.R) unit {
	if wide(t) {
		lo, hi := mask, mask
		if mask != 0 {
			lo, hi = s.v.masks().half(mask, 0), s.v.masks().half(mask, 1)
		}
		u := unit{r: [2]code.R{s.loadFull(code.VMovDQU64, code.VPMaskMovQ, m, lo)}}
		m.Disp += int32(s.v.e.w)
		u.r[1] = s.loadFull(code.VMovDQU64, code.VPMaskMovQ, m, hi)
		return u
	}
	if t.Size() == 4 {
		return unit{r: [2]code.R{s.loadFull(code.VMovUPS, code.VPMaskMovD, m, mask)}}
	}
	op := code.VPMovZXWD
	switch t {
	case kir.I8:
		op = code.VPMovSXBD
	case kir.U8, kir.Bool:
		op = code.VPMovZXBD
	case kir.I16:
		op = code.VPMovSXWD
	case kir.F16:
		op = code.VCvtPH2PS
	}
	r := s.v.reg(code.Vec)
	s.v.emit(code.Inst{Op: op, W: s.v.e.w, Dst: r, Mem: m, KM: mask, Zero: mask != 0})
	switch t {
	case kir.BF16:
		r = s.v.op1Imm(code.VPSllD, r, 16)
	case kir.Bool:
		r = s.v.nonzero(r)
	}
	return unit{r: [2]code.R{r}}
}

// loadFull loads a vector register, or those lanes of it that are on.
func (s elements) loadFull(op, masked code.Opcode, m code.Mem, mask code.R) code.R {
	r := s.v.reg(code.Vec)
	switch {
	case mask == 0:
		s.v.emit(code.Inst{Op: code.VMovUPS, W: s.v.e.w, Dst: r, Mem: m})
	case s.v.avx512():
		s.v.emit(code.Inst{Op: op, W: s.v.e.w, Dst: r, Mem: m, KM: mask, Zero: true})
	default:
		s.v.emit(code.Inst{Op: masked, W: s.v.e.w, Dst: r, A: mask, Mem: m})
	}
	return r
}

// ones makes raw lanes, 0 or 1, of a mask.
func (s elements) ones(mask code.R) code.R {
	if s.v.avx512() {
		r := s.v.reg(code.Vec)
		s.v.emit(code.Inst{Op: code.VPBroadcastD, W: s.v.e.w, Dst: r, KM: mask, Zero: true,
			Mem: code.Mem{Const: s.v.e.f.Const(appendBits(nil, 1, 4))}})
		return r
	}
	return s.v.op1Imm(code.VPSrlD, mask, 31)
}

// toRaw makes raw lanes of a part of up to 32 bits.
func (s elements) toRaw(t kir.Type, r code.R) code.R {
	switch t {
	case kir.Bool:
		return s.ones(r)
	case kir.F16:
		h := s.v.reg(code.Vec)
		s.v.emit(code.Inst{Op: code.VCvtPS2PH, W: s.v.e.w, Dst: h, A: r})
		return s.v.op2Mem(code.VPMovZXWD, h, code.Mem{})
	case kir.BF16:
		return s.v.op1Imm(code.VPSrlD, r, 16)
	}
	return r
}

// fromRaw makes a part's lanes of raw lanes, of which only the element's own low bytes count.
func (s elements) fromRaw(t kir.Type, r code.R) code.R {
	switch t {
	case kir.Bool:
		return s.v.nonzero(s.v.and(r, konst(0xff), false))
	case kir.I8, kir.I16:
		n := int64(32 - 8*t.Size())
		return s.v.op1Imm(code.VPSraD, s.v.op1Imm(code.VPSllD, r, n), n)
	case kir.U8:
		return s.v.and(r, konst(0xff), false)
	case kir.U16:
		return s.v.and(r, konst(0xffff), false)
	case kir.BF16:
		return s.v.op1Imm(code.VPSllD, r, 16)
	case kir.F16:
		h := s.words(r)
		d := s.v.reg(code.Vec)
		s.v.emit(code.Inst{Op: code.VCvtPH2PS, W: s.v.e.w, Dst: d, A: h})
		return d
	}
	return r
}

// words packs the low halves of 32-bit lanes into the lower half of a register.
func (s elements) words(r code.R) code.R {
	if s.v.extras() {
		d := s.v.reg(code.Vec)
		s.v.emit(code.Inst{Op: code.VPMovDW, W: s.v.e.w, Dst: d, A: r})
		return d
	}
	low := s.v.and(r, konst(0xffff), false)
	return s.v.op1Imm(code.VPermQ, s.v.op2(code.VPackUSDW, low, low), 0xd8)
}

// storePart stores one part's lanes to consecutive elements at m. Lanes that are off in mask (0: none are) are not
// written; with AVX2 that serves elements of 4 and 8 bytes only.
func (s elements) storePart(t kir.Type, u unit, m code.Mem, mask code.R) {
	if wide(t) {
		lo, hi := mask, mask
		if mask != 0 {
			lo, hi = s.v.masks().half(mask, 0), s.v.masks().half(mask, 1)
		}
		s.storeFull(code.VMovDQU64, code.VPMaskMovQSt, m, u.r[0], lo)
		m.Disp += int32(s.v.e.w)
		s.storeFull(code.VMovDQU64, code.VPMaskMovQSt, m, u.r[1], hi)
		return
	}
	if t.Size() == 4 {
		s.storeFull(code.VMovUPS, code.VPMaskMovDSt, m, u.r[0], mask)
		return
	}
	if t == kir.F16 {
		s.v.emit(code.Inst{Op: code.VCvtPS2PH, W: s.v.e.w, Mem: m, A: u.r[0], KM: mask})
		return
	}
	r := s.toRaw(t, u.r[0])
	switch {
	case s.v.extras() && t.Size() == 2:
		s.v.emit(code.Inst{Op: code.VPMovDW, W: s.v.e.w, Mem: m, A: r, KM: mask})
	case s.v.extras():
		s.v.emit(code.Inst{Op: code.VPMovDB, W: s.v.e.w, Mem: m, A: r, KM: mask})
	case t.Size() == 2:
		s.v.emit(code.Inst{Op: code.VMovDQU, W: 16, Mem: m, A: s.words(r)})
	default: // the low bytes of each half together, then both halves
		pick := make([]byte, 0, 32)
		for range 2 {
			pick = append(pick, 0, 4, 8, 12, 128, 128, 128, 128, 128, 128, 128, 128, 128, 128, 128, 128)
		}
		b := s.v.op2Mem(code.VPShufB, r, code.Mem{Const: s.v.e.f.Const(pick)})
		q := s.v.reg(code.Vec)
		order := s.v.e.table([]int32{0, 4, 1, 1, 1, 1, 1, 1}, 4)
		idx := s.v.op2Mem(code.VMovDQU, 0, order)
		s.v.emit(code.Inst{Op: code.VPermD, W: s.v.e.w, Dst: q, A: idx, B: b})
		s.v.emit(code.Inst{Op: code.VMovQ, W: 16, Mem: m, A: q})
	}
}

// storeFull stores a vector register, or those lanes of it that are on.
func (s elements) storeFull(op, masked code.Opcode, m code.Mem, r, mask code.R) {
	switch {
	case mask == 0:
		s.v.emit(code.Inst{Op: code.VMovUPS, W: s.v.e.w, Mem: m, A: r})
	case s.v.avx512():
		s.v.emit(code.Inst{Op: op, W: s.v.e.w, Mem: m, A: r, KM: mask})
	default:
		s.v.emit(code.Inst{Op: masked, W: s.v.e.w, Mem: m, A: r, B: mask})
	}
}

// loadScalar loads one element at m as a uniform value.
func (s elements) loadScalar(t kir.Type, m code.Mem) val {
	v := val{typ: t}
	if t.IsFloat() {
		v.vec[0], v.splat = s.loadSplat(t, m), true
		return v
	}
	v.base = s.v.reg(code.GPR)
	switch t {
	case kir.Bool:
		s.v.emit(code.Inst{Op: code.Cmp, W: 1, Mem: m, Imm: 0})
		s.v.emit(code.Inst{Op: code.SetCC, W: 1, Cond: code.CondNE, Dst: code.RAX})
		s.v.e.gop(code.MovZXB, 4, v.base, code.RAX)
	case kir.I8:
		s.v.e.gopMem(code.MovSXB, 4, v.base, m)
	case kir.U8:
		s.v.e.gopMem(code.MovZXB, 4, v.base, m)
	case kir.I16:
		s.v.e.gopMem(code.MovSXW, 4, v.base, m)
	case kir.U16:
		s.v.e.gopMem(code.MovZXW, 4, v.base, m)
	default:
		s.v.e.gopMem(code.Mov, uint8(t.Size()), v.base, m)
	}
	return v
}

// loadSplat loads one float at m into all lanes.
func (s elements) loadSplat(t kir.Type, m code.Mem) code.R {
	r := s.v.reg(code.Vec)
	switch t {
	case kir.F32:
		s.v.emit(code.Inst{Op: code.VBroadcastSS, W: s.v.e.w, Dst: r, Mem: m})
	case kir.F64:
		s.v.emit(code.Inst{Op: code.VBroadcastSD, W: s.v.e.w, Dst: r, Mem: m})
	case kir.F16:
		h := s.v.reg(code.Vec)
		s.v.emit(code.Inst{Op: code.VPBroadcastW, W: s.v.e.w / 2, Dst: h, Mem: m})
		s.v.emit(code.Inst{Op: code.VCvtPH2PS, W: s.v.e.w, Dst: r, A: h})
	case kir.BF16:
		s.v.emit(code.Inst{Op: code.VPBroadcastW, W: s.v.e.w, Dst: r, Mem: m})
		return s.v.op1Imm(code.VPSllD, r, 16)
	}
	return r
}

// storeScalar stores a uniform value (or the lowest lane of v.vec[0]) as one element at m.
func (s elements) storeScalar(t kir.Type, m code.Mem, v val) {
	if !t.IsFloat() && v.base != 0 {
		s.v.e.storeReg(uint8(t.Size()), m, v.base)
		return
	}
	x := v.vec[0]
	switch t {
	case kir.F32, kir.I32, kir.U32:
		s.v.emit(code.Inst{Op: code.VMovD, W: 16, Mem: m, A: x})
	case kir.F16, kir.BF16, kir.I8, kir.U8, kir.I16, kir.U16:
		s.v.emit(code.Inst{Op: code.VMovD, W: 16, Dst: code.RAX, A: s.toRaw(t, x)})
		s.v.e.storeReg(uint8(t.Size()), m, code.RAX)
	default:
		s.v.emit(code.Inst{Op: code.VMovQ, W: 16, Mem: m, A: x})
	}
}

// gatherMask returns a copy of a mask, which a gather clears; all lanes if it is 0.
func (s elements) gatherMask(mask code.R) code.R {
	if mask != 0 {
		return s.v.e.copyReg(mask)
	}
	if s.v.avx512() {
		k := s.v.reg(code.Mask)
		s.v.emit(code.Inst{Op: code.KXNor, W: 2, Dst: k, A: k, B: k})
		return k
	}
	r := s.v.reg(code.Vec)
	s.v.emit(code.Inst{Op: code.VPCmpEqD, W: s.v.e.w, Dst: r, A: r, B: r})
	return r
}

// gatherWords loads a word of 4 bytes for each lane of a part by a 32-bit index.
func (s elements) gatherWords(m code.Mem, idx, mask code.R) code.R {
	return s.gather(code.VPGatherDDK, code.VPGatherDD, m, idx, mask)
}

// gatherWide loads 8 bytes for each lane of half h of a part by a 32-bit index.
func (s elements) gatherWide(m code.Mem, idx code.R, h int, mask code.R) code.R {
	if h == 1 {
		idx = s.v.upper(idx)
	}
	if mask != 0 {
		mask = s.v.masks().half(mask, h)
	}
	return s.gather(code.VPGatherDQK, code.VPGatherDQ, m, idx, mask)
}

// gather loads the words at m for the lanes of a register of 32-bit indices; those that the mask leaves out are 0.
func (s elements) gather(avx512, avx2 code.Opcode, m code.Mem, idx, mask code.R) code.R {
	d := s.v.reg(code.Vec)
	k := s.gatherMask(mask)
	s.v.e.zeroReg(d)
	m.Index = idx
	if s.v.avx512() {
		s.v.emit(code.Inst{Op: avx512, W: s.v.e.w, Dst: d, Mem: m, KM: k})
	} else {
		s.v.emit(code.Inst{Op: avx2, W: s.v.e.w, Dst: d, A: k, Mem: m})
	}
	return d
}

// loadSame loads one element for all lanes of a part.
func (s elements) loadSame(t kir.Type, m code.Mem) unit {
	switch {
	case wide(t):
		r := s.v.op2Mem(code.VPBroadcastQ, 0, m)
		return unit{r: [2]code.R{r, r}}
	case t.IsFloat():
		return unit{r: [2]code.R{s.loadSplat(t, m)}}
	}
	op := code.VPBroadcastD
	switch t.Size() {
	case 1:
		op = code.VPBroadcastB
	case 2:
		op = code.VPBroadcastW
	}
	return unit{r: [2]code.R{s.fromRaw(t, s.v.op2Mem(op, 0, m))}}
}

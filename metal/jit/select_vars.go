package jit

import (
	"github.com/mlxlua/mlxlua/metal/jit/amd64"
	"github.com/mlxlua/mlxlua/metal/jit/lanes"
	"github.com/mlxlua/mlxlua/metal/kir"
)

// Variables keep their registers from entry to end; sets write them in place.

// makeVars gives variables their registers, and zero to those that may be read before they are set.
func (s *selector) makeVars() {
	s.vars = make([]val, len(s.k.Vars))
	for n, v := range s.k.Vars {
		x := val{typ: v.Type}
		switch kind := s.info.VarPatterns[n].Kind; {
		case kind != lanes.Varying && !v.Type.IsFloat():
			x.base = s.reg(amd64.GPR)
		case kind == lanes.Uniform:
			x.vec[0], x.splat = s.reg(amd64.Vec), true
		default:
			for p := range s.regsOf(v.Type) {
				x.vec[p] = s.reg(s.classOf(v.Type))
			}
		}
		s.vars[n] = x
		if s.info.VarInit[n] {
			s.zero(x)
		}
	}
}

// regsOf is how many vector (or mask) registers all lanes of a type take.
func (s *selector) regsOf(t kir.Type) int {
	if wide(t) {
		return 2 * s.parts
	}
	return s.parts
}

// classOf is the class of registers that hold lanes of a type.
func (s *selector) classOf(t kir.Type) amd64.Class {
	if t == kir.Bool && s.level == amd64.AVX512 {
		return amd64.Mask
	}
	return amd64.Vec
}

// zero clears the registers of a value.
func (s *selector) zero(v val) {
	if v.base != 0 {
		s.emit(amd64.Inst{Op: amd64.Mov, W: 4, Dst: v.base, Imm: 0})
	}
	for _, r := range v.vec {
		s.zeroReg(r)
	}
}

// zeroReg clears a vector or mask register.
func (s *selector) zeroReg(r amd64.R) {
	switch {
	case r == 0:
	case r.Class() == amd64.Mask:
		s.emit(amd64.Inst{Op: amd64.KXor, W: 2, Dst: r, A: r, B: r})
	default:
		s.emit(amd64.Inst{Op: amd64.VXorPS, W: s.w, Dst: r, A: r, B: r})
	}
}

// varGet yields a variable's value: its own registers if they keep it while it is in use, else copies.
func (s *selector) varGet(i *kir.Instr) {
	if !s.info.NeedBase[i.ID] && !s.info.NeedVec[i.ID] {
		return
	}
	v := s.vars[i.Imm]
	if !s.info.Alias[i.ID] {
		if v.base != 0 {
			r := s.reg(amd64.GPR)
			s.emit(amd64.Inst{Op: amd64.Mov, W: 8, Dst: r, A: v.base})
			v.base = r
		}
		for n, r := range v.vec {
			if r != 0 {
				v.vec[n] = s.copyReg(r)
			}
		}
	}
	s.result(i, v)
}

// copyReg returns a copy of a vector or mask register.
func (s *selector) copyReg(r amd64.R) amd64.R {
	d := s.reg(r.Class())
	s.moveReg(d, r)
	return d
}

func (s *selector) moveReg(d, r amd64.R) {
	switch {
	case r.Class() == amd64.Mask:
		s.emit(amd64.Inst{Op: amd64.KMov, W: 2, Dst: d, A: r})
	default:
		s.emit(amd64.Inst{Op: amd64.VMovAPS, W: s.w, Dst: d, A: r})
	}
}

// varSet writes a variable, or those of its lanes that are active.
func (s *selector) varSet(i *kir.Instr) {
	v, arg := s.vars[i.Imm], i.Args[0]
	if arg.Type.IsPtr() && s.info.VarObjects[i.Imm] == 0 && s.info.Object[arg.ID] != 0 {
		s.setFrom(i, v, s.fullPointer(s.ptrVal(arg, v.base == 0), s.info.Object[arg.ID]))
		return
	}
	if v.base != 0 {
		s.emit(amd64.Inst{Op: amd64.Mov, W: 8, Dst: v.base, A: s.base(arg)})
		return
	}
	s.setFrom(i, v, s.laneVal(arg))
}

// ptrVal returns a pointer operand in lanes or in a general register.
func (s *selector) ptrVal(i *kir.Instr, inLanes bool) val {
	if inLanes {
		return s.laneVal(i)
	}
	return val{typ: i.Type, base: s.base(i)}
}

// setFrom writes x to the variable v, under the mask if other lanes keep theirs.
func (s *selector) setFrom(i *kir.Instr, v, x val) {
	switch {
	case v.base != 0:
		s.emit(amd64.Inst{Op: amd64.Mov, W: 8, Dst: v.base, A: x.base})
		return
	case v.splat:
		s.moveReg(v.vec[0], x.vec[0])
		return
	}
	masked := s.info.Masked[i.ID]
	for p := range s.parts {
		from, to := x.unitOf(p), v.unitOf(p)
		for h := range 2 {
			switch {
			case to.r[h] == 0:
			case !masked:
				s.moveReg(to.r[h], from.r[h])
			default:
				s.mergeReg(to.r[h], from.r[h], v.typ, p, h)
			}
		}
	}
}

// mergeReg writes the active lanes of src to dst: part p, its half h for 64-bit types.
func (s *selector) mergeReg(dst, src amd64.R, t kir.Type, p, h int) {
	m := s.exec[p]
	switch {
	case dst.Class() == amd64.Mask:
		on, off := s.reg(amd64.Mask), s.reg(amd64.Mask)
		s.emit(amd64.Inst{Op: amd64.KAnd, W: 2, Dst: on, A: m, B: src})
		s.emit(amd64.Inst{Op: amd64.KAndN, W: 2, Dst: off, A: m, B: dst})
		s.emit(amd64.Inst{Op: amd64.KOr, W: 2, Dst: dst, A: on, B: off})
	case s.level == amd64.AVX512 && wide(t):
		s.emit(amd64.Inst{Op: amd64.VMovAPD, W: s.w, Dst: dst, A: src, KM: s.halfMask(m, h)})
	case s.level == amd64.AVX512:
		s.emit(amd64.Inst{Op: amd64.VMovAPS, W: s.w, Dst: dst, A: src, KM: m})
	case wide(t):
		s.emit(amd64.Inst{Op: amd64.VBlendVPD, W: s.w, Dst: dst, A: dst, B: src, C: s.halfMask(m, h)})
	default:
		s.emit(amd64.Inst{Op: amd64.VBlendVPS, W: s.w, Dst: dst, A: dst, B: src, C: m})
	}
}

// halfMask returns the mask of half h of a part's lanes, for 64-bit lanes.
func (s *selector) halfMask(m amd64.R, h int) amd64.R {
	if s.level == amd64.AVX512 {
		if h == 0 {
			return m
		}
		r := s.reg(amd64.Mask)
		s.emit(amd64.Inst{Op: amd64.KShiftR, W: 2, Dst: r, A: m, Imm: 8})
		return r
	}
	r := s.reg(amd64.Vec)
	if h == 1 {
		top := s.reg(amd64.Vec)
		s.emit(amd64.Inst{Op: amd64.VExtractI128, W: 32, Dst: top, A: m, Imm: 1})
		m = top
	}
	s.emit(amd64.Inst{Op: amd64.VPMovSXDQ, W: 32, Dst: r, A: m})
	return r
}

// builtin yields a position or size.
func (s *selector) builtin(i *kir.Instr) {
	if !s.info.NeedBase[i.ID] && !s.info.NeedVec[i.ID] {
		return
	}
	c := int32(i.Imm)
	word := func(off int32, reg amd64.R) amd64.R {
		r := s.reg(amd64.GPR)
		s.emit(amd64.Inst{Op: amd64.Mov, W: 4, Dst: r, Mem: amd64.Mem{Base: reg, Disp: off}})
		return r
	}
	imm := func(op amd64.Opcode, r amd64.R, v int64) amd64.R {
		s.emit(amd64.Inst{Op: op, W: 4, Dst: r, Imm: v})
		return r
	}
	first := func() amd64.R { // number of the group's first lane in the threadgroup
		r := word(frameIndex, regFrame)
		return imm(amd64.Shl, r, int64(log2(s.group)))
	}
	var v val
	switch i.Mode {
	case kir.ThreadPositionInGrid, kir.ThreadPositionInThreadgroup:
		s.position(i, c)
		return
	case kir.ThreadIndexInThreadgroup:
		v.base = first()
	case kir.ThreadIndexInSimdgroup:
		v.base = imm(amd64.And, first(), kir.Lanes-1)
	case kir.SimdgroupIndexInThreadgroup:
		v.base = imm(amd64.Shr, first(), 5)
	case kir.ThreadIndexInQuadgroup:
		v.base = imm(amd64.Mov, s.reg(amd64.GPR), 0)
	case kir.QuadgroupIndexInThreadgroup:
		v.base = imm(amd64.Shr, first(), 2)
	case kir.GridOrigin:
		v.base = imm(amd64.Mov, s.reg(amd64.GPR), 0)
	case kir.ThreadsPerSimdgroup:
		v.base = imm(amd64.Mov, s.reg(amd64.GPR), kir.Lanes)
	default:
		mode := i.Mode
		if mode == kir.GridSize {
			mode = kir.ThreadsPerGrid
		}
		slot, ok := builtinSlots[mode]
		if !ok {
			s.unsupported(i, "unknown builtin")
			return
		}
		v.base = word(blockBuiltins+4*(int32(slot)+c), regBlock)
	}
	s.result(i, v)
}

// position yields component c of a thread's position.
func (s *selector) position(i *kir.Instr, c int32) {
	table := s.reg(amd64.GPR)
	s.emit(amd64.Inst{Op: amd64.Mov, W: 8, Dst: table, Mem: amd64.Mem{Base: regFrame, Disp: framePos}})
	origin := amd64.Mem{Base: regBlock, Disp: blockBuiltins + 4*(slotOrigin+c)}
	row := amd64.Mem{Base: table, Disp: c * 4 * int32(s.group)}
	inGrid := i.Mode == kir.ThreadPositionInGrid
	if s.info.Patterns[i.ID].Kind != lanes.Varying {
		v := val{base: s.reg(amd64.GPR)}
		s.emit(amd64.Inst{Op: amd64.Mov, W: 4, Dst: v.base, Mem: row})
		if inGrid {
			s.emit(amd64.Inst{Op: amd64.Add, W: 4, Dst: v.base, Mem: origin})
		}
		s.result(i, v)
		return
	}
	var all amd64.R
	if inGrid {
		all = s.reg(amd64.Vec)
		s.emit(amd64.Inst{Op: amd64.VPBroadcastD, W: s.w, Dst: all, Mem: origin})
	}
	var v val
	for p := range s.parts {
		v.vec[p] = s.reg(amd64.Vec)
		if inGrid {
			s.emit(amd64.Inst{Op: amd64.VPAddD, W: s.w, Dst: v.vec[p], A: all, Mem: row})
		} else {
			s.emit(amd64.Inst{Op: amd64.VMovUPS, W: s.w, Dst: v.vec[p], Mem: row})
		}
		row.Disp += int32(s.w)
	}
	s.result(i, v)
}

// log2 of a power of two.
func log2(n int) int {
	k := 0
	for n > 1 {
		n, k = n>>1, k+1
	}
	return k
}

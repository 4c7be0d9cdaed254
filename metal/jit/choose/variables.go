package choose

import (
	"github.com/mlxlua/mlxlua/metal/jit/code"
	"github.com/mlxlua/mlxlua/metal/jit/lanes"
	"github.com/mlxlua/mlxlua/metal/kir"
)

// variables gives variables their registers, which they keep from entry to end: sets write them in place.
type variables struct {
	e    *emitter
	m    masks
	vals *values
	ptrs *pointers
	on   *active
	k    *kir.Kernel
	info *lanes.Info
	all  []val // by variable
}

// create gives variables their registers, and zero to those that may be read before they are set.
func (s *variables) create() {
	s.all = make([]val, len(s.k.Vars))
	for n, v := range s.k.Vars {
		x := val{typ: v.Type}
		switch kind := s.info.VarPatterns[n].Kind; {
		case kind != lanes.Varying && !v.Type.IsFloat():
			x.base = s.e.reg(code.GPR)
		case kind == lanes.Uniform:
			x.vec[0], x.splat = s.e.reg(code.Vec), true
		default:
			for p := range s.e.regsOf(v.Type) {
				x.vec[p] = s.e.reg(s.e.classOf(v.Type))
			}
		}
		s.all[n] = x
		if s.info.VarInit[n] {
			s.zero(x)
		}
	}
}

// zero clears the registers of a value.
func (s *variables) zero(v val) {
	if v.base != 0 {
		s.e.emit(code.Inst{Op: code.Mov, W: 4, Dst: v.base, Imm: 0})
	}
	for _, r := range v.vec {
		s.e.zeroReg(r)
	}
}

// get yields a variable's value: its own registers if they keep it while it is in use, else copies.
func (s *variables) get(i *kir.Instr) {
	if !s.info.NeedBase[i.ID] && !s.info.NeedVec[i.ID] {
		return
	}
	v := s.all[i.Imm]
	if !s.info.Alias[i.ID] {
		if v.base != 0 {
			r := s.e.reg(code.GPR)
			s.e.emit(code.Inst{Op: code.Mov, W: 8, Dst: r, A: v.base})
			v.base = r
		}
		for n, r := range v.vec {
			if r != 0 {
				v.vec[n] = s.e.copyReg(r)
			}
		}
	}
	s.vals.result(i, v)
}

// set writes a variable, or those of its lanes that are active.
func (s *variables) set(i *kir.Instr) {
	v, arg := s.all[i.Imm], i.Args[0]
	if arg.Type.IsPtr() && s.info.VarObjects[i.Imm] == 0 && s.info.Object[arg.ID] != 0 {
		s.setFrom(i, v, s.ptrs.full(s.ptrVal(arg, v.base == 0), s.info.Object[arg.ID]))
		return
	}
	if v.base != 0 {
		s.e.emit(code.Inst{Op: code.Mov, W: 8, Dst: v.base, A: s.vals.base(arg)})
		return
	}
	s.setFrom(i, v, s.vals.laneVal(arg))
}

// ptrVal returns a pointer operand in lanes or in a general register.
func (s *variables) ptrVal(i *kir.Instr, inLanes bool) val {
	if inLanes {
		return s.vals.laneVal(i)
	}
	return val{typ: i.Type, base: s.vals.base(i)}
}

// setFrom writes x to the variable v, under the mask if other lanes keep theirs.
func (s *variables) setFrom(i *kir.Instr, v, x val) {
	switch {
	case v.base != 0:
		s.e.emit(code.Inst{Op: code.Mov, W: 8, Dst: v.base, A: x.base})
		return
	case v.splat:
		s.e.moveReg(v.vec[0], x.vec[0])
		return
	}
	masked := s.info.Masked[i.ID]
	for p := range s.e.parts {
		from, to := x.unitOf(p), v.unitOf(p)
		for h := range 2 {
			switch {
			case to.r[h] == 0:
			case !masked:
				s.e.moveReg(to.r[h], from.r[h])
			default:
				s.mergeReg(to.r[h], from.r[h], v.typ, p, h)
			}
		}
	}
}

// mergeReg writes the active lanes of src to dst: part p, its half h for 64-bit types.
func (s *variables) mergeReg(dst, src code.R, t kir.Type, p, h int) {
	m := s.on.exec[p]
	switch {
	case dst.Class() == code.Mask:
		on, off := s.e.reg(code.Mask), s.e.reg(code.Mask)
		s.e.emit(code.Inst{Op: code.KAnd, W: 2, Dst: on, A: m, B: src})
		s.e.emit(code.Inst{Op: code.KAndN, W: 2, Dst: off, A: m, B: dst})
		s.e.emit(code.Inst{Op: code.KOr, W: 2, Dst: dst, A: on, B: off})
	case s.e.avx512() && wide(t):
		s.e.emit(code.Inst{Op: code.VMovAPD, W: s.e.w, Dst: dst, A: src, KM: s.m.half(m, h)})
	case s.e.avx512():
		s.e.emit(code.Inst{Op: code.VMovAPS, W: s.e.w, Dst: dst, A: src, KM: m})
	case wide(t):
		s.e.emit(code.Inst{Op: code.VBlendVPD, W: s.e.w, Dst: dst, A: dst, B: src, C: s.m.half(m, h)})
	default:
		s.e.emit(code.Inst{Op: code.VBlendVPS, W: s.e.w, Dst: dst, A: dst, B: src, C: m})
	}
}

package choose

import (
	"github.com/mlxlua/mlxlua/metal/jit/code"
	"github.com/mlxlua/mlxlua/metal/jit/lanes"
	"github.com/mlxlua/mlxlua/metal/kir"
)

// values keeps where the value of each instruction is, and brings it where a user wants it.
type values struct {
	e    *emitter
	v    vector
	m    masks
	g    general
	info *lanes.Info
	byID []val // by Instr.ID
}

// result makes v the value of i, in all the forms its users want.
func (s *values) result(i *kir.Instr, v val) {
	v.typ = i.Type
	if i.ID < len(s.byID) {
		s.byID[i.ID] = s.complete(i, v)
	}
}

// complete adds the registers that users of i want and v lacks.
func (s *values) complete(i *kir.Instr, v val) val {
	sh := s.info.Patterns[i.ID]
	if v.base == 0 && s.info.NeedBase[i.ID] && v.vec[0] != 0 && sh.Kind == lanes.Uniform && !i.Type.IsFloat() {
		v.base = s.uniformBase(v)
	}
	if v.vec[0] == 0 && s.info.NeedVec[i.ID] && v.base != 0 {
		return s.spread(v, sh)
	}
	return v
}

// uniformBase takes a uniform integer or Bool out of its lanes.
func (s *values) uniformBase(v val) code.R {
	if v.typ == kir.Bool {
		return s.m.toBool(v.vec[0])
	}
	return s.e.splatToScalar(v.vec[0], v.typ)
}

// spread gives a value in a general register its lanes: a splat if it is uniform, base + offsets if it is Based.
func (s *values) spread(v val, sh lanes.Pattern) val {
	if v.typ == kir.Bool {
		v.vec[0], v.splat = s.m.fromBool(v.base), true
		return v
	}
	all := s.e.scalarToSplat(v.base, v.typ)
	if sh.Kind != lanes.Based {
		v.vec[0], v.splat = all, true
		return v
	}
	v.splat = false
	narrow := v.typ.Size() < 4
	op, size, n := code.VPAddD, 4, s.e.parts
	if wide(v.typ) {
		op, size, n = code.VPAddQ, 8, 2*s.e.parts
	}
	per := int(s.e.w) / size
	for p := range n {
		r := s.e.reg(code.Vec)
		s.e.emit(code.Inst{Op: op, W: s.e.w, Dst: r, A: all, Mem: s.e.table(sh.Offsets[p*per:(p+1)*per], size)})
		if narrow { // the type may wrap
			r = s.extendNarrow(r, v.typ)
		}
		v.vec[p] = r
	}
	return v
}

// extendNarrow cuts 32-bit lanes to a narrower integer type and extends them again.
func (s *values) extendNarrow(r code.R, t kir.Type) code.R {
	bits := int64(32 - 8*t.Size())
	right := code.VPSrlD
	if t.IsSigned() {
		right = code.VPSraD
	}
	a, b := s.e.reg(code.Vec), s.e.reg(code.Vec)
	s.e.emit(code.Inst{Op: code.VPSllD, W: s.e.w, Dst: a, A: r, Imm: bits})
	s.e.emit(code.Inst{Op: right, W: s.e.w, Dst: b, A: a, Imm: bits})
	return b
}

// laneVal returns the value of an instruction with its lanes in vector registers.
func (s *values) laneVal(i *kir.Instr) val {
	if i.Op == kir.Const {
		return val{typ: i.Type, vec: [maxRegs]code.R{s.v.constant(i.Type, i.Imm)}, splat: true}
	}
	v := s.byID[i.ID]
	if v.vec[0] == 0 {
		sh := s.info.Patterns[i.ID]
		v.typ = i.Type
		v.base = s.base(i)
		v = s.spread(v, sh)
	}
	return v
}

// base returns the uniform value, or the base of a Based one, of an integer, Bool or pointer in a general register.
func (s *values) base(i *kir.Instr) code.R {
	if i.Op == kir.Const {
		r := s.e.reg(code.GPR)
		lane, size := laneBits(i.Type, i.Imm)
		s.e.emit(code.Inst{Op: code.Mov, W: uint8(size), Dst: r, Imm: int64(lane)})
		return r
	}
	v := s.byID[i.ID]
	if v.base != 0 {
		return v.base
	}
	if v.vec[0] != 0 && s.info.Patterns[i.ID].Kind == lanes.Uniform {
		return s.uniformBase(val{typ: i.Type, vec: v.vec, splat: v.splat})
	}
	if i.Op.Pure() && !involves(i, kir.Type.IsPtr) {
		return s.scalarOp(i) // nobody had asked for it when i was selected
	}
	s.e.unsupported(i, "a base is wanted that does not exist")
	return s.e.reg(code.GPR)
}

// scalarOp computes the uniform value of i, or the base of its pattern, in a general register.
func (s *values) scalarOp(i *kir.Instr) code.R {
	args := make([]code.R, len(i.Args))
	for n, a := range i.Args {
		if a.Op != kir.Const {
			args[n] = s.base(a)
		}
	}
	consts := constsOf(i)
	for n, a := range i.Args {
		if a.Op == kir.Const {
			args[n] = s.base(a)
		}
	}
	r := s.g.pure(i.Op, i.Type, i.OperandType(), args, consts)
	if adj := int64(s.info.Bias[i.ID]); adj != 0 {
		w := uint8(4)
		if wide(i.Type) {
			w = 8
		}
		t := s.e.reg(code.GPR)
		s.e.emit(code.Inst{Op: code.Mov, W: w, Dst: t, A: r})
		s.e.emit(code.Inst{Op: code.Add, W: w, Dst: t, Imm: adj})
		r = t
		if i.Type.Size() < 4 {
			zero := uint64(0)
			r = s.g.pure(kir.Add, i.Type, i.Type, []code.R{r, s.base(&kir.Instr{Op: kir.Const, Type: i.Type})},
				[]*uint64{nil, &zero})
		}
	}
	return r
}

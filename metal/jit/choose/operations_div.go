package choose

import (
	"math"

	"github.com/mlxlua/mlxlua/metal/jit/code"
	"github.com/mlxlua/mlxlua/metal/jit/lanes"
	"github.com/mlxlua/mlxlua/metal/kir"
)

// reciprocal returns a float64 r such that trunc(a*r) is a/c for every 32-bit a: 1/c, rounded away from zero.
func reciprocal(t kir.Type, c uint64) float64 {
	f := float64(uint32(c))
	if t.IsSigned() {
		f = float64(int32(c))
	}
	r := 1 / f
	if math.FMA(r, f, -1) < 0 {
		r = math.Float64frombits(math.Float64bits(r) + 1)
	}
	return r
}

// byUniform reports whether an operation divides lanes by one number that is not a constant.
func (s *operations) byUniform(i *kir.Instr) bool {
	if i.Op != kir.Div && i.Op != kir.Rem || !i.Type.IsInt() || i.Type.Size() != 4 {
		return false
	}
	b := i.Args[1]
	return b.Op != kir.Const && s.info.Patterns[b.ID].Kind == lanes.Uniform
}

// longDivision reports whether an operation divides lanes of 64-bit integers by what is not constant.
func (s *operations) longDivision(i *kir.Instr) bool {
	return (i.Op == kir.Div || i.Op == kir.Rem) && i.Type.IsInt() && wide(i.Type) && i.Args[1].Op != kir.Const
}

// divideLong divides 64-bit integers. No vector instruction does that, but most numbers have no more than 32 bits: if
// all have, they are divided as such.
func (s *operations) divideLong(i *kir.Instr) val {
	a, b := s.vals.laneVal(i.Args[0]), s.vals.laneVal(i.Args[1])
	if s.info.Bits[i.Args[0].ID] <= 32 && s.info.Bits[i.Args[1].ID] <= 32 {
		return s.divideShort(i, a, b)
	}
	slow, done := s.e.label(), s.e.label()
	all := code.R(0)
	for _, v := range [2]val{a, b} {
		for _, r := range v.vec {
			switch {
			case r == 0:
			case all == 0:
				all = r
			default:
				all = s.v.op2(s.e.pick(code.VPOrQ, code.VPOr), all, r)
			}
		}
	}
	high := s.v.op1Imm(code.VPSrlQ, all, 32)
	if s.e.avx512() {
		k := s.e.reg(code.Mask)
		s.e.emit(code.Inst{Op: code.VPTestMD, W: s.e.w, Dst: k, A: high, B: high})
		high = k
	}
	masks{s.e}.jumpIfAnyOf([]code.R{high}, slow)
	v := s.divideShort(i, a, b)
	s.e.f.ColdBegin()
	s.e.bind(slow)
	s.e.moveVal(v, s.onParts(i.Op, i.Type, i.Type, a, b))
	s.e.jump(done)
	s.e.f.ColdEnd()
	s.e.bind(done)
	return v
}

// divideShort divides 64-bit integers of no more than 32 bits as unsigned ones.
func (s *operations) divideShort(i *kir.Instr, a, b val) val {
	short := func(v val) val {
		if !v.splat {
			return s.onParts(kir.Convert, kir.U32, kir.U64, v)
		}
		u := s.v.ofSplats().lanewise().pure(kir.Convert, kir.U32, kir.U64, []unit{{r: [2]code.R{v.vec[0]}}}, nil)
		return val{typ: kir.U32, splat: true, vec: [maxRegs]code.R{u.r[0]}}
	}
	a, b = short(a), short(b)
	if b.splat {
		a = s.divideByUniform(i, kir.U32, a, b)
	} else {
		a = s.onParts(i.Op, kir.U32, kir.U32, a, b)
	}
	v := s.onParts(kir.Convert, kir.U64, kir.U32, a)
	v.typ = i.Type
	return v
}

// divideByUniform divides 32-bit integers of a type by one number: they are multiplied by its reciprocal.
func (s *operations) divideByUniform(i *kir.Instr, t kir.Type, a, all val) val {
	b := inReg(all.vec[0])
	r := s.reciprocals(t, b.r)
	x := s.v
	v := val{typ: t}
	for p := range s.e.parts {
		n := a.unitOf(p).r[0]
		q := x.wider(n, func(h code.R) code.R { return x.op2(code.VMulPD, x.divisions().intToDouble(t, h), r) })
		d := x.narrower(q, func(h code.R) code.R { return x.divisions().doubleToInt(t, h) })
		d = x.divisions().nonZeroQuotient(b, d)
		if i.Op == kir.Rem {
			d = x.op2(code.VPSubD, n, x.op2(code.VPMulLD, d, b.r))
		}
		v.setUnit(p, unit{r: [2]code.R{d}})
	}
	return v
}

// reciprocals is the reciprocal, as the function of that name makes it, of the number in all lanes of b, in all lanes.
func (s *operations) reciprocals(t kir.Type, b code.R) code.R {
	x := vector{e: s.e, w: 16, splat: true}
	f, one := x.divisions().intToDouble(t, b), x.load(math.Float64bits(1), true)
	r := x.op2(code.VDivPD, one, f)
	e := x.move(r)
	x.e.emit(code.Inst{Op: code.VFMSub213PD, W: x.w, Dst: e, A: f, B: one})
	r = x.op2(code.VPSubQ, r, x.integers().negative64(e))
	x.w = s.e.w
	return x.first(r, true)
}

package choose

import (
	"math"
	"slices"

	"github.com/mlxlua/mlxlua/metal/jit/code"
	"github.com/mlxlua/mlxlua/metal/jit/lanes"
	"github.com/mlxlua/mlxlua/metal/kir"
)

// operations selects pure operations on numbers.
type operations struct {
	e    *emitter
	v    vector
	vals *values
	info *lanes.Info
}

// extreme reports whether i takes the smaller or the larger of two floats by comparing them, which is what the
// processor's minimum and maximum do: both give the second unless the first is smaller (or larger).
func extreme(i *kir.Instr) (code.Opcode, bool) {
	if i.Op != kir.Select || !i.Type.IsFloat() {
		return 0, false
	}
	c, yes, no := i.Args[0], i.Args[1], i.Args[2]
	if c.Op != kir.Lt && c.Op != kir.Gt {
		return 0, false
	}
	smaller := c.Op == kir.Lt
	switch {
	case alike(c.Args[0], yes) && alike(c.Args[1], no):
	case alike(c.Args[0], no) && alike(c.Args[1], yes):
		smaller = !smaller
	default:
		return 0, false
	}
	big := i.Type == kir.F64
	if smaller {
		return by(big, code.VMinPS, code.VMinPD), true
	}
	return by(big, code.VMaxPS, code.VMaxPD), true
}

// alike reports whether two operands are one value or constants of the same bits.
func alike(a, b *kir.Instr) bool {
	return a == b || a.Op == kir.Const && b.Op == kir.Const && a.Type == b.Type && a.Imm == b.Imm
}

// smallerOrLarger computes a Select that is extreme.
func (s *operations) smallerOrLarger(op code.Opcode, i *kir.Instr) val {
	x, v, consts := s.v, val{typ: i.Type}, constsOf(i)
	big := i.Type == kir.F64
	a, b := s.vals.laneVal(i.Args[1]), s.vals.laneVal(i.Args[2])
	for p := range s.e.parts {
		var u unit
		args := []unit{{}, a.unitOf(p), b.unitOf(p)}
		for h := range x.halves(i.Type) {
			yes, no := operandOf(i.Type, args, consts, 1, h), operandOf(i.Type, args, consts, 2, h)
			u.r[h] = x.opX(op, x.in(yes, big), no, big)
		}
		v.setUnit(p, u)
	}
	return v
}

// fewBits reports whether i makes floats of a few low bits of 32-bit integers, as unpacking does: of which bits, and of
// what.
func (s *operations) fewBits(i *kir.Instr) (of *kir.Instr, mask uint64) {
	if i.Op != kir.Convert || !i.Type.IsFloat() || wide(i.Type) {
		return nil, 0
	}
	a := i.Args[0]
	if a.Op != kir.And || a.Type != kir.U32 && a.Type != kir.I32 {
		return nil, 0
	}
	x, c := a.Args[0], a.Args[1]
	if x.Op == kir.Const {
		x, c = c, x
	}
	if c.Op != kir.Const || c.Imm >= uint64(s.e.per) {
		return nil, 0
	}
	return x, c.Imm
}

// fewBitsToFloat looks the floats up in a register's worth of them: the lookup takes no more of its index than the low
// bits.
func (s *operations) fewBitsToFloat(t kir.Type, x val, mask uint64) val {
	var table []byte
	for n := range uint64(s.e.per) {
		table = appendBits(table, uint64(math.Float32bits(float32(n&mask))), 4)
	}
	v, m := val{typ: t}, code.Mem{Const: s.e.f.Const(table)}
	for p := range s.e.parts {
		v.vec[p] = s.e.reg(code.Vec)
		s.e.emit(code.Inst{Op: code.VPermPS, W: s.e.w, Dst: v.vec[p], A: x.unitOf(p).r[0], Mem: m})
	}
	return v
}

// shortProduct reports whether a product of 64-bit integers is that of their lower halves, and which instruction does
// it.
func (s *operations) shortProduct(i *kir.Instr) (op code.Opcode, ok bool) {
	if i.Op != kir.Mul || !i.Type.IsInt() || !wide(i.Type) {
		return 0, false
	}
	unsigned, signed := true, true
	for _, a := range i.Args {
		if a.Op == kir.Const && isPow2(a.Imm) {
			return 0, false // a shift
		}
		bits := s.info.Bits[a.ID]
		unsigned = unsigned && bits <= 32
		extended := a.Op == kir.Convert && a.Args[0].Type.IsInt() && a.Args[0].Type.IsSigned() &&
			a.Args[0].Type.Size() <= 4
		signed = signed && (bits <= 31 || extended)
	}
	if signed {
		return code.VPMulDQ, true
	}
	return code.VPMulUDQ, unsigned
}

// multiplyShort computes a product of lower halves.
func (s *operations) multiplyShort(i *kir.Instr, op code.Opcode) val {
	a, b := s.vals.laneVal(i.Args[0]), s.vals.laneVal(i.Args[1])
	v := val{typ: i.Type}
	for p := range s.e.parts {
		x, y, u := a.unitOf(p), b.unitOf(p), unit{}
		for h := range u.r {
			u.r[h] = s.v.op2(op, x.r[h], y.r[h])
		}
		v.setUnit(p, u)
	}
	return v
}

// onParts computes a pure operation part by part.
func (s *operations) onParts(op kir.Op, t, argT kir.Type, args ...val) val {
	v := val{typ: t}
	units := make([]unit, len(args))
	for p := range s.e.parts {
		for n := range args {
			units[n] = args[n].unitOf(p)
		}
		v.setUnit(p, s.v.lanewise().pure(op, t, argT, units, make([]*uint64, len(args))))
	}
	return v
}

// constsOf returns the bits of the operands that are constants, nil for others.
func constsOf(i *kir.Instr) []*uint64 {
	c := make([]*uint64, len(i.Args))
	for n, a := range i.Args {
		if a.Op == kir.Const {
			c[n] = &a.Imm
		}
	}
	return c
}

// compute selects a pure operation on numbers.
func (s *operations) compute(i *kir.Instr) {
	sh := s.info.Patterns[i.ID]
	needBase, needVec := s.info.NeedBase[i.ID], s.info.NeedVec[i.ID]
	switch {
	case !needBase && !needVec:
		return
	case sh.Kind == lanes.Varying:
		if bits, mask := s.fewBits(i); bits != nil {
			s.vals.result(i, s.fewBitsToFloat(i.Type, s.vals.laneVal(bits), mask))
			return
		}
		if op, ok := extreme(i); ok {
			s.vals.result(i, s.smallerOrLarger(op, i))
			return
		}
		if i.Op == kir.Scale {
			s.vals.result(i, s.scaled(i))
			return
		}
		s.vals.result(i, s.vectorOp(i, false))
	case !involves(i, kir.Type.IsFloat): // general registers serve
		s.vals.result(i, val{typ: i.Type, base: s.vals.scalarOp(i)})
	default: // a uniform float is involved
		s.vals.result(i, s.vectorOp(i, true))
	}
}

// involves reports whether is holds for the type of an operand or of the result.
func involves(i *kir.Instr, is func(kir.Type) bool) bool {
	return is(i.Type) || slices.ContainsFunc(i.Args, func(a *kir.Instr) bool { return is(a.Type) })
}

// vectorOp computes i in vector registers: every part, or one splat.
func (s *operations) vectorOp(i *kir.Instr, splat bool) val {
	switch {
	case splat:
	case s.byUniform(i):
		return s.divideByUniform(i, i.Type, s.vals.laneVal(i.Args[0]), s.vals.laneVal(i.Args[1]))
	case s.longDivision(i):
		return s.divideLong(i)
	}
	if op, ok := s.shortProduct(i); ok && !splat {
		return s.multiplyShort(i, op)
	}
	consts := constsOf(i)
	args := make([]val, len(i.Args))
	for n, a := range i.Args {
		args[n] = s.vals.laneVal(a)
	}
	v := val{typ: i.Type, splat: splat}
	units := make([]unit, len(args))
	if splat {
		for n := range args {
			units[n] = unit{r: [2]code.R{args[n].vec[0]}}
		}
		v.vec[0] = s.v.ofSplats().lanewise().pure(i.Op, i.Type, i.OperandType(), units, consts).r[0]
		return v
	}
	for p := range s.e.parts {
		for n := range args {
			units[n] = args[n].unitOf(p)
		}
		v.setUnit(p, s.v.lanewise().pure(i.Op, i.Type, i.OperandType(), units, consts))
	}
	return v
}

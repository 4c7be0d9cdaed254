package choose

import (
	"math"

	"github.com/mlxlua/mlxlua/metal/jit/code"
	"github.com/mlxlua/mlxlua/metal/kir"
)

// general computes pure operations on uniform integers, Bools and pointers in general registers. value.go says how they
// are kept.
type general struct{ e *emitter }

// gprWidth is the operand size for a type: 32 or 64 bits.
func gprWidth(t kir.Type) uint8 {
	if wide(t) {
		return 8
	}
	return 4
}

// withImm changes d by an operation with a constant; a constant of 64 bits goes through RAX.
func (s general) withImm(op code.Opcode, w uint8, d code.R, bits uint64) {
	imm, ok := immediate(w, bits)
	if !ok {
		s.e.emit(code.Inst{Op: code.Mov, W: 8, Dst: code.RAX, Imm: int64(bits)})
		s.e.emit(code.Inst{Op: op, W: w, Dst: d, A: code.RAX})
		return
	}
	s.e.emit(code.Inst{Op: op, W: w, Dst: d, Imm: imm})
}

// immediate returns a constant as instructions of w bytes take it.
func immediate(w uint8, bits uint64) (imm int64, ok bool) {
	if w == 4 {
		return int64(int32(bits)), true
	}
	imm = int64(bits)
	return imm, imm == int64(int32(imm))
}

// in returns an operand in a register.
func (s general) in(o operand, t kir.Type) code.R {
	if o.r != 0 {
		return o.r
	}
	return s.e.gload(gprWidth(t), o.bits)
}

// binary computes a op b in a new register.
func (s general) binary(op code.Opcode, w uint8, t kir.Type, a, b operand) code.R {
	var d code.R
	if a.r != 0 {
		d = s.e.gmove(w, a.r)
	} else {
		d = s.e.gload(w, a.bits)
	}
	if b.k {
		s.withImm(op, w, d, b.bits)
	} else {
		s.e.emit(code.Inst{Op: op, W: w, Dst: d, A: b.r})
	}
	return d
}

// canon cuts the low 32 bits of a register to an integer type of up to 32 bits and extends them again.
func (s general) canon(t kir.Type, r code.R) code.R {
	var op code.Opcode
	switch t {
	case kir.I8:
		op = code.MovSXB
	case kir.U8:
		op = code.MovZXB
	case kir.I16:
		op = code.MovSXW
	case kir.U16:
		op = code.MovZXW
	default:
		return r
	}
	d := s.e.reg(code.GPR)
	s.e.emit(code.Inst{Op: op, W: 4, Dst: d, A: r})
	return d
}

// pure computes a pure operation in general registers. t is the result's type, argT that of the operands (of
// args[1] for Select). consts has, for each operand that is a constant, its bits; such an operand's register may be
// 0. consts may be nil. The result never shares a register with an operand.
func (s general) pure(op kir.Op, t, argT kir.Type, args []code.R, consts []*uint64) code.R {
	var a [3]operand
	for n := range args {
		ta := argT
		switch {
		case op == kir.Select && n == 0:
			ta = kir.Bool
		case op == kir.PtrAdd && n == 1:
			ta = kir.I64
		}
		a[n].r = args[n]
		if n < len(consts) && consts[n] != nil {
			a[n].k = true
			a[n].bits, _ = laneBits(ta, *consts[n])
		}
	}
	switch {
	case op >= kir.Eq && op <= kir.Ge:
		return s.setCC(s.compare(op, argT, a[0], a[1]))
	case op == kir.Select:
		return s.choose(t, a)
	case op == kir.Convert || op == kir.Bitcast:
		return s.convert(t, argT, s.in(a[0], argT))
	case op == kir.PtrAdd:
		return s.ptrAdd(s.in(a[0], t), a[1])
	case op == kir.PtrDiff:
		p, q := s.sext48(s.in(a[0], argT)), s.sext48(s.in(a[1], argT))
		s.e.emit(code.Inst{Op: code.Sub, W: 8, Dst: p, A: q})
		return p
	}
	return s.integer(op, t, a)
}

// setCC returns a condition of the flags as a Bool.
func (s general) setCC(c code.Cond) code.R {
	d := s.e.reg(code.GPR)
	s.e.emit(code.Inst{Op: code.SetCC, W: 1, Dst: code.RAX, Cond: c})
	s.e.emit(code.Inst{Op: code.MovZXB, W: 4, Dst: d, A: code.RAX})
	return d
}

// compare sets the flags and returns the condition that holds if the comparison does.
func (s general) compare(op kir.Op, t kir.Type, a, b operand) code.Cond {
	if a.k && !b.k {
		a, b, op = b, a, op.Mirrored()
	}
	w := gprWidth(t)
	r := s.in(a, t)
	imm, ok := immediate(w, b.bits)
	switch {
	case b.k && b.bits == 0:
		s.e.emit(code.Inst{Op: code.Test, W: w, A: r, B: r})
	case b.k && ok:
		s.e.emit(code.Inst{Op: code.Cmp, W: w, A: r, Imm: imm})
	default:
		s.e.emit(code.Inst{Op: code.Cmp, W: w, A: r, B: s.in(b, t)})
	}
	if t.IsSigned() {
		return conditions[op].signed
	}
	return conditions[op].unsigned
}

// choose computes Select.
func (s general) choose(t kir.Type, a [3]operand) code.R {
	c, yes, no := s.in(a[0], kir.Bool), s.in(a[1], t), s.in(a[2], t)
	d := s.e.gmove(8, no)
	s.e.emit(code.Inst{Op: code.Test, W: 4, A: c, B: c})
	s.e.emit(code.Inst{Op: code.CMov, W: 8, Dst: d, A: yes, Cond: code.CondNE})
	return d
}

// convert computes Convert and Bitcast between integers, Bool and pointers.
func (s general) convert(t, from kir.Type, r code.R) code.R {
	switch {
	case t == kir.Bool && from != kir.Bool:
		w := gprWidth(from)
		s.e.emit(code.Inst{Op: code.Test, W: w, A: r, B: r})
		return s.setCC(code.CondNE)
	case wide(t) && wide(from):
		return s.e.gmove(8, r)
	case wide(t) && from.IsSigned():
		d := s.e.reg(code.GPR)
		s.e.emit(code.Inst{Op: code.MovSXD, W: 8, Dst: d, A: r})
		return d
	}
	if t.Bits() < 32 && t != kir.Bool {
		return s.canon(t, r)
	}
	return s.e.gmove(4, r) // which clears the upper half
}

// ptrAdd computes PtrAdd on a full pointer.
func (s general) ptrAdd(p code.R, b operand) code.R {
	d := s.binary(code.Add, 8, kir.I64, inReg(p), b)
	// The bits above the offset are the pointer's.
	s.e.emit(code.Inst{Op: code.Xor, W: 8, Dst: d, A: p})
	s.e.emit(code.Inst{Op: code.Shl, W: 8, Dst: d, Imm: 64 - kir.PtrObjectShift})
	s.e.emit(code.Inst{Op: code.Shr, W: 8, Dst: d, Imm: 64 - kir.PtrObjectShift})
	s.e.emit(code.Inst{Op: code.Xor, W: 8, Dst: d, A: p})
	return d
}

// sext48 extends the low 48 bits by their sign.
func (s general) sext48(r code.R) code.R {
	d := s.e.gmove(8, r)
	s.e.emit(code.Inst{Op: code.Shl, W: 8, Dst: d, Imm: 64 - kir.PtrObjectShift})
	s.e.emit(code.Inst{Op: code.Sar, W: 8, Dst: d, Imm: 64 - kir.PtrObjectShift})
	return d
}

// integer computes an operation whose operands and result are of one integer type or Bool.
func (s general) integer(op kir.Op, t kir.Type, a [3]operand) code.R {
	w := gprWidth(t)
	if a[0].k && !a[1].k && (op == kir.Add || op == kir.Mul || op == kir.And || op == kir.Or || op == kir.Xor) {
		a[0], a[1] = a[1], a[0]
	}
	switch op {
	case kir.Add:
		return s.canon(t, s.add(w, t, a[0], a[1]))
	case kir.Sub:
		return s.canon(t, s.binary(code.Sub, w, t, a[0], a[1]))
	case kir.Mul:
		return s.canon(t, s.mul(w, t, a[0], a[1]))
	case kir.And:
		return s.binary(code.And, w, t, a[0], a[1])
	case kir.Or:
		return s.binary(code.Or, w, t, a[0], a[1])
	case kir.Xor:
		return s.binary(code.Xor, w, t, a[0], a[1])
	case kir.Shl, kir.Shr:
		return s.shift(op, t, a[0], a[1])
	case kir.Div, kir.Rem:
		return s.div(op, t, a[0], a[1])
	case kir.MulHi:
		return s.mulHi(t, s.in(a[0], t), s.in(a[1], t))
	case kir.Min, kir.Max:
		return s.minMax(op, t, s.in(a[0], t), s.in(a[1], t))
	}
	d := s.e.gmove(w, s.in(a[0], t))
	switch op {
	case kir.Neg:
		s.e.emit(code.Inst{Op: code.Neg, W: w, Dst: d})
		return s.canon(t, d)
	case kir.Abs:
		if !t.IsSigned() {
			return d
		}
		n := s.e.gmove(w, d)
		s.e.emit(code.Inst{Op: code.Neg, W: w, Dst: n}) // negative if d was positive, or MIN
		s.e.emit(code.Inst{Op: code.CMov, W: w, Dst: d, A: n, Cond: code.CondNS})
		return s.canon(t, d)
	case kir.Not:
		if t == kir.Bool || !t.IsSigned() && w == 4 && t.Bits() < 32 {
			s.withImm(code.Xor, 4, d, t.Mask())
			return d
		}
		s.e.emit(code.Inst{Op: code.Not, W: w, Dst: d})
		return d
	case kir.Popcount, kir.Clz, kir.Ctz:
		return s.count(op, t, d)
	case kir.BitReverse:
		return s.reverse(t, d)
	}
	s.e.unsupported(&kir.Instr{Op: op}, "not for integers")
	return d
}

// add computes Add; the bits above the type's are anything.
func (s general) add(w uint8, t kir.Type, a, b operand) code.R {
	d := s.e.reg(code.GPR)
	if b.k {
		if imm, ok := immediate(w, b.bits); ok && a.r != 0 {
			s.e.emit(code.Inst{Op: code.Lea, W: w, Dst: d, Mem: code.Mem{Base: a.r, Disp: int32(imm)}})
			return d
		}
		return s.binary(code.Add, w, t, a, b)
	}
	s.e.emit(code.Inst{Op: code.Lea, W: w, Dst: d, Mem: code.Mem{Base: s.in(a, t), Index: b.r, Scale: 1}})
	return d
}

// mul computes Mul; the bits above the type's are anything.
func (s general) mul(w uint8, t kir.Type, a, b operand) code.R {
	if b.k && isPow2(b.bits) {
		d := s.e.gmove(w, s.in(a, t))
		s.e.emit(code.Inst{Op: code.Shl, W: w, Dst: d, Imm: int64(log2(b.bits))})
		return d
	}
	if imm, ok := immediate(w, b.bits); b.k && ok {
		d := s.e.reg(code.GPR)
		s.e.emit(code.Inst{Op: code.IMul3, W: w, Dst: d, A: s.in(a, t), Imm: imm})
		return d
	}
	d := s.e.gmove(w, s.in(a, t))
	s.e.emit(code.Inst{Op: code.IMul, W: w, Dst: d, A: s.in(b, t)})
	return d
}

// shift computes Shl and Shr; counts are taken modulo the width.
func (s general) shift(op kir.Op, t kir.Type, a, b operand) code.R {
	w, m := gprWidth(t), uint64(t.Bits()-1)
	imm, variable := code.Shl, code.ShlX
	switch {
	case op == kir.Shr && t.IsSigned():
		imm, variable = code.Sar, code.SarX
	case op == kir.Shr:
		imm, variable = code.Shr, code.ShrX
	}
	var d code.R
	if b.k {
		d = s.e.gmove(w, s.in(a, t))
		if n := int64(b.bits & m); n != 0 {
			s.e.emit(code.Inst{Op: imm, W: w, Dst: d, Imm: n})
		}
	} else {
		n := b.r
		if t.Bits() < 32 { // the processor takes counts modulo 32 or 64
			n = s.binary(code.And, 4, t, b, konst(m))
		}
		d = s.e.reg(code.GPR)
		s.e.emit(code.Inst{Op: variable, W: w, Dst: d, A: s.in(a, t), B: n})
	}
	if op == kir.Shl {
		d = s.canon(t, d)
	}
	return d
}

// minMax computes Min and Max.
func (s general) minMax(op kir.Op, t kir.Type, a, b code.R) code.R {
	w, c := gprWidth(t), code.CondL
	switch {
	case op == kir.Max && t.IsSigned():
		c = code.CondG
	case op == kir.Max:
		c = code.CondA
	case !t.IsSigned():
		c = code.CondB
	}
	d := s.e.gmove(w, a)
	s.e.emit(code.Inst{Op: code.Cmp, W: w, A: b, B: a})
	s.e.emit(code.Inst{Op: code.CMov, W: w, Dst: d, A: b, Cond: c})
	return d
}

// extend returns a register's 32-bit value extended to 64 bits by the type's sign.
func (s general) extend(t kir.Type, r code.R) code.R {
	if !t.IsSigned() {
		return s.e.gmove(4, r)
	}
	d := s.e.reg(code.GPR)
	s.e.emit(code.Inst{Op: code.MovSXD, W: 8, Dst: d, A: r})
	return d
}

// mulHi computes the high half of a product.
func (s general) mulHi(t kir.Type, a, b code.R) code.R {
	if wide(t) {
		mul := code.Mul
		if t.IsSigned() {
			mul = code.IMul1
		}
		s.e.emit(code.Inst{Op: code.Mov, W: 8, Dst: code.RAX, A: a})
		s.e.emit(code.Inst{Op: mul, W: 8, A: b})
		return s.e.gmove(8, code.RDX)
	}
	d := s.extend(t, a)
	s.e.emit(code.Inst{Op: code.IMul, W: 8, Dst: d, A: s.extend(t, b)})
	right := code.Shr
	if t.IsSigned() {
		right = code.Sar
	}
	s.e.emit(code.Inst{Op: right, W: 8, Dst: d, Imm: int64(t.Bits())})
	return s.e.gmove(4, d)
}

// count computes Popcount, Clz and Ctz. It may change d.
func (s general) count(op kir.Op, t kir.Type, d code.R) code.R {
	w, n := gprWidth(t), 0
	if t.Bits() < 32 {
		n = 32 - t.Bits()
	}
	inst := code.PopCnt
	switch op {
	case kir.Clz:
		inst = code.LZCnt
	case kir.Ctz:
		inst = code.TZCnt
		if n > 0 { // a bit just above the width ends the search
			s.withImm(code.Or, w, d, 1<<t.Bits())
		}
	}
	if n > 0 && op != kir.Ctz {
		s.withImm(code.And, w, d, t.Mask())
	}
	c := s.e.reg(code.GPR)
	s.e.emit(code.Inst{Op: inst, W: w, Dst: c, A: d})
	if op == kir.Clz && n > 0 {
		s.withImm(code.Sub, w, c, uint64(n))
	}
	return c
}

// reverse reverses the bits of d, which it changes.
func (s general) reverse(t kir.Type, d code.R) code.R {
	w := gprWidth(t)
	s.e.emit(code.Inst{Op: code.BSwap, W: w, Dst: d})
	for _, st := range [...]struct {
		shift int64
		mask  uint64
	}{{4, 0x0f0f0f0f0f0f0f0f}, {2, 0x3333333333333333}, {1, 0x5555555555555555}} {
		m := st.mask
		if w == 4 {
			m &= math.MaxUint32
		}
		s.e.emit(code.Inst{Op: code.Mov, W: 8, Dst: code.RCX, Imm: int64(m)})
		hi := s.e.gmove(w, d)
		s.e.emit(code.Inst{Op: code.Shr, W: w, Dst: hi, Imm: st.shift})
		s.e.emit(code.Inst{Op: code.And, W: w, Dst: hi, A: code.RCX})
		s.e.emit(code.Inst{Op: code.And, W: w, Dst: d, A: code.RCX})
		s.e.emit(code.Inst{Op: code.Shl, W: w, Dst: d, Imm: st.shift})
		s.e.emit(code.Inst{Op: code.Or, W: w, Dst: d, A: hi})
	}
	if n := 32 - t.Bits(); n > 0 {
		right := code.Shr
		if t.IsSigned() {
			right = code.Sar
		}
		s.e.emit(code.Inst{Op: right, W: w, Dst: d, Imm: int64(n)})
	}
	return d
}

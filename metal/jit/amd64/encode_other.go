package amd64

import "github.com/mlxlua/mlxlua/metal/jit/code"

// unary writes instructions on one operand, shifts among them.
func (e *encoder) unary() {
	i, r := e.i, e.r
	o := gop{mp: byte(r.enc & 3), op: r.op, reg: int(r.ext)}
	e.none(i.B, i.C)
	switch r.form {
	case formUn, formMul:
		o.w = e.size(1, 2, 4, 8)
		o.op = wide(r.op&^1, o.w)
		rm := i.Dst
		if r.form == formMul {
			e.none(i.Dst)
			rm = i.A
		} else {
			e.none(i.A)
		}
		e.gRM(&o, rm)
		e.gwrite(o)
	case formGSh:
		o.w = e.size(1, 2, 4, 8)
		e.gRM(&o, i.Dst)
		switch {
		case i.A == code.RCX:
			o.op = wide(0xd2, o.w)
			e.gwrite(o)
		case i.A != 0:
			e.fail("count is not in rcx")
		case i.Imm == 1:
			o.op = wide(0xd0, o.w)
			e.gwrite(o)
		default:
			o.op = wide(0xc0, o.w)
			e.gwrite(o)
			e.imm8(i.Imm)
		}
	case formSwap:
		n := e.num(i.Dst, code.GPR)
		rex := byte(0)
		if e.size(4, 8) == 8 {
			rex = 0x48
		}
		if n >= 8 {
			rex |= 0x41
		}
		if rex != 0 {
			e.byte(rex)
		}
		e.byte(0x0f, 0xc8|byte(n&7))
	case formSet:
		e.none(i.A)
		o.op, o.w, o.reg = r.op|byte(i.Cond&15), 1, 0
		e.gRM(&o, i.Dst)
		e.gwrite(o)
	case formCMov:
		o.op, o.w, o.reg = r.op|byte(i.Cond&15), e.size(2, 4, 8), e.num(i.Dst, code.GPR)
		e.gRM(&o, i.A)
		e.gwrite(o)
	}
}

// bmi writes the general instructions with VEX prefixes.
func (e *encoder) bmi() {
	i, r := e.i, e.r
	w := e.size(4, 8) == 8
	o := vop{op: r.op, enc: r.enc | vexOnly, imm: -1, vw: w, n: int(i.W)}
	e.none(i.C)
	rm := i.A
	switch r.form {
	case formBMI:
		o.reg, o.v = e.num(i.Dst, code.GPR), e.num(i.B, code.GPR)
	case formBMIV:
		o.reg, o.v = e.num(i.Dst, code.GPR), e.num(i.A, code.GPR)
		rm = i.B
	case formBMI1:
		o.reg, o.v = int(r.ext), e.num(i.Dst, code.GPR)
		e.none(i.B)
	}
	e.rmOperand(&o, rm, true)
	if e.err == nil {
		e.writeVector(&o)
	}
}

// exchange writes what swaps with memory, locked or not.
func (e *encoder) exchange() {
	i, r := e.i, e.r
	e.none(i.B, i.C)
	o := gop{w: e.size(1, 2, 4, 8), mp: byte(r.enc & 3)}
	switch r.form {
	case formXchg:
		o.op = wide(0x86, o.w)
		o.reg, o.b8r = e.num(i.Dst, code.GPR), o.w == 1
		e.gRM(&o, i.A)
	case formLockR, formLockA:
		o.lock = true
		o.op = wide(r.op&^1, o.w)
		reg := i.Dst
		if r.form == formLockA {
			reg = i.A
			e.none(i.Dst)
		} else {
			e.none(i.A)
		}
		o.reg, o.b8r, o.mem = e.num(reg, code.GPR), o.w == 1, &i.Mem
		if !i.Mem.Valid() {
			e.fail("no memory operand")
		}
	}
	e.gwrite(o)
}

// other writes what is left: jumps, fixed bytes, x87, prefetches.
func (e *encoder) other() {
	i, r := e.i, e.r
	switch r.form {
	case formJcc:
		e.checkLabel()
		e.s.jumps = append(e.s.jumps, jump{pos: int32(len(e.s.buf)), label: i.Label, cond: int8(i.Cond & 15)})
	case formJmp:
		if i.Label != 0 {
			e.checkLabel()
			e.s.jumps = append(e.s.jumps, jump{pos: int32(len(e.s.buf)), label: i.Label, cond: -1})
			return
		}
		o := gop{op: 0xff, reg: 4, now: true}
		e.gRM(&o, i.A)
		e.gwrite(o)
	case formBytes:
		e.byte(r.op)
		if r.op2 != 0 {
			e.byte(r.op2)
		}
		if r.ext != 0 {
			e.byte(r.ext)
		}
	case formG0:
		if e.size(4, 8) == 8 {
			e.byte(0x48)
		}
		e.byte(r.op)
	case formX87:
		e.none(i.Dst, i.A, i.B, i.C)
		o := gop{op: r.op, reg: int(r.ext), mem: &i.Mem, now: true}
		if e.size(4, 8) == 8 {
			o.op = r.op2
		}
		if !i.Mem.Valid() {
			e.fail("no memory operand")
			return
		}
		e.gwrite(o)
	case formPref:
		e.none(i.Dst, i.A, i.B, i.C)
		if !i.Mem.Valid() {
			e.fail("no memory operand")
			return
		}
		e.gwrite(gop{mp: 1, op: r.op, reg: int(r.ext), mem: &i.Mem, now: true})
	default:
		e.fail("no such operation %d", i.Op)
	}
}

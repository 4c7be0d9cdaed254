package amd64

import (
	"math"

	"github.com/mlxlua/mlxlua/metal/jit/code"
)

// gop is a general instruction with its operands in their places.
type gop struct {
	w    uint8 // operand size
	pfx  byte  // 0xf2, 0xf3 or 0
	mp   byte  // opcode map: 0, 1 (0f), 2 (0f 38)
	op   byte
	reg  int
	rm   int // if mem is nil
	mem  *code.Mem
	b8r  bool // reg is a byte register
	b8m  bool // rm is a byte register
	lock bool
	now  bool // no REX.W and no 66 whatever w
}

// gwrite writes prefixes, opcode and operands.
func (e *encoder) gwrite(o gop) {
	base, index := -1, -1
	if o.mem != nil {
		base, index = e.memRegs(o.mem, false)
		if o.mem.Bcast {
			e.fail("no broadcast operand")
		}
	} else {
		base = o.rm
	}
	if e.err != nil {
		return
	}
	rex := byte(0)
	switch {
	case o.now:
	case o.w == 2:
		e.byte(0x66)
	case o.w == 8:
		rex = 0x48
	}
	if o.lock {
		e.byte(0xf0)
	}
	if o.pfx != 0 {
		e.byte(o.pfx)
	}
	if o.reg >= 8 {
		rex |= 0x44
	}
	if index >= 8 {
		rex |= 0x42
	}
	if base >= 8 {
		rex |= 0x41
	}
	if o.b8r && o.reg >= 4 || o.b8m && o.mem == nil && o.rm >= 4 {
		rex |= 0x40
	}
	if rex != 0 {
		e.byte(rex)
	}
	switch o.mp {
	case 1:
		e.byte(0x0f)
	case 2:
		e.byte(0x0f, 0x38)
	}
	e.byte(o.op)
	if o.mem != nil {
		e.modMem(o.reg, o.mem, 1)
	} else {
		e.modReg(o.reg, o.rm)
	}
}

// size checks the operand size.
func (e *encoder) size(ok ...uint8) uint8 {
	for _, w := range ok {
		if e.i.W == w {
			return w
		}
	}
	e.fail("operands of %d bytes", e.i.W)
	return e.i.W
}

// gRM puts a general register or the memory operand into rm.
func (e *encoder) gRM(o *gop, r code.R) {
	if e.i.Mem.Valid() {
		e.none(r)
		o.mem = &e.i.Mem
		return
	}
	o.rm = e.num(r, code.GPR)
	o.b8m = o.w == 1
}

// immFor checks that a constant fits an operand of w bytes (at most 32 bits, extended by sign) and returns it so.
func (e *encoder) immFor(w uint8, v int64) int64 {
	bits := min(int(w), 4) * 8
	s := v << (64 - bits) >> (64 - bits)
	if s != v && (w == 8 || v>>bits != 0) {
		e.fail("constant %d does not fit", v)
	}
	return s
}

// immBytes writes a constant in an operand of w bytes.
func (e *encoder) immBytes(w uint8, v int64) {
	switch w {
	case 1:
		e.byte(byte(v))
	case 2:
		e.byte(byte(v), byte(v>>8))
	default:
		e.imm32(v)
	}
}

// wide is the opcode of operands wider than a byte.
func wide(op byte, w uint8) byte {
	if w > 1 {
		return op | 1
	}
	return op
}

// general writes an instruction on general registers.
func (e *encoder) general() {
	i, r := e.i, e.r
	if i.KM != 0 || i.Zero {
		e.fail("mask has no place")
	}
	switch r.form {
	case formALU, formLock:
		e.alu()
	case formCmp, formTest:
		e.cmp()
	case formGMov:
		e.mov()
	case formExt:
		e.none(i.B, i.C)
		o := gop{w: e.size(4, 8), mp: byte(r.enc & 3), op: r.op, reg: e.num(i.Dst, code.GPR)}
		e.gRM(&o, i.A)
		o.b8m = r.enc&tupleMask == t1
		if i.Op == code.MovSXD {
			o.w = 8
		}
		e.gwrite(o)
	case formLea:
		e.lea()
	case formG2, formT2:
		e.none(i.B, i.C)
		o := gop{w: e.size(2, 4, 8), mp: 1, op: r.op, reg: e.num(i.Dst, code.GPR)}
		if r.enc&(3<<2) == pF3 {
			o.pfx = 0xf3
		}
		e.gRM(&o, i.A)
		e.gwrite(o)
	case formG2I:
		e.none(i.B, i.C)
		v := e.immFor(i.W, i.Imm)
		o := gop{w: e.size(2, 4, 8), op: r.op, reg: e.num(i.Dst, code.GPR)}
		short := v == int64(int8(v))
		if short {
			o.op = r.op2
		}
		e.gRM(&o, i.A)
		e.gwrite(o)
		if short {
			e.byte(byte(v))
		} else {
			e.immBytes(i.W, v)
		}
	case formUn, formMul, formGSh, formSwap, formSet, formCMov:
		e.unary()
	case formBMI, formBMIV, formBMI1:
		e.bmi()
	case formXchg, formLockR, formLockA:
		e.exchange()
	default:
		e.other()
	}
}

// alu writes two-operand arithmetic.
func (e *encoder) alu() {
	i, r := e.i, e.r
	e.none(i.B, i.C)
	o := gop{w: e.size(1, 2, 4, 8), lock: r.form == formLock}
	if o.lock {
		e.none(i.Dst)
	}
	if i.A != 0 {
		switch {
		case i.Dst == 0: // Mem op= A
			o.op = wide(r.op, i.W)
			o.reg, o.b8r = e.num(i.A, code.GPR), i.W == 1
			if o.mem = &i.Mem; !i.Mem.Valid() {
				e.fail("no destination")
			}
		case i.Mem.Valid():
			e.fail("two sources")
		default:
			o.op = wide(r.op, i.W)
			o.reg, o.b8r = e.num(i.A, code.GPR), i.W == 1
			o.rm, o.b8m = e.num(i.Dst, code.GPR), i.W == 1
		}
		e.gwrite(o)
		return
	}
	if i.Dst != 0 && i.Mem.Valid() { // Dst op= Mem
		o.op = wide(r.op|2, i.W)
		o.reg, o.b8r, o.mem = e.num(i.Dst, code.GPR), i.W == 1, &i.Mem
		e.gwrite(o)
		return
	}
	e.aluImm(o, i.Dst)
}

// aluImm writes arithmetic of rm, register or memory, with a constant.
func (e *encoder) aluImm(o gop, rm code.R) {
	i := e.i
	v := e.immFor(i.W, i.Imm)
	o.reg = int(e.r.ext)
	e.gRM(&o, rm)
	short := i.W > 1 && v == int64(int8(v))
	switch {
	case short:
		o.op = 0x83
	default:
		o.op = wide(0x80, i.W)
		if o.mem == nil && o.rm == 0 { // the accumulator has a shorter form
			e.accImm(o, e.r.op|4, v)
			return
		}
	}
	e.gwrite(o)
	if short {
		e.byte(byte(v))
	} else {
		e.immBytes(i.W, v)
	}
}

// accImm writes the form without ModRM of an instruction on RAX and a constant.
func (e *encoder) accImm(o gop, op byte, v int64) {
	switch o.w {
	case 2:
		e.byte(0x66)
	case 8:
		e.byte(0x48)
	}
	e.byte(wide(op, o.w))
	e.immBytes(o.w, v)
}

// cmp writes comparisons and tests.
func (e *encoder) cmp() {
	i, r := e.i, e.r
	e.none(i.Dst, i.C)
	o := gop{w: e.size(1, 2, 4, 8)}
	test := r.form == formTest
	switch {
	case i.A == 0 && i.B != 0: // Mem with B
		o.op = wide(r.op, i.W)
		o.reg, o.b8r = e.num(i.B, code.GPR), i.W == 1
		e.gRM(&o, 0)
		e.gwrite(o)
	case i.A != 0 && i.Mem.Valid():
		o.op = wide(r.op|2, i.W)
		if test {
			o.op = wide(r.op, i.W)
		}
		o.reg, o.b8r = e.num(i.A, code.GPR), i.W == 1
		e.gRM(&o, i.B)
		e.gwrite(o)
	case i.A != 0 && i.B != 0:
		o.op = wide(r.op, i.W)
		o.reg, o.b8r = e.num(i.B, code.GPR), i.W == 1
		o.rm, o.b8m = e.num(i.A, code.GPR), i.W == 1
		e.gwrite(o)
	case test:
		v := e.immFor(i.W, i.Imm)
		o.op = wide(0xf6, i.W)
		e.gRM(&o, i.A)
		if o.mem == nil && o.rm == 0 && e.err == nil {
			e.accImm(o, 0xa8, v)
			return
		}
		e.gwrite(o)
		e.immBytes(i.W, v)
	default:
		e.aluImm(o, i.A)
	}
}

// mov writes Mov.
func (e *encoder) mov() {
	i := e.i
	e.none(i.B, i.C)
	o := gop{w: e.size(1, 2, 4, 8)}
	switch {
	case i.A != 0 && i.Dst != 0:
		o.op = wide(0x88, i.W)
		o.reg, o.b8r = e.num(i.A, code.GPR), i.W == 1
		e.gRM(&o, i.Dst)
		e.gwrite(o)
	case i.A != 0:
		o.op = wide(0x88, i.W)
		o.reg, o.b8r, o.mem = e.num(i.A, code.GPR), i.W == 1, &i.Mem
		if !i.Mem.Valid() {
			e.fail("no destination")
		}
		e.gwrite(o)
	case i.Mem.Valid() && i.Dst != 0:
		o.op = wide(0x8a, i.W)
		o.reg, o.b8r, o.mem = e.num(i.Dst, code.GPR), i.W == 1, &i.Mem
		e.gwrite(o)
	case i.Mem.Valid():
		v := e.immFor(i.W, i.Imm)
		o.op, o.mem = wide(0xc6, i.W), &i.Mem
		e.gwrite(o)
		e.immBytes(i.W, v)
	default:
		e.movImm()
	}
}

// movImm writes a move of a constant to a register, as short as it can be.
func (e *encoder) movImm() {
	i := e.i
	n := e.num(i.Dst, code.GPR)
	rex := byte(0)
	if n >= 8 {
		rex = 0x41
	}
	w := i.W
	if w == 8 && i.Imm >= 0 && i.Imm <= math.MaxUint32 {
		w = 4
	}
	switch {
	case w == 8 && i.Imm == int64(int32(i.Imm)):
		e.gwrite(gop{w: 8, op: 0xc7, rm: n})
		e.imm32(i.Imm)
		return
	case w == 8:
		e.byte(rex|0x48, 0xb8|byte(n&7))
		e.imm32(i.Imm)
		e.imm32(i.Imm >> 32)
		return
	}
	v := e.immFor(w, i.Imm)
	op := byte(0xb8)
	switch w {
	case 1:
		op = 0xb0
		if n >= 4 {
			rex |= 0x40
		}
	case 2:
		e.byte(0x66)
	}
	if rex != 0 {
		e.byte(rex)
	}
	e.byte(op | byte(n&7))
	e.immBytes(w, v)
}

// lea writes Lea, of memory or of a label.
func (e *encoder) lea() {
	i := e.i
	e.none(i.A, i.B, i.C)
	reg := e.num(i.Dst, code.GPR)
	if i.Label != 0 {
		e.noMem()
		e.checkLabel()
		rex := byte(0x48)
		if reg >= 8 {
			rex = 0x4c
		}
		e.byte(rex, 0x8d)
		e.rip(reg, fixup{label: i.Label})
		return
	}
	if !i.Mem.Valid() {
		e.fail("no address")
		return
	}
	e.gwrite(gop{w: e.size(4, 8), op: 0x8d, reg: reg, mem: &i.Mem})
}

func (e *encoder) checkLabel() {
	if e.i.Label <= 0 || int(e.i.Label) > e.labels {
		e.fail("no such label %d", e.i.Label)
	}
}

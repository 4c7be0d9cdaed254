package amd64

import "github.com/mlxlua/mlxlua/metal/jit/code"

// vop is a vector instruction with its operands in their places: numbers of registers, or mem.
type vop struct {
	op     byte
	reg, v int // ModRM.reg and VEX.vvvv
	rm     int // ModRM.rm, if mem is nil
	mem    *code.Mem
	k      int // mask
	zero   bool
	evex   bool // has to be EVEX
	l      byte // vector length: 0, 1, 2
	vw, ew bool // W of either prefix
	enc    enc
	n      int // bytes of the memory operand
	imm    int // -1: none
	vsib   bool
}

// width returns the length bits of w bytes.
func (e *encoder) width(w uint8) byte {
	switch w {
	case 32:
		return 1
	case 64:
		return 2
	case 16:
		return 0
	}
	e.fail("vectors of %d bytes", w)
	return 0
}

// anyNum is num for whichever class the flag says.
func (e *encoder) anyNum(r code.R, general, mask bool) int {
	switch {
	case general:
		return e.num(r, code.GPR)
	case mask:
		return e.num(r, code.Mask)
	}
	return e.num(r, code.Vec)
}

// rmOperand puts a register or the memory operand into rm.
func (e *encoder) rmOperand(o *vop, r code.R, general bool) {
	if e.i.Mem.Valid() {
		e.none(r)
		o.mem = &e.i.Mem
		return
	}
	if o.enc&memOnly != 0 {
		e.fail("no memory operand")
	}
	o.rm = e.anyNum(r, general, false)
}

// vector writes a vector instruction.
func (e *encoder) vector() {
	i, r := e.i, e.r
	o := vop{op: r.op, enc: r.enc, imm: -1, vw: r.enc&vw1 != 0, ew: r.enc&w1 != 0}
	switch {
	case r.form == formZero:
	case r.enc&lig == 0:
		o.l = e.width(i.W)
		if r.enc&min32 != 0 && i.W < 32 || r.enc&only64 != 0 && i.W != 64 {
			e.fail("not with %d bytes", i.W)
		}
	}
	o.n = r.enc.bytesOf(i.W)
	if r.enc&lig != 0 && r.enc&tupleMask == 0 {
		o.n = 16
	}
	e.place(&o)
	if i.KM != 0 {
		o.k = e.num(i.KM, code.Mask)
		if o.k == 0 {
			e.fail("k0 as a write mask")
		}
		if !r.maskable() {
			e.fail("no write mask")
		}
		o.evex = true
	}
	if i.Zero {
		if i.KM == 0 {
			e.fail("Zero without a mask")
		}
		// A mask written by a comparison is zeroed anyway, and a store merges always.
		o.zero = r.enc&dK == 0
		if i.Store() || r.form == formGK {
			e.fail("Zero has no place")
		}
	}
	if i.Mem.Bcast {
		b := r.enc.bcast()
		if b == 0 || o.mem == nil || r.form == formGV {
			e.fail("no broadcast operand")
		}
		o.n = b
		o.evex = true
	}
	if e.err == nil {
		e.writeVector(&o)
	}
}

// place finds the place of each operand.
func (e *encoder) place(o *vop) {
	i, r := e.i, e.r
	dg, dk := r.enc&dG != 0, r.enc&dK != 0
	switch r.form {
	case formRM, formRMI:
		o.reg = e.anyNum(i.Dst, dg, dk)
		e.none(i.B, i.C)
		e.rmOperand(o, i.A, r.enc&aG != 0)
	case formRVM, formRVMI, formTVM, formTVMI, formRVMR:
		o.reg = e.anyNum(i.Dst, dg, dk)
		o.v = e.num(i.A, code.Vec)
		e.rmOperand(o, i.B, false)
		if r.form != formRVMR {
			e.none(i.C)
		} else {
			o.imm = e.num(i.C, code.Vec) << 4
		}
	case formMR, formMRI:
		o.reg = e.num(i.A, code.Vec)
		e.none(i.B, i.C)
		e.rmOperand(o, i.Dst, dg)
	case formMov:
		e.placeMove(o)
	case formMovDQ:
		e.placeMovDQ(o)
	case formShift:
		e.placeShift(o)
	case formMVR:
		o.reg, o.v = e.num(i.A, code.Vec), e.num(i.B, code.Vec)
		e.rmOperand(o, i.Dst, false)
		e.none(i.C)
	case formGV, formGK, formSK:
		e.placeVSIB(o)
	case formAB:
		o.reg = e.num(i.A, code.Vec)
		e.none(i.Dst, i.C)
		e.rmOperand(o, i.B, false)
	case formZero:
		e.none(i.Dst, i.A, i.B, i.C)
		e.noMem()
		o.rm = -1
	}
	switch r.form {
	case formRMI, formRVMI, formTVMI, formMRI:
		if i.Imm < -128 || i.Imm > 255 {
			e.fail("constant of more than 8 bits")
		}
		o.imm = int(uint8(i.Imm))
	}
}

// placeMove places the operands of loads, stores and copies.
func (e *encoder) placeMove(o *vop) {
	i := e.i
	e.none(i.B, i.C)
	if i.Dst == 0 {
		o.op = e.r.op2
		o.reg = e.num(i.A, code.Vec)
		e.rmOperand(o, 0, false)
		if !i.Mem.Valid() {
			e.fail("no destination")
		}
		return
	}
	o.reg = e.num(i.Dst, code.Vec)
	e.rmOperand(o, i.A, false)
	// Turned round, a copy from one of the upper registers to a lower one is a byte shorter.
	if o.mem == nil && o.reg < 8 && o.rm >= 8 && o.rm < 16 && i.W < 64 && i.KM == 0 && o.enc&evexOnly == 0 {
		o.op, o.reg, o.rm = e.r.op2, o.rm, o.reg
	}
}

// placeMovDQ places the operands of VMovD and VMovQ.
func (e *encoder) placeMovDQ(o *vop) {
	i := e.i
	e.none(i.B, i.C)
	quad := i.Op == code.VMovQ
	switch {
	case i.Mem.Valid() && i.Dst == 0:
		o.op, o.reg, o.mem = e.r.op2, e.num(i.A, code.Vec), &i.Mem
		if o.reg > 15 {
			o.op = 0x7e
		}
	case i.Mem.Valid():
		o.op, o.reg, o.mem = e.r.op, e.num(i.Dst, code.Vec), &i.Mem
		e.none(i.A)
		if quad {
			o.enc = o.enc&^p66 | pF3
		}
	case i.Dst.Class() == code.Vec && i.A.Class() == code.GPR:
		o.op, o.reg, o.rm = 0x6e, e.num(i.Dst, code.Vec), e.num(i.A, code.GPR)
		o.vw = quad
	case i.Dst.Class() == code.GPR && i.A.Class() == code.Vec:
		o.op, o.reg, o.rm = 0x7e, e.num(i.A, code.Vec), e.num(i.Dst, code.GPR)
		o.vw = quad
	case quad:
		o.op, o.reg, o.rm = e.r.op, e.num(i.Dst, code.Vec), e.num(i.A, code.Vec)
		o.enc = o.enc&^p66 | pF3
		if o.reg < 8 && o.rm >= 8 && o.rm < 16 {
			o.op, o.reg, o.rm = e.r.op2, o.rm, o.reg
			o.enc = o.enc&^(3<<2) | p66
		}
	default:
		e.fail("no such move")
	}
}

// placeShift places the operands of shifts by a constant or by one count.
func (e *encoder) placeShift(o *vop) {
	i := e.i
	e.none(i.C)
	if i.B != 0 || i.Mem.Valid() && i.A != 0 {
		if o.op == 0 {
			e.fail("shift by a constant only")
		}
		o.reg, o.v = e.num(i.Dst, code.Vec), e.num(i.A, code.Vec)
		o.n = 16
		o.enc = o.enc&^tupleMask | m16
		e.rmOperand(o, i.B, false)
		return
	}
	o.op, o.reg, o.v = e.r.op2, int(e.r.ext), e.num(i.Dst, code.Vec)
	e.rmOperand(o, i.A, false)
	if i.Imm < 0 || i.Imm > 255 {
		e.fail("shift by more than 8 bits")
	}
	o.imm = int(uint8(i.Imm))
	o.evex = o.mem != nil
}

// placeVSIB places the operands of gathers and scatters.
func (e *encoder) placeVSIB(o *vop) {
	i := e.i
	o.vsib = true
	o.mem = &i.Mem
	if !i.Mem.Valid() || i.Mem.Index.Class() != code.Vec {
		e.fail("no vector index")
		return
	}
	e.none(i.B, i.C)
	switch e.r.form {
	case formGV:
		o.reg, o.v = e.num(i.Dst, code.Vec), e.num(i.A, code.Vec)
		if x := i.Mem.Index; x == i.Dst || x == i.A || i.Dst == i.A {
			e.fail("gather with equal registers")
		}
		return
	case formGK:
		o.reg = e.num(i.Dst, code.Vec)
		e.none(i.A)
		if i.Mem.Index == i.Dst {
			e.fail("gather with equal registers")
		}
	default:
		o.reg = e.num(i.A, code.Vec)
		e.none(i.Dst)
	}
	if i.KM == 0 {
		e.fail("no mask")
	}
}

// writeVector writes prefix, opcode, operands.
func (e *encoder) writeVector(o *vop) {
	base, index := -1, -1
	if o.mem != nil {
		base, index = e.memRegs(o.mem, o.vsib)
	}
	evex := o.evex || o.l == 2 || o.enc&evexOnly != 0 || o.reg > 15 || o.v > 15 || o.rm > 15 || o.vsib && index > 15
	if evex {
		e.avx512()
		if o.enc&vexOnly != 0 {
			e.fail("has no EVEX encoding")
			return
		}
	}
	bit := func(n, b int) byte { // inverted bit b of register n, set if there is none
		if n < 0 {
			return 1
		}
		return byte(^n>>b) & 1
	}
	rBit, xBit, bBit := bit(o.reg, 3), byte(1), byte(1)
	if o.mem != nil {
		xBit, bBit = bit(index, 3), bit(base, 3)
	} else if o.rm >= 0 {
		bBit = bit(o.rm, 3)
	}
	mp, pp := byte(o.enc&3), byte(o.enc>>2&3)
	unit := 1
	if !evex {
		w := byte(0)
		if o.vw {
			w = 1
		}
		tail := byte(^o.v&15)<<3 | o.l<<2 | pp
		if xBit&bBit == 1 && w == 0 && mp == 1 {
			e.byte(0xc5, rBit<<7|tail)
		} else {
			e.byte(0xc4, rBit<<7|xBit<<6|bBit<<5|mp, w<<7|tail)
		}
	} else {
		unit = o.n
		v4 := bit(o.v, 4)
		if o.vsib {
			v4 = bit(index, 4)
		}
		if o.mem == nil && o.rm >= 0 {
			xBit = bit(o.rm, 4)
		}
		p1 := byte(^o.v&15)<<3 | 4 | pp
		if o.ew {
			p1 |= 0x80
		}
		p2 := o.l<<5 | v4<<3 | byte(o.k)
		if o.zero {
			p2 |= 0x80
		}
		if o.mem != nil && o.mem.Bcast {
			p2 |= 0x10
		}
		e.byte(0x62, rBit<<7|xBit<<6|bBit<<5|bit(o.reg, 4)<<4|mp, p1, p2)
	}
	e.byte(o.op)
	switch {
	case o.mem != nil:
		e.modMem(o.reg, o.mem, unit)
	case o.rm >= 0:
		e.modReg(o.reg, o.rm)
	}
	if o.imm >= 0 {
		e.byte(byte(o.imm))
	}
}

// mask writes an instruction on masks.
func (e *encoder) mask() {
	i, r := e.i, e.r
	e.avx512()
	var w, p66b bool // W1, and the prefix 66
	switch i.W {
	case 1:
		p66b = true
	case 2:
	case 4:
		w, p66b = true, true
	case 8:
		w = true
	default:
		e.fail("masks of %d bytes", i.W)
	}
	pp := byte(0)
	if p66b {
		pp = 1
	}
	e.none(i.C)
	switch r.form {
	case formKMov:
		e.kmov(w, pp)
		return
	case formK3:
		if r.op == 0x4b { // KUnpck, whose W is the result's
			w, pp = i.W == 8, 0
			if i.W == 2 {
				pp = 1
			}
			if i.W == 1 {
				e.fail("masks of 1 byte")
			}
		}
		e.noMem()
		e.vexK(r.op, 1, pp, w, 1, e.num(i.Dst, code.Mask), e.num(i.A, code.Mask), e.num(i.B, code.Mask))
	case formK2:
		e.noMem()
		e.none(i.B)
		e.vexK(r.op, 1, pp, w, 0, e.num(i.Dst, code.Mask), 0, e.num(i.A, code.Mask))
	case formKTest:
		e.noMem()
		e.none(i.Dst)
		e.vexK(r.op, 1, pp, w, 0, e.num(i.A, code.Mask), 0, e.num(i.B, code.Mask))
	case formKI:
		e.noMem()
		e.none(i.B)
		op := r.op
		if i.W >= 4 {
			op++
		}
		// W tells words from bytes and quads from doubles here.
		e.vexK(op, 3, 1, i.W == 2 || i.W == 8, 0, e.num(i.Dst, code.Mask), 0, e.num(i.A, code.Mask))
		e.imm8(i.Imm)
	}
}

// vexK writes a VEX instruction on registers.
func (e *encoder) vexK(op, mp, pp byte, w bool, l byte, reg, v, rm int) {
	wb := byte(0)
	if w {
		wb = 1
	}
	rBit, bBit := byte(^reg>>3)&1, byte(^rm>>3)&1
	tail := byte(^v&15)<<3 | l<<2 | pp
	if bBit == 1 && !w && mp == 1 {
		e.byte(0xc5, rBit<<7|tail)
	} else {
		e.byte(0xc4, rBit<<7|0x40|bBit<<5|mp, wb<<7|tail)
	}
	e.byte(op)
	e.modReg(reg, rm)
}

// kmov writes KMov.
func (e *encoder) kmov(w bool, pp byte) {
	i := e.i
	e.none(i.B)
	gp := pp // between general registers and masks: 66, none, F2, F2
	if i.W >= 4 {
		gp = 3
	}
	switch {
	case i.Mem.Valid():
		op, k := byte(0x90), i.Dst
		if i.Dst == 0 {
			op, k = 0x91, i.A
		} else {
			e.none(i.A)
		}
		reg := e.num(k, code.Mask)
		base, index := e.memRegs(&i.Mem, false)
		x, b := byte(1), byte(1)
		if index >= 8 {
			x = 0
		}
		if base >= 8 {
			b = 0
		}
		if x&b == 1 && !w {
			e.byte(0xc5, 0x80|0x78|pp)
		} else {
			wb := byte(0)
			if w {
				wb = 0x80
			}
			e.byte(0xc4, 0x80|x<<6|b<<5|1, wb|0x78|pp)
		}
		e.byte(op)
		e.modMem(reg, &i.Mem, 1)
	case i.Dst.Class() == code.Mask && i.A.Class() == code.Mask:
		e.vexK(0x90, 1, pp, w, 0, e.num(i.Dst, code.Mask), 0, e.num(i.A, code.Mask))
	case i.Dst.Class() == code.Mask:
		e.vexK(0x92, 1, gp, i.W == 8, 0, e.num(i.Dst, code.Mask), 0, e.num(i.A, code.GPR))
	default:
		e.vexK(0x93, 1, gp, i.W == 8, 0, e.num(i.Dst, code.GPR), 0, e.num(i.A, code.Mask))
	}
}

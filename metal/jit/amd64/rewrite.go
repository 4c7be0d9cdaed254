package amd64

import (
	"fmt"

	"github.com/mlxlua/mlxlua/metal/jit/code"
	"github.com/mlxlua/mlxlua/metal/jit/regalloc"
)

// rewriter puts real registers into instructions, and spilled values into scratch registers around them.
type rewriter struct {
	f     *Program
	o     Allocation
	v     *view
	res   *regalloc.Result
	class []code.Class // of virtual registers
	out   []code.Inst
	temps []temp // of the instruction at hand
	inst  code.Inst
	err   error

	scratchVec []code.R
}

// temp is a scratch register that holds a spilled virtual register during one instruction.
type temp struct {
	v    code.R // 0: one that is only taken
	r    code.R
	role code.Role
	lent code.R // the mask register whose value is kept in this general register, to be given back
}

func (w *rewriter) emit(i code.Inst) { w.out = append(w.out, i) }

// run rewrites all instructions.
func (w *rewriter) run() error {
	for k := range w.v.insts {
		w.inst = w.v.insts[k]
		i := &w.inst
		r := rowOf(i.Op)
		switch {
		case i.Op == code.SaveLive || i.Op == code.LoadLive:
			w.safepoint(i)
			continue
		case i.Op == code.SaveRegs || i.Op == code.LoadRegs:
			w.registers(i)
			continue
		case r.form == formPseudo:
			w.emit(*i)
			continue
		case remat(i, r) && i.Dst.Virtual() && w.gone(i.Dst):
			continue // made where it is needed
		}
		spilled := false
		for _, p := range [...]*code.R{&i.A, &i.B, &i.C, &i.Mem.Base, &i.Mem.Index, &i.KM, &i.Dst} {
			if !p.Virtual() {
				continue
			}
			if n := w.res.Reg[w.v.index(*p)]; n >= 0 {
				*p = code.Reg(p.Class(), int(n))
			} else {
				spilled = true
			}
		}
		if spilled {
			w.spilled(i, r)
		} else if !(i.Dst == i.A && wholeCopy(i, r, w.o.VecBytes)) {
			w.emit(*i)
		}
		if w.err != nil {
			return w.err
		}
	}
	return nil
}

// gone reports whether a virtual register has neither register nor slot.
func (w *rewriter) gone(r code.R) bool {
	n := w.v.index(r)
	return w.res.Reg[n] < 0 && w.res.Remat[n] >= 0
}

// slot returns a virtual register's slot.
func (w *rewriter) slot(r code.R) code.Mem {
	return code.Mem{Base: w.o.Frame, Disp: w.res.Slot[w.v.index(r)]}
}

// load fills a register with a virtual register's value from its slot, or makes it again.
func (w *rewriter) load(dst, v code.R) {
	if n := w.res.Remat[w.v.index(v)]; n >= 0 {
		i := w.v.insts[n]
		i.Dst = dst
		w.emit(i)
		return
	}
	w.emit(w.move(dst, 0, w.slot(v)))
}

// move returns a load or a store of a whole register.
func (w *rewriter) move(dst, src code.R, m code.Mem) code.Inst {
	c := dst.Class() | src.Class()
	switch c {
	case code.GPR:
		return code.Inst{Op: code.Mov, W: 8, Dst: dst, A: src, Mem: m}
	case code.Mask:
		return code.Inst{Op: code.KMov, W: 8, Dst: dst, A: src, Mem: m}
	}
	return code.Inst{Op: code.VMovAPS, W: w.o.VecBytes, Dst: dst, A: src, Mem: m}
}

// safepoint expands SaveLive and LoadLive.
func (w *rewriter) safepoint(i *code.Inst) {
	if int(i.Safepoint) >= len(w.res.Points) {
		return
	}
	for _, n := range w.res.Points[i.Safepoint] {
		c := w.class[n]
		v := code.Reg(c, code.FirstVirtual+int(n-w.v.first[c]))
		r := code.Reg(c, int(w.res.Reg[n]))
		switch {
		case i.Op == code.LoadLive:
			w.load(r, v)
		case w.res.Remat[n] < 0:
			w.emit(w.move(0, r, w.slot(v)))
		}
	}
}

// spilled rewrites an instruction some of whose operands are in no register.
func (w *rewriter) spilled(i *code.Inst, r *row) {
	w.temps = w.temps[:0]
	if w.foldMove(i, r) {
		return
	}
	w.foldSource(i, r)
	w.addresses(i)
	// Sources first: a destination that is only written may then share a scratch register with one of them.
	for _, p := range [...]*code.R{&i.A, &i.B, &i.C, &i.Mem.Base, &i.Mem.Index, &i.KM} {
		if p.Virtual() {
			role := code.Use
			switch p {
			case &i.A:
				role = i.ARole()
			case &i.KM:
				role = i.MaskRole()
			}
			*p = w.temp(*p, role, i)
		}
	}
	if i.Dst.Virtual() {
		i.Dst = w.temp(i.Dst, i.DstRole(), i)
	}
	if w.err != nil {
		return
	}
	w.emit(*i)
	for _, t := range w.temps {
		if t.v != 0 && t.role&code.Def != 0 {
			w.emit(w.move(0, t.r, w.slot(t.v)))
		}
	}
	for _, t := range w.temps {
		if t.lent != 0 {
			w.emit(code.Inst{Op: code.KMov, W: 8, Dst: t.lent, A: t.r})
		}
	}
}

// foldMove turns a move between a spilled register and another into a load or a store.
func (w *rewriter) foldMove(i *code.Inst, r *row) bool {
	if !wholeCopy(i, r, w.o.VecBytes) {
		return false
	}
	switch {
	case !i.Dst.Virtual():
		w.load(i.Dst, i.A)
	case !i.A.Virtual():
		w.emit(w.move(0, i.A, w.slot(i.Dst)))
	case i.A == i.Dst:
	default:
		return false
	}
	return true
}

// foldSource puts the slot of a spilled source in its place, if the instruction can read it from memory.
func (w *rewriter) foldSource(i *code.Inst, r *row) {
	if i.Mem.Valid() {
		return
	}
	var p *code.R
	switch r.form {
	case formRM, formRMI, formG2, formT2, formG2I, formExt, formCMov, formMul, formBMI, formBMI1:
		p = &i.A
	case formMov, formGMov, formALU:
		if i.Dst == 0 {
			return
		}
		p = &i.A
	case formRVM, formRVMI, formTVM, formTVMI, formRVMR, formBMIV, formAB:
		p = &i.B
		if i.A.Virtual() && !i.B.Virtual() {
			if r.enc&comm != 0 {
				i.A, i.B = i.B, i.A
			} else if op, ok := turned(i.Op); ok { // A*Dst+B is Dst*A+B
				i.Op, i.A, i.B = op, i.B, i.A
			}
		}
	case formCmp:
		if p = &i.B; !p.Virtual() {
			p = &i.A
		}
	default:
		return
	}
	if !p.Virtual() || r.enc&regOnly != 0 {
		return
	}
	v := *p
	for _, q := range [...]*code.R{&i.A, &i.B, &i.C} {
		if q != p && *q == v {
			return // it needs a register anyway
		}
	}
	if n := w.res.Remat[w.v.index(v)]; n >= 0 {
		w.foldConst(i, r, p, &w.v.insts[n])
		return
	}
	*p = 0
	i.Mem = w.slot(v)
}

// turned returns the multiplication and addition that does with B and A what one of the form 213 does with A and B.
func turned(op code.Opcode) (code.Opcode, bool) {
	switch op {
	case code.VFMAdd213PS:
		return code.VFMAdd132PS, true
	case code.VFMAdd213PD:
		return code.VFMAdd132PD, true
	case code.VFMSub213PD:
		return code.VFMSub132PD, true
	}
	return op, false
}

// foldConst puts what a constant was loaded from in its place.
func (w *rewriter) foldConst(i *code.Inst, r *row, p *code.R, def *code.Inst) {
	d := rowOf(def.Op)
	switch {
	case d.form == formGMov:
		return
	case d.form == formMov && d.enc&memOnly == 0 && r.enc.bytesOf(i.W) <= int(def.W):
		i.Mem = code.Mem{Const: def.Mem.Const, Disp: def.Mem.Disp}
	case (def.Op == code.VBroadcastSS || def.Op == code.VPBroadcastD) && r.enc.bcast() == 4 ||
		(def.Op == code.VBroadcastSD || def.Op == code.VPBroadcastQ) && r.enc.bcast() == 8:
		if w.o.VecBytes != 64 || int(def.W) < r.enc.bytesOf(i.W) {
			return
		}
		i.Mem = code.Mem{Const: def.Mem.Const, Disp: def.Mem.Disp, Bcast: true}
	default:
		return
	}
	*p = 0
}

// addresses frees a scratch register where an instruction wants three general ones: base and index become one.
func (w *rewriter) addresses(i *code.Inst) {
	m := &i.Mem
	if !m.Base.Virtual() || !m.Index.Virtual() || m.Index.Class() != code.GPR {
		return
	}
	other := false
	for _, x := range [...]code.R{i.A, i.B} {
		other = other || x.Virtual() && x.Class() == code.GPR && x != m.Base && x != m.Index
	}
	d := i.Dst
	if d.Virtual() && d.Class() == code.GPR && i.DstRole()&code.Use != 0 && d != m.Base && d != m.Index {
		other = true
	}
	if !other {
		return
	}
	w.load(code.R10, m.Base)
	w.load(code.R11, m.Index)
	w.emit(code.Inst{Op: code.Lea, W: 8, Dst: code.R10, Mem: code.Mem{Base: code.R10, Index: code.R11, Scale: m.Scale}})
	*m = code.Mem{Base: code.R10, Disp: m.Disp, Bcast: m.Bcast}
	w.temps = append(w.temps, temp{r: code.R10, role: code.UseDef})
}

// temp returns the scratch register for a spilled operand, and loads it if it is read.
func (w *rewriter) temp(v code.R, role code.Role, i *code.Inst) code.R {
	for k := range w.temps {
		if t := &w.temps[k]; t.v == v {
			if role&code.Def != 0 {
				t.role |= role
			}
			return t.r
		}
	}
	early := i.EarlyDef()
	if role == code.Def && !early {
		for k := range w.temps { // the scratch of a source, which is read before
			if t := &w.temps[k]; t.r.Class() == v.Class() && t.role == code.Use && t.lent == 0 && t.v != 0 {
				t.v, t.role = v, code.Def
				return t.r
			}
		}
	}
	scratch := scratchGPR
	switch v.Class() {
	case code.Mask:
		scratch = scratchMask
	case code.Vec:
		scratch = w.scratchVec
	}
	r := w.free(scratch, i)
	if r == 0 && v.Class() == code.Mask {
		r = w.borrow(i)
	}
	if r == 0 {
		if w.err == nil {
			w.err = fmt.Errorf("[amd64] no register left to move a value through: %s", text(i))
		}
		return v
	}
	w.temps = append(w.temps, temp{v: v, r: r, role: role})
	if role&code.Use != 0 {
		w.load(r, v)
	}
	return r
}

// free returns a register of the list that neither the instruction nor a temp has, 0 if there is none.
func (w *rewriter) free(list []code.R, i *code.Inst) code.R {
next:
	for _, r := range list {
		for _, x := range [...]code.R{i.A, i.B, i.C, i.Mem.Base, i.Mem.Index, i.KM, i.Dst} {
			if x == r {
				continue next
			}
		}
		for _, t := range w.temps {
			if t.r == r || t.lent == r {
				continue next
			}
		}
		return r
	}
	return 0
}

// borrow returns a mask register the instruction has no use for, having moved its value to a general one.
func (w *rewriter) borrow(i *code.Inst) code.R {
	keep := w.free(scratchGPR, i)
	k := w.free([]code.R{code.K(1), code.K(2), code.K(3), code.K(4), code.K(5), code.K(6)}, i)
	if keep == 0 || k == 0 {
		return 0
	}
	w.emit(code.Inst{Op: code.KMov, W: 8, Dst: keep, A: k})
	w.temps = append(w.temps, temp{r: keep, role: code.UseDef, lent: k})
	return k
}

// savedGPRs are the general registers that code may have values in, while it may be left to go on later.
var savedGPRs = []code.R{code.RBX, code.RSI, code.RDI, code.R8, code.R9, code.R12, code.R13, code.R14, code.R15}

// registers expands SaveRegs and LoadRegs.
func (w *rewriter) registers(i *code.Inst) {
	m := i.Mem
	each := func(op code.Opcode, size uint8, step int32, r code.R) {
		if i.Op == code.SaveRegs {
			w.emit(code.Inst{Op: op, W: size, Mem: m, A: r})
		} else {
			w.emit(code.Inst{Op: op, W: size, Mem: m, Dst: r})
		}
		m.Disp += step
	}
	vectors := 16
	if w.o.VecBytes == 64 {
		vectors = 32
	}
	for n := range vectors {
		each(code.VMovUPS, w.o.VecBytes, 64, code.V(n))
	}
	for _, r := range savedGPRs {
		each(code.Mov, 8, 8, r)
	}
	if w.o.VecBytes == 64 {
		for n := 1; n < 8; n++ {
			each(code.KMov, 8, 8, code.K(n))
		}
	}
}

package amd64

import (
	"fmt"

	"github.com/mlxlua/mlxlua/metal/jit/regalloc"
)

// rewriter puts real registers into instructions, and spilled values into scratch registers around them.
type rewriter struct {
	f     *Func
	o     Allocation
	v     *view
	res   *regalloc.Result
	class []Class // of virtual registers
	out   []Inst
	temps []temp // of the instruction at hand
	inst  Inst
	err   error

	scratchVec []R
}

// temp is a scratch register that holds a spilled virtual register during one instruction.
type temp struct {
	v    R // 0: one that is only taken
	r    R
	role Role
	lent R // the mask register whose value is kept in this general register, to be given back
}

func (w *rewriter) emit(i Inst) { w.out = append(w.out, i) }

// run rewrites all instructions.
func (w *rewriter) run() error {
	for k := range w.f.insts {
		w.inst = w.f.insts[k]
		i := &w.inst
		r := rowOf(i.Op)
		switch {
		case i.Op == SaveLive || i.Op == LoadLive:
			w.safepoint(i)
			continue
		case r.form == formPseudo:
			w.emit(*i)
			continue
		case i.remat(r) && i.Dst.Virtual() && w.gone(i.Dst):
			continue // made where it is needed
		}
		spilled := false
		for _, p := range [...]*R{&i.A, &i.B, &i.C, &i.Mem.Base, &i.Mem.Index, &i.KM, &i.Dst} {
			if !p.Virtual() {
				continue
			}
			if n := w.res.Reg[w.v.index(*p)]; n >= 0 {
				*p = Reg(p.Class(), int(n))
			} else {
				spilled = true
			}
		}
		if spilled {
			w.spilled(i, r)
		} else if !(i.Dst == i.A && i.wholeCopy(r, w.o.VecBytes)) {
			w.emit(*i)
		}
		if w.err != nil {
			return w.err
		}
	}
	return nil
}

// gone reports whether a virtual register has neither register nor slot.
func (w *rewriter) gone(r R) bool {
	n := w.v.index(r)
	return w.res.Reg[n] < 0 && w.res.Remat[n] >= 0
}

// slot returns a virtual register's slot.
func (w *rewriter) slot(r R) Mem {
	return Mem{Base: w.o.Frame, Disp: w.res.Slot[w.v.index(r)]}
}

// load fills a register with a virtual register's value from its slot, or makes it again.
func (w *rewriter) load(dst, v R) {
	if n := w.res.Remat[w.v.index(v)]; n >= 0 {
		i := w.f.insts[n]
		i.Dst = dst
		w.emit(i)
		return
	}
	w.emit(w.move(dst, 0, w.slot(v)))
}

// move returns a load or a store of a whole register.
func (w *rewriter) move(dst, src R, m Mem) Inst {
	c := dst.Class() | src.Class()
	switch c {
	case GPR:
		return Inst{Op: Mov, W: 8, Dst: dst, A: src, Mem: m}
	case Mask:
		return Inst{Op: KMov, W: 8, Dst: dst, A: src, Mem: m}
	}
	return Inst{Op: VMovAPS, W: w.o.VecBytes, Dst: dst, A: src, Mem: m}
}

// safepoint expands SaveLive and LoadLive.
func (w *rewriter) safepoint(i *Inst) {
	if int(i.Safepoint) >= len(w.res.Points) {
		return
	}
	for _, n := range w.res.Points[i.Safepoint] {
		c := w.class[n]
		v := Reg(c, FirstVirtual+int(n-w.v.first[c]))
		r := Reg(c, int(w.res.Reg[n]))
		switch {
		case i.Op == LoadLive:
			w.load(r, v)
		case w.res.Remat[n] < 0:
			w.emit(w.move(0, r, w.slot(v)))
		}
	}
}

// spilled rewrites an instruction some of whose operands are in no register.
func (w *rewriter) spilled(i *Inst, r *row) {
	w.temps = w.temps[:0]
	if w.foldMove(i, r) {
		return
	}
	w.foldSource(i, r)
	w.addresses(i, r)
	// Sources first: a destination that is only written may then share a scratch register with one of them.
	for _, p := range [...]*R{&i.A, &i.B, &i.C, &i.Mem.Base, &i.Mem.Index, &i.KM} {
		if p.Virtual() {
			role := Use
			if p == &i.A && (r.form == formGV || r.form == formXchg) ||
				p == &i.KM && (r.form == formGK || r.form == formSK) {
				role = UseDef
			}
			*p = w.temp(*p, role, i)
		}
	}
	if i.Dst.Virtual() {
		i.Dst = w.temp(i.Dst, i.dstRole(r), i)
	}
	if w.err != nil {
		return
	}
	w.emit(*i)
	for _, t := range w.temps {
		if t.v != 0 && t.role&Def != 0 {
			w.emit(w.move(0, t.r, w.slot(t.v)))
		}
	}
	for _, t := range w.temps {
		if t.lent != 0 {
			w.emit(Inst{Op: KMov, W: 8, Dst: t.lent, A: t.r})
		}
	}
}

// foldMove turns a move between a spilled register and another into a load or a store.
func (w *rewriter) foldMove(i *Inst, r *row) bool {
	if !i.wholeCopy(r, w.o.VecBytes) {
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
func (w *rewriter) foldSource(i *Inst, r *row) {
	if i.Mem.Valid() {
		return
	}
	var p *R
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
	for _, q := range [...]*R{&i.A, &i.B, &i.C} {
		if q != p && *q == v {
			return // it needs a register anyway
		}
	}
	if n := w.res.Remat[w.v.index(v)]; n >= 0 {
		w.foldConst(i, r, p, &w.f.insts[n])
		return
	}
	*p = 0
	i.Mem = w.slot(v)
}

// turned returns the multiplication and addition that does with B and A what one of the form 213 does with A and B.
func turned(op Opcode) (Opcode, bool) {
	switch op {
	case VFMAdd213PS:
		return VFMAdd132PS, true
	case VFMAdd213PD:
		return VFMAdd132PD, true
	case VFMSub213PD:
		return VFMSub132PD, true
	}
	return op, false
}

// foldConst puts what a constant was loaded from in its place.
func (w *rewriter) foldConst(i *Inst, r *row, p *R, def *Inst) {
	d := rowOf(def.Op)
	switch {
	case d.form == formGMov:
		return
	case d.form == formMov && d.enc&memOnly == 0 && r.enc.bytesOf(i.W) <= int(def.W):
		i.Mem = Mem{Const: def.Mem.Const, Disp: def.Mem.Disp}
	case (def.Op == VBroadcastSS || def.Op == VPBroadcastD) && r.enc.bcast() == 4 ||
		(def.Op == VBroadcastSD || def.Op == VPBroadcastQ) && r.enc.bcast() == 8:
		if w.o.VecBytes != 64 || int(def.W) < r.enc.bytesOf(i.W) {
			return
		}
		i.Mem = Mem{Const: def.Mem.Const, Disp: def.Mem.Disp, Bcast: true}
	default:
		return
	}
	*p = 0
}

// addresses frees a scratch register where an instruction wants three general ones: base and index become one.
func (w *rewriter) addresses(i *Inst, r *row) {
	m := &i.Mem
	if !m.Base.Virtual() || !m.Index.Virtual() || m.Index.Class() != GPR {
		return
	}
	other := false
	for _, x := range [...]R{i.A, i.B} {
		other = other || x.Virtual() && x.Class() == GPR && x != m.Base && x != m.Index
	}
	d := i.Dst
	if d.Virtual() && d.Class() == GPR && i.dstRole(r)&Use != 0 && d != m.Base && d != m.Index {
		other = true
	}
	if !other {
		return
	}
	w.load(R10, m.Base)
	w.load(R11, m.Index)
	w.emit(Inst{Op: Lea, W: 8, Dst: R10, Mem: Mem{Base: R10, Index: R11, Scale: m.Scale}})
	*m = Mem{Base: R10, Disp: m.Disp, Bcast: m.Bcast}
	w.temps = append(w.temps, temp{r: R10, role: UseDef})
}

// temp returns the scratch register for a spilled operand, and loads it if it is read.
func (w *rewriter) temp(v R, role Role, i *Inst) R {
	for k := range w.temps {
		if t := &w.temps[k]; t.v == v {
			if role&Def != 0 {
				t.role |= role
			}
			return t.r
		}
	}
	early := i.EarlyDef()
	if role == Def && !early {
		for k := range w.temps { // the scratch of a source, which is read before
			if t := &w.temps[k]; t.r.Class() == v.Class() && t.role == Use && t.lent == 0 && t.v != 0 {
				t.v, t.role = v, Def
				return t.r
			}
		}
	}
	scratch := scratchGPR
	switch v.Class() {
	case Mask:
		scratch = scratchMask
	case Vec:
		scratch = w.scratchVec
	}
	r := w.free(scratch, i)
	if r == 0 && v.Class() == Mask {
		r = w.borrow(i)
	}
	if r == 0 {
		if w.err == nil {
			w.err = fmt.Errorf("[amd64] no register left to move a value through: %s", i)
		}
		return v
	}
	w.temps = append(w.temps, temp{v: v, r: r, role: role})
	if role&Use != 0 {
		w.load(r, v)
	}
	return r
}

// free returns a register of the list that neither the instruction nor a temp has, 0 if there is none.
func (w *rewriter) free(list []R, i *Inst) R {
next:
	for _, r := range list {
		for _, x := range [...]R{i.A, i.B, i.C, i.Mem.Base, i.Mem.Index, i.KM, i.Dst} {
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
func (w *rewriter) borrow(i *Inst) R {
	keep := w.free(scratchGPR, i)
	k := w.free([]R{K(1), K(2), K(3), K(4), K(5), K(6)}, i)
	if keep == 0 || k == 0 {
		return 0
	}
	w.emit(Inst{Op: KMov, W: 8, Dst: keep, A: k})
	w.temps = append(w.temps, temp{r: keep, role: UseDef, lent: k})
	return k
}

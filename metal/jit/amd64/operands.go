package amd64

// Role says what an instruction does with a register.
type Role uint8

// The roles. UseDef is a register that is read and written: a tied destination, or one whose lanes stay where a
// write mask is off.
const (
	Use Role = 1 << iota
	Def
	UseDef = Use | Def
)

var noRow row

// rowOf returns an opcode's row, an empty one for numbers that are no opcode.
func rowOf(op Opcode) *row {
	switch n := int(op); {
	case n < len(general):
		return &general[n]
	case n < len(floats):
		return &floats[n]
	case n < len(integers):
		return &integers[n]
	case n < len(moves):
		return &moves[n]
	}
	return &noRow
}

// Store reports whether the instruction writes to memory: Mem is its destination.
func (i *Inst) Store() bool {
	if !i.Mem.Valid() {
		return false
	}
	switch rowOf(i.Op).form {
	case formMR, formMRI, formMVR, formSK:
		return true
	case formMov, formMovDQ, formKMov, formGMov, formALU, formUn, formGSh, formSet:
		return i.Dst == 0
	case formLock, formLockA, formLockR, formXchg:
		return true
	case formX87:
		return rowOf(i.Op).ext != 0
	}
	return false
}

// BroadcastSize returns how many bytes of a memory operand the instruction can read for all lanes, 0 if it cannot.
func (i *Inst) BroadcastSize() int { return rowOf(i.Op).enc.bcast() }

// EarlyDef reports whether Dst must not share a register with anything the instruction reads (gathers).
func (i *Inst) EarlyDef() bool { return rowOf(i.Op).enc&early != 0 }

// dstRole returns what the instruction does with Dst.
func (i *Inst) dstRole(r *row) Role {
	switch r.form {
	case formTVM, formTVMI, formGV, formGK, formALU, formT2, formUn, formGSh, formSwap, formSet, formCMov, formXchg,
		formLockR:
		return UseDef
	case formGMov:
		if i.W < 4 {
			return UseDef
		}
	}
	if i.KM != 0 && !i.Zero && r.enc&(sel|dK) == 0 {
		return UseDef
	}
	return Def
}

// Operands calls visit for each register the instruction names, with what it does to it: sources and the parts of an
// address first, the destination last. A register that stands in two places is visited twice. Registers implied by
// an opcode (RAX and RDX of a division) are not visited.
func (i *Inst) Operands(visit func(r *R, role Role)) { i.operands(rowOf(i.Op), visitFunc(visit)) }

// visitor is what operands calls: an interface, so that the register allocator need not make a func for each
// instruction.
type visitor interface{ visit(r *R, role Role) }

type visitFunc func(r *R, role Role)

func (f visitFunc) visit(r *R, role Role) { f(r, role) }

func (i *Inst) operands(r *row, v visitor) {
	if i.A != 0 {
		role := Use
		if r.form == formGV || r.form == formXchg {
			role = UseDef
		}
		v.visit(&i.A, role)
	}
	if i.B != 0 {
		v.visit(&i.B, Use)
	}
	if i.C != 0 {
		v.visit(&i.C, Use)
	}
	if i.Mem.Base != 0 {
		v.visit(&i.Mem.Base, Use)
	}
	if i.Mem.Index != 0 {
		v.visit(&i.Mem.Index, Use)
	}
	if i.KM != 0 {
		role := Use
		if r.form == formGK || r.form == formSK {
			role = UseDef
		}
		v.visit(&i.KM, role)
	}
	if i.Dst != 0 {
		v.visit(&i.Dst, i.dstRole(r))
	}
}

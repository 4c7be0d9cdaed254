package amd64

// A row says how an instruction is written and what it does with its operands.
type row struct {
	name string
	form operandForm
	op   byte // the opcode byte
	op2  byte // a second one: of the store, or of the shift by a constant
	ext  byte // the digit that stands in ModRM.reg, where the form wants one
	enc  enc
}

// operandForm is the place of each operand in the encoding.
type operandForm uint8

// Forms of vector instructions. "rm" is the operand that may be in memory.
const (
	formNone  operandForm = iota
	formRM                // Dst reg, A rm
	formRMI               // and a constant
	formRVM               // Dst reg, A vvvv, B rm
	formRVMI              // and a constant
	formTVM               // as formRVM, Dst is read too
	formTVMI              // as formRVMI, Dst is read too
	formRVMR              // Dst reg, A vvvv, B rm, C in the constant's upper half
	formMR                // Dst rm, A reg
	formMRI               // and a constant
	formMov               // formRM with op, and, to memory, formMR with op2
	formShift             // formRVM with op, and by a constant: Dst vvvv, A rm, ext with op2
	formMVR               // Mem, A reg, B vvvv: masked stores
	formGV                // gather, mask A in a vector register: Dst and A are read and written
	formGK                // gather, mask KM, which is written
	formSK                // scatter: Mem, A, mask KM, which is written
	formMovDQ             // VMovD, VMovQ
	formZero              // no operands (VEX)
	formAB                // A reg, B rm: sets the flags
)

// Forms of mask instructions.
const (
	formKMov  operandForm = iota + 32
	formK3                // Dst, A, B
	formK2                // Dst, A
	formKTest             // A, B
	formKI                // Dst, A, Imm
)

// Forms of general instructions.
const (
	formALU    operandForm = iota + 48 // Dst op= A, Mem or Imm; or Mem op= A or Imm
	formCmp                            // A with B, Mem or Imm; Mem with B or Imm
	formTest                           // the same
	formGMov                           // Mov
	formExt                            // MovZX.., MovSX..
	formLea                            // Lea
	formG2                             // Dst, A or Mem
	formT2                             // the same, Dst is read too
	formG2I                            // Dst, A or Mem, Imm
	formUn                             // Dst or Mem, read and written; ext
	formMul                            // A or Mem; ext; RAX and RDX implied
	formGSh                            // Dst or Mem by Imm, or by CL if A is RCX
	formBMI                            // Dst reg, A rm, B vvvv (VEX)
	formBMIV                           // Dst reg, A vvvv, B rm (VEX)
	formBMI1                           // Dst vvvv, A rm, ext (VEX)
	formSwap                           // BSwap
	formSet                            // SetCC
	formCMov                           // CMov
	formXchg                           // Mem or A with Dst
	formLockR                          // Mem with Dst (read and written)
	formLockA                          // Mem with A
	formLock                           // Mem with A or Imm, ext
	formJcc                            // Jcc
	formJmp                            // Jmp
	formBytes                          // fixed bytes: op, op2, ext while not 0
	formG0                             // no operands, W says the operand size
	formX87                            // Mem: ext for W 4 with op, for W 8 with op2
	formPref                           // Mem, ext (0F op)
	formPseudo                         // no bytes
)

// enc is the rest of an encoding, in bits.
type enc uint32

// Opcode map, prefix, and which of the encodings exist (both if neither bit is set).
const (
	m0F      enc = 1
	m38      enc = 2
	m3A      enc = 3
	p66      enc = 1 << 2
	pF3      enc = 2 << 2
	pF2      enc = 3 << 2
	w1       enc = 1 << 4 // EVEX.W
	vw1      enc = 1 << 5 // VEX.W
	vexOnly  enc = 1 << 6
	evexOnly enc = 1 << 7
	comm     enc = 1 << 8  // A and B may change places
	lig      enc = 1 << 9  // a scalar instruction: no vector length
	min32    enc = 1 << 10 // not with 16 bytes
	only64   enc = 1 << 11 // with 64 bytes only
	dHalf    enc = 1 << 16 // Dst has half the width (at least 16)
	dK       enc = 1 << 17 // Dst is a mask
	dG       enc = 1 << 18 // Dst is general
	aG       enc = 1 << 19 // A is general (formRM)
	sel      enc = 1 << 20 // KM selects; what it leaves does not come from Dst
	early    enc = 1 << 21 // Dst must not be any of the sources
	memOnly  enc = 1 << 22 // the rm operand is in memory
	noK      enc = 1 << 23 // no write mask
	regOnly  enc = 1 << 24 // the rm operand is a register, or means something else in memory
)

// Tuples: how many bytes the memory operand has, which is also the unit of a one-byte displacement with EVEX.
const (
	tupleShift     = 12
	fvm        enc = 1 << tupleShift  // the whole vector, no broadcast
	hv         enc = 2 << tupleShift  // half, 4-byte broadcast
	hvm        enc = 3 << tupleShift  // half
	qvm        enc = 4 << tupleShift  // a quarter
	t1         enc = 5 << tupleShift  // 1 byte
	t2         enc = 6 << tupleShift  // 2
	t4         enc = 7 << tupleShift  // 4
	t8         enc = 8 << tupleShift  // 8
	m16        enc = 9 << tupleShift  // 16
	m32        enc = 10 << tupleShift // 32
	tupleMask  enc = 15 << tupleShift
	// The whole vector with a broadcast of one element (4 bytes, or 8 with w1) is 0.
)

// Short names for usual combinations.
const (
	ps  = m0F
	pd  = m0F | p66 | w1
	ss  = m0F | pF3 | lig | t4
	i0F = m0F | p66
	i38 = m38 | p66
	i3A = m3A | p66
	q38 = m38 | p66 | w1
	q3A = m3A | p66 | w1
	kd  = dK | evexOnly
)

// bytesOf returns the size of the memory operand of a tuple with vectors of w bytes, or general operands of w. EVEX
// multiplies one-byte displacements with it.
func (e enc) bytesOf(w uint8) int {
	switch e & tupleMask {
	case hv, hvm:
		return int(w) / 2
	case qvm:
		return int(w) / 4
	case t1:
		return 1
	case t2:
		return 2
	case t4:
		return 4
	case t8:
		return 8
	case m16:
		return 16
	case m32:
		return 32
	}
	return int(w)
}

// bcast returns the bytes of a broadcast element, 0 if there is no such form.
func (e enc) bcast() int {
	switch {
	case e&vexOnly != 0 || e&lig != 0:
		return 0
	case e&tupleMask == 0 && e&w1 != 0:
		return 8
	case e&tupleMask == 0 || e&tupleMask == hv:
		return 4
	}
	return 0
}

// maskable reports whether the instruction may have a write mask.
func (r *row) maskable() bool {
	return r.enc&vexOnly == 0 && r.enc&(dG|noK) == 0 && r.form != formMovDQ && r.form < formKMov
}

package code

// Role says what an instruction does with a register.
type Role uint8

// The roles. UseDef is a register that is read and written: a tied destination, or one whose lanes stay where a
// write mask is off.
const (
	Use Role = 1 << iota
	Def
	UseDef = Use | Def
)

// trait is something that an operation does with its operands beyond reading its sources and writing Dst.
type trait uint8

const (
	readsDst trait = 1 << iota // Dst is read, too
	writesA                    // A is written, too
	writesKM                   // KM is written, too
	selects                    // what KM leaves out does not come from Dst
	early                      // Dst must not share a register with anything that is read
	stores                     // a memory operand is written
	storesIf                   // it is where there is no Dst
	pseudo                     // no instruction
)

// traits are those of the operations that have some.
var traits = func() (t [NumOpcodes]trait) {
	set := func(x trait, ops ...Opcode) {
		for _, op := range ops {
			t[op] |= x
		}
	}
	set(pseudo, BindLabel, LoopBegin, LoopEnd, ColdBegin, ColdEnd, SaveLive, LoadLive, SaveRegs,
		LoadRegs)
	set(readsDst|storesIf, Add, Or, And, Sub, Xor, Not, Neg, Shl, Shr, Sar, SetCC)
	set(readsDst, IMul, Bsr, BSwap, CMov, VFMAdd132PS, VFMAdd132PD, VFMAdd213PS, VFMAdd213PD, VFMAdd231PS, VFMAdd231PD,
		VFMSub132PD, VFMSub213PD, VFNMAdd231PS, VFNMAdd231PD, VDPBF16PS, VPTernLogQ, VPermT2PS, VPermI2D, VPermI2PS)
	set(readsDst|writesA|stores, Xchg)
	set(readsDst|stores, LockXAdd)
	set(stores, LockCmpXchg, LockAdd, LockOr, LockAnd, LockSub, LockXor, FStP, VCvtPS2PH, VPMovDB, VPMovDW, VMovNTPS,
		VPMaskMovDSt, VPMaskMovQSt, VExtractF128, VExtractI128, VExtractI32X4, VExtractI64X4)
	set(storesIf, Mov, KMov, VMovUPS, VMovAPS, VMovAPD, VMovDQU, VMovDQU8, VMovDQU64, VMovDQA32, VMovD, VMovQ)
	set(selects, VPBlendMD, VPBlendMQ, VCmpPSK, VCmpPDK, VPCmpD, VPCmpUD, VPCmpQ, VPCmpUQ, VPTestMD, VPTestMQ, VPTestNMD,
		VPTestNMQ)
	set(readsDst|writesA|early, VPGatherDD, VPGatherDQ, VPGatherQD, VPGatherQQ)
	set(readsDst|writesKM|early, VPGatherDDK, VPGatherDQK, VPGatherQDK, VPGatherQQK)
	set(writesKM|stores, VPScatterDD, VPScatterDQ, VPScatterQD, VPScatterQQ)
	return t
}()

// has reports whether the operation has a trait; numbers that are no operation have none.
func (op Opcode) has(t trait) bool { return op < NumOpcodes && traits[op]&t != 0 }

// Pseudo reports whether there is no instruction for the operation.
func (op Opcode) Pseudo() bool { return op.has(pseudo) }

// Store reports whether the instruction writes to memory: Mem is its destination.
func (i *Inst) Store() bool {
	return i.Mem.Valid() && (i.Op.has(stores) || i.Op.has(storesIf) && i.Dst == 0)
}

// EarlyDef reports whether Dst must not share a register with anything the instruction reads (gathers).
func (i *Inst) EarlyDef() bool { return i.Op.has(early) }

// DstRole returns what the instruction does with Dst.
func (i *Inst) DstRole() Role {
	if i.Op.has(readsDst) || i.Op == Mov && i.W < 4 || i.KM != 0 && !i.Zero && !i.Op.has(selects) {
		return UseDef
	}
	return Def
}

// ARole returns what the instruction does with A.
func (i *Inst) ARole() Role {
	if i.Op.has(writesA) {
		return UseDef
	}
	return Use
}

// MaskRole returns what the instruction does with KM.
func (i *Inst) MaskRole() Role {
	if i.Op.has(writesKM) {
		return UseDef
	}
	return Use
}

// Operands calls visit for each register the instruction names, with what it does to it: sources and the parts of an
// address first, the destination last. A register that stands in two places is visited twice. Registers implied by
// an opcode (RAX and RDX of a division) are not visited.
func (i *Inst) Operands(visit func(r *R, role Role)) { i.Visit(visitFunc(visit)) }

// Visitor is what Visit calls: an interface, so that a register allocator need not make a func for each instruction.
type Visitor interface{ Visit(r *R, role Role) }

type visitFunc func(r *R, role Role)

// Visit implements Visitor.
func (f visitFunc) Visit(r *R, role Role) { f(r, role) }

// Visit is Operands for a Visitor.
func (i *Inst) Visit(v Visitor) {
	if i.A != 0 {
		v.Visit(&i.A, i.ARole())
	}
	if i.B != 0 {
		v.Visit(&i.B, Use)
	}
	if i.C != 0 {
		v.Visit(&i.C, Use)
	}
	if i.Mem.Base != 0 {
		v.Visit(&i.Mem.Base, Use)
	}
	if i.Mem.Index != 0 {
		v.Visit(&i.Mem.Index, Use)
	}
	if i.KM != 0 {
		v.Visit(&i.KM, i.MaskRole())
	}
	if i.Dst != 0 {
		v.Visit(&i.Dst, i.DstRole())
	}
}

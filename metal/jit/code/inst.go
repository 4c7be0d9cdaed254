// Package code holds the instructions in which machine code is chosen, before a processor has them: as data, on virtual
// registers. They are called after those of amd64, and mean the same: what another processor has no instruction for it
// takes apart. The package knows nothing of kernels, and no bytes.
package code

// R names a register operand: a class and a number. Numbers below FirstVirtual are the processor's, those from it on
// are virtual. The zero R is no register.
type R uint32

// Class is a register file.
type Class uint8

// The classes: general purpose (64 bits), vector (zmm, its low ymm and xmm), mask (k).
const (
	NoClass Class = iota
	GPR
	Vec
	Mask
	NumClasses
)

// FirstVirtual is the lowest number of a virtual register, in each class.
const FirstVirtual = 64

// Reg makes an R.
func Reg(c Class, n int) R { return R(c)<<28 | R(n) }

// Class returns the register file.
func (r R) Class() Class { return Class(r >> 28) }

// Num returns the register's number: the processor's own numbering if it is real.
func (r R) Num() int { return int(r & (1<<28 - 1)) }

// Virtual reports whether the register has yet to be chosen.
func (r R) Virtual() bool { return r.Num() >= FirstVirtual }

// The general registers that instructions may name though they are not virtual. Each processor has a place for them.
const (
	RAX R = R(GPR)<<28 + iota
	RCX
	RDX
	RBX
	RSP
	RBP
	RSI
	RDI
	R8
	R9
	R10
	R11
	R12
	R13
	R14
	R15
)

// V returns vector register n, K mask register n.
func V(n int) R { return Reg(Vec, n) }

// K returns mask register n.
func K(n int) R { return Reg(Mask, n) }

// Label is a place in the code; 0 is none.
type Label int32

// ConstID names a constant in the code's pool, addressed relative to the instruction pointer; 0 is none.
type ConstID int32

// Mem is a memory operand: [Base + Index*Scale + Disp], or a constant of the pool (plus Disp), or the address of
// a label (Lea only). Index may be a vector register (gathers and scatters). The zero Mem is none.
type Mem struct {
	Base, Index R
	Scale       uint8 // 1, 2, 4, 8; 0 means 1
	Bcast       bool  // one element read for all lanes (AVX-512)
	Disp        int32
	Const       ConstID
}

// Valid reports whether there is a memory operand.
func (m Mem) Valid() bool { return m.Base != 0 || m.Index != 0 || m.Const != 0 }

// Inst is one instruction. Conventions: Dst is written; A, B, C are read. Where amd64 overwrites a source (FMA, most
// scalar instructions, VPTERNLOG, permutations of two tables), Dst is read too, and A is what remains. Mem stands in
// the place of the last source (B of a three-operand instruction, A of a move), or is the destination of a store,
// whose value is A.
type Inst struct {
	Op        Opcode
	W         uint8 // bytes worked on: 1, 2, 4, 8 for GPR; 16, 32, 64 for Vec; the bits/8 of a Mask (1, 2, 4, 8)
	Cond      Cond  // of Jcc, SetCC, CMov; predicate of compares is in Imm
	Zero      bool  // lanes off in KM become zero; otherwise they keep Dst's value (which makes Dst read as well)
	Dst       R
	A, B, C   R
	KM        R // write mask (AVX-512), 0: none
	Mem       Mem
	Imm       int64
	Label     Label
	Safepoint int32 // of SaveLive and LoadLive: index into the function's safepoints
}

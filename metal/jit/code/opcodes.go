package code

// Opcode names an operation by amd64's mnemonic in CamelCase, or a pseudo instruction. There is one for each operation
// that is emitted.
type Opcode uint16

// Operations on general registers and masks, control, and pseudo operations.
const (
	NoOpcode Opcode = iota

	// Pseudo instructions.
	BindLabel
	LoopBegin
	LoopEnd
	ColdBegin
	ColdEnd
	SaveLive
	LoadLive
	SaveRegs // every register that code may have values in is stored from Mem on
	LoadRegs // and loaded

	// General registers.
	Mov
	MovZXB
	MovZXW
	MovSXB
	MovSXW
	MovSXD
	Lea
	Add
	Or
	And
	Sub
	Xor
	Cmp
	Test
	IMul
	IMul3
	Not
	Neg
	Mul
	IMul1
	Div
	IDiv
	Shl
	Shr
	Sar
	ShlX
	ShrX
	SarX
	BZHi
	PDep
	BlsR
	BlsMsk
	BlsI
	Bsr
	TZCnt
	LZCnt
	PopCnt
	BSwap
	SetCC
	CMov
	Xchg
	LockXAdd
	LockCmpXchg
	LockAdd
	LockOr
	LockAnd
	LockSub
	LockXor
	Jcc
	Jmp
	Ret
	Nop
	MFence
	Cdq
	PrefetchT0
	PrefetchW
	LdMXCSR

	// The x87, whose registers are a stack.
	FLd
	FStP
	FPRem
	FPop
	FNStSW

	// Masks. W is 1, 2, 4 or 8: masks of 8, 16, 32, 64 bits.
	KMov
	KAnd
	KAndN
	KOr
	KXNor
	KXor
	KUnpck
	KNot
	KOrTest
	KShiftR
)

// Operations on floating-point lanes.
const (
	VAddPS Opcode = iota + KShiftR + 1
	VAddPD
	VAddSS
	VMulPS
	VMulPD
	VSubPS
	VSubPD
	VSubSS
	VMinPS
	VMinPD
	VDivPS
	VDivPD
	VMaxPS
	VMaxPD
	VSqrtPS
	VSqrtPD
	VXorPS

	// Fused multiply and add. 132: Dst*B+A, 213: A*Dst+B, 231: A*B+Dst.
	VFMAdd132PS
	VFMAdd132PD
	VFMAdd213PS
	VFMAdd213PD
	VFMAdd231PS
	VFMAdd231PD
	VFMSub132PD
	VFMSub213PD
	VFNMAdd231PS
	VFNMAdd231PD
	VDPBF16PS // Dst + A*B of pairs of BF16

	// Comparisons: to vectors (predicates 0 to 31 in Imm), to masks (names with K), to the flags.
	VCmpPS
	VCmpPD
	VCmpPSK
	VCmpPDK

	// Rounding: Imm is the mode, plus 8 for no inexact exception.
	VRoundPS
	VRoundPD
	VRndScalePS
	VRndScalePD
	VRangePS
	VRangePD
	VScaleFPS
	VScaleFPD

	// Conversions between lanes. W is the width of the wider operand.
	VCvtDQ2PS
	VCvtTPS2DQ
	VCvtUDQ2PS
	VCvtTPS2UDQ
	VCvtDQ2PD
	VCvtUDQ2PD
	VCvtTPD2DQ
	VCvtTPD2UDQ
	VCvtPS2PD
	VCvtPD2PS
	VCvtQQ2PS
	VCvtUQQ2PS
	VCvtQQ2PD
	VCvtUQQ2PD
	VCvtTPD2QQ
	VCvtTPD2UQQ
	VCvtPH2PS
	VCvtPS2PH
	VCvtNEPS2BF16
)

// Operations on integer lanes.
const (
	VPAddB Opcode = iota + VCvtNEPS2BF16 + 1
	VPAddD
	VPAddQ
	VPSubD
	VPSubQ
	VPMAddWD
	VPMAddUBS
	VPSADBW
	VPMulLD
	VPMulLQ
	VPMulDQ
	VPMulUDQ
	VPMinSD
	VPMinSQ
	VPMinUD
	VPMinUQ
	VPMaxSD
	VPMaxSQ
	VPMaxUD
	VPMaxUQ
	VPAbsD
	VPAbsQ
	VPopCntD
	VPopCntQ
	VPLZCntD
	VPLZCntQ

	// Logic. The names without an element size are AVX2's, those with one AVX-512's.
	VPAnd
	VPAndN
	VPOr
	VPXor
	VPAndD
	VPAndQ
	VPAndND
	VPAndNQ
	VPOrD
	VPOrQ
	VPXorD
	VPXorQ
	VPTernLogQ
	VPTest

	// Comparisons: to vectors, and (with Imm, or named Test) to masks.
	VPCmpEqD
	VPCmpEqQ
	VPCmpGtD
	VPCmpGtQ
	VPCmpD
	VPCmpUD
	VPCmpQ
	VPCmpUQ
	VPTestMD
	VPTestMQ
	VPTestNMD
	VPTestNMQ

	// Shifts: by Imm if B and Mem are missing, else by the low 64 bits of B; names with V: lane by lane.
	VPSllD
	VPSllQ
	VPSrlD
	VPSrlQ
	VPSraD
	VPSraQ
	VPSllVD
	VPSllVQ
	VPSrlVD
	VPSrlVQ
	VPSraVD
	VPSraVQ

	// Widening by sign (SX) or zeros (ZX), narrowing by cutting off (VPMovDB), by saturation (S, US).
	VPMovSXBD
	VPMovSXWD
	VPMovSXDQ
	VPMovZXBD
	VPMovZXWD
	VPMovZXDQ
	VPMovDB
	VPMovDW
	VPackSSDW
	VPackUSDW
	VMovMskPS
	VMovMskPD
)

// Moves and permutations of lanes.
const (
	VMovUPS Opcode = iota + VMovMskPD + 1
	VMovAPS
	VMovAPD
	VMovDQU
	VMovDQU8
	VMovDQU64
	VMovDQA32
	VMovD
	VMovQ
	VMovNTPS
	VZeroUpper

	// Masked moves of AVX2: A (loads) or B (stores, of A) is the mask.
	VPMaskMovD
	VPMaskMovQ
	VPMaskMovDSt
	VPMaskMovQSt

	// Broadcasts of the first element of A, or of Mem; names with G: of a general register.
	VBroadcastSS
	VBroadcastSD
	VPBroadcastB
	VPBroadcastW
	VPBroadcastD
	VPBroadcastQ
	VPBroadcastGD
	VPBroadcastGQ

	// Blends: by a vector C, by Imm, or (AVX-512) by KM: lanes on are B's, the others A's, or zero.
	VBlendVPS
	VBlendVPD
	VBlendPS
	VPBlendD
	VPBlendMD
	VPBlendMQ

	// Permutations. VPermD and VPermPS, VPermW, ...: A is the index, B the data. T2: Dst and B are the tables, A the
	// index. I2: A and B are the tables, Dst the index.
	VPermD
	VPermPS
	VPermQ
	VPermT2PS
	VPermI2D
	VPermI2PS
	VPermilVPS
	VShufPS
	VPShufB
	VPShufD
	VUnpckLPS
	VUnpckHPS
	VUnpckLPD
	VUnpckHPD
	VPUnpckLDQ
	VPUnpckHDQ
	VPAlignR
	VAlignD
	VAlignQ

	// Inserting (B into A at Imm) and extracting (of A at Imm, to Dst or Mem).
	VInsertF128
	VInsertI128
	VInsertF32X8
	VInsertI64X4
	VExtractF128
	VExtractI128
	VExtractI32X4
	VExtractI64X4

	// Gathers and scatters. The letters: D or Q index, then the data. W is the width of the wider of the two; Mem.Index
	// is a vector register. AVX2 (no K in the name): A is the mask. AVX-512: KM. The mask is zero afterwards.
	VPGatherDD
	VPGatherDQ
	VPGatherQD
	VPGatherQQ
	VPGatherDDK
	VPGatherDQK
	VPGatherQDK
	VPGatherQQK
	VPScatterDD
	VPScatterDQ
	VPScatterQD
	VPScatterQQ
)

// NumOpcodes is one more than the last Opcode.
const NumOpcodes = VPScatterQQ + 1

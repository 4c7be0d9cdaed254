package kir

// Op is the operation of an instruction. "T" below is the instruction's Type; operands of arithmetic have that
// same type unless the comment says otherwise.
type Op uint8

// The operations.
const (
	Invalid Op = iota

	// Values.
	Const      // Imm: bits of T, zero-extended
	Builtin    // Mode: which position or size, Imm: component 0..2 (0 for scalars); T is U32
	VarGet     // Imm: index in Kernel.Vars
	VarSet     // Args: value
	ParamAddr  // Imm: index in Kernel.Params; T: pointer to its first byte
	RegionAddr // Imm: index in Kernel.Regions; T: pointer to its first byte

	// Arithmetic on integers (wrapping) and floats (F16 and BF16: the float32 result rounded once).
	Add
	Sub
	Mul
	Div
	Rem // integers: sign of the dividend; floats: C's fmod
	Neg
	Abs // integers: Abs(min) is min; floats: clears the sign
	Min // floats: the number beats NaN; -0 is less than +0
	Max
	MulHi // integers: the high half of the double-width product
	Fma   // floats: a*b+c rounded once (F16, BF16: float32's fma, then rounded)
	// PairDot: F32; Args: a, b, c; a and b hold two BF16 each: c + a.high*b.high + a.low*b.low, denormals being zeros.
	PairDot
	Sqrt
	Floor
	Ceil
	Trunc
	Rint  // to nearest, ties to even
	Scale // floats: Args: a, n; a * 2^n, n rounded down, rounded once

	// Bits: integers, and Bool for And, Or, Xor, Not.
	And
	Or
	Xor
	Not
	Shl      // the count (same type) is taken modulo the width
	Shr      // arithmetic for signed types
	Popcount // count of ones
	Clz      // leading zeros; the width for 0
	Ctz      // trailing zeros; the width for 0
	BitReverse

	// Comparisons: operands of one type (any but Void), result Bool. Ordered: false with NaN; Ne is true with NaN.
	Eq
	Ne
	Lt
	Le
	Gt
	Ge

	Select  // Args: Bool condition, a, b: a where true
	Convert // Args: a value of another arithmetic type or Bool; semantics.go has the table
	Bitcast // Args: a value of the same size; Bool and pointers excluded, but U64 <-> pointer allowed

	// Memory. Addresses need no alignment beyond what executors can do unaligned, except atomics (natural alignment).
	// PtrAdd: Args: pointer, I64 byte offset; result pointer of the same type: the low 48 bits move by the sum of
	// Args[1] and int64(Imm).
	PtrAdd
	PtrDiff // Args: two pointers of one type; result I64: byte difference
	Load    // Args: pointer
	Store   // Args: pointer, value
	// Atomics, relaxed order, on I32, U32, F32, I64, U64 in Device or Threadgroup memory. Bytes, U8, can be loaded,
	// stored, exchanged and compared.
	AtomicLoad
	AtomicStore // Args: pointer, value
	AtomicRMW   // Mode: ModeAdd..ModeExchange; Args: pointer, value; result: the old value
	AtomicCAS   // Args: pointer, expected, desired; result: the old value; never fails spuriously
	Fence       // Mode: barrier flags; orders this lane's accesses

	// Convergent operations over the active lanes of the SIMD-group, or of each quad when Imm is 4 (else Imm is 32).
	Reduce        // Mode: ModeAdd, Mul, Min, Max, And, Or, Xor; every active lane gets the result
	ScanInclusive // Mode: ModeAdd or ModeMul
	ScanExclusive // lane 0 of the active ones gets the identity
	// Shuffle: Args: value, U32 lane; the value of that lane of the group (modulo 32; of the quad: modulo 4); an
	// inactive lane gives zero.
	Shuffle
	Ballot         // Args: Bool; T U64: bit i is set where lane i is active and true; Imm is 32
	BroadcastFirst // Args: value; the value of the lowest active lane
	// MatMulAcc: T F32 or F64; Args: a0, a1, b0, b1, c, a lane's two elements of 8 by 8 matrices A and B, and one of C
	// (kir.MatrixPlace says which); Mode: ModeExact or ModeFree. The lane's element 0 or 1, as Imm says, of A * B + C.
	// Whoever has an instruction for it finds both in one block, one after the other, with the same A and B.
	MatMulAcc

	// SimdBarrier and Barrier order memory; Barrier waits for all threads of the threadgroup that have not returned.
	SimdBarrier // Mode: flags
	Barrier     // Mode: flags

	// Control.
	If       // Args: Bool; Body, Else
	BlockOp  // Body; Break(Target = this) leaves it
	Loop     // Body, again and again until a Break leaves it
	Break    // Target
	Continue // Target: a Loop
	Return   // this lane ends

	numOps
)

// Mode refines an Op.
type Mode uint8

// Modes of Reduce, Scan and AtomicRMW.
const (
	ModeNone Mode = iota
	ModeAdd
	ModeSub // AtomicRMW only
	ModeMul // Reduce and Scan only
	ModeMin
	ModeMax
	ModeAnd
	ModeOr
	ModeXor
	ModeExchange // AtomicRMW only
	ModeExact    // MatMulAcc only: products are added in the order of the inner dimension, each by one Fma
	ModeFree     // MatMulAcc only: in any order and any way that keeps to the budget (semantics.go)
)

// Modes of Builtin, named as Metal's attributes. Those with three components are marked.
const (
	ThreadPositionInGrid          Mode = 32 + iota // 3
	ThreadPositionInThreadgroup                    // 3
	ThreadgroupPositionInGrid                      // 3
	ThreadsPerThreadgroup                          // 3: the real size, smaller at the grid's edge
	DispatchThreadsPerThreadgroup                  // 3: the size asked for
	ThreadgroupsPerGrid                            // 3
	ThreadsPerGrid                                 // 3
	ThreadIndexInThreadgroup
	ThreadIndexInSimdgroup
	SimdgroupIndexInThreadgroup
	SimdgroupsPerThreadgroup
	DispatchSimdgroupsPerThreadgroup
	ThreadsPerSimdgroup // 32
	ThreadIndexInQuadgroup
	QuadgroupIndexInThreadgroup
	QuadgroupsPerThreadgroup
	GridOrigin // 3: 0
	GridSize   // 3: as ThreadsPerGrid
)

// Flags of Barrier, SimdBarrier and Fence: which memory is ordered.
const (
	MemNone        Mode = 0
	MemDevice      Mode = 1
	MemThreadgroup Mode = 2
)

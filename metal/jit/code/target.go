package code

import "errors"

// Target is a processor that code is chosen for: what choosing has to know of it, and what makes bytes of the
// instructions.
type Target struct {
	Name string // as people call its instruction set: "AVX2"
	// VecBytes is how many bytes a register of class Vec has: 64 or 32. Those of 64 bytes come with registers of class
	// Mask, which comparisons write and which say where an instruction has no effect; with 32, masks are vectors with
	// all bits of a lane set or clear.
	VecBytes uint8
	PairDots bool // VDPBF16PS is there
	// RoundsBF16: VCvtNEPS2BF16 is there and keeps denormal numbers, as amd64's does not.
	RoundsBF16 bool
	// FromMemory: instructions take a source from memory in the time that they need anyway.
	FromMemory bool
	X87        bool // the x87 is there, which computes remainders
	// MXCSR: it says whether denormal numbers are zeros, where a result is denormal that is so after it was rounded.
	MXCSR bool
	// SignBlends: a VBlendVPS or VBlendVPD looks at the sign of a lane of the mask only; else its other bits are like it.
	SignBlends bool
	// Extras: those operations that amd64 has with vectors of 64 bytes are there with 32 that need no mask and are named
	// VRange, VPLZCnt, VPopCnt, VPBroadcastG, VPSraQ, VPAbsQ, VPMovDW and VPMovDB, or convert to or from unsigned and
	// 64-bit integers. Conversions to integers saturate, and make 0 of NaNs.
	Extras bool
	// Group is how many lanes run together where nothing asks for a SIMD-group: as many as fit a register of class Vec, or
	// more if the registers hold what most kernels compute of so many. Straight is how many instructions a kernel without
	// loops may have for whole SIMD-groups to run all the same, if that is quicker.
	Group, Straight int
	// Registers is how many registers of class Vec the allocator has, about.
	Registers int
	// Finish chooses registers for the instructions of f, which it may change, and makes bytes of them. end is where the
	// slots of what found no register end in the frame.
	Finish func(f *Func, o Placing) (c Code, end int, err error)
}

// Placing says where the registers of a Func that Finish does not choose are, and what it may use.
type Placing struct {
	Frame  R        // the register that points to the frame, aligned to 64 bytes
	Slots  int      // offset in the frame from which on slots may be
	Steady [2]int32 // offsets from RBP between which nothing is written while code runs
	Coarse bool     // take values to live longer than they do from the start (regalloc.Allocator): for tests
}

// Masks reports whether there are registers of class Mask.
func (t *Target) Masks() bool { return t.VecBytes == 64 }

// ErrTooLong is what Finish returns for code that is longer than its jumps reach.
var ErrTooLong = errors.New("the code is too long")

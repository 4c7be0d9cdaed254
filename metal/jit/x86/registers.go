package x86

import (
	"github.com/mlxlua/mlxlua/metal/jit/amd64"
)

// Fixed registers. RAX, RCX and RDX are for short sequences of one instruction's selection (never live across kir
// instructions), R10, R11 and the last three vector registers and K7 belong to the register allocator (spills).
const (
	regFrame = amd64.RBX // the frame of the group of lanes
	regBlock = amd64.RBP // the threadgroup's block
)

// The scratch: three tables of 32 entries of 8 bytes (pointers or operands, values, more values) and a few words.
const (
	scratchPtr   = 0
	scratchVal   = 256
	scratchVal2  = 512
	scratchWords = 768
)

// inBlock is a place in the threadgroup's block.
func inBlock(off int32) amd64.Mem { return amd64.Mem{Base: regBlock, Disp: off} }

// inFrame is a place in the frame of the group of lanes.
func inFrame(off int32) amd64.Mem { return amd64.Mem{Base: regFrame, Disp: off} }

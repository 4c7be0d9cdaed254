package choose

import (
	"github.com/mlxlua/mlxlua/metal/jit/code"
)

// Fixed registers. RAX, RCX and RDX are for short sequences of one instruction's selection (never live across kir
// instructions), R10, R11 and the last three vector registers and K7 belong to the register allocator (spills).
const (
	regFrame = code.RBX // the frame of the group of lanes
	regArena = code.RBP // the threadgroup's arena
)

// The scratch: three tables of 32 entries of 8 bytes (pointers or operands, values, more values) and a few words.
const (
	scratchPtr   = 0
	scratchVal   = 256
	scratchVal2  = 512
	scratchWords = 768
)

// inArena is a place in the threadgroup's arena.
func inArena(off int32) code.Mem { return code.Mem{Base: regArena, Disp: off} }

// inFrame is a place in the frame of the group of lanes.
func inFrame(off int32) code.Mem { return code.Mem{Base: regFrame, Disp: off} }

package jit

import "github.com/mlxlua/mlxlua/metal/kir"

// The memory that machine code works with beside the caller's buffers is the block of a threadgroup, outside Go's heap:
//
//	[header] [objects] [save area] [scratch] [positions of lanes] [threadgroup memory] [frame 0] [frame 1] ...
//
// regBlock points at the header, regFrame at the frame of the group of lanes that runs. Offsets below are relative to
// those. A kernel without barriers has one frame, which its groups use one after the other.

// Offsets in the header of a block. 8 bytes each unless said.
const (
	blockFuel      = 0   // int64: what the code may still spend; it leaves at the next poll when this is negative
	blockExit      = 8   // why it left: an exit
	blockResume    = 16  // where it goes on
	blockFault     = 24  // exitFault: Instr.ID of the access
	blockFaultPtr  = 32  // and the full 64-bit pointer of the lane
	blockFaultLn   = 40  // and the lane
	blockGroups    = 48  // groups of lanes in the threadgroup
	blockThreads   = 56  // threads in it
	blockGroup     = 64  // the group that runs: 0, 1, ...
	blockAlive     = 72  // groups that have not ended in this phase
	blockFrame0    = 80  // address of frame 0
	blockCount     = 88  // threadgroups along x still to run in this call, this one included (1 with barriers)
	blockFrameStep = 96  // bytes from one frame to the next: layout.frameBytes
	blockYields    = 104 // 1 if a group of lanes has given up its turn since the first one had its
	blockYielding  = 112 // 1 while those that have given up their turns get others
	blockLeft      = 120 // int64: fuel for all turns of a call, where groups of lanes may wait for each other
	blockTurn      = 128 // int64: fuel of each turn there
	// Builtins, uint32 each: three components where they have them, in the order of builtinSlots.
	blockBuiltins = 136
	blockHeader   = 512
)

// exit says why machine code returned.
type exit uint64

// The exits.
const (
	exitDone  exit = iota // the threadgroups asked for have ended
	exitFuel              // the fuel is spent: call again at blockResume
	exitFault             // an access outside its object
)

// object is an entry of the block's table of objects, by kir's object numbers (0 is null: all zero). Byte off of
// lane l is at Base + off*Step + l*Lane: Step is 1 and Lane 0 but for Thread regions, whose Base is relative to the
// frame of the group that runs (regionOff). Space is 1 + the address space: a pointer of another space to the
// object is a fault.
type object struct {
	Base  uint64
	Len   uint64 // bytes
	Step  uint32
	Space uint32
	Lane  uint64
}

// Offsets in an object.
const (
	objectBase  = 0
	objectLen   = 8
	objectStep  = 16
	objectSpace = 20
	objectLane  = 24
)

const objectBytes = 32

// savedBytes is the size of the save area: general registers, mask registers, vector registers.
const (
	saveGPR    = 0
	saveMask   = 128
	saveVec    = 192
	savedBytes = saveVec + 32*64
)

// layout is where things are in the block of a kernel's threadgroups, for one way of compiling it.
type layout struct {
	group      int   // lanes that run together
	objects    int   // offset of the table of objects: object i is at objects + i*objectBytes
	lanePos    int   // uint32 x[group], y[group], z[group] for each group of lanes: positions in the threadgroup
	save       int   // registers at a poll
	scratch    int   // what lane-by-lane code works with: see scratch* below
	tgMem      int   // threadgroup memory: Regions first (regionOff), then the parameters' at offsets given at launch
	regionOff  []int // by region: Threadgroup: offset in tgMem; Thread: offset in the frame
	regionLane []int // Thread regions: object.Lane; object.Step is the number of lanes if interleaved, else 1
	regionStep []int
	tgBytes    int // threadgroup memory of Regions
	numObjects int // entries of the table, null included
	spills     int // offset in the frame of the spill slots, after the Thread regions
	frameBytes int // of one frame, multiple of 64
}

// Scratch: three tables of 32 entries of 8 bytes (pointers or operands, values, more values) and a few words.
const (
	scratchPtr   = 0
	scratchVal   = 256
	scratchVal2  = 512
	scratchWords = 768
	scratchBytes = 1024
)

// Offsets in a frame: then Thread regions, then the spill slots.
const (
	frameResume = 0  // where the group goes on in the next phase
	frameMask   = 8  // uint32: its lanes that exist
	frameIndex  = 16 // uint32: its number in the threadgroup
	framePos    = 24 // address of its lanes' positions
	frameYield  = 32 // where the group goes on if it has given up its turn, else 0
	frameBody   = 64
)

// maxThreads is the most threads a threadgroup has.
const maxThreads = 1024

// builtinSlots gives each builtin its first slot of 4 bytes at blockBuiltins. Positions of lanes are not here.
var builtinSlots = map[kir.Mode]int{
	kir.ThreadgroupPositionInGrid: 0, kir.ThreadsPerThreadgroup: 3, kir.DispatchThreadsPerThreadgroup: 6,
	kir.ThreadgroupsPerGrid: 9, kir.ThreadsPerGrid: 12, kir.SimdgroupsPerThreadgroup: 15,
	kir.DispatchSimdgroupsPerThreadgroup: 16, kir.QuadgroupsPerThreadgroup: 17,
}

// slotOrigin is the slot of the position in the grid of the threadgroup's first thread (three components).
const slotOrigin = 18

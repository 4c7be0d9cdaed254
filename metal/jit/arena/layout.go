// Package arena is the memory that machine code works with beside the buffers of a launch: the contract between what
// makes code for a processor and the Go code that runs it.
//
// An arena belongs to a threadgroup and lies outside Go's heap:
//
//	[header] [objects] [save area] [scratch] [positions of lanes] [threadgroup memory] [frame 0] [frame 1] ...
//
// One register of the code points at the header, another one at the frame of the group of lanes that runs. The offsets
// below are relative to those. A kernel without barriers has one frame, which its groups use one after the other.
package arena

import (
	"github.com/mlxlua/mlxlua/metal/jit/lanes"
	"github.com/mlxlua/mlxlua/metal/kir"
)

// Offsets in the header of an arena. 8 bytes each unless said.
const (
	Fuel         = 0   // int64: what the code may still spend; it leaves at the next poll when this is negative
	ExitReason   = 8   // why it left: an Exit
	Resume       = 16  // where it goes on
	FaultInstr   = 24  // ExitFault: Instr.ID of the access
	FaultPointer = 32  // and the full 64-bit pointer of the lane
	FaultLane    = 40  // and the lane
	Groups       = 48  // groups of lanes in the threadgroup
	Threads      = 56  // threads in it
	Group        = 64  // the group that runs: 0, 1, ...
	Alive        = 72  // groups that have not ended in this phase
	Frame0       = 80  // address of frame 0
	Count        = 88  // threadgroups along x still to run in this call, this one included (1 with barriers)
	FrameStep    = 96  // bytes from one frame to the next: Layout.FrameBytes
	Yields       = 104 // 1 if a group of lanes has given up its turn since the first one had its
	Yielding     = 112 // 1 while those that have given up their turns get others
	Left         = 120 // int64: fuel for all turns of a call, where groups of lanes may wait for each other
	Turn         = 128 // int64: fuel of each turn there
	// Builtins begins the values of builtins, uint32 each: three components where they have them, at BuiltinSlots.
	Builtins    = 136
	headerBytes = 512
)

// Exit says why machine code returned.
type Exit uint64

// The exits.
const (
	ExitDone  Exit = iota // the threadgroups asked for have ended
	ExitFuel              // the fuel is spent: call again at Resume
	ExitFault             // an access outside its object
)

// Object is an entry of the block's table of objects, by kir's object numbers (0 is null: all zero). Byte off of lane l
// is at Base + off*Step + l*Lane: Step is 1 and Lane 0 but for Thread regions, whose Base is relative to the frame of
// the group that runs (Layout.RegionOffset). Space is 1 + the address space: a pointer of another space to the object
// is a fault. Write is Space, or 0 where a write is a fault, too.
type Object struct {
	Base  uint64
	Len   uint64 // bytes
	Step  uint32
	Space uint32
	Lane  uint32
	Write uint32
}

// Offsets in an Object, and its size.
const (
	ObjectBase  = 0
	ObjectLen   = 8
	ObjectStep  = 16
	ObjectSpace = 20
	ObjectLane  = 24
	ObjectWrite = 28
	ObjectBytes = 32
)

// Sizes of what the code generator lays out itself: the registers that it saves when code leaves to go on later, and
// what lane-by-lane code works with.
const (
	SavedBytes   = 2240
	ScratchBytes = 1024
)

// Offsets in a frame. The Thread regions begin at FrameBody, and the spill slots follow them.
const (
	FrameResume    = 0  // where the group goes on in the next phase
	FrameMask      = 8  // uint32: its lanes that exist; not in code for groups of which all exist
	FrameIndex     = 16 // uint32: its number in the threadgroup
	FramePositions = 24 // address of its lanes' positions
	FrameYield     = 32 // where the group goes on if it has given up its turn, else 0
	FrameBody      = 64
)

// MaxThreads is the most threads a threadgroup has.
const MaxThreads = 1024

// BuiltinSlots gives each builtin its first slot of 4 bytes at Builtins. Positions of lanes are not here.
var BuiltinSlots = map[kir.Mode]int{
	kir.ThreadgroupPositionInGrid: 0, kir.ThreadsPerThreadgroup: 3, kir.DispatchThreadsPerThreadgroup: 6,
	kir.ThreadgroupsPerGrid: 9, kir.ThreadsPerGrid: 12, kir.SimdgroupsPerThreadgroup: 15,
	kir.DispatchSimdgroupsPerThreadgroup: 16, kir.QuadgroupsPerThreadgroup: 17,
}

// SlotOrigin is the slot of the position in the grid of the threadgroup's first thread (three components).
const SlotOrigin = 18

// Layout is where things are in the block of a kernel's threadgroups, for one way of compiling it. Offsets are those in
// the block unless said.
type Layout struct {
	Lanes       int // that run together
	Objects     int // the table of objects: object i is at Objects + i*ObjectBytes
	NumObjects  int // its entries, null included
	Save        int // registers, when the code leaves to go on later
	Scratch     int
	Positions   int // in the threadgroup: uint32 x[Lanes], y[Lanes], z[Lanes] for each group of lanes
	Threadgroup int // memory of the threadgroup: Regions first (RegionOffset), then the parameters' as the launch says

	RegionOffset []int // by region: of a Threadgroup one, from Threadgroup on; of a Thread one, in the frame
	RegionLane   []int // by region: Object.Lane of a Thread one
	RegionStep   []int // by region: Object.Step of a Thread one: Lanes if it is interleaved, else 1

	ThreadgroupBytes int // of the Threadgroup regions
	Spills           int // offset in the frame of the spill slots, after the Thread regions
	FrameBytes       int // of a frame: a multiple of 64
}

// NewLayout places what the threadgroups of a kernel need, if so many of its lanes run together. The spill slots are
// still to come: FrameBytes is not set.
func NewLayout(k *kir.Kernel, info *lanes.Info, together int) *Layout {
	l := &Layout{Lanes: together, Objects: headerBytes, NumObjects: 1 + len(k.Params) + len(k.Regions)}
	l.Save = Align(l.Objects+l.NumObjects*ObjectBytes, 64)
	l.Scratch = l.Save + SavedBytes
	l.Positions = l.Scratch + ScratchBytes
	groups := (MaxThreads + together - 1) / together
	l.Threadgroup = l.Positions + groups*3*4*together
	n := len(k.Regions)
	l.RegionOffset, l.RegionStep, l.RegionLane = make([]int, n), make([]int, n), make([]int, n)
	regionLayout(k, info, l)
	l.Spills = FrameBody
	for i, r := range k.Regions {
		switch r.Space {
		case kir.Threadgroup:
			l.ThreadgroupBytes = Align(l.ThreadgroupBytes, max(r.Align, 16))
			l.RegionOffset[i] = l.ThreadgroupBytes
			l.ThreadgroupBytes += r.Size
		case kir.Thread:
			l.Spills = Align(l.Spills, 64)
			l.RegionOffset[i] = l.Spills
			if l.RegionLane[i] != 0 && l.RegionStep[i] == 1 {
				l.Spills += l.RegionLane[i] * together
			} else {
				l.Spills += r.Size * together
			}
		}
	}
	l.ThreadgroupBytes = Align(l.ThreadgroupBytes, 16)
	l.Spills = Align(l.Spills, 64)
	return l
}

// Align returns n rounded up to a multiple of a power of two.
func Align(n, to int) int { return (n + to - 1) &^ (to - 1) }

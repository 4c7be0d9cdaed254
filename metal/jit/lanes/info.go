// Package lanes prepares an optimised kernel for processors with vector units: Analyse finds out what every value looks
// like across the lanes of a SIMD-group and how every access touches memory. It knows no processor.
package lanes

import "github.com/mlxlua/mlxlua/metal/kir"

// Kind is how a value differs between the lanes that run together.
type Kind uint8

// The kinds, from the most to the least known.
const (
	Uniform Kind = iota // the same in every active lane
	Based               // an integer or pointer: a uniform base plus a constant of the lane
	Varying
)

// MaxLanes is the largest number of lanes that run together.
const MaxLanes = kir.Lanes

// Pattern is what is known of a value across lanes.
type Pattern struct {
	Kind Kind
	// Offsets, if Based: lane l's value is base + Offsets[l], wrapped to the type's width. Offsets[0] need not
	// be 0 but the smallest one is, so that the base is the smallest value if nothing wraps. Shared, never changed.
	Offsets *[MaxLanes]int32
	// Align: the value (the base, if Based) is a multiple of this power of two; at least 1. For pointers it
	// is that of the offset in the object.
	Align uint32
}

// Access is how a Load, Store or atomic touches memory.
type Access struct {
	Size   int // bytes of an element
	Object int // the object: 1+index of Params, or 1+len(Params)+index of Regions; 0: known at run time only
	Mode   AccessMode
	// The address in bytes, relative to the object: the sum of Terms (uniform I64 values or pointers into Object) and Disp
	// and, by Mode, lane offsets. A Term may be Based (AccessOffsets): its base is meant, its offsets are in Offsets.
	// For AccessDynamic all this is unset and the lanes of the pointer operand are the addresses: offsets in Object, or
	// full 64-bit pointers if Object is 0. Otherwise the pointer operand itself need not be in a register, but its lanes
	// can be had by repeating the pure operations between it and Terms, Bases and Index.
	Terms []*kir.Instr
	Disp  int64
	// Bases: further uniform terms: Scale times a 64-bit value, or (AccessUniform, AccessOffsets) times the zero- or
	// sign-extended base of a 32-bit one. Offsets: what lane l adds, in bytes (nil for AccessUniform), the smallest is 0.
	Bases   []Scaled
	Offsets *[MaxLanes]int32
	Span    int64 // the largest of Offsets
	// Index (AccessGather): lane l adds Scale times the extended 32-bit Index.
	Index Scaled
}

// Scaled is Scale * extend(Value): Value is an integer, extended to 64 bits by its own type. If it is Based and has up
// to 32 bits, its base is meant, and the access is only as described while no lane's value wraps: base + [0, Span] must
// stay within the type; otherwise the access has to be done lane by lane from the pointer operand.
type Scaled struct {
	Value *kir.Instr
	Scale int64
	Span  int64 // the largest offset if Based, 0 if uniform or of 64 bits
}

// AccessMode tells the ways to touch memory apart.
type AccessMode uint8

// The ways.
const (
	AccessUniform AccessMode = iota // every lane at one address
	AccessOffsets                   // a uniform address plus constant offsets of the lanes
	AccessGather                    // a uniform address plus a scaled 32-bit index
	AccessDynamic                   // 64-bit offsets (or full pointers, if Object is 0) in the lanes
)

// Info is what Analyse found. Slices of instructions are indexed by Instr.ID.
type Info struct {
	Group    int // lanes that run together
	Patterns []Pattern
	// Object is the object a pointer points into, as in Access; 0 if it is known at run time only. Pointers whose object
	// is known are represented by their offset alone.
	Object []int
	// NeedBase and NeedVec say how a value is used: as a scalar (the value if Uniform, the base if Based), as lanes.
	// A value may need neither (its users take it apart) or both.
	NeedBase, NeedVec []bool
	// Bias: the base of a Based value, and a Uniform integer or pointer made of Based values, is the operation on
	// the operands' bases (on the value where an operand is Uniform) plus Bias. It is 0 but for things like 31 - lane,
	// where the smallest lane is not lane 0.
	Bias []int32
	// Bits: an integer has at most so many significant ones, zero-extended.
	Bits []uint8
	// Divergent: of an If: lanes may part here; of a Loop or BlockOp: lanes may leave (or continue) it at different
	// times; of a Break, Continue or Return: not all lanes that run there need be all that entered its target (the
	// kernel, for a Return).
	Divergent []bool
	// Masked, of a VarSet: lanes that are not active must keep the variable's value.
	Masked []bool
	// Alias, of a VarGet: while its value is in use the variable is not set, so no copy is needed.
	Alias  []bool
	Access []*Access // of Load, Store, AtomicLoad, AtomicStore, AtomicRMW, AtomicCAS

	VarPatterns []Pattern // by variable
	VarObjects  []int     // of pointer variables: as Object
	// VarInit: the variable may be read before it is set, and must be zero at entry.
	VarInit []bool

	// Bounded, of a Loop: it ends after at most this many rounds whatever the data, 0 if that is not known.
	Bounded []int
	// Cost, of a Loop: roughly how many instructions one round executes, inner loops counted once.
	Cost []int
	// Barriers reports whether the kernel has a Barrier; Crossing whether lanes exchange anything (Reduce, Scan, Shuffle,
	// Ballot, BroadcastFirst, SimdBarrier): if not, fewer than 32 lanes may run together. Waits reports whether it has a
	// loop that another threadgroup may have to end (a loop with an atomic or a device load in its condition).
	Barriers, Crossing, Waits bool
}

// InTurns reports whether the groups of lanes of a threadgroup take turns, each with a frame of its own: at barriers,
// and where one may wait for what another one does.
func (i *Info) InTurns() bool { return i.Barriers || i.Waits }

// WriteOnly reports whether a kernel writes the buffer of a parameter and never reads it.
func WriteOnly(p kir.Param) bool { return p.Space == kir.Device && p.Write && !p.Read && !p.Atomic }

// Geometry is what is known of a launch when code is made. It decides what thread positions look like.
type Geometry struct {
	// Row: every group of lanes lies in one row of the threadgroup: its threads' y and z are uniform and x is consecutive.
	// That holds where a threadgroup's width is a multiple of Group, or all of its threads are one row.
	Row bool
	// Aligned: also, the first thread's x in the grid is a multiple of Group in every threadgroup: the width that was
	// asked for is a multiple of Group, or there is one threadgroup along x. Used with Row only.
	Aligned bool
	// Full: threadgroups have a multiple of Group threads, so that no group of lanes begins with some missing.
	Full bool
	// Wide: whole SIMD-groups run together though nothing crosses lanes.
	Wide bool
	// Pair, if it is not 0: the kernel was made by Pair for this, and runs for every other SIMD-group.
	Pair PairBy
}

// Package kir is the kernel IR: the one form between the Metal Shading Language front end and everything that
// executes kernels (interp and jit) or prints them (ptx). It is structured (no goto), typed, scalar, and free of
// undefined behaviour: package kir's semantics table (semantics.go) says what every operation yields for every operand.
//
// The execution model is one SIMD-group of 32 lanes under a mask. A kernel's body is written for one lane ("thread").
// Control flow is structured as in WebAssembly: If, Block and Loop hold Blocks; Break leaves an enclosing Block or
// Loop, Continue restarts an enclosing Loop. Lanes that part at an If meet again at its end: every structured
// instruction's end is a convergence point. Convergent operations (SIMD reductions, shuffles, ballots, barriers) act
// on the lanes that are active at that point.
//
// kir has no calls (front ends inline; Metal forbids recursion), no aggregates and no vectors: a vector is
// its scalars, a structure is its fields. Memory that is addressed lives in Regions and in the buffers behind Params.
package kir

// Type is the type of a value. Memory holds the same types; a Bool takes one byte (0 or 1), a pointer eight.
type Type uint8

// The types. Pointers carry their address space; see Instr for what a pointer is.
const (
	Void Type = iota
	Bool
	I8
	U8
	I16
	U16
	I32
	U32
	I64
	U64
	F16
	BF16
	F32
	F64
	PtrDevice      // into a device buffer (read and write)
	PtrConstant    // into a constant buffer or a program-scope constant table (read only)
	PtrThreadgroup // into threadgroup memory
	PtrThread      // into the lane's own memory
	numTypes
)

// Space is an address space.
type Space uint8

// The address spaces.
const (
	Device Space = iota
	Constant
	Threadgroup
	Thread
)

// Pos is a place in the source: File indexes Module.Files, Line and Col count from 1. The zero Pos is unknown.
type Pos struct {
	File      uint16
	Line, Col uint32
}

// Module is one compiled source: its kernels and the names that positions refer to.
type Module struct {
	Kernels []*Kernel
	Files   []string // names given by #line or by the caller: "source", "header", "prelude", ...
}

// Kernel is one entry point.
type Kernel struct {
	Name       string
	Params     []Param
	Vars       []Var    // scalar mutable variables of a lane, zero at entry
	Regions    []Region // addressed memory
	Body       *Block
	MaxThreads int // max_total_threads_per_threadgroup, 0 if the kernel does not say
	// Threads is the size that every threadgroup must be launched with (required_threads_per_threadgroup), zeros if the
	// kernel does not say.
	Threads [3]int
	// Refused says why no pipeline can be made of the kernel, though its text is right: it exceeds a limit.
	// nil: one can.
	Refused error
	// NumInstrs is one more than the largest Instr.ID: executors keep results in arrays of this size.
	NumInstrs int
}

// Param is a buffer that the caller binds, or dynamic threadgroup memory. Read, Write and Atomic are reflection: what
// the kernel may do to it (conservative: a pointer whose origin is lost counts for every parameter of its space).
type Param struct {
	Name  string
	Index int   // [[buffer(n)]], or [[threadgroup(n)]] if Space is Threadgroup
	Space Space // Device, Constant, or Threadgroup (dynamic memory, its length set at dispatch)
	Elem  Type  // the element type that messages count indices in; U8 for structures
	// ElemSize is the size in bytes of an element (of the whole structure for structures).
	ElemSize int
	// MinBytes is the least length a binding must have: the structure's size for a reference parameter, else 0.
	MinBytes            int
	Read, Write, Atomic bool
	// ReadOnly says that the source declares it const: a write there is a fault, through whatever pointer. Loads are
	// allowed, atomic ones too.
	ReadOnly bool
	Part     bool // as Region.Part, of its elements
}

// Var is a scalar mutable variable; it has no address.
type Var struct {
	Name string
	Type Type
	// Unset says that the source gives it no value at entry: under validation, nothing may depend on it before it is
	// set. Part says that it is one of the scalars of a structure or vector: those may be copied while some are unset.
	Unset, Part bool
}

// Region is addressed memory of a fixed size: one per lane (Thread), one per threadgroup (Threadgroup), or one for all
// (Constant, with its bytes in Data). Thread and Threadgroup regions are uninitialised at entry: executors fill them
// with zero, a validating one reports reads before writes. A Thread region declared inside a loop keeps its bytes
// between iterations.
type Region struct {
	Name        string
	Space       Space
	Size, Align int
	Elem        Type // the scalar type of its elements, U8 for mixtures
	ElemSize    int  // bytes of what messages count indices in; 0: a mixture, whose bytes they count
	Part        bool // as Var.Part: some scalars of it may be set
	Data        []byte
	Pos         Pos
}

// Block is a sequence of instructions. A value is usable from its definition to the end of the Block that defines it,
// nested Blocks included.
type Block struct {
	Instrs []*Instr
}

// Instr is one instruction, and the value it yields (Type Void: none).
//
// A pointer is 64 bits wide: the high 16 bits name the memory object within its space (Params count from 1 in their
// order;
// Regions follow: object 1+len(Params)+i is Regions[i]), the low 48 bits are a signed byte offset. Null is 0.
// Loads and stores whose bytes are not inside the object, and stores to a ReadOnly Param, fail the dispatch with the
// object's name, the index and Pos.
// Two pointers compare by their 64 bits; PtrDiff of pointers into different objects subtracts their low 48 bits.
type Instr struct {
	Op   Op
	Type Type
	Mode Mode // operation of Reduce, Scan, Atomic*; builtin of Builtin; flags of Barrier; comparison needs none
	ID   int  // dense, unique in the kernel; also given to instructions without a result
	// Imm: Const: the bits; Builtin: the component 0..2; VarGet, VarSet: index in Vars; ParamAddr: index in Params;
	// RegionAddr: index in Regions; PtrAdd: constant byte offset; MatMulAcc: the element, 0 or 1; other convergent
	// operations: the group's lanes, 32 or 4.
	Imm    uint64
	Args   []*Instr
	Body   *Block // If: then; Block, Loop: the body
	Else   *Block // If only, may be nil
	Target *Instr // Break: the enclosing Block or Loop to leave; Continue: the enclosing Loop to restart
	Pos    Pos
}

// Package metal is the device model: Device, Buffer and its pool, the Library cache, Pipeline, Encoder with hazards,
// CommandBuffer with retention and asynchronous completion. It owns what must never go wrong (identity, bindings,
// lifetimes, hazards) once, for every back end; a back end is a Driver.
package metal

import (
	"context"
	"time"
)

// Driver is a back end: processors that compile MSL and execute command buffers. Its methods may be called from any
// goroutine. A Driver keeps no caches and counts no references: Device does.
type Driver interface {
	// Info describes the device; it never changes.
	Info() Info
	// Alloc returns n > 0 bytes of zeroed memory, aligned to 16 KiB or more, outside the Go heap.
	Alloc(n int64) (Memory, error)
	// Free returns memory that Alloc gave and that no pending command buffer uses.
	Free(Memory)
	// Read copies the bytes of mem from offset on to dst, which it fills before it returns. No pending command buffer
	// writes them. It is called where Memory.Host is nil.
	Read(dst []byte, mem Memory, offset int64) error
	// Write copies src to mem from offset on. It has read src when it returns, and command buffers that are submitted
	// later see the bytes, on any queue. No pending command buffer uses them. It is called where Memory.Host is nil.
	Write(mem Memory, offset int64, src []byte) error
	// Compile turns MSL text into a module. A text with errors gives an error that lists all of them, but for those of
	// kernels that the driver makes only when they are asked for: see Module.Kernel.
	Compile(ctx context.Context, src Source) (Module, error)
	// Submit starts the commands of cb, which must not change any more, and returns. When they have run, or have failed,
	// the driver calls done exactly once, from any goroutine, with how that went. Command buffers of one queue run in the
	// order of their submission, also after one that failed; those of different queues may overlap, but for those in
	// cb.Behind: cb begins when these have ended, however they did. A driver whose Info.Stops is not StopsNever runs
	// nothing of cb then, as if that was stopped, if cb.Missed says that one of them was. What a command is to do, and
	// when it is not to run, is data (Command, cb.Stop): the driver calls no function of the device model's before done
	// but these, and under validation cb.Check, right before each command, if Info.TracksWrites.
	Submit(queue int, cb *CommandBuffer, done func(Result))
	// Close waits for submitted work and frees everything.
	Close() error
}

// Info describes a device.
type Info struct {
	Name    string // for people: "AMD EPYC 9B45, 2 threads"
	Kind    string // for people: "cpu", "metal" or "cuda"
	Version string // driver and toolchain: part of every library key
	// ID names the hardware among all of this system: "cpu", "cuda:1". Two drivers of one ID run on the same hardware.
	ID string
	// Index numbers the devices of one kind from 0.
	Index int
	// Host says that kernels run on the host's processors.
	Host bool
	// GPU says that lanes load 16 bytes each by one instruction, and that many SIMD-groups wait for memory while others
	// compute: ops choose kernels made for that, some of which add up in an order of their own.
	GPU bool
	// Faults says what becomes of a kernel's access out of bounds.
	Faults Faults
	// Stops says where a command buffer ends early once its Stop is true.
	Stops Stops
	// Skips says that the device leaves out commands whose Unless is not 0, and knows CmdGate. No CmdCall has one.
	Skips bool
	// Float64 says that kernels may use double (Source.Options.Float64).
	Float64 bool
	// PairDots says that kernels may call __metal_pair_dot, and that it takes no longer than one fma.
	PairDots bool
	// Lanes is how many lanes of a SIMD-group one instruction computes.
	Lanes int
	// TracksWrites says that kernels of validated command buffers keep Range.Written of what they are bound to.
	TracksWrites bool
	// Threads is how many of its execution units can run threadgroups at once: the most of a Threader.
	Threads int
	// Simds is how many SIMD-groups one of those keeps at once: some compute while others wait for memory. 0: one.
	Simds int
	// Cache is the bytes of fast memory that one of those has for itself, such as a processor's second-level cache: what
	// is made to be read again soon is cut to fit. 0: the driver cannot tell.
	Cache int64
	// Memory is the bytes the device can hold: the smaller of the RAM and any limit put on the process.
	Memory int64
	Limits Limits
	Pace   Pace
}

// Pace is how work is best divided for a device.
type Pace struct {
	// Commands is how many commands a command buffer has when it is handed over; First of an evaluation's first and Idle
	// of later ones where the device has nothing to do.
	Commands, First, Idle int
	// Bytes is how many a command buffer writes when it is handed over, and IdleBytes where the device has nothing to do:
	// writing as much takes longer than recording the next commands.
	Bytes, IdleBytes int64
	// Pending is how many command buffers of one queue are handed over before the recorder waits; Least of those that
	// have more than PendingBytes of fresh memory among them.
	Pending, Least int
	PendingBytes   int64
}

// DefaultPace suits processors: memory that is used again soon is in their caches, and needs no new pages.
var DefaultPace = Pace{
	Commands: 64, First: 16, Idle: 32, Bytes: 64 << 20, IdleBytes: 512 << 10,
	Pending: 16, Least: 3, PendingBytes: 16 << 20,
}

// Threader is the capability of drivers that run kernels on as many threads of the host as they are told.
type Threader interface {
	// SetThreads says on how many, one or more, from the next command on.
	SetThreads(n int)
}

// BandwidthMeter is the capability of drivers that know how many bytes a second their device copies.
type BandwidthMeter interface {
	CopyBandwidth() float64
}

// Faults says what becomes of a kernel's access out of bounds.
type Faults uint8

// The kinds of faults.
const (
	FaultsUnchecked Faults = iota // nobody notices: it reads or writes somebody's memory
	FaultsPlaced                  // it does not happen: an error names kernel, buffer, index and line
)

// Stops says where a command buffer ends early.
type Stops uint8

// Where it does.
const (
	StopsNever   Stops = iota // nowhere: only command buffers that the driver does not have yet are kept from it
	StopsBetween              // before a command, if that is not within a Unit
	StopsMidway               // there, and while a kernel runs that is in no Unit
)

// Result is how a command buffer ended. docs/architecture.md says in section 8 what each way means for arrays.
type Result struct {
	// Err is why none of its results counts: the device is lost, or the driver has a fault.
	Err error
	// Failed are commands that have failed; the others ran nevertheless.
	Failed []*CommandError
	// Ran says which commands ran to their end, where the command buffer was stopped; nil: all, but for those that were
	// skipped since their Unless was not 0, of which the driver need not tell.
	Ran []bool
	// Midway is the command that was stopped while it ran, or -1, where Ran is not nil.
	Midway int
	// Took is how long each command ran; nil where nobody asked (CommandBuffer.Measures) or the driver cannot tell.
	Took []time.Duration
	// Start is when the first command began; zero: the driver cannot tell.
	Start time.Time
}

// Limits are Metal's, on every driver, so that what runs here runs there.
type Limits struct {
	Buffers           int // buffer arguments of a kernel: 31
	InlineBytes       int // bytes of a SetBytes argument: 4096
	ThreadgroupMemory int // bytes: 32768
	ThreadsPerGroup   int // 1024
	ConstantAlignment int // alignment of a binding's offset in bytes: 4, or the element's size if that is less
	MaxBufferBytes    int64
	SimdWidth         int // 32
}

// MetalLimits are the limits of Apple's GPUs that mlxlua enforces everywhere.
func MetalLimits(maxBuffer int64) Limits {
	return Limits{
		Buffers: 31, InlineBytes: 4096, ThreadgroupMemory: 32768, ThreadsPerGroup: 1024,
		ConstantAlignment: 4, MaxBufferBytes: maxBuffer, SimdWidth: 32,
	}
}

// Memory is a driver's allocation of Size bytes. Host is the host's view of them, which stays valid until Free; nil
// where the host cannot address them: then Driver.Read and Driver.Write copy them. Handle is the driver's own.
type Memory struct {
	Size   int64
	Host   []byte
	Handle any
}

// Setter is the capability of drivers that set bytes without a copy from the host.
type Setter interface {
	// Set makes n bytes of mem from offset on v, under the conditions of Driver.Write.
	Set(mem Memory, offset, n int64, v byte) error
}

// PeerCopier is the capability of drivers that copy from another device's memory without a detour by the host.
type PeerCopier interface {
	// CopyPeer copies n bytes of from, which belongs to the driver other, to mem, under the conditions of Driver.Read and
	// Driver.Write. It returns false, and has done nothing, where the two devices have no such way.
	CopyPeer(mem Memory, offset int64, other Driver, from Memory, fromOffset, n int64) (bool, error)
}

// MathMode is the accuracy that a kernel asks of its math functions and arithmetic, as Metal's option of that name.
type MathMode uint8

// The math modes. Fast is Metal's default for user kernels; here it permits nothing that would change infinities or
// NaNs.
const (
	MathFast MathMode = iota
	MathRelaxed
	MathSafe
)

// Source is MSL text to compile. Only Text and Options decide what it means; Label is for messages.
type Source struct {
	Label   string
	Text    string
	Options Options
}

// Options are compile options; they are comparable and part of the library key.
type Options struct {
	MathMode MathMode
	Float64  bool // accept double; set by built-in kernels only
	// Portable promises the dialect of built-in kernels: SIMD-groups of 32, SIMD-group functions only where all lanes
	// of a group arrive together, no textures, no waiting for other threadgroups. A driver may rely on it.
	Portable bool
	// Constants are the values of the text's function constants, as ConstantsText writes them.
	Constants string
}

// Module is a compiled source, made by a driver. Its methods may be called from any goroutine.
type Module interface {
	// Names lists the entry points.
	Names() []string
	// Kernel says what the driver found out about an entry point, by its index in Names. It is called once for each one
	// that somebody asks for, the first time: what an entry point costs by itself belongs here, as a library may have
	// thousands. The error is what is wrong with its text.
	Kernel(i int) (Reflection, error)
}

// Reflection says what the driver found out about a kernel.
type Reflection struct {
	Name       string
	Params     []ParamInfo
	MaxThreads int   // per threadgroup
	Threads    Size  // what a threadgroup must be, if the kernel says so; else zeros
	StaticTG   int64 // bytes of threadgroup memory it declares itself
	Refused    error // why no pipeline can be made of the kernel, which is no fault of the others; nil if one can
}

// ParamInfo describes a buffer parameter, or dynamic threadgroup memory (Threadgroup).
type ParamInfo struct {
	Name        string
	Index       int // of [[buffer(n)]] or [[threadgroup(n)]]
	Threadgroup bool
	Constant    bool
	ElemSize    int
	MinBytes    int64 // least length of a binding
	Read        bool
	Write       bool
	Atomic      bool
	// ReadOnly says that the source declares it const: the kernel cannot write there, through no pointer. It is an error
	// of the text where that is seen, and else a fault.
	ReadOnly bool
}

// Size is a three-dimensional extent in threads.
type Size struct{ X, Y, Z int }

// Count is X*Y*Z.
func (s Size) Count() int { return s.X * s.Y * s.Z }

// Command is one entry of a command buffer: pure data, for drivers to execute and tests to inspect.
type Command struct {
	Kind CommandKind
	// Label names it in messages and traces: the op, and the script line where there is one.
	Label string

	// Unit is not 0 for a command that cannot be repeated, since it overwrites what it, or a later command of that Unit,
	// reads. The commands of a Unit follow each other; once the first has begun all of them run to their end.
	Unit int
	// Unless is a word: where that is not 0 when the command's turn comes, the command is skipped. No buffer: it is not.
	Unless Range
	// Fault is a word that becomes 1 if the command fails. No buffer: none does.
	Fault Range

	// Dispatch.
	Pipeline    *Pipeline
	Args        []Arg // in the order of the pipeline's Params
	Grid        Size  // threads, not threadgroups
	Threadgroup Size  // at most Grid in each dimension

	// Copy: Bytes from Src to Dst. Fill: Bytes of Dst become Pattern, repeated; Undefined says that they are not to be
	// read then. Gate: the word Dst becomes 1 if one of Words is not 0, or the command is to be skipped; else 0.
	Src, Dst  Range
	Words     []Range
	Pattern   []byte
	Undefined bool

	Call *Call // of a library's routine
}

// CommandKind says what a Command does.
type CommandKind uint8

// The kinds. Commands between two barriers may run at once and in any order.
const (
	CmdDispatch CommandKind = iota
	CmdCopy
	CmdFill
	CmdBarrier
	CmdGate
	CmdCall
)

// Arg is the binding of one parameter: a range of a buffer, inline bytes, or a length of threadgroup memory.
type Arg struct {
	Buffer  Range
	Bytes   []byte
	TGBytes int
}

// Range is Bytes bytes of Buf from Offset on.
type Range struct {
	Buf    *Buffer
	Offset int64
	Bytes  int64
}

// Timing is when a command buffer ran.
type Timing struct{ Start, End time.Time }

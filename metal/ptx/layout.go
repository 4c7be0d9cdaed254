package ptx

import (
	"encoding/binary"
	"fmt"

	"github.com/mlxlua/mlxlua/metal/kir"
)

const (
	maxThreads = 1024
	sharedName = "shared_memory"
	// maxArgs is how many bytes of parameters a kernel may have, on every target.
	maxArgs = 4352
)

// Where a launch finds what in its parameter, which is one array of bytes, little-endian.
const (
	argControl     = 0   // u64: address of the Control block
	argStop        = 8   // u64: of the stop words, or 0
	argSkips       = 16  // 2 u64: of words that keep the launch from running, or 0
	argFaultWord   = 32  // u64: of a word that a fault sets, or 0
	argNotice      = 40  // u64: of a word that a fault and a stop set, or 0
	argTag         = 48  // u32: whatever the driver wants to find in a Fault, and in the stop words
	argShared      = 52  // u32: bytes of dynamic shared memory
	argGrid        = 56  // 3 u32: threads
	argThreadgroup = 68  // 3 u32: threads of a whole threadgroup
	argGroups      = 80  // 3 u32: threadgroups
	argOrigin      = 92  // 3 u32: the position of the launch's first threadgroup
	argObjects     = 112 // by Param: u64 address, u64 length
	argObject      = 16  // bytes of each
)

// Layout is what a driver needs to know of a text to launch it.
//
// A dispatch is one launch, or several with other Origins where the grid has more threadgroups than a launch may have
// blocks (2^31-1, 65535, 65535). Block, Blocks and Shared give its sizes, Arguments.Bytes the one parameter.
type Layout struct {
	// Bytes is the size of the parameter.
	Bytes int
	// Objects says where each Param is, by Param.
	Objects []Object
	// RegionBytes is the size of the kernel's own threadgroup memory; that of Threadgroup Params follows.
	RegionBytes int
	// ThreadBytes is the size of a thread's own arrays.
	ThreadBytes int
	// MaxThreads is the largest threadgroup that the text can be launched with.
	MaxThreads int
}

// Object is what a Param is to a launch.
type Object struct {
	// Inline is how many bytes of the parameter the Param has, from Offset on; 0: it has an address and a length. Less
	// may be given, never more.
	Inline, Offset int
	// Align is what the address must be a multiple of.
	Align int
	// Shared says that its memory is threadgroup memory.
	Shared bool
}

// Block is the number of threads of a block for a threadgroup: whole warps.
func Block(threadgroup [3]int) int {
	return (threadgroup[0]*threadgroup[1]*threadgroup[2] + kir.Lanes - 1) / kir.Lanes * kir.Lanes
}

// Blocks is the number of threadgroups of a grid in each dimension.
func Blocks(grid, threadgroup [3]int) (n [3]int) {
	for d := range n {
		n[d] = (grid[d] + threadgroup[d] - 1) / threadgroup[d]
	}
	return n
}

// Arguments is what one launch is given.
type Arguments struct {
	Control uint64 // address of a Control block
	// Stop is the address of two words, 0: the launch is not to be stopped. Once the first is not 0, threads end where
	// they ask, in loops that are not known to be short; they leave the Tag in the second.
	Stop uint64
	// Skips are addresses of words, 0: none. Where one is not 0 when the launch begins, nothing of it runs. Nobody but
	// earlier launches, and the launch itself, may change them.
	Skips [2]uint64
	// FaultWord is the address of a word that a fault makes 1, and Notice that of one that a fault or a stop makes 1,
	// which may be the host's; 0: none.
	FaultWord, Notice uint64
	Tag               uint32
	Grid, Threadgroup [3]int
	Origin            [3]int // the position of the first threadgroup
	// Addresses and Lengths are those of buffers, by Param. Memory must reach to multiples of 4 bytes before and after
	// it. Threadgroup Params have a length only, Inline ones neither.
	Addresses, Lengths []uint64
	Inline             [][]byte // by Param; nil where it is a buffer
}

// Shared returns how many bytes of dynamic shared memory a launch needs.
func (l *Layout) Shared(a *Arguments) int {
	n := l.RegionBytes
	for i, o := range l.Objects {
		if o.Shared {
			n += padded(int(a.Lengths[i]))
		}
	}
	return n
}

// Bytes returns the parameter of a launch; the error says what the text was not printed for.
func (a *Arguments) Bytes(l *Layout) ([]byte, error) {
	b := make([]byte, l.Bytes)
	word := binary.LittleEndian
	for i, address := range []uint64{a.Control, a.Stop, a.Skips[0], a.Skips[1], a.FaultWord, a.Notice} {
		word.PutUint64(b[argControl+8*i:], address)
	}
	word.PutUint32(b[argTag:], a.Tag)
	word.PutUint32(b[argShared:], uint32(l.Shared(a)))
	groups := Blocks(a.Grid, a.Threadgroup)
	for d := range 3 {
		word.PutUint32(b[argGrid+4*d:], uint32(a.Grid[d]))
		word.PutUint32(b[argThreadgroup+4*d:], uint32(a.Threadgroup[d]))
		word.PutUint32(b[argGroups+4*d:], uint32(groups[d]))
		word.PutUint32(b[argOrigin+4*d:], uint32(a.Origin[d]))
	}
	shared := l.RegionBytes
	for i, o := range l.Objects {
		at := b[argObjects+argObject*i:]
		switch {
		case o.Shared:
			word.PutUint64(at, uint64(shared))
			word.PutUint64(at[8:], a.Lengths[i])
			shared += padded(int(a.Lengths[i]))
		case o.Inline > 0:
			if len(a.Inline[i]) > o.Inline {
				return nil, fmt.Errorf("[ptx] parameter %d: %d inline bytes, the text has room for %d", i,
					len(a.Inline[i]), o.Inline)
			}
			copy(b[o.Offset:], a.Inline[i])
			word.PutUint64(at[8:], uint64(len(a.Inline[i])))
		default:
			if a.Addresses[i]%uint64(o.Align) != 0 {
				return nil, fmt.Errorf("[ptx] parameter %d: address %#x is no multiple of %d", i, a.Addresses[i],
					o.Align)
			}
			word.PutUint64(at, a.Addresses[i])
			word.PutUint64(at[8:], a.Lengths[i])
		}
	}
	return b, nil
}

// ControlBytes is the size of a Control block: device memory that is zero before the launch, aligned to 8. Its first
// word a fault sets: once it is not zero, threads end where they ask, so that nobody waits for a thread that has ended.
// The rest is the record of the first fault, whichever thread it came from.
const ControlBytes = 24

const (
	controlHalt    = 0  // u32
	controlTaken   = 4  // u32: 1 if there was a fault
	controlTag     = 8  // u32: its launch's
	controlSite    = 12 // u32
	controlPointer = 16 // u64
)

// Fault is an access that did not happen: it would have been outside its object, or not aligned. Its thread ended
// there.
type Fault struct {
	Tag     uint32 // of the launch
	Site    int    // index in Text.Sites
	Pointer uint64 // kir's, which names object and offset
}

// FaultIn returns the fault that a Control block holds.
func FaultIn(control []byte) (f Fault, ok bool) {
	word := binary.LittleEndian
	if word.Uint32(control[controlTaken:]) == 0 {
		return f, false
	}
	return Fault{Tag: word.Uint32(control[controlTag:]), Site: int(word.Uint32(control[controlSite:])),
		Pointer: word.Uint64(control[controlPointer:])}, true
}

func padded(n int) int { return (n + 15) &^ 15 }

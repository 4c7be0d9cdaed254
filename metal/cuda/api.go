package cuda

import (
	"errors"
	"fmt"
)

// address is one of the card's memory.
type address = uint64

// Handles of libcuda's.
type (
	stream   uintptr
	event    uintptr
	program  uintptr // a loaded text
	function uintptr // a kernel of one
	graph    uintptr // launches that are given to a stream together
)

// pinned is memory of the host that stays where it is: copies between it and the card need no detour, and kernels may
// address it.
type pinned struct {
	bytes   []byte
	address address // for kernels
}

// properties are a card's.
type properties struct {
	name           string
	version        int // of the interface that the driver offers: 13000
	sm             int // compute capability times ten
	processors     int
	resident       int   // threads that a processor keeps at once
	memory         int64 // bytes in all
	memoryClock    int   // kHz; 0: not known
	memoryBusWidth int   // bits
}

// api is what the driver needs of libcuda, for one card. Its methods may be called from any goroutine, but between
// Enter and Leave. What is done on a stream is done in order; nothing waits for it but where that is said.
type api interface {
	// Enter keeps the goroutine on a thread that has the card's context, until Leave.
	Enter() error
	Leave()

	Properties() properties
	// Free is the bytes of the card's memory that nobody has, in any process.
	Free() (int64, error)
	Alloc(n int64) (address, error) // a multiple of 256
	Release(address) error
	Pin(n int) (pinned, error)
	Unpin(pinned) error

	// Load compiles a text, at a level of effort from 0 to 4.
	Load(text string, level int) (program, error)
	Unload(program) error
	Function(p program, name string) (function, error)
	// AllowShared permits launches with so many bytes of shared memory, where they are more than 48 KiB.
	AllowShared(f function, n int) error

	NewStream() (stream, error)
	EndStream(stream) error
	Launch(s stream, l *kernelLaunch) error
	// NewGraph makes a graph of launches, each of which begins when the one before has ended. Change has it launch
	// something else in a place from then on.
	NewGraph(all []kernelLaunch) (graph, error)
	Change(g graph, i int, l *kernelLaunch) error
	LaunchGraph(s stream, g graph) error
	EndGraph(graph) error
	CopyIn(s stream, to address, from []byte) error  // from pinned memory
	CopyOut(s stream, to []byte, from address) error // to pinned memory
	Copy(s stream, to, from address, n int64) error
	// CopyPeer copies from another card's memory. It returns false, and has done nothing, if other is of another kind.
	CopyPeer(s stream, to address, other api, from address, n int64) (bool, error)
	Fill8(s stream, to address, n int64, v byte) error
	Fill32(s stream, to address, words int64, v uint32) error

	NewEvent(timed bool) (event, error)
	EndEvent(event) error
	Record(event, stream) error
	Wait(stream, event) error // the stream waits
	Done(event) (bool, error)
	Synchronize(event) error                    // the caller waits, without work for a processor
	Between(first, last event) (float64, error) // milliseconds; both are timed and over

	// Products opens the library of matrix products; it is nil, or an error, where there is none.
	Products() (products, error)

	// Close gives the card back. Nothing runs on it.
	Close() error
}

// kernelLaunch is a launch of a kernel.
type kernelLaunch struct {
	f             function
	blocks        [3]int
	block, shared int
	parameter     []byte
}

// callError is what a call of libcuda's failed with.
type callError struct {
	call string
	code int
	text string
}

// Error names the call, its code and what that means.
func (e *callError) Error() string {
	return fmt.Sprintf("%s: %s (CUDA error %d)", e.call, e.text, e.code)
}

// Codes of libcuda's.
const (
	codeNoMemory = 2
	// codeFirstFatal to codeLastFatal are what kernels do wrong that no check foresaw: after one of them no call of this
	// process reaches the card again.
	codeFirstFatal = 700
	codeLastFatal  = 720
	codeECC        = 214
	codeLostLink   = 220
	codeTooLarge   = 701 // a launch that needs too much: nothing has happened
	codeUnknown    = 999
)

// isNoMemory reports whether the card has too little memory left.
func isNoMemory(err error) bool {
	var e *callError
	return errors.As(err, &e) && e.code == codeNoMemory
}

// isFinal reports whether no call will reach the card again.
func isFinal(err error) bool {
	var e *callError
	if !errors.As(err, &e) {
		return false
	}
	switch e.code {
	case codeTooLarge, 704, 705, 708, 712, 713: // wrong calls
		return false
	case codeECC, codeLostLink, codeUnknown:
		return true
	}
	return e.code >= codeFirstFatal && e.code <= codeLastFatal
}

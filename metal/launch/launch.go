// Package launch is what every executor of kir kernels shares: what one dispatch is given, what follows from that
// before anything runs, how far it has come, threadgroups that take turns, and what a kernel did wrong. Executors are
// metal/interp, metal/jit and drivers of GPUs, which read faults from a record that their kernels write.
package launch

import "sync/atomic"

// Launch is one dispatch of a kernel.
type Launch struct {
	Grid        [3]int // threads, not threadgroups; nothing runs if one is 0
	Threadgroup [3]int // at least 1 each, at most 1024 in all; threadgroups at the grid's edge are smaller
	// Buffers holds the bound bytes of each Param, in the order of Kernel.Params; nil for Threadgroup ones.
	Buffers [][]byte
	// Fixed says which of Buffers nobody writes while the launch runs, because their bytes were given with it, in the
	// order of Buffers; nil: none are known to be so.
	Fixed []bool
	// ThreadgroupBytes is the length of each Threadgroup Param's memory, in the order of Kernel.Params; nil if
	// there are none.
	ThreadgroupBytes []int
	// Interrupt, if not nil, stops the launch soon after it becomes true; it then ends with ErrInterrupted.
	Interrupt *atomic.Bool
	// Written says under Validate of each byte of a buffer whether it was ever written: reads of others are faults, and
	// writes are noted there. It is in the order of Buffers; nil, or an entry of nil, watches nothing.
	Written [][]bool
	// Validate makes reads of uninitialised memory, races and barriers that not all threads reach faults. One
	// worker runs it.
	Validate bool
}

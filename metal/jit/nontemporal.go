package jit

import (
	"github.com/mlxlua/mlxlua/metal/jit/lanes"
	"github.com/mlxlua/mlxlua/metal/kir"
	"github.com/mlxlua/mlxlua/metal/launch"
)

// Launches that write much more than the cache holds store past it: nothing is read only to be overwritten, and
// nothing useful makes room.

const (
	// nonTemporalBytes is how much a launch must write; less is what the next launch may still find in the cache.
	nonTemporalBytes = 8 << 20
	// threadBytes is how much of that a thread is thought to write at most: a launch of few threads changes a small
	// part of a large buffer.
	threadBytes = 128
)

// writesMuch reports whether a launch seems to write so much that it should do it past the cache.
func writesMuch(k *kir.Kernel, l *launch.Launch) bool {
	most := threadBytes
	for _, n := range l.Grid {
		most = min(most*min(n, 1<<31), 1<<31)
	}
	total := 0
	for i, p := range k.Params {
		if lanes.WriteOnly(p) {
			total += min(len(l.Buffers[i]), most)
		}
	}
	return total >= nonTemporalBytes
}

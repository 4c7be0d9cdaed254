package interp

import (
	"fmt"

	"github.com/mlxlua/mlxlua/metal/kir"
)

// Threadgroups that wait for each other are suspended in turn, each with its memory, and all must have begun before any
// can go on. Others only take long: of those few should be in memory.
const (
	// aliveBytes is what suspended threadgroups of a worker may take before it matters whether any of them ends.
	aliveBytes = 64 << 20
	// maxAlive is what they may take in all.
	maxAlive = 1 << 30
	// idleTurns is how many turns of all of them may go by without an end before they are taken for waiting.
	idleTurns = 2
	// maxIdle is how many may when no more can begin.
	maxIdle = 4096
)

// AliveQuota is how many threadgroups a worker should begin in its next turn, that has alive suspended ones of so many
// bytes each, of which none has ended in the last idle turns. As many as there are, so that the work until all have
// begun is in proportion to their number, whether they wait or not; but 1 where that would fill the memory with
// threadgroups that only take long, and 0 where it is full.
func AliveQuota(alive, each, idle int) int {
	switch {
	case alive*each > maxAlive:
		return 0
	case alive*each > aliveBytes && idle%idleTurns != idleTurns-1:
		return 1
	}
	return max(1, min(alive, maxAlive/max(1, each)))
}

// StuckAlive returns the error of a launch whose suspended threadgroups fill the memory and do not end, nil if that is
// not so.
func StuckAlive(k *kir.Kernel, alive, each, idle int) error {
	if idle <= maxIdle || alive*each <= maxAlive {
		return nil
	}
	return fmt.Errorf(
		"[%s] too many threadgroups wait for others: %d are suspended, of %d bytes each; the limit is %d MiB",
		k.Name, alive, each, maxAlive>>20)
}

package launch

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

// Turns is a worker of a launch whose threadgroups may wait for each other; G is a threadgroup in execution.
type Turns[G any] interface {
	// Begin readies a threadgroup and gives it its first turn. It reports whether the threadgroup ended in it, and
	// whether the worker can go on.
	Begin(threadgroup int64) (g G, ended, ok bool)
	// Turn gives a suspended threadgroup another turn, after so many turns of all in which none ended. It reports
	// whether the threadgroup ended.
	Turn(g G, idle int) (ended bool)
	// Index is which threadgroup it is, and Bytes what it takes in memory.
	Index(g G) int64
	Bytes(g G) int
	// Yield lets other goroutines run, after a turn of all: what threadgroups wait for may be another worker's.
	Yield()
}

// TakeTurns executes threadgroups until none is left that no other worker has taken, or the launch is over.
// Threadgroups that wait for others are suspended, and others take turns with them.
func TakeTurns[G any](p *Progress, k *kir.Kernel, w Turns[G]) {
	var alive []G
	idle := 0 // turns of all of them in which none ended
	for !p.Over(0) {
		// A turn for new threadgroups: as many may be suspended as are so already, so that threadgroups that
		// all wait for each other are soon all begun, and a few long ones do not fill the memory.
		quota := 1
		if n := len(alive); n > 0 {
			each := w.Bytes(alive[0])
			quota = aliveQuota(n, each, idle)
			if err := stuckAlive(k, n, each, idle); err != nil {
				p.Fail(err, 0)
				return
			}
		}
		for quota > 0 {
			i, n := p.Take(1)
			if n == 0 {
				break
			}
			g, ended, ok := w.Begin(i)
			if !ok {
				return
			}
			if !ended {
				alive = append(alive, g)
				quota--
			}
		}
		if len(alive) == 0 {
			if p.Left() == 0 {
				return
			}
			continue
		}
		rest := alive[:0]
		for _, g := range alive {
			if p.Over(w.Index(g)) || !w.Turn(g, idle) {
				rest = append(rest, g)
			}
		}
		if idle++; len(rest) < len(alive) {
			idle = 0
		}
		alive = rest
		w.Yield()
	}
}

// aliveQuota returns how many threadgroups a worker should begin in its next turn. The worker has alive suspended ones
// of so many bytes each, and none of them has ended in the last idle turns. It begins as many as it has, so that the
// work until all have begun is in proportion to their number, whether they wait or not; but 1 where that would fill the
// memory with threadgroups that only take long, and 0 where the memory is full.
func aliveQuota(alive, each, idle int) int {
	switch {
	case alive*each > maxAlive:
		return 0
	case alive*each > aliveBytes && idle%idleTurns != idleTurns-1:
		return 1
	}
	return max(1, min(alive, maxAlive/max(1, each)))
}

// stuckAlive returns the error of a launch whose suspended threadgroups fill the memory and do not end, else nil.
func stuckAlive(k *kir.Kernel, alive, each, idle int) error {
	if idle <= maxIdle || alive*each <= maxAlive {
		return nil
	}
	return fmt.Errorf(
		"[%s] too many threadgroups wait for others: %d are suspended, of %d bytes each; the limit is %d MiB",
		k.Name, alive, each, maxAlive>>20)
}

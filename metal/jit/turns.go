package jit

import (
	"runtime/debug"
	"slices"
	"time"

	"github.com/mlxlua/mlxlua/metal/launch"
)

// takeTurns executes threadgroups that may wait for each other.
func (r *Run) takeTurns() {
	w := &worker{run: r, share: share{processor: &goProcessor}}
	defer w.end(debug.SetPanicOnFault(true))
	launch.TakeTurns(&r.progress, r.exe.kernel, w)
}

// Begin implements launch.Turns.
func (w *worker) Begin(i int64) (g *group, ended, ok bool) {
	size, _ := w.run.segment(i, 1)
	if g = w.group(size); g == nil {
		return nil, false, false
	}
	g.begin(i, size, 1)
	if w.step(g, turnFuel) {
		return g, true, true
	}
	for n := range w.groups {
		if w.groups[n] == g {
			w.groups[n] = nil // its arena is its own until it ends
		}
	}
	w.alive = append(w.alive, g)
	return g, false, true
}

// Turn implements launch.Turns.
func (w *worker) Turn(g *group, idle int) (ended bool) {
	if !w.step(g, max(leastTurn, int64(turnFuel)>>min(idle, 8))) {
		return false
	}
	n := slices.Index(w.alive, g)
	w.alive = slices.Delete(w.alive, n, n+1)
	g.release()
	return true
}

// Index implements launch.Turns.
func (w *worker) Index(g *group) int64 { return g.index() }

// Bytes implements launch.Turns.
func (w *worker) Bytes(g *group) int { return len(g.mem) }

// Yield implements launch.Turns.
func (w *worker) Yield() {
	w.busy = time.Time{} // what the threadgroups wait for may be another worker's
	w.yield(time.Now(), 0)
}

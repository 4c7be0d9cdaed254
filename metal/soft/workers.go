package soft

import (
	"runtime"
	"sync"
	"sync/atomic"
	"time"
)

// workers are goroutines that help with tasks. Whoever starts a task works on it too, so that none waits for a worker.
// A worker without work looks out for some for a while before it sleeps: waking one takes longer than most tasks.
type workers struct {
	n       int
	changes atomic.Uint32 // grows when a task is opened: what idle workers watch
	wake    chan struct{} // one for each sleeper to be woken

	asleep atomic.Int32 // changed with mu held only
	busy   atomic.Int32 // command buffers in execution

	mu     sync.Mutex
	open   []*task
	closed bool
}

// task is work that goroutines may join until it is over. It may be run again once run has returned: what one who has
// left still does then is to wake somebody in vain.
type task struct {
	work    func()
	callAll func()        // has all workers help after all, where none was called: for work to call
	called  bool          // helpers were called
	wanted  int           // how many more may join; guarded by workers.mu
	joined  atomic.Int32  // those that have joined and not ended
	sleeps  atomic.Bool   // somebody sleeps until they have ended
	ended   chan struct{} // gets one then
}

// How long to look out for work, or for the end of what others do, before going to sleep: the longer time while a
// command buffer is in execution, of which the next commands come soon. Between the long kernels of a training step are
// some of a few us each, which one goroutine runs; whoever slept meanwhile would miss those of some 50 us behind them,
// as to be woken takes as long.
const (
	spinTime = 20 * time.Microsecond
	busySpin = 200 * time.Microsecond
)

func newWorkers(n int) *workers {
	w := &workers{n: n, wake: make(chan struct{}, n)}
	for range n {
		go w.serve()
	}
	return w
}

// spin waits until the condition holds, for a while, and reports whether it does. Other goroutines get their turns.
func (w *workers) spin(ready func() bool) bool {
	if ready() {
		return true
	}
	for start := time.Now(); ; runtime.Gosched() {
		if waited := time.Since(start); waited >= busySpin || waited >= spinTime && w.busy.Load() == 0 {
			break
		}
		for range 100 {
			if ready() {
				return true
			}
		}
	}
	return ready()
}

// serve is a worker's life.
func (w *workers) serve() {
	for {
		seen := w.changes.Load()
		if t := w.take(); t != nil {
			t.work()
			w.leave(t)
			continue
		}
		if w.spin(func() bool { return w.changes.Load() != seen }) {
			continue
		}
		w.mu.Lock()
		if w.closed {
			w.mu.Unlock()
			return
		}
		if w.changes.Load() != seen {
			w.mu.Unlock()
			continue
		}
		w.asleep.Add(1)
		w.mu.Unlock()
		<-w.wake
	}
}

// take joins a task that wants help, nil if there is none.
func (w *workers) take() *task {
	w.mu.Lock()
	defer w.mu.Unlock()
	for i, t := range w.open {
		if t.wanted > 0 {
			t.joined.Add(1)
			if t.wanted--; t.wanted == 0 {
				w.drop(i)
			}
			return t
		}
	}
	return nil
}

// drop takes a task off the list. The lock is held.
func (w *workers) drop(i int) {
	last := len(w.open) - 1
	w.open[i], w.open[last] = w.open[last], nil
	w.open = w.open[:last]
}

func (w *workers) leave(t *task) {
	if t.joined.Add(-1) > 0 || !t.sleeps.Load() {
		return
	}
	select {
	case t.ended <- struct{}{}:
	default: // another one has told
	}
}

// call asks for helpers: those who look out for work, and with wake those who sleep.
func (w *workers) call(t *task, helpers int, wake bool) {
	w.mu.Lock()
	t.wanted = helpers
	w.open = append(w.open, t)
	w.changes.Add(1)
	rouse := 0
	if wake {
		rouse = min(int(w.asleep.Load()), helpers)
		w.asleep.Add(int32(-rouse))
	}
	w.mu.Unlock()
	for range rouse {
		w.wake <- struct{}{}
	}
}

// end ends a task: nobody joins any more, and those who have joined have ended.
func (w *workers) end(t *task) {
	w.mu.Lock()
	for i := range w.open {
		if w.open[i] == t {
			w.drop(i)
			break
		}
	}
	w.mu.Unlock()
	if t.joined.Load() == 0 || w.spin(func() bool { return t.joined.Load() == 0 }) {
		return
	}
	t.sleeps.Store(true)
	for t.joined.Load() != 0 {
		<-t.ended
	}
	t.sleeps.Store(false)
}

// run calls the task's work here and on at most helpers workers at once, and returns when all these calls have. The
// first call must not return before everything is done or taken over by another call. Sleepers come only where wake
// says that the work is long: to wake them for less takes a processor from whoever has it, the script that builds the
// next graph, and they come too late. Work may find out that it is long after all, and call more.
func (w *workers) run(t *task, helpers int, wake bool) {
	helpers = min(helpers, w.n)
	if t.called = helpers > 0 && (wake || int(w.asleep.Load()) < w.n); t.called {
		w.call(t, helpers, wake)
	}
	t.work()
	if t.called {
		w.end(t)
	}
}

func (w *workers) newTask(work func()) *task {
	t := &task{work: work, ended: make(chan struct{}, 1)}
	t.callAll = func() {
		if w.n > 0 && !t.called {
			t.called = true
			w.call(t, w.n, true)
		}
	}
	return t
}

// close ends the workers once they have done what they began.
func (w *workers) close() {
	w.mu.Lock()
	defer w.mu.Unlock()
	w.closed = true
	w.changes.Add(1)
	for range w.asleep.Swap(0) {
		w.wake <- struct{}{}
	}
}

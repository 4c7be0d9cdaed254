package soft

import (
	"runtime"
	"slices"
	"sync"
	"sync/atomic"
	"time"

	"github.com/mlxlua/mlxlua/metal/jit/native"
)

// workers are goroutines that help with tasks. Whoever starts a task works on it too, so that none waits for a worker.
// A worker without work looks out for some for a while before it sleeps: waking one takes longer than most tasks.
//
// A launch of a few us must cost next to nothing, with many processors too. So nobody who looks out takes a lock: what
// there is to join is a list that changes with command buffers only, joining is one operation on one word of a task,
// and of those who sleep each wakes two others before it works.
type workers struct {
	n       atomic.Int32            // how many help at once: all that there are, or fewer
	changes atomic.Uint32           // grows when helpers are called: what idle workers watch
	tasks   atomic.Pointer[[]*task] // those that may be run; the list is replaced, with mu held, never changed
	looking atomic.Int32            // workers that look out for work
	// Of times, all as UnixNano or ns: until when others need the processors, when the last task ended that had helpers,
	// and how long to look out for the next one.
	crowded, last, patience atomic.Int64
	rouse                   atomic.Int32  // sleepers that are still to be woken
	wake                    chan struct{} // one for each sleeper that is

	mu     sync.Mutex
	asleep int
	closed bool
}

// task is work that goroutines may join until it is over. It may be run again once run has returned.
type task struct {
	work    func()
	callAll func() // has all workers help after all, where none was called: for work to call
	called  bool   // helpers were called
	// state says how many more may join, in units of seat, and how many have joined and not ended.
	state  atomic.Int64
	sleeps atomic.Bool   // somebody sleeps until they have ended
	ended  chan struct{} // gets one then
}

// seat is one that may join, in a task's state.
const seat = 1 << 32

// joined is how many have joined and not ended.
func (t *task) joined() int { return int(t.state.Load() & (seat - 1)) }

// join takes a seat, if there is one.
func (t *task) join() bool {
	for s := t.state.Load(); s >= seat; s = t.state.Load() {
		if t.state.CompareAndSwap(s, s-seat+1) {
			return true
		}
	}
	return false
}

// How long to look out for work, or for the end of what others do, before going to sleep.
const (
	// mostSpin is the longest time, and leastSpin what it is where work comes more seldom than that. In between it is
	// twice what lay between the last launches: to be woken takes as long as many a launch, and the processors of a
	// virtual machine that nobody uses have to be asked for at its host.
	leastSpin = 5 * time.Microsecond
	mostSpin  = 250 * time.Microsecond
	// lost is how long who looks out must have been away for the processor to be others' for crowdedTime, in which nobody
	// looks out for more than leastSpin.
	lost        = 40 * time.Microsecond
	crowdedTime = 50 * time.Millisecond
	// turnTime is how often one of those who look out gives other goroutines a turn. Giving one takes a lock of Go's
	// scheduler, so that each of many does it more seldom.
	turnTime = time.Microsecond
)

func newWorkers(n int) *workers {
	w := &workers{wake: make(chan struct{}, n)}
	w.tasks.Store(new([]*task))
	w.n.Store(int32(n))
	for range n {
		go w.serve()
	}
	return w
}

// open lets a task be run, and joined, until shut.
func (w *workers) open(t *task) {
	w.mu.Lock()
	defer w.mu.Unlock()
	list := append(slices.Clone(*w.tasks.Load()), t)
	w.tasks.Store(&list)
}

// shut ends what open began.
func (w *workers) shut(t *task) {
	w.mu.Lock()
	defer w.mu.Unlock()
	list := slices.DeleteFunc(slices.Clone(*w.tasks.Load()), func(o *task) bool { return o == t })
	w.tasks.Store(&list)
}

// spin waits until the condition holds, for that long at most, and reports whether it does. Other goroutines get their
// turns, and what else runs on the same core the processor's units. Where it finds that it was not running for some
// time, others need the processor: nobody waits like this for long then.
func (w *workers) spin(most time.Duration, ready func() bool) bool {
	if ready() {
		return true
	}
	start := time.Now()
	if start.UnixNano() < w.crowded.Load() {
		most = leastSpin
	}
	var last, turn time.Duration
	for {
		for range 8 {
			native.Pause()
			if ready() {
				return true
			}
		}
		waited := time.Since(start)
		switch {
		case waited-last > lost:
			w.crowded.Store(start.Add(waited + crowdedTime).UnixNano())
			return ready()
		case waited >= most:
			return ready()
		case waited >= turn:
			runtime.Gosched()
			waited = time.Since(start) // others of this program may have had a long turn
			turn = waited + time.Duration(1+w.looking.Load())*turnTime
		}
		last = waited
	}
}

// begins notes that helpers are wanted, and how long after the last time.
func (w *workers) begins() {
	most := time.Duration(w.patience.Load())
	switch gap := time.Duration(time.Now().UnixNano() - w.last.Load()); {
	case gap > mostSpin:
		most = max(most/2, leastSpin)
	default:
		most = min(max(2*gap, most-most/16), mostSpin)
	}
	w.patience.Store(int64(most))
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
		w.looking.Add(1)
		found := w.spin(time.Duration(w.patience.Load()), func() bool { return w.changes.Load() != seen })
		if w.looking.Add(-1); found {
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
		w.asleep++
		w.mu.Unlock()
		<-w.wake
		w.wakeSome()
	}
}

// take joins a task that wants help, nil if there is none.
func (w *workers) take() *task {
	for _, t := range *w.tasks.Load() {
		if t.join() {
			return t
		}
	}
	return nil
}

func (w *workers) leave(t *task) {
	if t.state.Add(-1)&(seat-1) > 0 || !t.sleeps.Load() {
		return
	}
	select {
	case t.ended <- struct{}{}:
	default: // another one has told
	}
}

// call asks for helpers: those who look out for work, and with wake those who sleep, as far as the others are too few.
func (w *workers) call(t *task, helpers int, wake bool) {
	t.state.Add(int64(helpers) * seat)
	w.changes.Add(1)
	if !wake {
		return
	}
	w.mu.Lock()
	n := min(w.asleep, max(helpers-int(w.looking.Load()), 0))
	w.asleep -= n
	w.mu.Unlock()
	w.rouse.Add(int32(n))
	w.wakeSome()
}

// wakeSome wakes two of the sleepers that are to be woken.
func (w *workers) wakeSome() {
	for woken := 0; woken < 2; {
		n := w.rouse.Load()
		if n == 0 {
			return
		}
		if w.rouse.CompareAndSwap(n, n-1) {
			w.wake <- struct{}{}
			woken++
		}
	}
}

// end ends a task: nobody joins any more, and those who have joined have ended.
func (w *workers) end(t *task) {
	for s := t.state.Load(); s >= seat; s = t.state.Load() {
		t.state.CompareAndSwap(s, s&(seat-1))
	}
	if w.spin(mostSpin, func() bool { return t.joined() == 0 }) {
		return
	}
	t.sleeps.Store(true)
	for t.joined() != 0 {
		<-t.ended
	}
	t.sleeps.Store(false)
}

// run calls the task's work here and on at most helpers workers at once, and returns when all these calls have. The
// first call must not return before everything is done or taken over by another call. Sleepers come only where wake
// says that the work is long: to wake them for less takes a processor from whoever has it, the script that builds the
// next graph, and they come too late. Work may find out that it is long after all, and call more. The task is open.
func (w *workers) run(t *task, helpers int, wake bool) {
	helpers = min(helpers, int(w.n.Load()))
	if t.called = helpers > 0; t.called {
		w.begins()
		w.call(t, helpers, wake)
	}
	t.work()
	if t.called {
		w.end(t)
		w.last.Store(time.Now().UnixNano())
	}
}

func (w *workers) newTask(work func()) *task {
	t := &task{work: work, ended: make(chan struct{}, 1)}
	t.callAll = func() {
		if n := int(w.n.Load()); n > 0 && !t.called {
			t.called = true
			w.call(t, n, true)
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
	for ; w.asleep > 0; w.asleep-- {
		w.wake <- struct{}{}
	}
}

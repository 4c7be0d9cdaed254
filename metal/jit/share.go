package jit

import (
	"runtime"
	"runtime/metrics"
	"sync"
	"sync/atomic"
	"time"
)

// processor is what Go's scheduler and collector do for workers. Tests have one of their own.
type processor struct {
	now     func() time.Time
	queued  func() bool // some goroutine waits for a processor
	gosched func()
	sleep   func(time.Duration)
	marking func() bool // the garbage collector marks
	asleep  atomic.Int32
}

var goProcessor = processor{now: time.Now, queued: queued, gosched: runtime.Gosched, sleep: time.Sleep,
	marking: goCollector.marking}

// share is how a worker shares its processor with other goroutines. Machine code cannot be preempted: without it they
// wait for the scheduler's slices of 10 ms wherever kernels have all processors.
type share struct {
	*processor
	busy  time.Time     // no giving way before
	look  time.Time     // nor before this if nobody is queued
	awake time.Time     // no sleeping before
	away  time.Duration // time in which others had the processor
}

const (
	// lookCost is the part of its time that a worker spends on giving way while nobody is queued. Timers, the network
	// and the collector's workers become known only when the scheduler runs. That takes 0.2 us, but 20 us where another
	// processor is idle, which is woken to look for work.
	lookCost = 100
	// mostSleep is how long a worker sleeps for the collector before it goes on for as long.
	mostSleep = 4 * time.Millisecond
	// sleepers is how many may do so at once: on more than three processors the collector has some of its own.
	sleepers = 2
)

// yield lets other goroutines run, at the end of a call that took that long, and returns the time. Who was away for
// long goes on for as long, so that a kernel has its share beside goroutines that never give way.
func (s *share) yield(now time.Time, took time.Duration) time.Time {
	back := now
	if !now.Before(s.busy) {
		back = s.giveWay(now)
	}
	// The collector shows by taking a turn, by the pause it begins with, or by another worker that sleeps.
	if back.Sub(now) > soon || took > 2*callTime || s.asleep.Load() > 0 {
		back = s.rest(back)
	}
	s.away += back.Sub(now)
	return back
}

// giveWay gives way until nobody is queued any more, or others have had as long as a call. The collector gives way
// after each span of memory it has swept, which takes 1 us: if the next span waited for a call each time, a heap of a
// few MB would take 10 ms.
func (s *share) giveWay(now time.Time) (back time.Time) {
	back = now
	for s.queued() && back.Sub(now) < callTime {
		s.gosched()
		back = s.now()
	}
	if back == now && !now.Before(s.look) {
		s.gosched()
		back = s.now()
		s.look = back.Add(lookCost * back.Sub(now))
	}
	if away := back.Sub(now); away > long { // somebody had a turn, queued or not
		s.busy, s.look = back.Add(away), time.Time{}
	}
	return back
}

// rest sleeps while the collector marks. It marks on processors that nobody wants, and takes only a quarter of others:
// a worker that sleeps loses what it would lose in the end, and the collection is over several times sooner.
func (s *share) rest(now time.Time) (back time.Time) {
	if now.Before(s.awake) || !s.marking() {
		return now
	}
	defer s.asleep.Add(-1)
	if s.asleep.Add(1) > sleepers {
		return now
	}
	for back = now; back.Sub(now) < mostSleep; {
		s.sleep(callTime)
		if back = s.now(); !s.marking() {
			break
		}
	}
	s.awake = back.Add(back.Sub(now))
	return back
}

var queuedSamples = sync.Pool{New: func() any {
	return &[]metrics.Sample{{Name: "/sched/goroutines/runnable:goroutines"}}
}}

// reading is set while somebody reads a metric: Go lets one at a time, and has the others sleep.
var reading atomic.Bool

// queued takes nobody to be queued where another worker is about to find out.
func queued() bool {
	if !reading.CompareAndSwap(false, true) {
		return false
	}
	defer reading.Store(false)
	s := queuedSamples.Get().(*[]metrics.Sample)
	defer queuedSamples.Put(s)
	metrics.Read(*s)
	return number((*s)[0].Value, 1) > 0
}

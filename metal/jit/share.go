package jit

import (
	"runtime"
	"sync/atomic"
	"time"
)

// processor is what Go's scheduler and collector do for workers. Tests have one of their own.
type processor struct {
	now     func() time.Time
	gosched func()
	sleep   func(time.Duration)
	marking func() bool // the garbage collector marks
	asleep  atomic.Int32
}

var goProcessor = processor{now: time.Now, gosched: runtime.Gosched, sleep: time.Sleep, marking: goCollector.marking}

// share is how a worker shares its processor with other goroutines. Machine code cannot be preempted: without it they
// wait for the scheduler's slices of 10 ms wherever kernels have all processors.
type share struct {
	*processor
	busy  time.Time     // no giving way before
	awake time.Time     // no sleeping before
	away  time.Duration // time in which others had the processor
}

const (
	// turns is how often a worker gives way between two calls while others want the processor. The collector gives
	// way after each span of memory it has swept, which takes 1 us: if the next span waited for a call each time, a
	// heap of a few MB would take 10 ms.
	turns = 16
	// nobody is more than giving way takes if nobody wants the processor.
	nobody = 500 * time.Nanosecond
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
	// The collector shows by taking a turn, or by the pause it begins with.
	if back.Sub(now) >= nobody || took > 2*callTime {
		back = s.rest(back)
	}
	s.away += back.Sub(now)
	return back
}

func (s *share) giveWay(now time.Time) (back time.Time) {
	back = now
	for range turns {
		began := back
		s.gosched()
		if back = s.now(); back.Sub(began) < nobody || back.Sub(now) >= callTime {
			break
		}
	}
	if away := back.Sub(now); away > long {
		s.busy = back.Add(away)
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

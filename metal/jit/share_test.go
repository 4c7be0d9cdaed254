package jit

import (
	"runtime"
	"runtime/debug"
	"runtime/metrics"
	"sync/atomic"
	"testing"
	"time"

	"github.com/mlxlua/mlxlua/internal/serial"
	"github.com/stretchr/testify/require"
)

// fakeProcessor has a clock that only calls, others' turns and sleeping move.
type fakeProcessor struct {
	processor
	clock         time.Time
	want          int           // how many turns others want
	other         time.Duration // what others do in one
	look          time.Duration // what a turn takes that nobody wants
	marks         time.Duration // how much longer the collector marks, if somebody sleeps
	turns, asleep int
}

func newFakeProcessor() *fakeProcessor {
	f := &fakeProcessor{clock: time.Unix(1, 0), look: 200 * time.Nanosecond}
	f.now = func() time.Time { return f.clock }
	f.queued = func() bool { return f.want > 0 }
	f.gosched = func() {
		f.turns++
		if f.want > 0 {
			f.clock = f.clock.Add(f.other)
			f.want--
		} else {
			f.clock = f.clock.Add(f.look)
		}
	}
	f.sleep = func(d time.Duration) { f.asleep++; f.clock = f.clock.Add(d); f.marks -= d }
	f.marking = func() bool { return f.marks > 0 }
	return f
}

// call is a call of machine code and what follows it: how often others had a turn, and how often the worker slept.
func (f *fakeProcessor) call(s *share, took time.Duration) (turns, asleep int) {
	f.clock = f.clock.Add(took)
	f.turns, f.asleep = 0, 0
	s.yield(f.clock, took)
	return f.turns, f.asleep
}

// calls is how often others had a turn after each of n calls.
func (f *fakeProcessor) calls(s *share, n int) (turns []int) {
	for range n {
		t, _ := f.call(s, callTime)
		turns = append(turns, t)
	}
	return turns
}

// TestGivesWay: to all who are queued, but not for longer than a call; if others take long the worker goes on for as
// long before it gives way again.
func TestGivesWay(t *testing.T) {
	t.Parallel()
	f := newFakeProcessor()
	s := &share{processor: &f.processor}
	f.want, f.other = 15, time.Microsecond // the collector sweeps a span in each
	require.Equal(t, []int{15, 1}, f.calls(s, 2))
	require.Equal(t, 15*f.other+f.look, s.away)
	f.want, f.other = 90, 2*time.Microsecond
	require.Equal(t, []int{50, 40, 1}, f.calls(s, 3))
	f.want, f.other = 3, 3*callTime
	require.Equal(t, []int{1, 0, 0, 1, 0, 0, 1, 0}, f.calls(s, 8))
}

// TestLooksSeldom: while nobody is queued giving way takes a hundredth of the time, whatever it costs.
func TestLooksSeldom(t *testing.T) {
	t.Parallel()
	f := newFakeProcessor()
	s := &share{processor: &f.processor}
	require.Equal(t, []int{1, 1, 1}, f.calls(s, 3))
	f.look = 4 * time.Microsecond
	require.Equal(t, []int{1, 0, 0, 0, 1, 0, 0, 0, 1}, f.calls(s, 9))
	f.want, f.other = 1, time.Microsecond
	require.Equal(t, []int{1, 0, 0, 1}, f.calls(s, 4)) // who is queued does not wait
	f.clock, f.look = f.clock.Add(time.Second), 2*callTime
	require.Equal(t, []int{1, 0, 1, 0, 1}, f.calls(s, 5)) // who was not, but had a turn for long, may come again
}

// TestSleepsForTheCollector: as long as it marks but not longer than mostSleep, and only then as long again; whether it
// does is asked only where others had a turn, a call took long or another worker sleeps.
func TestSleepsForTheCollector(t *testing.T) {
	t.Parallel()
	f := newFakeProcessor()
	s := &share{processor: &f.processor}
	f.marks = 10 * callTime
	_, asleep := f.call(s, callTime)
	require.Zero(t, asleep)
	f.processor.asleep.Add(1)
	_, asleep = f.call(s, callTime)
	require.Equal(t, 10, asleep)
	f.processor.asleep.Add(-1)
	f.marks = callTime
	for range 3 {
		_, asleep = f.call(s, 3*callTime)
		require.Zero(t, asleep)
	}
	_, asleep = f.call(s, 3*callTime)
	require.Equal(t, 1, asleep)
	f.marks, f.other = time.Hour, 10*time.Microsecond
	for range 3 {
		f.clock, f.want = f.clock.Add(mostSleep), 1
		_, asleep = f.call(s, callTime)
		require.Equal(t, int(mostSleep/callTime), asleep)
		for range 20 {
			f.want = 1
			_, asleep = f.call(s, callTime)
			require.Zero(t, asleep)
		}
	}
}

// TestFewSleep: of many workers only some sleep at once.
func TestFewSleep(t *testing.T) {
	t.Parallel()
	f := newFakeProcessor()
	depth, deepest := 0, 0
	f.sleep = func(d time.Duration) {
		f.clock = f.clock.Add(d)
		if depth++; depth <= 2*sleepers { // another worker meanwhile
			(&share{processor: &f.processor}).yield(f.clock, 3*callTime)
			deepest = max(deepest, depth)
		}
		f.marks, depth = f.marks-d, depth-1
	}
	f.marks = callTime
	(&share{processor: &f.processor}).yield(f.clock, 3*callTime)
	require.Equal(t, sleepers, deepest)
	require.Zero(t, f.processor.asleep.Load())
}

// TestQueueIsSeen: goroutines that wait for a processor are known, and when there are none.
func TestQueueIsSeen(t *testing.T) {
	serial.Because(t, "it measures how processors are shared")
	defer runtime.GOMAXPROCS(runtime.GOMAXPROCS(1))
	for end := time.Now().Add(time.Minute); queued(); runtime.Gosched() { // those of other tests
		require.True(t, time.Now().Before(end))
	}
	var ran atomic.Bool
	go ran.Store(true)
	for !ran.Load() { // one of the runtime's may have its turn first
		require.True(t, queued())
		runtime.Gosched()
	}
}

// TestNumbers: a metric that this Go does not have is no panic.
func TestNumbers(t *testing.T) {
	serial.Because(t, "it measures how processors are shared")
	s := []metrics.Sample{{Name: "/sched/gomaxprocs:threads"}, {Name: "/none:none"}}
	metrics.Read(s)
	require.Equal(t, uint64(runtime.GOMAXPROCS(0)), number(s[0].Value, 7))
	require.Equal(t, uint64(7), number(s[1].Value, 7))
}

// TestMarkingIsSeen: what the collector does is known while it marks, and over when a collection has returned. Go's own
// statistics are the witness.
func TestMarkingIsSeen(t *testing.T) {
	serial.Because(t, "it measures how processors are shared")
	type node struct {
		next *node
		_    [6]uint64
	}
	var all *node
	for range 300_000 {
		all = &node{next: all}
	}
	var c collector
	c.watch()
	seen := false
	for end := time.Now().Add(time.Minute); !seen; {
		require.True(t, time.Now().Before(end), "the collector is never seen marking")
		var s, s2 debug.GCStats
		debug.ReadGCStats(&s)
		before := count()
		done := make(chan struct{})
		go func() {
			defer close(done)
			runtime.GC()
		}()
		for over := false; !over; runtime.Gosched() {
			seen = c.marking() || seen
			select {
			case <-done:
				over = true
			default:
			}
		}
		after := count()
		require.False(t, c.marking())
		debug.ReadGCStats(&s2)
		require.GreaterOrEqual(t, before.collections, uint64(s.NumGC))
		require.LessOrEqual(t, after.collections, uint64(s2.NumGC))
		require.Greater(t, after.collections, before.collections)
		// Another collection may have been half over before.
		require.GreaterOrEqual(t, after.pauses+1, before.pauses+2*(after.collections-before.collections))
	}
	runtime.KeepAlive(all)
}

package jit

import (
	"runtime"
	"runtime/debug"
	"testing"
	"time"

	"github.com/stretchr/testify/require"
)

// fakeProcessor has a clock that only others' turns and sleeping move.
type fakeProcessor struct {
	processor
	clock         time.Time
	other         time.Duration // what others do in a turn
	marks         time.Duration // how much longer the collector marks, if somebody sleeps
	turns, asleep int
}

func newFakeProcessor() *fakeProcessor {
	f := &fakeProcessor{clock: time.Unix(1, 0), other: 100 * time.Nanosecond}
	f.now = func() time.Time { return f.clock }
	f.gosched = func() { f.turns++; f.clock = f.clock.Add(f.other) }
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

// TestGivesWay: once for each call if nobody wants the processor, often if others want it for a moment each time, and
// if they want it for long the worker goes on for as long before it gives way again.
func TestGivesWay(t *testing.T) {
	f := newFakeProcessor()
	s := &share{processor: &f.processor}
	for range 3 {
		n, asleep := f.call(s, callTime)
		require.Equal(t, [2]int{1, 0}, [2]int{n, asleep})
	}
	f.other = 2 * time.Microsecond // the collector sweeps a span
	for range 3 {
		n, _ := f.call(s, callTime)
		require.Equal(t, turns, n)
	}
	require.Equal(t, 3*100*time.Nanosecond+3*turns*f.other, s.away)
	f.other = 3 * callTime
	var all []int
	for range 8 {
		n, _ := f.call(s, callTime)
		all = append(all, n)
	}
	require.Equal(t, []int{1, 0, 0, 1, 0, 0, 1, 0}, all)
}

// TestSleepsForTheCollector: as long as it marks but not longer than mostSleep, and only then as long again; whether it
// does is asked only where somebody had a turn or a call took long.
func TestSleepsForTheCollector(t *testing.T) {
	f := newFakeProcessor()
	s := &share{processor: &f.processor}
	f.marks = 10 * callTime
	_, asleep := f.call(s, callTime)
	require.Zero(t, asleep)
	_, asleep = f.call(s, 3*callTime)
	require.Equal(t, 10, asleep)
	f.marks, f.other = callTime, callTime
	for range 4 { // a call and a turn of the others each
		_, asleep = f.call(s, callTime)
		require.Zero(t, asleep)
	}
	f.clock = f.clock.Add(2 * callTime)
	_, asleep = f.call(s, callTime)
	require.Equal(t, 1, asleep)
	f.marks, f.other = time.Hour, time.Microsecond
	for range 3 {
		f.clock = f.clock.Add(mostSleep)
		_, asleep = f.call(s, callTime)
		require.Equal(t, int(mostSleep/callTime), asleep)
		for range 20 {
			_, asleep = f.call(s, callTime)
			require.Zero(t, asleep)
		}
	}
}

// TestFewSleep: of many workers only some sleep at once.
func TestFewSleep(t *testing.T) {
	f := newFakeProcessor()
	f.other = time.Microsecond
	depth, deepest := 0, 0
	f.sleep = func(d time.Duration) {
		f.clock = f.clock.Add(d)
		if depth++; depth <= 2*sleepers { // another worker meanwhile
			(&share{processor: &f.processor}).yield(f.clock, callTime)
			deepest = max(deepest, depth)
		}
		f.marks, depth = f.marks-d, depth-1
	}
	f.marks = callTime
	(&share{processor: &f.processor}).yield(f.clock, callTime)
	require.Equal(t, sleepers, deepest)
	require.Zero(t, f.processor.asleep.Load())
}

// TestMarkingIsSeen: what the collector does is known while it marks, and over when a collection has returned. Go's own
// statistics are the witness.
func TestMarkingIsSeen(t *testing.T) {
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

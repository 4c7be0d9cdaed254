package soft

import (
	"runtime"
	"sync"
	"sync/atomic"
	"testing"
	"time"

	"github.com/stretchr/testify/require"
)

// TestWorkersShareTasks: every piece is done once and before run returns, whoever does it and however many tasks
// there are.
func TestWorkersShareTasks(t *testing.T) {
	for _, n := range []int{0, 1, 3} {
		w := newWorkers(n)
		var all sync.WaitGroup
		for caller := range 4 {
			all.Go(func() {
				task := w.newTask(nil) // one for all rounds
				w.open(task)
				defer w.shut(task)
				for round := range 300 {
					var next, done atomic.Int64
					pieces := int64(1 + round%17)
					task.work = func() {
						for {
							i := next.Add(1)
							if i > pieces {
								return
							}
							if i == 3 && caller%3 == 0 && next.Load() == 3 {
								task.callAll()
							}
							done.Add(1)
						}
					}
					w.run(task, caller%3*2, round%2 == 0)
					if done.Load() != pieces {
						t.Errorf("%d of %d pieces are done", done.Load(), pieces)
					}
				}
			})
		}
		all.Wait()
		w.close()
	}
}

// TestWorkersHelp: a task whose calls wait for each other ends only if workers join it, also after they slept.
func TestWorkersHelp(t *testing.T) {
	w := newWorkers(2)
	defer w.close()
	for range 20 {
		var in sync.WaitGroup
		in.Add(3)
		var calls atomic.Int64
		task := w.newTask(func() {
			calls.Add(1)
			in.Done()
			in.Wait()
		})
		w.open(task)
		w.run(task, 2, true)
		w.shut(task)
		require.Equal(t, int64(3), calls.Load())
		for start := time.Now(); time.Since(start) < 2*mostSpin; { // long enough for them to fall asleep
		}
	}
}

// TestWorkersEnd: close ends those who sleep and those who look out.
func TestWorkersEnd(t *testing.T) {
	before := runtime.NumGoroutine()
	for range 50 {
		w := newWorkers(3)
		task := w.newTask(func() {})
		w.open(task)
		w.run(task, 3, true)
		w.shut(task)
		w.close()
	}
	for end := time.Now().Add(time.Minute); runtime.NumGoroutine() > before; runtime.Gosched() {
		require.True(t, time.Now().Before(end), "%d goroutines more than before", runtime.NumGoroutine()-before)
	}
}

// BenchmarkForkJoin is what sharing a task of two pieces costs.
func BenchmarkForkJoin(b *testing.B) {
	w := newWorkers(1)
	defer w.close()
	b.Run("empty", func(b *testing.B) {
		task := w.newTask(func() {})
		w.open(task)
		defer w.shut(task)
		for b.Loop() {
			w.run(task, 1, true)
		}
	})
	b.Run("both", func(b *testing.B) { // each waits until the other one is there
		best := time.Duration(1 << 62) // the mean says nothing where other processes have a processor
		for b.Loop() {
			var in atomic.Int32
			task := w.newTask(func() {
				in.Add(1)
				for in.Load() < 2 {
				}
			})
			w.open(task)
			start := time.Now()
			w.run(task, 1, true)
			best = min(best, time.Since(start))
			w.shut(task)
		}
		b.ReportMetric(float64(best.Nanoseconds()), "ns/best")
	})
}

package soft

import "sync"

// workers are goroutines that help with tasks. Whoever starts a task works on it too, so that none waits for a worker.
type workers struct {
	tasks chan *task
	n     int
}

// task is work that any number of goroutines may join until it is over.
type task struct {
	work   func()
	mu     sync.Mutex
	over   bool
	joined sync.WaitGroup
}

func newWorkers(n int) *workers {
	// Offers that no worker has taken yet wait here; more than these are dropped.
	w := &workers{tasks: make(chan *task, 4*n), n: n}
	for range n {
		go func() {
			for t := range w.tasks {
				t.join()
			}
		}()
	}
	return w
}

// join works on the task unless it is over.
func (t *task) join() {
	t.mu.Lock()
	if t.over {
		t.mu.Unlock()
		return
	}
	t.joined.Add(1)
	t.mu.Unlock()
	defer t.joined.Done()
	t.work()
}

// run calls work here and on at most helpers workers at once, and returns when all these calls have. The first call
// must not
// return before everything is done or taken over by another call.
func (w *workers) run(helpers int, work func()) {
	helpers = min(helpers, w.n)
	if helpers <= 0 {
		work()
		return
	}
	t := &task{work: work}
	for range helpers {
		select {
		case w.tasks <- t:
			continue
		default:
		}
		break
	}
	t.join()
	t.mu.Lock()
	t.over = true
	t.mu.Unlock()
	t.joined.Wait()
}

// close ends the workers once they have done what they began.
func (w *workers) close() { close(w.tasks) }

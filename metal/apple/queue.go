package apple

import (
	"context"
	"slices"

	"github.com/mlxlua/mlxlua/metal"
	"github.com/mlxlua/mlxlua/metal/apple/objc"
)

// depth is how many command buffers of a queue Metal has at once: one runs, and the next ones are ready. The others can
// still be kept from it.
const depth = 3

// queue is one of Metal's, and the command buffers that wait for their turn there. What it holds is guarded by the
// driver's mu, but for what one goroutine at a time uses that issues.
type queue struct {
	d         *Driver
	waiting   []*job
	running   []*job // Metal has them, in order
	advancing bool   // somebody issues
	again     bool   // and has to look once more
	watched   bool   // somebody waits for the first one that runs

	// Of who issues:
	object objc.Object
	failed bool // a command buffer failed: later ones may be ignored, so the next gets a queue of its own; guarded by mu
}

// job is a command buffer: its tag, so that those of other queues that come after it find it.
type job struct {
	q    *queue
	cb   *metal.CommandBuffer
	done func(metal.Result)

	// Guarded by the driver's mu:
	after     []*job // of other queues
	over      bool
	followers []*queue // to be looked at when it is over
	listens   bool     // its queue is looked at when it is stopped

	// Of who issues it, and then of who waits for it:
	void   bool // nothing of it was issued
	err    error
	parts  []part
	bytes  []objc.Object // buffers of its own
	failed []*metal.CommandError
}

// Submit hands a command buffer to its queue of Metal's, or has it wait for others.
func (d *Driver) Submit(n int, cb *metal.CommandBuffer, done func(metal.Result)) {
	d.mu.Lock()
	if d.closed {
		d.mu.Unlock()
		done(metal.Result{Err: errClosed})
		return
	}
	d.busy.Add(1)
	q := d.queues[n]
	if q == nil {
		q = &queue{d: d}
		d.queues[n] = q
	}
	j := &job{q: q, cb: cb, done: done}
	for _, o := range cb.Behind() {
		if o, ok := o.Tag().(*job); ok && !o.over {
			j.after = append(j.after, o)
		}
	}
	cb.SetTag(j)
	q.waiting = append(q.waiting, j)
	d.mu.Unlock()
	q.advance()
}

// advance issues what can be.
func (q *queue) advance() {
	d := q.d
	d.mu.Lock()
	defer d.mu.Unlock()
	if q.advancing {
		q.again = true
		return
	}
	q.advancing = true
	for q.again = true; q.again; {
		q.again = false
		for len(q.waiting) > 0 && q.room() && q.comes(q.waiting[0]) {
			j := q.waiting[0]
			q.waiting = slices.Delete(q.waiting, 0, 1)
			d.mu.Unlock()
			q.issue(j)
			d.mu.Lock()
			q.running = append(q.running, j)
			if !q.watched {
				q.watched = true
				go q.watch()
			}
		}
	}
	q.advancing = false
}

// room reports whether another job can be issued: not behind one that does not run, since later ones of its chain are
// interrupted when that is told, nor where Metal may ignore it. Called with mu held.
func (q *queue) room() bool {
	n := len(q.running)
	return n == 0 || n < depth && !q.running[n-1].void && !q.failed
}

// comes reports whether a job can be issued: what it comes after is over. One that is stopped need not wait. Called
// with mu held.
func (q *queue) comes(j *job) bool {
	if j.cb.Stop().Load() {
		return true
	}
	j.after = slices.DeleteFunc(j.after, func(o *job) bool { return o.over })
	for _, o := range j.after {
		if !slices.Contains(o.followers, q) {
			o.followers = append(o.followers, q)
		}
	}
	if len(j.after) > 0 && !j.listens {
		j.listens = true
		context.AfterFunc(j.cb.Context(), q.advance)
	}
	return len(j.after) == 0
}

// watch waits for what runs, in order, and tells how it ended, until nothing does.
func (q *queue) watch() {
	d := q.d
	for {
		d.mu.Lock()
		if len(q.running) == 0 {
			q.watched = false
			d.mu.Unlock()
			return
		}
		j := q.running[0]
		d.mu.Unlock()
		var r metal.Result
		d.with(func(c *objc.Caller) { r = j.result(c) })
		if r.Ran == nil {
			q.end(j, r.Err != nil)
			j.done(r)
		} else { // who comes after what did not run asks what became of it
			j.done(r)
			q.end(j, false)
		}
		q.advance()
		d.busy.Done()
	}
}

// end takes the first job off the list, and has those looked at that come after it.
func (q *queue) end(j *job, failed bool) {
	d := q.d
	d.mu.Lock()
	q.running = slices.Delete(q.running, 0, 1)
	q.failed = q.failed || failed
	j.over = true
	followers := j.followers
	j.followers = nil
	idle := len(q.running) == 0
	d.mu.Unlock()
	for _, o := range followers {
		o.advance()
	}
	if idle {
		q.advance()
	}
}

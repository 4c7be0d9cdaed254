package cuda

import (
	"context"
	"runtime"
	"slices"
	"time"

	"github.com/mlxlua/mlxlua/metal"
)

// depth is how many command buffers of a queue are on its stream at once: enough to keep the card busy. The others can
// still be stopped.
const depth = 4

// queue is a stream, and the command buffers that wait for their turn there. What it holds is guarded by the driver's
// mu, but for what one goroutine at a time uses that issues.
type queue struct {
	d         *Driver
	waiting   []*job
	running   []*job // on the stream, in order
	advancing bool   // somebody issues
	again     bool   // and has to look once more
	watched   bool   // somebody waits for the first one that runs

	slots    []*slot // spare ones
	chains   map[any]*chain
	returned []address // words of chains that are over

	// Of who issues:
	stream stream
	seen   uint64 // what the stream has waited for: see transfers.before
	steps  []step
	blocks []address   // spare ones for chains
	work   *allocation // what products work in
}

// job is a command buffer: its tag, so that those of other queues that come after it find it.
type job struct {
	q    *queue
	cb   *metal.CommandBuffer
	done func(metal.Result)

	// Guarded by the driver's mu:
	after     []*job // of other queues
	issued    bool   // it is on the stream, or will end without
	over      bool
	followers []*queue // to be looked at when it is issued, and when it is over
	listens   bool     // its queue is looked at when it is stopped

	// Of who issues it, and then of who waits for it:
	void   bool // nothing of it was issued
	err    error
	slot   *slot
	chain  *chain // what it runs in may be stopped
	base   uint32 // what its commands' tags begin behind
	failed []*metal.CommandError
	parts  []part // those that are graphs
}

// Submit puts a command buffer on its queue's stream, or has it wait for others.
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
		q = &queue{d: d, chains: map[any]*chain{}}
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
			j.issued = true
			q.running = append(q.running, j)
			if !q.watched {
				q.watched = true
				go q.watch()
			}
			d.tell(j)
		}
	}
	q.advancing = false
}

// room reports whether another job can be issued: not behind one that does not run, since later ones of its chain are
// interrupted when that is told. Called with mu held.
func (q *queue) room() bool {
	n := len(q.running)
	return n < depth && (n == 0 || !q.running[n-1].void)
}

// tell has those looked at that come after a job. Called with mu held, which it lets go meanwhile.
func (d *Driver) tell(j *job) {
	followers := j.followers
	j.followers = nil
	if len(followers) == 0 {
		return
	}
	d.mu.Unlock()
	for _, q := range followers {
		q.advance()
	}
	d.mu.Lock()
}

// comes reports whether a job can be issued: what it comes after is over, or is on its stream and runs to its end, so
// that the card can wait for it. One that is stopped need not wait. Called with mu held.
func (q *queue) comes(j *job) bool {
	if j.cb.Stop().Load() {
		return true
	}
	j.after = slices.DeleteFunc(j.after, func(o *job) bool { return o.over })
	ready := true
	for _, o := range j.after {
		if o.issued && !o.void && o.chain == nil {
			continue
		}
		ready = false
		if !slices.Contains(o.followers, q) {
			o.followers = append(o.followers, q)
		}
	}
	if !ready && !j.listens {
		j.listens = true
		context.AfterFunc(j.cb.Context(), q.advance)
	}
	return ready
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
		r := j.result()
		if r.Ran == nil {
			q.end(j)
			j.done(r)
			q.advance()
		} else { // who comes after what did not run asks what became of it
			j.done(r)
			q.end(j)
		}
		d.busy.Done()
	}
}

// end takes the first job off the stream. Others are issued at once if the card has nothing else to do.
func (q *queue) end(j *job) {
	d := q.d
	d.mu.Lock()
	q.running = slices.Delete(q.running, 0, 1)
	if j.slot != nil {
		q.slots = append(q.slots, j.slot)
	}
	j.over = true
	d.tell(j)
	idle := len(q.running) == 0
	d.mu.Unlock()
	if idle {
		q.advance()
	}
}

// patience is how long a goroutine asks whether something is over before it sleeps, which is quicker where it is short.
const patience = 20 * time.Microsecond

// until waits for an event.
func (d *Driver) until(e event) error {
	if err := d.lib.Enter(); err != nil {
		return err
	}
	defer d.lib.Leave()
	for begun := time.Now(); time.Since(begun) < patience; {
		if done, err := d.lib.Done(e); done || err != nil {
			return err
		}
		runtime.Gosched()
	}
	return d.lib.Synchronize(e)
}

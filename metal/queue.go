package metal

import "sync"

// submissions are a queue's command buffers between Commit and their end, in order.
type submissions struct {
	mu      sync.Mutex
	list    []*CommandBuffer
	handed  int  // how many of them the driver has
	handing bool // somebody is at it
	again   bool // and has to look once more
}

// submissions of a queue.
func (d *Device) submissions(queue int) *submissions {
	if q, ok := d.queues.Load(queue); ok {
		return q.(*submissions)
	}
	q, _ := d.queues.LoadOrStore(queue, &submissions{})
	return q.(*submissions)
}

// submit hands a command buffer to the driver, or has it wait for those before it where a gate asks for that, or for
// what it comes after.
func (q *submissions) submit(cb *CommandBuffer) {
	for m := range cb.awaited {
		m.follow(q)
	}
	q.mu.Lock()
	q.list = append(q.list, cb)
	q.mu.Unlock()
	q.look()
}

// look does what can be done now.
func (q *submissions) look() {
	q.begin()
	q.hand()
}

// begin notes that the first command buffer has begun, unless it comes after something that has not ended.
func (q *submissions) begin() {
	var first *CommandBuffer
	q.mu.Lock()
	if len(q.list) > 0 {
		first = q.list[0]
	}
	q.mu.Unlock()
	if first != nil && !first.waits() {
		first.begin()
	}
}

// hand gives the driver what it can have.
func (q *submissions) hand() {
	q.mu.Lock()
	defer q.mu.Unlock()
	if q.handing {
		q.again = true
		return
	}
	q.handing = true
	for q.again = true; q.again; {
		q.again = false
		for q.handed < len(q.list) {
			cb := q.list[q.handed]
			if len(cb.gate) > 0 && q.handed > 0 || cb.held() && !cb.chain.wake(q) {
				break // the host looks when those before have run, and an event must be under way
			}
			q.handed++
			q.mu.Unlock() // a driver that is closed ends it at once
			if cb.passes() {
				cb.dev.driver.Submit(cb.queue, cb, func(r Result) { q.ended(cb, &r) })
				cb.meeting.change(func() { cb.meeting.given = true })
			} else {
				q.ended(cb, &Result{Ran: make([]bool, len(cb.rec.cmds)), Midway: -1})
			}
			q.mu.Lock()
		}
	}
	q.handing = false
}

// passes reports whether the driver is to have a command buffer: its chain is not interrupted, no gate keeps it, and
// what it comes after has run so far.
func (cb *CommandBuffer) passes() bool {
	cb.missAll()
	return !cb.chain.stop.Load() && !cb.shut()
}

// ended takes a command buffer out, tells how it ended, and goes on with those behind it.
func (q *submissions) ended(cb *CommandBuffer, r *Result) {
	if r.Ran != nil {
		cb.missAll()
	}
	err := cb.outcome(r)
	q.mu.Lock()
	for i, x := range q.list {
		if x == cb {
			q.list = append(q.list[:i], q.list[i+1:]...)
			q.handed--
			break
		}
	}
	q.mu.Unlock()
	cb.end(err, true)
	q.look()
}

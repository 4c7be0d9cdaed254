package tensor

import (
	"context"
	"errors"
	"slices"
	"sync"

	"github.com/mlxlua/mlxlua/metal"
)

// An evaluation is stopped when the context of the caller who waits for it is done, or when the memory limit does not
// hold what it needs. Nothing is lost by that: what has run stays, and what has not run is undone, which makes its
// nodes lazy again, with their inputs. Three things see to it:
//
//   - The device runs the commands of a job on a stream as one chain. Interrupted, it tells which of them have run: a
//     beginning of them all, so that whatever the others read is there yet. Commands that write over what they read
//     run to their end.
//   - A task keeps its inputs until it is settled. Storage that a recorded reader was the last to need serves later
//     calls at once, but the output keeps its claim on it until that reader has run.
//   - Jobs that depend on a job which is stopped are stopped too. Nodes become lazy again when all of these are
//     settled: until then nobody can claim them.

// errBlocked is why a job was stopped that needs what another one is undoing.
var errBlocked = errors.New("what it depends on is being undone")

// errUndone is the error of a node that was not computed and is lazy again, or will be.
var errUndone = errors.New("BUG: nobody sees that a node was undone")

// waiters are the calls that wait for arrays.
var waiters struct {
	sync.Mutex
	list map[*waiter]struct{}
}

// waiter is a call that waits for arrays or for a job, or for everything where it names none.
type waiter struct {
	ctx context.Context
	xs  []*Array
	job *job
}

func (w *waiter) begin() {
	waiters.Lock()
	defer waiters.Unlock()
	if waiters.list == nil {
		waiters.list = map[*waiter]struct{}{}
	}
	waiters.list[w] = struct{}{}
}

func (w *waiter) end() {
	waiters.Lock()
	delete(waiters.list, w)
	waiters.Unlock()
}

// needs adds the jobs that a waiter needs to a set, with those that they wait for. Called with schedMu and jobs held.
func (w *waiter) needs(set map[*job]bool) {
	var add func(j *job)
	add = func(j *job) {
		if !set[j] {
			set[j] = true
			for _, d := range j.deps {
				add(d)
			}
		}
	}
	for _, x := range w.xs {
		if s := x.node.now(); s == Scheduled || s == undone {
			add(x.node.seg.job)
		}
	}
	if w.job != nil {
		add(w.job)
	}
}

// giveUp stops what the waiter waits for, since its context is done: the job own, which it has handed over itself, and
// of the others those that nobody else waits for.
func (w *waiter) giveUp(own *job) {
	schedMu.Lock()
	defer schedMu.Unlock()
	w.giveUpHeld(own)
}

// giveUpHeld is giveUp with schedMu held: what is claimed and settled meanwhile is not given back before it ends.
func (w *waiter) giveUpHeld(own *job) {
	claimAllHeld(nil)
	jobs.Lock()
	defer jobs.Unlock()
	mine, others := map[*job]bool{}, map[*job]bool{}
	w.needs(mine)
	everything := false
	waiters.Lock()
	for o := range waiters.list {
		if o != w && o.ctx.Err() == nil {
			o.needs(others)
			everything = everything || o.xs == nil && o.job == nil
		}
	}
	waiters.Unlock()
	cause := context.Cause(w.ctx)
	if own != nil {
		own.stopAll(cause)
	}
	for j := range mine {
		if !everything && !others[j] {
			j.stopAll(cause)
		}
	}
}

// stopAll stops the job and those that depend on it; these first, so that none of them runs on what is missing. Called
// with schedMu and jobs held.
func (j *job) stopAll(cause error) {
	if j.settled || j.stopped.Load() {
		return
	}
	for _, d := range j.dependents {
		d.stopAll(cause)
	}
	j.stop(cause)
}

// halt is stopAll for who holds neither schedMu nor jobs.
func (j *job) halt(cause error) {
	schedMu.Lock()
	defer schedMu.Unlock()
	jobs.Lock()
	defer jobs.Unlock()
	j.stopAll(cause)
}

// stop has nothing more of the job recorded, and its commands interrupted. Called with jobs held.
func (j *job) stop(cause error) {
	j.stopped.Store(true)
	j.cancel(cause)
	j.mu.Lock()
	chains := slices.Clone(j.chains)
	j.mu.Unlock()
	for _, c := range chains {
		c.chain.Interrupt(cause)
	}
}

// runOut stops the job because a limit, of memory or of its holder's kernels, does not hold what it needs for the node
// of that number.
func (j *job) runOut(err error, at uint64) {
	schedMu.Lock()
	defer schedMu.Unlock()
	jobs.Lock()
	defer jobs.Unlock()
	if j.stopped.Load() {
		return
	}
	j.fail(err)
	j.mu.Lock()
	j.noMemory, j.ranOutAt = err, at
	j.mu.Unlock()
	j.stopAll(err)
}

// undo takes back that the node of a task was claimed, but for its state: see giveBack. Recorded says that its commands
// were, and have not run.
func (t *task) undo(j *job, recorded bool) {
	n := t.node
	n.mu.Lock()
	for i := range n.out {
		o := &n.out[i]
		o.forget()
		o.spent, o.gone = false, false
	}
	reads := int64(1) // the node's own, as before it was claimed
	if n.in == nil {
		n.in = t.in
	} else {
		reads = 0 // a trace has kept them, apart from the task's
	}
	n.state.Store(int32(undone))
	n.mu.Unlock()
	if recorded {
		reads -= recordedReader
	} else {
		reads--
	}
	for _, v := range t.reads() {
		v.Node.out[v.Out].readers.n.Add(reads)
		v.keep()
	}
	j.mu.Lock()
	j.undone = append(j.undone, n)
	j.mu.Unlock()
}

// keep makes a value that a node reads which was undone one that lasts: the engine will not give it back by itself.
func (v Value) keep() {
	v.Node.mu.Lock()
	defer v.Node.mu.Unlock()
	o := &v.Node.out[v.Out]
	st := o.data.owner
	if o.spent && !o.gone {
		if o.spent = false; st != nil {
			st.users.Add(1)
		}
	}
	if st == nil {
		return
	}
	h := v.Node.holder
	held := h.lists(st.buf) && o.reached.Load() != escaped
	if st.own(held); held {
		h.list(v.Node, v.Out, st)
	}
}

// giveBack makes the nodes that were undone lazy again. Those that were asked for are lost, if somebody waits for all
// that the job does and it is worth another try.
func (j *job) giveBack() {
	schedMu.Lock()
	defer schedMu.Unlock()
	jobs.Lock()
	j.deps = nil
	jobs.Unlock()
	keep := waited(j)
	j.mu.Lock()
	defer j.mu.Unlock()
	keep = keep && j.noMemory == nil
	for _, n := range j.undone {
		n.mu.Lock()
		n.seg = nil
		for i := range n.out {
			if keep && n.out[i].asked {
				j.lost = append(j.lost, Value{n, i})
			}
			n.out[i].asked = false
		}
		r := n.extra()
		r.gaveUp = j
		if r.done != nil {
			close(r.done)
			r.done = nil
		}
		n.state.Store(int32(Lazy))
		n.mu.Unlock()
		if n.holder != nil {
			n.holder.noteUndone(n)
		}
	}
	j.undone = nil
}

// waited reports whether somebody waits for all that a job does.
func waited(j *job) bool {
	waiters.Lock()
	defer waiters.Unlock()
	for w := range waiters.list {
		if w.job == j {
			return true
		}
	}
	return false
}

// again waits until it makes sense to hand over again what the job has given up, and returns the error that it was
// stopped with if it is own.
func (j *job) again(ctx context.Context, own *job) error {
	j.mu.Lock()
	blockedOn, err := j.blockedOn, j.noMemory
	j.mu.Unlock()
	if err != nil && j == own {
		return err
	}
	if blockedOn != nil {
		return blockedOn.waitEnd(ctx)
	}
	return nil
}

// interruption is how a batch was interrupted, if it was, and the error of commands that ran.
func interruption(err error) (stop *metal.Interrupted, failed error) {
	if errors.As(err, &stop) {
		return stop, stop.Failed
	}
	return nil, err
}

// missed says whether a node's commands have not all run where its batch was interrupted: then it is undone, or has
// failed for good if that is the error.
func (sn *settling) missed(stop *metal.Interrupted) (bool, error) {
	for i := sn.first; i < sn.last; i++ {
		if stop.Ran[i] {
			continue
		}
		if stop.Midway >= sn.first && stop.Midway < sn.last && sn.spoils {
			return true, sn.node.runError(&halfWritten{stop.Cause})
		}
		return true, nil
	}
	return false, nil
}

// halfWritten is the error of a kernel that was stopped while it wrote over an input.
type halfWritten struct{ cause error }

// Error says so.
func (e *halfWritten) Error() string {
	return "the kernel was stopped while it ran, and it changes an input whose memory it was given: " +
		"it cannot run again (" + e.cause.Error() + ")"
}

// Unwrap is why the kernel was stopped.
func (e *halfWritten) Unwrap() error { return e.cause }

package tensor

import (
	"context"
	"slices"
	"sync"
	"sync/atomic"

	"github.com/mlxlua/mlxlua/metal"
)

// Change is that new values take the place of old ones in what a program holds, as those of a training step do. The
// program drops the old ones, and their memory is the new ones'. But should computing the new ones fail the program
// wants the old ones back. So a change counts as a reader of the old values: nobody gives their memory back until the
// new ones are there.
//
// An evaluation may write over them earlier where it computes all new values, or what it waits for does, or they cannot
// fail (Node.sure): then it knows of all that may fail. As soon as that is recorded, the commands that follow may be
// behind a gate (metal.Encoder.Gate), which looks at words where checks and failed commands leave a note: it is open
// if nothing has failed. Then the old values are gone, and the change is over once the gate's command buffer has
// ended. Else the evaluation is stopped there; what has not run is undone. On a device that does not skip commands
// there are no gates.
//
// What may fail are calls on the host, those that check indices, users' kernels, and whatever is more than there may be
// at all. What fails in another way after the gate has opened takes the old values with it.
type Change struct {
	made   uint64 // the last node before the change
	holder *Holder

	over    atomic.Bool // the old values are not kept any more
	stopped atomic.Bool // it is to be undone, or there was no memory for it: no gate is made for it any more

	mu       sync.Mutex
	old, new []Value // of one that is over: none
	results  int     // how many of the last new ones are results, which the program does not hold in an old one's place
	jobs     []*job  // that have claimed a new value, or have a gate, and are not over
}

// nodeChanges are the changes that a node's outputs are old and new values of. They are not changed: see alterChanges.
type nodeChanges struct {
	old []oldOutput
	new []*Change
}

type oldOutput struct {
	out    int
	change *Change
}

// changes are those that are not over, oldest first.
var changes struct {
	n atomic.Int32
	sync.Mutex
	list []*Change
}

// NewChange notes that new arrays take the place of old ones that h holds, which are kept until the new ones are known
// not to fail, and results of the same call, which are to be had only together with them. It is nil if there is nothing
// to keep: arrays of a trace are not, and new ones that are there do not fail.
func NewChange(h *Holder, old, new, results []*Array) *Change {
	c := &Change{holder: h, made: nodeIDs.Load()}
	for i, list := range [][]*Array{new, results} {
		for _, x := range list {
			if Traced(x) {
				return nil
			}
			if v := x.Value(); v.Node.now() != Ready { // else it was moved from elsewhere
				c.new, c.results = append(c.new, v), c.results+i
			}
		}
	}
	for _, x := range old {
		if v := x.Value(); x.owned.Load() != ended && x.freed.Load() == nil && !Traced(x) {
			c.old = append(c.old, v)
		} else {
			c.old = append(c.old, Value{}) // nobody can have it back
		}
	}
	if len(c.new) == 0 {
		return nil
	}
	changes.Lock()
	changes.list = append(changes.list, c)
	changes.n.Store(int32(len(changes.list)))
	changes.Unlock()
	for i, v := range c.old {
		if v.Node != nil && !v.keptBy(c) {
			c.old[i] = Value{}
		}
	}
	for _, v := range c.new {
		alterChanges(v.Node, func(n *nodeChanges) { n.new = append(n.new, c) })
	}
	return c
}

// keptBy has a change keep the value, and reports whether it is still there.
func (v Value) keptBy(c *Change) bool {
	o := &v.Node.out[v.Out]
	v.Node.mu.Lock()
	there := !o.gone && !o.spent
	if there {
		o.readers.n.Add(recordedReader)
	}
	v.Node.mu.Unlock()
	if there {
		alterChanges(v.Node, func(n *nodeChanges) { n.old = append(n.old, oldOutput{v.Out, c}) })
	}
	return there
}

// values are the old and the new values; an old one without a node is not there.
func (c *Change) values() (old, new []Value) {
	c.mu.Lock()
	defer c.mu.Unlock()
	return c.old, c.new
}

// computed are the new values, with the results.
func (c *Change) computed() []Value {
	_, v := c.values()
	return v
}

// state are the new values without the results.
func (c *Change) state() []Value {
	c.mu.Lock()
	defer c.mu.Unlock()
	return c.new[:max(len(c.new)-c.results, 0)]
}

// alterChanges gives the node other changes.
func alterChanges(n *Node, f func(*nodeChanges)) {
	n.mu.Lock()
	defer n.mu.Unlock()
	var now nodeChanges
	if was := n.changes.Load(); was != nil {
		now = nodeChanges{slices.Clip(was.old), slices.Clip(was.new)}
	}
	f(&now)
	if len(now.old)+len(now.new) == 0 {
		n.changes.Store(nil)
	} else {
		n.changes.Store(&now)
	}
}

// End says that the old values need not be kept any more.
func (c *Change) End() {
	if !c.over.Swap(true) {
		c.letGo()
	}
}

// letGo gives up the old values.
func (c *Change) letGo() {
	changes.Lock()
	if i := slices.Index(changes.list, c); i >= 0 {
		changes.list = slices.Delete(changes.list, i, i+1)
	}
	changes.n.Store(int32(len(changes.list)))
	changes.Unlock()
	ours := func(o oldOutput) bool { return o.change == c }
	old, computed := c.values()
	for _, v := range computed {
		alterChanges(v.Node, func(n *nodeChanges) {
			n.new = slices.DeleteFunc(slices.Clone(n.new), func(o *Change) bool { return o == c })
		})
	}
	for _, v := range old {
		if v.Node == nil {
			continue
		}
		alterChanges(v.Node, func(n *nodeChanges) { n.old = slices.DeleteFunc(slices.Clone(n.old), ours) })
		if v.Node.out[v.Out].readers.n.Add(-recordedReader) == 0 {
			v.dropIfUnread()
		}
	}
	c.mu.Lock()
	c.old, c.new = nil, nil // who remembers the change keeps no graph
	c.mu.Unlock()
}

// Over reports whether the old values are not kept any more, since the new ones were computed, or will be unless what
// nobody foresees happens.
func (c *Change) Over() bool { return c.over.Load() }

// changing reports whether a change that is not over keeps the value.
func (v Value) changing() bool {
	ch := v.Node.changes.Load()
	return ch != nil && slices.ContainsFunc(ch.old, func(o oldOutput) bool { return o.out == v.Out })
}

// Failed reports whether the new values cannot be computed, since a call has failed, or there is no memory for that:
// where an evaluation of them and more has run out of it, it tries to compute them alone, without gates. Since is the
// number of the first node that has failed because of which that is so.
func (c *Change) Failed(ctx context.Context) (failed bool, since uint64) {
	if out, _ := c.ranOut(); out {
		c.stopped.Store(true) // what else the step computes may fail again
		c.try(ctx)
	}
	since = c.made
	left(c.computed(), func(n *Node, s State, _ []Value) bool {
		if s == Failed {
			failed, since = true, min(since, failedFirst(n))
		}
		return true
	})
	if out, at := c.ranOut(); out {
		failed, since = true, min(since, at)
	}
	return failed, since
}

// try has the new values computed, those too that their holder reaches no more because of a later change.
func (c *Change) try(ctx context.Context) {
	fallback, err := (*Ctx)(nil).stream()
	for again := err == nil; again; {
		var roots []Value
		var xs []*Array
		for _, v := range c.computed() {
			if v.Node.failure() == nil {
				xs = append(xs, &Array{node: v.Node, out: int32(v.Out)})
			}
			if v.Node.now() == Lazy {
				roots = append(roots, v)
			}
		}
		if again, err = await(ctx, "eval", submitValues(ctx, roots, fallback), xs); err != nil {
			return
		}
	}
}

// wrong reports whether computing the value has failed: what was found unreachable has not.
func (v Value) wrong() bool {
	err := v.Node.failure()
	return err != nil && err != buried.err
}

// ranOut reports whether a limit's error has stopped the last evaluation of a new value, and at which node.
func (c *Change) ranOut() (bool, uint64) {
	for _, v := range c.computed() {
		j := v.Node.lastJob()
		if v.Node.now() != Lazy || j == nil {
			continue
		}
		j.mu.Lock()
		out, at := j.noMemory != nil, j.ranOutAt
		j.mu.Unlock()
		if out {
			return true, at
		}
	}
	return false, 0
}

// Made is the number of the last node that was made before the change.
func (c *Change) Made() uint64 { return c.made }

// Stop stops evaluations of the new ones and waits for them, or ctx: then it reports false. From then on nothing writes
// over the old ones.
func (c *Change) Stop(ctx context.Context) bool {
	c.mu.Lock()
	c.stopped.Store(true)
	jobs := slices.Clone(c.jobs)
	c.mu.Unlock()
	for _, j := range jobs {
		j.halt(metal.ErrSkipped) // what fails late would be taken for a later step's
	}
	return !slices.ContainsFunc(jobs, func(j *job) bool { return j.waitEnd(ctx) != nil })
}

// Undo gives the old arrays back, in the order of NewChange, if they are still there, and ends the change; one that was
// freed before is nil. It stops the change first.
func (c *Change) Undo(ctx context.Context) (old []*Array, ok bool) {
	if !c.Stop(ctx) {
		return nil, false
	}
	kept, _ := c.values()
	if c.Over() {
		return nil, false
	}
	for _, v := range kept {
		if v.Node == nil {
			old = append(old, nil)
		} else {
			old = append(old, v.revive())
		}
	}
	c.End()
	return old, true
}

// revive makes an array of a value that its holder may not reach any more.
func (v Value) revive() *Array {
	n := v.Node
	defer v.keep()
	n.mu.Lock()
	defer n.mu.Unlock()
	o := &n.out[v.Out]
	o.dead = false
	n.hold(v.Out, n.holder)
	x := &Array{node: n, out: int32(v.Out)}
	if o.weak {
		if x.of = o.handle.Value(); x.of == nil {
			o.watch(x)
		}
	}
	return x
}

// involve notes that a job claims a new value, or has a gate. It reports whether it may have one: the change is not to
// be undone, and there was memory for it.
func (c *Change) involve(j *job) bool {
	c.mu.Lock()
	defer c.mu.Unlock()
	if !slices.Contains(c.jobs, j) {
		c.jobs = append(slices.DeleteFunc(c.jobs, (*job).isOver), j)
	}
	return !c.stopped.Load()
}

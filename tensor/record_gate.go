package tensor

import (
	"encoding/binary"
	"slices"
	"sync"

	"github.com/mlxlua/mlxlua/metal"
)

// gates are a recorder's gates for changes: what is recorded behind them may write over what changes keep.
type gates struct {
	rec      *recorder
	skips    bool    // the device does, and so may have gates
	updating *Node   // it is to be changed in place, and its checks are recorded
	kept     []Value // that nothing reads any more, but for changes
	changes  []gated // that were asked for
	jobs     []*job  // the segment's and those that it waits for, once somebody has asked
	fallible []*Node // what may fail in them, and is not known to be recorded
	// behind are the changes whose gates stand before commands that write to a buffer, also in earlier segments: it holds
	// what they keep. Who writes to it again, as memory of another value, has to be behind a gate of theirs, too.
	behind map[*metal.Buffer][]*Change
}

// gated is a change of whose old values something is to be written over.
type gated struct {
	*Change
	whole bool // all its new values, and those of earlier changes, are computed in these jobs, or there, or cannot fail
	made  bool // the gate is: what is recorded next is behind it
}

// endSegment forgets what is a segment's.
func (g *gates) endSegment() {
	clear(g.kept)
	clear(g.changes)
	clear(g.fallible)
	g.kept, g.changes, g.jobs, g.fallible = g.kept[:0], g.changes[:0], nil, g.fallible[:0]
	for buf, list := range g.behind {
		if list = slices.DeleteFunc(list, (*Change).Over); len(list) == 0 {
			delete(g.behind, buf)
		} else {
			g.behind[buf] = list
		}
	}
}

// maySpend reports whether a value's memory may be written to when all its readers have run: no change keeps what is
// there, or what is recorded from now on is behind a gate that opens when the changes cannot fail. It is the last
// question to be asked, as it makes the gate.
func (g *gates) maySpend(v Value) bool {
	ch := v.Node.changes.Load()
	if ch == nil && len(g.behind) == 0 {
		return true
	}
	v.Node.mu.Lock()
	data := v.Node.out[v.Out].data
	v.Node.mu.Unlock()
	var need []*Change
	if st := data.owner; st != nil && st.users.Load() == 1 { // else it is not written to yet
		need = slices.DeleteFunc(slices.Clone(g.behind[data.buf]), (*Change).Over)
	}
	if ch != nil {
		for _, o := range ch.old {
			if o.out == v.Out && !o.change.Over() && !slices.Contains(need, o.change) {
				need = append(need, o.change)
			}
		}
	}
	if len(need) == 0 {
		return true
	}
	if slices.ContainsFunc(need, func(c *Change) bool { return !g.mayGate(c) }) || !g.gate(need) {
		return false
	}
	if data.buf != nil {
		for _, c := range need {
			if !slices.Contains(g.behind[data.buf], c) {
				g.behind[data.buf] = append(g.behind[data.buf], c)
			}
		}
	}
	return true
}

// change is what the segment knows of a change.
func (g *gates) change(c *Change) *gated {
	if g.jobs == nil {
		schedMu.Lock()
		g.jobs = g.rec.job.withDeps()
		schedMu.Unlock()
		for _, j := range g.jobs {
			g.fallible = append(g.fallible, j.unforeseen()...)
		}
	}
	i := slices.IndexFunc(g.changes, func(o gated) bool { return o.Change == c })
	if i < 0 {
		i = len(g.changes)
		computes := func(values []Value) bool {
			return !slices.ContainsFunc(values, func(v Value) bool { return !g.computes(v) })
		}
		whole := computes(c.computed()) &&
			!slices.ContainsFunc(c.earlier(), func(d *Change) bool { return !computes(d.state()) })
		g.changes = append(g.changes, gated{Change: c, whole: whole})
	}
	return &g.changes[i]
}

// computes reports whether the jobs compute a value, or nobody needs to, or whoever does cannot fail.
func (g *gates) computes(v Value) bool {
	n := v.Node
	switch n.now() {
	case Ready:
		return true
	case Failed:
		return !v.wrong()
	}
	n.mu.Lock()
	defer n.mu.Unlock()
	return n.sure || n.seg != nil && slices.Contains(g.jobs, n.seg.job)
}

// mayGate reports whether what is recorded from now on is behind a gate that opens when the change cannot fail, or may
// be: the jobs compute all that it needs, and what may fail is recorded. What checks no more than indices is checked
// now, though its call is recorded later.
func (g *gates) mayGate(c *Change) bool {
	if g.rec.plan.single || !g.skips || c.stopped.Load() {
		return false
	}
	o := g.change(c)
	if o.made || !o.whole || slices.ContainsFunc(g.jobs, (*job).failed) {
		return o.made
	}
	g.fallible = slices.DeleteFunc(g.fallible, g.known)
	before := func(n *Node) bool { return n.id <= c.made }
	if slices.ContainsFunc(g.fallible, func(n *Node) bool { return before(n) && !g.checkable(n) }) {
		return false
	}
	for _, n := range g.fallible {
		if before(n) && !g.checkAhead(n) {
			return false
		}
	}
	g.fallible = slices.DeleteFunc(g.fallible, before)
	return true
}

// known reports whether a gate knows how a node ends: it has, or what it may fail by is recorded on this stream.
func (g *gates) known(n *Node) bool {
	s := n.now() // which changes meanwhile
	if s == Ready || n == g.updating {
		return true
	}
	n.mu.Lock()
	seg := n.seg
	n.mu.Unlock()
	if s != Scheduled || n.runs != g.rec.s || seg == nil || seg.job != g.rec.job && n.op.partial {
		return false // a gate looks at no fault of another job's
	}
	return seg.tasks == nil || seg == g.rec.seg && seg.tasks[n.slot].node == nil
}

// checkable reports whether the indices of a node that is to be recorded later can be checked now: see
// Rules.CheckIndices.
func (g *gates) checkable(n *Node) bool {
	if n.op.checkIndices == nil || n.seg != g.rec.seg || g.rec.seg.tasks[n.slot].node != n {
		return false
	}
	return !slices.ContainsFunc(g.rec.seg.tasks[n.slot].indices(), func(v Value) bool {
		switch v.Node.now() {
		case Ready:
			return false
		case Scheduled:
			d := &v.Node.out[v.Out].data
			far := d.owner != nil && d.owner.dev != g.rec.dev // it may fail to come
			return v.Node.runs != g.rec.s || far || d.buf == nil && d.inline == nil
		}
		return true
	})
}

// checkAhead checks them.
func (g *gates) checkAhead(n *Node) bool {
	t := &g.rec.seg.tasks[n.slot]
	first := t.from - len(t.indices())
	r := &Run{e: g.rec, node: n, in: t.in, task: t, In: make([]Operand, len(t.in)), Out: make([]Operand, len(n.out))}
	for i, v := range t.in {
		spec := v.Spec()
		r.In[i] = Operand{spec, View{Strides: spec.Shape.Strides()}}
		if i < first || i >= t.from {
			continue
		}
		o, err := g.rec.places.operand(v)
		if err == nil && slices.ContainsFunc(o.Strides, func(s int) bool { return s < 0 }) {
			o, err = g.rec.exec.contiguous(o)
		}
		if err != nil {
			return false
		}
		r.In[i] = o
	}
	for i := range n.out {
		spec := n.out[i].spec
		r.Out[i] = Operand{spec, View{Strides: spec.Shape.Strides()}}
	}
	return n.op.checkIndices(r, n.attrs) == nil
}

// gate makes such a gate for those changes that have none. It reports false where one is given up meanwhile, or there
// is no way to make it.
func (g *gates) gate(list []*Change) bool {
	list = slices.DeleteFunc(slices.Clone(list), func(c *Change) bool { return g.change(c).made })
	if len(list) == 0 {
		return true
	}
	if g.rec.batcher.atomicGroup != 0 || slices.ContainsFunc(list, func(c *Change) bool { return !c.involve(g.rec.job) }) {
		return false
	}
	at := g.rec.batcher.encoder("").Len() // which makes the job's words
	words, ok := g.rec.batcher.words()
	defer letGo(words)
	if !ok {
		return false
	}
	origin := g.rec.memory.origin("gate")
	into, err := g.rec.dev.AllocFor(g.rec.job.ctx, wordBytes, &origin)
	if err != nil {
		return false
	}
	g.rec.job.keep(into)
	if g.rec.batcher.encoder("").Gate(words, into.All()) != nil {
		return false
	}
	b := g.rec.batcher.open()
	for _, c := range list {
		b.gates = append(b.gates, passage{c, at, into})
		g.change(c).made = true
	}
	return true
}

// keep notes that a change keeps a value that nothing else reads.
func (g *gates) keep(v Value) {
	if !slices.Contains(g.kept, v) {
		g.kept = append(g.kept, v)
	}
}

// spendKept tries again to spend what only changes have kept of a storage.
func (g *gates) spendKept(st *storage) {
	for _, v := range slices.Clone(g.kept) {
		v.Node.mu.Lock()
		in := v.Node.out[v.Out].data.owner == st
		v.Node.mu.Unlock()
		if in {
			g.rec.places.spendUnread(v)
		}
	}
}

// wordBytes is the length of a word of device memory that a gate looks at.
const wordBytes = 4

// words are where commands that were recorded before note that they have failed, of which nobody knows yet: for letGo.
// It reports false where some have no word.
func (q *batcher) words() (words []metal.Range, ok bool) {
	q.checks = slices.DeleteFunc(q.checks, (*check).over)
	for _, k := range q.checks {
		w, there := k.word()
		if !there && !k.over() {
			return words, false
		}
		if there {
			words = append(words, w)
		}
	}
	fault := q.job.chainOn(q.s).fault
	if fault == nil {
		return words, false
	}
	fault.Retain()
	return append(words, fault.All()), true
}

func letGo(words []metal.Range) {
	for _, w := range words {
		w.Buf.Release()
	}
}

// passage is a gate of a change in a batch: the commands behind it, if they ran, have written over the old values.
type passage struct {
	change *Change
	at     int // its command
	word   *metal.Buffer
}

// open reports whether the gate was open. The batch has ended; stop is how it was interrupted, if it was.
func (p *passage) open(stop *metal.Interrupted) bool {
	if stop != nil && (len(stop.Ran) <= p.at || !stop.Ran[p.at]) {
		return false
	}
	b, err := hostBytes(p.word, 0, wordBytes)
	return err == nil && binary.LittleEndian.Uint32(b) == 0
}

// check looks at a result when the commands that wrote it have run.
type check struct {
	node *Node
	buf  *metal.Buffer
	at   int64
	n    int64
	f    func([]byte) error

	first, last int // the commands that the result hangs on: [first, last)

	mu   sync.Mutex
	done bool // it has looked, or the result is not there any more
	err  error
}

// result looks at the result, if nobody has yet.
func (c *check) result() error {
	c.mu.Lock()
	defer c.mu.Unlock()
	if !c.done {
		c.done, c.err = true, c.run()
	}
	return c.err
}

// ran reports whether the result is there. The batch has ended; stop is how it was interrupted, if it was.
func (c *check) ran(stop *metal.Interrupted) bool {
	for i := c.first; stop != nil && i < c.last; i++ {
		if !stop.Ran[i] {
			return false
		}
	}
	return true
}

// over reports whether the changes know what the result says.
func (c *check) over() bool {
	c.mu.Lock()
	defer c.mu.Unlock()
	return c.done && (c.err == nil || c.node.now() == Failed)
}

// word is where the result will be, retained; not ok says that it has been looked at.
func (c *check) word() (w metal.Range, ok bool) {
	c.mu.Lock()
	defer c.mu.Unlock()
	if c.done {
		return w, false
	}
	c.buf.Retain()
	return metal.Range{Buf: c.buf, Offset: c.at, Bytes: c.n}, true
}

// end lets go of the result.
func (c *check) end() {
	c.mu.Lock()
	defer c.mu.Unlock()
	c.done = true
	c.buf.Release()
}

package tensor

import (
	"encoding/binary"
	"errors"
	"slices"
	"sync"

	"github.com/mlxlua/mlxlua/metal"
)

// gates are a recorder's gates for changes: what is recorded behind them may write over what changes keep.
type gates struct {
	rec      *recorder
	updating *Node        // it is to be changed in place, and its checks are recorded
	gated    []*Change    // changes that what is recorded next is behind a gate of
	kept     []Value      // that nothing reads any more, but for changes
	ahead    []*Node      // whose indices are checked, though they are recorded later
	outlooks []outlook    // of changes that were asked for
	known    []indexCheck // scratch of foreseen, and so is:
	open     []fallible
}

// endSegment forgets what is a segment's.
func (g *gates) endSegment() {
	clear(g.gated)
	clear(g.kept)
	clear(g.ahead)
	clear(g.outlooks)
	g.gated, g.kept, g.ahead, g.outlooks = g.gated[:0], g.kept[:0], g.ahead[:0], g.outlooks[:0]
}

// maySpend reports whether a value's memory may be written to when all its readers have run: no change keeps it, or
// what is recorded from now on is behind a gate that opens when the changes cannot fail. It is the last question to be
// asked, as it makes the gate.
func (g *gates) maySpend(v Value) bool {
	ch := v.Node.changes.Load()
	if ch == nil {
		return true
	}
	for _, o := range ch.old {
		if o.out == v.Out && !g.mayGate(o.change) {
			return false
		}
	}
	for _, o := range ch.old {
		if o.out == v.Out && !g.gate(o.change) {
			return false
		}
	}
	return true
}

// mayGate reports whether what is recorded from now on is behind a gate that opens when the change cannot fail, or may
// be.
func (g *gates) mayGate(c *Change) bool {
	switch {
	case c.Over():
		return true
	case g.rec.plan.single || c.doubted.Load():
		return false
	}
	return slices.Contains(g.gated, c) || g.foreseen(c)
}

// gate makes such a gate, if there is none. It reports false where the change is doubted meanwhile, or there is no way
// to make it.
func (g *gates) gate(c *Change) bool {
	switch {
	case c.Over() || slices.Contains(g.gated, c):
		return true
	case g.rec.batcher.whole != 0 || !c.involve(g.rec.job):
		return false
	}
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
	at := g.rec.batcher.encoder("").Len()
	err = g.rec.batcher.encoder("").Gate(words, into.All())
	if errors.Is(err, metal.ErrGateBegins) {
		g.rec.batcher.commit(false)
		at = 0
		err = g.rec.batcher.encoder("").Gate(words, into.All())
	}
	if err != nil {
		return false
	}
	b := g.rec.batcher.open()
	b.gates = append(b.gates, passage{c, at, into})
	g.gated = append(g.gated, c)
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
			g.rec.spendUnread(v)
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

// errDoubted is why a job was stopped that would have written over values which may be needed again.
var errDoubted = errors.New("something that it may depend on has failed")

// halt stops the job and those that depend on it; what does not depend on what has failed is computed when somebody
// asks for it again.
func (j *job) halt() {
	schedMu.Lock()
	defer schedMu.Unlock()
	jobs.Lock()
	defer jobs.Unlock()
	j.stopAll(errDoubted)
}

// foreseen reports whether nothing that a change may depend on, and that can fail, is still to be recorded. Indices
// that are there are checked now, though their calls are recorded later.
func (g *gates) foreseen(c *Change) bool {
	known, open := g.known[:0], g.open[:0]
	defer func() {
		clear(known)
		clear(open)
		g.known, g.open = known[:0], open[:0]
	}()
	o := g.outlook(c)
	if o.dim {
		return false
	}
	for _, f := range o.behind {
		switch {
		case f.node.now() == Failed:
			return false
		case !f.apart && g.recorded(f.node) || f.node.now() == Ready || f.node == g.updating ||
			slices.Contains(g.ahead, f.node):
			known = append(known, f.checks...)
		case len(f.checks) == 0:
			return false
		default:
			open = append(open, f)
		}
	}
	open = slices.DeleteFunc(open, func(f fallible) bool { return f.within(known) })
	if slices.ContainsFunc(open, func(f fallible) bool { return f.apart || !g.checkable(f.node) }) {
		return false
	}
	for _, f := range open {
		if !f.within(known) {
			if !g.checkAhead(f.node) {
				return false
			}
			known = append(known, f.checks...)
		}
	}
	return true
}

// within reports whether all that can fail is among checks.
func (f *fallible) within(checks []indexCheck) bool {
	return !slices.ContainsFunc(f.checks, func(k indexCheck) bool { return !slices.Contains(checks, k) })
}

// outlook is what may fail before a change.
func (g *gates) outlook(c *Change) *outlook {
	i := slices.IndexFunc(g.outlooks, func(o outlook) bool { return o.change == c })
	if i < 0 {
		i = len(g.outlooks)
		g.outlooks = append(g.outlooks, look(c, g.rec.job))
	}
	return &g.outlooks[i]
}

// recorded reports whether a node that an evaluation has claimed is of the recorder's stream, and recorded.
func (g *gates) recorded(n *Node) bool {
	n.mu.Lock()
	seg := n.seg
	n.mu.Unlock()
	if n.now() != Scheduled || n.runs != g.rec.s || seg == nil {
		return false
	}
	if seg.job != g.rec.job && n.op.indicesFrom == nil {
		return false // a gate does not ask how it ended
	}
	return seg.tasks == nil || seg == g.rec.seg && seg.tasks[n.slot].node == nil
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

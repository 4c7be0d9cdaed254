package tensor

import (
	"encoding/binary"
	"errors"
	"slices"
	"sync"

	"github.com/mlxlua/mlxlua/metal"
)

// maySpend reports whether a value's memory may be written to when all its readers have run: no change keeps it, or
// what is recorded from now on is behind a gate that opens when the changes cannot fail. It is the last question to be
// asked, as it makes the gate.
func (rec *recorder) maySpend(v Value) bool {
	ch := v.Node.changes.Load()
	if ch == nil {
		return true
	}
	for _, o := range ch.old {
		if o.out == v.Out && !rec.mayGate(o.change) {
			return false
		}
	}
	for _, o := range ch.old {
		if o.out == v.Out && !rec.gate(o.change) {
			return false
		}
	}
	return true
}

// mayGate reports whether what is recorded from now on is behind a gate that opens when the change cannot fail, or may
// be.
func (rec *recorder) mayGate(c *Change) bool {
	switch {
	case c.Over():
		return true
	case rec.plan.single || c.doubted.Load():
		return false
	}
	return slices.Contains(rec.gated, c) || rec.foreseen(c)
}

// gate makes such a gate, if there is none. It reports false where the change is doubted meanwhile, or there is no way
// to make it.
func (rec *recorder) gate(c *Change) bool {
	switch {
	case c.Over() || slices.Contains(rec.gated, c):
		return true
	case rec.batcher.whole != 0 || !c.involve(rec.job):
		return false
	}
	words, ok := rec.batcher.words()
	if !ok {
		return false
	}
	origin := rec.memory.origin("gate")
	into, err := rec.dev.AllocFor(rec.job.ctx, wordBytes, &origin)
	if err != nil {
		return false
	}
	rec.job.keep(into)
	at := rec.batcher.encoder("").Len()
	err = rec.batcher.encoder("").Gate(words, into.All())
	if errors.Is(err, metal.ErrGateBegins) {
		rec.batcher.commit(false)
		at = 0
		err = rec.batcher.encoder("").Gate(words, into.All())
	}
	if err != nil {
		return false
	}
	b := rec.batcher.open()
	b.gates = append(b.gates, passage{c, at, into})
	rec.gated = append(rec.gated, c)
	return true
}

// wordBytes is the length of a word of device memory that a gate looks at.
const wordBytes = 4

// words are where commands that were recorded before note that they have failed, of which nobody knows yet. It reports
// false where some have no word.
func (q *batcher) words() (words []metal.Range, ok bool) {
	q.checks = slices.DeleteFunc(q.checks, (*check).over)
	for _, k := range q.checks {
		words = append(words, metal.Range{Buf: k.buf, Offset: k.at, Bytes: k.n})
	}
	fault := q.job.chainOn(q.s).fault
	if fault == nil {
		return nil, false
	}
	return append(words, fault.All()), true
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

// foreseen reports whether nothing that a change may depend on, and that can fail, is still to be recorded.
func (rec *recorder) foreseen(c *Change) bool {
	known, open := rec.known[:0], rec.open[:0]
	defer func() {
		clear(known)
		clear(open)
		rec.known, rec.open = known[:0], open[:0]
	}()
	o := rec.outlook(c)
	if o.dim {
		return false
	}
	for _, f := range o.behind {
		switch {
		case f.node.now() == Failed:
			return false
		case f.node.now() == Ready || !f.apart && rec.recorded(f.node):
			known = append(known, f.checks...)
		case len(f.checks) == 0:
			return false
		default:
			open = append(open, f.checks...)
		}
	}
	return !slices.ContainsFunc(open, func(k indexCheck) bool { return !slices.Contains(known, k) })
}

// outlook is what may fail before a change.
func (rec *recorder) outlook(c *Change) *outlook {
	i := slices.IndexFunc(rec.outlooks, func(o outlook) bool { return o.change == c })
	if i < 0 {
		i = len(rec.outlooks)
		rec.outlooks = append(rec.outlooks, look(c, rec.job))
	}
	return &rec.outlooks[i]
}

// recorded reports whether a node that an evaluation has claimed is of the recorder's stream, and recorded.
func (rec *recorder) recorded(n *Node) bool {
	n.mu.Lock()
	seg := n.seg
	n.mu.Unlock()
	if n.now() != Scheduled || n.runs != rec.s || seg == nil {
		return false
	}
	if seg.job != rec.job && n.op.indicesFrom == nil {
		return false // a gate does not ask how it ended
	}
	return seg.tasks == nil || seg == rec.seg && seg.tasks[n.slot].node == nil
}

// check looks at a result when the commands that wrote it have run.
type check struct {
	node *Node
	buf  *metal.Buffer
	at   int64
	n    int64
	f    func([]byte) error

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

// over reports whether the changes know what the result says.
func (c *check) over() bool {
	c.mu.Lock()
	defer c.mu.Unlock()
	return c.done && (c.err == nil || c.node.now() == Failed)
}

// end lets go of the result.
func (c *check) end() {
	c.mu.Lock()
	defer c.mu.Unlock()
	c.done = true
	c.buf.Release()
}

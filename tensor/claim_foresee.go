package tensor

import "slices"

// indexCheck is that the integers of a value are right by the numbers of a Bounds rule. Calls that check the same fail
// alike.
type indexCheck struct {
	index Value
	bound Ints
}

// foresee notes a claimed task that may fail, and what it computes new values of. Lost says that what it reads has
// failed. Called with schedMu held.
func (j *job) foresee(t *task, lost bool) {
	if lost || t.mayFail() && !t.checkedBefore() {
		j.fallible = append(j.fallible, t.node)
	}
	ch := t.node.changes.Load()
	if ch == nil { // they may end meanwhile
		return
	}
	for _, c := range ch.new {
		if !slices.Contains(j.changes, c) {
			j.changes = append(j.changes, c)
			c.involve(j)
		}
	}
}

// checkedBefore reports whether tasks that the job has claimed before check all that can fail in this one: it fails
// only if they do, as a gradient that checks again what its function has checked. Else it notes what this one checks.
// Called with schedMu held.
func (t *task) checkedBefore() bool {
	if t.node.op.bounds == nil || changes.n.Load() == 0 {
		return false
	}
	specs := make([]Spec, len(t.in))
	for i, v := range t.in {
		specs[i] = v.Spec()
	}
	bounds, known := t.node.op.bounds(specs, t.node.attrs, nil), true
	for i, v := range t.indices() {
		if k := (indexCheck{v, bounds[i]}); !slices.Contains(claimScratch.checks, k) {
			claimScratch.checks, known = append(claimScratch.checks, k), false
		}
	}
	return known
}

// unforeseen are the job's own nodes that may fail, until it is over.
func (j *job) unforeseen() []*Node {
	j.mu.Lock()
	defer j.mu.Unlock()
	return j.fallible
}

// mayFail reports whether the task may fail, though its call was right.
func (t *task) mayFail() bool { return mayFailAt(t.node, len(t.in), t.from) }

// mayFailAt reports whether computing a node may fail, which has so many inputs and reads the first: as its op may, or
// since an output is more than there may be at all, if it is not fused away.
func mayFailAt(n *Node, in, reads int) bool { return n.op.mayFail(n.attrs, in, reads) || exceeds(n) }

// exceeds reports whether an output is more than the node's device may hold, or its holder.
func exceeds(n *Node) bool {
	for i := range n.out {
		bytes := n.out[i].spec.NBytes()
		if bytes < leastExceeding {
			continue
		}
		if n.holder.account().Check(bytes) != nil || n.stream != nil && bytes > n.stream.dev.Memory().Limit {
			return true
		}
	}
	return false
}

// leastExceeding is the least that is more than somebody may hold: to ask takes time.
const leastExceeding = 1 << 20

// indices are the inputs of a task that are indices.
func (t *task) indices() []Value {
	return t.in[t.node.op.indicesFrom(t.node.attrs, len(t.in)):t.from]
}

// mayFail reports whether a call of so many inputs, of which the first are read, may fail when it is computed: in Go,
// or by its indices, or as a user's kernel, which may write out of its bounds.
func (p *Op) mayFail(attrs any, in, reads int) bool {
	switch {
	case p.host != nil:
		return !p.sure
	case p.partial:
		return true
	}
	return p.indicesFrom != nil && p.indicesFrom(attrs, in) < reads
}

// cannotFail reports whether neither a node nor what it depends on may fail any more, when it is made.
func cannotFail(n *Node) bool {
	reads := n.specFrom(len(n.in))
	for _, v := range n.in[:reads] {
		if !v.Node.sure && v.Node.now() != Ready {
			return false
		}
	}
	return !mayFailAt(n, len(n.in), reads)
}

package tensor

import "slices"

// fallible is a node that may fail, though its call was right.
type fallible struct {
	node   *Node
	checks []indexCheck // which are all that can fail; none: it may fail in another way
	apart  bool         // in an outlook: its evaluation does not wait for this one, or nobody has asked for it
}

// indexCheck is that the integers of a value are right by the numbers of a Bounds rule. Calls that check the same fail
// alike.
type indexCheck struct {
	index Value
	bound Ints
}

// foresee notes a claimed task that may fail, and what it computes new values of. Called with schedMu held.
func (j *job) foresee(t *task) {
	if t.mayFail() {
		var checks []indexCheck
		if changes.n.Load() > 0 {
			checks = t.indexChecks()
		}
		j.fallible = append(j.fallible, fallible{node: t.node, checks: checks})
	}
	if ch := t.node.changes.Load(); ch != nil { // which may end meanwhile
		j.changed(ch.new)
	}
}

// changed notes that the job claims new values of changes.
func (j *job) changed(list []*Change) {
	for _, c := range list {
		if !slices.Contains(j.changes, c) {
			j.changes = append(j.changes, c)
			c.involve(j)
		}
	}
}

// unforeseen are the job's own nodes that may fail, until it is over.
func (j *job) unforeseen() []fallible {
	j.mu.Lock()
	defer j.mu.Unlock()
	return j.fallible
}

// mayFail reports whether a node may fail: it is computed in Go, or checks indices, or is a user's kernel, which may
// write out of its bounds.
func (t *task) mayFail() bool {
	p := t.node.op
	switch {
	case p.host != nil:
		return !p.sure
	case p.partial:
		return true
	}
	return p.indicesFrom != nil && p.indicesFrom(t.node.attrs, len(t.in)) < t.from
}

// indexChecks are the checks of a task, where they are all that can fail.
func (t *task) indexChecks() (checks []indexCheck) {
	p := t.node.op
	if p.bounds == nil {
		return nil
	}
	specs := make([]Spec, len(t.in))
	for i, v := range t.in {
		specs[i] = v.Spec()
	}
	first := p.indicesFrom(t.node.attrs, len(t.in))
	for i, n := range p.bounds(specs, t.node.attrs, nil) {
		checks = append(checks, indexCheck{t.in[first+i], n})
	}
	return checks
}

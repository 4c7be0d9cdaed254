package tensor

// outlook is what may fail before a change, as far as an evaluation knows when it first asks: in itself and in what it
// waits for, and of what the change's new values need, whoever computes that.
type outlook struct {
	change *Change
	behind []fallible
	dim    bool // some of it is being undone: nothing is known of that
}

// look gives the outlook of an evaluation, or of nobody where own is nil.
func look(c *Change, own *job) outlook {
	schedMu.Lock()
	defer schedMu.Unlock()
	claimID++
	o := outlook{change: c}
	if own != nil {
		o.addJobs([]*job{own}, false)
	}
	var others []*job
	for _, v := range c.new {
		others = o.addLazy(v.Node, others)
	}
	o.addJobs(others, true)
	return o
}

// addJobs adds what may fail in evaluations, and in those that they wait for. Apart says that the outlook's own does
// not wait for them. Called with schedMu held.
func (o *outlook) addJobs(todo []*job, apart bool) {
	jobs.Lock()
	defer jobs.Unlock()
	for len(todo) > 0 {
		j := todo[len(todo)-1]
		todo = todo[:len(todo)-1]
		if j.visited == claimID {
			continue
		}
		j.visited = claimID
		for _, d := range j.deps {
			if !d.settled && d.visited != claimID {
				todo = append(todo, d)
			}
		}
		for _, f := range j.unforeseen() {
			f.apart = apart
			o.add(f)
		}
		o.dim = o.dim || j.stopped.Load() // after that: it may have forgotten what may fail
	}
}

func (o *outlook) add(f fallible) {
	if f.node.id <= o.change.made && (f.node.now() != Ready || len(f.checks) > 0) {
		o.behind = append(o.behind, f)
	}
}

// lookFrame is a lazy node on the way from a new value: its inputs from next on are still to be looked at.
type lookFrame struct {
	n    *Node
	next int
	sure bool // nothing that may fail was found behind the others
}

// addLazy adds what may fail of what nobody has claimed: the node, and those behind it. It adds the jobs that have
// claimed what it meets to others. Called with schedMu held.
func (o *outlook) addLazy(root *Node, others []*job) []*job {
	var few [16]lookFrame
	frames := few[:0]
	for next := root; ; {
		sure := true
		switch {
		case next.now() == Ready || next.sure:
		case next.pending():
			if j := next.seg.job; len(others) == 0 || others[len(others)-1] != j {
				others = append(others, j)
			}
			sure = false
		case next.claimable() && next.seenBy != claimID:
			next.seenBy = claimID
			frames = append(frames, lookFrame{n: next, sure: true})
		default: // it has failed, or was seen
			sure = false
		}
		for {
			if len(frames) == 0 {
				return others
			}
			f := &frames[len(frames)-1]
			f.sure = f.sure && sure
			if in, more := f.input(); more {
				next = in
				break
			}
			sure = !o.addNode(f.n) && f.sure
			f.n.sure = sure
			frames = frames[:len(frames)-1]
		}
	}
}

// addNode adds a lazy node, if it may fail, and reports that.
func (o *outlook) addNode(n *Node) (may bool) {
	t := task{node: n, in: n.Inputs()}
	if n.now() == Failed { // nobody can ask for it any more
		return true
	}
	t.from = n.specFrom(len(t.in))
	if may = t.mayFail(); may {
		o.add(fallible{node: n, checks: t.indexChecks(), apart: true})
	}
	return may
}

// input is the node of the next input that is read: not more says that there is none, also where the frame's own has
// just been buried.
func (f *lookFrame) input() (in *Node, more bool) {
	f.n.mu.Lock()
	defer f.n.mu.Unlock()
	if f.n.in == nil || f.next == f.n.specFrom(len(f.n.in)) {
		return nil, false
	}
	f.next++
	return f.n.in[f.next-1].Node, true
}

package tensor

// outlook is what may fail before a change, as far as an evaluation knows when it first asks.
type outlook struct {
	change *Change
	behind []fallible
}

// look gives the outlook of an evaluation.
func look(c *Change, own *job) outlook {
	schedMu.Lock()
	defer schedMu.Unlock()
	claimID++
	o := outlook{change: c}
	o.addJobs([]*job{own})
	return o
}

// addJobs adds what may fail in evaluations, and in those that they wait for. Called with schedMu held.
func (o *outlook) addJobs(todo []*job) {
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
			o.add(f)
		}
	}
}

func (o *outlook) add(f fallible) {
	if f.node.id <= o.change.made && (f.node.now() != Ready || len(f.checks) > 0) {
		o.behind = append(o.behind, f)
	}
}

package tensor

// findLive decides which outputs of the segment must be written because someone may read them later. Where that
// hangs on handles that may be garbage and a collection costs less than writing, it collects first.
func (e *recorder) findLive() {
	p, tasks := &e.plan, e.seg.tasks
	var unproven int64
	scan := func() {
		unproven = 0
		for i := range tasks {
			n := tasks[i].node
			for k := range n.out {
				o := &n.out[k]
				at := p.base[i] + int32(k)
				bound := !o.asked && o.uses.Load() == p.edges[at]
				p.live[at] = !bound || !(Value{n, k}).unheld()
				if bound && p.live[at] && o.weak {
					unproven += o.spec.NBytes()
				}
			}
		}
	}
	scan()
	if unproven > 0 && e.s.collect(e, unproven) {
		before := unproven
		scan()
		e.s.pace.learn(before, before-unproven)
	}
}

// unheld says whether no one can read the output but the nodes that its uses count: its handle is gone, or was
// given up, and no transform may walk the node.
func (v Value) unheld() bool {
	n := v.Node
	if n.held() {
		return false
	}
	n.mu.Lock()
	defer n.mu.Unlock()
	o := &n.out[v.Out]
	return o.dead || o.weak && o.handle.Value() == nil
}

package tensor

// findLive decides which outputs of the segment must be written because someone may read them later. Where that hangs
// on handles that may be garbage, it first collects garbage if that costs less than writing.
func (c *current) findLive(s *Stream) {
	p, tasks := &c.plan, c.seg.tasks
	var unproven int64
	scan := func() {
		unproven = 0
		for i := range tasks {
			n := tasks[i].node
			for k := range n.out {
				o := &n.out[k]
				at := p.base[i] + int32(k)
				bound := !o.asked && o.readers.waiting() == p.edges[at]
				p.live[at] = !bound || !(Value{n, k}).unheld(c.job.proof) || (Value{n, k}).changing()
				if bound && p.live[at] && o.weak && !c.job.proof.reachable(n, k) {
					unproven += o.spec.NBytes()
				}
			}
		}
	}
	scan()
	if unproven > 0 && c.dry == nil && s.collect(c.job.ctx, unproven) {
		before := unproven
		scan()
		s.pace.learn(before, before-unproven)
	}
}

// unheld reports whether only the nodes that the output's uses count can read it: its handle is gone or was given up,
// and no open trace may walk the node.
func (v Value) unheld(p proof) bool {
	n := v.Node
	if n.inOpenTrace() {
		return false
	}
	n.mu.Lock()
	defer n.mu.Unlock()
	return v.unheldLocked(p)
}

// unheldLocked is unheld with the node's mu held, of one that is in no open trace.
func (v Value) unheldLocked(p proof) bool {
	n := v.Node
	o := &n.out[v.Out]
	return o.dead || p.unreachable(n, v.Out) || o.weak && o.handle.Value() == nil
}

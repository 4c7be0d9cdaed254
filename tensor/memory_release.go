package tensor

// Drop says that no one will read the arrays through these handles again, for transforms that make intermediates by
// the thousand: what nothing else needs is then never stored. Unlike after Free, later use is no error with its own
// text; the value of a dropped array that was not stored cannot be read.
func Drop(xs ...*Array) {
	for _, x := range xs {
		if x != nil && x.node != nil && x.owned.Swap(ended) != ended {
			x.node.release(int(x.out))
		}
	}
}

// release takes one of an output's handles away. With the last one it marks the output as dead and gives its data back,
// unless a node has still to read it.
func (n *Node) release(i int) {
	n.mu.Lock()
	defer n.mu.Unlock()
	o := &n.out[i]
	if o.owners > 0 {
		o.owners--
		return
	}
	o.dead = true
	if n.now() == Ready && o.uses.Load() == 0 {
		n.drop(i)
	}
}

// drop gives an output's data back. Called with mu held.
func (n *Node) drop(i int) {
	if st := n.detach(i); st != nil {
		if buf := st.take(); buf != nil {
			buf.Release()
		}
	}
}

// detach forgets an output's data and returns its storage if no other output lies in it. Called with mu held.
func (n *Node) detach(i int) *storage {
	o := &n.out[i]
	if o.gone {
		return nil
	}
	o.gone = true
	v := o.data
	o.data = View{}
	if v.owner != nil && v.owner.users.Add(-1) == 0 {
		return v.owner
	}
	return nil
}

// addUses counts readers of the inputs that n reads.
func addUses(n *Node, in []Value, by int32) {
	if len(in) == 0 {
		return
	}
	for _, v := range in[:n.specFrom(len(in))] {
		o := &v.Node.out[v.Out]
		if o.uses.Add(by) == 0 {
			v.dropIfUnread()
		}
	}
}

// dropIfUnread gives the data of a dead output without readers back.
func (v Value) dropIfUnread() {
	n := v.Node
	n.mu.Lock()
	defer n.mu.Unlock()
	if o := &n.out[v.Out]; (o.dead || n.unneeded(v.Out)) && o.uses.Load() == 0 && n.now() == Ready {
		n.drop(v.Out)
	}
}

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
	if n.now() == Ready && o.readers.none() {
		n.drop(i)
	}
}

// drop gives an output's data back for good. Called with mu held.
func (n *Node) drop(i int) {
	if o := &n.out[i]; !o.gone {
		o.gone = true
		o.forget()
	}
}

// forget gives an output's data back. Called with the node's mu held.
func (o *output) forget() {
	st := o.data.owner
	o.data = View{}
	if st == nil {
		return
	}
	if !o.spent {
		st.users.Add(-1)
	}
	if st.holders.Add(-1) == 0 {
		if buf := st.take(); buf != nil {
			buf.Release()
		}
	}
}

// addUses counts readers that wait of the inputs that n reads.
func addUses(n *Node, in []Value, by int64) {
	if len(in) == 0 {
		return
	}
	for _, v := range in[:n.specFrom(len(in))] {
		if v.Node.out[v.Out].readers.n.Add(by) == 0 {
			v.dropIfUnread()
		}
	}
}

// dropIfUnread gives the data of an output that has no readers back where nobody can read it.
func (v Value) dropIfUnread() {
	n := v.Node
	n.mu.Lock()
	defer n.mu.Unlock()
	o, s := &n.out[v.Out], n.now()
	if o.readers.none() && (s == Failed || s == Ready && (o.dead || o.spent || n.unneeded(v.Out))) {
		n.drop(v.Out)
	}
}

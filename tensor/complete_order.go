package tensor

import "slices"

// Changes of one holder end in their order: as long as one may fail all later ones are kept, since they are undone with
// it. Whether it may is no guess: a walk over what is left to compute finds the calls that may fail.

// left visits what is left to compute for the values, and at the ends of the walk what has failed or is scheduled, but
// not what cannot fail. In are a lazy node's inputs. It ends where visit returns false, and reports whether it
// did not.
func left(values []Value, visit func(n *Node, s State, in []Value) bool) bool {
	schedMu.Lock()
	defer schedMu.Unlock()
	claimID++
	var todo []*Node
	add := func(values []Value) {
		for _, v := range values {
			if n := v.Node; n.seenBy != claimID && (!n.sure && !n.proven.Load() || n.now() == Failed) {
				n.seenBy = claimID
				todo = append(todo, n)
			}
		}
	}
	for add(values); len(todo) > 0; {
		n := todo[len(todo)-1]
		todo = todo[:len(todo)-1]
		n.mu.Lock()
		s, in := n.now(), n.in
		n.mu.Unlock()
		if s == Ready || s == Failed && n.rare == buried {
			continue
		}
		if !visit(n, s, in) {
			return false
		}
		if s == Lazy {
			add(in[:n.specFrom(len(in))])
		}
	}
	return true
}

// mayFail reports whether one of the values may fail yet, by what is not computed.
func mayFail(values []Value) bool {
	var lazy []*Node
	if !left(values, func(n *Node, s State, in []Value) bool {
		lazy = append(lazy, n)
		return s == Lazy && !mayFailAt(n, len(in), n.specFrom(len(in)))
	}) {
		return true
	}
	for _, n := range lazy {
		n.proven.Store(true)
	}
	return false
}

// changes are the holder's that are not over, oldest first. A nil holder stands for those that have none.
func (h *Holder) changes() (list []*Change) {
	if changes.n.Load() == 0 {
		return nil
	}
	changes.Lock()
	defer changes.Unlock()
	for _, c := range changes.list {
		if c.holder == h {
			list = append(list, c)
		}
	}
	return list
}

// earlier are the changes of the same holder before this one.
func (c *Change) earlier() []*Change {
	list := c.holder.changes()
	return list[:max(slices.Index(list, c), 0)]
}

// endInOrder ends the change and those before it, of which none can fail.
func (c *Change) endInOrder() {
	for _, d := range c.earlier() {
		d.End()
	}
	c.End()
}

// evaluated ends changes that the job has computed new values of, when it is over.
func (j *job) evaluated() {
	j.mu.Lock()
	list := j.changes
	j.changes, j.fallible = nil, nil // nodes hold on to the job
	j.mu.Unlock()
	for len(list) > 0 {
		h := list[0].holder
		h.endComputed()
		list = slices.DeleteFunc(list, func(c *Change) bool { return c.holder == h })
	}
}

// endComputed ends the changes whose new values have all been computed, up to one that may fail or is being computed.
func (h *Holder) endComputed() {
	for _, c := range h.changes() {
		if some, all, ended := c.progress(); some && all {
			c.endInOrder()
		} else if !ended || c.mayFail() {
			return
		}
	}
}

// mayFail reports whether what is to be held of the new values may fail, or there was no memory for some.
func (c *Change) mayFail() bool {
	out, _ := c.ranOut()
	return out || mayFail(c.state())
}

// SettleChanges ends the changes that need not be undone any more, though nobody has asked for all that is new in them:
// what is left of it cannot fail, but for results that nobody has asked for when some of a later change have been
// computed. What is to be held may not be left like that: then it is asked for, as a program that never does would keep
// the old values of many steps.
func (h *Holder) SettleChanges() {
	list := h.changes()
	for i, c := range list {
		later := slices.ContainsFunc(list[i+1:], func(d *Change) bool { some, _, _ := d.progress(); return some })
		switch some, _, ended := c.progress(); {
		case c.mayFail():
			if later {
				c.ask()
			}
			return
		case !ended:
			return
		case some && (later || !mayFail(c.computed())):
			c.endInOrder()
		}
	}
}

// progress says whether some and all of the new values have been computed, and whether none has failed or is about to
// be computed.
func (c *Change) progress() (some, all, ended bool) {
	all, ended = true, true
	for _, v := range c.computed() {
		s := v.Node.State()
		some, all = some || s == Ready, all && s == Ready
		ended = ended && s != Scheduled && !v.wrong()
	}
	return some, all, ended
}

// ask has those of the values that may fail computed which nobody has asked for.
func (c *Change) ask() {
	fallback, err := (*Ctx)(nil).stream()
	var roots []Value
	for _, v := range c.state() {
		if v.Node.now() == Lazy && mayFail([]Value{v}) {
			roots = append(roots, v)
		}
	}
	if err == nil && len(roots) > 0 {
		submitValues(nobody, roots, fallback)
	}
}

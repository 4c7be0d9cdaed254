package tensor

import "errors"

// lazyNodes are a holder's nodes that nobody has asked for, as far as they were made since its last look or could be
// reached then. What they read is kept for them, in vain if nobody will ever ask. The list is the holder's goroutine's;
// others take it away as a whole, so that Go's collector sees what is garbage.
type lazyNodes struct {
	list    []*Node
	updates []*Node // those since Due was asked last that change an input in place: see Rules.Updates
}

// mostLazy bounds the list of a program that builds graphs and hands none of them over: the rest is the collector's.
const mostLazy = 1 << 15

// noteLazy notes a node that was made, if it can be handed over: those of a trace's placeholders cannot.
func (h *Holder) noteLazy(n *Node) {
	if len(n.in) == 0 || n.abstractTrace() != nil {
		return
	}
	l := h.lazy.Load()
	if l == nil || len(l.list) == mostLazy {
		l = &lazyNodes{}
		h.lazy.Store(l)
	}
	l.list = append(l.list, n)
	if n.op.updatesAny(n.attrs, len(n.out)) {
		l.updates = append(l.updates, n)
	}
}

// takeCopied is how many bytes the updates that nobody has handed over yet will copy if there is no look, of those made
// since it was asked last: their inputs may have handles.
func (h *Holder) takeCopied() (bytes int64) {
	l := h.lazy.Load()
	if l == nil || len(l.updates) == 0 {
		return 0
	}
	for _, n := range l.updates {
		for i := range n.out {
			v, ok := lazyInput(n, n.op.starts(n.attrs, i))
			for ok && !v.mayBeRead() && v.Node.op.view != nil { // what it is a view of may be
				v, ok = lazyInput(v.Node, 0)
			}
			if ok && v.mayBeRead() {
				bytes += n.out[i].spec.NBytes()
			}
		}
	}
	clear(l.updates)
	l.updates = l.updates[:0]
	return bytes
}

// lazyInput is input i of a node, if that is lazy and has one still.
func lazyInput(n *Node, i int) (v Value, ok bool) {
	n.mu.Lock()
	defer n.mu.Unlock()
	if i < 0 || n.now() != Lazy || i >= len(n.in) {
		return v, false
	}
	return n.in[i], true
}

// mayBeRead reports whether only a look can tell that the value's handle is garbage, and the value is no constant,
// which is written anew in any case.
func (v Value) mayBeRead() bool {
	n := v.Node
	n.mu.Lock()
	defer n.mu.Unlock()
	return !n.op.fills && !n.out[v.Out].dead && !n.unreachable(v.Out)
}

// lazyAVisit is how many nodes take as long to look at as a visit.
const lazyAVisit = 8

// noteUndone notes a node that is lazy again. Any goroutine may call it.
func (h *Holder) noteUndone(n *Node) {
	h.mu.Lock()
	defer h.mu.Unlock()
	if !h.closed && len(h.undone) < mostLazy {
		h.undone = append(h.undone, n)
	}
}

func (h *Holder) takeUndone() []*Node {
	h.mu.Lock()
	defer h.mu.Unlock()
	list := h.undone
	h.undone = nil
	return list
}

// buryLazy has nodes that nobody can ask for give up what they read. It says how long that took, in visits.
func (h *Holder) buryLazy() int64 {
	l, undone := h.lazy.Load(), h.takeUndone()
	if l == nil {
		if len(undone) == 0 {
			return 0
		}
		l = &lazyNodes{}
		h.lazy.Store(l)
	}
	list := l.list
	if len(undone) > 0 {
		list = append(undone, list...) // they are older
	}
	kept := len(list)                     // those from here on are kept
	for i := len(list) - 1; i >= 0; i-- { // what reads comes before what is read
		n := list[i]
		if n.now() != Lazy {
			continue
		}
		if n.anyReachable() {
			if !n.escaped() {
				kept--
				list[kept] = n
			}
		} else if n.unread() {
			n.bury()
		}
	}
	left := copy(list, list[kept:])
	clear(list[left:])
	l.list = list[:left]
	return int64(len(list)) / lazyAVisit
}

// anyReachable reports whether somebody may still ask for an output, by a handle or by a transform.
func (n *Node) anyReachable() bool {
	for i := range n.out {
		if !n.unreachable(i) {
			return true
		}
	}
	return n.inOpenTrace()
}

// escaped reports whether an output is the collector's.
func (n *Node) escaped() bool {
	for i := range n.out {
		if n.out[i].reached.Load() == escaped {
			return true
		}
	}
	return false
}

// unread reports whether no node reads an output.
func (n *Node) unread() bool {
	for i := range n.out {
		if !n.out[i].readers.none() {
			return false
		}
	}
	return true
}

// buried is what is left of a node that nobody could ask for.
var buried = &rare{err: errors.New("BUG: the array was found unreachable")}

// bury ends a lazy node that nobody can ask for, and those that only it reads.
func (n *Node) bury() {
	var few [8]*Node
	for todo := append(few[:0], n); len(todo) > 0; {
		n := todo[len(todo)-1]
		todo = todo[:len(todo)-1]
		n.mu.Lock()
		if n.now() != Lazy {
			n.mu.Unlock()
			continue
		}
		n.rare = buried
		n.state.Store(int32(Failed))
		in := n.in
		n.in = nil
		n.mu.Unlock()
		addUses(n, in, -1)
		for _, v := range in {
			if m := v.Node; m.holder == n.holder && m.now() == Lazy && !m.anyReachable() && m.unread() {
				todo = append(todo, m)
			}
		}
		clear(n.few[:])
	}
}

package tensor

import (
	"sync"
	"sync/atomic"

	"github.com/mlxlua/mlxlua/metal"
)

// Holder is a program that can tell which of its arrays it still reaches: a Lua state. What is made with its Ctx is its
// own, also what composite ops, gradients and batching rules make on the way. It looks from time to time (Look), and
// what a look does not reach is unreachable for good: nobody stores it, and its memory comes back. Arrays that other
// programs hold as well have to Escape.
//
// A holder belongs to one goroutine at a time, where nothing else is said.
type Holder struct {
	// epoch numbers the looks that have ended: 0, 2, 4 ... An output has the epoch that it was made in, or one more than
	// that of the last look that reached it. If that is less than the holder's, the output is unreachable; if it is odd
	// and not less, it is proven to be reachable.
	epoch atomic.Uint64
	begun uint64 // the epoch of the last look that began
	pace  lookPace
	lazy  atomic.Pointer[lazyNodes] // what nobody may ask for: see buryLazy

	batchInvariant atomic.Bool // see SetBatchInvariant

	limits HolderLimits
	calls  atomic.Int32 // under way: see Enter
	owner  metal.Owner  // of its arrays' memory
	work   work

	mu     sync.Mutex
	closed bool
	stored []storedOutput // what holds much memory
	undone []*Node        // what is lazy again
	dev    *metal.Device  // whose it was last
	fresh  int64          // bytes listed since the last look
	told   int64          // those of them that the device was told of: see late
	missed []Place        // while poisoning: where the looks were, from the first one on
}

// NewHolder makes a holder, whose arrays are bounded by the limits.
func NewHolder(limits HolderLimits) *Holder {
	h := &Holder{limits: limits, owner: metal.NewOwner()}
	holders.add(h)
	return h
}

// escaped is the number of outputs of which looks say nothing.
const escaped = ^uint64(0)

// adopt makes the outputs of a new node the holder's, if there is one.
func (n *Node) adopt(h *Holder) {
	if h == nil {
		n.alike = batchInvariant.Load()
		return
	}
	n.holder, n.alike = h, h.batchInvariant.Load()
	epoch := h.epoch.Load()
	for i := range n.out {
		n.out[i].reached.Store(epoch)
		if n.op.view == nil && n.op.starts(n.attrs, i) < 0 {
			h.pace.made.bytes += n.out[i].spec.NBytes()
		}
	}
	h.pace.made.nodes++
	h.pace.made.flops += countedFlops(n, n.in)
	h.work.made += sizeOf(n)
	h.noteLazy(n)
}

// Escape says that others than its holder may hold x: Go's collector learns when nobody does, and nobody else.
func (x *Array) Escape() {
	if x == nil || x.node == nil {
		return
	}
	x.Share()
	x.node.escape(int(x.out))
}

// escape is Escape for output i. Its memory counts as the collector's from now on, or from when it is there.
func (n *Node) escape(i int) {
	n.out[i].reached.Store(escaped)
	if n.now() != Ready {
		return
	}
	n.mu.Lock()
	defer n.mu.Unlock()
	if st := n.out[i].data.owner; st != nil && st.owned != nil {
		st.owned.Untrack()
	}
}

// Hold adds a handle of x that belongs to h; nil is a Go program, which never looks. If h is not the node's holder, x
// escapes.
func (x *Array) Hold(h *Holder) {
	if x == nil || x.node == nil {
		return
	}
	x.Share()
	x.node.mu.Lock()
	defer x.node.mu.Unlock()
	x.node.hold(int(x.out), h)
}

// hold adds a handle of output i that belongs to h; nil is a Go program. Called with mu held.
func (n *Node) hold(i int, h *Holder) {
	reached := &n.out[i].reached
	switch {
	case n.holder == nil:
	case n.holder != h:
		reached.Store(escaped)
	case n.unreachable(i):
		reached.Store(h.epoch.Load())
	}
}

// proof is what an evaluation knows of a holder's outputs: what the holder knew when the evaluation was handed over.
// What it learns later has no say, so that a plan does not depend on how long things take.
type proof struct {
	holder *Holder
	epoch  uint64
}

// prove notes what the first holder among those of the job's roots knows.
func (j *job) prove() {
	for _, v := range j.roots {
		if h := v.Node.holder; h != nil {
			j.proof = proof{h, h.epoch.Load()}
			return
		}
	}
}

// unreachable reports whether the node's holder is known not to reach output i.
func (p proof) unreachable(n *Node, i int) bool {
	if n.holder == nil || n.holder != p.holder {
		return n.unreachable(i)
	}
	return n.out[i].reached.Load() < p.epoch
}

// reachable reports whether the node's holder is known to reach output i.
func (p proof) reachable(n *Node, i int) bool {
	reached := n.out[i].reached.Load()
	return n.holder != nil && n.holder == p.holder && reached != escaped && reached > p.epoch
}

// unreachable reports whether the node's holder is known by now not to reach output i.
func (n *Node) unreachable(i int) bool {
	return n.holder != nil && n.out[i].reached.Load() < n.holder.epoch.Load()
}

// unneeded reports whether output i is unreachable for transforms too.
func (n *Node) unneeded(i int) bool { return n.unreachable(i) && !n.inOpenTrace() }

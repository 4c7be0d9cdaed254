package tensor

import (
	"runtime"
	"sync"
	"sync/atomic"
	"weak"

	"github.com/mlxlua/mlxlua/metal"
)

// Look is a holder's look at its arrays under way: Reach tells what it reaches, and End that this was all. A look that
// does not End says nothing.
type Look struct {
	holder *Holder
	epoch  uint64
	asked  bool // by Due; others ask for looks whatever they take
}

// BeginLook begins a look: because Due said so, or because it is asked for whatever it takes.
func (h *Holder) BeginLook(due bool) Look {
	h.begun += 2
	return Look{h, h.begun, due}
}

// Reach tells that the holder reaches x.
func (l Look) Reach(x *Array) {
	if x == nil || x.node == nil || x.node.holder != l.holder {
		return
	}
	o := &x.node.out[x.out]
	if r := o.reached.Load(); r != escaped && r != l.epoch+1 {
		o.reached.Store(l.epoch + 1)
	}
}

// End tells that the holder reaches no more of its arrays than Reach was told of. Memory that nothing needs for them
// goes back to the pool. Visits is how many things were looked at, and at the place that the program had come to.
func (l Look) End(visits int64, at Place) {
	h := l.holder
	if poisoning.Load() {
		h.mu.Lock()
		for uint64(len(h.missed)) < l.epoch/2 {
			h.missed = append(h.missed, at)
		}
		h.mu.Unlock()
	}
	h.lookDone()
	h.epoch.Store(l.epoch)
	h.pace.looked(visits+h.buryLazy(), l.asked)
	h.giveBack()
}

// leastStored is the size of buffers from which a holder lists the outputs in them, to give them back after a look.
// What is smaller goes back when Go's collector finds it, or with what reads it.
const leastStored = 4 << 10

// storedOutput is an output in a holder's list. The node is weak where the collector was asked to find out whether
// anything else refers to it.
type storedOutput struct {
	node *Node
	weak weak.Pointer[Node]
	out  int32
}

// get is the node, or nil if it is gone.
func (s *storedOutput) get() *Node {
	if s.node != nil {
		return s.node
	}
	return s.weak.Value()
}

// lists reports whether outputs in that buffer are listed.
func (h *Holder) lists(b *metal.Buffer) bool { return h != nil && b.Len() >= leastStored }

// list notes that output i lies in a storage, for giveBack.
func (h *Holder) list(n *Node, i int, st *storage) {
	h.mu.Lock()
	defer h.mu.Unlock()
	if h.closed {
		return
	}
	h.stored = append(h.stored, storedOutput{node: n, out: int32(i)})
	h.fresh += st.buf.Len()
	h.dev = st.dev
}

// deferLook tells the device how much was stored since the last look: from weakBytes on collections are paced by it.
// It is called where a look is not worth its time.
func (h *Holder) deferLook() {
	h.mu.Lock()
	defer h.mu.Unlock()
	if n := h.fresh - h.told; n >= weakBytes {
		h.dev.AddUntracked(n)
		h.told += n
	}
}

// lookDone takes back what deferLook has told.
func (h *Holder) lookDone() {
	h.mu.Lock()
	defer h.mu.Unlock()
	if h.told > 0 {
		h.dev.AddUntracked(-h.told)
	}
	h.fresh, h.told = 0, 0
}

// giveBack gives back the memory of listed outputs that are unreachable. What an evaluation under way still needs goes
// back when that is over: see dropIfUnread and settleHeld.
func (h *Holder) giveBack() {
	h.mu.Lock()
	list := h.stored
	h.stored = nil
	h.mu.Unlock()
	kept := list[:0]
	for i := range list {
		s := &list[i]
		n := s.get()
		switch {
		case n == nil:
		case !n.unneeded(int(s.out)):
			kept = append(kept, *s)
		default:
			Value{n, int(s.out)}.dropIfUnread()
		}
	}
	clear(list[len(kept):])
	h.mu.Lock()
	h.stored = append(kept, h.stored...)
	h.mu.Unlock()
}

// weaken leaves it to Go's collector to find out which of the listed outputs nobody can read.
func (h *Holder) weaken() {
	h.mu.Lock()
	defer h.mu.Unlock()
	h.undone = nil
	h.lazy.Store(nil)
	for i := range h.stored {
		if s := &h.stored[i]; s.node != nil {
			s.weak, s.node = weak.Make(s.node), nil
		}
	}
}

// Close says that the holder will not look any more: its arrays are the collector's.
func (h *Holder) Close() {
	h.mu.Lock()
	h.stored, h.undone, h.closed = nil, nil, true
	if h.told > 0 {
		h.dev.AddUntracked(-h.told)
	}
	h.lazy.Store(nil)
	h.mu.Unlock()
	if u := h.limits.Libraries; u != nil {
		u.Close()
	}
}

// holders knows the holders that there are.
var holders holderSet

type holderSet struct {
	mu   sync.Mutex
	list map[weak.Pointer[Holder]]struct{}
}

func (s *holderSet) add(h *Holder) {
	w := weak.Make(h)
	s.mu.Lock()
	if s.list == nil {
		s.list = map[weak.Pointer[Holder]]struct{}{}
	}
	s.list[w] = struct{}{}
	s.mu.Unlock()
	runtime.AddCleanup(h, func(w weak.Pointer[Holder]) {
		s.mu.Lock()
		delete(s.list, w)
		s.mu.Unlock()
	}, w)
}

// weaken is every holder's, before a collection that is to find unreachable arrays.
func (s *holderSet) weaken() {
	s.mu.Lock()
	defer s.mu.Unlock()
	for w := range s.list {
		if h := w.Value(); h != nil {
			h.weaken()
		}
	}
}

// poisoning is set in tests: to use an array that a look did not reach is an error.
var poisoning atomic.Bool

// Poison switches on or off that using an array which its holder has found unreachable is an error, and reports what
// it was: for tests. No program can do that but by a bug of its holder's.
func Poison(on bool) (before bool) { return poisoning.Swap(on) }

// Poisoning reports whether Poison has switched it on.
func Poisoning() bool { return poisoning.Load() }

// poisoned says where a look has missed the array, if it has and arrays are poisoned.
func (x *Array) poisoned(op string, c *Ctx) error {
	n := x.node
	if !poisoning.Load() || !n.unreachable(int(x.out)) {
		return nil
	}
	h, at := n.holder, Place{}
	h.mu.Lock()
	if i := int(n.out[x.out].reached.Load() / 2); i < len(h.missed) { // the first look after that number's
		at = h.missed[i]
	}
	h.mu.Unlock()
	return c.Errorf(op, "BUG: the array made at %s was found unreachable at %s", orUnknown(n.Place()), orUnknown(at))
}

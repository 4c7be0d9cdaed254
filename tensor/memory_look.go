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
}

// BeginLook begins a look.
func (h *Holder) BeginLook() Look {
	h.begun += 2
	return Look{h, h.begun}
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
	h.inTime()
	h.epoch.Store(l.epoch)
	h.pace.looked(visits + h.buryLazy())
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

// late tells the device how much has been stored since the last look, where there would have been one if looks cost
// nothing: more than a little of it is Go's collector's business.
func (h *Holder) late() {
	h.mu.Lock()
	defer h.mu.Unlock()
	if n := h.fresh - h.told; n >= weakBytes {
		h.dev.Late(n)
		h.told += n
	}
}

// inTime takes back what late has said.
func (h *Holder) inTime() {
	h.mu.Lock()
	defer h.mu.Unlock()
	if h.told > 0 {
		h.dev.Late(-h.told)
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
		h.dev.Late(-h.told)
	}
	h.lazy.Store(nil)
	h.mu.Unlock()
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

// Missed says that a look came to nothing after so many visits.
func (h *Holder) Missed(visits int64) {
	h.pace.cost += lookTime + visits*visitTime
}

// lookPace decides when a look is worth its time. It goes by counts alone, so that a program looks at the same places
// whenever it runs: by what its evaluations had to do they pay for looks, which may take a small share of that.
type lookPace struct {
	nodes, bytes int64 // made since the last look, of which nothing is proven
	asked        int64 // how often Due was asked since then
	async        lookCount
	cost         int64        // ns: of the last look, and of those that came to nothing since then
	paid         atomic.Int64 // ns: what evaluations took since the last look
}

// lookCount is what was made, and not looked at, when something was handed over.
type lookCount struct{ nodes, bytes int64 }

// What things are taken to take, in ns. They are the least that was measured on two processors.
const (
	handTime    = 5000 // to hand something over
	nodeTime    = 1200 // to build a node from Lua and to record it
	commandTime = 1000 // to launch a kernel
	byteShift   = 5    // 32 bytes a ns are written
	visitTime   = 40   // to look at a table, an entry or a register
	lookTime    = 1500 // to begin and end a look
	lookShare   = 33   // looks take at most so small a part of the time
)

func taken(nodes, bytes int64) int64 { return nodes*nodeTime + bytes>>byteShift }

// Due reports whether a look is worth its time, where something is about to be handed over. Looks come after 1, 2, 4, 8
// ... times that it is asked: a program that does the same over and over looks at the same places each time.
func (h *Holder) Due() bool {
	p := &h.pace
	p.asked++
	if p.asked&(p.asked-1) == 0 && taken(p.nodes, p.bytes) >= p.cost && p.paid.Load()/lookShare >= p.cost {
		return true
	}
	h.late()
	return false
}

// looked notes that a look has ended that looked at so many things.
func (p *lookPace) looked(visits int64) {
	p.cost = lookTime + visits*visitTime
	p.paid.Store(0)
	p.nodes, p.bytes, p.asked, p.async = 0, 0, 0, lookCount{}
}

// HandedOver says that the holder has handed something over without waiting. That pays for looks as if it computed all
// that was made since the last time: what it does compute is known too late for the same program to look at the same
// places whenever it runs.
func (h *Holder) HandedOver() {
	p := &h.pace
	p.paid.Add(handTime + taken(p.nodes-p.async.nodes, p.bytes-p.async.bytes))
	p.async = lookCount{p.nodes, p.bytes}
}

// pay pays for looks what an evaluation that is over took.
func (j *job) pay() {
	if h := j.proof.holder; h != nil {
		h.pace.paid.Add(handTime + taken(j.tasks.Load(), j.bytes.Load()) + j.commands.Load()*commandTime)
	}
}

// poisoning is set in tests: to use an array that a look did not reach is an error.
var poisoning atomic.Bool

// Poison switches on or off that using an array which its holder has found unreachable is an error, and reports what
// it was: for tests. No program can do that but by a bug of its holder's.
func Poison(on bool) (before bool) { return poisoning.Swap(on) }

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

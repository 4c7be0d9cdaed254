package tensor

import "sync/atomic"

// lookPace decides when a look is worth its time. It goes by counts alone, so that a program looks at the same places
// whenever it runs. What evaluations took pays for looks, which may take a small share of that.
type lookPace struct {
	made   madeCount    // since the last look: nothing is proven of it
	asked  int64        // how often Due was asked since then
	known  madeCount    // what was made when it was asked last
	fresh  int64        // ns: what was made in between takes so long
	cost   int64        // ns: of the last look
	copied int64        // bytes that updates since the last look have copied, and will
	spare  bool         // the next look is paid for by the copies that it spares
	owed   int64        // ns: what looks took that nothing has paid for, as of the last one
	paid   atomic.Int64 // ns: what evaluations took since the last look
}

// madeCount is what a holder has made, and not looked at.
type madeCount struct{ nodes, bytes, flops int64 }

// Estimates in ns: about the least measured on two processors.
const (
	handTime    = 5000 // to hand something over
	nodeTime    = 1200 // to build a node from Lua and to record it
	commandTime = 1000 // to launch a kernel
	byteShift   = 5    // 32 bytes a ns are written
	copyShift   = 3    // 8 bytes a ns are copied to memory that nobody had before
	flopsANano  = 200  // operations a ns, where an op says how many it takes: products, convolutions
	visitTime   = 15   // for a visit, a part of them to what has left the cache
	lookTime    = 1500 // to begin and end a look
	lookShare   = 33   // looks take at most so small a part of the time
)

// taken is how long what was made since some earlier time takes to build and to compute.
func (m madeCount) taken(since madeCount) int64 {
	return (m.nodes-since.nodes)*nodeTime + (m.bytes-since.bytes)>>byteShift + (m.flops-since.flops)/flopsANano
}

// Due reports whether a look is worth its time, where something is about to be handed over. It is if evaluations have
// paid for the last one, after 1, 2, 4, 8 ... times that it is asked: a program that does the same over and over looks
// at the same places each time. And it is if what was made since Due was asked last will pay for it, or if updates in
// place take as long to copy what may still be held.
func (h *Holder) Due() bool {
	p := &h.pace
	p.asked++
	p.fresh = p.made.taken(p.known)
	p.known = p.made
	copied := h.takeCopied()
	p.copied += copied
	if p.spare = copied > 0 && p.copied>>copyShift >= p.cost; p.spare {
		return true
	}
	if p.made.taken(madeCount{}) >= p.cost &&
		(p.fresh/lookShare >= p.owed || p.asked&(p.asked-1) == 0 && p.paid.Load()/lookShare >= p.owed) {
		return true
	}
	h.deferLook()
	return false
}

// looked notes the end of a look with so many visits. Its cost is owed only if Due asked for it.
func (p *lookPace) looked(visits int64, due bool) {
	p.cost = lookTime + visits*visitTime
	p.owed = max(p.owed-p.paid.Swap(0)/lookShare, 0)
	if due && !p.spare {
		p.owed += p.cost
	}
	p.made, p.known, p.asked, p.copied, p.spare = madeCount{}, madeCount{}, 0, 0, false
}

// Missed says that a look that Due asked for came to nothing after so many visits.
func (h *Holder) Missed(visits int64) { h.pace.owed += lookTime + visits*visitTime }

// HandedOver says that the holder has handed something over without waiting. That pays for looks as if it computed all
// that was made since Due was asked before: what it does compute is known too late for the same program to look at the
// same places whenever it runs.
func (h *Holder) HandedOver() { h.pace.paid.Add(handTime + h.pace.fresh) }

// pay pays for looks what an evaluation that is over took.
func (j *job) pay() {
	if h := j.proof.holder; h != nil {
		made := madeCount{j.tasks.Load(), j.bytes.Load(), j.flops.Load()}
		h.pace.paid.Add(handTime + made.taken(madeCount{}) + j.commands.Load()*commandTime)
	}
}

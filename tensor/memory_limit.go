package tensor

import (
	"math"
	"sync/atomic"
	"time"

	"github.com/mlxlua/mlxlua/metal"
)

// HolderLimits bound what a holder's arrays take. The zero value bounds nothing.
type HolderLimits struct {
	Memory *metal.Account // that their buffers are charged to; nil: none
	// Libraries is whom kernels are compiled for; nil: the program.
	Libraries *metal.LibraryUser
	Kernels   *KernelTime // that the run of what they need is charged to; nil: none
	// Going is asked now and then, on the holder's goroutine, while it builds graphs or goes over them, and before it
	// makes so many bytes more at once. An error ends that.
	Going func(more int64) error
	// Outside is the error of computing the holder's arrays while no call of its own is under way: see Enter. nil: others
	// may compute them at any time.
	Outside error
	// Checked says that kernels of the holder's own, which may do anything, run only on devices that keep each to its
	// buffers: metal.FaultsPlaced.
	Checked bool
}

// Enter begins a call of the holder's, in which its arrays are computed under its limits, and Leave ends it. Calls may
// be within each other.
func (h *Holder) Enter() { h.calls.Add(1) }

// Leave ends what Enter began.
func (h *Holder) Leave() { h.calls.Add(-1) }

// outside is the error of computing x, or what depends on it, where only its holder may do that, and not now.
func (x *Array) outside(op string, c *Ctx) error {
	n := x.node
	if h := n.holder; h == nil || h.limits.Outside == nil || h.calls.Load() > 0 || n.now() != Lazy {
		return nil
	}
	return c.Errorf(op, "%s has no value: %w", x.describe(), n.holder.limits.Outside)
}

// KernelTime bounds how long a device works for a holder between two calls of Reset.
type KernelTime struct {
	limit   time.Duration
	refusal error
	over    func()
	used    atomic.Int64 // nanoseconds
	until   atomic.Int64 // when the holder's work ends anyway, in Unix nanoseconds; 0: unknown
}

// NewKernelTime is a KernelTime. What is evaluated when the time is over fails with refusal and stays lazy; over is
// called then, from any goroutine. A limit of 0 is none.
func NewKernelTime(limit time.Duration, refusal error, over func()) *KernelTime {
	return &KernelTime{limit: limit, refusal: refusal, over: over}
}

// Reset begins anew. What is evaluated from now on is of no use after until, unless that is zero: what certainly takes
// longer is not begun.
func (k *KernelTime) Reset(until time.Time) {
	k.used.Store(0)
	if until.IsZero() {
		k.until.Store(0)
	} else {
		k.until.Store(until.UnixNano())
	}
}

// bounded reports whether there is a limit.
func (k *KernelTime) bounded() bool { return k.limit > 0 }

// end is when what begins now, and goes on without a break, is over; zero: it is not bounded.
func (k *KernelTime) end(now time.Time) (end time.Time) {
	if k.bounded() {
		end = now.Add(k.left())
	}
	if ns := k.until.Load(); ns != 0 {
		if until := time.Unix(0, ns); end.IsZero() || until.Before(end) {
			end = until
		}
	}
	return end
}

// left is how much time there is where that is bounded.
func (k *KernelTime) left() time.Duration { return k.limit - time.Duration(k.used.Load()) }

// charge adds time that was taken.
func (k *KernelTime) charge(d time.Duration) { k.used.Add(int64(max(d, 0))) }

// account is what the holder's buffers are charged to, nil for none. The holder may be nil.
func (h *Holder) account() *metal.Account {
	if h == nil {
		return nil
	}
	return h.limits.Memory
}

// memory is whose the holder's buffers are, the Go program's for none. The holder may be nil.
func (h *Holder) memory() metal.Owner {
	if h == nil {
		return 0
	}
	return h.owner
}

// kernels is what the holder's command buffers are charged to, nil for nothing. The holder may be nil.
func (h *Holder) kernels() *KernelTime {
	if h == nil {
		return nil
	}
	return h.limits.Kernels
}

// Libraries is what the holder's kernels are the libraries of; nil: they are the program's. The holder may be nil.
func (h *Holder) Libraries() *metal.LibraryUser {
	if h == nil {
		return nil
	}
	return h.limits.Libraries
}

// Account is what the holder's buffers are charged to; nil: nothing.
func (h *Holder) Account() *metal.Account { return h.limits.Memory }

// timed has the batch's run charged to what bounds the kernels of its job: past that it is stopped.
func (b *batch) timed() {
	k := b.job.proof.holder.kernels()
	if k == nil || !k.bounded() || b.cb == nil {
		return
	}
	var timer *time.Timer
	b.cb.OnStart(func() {
		if left := k.left(); left > 0 {
			timer = time.AfterFunc(left, func() { b.job.overrun(k) })
		} else {
			go b.job.overrun(k)
		}
	})
	b.cb.OnComplete(func(error) {
		if timer != nil {
			timer.Stop()
		}
		when := b.cb.Timing()
		k.charge(when.End.Sub(when.Start))
	})
}

// overrun stops the job because the time of its holder's kernels is over.
func (j *job) overrun(k *KernelTime) {
	k.charge(k.left())
	j.runOut(k.refusal, math.MaxUint64)
	k.over()
}

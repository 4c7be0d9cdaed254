package tensor

import (
	"context"
	"runtime"
	"slices"

	"github.com/mlxlua/mlxlua/metal"
)

// UnsetDevice forgets an opened device.
func UnsetDevice(dev *metal.Device) {
	claimAll(nil)
	registry.Lock()
	defer registry.Unlock()
	registry.current.Store(nil)
	for d, x := range registry.devices {
		if x == dev {
			delete(registry.devices, d)
			delete(registry.defaults, d)
		}
	}
}

// HoldClaims keeps everybody from claiming what was handed over until release is called.
func HoldClaims() (release func()) {
	schedMu.Lock()
	return schedMu.Unlock
}

// LeaveToCallers keeps goroutines of the engine from claiming what is handed over to s first, until release is called:
// callers who need to know claim it.
func LeaveToCallers(s *Stream) (release func()) {
	registry.Lock()
	others := slices.Clone(registry.streams)
	registry.Unlock()
	for _, o := range others {
		for !o.reserve() { // it is about to end
			runtime.Gosched()
		}
		if o != s {
			o.mu.Lock()
			o.running = false
			o.mu.Unlock()
		}
	}
	for !reserveHelp() {
		runtime.Gosched()
	}
	return func() {
		handed.Lock()
		handed.helping = false
		handed.Unlock()
		go s.loop()
	}
}

// reserveHelp is help without a goroutine.
func reserveHelp() bool {
	handed.Lock()
	defer handed.Unlock()
	if handed.helping {
		return false
	}
	handed.helping = true
	return true
}

// reserve is start without a goroutine.
func (s *Stream) reserve() bool {
	s.mu.Lock()
	defer s.mu.Unlock()
	if s.running {
		return false
	}
	s.running = true
	return true
}

// Claimed reports whether x was claimed, and sees to nothing.
func Claimed(x *Array) bool { return !x.node.claimable() }

// Pending is the number of command buffers of the stream that have not been settled.
func (s *Stream) Pending() int {
	s.mu.Lock()
	defer s.mu.Unlock()
	return len(s.pending)
}

// RecorderWaits is how often the stream's recorder has waited for what another stream computes.
func RecorderWaits(s *Stream) int64 { return s.waits.Load() }

// Scratch is the longest list that claiming keeps for later evaluations, the limit of that, and how many nodes or jobs
// the lists still refer to.
func Scratch() (longest, limit, refer int) {
	schedMu.Lock()
	defer schedMu.Unlock()
	for _, f := range claimScratch.frames[:cap(claimScratch.frames)] {
		if f.n != nil {
			refer++
		}
	}
	for _, j := range spareJobs[:cap(spareJobs)] {
		if j != nil {
			refer++
		}
	}
	return max(cap(claimScratch.frames), cap(claimScratch.segs), cap(spareJobs)), maxSpare, refer
}

// MakeDims is a Dims of numbers only.
func MakeDims(n ...int) Dims { d, _ := Sizes(n...).Bind(nil); return d }

// AboutToGiveUp makes it seem as if a call waited for w, until release is called.
func AboutToGiveUp(w *Work) (release func()) {
	waiting := &waiter{ctx: context.Background(), job: w.job}
	waiting.begin()
	return waiting.end
}

// Unforeseen is how many nodes that may fail the work keeps.
func Unforeseen(w *Work) int { return len(w.job.unforeseen()) }

// Host is the memory that a view lies in, as the host sees it.
func Host(v View) []byte {
	if v.buf == nil {
		return v.inline
	}
	return v.buf.Host()
}

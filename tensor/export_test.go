package tensor

import (
	"runtime"
	"slices"
)

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

// Claimed says whether x was claimed, and sees to nothing.
func Claimed(x *Array) bool { return !x.node.claimable() }

// Pending is the number of command buffers of the stream that have not been settled.
func (s *Stream) Pending() int {
	s.mu.Lock()
	defer s.mu.Unlock()
	return len(s.pending)
}

// Scratch is the longest list that claiming keeps for later evaluations, the limit of that, and how many nodes or jobs
// the lists still refer to.
func Scratch() (longest, limit, refer int) {
	schedMu.Lock()
	defer schedMu.Unlock()
	for _, f := range walking.frames[:cap(walking.frames)] {
		if f.n != nil {
			refer++
		}
	}
	for _, j := range spareJobs[:cap(spareJobs)] {
		if j != nil {
			refer++
		}
	}
	return max(cap(walking.frames), cap(walking.segs), cap(spareJobs)), maxSpare, refer
}

package tensor

import "runtime"

// HoldClaims keeps everybody from claiming what was handed over until release is called.
func HoldClaims() (release func()) {
	schedMu.Lock()
	return schedMu.Unlock
}

// LeaveToCallers keeps the stream's goroutine from claiming, and there is no other until release is called: what was
// handed over is claimed by callers who need to know.
func LeaveToCallers(s *Stream) (release func()) {
	for !s.reserve() {
		runtime.Gosched() // it is about to end
	}
	handed.Lock()
	handed.helping = true
	handed.Unlock()
	return func() {
		handed.Lock()
		handed.helping = false
		handed.Unlock()
		go s.loop()
	}
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

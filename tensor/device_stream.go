package tensor

import (
	"context"
	"fmt"
	"sync"
	"sync/atomic"

	"github.com/mlxlua/mlxlua/metal"
)

// Stream is a queue of work on a device. Work of one stream is done in the order in which it was asked for; streams
// run beside each other. Planning and recording happen on a goroutine of the stream, which lives as long as there is
// work.
type Stream struct {
	device DeviceID
	index  int
	dev    *metal.Device

	mu      sync.Mutex
	queue   []*segment
	running bool
	idle    chan struct{} // closed when there is nothing queued or running; nil if that is so
	pending []*batch      // committed and not settled, oldest first
	news    chan struct{} // closed when there are more, or fewer; nil if nobody waits for that
	waits   atomic.Int64  // how often its recorder has waited for what another stream computes

	settling sync.Mutex // held while batches are settled
	spare    spareLists
	pace     pace     // of the stream's goroutine, as recorder
	recorder recorder // of the stream's goroutine
}

// NewStream makes a stream. It fails if the device is not open.
func NewStream(d DeviceID) (*Stream, error) {
	registry.Lock()
	defer registry.Unlock()
	s, err := newStream(d)
	if err != nil {
		return nil, fmt.Errorf("[new_stream] %w", err)
	}
	return s, nil
}

func newStream(d DeviceID) (*Stream, error) {
	dev, err := openDevice(d)
	if err != nil {
		return nil, err
	}
	s := &Stream{device: d, index: len(registry.streams), dev: dev}
	s.recorder.init(s)
	registry.streams = append(registry.streams, s)
	return s, nil
}

// DefaultStream is the stream of ops that are given none, on that device. It fails if the device is not open.
func DefaultStream(d DeviceID) (*Stream, error) {
	registry.Lock()
	defer registry.Unlock()
	return defaultStream(d)
}

func defaultStream(d DeviceID) (*Stream, error) {
	if s := registry.defaults[d]; s != nil {
		return s, nil
	}
	s, err := newStream(d)
	if err != nil {
		return nil, err
	}
	registry.defaults[d] = s
	return s, nil
}

// Device is where the stream runs.
func (s *Stream) Device() DeviceID { return s.device }

// Current reports whether the stream's device is still the one of its name: SetDevice may put another in its place.
func (s *Stream) Current() bool {
	registry.Lock()
	defer registry.Unlock()
	return registry.devices[s.device] == s.dev
}

// Index numbers the streams of the program from 0.
func (s *Stream) Index() int { return s.index }

// String is MLX's text: "Stream(Device(cpu, 0), 0)".
func (s *Stream) String() string { return fmt.Sprintf("Stream(%v, %d)", s.device, s.index) }

// stream is where the call runs: nil as long as no device is open, which evaluation resolves.
func (c *Ctx) stream() (*Stream, error) {
	if c != nil && c.Stream != nil {
		return c.Stream, nil
	}
	if s := registry.current.Load(); s != nil {
		return s, nil
	}
	registry.Lock()
	defer registry.Unlock()
	if len(registry.devices) == 0 {
		return nil, nil
	}
	s, err := defaultStream(registry.chosen)
	if err == nil {
		registry.current.Store(s)
	}
	return s, err
}

// Synchronize waits until the streams (none given: all) have done all work that they were given before the call, or
// ctx is done: then it returns the context's cause. Failed work is no error here: it is that of its arrays.
func Synchronize(ctx context.Context, streams ...*Stream) error {
	if ctx == nil {
		ctx = context.Background()
	}
	claimAll(nil)
	w := waiter{ctx: ctx}
	w.begin()
	defer w.end()
	if len(streams) == 0 {
		registry.Lock()
		streams = append(streams, registry.streams...)
		registry.Unlock()
	}
	for _, s := range streams {
		s.mu.Lock()
		idle := s.idle
		s.mu.Unlock()
		if idle == nil {
			continue
		}
		select {
		case <-idle:
		case <-ctx.Done():
			return context.Cause(ctx)
		}
	}
	return nil
}

// enqueue hands segments over, in order. Called with schedMu held, so that all streams agree on the order of
// evaluations.
func (s *Stream) enqueue(seg *segment) {
	s.mu.Lock()
	defer s.mu.Unlock()
	s.queue = append(s.queue, seg)
	if s.idle == nil {
		s.idle = make(chan struct{})
	}
	s.startHeld()
}

// start has the stream's goroutine claim what was handed over before the call. It reports whether that happens at once:
// a goroutine that is at work comes to it later.
func (s *Stream) start() bool {
	s.mu.Lock()
	defer s.mu.Unlock()
	return s.startHeld()
}

// startHeld starts the stream's goroutine, and reports false if it was running. Called with mu held.
func (s *Stream) startHeld() bool {
	if s.running {
		return false
	}
	s.running = true
	go func() {
		deepStack(0)
		s.loop()
	}()
	return true
}

// deepStack gives its goroutine a stack as deep as planning and recording take. A stream's goroutine is a new one for
// each evaluation of a script that waits for every value: it would double its stack again and again, each time below
// more frames, which is 3 us of the 20 of a small product.
//
//go:noinline
func deepStack(i int) byte {
	var frame [10 << 10]byte
	return frame[i]
}

// loop claims evaluations, and plans and records segments, until there are none.
func (s *Stream) loop() {
	for {
		claimAll(s)
		s.mu.Lock()
		if len(s.queue) == 0 {
			if handed.unclaimed.Load() > 0 { // since claimAll
				s.mu.Unlock()
				continue
			}
			s.running = false
			s.settleIdle()
			s.mu.Unlock()
			return
		}
		seg := s.queue[0]
		s.queue[0] = nil
		s.queue = s.queue[1:]
		s.mu.Unlock()
		s.recorder.runSegment(seg)
	}
}

// pendingFresh is how many bytes from the pool the pending batches have. Called with mu held.
func (s *Stream) pendingFresh() (n int64) {
	for _, b := range s.pending {
		n += b.fresh
	}
	return n
}

// busy reports whether the device has work of the stream's.
func (s *Stream) busy() bool {
	s.mu.Lock()
	defer s.mu.Unlock()
	return len(s.pending) > 0
}

// settleIdle tells Synchronize if all is done. Called with mu held.
func (s *Stream) settleIdle() {
	if s.idle != nil && !s.running && len(s.queue) == 0 && len(s.pending) == 0 {
		close(s.idle)
		s.idle = nil
	}
}

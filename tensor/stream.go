package tensor

import (
	"context"
	"errors"
	"fmt"
	"sync"
	"sync/atomic"

	"github.com/mlxlua/mlxlua/metal"
)

// DeviceKind is a kind of processor.
type DeviceKind uint8

// The kinds.
const (
	CPU DeviceKind = iota
	GPU
)

// String is "cpu" or "gpu".
func (k DeviceKind) String() string {
	if k == CPU {
		return "cpu"
	}
	return "gpu"
}

// DeviceID names a processor that streams run on.
type DeviceID struct {
	Kind  DeviceKind
	Index int
}

// String is MLX's text: "Device(cpu, 0)".
func (d DeviceID) String() string { return fmt.Sprintf("Device(%v, %d)", d.Kind, d.Index) }

// ErrNoDevice is the error of evaluating without a device.
var ErrNoDevice = errors.New("no device: call drivers.Open")

// registry holds the opened devices and the streams.
var registry struct {
	sync.Mutex
	devices  map[DeviceID]*metal.Device
	chosen   DeviceID // the default, where it is open
	defaults map[DeviceID]*Stream
	streams  []*Stream
	current  atomic.Pointer[Stream] // the default stream of the default device, nil while nobody has asked
}

// SetDevice makes an opened device the one of its kind: "cpu" in its Info is CPU, all others GPU. The first one
// becomes the default device. Streams and arrays of a device that was set before stay with that. A nil device is
// not allowed; see CloseDevice.
func SetDevice(dev *metal.Device) DeviceID {
	d := DeviceID{Kind: GPU}
	if dev.Info().Kind == "cpu" {
		d.Kind = CPU
	}
	registry.Lock()
	defer registry.Unlock()
	if registry.devices == nil {
		registry.devices, registry.defaults = map[DeviceID]*metal.Device{}, map[DeviceID]*Stream{}
	}
	if len(registry.devices) == 0 {
		registry.chosen = d
	}
	if registry.devices[d] != dev {
		delete(registry.defaults, d)
	}
	registry.devices[d] = dev
	registry.current.Store(nil)
	return d
}

// UnsetDevice forgets an opened device, which the caller then closes.
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

// MetalDevice is the opened device of that name. It fails if there is none.
func MetalDevice(d DeviceID) (*metal.Device, error) {
	registry.Lock()
	defer registry.Unlock()
	return openDevice(d)
}

func openDevice(d DeviceID) (*metal.Device, error) {
	if dev := registry.devices[d]; dev != nil {
		return dev, nil
	}
	if len(registry.devices) == 0 {
		return nil, ErrNoDevice
	}
	return nil, fmt.Errorf("no device %v is open", d)
}

// currentDevice is the default device, or nil without one.
func currentDevice() *metal.Device {
	registry.Lock()
	defer registry.Unlock()
	return registry.devices[registry.chosen]
}

// DefaultDevice is where ops run that are given no stream.
func DefaultDevice() DeviceID {
	registry.Lock()
	defer registry.Unlock()
	return registry.chosen
}

// SetDefaultDevice changes it. It fails if that device is not open.
func SetDefaultDevice(d DeviceID) error {
	registry.Lock()
	defer registry.Unlock()
	if _, err := openDevice(d); err != nil {
		return fmt.Errorf("[set_default_device] %w", err)
	}
	registry.chosen = d
	registry.current.Store(nil)
	return nil
}

// Stream is a queue of work on a device. Work of one stream is done in the order in which it was asked for; streams
// run beside each other. Planning and encoding happen on a goroutine of the stream, which lives as long as there is
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

	settling sync.Mutex // held while batches are settled
	spare    spareLists
	pace     pace     // of the stream's goroutine, as enc
	enc      recorder // of the stream's goroutine
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
	s.enc.init(s)
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

// SetDefaultStream makes s the default stream of its device.
func SetDefaultStream(s *Stream) error {
	if s == nil {
		return errors.New("[set_default_stream] the stream is nil")
	}
	registry.Lock()
	defer registry.Unlock()
	if registry.devices[s.device] != s.dev {
		return fmt.Errorf("[set_default_stream] the device of %v was closed", s)
	}
	registry.defaults[s.device] = s
	registry.current.Store(nil)
	return nil
}

// Device is where the stream runs.
func (s *Stream) Device() DeviceID { return s.device }

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

// start sees to it that the stream's goroutine claims what was handed over before the call. Where it may be long until
// it comes to that, since it is at work, the result is false.
func (s *Stream) start() bool {
	s.mu.Lock()
	defer s.mu.Unlock()
	return s.startHeld()
}

// startHeld starts the stream's goroutine and says whether it was not running. Called with mu held.
func (s *Stream) startHeld() bool {
	if s.running {
		return false
	}
	s.running = true
	go s.loop()
	return true
}

// loop claims evaluations, and plans and encodes segments, until there are none.
func (s *Stream) loop() {
	for {
		claimAll(s)
		s.mu.Lock()
		if len(s.queue) == 0 {
			if handed.left.Load() > 0 { // since claimAll
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
		s.enc.run(seg)
	}
}

// settleIdle tells Synchronize if all is done. Called with mu held.
func (s *Stream) settleIdle() {
	if s.idle != nil && !s.running && len(s.queue) == 0 && len(s.pending) == 0 {
		close(s.idle)
		s.idle = nil
	}
}

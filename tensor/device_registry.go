package tensor

import (
	"cmp"
	"errors"
	"fmt"
	"maps"
	"slices"
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

// SetDevice makes an opened device the one of its kind and number: CPU where kernels run on the host's processors, else
// GPU, and the index of its Info. The first one becomes the default device. Streams and arrays of a device that was in
// its place before stay with that one, whose owner may close it when nobody needs them. A nil device is not allowed.
func SetDevice(dev *metal.Device) DeviceID {
	info := dev.Info()
	d := DeviceID{Kind: GPU, Index: info.Index}
	if info.Host {
		d.Kind = CPU
	}
	claimAll(nil) // what was handed over is the former device's
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
	dev.BeforeCollect(holders.weaken)
	dev.GiveUpBy(func(n int64, a *metal.Account) bool { return replicas.giveUp(dev, n, a) })
	registry.current.Store(nil)
	return d
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

// device is the device of the call's stream, or nil without one.
func (c *Ctx) device() *metal.Device {
	if s, err := c.stream(); err == nil && s != nil {
		return s.dev
	}
	return nil
}

// Devices lists the opened devices: the CPU's first, those of a kind by their index.
func Devices() []DeviceID {
	registry.Lock()
	defer registry.Unlock()
	return slices.SortedFunc(maps.Keys(registry.devices), func(a, b DeviceID) int {
		return cmp.Or(cmp.Compare(a.Kind, b.Kind), cmp.Compare(a.Index, b.Index))
	})
}

// DefaultDevice is where ops run that are given no stream.
func DefaultDevice() DeviceID {
	registry.Lock()
	defer registry.Unlock()
	return registry.chosen
}

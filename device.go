package mlxlua

import (
	"fmt"
	"slices"
	"sync"

	"github.com/mlxlua/mlxlua/metal"
	"github.com/mlxlua/mlxlua/metal/drivers"
	"github.com/mlxlua/mlxlua/tensor"
)

// opened is the process's devices.
var opened struct {
	sync.Mutex
	devices []*metal.Device
	names   map[string]*metal.Device // by the names they were opened under
}

// OpenDevice opens a device of this process, unless that was done before, and makes the first one the default of all
// states: "auto" or "" for the best there is, "checked" for the best that keeps each kernel to its buffers, or a name
// of drivers.Names, with a number where a driver has several devices: "cuda:1" ("cuda" is "cuda:0"). A device that is
// missing is an error. The CPU is opened beside a GPU: scripts send it what GPUs do not compute.
func OpenDevice(name string) error { return openDevice(name, 0) }

// openDevice is OpenDevice of a device with so many threads, 0 for any number.
func openDevice(name string, threads int) error {
	if threads < 0 {
		return fmt.Errorf("[device] %d threads: want 1 or more, or 0 for one for each processor", threads)
	}
	opened.Lock()
	defer opened.Unlock()
	if name == "" {
		name = "auto"
	}
	if dev := opened.names[name]; dev != nil {
		return checkThreads(dev, threads)
	}
	dev, err := drivers.Open(drivers.Options{Name: name, Threads: threads})
	if err != nil {
		return err
	}
	if opened.names == nil {
		opened.names = map[string]*metal.Device{}
	}
	for _, other := range opened.devices {
		if other.Info().ID == dev.Info().ID { // "auto" and "cpu" may be one device: keep the first
			opened.names[name] = other
			if err := dev.Close(); err != nil {
				return err
			}
			return checkThreads(other, threads)
		}
	}
	keepOpen(name, dev)
	if dev.Info().Host || slices.ContainsFunc(opened.devices, func(d *metal.Device) bool { return d.Info().Host }) {
		return nil
	}
	cpu, err := drivers.Open(drivers.Options{Name: "cpu", Threads: threads})
	if err != nil {
		return err
	}
	keepOpen("cpu", cpu)
	return nil
}

// keepOpen makes a device one of the process's. Called with opened held.
func keepOpen(name string, dev *metal.Device) {
	tensor.SetDevice(dev)
	opened.devices = append(opened.devices, dev)
	opened.names[name] = dev
}

// checkThreads is an error unless an open device has so many threads, or any number where that is 0.
func checkThreads(dev *metal.Device, threads int) error {
	if has := dev.Info().Threads; threads != 0 && has != threads {
		return fmt.Errorf("[device] %d threads were asked for, and the device was opened with %d", threads, has)
	}
	return nil
}

// DeviceText describes the default device and what runs its kernels, for people.
func DeviceText() string {
	dev, err := tensor.MetalDevice(tensor.DefaultDevice())
	if err != nil {
		return err.Error()
	}
	info := dev.Info()
	return fmt.Sprintf("%v: %s (%s)", tensor.DefaultDevice(), info.Name, info.Version)
}

package mlxlua

import (
	"fmt"
	"sync"

	"github.com/mlxlua/mlxlua/metal"
	"github.com/mlxlua/mlxlua/metal/drivers"
	"github.com/mlxlua/mlxlua/tensor"
)

// opened is the process's devices by the name they were opened under.
var opened struct {
	sync.Mutex
	devices map[string]*metal.Device
}

// OpenDevice opens a device of this process, unless that was done before, and makes the first one the default of all
// states: "auto" or "" for the best there is, or a name of drivers.Names. A device that is missing is an error.
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
	if dev := opened.devices[name]; dev != nil {
		return checkThreads(dev, threads)
	}
	dev, err := drivers.Open(drivers.Options{Name: name, Threads: threads})
	if err != nil {
		return err
	}
	for _, other := range opened.devices {
		if other.Info().Kind == dev.Info().Kind { // "auto" and "cpu" may be one device: keep the first
			opened.devices[name] = other
			if err := dev.Close(); err != nil {
				return err
			}
			return checkThreads(other, threads)
		}
	}
	tensor.SetDevice(dev)
	if opened.devices == nil {
		opened.devices = map[string]*metal.Device{}
	}
	opened.devices[name] = dev
	return nil
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

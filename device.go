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
func OpenDevice(name string) error {
	opened.Lock()
	defer opened.Unlock()
	if name == "" {
		name = "auto"
	}
	if opened.devices[name] != nil {
		return nil
	}
	dev, err := drivers.Open(drivers.Options{Name: name})
	if err != nil {
		return err
	}
	for _, other := range opened.devices {
		if other.Info().Kind == dev.Info().Kind { // "auto" and "cpu" may be one device: keep the first
			opened.devices[name] = other
			return dev.Close()
		}
	}
	tensor.SetDevice(dev)
	if opened.devices == nil {
		opened.devices = map[string]*metal.Device{}
	}
	opened.devices[name] = dev
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

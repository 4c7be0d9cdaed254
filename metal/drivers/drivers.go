// Package drivers is the one list of drivers. Nothing is opened, and nothing is registered, until Open is called.
package drivers

import (
	"fmt"
	"slices"
	"strings"

	"github.com/mlxlua/mlxlua/metal"
)

// Options say which device Open opens and how.
type Options struct {
	// Name is a driver's name, one of Names, or "auto": the first that works. "" is "auto".
	Name string
	// Threads is how many threads of the processor run kernels; 0: one for each processor.
	Threads int
	// Device is for the device model: limits, validation.
	Device metal.DeviceOptions
}

// driver is an entry of the list: how a driver of that name is opened. An error says why it cannot be used here.
type driver struct {
	name string
	open func(o Options) (metal.Driver, error)
}

// Names lists this system's drivers, in the order in which "auto" tries them.
func Names() []string {
	var names []string
	for _, d := range list() {
		names = append(names, d.name)
	}
	return names
}

// Open opens a device, which the caller makes known by tensor.SetDevice and closes. A driver that is missing is an
// error, never silently another one. Where there is no device that "auto" can open, the error says why for each.
func Open(o Options) (*metal.Device, error) {
	name := o.Name
	if name == "" {
		name = "auto"
	}
	if names := Names(); name != "auto" && !slices.Contains(names, name) {
		return nil, fmt.Errorf("[device] there is no driver %q on this system; there are %s", name, strings.Join(names, ", "))
	}
	var failures []string
	for _, d := range list() {
		if name != "auto" && name != d.name {
			continue
		}
		drv, err := d.open(o)
		if err == nil {
			return metal.NewDevice(drv, o.Device)
		}
		failures = append(failures, fmt.Sprintf("%s: %v", d.name, err))
	}
	return nil, fmt.Errorf("[device] no device could be opened: %s", strings.Join(failures, "; "))
}

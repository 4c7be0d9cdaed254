// Package drivers is the one list of drivers. Nothing is opened, and nothing is registered, until Open is called.
package drivers

import (
	"fmt"
	"slices"
	"strconv"
	"strings"

	"github.com/mlxlua/mlxlua/metal"
)

// Options say which device Open opens and how.
type Options struct {
	// Name is a driver's name, one of Names, or "auto": the first that works. "" is "auto". "checked" is the first that
	// works and keeps each kernel to its buffers, for the kernels of strangers. A driver of several devices takes a
	// number: "cuda:1"; without one it is 0.
	Name string
	// Threads is how many threads of the processor run kernels; 0: one for each processor.
	Threads int
	// Device is for the device model: limits, validation.
	Device metal.DeviceOptions
}

// driver is an entry of the list: how a driver of that name is opened. An error says why it cannot be used here.
type driver struct {
	name string
	many bool // it has devices of numbers above 0
	open func(o Options, index int) (metal.Driver, error)
	auto func() (metal.Driver, error) // open, for "auto"; nil: the same
	// unchecked says that its kernels may leave their buffers.
	unchecked bool
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
	drv, err := Driver(o)
	if err != nil {
		return nil, err
	}
	return metal.NewDevice(drv, o.Device)
}

// Driver is Open of the driver alone.
func Driver(o Options) (metal.Driver, error) {
	name := o.Name
	if name == "" {
		name = "auto"
	}
	kind, number, numbered := strings.Cut(name, ":")
	any := name == "auto" || name == "checked"
	if names := Names(); !any && !slices.Contains(names, kind) {
		return nil, fmt.Errorf("[device] there is no driver %q on this system; there are %s", name, strings.Join(names, ", "))
	}
	var failures []string
	for _, d := range list() {
		if !any && kind != d.name || name == "checked" && d.unchecked {
			continue
		}
		index := 0
		if numbered {
			var err error
			if index, err = strconv.Atoi(number); err != nil || index < 0 || index > 0 && !d.many {
				return nil, fmt.Errorf("[device] %q: there is no such device of the driver %s", name, d.name)
			}
		}
		open := func() (metal.Driver, error) { return d.open(o, index) }
		if any && d.auto != nil {
			open = d.auto
		}
		drv, err := open()
		if err == nil {
			return drv, nil
		}
		failures = append(failures, fmt.Sprintf("%s: %v", d.name, err))
	}
	return nil, fmt.Errorf("[device] no device could be opened: %s", strings.Join(failures, "; "))
}

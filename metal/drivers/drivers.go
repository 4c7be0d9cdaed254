// Package drivers is the one list of back ends. Opening one has no effect beyond the device that is returned.
package drivers

import (
	"fmt"
	"sort"
	"strings"

	"github.com/mlxlua/mlxlua/metal"
	"github.com/mlxlua/mlxlua/metal/soft"
)

// drivers makes the drivers of this system by name. "auto" tries them in the order of auto.
var drivers = map[string]func() (metal.Driver, error){
	"cpu": func() (metal.Driver, error) { return soft.New(soft.Options{}), nil },
}

var auto = []string{"cpu"}

// Names lists the names of Open on this system, sorted, without "auto".
func Names() []string {
	var names []string
	for name := range drivers {
		names = append(names, name)
	}
	sort.Strings(names)
	return names
}

// Open opens a device by name; "auto" and "" stand for the best there is. A name that is unknown, and a device that
// is missing, are errors: there is never a silent other one. The caller closes the device.
func Open(name string, opt metal.DeviceOptions) (*metal.Device, error) {
	names := []string{name}
	if name == "" || name == "auto" {
		names = auto
	}
	var last error
	for _, n := range names {
		open := drivers[n]
		if open == nil {
			return nil, fmt.Errorf("[device] no device %q on this system; there is: auto, %s", n, strings.Join(Names(), ", "))
		}
		d, err := open()
		if err == nil {
			return metal.NewDevice(d, opt)
		}
		last = err
	}
	return nil, fmt.Errorf("[device] %s: %w", name, last)
}

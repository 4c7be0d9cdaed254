// Package testdevice opens the device that tests evaluate on.
package testdevice

import (
	"fmt"
	"os"
	"testing"

	"github.com/mlxlua/mlxlua/metal"
	"github.com/mlxlua/mlxlua/metal/apple"
	"github.com/mlxlua/mlxlua/metal/apple/fake"
	"github.com/mlxlua/mlxlua/metal/drivers"
	"github.com/mlxlua/mlxlua/metal/drivertest"
	"github.com/mlxlua/mlxlua/metal/soft"
)

// Env is the environment variable that names the device of the tests: a name for drivers.Open, which is "cpu" without
// it, "discrete" for drivertest.Discrete, or "apple" for the driver of Apple's GPUs on a Metal that runs on the CPU.
const Env = "MLXLUA_TEST_DEVICE"

// Name is the device of the tests.
func Name() string {
	if name := os.Getenv(Env); name != "" {
		return name
	}
	return "cpu"
}

// libraryBytes is what the libraries of the tests' device may take. The tests of a package compile far more than a
// program does, and each collection that they ask for goes over all that is cached.
const libraryBytes = 64 << 20

// Open opens the devices of the tests: the one that they evaluate on comes first, and the CPU's is always among them,
// as in a program.
func Open() ([]*metal.Device, error) {
	cpu, err := drivers.Open(drivers.Options{Name: "cpu", Device: metal.DeviceOptions{LibraryBytes: libraryBytes}})
	if err != nil || Name() == "cpu" {
		return []*metal.Device{cpu}, err
	}
	var dev *metal.Device
	switch Name() {
	case "discrete":
		opened = NewDiscrete(0)
		dev, err = metal.NewDevice(opened, metal.DeviceOptions{})
	case "apple":
		var d *apple.Driver
		if d, err = apple.New(fake.New(fake.M1)); err == nil {
			dev, err = metal.NewDevice(d, metal.DeviceOptions{})
		}
	default:
		dev, err = drivers.Open(drivers.Options{Name: Name()})
	}
	return []*metal.Device{dev, cpu}, err
}

// opened is the discrete device of the tests.
var opened *drivertest.Discrete

// Discrete is the driver of the tests' device, where that is "discrete"; else nil.
func Discrete() *drivertest.Discrete { return opened }

// NewDiscrete is a driver for the CPU behind memory of its own.
func NewDiscrete(index int) *drivertest.Discrete {
	return drivertest.NewDiscrete(soft.New(soft.Options{Hidden: true, Library: drivertest.Products{}}), index)
}

// Must opens the devices of the tests for a TestMain, which has no test to fail.
func Must() []*metal.Device {
	devs, err := Open()
	if err != nil {
		fmt.Fprintln(os.Stderr, err)
		os.Exit(1)
	}
	return devs
}

// NeedsCPU skips a test that is about the CPU's own device where the tests run on another one. Why says what ties it to
// the CPU.
func NeedsCPU(t testing.TB, why string) {
	t.Helper()
	if Name() != "cpu" {
		t.Skipf("on the CPU only: %s", why)
	}
}

// other is the CPU that says something else of itself.
type other struct {
	metal.Driver
	info metal.Info
}

// Offers reports whether the CPU's driver has a library that computes a routine.
func (o other) Offers(r metal.Routine) bool {
	c, ok := o.Driver.(metal.Caller)
	return ok && c.Offers(r)
}

// Info is what it says.
func (o other) Info() metal.Info { return o.info }

// otherIndex numbers the devices of NewOther among those of their kinds: the tests have no others of that number.
const otherIndex = 99

// NewOther is a driver for the CPU beside the tests' own. Where host is false it says that kernels run on other
// processors than the host's, so that ops choose their plain kernels.
func NewOther(host bool) metal.Driver {
	return NewAs(func(info *metal.Info) {
		info.Host, info.Index, info.ID = host, otherIndex, fmt.Sprintf("other:%v", host)
	})
}

// NewGPU is a driver for the CPU beside the tests' own that says it is a GPU, with a library of products.
func NewGPU() metal.Driver {
	return newAs(soft.Options{Library: drivertest.Products{}}, func(info *metal.Info) {
		info.Host, info.GPU, info.Index, info.ID = false, true, otherIndex-1, "other:gpu"
	})
}

// NewAs is a driver for the CPU that says something else of itself.
func NewAs(change func(info *metal.Info)) metal.Driver { return newAs(soft.Options{}, change) }

func newAs(options soft.Options, change func(info *metal.Info)) metal.Driver {
	o := other{Driver: soft.New(options)}
	o.info = o.Driver.Info()
	change(&o.info)
	return o
}

package ops_test

import (
	"testing"

	"github.com/mlxlua/mlxlua/metal"
	"github.com/mlxlua/mlxlua/metal/drivers"
	"github.com/mlxlua/mlxlua/tensor"
	"github.com/mlxlua/mlxlua/tensor/optest"
)

func TestAAA(t *testing.T) {
	optest.Open(t)
	dev, err := drivers.Open(drivers.Options{Name: "cpu", Device: metal.DeviceOptions{Validate: true}})
	if err != nil {
		t.Fatal(err)
	}
	tensor.SetDevice(dev)
}

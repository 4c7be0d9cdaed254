package fast_test

import (
	"os"
	"testing"

	"github.com/mlxlua/mlxlua/tensor"
	"github.com/mlxlua/mlxlua/tensor/optest"
)

func TestMain(m *testing.M) {
	os.Exit(optest.Main(m, map[string]string{
		"metal_kernel": "metal_kernel_test.go: it has no gradient, and its shapes are the users'",
	}))
}

type array = tensor.Array

var uniform = optest.Uniform(-2, 2)

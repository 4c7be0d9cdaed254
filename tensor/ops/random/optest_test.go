package random_test

import (
	"os"
	"testing"

	"github.com/mlxlua/mlxlua/tensor"
	"github.com/mlxlua/mlxlua/tensor/optest"
)

func TestMain(m *testing.M) {
	os.Exit(optest.Main(m, map[string]string{
		"random.split": "random_bits, which it calls; golden data",
	}))
}

type array = tensor.Array

package random_test

import (
	"os"
	"testing"

	"github.com/mlxlua/mlxlua/tensor"
	"github.com/mlxlua/mlxlua/tensor/optest"
)

func TestMain(m *testing.M) { os.Exit(optest.Main(m, nil)) }

type array = tensor.Array

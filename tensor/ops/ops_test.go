package ops_test

import (
	"os"
	"testing"

	"github.com/mlxlua/mlxlua/tensor"
	"github.com/mlxlua/mlxlua/tensor/optest"
)

func TestMain(m *testing.M) {
	os.Exit(optest.Main(m, map[string]string{"max_or_lowest": "softmax, which is made of it"}))
}

type (
	array = tensor.Array
	ctx   = tensor.Ctx
)

var (
	uniform  = optest.Uniform(-2, 2)
	positive = optest.Uniform(0.25, 4)
	ints32   = tensor.Int32
)

func axis(i int) *int { return &i }

// inputs are cases of one input each.
func inputs(g optest.Gen, dims ...string) []optest.Case {
	var cases []optest.Case
	for _, d := range dims {
		cases = append(cases, optest.Case{Inputs: []optest.Input{optest.In(d, g)}})
	}
	return cases
}

// except is the dtypes of layouts without those.
func except(no ...tensor.DType) []tensor.DType {
	var out []tensor.DType
	for _, d := range []tensor.DType{tensor.Float32, tensor.Float16, tensor.BFloat16, tensor.Int32, tensor.Uint8,
		tensor.Bool, tensor.Complex64} {
		keep := true
		for _, n := range no {
			keep = keep && n != d
		}
		if keep {
			out = append(out, d)
		}
	}
	return out
}

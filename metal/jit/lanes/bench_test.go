package lanes_test

import (
	"testing"

	"github.com/mlxlua/mlxlua/metal/jit/lanes"
	"github.com/mlxlua/mlxlua/metal/kerneltest"
	"github.com/mlxlua/mlxlua/metal/kir"
	"github.com/mlxlua/mlxlua/metal/kir/opt"
)

// large is a random kernel of some 3000 instructions.
func large(b *testing.B) *kir.Kernel {
	for seed := uint64(0); ; seed++ {
		if k := random(b, kerneltest.New(seed, kerneltest.Simdgroups)); k != nil && k.NumInstrs > 2500 && k.NumInstrs < 3500 {
			return k
		}
	}
}

func BenchmarkAnalyse(b *testing.B) {
	k := opt.Run(large(b), opt.Launch{})
	b.ReportMetric(float64(k.NumInstrs), "instrs")
	for b.Loop() {
		lanes.Analyse(k, 32, lanes.Geometry{Row: true, Aligned: true})
	}
}

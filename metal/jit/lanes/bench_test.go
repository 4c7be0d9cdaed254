package lanes_test

import (
	"testing"

	"github.com/mlxlua/mlxlua/metal/jit/lanes"
	"github.com/mlxlua/mlxlua/metal/kir"
)

// large is a kernel of some 3000 instructions, most of them reached by loops.
func large() *kir.Kernel {
	g := newGenerator(1)
	g.cross, g.budget = true, 1400
	g.stmts(1)
	for g.budget > 0 {
		g.stmts(20)
	}
	return g.Kernel()
}

func BenchmarkOptimise(b *testing.B) {
	k := large()
	b.ReportMetric(float64(k.NumInstrs), "instrs")
	for b.Loop() {
		lanes.Optimise(k)
	}
}

func BenchmarkAnalyse(b *testing.B) {
	k := lanes.Optimise(large())
	b.ReportMetric(float64(k.NumInstrs), "instrs")
	for b.Loop() {
		lanes.Analyse(k, 32, lanes.Geometry{Row: true, Aligned: true})
	}
}

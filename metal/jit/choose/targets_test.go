//go:build (amd64 && (linux || darwin || windows)) || (arm64 && (linux || darwin))

package choose

import (
	"runtime"
	"testing"

	"github.com/mlxlua/mlxlua/metal/jit/amd64"
	"github.com/mlxlua/mlxlua/metal/jit/arm64"
	"github.com/mlxlua/mlxlua/metal/jit/code"
)

// targets returns the kinds of processors whose code runs here, the simplest first. Without any the test is skipped.
func targets(t *testing.T) (l []*code.Target) {
	for level := amd64.AVX2; level <= amd64.Detect(); level++ {
		l = append(l, amd64.Target(level))
	}
	if runtime.GOARCH == "arm64" {
		for level := arm64.NEON; level <= arm64.Detect(); level++ {
			l = append(l, arm64.Target(level))
		}
	}
	if len(l) == 0 {
		t.Skip("no machine code for this processor")
	}
	return l
}

// benches runs a test for each kind of processor that there is here.
func benches(t *testing.T, f func(t *testing.T, target *code.Target)) {
	for _, target := range targets(t) {
		if !target.PairDots { // which adds to another one what only TestPairDot looks at
			t.Run(target.Name, func(t *testing.T) { f(t, target) })
		}
	}
}

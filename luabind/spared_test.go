package luabind

import (
	"os"
	"testing"

	"github.com/mlxlua/mlxlua/tensor/optest"
)

// onlyValues skips a test whose values alone matter where the race detector makes them dear.
func onlyValues(t *testing.T) {
	t.Helper()
	optest.OnlyValues(t)
}

// onlyMemory skips a test that looks at the bytes that programs hold where others have looked at them: what runs the
// kernels (MLXLUA_JIT) does not change them, and the race detector adds nothing but time.
func onlyMemory(t *testing.T) {
	t.Helper()
	onlyValues(t)
	if os.Getenv("MLXLUA_JIT") != "" && testing.Short() {
		t.Skip("memory does not depend on what runs the kernels")
	}
}

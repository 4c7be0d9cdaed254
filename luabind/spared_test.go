package luabind

import (
	"os"
	"testing"

	"github.com/mlxlua/mlxlua/internal/brief"
)

// onlyMemory skips a test that looks at the bytes that programs hold where others have looked at them: what runs the
// kernels (MLXLUA_JIT) does not change them, and the race detector adds nothing but time.
func onlyMemory(t *testing.T) {
	t.Helper()
	brief.OnlyValues(t)
	if os.Getenv("MLXLUA_JIT") != "" && testing.Short() {
		t.Skip("memory does not depend on what runs the kernels")
	}
}

package luabind

import (
	"path/filepath"
	"strings"
	"testing"

	"github.com/stretchr/testify/require"
	lua "github.com/yuin/gopher-lua"

	"github.com/mlxlua/mlxlua/metal/testdevice"
)

// copies are what an example, with arguments that make it short, brings to a device with memory of its own and back.
// Writes are arrays that scripts make of tables and files, where that is more than goes along with a command; reads are
// what scripts print and decide by, and what checks of indices have found. How many evaluations begin while the step
// before may fail, each of which writes a word, depends on time: writes are at most that many.
var copies = map[string]struct {
	args          []string
	reads, writes int
	long          bool // -short leaves it out
}{
	"digits.lua":      {[]string{"--samples", "600", "--epochs", "1"}, 56, 10, false},
	"gpt.lua":         {[]string{"--text", "4000", "--epochs", "1", "--size", "8"}, 766, 23, true},
	"grid_sample.lua": {[]string{"--steps", "10"}, 264, 10, false},
	"hybrid_moe.lua":  {[]string{"--layers", "4", "--steps", "2", "--batches", "1,3"}, 140, 0, false},
	"life.lua":        {[]string{"40"}, 2, 0, false},
	"lora.lua":        {[]string{"--text", "3000", "--epochs", "1"}, 744, 32, true},
	"mandelbrot.lua":  {nil, 1, 0, false},
	"nbody.lua":       {[]string{"--bodies", "256", "--steps", "6"}, 11, 0, false},
	"quickstart.lua":  {nil, 9, 0, false},
	"same_name.lua":   {nil, 6, 0, false},
}

// TestCopiesOfExamples: every example runs on a device with memory of its own, and copies no more and no less than it
// did.
//
//	MLXLUA_TEST_DEVICE=discrete go test ./luabind -run TestCopiesOfExamples -v
func TestCopiesOfExamples(t *testing.T) {
	t.Parallel()
	drv := testdevice.Discrete()
	if drv == nil {
		t.Skipf("it is about %s=discrete", testdevice.Env)
	}
	files, err := filepath.Glob("../examples/*.lua")
	require.NoError(t, err)
	require.Len(t, files, len(copies))
	for _, file := range files {
		t.Run(filepath.Base(file), func(t *testing.T) {
			want, ok := copies[filepath.Base(file)]
			require.True(t, ok, "a new example: how much does it copy?")
			if want.long && testing.Short() {
				t.Skip("it trains for long")
			}
			var args []lua.LValue
			for _, a := range want.args {
				args = append(args, lua.LString(a))
			}
			for range 2 { // the first may bring what built-in kernels keep
				drv.Transfers()
				s := New(Options{Libraries: true, Stdout: &strings.Builder{}, Stderr: &strings.Builder{}})
				_, err := s.RunFile(t.Context(), file, args...)
				s.Close()
				require.NoError(t, err)
			}
			got := drv.Transfers()
			require.Equal(t, want.reads, got.Reads, "%+v", got)
			require.LessOrEqual(t, got.Writes, want.writes, "%+v", got)
			require.Zero(t, got.Peers, "%+v", got)
		})
	}
}

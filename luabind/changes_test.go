package luabind

import (
	"context"
	"fmt"
	"slices"
	"testing"

	"github.com/stretchr/testify/require"
	lua "github.com/yuin/gopher-lua"

	"github.com/mlxlua/mlxlua/metal"
	"github.com/mlxlua/mlxlua/tensor"
)

// failingSteps runs testdata/state_failures.lua and gives the bytes of all arrays that it returns.
func failingSteps(t *testing.T, way, mode string, bad bool) (out [][]byte) {
	s := New(Options{Libraries: true})
	defer s.Close()
	ctx := context.Background()
	run, err := s.RunFile(ctx, "testdata/state_failures.lua")
	require.NoError(t, err)
	got, err := s.Call(ctx, run[0], lua.LString(way), lua.LString(mode), lua.LBool(bad))
	require.NoError(t, err, "%s %s", way, mode)
	for _, x := range s.arraysIn("test", got) {
		b, err := x.Bytes(ctx)
		require.NoError(t, err, "%s %s", way, mode)
		out = append(out, b)
	}
	return out
}

// TestFailedStepsLeaveTheState: training whose steps fail in between, at the first step, later, in the midst of steps
// that nobody has computed, or in the background, comes to the bytes of training that has never seen those: parameters,
// the optimizer's state, running averages, counters and the random state.
func TestFailedStepsLeaveTheState(t *testing.T) {
	for _, c := range []struct {
		way    string
		modes  []string
		device metal.DeviceOptions
	}{
		{"label", []string{"eager", "compiled", "mapped"}, metal.DeviceOptions{}},
		{"token", []string{"eager", "compiled"}, metal.DeviceOptions{}},
		{"host", []string{"eager", "compiled"}, metal.DeviceOptions{}},
		{"memory", []string{"eager", "compiled"}, metal.DeviceOptions{MemoryLimit: 64 << 20}},
		{"nan", []string{"compiled"}, metal.DeviceOptions{}},
		{"kernel", []string{"compiled"}, metal.DeviceOptions{Validate: true}}, // which is slow
	} {
		if testing.Short() && (c.way == "kernel" || c.way == "token") {
			continue
		}
		for _, mode := range c.modes {
			t.Run(fmt.Sprint(c.way, "/", mode), func(t *testing.T) {
				withDevice(t, c.device)
				if c.way == "nan" {
					defer tensor.CheckNaN(tensor.CheckNaN(true))
				}
				want := failingSteps(t, c.way, mode, false)
				got := failingSteps(t, c.way, mode, true)
				require.Len(t, got, len(want))
				for i := range want {
					require.True(t, slices.Equal(want[i], got[i]), "array %d of %d", i, len(want))
				}
			})
		}
	}
}

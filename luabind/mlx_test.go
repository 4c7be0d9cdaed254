package luabind

import (
	"context"
	"encoding/json"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"

	"github.com/stretchr/testify/require"
	lua "github.com/yuin/gopher-lua"

	"github.com/mlxlua/mlxlua/internal/brief"
	"github.com/mlxlua/mlxlua/internal/serial"
)

// MLX's own tests of layers, losses, optimizers, initialisers, trees and Upsample, in Lua. testdata/mlx/values.py makes
// what they compare with, and the list of their names.
func TestMLX(t *testing.T) {
	serial.Because(t, "a test measures the device's memory")
	brief.OnlyValues(t)
	text, err := os.ReadFile("testdata/mlx/values.json")
	require.NoError(t, err)
	var golden struct {
		Tests         map[string][]string
		Values, Torch map[string]any
	}
	require.NoError(t, json.Unmarshal(text, &golden))
	s := newTestState(t)
	s.L.SetGlobal("values", fromJSON(s.L, golden.Values))
	s.L.SetGlobal("torch", fromJSON(s.L, golden.Torch))
	_, err = s.RunFile(context.Background(), "testdata/mlx/common.lua")
	require.NoError(t, err)
	var missing []string
	for _, names := range golden.Tests {
		missing = append(missing, names...)
	}
	files, err := filepath.Glob("testdata/mlx/*.lua")
	require.NoError(t, err)
	for _, file := range files {
		out, err := s.RunFile(context.Background(), file)
		require.NoError(t, err)
		if len(out) == 0 {
			continue // common.lua
		}
		out[0].(*lua.LTable).ForEach(func(name, f lua.LValue) {
			t.Run(strings.TrimPrefix(name.String(), "test_"), func(t *testing.T) {
				_, err := s.Call(context.Background(), f)
				require.NoError(t, err)
			})
			i := slices.Index(missing, name.String())
			require.GreaterOrEqual(t, i, 0, "MLX has no %s", name)
			missing = slices.Delete(missing, i, i+1)
		})
	}
	require.Empty(t, missing, "tests of MLX without a counterpart")
}

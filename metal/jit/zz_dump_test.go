package jit

import (
	"os"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/mlxlua/mlxlua/metal/jit/lanes"
	"github.com/mlxlua/mlxlua/metal/msl"
)

func TestDump(t *testing.T) {
	f := os.Getenv("DUMP")
	if f == "" {
		t.Skip()
	}
	text, _ := os.ReadFile(f)
	mod, err := msl.Compile(msl.Source{Name: "k", Text: string(text)}, msl.Options{})
	require.NoError(t, err)
	k := lanes.Optimise(mod.Kernels[0])
	lvl := isaAVX512
	if os.Getenv("L") == "2" {
		lvl = isaAVX2
	}
	c, err := compile(k, lvl, lanes.Geometry{Row: os.Getenv("R") != "0"})
	require.NoError(t, err)
	t.Log(k.String(), c.entry, c.resume, c.lay)
	os.WriteFile("/tmp/b/code.bin", c.bytes, 0o644)
}

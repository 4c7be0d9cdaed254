package luabind

import (
	"context"
	"errors"
	"testing"

	"github.com/stretchr/testify/require"
	lua "github.com/yuin/gopher-lua"
)

// TestTreesCanBeInterrupted: a cancelled context ends the walk over a table of which no entry is an array.
func TestTreesCanBeInterrupted(t *testing.T) {
	large := &lua.LTable{}
	for i := range 4096 {
		large.RawSetInt(i+1, lua.LNumber(i))
	}
	ctx, cancel := context.WithCancelCause(t.Context())
	for _, once := range []bool{false, true} {
		w := treeWalk{ctx: ctx, once: once}
		require.NoError(t, w.add(large, 0))
		require.Equal(t, 4096, w.entries)
	}
	stop := errors.New("stop")
	cancel(stop)
	for _, once := range []bool{false, true} {
		w := treeWalk{ctx: ctx, once: once}
		require.ErrorIs(t, w.add(large, 0), stop)
		require.Equal(t, 1024, w.entries)
	}
}

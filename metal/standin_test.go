package metal_test

import (
	"context"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/mlxlua/mlxlua/metal"
	"github.com/mlxlua/mlxlua/metal/drivertest"
)

// TestStandIns: commands are recorded on buffers without memory, with their barriers; shared bytes are the caller's,
// and others copies; nothing is submitted, allocated or left.
func TestStandIns(t *testing.T) {
	k := drivertest.Kernel("copy", nil, "a:r", "n:rc", "out:w")
	d := open(t, drivertest.NewFake(k), metal.DeviceOptions{})
	p := pipeline(t, d, "copy")
	require.Equal(t, []bool{false, false, true}, []bool{p.Writes(0), p.Writes(1), p.Writes(2)})
	before := d.Memory()
	a, b := d.StandIn(1<<40, &metal.Origin{Op: "input"}), d.StandIn(1<<40, nil)
	require.Equal(t, "input", a.Origin().Op)
	require.Equal(t, before, d.Memory())
	mine, other := []byte{1, 2, 3, 4}, []byte{5, 6, 7, 8}
	cb := d.NewCommandBuffer(0, "")
	e := cb.Encoder()
	e.ShareBytes(func(b []byte) bool { return &b[0] == &mine[0] })
	for i, to := range []*metal.Buffer{b, a} { // which the first one reads
		e.SetPipeline(p)
		e.SetBuffer(0, a, 0)
		e.SetBytes(1, [][]byte{mine, other}[i])
		e.SetBuffer(2, to, 64)
		require.NoError(t, e.Dispatch(one, one))
	}
	require.NoError(t, e.Fill(b.All(), []byte{0}))
	require.Equal(t, "d|df", kinds(cb))
	cmds := cb.Commands()
	require.Same(t, &mine[0], &cmds[0].Args[1].Bytes[0])
	require.Equal(t, other, cmds[2].Args[1].Bytes)
	require.NotSame(t, &other[0], &cmds[2].Args[1].Bytes[0])
	require.Same(t, a, cmds[2].Args[2].Buffer.Buf)
	cb.Cancel(context.Canceled)
	require.True(t, a.Live())
	a.Release()
	b.Release()
	require.False(t, a.Live())
	require.Equal(t, before, d.Memory())
}

// TestUseLibraries: who comes back with a library's pipelines learns whether the cache has it yet; if so it is the one
// that was used last.
func TestUseLibraries(t *testing.T) {
	d := open(t, drivertest.NewFake(drivertest.Kernel("a", nil), drivertest.Kernel("b", nil), drivertest.Kernel("c", nil)),
		metal.DeviceOptions{LibraryCap: 2})
	lib := func(name string) *metal.Library {
		l, err := d.Library(bg, drivertest.Source(name, name))
		require.NoError(t, err)
		return l
	}
	a, b := lib("a"), lib("b")
	require.True(t, d.UseLibraries([]*metal.Library{a}, nil))
	lib("c") // in the place of b
	require.True(t, a.Cached())
	require.False(t, b.Cached())
	require.True(t, d.UseLibraries([]*metal.Library{a}, nil))
	require.False(t, d.UseLibraries([]*metal.Library{a, b}, nil))
}

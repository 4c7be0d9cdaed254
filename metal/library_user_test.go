package metal_test

import (
	"fmt"
	"strings"
	"sync"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/mlxlua/mlxlua/metal"
	"github.com/mlxlua/mlxlua/metal/drivertest"
)

// numbered is a source of some 10,000 bytes.
func numbered(i int) metal.Source {
	s := drivertest.Source("", "k")
	s.Text += fmt.Sprintf("// %06d%s", i, strings.Repeat("x", 10000))
	return s
}

func libraryFor(t *testing.T, d *metal.Device, i int, u *metal.LibraryUser) *metal.Library {
	l, err := d.LibraryFor(bg, numbered(i), u)
	require.NoError(t, err)
	return l
}

// TestLibrariesAreBoundedByBytes: the least recently used ones go.
func TestLibrariesAreBoundedByBytes(t *testing.T) {
	f := drivertest.NewFake(drivertest.Kernel("k", nil, "x:w"))
	d := open(t, f, metal.DeviceOptions{LibraryBytes: 100 << 10})
	for i := range 10 {
		libraryFor(t, d, i, nil)
		libraryFor(t, d, 0, nil)
	}
	bytes, most := d.LibraryBytes()
	require.Equal(t, int64(100<<10), most)
	require.LessOrEqual(t, bytes, most)
	require.Equal(t, 4, d.LibraryStats().Size, "of some 21 KiB each")
	require.Equal(t, 10, f.Compiles(), "the one used again and again stayed")
	libraryFor(t, d, 1, nil)
	require.Equal(t, 11, f.Compiles(), "what was evicted is compiled again")
	_, err := metal.NewDevice(drivertest.NewFake(), metal.DeviceOptions{LibraryBytes: -1})
	require.ErrorContains(t, err, "are negative: -1")
}

// TestLibrariesAreDroppedWithTheirUser: what two use counts half for each, and stays as long as one of them, or the
// program. What a pending command buffer uses stays until it has ended.
func TestLibrariesAreDroppedWithTheirUser(t *testing.T) {
	f := drivertest.NewFake(drivertest.Kernel("k", nil, "x:w"))
	d := open(t, f, metal.DeviceOptions{})
	var a, b metal.LibraryUser
	one := libraryFor(t, d, 1, &a)
	require.Equal(t, metal.LibraryUse{Libraries: 1, Bytes: one.Bytes()}, a.Use())
	require.Equal(t, one.Bytes(), a.Made())
	require.Same(t, one, libraryFor(t, d, 1, &b))
	require.Equal(t, metal.LibraryUse{Libraries: 1, Bytes: one.Bytes() / 2}, b.Use())
	require.Zero(t, b.Made())
	own := libraryFor(t, d, 2, &a)
	libraryFor(t, d, 3, &a)
	libraryFor(t, d, 3, nil)

	buf := alloc(t, d, 64)
	defer buf.Release()
	cb := d.NewCommandBuffer(0, "")
	p, err := own.Pipeline("k")
	require.NoError(t, err)
	e := cb.Encoder()
	e.SetPipeline(p)
	e.SetBuffer(0, buf, 0)
	require.NoError(t, e.Dispatch(metal.Size{X: 1, Y: 1, Z: 1}, metal.Size{X: 1, Y: 1, Z: 1}))
	require.NoError(t, cb.Commit())
	a.Close()
	require.Equal(t, metal.LibraryUse{}, a.Use())
	require.Equal(t, metal.LibraryUse{Libraries: 1, Bytes: one.Bytes()}, b.Use())
	require.Equal(t, 3, d.LibraryStats().Size)
	f.Complete(0, nil)
	require.Equal(t, 2, d.LibraryStats().Size, "b's and the program's")
	bytes, _ := d.LibraryBytes()
	require.Equal(t, 2*one.Bytes(), bytes)

	require.NotSame(t, own, libraryFor(t, d, 2, &b), "it is compiled again")
	libraryFor(t, d, 4, &a) // it is closed: the program's
	require.Equal(t, metal.LibraryUse{}, a.Use())
	b.Drop(false)
	require.Equal(t, metal.LibraryUse{}, b.Use())
	require.Equal(t, 2, d.LibraryStats().Size)
	require.NotSame(t, one, libraryFor(t, d, 1, &b), "one who drops may go on")
	require.Equal(t, 1, b.Use().Libraries)
}

// TestBuiltInLibrariesOutliveTheirUser: other states need the same ones. They go with memory's pressure only.
func TestBuiltInLibrariesOutliveTheirUser(t *testing.T) {
	d := open(t, drivertest.NewFake(drivertest.Kernel("k", nil)), metal.DeviceOptions{})
	var a, b metal.LibraryUser
	s := numbered(1)
	s.Options.Portable = true
	l, err := d.LibraryFor(bg, s, &a)
	require.NoError(t, err)
	a.Close()
	again, err := d.LibraryFor(bg, s, &b)
	require.NoError(t, err)
	require.Same(t, l, again)
	b.Drop(false)
	require.Zero(t, d.LibraryStats().Size)
}

// TestOneUserDoesNotDisplaceOthers: where the cache is full its own libraries go first.
func TestOneUserDoesNotDisplaceOthers(t *testing.T) {
	f := drivertest.NewFake(drivertest.Kernel("k", nil))
	d := open(t, f, metal.DeviceOptions{LibraryBytes: 200 << 10})
	var a, greedy metal.LibraryUser
	libraryFor(t, d, 0, &a)
	for i := range 100 {
		libraryFor(t, d, 1+i, &greedy)
	}
	require.Equal(t, 101, f.Compiles())
	libraryFor(t, d, 0, &a)
	require.Equal(t, 101, f.Compiles())
	bytes, most := d.LibraryBytes()
	require.LessOrEqual(t, bytes, most)
}

// TestLibraryUsersAtOnce: many users ask, run, drop and close at once.
func TestLibraryUsersAtOnce(t *testing.T) {
	f := drivertest.NewFake(drivertest.Kernel("k", nil))
	f.OnCompile = nil
	d := open(t, f, metal.DeviceOptions{LibraryBytes: 100 << 10})
	var wg sync.WaitGroup
	for no := range 8 {
		wg.Go(func() {
			var u metal.LibraryUser
			for i := range 200 {
				if _, err := d.LibraryFor(bg, numbered((i*7+no)%13), &u); err != nil {
					t.Error(err)
				}
				if i%20 == no {
					u.Drop(i%40 == no)
				}
				u.Use()
			}
			u.Close()
		})
	}
	wg.Wait()
	bytes, most := d.LibraryBytes()
	require.LessOrEqual(t, bytes, most)
	require.Zero(t, d.LibraryStats().Pinned)
}

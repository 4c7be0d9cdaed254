package metal_test

import (
	"bytes"
	"os"
	"path/filepath"
	"runtime"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/mlxlua/mlxlua/metal"
	"github.com/mlxlua/mlxlua/metal/drivertest"
)

// hostMapper is a fake whose kernels use the host's memory, at multiples of 4.
type hostMapper struct {
	*drivertest.Fake
	mapped int
}

func (d *hostMapper) MapHost(b []byte) (metal.Memory, int64, error) {
	d.mapped++
	return metal.Memory{Size: int64(len(b)), Host: b}, 4, nil
}

func (d *hostMapper) UnmapHost(metal.Memory) { d.mapped-- }

// mapped is a file of n bytes that count up, and its mapping.
func mapped(t *testing.T, n int) (string, *metal.Mapping) {
	t.Helper()
	path := filepath.Join(t.TempDir(), "data")
	b := make([]byte, n)
	for i := range b {
		b[i] = byte(i)
	}
	require.NoError(t, os.WriteFile(path, b, 0o600))
	f, err := os.Open(path)
	require.NoError(t, err)
	m, err := metal.MapFile(f)
	require.NoError(t, err)
	require.NoError(t, f.Close())
	return path, m
}

// TestMappingLives: a mapping is there as long as a buffer lies in it, and a buffer as long as a command buffer uses
// it. The file may be deleted meanwhile. It takes nothing of the device's memory.
func TestMappingLives(t *testing.T) {
	f := drivertest.NewFake()
	driver := &hostMapper{Fake: f}
	d, err := metal.NewDevice(driver, metal.DeviceOptions{MemoryLimit: 1 << 20})
	require.NoError(t, err)
	path, m := mapped(t, 2<<20)
	first, err := d.MappedBuffer(m, 4, 8)
	require.NoError(t, err)
	all, err := d.MappedBuffer(m, 0, 2<<20)
	require.NoError(t, err)
	require.Equal(t, []byte{4, 5, 6, 7, 8, 9, 10, 11}, first.Host())
	require.Equal(t, 8, cap(first.Host()))
	require.Zero(t, d.Memory().Active, "pages of a file cost nothing")
	require.Equal(t, 2, d.Memory().Buffers)
	require.Equal(t, 2, m.Refs())
	m.Release()
	all.Release()
	require.Equal(t, 1, m.Refs(), "the first buffer's")
	if runtime.GOOS != "windows" {
		require.NoError(t, os.Remove(path))
	}

	dst := alloc(t, d, 8)
	cb := d.NewCommandBuffer(0, "")
	require.NoError(t, cb.Encoder().Copy(dst.All(), first.All()))
	require.NoError(t, cb.Commit())
	first.Release()
	require.Equal(t, 1, m.Refs(), "the command buffer's")
	f.CompleteAll()
	require.NoError(t, cb.Wait(bg))
	require.Equal(t, []byte{4, 5, 6, 7, 8, 9, 10, 11}, dst.Host())
	require.Zero(t, m.Refs())
	require.Zero(t, driver.mapped)
	require.Zero(t, m.Len())
	dst.Release()
	require.Equal(t, 0, d.Memory().Buffers)
	require.NoError(t, d.Close())
}

// TestMappedBufferRefuses: ranges outside of the file, places that do not suit the device, and drivers that cannot.
func TestMappedBufferRefuses(t *testing.T) {
	driver := &hostMapper{Fake: drivertest.NewFake()}
	d, err := metal.NewDevice(driver, metal.DeviceOptions{})
	require.NoError(t, err)
	_, m := mapped(t, 100)
	for _, r := range [][2]int64{{-1, 4}, {0, 0}, {0, 101}, {97, 4}, {101, 1}, {4, 1<<63 - 1}} {
		_, err := d.MappedBuffer(m, r[0], r[1])
		require.ErrorContains(t, err, "which has 100", "%v", r)
	}
	_, err = d.MappedBuffer(m, 1, 4)
	require.ErrorIs(t, err, metal.ErrNotMapped)
	require.Zero(t, driver.mapped)
	_, err = open(t, drivertest.NewFake(), metal.DeviceOptions{}).MappedBuffer(m, 0, 4)
	require.ErrorIs(t, err, metal.ErrNotMapped)
	b, err := d.MappedBuffer(m, 0, 4)
	require.NoError(t, err)
	require.NoError(t, d.Close())
	require.Nil(t, b.Host())
	b.Release()
	require.Equal(t, 1, m.Refs())
	_, err = d.MappedBuffer(m, 0, 4)
	require.ErrorContains(t, err, "closed")
	m.Release()
	require.Panics(t, m.Release)
	require.Panics(t, m.Retain)
}

// TestMappingOfValidatedDevice: freed memory is poisoned, a file is not.
func TestMappingOfValidatedDevice(t *testing.T) {
	d, err := metal.NewDevice(&hostMapper{Fake: drivertest.NewFake()}, metal.DeviceOptions{Validate: true})
	require.NoError(t, err)
	path, m := mapped(t, 8)
	b, err := d.MappedBuffer(m, 0, 8)
	require.NoError(t, err)
	b.Release()
	require.NoError(t, m.Guard(func(b []byte) error {
		require.Equal(t, []byte{0, 1, 2, 3, 4, 5, 6, 7}, b)
		b[0] = 9 // as a user's kernel may
		return nil
	}))
	m.Release()
	got, err := os.ReadFile(path)
	require.NoError(t, err)
	require.Equal(t, byte(0), got[0], "nothing reaches the file")
	require.NoError(t, d.Close())
}

// TestShorterFile: what is cut off a file while it is mapped cannot be read, which is an error and not the end of the
// program.
func TestShorterFile(t *testing.T) {
	if runtime.GOOS == "windows" {
		t.Skip("a file that is mapped cannot become shorter")
	}
	path, m := mapped(t, 1<<20)
	defer m.Release()
	d, err := metal.NewDevice(&hostMapper{Fake: drivertest.NewFake()}, metal.DeviceOptions{})
	require.NoError(t, err)
	b, err := d.MappedBuffer(m, 1<<19, 1<<19)
	require.NoError(t, err)
	require.NoError(t, os.Truncate(path, 100))
	sum := func(b []byte) error {
		_ = bytes.Count(b, []byte{1})
		return nil
	}
	require.ErrorContains(t, m.Guard(sum), path+" cannot be read at byte ")
	require.ErrorContains(t, b.Guard(func() error { return sum(b.Host()) }), "was the file changed while it was in use?")
	require.PanicsWithValue(t, "other", func() { _ = m.Guard(func([]byte) error { panic("other") }) })
	b.Release()
	require.NoError(t, d.Close())
}

func TestMapFileRefuses(t *testing.T) {
	dir, err := os.Open(t.TempDir())
	require.NoError(t, err)
	defer dir.Close()
	_, err = metal.MapFile(dir)
	require.ErrorContains(t, err, "it is a directory")
	_, m := mapped(t, 0)
	require.Zero(t, m.Len())
	require.NoError(t, m.Guard(func(b []byte) error {
		require.Empty(t, b)
		return nil
	}))
	m.Release()
}

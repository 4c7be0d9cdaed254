package soft

import (
	"context"
	"encoding/binary"
	"errors"
	"os"
	"path/filepath"
	"runtime"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/mlxlua/mlxlua/metal"
)

// builtIn is pipeline for a kernel that counts as a built-in one.
func builtIn(t *testing.T, dev *metal.Device, name string) *metal.Pipeline {
	t.Helper()
	return pipelineWith(t, dev, name, metal.Options{Portable: true})
}

// TestSideBySide: kernels, copies and fills between two barriers, more than run side by side, each do what they do
// alone; those that fail say so and stop no other.
func TestSideBySide(t *testing.T) {
	dev := newDevice(t)
	add, stride := builtIn(t, dev, "addk"), builtIn(t, dev, "strided")
	const n = 3000
	in := alloc(t, dev, 4*n)
	for i := range n {
		binary.LittleEndian.PutUint32(in.Host()[4*i:], uint32(i))
	}
	outs := make([]*metal.Buffer, 2*maxConcurrent+3)
	for i := range outs {
		outs[i] = alloc(t, dev, 4*n)
	}
	bad := map[int]bool{2: true, maxConcurrent + 4: true}
	for range 5 { // from the second time on it is known how long they take
		cb := dev.NewCommandBuffer(0, "")
		e := cb.Encoder()
		for i, out := range outs {
			clear(out.Host())
			switch {
			case i == 5:
				require.NoError(t, e.Copy(out.All(), in.All()))
			case i == 7:
				require.NoError(t, e.Fill(out.All(), u32Bytes(9)))
			case bad[i]:
				require.NoError(t, withNumber(e, stride, in, out, 2))
			default:
				require.NoError(t, withNumber(e, add, in, out, uint32(i)))
			}
		}
		require.Equal(t, len(outs), e.Len(), "there is no barrier between them")
		sum := alloc(t, dev, 4*n)
		require.NoError(t, withNumber(e, add, outs[0], sum, 1))
		require.NoError(t, cb.Commit())
		err := cb.Wait(context.Background())
		failed := map[int]bool{}
		for _, err := range err.(interface{ Unwrap() []error }).Unwrap() {
			var ce *metal.CommandError
			require.True(t, errors.As(err, &ce))
			failed[ce.Index] = true
		}
		require.Equal(t, bad, failed)
		for i, out := range append(outs, sum) {
			plus, last := uint32(i), uint32(n-1)
			switch {
			case bad[i]:
				continue
			case i == 5:
				plus = 0
			case i == 7:
				plus, last = 9, 0
			case i == len(outs):
				plus = 1
			}
			require.Equal(t, u32Bytes(last+plus), out.Host()[4*(n-1):], "command %d", i)
		}
	}
}

// TestSideBySideInterrupted: an interruption stops what runs then, and the error says of the others that they ran.
func TestSideBySideInterrupted(t *testing.T) {
	dev := newDevice(t)
	add, endless := builtIn(t, dev, "addk"), builtIn(t, dev, "endless")
	in, first, second, sum := alloc(t, dev, 4000), alloc(t, dev, 4000), alloc(t, dev, 4000), alloc(t, dev, 4000)
	clear(in.Host())
	var chain metal.Chain
	cb := chain.NewCommandBuffer(dev, 0, "")
	e := cb.Encoder()
	require.NoError(t, withNumber(e, add, in, first, 3))
	e.SetPipeline(endless)
	e.SetBuffer(0, alloc(t, dev, 4), 0)
	require.NoError(t, e.Dispatch(x(1), x(1)))
	require.NoError(t, withNumber(e, add, in, second, 4))
	require.NoError(t, withNumber(e, add, first, sum, 1)) // behind a barrier
	require.NoError(t, cb.Commit())
	time.AfterFunc(5*time.Millisecond, func() { chain.Interrupt(errors.New("enough")) })
	var stop *metal.Interrupted
	require.ErrorAs(t, cb.Wait(context.Background()), &stop)
	require.False(t, stop.Ran[1])
	require.False(t, stop.Ran[len(stop.Ran)-1])
	for i, out := range map[int]*metal.Buffer{0: first, 2: second} {
		if stop.Ran[i] {
			require.Equal(t, u32Bytes(uint32(3+i/2)), out.Host()[:4])
		}
	}
	require.True(t, stop.Midway == -1 || !stop.Ran[stop.Midway], "%+v", stop)
}

// TestFaultsBesideOthers: memory of a file that was cut off meanwhile is a fault of the kernels that read it, and of no
// other that runs beside them, whatever executes them.
func TestFaultsBesideOthers(t *testing.T) {
	if runtime.GOOS == "windows" {
		t.Skip("a file that is mapped cannot become shorter")
	}
	for _, executor := range []string{"", "interp"} {
		t.Run("executor "+executor, func(t *testing.T) { faultBesideOthers(t, executor) })
	}
}

func faultBesideOthers(t *testing.T, executor string) {
	dev, err := metal.NewDevice(New(Options{Workers: 3, Compiler: compileTest, Executor: executor}), metal.DeviceOptions{})
	require.NoError(t, err)
	t.Cleanup(func() { require.NoError(t, dev.Close()) })
	dev.SetValidate(false) // under which each runs alone
	const n, bad = 1 << 16, 4
	path := filepath.Join(t.TempDir(), "mapped")
	require.NoError(t, os.WriteFile(path, make([]byte, 4*n), 0o600))
	file, err := os.Open(path)
	require.NoError(t, err)
	m, err := metal.MapFile(file)
	require.NoError(t, err)
	require.NoError(t, file.Close())
	t.Cleanup(m.Release)
	gone, err := dev.MappedBuffer(m, 0, 4*n)
	require.NoError(t, err)
	t.Cleanup(gone.Release)
	require.NoError(t, os.Truncate(path, 100))
	add, in := builtIn(t, dev, "addk"), alloc(t, dev, 4*n)
	clear(in.Host())
	cb := dev.NewCommandBuffer(0, "")
	outs := make([]*metal.Buffer, 9)
	for i := range outs {
		outs[i] = alloc(t, dev, 4*n)
		from := in
		if i == bad {
			from = gone
		}
		require.NoError(t, withNumber(cb.Encoder(), add, from, outs[i], uint32(i+1)))
	}
	require.NoError(t, cb.Commit())
	err = cb.Wait(context.Background())
	require.ErrorContains(t, err, "[addk] kernel fault at address")
	var ce *metal.CommandError
	require.True(t, errors.As(err, &ce))
	require.Equal(t, bad, ce.Index)
	for i, out := range outs {
		if i != bad {
			require.Equal(t, u32Bytes(uint32(i+1)), out.Host()[4*(n-1):], "command %d", i)
		}
	}
}

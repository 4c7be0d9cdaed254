package metal_test

import (
	"errors"
	"runtime"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/mlxlua/mlxlua/metal"
	"github.com/mlxlua/mlxlua/metal/drivertest"
)

// TestWhatComesAfterIsHeldAndGiven: the driver gets a command buffer when it has what that comes after, which the host
// may have to look at first; its run begins when that has ended, and each keeps what it binds until its own end.
func TestWhatComesAfterIsHeldAndGiven(t *testing.T) {
	f := drivertest.NewFake(drivertest.Kernel("k", nil, "a:r", "b:w"))
	f.SetInfo(func(i *metal.Info) { i.Stops, i.Skips = metal.StopsNever, false })
	d := open(t, f, metal.DeviceOptions{})
	p := pipeline(t, d, "k")
	a, b, c, words := alloc(t, d, 64), alloc(t, d, 64), alloc(t, d, 64), alloc(t, d, 8)
	require.NoError(t, words.WriteBytes(0, make([]byte, 8)))
	var chain metal.Chain
	before, gated := chain.NewCommandBuffer(d, 0, "before"), chain.NewCommandBuffer(d, 0, "gated")
	dispatch(t, before, p, a.All(), b.All())
	look := metal.Range{Buf: words, Bytes: 4}
	require.NoError(t, gated.Encoder().Gate([]metal.Range{look}, metal.Range{Buf: words, Offset: 4, Bytes: 4}))
	dispatch(t, gated, p, a.All(), b.All())
	after := d.NewCommandBuffer(1, "after")
	require.Error(t, after.After(gated), "it may never be committed")
	require.NoError(t, before.Commit())
	require.NoError(t, gated.Commit())
	require.NoError(t, after.After(gated))
	require.NoError(t, after.After(before))
	dispatch(t, after, p, b.All(), c.All())
	began := false
	after.OnStart(func() { began = true })
	require.NoError(t, after.Commit())
	last := d.NewCommandBuffer(2, "last")
	require.NoError(t, last.After(after))
	dispatch(t, last, p, c.All(), a.All())
	require.NoError(t, last.Commit())
	for _, x := range []*metal.Buffer{a, b, c, words} {
		x.Release()
	}
	require.Equal(t, []*metal.CommandBuffer{before}, f.Submitted())
	f.Complete(0, nil)
	require.Equal(t, []*metal.CommandBuffer{before, gated, after, last}, f.Submitted())
	require.Equal(t, []*metal.CommandBuffer{gated, before}, after.Behind())
	require.False(t, began)
	f.Complete(1, nil)
	require.True(t, began)
	require.True(t, b.Live(), "the second reads it")
	require.True(t, a.Live() && c.Live())
	f.Complete(2, nil)
	require.False(t, b.Live())
	require.True(t, a.Live() && c.Live())
	f.Complete(3, nil)
	require.False(t, a.Live() || c.Live())
	require.Empty(t, after.Behind(), "a long chain is no memory")
}

// TestWhatComesAfterALossRuns: also where the driver never had what it comes after, since that was refused.
func TestWhatComesAfterALossRuns(t *testing.T) {
	f := drivertest.NewFake(drivertest.Kernel("k", nil, "a:r", "b:w"))
	d := open(t, f, metal.DeviceOptions{})
	lost, after := d.NewCommandBuffer(0, ""), d.NewCommandBuffer(1, "")
	require.NoError(t, lost.Commit())
	require.NoError(t, after.After(lost))
	require.NoError(t, after.Commit())
	why := errors.New("lost")
	f.Complete(0, why)
	require.ErrorIs(t, lost.Wait(bg), why)
	f.Complete(1, nil)
	require.NoError(t, after.Wait(bg))
}

// TestWaitingIsNoRun: a command buffer that is stopped while it waits for another one has not run for so long.
func TestWaitingIsNoRun(t *testing.T) {
	f := drivertest.NewFake()
	d := open(t, f, metal.DeviceOptions{})
	first, after := d.NewCommandBuffer(0, ""), d.NewCommandBuffer(1, "")
	require.NoError(t, first.Commit())
	require.NoError(t, after.After(first))
	x := alloc(t, d, 64)
	require.NoError(t, after.Encoder().Fill(x.All(), []byte{1}))
	x.Release()
	require.NoError(t, after.Commit())
	const waited = 50 * time.Millisecond
	time.Sleep(waited)
	why := errors.New("enough")
	after.Cancel(why)
	f.Complete(1, nil)
	require.ErrorIs(t, after.Wait(bg), why)
	ran := after.Timing()
	require.Less(t, ran.End.Sub(ran.Start), waited)
	f.Complete(0, nil)
}

// TestManyTurnsTakeNoMemory: two queues that take turns for long do not keep what has ended.
func TestManyTurnsTakeNoMemory(t *testing.T) {
	f := drivertest.NewFake().Auto()
	d := open(t, f, metal.DeviceOptions{})
	var last *metal.CommandBuffer
	gone := 0
	done := make(chan struct{}, 1000)
	for i := range 1000 {
		cb := d.NewCommandBuffer(i%2, "")
		if last != nil {
			require.NoError(t, cb.After(last))
		}
		runtime.AddCleanup(cb, func(int) { done <- struct{}{} }, 0)
		require.NoError(t, cb.Commit())
		last = cb
	}
	require.NoError(t, last.Wait(bg))
	for range 100 {
		runtime.GC()
		time.Sleep(time.Millisecond)
		for len(done) > 0 {
			<-done
			gone++
		}
		if gone >= 900 {
			break
		}
	}
	require.GreaterOrEqual(t, gone, 900)
	runtime.KeepAlive(last)
}

package metal_test

import (
	"bytes"
	"errors"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/mlxlua/mlxlua/metal"
	"github.com/mlxlua/mlxlua/metal/drivertest"
)

// hidden is a driver whose memory the host cannot address, as a GPU's; reading fails with refuses.
type hidden struct {
	*drivertest.Fake
	refuses error
}

func (h *hidden) Alloc(n int64) (metal.Memory, error) {
	mem, err := h.Fake.Alloc(n)
	return metal.Memory{Size: mem.Size, Handle: mem}, err
}
func (h *hidden) Free(mem metal.Memory) { h.Fake.Free(mem.Handle.(metal.Memory)) }
func (h *hidden) Read(dst []byte, mem metal.Memory, offset int64) error {
	if h.refuses != nil {
		return h.refuses
	}
	return h.Fake.Read(dst, mem.Handle.(metal.Memory), offset)
}
func (h *hidden) Write(mem metal.Memory, offset int64, src []byte) error {
	return h.Fake.Write(mem.Handle.(metal.Memory), offset, src)
}

// twoDevices are two with a buffer of 64 bytes each, a command buffer of the first that nobody completes, and a
// Transfer behind that from the first buffer to the second.
func twoDevices(t *testing.T, chain *metal.Chain) (drvs [2]*hidden, devs [2]*metal.Device, bufs [2]*metal.Buffer,
	moved *metal.Transfer) {
	t.Helper()
	for i := range drvs {
		drvs[i] = &hidden{Fake: drivertest.NewFake()}
		d, err := metal.NewDevice(drvs[i], metal.DeviceOptions{})
		require.NoError(t, err)
		devs[i] = d
		t.Cleanup(func() {
			drvs[0].CompleteAll()
			drvs[1].CompleteAll()
			require.NoError(t, d.Close())
		})
		bufs[i] = alloc(t, devs[i], 64)
	}
	first := chain.NewCommandBuffer(devs[0], 0, "first")
	require.NoError(t, bufs[0].WriteBytes(0, bytes.Repeat([]byte{7}, 64)))
	require.NoError(t, first.Commit())
	moved, err := bufs[1].CopyBehind(0, bufs[0].All(), []*metal.CommandBuffer{first})
	require.NoError(t, err)
	require.Equal(t, metal.StatusCommitted, moved.Status())
	return drvs, devs, bufs, moved
}

// behind commits an empty command buffer that comes after a Transfer.
func behind(t *testing.T, d *metal.Device, chain *metal.Chain, moved *metal.Transfer) *metal.CommandBuffer {
	t.Helper()
	cb := chain.NewCommandBuffer(d, 0, "behind")
	require.NoError(t, cb.AfterTransfer(moved))
	require.NoError(t, cb.Commit())
	return cb
}

// given waits until a driver has so many command buffers.
func given(t *testing.T, f *hidden, n int) {
	t.Helper()
	require.Eventually(t, func() bool { return len(f.Submitted()) == n }, 10*time.Second, time.Millisecond)
}

// TestATransferIsAnEvent: what comes after a copy is committed at once, and the driver has it when the bytes are there,
// which is when the other device has computed them. Meanwhile the copy keeps both buffers, and both devices count it.
func TestATransferIsAnEvent(t *testing.T) {
	drvs, devs, bufs, moved := twoDevices(t, &metal.Chain{})
	began := make(chan struct{})
	cb := devs[1].NewCommandBuffer(0, "behind")
	cb.OnStart(func() { close(began) })
	require.NoError(t, cb.AfterTransfer(moved))
	require.NoError(t, cb.AfterTransfer(moved))
	require.NoError(t, cb.Commit())
	later := devs[1].NewCommandBuffer(0, "later, and so behind it")
	require.NoError(t, later.Commit())
	require.Empty(t, drvs[1].Submitted())
	require.Equal(t, 2, devs[0].Memory().Pending)
	require.Equal(t, 3, devs[1].Memory().Pending)
	bufs[0].Release()
	require.True(t, bufs[0].Live())
	select {
	case <-began:
		t.Fatal("it has begun")
	default:
	}
	drvs[0].Complete(0, nil)
	given(t, drvs[1], 2)
	require.Equal(t, metal.StatusCompleted, moved.Status())
	require.False(t, bufs[0].Live())
	drvs[1].CompleteAll()
	require.NoError(t, cb.Wait(bg))
	require.NoError(t, later.Wait(bg))
	<-began
	got := make([]byte, 64)
	require.NoError(t, bufs[1].ReadBytes(got, 0))
	require.Equal(t, bytes.Repeat([]byte{7}, 64), got)
	require.NoError(t, moved.Err())

	at, err := bufs[1].CopyBehind(0, metal.Range{Buf: bufs[1], Offset: 32, Bytes: 32}, []*metal.CommandBuffer{cb})
	require.NoError(t, err)
	require.Nil(t, at, "all has ended: it was done at once")
	require.NoError(t, devs[0].Close(), "nothing is pending")
}

// TestATransferThatHasNothingToCopy: where what computes the bytes is stopped nothing is copied, and what comes after
// the copy ends with the same cause, with its chain. What comes after others goes on.
func TestATransferThatHasNothingToCopy(t *testing.T) {
	var stopped, chain metal.Chain
	drvs, devs, bufs, moved := twoDevices(t, &stopped)
	other := devs[1].NewCommandBuffer(1, "other")
	require.NoError(t, other.Commit())
	cb := behind(t, devs[1], &chain, moved)
	next := chain.NewCommandBuffer(devs[1], 0, "next")
	require.NoError(t, next.Commit())
	why := errors.New("enough")
	stopped.Interrupt(why)
	fill := stopped.NewCommandBuffer(devs[0], 0, "a command, which does not run")
	require.NoError(t, fill.Encoder().Fill(bufs[0].All(), []byte{1}))
	require.NoError(t, fill.Commit())
	second, err := bufs[1].CopyBehind(0, bufs[0].All(), []*metal.CommandBuffer{fill})
	require.NoError(t, err)
	third := devs[1].NewCommandBuffer(2, "third")
	require.NoError(t, third.AfterTransfer(second))
	require.NoError(t, third.Commit())
	var e *metal.Interrupted
	require.ErrorAs(t, third.Wait(bg), &e)
	require.ErrorIs(t, e, why)
	require.Equal(t, metal.StatusFailed, second.Status())
	require.NoError(t, second.Err(), "the copy itself has not failed")
	require.Equal(t, []*metal.CommandBuffer{other}, drvs[1].Submitted())
	drvs[0].Complete(0, nil) // it had no commands: all have run
	given(t, drvs[1], 3)
	require.Equal(t, metal.StatusCompleted, moved.Status())
	drvs[1].CompleteAll()
	for _, cb := range []*metal.CommandBuffer{cb, next, other} {
		require.NoError(t, cb.Wait(bg))
	}
}

// TestATransferThatFails: it keeps what comes after it from running, and says why.
func TestATransferThatFails(t *testing.T) {
	drvs, devs, _, moved := twoDevices(t, &metal.Chain{})
	cb := behind(t, devs[1], &metal.Chain{}, moved)
	drvs[0].refuses = errors.New("the link is down")
	drvs[0].Complete(0, nil)
	var e *metal.Interrupted
	require.ErrorAs(t, cb.Wait(bg), &e)
	require.ErrorIs(t, e, drvs[0].refuses)
	require.ErrorIs(t, moved.Err(), drvs[0].refuses)
	require.Equal(t, metal.StatusFailed, moved.Status())
	require.Empty(t, drvs[1].Submitted())
	late := behind(t, devs[1], &metal.Chain{}, moved)
	require.ErrorIs(t, late.Wait(bg), drvs[0].refuses, "it has ended by then")
}

// TestWhoWaitsForATransferCanBeStopped: at once, though the other device goes on.
func TestWhoWaitsForATransferCanBeStopped(t *testing.T) {
	drvs, devs, bufs, moved := twoDevices(t, &metal.Chain{})
	var chain metal.Chain
	cb := behind(t, devs[1], &chain, moved)
	why := errors.New("enough")
	chain.Interrupt(why)
	require.ErrorIs(t, cb.Wait(bg), why)
	after := devs[1].NewCommandBuffer(0, "after")
	require.NoError(t, after.Commit())
	given(t, drvs[1], 1)
	drvs[1].CompleteAll()
	require.NoError(t, after.Wait(bg))
	bufs[1].Release()
	require.True(t, bufs[1].Live(), "the copy is still to come")
	drvs[0].CompleteAll()
	require.Eventually(t, func() bool { return !bufs[1].Live() }, 10*time.Second, time.Millisecond)
}

// TestTransfersAreRefused: to what is not inside, by closed devices, and for command buffers of other devices.
func TestTransfersAreRefused(t *testing.T) {
	drvs, devs, bufs, moved := twoDevices(t, &metal.Chain{})
	first := drvs[0].Submitted()
	_, err := bufs[1].CopyBehind(1, bufs[0].All(), first)
	require.ErrorContains(t, err, "[copy] bytes 1 to 65 are not inside")
	_, err = bufs[1].CopyBehind(0, metal.Range{Buf: bufs[0], Offset: -1, Bytes: 4}, first)
	require.ErrorContains(t, err, "[copy] bytes -1 to 3 are not inside")
	cb := devs[0].NewCommandBuffer(0, "")
	require.ErrorContains(t, cb.AfterTransfer(moved), "another device")
	require.NoError(t, cb.Commit())
	require.ErrorContains(t, cb.AfterTransfer(moved), "committed")
	closed := make(chan error)
	go func() { closed <- devs[1].Close() }()
	require.Eventually(t, func() bool { return devs[1].NewCommandBuffer(0, "").Commit() != nil }, 10*time.Second,
		time.Millisecond)
	_, err = bufs[1].CopyBehind(0, bufs[0].All(), first)
	require.EqualError(t, err, "[copy] the device is closed")
	select {
	case <-closed:
		t.Fatal("a copy to it is under way")
	default:
	}
	drvs[0].CompleteAll()
	for ended := false; !ended; {
		select {
		case err := <-closed:
			require.NoError(t, err)
			ended = true
		default:
			drvs[1].CompleteAll()
		}
	}
}

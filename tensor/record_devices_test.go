package tensor_test

import (
	"context"
	"errors"
	"math/rand/v2"
	"runtime"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/mlxlua/mlxlua/metal"
	"github.com/mlxlua/mlxlua/metal/drivertest"
	"github.com/mlxlua/mlxlua/metal/testdevice"
	"github.com/mlxlua/mlxlua/tensor"
)

// opened gives streams on a device of the driver, beside the tests' own.
func opened(t testing.TB, drv metal.Driver, streams int) (list []*tensor.Stream) {
	t.Helper()
	dev, err := metal.NewDevice(drv, metal.DeviceOptions{})
	require.NoError(t, err)
	d := tensor.SetDevice(dev)
	t.Cleanup(func() {
		require.NoError(t, tensor.Synchronize(background))
		tensor.UnsetDevice(dev)
		require.NoError(t, dev.Close())
	})
	for range streams {
		s, err := tensor.NewStream(d)
		require.NoError(t, err)
		list = append(list, s)
	}
	return list
}

// gpu is a device that the host neither sees into nor is, which can stop a kernel midway.
func gpu(index int) metal.Driver {
	return testdevice.NewAs(func(info *metal.Info) { info.Host, info.Index, info.ID = false, index, "gpu" })
}

// TestDevicesMeetWithoutTheHost: what reads another device's value is recorded while that is being computed, in both
// directions; views of it on a third stream as well. Neither recorder waits for the other's device.
func TestDevicesMeetWithoutTheHost(t *testing.T) {
	_, _ = withDevice(t, metal.DeviceOptions{})
	near, far := newStream(t), opened(t, gpu(5), 2)
	for _, dir := range [][3]*tensor.Stream{{near, far[0], far[1]}, {far[0], near, far[1]}} {
		a, b, c := dir[0], dir[1], dir[2]
		waited := tensor.RecorderWaits(a) + tensor.RecorderWaits(b) + tensor.RecorderWaits(c)
		x := iota(8)
		y := kernelOn(a, x, endless, "endless", 0)
		z := negOp.One(on(b), tensor.None{}, y)
		w := reshapeOp.One(on(c), dimsAttrs{tensor.MakeDims(2, 4)}, y) // only a view, which lies on a
		u := addOp.One(on(b), tensor.None{}, w, w)
		v := negOp.One(on(c), tensor.None{}, negOp.One(on(a), tensor.None{}, u))
		patience, stop := context.WithTimeout(background, 20*time.Second)
		defer stop()
		work, err := tensor.Submit(z, v)
		require.NoError(t, err)
		for a.Pending() < 2 || b.Pending() == 0 || c.Pending() < 2 {
			require.NoError(t, patience.Err(), "a recorder waits for another device")
			runtime.Gosched()
		}
		require.Equal(t, tensor.Scheduled, y.State())
		require.Equal(t, waited, tensor.RecorderWaits(a)+tensor.RecorderWaits(b)+tensor.RecorderWaits(c))
		work.Stop(errors.New("enough"))
		require.NoError(t, tensor.Synchronize(patience))
		for _, n := range []*tensor.Array{y, z, w, u, v} {
			require.Equal(t, tensor.Lazy, n.State(), "it is undone with what it reads")
		}
	}
}

// TestWhoGivesUpBlocksNoDevice: an evaluation that waits for another device's endless one is given up at once, and its
// device goes on, while the other one does.
func TestWhoGivesUpBlocksNoDevice(t *testing.T) {
	_, _ = withDevice(t, metal.DeviceOptions{})
	a, b := newStream(t), opened(t, gpu(5), 1)[0]
	x := iota(8)
	y := kernelOn(a, x, endless, "endless", 0)
	require.NoError(t, tensor.AsyncEval(y))
	hold, release := context.WithCancelCause(background)
	defer release(nil)
	waited := make(chan error, 1)
	go func() { waited <- tensor.Eval(hold, y) }()
	z := negOp.One(on(b), tensor.None{}, y)
	for range 3 {
		c, cancel := context.WithTimeout(background, 20*time.Millisecond)
		require.ErrorIs(t, tensor.Eval(c, z), context.DeadlineExceeded)
		cancel()
		patience, stop := context.WithTimeout(background, 20*time.Second)
		require.NoError(t, tensor.Eval(patience, negOp.One(on(b), tensor.None{}, x)))
		stop()
	}
	require.Equal(t, tensor.Scheduled, y.State())
	enough := errors.New("enough")
	release(enough)
	require.ErrorIs(t, <-waited, enough)
	require.NoError(t, tensor.Synchronize(background))
	require.Equal(t, tensor.Lazy, z.State())
}

// TestDevicesThatFailTogether: what depends on another device's failure has the first error, and nothing else.
func TestDevicesThatFailTogether(t *testing.T) {
	near := newStream(t)
	far := append(opened(t, testdevice.NewDiscrete(5), 1), opened(t, testdevice.NewDiscrete(6), 1)...)
	x := iota(8)
	for i := range 30 {
		order := []*tensor.Stream{near, far[0], far[1]}
		a, b, c := order[i%3], order[(i+1)%3], order[(i+2)%3]
		bad := kernelOn(a, x, faulty, "faulty", 1000)
		y := negOp.One(on(b), tensor.None{}, bad)
		z := addOp.One(on(c), tensor.None{}, y, x)
		good := addOp.One(on(b), tensor.None{}, x, x)
		err := tensor.Eval(background, z, good)
		require.ErrorContains(t, err, "[test_run]")
		require.Equal(t, err, bad.Err())
		require.Equal(t, err, y.Err())
		require.Equal(t, float32(14), floats(t, good)[7])
	}
}

// breaking is a discrete device that the others cannot read by themselves, and the host not while it breaks.
type breaking struct {
	metal.Driver
	err  error
	lost bool // nothing runs any more either
}

func (b *breaking) Read(dst []byte, mem metal.Memory, offset int64) error {
	if b.err != nil {
		return b.err
	}
	return b.Driver.Read(dst, mem, offset)
}

func (b *breaking) Submit(queue int, cb *metal.CommandBuffer, done func(metal.Result)) {
	if b.lost {
		done(metal.Result{Err: b.err})
		return
	}
	b.Driver.Submit(queue, cb, done)
}

// slowly is x times 1, computed in a while.
func slowly(s *tensor.Stream, x *tensor.Array) *tensor.Array {
	return kernelOn(s, x, slow, "slow", 1<<13)
}

// TestACopyThatFails: it fails what wanted it, which names its op and line, and what depends on that. Others of the
// evaluation are computed, and the copy is made again for whoever asks again.
func TestACopyThatFails(t *testing.T) {
	drv := &breaking{Driver: testdevice.NewDiscrete(5)}
	far, near := opened(t, drv, 1)[0], newStream(t)
	for range 5 {
		x := iota(3000)
		y := slowly(far, x)
		z := negOp.One(on(near), tensor.None{}, y)
		after := addOp.One(on(near), tensor.None{}, z, x)
		good := addOp.One(on(near), tensor.None{}, x, x)
		drv.err = errors.New("the link is down")
		err := tensor.Eval(background, good, after)
		require.ErrorIs(t, err, drv.err)
		require.ErrorContains(t, err, "[test_neg]")
		require.ErrorContains(t, err, "test.lua:9")
		require.Equal(t, err, z.Err())
		require.NoError(t, y.Err())
		drv.err = nil
		require.Equal(t, float32(14), floats(t, good)[7])
		require.Equal(t, float32(-7), floats(t, negOp.One(on(near), tensor.None{}, y))[7])
	}
}

// TestALostDeviceTakesNoOther: what waits for its values has its error, and the rest of the evaluation is computed.
func TestALostDeviceTakesNoOther(t *testing.T) {
	drv := &breaking{Driver: testdevice.NewDiscrete(5), err: errors.New("fell off the bus"), lost: true}
	far, near := opened(t, drv, 1)[0], newStream(t)
	for range 5 {
		x := iota(3000)
		y := slowly(far, x)
		z := negOp.One(on(near), tensor.None{}, y)
		good := addOp.One(on(near), tensor.None{}, x, x)
		err := tensor.Eval(background, z, good)
		require.ErrorIs(t, err, drv.err)
		require.Equal(t, y.Err(), z.Err(), "the first error")
		require.ErrorContains(t, err, "[test_run]")
		require.Equal(t, float32(14), floats(t, good)[7])
	}
}

// TestNoRoomForACopy: where a limit has no room for what a copy passes through, the evaluation ends with its error, and
// is lazy again.
func TestNoRoomForACopy(t *testing.T) {
	const n = 1 << 18 // floats
	drv := &breaking{Driver: testdevice.NewDiscrete(5)}
	a, b := opened(t, drv, 1)[0], opened(t, &breaking{Driver: testdevice.NewDiscrete(6)}, 1)[0]
	account := metal.NewAccount(5*4*n+100_000, errors.New("that is all"))
	h := tensor.NewHolder(tensor.HolderLimits{Memory: account})
	ca, cb := on(a), on(b)
	ca.Holder, cb.Holder = h, h
	x := arrayOf(ca, make([]float32, n))
	y := negOp.One(ca, tensor.None{}, kernelOn(a, x, slow, "slow", 1<<12))
	keep := arrayOf(ca, make([]float32, n))
	z := negOp.One(cb, tensor.None{}, y)
	for range 3 {
		err := tensor.Eval(background, z)
		if err == nil { // garbage was found
			break
		}
		require.ErrorIs(t, err, metal.ErrNoMemory)
		require.ErrorContains(t, err, "[test_neg]")
		require.Equal(t, tensor.Lazy, z.State())
	}
	runtime.KeepAlive(keep)
	tensor.Drop(keep)
	runtime.KeepAlive(x)
	tensor.Drop(x)
	require.NoError(t, tensor.Eval(background, z))
	require.LessOrEqual(t, account.Used(), account.Limit())
}

// TestRandomDevices: graphs over five streams of three devices, some of whose evaluations are given up at any time,
// have the values that one stream gives.
func TestRandomDevices(t *testing.T) {
	streams := []*tensor.Stream{newStream(t)}
	streams = append(streams, opened(t, testdevice.NewDiscrete(5), 2)...)
	streams = append(streams, opened(t, gpu(6), 2)...)
	randomStreams(t, streams, rand.New(rand.NewPCG(5, 6)))
}

// BenchmarkDevicesInTurn has two devices, of which the host hears late, compute a chain of small values in turns: the
// time of a turn, and how often a recorder waits for the other device in one.
func BenchmarkDevicesInTurn(b *testing.B) {
	var on2 [2]*tensor.Ctx
	var streams []*tensor.Stream
	for i := range on2 {
		s := opened(b, toldLate{drivertest.NewDiscrete(testdevice.NewDiscrete(5+i).Driver, 5+i)}, 1)[0]
		on2[i], streams = on(s), append(streams, s)
	}
	x := iota(32)
	const turns = 50
	for b.Loop() {
		y := x
		for i := range turns {
			y = negOp.One(on2[i%2], tensor.None{}, y)
		}
		require.NoError(b, tensor.Eval(background, y))
	}
	b.ReportMetric(float64(b.Elapsed().Nanoseconds())/float64(b.N*turns), "ns/turn")
	waits := tensor.RecorderWaits(streams[0]) + tensor.RecorderWaits(streams[1])
	b.ReportMetric(float64(waits)/float64(b.N*turns), "waits/turn")
}

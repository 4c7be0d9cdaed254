package metal_test

import (
	"context"
	"errors"
	"sync"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/mlxlua/mlxlua/metal"
	"github.com/mlxlua/mlxlua/metal/drivertest"
)

func TestRetentionIsASet(t *testing.T) {
	f := drivertest.NewFake(drivertest.Kernel("k", nil, "a:r", "b:w"))
	d := open(t, f, metal.DeviceOptions{Validate: true})
	p := pipeline(t, d, "k")
	a, b, tmp := alloc(t, d, 64), alloc(t, d, 64), alloc(t, d, 64)
	cb := d.NewCommandBuffer(0, "step")
	for range 5 {
		dispatch(t, cb, p, a.All(), b.All())
		cb.AddTemporary(tmp)
		cb.AddTemporary(a)
	}
	for _, x := range []*metal.Buffer{a, b, tmp} {
		require.Equal(t, 2, x.Refs())
		x.Release()
	}
	require.Equal(t, []*metal.Buffer{a, b, tmp}, cb.Buffers())
	require.NoError(t, cb.Commit())
	require.True(t, a.Live() && b.Live() && tmp.Live(), "whatever the caller dropped")
	var order []string
	cb.OnComplete(func(err error) {
		require.NoError(t, err)
		require.False(t, a.Live(), "OnComplete runs after the releases")
		order = append(order, "callback")
	})
	f.Complete(0, nil)
	require.NoError(t, cb.Wait(bg))
	cb.OnComplete(func(error) { order = append(order, "late") })
	require.Equal(t, []string{"callback", "late"}, order)
	require.Equal(t, metal.StatusCompleted, cb.Status())
	require.False(t, cb.Timing().End.Before(cb.Timing().Start))
	require.Zero(t, d.Memory().Buffers)
	require.Zero(t, d.Memory().Pending)
}

// TestRetentionOff is MLX's issue 3462: without retention a buffer that the caller dropped between encoding and
// completion is back in the pool while the command buffer refers to it. Validation says so every time.
func TestRetentionOff(t *testing.T) {
	run := func(t *testing.T, opt metal.DeviceOptions, dropAfterCommit bool) error {
		f := drivertest.NewFake(drivertest.Kernel("gated_delta", nil, "state:r", "out:w"))
		d := open(t, f, opt)
		p := pipeline(t, d, "gated_delta")
		a, b := alloc(t, d, 64), alloc(t, d, 64)
		a.SetOrigin(metal.Origin{Op: "state"})
		defer b.Release()
		cb := d.NewCommandBuffer(0, "")
		cb.Encoder().Label("model.lua:7")
		dispatch(t, cb, p, b.All(), b.All())
		dispatch(t, cb, p, a.All(), b.All())
		if !dropAfterCommit {
			a.Release()
		}
		require.NoError(t, cb.Commit())
		if dropAfterCommit {
			a.Release()
		}
		f.CompleteAll()
		return cb.Wait(bg)
	}
	const want = "[validate] command buffer references deallocated object: buffer of state (#1, 64 bytes) in " +
		"kernel gated_delta [model.lua:7], command 2"
	for range 10 {
		for _, late := range []bool{false, true} {
			require.NoError(t, run(t, metal.DeviceOptions{Validate: true}, late))
			off := metal.DeviceOptions{Validate: true, Ablate: metal.Ablations{NoRetain: true}}
			require.EqualError(t, run(t, off, late), want)
		}
	}
	t.Run("environment", func(t *testing.T) {
		t.Setenv(metal.RetainEnv, "0")
		require.EqualError(t, run(t, metal.DeviceOptions{Validate: true}, false), want)
		t.Setenv(metal.RetainEnv, "1")
		require.NoError(t, run(t, metal.DeviceOptions{Validate: true}, false))
	})
}

// TestPoolReuseInsideACommandBuffer: without retention the pool hands the memory of a bound buffer out again;
// validation sees that two commands use one piece of memory without a barrier even before it looks at lifetimes.
func TestPoolReuseInsideACommandBuffer(t *testing.T) {
	for _, noRetain := range []bool{false, true} {
		f := drivertest.NewFake()
		d := open(t, f, metal.DeviceOptions{Validate: true, Ablate: metal.Ablations{NoRetain: noRetain}})
		cb := d.NewCommandBuffer(0, "")
		a := alloc(t, d, 5*mib)
		require.NoError(t, cb.Encoder().Fill(a.All(), []byte{1}))
		a.Release()
		b := alloc(t, d, 5*mib)
		require.NoError(t, cb.Encoder().Fill(b.All(), []byte{2}))
		am, _ := a.Memory()
		bm, _ := b.Memory()
		require.Equal(t, noRetain, am.Handle == bm.Handle)
		require.NoError(t, cb.Commit())
		f.CompleteAll()
		if err := cb.Wait(bg); noRetain {
			require.ErrorContains(t, err, "deallocated object: buffer (#1, 5242880 bytes) in fill, command 0")
		} else {
			require.NoError(t, err)
		}
		b.Release()
	}
}

func TestCommitAndWaitErrors(t *testing.T) {
	f := drivertest.NewFake()
	d := open(t, f, metal.DeviceOptions{})
	cb := d.NewCommandBuffer(0, "step")
	require.EqualError(t, cb.Wait(bg), "[wait] command buffer step (#1) is not committed")
	require.NoError(t, cb.Commit())
	require.EqualError(t, cb.Commit(), "[commit] command buffer step (#1) is committed")
	require.EqualError(t, cb.Encoder().Barrier(), "[barrier] command buffer step (#1) is committed")
	ctx, cancel := context.WithCancel(bg)
	cancel()
	require.ErrorIs(t, cb.Wait(ctx), context.Canceled)
	require.Equal(t, metal.StatusCommitted, cb.Status())
	why := errors.New("lost the device")
	f.Complete(0, why)
	require.Same(t, why, cb.Wait(bg))
	require.Equal(t, metal.StatusFailed, cb.Status())
	require.Same(t, why, cb.Commit())
	require.PanicsWithValue(t, "BUG: command buffer step (#1) completed twice", func() { f.Complete(0, nil) })
}

func TestCompletionOutOfOrder(t *testing.T) {
	f := drivertest.NewFake()
	d := open(t, f, metal.DeviceOptions{})
	var cbs []*metal.CommandBuffer
	for q := range 3 {
		cb := d.NewCommandBuffer(q, "")
		b := alloc(t, d, 64)
		cb.AddTemporary(b)
		b.Release()
		require.NoError(t, cb.Commit())
		cbs = append(cbs, cb)
	}
	require.Equal(t, cbs, f.Submitted())
	require.Equal(t, 3, d.Memory().Pending)
	f.Complete(2, errors.New("third"))
	f.Complete(0, nil)
	require.Equal(t, 1, d.Memory().Buffers)
	require.NoError(t, cbs[0].Err())
	require.Equal(t, metal.StatusCommitted, cbs[1].Status())
	require.EqualError(t, cbs[2].Err(), "third")
	f.Complete(1, nil)
	require.Zero(t, d.Memory().Buffers)
}

func TestCancel(t *testing.T) {
	why := errors.New("stop")
	spin := func(ctx context.Context, _ metal.Command) error { <-ctx.Done(); return ctx.Err() }
	f := drivertest.NewFake(drivertest.Kernel("spin", spin, "x:w")).Auto()
	d := open(t, f, metal.DeviceOptions{})
	b := alloc(t, d, 64)
	cb := d.NewCommandBuffer(0, "")
	dispatch(t, cb, pipeline(t, d, "spin"), b.All())
	require.NoError(t, cb.Commit())
	next := d.NewCommandBuffer(0, "")
	require.NoError(t, next.Commit())
	cb.Cancel(why)
	require.ErrorIs(t, cb.Wait(bg), why)
	require.EqualError(t, cb.Err(), "interrupted: stop")
	require.NoError(t, next.Wait(bg), "a failed command buffer does not fail its successor by itself")
	cb.Cancel(nil)
	require.ErrorIs(t, cb.Err(), why)

	open := d.NewCommandBuffer(0, "")
	dispatch(t, open, pipeline(t, d, "spin"), b.All())
	called := 0
	open.OnComplete(func(err error) { require.Same(t, why, err); called++ })
	open.Cancel(why)
	require.Equal(t, 1, called)
	require.Same(t, why, open.Wait(bg))
	require.Same(t, why, open.Commit())
	require.Equal(t, 1, b.Refs())
	open.AddTemporary(b)
	require.Equal(t, 1, b.Refs(), "nothing to keep it for")
	b.Release()
	idle := d.NewCommandBuffer(0, "")
	idle.Cancel(nil)
	require.ErrorIs(t, idle.Wait(bg), context.Canceled)
}

func TestCloseWaitsForPending(t *testing.T) {
	gate := make(chan struct{})
	slow := func(context.Context, metal.Command) error { <-gate; return nil }
	f := drivertest.NewFake(drivertest.Kernel("slow", slow)).Auto()
	d, err := metal.NewDevice(f, metal.DeviceOptions{})
	require.NoError(t, err)
	cb := d.NewCommandBuffer(0, "")
	dispatch(t, cb, pipeline(t, d, "slow"))
	require.NoError(t, cb.Commit())
	closed := make(chan error)
	go func() { closed <- d.Close() }()
	select {
	case <-closed:
		t.Fatal("closed while work was pending")
	case gate <- struct{}{}:
	}
	require.NoError(t, <-closed)
	require.Equal(t, metal.StatusCompleted, cb.Status())
}

// TestManyGoroutines drops buffers as soon as they are encoded, on many goroutines and queues, and checks every result.
func TestManyGoroutines(t *testing.T) {
	inc := func(_ context.Context, c metal.Command) error {
		in, out := drivertest.ArgBytes(c.Args[0]), drivertest.ArgBytes(c.Args[1])
		for i := range in {
			out[i] = in[i] + 1
		}
		return nil
	}
	f := drivertest.NewFake(drivertest.Kernel("inc", inc, "in:r", "out:w")).Auto()
	f.Reverse = true
	d := open(t, f, metal.DeviceOptions{Validate: true, LibraryCap: 1})
	var wg sync.WaitGroup
	for g := range 16 {
		wg.Go(func() {
			for round := range 8 {
				cb := d.NewCommandBuffer(g%3, "")
				l, err := d.Library(bg, drivertest.Source("inc", "inc"))
				if err != nil {
					t.Error(err)
					return
				}
				p, _ := l.Pipeline("inc")
				x, _ := d.AllocCopy(bg, make([]byte, 1000+100*g), nil)
				for range 20 {
					y, _ := d.Alloc(bg, x.Len())
					e := cb.Encoder()
					e.SetPipeline(p)
					e.SetBuffer(0, x, 0)
					e.SetBuffer(1, y, 0)
					if err := e.Dispatch(one, one); err != nil {
						t.Error(err)
					}
					x.Release()
					x = y
				}
				if err := errors.Join(cb.Commit(), cb.Wait(bg)); err != nil {
					t.Error(err)
				}
				for _, v := range x.Host() {
					if v != 20 {
						t.Errorf("round %d: %d", round, v)
						break
					}
				}
				x.Release()
			}
		})
	}
	wg.Wait()
	require.Zero(t, d.Memory().Buffers)
}

type gemm interface{ Gemm() int }

type fakeWithGemm struct{ *drivertest.Fake }

func (fakeWithGemm) Gemm() int { return 42 }

func TestCapability(t *testing.T) {
	_, ok := metal.Capability[gemm](open(t, drivertest.NewFake(), metal.DeviceOptions{}))
	require.False(t, ok)
	d, err := metal.NewDevice(fakeWithGemm{drivertest.NewFake()}, metal.DeviceOptions{})
	require.NoError(t, err)
	g, ok := metal.Capability[gemm](d)
	require.True(t, ok)
	require.Equal(t, 42, g.Gemm())
	require.NoError(t, d.Close())
	_, err = metal.NewDevice(nil, metal.DeviceOptions{})
	require.EqualError(t, err, "[device] no driver")
}

// BenchmarkCommandBuffer is a command buffer of one dispatch, from its making to its end.
func BenchmarkCommandBuffer(b *testing.B) {
	f := drivertest.NewFake(drivertest.Kernel("k", nil, "a:r", "b:w"))
	d := open(b, f, metal.DeviceOptions{})
	p := pipeline(b, d, "k")
	x, y := alloc(b, d, 64), alloc(b, d, 64)
	defer x.Release()
	defer y.Release()
	for b.Loop() {
		cb := d.NewCommandBuffer(0, "")
		dispatch(b, cb, p, x.All(), y.All())
		cb.Cancel(nil)
	}
}

// TestGates: on a device that skips, a gate is a command between two barriers, and each command behind it names its
// word, in later command buffers too; on one that does not, it begins a command buffer, which the driver gets when
// those before have run and the host has looked.
func TestGates(t *testing.T) {
	for _, skips := range []bool{true, false} {
		f := drivertest.NewFake(drivertest.Kernel("k", nil, "a:r", "b:w"))
		f.SetInfo(func(i *metal.Info) { i.Skips = skips })
		d := open(t, f, metal.DeviceOptions{})
		p := pipeline(t, d, "k")
		a, b, words := alloc(t, d, 64), alloc(t, d, 64), alloc(t, d, 8)
		clear(words.Host())
		look, into := metal.Range{Buf: words, Bytes: 4}, metal.Range{Buf: words, Offset: 4, Bytes: 4}
		var chain metal.Chain
		first := chain.NewCommandBuffer(d, 0, "")
		dispatch(t, first, p, a.All(), b.All())
		err := first.Encoder().Gate([]metal.Range{look}, into)
		if skips {
			require.NoError(t, err)
			dispatch(t, first, p, a.All(), b.All())
			var kinds []metal.CommandKind
			for _, c := range first.Commands() {
				kinds = append(kinds, c.Kind)
			}
			require.Equal(t, []metal.CommandKind{metal.CmdDispatch, metal.CmdBarrier, metal.CmdGate, metal.CmdBarrier,
				metal.CmdDispatch}, kinds)
			require.Equal(t, into, first.Commands()[4].Unless)
			require.Zero(t, first.Commands()[0].Unless)
		} else {
			require.ErrorIs(t, err, metal.ErrGateBegins)
		}
		second := chain.NewCommandBuffer(d, 0, "")
		if !skips {
			require.NoError(t, second.Encoder().Gate([]metal.Range{look}, into))
		}
		dispatch(t, second, p, a.All(), b.All())
		other := d.NewCommandBuffer(0, "")
		require.NoError(t, first.Commit())
		require.NoError(t, second.Commit())
		require.NoError(t, other.Commit())
		if skips {
			require.Equal(t, into, second.Commands()[0].Unless)
			require.Len(t, f.Submitted(), 3)
		} else {
			require.Len(t, f.Submitted(), 1, "the second waits for the first, and the others for their turn")
		}
		words.Host()[0] = 1
		f.CompleteAll()
		f.CompleteAll()
		require.NoError(t, other.Wait(t.Context()))
		require.ErrorIs(t, second.Err(), metal.ErrSkipped)
		if skips {
			require.ErrorIs(t, first.Err(), metal.ErrSkipped)
		} else {
			require.NoError(t, first.Err())
		}
		for _, x := range []*metal.Buffer{a, b, words} {
			x.Release()
		}
	}
}

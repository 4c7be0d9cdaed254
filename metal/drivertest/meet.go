package drivertest

import (
	"context"
	"encoding/binary"
	"errors"
	"math/rand/v2"
	"slices"
	"time"

	"github.com/mlxlua/mlxlua/metal"
)

// Command buffers of several queues that come after one another: CommandBuffer.After; and of two devices:
// CommandBuffer.AfterTransfer.

// on begins a command buffer of a queue that comes after others. The chain may be nil.
func (b *bench) on(queue int, chain *metal.Chain, after ...*metal.CommandBuffer) *metal.CommandBuffer {
	if chain == nil {
		chain = &metal.Chain{}
	}
	cb := chain.NewCommandBuffer(b.d, queue, "drivertest")
	b.begun = append(b.begun, cb)
	for _, o := range after {
		must.NoError(b.t, cb.After(o))
	}
	return cb
}

// twice records x = 2 x + 1 for words.
func (b *bench) twice(cb *metal.CommandBuffer, x *metal.Buffer) {
	n := int(x.Len() / 4)
	b.encode(cb, "twice_plus_one", threads(n), threads(min(n, 32)), buf("x", x))
}

// caseMeet: three queues take turns at the same memory, which nobody else holds.
func caseMeet(b *bench) {
	const n, rounds = 3000, 90
	x, out := b.zeros(n), b.zeros(n)
	var last *metal.CommandBuffer
	var all []*metal.CommandBuffer
	var want uint32
	for i := range rounds {
		cb := b.on(i%3, nil)
		if last != nil {
			must.NoError(b.t, cb.After(last))
		}
		b.twice(cb, x)
		want = 2*want + 1
		if i == rounds-1 {
			must.NoError(b.t, cb.Encoder().Copy(out.All(), x.All()))
		}
		must.NoError(b.t, cb.Commit())
		last, all = cb, append(all, cb)
	}
	x.Release()
	must.NoError(b.t, last.Wait(bg))
	for _, cb := range all { // they have run, and may be letting go of x just now
		must.NoError(b.t, cb.Wait(bg))
	}
	must.Equal(b.t, slices.Repeat([]uint32{want}, n), b.read(out))
	must.True(b.t, !x.Live(), "it is held")
	out.Release()
	b.meetAtRandom()
}

// meetAtRandom has each of many sums add up two earlier ones, on any queue.
func (b *bench) meetAtRandom() {
	const n, sums = 200, 120
	r := rand.New(rand.NewPCG(1, 5))
	bufs, values := []*metal.Buffer{b.floats(slices.Repeat([]float32{1}, n)...)}, []float32{1}
	var cbs []*metal.CommandBuffer
	cb := b.on(0, nil)
	must.NoError(b.t, cb.Commit())
	cbs = append(cbs, cb)
	for range sums {
		i, j := r.IntN(len(bufs)), r.IntN(len(bufs))
		cb := b.on(r.IntN(4), nil, cbs[i], cbs[j])
		out := b.zeros(n)
		b.encode(cb, "add", threads(n), threads(32), buf("a", bufs[i]), buf("b", bufs[j]), buf("out", out), word32("n", n))
		must.NoError(b.t, cb.Commit())
		bufs, cbs, values = append(bufs, out), append(cbs, cb), append(values, values[i]+values[j])
	}
	for i, cb := range cbs {
		must.NoError(b.t, cb.Wait(bg))
		must.Equal(b.t, values[i], b.readFloats(bufs[i])[n-1], "sum %d", i)
	}
	release(bufs...)
}

// caseMeetRefused: what is not committed has no end that could be waited for, nor is there one among other devices.
func caseMeetRefused(b *bench) {
	open, ended := b.begin(), b.begin()
	b.finish(ended)
	cb := b.on(1, nil, ended)
	must.ErrorContains(b.t, cb.After(open), "is not committed")
	must.ErrorContains(b.t, cb.After(cb), "is not committed")
	must.ErrorContains(b.t, cb.After(nil), "another device")
	b.finish(cb)
	must.ErrorContains(b.t, cb.After(ended), "completed")
	b.finish(open)
}

// missed says that a command buffer has not begun, because of what it comes after.
func (b *bench) missed(cb *metal.CommandBuffer, why error, what string) {
	err := cb.Wait(bg)
	var e *metal.Interrupted
	must.True(b.t, errors.As(err, &e), "%s: not Interrupted: %v", what, err)
	must.ErrorIs(b.t, e, why, what)
	must.True(b.t, !slices.Contains(e.Ran, true) && e.Midway < 0, "%s: it has begun", what)
}

// caseMeetMissed: what comes after a command buffer that has not run does not run either, nor do later ones of its
// chain, but ends. What comes after one that has failed does run.
func caseMeetMissed(b *bench) {
	why := errors.New("enough")
	x, y := b.zeros(100), b.zeros(100)
	follow := func(first *metal.CommandBuffer, what string, why error) {
		var chain metal.Chain
		second := b.on(1, &chain, first)
		b.twice(second, x)
		must.NoError(b.t, second.Commit())
		third := b.on(2, nil, second)
		b.twice(third, x)
		must.NoError(b.t, third.Commit())
		next := b.on(1, &chain)
		b.twice(next, x)
		must.NoError(b.t, next.Commit())
		for _, cb := range []*metal.CommandBuffer{second, third, next} {
			b.missed(cb, why, what)
		}
		must.Equal(b.t, make([]uint32, 100), b.read(x), what)
	}

	var stopped metal.Chain
	stopped.Interrupt(why)
	first := b.on(0, &stopped)
	b.twice(first, y)
	must.NoError(b.t, first.Commit())
	follow(first, "stopped before it began", why)

	var shut metal.Chain
	words := b.words(1, 0)
	gated := b.on(0, &shut)
	look, into := metal.Range{Buf: words, Bytes: 4}, metal.Range{Buf: words, Offset: 4, Bytes: 4}
	must.NoError(b.t, gated.Encoder().Gate([]metal.Range{look}, into))
	b.twice(gated, y)
	must.NoError(b.t, gated.Commit())
	follow(gated, "behind a gate that is shut", metal.ErrSkipped)

	if b.drv.Info().Faults == metal.FaultsPlaced {
		wrong := b.begin()
		b.encode(wrong, "store_at", threads(1), threads(1), buf("target", y), word32("at", 1000))
		must.NoError(b.t, wrong.Commit())
		after := b.on(1, nil, wrong)
		b.twice(after, y)
		must.NoError(b.t, after.Commit())
		must.NoError(b.t, after.Wait(bg), "what it comes after has failed")
		must.Error(b.t, wrong.Wait(bg))
		must.Equal(b.t, slices.Repeat([]uint32{1}, 100), b.read(y))
	}
	b.meetStopped(follow)
	release(x, y, words)
}

// meetStopped stops what runs, and what waits for it, on devices that can.
func (b *bench) meetStopped(follow func(first *metal.CommandBuffer, what string, why error)) {
	if b.drv.Info().Stops != metal.StopsMidway {
		return
	}
	why, patience := errors.New("enough"), errors.New("no patience")
	flag, y := b.zeros(1), b.zeros(10)
	endless := b.begin()
	b.encode(endless, "spin", threads(1), threads(1), buf("flag", flag))
	must.NoError(b.t, endless.Commit())
	impatient, behind := b.on(1, nil, endless), b.on(1, nil)
	b.twice(impatient, y)
	b.twice(behind, y)
	must.NoError(b.t, impatient.Commit())
	must.NoError(b.t, behind.Commit())
	must.Equal(b.t, metal.StatusCommitted, impatient.Status())
	impatient.Cancel(patience)
	b.missed(impatient, patience, "stopped while it waits")
	must.NoError(b.t, behind.Wait(bg))
	must.Equal(b.t, slices.Repeat([]uint32{1}, 10), b.read(y))
	must.Equal(b.t, metal.StatusCommitted, endless.Status())
	time.AfterFunc(2*time.Millisecond, func() { endless.Cancel(why) }) // or sooner: then it is stopped before
	follow(endless, "stopped midway", why)
	must.ErrorIs(b.t, endless.Wait(bg), why)
	release(flag, y)
}

// caseMeetDevices: two queues and another device take turns at words, which go from one to the other. All of it is
// committed before the first has run.
func caseMeetDevices(b *bench) {
	const n, rounds = 2000, 30
	add := Kernel("add_one", func(_ context.Context, c metal.Command) error {
		for at := Bytes(c.Args[0].Buffer); len(at) > 0; at = at[4:] {
			binary.LittleEndian.PutUint32(at, binary.LittleEndian.Uint32(at)+1)
		}
		return nil
	}, "x:rw")
	far, err := metal.NewDevice(NewFake(add).Auto(), metal.DeviceOptions{})
	must.NoError(b.t, err)
	lib, err := far.Library(bg, Source("add_one", "add_one"))
	must.NoError(b.t, err)
	addOne, err := lib.Pipeline("add_one")
	must.NoError(b.t, err)
	move := func(to *metal.Buffer, from *metal.Buffer, behind, next *metal.CommandBuffer) {
		t, err := to.CopyBehind(0, from.All(), []*metal.CommandBuffer{behind})
		must.NoError(b.t, err)
		if t != nil {
			must.NoError(b.t, next.AfterTransfer(t))
		}
	}
	x, want := b.zeros(n), uint32(0)
	last := b.on(0, nil)
	b.twice(last, x)
	must.NoError(b.t, last.Commit())
	want = 2*want + 1
	for i := range rounds {
		there, err := far.Alloc(bg, 4*n)
		must.NoError(b.t, err)
		away := far.NewCommandBuffer(0, "")
		move(there, x, last, away)
		e := away.Encoder()
		e.SetPipeline(addOne)
		e.SetBuffer(0, there, 0)
		must.NoError(b.t, e.Dispatch(threads(1), threads(1)))
		must.NoError(b.t, away.Commit())
		x.Release()
		x = b.zeros(n)
		last = b.on(i%2, nil)
		move(x, there, away, last)
		b.twice(last, x)
		must.NoError(b.t, last.Commit())
		there.Release()
		want = 2*(want+1) + 1
	}
	must.NoError(b.t, last.Wait(bg))
	must.Equal(b.t, slices.Repeat([]uint32{want}, n), b.read(x))
	release(x)
	must.NoError(b.t, far.Close())
}

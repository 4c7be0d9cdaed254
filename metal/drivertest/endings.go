package drivertest

import (
	"errors"
	"slices"
	"sync/atomic"

	"github.com/mlxlua/mlxlua/metal"
)

// How command buffers end that do not run as they were meant to: docs/architecture.md has the table, section 8. What is
// behind a gate is in gates.go.

// caseStopped: where a chain is interrupted, a command buffer that the driver has ends as Info.Stops says, and one that
// it does not have does not begin.
func caseStopped(b *bench) {
	why := errors.New("enough")
	x, y := b.zeros(1000), b.zeros(1000)
	var chain metal.Chain
	has := b.chained(&chain)
	for range 3 {
		b.encode(has, "twice_plus_one", threads(1000), threads(10), buf("x", x))
	}
	must.NoError(b.t, has.Commit())
	chain.Interrupt(why)
	later := b.chained(&chain)
	b.encode(later, "twice_plus_one", threads(1000), threads(10), buf("x", y))
	must.NoError(b.t, later.Commit())
	err := later.Wait(bg)
	var e *metal.Interrupted
	must.True(b.t, errors.As(err, &e), "not Interrupted: %v", err)
	must.ErrorIs(b.t, e, why)
	must.Equal(b.t, []bool{false}, e.Ran)
	must.Equal(b.t, -1, e.Midway)
	must.Equal(b.t, make([]uint32, 1000), b.read(y))
	err = has.Wait(bg)
	switch {
	case b.drv.Info().Stops == metal.StopsNever:
		must.NoError(b.t, err, "it runs to its end")
		must.Equal(b.t, slices.Repeat([]uint32{7}, 1000), b.read(x))
	case errors.As(err, &e):
		must.ErrorIs(b.t, e, why)
		must.True(b.t, slices.Contains(e.Ran, false), "it ran to its end")
		must.True(b.t, e.Midway < 0 || b.drv.Info().Stops == metal.StopsMidway, "a kernel was stopped")
	default:
		must.NoError(b.t, err) // the interruption was late
	}
	release(x, y)
}

// caseFaultAlone: a command that fails is the only one: those beside and behind it run, and the error says which it is.
func caseFaultAlone(b *bench) {
	if b.drv.Info().Faults != metal.FaultsPlaced {
		return
	}
	x, target := b.zeros(10), b.zeros(4)
	twice := func(cb *metal.CommandBuffer) {
		b.encode(cb, "twice_plus_one", threads(10), threads(10), buf("x", x))
	}
	cb, after := b.begin(), b.begin()
	twice(cb)
	at := cb.Encoder().Len()
	b.encode(cb, "store_at", threads(1), threads(1), buf("target", target), word32("at", 100))
	twice(cb)
	twice(after)
	must.NoError(b.t, cb.Commit())
	must.NoError(b.t, after.Commit())
	var e *metal.CommandError
	must.True(b.t, errors.As(cb.Wait(bg), &e), "no command's error: %v", cb.Err())
	must.Equal(b.t, at, e.Index)
	must.NoError(b.t, after.Wait(bg))
	must.Equal(b.t, slices.Repeat([]uint32{7}, 10), b.read(x))
	must.Equal(b.t, make([]uint32, 4), b.read(target))
	release(x, target)
}

// caseLost: of a command buffer whose device is lost no result counts, nothing of it is to be repeated, and what it
// held is let go.
func caseLost(b *bench) {
	drv := b.drv.(*losing)
	x := b.zeros(10)
	var chain metal.Chain
	good := b.chained(&chain)
	b.encode(good, "twice_plus_one", threads(10), threads(10), buf("x", x))
	b.finish(good)
	drv.lost.Store(true)
	defer drv.lost.Store(false) // for the next mode
	cbs := []*metal.CommandBuffer{b.chained(&chain), b.chained(&chain), b.begin()}
	for _, cb := range cbs {
		b.encode(cb, "twice_plus_one", threads(10), threads(10), buf("x", x))
		must.NoError(b.t, cb.Commit())
	}
	x.Release()
	var stop *metal.Interrupted
	var one *metal.CommandError
	for _, cb := range cbs {
		err := cb.Wait(bg)
		must.ErrorIs(b.t, err, errLost)
		must.True(b.t, !errors.As(err, &stop) && !errors.As(err, &one), "%v says that something has run", err)
		must.Equal(b.t, metal.StatusFailed, cb.Status())
	}
	must.True(b.t, !x.Live(), "the buffer is held")
}

// errLost is why the command buffers of a lost device fail.
var errLost = errors.New("the device is lost")

// losing is a driver whose device is lost when the case says so.
type losing struct {
	metal.Driver
	lost atomic.Bool
}

func (l *losing) Submit(queue int, cb *metal.CommandBuffer, done func(metal.Result)) {
	if l.lost.Load() {
		go done(metal.Result{Err: errLost})
		return
	}
	l.Driver.Submit(queue, cb, done)
}

func lose(d metal.Driver) metal.Driver { return &losing{Driver: d} }

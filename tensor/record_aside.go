package tensor

import (
	"context"
	"fmt"
	"runtime"
	"runtime/debug"
	"time"

	"github.com/mlxlua/mlxlua/metal"
)

// asides are the functions of [HostCall.Aside] that are at work, abandoned ones too: as many as there is room for.
var asides = make(chan struct{}, 2*runtime.GOMAXPROCS(0))

// asideGrace is how long a stopped evaluation waits for such a function, which may be about to end by itself; and one
// that is to be stopped for that.
const asideGrace = 20 * time.Millisecond

// Aside calls f, which computes for long and does not look at the context. If the evaluation is stopped meanwhile it
// ends at once and abandons f, which may go on: the call stays valid for f until that returns, and nobody reads what it
// writes. Least is the least time that f takes on any machine: where the evaluation ends before that by its limits, f
// is not called. At most 2*GOMAXPROCS of such functions are at work; further ones wait.
func (h *HostCall) Aside(least time.Duration, f func() error) error {
	if !h.until.IsZero() && time.Until(h.until) < least {
		wait := time.NewTimer(time.Until(h.until) + asideGrace)
		defer wait.Stop()
		select {
		case <-h.ctx.Done():
			return context.Cause(h.ctx)
		case <-wait.C: // nobody has stopped it
		}
	}
	select {
	case asides <- struct{}{}:
	case <-h.ctx.Done():
		return context.Cause(h.ctx)
	}
	for _, b := range h.buffers {
		b.Retain()
	}
	ended := make(chan error, 1)
	go func(buffers []*metal.Buffer) {
		err := protected(f)
		for _, b := range buffers {
			b.Release()
		}
		<-asides
		ended <- err
	}(h.buffers)
	select {
	case err := <-ended:
		return err
	case <-h.ctx.Done():
	}
	grace := time.NewTimer(asideGrace)
	defer grace.Stop()
	select {
	case err := <-ended:
		return err
	case <-grace.C:
		return context.Cause(h.ctx)
	}
}

// protected calls f; a panic is an error.
func protected(f func() error) (err error) {
	defer debug.SetPanicOnFault(debug.SetPanicOnFault(true)) // an input may be a file's bytes
	defer func() {
		if r := recover(); r != nil {
			err = fmt.Errorf("BUG: the rule panicked: %v\n%s", r, debug.Stack())
		}
	}()
	return f()
}

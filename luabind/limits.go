package luabind

import (
	"cmp"
	"context"
	"fmt"
	"math"
	"slices"
	"sync"
	"time"

	"github.com/mlxlua/mlxlua/luabind/lua51"
	"github.com/mlxlua/mlxlua/metal"
	"github.com/mlxlua/mlxlua/tensor"
)

// Limits bound what scripts take; 0 is no limit.
type Limits struct {
	lua51.Limits
	Arrays  int64         // bytes of the device's memory that the scripts' arrays hold
	Time    time.Duration // that a call from the host may take; 0: as long as its context allows
	Kernels time.Duration // that the device may work for one call from the host
}

// ErrLimit is what errors of limits wrap.
var ErrLimit = lua51.ErrLimit

var (
	// errTime is the cause of a context that Limits.Time ended.
	errTime    = fmt.Errorf("[limits] the time of the call is over: %w", lua51.ErrLimit)
	errKernels = fmt.Errorf("[limits] the time of the call's kernels is over: %w", lua51.ErrLimit)
	errOutside = fmt.Errorf("[limits] a script's arrays are computed in its calls only: %w", lua51.ErrLimit)
)

// confined reports whether what scripts leave is computed under the limits of the call that leaves it, or not at all.
func (opt *Options) confined() bool {
	return opt.Sandbox || opt.Limits.Time > 0 || opt.Limits.Kernels > 0
}

// bounds are the limits of a state that are not Lua's own.
type bounds struct {
	s       *State
	kernels *tensor.KernelTime // nil: no limit of time
	charged int64              // nodes and libraries that Lua's memory was charged for
	inCall  bool               // of an op, which is charged for its nodes
	calls   int                // from the host, under way in each other

	mu  sync.Mutex
	end context.CancelCauseFunc // of the host's call under way
}

// holderLimits are the limits of a state's arrays.
func (b *bounds) holderLimits() (out tensor.HolderLimits) {
	l := b.s.opt.Limits
	if b.s.opt.confined() {
		out.Outside = errOutside
	}
	out.Going, out.Checked = b.going, b.s.opt.Sandbox
	if b.s.opt.confined() || l.Memory > 0 { // else the kernels are the program's own, which may open another state
		out.Libraries = &metal.LibraryUser{}
	}
	if l.Arrays > 0 || b.s.opt.Sandbox {
		out.Memory = metal.NewAccount(cmp.Or(l.Arrays, math.MaxInt64/2), lua51.ErrLimit)
	}
	if l.Kernels > 0 || l.Time > 0 {
		b.kernels = tensor.NewKernelTime(l.Kernels, errKernels, func() {
			b.mu.Lock()
			defer b.mu.Unlock()
			if b.end != nil {
				b.end(errKernels)
			}
		})
		out.Kernels = b.kernels
	}
	return out
}

// begin is ctx with the limits of time, for calls that are not within another, and what ends the call.
func (b *bounds) begin(ctx context.Context) (context.Context, context.CancelFunc) {
	if ctx == nil {
		ctx = context.Background()
	}
	b.calls++
	b.s.looks.holder.Enter()
	leave := func() {
		b.calls--
		b.s.looks.holder.Leave()
	}
	if b.calls > 1 {
		return ctx, leave
	}
	end := leave
	if d := b.s.opt.Limits.Time; d > 0 {
		var cancel context.CancelFunc
		ctx, cancel = context.WithTimeoutCause(ctx, d, errTime)
		end = func() {
			cancel()
			leave()
		}
	}
	if b.kernels == nil {
		return ctx, end
	}
	until, _ := ctx.Deadline()
	b.kernels.Reset(until)
	ctx, cancel := context.WithCancelCause(ctx)
	b.mu.Lock()
	b.end = cancel
	b.mu.Unlock()
	return ctx, func() {
		b.mu.Lock()
		b.end = nil
		b.mu.Unlock()
		cancel(nil)
		end()
	}
}

// chargeNodes charges Lua's memory for the nodes that were made since the last call, for compiled kernels, and for
// bytes that will be. What of them is garbage counts no more when live memory is measured: see weigh.
func (b *bounds) chargeNodes(more int64) error {
	made := b.s.looks.holder.Made()
	if u := b.s.looks.holder.Libraries(); u != nil {
		made += u.Made()
	}
	bytes := made - b.charged + more
	b.charged, b.inCall = made, true
	defer func() { b.inCall = false }()
	return b.s.Made(bytes)
}

// going is asked while Go code builds a graph, or goes over one: it is an error where the call has to end.
func (b *bounds) going(more int64) error {
	if err := b.chargeNodes(more); err != nil {
		return err
	}
	if ctx := b.s.Context(); ctx.Err() != nil {
		return context.Cause(ctx)
	}
	return nil
}

// settle ends what a script in a sandbox has handed over to mx.async_eval when the host's call ends: it waits, and
// where ctx is done or the call has failed it stops what still runs.
func settle(ctx context.Context, s *State, failed error) error {
	if !s.opt.Sandbox || !s.Idle() {
		return failed
	}
	if failed == nil {
		failed = s.Finish(ctx)
	}
	if failed != nil {
		s.work.stop(failed)
	}
	return failed
}

// spareStreams are the streams of closed states in sandboxes: streams last as long as the program.
var spareStreams struct {
	sync.Mutex
	list []*tensor.Stream
}

// takeStream gives a state in a sandbox a stream of its own on the default device, so that it does not wait for others'
// kernels. Without a device there is none.
func takeStream(s *State) {
	spareStreams.Lock()
	defer spareStreams.Unlock()
	d := tensor.DefaultDevice()
	spareStreams.list = slices.DeleteFunc(spareStreams.list, func(st *tensor.Stream) bool { return !st.Current() })
	i := slices.IndexFunc(spareStreams.list, func(st *tensor.Stream) bool { return st.Device() == d })
	if i >= 0 {
		s.own = spareStreams.list[i]
		spareStreams.list = slices.Delete(spareStreams.list, i, i+1)
	}
	if s.own == nil {
		s.own, _ = tensor.NewStream(d)
	}
	s.stream = s.own
}

// giveStream gives the state's own stream back.
func giveStream(s *State) {
	if s.own != nil {
		spareStreams.Lock()
		defer spareStreams.Unlock()
		spareStreams.list = append(spareStreams.list, s.own)
	}
}

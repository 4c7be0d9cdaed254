package launch

import (
	"errors"
	"fmt"
	"sync"
	"sync/atomic"
)

// Progress is how far a launch in execution is: which threadgroups workers have taken, and how it ended. All executors
// use it.
type Progress struct {
	total     int64
	next      atomic.Int64
	end       atomic.Int64 // threadgroups from this one on need not run
	interrupt *atomic.Bool
	waits     bool // threadgroups may wait for each other

	mu    sync.Mutex
	err   error
	errAt int64
}

// Begin readies a Progress for so many threadgroups; interrupt, if not nil, stops them soon after it becomes true.
func (p *Progress) Begin(total int64, interrupt *atomic.Bool) {
	p.total, p.interrupt, p.waits = total, interrupt, false
	p.next.Store(0)
	p.end.Store(total)
	p.err, p.errAt = nil, 0
}

// SetWaits says whether threadgroups may wait for each other, so that a fault in one must stop all.
func (p *Progress) SetWaits(waits bool) { p.waits = waits }

// Take gives a worker the next n threadgroups, fewer if fewer are left: those from first on. It returns 0 if none need
// to run any more.
func (p *Progress) Take(n int64) (first, taken int64) {
	first = p.next.Add(n) - n
	if first >= p.total || p.Over(first) {
		p.next.Store(p.total) // keeps the counter from running away
		return 0, 0
	}
	return first, min(n, p.total-first)
}

// Left is how many threadgroups no worker has taken yet.
func (p *Progress) Left() int64 { return max(0, p.total-p.next.Load()) }

// Err returns how the launch ended; it is meaningful when no worker works any more. Of several faults it is the one in
// the first threadgroup, however many worked, unless threadgroups may wait for each other: then all stop at once.
func (p *Progress) Err() error {
	p.mu.Lock()
	defer p.mu.Unlock()
	return p.err
}

// Fail records an error of a threadgroup. Those before it still run, as their errors come first.
func (p *Progress) Fail(err error, threadgroup int64) {
	p.mu.Lock()
	defer p.mu.Unlock()
	if p.err == nil || threadgroup < p.errAt {
		p.err, p.errAt = err, threadgroup
	}
	if p.waits || errors.Is(err, ErrInterrupted) {
		threadgroup = 0
	}
	p.end.Store(min(threadgroup, p.end.Load()))
}

// Panicked records a panic of a launch of a kernel. Memory that is bound but cannot be read is that of a file that was
// changed while a mapping of it was in use.
func (p *Progress) Panicked(kernel string, v any) {
	err := fmt.Errorf("[%s] BUG: %v", kernel, v)
	if a, ok := v.(interface{ Addr() uintptr }); ok {
		err = fmt.Errorf("[%s] kernel fault at address %#x", kernel, a.Addr())
	}
	p.Fail(err, 0)
}

// Over reports whether a threadgroup need not run, or not go on: the launch is interrupted, or one before it had a
// fault. If it is interrupted Over records that.
func (p *Progress) Over(threadgroup int64) bool {
	if threadgroup >= p.end.Load() {
		return true
	}
	if p.interrupt != nil && p.interrupt.Load() {
		p.Fail(ErrInterrupted, 1<<62)
		return true
	}
	return false
}

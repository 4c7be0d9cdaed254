package metal

import (
	"context"
	"fmt"
	"sync/atomic"
)

// Account bounds what one user of a device holds of its memory: the buffers whose Origin names it. It may be used with
// several devices, and by any goroutine.
type Account struct {
	limit   int64
	refusal error
	used    atomic.Int64
	peak    atomic.Int64
}

// NewAccount is an account of so many bytes. An allocation that does not fit, even after a collection, is an error that
// wraps refusal and is ErrNoMemory.
func NewAccount(limit int64, refusal error) *Account { return &Account{limit: limit, refusal: refusal} }

// Limit is the most bytes that the account may hold.
func (a *Account) Limit() int64 { return a.limit }

// Used is how many bytes are held, rounding included.
func (a *Account) Used() int64 { return a.used.Load() }

// Peak is the most bytes that were held since the start or the last ResetPeak.
func (a *Account) Peak() int64 { return max(a.peak.Load(), a.Used()) }

// ResetPeak has Peak begin anew, from what is held.
func (a *Account) ResetPeak() { a.peak.Store(a.Used()) }

// Near reports whether n bytes more would leave less than a quarter of the account free.
func (a *Account) Near(n int64) bool { return a != nil && a.Used()+n > a.limit/4*3 }

// Reserve charges n bytes that are no buffer's, such as a copy for the host, until the caller calls release. It fails
// where the account has no room. A nil account has room for everything.
func (a *Account) Reserve(n int64) (release func(), err error) {
	if !a.fits(n) {
		return nil, a.refuse(n)
	}
	a.charge(n)
	return func() { a.charge(-n) }, nil
}

// Reserve is Account.Reserve of what is for this device's buffers: where there is no room it first collects garbage,
// and has given up what can be made again.
func (d *Device) Reserve(ctx context.Context, a *Account, n int64) (release func(), err error) {
	if release, err = a.Reserve(n); err == nil {
		return release, nil
	}
	if a.Check(n) != nil {
		return nil, err
	}
	d.Collect(ctx)
	for {
		if release, err = a.Reserve(n); err == nil || !d.pool.giveUp(n, a) {
			return release, err
		}
	}
}

// fits reports whether a buffer of that size may be charged.
func (a *Account) fits(size int64) bool { return a == nil || a.Used()+size <= a.limit }

// Check is the error of what takes n bytes if that is more than the account may hold at all.
func (a *Account) Check(n int64) error {
	if a == nil || n <= a.limit {
		return nil
	}
	return a.refuse(n)
}

// charge adds bytes, which may be negative.
func (a *Account) charge(bytes int64) {
	if a == nil {
		return
	}
	now := a.used.Add(bytes)
	for bytes > 0 {
		peak := a.peak.Load()
		if now <= peak || a.peak.CompareAndSwap(peak, now) {
			return
		}
	}
}

// refuse is the error of an allocation that does not fit.
func (a *Account) refuse(n int64) error {
	return &noMemory{fmt.Errorf("[limits] the script's arrays take %s, it asks for %s, the limit is %s: %w",
		formatBytes(a.Used()), formatBytes(n), formatBytes(a.limit), a.refusal)}
}

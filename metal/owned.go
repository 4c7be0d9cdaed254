package metal

import (
	"fmt"
	"runtime"
	"sync/atomic"
)

// Owned ties one reference of a buffer to the life of a Go object.
type Owned struct {
	buf atomic.Pointer[Buffer]
}

// OwnedBy hands one reference of b, which the caller holds, over to owner: it is released when owner becomes
// unreachable, or before that by the handle. This and OwnedGroup are the only ways in which a garbage-collected object
// may own a buffer: the pool paces collections by the bytes that are owned so, and waits for their clean-ups. Owner
// must not be reachable from the buffer.
func OwnedBy[T any](owner *T, b *Buffer) *Owned {
	return ownedBy(owner, b, false)
}

// TrackedBy is OwnedBy for an owner that somebody looks after, who releases the handle when it is not needed any more.
// Its bytes ask for no collection unless they are counted by AddUntracked.
func TrackedBy[T any](owner *T, b *Buffer) *Owned {
	return ownedBy(owner, b, true)
}

func ownedBy[T any](owner *T, b *Buffer, held bool) *Owned {
	if owner == nil || b == nil {
		panic("BUG: OwnedBy without an owner or a buffer")
	}
	if !b.Live() {
		panic(fmt.Sprintf("BUG: use after release: OwnedBy of %s", b))
	}
	o := b.pool.own(b, nil, held)
	runtime.AddCleanup(owner, releaseOwned, o) // a closure here would be made for each call
	return o
}

func releaseOwned(o *Owned) { o.Release() }

// Untrack has the buffer of TrackedBy count as one of OwnedBy.
func (o *Owned) Untrack() {
	if b := o.buf.Load(); b != nil {
		b.pool.mu.Lock()
		b.pool.untrack(b)
		b.pool.mu.Unlock()
	}
}

// Release lets go of the reference before the owner dies. Only the first call of Release or Stop does anything; it
// returns true.
func (o *Owned) Release() bool {
	b := o.Stop()
	if b == nil {
		return false
	}
	b.Release()
	return true
}

// Stop takes the reference back: the caller holds it again, and the owner's death changes nothing. It returns nil if
// Release or Stop was called before.
func (o *Owned) Stop() *Buffer {
	b := o.buf.Swap(nil)
	if b != nil {
		b.pool.disown(b)
	}
	return b
}

// OwnedGroup ties references of a few small buffers to the life of one Go object: a clean-up costs the runtime more
// than a small buffer is worth.
type OwnedGroup struct {
	pool *pool
	list [MaxOwnedGroup]*Owned // guarded by pool.mu, as n
	n    int
}

// MaxOwnedGroup is how many buffers an OwnedGroup takes.
const MaxOwnedGroup = 8

// NewOwnedGroup is an OwnedGroup whose buffers are released when owner becomes unreachable, each sooner by its handle.
// Owner must not be reachable from the OwnedGroup.
func NewOwnedGroup[T any](owner *T, d *Device) *OwnedGroup {
	os := &OwnedGroup{pool: d.pool}
	runtime.AddCleanup(owner, releaseGroup, os)
	return os
}

// Full reports whether no further buffer fits.
func (os *OwnedGroup) Full() bool { return os.n == MaxOwnedGroup }

// Own hands one reference of b, a buffer of the same device, over to the owner. It is for one goroutine at a time,
// while the owner is reachable and Full is false.
func (os *OwnedGroup) Own(b *Buffer) *Owned {
	if b == nil || b.pool != os.pool || os.Full() {
		panic("BUG: OwnedGroup.Own without a buffer of the device, or more often than there is room")
	}
	if !b.Live() {
		panic(fmt.Sprintf("BUG: use after release: Own of %s", b))
	}
	return os.pool.own(b, os, false)
}

func releaseGroup(os *OwnedGroup) {
	os.pool.mu.Lock() // what Own did last may be news to this goroutine
	list := os.list[:os.n]
	os.pool.mu.Unlock()
	for _, o := range list {
		o.Release()
	}
}

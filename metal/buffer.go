package metal

import (
	"fmt"
	"sync/atomic"
)

// Buffer is a piece of device memory from a device's pool, visible to the host. It is counted by hand: it begins with
// one reference, and goes back to the pool when the last one is released. Each allocation is a new Buffer with a new
// ID, so a stale pointer never stands for somebody else's memory.
type Buffer struct {
	pool   *pool
	id     uint64
	data   []byte
	blk    *block
	offset int64 // of data in blk
	refs   atomic.Int32
	origin Origin
	shadow atomic.Pointer[Shadow]
	handle Owned // the first that holds it; most have no other

	// Guarded by pool.mu, as origin.
	handled      bool    // handle was given out
	held         bool    // what owns it is looked after: HeldBy
	owners       int32   // Owned handles that hold it
	older, newer *Buffer // the list of live buffers by age
}

// buffersAtOnce is how many Buffers are made together: one object for the garbage collector, which may outlive all of
// them but one. So many fill a size of the runtime's allocator best.
const buffersAtOnce = 7

// newBuffer is a Buffer that nobody had before. Called with mu held.
func (p *pool) newBuffer() *Buffer {
	if len(p.fresh) == 0 {
		p.fresh = make([]Buffer, buffersAtOnce)
	}
	b := &p.fresh[0]
	p.fresh = p.fresh[1:]
	return b
}

// cost is the size of its slot or block, nothing if its bytes are those of a file. Called with pool.mu held, while it
// is live.
func (b *Buffer) cost() int64 {
	if b.blk.mapping != nil {
		return 0
	}
	if b.blk.slot != 0 {
		return b.blk.slot
	}
	return b.blk.size
}

// Len is the length in bytes that was asked for.
func (b *Buffer) Len() int64 { return int64(len(b.data)) }

// Untouched reports whether the driver gave the buffer's memory for it, so that the system has still to find the pages
// when they are written for the first time.
func (b *Buffer) Untouched() bool { return b.blk.slot == 0 && b.blk.age == 0 && b.blk.mapping == nil }

// Bytes is the host's view of the buffer. It is valid until the last Release, and nil after the device was closed.
// Reading what a command buffer writes is right only after that has completed.
func (b *Buffer) Bytes() []byte {
	if b.pool.gone.Load() {
		return nil
	}
	return b.data
}

// Memory is the driver's allocation that the buffer lies in, and its offset there in bytes. For drivers.
func (b *Buffer) Memory() (mem Memory, offset int64) { return b.blk.mem, b.offset }

// Retain adds a reference. Retaining a buffer whose references are all gone is a bug of the caller, and panics.
func (b *Buffer) Retain() {
	if !b.tryRetain() {
		panic(fmt.Sprintf("BUG: use after release: Retain of %s", b))
	}
}

// tryRetain adds a reference unless there are none left.
func (b *Buffer) tryRetain() bool {
	for {
		n := b.refs.Load()
		if n <= 0 {
			return false
		}
		if b.refs.CompareAndSwap(n, n+1) {
			return true
		}
	}
}

// Release gives a reference back; with the last one the buffer's memory returns to the pool. Releasing more often than
// was retained is a bug of the caller, and panics.
func (b *Buffer) Release() {
	switch n := b.refs.Add(-1); {
	case n == 0:
		b.pool.free(b)
	case n < 0:
		panic(fmt.Sprintf("BUG: %s released below zero", b))
	}
}

// Live reports whether the buffer still has references.
func (b *Buffer) Live() bool { return b.refs.Load() > 0 }

// String is how messages name the buffer: the op and line that it was made for, number, size.
func (b *Buffer) String() string {
	name := "buffer"
	if o := b.Origin(); o.Op != "" {
		name += " of " + o.String()
	}
	return fmt.Sprintf("%s (#%d, %d bytes)", name, b.id, len(b.data))
}

// All is the whole buffer as a range.
func (b *Buffer) All() Range { return Range{Buf: b, Bytes: b.Len()} }

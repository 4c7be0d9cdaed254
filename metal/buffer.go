package metal

import (
	"context"
	"fmt"
	"sync/atomic"
)

// Buffer is a piece of device memory from a device's pool. It is counted by hand: it begins with one reference, and
// goes back to the pool when the last one is released. Each allocation is a new Buffer with a new ID, so a stale
// pointer never stands for somebody else's memory.
type Buffer struct {
	pool   *pool
	id     uint64
	length int64
	host   []byte // its bytes where the host can address them, else nil
	blk    *block
	offset int64 // in blk
	refs   atomic.Int32
	origin Origin
	shadow atomic.Pointer[Shadow]
	handle Owned       // the first that holds it; most have no other
	stale  atomic.Bool // some of its bytes may be of another owner than its own: see Settle

	// Guarded by pool.mu, as origin.
	owner        Owner   // who may see its bytes
	mixed        bool    // it has had several owners
	handled      bool    // handle was given out
	held         bool    // what owns it is looked after: TrackedBy
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

// charge is what the buffer costs its account: what its length asks for. That its memory may be a little more depends
// on what others have left.
func (b *Buffer) charge() int64 {
	if b.blk.mapping != nil {
		return 0
	}
	return sizeClass(b.length)
}

// Len is the length in bytes that was asked for.
func (b *Buffer) Len() int64 { return b.length }

// Untouched reports whether the driver gave the buffer's memory for it, so that the system has still to find the pages
// when they are written for the first time.
func (b *Buffer) Untouched() bool { return b.blk.slot == 0 && b.blk.age == 0 && b.blk.mapping == nil }

// Host is the host's own view of the buffer: nil where the host cannot address it, and after the device was closed. It
// is valid until the last Release. Reading what a command buffer writes is right only after that has completed; so is
// ReadBytes.
func (b *Buffer) Host() []byte {
	if b.pool.gone.Load() {
		return nil
	}
	return b.host
}

// ReadBytes fills dst with the buffer's bytes from offset on. It is an error if they are not inside the buffer, if the
// device is closed, or if they are those of a file that cannot be read any more.
func (b *Buffer) ReadBytes(dst []byte, offset int64) error {
	if err := b.transferable("read", offset, int64(len(dst))); err != nil || len(dst) == 0 {
		return err
	}
	if b.host == nil {
		return b.pool.dev.driver.Read(dst, b.blk.mem, b.offset+offset)
	}
	return b.Guard(func() error {
		copy(dst, b.host[offset:])
		return nil
	})
}

// WriteBytes copies src to the buffer from offset on. It fails as ReadBytes does, and where the bytes are a file's.
func (b *Buffer) WriteBytes(offset int64, src []byte) error {
	if err := b.transferable("write", offset, int64(len(src))); err != nil || len(src) == 0 {
		return err
	}
	switch {
	case b.blk.mapping != nil:
		return fmt.Errorf("[write] %s holds the bytes of a file", b)
	case b.host == nil:
		return b.pool.dev.driver.Write(b.blk.mem, b.offset+offset, src)
	}
	copy(b.host[offset:], src)
	return nil
}

// transferable is the error of moving n bytes from offset on.
func (b *Buffer) transferable(op string, offset, n int64) error {
	switch r := (Range{Buf: b, Offset: offset, Bytes: n}); {
	case b.pool.gone.Load():
		return errClosed(op)
	case !r.inside():
		return fmt.Errorf("[%s] bytes %d to %d are not inside %s", op, offset, offset+n, b)
	}
	return nil
}

// stagingBytes is how much at a time goes from one device to another by way of the host.
const stagingBytes = 1 << 20

// CopyFrom copies the bytes of a range, which may be another device's, to the buffer from offset on: without a detour
// by the host where the two devices can. What it needs for a detour is charged to the buffer's account meanwhile, and
// it fails where that has no room.
func (b *Buffer) CopyFrom(offset int64, src Range) error {
	if err := src.Buf.transferable("copy", src.Offset, src.Bytes); err != nil {
		return err
	}
	if err := b.transferable("copy", offset, src.Bytes); err != nil || src.Bytes == 0 {
		return err
	}
	from := src.Buf
	switch {
	case from.host != nil:
		return from.Guard(func() error { return b.WriteBytes(offset, from.host[src.Offset:][:src.Bytes]) })
	case b.host != nil:
		return from.ReadBytes(b.host[offset:][:src.Bytes], src.Offset)
	}
	if peer, ok := Capability[PeerCopier](b.pool.dev); ok {
		done, err := peer.CopyPeer(b.blk.mem, b.offset+offset, from.pool.dev.driver, from.blk.mem,
			from.offset+src.Offset, src.Bytes)
		if done || err != nil {
			return err
		}
	}
	n := min(src.Bytes, stagingBytes)
	release, err := b.pool.dev.Reserve(context.Background(), b.Origin().Account, n)
	if err != nil {
		return err
	}
	defer release()
	staging := make([]byte, n)
	for at := int64(0); at < src.Bytes; at += stagingBytes {
		piece := staging[:min(src.Bytes-at, stagingBytes)]
		if err := from.ReadBytes(piece, src.Offset+at); err != nil {
			return err
		}
		if err := b.WriteBytes(offset+at, piece); err != nil {
			return err
		}
	}
	return nil
}

// Device is whose memory the buffer lies in.
func (b *Buffer) Device() *Device { return b.pool.dev }

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
	return fmt.Sprintf("%s (#%d, %d bytes)", name, b.id, b.length)
}

// All is the whole buffer as a range.
func (b *Buffer) All() Range { return Range{Buf: b, Bytes: b.Len()} }

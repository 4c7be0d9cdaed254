package metal

import "sync/atomic"

// Owner stands for who is to see what memory holds, and nobody else: one user of a device among several. Owners are
// compared and otherwise opaque. The zero Owner is that of whoever does not say (Go programs).
//
// Memory knows the owner that had it last. What goes to another one is zeroed on its way there, or else its buffer is
// stale until somebody says that all of its bytes were written (Buffer.Settle): see AllocToFill.
type Owner uint64

// owners numbers the owners.
var owners atomic.Uint64

// NewOwner is an owner that nobody else has.
func NewOwner() Owner { return Owner(owners.Add(1)) }

// What memory can have in place of an owner.
const (
	noOwner   Owner = 1<<63 + iota // it is as the driver gave it: zero
	manyOwned                      // bytes of several owners, or of nobody knows whom
)

// with is the owner of memory of which a part is o's and another is p's.
func (o Owner) with(p Owner) Owner {
	switch {
	case o == p || p == noOwner:
		return o
	case o == noOwner:
		return p
	}
	return manyOwned
}

// foreign reports whether memory that had the owner o shows p what is none of its business.
func (o Owner) foreign(p Owner) bool { return o != p && o != noOwner }

// carve notes that a block becomes a slab, of which an owner gets the first slot. Called with mu held.
func (blk *block) carve(o Owner) {
	if blk.pristine = blk.owner == noOwner; blk.pristine {
		blk.owner = o
	}
}

// ownerAt is the last owner of a slot that came back. Called with mu held.
func (blk *block) ownerAt(slot int) Owner {
	if blk.owners != nil {
		return blk.owners[slot]
	}
	return blk.owner
}

// leave notes whom a slot belonged to, or the whole block where that is no slab. Most slabs serve one owner, and need
// no list. Called with mu held.
func (blk *block) leave(slot int, o Owner) {
	switch {
	case blk.slot == 0:
		blk.owner = o
	case blk.owners != nil:
		blk.owners[slot] = o
	case o != blk.owner:
		blk.owners = make([]Owner, blk.slots)
		for i := range blk.owners {
			blk.owners[i] = blk.owner
		}
		blk.owners[slot] = o
	}
}

// join makes one block of a slab without slots in use. Called with mu held.
func (blk *block) join() {
	for _, o := range blk.owners {
		blk.owner = blk.owner.with(o) // which is still that of what lies behind the last slot
	}
	blk.owners = nil
}

// looks is how many free blocks of one size are looked at for one that needs no zeroing.
const looks = 16

// fitter reports whether a block is the better choice than another one of about its size: see find.
func (blk *block) fitter(than *block, o Owner, fill bool) bool {
	if ours, theirs := !blk.owner.foreign(o), !than.owner.foreign(o); !fill && ours != theirs {
		return ours
	}
	return blk.age > than.age
}

// piece is bytes of a driver's allocation.
type piece struct {
	mem       Memory
	offset, n int64
}

// cleaning says what of a new buffer's memory, which had that owner last, has to be zeroed before the buffer's own gets
// it: nothing, all, or where the owner is to fill the buffer what lies behind that. Called with mu held.
func (p *pool) cleaning(b *Buffer, was Owner, fill bool) piece {
	if !was.foreign(b.owner) || p.dev.validate.Load() { // which poisons it
		return piece{}
	}
	from, n := b.offset, b.cost()
	if fill {
		b.stale.Store(true)
		from, n = from+b.Len(), n-b.Len()
	}
	return piece{b.blk.mem, from, n}
}

// clean zeroes memory, without the pool's lock: that may take long. Called while p.calls counts it, so that Close does
// not get in between.
func (p *pool) clean(m piece) error {
	defer p.calls.Done()
	return p.set(m, 0)
}

// slotIndex is which slot of its slab the buffer is.
func (b *Buffer) slotIndex() int {
	if b.blk.slot == 0 {
		return 0
	}
	return int(b.offset / b.blk.slot)
}

// lastOwner is whom the buffer's memory belongs to from its end on. Called with pool.mu held.
func (b *Buffer) lastOwner() Owner {
	if b.mixed || b.stale.Load() {
		return manyOwned
	}
	return b.owner
}

// Settle says that all bytes of the buffer were written for its owner.
func (b *Buffer) Settle() {
	if b.stale.Load() {
		b.stale.Store(false)
	}
}

// Taint says that the buffer's bytes may be another owner's: what was to write them has failed, or has read such.
func (b *Buffer) Taint() { b.stale.Store(true) }

// Serves reports whether n bytes in the buffer may be the owner's without being zeroed; fill is as in AllocToFill.
func (b *Buffer) Serves(o Owner, n int64, fill bool) bool {
	b.pool.mu.Lock()
	defer b.pool.mu.Unlock()
	return b.owner == o && !b.mixed && (!b.stale.Load() || fill && n == b.Len())
}

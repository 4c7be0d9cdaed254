package metal

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"slices"
	"sync"
	"sync/atomic"
	"time"
)

// Stats are the figures of a device's memory, in bytes where nothing else is said.
type Stats struct {
	Active     int64 // held by live buffers, rounding included
	Peak       int64 // the most that Active was since the last ResetPeak
	Cache      int64 // got from the driver and kept for reuse
	Limit      int64 // of Active + Cache
	CacheLimit int64
	Owned      int64 // the part of Active that garbage-collected objects hold (OwnedBy, TrackedBy)
	Kept       int64 // that the driver\'s forms of steps take, which count for Limit too

	Buffers     int           // live buffers
	Pending     int           // committed command buffers that have not completed
	Collections int64         // garbage collections that the pool asked for
	CollectTime time.Duration // spent in them, all told
	LastCollect time.Duration // spent in the last
}

// block is one driver allocation: a buffer, a slab of equal slots, or free.
type block struct {
	mem  Memory
	size int64

	slot    int64   // size of its slots while it is a slab, else 0
	slots   int     // how many it has
	carved  int     // slots handed out at least once
	holes   []int32 // slots that came back
	used    int     // slots in use
	partial int     // its place in the list of slabs with room, or -1

	owner    Owner   // who had it last: one, noOwner or manyOwned
	owners   []Owner // by slot, where those differ
	pristine bool    // what was never a slot is still as the driver gave it

	mapping *Mapping // of a file, whose pages the block is: then used counts its buffers, and it is in no list
	align   int64    // of buffers in the mapping

	age          int64  // numbers the times that a block was put into the cache; 0: never
	older, newer *block // the list of free blocks by age
}

// pool hands out buffers and takes them back.
type pool struct {
	dev    *Device
	closed atomic.Bool // nothing new any more
	gone   atomic.Bool // the memory is no longer ours

	mu       sync.Mutex
	ids      uint64
	limit    int64
	cacheMax int64
	total    int64 // bytes held from the driver, or about to be
	active   int64
	peak     int64
	recent   [2]int64 // the most that active was in this window of allocations, and in the one before
	window   int      // allocations so far in this window
	live     int
	slabs    [slotKinds][]*block // slabs with room, by kind
	idle     []*block            // free blocks by size
	listed   int64               // times that a block was put into the cache
	oldest   *block
	newest   *block
	first    *Buffer  // the oldest live buffer
	last     *Buffer  // and the newest
	fresh    []Buffer // for the next ones
	mappings map[*Mapping]*block
	change   chan struct{} // closed and renewed when memory or a command buffer comes back

	pending   int            // committed command buffers
	completed int64          // command buffers that have completed
	events    int64          // changes so far
	calls     sync.WaitGroup // calls of the driver under way; begun with mu held while the pool is open
	collector
}

func newPool(d *Device, opt DeviceOptions) *pool {
	p := &pool{dev: d, change: make(chan struct{})}
	p.collector.init(opt)
	p.limit = opt.MemoryLimit
	if p.limit == 0 {
		p.limit = d.info.Memory / 5 * 4
	}
	p.limit = min(p.limit, maxBytes)
	switch {
	case opt.CacheLimit == 0:
		p.cacheMax = p.limit / 4
	case opt.CacheLimit > 0:
		p.cacheMax = opt.CacheLimit
	}
	return p
}

// maxBytes keeps sums of sizes from overflowing.
const maxBytes = int64(1) << 61

// Alloc returns a buffer of nbytes with one reference. Its contents are what its owner has left there some time, or
// zeros (0xFF under validation). If the memory limit is in the way, cached memory is returned to the driver, garbage is
// collected, and committed command buffers are waited for, as long as ctx allows; then it is an error. A size that can
// never fit is an error at once.
func (d *Device) Alloc(ctx context.Context, nbytes int64) (*Buffer, error) {
	return d.pool.alloc(ctx, nbytes, nil, false)
}

// AllocFor is Alloc of a buffer with an origin, and so for an owner: SetOrigin takes time of its own.
func (d *Device) AllocFor(ctx context.Context, nbytes int64, o *Origin) (*Buffer, error) {
	return d.pool.alloc(ctx, nbytes, o, false)
}

// AllocToFill is AllocFor of a buffer all of whose bytes are written before its owner reads one of them: it may hold
// another owner's bytes. Who has seen that they were written calls Settle, else the memory is zeroed when it is used
// again, as it is where it was tainted.
func (d *Device) AllocToFill(ctx context.Context, nbytes int64, o *Origin) (*Buffer, error) {
	return d.pool.alloc(ctx, nbytes, o, true)
}

// AllocCopy returns a new buffer with the contents of b; the origin may be nil.
func (d *Device) AllocCopy(ctx context.Context, b []byte, o *Origin) (*Buffer, error) {
	buf, err := d.pool.alloc(ctx, int64(len(b)), o, true)
	if err != nil {
		return nil, err
	}
	if err := buf.WriteBytes(0, b); err != nil {
		buf.Release()
		return nil, err
	}
	buf.Settle()
	return buf, nil
}

// Memory returns the figures of the device's memory.
func (d *Device) Memory() Stats {
	p := d.pool
	p.mu.Lock()
	defer p.mu.Unlock()
	return Stats{
		Active: p.active, Peak: p.peak, Cache: p.total - p.active, Limit: p.limit, CacheLimit: p.cacheMax,
		Owned: p.owned + p.held, Kept: p.dev.kept.bytes.Load(), Buffers: p.live, Pending: p.pending,
		Collections: p.runs, CollectTime: p.spent, LastCollect: p.lastTook,
	}
}

// SetMemoryLimit sets the most bytes that the device may hold and returns the limit before. What is held already stays;
// cached memory above the limit is returned to the driver. A negative limit counts as 0.
func (d *Device) SetMemoryLimit(n int64) int64 {
	p := d.pool
	p.mu.Lock()
	old := p.limit
	p.limit = max(min(n, maxBytes), 0)
	out := p.trim(p.limit)
	p.wake()
	p.mu.Unlock()
	p.give(out)
	return old
}

// SetCacheLimit sets the most bytes kept for reuse and returns the limit before. A negative limit counts as 0.
func (d *Device) SetCacheLimit(n int64) int64 {
	p := d.pool
	p.mu.Lock()
	old := p.cacheMax
	p.cacheMax = max(n, 0)
	out := p.trimCache()
	p.mu.Unlock()
	p.give(out)
	return old
}

// ClearCache returns all memory that no buffer uses to the driver; slabs that still hold small buffers stay.
func (d *Device) ClearCache() {
	p := d.pool
	p.mu.Lock()
	out := p.trim(0)
	p.mu.Unlock()
	p.give(out)
}

// ResetPeak makes Memory's Peak begin anew, from what is active.
func (d *Device) ResetPeak() {
	p := d.pool
	p.mu.Lock()
	p.peak = p.active
	p.mu.Unlock()
}

// tooLarge is the error of an allocation that does not fit. Called with mu held. Who has an account is not told what
// others hold.
func (p *pool) tooLarge(n int64, a *Account) error {
	if a != nil {
		return &noMemory{fmt.Errorf("[alloc] %s is more than the device has left for the script's arrays, which take %s",
			formatBytes(n), formatBytes(a.Used()))}
	}
	how := "more than"
	if n <= p.limit {
		how = "more than what is left of"
	}
	return &noMemory{fmt.Errorf("[alloc] %s is %s the memory limit of %s (active %s, cache %s)",
		formatBytes(n), how, formatBytes(p.limit), formatBytes(p.active), formatBytes(p.total-p.active))}
}

// ErrNoMemory is what errors of allocations are that may succeed when memory has come back or the limit is higher.
var ErrNoMemory = errors.New("no memory")

// noMemory is an error of its own that is ErrNoMemory too.
type noMemory struct{ error }

// Is says that the error is ErrNoMemory.
func (e *noMemory) Is(target error) bool { return target == ErrNoMemory }

// Unwrap is what lies behind the error.
func (e *noMemory) Unwrap() error { return errors.Unwrap(e.error) }

func (p *pool) alloc(ctx context.Context, n int64, o *Origin, fill bool) (*Buffer, error) {
	if n < 0 {
		return nil, fmt.Errorf("[alloc] the size is negative: %d bytes", n)
	}
	if m := p.dev.info.Limits.MaxBufferBytes; m > 0 && n > m {
		return nil, fmt.Errorf("[alloc] %s is more than the largest buffer of device %s, %s", formatBytes(n),
			p.dev.info.Name, formatBytes(m))
	}
	if ctx == nil {
		ctx = context.Background()
	}
	p.mu.Lock()
	if n > p.limit || sizeClass(n) > p.limit {
		defer p.mu.Unlock()
		return nil, p.tooLarge(n, o.account())
	}
	size := sizeClass(n)
	wait := reclaim{until: p.completed + int64(p.pending)}
	owner := Owner(0)
	if o != nil {
		wait.account, owner = o.Account, o.Owner
	}
	for {
		if p.closed.Load() {
			p.mu.Unlock()
			return nil, errClosed("alloc")
		}
		wait.events = p.events
		if !wait.account.fits(size) {
			if err := p.reclaim(ctx, &wait, n, wait.account.refuse(n)); err != nil {
				p.mu.Unlock()
				return nil, err
			}
			continue
		}
		blk, need := p.find(size, owner, fill)
		var failed error
		if blk == nil {
			blk, failed = p.grow(need) // unlocks and locks again
			if least := roundUp(size, granule); blk == nil && failed == nil && least < need {
				blk, failed = p.grow(least) // the limit is near: a slab of fewer slots
			}
		}
		if blk != nil {
			b, was := p.place(blk, n, size, owner)
			dirty := p.cleaning(b, was, fill)
			if o != nil {
				b.assign(o)
			}
			p.poison(b)
			run := p.due()
			if dirty.n > 0 {
				p.calls.Add(1)
			}
			p.mu.Unlock()
			if run {
				go p.collectPaced()
			}
			if dirty.n > 0 {
				if err := p.clean(dirty); err != nil {
					b.Release()
					return nil, err
				}
			}
			return b, nil
		}
		if err := p.reclaim(ctx, &wait, n, failed); err != nil {
			p.mu.Unlock()
			return nil, err
		}
	}
}

// find takes a block with room for a buffer of a size class out of the lists, or says how large a new one must be.
// Called with mu held.
func (p *pool) find(size int64, o Owner, fill bool) (*block, int64) {
	need := size
	if size <= maxSlot {
		if s := p.slabs[slotKind(size)]; len(s) > 0 {
			return s[len(s)-1], 0
		}
		need = slabSize(size)
	}
	// The youngest that fits: its pages are there, and perhaps in the processor's caches. Before that one that needs no
	// zeroing.
	best := -1
	i, _ := slices.BinarySearchFunc(p.idle, need, bySize)
	for i < len(p.idle) && p.idle[i].size <= need+slack(need) {
		next, _ := slices.BinarySearchFunc(p.idle[i:], p.idle[i].size+1, bySize) // of one size the first is the youngest
		for j := i; j < i+min(next, looks); j++ {
			if best < 0 || p.idle[j].fitter(p.idle[best], o, fill) {
				best = j
			}
		}
		i += next
	}
	if best < 0 {
		return nil, need
	}
	b := p.idle[best]
	p.unlist(best)
	return b, 0
}

// grow gets a new block from the driver if the limit allows it, at the cost of the cache if need be. It returns nil
// when there is no room, and an error when the driver refuses. Called with mu held, which it lets go meanwhile.
func (p *pool) grow(need int64) (*block, error) {
	kept := p.dev.kept.bytes.Load()
	out := p.trim(p.limit - kept - need)
	if p.total+kept+need > p.limit {
		if len(out) > 0 {
			p.mu.Unlock()
			p.give(out)
			p.mu.Lock()
		}
		return nil, nil
	}
	if p.closed.Load() {
		p.mu.Unlock()
		p.give(out)
		p.mu.Lock()
		return nil, errClosed("alloc")
	}
	p.total += need
	p.calls.Add(1)
	defer p.calls.Done()
	p.mu.Unlock()
	p.give(out)
	mem, err := p.dev.driver.Alloc(need)
	if err == nil && (mem.Size < need || mem.Host != nil && int64(len(mem.Host)) < need) {
		p.dev.driver.Free(mem)
		err = fmt.Errorf("the driver gave %d bytes, %d of them visible to the host", mem.Size, len(mem.Host))
	}
	p.mu.Lock()
	if err != nil {
		p.total -= need
		if out = p.trim(0); len(out) > 0 { // what the driver lacks may be in our own cache
			p.wake()
		}
		p.mu.Unlock()
		p.give(out)
		p.mu.Lock()
		return nil, &noMemory{fmt.Errorf("[alloc] device %s refuses %s: %w", p.dev.info.Name, formatBytes(need), err)}
	}
	return &block{mem: mem, size: need, partial: -1, owner: noOwner}, nil
}

// place makes a buffer of n bytes for an owner in a block that find or grow returned, and tells who had that memory
// last. Called with mu held.
func (p *pool) place(blk *block, n, size int64, o Owner) (b *Buffer, was Owner) {
	p.ids++
	b = p.newBuffer()
	b.pool, b.id, b.blk, b.owner = p, p.ids, blk, o
	was = blk.owner
	if size <= maxSlot {
		kind := slotKind(size)
		if blk.slot == 0 {
			blk.slot, blk.slots, blk.carved, blk.used = size, int(blk.size/size), 0, 0
			blk.carve(o)
			p.room(kind, blk)
		}
		i := blk.carved
		if h := len(blk.holes); h > 0 {
			i = int(blk.holes[h-1])
			blk.holes = blk.holes[:h-1]
			was = blk.ownerAt(i)
		} else {
			blk.carved++
			if blk.pristine {
				was = noOwner
			}
		}
		if blk.used++; blk.used == blk.slots {
			p.noRoom(kind, blk)
		}
		b.offset = int64(i) * size
	}
	b.lies(n)
	b.refs.Store(1)
	p.active += b.cost()
	p.peak = max(p.peak, p.active)
	p.used()
	p.live++
	p.link(b)
	return b, was
}

// lies sets where the buffer's n bytes lie: blk and offset are known.
func (b *Buffer) lies(n int64) {
	host := b.blk.mem.Host
	if m := b.blk.mapping; m != nil {
		host = m.data // whatever the device sees of it
	}
	if b.length = n; host != nil {
		b.host = host[b.offset : b.offset+n : b.offset+n]
	}
}

// room lists a slab as one with free slots, and noRoom takes it off that list.
func (p *pool) room(kind int, blk *block) {
	blk.partial = len(p.slabs[kind])
	p.slabs[kind] = append(p.slabs[kind], blk)
}

func (p *pool) noRoom(kind int, blk *block) {
	s := p.slabs[kind]
	last := len(s) - 1
	s[blk.partial] = s[last]
	s[blk.partial].partial = blk.partial
	s[last] = nil
	p.slabs[kind] = s[:last]
	blk.partial = -1
}

// free takes a buffer back whose last reference is gone.
func (p *pool) free(b *Buffer) {
	if b.blk == nowhere {
		return
	}
	p.mu.Lock()
	blk := b.blk
	if blk.mapping != nil {
		p.freeMapped(b)
		p.mu.Unlock()
		return
	}
	p.active -= b.cost()
	b.origin.Account.charge(-b.charge())
	p.live--
	p.unlink(b)
	if p.closed.Load() {
		p.mu.Unlock()
		return
	}
	p.poison(b)
	blk.leave(b.slotIndex(), b.lastOwner())
	if blk.slot == 0 {
		p.list(blk)
	} else {
		kind := slotKind(blk.slot)
		if blk.used == blk.slots {
			p.room(kind, blk)
		}
		if blk.used--; blk.used == 0 {
			p.noRoom(kind, blk)
			blk.join()
			blk.slot, blk.holes = 0, blk.holes[:0]
			p.list(blk)
		} else {
			blk.holes = append(blk.holes, int32(b.offset/blk.slot))
		}
	}
	out := p.trimCache()
	p.wake()
	p.mu.Unlock()
	p.give(out)
}

// poison overwrites a buffer's memory with NaNs under validation. Called with mu held, so that Close does not get in
// between.
func (p *pool) poison(b *Buffer) {
	if !p.dev.validate.Load() {
		return
	}
	// A driver that fails here has lost its device: whoever uses the buffer is told.
	_ = p.set(piece{b.blk.mem, b.offset, b.cost()}, poisonByte)
}

// poisonByte is what freed and new memory is full of under validation: floats of it are NaNs.
const poisonByte = 0xFF

// pieceBytes is how much at a time is written to memory that the host cannot address.
const pieceBytes = 1 << 20

// set makes all bytes of a piece v.
func (p *pool) set(m piece, v byte) error {
	if m.n == 0 {
		return nil
	}
	if m.mem.Host != nil {
		setBytes(m.mem.Host[m.offset:][:m.n], v)
		return nil
	}
	if setter, ok := Capability[Setter](p.dev); ok {
		return setter.Set(m.mem, m.offset, m.n, v)
	}
	src := make([]byte, min(m.n, pieceBytes))
	setBytes(src, v)
	for at := int64(0); at < m.n; at += pieceBytes {
		if err := p.dev.driver.Write(m.mem, m.offset+at, src[:min(pieceBytes, m.n-at)]); err != nil {
			return err
		}
	}
	return nil
}

// setBytes makes all bytes v.
func setBytes(b []byte, v byte) {
	if v == 0 {
		clear(b)
		return
	}
	b[0] = v
	for n := 1; n < len(b); n *= 2 {
		copy(b[n:], b[:n])
	}
}

// bySize orders the free blocks.
func bySize(b *block, n int64) int { return cmp.Compare(b.size, n) }

// list puts a free block into the cache, as its newest.
func (p *pool) list(blk *block) {
	i, _ := slices.BinarySearchFunc(p.idle, blk.size, bySize)
	p.idle = slices.Insert(p.idle, i, blk)
	p.listed++
	blk.age = p.listed
	blk.older, blk.newer = p.newest, nil
	if p.newest != nil {
		p.newest.newer = blk
	} else {
		p.oldest = blk
	}
	p.newest = blk
}

// unlist takes p.idle[i] out of the cache.
func (p *pool) unlist(i int) {
	blk := p.idle[i]
	p.idle = slices.Delete(p.idle, i, i+1)
	if blk.older != nil {
		blk.older.newer = blk.newer
	} else {
		p.oldest = blk.newer
	}
	if blk.newer != nil {
		blk.newer.older = blk.older
	} else {
		p.newest = blk.older
	}
	blk.older, blk.newer = nil, nil
}

// trim takes the longest unused blocks out of the cache until the pool holds at most n bytes, and returns them for
// give. Called with mu held.
func (p *pool) trim(n int64) []*block {
	if !p.dev.retain && p.pending > 0 {
		return nil // without retention a running command buffer may use what the pool thinks is free
	}
	var out []*block
	for p.total > n && p.oldest != nil {
		blk := p.oldest
		i, _ := slices.BinarySearchFunc(p.idle, blk.size, bySize)
		for p.idle[i] != blk {
			i++
		}
		p.unlist(i)
		p.total -= blk.size
		out = append(out, blk)
	}
	if len(out) > 0 {
		p.calls.Add(1)
	}
	return out
}

// The pool keeps twice what was in use lately, and a little more, however high the cache's limit is: sizes that come
// once, as those of ever longer inputs, would otherwise fill it.
const (
	useWindow = 4096 // allocations
	keepSlack = 32 << 20
)

// used notes how much is active, for the windows. Called with mu held.
func (p *pool) used() {
	p.recent[0] = max(p.recent[0], p.active)
	if p.window++; p.window == useWindow {
		p.recent = [2]int64{p.active, p.recent[0]}
		p.window = 0
	}
}

// trimCache keeps the cache within its limits. Called with mu held.
func (p *pool) trimCache() []*block {
	most := min(p.active+p.cacheMax, 2*max(p.recent[0], p.recent[1])+keepSlack)
	if p.total <= most {
		return nil
	}
	return p.trim(most)
}

// give returns blocks that trim took to the driver. Called without mu: it may take the driver a while.
func (p *pool) give(out []*block) {
	if len(out) > 0 {
		defer p.calls.Done()
	}
	for _, blk := range out {
		p.dev.driver.Free(blk.mem)
	}
}

// wake tells waiting allocations that something changed. Called with mu held.
func (p *pool) wake() {
	p.events++
	if p.waiting > 0 {
		close(p.change)
		p.change = make(chan struct{})
	}
}

// submitted and finished count the pending command buffers.
func (p *pool) submitted() bool {
	p.mu.Lock()
	defer p.mu.Unlock()
	if p.closed.Load() {
		return false
	}
	p.pending++
	return true
}

func (p *pool) finished() {
	p.mu.Lock()
	p.pending--
	p.completed++
	p.wake()
	p.mu.Unlock()
}

// close waits until nothing is pending and frees the cache. Live buffers' memory is the driver's to free.
func (p *pool) close() {
	p.mu.Lock()
	p.closed.Store(true)
	p.wake()
	p.waiting++
	for p.pending > 0 {
		ch := p.change
		p.mu.Unlock()
		<-ch
		p.mu.Lock()
	}
	p.waiting--
	out := p.trim(0)
	p.mu.Unlock()
	p.give(out)
	p.calls.Wait()
	p.gone.Store(true)
}

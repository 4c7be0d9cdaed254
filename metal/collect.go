package metal

import (
	"context"
	"runtime"
	"runtime/metrics"
	"sync"
	"time"
)

// The pool cannot see garbage, and Go's collector cannot see device memory. So the pool asks for a collection when the
// bytes that garbage-collected objects hold, and that nobody else looks after, have grown by paceMin or by half of what
// is held since the last one, if collections so take
// at most a twentieth of the time; and when the budget is hit, whatever it costs. What one takes grows with the bytes
// of the heap that may hold pointers.
const (
	paceMin   = 64 << 20
	paceShare = 20
	// What is expected before there was one: this, and a nanosecond for each byte.
	leastCollection = 200 * time.Microsecond
	// A heap counts as so much larger than it is: most of what a collection of a small one takes is the same for all.
	heapFloor = 1 << 20
	// A clean-up of somebody else's that blocks must not hold up our allocations: give up without progress for so long.
	cleanupPatience = time.Second
	cleanupPoll     = time.Millisecond
)

// collector is the pool's bookkeeping of collections. Its fields are guarded by pool.mu, running apart.
type collector struct {
	before  func()                         // a collection: BeforeCollect
	spare   func(n int64, a *Account) bool // GiveUpBy
	collect func()
	now     func() time.Time
	heap    func() int64
	running sync.Mutex // held while a collection runs

	owned    int64 // bytes of buffers that Owned handles hold, and that only the collector can find dead
	held     int64 // bytes of those that somebody else finds dead: TrackedBy
	late     int64 // bytes that nobody has looked at when it was time: Late
	base     int64 // the least that unseen was since the last collection
	busy     bool  // a paced collection was started
	begun    int64 // collections begun
	runs     int64 // and finished
	spent    time.Duration
	lastTook time.Duration
	lastHeap int64     // heap, when the last one ended
	lastEnd  time.Time // or when the device was made
	waiting  int       // allocations that wait for a change

	notBefore time.Time // no paced collection is affordable
}

func (c *collector) init(opt DeviceOptions) {
	c.collect, c.now, c.heap = opt.Collect, opt.Now, opt.Heap
	if c.collect == nil {
		c.collect = runtime.GC
	}
	if c.now == nil {
		c.now = time.Now
	}
	if c.heap == nil {
		c.heap = scannedHeap
	}
	c.lastEnd = c.now()
}

// scannedHeap is how many bytes of the heap a collection looks at.
func scannedHeap() int64 {
	s := []metrics.Sample{{Name: "/gc/scan/heap:bytes"}}
	metrics.Read(s)
	if s[0].Value.Kind() != metrics.KindUint64 {
		return 0
	}
	return int64(s[0].Value.Uint64())
}

// cost is what a collection would take now. Called with pool.mu held.
func (c *collector) cost() time.Duration {
	heap := c.heap()
	if c.runs == 0 {
		return leastCollection + time.Duration(heap)
	}
	return time.Duration(float64(c.lastTook) * float64(heap+heapFloor) / float64(c.lastHeap+heapFloor))
}

// affordable reports whether a collection of that cost keeps within the share of time. Called with pool.mu held.
func (c *collector) affordable(cost time.Duration) bool {
	return c.now().Sub(c.lastEnd) >= (paceShare-1)*cost
}

// BeforeCollect has f called before each garbage collection that the device asks for: what lists garbage for a purpose
// of its own can let go of it.
func (d *Device) BeforeCollect(f func()) {
	d.pool.mu.Lock()
	d.pool.before = f
	d.pool.mu.Unlock()
}

// GiveUpBy has f called where an allocation of n bytes is about to fail, after a collection and when no command is
// pending: what is kept although it can be made again can be let go of then. A is the account that has no room; nil:
// the device has none. F is called again until the allocation succeeds or f returns false, since it has nothing left.
func (d *Device) GiveUpBy(f func(n int64, a *Account) bool) {
	d.pool.mu.Lock()
	d.pool.spare = f
	d.pool.mu.Unlock()
}

// giveUp drops forms of steps, or calls the function of GiveUpBy. Called without mu.
func (p *pool) giveUp(n int64, a *Account) bool {
	p.mu.Lock()
	f, lacks := p.spare, p.total+p.dev.kept.bytes.Load()+n-p.limit
	p.mu.Unlock()
	if a == nil && p.dev.kept.giveUp(lacks) {
		return true
	}
	return f != nil && f(n, a)
}

// CollectCost says what a garbage collection would take now, and whether collections would still take at most a
// twentieth of the time if one began now.
func (d *Device) CollectCost() (cost time.Duration, affordable bool) {
	p := d.pool
	p.mu.Lock()
	defer p.mu.Unlock()
	cost = p.cost()
	return cost, p.affordable(cost)
}

// own and disown count the Owned handles of a buffer. Own makes one, which os (nil: none) takes in.
func (p *pool) own(b *Buffer, os *OwnedGroup, held bool) *Owned {
	p.mu.Lock()
	if b.owners++; b.owners == 1 {
		b.held = held
		*p.side(b) += b.cost()
	} else if !held {
		p.untrack(b)
	}
	o := &b.handle
	if b.handled { // its clean-up may still be to come
		o = &Owned{}
	}
	b.handled = true
	o.buf.Store(b)
	if os != nil {
		os.list[os.n] = o
		os.n++
	}
	run := p.due()
	p.mu.Unlock()
	if run {
		go p.collectPaced()
	}
	return o
}

func (p *pool) disown(b *Buffer) {
	p.mu.Lock()
	if b.owners--; b.owners == 0 {
		*p.side(b) -= b.cost()
		b.held = false
		p.base = min(p.base, p.unseen())
	}
	p.mu.Unlock()
}

// side is where a buffer counts. Called with mu held.
func (p *pool) side(b *Buffer) *int64 {
	if b.held {
		return &p.held
	}
	return &p.owned
}

// untrack has a buffer count as one that only the collector can find dead. Called with mu held.
func (p *pool) untrack(b *Buffer) {
	if b.held {
		p.held -= b.cost()
		b.held = false
		p.owned += b.cost()
	}
}

// AddUntracked says that so many bytes more of what TrackedBy has taken over were not looked at when it was time (fewer
// where n is negative), given back since or not, so that collections are paced by them too.
func (d *Device) AddUntracked(n int64) {
	p := d.pool
	p.mu.Lock()
	p.late += n
	p.base = min(p.base, p.unseen())
	run := p.due()
	p.mu.Unlock()
	if run {
		go p.collectPaced()
	}
}

// unseen is how many bytes may be garbage that only the collector can find. What came back by itself may still count as
// late, so no more than what is held does. Called with mu held.
func (c *collector) unseen() int64 { return c.owned + min(c.late, c.held) }

// due reports whether a paced collection should start, and notes that it does. Called with mu held.
func (p *pool) due() bool {
	if grown := p.unseen() - p.base; grown <= max(paceMin, (p.base+p.held)/2) || p.busy || p.closed.Load() ||
		p.now().Before(p.notBefore) {
		return false
	}
	if cost := p.cost(); !p.affordable(cost) {
		p.notBefore = p.lastEnd.Add((paceShare - 1) * cost) // to ask for the heap's size takes longer than an allocation
		return false
	}
	p.busy = true
	return true
}

// collectPaced runs the collection that due announced, on a goroutine of its own: nobody waits for it.
func (p *pool) collectPaced() {
	p.running.Lock()
	defer p.running.Unlock()
	p.collectOnce(context.Background())
	p.mu.Lock()
	p.busy = false
	p.mu.Unlock()
}

// Collect runs a garbage collection and waits until the buffers of dead owners are back in the pool, or ctx is done. If
// one that began after the call is already under way, it serves. It says how long it took.
func (d *Device) Collect(ctx context.Context) time.Duration {
	start := d.pool.now()
	if ctx == nil {
		ctx = context.Background()
	}
	d.pool.collectNow(ctx)
	return d.pool.now().Sub(start)
}

// collectNow returns after a collection that began after the call.
func (p *pool) collectNow(ctx context.Context) {
	p.mu.Lock()
	seen := p.begun
	p.mu.Unlock()
	p.running.Lock()
	defer p.running.Unlock()
	p.mu.Lock()
	done := p.begun > seen
	p.mu.Unlock()
	if !done {
		p.collectOnce(ctx)
	}
}

// collectOnce collects and waits for the clean-ups. Called with running held.
func (p *pool) collectOnce(ctx context.Context) {
	p.mu.Lock()
	p.begun++
	before := p.before
	p.mu.Unlock()
	start := p.now()
	if before != nil {
		before()
	}
	p.collect()
	waitCleanups(ctx)
	end := p.now()
	p.mu.Lock()
	defer p.mu.Unlock()
	p.runs++
	p.lastEnd, p.lastTook = end, end.Sub(start)
	p.lastHeap = p.heap()
	p.spent += p.lastTook
	p.base = p.unseen()
}

// waitCleanups returns when all clean-ups that the collector has queued so far were executed: the runtime counts both.
func waitCleanups(ctx context.Context) {
	s := []metrics.Sample{{Name: "/gc/cleanups/queued:cleanups"}, {Name: "/gc/cleanups/executed:cleanups"}}
	metrics.Read(s)
	if s[0].Value.Kind() != metrics.KindUint64 || s[1].Value.Kind() != metrics.KindUint64 {
		return
	}
	target, last := s[0].Value.Uint64(), s[1].Value.Uint64()
	progress := time.Now()
	for tries := 0; s[1].Value.Uint64() < target; tries++ {
		if ctx.Err() != nil || time.Since(progress) > cleanupPatience {
			return
		}
		if tries < 100 {
			runtime.Gosched()
		} else {
			t := time.NewTimer(cleanupPoll)
			select {
			case <-t.C:
			case <-ctx.Done():
				t.Stop()
			}
		}
		metrics.Read(s)
		if n := s[1].Value.Uint64(); n != last {
			last, progress = n, time.Now()
		}
	}
}

// reclaim is the state of one allocation that waits.
type reclaim struct {
	collected bool
	completed int64    // pool.completed at the last collection
	events    int64    // pool.events before the last try
	account   *Account // that has to have room; nil: none
	until     int64    // what pool.completed is when the command buffers have completed that were pending at first
}

// reclaim is called with mu held when there is no room. It returns nil when it is worth trying again, after a
// collection or after something came back, and an error when nothing that it could wait for is left.
func (p *pool) reclaim(ctx context.Context, r *reclaim, n int64, failed error) error {
	if ctx.Err() != nil {
		return cause(ctx)
	}
	if p.events != r.events {
		return nil // something came back while the lock was free
	}
	// What command buffers kept alive until they completed may be garbage now: then once more. Where a collection costs
	// much, what they give back by themselves may do.
	quiet, again := p.pending == 0, p.pending == 0 && p.completed != r.completed
	if r.account != nil && p.completed >= r.until { // what others have pending gives nothing to the account
		quiet, again = true, r.completed < r.until
	}
	if p.owned+p.held > 0 && (!r.collected || again) && (quiet || p.affordable(p.cost())) {
		r.collected, r.completed = true, p.completed
		p.mu.Unlock()
		p.collectNow(ctx)
		p.mu.Lock()
		return nil
	}
	if !quiet {
		ch := p.change
		p.waiting++
		p.mu.Unlock()
		select {
		case <-ch:
		case <-ctx.Done():
		}
		p.mu.Lock()
		p.waiting--
		return nil
	}
	short := r.account
	if short.fits(sizeClass(n)) {
		short = nil
	}
	p.mu.Unlock()
	some := p.giveUp(n, short)
	p.mu.Lock()
	if some {
		return nil
	}
	if failed != nil {
		return failed
	}
	return p.tooLarge(n, r.account)
}

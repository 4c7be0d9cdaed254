package metal

import (
	"container/list"
	"context"
	"crypto/sha256"
	"encoding/binary"
	"encoding/hex"
	"fmt"
	"slices"
	"strings"
	"sync"
	"sync/atomic"
)

// Key identifies a library by content: SHA-256 over length-prefixed fields (text, options, dialect version, driver
// kind and version). Names play no part in it.
type Key [32]byte

// String is the first 12 hexadecimal digits: enough for people.
func (k Key) String() string { return hex.EncodeToString(k[:6]) }

// Library is a compiled source in a device's cache. It stays usable as long as somebody holds it, evicted or not.
type Library struct {
	dev       *Device
	key       Key
	src       Source
	module    Module
	names     []string
	pipelines map[string]*lazyPipeline
	pins      int         // pending command buffers that use it; guarded by the cache's mu
	entry     *libEntry   // in the cache, or that was there
	freed     atomic.Bool // by Ablations.ClearOnMismatch only
}

// Source is what it was compiled from.
func (l *Library) Source() Source { return l.src }

// Module is the driver's.
func (l *Library) Module() Module { return l.module }

// Kernels lists the names of the entry points in the module's order.
func (l *Library) Kernels() []string { return append([]string(nil), l.names...) }

// String names the library in messages.
func (l *Library) String() string { return fmt.Sprintf("library %s (%s)", l.src.Label, l.key) }

// lazyPipeline is made the first time that somebody asks for it.
type lazyPipeline struct {
	index int
	once  sync.Once
	p     *Pipeline
	err   error
}

// Pipeline returns the entry point of that name, which is compiled if nobody has asked for it before. It is an error if
// there is none, if its text is wrong, or if it exceeds the device's limits.
func (l *Library) Pipeline(name string) (*Pipeline, error) {
	p := l.pipelines[name]
	if p == nil {
		return nil, fmt.Errorf("[pipeline] %s has no kernel %q: %s", l, name, l.have())
	}
	p.once.Do(func() { p.p, p.err = l.pipeline(p.index) })
	return p.p, p.err
}

// pipeline makes a pipeline.
func (l *Library) pipeline(i int) (p *Pipeline, err error) {
	defer func() {
		if r := recover(); r != nil {
			p, err = nil, fmt.Errorf("[pipeline] BUG: the compiler panicked on %s: %v", l.names[i], r)
		}
	}()
	r, err := l.module.Kernel(i)
	if err != nil {
		return nil, err
	}
	return newPipeline(l, i, r)
}

// maxHave is how many kernels a message lists.
const maxHave = 20

// have says for messages which kernels there are.
func (l *Library) have() string {
	n := len(l.names)
	switch {
	case n == 0:
		return "it has no kernels"
	case n > maxHave:
		return fmt.Sprintf("it has %s and %d others", strings.Join(l.names[:maxHave], ", "), n-maxHave)
	}
	return "it has " + strings.Join(l.names, ", ")
}

// Pipeline is one kernel of a library, ready to be dispatched.
type Pipeline struct {
	lib    *Library
	index  int
	refl   Reflection
	access []access
	min    []int64       // least bytes by parameter
	align  []int64       // alignment of offsets by parameter
	used   atomic.Uint64 // the last command buffer that retained it
}

// access says what a kernel does with a parameter.
type access uint8

const (
	accRead access = 1 << iota
	accWrite
	accThreadgroup
)

// Name is the kernel's.
func (p *Pipeline) Name() string { return p.refl.Name }

// Index is the kernel's position in Module.Names.
func (p *Pipeline) Index() int { return p.index }

// Params describes the parameters, in the order in which Encoder counts them and Command.Args holds them. Read only.
func (p *Pipeline) Params() []ParamInfo { return p.refl.Params }

// Library is where it comes from.
func (p *Pipeline) Library() *Library { return p.lib }

// Reflection is what the driver found out about the kernel. Read only.
func (p *Pipeline) Reflection() Reflection { return p.refl }

// newPipeline prepares what Dispatch asks of a kernel.
func newPipeline(l *Library, i int, r Reflection) (*Pipeline, error) {
	lim := l.dev.info.Limits
	p := &Pipeline{lib: l, index: i, refl: r}
	if p.refl.MaxThreads <= 0 || p.refl.MaxThreads > lim.ThreadsPerGroup {
		p.refl.MaxThreads = lim.ThreadsPerGroup
	}
	buffers := 0
	for _, q := range r.Params {
		var a access
		if q.Threadgroup {
			a = accThreadgroup
		} else {
			buffers++
			if q.Read || q.Atomic {
				a |= accRead
			}
			if (q.Write || q.Atomic) && !q.ReadOnly {
				a |= accWrite
			}
		}
		align := max(int64(min(lim.ConstantAlignment, q.ElemSize)), 1)
		p.access, p.min, p.align = append(p.access, a), append(p.min, q.MinBytes), append(p.align, align)
	}
	switch {
	case r.Refused != nil:
		return nil, r.Refused
	case buffers > lim.Buffers:
		return nil, fmt.Errorf("[pipeline] kernel %s has %d buffer parameters: the limit is %d", r.Name, buffers, lim.Buffers)
	case r.StaticTG > int64(lim.ThreadgroupMemory):
		return nil, fmt.Errorf("[pipeline] kernel %s declares %d bytes of threadgroup memory: the limit is %d",
			r.Name, r.StaticTG, lim.ThreadgroupMemory)
	}
	return p, nil
}

// LibraryStats are the counters of the library cache.
type LibraryStats struct {
	Hits      int64 // lookups served by the cache, also by a compilation under way
	Misses    int64 // lookups that compiled
	Evictions int64
	Size      int // libraries cached now
	Cap       int // Size may be more while pending command buffers use the libraries
	Pinned    int // libraries that open and pending command buffers use
}

// libraryCache holds libraries by content key.
type libraryCache struct {
	dev     *Device
	work    sync.WaitGroup // compilations
	mu      sync.Mutex
	entries map[Key][]*libEntry       // several in one place only if the hash collides
	memo    map[sourceKey][]*libEntry // the entries by what is quickly told apart
	lru     *list.List                // of *libEntry; front is the most recently used
	bytes   int64                     // of the entries
	most    int64                     // that bytes may be
	stats   LibraryStats
	closed  bool
}

// sourceKey leads to the few entries among which a source is found by comparing texts, which takes no time where they
// are one string: hashing all of a text, by whatever function, is what a lookup would otherwise spend its time on.
type sourceKey struct {
	length  int
	mid, to string // pieces of the text
	opt     Options
}

// keyPiece is how much of the text a sourceKey holds twice.
const keyPiece = 24

func (s *Source) memoKey() sourceKey {
	n := len(s.Text)
	if n < 2*keyPiece {
		return sourceKey{n, s.Text, "", s.Options}
	}
	return sourceKey{n, s.Text[n/2 : n/2+keyPiece], s.Text[n-keyPiece:], s.Options}
}

// same reports whether two sources mean the same on one device.
func (s *Source) same(o *Source) bool { return s.Text == o.Text && s.Options == o.Options }

// known is the entry of a source, or nil. Called with mu held.
func (c *libraryCache) known(src *Source) *libEntry {
	for _, e := range c.memo[src.memoKey()] {
		if e.src.same(src) {
			return e
		}
	}
	return nil
}

// libEntry is a library in the cache, or on its way there.
type libEntry struct {
	key     Key
	src     Source
	elem    *list.Element
	ready   chan struct{} // closed when lib or err is set
	lib     *Library
	err     error
	waiters int // callers that wait for ready
	cancel  context.CancelFunc

	bytes   int64 // what it takes, as far as the cache knows
	users   map[*LibraryUser]struct{}
	last    *LibraryUser // who was the last to ask for it
	creator *LibraryUser // whom it was made for
	program bool         // the program uses it, too
	dropped bool         // nobody uses it any more but pending command buffers
}

func newLibraryCache(d *Device, opt DeviceOptions) *libraryCache {
	limit, most := opt.LibraryCap, opt.LibraryBytes
	if limit == 0 {
		limit = 1024
	}
	if most == 0 {
		most = libraryBytes
	}
	return &libraryCache{
		dev: d, entries: map[Key][]*libEntry{}, memo: map[sourceKey][]*libEntry{}, lru: list.New(), most: most,
		stats: LibraryStats{Cap: limit},
	}
}

// Library returns the compiled source, from the cache if it is there. Callers that ask for one source at the same time
// share one compilation, which is given up when the last of them has gone. Errors are not cached.
func (d *Device) Library(ctx context.Context, src Source) (*Library, error) {
	return d.libs.get(ctx, src, nil)
}

// LibraryFor is Library for one of several users of the device; nil is the program.
func (d *Device) LibraryFor(ctx context.Context, src Source, u *LibraryUser) (*Library, error) {
	return d.libs.get(ctx, src, u)
}

// LibraryCached reports whether Library would find the source compiled. It counts as no lookup.
func (d *Device) LibraryCached(src Source) bool {
	c := d.libs
	c.mu.Lock()
	defer c.mu.Unlock()
	e := c.known(&src)
	return e != nil && e.lib != nil
}

// LibraryStats are the counters of the library cache.
func (d *Device) LibraryStats() LibraryStats {
	c := d.libs
	c.mu.Lock()
	defer c.mu.Unlock()
	s := c.stats
	s.Size = c.lru.Len()
	for e := c.lru.Front(); e != nil; e = e.Next() {
		if l := e.Value.(*libEntry).lib; l != nil && l.pins > 0 {
			s.Pinned++
		}
	}
	return s
}

// key is the content key of a source.
func (c *libraryCache) key(src Source) Key {
	var b []byte
	field := func(s string) {
		b = binary.LittleEndian.AppendUint64(b, uint64(len(s)))
		b = append(b, s...)
	}
	if c.dev.ablate.KeyByName {
		field(src.Label)
	} else {
		o := src.Options
		field(src.Text)
		field(fmt.Sprintf("%d %t %t", o.MathMode, o.Float64, o.Portable))
		field(o.Constants)
		field(fmt.Sprint(DialectVersion))
		field(c.dev.info.Kind)
		field(c.dev.info.Version)
	}
	if c.dev.ablate.Hash != nil {
		return c.dev.ablate.Hash(b)
	}
	return sha256.Sum256(b)
}

// find returns the entry of a source, and its key if it had to be worked out. Called with mu held.
func (c *libraryCache) find(src Source) (*libEntry, Key) {
	byName := c.dev.ablate.KeyByName
	if !byName {
		if e := c.known(&src); e != nil {
			return e, e.key
		}
	}
	k := c.key(src)
	for _, e := range c.entries[k] {
		same := e.src.same(&src)
		if byName && !same && c.dev.ablate.ClearOnMismatch {
			c.remove(e)
			if e.lib != nil {
				e.lib.freed.Store(true)
			}
			return nil, k
		}
		if same || byName {
			return e, k
		}
	}
	return nil, k
}

func (c *libraryCache) get(ctx context.Context, src Source, u *LibraryUser) (*Library, error) {
	if ctx == nil {
		ctx = context.Background()
	}
	if src.Options.Float64 && !c.dev.info.Float64 {
		return nil, fmt.Errorf("[library] %s asks for float64: device %s has none", src.Label, c.dev.info.Name)
	}
	c.mu.Lock()
	if c.closed {
		c.mu.Unlock()
		return nil, errClosed("library")
	}
	e, key := c.find(src)
	if e == nil {
		c.stats.Misses++
		cctx, cancel := context.WithCancel(context.WithoutCancel(ctx))
		e = &libEntry{key: key, src: src, ready: make(chan struct{}), cancel: cancel, creator: u}
		e.elem = c.lru.PushFront(e)
		c.entries[key] = append(c.entries[key], e)
		m := src.memoKey()
		c.memo[m] = append(c.memo[m], e)
		c.use(e, u)
		c.work.Add(1)
		go c.compile(cctx, e)
	} else {
		c.stats.Hits++
		if e.elem != nil {
			c.lru.MoveToFront(e.elem)
		}
		c.use(e, u)
		if e.lib != nil {
			c.mu.Unlock()
			return e.lib, nil
		}
	}
	e.waiters++
	c.mu.Unlock()

	var err error
	select {
	case <-e.ready:
	case <-ctx.Done():
		err = cause(ctx)
	}
	c.mu.Lock()
	defer c.mu.Unlock()
	e.waiters--
	if err != nil {
		// Nobody wants it any more: stop the compiler, and let the next caller begin anew.
		if e.waiters == 0 && e.lib == nil {
			e.cancel()
			c.remove(e)
		}
		return nil, err
	}
	return e.lib, e.err
}

// compile makes the library of a new entry.
func (c *libraryCache) compile(ctx context.Context, e *libEntry) {
	defer c.work.Done()
	defer e.cancel()
	lib, err := c.build(ctx, e.key, e.src)
	c.mu.Lock()
	defer c.mu.Unlock()
	e.lib, e.err = lib, err
	if err != nil {
		c.remove(e)
	} else {
		lib.entry = e
		c.weigh(e)
	}
	close(e.ready)
	c.evict()
}

// build compiles a source.
func (c *libraryCache) build(ctx context.Context, key Key, src Source) (lib *Library, err error) {
	defer func() {
		if r := recover(); r != nil {
			lib, err = nil, fmt.Errorf("[library] BUG: the compiler panicked on %s: %v", src.Label, r)
		}
	}()
	m, err := c.dev.driver.Compile(ctx, src)
	if err != nil {
		return nil, err
	}
	lib = &Library{dev: c.dev, key: key, src: src, module: m, names: m.Names(), pipelines: map[string]*lazyPipeline{}}
	for i, name := range lib.names {
		lib.pipelines[name] = &lazyPipeline{index: i}
	}
	return lib, nil
}

// remove takes an entry out of the cache. Called with mu held.
func (c *libraryCache) remove(e *libEntry) {
	if e.elem == nil {
		return
	}
	c.lru.Remove(e.elem)
	e.elem = nil
	c.bytes -= e.bytes
	for u := range e.users {
		u.forget(e)
	}
	e.users = nil
	without(c.entries, e.key, e)
	without(c.memo, e.src.memoKey(), e)
}

// without takes an entry off one of the lists.
func without[K comparable](lists map[K][]*libEntry, k K, e *libEntry) {
	s := slices.DeleteFunc(lists[k], func(o *libEntry) bool { return o == e })
	if len(s) == 0 {
		delete(lists, k)
		return
	}
	lists[k] = s
}

// evict removes the least recently used libraries beyond the cap and the bytes that nobody waits for and no pending
// command buffer uses. Called with mu held.
func (c *libraryCache) evict() {
	for el := c.lru.Back(); el != nil && (c.lru.Len() > c.stats.Cap || c.bytes > c.most); {
		e := el.Value.(*libEntry)
		el = el.Prev()
		if e.idle() {
			c.remove(e)
			c.stats.Evictions++
		}
	}
}

// idle reports whether the entry may be removed. Called with mu held.
func (e *libEntry) idle() bool { return e.lib != nil && e.lib.pins == 0 && e.waiters == 0 }

// pin keeps a library cached until unpin.
func (c *libraryCache) pin(l *Library) {
	c.mu.Lock()
	l.pins++
	c.mu.Unlock()
}

// unpin takes back one pin of each library, all of them before it evicts, so that their order does not matter.
func (c *libraryCache) unpin(libs []*Library) {
	if len(libs) == 0 {
		return
	}
	c.mu.Lock()
	defer c.mu.Unlock()
	for _, l := range libs {
		if l.pins--; l.pins < 0 {
			panic(fmt.Sprintf("BUG: %s unpinned below zero", l))
		}
		c.weigh(l.entry) // code is made when a kernel runs
		if l.entry.dropped && l.entry.idle() {
			c.remove(l.entry)
		}
	}
	c.evict()
}

// close cancels the compilations under way, waits for them, and lets go of all libraries: what still holds the device,
// as its streams do, then holds no code.
func (c *libraryCache) close() {
	c.mu.Lock()
	c.closed = true
	for e := c.lru.Front(); e != nil; e = e.Next() {
		e.Value.(*libEntry).cancel()
	}
	c.mu.Unlock()
	c.work.Wait()
	c.mu.Lock()
	defer c.mu.Unlock()
	for el := c.lru.Front(); el != nil; el = c.lru.Front() {
		c.remove(el.Value.(*libEntry))
	}
}

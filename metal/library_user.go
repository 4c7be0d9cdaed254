package metal

import (
	"sync"
	"sync/atomic"
)

// libraryBytes is what the libraries of a device may take.
const libraryBytes = 256 << 20

// textBytes is what a byte of a source takes in its library at least: it is kept twice.
const textBytes = 2

// Sized is the capability of modules that know how many bytes they take, machine code included. It is asked often.
type Sized interface {
	Bytes() int64
}

// Bytes is about what the library takes in memory, as far as its kernels are made.
func (l *Library) Bytes() int64 {
	const beside = 1 << 10
	n := beside + textBytes*int64(len(l.src.Text))
	if m, ok := l.module.(Sized); ok {
		n += m.Bytes()
	}
	return n
}

// LibraryUser is one of several users of devices, as far as their libraries go: what it uses counts as its own, by
// shares where several do, and is dropped with it. Its methods may be called from any goroutine.
type LibraryUser struct {
	made atomic.Int64

	mu     sync.Mutex // locked after a cache's
	held   map[*libEntry]*libraryCache
	closed bool
}

// Made is how many bytes of libraries were made for the user so far.
func (u *LibraryUser) Made() int64 { return u.made.Load() }

// LibraryUse is what a user has of the devices' libraries.
type LibraryUse struct {
	Libraries int
	Bytes     int64 // its share of what they take
}

// Use is what the user has now. Libraries that were evicted are not among it.
func (u *LibraryUser) Use() (use LibraryUse) {
	for c, entries := range u.byCache(false) {
		c.mu.Lock()
		for _, e := range entries {
			if e.elem != nil {
				use.Libraries++
				use.Bytes += e.bytes / int64(max(e.shares(), 1))
			}
		}
		c.mu.Unlock()
	}
	return use
}

// Drop says that the user needs none of its libraries just now. Those that nobody else uses are gone when no pending
// command buffer uses them; who asks for one again has it compiled. With keep, those that may serve others (built-in
// kernels) stay as the program's.
func (u *LibraryUser) Drop(keep bool) {
	for c, entries := range u.byCache(true) {
		c.mu.Lock()
		for _, e := range entries {
			if e.last == u {
				e.last = nil
			}
			delete(e.users, u)
			if e.shares() > 0 || e.elem == nil || keep && e.src.Options.Portable {
				continue
			}
			if e.dropped = true; e.idle() {
				c.remove(e)
			}
		}
		c.mu.Unlock()
	}
}

// Close drops what the user has, but for what may serve others, and ends it: what it still asks for is the program's.
func (u *LibraryUser) Close() {
	u.mu.Lock()
	u.closed = true
	u.mu.Unlock()
	u.Drop(true)
}

// byCache lists the user's entries, and takes them from it.
func (u *LibraryUser) byCache(take bool) map[*libraryCache][]*libEntry {
	u.mu.Lock()
	defer u.mu.Unlock()
	out := map[*libraryCache][]*libEntry{}
	for e, c := range u.held {
		out[c] = append(out[c], e)
	}
	if take {
		u.held = nil
	}
	return out
}

// add notes an entry, and reports whether it was not noted before.
func (u *LibraryUser) add(e *libEntry, c *libraryCache) bool {
	u.mu.Lock()
	defer u.mu.Unlock()
	if u.closed || u.held[e] != nil {
		return false
	}
	if u.held == nil {
		u.held = map[*libEntry]*libraryCache{}
	}
	u.held[e] = c
	return true
}

func (u *LibraryUser) forget(e *libEntry) {
	u.mu.Lock()
	defer u.mu.Unlock()
	delete(u.held, e)
}

// shares is how many users the entry counts for. Called with mu held.
func (e *libEntry) shares() int {
	if e.program {
		return len(e.users) + 1
	}
	return len(e.users)
}

// use notes who uses an entry. Called with mu held.
func (c *libraryCache) use(e *libEntry, u *LibraryUser) {
	e.dropped = false
	switch {
	case u == nil:
		e.program = true
	case e.last == u || e.elem == nil:
	case u.add(e, c):
		if e.users == nil {
			e.users = map[*LibraryUser]struct{}{}
		}
		e.users[u], e.last = struct{}{}, u
	}
}

// weigh asks a library again what it takes: kernels are made when somebody asks for them, and their code when they run.
// Where the cache is full, a user who has more than a quarter of it gives up what it has not used for longest. Called
// with mu held.
func (c *libraryCache) weigh(e *libEntry) {
	now := e.lib.Bytes()
	more := now - e.bytes
	if e.bytes = now; more == 0 {
		return
	}
	if e.elem != nil {
		c.bytes += more
	}
	if u := e.creator; u != nil {
		u.made.Add(more)
		if c.bytes > c.most {
			c.bound(u, e)
		}
	}
}

// bound keeps the libraries of one user within its part of a cache that is full. Called with mu held.
func (c *libraryCache) bound(u *LibraryUser, but *libEntry) {
	own, bytes := map[*libEntry]bool{}, int64(0)
	u.mu.Lock()
	for e, of := range u.held {
		if of == c && e.elem != nil && e.shares() == 1 {
			own[e] = e != but
			bytes += e.bytes
		}
	}
	u.mu.Unlock()
	for el := c.lru.Back(); el != nil && c.bytes > c.most && bytes > c.most/4; {
		e := el.Value.(*libEntry)
		if el = el.Prev(); own[e] && e.idle() {
			bytes -= e.bytes
			c.remove(e)
			c.stats.Evictions++
		}
	}
}

// LibraryBytes is how many bytes the device's cached libraries take, and how many they may.
func (d *Device) LibraryBytes() (bytes, most int64) {
	d.libs.mu.Lock()
	defer d.libs.mu.Unlock()
	return d.libs.bytes, d.libs.most
}

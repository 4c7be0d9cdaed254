package metal

// A list of commands is data, so that it can be made without a run of it: on buffers that have no memory, in a command
// buffer that is cancelled. Whoever wants to run it later encodes it again, on others in their place.

// nowhere is where buffers without memory lie.
var nowhere = &block{partial: -1}

// StandIn is a buffer of n bytes without memory, with one reference, for a command buffer that is never committed. Its
// bytes can be neither read nor written.
func (d *Device) StandIn(n int64, o *Origin) *Buffer {
	p := d.pool
	p.mu.Lock()
	defer p.mu.Unlock()
	p.ids++
	b := &Buffer{pool: p, id: p.ids, length: n, blk: nowhere}
	b.refs.Store(1)
	if o != nil {
		b.assign(o)
	}
	return b
}

// ShareBytes says which inline bytes the commands that follow are to refer to themselves, where they have a copy of
// others: whoever reads the commands then knows whose bytes they are. It is for command buffers that are never
// committed.
func (e *Encoder) ShareBytes(shared func(b []byte) bool) { e.shared = shared }

// shares reports whether commands refer to these bytes themselves.
func (e *Encoder) shares(b []byte) bool { return e.shared != nil && len(b) > 0 && e.shared(b) }

// Writes reports whether the kernel writes the memory that a parameter is bound to, counted as in Params.
func (p *Pipeline) Writes(param int) bool { return p.access[param]&accWrite != 0 }

// UseLibraries says that somebody, whose user is as in LibraryFor, is about to use pipelines of libraries that he has
// from before. It reports whether all of them are still cached: others are to be asked for again.
func (d *Device) UseLibraries(libs []*Library, u *LibraryUser) bool {
	c := d.libs
	c.mu.Lock()
	defer c.mu.Unlock()
	for _, l := range libs {
		if l.entry == nil || l.entry.elem == nil || l.dev != d {
			return false
		}
	}
	for _, l := range libs {
		c.lru.MoveToFront(l.entry.elem)
		c.use(l.entry, u)
		c.stats.Hits++
	}
	return true
}

// Cached reports whether the library is in its device's cache, which counts what it takes.
func (l *Library) Cached() bool {
	c := l.dev.libs
	c.mu.Lock()
	defer c.mu.Unlock()
	return l.entry != nil && l.entry.elem != nil
}

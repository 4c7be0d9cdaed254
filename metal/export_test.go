package metal

import "slices"

// What only tests ask for.

// Refs is the number of references, for tests and reports.
func (b *Buffer) Refs() int { return int(b.refs.Load()) }

// ID numbers the buffers of a device from 1 in the order of their allocation; it is never used again.
func (b *Buffer) ID() uint64 { return b.id }

// Refs is the number of references, for tests and reports.
func (m *Mapping) Refs() int { return int(m.refs.Load()) }

// AddTemporary retains a buffer until the command buffer has ended, whether it is bound or not, once; the caller keeps
// its own reference. On a command buffer that has ended it does nothing.
func (cb *CommandBuffer) AddTemporary(b *Buffer) {
	cb.mu.Lock()
	defer cb.mu.Unlock()
	if cb.status > StatusCommitted {
		return
	}
	if u := cb.use(b); !u.retained {
		b.Retain()
		u.retained = true
	}
}

// Buffers lists the buffers that the command buffer uses, by ID; none after its end. For tests and reports.
func (cb *CommandBuffer) Buffers() []*Buffer {
	cb.mu.Lock()
	defer cb.mu.Unlock()
	if cb.rec == nil {
		return nil
	}
	out := make([]*Buffer, 0, cb.rec.uses.n)
	for i := range cb.rec.uses.n {
		out = append(out, cb.rec.uses.use(i).buf)
	}
	slices.SortFunc(out, func(a, b *Buffer) int { return int(a.id) - int(b.id) })
	return out
}

// Key identifies the library.
func (l *Library) Key() Key { return l.key }

// Buffer is the buffer that is owned, or nil once Release or Stop was called.
func (o *Owned) Buffer() *Buffer { return o.buf.Load() }

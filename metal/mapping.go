package metal

import (
	"errors"
	"fmt"
	"os"
	"runtime/debug"
	"sync/atomic"
	"unsafe"
)

// Mapping is a file's contents as memory: the system reads a page of the file when somebody first touches it, and may
// forget it again. Nothing that is written there reaches the file. A Mapping is counted by hand, as a Buffer is: it
// begins with one reference, each buffer in it holds another, and with the last one the memory is gone.
//
// A file that is replaced by a rename, or deleted, stays readable through its mapping. One that somebody writes to in
// place shows what was written; one that somebody makes shorter has pages that cannot be read: see Guard.
type Mapping struct {
	name  string
	data  []byte
	unmap func() error
	refs  atomic.Int64
}

// HostMapper is the capability of drivers whose kernels can use memory that the driver did not allocate.
type HostMapper interface {
	// MapHost makes b, whole pages outside the Go heap that stay where they are until UnmapHost, memory of the device.
	// Buffers in it begin at multiples of align. The host reads b itself: mem.Host does not matter.
	MapHost(b []byte) (mem Memory, align int64, err error)
	// UnmapHost ends the use of what MapHost gave, which no pending command buffer uses.
	UnmapHost(Memory)
}

// ErrNotMapped is what errors of MappedBuffer are where the device cannot use the bytes where they lie.
var ErrNotMapped = errors.New("the device does not use the bytes of files where they lie")

// MapFile maps all of an open regular file, which may be closed then. On systems without memory-mapped files it reads
// the file.
func MapFile(f *os.File) (*Mapping, error) {
	m := &Mapping{name: f.Name(), unmap: func() error { return nil }}
	m.refs.Store(1)
	st, err := f.Stat()
	if err != nil {
		return nil, err
	}
	n := st.Size()
	switch {
	case st.IsDir():
		return nil, errors.New("it is a directory")
	case !st.Mode().IsRegular():
		return nil, errors.New("it is no regular file")
	case int64(int(n)) != n:
		return nil, fmt.Errorf("its %d bytes are more than this processor can address", n)
	case n == 0:
		return m, nil
	}
	if m.data, m.unmap, err = mapFile(f, int(n)); err != nil {
		return nil, fmt.Errorf("%d bytes cannot be mapped: %w", n, err)
	}
	return m, nil
}

// Name is the file's path, as it was opened.
func (m *Mapping) Name() string { return m.name }

// Len is the file's size in bytes when it was mapped.
func (m *Mapping) Len() int64 { return int64(len(m.data)) }

// Retain adds a reference; the caller holds one.
func (m *Mapping) Retain() {
	if m.refs.Add(1) <= 1 {
		panic("BUG: use after release: Retain of the mapping of " + m.name)
	}
}

// Release gives a reference back.
func (m *Mapping) Release() {
	switch n := m.refs.Add(-1); {
	case n == 0:
		_ = m.unmap() // it fails for memory that is not mapped, which would be a bug here
		m.data = nil
	case n < 0:
		panic("BUG: the mapping of " + m.name + " released below zero")
	}
}

// Guard calls f with the mapping's bytes, which the caller holds a reference to and f must not change or keep. If they
// cannot be read, because the file became shorter or the disk failed, that is an error.
func (m *Mapping) Guard(f func(b []byte) error) error {
	return m.guarded(func() error { return f(m.data) })
}

func (m *Mapping) guarded(f func() error) (err error) {
	defer debug.SetPanicOnFault(debug.SetPanicOnFault(true))
	defer func() {
		if p := recover(); p != nil {
			at, ok := m.faulted(p)
			if !ok {
				panic(p)
			}
			err = fmt.Errorf("%s cannot be read at byte %d: was the file changed while it was in use?", m.name, at)
		}
	}()
	return f()
}

// addressOf is where a slice's memory begins.
func addressOf(b []byte) uintptr { return uintptr(unsafe.Pointer(unsafe.SliceData(b))) }

// faulted is the byte of the file that a memory fault was about.
func (m *Mapping) faulted(p any) (at int64, ok bool) {
	fault, ok := p.(interface{ Addr() uintptr })
	if !ok || len(m.data) == 0 {
		return 0, false
	}
	at = int64(fault.Addr()) - int64(addressOf(m.data))
	return at, at >= 0 && at < int64(len(m.data))+granule
}

// Guard calls f, which reads the buffer's bytes on the host. Where they are those of a file that cannot be read any
// more, that is an error.
func (b *Buffer) Guard(f func() error) error {
	if b == nil || b.blk.mapping == nil {
		return f()
	}
	return b.blk.mapping.guarded(f)
}

// Mapped reports whether the buffer's bytes are those of a file.
func (b *Buffer) Mapped() bool { return b.blk.mapping != nil }

// MappedBuffer is a buffer of n > 0 bytes of a mapping from offset on. It costs no memory, and keeps the mapping. It
// fails with ErrNotMapped where the driver has no use for such memory or the offset does not suit it.
func (d *Device) MappedBuffer(m *Mapping, offset, n int64) (*Buffer, error) {
	if offset < 0 || n <= 0 || offset > m.Len()-n {
		return nil, fmt.Errorf("[alloc] %d bytes from byte %d on of %s, which has %d", n, offset, m.name, m.Len())
	}
	if most := d.info.Limits.MaxBufferBytes; most > 0 && n > most {
		return nil, fmt.Errorf("[alloc] %s is more than the largest buffer of device %s, %s", formatBytes(n),
			d.info.Name, formatBytes(most))
	}
	return d.pool.mapped(m, offset, n)
}

// mapped is MappedBuffer. All buffers of a mapping lie in one block, which is in no list of the pool.
func (p *pool) mapped(m *Mapping, offset, n int64) (*Buffer, error) {
	driver, ok := Capability[HostMapper](p.dev)
	if !ok {
		return nil, ErrNotMapped
	}
	p.mu.Lock()
	defer p.mu.Unlock()
	if p.closed.Load() {
		return nil, errClosed("alloc")
	}
	blk := p.mappings[m]
	if blk == nil {
		mem, align, err := driver.MapHost(m.data)
		if err != nil {
			return nil, fmt.Errorf("[alloc] device %s refuses the mapping of %s: %w", p.dev.info.Name, m.name, err)
		}
		blk = &block{mem: mem, size: m.Len(), partial: -1, mapping: m, align: max(align, 1)}
		if p.mappings == nil {
			p.mappings = map[*Mapping]*block{}
		}
		p.mappings[m] = blk
	}
	if offset%blk.align != 0 {
		if blk.used == 0 {
			p.forget(blk)
		}
		return nil, ErrNotMapped
	}
	if blk.used++; blk.used == 1 {
		m.Retain()
	}
	p.ids++
	b := p.newBuffer()
	b.pool, b.id, b.blk, b.offset = p, p.ids, blk, offset
	b.lies(n)
	b.refs.Store(1)
	p.live++
	p.link(b)
	return b, nil
}

// freeMapped takes a buffer of a mapping back. Called with mu held.
func (p *pool) freeMapped(b *Buffer) {
	p.live--
	p.unlink(b)
	blk := b.blk
	if blk.used--; blk.used == 0 {
		p.forget(blk)
		blk.mapping.Release()
	}
}

// forget ends the device's use of a mapping that no buffer lies in. Without retention a command buffer may still run
// that reads there: then the mapping stays, for the life of the device. Called with mu held.
func (p *pool) forget(blk *block) {
	if !p.dev.retain && p.pending > 0 {
		blk.mapping.Retain()
		return
	}
	delete(p.mappings, blk.mapping)
	if driver, ok := Capability[HostMapper](p.dev); ok && !p.closed.Load() {
		driver.UnmapHost(blk.mem)
	}
}

package apple

import (
	"fmt"
	"unsafe"

	"github.com/mlxlua/mlxlua/metal"
	"github.com/mlxlua/mlxlua/metal/apple/objc"
)

// allocation is memory that kernels use: pages of this process, which Metal's buffer only refers to.
type allocation struct {
	bytes   []byte
	buffer  objc.Object
	mapping []byte // of the system's, to be given back; nil: somebody else's
}

// release gives an allocation back, the buffer first.
func (a *allocation) release(c *objc.Caller) error {
	c.Release(a.buffer)
	if a.mapping == nil {
		return nil
	}
	return unmapPages(a.mapping)
}

// aligned is n bytes of a mapping from the first page of Apple's on.
func aligned(mapping []byte, n int) []byte {
	skip := -int(addressOf(mapping)) & (pageBytes - 1)
	return mapping[skip : skip+n : skip+n]
}

// addressOf is where a slice's memory begins.
func addressOf(b []byte) uintptr { return uintptr(unsafe.Pointer(unsafe.SliceData(b))) }

// wholePages is a number of bytes rounded up to pages of Apple's.
func wholePages(n int64) int64 { return (n + pageBytes - 1) &^ (pageBytes - 1) }

// refer makes a buffer of Metal's for whole pages, 0 if Metal refuses. Hazards among command buffers of all queues are
// tracked by Metal, as it does by default; inside of an encoder that is what our barriers are for.
func (d *Driver) refer(c *objc.Caller, pages []byte) objc.Object {
	return c.Object(d.device, objc.NewBufferWithBytesNoCopy, objc.Bytes(pages), objc.Num(uint64(len(pages))),
		objc.Num(storageShared), objc.Obj(0))
}

// Alloc returns n bytes of zeroed memory: whole pages of their own.
func (d *Driver) Alloc(n int64) (metal.Memory, error) {
	if limit := d.info.Limits.MaxBufferBytes; n <= 0 || n > limit-pageBytes {
		return metal.Memory{}, fmt.Errorf("[alloc] %d bytes: the limit is %d", n, limit)
	}
	var a *allocation
	err := d.call(func(c *objc.Caller) error {
		pages, mapping, err := mapPages(int(wholePages(n)))
		if err != nil {
			return fmt.Errorf("[alloc] %d bytes: %w", n, err)
		}
		a = &allocation{bytes: pages[:n:n], mapping: mapping, buffer: d.refer(c, pages)}
		if a.buffer == 0 {
			_ = unmapPages(mapping)
			return fmt.Errorf("[alloc] %d bytes: Metal makes no buffer of them", n)
		}
		d.mu.Lock()
		d.memory[a] = struct{}{}
		d.mu.Unlock()
		return nil
	})
	if err != nil {
		return metal.Memory{}, err
	}
	return metal.Memory{Size: n, Host: a.bytes, Handle: a}, nil
}

// Free gives memory back. Memory that was freed before, or that Close has freed, is ignored.
func (d *Driver) Free(m metal.Memory) {
	a, ok := m.Handle.(*allocation)
	if !ok {
		return
	}
	d.mu.Lock()
	_, ours := d.memory[a]
	ours = ours && !d.closed
	if ours {
		delete(d.memory, a)
		d.busy.Add(1)
	}
	d.mu.Unlock()
	if ours {
		d.with(func(c *objc.Caller) { _ = a.release(c) })
		d.busy.Done()
	}
}

// Read copies from memory.
func (d *Driver) Read(dst []byte, mem metal.Memory, offset int64) error {
	copy(dst, mem.Handle.(*allocation).bytes[offset:])
	return nil
}

// Write copies to memory.
func (d *Driver) Write(mem metal.Memory, offset int64, src []byte) error {
	copy(mem.Handle.(*allocation).bytes[offset:], src)
	return nil
}

// mappedAlign is what buffers in a file begin at: no scalar of Metal's needs more.
const mappedAlign = 8

// MapHost makes memory outside the Go heap, such as a file's pages, memory of the GPU, where it begins with a page of
// Apple's and Metal takes it. The last page is the system's to its end.
func (d *Driver) MapHost(b []byte) (metal.Memory, int64, error) {
	n := wholePages(int64(len(b)))
	if len(b) == 0 || addressOf(b)%pageBytes != 0 || n > d.info.Limits.MaxBufferBytes {
		return metal.Memory{}, 0, metal.ErrNotMapped
	}
	a := &allocation{bytes: b}
	err := d.call(func(c *objc.Caller) error {
		if a.buffer = d.refer(c, unsafe.Slice(unsafe.SliceData(b), n)); a.buffer == 0 {
			return metal.ErrNotMapped
		}
		d.mu.Lock()
		d.memory[a] = struct{}{}
		d.mu.Unlock()
		return nil
	})
	if err != nil {
		return metal.Memory{}, 0, err
	}
	return metal.Memory{Size: int64(len(b)), Host: b, Handle: a}, mappedAlign, nil
}

// UnmapHost ends the use of what MapHost gave.
func (d *Driver) UnmapHost(m metal.Memory) { d.Free(m) }

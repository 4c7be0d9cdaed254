// Package native keeps machine code in memory of its own and enters it.
package native

import (
	"runtime"
	"unsafe"
)

// Code is machine code that can run: pages that are readable and executable, never writable again. They are given back
// when the Code is garbage.
type Code struct {
	entry uintptr // address of the first byte, aligned to a page
}

// New puts machine code into pages of its own. It fails where the system refuses executable pages.
func New(text []byte) (*Code, error) { return put(text, makeExecutable, Unmap) }

// put is New with the system's calls given.
func put(text []byte, allow func([]byte) error, unmap func([]byte)) (*Code, error) {
	pages, err := Map(len(text))
	if err != nil {
		return nil, err
	}
	copy(pages, text)
	if err := allow(pages); err != nil {
		unmap(pages)
		return nil, err
	}
	c := &Code{entry: uintptr(unsafe.Pointer(unsafe.SliceData(pages)))}
	runtime.AddCleanup(c, unmap, pages)
	return c, nil
}

// Call enters the code at an offset in bytes, with the address of a block in its block register, and returns when it
// leaves. A fault in it is a Go panic if debug.SetPanicOnFault is on. The caller keeps the block alive.
func (c *Code) Call(offset int, block unsafe.Pointer) {
	enter(c.entry+uintptr(offset), uintptr(block))
	runtime.KeepAlive(c)
}

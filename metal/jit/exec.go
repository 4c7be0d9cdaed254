package jit

import (
	"runtime"
	"unsafe"
)

// execMem is machine code that can run: pages that are readable and executable, never writable again. They are given
// back when the execMem is garbage.
type execMem struct {
	entry uintptr // address of the code's first byte, aligned to a page
	bytes int
}

// newExecMem puts code into pages of its own.
func newExecMem(code []byte) (*execMem, error) { return putCode(code, makeExecutable, unmapPages) }

// putCode is newExecMem with the system's calls given.
func putCode(code []byte, allow func([]byte) error, unmap func([]byte)) (*execMem, error) {
	pages, err := mapPages(len(code))
	if err != nil {
		return nil, err
	}
	copy(pages, code)
	if err := allow(pages); err != nil {
		unmap(pages)
		return nil, err
	}
	m := &execMem{entry: uintptr(unsafe.Pointer(unsafe.SliceData(pages))), bytes: len(pages)}
	runtime.AddCleanup(m, unmap, pages)
	return m, nil
}

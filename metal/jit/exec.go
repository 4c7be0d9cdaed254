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
func newExecMem(code []byte) (*execMem, error) {
	pages, err := mapPages(len(code))
	if err != nil {
		return nil, err
	}
	copy(pages, code)
	if err := makeExecutable(pages); err != nil {
		unmapPages(pages)
		return nil, err
	}
	m := &execMem{entry: uintptr(unsafe.Pointer(unsafe.SliceData(pages))), bytes: len(pages)}
	runtime.AddCleanup(m, unmapPages, pages)
	return m, nil
}

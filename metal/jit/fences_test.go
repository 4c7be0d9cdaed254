//go:build linux || darwin

package jit_test

import (
	"os"
	"syscall"
	"unsafe"
)

// fenced is memory for a case's buffers, each between pages that cannot be touched, so that an access outside of a
// buffer, though it changes nothing, does not go unseen.
type fenced struct{ slots [][]byte }

// place returns copies of the buffers. Some end at a fence, others begin behind one, at their offset from a multiple
// of 64.
func (f *fenced) place(seed uint64, from [][]byte) [][]byte {
	r, page := make([][]byte, len(from)), os.Getpagesize()
	for i, b := range from {
		if i == len(f.slots) {
			f.slots = append(f.slots, nil)
		}
		if len(f.slots[i]) < len(b)+64 {
			f.slots[i] = between(len(b)+64, page)
		}
		s := f.slots[i]
		at := len(s) - len(b)
		if (seed/2+uint64(i))%3 == 0 {
			at = int(uintptr(unsafe.Pointer(unsafe.SliceData(b))) % 64)
		}
		r[i] = s[at : at+len(b) : at+len(b)]
		copy(r[i], b)
	}
	return r
}

// between returns whole pages for n bytes, with fences. They stay: there are few.
func between(n, page int) []byte {
	n = (n + page - 1) / page * page
	m, err := syscall.Mmap(-1, 0, n+2*page, syscall.PROT_READ|syscall.PROT_WRITE, syscall.MAP_ANON|syscall.MAP_PRIVATE)
	if err == nil {
		err = syscall.Mprotect(m[:page], syscall.PROT_NONE)
	}
	if err == nil {
		err = syscall.Mprotect(m[page+n:], syscall.PROT_NONE)
	}
	if err != nil {
		panic(err)
	}
	return m[page : page+n : page+n]
}

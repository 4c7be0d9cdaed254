//go:build unix

package apple

import (
	"os"
	"syscall"
)

// mapPages returns zeroed pages of the system's, n bytes at a multiple of Apple's page, and the mapping that they are
// in.
func mapPages(n int) (pages, mapping []byte, err error) {
	more := max(0, pageBytes-os.Getpagesize())
	mapping, err = syscall.Mmap(-1, 0, n+more, syscall.PROT_READ|syscall.PROT_WRITE, syscall.MAP_ANON|syscall.MAP_PRIVATE)
	if err != nil {
		return nil, nil, os.NewSyscallError("mmap", err)
	}
	return aligned(mapping, n), mapping, nil
}

func unmapPages(mapping []byte) error { return os.NewSyscallError("munmap", syscall.Munmap(mapping)) }

//go:build (amd64 || arm64) && (linux || darwin)

package native

import (
	"os"
	"syscall"
)

// Map returns zeroed pages outside the Go heap, for at least n bytes.
func Map(n int) ([]byte, error) {
	page := os.Getpagesize()
	n = max(n+page-1, page) &^ (page - 1)
	return syscall.Mmap(-1, 0, n, syscall.PROT_READ|syscall.PROT_WRITE, syscall.MAP_ANON|syscall.MAP_PRIVATE)
}

// Unmap gives back pages of Map.
func Unmap(pages []byte) { _ = syscall.Munmap(pages) } // it fails for nothing that Map gave

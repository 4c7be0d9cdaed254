//go:build linux || darwin

package native

import "syscall"

// makeExecutable lets pages be executed, and never be written again.
func makeExecutable(pages []byte) error {
	return syscall.Mprotect(pages, syscall.PROT_READ|syscall.PROT_EXEC)
}

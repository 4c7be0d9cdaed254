//go:build linux || darwin

package native

import "syscall"

// enter calls machine code at an address with RBP = block. The code is a leaf on the goroutine's own stack: it leaves
// RSP as it is, calls nothing, and may change every other register. So the garbage collector waits for it, profilers
// see an unknown frame, and a fault in it is a Go panic here if debug.SetPanicOnFault is on.
func enter(entry, block uintptr)

// makeExecutable lets pages be executed, and never be written again.
func makeExecutable(pages []byte) error {
	return syscall.Mprotect(pages, syscall.PROT_READ|syscall.PROT_EXEC)
}

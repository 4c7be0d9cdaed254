//go:build linux || darwin

package native

import (
	"syscall"
	"unsafe"
)

// enter calls machine code at an address with R20 = block. The code is a leaf on the goroutine's own stack: it leaves
// R18, R28, R29, R30 and RSP as they are, calls nothing, and may change every other register. So the garbage collector
// waits for it, profilers see an unknown frame, and a fault in it is a Go panic here if debug.SetPanicOnFault is on.
func enter(entry, block uintptr)

// flush makes the processor fetch what was written to memory as instructions.
func flush(from, to uintptr)

// makeExecutable lets pages be executed, and never be written again. Pages of macOS that are mapped without MAP_JIT may
// change so unless the program is signed with a hardened runtime.
func makeExecutable(pages []byte) error {
	if err := syscall.Mprotect(pages, syscall.PROT_READ|syscall.PROT_EXEC); err != nil {
		return err
	}
	from := uintptr(unsafe.Pointer(unsafe.SliceData(pages)))
	flush(from, from+uintptr(len(pages)))
	return nil
}

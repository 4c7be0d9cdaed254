//go:build linux || darwin || windows

package native

// enter calls machine code at an address with RBP = block. The code is a leaf on the goroutine's own stack: it leaves
// RSP as it is, calls nothing, and may change every other register. So the garbage collector waits for it, profilers
// see an unknown frame, and on Linux and macOS a fault in it is a Go panic here if debug.SetPanicOnFault is on. Windows
// ends the program at a fault: Go's runtime takes only those of Go's own code for panics there.
func enter(entry, block uintptr)

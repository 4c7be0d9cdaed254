//go:build amd64 || arm64

package goroutine

// ID is the running goroutine's: no other goroutine has it as long as this one lives. It is the address of what the
// runtime keeps of it, which does not move.
func ID() uintptr

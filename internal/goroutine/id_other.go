//go:build !amd64 && !arm64

package goroutine

// ID is the running goroutine's: no other goroutine has it as long as this one lives.
func ID() uintptr { return number() }

//go:build amd64 || arm64

package native

// Pause takes some tens of ns, in which the processor does next to nothing: for loops that wait for another goroutine.
// What else runs on the same core has its units meanwhile.
func Pause()

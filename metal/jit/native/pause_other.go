//go:build !amd64 && !arm64

package native

// Pause does nothing.
func Pause() {}

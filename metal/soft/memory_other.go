//go:build !unix && !windows

package soft

// Here the Go heap serves: there is no other memory.

func mapMemory(n int) ([]byte, error) { return make([]byte, n), nil }

func unmapMemory([]byte) error { return nil }

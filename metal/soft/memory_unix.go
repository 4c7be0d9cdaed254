//go:build unix

package soft

import "golang.org/x/sys/unix"

func mapMemory(n int) ([]byte, error) {
	b, err := unix.Mmap(-1, 0, n, unix.PROT_READ|unix.PROT_WRITE, unix.MAP_ANON|unix.MAP_PRIVATE)
	if err == nil && n >= largeMapping {
		adviseLarge(b)
	}
	return b, err
}

func unmapMemory(b []byte) error { return unix.Munmap(b) }

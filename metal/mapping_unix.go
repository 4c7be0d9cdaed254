//go:build linux || darwin || freebsd || netbsd || openbsd || dragonfly

package metal

import (
	"os"
	"syscall"
)

// mapFile maps the first n bytes of a file, which is at least so long. Nobody is to write there; who does by mistake
// writes to pages of its own, or faults where the system will not promise memory for those.
func mapFile(f *os.File, n int) ([]byte, func() error, error) {
	var b []byte
	var err error
	for _, access := range []int{syscall.PROT_READ | syscall.PROT_WRITE, syscall.PROT_READ} {
		b, err = syscall.Mmap(int(f.Fd()), 0, n, access, syscall.MAP_PRIVATE|noReserve)
		if err == nil {
			return b, func() error { return syscall.Munmap(b) }, nil
		}
	}
	return nil, nil, os.NewSyscallError("mmap", err)
}

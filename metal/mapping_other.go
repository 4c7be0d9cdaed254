//go:build !(linux || darwin || freebsd || netbsd || openbsd || dragonfly || windows)

package metal

import (
	"io"
	"os"
)

// mapFile reads the first n bytes of a file: this system has no memory-mapped files.
func mapFile(f *os.File, n int) ([]byte, func() error, error) {
	b := make([]byte, n)
	_, err := io.ReadFull(io.NewSectionReader(f, 0, int64(n)), b)
	return b, func() error { return nil }, err
}

//go:build darwin || dragonfly || freebsd || linux || netbsd || openbsd

package fetch

import (
	"errors"
	"fmt"
	"os"
	"syscall"
)

// tryLock locks a file for this program, if no other one has it. Closing the file unlocks it.
func tryLock(f *os.File) (bool, error) {
	err := syscall.Flock(int(f.Fd()), syscall.LOCK_EX|syscall.LOCK_NB)
	switch {
	case err == nil, errors.Is(err, syscall.ENOSYS), errors.Is(err, syscall.ENOTSUP): // some file systems have no locks
		return true, nil
	case errors.Is(err, syscall.EWOULDBLOCK), errors.Is(err, syscall.EINTR):
		return false, nil
	}
	return false, fmt.Errorf("[pull] the cache cannot be locked: %w", err)
}

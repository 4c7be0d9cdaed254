package soft

import "golang.org/x/sys/unix"

// adviseLarge asks for pages of 2 MiB: 500 times fewer faults on first touch, and kernels that stream through arrays
// miss fewer translations. Where the system has none it stays as it is.
func adviseLarge(b []byte) { _ = unix.Madvise(b, unix.MADV_HUGEPAGE) }

//go:build unix

package tokenizer

import (
	"syscall"
	"time"
)

// cpuTime is the time that the processor spent on this process: wall time says nothing on a busy machine.
func cpuTime() time.Duration {
	var u syscall.Rusage
	if err := syscall.Getrusage(syscall.RUSAGE_SELF, &u); err != nil {
		return 0
	}
	return time.Duration(u.Utime.Nano() + u.Stime.Nano())
}

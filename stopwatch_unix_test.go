//go:build unix

package mlxlua_test

import (
	"syscall"
	"time"
)

// processTime is how long processors have worked for the program.
func processTime() time.Duration {
	var u syscall.Rusage
	if err := syscall.Getrusage(syscall.RUSAGE_SELF, &u); err != nil {
		panic(err)
	}
	return time.Duration(u.Utime.Nano() + u.Stime.Nano())
}

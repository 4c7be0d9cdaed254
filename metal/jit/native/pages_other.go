//go:build !(amd64 && (linux || darwin || windows)) && !(arm64 && (linux || darwin))

package native

import (
	"errors"
	"runtime"
)

var errNoExec = errors.New("no machine code for " + runtime.GOOS + "/" + runtime.GOARCH)

// Map returns an error: there is no machine code here.
func Map(int) ([]byte, error) { return nil, errNoExec }

func makeExecutable([]byte) error { return errNoExec }

// Unmap does nothing: Map gives no pages.
func Unmap([]byte) {}

// enter is never reached: no code can be made executable here.
func enter(_, _ uintptr) {}

//go:build !amd64 || (!linux && !darwin)

package jit

import (
	"errors"
	"runtime"
)

var errNoExec = errors.New("no machine code for " + runtime.GOOS + "/" + runtime.GOARCH)

func mapPages(int) ([]byte, error) { return nil, errNoExec }

func makeExecutable([]byte) error { return errNoExec }

func unmapPages([]byte) {}

// enter is never reached: no code can be made executable here.
func enter(_, _ uintptr) {}

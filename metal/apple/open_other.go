//go:build !darwin

package apple

import "errors"

// Open makes a driver of a Mac's GPU.
func Open() (*Driver, error) { return nil, errors.New("GPUs of Apple's are used on macOS only") }

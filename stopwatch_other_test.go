//go:build !unix

package mlxlua_test

import "time"

var started = time.Now()

// processTime is the time of the clock, where nothing better is known.
func processTime() time.Duration { return time.Since(started) }

//go:build !unix

package tokenizer

import "time"

var started = time.Now()

// cpuTime is wall time where there is nothing better.
func cpuTime() time.Duration { return time.Since(started) }

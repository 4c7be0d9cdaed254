package mlxlua_test

import "time"

// stopwatch tells how long something has taken of what the machine gave it: the time of the clock, or that of the
// processors where this is less, because other programs had them. A bound of it holds on a busy machine too.
func stopwatch() func() time.Duration {
	begun, before := time.Now(), processTime()
	return func() time.Duration { return min(time.Since(begun), processTime()-before) }
}

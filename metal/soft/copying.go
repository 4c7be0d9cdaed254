package soft

import "sync/atomic"

// copying is a copy of memory that goroutines share, as they share a launch: one of them copies a part of what
// memory gives only.
type copying struct {
	dst, src []byte // of one length, and apart
	next     atomic.Int64
}

const (
	copyPart = 128 << 10 // bytes that one copies at a time
	copyLong = 1 << 20   // from so many on it is worth waking a goroutine that sleeps
)

// Work copies parts until none is left.
func (c *copying) Work() {
	for {
		i := c.next.Add(copyPart) - copyPart
		if i >= int64(len(c.src)) {
			return
		}
		copy(c.dst[i:], c.src[i:min(i+copyPart, int64(len(c.src)))])
	}
}

// Parallelism is how many may usefully Work at once, and whether those who sleep should.
func (c *copying) Parallelism() (goroutines int, long bool) {
	return (len(c.src) + copyPart - 1) / copyPart, len(c.src) >= copyLong
}

// Err is nil: memory that nobody maps from a file can be copied.
func (c *copying) Err() error { return nil }

// Panicked goes on with a panic of Work.
func (c *copying) Panicked(v any) { panic(v) }

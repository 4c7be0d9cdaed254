package kerneltest

import (
	"fmt"
	"math/rand/v2"
	"strings"
)

// text is what has been written of a program, and the chance that decides what follows.
type text struct {
	r     *rand.Rand
	b     strings.Builder
	depth int // of blocks
	names int // for fresh names
}

func (t *text) n(n int) int                { return t.r.IntN(n) }
func (t *text) chance(percent int) bool    { return t.r.IntN(100) < percent }
func (t *text) pick(from ...string) string { return from[t.r.IntN(len(from))] }

func (t *text) fresh(prefix string) string {
	t.names++
	return fmt.Sprintf("%s%d", prefix, t.names)
}

func (t *text) line(f string, args ...any) {
	t.b.WriteString(strings.Repeat("  ", t.depth))
	fmt.Fprintf(&t.b, f+"\n", args...)
}

func (t *text) open(f string, args ...any)  { t.line(f+" {", args...); t.depth++ }
func (t *text) close(f string, args ...any) { t.depth--; t.line("}"+f, args...) }

package tokenizer

import (
	"encoding/json"
	"fmt"
	"math/rand/v2"
	"os"
	"regexp"
	"runtime"
	"strings"
	"testing"

	"github.com/mlxlua/mlxlua/internal/serial"
	"github.com/stretchr/testify/require"
)

// splits are the places where matches begin and end, but for empty ones.
func splits(t *testing.T, p *pattern, text string) []int {
	out := []int{}
	require.NoError(t, p.each(text, func(from, to int, match bool) {
		if match && from < to {
			out = append(out, from, to)
		}
	}))
	return out
}

// TestPatterns: patterns find what Python's tokenizers find, as scanners and translated: see patterns in peer.py.
func TestPatterns(t *testing.T) {
	t.Parallel()
	raw, err := os.ReadFile("testdata/pairs/patterns.json")
	require.NoError(t, err)
	var cases []struct {
		Pattern string
		Texts   []string
		Found   [][]int
	}
	require.NoError(t, json.Unmarshal(raw, &cases))
	scanned := map[string]bool{}
	for _, c := range cases {
		text, linear, err := translated(c.Pattern)
		require.NoError(t, err, c.Pattern)
		p := &pattern{}
		require.NoError(t, p.compileTranslated(text, linear), c.Pattern)
		for i, s := range c.Texts {
			require.Equal(t, c.Found[i], splits(t, p, s), "%s in %q", c.Pattern, s)
			if scan := scanners[c.Pattern]; scan != nil {
				scanned[c.Pattern] = true
				require.Equal(t, c.Found[i], splits(t, &pattern{scan: scan}, s), "scanner of %s in %q", c.Pattern, s)
			}
		}
	}
	require.Len(t, scanned, len(scanners))
}

// TestPatternsRefused: what is not known to mean the same is an error that says what.
func TestPatternsRefused(t *testing.T) {
	t.Parallel()
	for text, want := range map[string]string{
		`a++`: "++ is", `a?+`: "?+ is", `\p{Klingon}`: `\p{Klingon} is`, `\h`: `\h is`, `(?m)a`: "(?m is",
		`(?i)a`: "(?i is", `[[:alpha:]]`: "[: is", `(a)\1`: `\1 is`, `(?i:groß)`: `'ß' in (?i: is`,
		`(?i:ss)`: `"ss" in (?i: is`, `a{2}?`: "}? is", `a{1,2}+`: "}+ is", `a{,3}`: "a { that begins",
		`(a`: "not closed", `a)`: "not opened", `[a`: "not closed", `a\`: "the end", `[a-\d]`: "a range to",
		`[\d-z]`: "a range from", `(?i:\p{Lu})`: `\p{Lu} in (?i: is`, `(?<n>a)`: "(?<", `\p{w}`: `\p{w} is`,
		`[b-a]`: "a range to", `\pL`: `\p{}`, `\xZZ`: `\x is`, `(?~a)`: "(?~ is", `\p{lower}`: `\p{lower}`,
		`\p{scripts}`: "scripts",
	} {
		_, _, err := translated(text)
		require.ErrorContains(t, err, want, text)
	}
}

// TestLargePatterns: a class of many members takes room, and so time, in proportion to them, and a name's set is read
// once.
func TestLargePatterns(t *testing.T) {
	serial.Because(t, "it measures the process's memory")
	var members strings.Builder
	for i := range 8000 {
		fmt.Fprintf(&members, `\x{%x}`, 0x4E00+i*7919%20000)
	}
	var before, after runtime.MemStats
	runtime.ReadMemStats(&before)
	many, _, err := translated("[" + members.String() + "]")
	runtime.ReadMemStats(&after)
	require.NoError(t, err)
	require.Less(t, after.TotalAlloc-before.TotalAlloc, uint64(64<<20))
	require.Zero(t, testing.AllocsPerRun(3, func() { namedSet("L") }))
	re := regexp.MustCompile("^" + many + "$")
	for i := range 8000 {
		require.True(t, re.MatchString(string(rune(0x4E00+i*7919%20000))))
	}
	require.False(t, re.MatchString(string(rune(0x4E00+8000*7919%20000))))
	deep, _, err := translated(strings.Repeat("[", 200) + `\p{Lu}` + strings.Repeat("]", 200))
	require.NoError(t, err)
	plain, _, err := translated(`\p{lu}`)
	require.NoError(t, err)
	require.Equal(t, plain, deep)
}

// TestCharsets: sets obey the laws of sets.
func TestCharsets(t *testing.T) {
	t.Parallel()
	r := rand.New(rand.NewPCG(1, 2))
	random := func() (out charset) {
		for range r.IntN(4) {
			from := r.Int32N(12)
			out = out.union(charset{{from, from + r.Int32N(5)}})
		}
		return out
	}
	has := func(a charset, c rune) bool {
		for _, x := range a {
			if c >= x.from && c <= x.to {
				return true
			}
		}
		return false
	}
	for range 300 {
		a, b := random(), random()
		for c := rune(0); c < 20; c++ {
			require.Equal(t, has(a, c) || has(b, c), has(a.union(b), c))
			require.Equal(t, has(a, c) && has(b, c), has(a.intersection(b), c))
			require.Equal(t, !has(a, c), has(a.complement(), c))
		}
	}
}

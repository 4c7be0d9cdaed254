package tokenizer

import (
	"encoding/json"
	"math/rand/v2"
	"os"
	"path/filepath"
	"strings"
	"testing"
	"unicode/utf8"

	"github.com/stretchr/testify/require"
)

// TestStream: what a stream gives out, put together, is what Python makes of all ids at once, and never ends within a
// character.
func TestStream(t *testing.T) {
	t.Parallel()
	raw, err := os.ReadFile("testdata/golden.json")
	require.NoError(t, err)
	var kinds map[string][]answer
	require.NoError(t, json.Unmarshal(raw, &kinds))
	for kind, answers := range kinds {
		tok := load(t, kind)
		early := 0
		for _, a := range answers {
			for i, special := range []bool{false, true} {
				s := tok.Stream(special)
				var out strings.Builder
				for _, id := range a.ids {
					part := s.Push(id)
					require.True(t, utf8.ValidString(part), "%s: %q", kind, part)
					out.WriteString(part)
				}
				early += out.Len()
				last := s.Finish()
				require.True(t, utf8.ValidString(last))
				require.Equal(t, a.decoded[i], out.String()+last, kind)
			}
		}
		require.Positive(t, early, "%s: everything is held back until the end", kind)
	}
}

// TestStreamHoldsBack: the bytes of a character wait for each other, and nothing else does.
func TestStreamHoldsBack(t *testing.T) {
	t.Parallel()
	tok := load(t, "gpt2")
	ids, err := tok.Encode("a字b", false)
	require.NoError(t, err)
	s := tok.Stream(false)
	var parts []string
	for _, id := range ids {
		parts = append(parts, s.Push(id))
	}
	require.Equal(t, []string{"a", "", "", "字", "b"}, parts)
	require.Empty(t, s.Finish())

	s = tok.Stream(false)
	require.Equal(t, "a", s.Push(ids[0]))
	require.Empty(t, s.Push(ids[1]))
	require.Equal(t, "\uFFFD", s.Finish(), "half a character at the end")

	// Tokens that are one text when they come to a replacement: what could begin a match waits, no more.
	var out sink
	r := decodeReplace(&pattern{literal: "aab"}, "X", &out)
	parts = nil
	for _, part := range []string{"a", "aa", "ab", "caa", "b"} {
		r.part(part, false)
		parts = append(parts, out.take())
	}
	r.part("", true)
	require.Equal(t, []string{"", "a", "aX", "c", "X"}, parts)
	require.Empty(t, out.take())

	require.Equal(t, "ab", tok.Decode([]int32{ids[0], 1 << 20, -1, ids[4]}, false), "ids of nothing count as nothing")
}

// TestRandomIDs: any ids decode the same as a stream, split anywhere.
func TestRandomIDs(t *testing.T) {
	t.Parallel()
	files, err := filepath.Glob("testdata/*.json")
	require.NoError(t, err)
	rng := rand.New(rand.NewPCG(1, 2))
	for _, f := range files {
		kind := strings.TrimSuffix(filepath.Base(f), ".json")
		if kind == "golden" {
			continue
		}
		tok := load(t, kind)
		for range 50 {
			ids := make([]int32, rng.IntN(30))
			for i := range ids {
				ids[i] = rng.Int32N(int32(tok.Size()))
			}
			require.True(t, utf8.ValidString(tok.Decode(ids, rng.IntN(2) == 0)), kind)
		}
	}
}

package tokenizer

import (
	"encoding/json"
	"fmt"
	"os"
	"path/filepath"
	"testing"

	"github.com/stretchr/testify/require"
)

// TestPairs: pairs of texts and batches, truncated and padded, are what Python makes of them.
func TestPairs(t *testing.T) {
	raw, err := os.ReadFile("testdata/pairs/golden.json")
	require.NoError(t, err)
	var cases []json.RawMessage
	require.NoError(t, json.Unmarshal(raw, &cases))
	require.Greater(t, len(cases), 100)
	for _, c := range cases {
		var kind string
		var truncation, padding json.RawMessage
		var texts []string
		var special bool
		var want [][5][]int
		require.NoError(t, json.Unmarshal(c, &[]any{&kind, &truncation, &padding, &texts, &special, &want}))
		file, err := os.ReadFile(filepath.Join("testdata", kind+".json"))
		require.NoError(t, err)
		var parts map[string]json.RawMessage
		require.NoError(t, json.Unmarshal(file, &parts))
		parts["truncation"], parts["padding"] = truncation, padding
		file, err = json.Marshal(parts)
		require.NoError(t, err)
		tok, err := New(file)
		require.NoError(t, err)
		var got []*Encoding
		if len(texts) == 2 {
			var e *Encoding
			e, err = tok.EncodePair(texts[0], texts[1], special)
			got = []*Encoding{e}
		} else {
			got, err = tok.EncodeBatch(texts, special)
		}
		if want == nil {
			require.Error(t, err, string(c))
			continue
		}
		require.NoError(t, err, string(c))
		for i, e := range got {
			spans := []int{}
			for _, s := range e.Spans {
				spans = append(spans, s.From, s.To)
			}
			have := [5][]int{numbersOf(e.IDs), numbersOf(e.Types), bitsOf(e.Mask), bitsOf(e.Special), spans}
			require.Equal(t, fmt.Sprint(want[i]), fmt.Sprint(have), string(c))
		}
	}
}

func numbersOf(in []int32) []int {
	out := make([]int, len(in))
	for i, n := range in {
		out[i] = int(n)
	}
	return out
}

func bitsOf(in []bool) []int {
	out := make([]int, len(in))
	for i, b := range in {
		if b {
			out[i] = 1
		}
	}
	return out
}

// TestCut: a vocabulary of SentencePiece whose merges stay within words is split into words, which changes nothing (its
// golden data say so) but the time.
func TestCut(t *testing.T) {
	require.Equal(t, "▁", load(t, "llama2-words").model.(*bpe).cutAt)
	require.Empty(t, load(t, "llama2").model.(*bpe).cutAt, "has merges across words")
}

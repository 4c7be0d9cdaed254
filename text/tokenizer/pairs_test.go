package tokenizer

import (
	"encoding/json"
	"fmt"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/stretchr/testify/require"
)

// TestPairs: pairs of texts and batches, truncated and padded, are what Python makes of them.
func TestPairs(t *testing.T) {
	t.Parallel()
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
		tok, err = tok.Fitted()
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

// A tokenizer that was not asked neither cuts nor fills, as in transformers and mlx-lm, whatever the file has under
// truncation and padding: a prompt is read as a whole.
func TestNothingIsCutOrFilledUnasked(t *testing.T) {
	t.Parallel()
	file, err := os.ReadFile("testdata/llama3.json")
	require.NoError(t, err)
	whole, err := New(file)
	require.NoError(t, err)
	want, err := whole.Encode("There was a time when meadow, grove, and stream", true)
	require.NoError(t, err)
	require.Greater(t, len(want), 5)
	for _, said := range []string{
		`"truncation":{"direction":"Right","max_length":5,"strategy":"LongestFirst","stride":0},"padding":null`,
		`"truncation":null,"padding":{"strategy":{"Fixed":64},"direction":"Left","pad_id":0,"pad_type_id":0,` +
			`"pad_to_multiple_of":null,"pad_token":"!"}`,
		`"truncation":{"max_length":3,"stride":1,"strategy":"Odd"},"padding":{"strategy":"Odd"}`,
	} {
		tok, err := New([]byte(strings.Replace(string(file), `"truncation":null,"padding":null`, said, 1)))
		require.NoError(t, err)
		got, err := tok.Encode("There was a time when meadow, grove, and stream", true)
		require.NoError(t, err)
		require.Equal(t, want, got, said)
		full, err := tok.EncodeFull("There was a time when meadow, grove, and stream", true)
		require.NoError(t, err)
		require.Equal(t, want, full.IDs, said)
		fitted, err := tok.Fitted()
		if err == nil {
			got, err = fitted.Encode("There was a time when meadow, grove, and stream", true)
			require.NoError(t, err)
			require.NotEqual(t, want, got, said)
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
	t.Parallel()
	require.Equal(t, "▁", load(t, "llama2-words").model.(*bpe).cutAt)
	require.Empty(t, load(t, "llama2").model.(*bpe).cutAt, "has merges across words")
}

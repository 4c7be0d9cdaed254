package tokenizer

import (
	"encoding/json"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"

	"github.com/stretchr/testify/require"
	"golang.org/x/text/unicode/norm"
)

// ggufOf is what llama.cpp's converter makes of a tokenizer.json. lost are added tokens of which such a file says less.
func ggufOf(t *testing.T, kind, pre string) (g *GGUF, lost []string) {
	raw, err := os.ReadFile(filepath.Join("testdata", kind+".json"))
	require.NoError(t, err)
	var file struct {
		Added []AddedToken `json:"added_tokens"`
		Model struct {
			Vocab  map[string]int32
			Merges mergeList
		}
	}
	require.NoError(t, json.Unmarshal(raw, &file))
	g = &GGUF{Model: "gpt2", Pre: pre, BOS: -1, EOS: -1, UNK: -1, PAD: -1}
	put := func(id int32, token string, kind int32) {
		for len(g.Tokens) <= int(id) {
			g.Tokens, g.Types = append(g.Tokens, ""), append(g.Types, 5)
		}
		g.Tokens[id], g.Types[id] = token, kind
	}
	for token, id := range file.Model.Vocab {
		put(id, token, ggufNormal)
	}
	for _, a := range file.Added {
		kind := int32(ggufUser)
		if a.Special {
			kind = ggufControl
		}
		put(a.ID, a.Content, kind)
		if a.SingleWord || a.LStrip || a.RStrip || a.Normalized {
			lost = append(lost, a.Content)
		}
		if a.Content == "<s>" {
			g.BOS = a.ID
		}
	}
	for _, m := range file.Model.Merges {
		g.Merges = append(g.Merges, m[0]+" "+m[1])
	}
	return g, lost
}

// Tokenizers of .gguf files give what Python gives with the tokenizer.json that they were converted from.
func TestGGUFBytePairs(t *testing.T) {
	t.Parallel()
	raw, err := os.ReadFile("testdata/golden.json")
	require.NoError(t, err)
	var golden map[string][]answer
	require.NoError(t, json.Unmarshal(raw, &golden))
	for kind, pre := range map[string]string{"gpt2": "gpt-2", "llama3": "llama-bpe", "qwen2": "qwen2", "qwen35": "qwen35",
		"o200k": "gpt-4o", "tekken": "tekken", "deepseek": "deepseek-v3"} {
		t.Run(kind, func(t *testing.T) {
			g, lost := ggufOf(t, kind, pre)
			bos := kind == "llama3"
			g.AddBOS = &bos
			tok, _, err := FromGGUF(g)
			require.NoError(t, err)
			count := 0
			for _, a := range golden[kind] {
				if slices.ContainsFunc(lost, func(s string) bool {
					return strings.Contains(strings.ToLower(norm.NFKC.String(a.text)), strings.ToLower(s))
				}) {
					continue
				}
				count++
				ids, err := tok.Encode(a.text, true)
				require.NoError(t, err)
				require.Equal(t, a.ids, ids, "%q", a.text)
				require.Equal(t, a.decoded[0], tok.Decode(ids, false), "%q", a.text)
			}
			require.Greater(t, count, len(golden[kind])/3)
		})
	}
}

// A SentencePiece model in a .gguf file gives what SentencePiece gives: testdata/pieces.py.
func TestGGUFSentencePiece(t *testing.T) {
	t.Parallel()
	raw, err := os.ReadFile("testdata/gguf/sentencepiece.json")
	require.NoError(t, err)
	var file struct {
		Tokens []string
		Scores []float32
		Types  []int32
		Cases  []pieces
	}
	require.NoError(t, json.Unmarshal(raw, &file))
	no := false
	g := &GGUF{Model: "llama", Tokens: file.Tokens, Scores: file.Scores, Types: file.Types, BOS: 1, EOS: 2, PAD: -1,
		AddBOS: &no}
	tok, config, err := FromGGUF(g)
	require.NoError(t, err)
	require.Equal(t, "<s>", config.BOS)
	for _, c := range file.Cases {
		ids, err := tok.Encode(c.text, true)
		require.NoError(t, err)
		require.Equal(t, c.ids, append([]int32{}, ids...), "%q", c.text)
		require.Equal(t, c.decoded, tok.Decode(ids, false), "%q", c.text)
	}
	g.AddBOS, g.AddEOS = nil, new(bool)
	*g.AddEOS = true
	tok, _, err = FromGGUF(g)
	require.NoError(t, err)
	ids, err := tok.Encode("Hello", true)
	require.NoError(t, err)
	require.Equal(t, []int32{1, 2}, []int32{ids[0], ids[len(ids)-1]})
}

// pieces is [base64 of a text, ids, what the ids decode to].
type pieces struct {
	text, decoded string
	ids           []int32
}

func (p *pieces) UnmarshalJSON(raw []byte) error {
	var text []byte
	err := json.Unmarshal(raw, &[]any{&text, &p.ids, &p.decoded})
	p.text = string(text)
	return err
}

// What is not known is said by its name.
func TestGGUFRefuses(t *testing.T) {
	t.Parallel()
	for want, g := range map[string]*GGUF{
		"there are no tokens":                         {Model: "gpt2"},
		`tokenizer.ggml.pre = "mystery" is not built`: {Model: "gpt2", Pre: "mystery", Tokens: []string{"a"}},
		`tokenizer.ggml.model = "bert" is not built`:  {Model: "bert", Tokens: []string{"a"}},
		"tokenizer.ggml.scores is missing":            {Model: "llama", Tokens: []string{"a"}},
		"1 tokens have 2 types and 0 scores":          {Model: "gpt2", Tokens: []string{"a"}, Types: []int32{1, 1}},
	} {
		_, _, err := FromGGUF(g)
		require.ErrorContains(t, err, want)
	}
}

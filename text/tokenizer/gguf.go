package tokenizer

import (
	"cmp"
	"encoding/json"
	"fmt"
	"maps"
	"slices"
	"strings"
)

// GGUF is what a .gguf file says of its tokenizer, by its keys below tokenizer.ggml. BOS, EOS, UNK and PAD are ids, -1
// for none; the pointers are nil where the file does not say.
type GGUF struct {
	Model  string    // "gpt2": byte-pair encoding behind ByteLevel; "llama": SentencePiece's byte-pair encoding
	Pre    string    // how text is split for "gpt2"
	Tokens []string  // by id
	Merges []string  // of "gpt2": pairs with a space between
	Scores []float32 // of "llama"
	Types  []int32   // token_type, by id; without, all are normal

	BOS, EOS, UNK, PAD int32

	AddBOS, AddEOS, AddSpacePrefix *bool
	ChatTemplate                   string
}

// Types of tokens in .gguf files.
const (
	ggufNormal  = 1
	ggufUnknown = 2
	ggufControl = 3
	ggufUser    = 4 // as an added token that is not special
)

// Splits of text before byte-pair encoding: the patterns are those of the tokenizer.json of the same models.
const (
	threeDigits = contractions + `|[^\r\n\p{L}\p{N}]?\p{L}+|\p{N}{1,3}| ?[^\s\p{L}\p{N}]+[\r\n]*|` + blanks
	oneDigit    = contractions + `|[^\r\n\p{L}\p{N}]?\p{L}+|\p{N}| ?[^\s\p{L}\p{N}]+[\r\n]*|` + blanks
	oneMark     = contractions + `|[^\r\n\p{L}\p{N}]?[\p{L}\p{M}]+|\p{N}| ?[^\s\p{L}\p{M}\p{N}]+[\r\n]*|` + blanks
	casesGPT    = upperWord + contractions + `?|` + capsWord + contractions +
		`?|\p{N}{1,3}| ?[^\s\p{L}\p{N}]+[\r\n/]*|` + blanks
	casesTekken  = upperWord + `|` + capsWord + `|\p{N}| ?[^\s\p{L}\p{N}]+[\r\n/]*|` + blanks
	deepSeekWord = "[!\"#$%&'()*+,\\-./:;<=>?@\\[\\\\\\]^_`{|}~][A-Za-z]+|" +
		`[^\r\n\p{L}\p{P}\p{S}]?[\p{L}\p{M}]+| ?[\p{P}\p{S}]+[\r\n]*|` + blanks
)

// ggufSplit is what a name of tokenizer.ggml.pre stands for.
type ggufSplit struct {
	patterns []string
	whole    bool // words of the vocabulary are one token
	nfc      bool
	bos      bool // where the file does not say whether a beginning is added
}

var ggufSplits = func() map[string]ggufSplit {
	out := map[string]ggufSplit{}
	for names, s := range map[string]ggufSplit{
		"llama-bpe llama3 llama-v3 falcon3 falcon-h1 pixtral": {patterns: []string{threeDigits}, whole: true, bos: true},
		"dbrx smaug-bpe glm4 chatglm-bpe":                     {patterns: []string{threeDigits}},
		"qwen2 deepseek-r1-qwen megrez stablelm2":             {patterns: []string{oneDigit}, nfc: true},
		"qwen35":                                {patterns: []string{oneMark}, nfc: true},
		"gpt-4o llama4":                         {patterns: []string{casesGPT}},
		"tekken":                                {patterns: []string{casesTekken}, whole: true, bos: true},
		"gpt-2 phi-2 mpt olmo jais roberta-bpe": {patterns: []string{gpt2Pattern}},
		"smollm starcoder refact command-r codeshell": {patterns: []string{`\p{N}`, gpt2Pattern}},
		"kimi-k2":                      {patterns: []string{kimiPattern}},
		"bloom poro-chat gpt3-finnish": {patterns: []string{bloomPattern}},
		"deepseek-v3 hunyuan-dense":    {patterns: []string{`\p{N}{1,3}`, cjkPattern, deepSeekWord}},
	} {
		for name := range strings.FieldsSeq(names) {
			out[name] = s
		}
	}
	return out
}()

// object is one of JSON's.
type object = map[string]any

// FromGGUF makes the tokenizer of a .gguf file. A model or a split that it does not know is an error that names it.
func FromGGUF(g *GGUF) (*Tokenizer, *Config, error) {
	raw, err := g.JSON()
	if err != nil {
		return nil, nil, err
	}
	t, err := New(raw)
	if err != nil {
		return nil, nil, fmt.Errorf("[tokenizer] the .gguf file's tokenizer: %w", err)
	}
	return t, &Config{BOS: g.token(g.BOS), EOS: g.token(g.EOS), PAD: g.token(g.PAD), UNK: g.token(g.UNK),
		AddBOS: g.AddBOS, AddEOS: g.AddEOS, ChatTemplate: g.ChatTemplate}, nil
}

// JSON is the tokenizer.json that says the same.
func (g *GGUF) JSON() ([]byte, error) {
	whole := object{"version": "1.0", "added_tokens": g.added()}
	err := g.check()
	switch {
	case err != nil:
	case g.Model == "gpt2":
		err = g.bytePairs(whole)
	case g.Model == "llama":
		err = g.sentencePieces(whole)
	default:
		err = fmt.Errorf("tokenizer.ggml.model = %.99q is not built; these are: gpt2, llama", g.Model)
	}
	if err != nil {
		return nil, fmt.Errorf("[tokenizer] the .gguf file's tokenizer: %w", err)
	}
	return json.Marshal(whole)
}

func (g *GGUF) check() error {
	if len(g.Tokens) == 0 {
		return fmt.Errorf("there are no tokens")
	}
	if g.Types != nil && len(g.Types) != len(g.Tokens) || g.Scores != nil && len(g.Scores) != len(g.Tokens) {
		return fmt.Errorf("%d tokens have %d types and %d scores", len(g.Tokens), len(g.Types), len(g.Scores))
	}
	return nil
}

// token is the token of an id, "" for none.
func (g *GGUF) token(id int32) string {
	if id < 0 || int(id) >= len(g.Tokens) {
		return ""
	}
	return g.Tokens[id]
}

func (g *GGUF) kind(id int) int32 {
	if id >= len(g.Types) {
		return ggufNormal
	}
	return g.Types[id]
}

// added are the tokens that are cut out of a text before it is split.
func (g *GGUF) added() []AddedToken {
	out := []AddedToken{}
	for id, token := range g.Tokens {
		switch g.kind(id) {
		case ggufUnknown, ggufControl:
			out = append(out, AddedToken{ID: int32(id), Content: token, Special: true})
		case ggufUser:
			out = append(out, AddedToken{ID: int32(id), Content: token})
		}
	}
	return out
}

// vocabulary is the ids by tokens. Where a token is there twice the first counts.
func (g *GGUF) vocabulary() map[string]int {
	out := make(map[string]int, len(g.Tokens))
	for id, token := range g.Tokens {
		if _, ok := out[token]; !ok {
			out[token] = id
		}
	}
	return out
}

// ends puts what is added to a text into a tokenizer.json.
func (g *GGUF) ends(whole object, bos bool) {
	if g.AddBOS != nil {
		bos = *g.AddBOS
	}
	single, special := []any{}, object{}
	add := func(id int32) {
		name := g.token(id)
		if name == "" {
			return
		}
		single = append(single, object{"SpecialToken": object{"id": name, "type_id": 0}})
		special[name] = object{"id": name, "ids": []int32{id}, "tokens": []string{name}}
	}
	if bos {
		add(g.BOS)
	}
	single = append(single, object{"Sequence": object{"id": "A", "type_id": 0}})
	if g.AddEOS != nil && *g.AddEOS {
		add(g.EOS)
	}
	if len(single) > 1 {
		pair := append(slices.Clone(single), object{"Sequence": object{"id": "B", "type_id": 1}})
		whole["post_processor"] = object{"type": "TemplateProcessing", "single": single, "pair": pair,
			"special_tokens": special}
	}
}

// bytePairs is the form "gpt2".
func (g *GGUF) bytePairs(whole object) error {
	s, ok := ggufSplits[g.Pre]
	if !ok {
		return fmt.Errorf("tokenizer.ggml.pre = %.99q is not built; these are: %s", g.Pre,
			strings.Join(slices.Sorted(maps.Keys(ggufSplits)), ", "))
	}
	splits := []any{}
	for _, p := range s.patterns {
		splits = append(splits, object{"type": "Split", "pattern": object{"Regex": p}, "behavior": "Isolated",
			"invert": false})
	}
	bytes := object{"type": "ByteLevel", "add_prefix_space": false, "trim_offsets": true, "use_regex": false}
	whole["pre_tokenizer"] = object{"type": "Sequence", "pretokenizers": append(splits, bytes)}
	whole["decoder"] = bytes
	if s.nfc {
		whole["normalizer"] = object{"type": "NFC"}
	}
	merges := g.Merges
	if merges == nil {
		merges = []string{}
	}
	whole["model"] = object{"type": "BPE", "vocab": g.vocabulary(), "merges": merges, "ignore_merges": s.whole}
	g.ends(whole, s.bos)
	return nil
}

// sentencePieces is the form "llama": of all neighbours that are a token together those with the best score are joined
// first, which is byte-pair encoding with all ways to part a token as merges, in the order of its score.
func (g *GGUF) sentencePieces(whole object) error {
	if g.Scores == nil {
		return fmt.Errorf("tokenizer.ggml.scores is missing")
	}
	ids := g.vocabulary()
	type merge struct {
		pair  [2]string
		score float32
	}
	var merges []merge
	for id, token := range g.Tokens {
		if g.kind(id) != ggufNormal || ids[token] != id {
			continue
		}
		for i := range token {
			left, ok := ids[token[:i]]
			right, also := ids[token[i:]]
			if i > 0 && ok && also && g.kind(left) == ggufNormal && g.kind(right) == ggufNormal {
				merges = append(merges, merge{[2]string{token[:i], token[i:]}, g.Scores[id]})
			}
		}
	}
	slices.SortStableFunc(merges, func(a, b merge) int { return cmp.Compare(b.score, a.score) })
	pairs := make([][2]string, len(merges))
	for i, m := range merges {
		pairs[i] = m.pair
	}
	spaces := object{"type": "Replace", "pattern": object{"String": " "}, "content": "▁"}
	decoders := []any{object{"type": "Replace", "pattern": object{"String": "▁"}, "content": " "},
		object{"type": "ByteFallback"}, object{"type": "Fuse"}}
	whole["normalizer"] = spaces
	if g.AddSpacePrefix == nil || *g.AddSpacePrefix {
		whole["normalizer"] = object{"type": "Sequence",
			"normalizers": []any{object{"type": "Prepend", "prepend": "▁"}, spaces}}
		decoders = append(decoders, object{"type": "Strip", "content": " ", "start": 1, "stop": 0})
	}
	whole["decoder"] = object{"type": "Sequence", "decoders": decoders}
	model := object{"type": "BPE", "vocab": ids, "merges": pairs, "byte_fallback": true, "fuse_unk": true}
	if unk := g.token(g.UNK); unk != "" {
		model["unk_token"] = unk
	}
	whole["model"] = model
	g.ends(whole, true)
	return nil
}

package tokenizer

import (
	"strings"
	"testing"

	"github.com/stretchr/testify/require"
)

// split is a pre-tokenizer that splits by a pattern, which is text of JSON.
func split(pattern string) string {
	return `"pre_tokenizer":{"type":"Split","pattern":{"Regex":"` + pattern + `"},"behavior":"Isolated","invert":false}`
}

// sequence is count pre-tokenizers within so many sequences.
func sequence(deep, count int) string {
	return `"pre_tokenizer":` + strings.Repeat(`{"type":"Sequence","pretokenizers":[`, deep) + `{"type":"Whitespace"}` +
		strings.Repeat(`,{"type":"Whitespace"}`, count-1) + strings.Repeat("]}", deep)
}

// TestUnknown: what a file says and we do not know is an error that names it.
func TestUnknown(t *testing.T) {
	t.Parallel()
	with := func(part string) string {
		return strings.Replace(tiny, `"pre_tokenizer":{"type":"Whitespace"}`, part, 1)
	}
	for _, c := range [][2]string{
		{`"pre_tokenizer":{"type":"Wordy"}`, `pre_tokenizer: does not know the pre-tokenizer "Wordy"`},
		{`"pre_tokenizer":{"type":"Whitespace","mode":1}`, `pre_tokenizer: does not know the key "mode"`},
		{`"pre_tokenizer":{"type":"Digits"}`, `pre_tokenizer: there is no "individual_digits"`},
		{`"pre_tokenizer":{}`, `pre_tokenizer: there is no "type"`},
		{`"pre_tokenizer":7`, `pre_tokenizer is no object`},
		{`"normalizer":{"type":"Shout"}`, `normalizer: does not know the normalizer "Shout"`},
		{`"normalizer":{"type":"Precompiled","precompiled_charsmap":"//8="}`, `normalizer: precompiled_charsmap`},
		{
			`"normalizer":{"type":"Sequence","normalizers":[{"type":"NFC"},{"type":"Prepend"}]}`,
			`normalizer.normalizers[1]: there is no "prepend"`,
		},
		{`"decoder":{"type":"Encoder"}`, `decoder: does not know the decoder "Encoder"`},
		{`"decoder":{"type":"Strip","content":"ab","start":0,"stop":0}`, `decoder: content is one character, not "ab"`},
		{`"post_processor":{"type":"Post"}`, `post_processor: does not know the post-processor "Post"`},
		{
			`"post_processor":{"type":"BertProcessing","sep":["x"],"cls":["y",1]}`,
			`post_processor: sep is not a token and its id`,
		},
		{
			`"post_processor":{"type":"TemplateProcessing","single":[{"SpecialToken":{"id":"[X]","type_id":0}}],` +
				`"pair":[],"special_tokens":{}}`,
			`single[0]: does not know the SpecialToken "[X]"`,
		},
		{`"truncation":{"max_length":3,"strategy":"Odd"}`, `truncation: does not know the strategy "Odd"`},
		{`"truncation":{"max_length":3,"stride":1}`, `truncation: stride is 1: the rests of a text`},
		{`"padding":{"strategy":"Odd"}`, `padding: does not know the strategy "Odd"`},
		{`"extra":1`, `tokenizer.json: does not know the key "extra"`},
		{`"version":"2.0"`, `version "2.0" is unknown`},
		{
			`"pre_tokenizer":{"type":"Split","pattern":{"Regex":"[[:alpha:]]"},"behavior":"Isolated","invert":false}`,
			`[: is not supported`,
		},
		{split(strings.Repeat("[", 5_000_000)), `it has 5000000 bytes, at most 65536 are accepted`},
		{split(strings.Repeat("[", 60_000)), `classes are nested more than 200 deep`},
		{split(strings.Repeat("(", 60_000)), `groups are nested more than 200 deep`},
		{split(strings.Repeat(`\\p{L}`, 8000)), `its classes of characters take more than 4194304 bytes of ranges`},
		{sequence(61, 1), `lists are nested more than 60 deep`},
		{sequence(60, 1001), `there are more than 1000 members`},
		{`"pre_tokenizer":{"type":"Sequence","pretokenizers":{}}`, `pretokenizers: it is "{}", want an array`},
		{`"pre_tokenizer":{"type":"Sequence"}`, `there is no "pretokenizers"`},
		{
			`"pre_tokenizer":{"type":"Split","pattern":{"Regex":"a++"},"behavior":"Isolated","invert":false}`,
			`++ is not supported`,
		},
		{`"pre_tokenizer":{"type":"Split","pattern":{"Regex":"("},"behavior":"Isolated","invert":false}`, `pattern "("`},
		{
			`"pre_tokenizer":{"type":"Split","pattern":{"String":"a"},"behavior":"Kept","invert":false}`,
			`does not know the behavior "Kept"`,
		},
		{
			`"pre_tokenizer":{"type":"Split","pattern":{"Glob":"a"},"behavior":"Removed","invert":false}`,
			`pattern is neither String nor Regex`,
		},
		{`"pre_tokenizer":{"type":"Metaspace","replacement":"_","prepend_scheme":"last"}`, `prepend_scheme "last"`},
	} {
		part, want := c[0], c[1]
		tok, err := New([]byte(with(part)))
		if err == nil {
			_, err = tok.Fitted()
		}
		require.ErrorContains(t, err, "[tokenizer] ", part)
		require.ErrorContains(t, err, want, part)
	}
	for _, c := range [][2]string{
		{`{"type":"LSTM"}`, `model: does not know the type "LSTM"`},
		{`{"type":"BPE","vocab":{"a":0},"merges":["a b"]}`, `merges[0]: "a" or "b" is not in the vocabulary`},
		{`{"type":"BPE","vocab":{"a":0,"b":1},"merges":["a b"]}`, `merges[0]: "ab" is not in the vocabulary`},
		{`{"type":"BPE","vocab":{"a":0},"merges":["abc"]}`, `merges[0]: "abc" are not two tokens`},
		{`{"type":"BPE","vocab":{"a":0},"merges":[],"dropout":0.1}`, `dropout is 0.1`},
		{`{"type":"BPE","vocab":{"a":-1},"merges":[]}`, `the id of "a" is -1`},
		{`{"type":"BPE","vocab":{"a":0},"merges":[],"speed":1}`, `model: does not know the key "speed"`},
		{`{"type":"BPE","merges":[]}`, `model: there is no "vocab"`},
		{`{"type":"Unigram","vocab":[["a"]]}`, `vocab[0] is not a token and its score`},
		{`{"type":"Unigram","vocab":[["a",0.5]],"unk_id":1}`, `unk_id is 1, of 1 tokens`},
		{`{"type":"WordPiece","vocab":7}`, `vocab: is no map of tokens to ids`},
	} {
		model, want := c[0], c[1]
		_, err := New([]byte(`{"model":` + model + `}`))
		require.ErrorContains(t, err, "[tokenizer] ", model)
		require.ErrorContains(t, err, want, model)
	}
	for _, raw := range []string{"", "[]", "{", "{}", `{"model":null}`} {
		_, err := New([]byte(raw))
		require.ErrorContains(t, err, "[tokenizer] ", raw)
	}
}

// TestEncodeErrors: a text that the model has no token for is an error that shows it.
func TestEncodeErrors(t *testing.T) {
	t.Parallel()
	for _, c := range [][2]string{
		{`{"type":"Unigram","vocab":[["a",0.5]]}`, `there is an unknown character in "b", but no unk_id`},
		{
			`{"type":"WordLevel","vocab":{"a":0},"unk_token":"?"}`,
			`"ab" is unknown, but the unk_token is not in the vocabulary`,
		},
		{`{"type":"WordPiece","vocab":{"a":0}}`, `"ab" is unknown, but the unk_token is not in the vocabulary`},
		{`{"type":"BPE","vocab":{"a":0},"merges":[],"unk_token":"<never-there>"}`, `the unk_token is not in the vocabulary`},
	} {
		model, want := c[0], c[1]
		tok, err := New([]byte(`{"model":` + model + `}`))
		require.NoError(t, err)
		ids, err := tok.Encode("ab", true)
		require.ErrorContains(t, err, want)
		require.Nil(t, ids)
		ids, err = tok.Encode("", true)
		require.NoError(t, err)
		require.Empty(t, ids)
	}
}

// TestVocabulary: numbers and names.
func TestVocabulary(t *testing.T) {
	t.Parallel()
	tok := load(t, "llama3")
	id, ok := tok.ID("<s>")
	require.True(t, ok)
	name, ok := tok.Token(id)
	require.True(t, ok)
	require.Equal(t, "<s>", name)
	require.True(t, tok.IsSpecial(id))
	_, ok = tok.ID("never there")
	require.False(t, ok)
	_, ok = tok.Token(int32(tok.Size()))
	require.False(t, ok)
	require.Equal(t, id, tok.Vocabulary()["<s>"])
	require.Len(t, tok.Vocabulary(), tok.Size())
	require.NotEmpty(t, tok.Added())
}

// TestConcurrent: several goroutines can use one tokenizer.
func TestConcurrent(t *testing.T) {
	t.Parallel()
	tok := load(t, "llama3")
	want, err := tok.Encode("the same text for all of them, 字", true)
	require.NoError(t, err)
	done := make(chan []int32)
	for range 4 {
		go func() {
			var ids []int32
			for range 200 {
				ids, _ = tok.Encode("the same text for all of them, 字", true)
			}
			done <- ids
		}()
	}
	for range 4 {
		require.Equal(t, want, <-done)
	}
}

package tokenizer

import (
	"os"
	"path/filepath"
	"testing"

	"github.com/stretchr/testify/require"
)

// write puts files into a folder of the test's.
func write(t *testing.T, files map[string]string) string {
	t.Helper()
	dir := t.TempDir()
	for name, text := range files {
		require.NoError(t, os.MkdirAll(filepath.Dir(filepath.Join(dir, name)), 0o755))
		require.NoError(t, os.WriteFile(filepath.Join(dir, name), []byte(text), 0o644))
	}
	return dir
}

const tiny = `{"version":"1.0","added_tokens":[{"id":3,"content":"<s>","special":true}],
	"model":{"type":"WordLevel","vocab":{"a":0,"b":1,"<unk>":2},"unk_token":"<unk>"},
	"pre_tokenizer":{"type":"Whitespace"}}`

func TestOpen(t *testing.T) {
	t.Parallel()
	dir := write(t, map[string]string{
		"tokenizer.json": tiny,
		"tokenizer_config.json": `{"bos_token":{"content":"<s>","lstrip":false},"eos_token":"</s>","pad_token":null,
			"add_bos_token":true,"model_max_length":1e30,"chat_template":[{"name":"default","template":"D"},
			{"name":"tool_use","template":"T"}],"added_tokens_decoder":{"3":{"content":"<s>","special":true},
			"4":{"content":"</s>","special":true,"normalized":false}},"tokenizer_class":"LlamaTokenizer"}`,
		"special_tokens_map.json":             `{"eos_token":"<never>","unk_token":{"content":"<unk>"}}`,
		"additional_chat_templates/rag.jinja": "R",
	})
	tok, c, err := Open(dir)
	require.NoError(t, err)
	require.Equal(t, []string{"<s>", "</s>", "", "<unk>"}, []string{c.BOS, c.EOS, c.PAD, c.UNK})
	require.True(t, *c.AddBOS)
	require.Nil(t, c.AddEOS)
	require.Equal(t, "D", c.ChatTemplate)
	require.Equal(t, map[string]string{"tool_use": "T", "rag": "R"}, c.Templates)
	require.Zero(t, c.ModelMaxLength)
	ids, err := tok.Encode("<s>a c</s>", false)
	require.NoError(t, err)
	require.Equal(t, []int32{3, 0, 2, 4}, ids)
	require.Equal(t, "a <unk>", tok.Decode(ids, true))
	require.Equal(t, 5, tok.Size())
	require.True(t, tok.IsSpecial(4))
	require.False(t, tok.IsSpecial(0))

	dir = write(t, map[string]string{"tokenizer.json": tiny, "chat_template.jinja": "own",
		"tokenizer_config.json": `{"chat_template":"{{ old }}"}`})
	_, c, err = Open(dir)
	require.NoError(t, err)
	require.Equal(t, "own", c.ChatTemplate)
}

func TestOpenErrors(t *testing.T) {
	t.Parallel()
	_, _, err := Open(t.TempDir())
	require.ErrorIs(t, err, os.ErrNotExist)
	for config, want := range map[string]string{
		`{"added_tokens_decoder":{"9":{"content":"<x>"}}}`: `the token "<x>" has the id 4, but 9 in tokenizer_config.json`,
		`{"added_tokens_decoder":{"x":{"content":"<x>"}}}`: `"x" is no id`,
		`{"chat_template":7}`:                              "neither a text nor a list",
		`{"eos_token":7}`:                                  "a special token is 7, want a text or an object with its content",
		`[`:                                                "json: line 1, column 2: a value is wanted",
		"{\n\"tokenizer_class\": 7}":                       "tokenizer_config.json: tokenizer_class is a number, want a text",
	} {
		dir := write(t, map[string]string{"tokenizer.json": tiny, "tokenizer_config.json": config})
		_, _, err := Open(dir)
		require.ErrorContains(t, err, want, config)
	}
}

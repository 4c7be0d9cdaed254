package tokenizer

import (
	"path/filepath"
	"strings"
	"testing"

	"github.com/stretchr/testify/require"
)

// TestTokenBytes: the bytes of a text's tokens, put together, are the text, whatever characters they cut.
func TestTokenBytes(t *testing.T) {
	t.Parallel()
	for _, name := range []string{"llama3", "llama2", "gpt2", "qwen2", "gemma", "tekken"} {
		t.Run(name, func(t *testing.T) {
			tok, err := Load(filepath.Join("testdata", name+".json"))
			require.NoError(t, err)
			for _, text := range []string{"hello there, {\"a\": [1, 2.5]}", "naïve 😀 日本語\n\n  x\t", "<0x41> end"} {
				ids, err := tok.Encode(text, false)
				require.NoError(t, err)
				var got strings.Builder
				for _, id := range ids {
					b, ok := tok.TokenBytes(id)
					require.True(t, ok)
					got.Write(b)
				}
				require.Equal(t, text, strings.TrimPrefix(got.String(), " "), "llama2 begins with a space")
			}
			_, ok := tok.TokenBytes(int32(tok.Size()))
			require.False(t, ok)
		})
	}
}

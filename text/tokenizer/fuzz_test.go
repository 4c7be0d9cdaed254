package tokenizer

import (
	"os"
	"path/filepath"
	"strings"
	"testing"
	"time"
	"unicode/utf8"
)

// FuzzEncode: every tokenizer encodes every text, its spans lie in the text, with and without spans the ids are the
// same, and decoding gives text.
func FuzzEncode(f *testing.F) {
	files, err := filepath.Glob("testdata/*.json")
	if err != nil {
		f.Fatal(err)
	}
	var all []*Tokenizer
	var names []string
	for _, path := range files {
		if filepath.Base(path) != "golden.json" {
			all = append(all, load(f, strings.TrimSuffix(filepath.Base(path), ".json")))
			names = append(names, filepath.Base(path))
		}
	}
	for i, text := range []string{
		"", "Hello, world", " a\r\n\n b\t", "e\u0301\u0301\u0300 ﬁ ①", "<s>[MASK] <both> solo", "\xff\xe4\xbd",
		"don't I'LL", "字字👩‍👩‍👧", "a|b-c 123456",
	} {
		f.Add(text, byte(i))
	}
	f.Fuzz(func(t *testing.T, text string, which byte) {
		i := int(which) % len(all)
		start := time.Now()
		e, err := all[i].EncodeFull(text, true)
		if err != nil {
			t.Fatalf("%s: %v", names[i], err)
		}
		ids, err := all[i].Encode(text, true)
		if err != nil || len(ids) != len(e.IDs) {
			t.Fatalf("%s: %d ids without spans, %d with (%v)", names[i], len(ids), len(e.IDs), err)
		}
		size := len(valid(text))
		for k, s := range e.Spans {
			if s.From < 0 || s.From > size || s.To > size || ids[k] != e.IDs[k] {
				t.Fatalf("%s: token %d has the span %v of %d bytes", names[i], k, s, size)
			}
		}
		if out := all[i].Decode(ids, which > 127); !utf8.ValidString(out) {
			t.Fatalf("%s: decoded %q", names[i], out)
		}
		if d := time.Since(start); d > 5*time.Second {
			t.Fatalf("%s: takes %v", names[i], d)
		}
	})
}

// FuzzFile: no tokenizer.json makes New panic, and one that it takes encodes and decodes, or says why not.
func FuzzFile(f *testing.F) {
	f.Add([]byte(tiny))
	for _, name := range []string{"gpt2", "llama2", "bert", "xlmr", "clip"} {
		raw, err := os.ReadFile(filepath.Join("testdata", name+".json"))
		if err != nil {
			f.Fatal(err)
		}
		if at := strings.Index(string(raw), `"vocab"`); at > 0 { // the parts without the long vocabulary
			short := string(raw[:at]) + `"vocab":{"a":0,"b":1,"ab":2,"[UNK]":3,"<unk>":4,"<|end|>":5},"merges":[["a","b"]]}}`
			f.Add([]byte(short))
		}
	}
	f.Fuzz(func(t *testing.T, raw []byte) {
		tok, err := New(raw)
		if err != nil {
			return
		}
		start := time.Now()
		ids, err := tok.Encode("a b ab\n ÄÖ\u0301字 <s>1", true)
		if err == nil {
			tok.Decode(ids, true)
		}
		if fitted, err := tok.Fitted(); err == nil {
			tok = fitted
		}
		if _, err := tok.EncodePair("a b", "ab", true); err == nil {
			tok.EncodePair("a b", "", false)
		}
		if d := time.Since(start); d > 5*time.Second {
			t.Fatalf("takes %v", d)
		}
	})
}

// FuzzConfig: no tokenizer_config.json makes ReadConfig panic.
func FuzzConfig(f *testing.F) {
	f.Add([]byte(`{"bos_token":{"content":"<s>"},"chat_template":[{"name":"a","template":"b"}],
		"added_tokens_decoder":{"1":{}}}`))
	f.Fuzz(func(_ *testing.T, raw []byte) {
		_, _ = ReadConfig(raw)
	})
}

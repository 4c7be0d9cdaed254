package tokenizer

import (
	"bufio"
	"encoding/base64"
	"encoding/json"
	"flag"
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"slices"
	"strings"
	"testing"

	"github.com/stretchr/testify/require"
)

var (
	python    = flag.String("python", "", "a Python with tokenizers: ask it, too (see testdata/peer.py)")
	peerCases = flag.Int("peercases", 100_000, "with -python: how many odd strings each kind gets")
	peerSeed  = flag.Int("peerseed", 1, "with -python: which odd strings")
)

// answer is what Python makes of a text: [base64 of the text, ids, spans, decoded, decoded without special tokens].
type answer struct {
	text    string
	ids     []int32
	spans   []int
	decoded [2]string
}

func (a *answer) UnmarshalJSON(raw []byte) error {
	var text []byte
	if err := json.Unmarshal(raw, &[]any{&text, &a.ids, &a.spans, &a.decoded[0], &a.decoded[1]}); err != nil {
		return err
	}
	a.text = string(text)
	return nil
}

func load(t testing.TB, kind string) *Tokenizer {
	t.Helper()
	tok, err := Load(filepath.Join("testdata", kind+".json"))
	require.NoError(t, err)
	return tok
}

// differs says how a tokenizer differs from Python on a text, "" if it does not.
func differs(tok *Tokenizer, a answer) string {
	e, err := tok.EncodeFull(a.text, true)
	if err != nil {
		return err.Error()
	}
	if !slices.Equal(e.IDs, a.ids) {
		return fmt.Sprintf("ids\n%v\npython\n%v", names(tok, e.IDs), names(tok, a.ids))
	}
	ids, err := tok.Encode(a.text, true)
	if err != nil || !slices.Equal(ids, a.ids) {
		return fmt.Sprintf("ids without spans %v, python %v, error %v", ids, a.ids, err)
	}
	for i, special := range []bool{false, true} {
		if got := tok.Decode(a.ids, special); got != a.decoded[i] {
			return fmt.Sprintf("decoded %q, python %q", got, a.decoded[i])
		}
	}
	var spans []int
	for _, s := range e.Spans {
		spans = append(spans, s.From, s.To)
	}
	if !slices.Equal(spans, a.spans) && !misplaced(tok, a.text) {
		return fmt.Sprintf("spans %v python %v of %q", spans, a.spans, names(tok, e.IDs))
	}
	return ""
}

// misplaced reports whether Python's spans are wrong: a precompiled normalizer that drops the first character leaves
// it in the count, so that all that follows is too far to the left.
func misplaced(tok *Tokenizer, text string) bool {
	for _, n := range tok.normalizers {
		if _, ok := n.(*precompiled); ok && strings.ContainsAny(text, "\u200b\a") {
			return true
		}
	}
	return false
}

func names(tok *Tokenizer, ids []int32) (out []string) {
	for _, id := range ids {
		name, _ := tok.Token(id)
		out = append(out, fmt.Sprintf("%d %q", id, name))
	}
	return out
}

// TestGolden: all kinds of tokenizers give what Python gives, for texts in golden.json.
func TestGolden(t *testing.T) {
	t.Parallel()
	raw, err := os.ReadFile("testdata/golden.json")
	require.NoError(t, err)
	var kinds map[string][]answer
	require.NoError(t, json.Unmarshal(raw, &kinds))
	require.Len(t, kinds, 25)
	for kind, answers := range kinds {
		t.Run(kind, func(t *testing.T) {
			tok := load(t, kind)
			require.NotEmpty(t, answers)
			for _, a := range answers {
				if d := differs(tok, a); d != "" {
					t.Errorf("%s: %q: %s", base64.StdEncoding.EncodeToString([]byte(a.text)), a.text, d)
				}
			}
		})
	}
}

// TestPeer is TestGolden with Python itself, and many more texts:
//
//	go test ./text/tokenizer -run TestPeer -python python3
func TestPeer(t *testing.T) {
	t.Parallel()
	if *python == "" {
		t.Skip("wants -python")
	}
	files, err := filepath.Glob("testdata/*.json")
	require.NoError(t, err)
	for _, f := range files {
		kind := strings.TrimSuffix(filepath.Base(f), ".json")
		if kind == "golden" {
			continue
		}
		t.Run(kind, func(t *testing.T) {
			tok := load(t, kind)
			cmd := exec.Command(*python, "testdata/peer.py", "run", kind, fmt.Sprint(*peerCases), fmt.Sprint(*peerSeed))
			cmd.Stderr = os.Stderr
			out, err := cmd.StdoutPipe()
			require.NoError(t, err)
			require.NoError(t, cmd.Start())
			lines := bufio.NewScanner(out)
			lines.Buffer(nil, 1<<24)
			count, bad := 0, 0
			for ; lines.Scan(); count++ {
				var a answer
				require.NoError(t, json.Unmarshal(lines.Bytes(), &a))
				if d := differs(tok, a); d != "" {
					if bad++; bad <= 5 {
						t.Errorf("%.300q: %.1500s", a.text, d)
					}
				}
			}
			require.NoError(t, cmd.Wait())
			require.Equal(t, *peerCases, count)
			require.Zero(t, bad, "of %d", count)
			t.Logf("%d texts equal", count)
		})
	}
}

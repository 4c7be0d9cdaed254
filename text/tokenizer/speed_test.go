package tokenizer

import (
	"bytes"
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"github.com/mlxlua/mlxlua/internal/serial"
	"github.com/stretchr/testify/require"
)

// prose is text to measure with: the documents of this project.
func prose(t testing.TB) string {
	t.Helper()
	var b strings.Builder
	for _, pattern := range []string{"../../docs/*.md", "../../*.md"} {
		files, err := filepath.Glob(pattern)
		require.NoError(t, err)
		for _, f := range files {
			raw, err := os.ReadFile(f)
			require.NoError(t, err)
			b.Write(raw)
		}
	}
	return b.String()
}

// BenchmarkEncode encodes prose line by line on one thread. With -python it measures Python, too, in CPU time:
//
//	go test ./text/tokenizer -run - -bench Encode -python python3
func BenchmarkEncode(b *testing.B) {
	text := prose(b)
	lines := strings.Split(text, "\n")
	for _, kind := range []string{
		"gpt2", "llama3", "qwen2", "o200k", "deepseek", "llama2", "llama2-words", "gemma", "xlmr", "albert", "bert",
	} {
		b.Run(kind, func(b *testing.B) {
			tok := load(b, kind)
			b.SetBytes(int64(len(text)))
			begin := cpuTime()
			for b.Loop() {
				for _, line := range lines {
					if _, err := tok.Encode(line, true); err != nil {
						b.Fatal(err)
					}
				}
			}
			ours := float64(len(text)) * float64(b.N) / (cpuTime() - begin).Seconds() / 1e6
			b.ReportMetric(ours, "MB/cpu-s")
			if *python == "" {
				return
			}
			cmd := exec.Command(*python, "testdata/peer.py", "speed", kind)
			cmd.Stdin, cmd.Stderr = strings.NewReader(text), os.Stderr
			out, err := cmd.Output()
			require.NoError(b, err)
			var theirs float64
			_, err = fmt.Fscan(bytes.NewReader(out), &theirs)
			require.NoError(b, err)
			b.ReportMetric(theirs, "python-MB/cpu-s")
			b.ReportMetric(ours/theirs, "times-python")
		})
	}
}

// TestLinear: no model takes time that grows with the square of a text, whatever it is made of. With -python, the
// texts have a megabyte each.
func TestLinear(t *testing.T) {
	serial.Because(t, "it compares times")
	if testing.Short() {
		t.Skip("encodes a few hundred MB under the race detector")
	}
	files, err := filepath.Glob("testdata/*.json")
	require.NoError(t, err)
	for _, f := range files {
		kind := strings.TrimSuffix(filepath.Base(f), ".json")
		if kind == "golden" {
			continue
		}
		tok := load(t, kind)
		for _, part := range []string{
			"a", "ab", " ", "\n", "é", "e\u0301", "\u0301", "字", "▁", "<", "<s", "<both>", "<r> ", "1", "aA", "'", "\xff",
		} {
			small, large, most := 0.0, 0.0, 100_000
			if *python != "" {
				most = 1_000_000
			}
			for size, to := range map[int]*float64{most / 10: &small, most: &large} {
				text := strings.Repeat(part, size/len(part))
				start := time.Now()
				_, err := tok.Encode(text, true)
				*to = time.Since(start).Seconds()
				require.NoError(t, err)
			}
			// Ten times the text: a hundred times the time would be the square.
			require.Less(t, large, 60*small+2, "%s: %q takes %.2f s, a tenth of it %.2f s", kind, part, large, small)
		}
	}
}

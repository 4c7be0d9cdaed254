package msl_test

import (
	"os"
	"path/filepath"
	"regexp"
	"strings"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/mlxlua/mlxlua/metal/msl"
)

// corpusRow is a line of testdata/corpus.tsv: a text that a public repository passes to metal_kernel.
type corpusRow struct {
	id, repository, commit, place string
	sha                           string // of source, a zero byte, and header
	result                        string // ok, or why the text does not compile
}

func readCorpus(t *testing.T) []corpusRow {
	text, err := os.ReadFile("testdata/corpus.tsv")
	require.NoError(t, err)
	var rows []corpusRow
	for _, line := range strings.Split(strings.TrimSpace(string(text)), "\n") {
		if strings.HasPrefix(line, "#") {
			continue
		}
		f := strings.Split(line, "\t")
		require.Len(t, f, 6, line)
		rows = append(rows, corpusRow{f[0], f[1], f[2], f[3], f[4], f[5]})
	}
	return rows
}

// Of all that the repositories pass to metal_kernel at least 98 % compile, and each other text has its reason.
func TestCorpusManifest(t *testing.T) {
	t.Parallel()
	rows := readCorpus(t)
	seen := map[string]bool{}
	ok := 0
	for _, r := range rows {
		require.Regexp(t, regexp.MustCompile("^[0-9a-f]{64}$"), r.sha, r.id)
		require.Regexp(t, regexp.MustCompile("^[0-9a-f]{40}$"), r.commit, r.id)
		require.False(t, seen[r.sha], "%s stands twice", r.sha)
		seen[r.sha] = true
		if r.result == "ok" {
			ok++
		} else {
			require.NotEmpty(t, r.result, r.id)
		}
	}
	t.Logf("%d of %d compile", ok, len(rows))
	require.GreaterOrEqual(t, float64(ok), 0.98*float64(len(rows)))
}

// TestCorpus compiles the texts of the folder that MLXLUA_KERNEL_CASES names and compares with the manifest.
//
// A text is a whole unit, in a file called after the manifest's hash: <hash>.metal. Such a folder is made by collecting
// what the repositories pass to metal_kernel at the places that the manifest names (a host that formats its texts is
// run, with a metal_kernel that records its arguments), and by giving each text to mlxlua's metal_kernel, with the
// dtypes and sizes of inputs, the outputs' dtypes and the template arguments of the host's call where it is known.
// Where it is not, any that the text compiles with will do. What metal_kernel hands to the compiler, the text behind
// its signature, is the unit. The texts are other people's: they stay out of this repository.
func TestCorpus(t *testing.T) {
	t.Parallel()
	dir := os.Getenv("MLXLUA_KERNEL_CASES")
	if dir == "" {
		t.Skip("MLXLUA_KERNEL_CASES names no folder of texts")
	}
	found := 0
	for _, r := range readCorpus(t) {
		text, err := os.ReadFile(filepath.Join(dir, r.sha+".metal"))
		if os.IsNotExist(err) {
			continue
		}
		require.NoError(t, err)
		found++
		mod, err := msl.Compile(msl.Source{Name: r.id, Text: string(text)}, msl.Options{})
		switch {
		case r.result != "ok":
			if err == nil {
				t.Errorf("%s (%s) compiles; the manifest says: %s", r.id, r.sha, r.result)
			}
		case err != nil:
			t.Errorf("%s (%s): %v", r.id, r.sha, err)
		default:
			if err := mod.Verify(); err != nil {
				t.Errorf("%s (%s): %v", r.id, r.sha, err)
			}
		}
	}
	require.NotZero(t, found, "no text of the manifest is in %s", dir)
	t.Logf("%d texts", found)
}

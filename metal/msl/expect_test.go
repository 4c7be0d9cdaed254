package msl

import (
	"os"
	"path/filepath"
	"regexp"
	"strings"
	"testing"

	"github.com/stretchr/testify/require"
)

var expectRx = regexp.MustCompile(`/\* ERROR "([^"]*)" \*/`)

// checkExpected compares errors with the comments /* ERROR "regular expression" */ in a text. A comment stands on the
// physical line of its error and matches its code and message; several on a line match in order.
func checkExpected(t *testing.T, name, text string, errs ErrorList) {
	want := map[int][]string{}
	for i, line := range strings.Split(text, "\n") {
		for _, m := range expectRx.FindAllStringSubmatch(line, -1) {
			want[i+1] = append(want[i+1], m[1])
		}
	}
	for _, e := range errs {
		line := int(e.Pos.Line)
		if len(want[line]) == 0 {
			t.Errorf("%s: unexpected %s", name, e)
			continue
		}
		got := e.Code.String() + ": " + e.Msg
		ok, err := regexp.MatchString(want[line][0], got)
		require.NoError(t, err)
		if !ok {
			t.Errorf("%s:%d: got %q, want %q", name, line, got, want[line][0])
		}
		want[line] = want[line][1:]
	}
	for line, rest := range want {
		for _, w := range rest {
			t.Errorf("%s:%d: missing error %q", name, line, w)
		}
	}
}

// The files testdata/syntax_*.metal hold the errors that parsing them gives, all of them at once.
func TestExpectedSyntaxErrors(t *testing.T) {
	t.Parallel()
	files, err := filepath.Glob("testdata/syntax_*.metal")
	require.NoError(t, err)
	require.NotEmpty(t, files)
	for _, name := range files {
		text, err := os.ReadFile(name)
		require.NoError(t, err)
		_, errs := Parse(ppText(string(text)))
		checkExpected(t, name, string(text), errs)
	}
}

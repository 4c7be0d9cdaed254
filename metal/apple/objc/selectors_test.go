package objc

import (
	"os"
	"strings"
	"testing"

	"github.com/stretchr/testify/require"
)

// TestTableAgainstPyObjC holds the table against what pyobjc's metadata says: each message that it knows has the same
// types, as far as it tells them, and each that cites it is there.
func TestTableAgainstPyObjC(t *testing.T) {
	raw, err := os.ReadFile("testdata/pyobjc.txt")
	require.NoError(t, err)
	known := map[string][]string{} // by selector: "class types"
	for line := range strings.Lines(string(raw)) {
		if !strings.HasPrefix(line, "#") {
			name, rest, ok := strings.Cut(strings.TrimSuffix(line, "\n"), "\t")
			require.True(t, ok, line)
			known[name] = append(known[name], rest)
		}
	}
	for s := range Rows {
		r := &Rows[s]
		cites := strings.HasPrefix(r.From, "PO")
		require.Equal(t, cites, matches(r, known[r.Name]), "%s of %s: %q", r.Name, r.Of, known[r.Name])
	}
}

// protocols are those of Metal, whose methods pyobjc files under NSObject.
var protocols = []string{"MTLDevice", "MTLCommandQueue", "MTLCommandBuffer", "MTLComputeCommandEncoder", "MTLLibrary",
	"MTLComputePipelineState"}

// matches reports whether one of the entries is the row's.
func matches(r *Row, entries []string) bool {
	for _, e := range entries {
		class, types, _ := strings.Cut(e, "\t")
		if class != r.Of && (class != "NSObject" || !strings.Contains(strings.Join(protocols, " "), r.Of)) {
			continue
		}
		want, have := strings.Fields(types), strings.Fields(r.Types)
		same := len(want) == len(have)
		for i := range min(len(want), len(have)) {
			same = same && (want[i] == "-" || want[i] == have[i])
		}
		if same {
			return true
		}
	}
	return false
}

// TestTable: each row is complete, and its selector has as many colons as it has arguments.
func TestTable(t *testing.T) {
	seen := map[string]bool{}
	for s := range Rows {
		r := &Rows[s]
		types := strings.Fields(r.Types)
		require.NotEmpty(t, types, "row %d", s)
		require.Equal(t, strings.Count(r.Name, ":"), len(types)-1, r.Name)
		require.False(t, seen[r.Of+r.Name], r.Name)
		seen[r.Of+r.Name] = true
		for key := range strings.FieldsSeq(r.From) {
			require.Contains(t, Sources, key, r.Name)
		}
		require.NotEmpty(t, r.From, r.Name)
		require.True(t, r.Since == 0 || r.Since > Least, r.Name)
	}
	for s, owned := range map[Selector]bool{New: true, Alloc: true, InitWithBytes: true, NewCommandQueue: true,
		NewFunctionWithName: true, CommandBuffer: false, ComputeCommandEncoder: false, DeviceName: false, ErrorOf: false,
		FileURLWithPath: false, Retain: false, SharedCaptureManager: false} {
		require.Equal(t, owned, Rows[s].Owned(), Rows[s].Name)
	}
}

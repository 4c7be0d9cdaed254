package luabind

import (
	"encoding/json"
	"os"
	"path/filepath"
	"strings"
	"testing"

	lua "github.com/yuin/gopher-lua"

	"github.com/stretchr/testify/require"
)

// host runs a script with lm.host, under a limit of memory; 0: none.
func host(t *testing.T, memory int64, script string, args ...lua.LValue) ([]lua.LValue, error) {
	t.Helper()
	var opt Options
	opt.Limits.Memory = memory
	s := New(opt)
	t.Cleanup(s.Close)
	return s.Run(t.Context(), strings.NewReader(`local host, arg = require("lm.host"), ... `+script), "host.lua", args...)
}

// What is nested 100 deep is written and read, and what is deeper is neither.
func TestHostNesting(t *testing.T) {
	t.Parallel()
	out, err := host(t, 0, `
		local function deep(n)
			local t = n % 2 == 0 and "leaf" or {}
			for i = 1, n - n % 2 do t = i % 3 == 0 and {a = t} or {t} end
			return t
		end
		local text = assert(host.encode(deep(100)))
		assert(host.encode(assert(host.decode(text))) == text)
		local _, unwritten = host.encode(deep(101))
		local _, unread = host.decode(("["):rep(101) .. ("]"):rep(101))
		return unwritten, unread, host.encode(host.decode(("["):rep(100) .. ("]"):rep(100)))`)
	require.NoError(t, err)
	require.Equal(t, lua.LString("JSON: the value is nested more than 100 deep"), out[0])
	require.Contains(t, out[1].String(), "the value is nested more than 100 deep")
	require.Equal(t, strings.Repeat("[", 100)+strings.Repeat("]", 100), out[2].String())
}

// Strings longer than the pieces in which they are written are those that encoding/json reads, whatever stands where
// they are cut.
func TestHostLongStrings(t *testing.T) {
	t.Parallel()
	for _, part := range []string{"a", "é", "€", "😀", "\x00", "\"\\", "<&>\u2028", "\x80", "\xe2\x82", "\xf0\x9f\x98"} {
		for before := range 4 {
			text := strings.Repeat("x", before) + strings.Repeat(part, 1+200000/len(part))
			out, err := host(t, 0, `return host.encode(arg)`, lua.LString(text))
			require.NoError(t, err)
			var want strings.Builder
			e := json.NewEncoder(&want)
			e.SetEscapeHTML(false)
			require.NoError(t, e.Encode(text))
			require.True(t, strings.TrimSuffix(want.String(), "\n") == out[0].String(), "%q after %d", part, before)
		}
	}
}

// What is written and read counts as it is made: characters that become longer, long texts that are read, and keys of
// tables that stand in themselves.
func TestHostMemory(t *testing.T) {
	t.Parallel()
	for name, script := range map[string]string{
		"control characters": `return host.encode(("\0"):rep(6e6))`,
		"a long text":        `local s = '"' .. ("x"):rep(8e6) .. '"' return host.decode(s)`,
		"keys":               `local t = {} for i = 1, 2e4 do t["k" .. i] = i end t.a = t return host.encode(t)`,
	} {
		_, err := host(t, 32<<20, script)
		require.ErrorIs(t, err, ErrLimit, name)
		require.ErrorContains(t, err, "the script's memory is full", name)
	}
	out, err := host(t, 32<<20, `local s = '"' .. ("x"):rep(2e6) .. '"' return #host.decode(s), #host.encode(s)`)
	require.NoError(t, err)
	require.Equal(t, []lua.LValue{lua.LNumber(2e6), lua.LNumber(2e6 + 6)}, out)
}

// Damaged JSON is an error in plain words, with the place.
func TestHostDamagedJSON(t *testing.T) {
	t.Parallel()
	for text, want := range map[string]string{
		"{\"a\": 1,\n \"b\": [1, 2}": `JSON: line 2, column 12: a comma or ] is wanted, not "}"`,
		`{"a": 1`:                    "JSON: line 1, column 8: a comma or } is wanted, not the end of the text",
		`{"a": 1} x`:                 `JSON: line 1, column 10: there is more after the value: "x"`,
		`[1] [2]`:                    `JSON: line 1, column 5: there is more after the value: "["`,
		`["ä", NaN]`:                 `JSON: line 1, column 7: a value is wanted, not "NaN"`,
		`["ä", 1e999`:                "JSON: line 1, column 7: the number 1e999 is too large",
		strings.Repeat(" ", 3*jsonPiece) + `{"k" 1}`: `JSON: line 1, column 196614: a colon after the key is wanted, not "1"`,
	} {
		out, err := host(t, 0, `return select(2, host.decode(arg))`, lua.LString(text))
		require.NoError(t, err)
		require.Equal(t, want, out[0].String())
	}
}

// Functions in tables that are no objects say so where they are called by a colon.
func TestHostColons(t *testing.T) {
	t.Parallel()
	raw, err := os.ReadFile("../text/tokenizer/testdata/gpt2.json")
	require.NoError(t, err)
	folder := t.TempDir()
	require.NoError(t, os.WriteFile(filepath.Join(folder, "tokenizer.json"), raw, 0o600))
	s := New(Options{Libraries: true})
	defer s.Close()
	for script, want := range map[string]string{
		`tokenizer:encode("hello")`: "[tokenizer.encode] it is called with a dot, not a colon: " +
			"write tokenizer.encode(...), not tokenizer:encode(...)",
		`tokenizer:encode(7)`:            "[tokenizer.encode] it is called with a dot",
		`tokenizer:decode({1, 2})`:       "[tokenizer.decode] it is called with a dot",
		`tokenizer:id("a")`:              "[tokenizer.id] it is called with a dot",
		`tokenizer.stream():push(1)`:     "[stream.push] it is called with a dot",
		`tokenizer.stream():finish()`:    "[stream.finish] it is called with a dot",
		`host:decode("1")`:               "[host.decode] it is called with a dot",
		`tokenizer.encode({})`:           "bad argument #1 to 'encode' (string expected, got table)",
		`tokenizer.encode()`:             "bad argument #1 to 'encode' (string expected, got no value)",
		`tokenizer.decode("x")`:          "bad argument #1 to 'decode' (table expected, got string)",
		`tokenizer.encode("a", "b")`:     "bad argument #2 to 'encode' (boolean expected, got string)",
		`tokenizer.encode(tokenizer.id)`: "bad argument #1 to 'encode' (string expected, got function)",
	} {
		_, err := s.Run(t.Context(), strings.NewReader(`local host, folder = require("lm.host"), ...
			local tokenizer = assert(host.tokenizer(folder)) `+script), "host.lua", lua.LString(folder))
		require.ErrorContains(t, err, want, script)
		require.NotContains(t, err.Error(), "bad self", script)
	}
}

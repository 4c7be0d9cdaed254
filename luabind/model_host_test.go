package luabind

import (
	"encoding/json"
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

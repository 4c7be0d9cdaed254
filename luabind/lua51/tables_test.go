package lua51

import (
	"strings"
	"testing"

	"github.com/stretchr/testify/require"
	lua "github.com/yuin/gopher-lua"
)

// table.remove takes the last element, not the last slot, and nothing before the first: what Lua 5.1 answers.
func TestTableRemove(t *testing.T) {
	_, err := run(newTestState(t), `
		local t = {1, 2, 3}
		t[3] = nil
		assert(table.remove(t) == 2 and #t == 1 and t[2] == nil)
		t = {1, 2, 3, 4, 5}
		t[5], t[4] = nil, nil
		assert(table.remove(t, 1) == 1 and #t == 2 and t[1] == 2 and t[2] == 3 and t[3] == nil)
		assert(select("#", table.remove(t, 0)) == 0 and select("#", table.remove(t, 3)) == 0 and #t == 2)
		assert(table.remove(t, 2) == 3 and table.remove(t, 1) == 2 and #t == 0)
		assert(select("#", table.remove(t)) == 0 and select("#", table.remove({})) == 0)
		for i = 1, 9 do t[i] = i end
		for i = 9, 1, -1 do assert(table.remove(t) == i) end
		assert(#t == 0)
		assert(not pcall(table.remove, 1))`, "remove")
	require.NoError(t, err)
}

// Errors of the libraries call a host's values what the host does.
func TestErrorsNameValues(t *testing.T) {
	s := New(Options{Libraries: true, Stdout: &strings.Builder{},
		TypeName: func(*lua.LUserData) string { return "array" }})
	defer Close(s)
	s.L.SetGlobal("x", s.NewUserData(1, lua.LNil, 0))
	for src, want := range map[string]string{
		`table.concat({x})`:                        "invalid value (array) at index 1 in table for 'concat'",
		`("a"):gsub("a", function() return x end)`: "invalid replacement value (a array)",
		`table.sort({x, x})`:                       "attempt to compare two array values",
		`table.sort({1, x})`:                       "attempt to compare ",
		`string.rep("a", x)`:                       "bad argument #2 to 'rep' (number expected, got array)",
		`io.write(x)`:                              "bad argument #1 to 'write' (string expected, got array)",
		`io.close(x)`:                              "bad argument #1 to 'close' (FILE* expected, got array)",
		`os.time(x)`:                               "bad argument #1 to 'time' (table expected, got array)",
		`math.max(1, x)`:                           "bad argument #2 to 'max' (number expected, got array)",
		`for i = 1, x do end`:                      "'for' limit must be a number",
		`return "a" .. x`:                          "attempt to concatenate global 'x' (an array value)",
		`local t = {x = x} return t.x .. "a" .. 1`: "attempt to concatenate field 'x' (an array value)",
	} {
		_, err := run(s, src, "names")
		require.ErrorContains(t, err, want, src)
	}
}

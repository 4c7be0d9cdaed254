package lua51

import (
	"context"
	"fmt"
	"testing"

	"github.com/stretchr/testify/require"
	lua "github.com/yuin/gopher-lua"
)

// TestFrozenTablesStay: nothing that a script in a sandbox can do changes a frozen table, and it may change all others.
func TestFrozenTablesStay(t *testing.T) {
	const want = "[sandbox] C belongs to the library: a script in a sandbox cannot change it"
	for _, source := range []string{
		`C.x = 2`, `C.new = 2`, `C["x" .. ""] = 2`, `C[1] = 2`, `C[true] = 2`, `C.x = nil`, `C.new = nil`,
		`rawset(C, "x", 2)`, `setmetatable(C, {})`, `setmetatable(C, nil)`, `function C.x() end`, `function C:new() end`,
		`table.insert(C, 1)`, `table.remove(C)`, `table.sort(C)`, `getmetatable(c).__index = nil`, `c.__index.x = 2`,
		`setfenv(function() x = 2 end, C)()`, `setfenv(function() new = 2 end, C)()`,
		`setmetatable({}, {__newindex = C}).x = 2`, `setmetatable({}, {__newindex = C}).new = 2`,
		`setmetatable({}, {__newindex = setmetatable({}, {__newindex = C})})[5] = 2`,
		`setfenv(function() x = 2 end, setmetatable({}, {__newindex = C}))()`,
		`setmetatable(_G, {__newindex = C}) x = 2`,
		`coroutine.wrap(function() C.x = 2 end)()`, `table.sort({1, 2}, function() C.x = 2 end)`,
		`setmetatable(package.loaded, {__newindex = C}) package.preload.x = function() return 2 end require("x")`,
		`setmetatable({}, {__index = function(t, k) C.x = 2 end}).y = getmetatable(c).z or ({}).y
			local z = setmetatable({}, {__index = function(t, k) C.x = 2 end}).y`,
	} {
		t.Run(source, func(t *testing.T) {
			s := New(Options{Sandbox: true})
			t.Cleanup(s.L.Close)
			run := func(source, name string) ([]lua.LValue, error) {
				ctx, end := s.Metered(context.Background())
				defer end()
				SetContext(s.L, ctx)
				return run(s, source, name)
			}
			_, err := run(`C = {x = 1, 10, 20} C.__index = C c = setmetatable({}, C)`, "class")
			require.NoError(t, err)
			s.Freeze(s.L.GetGlobal("C").(*lua.LTable), "C")
			out, err := run(`local getmetatable, class = getmetatable, C
				local ok, why = pcall(function() `+source+` end)
				local n = 0 for k in pairs(class) do n = n + 1 end
				return tostring(why), class.x, n, getmetatable(class) == nil, class[1], getmetatable(c) == class`, "script")
			require.NoError(t, err)
			require.Contains(t, out[0].String(), want)
			require.Equal(t, []lua.LValue{lua.LNumber(1), lua.LNumber(4), lua.LTrue, lua.LNumber(10), lua.LTrue}, out[1:])
			out, err = run(`local t = setmetatable({}, {__newindex = function(t, k, v) rawset(t, k, v + 1) end})
				t.a = 1 setmetatable(t, nil) t.b = 2 table.insert(t, 3) c.x = 7
				setfenv(function() d = 4 end, t)() return t.a, t.b, t[1], t.d, c.x, C.x`, "others")
			require.NoError(t, err)
			require.Equal(t, "[2 2 3 4 7 1]", fmt.Sprint(out))
		})
	}
}

// TestNothingIsFrozenElsewhere: a program's own scripts change what they like.
func TestNothingIsFrozenElsewhere(t *testing.T) {
	s := newTestState(t)
	table := s.L.NewTable()
	s.Freeze(table, "C")
	require.Empty(t, s.Frozen(table))
	s.L.SetGlobal("C", table)
	_, err := run(s, `C.x = 1 rawset(C, "y", 2) setmetatable(C, {}) assert(C.x + C.y == 3)`, "script")
	require.NoError(t, err)
}

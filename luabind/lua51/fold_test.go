package lua51

import (
	"testing"

	"github.com/stretchr/testify/require"
	lua "github.com/yuin/gopher-lua"
)

// folding are programs that could tell a folded table from another one.
var folding = map[string]string{
	"reading": `assert(math.floor(1.5) == 1 and math.floor == math.floor and math.none == nil and math[1] == nil)`,
	"writing": `
		local floor = math.floor
		math.floor = 5; assert(math.floor == 5)
		math.floor = nil; assert(math.floor == nil and rawget(math, "floor") == nil)
		math.floor = floor; assert(math.floor(1.5) == 1)
		math.ceil = nil; assert(math.ceil == nil)
		math.ceil = 3; assert(math.ceil == 3)
		math.mine = 7; math[1] = 8; math[true] = 9
		assert(math.mine == 7 and math[1] == 8 and math[true] == 9 and #math == 1)`,
	"pairs": `
		local n, pi = 0
		math.mine = 1
		for k, v in pairs(math) do n = n + 1; pi = pi or k == "pi" and v end
		assert(n > 25 and pi == math.pi)
		for k in pairs(math) do n = n - 1 end
		assert(n == 0)`,
	"next": `
		local seen = {}
		for k, v in next, math do seen[k] = v end
		assert(seen.floor == math.floor and seen.pi == math.pi)
		assert(next(string) ~= nil)`,
	"rawget": `assert(rawget(math, "sqrt")(4) == 2 and rawget(math, "none") == nil)`,
	"rawset": `
		rawset(math, "sqrt", 1); assert(math.sqrt == 1)
		rawset(table, "insert", nil); assert(table.insert == nil)`,
	"metatables": `
		assert(getmetatable(math) == nil and debug.getmetatable(table) == nil)
		assert(setmetatable(math, {__index = function(_, k) return k .. "!" end}) == math)
		assert(math.none == "none!" and math.floor(1.5) == 1 and getmetatable(math).__index)
		debug.setmetatable(string, {__index = {mine = 1}})
		assert(string.mine == 1 and string.upper("a") == "A")
		local t = setmetatable({}, {__index = table})
		assert(t.concat == table.concat)`,
	"seeall": `
		package.seeall(math)
		assert(math.print == print and math.floor(1.5) == 1 and getmetatable(math).__index == _G)
		assert(getmetatable(table) == nil and table.print == nil and string.upper("a") == "A")`,
	"environments": `
		local f = setfenv(function() return floor(2.5), pi, none end, math)
		local a, b, c = f()
		assert(a == 2 and b == math.pi and c == nil)
		setfenv(function() mine = 1; sin = 2 end, math)()
		assert(math.mine == 1 and math.sin == 2)`,
	"strings": `assert(("x"):rep(3) == "xxx" and ("x").upper == string.upper)
		string.upper = function() return "mine" end
		assert(("x"):upper() == "mine")`,
	"globals": `
		assert(_G.print == print and _G._G == _G and _G.none == nil)
		local n = 0
		for k in pairs(_G) do n = n + 1 end
		assert(n > 30)
		x = 1; assert(_G.x == 1 and rawget(_G, "x") == 1)
		type = nil; assert(type == nil)`,
	"strict globals": `
		setmetatable(_G, {
			__newindex = function(_, k) error("no " .. k, 0) end,
			__index = function(_, k) error("unset " .. k, 0) end})
		local ok, e = pcall(function() y = 1 end); assert(not ok and e == "no y")
		local ok, e = pcall(function() return z end); assert(not ok and e == "unset z")
		assert(print and pairs)`,
	"modules": `assert(require"math" == math and package.loaded.string == string)`,
}

func TestFolding(t *testing.T) {
	for name, text := range folding {
		t.Run(name, func(t *testing.T) {
			s := New(Options{})
			defer s.L.Close()
			_, err := run(s, text, name)
			require.NoError(t, err, "without folding")
			s = New(Options{})
			defer s.L.Close()
			used := map[string]bool{}
			for _, name := range []string{"math", "string", "table", "debug"} {
				s.Fold(s.library(name), func(entry string) {
					require.False(t, used[name+"."+entry], entry)
					used[name+"."+entry] = true
				})
			}
			s.Fold(s.L.G.Global, func(string) {})
			_, err = run(s, text, name)
			require.NoError(t, err)
		})
	}
}

// TestFoldedMetatables: a metatable that a folded table has is there as before.
func TestFoldedMetatables(t *testing.T) {
	for _, index := range []string{"function(t, k) return t.known .. k end", "{none = 5}"} {
		s := New(Options{})
		defer s.L.Close()
		_, err := run(s, "lib = setmetatable({known = 1}, {__index = "+index+"})", "fold.lua")
		require.NoError(t, err)
		lib := s.L.GetGlobal("lib").(*lua.LTable)
		var used []string
		s.Fold(lib, func(name string) { used = append(used, name) })
		require.Equal(t, lua.LNumber(1), s.Entry(lib, "known"))
		require.Equal(t, lua.LNil, lib.RawGetString("known"))
		_, err = run(s, `assert(lib.none == "1none" or lib.none == 5) assert(getmetatable(lib).__index)
			assert(lib.none == "1none" or lib.none == 5)`, "fold.lua")
		require.NoError(t, err)
		require.Equal(t, []string{"known"}, used)
		s.SetEntry(lib, "known", lua.LNumber(2))
		require.Equal(t, lua.LNumber(2), s.Entry(lib, "known"))
	}
}

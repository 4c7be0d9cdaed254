package lua51

import (
	"strings"
	"testing"

	"github.com/stretchr/testify/require"
	lua "github.com/yuin/gopher-lua"
)

// library is embedded code: what scripts may call, and one that calls what it is given.
const library = `
	local count = 0
	local L = {}
	function L.describe(x, ...)
		count = count + select("#", ...)
		local list = {}
		for _, v in ipairs{...} do list[#list + 1] = ("%d"):format(v) end
		return ("<%s>"):rep(2):format(tostring(x), table.concat(list, ",")), type(x), count
	end
	function L.lower(x) return x:lower() end
	function L.call(f, ...) return (f(...)) end
	return L`

func openLibrary(t *testing.T, opt Options) *State {
	t.Helper()
	s := New(opt)
	t.Cleanup(s.L.Close)
	proto, err := CompileEmbedded(strings.NewReader(library), "library")
	require.NoError(t, err)
	out, err := s.Protect(nil, Embedded(s, proto, s.L.NewFunction(func(*lua.LState) int { return 0 })))
	require.NoError(t, err)
	s.L.SetGlobal("L", out[0])
	return s
}

// TestScriptsDoNotChangeEmbeddedCode: whatever a script puts into the place of Lua's functions, of the string library
// and of the metatable of strings, embedded code does what it did.
func TestScriptsDoNotChangeEmbeddedCode(t *testing.T) {
	const use = `
		local text, kind, count = describe(7, 1, 2)
		if text ~= "<7><1,2>" or kind ~= "number" or count ~= 2 then fail(text) end
		if lower("ABC") ~= "abc" then fail("lower") end`
	const begin = `local describe, lower, fail, L, print = L.describe, L.lower, error, L, print
		local setmetatable, getmetatable, pairs, pcall, rawset = setmetatable, getmetatable, pairs, pcall, rawset
		local globals, debug, text = _G, debug, ""
		local function bad() while true do end end `
	for name, change := range map[string]string{
		"nothing": ``,
		"globals": `for k in pairs(globals) do globals[k] = bad end`,
		"libraries": `for _, lib in pairs(globals) do if lib ~= globals and lib ~= L then
			pcall(function() for k in pairs(lib) do lib[k] = bad end end) end end`,
		"the metatable of strings": `local mt = getmetatable("") for k in pairs(mt) do mt[k] = bad end`,
		"the methods of strings":   `getmetatable("").__index = {}`,
		"another metatable": `if debug then
			debug.setmetatable("", {__index = bad, __len = bad, __concat = bad}) end`,
		"the metatable of globals":   `setmetatable(globals, {__index = bad, __newindex = bad})`,
		"the environment":            `pcall(setfenv, describe, {}) pcall(setfenv, 0, {})`,
		"the environment, by a call": `L.call(function() pcall(setfenv, 2, {}) pcall(setfenv, 3, {}) end)`,
		"the environment, by debug":  `if debug then pcall(debug.setfenv, describe, {}) end`,
		"what getfenv gives":         `local e = getfenv(describe) for k in pairs(e) do e[k] = bad end`,
		"what getfenv gives a call":  `L.call(function() local e = getfenv(2) for k in pairs(e) do e[k] = bad end end)`,
		"what debug.getfenv gives": `if debug then
			local e = debug.getfenv(describe) for k in pairs(e) do e[k] = bad end end`,
	} {
		t.Run(name, func(t *testing.T) {
			for _, opt := range []Options{{Libraries: true}, {Sandbox: true}} {
				s := openLibrary(t, opt)
				_, err := run(s, begin+change+use, name)
				require.NoError(t, err)
			}
		})
	}
}

// TestEmbeddedEnvironments: to scripts a function of embedded code is one of Go, as Lua 5.1's manual says of functions
// that are not Lua's: its environment is that of all, and cannot be changed.
func TestEmbeddedEnvironments(t *testing.T) {
	s := openLibrary(t, Options{Libraries: true})
	_, err := run(s, `
		assert(getfenv(L.describe) == _G and debug.getfenv(L.describe) == _G)
		for _, set in ipairs{setfenv, debug.setfenv} do
			local ok, why = pcall(set, L.describe, {})
			assert(not ok and why:find("'setfenv' cannot change environment of given object", 1, true), why)
		end
		L.call(function()
			assert(getfenv(2) == _G)
			assert(not pcall(setfenv, 3, {}))
		end)
		local own = {getfenv = getfenv}
		local f = setfenv(function() x = 1 return getfenv(1) end, own)
		assert(f() == own and own.x == 1 and x == nil and getfenv(f) == own)`, "environments")
	require.NoError(t, err)
}

// TestEmbeddedMethods: x:find(...) of what is no string is its own method, as in Lua.
func TestEmbeddedMethods(t *testing.T) {
	s := newTestState(t)
	proto, err := CompileEmbedded(strings.NewReader(`
		local C = {}
		C.__index = C
		function C:find(a, ...) return self.name, a, select("#", ...) end
		local c = setmetatable({name = "c"}, C)
		local string, format = {}, 5
		local name, a, n = c:find(1, nil, nil)
		assert(name == "c" and a == 1 and n == 2)
		assert(select("#", c:find(1)) == 3 and #{c:find(1)} == 3 and (c:find(1)) == "c")
		assert(("%d%s"):format(1, ("a"):rep(2)) == "1aa" and ("abc"):find("c", 1, true) == 3)
		for word in ("a b"):gmatch("%a") do a = word end
		assert(a == "b" and #("abc"):sub(2) == 2)
		local ok, why = pcall(function(x) return x:find(1) end)
		assert(not ok and why:find("methods:13: attempt to index local 'x' (a nil value)", 1, true), why)
		local ok, why = pcall(function(x) return x.y:find(1) end, {})
		assert(not ok and why:find("methods:15: attempt to index field 'y' (a nil value)", 1, true), why)
		local ok, why = pcall(function(x) return x:find(1) end, {})
		assert(not ok and why:find("methods:17: attempt to call method 'find' (a nil value)", 1, true), why)
		local ok, why = pcall(function() return ("x"):rep({}) end)
		assert(not ok and why:find("bad argument #2", 1, true), why)
		return true`), "methods")
	require.NoError(t, err)
	out, err := s.Protect(nil, Embedded(s, proto, s.L.NewFunction(func(*lua.LState) int { return 0 })))
	require.NoError(t, err)
	require.Equal(t, []lua.LValue{lua.LTrue}, out)
}

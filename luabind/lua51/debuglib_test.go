package lua51

import (
	"strings"
	"testing"

	"github.com/stretchr/testify/require"
	lua "github.com/yuin/gopher-lua"
)

// The debug library tells what Lua 5.1's tells.
func TestDebugLibrary(t *testing.T) {
	var programs []string
	for _, text := range strings.Split(debugPrograms, "\n\n") {
		programs = append(programs, strings.TrimSpace(text)+"\n")
	}
	same(t, "debug", debugHelpers, programs)
}

const debugHelpers = `local function info(t)
  if not t then return tostring(t) end
  local keys = {}
  for k, v in pairs(t) do
    if type(v) == "table" then
      local lines = {}
      for l in pairs(v) do lines[#lines + 1] = l end
      table.sort(lines)
      v = "{" .. table.concat(lines, ",") .. "}"
    end
    if type(v) ~= "function" then keys[#keys + 1] = k .. "=" .. tostring(v) else keys[#keys + 1] = k end
  end
  table.sort(keys)
  return table.concat(keys, " ")
end
local function levels(from)
  for level = from, from + 30 do
    local i = debug.getinfo(level)
    if not i or i.func == outcome or i.short_src ~= "p" and i.what ~= "C" and i.what ~= "tail" then return end
    print(level - from, info(i))
    if i.what == "C" and i.namewhat == "" and level > from + 1 then return end
  end
end
`

// debugPrograms are programs with empty lines between them.
const debugPrograms = `
print(info(debug.getinfo(1)))
print(info(debug.getinfo(1, "S"))) print(info(debug.getinfo(1, "l"))) print(info(debug.getinfo(1, "n")))
print(info(debug.getinfo(1, "u"))) print(info(debug.getinfo(1, "f"))) print(info(debug.getinfo(1, "")))
print(info(debug.getinfo(0))) print(info(debug.getinfo(0, "n"))) print(info(debug.getinfo(100)))

local function f(a, b, ...)
  local c = a
  return c
end
print(info(debug.getinfo(f))) print(info(debug.getinfo(f, "L"))) print(info(debug.getinfo(f, "nSluf")))
print(info(debug.getinfo(tostring))) print(info(debug.getinfo(tostring, "L")))

print(pcall(debug.getinfo)) print(pcall(debug.getinfo, "x")) print(pcall(debug.getinfo, {}))
print(pcall(debug.getinfo, 1, "x")) print(pcall(debug.getinfo, print, ">")) print(info(debug.getinfo(-1)))
print(info(debug.getinfo("1", "l")))

local function g() levels(2) end
local function f() g() end
f()

local function g() levels(2) end
local function f() return g() end
local function h() return f() end
local x = h()

local t = {}
function t.field() levels(2) end
function t:method() levels(2) end
function global() levels(2) end
t.field() t:method() global() t["field"]() t[1] = t.field t[1]();
(function() levels(2) end)()
global = nil

local mt = {}
for _, e in ipairs{"__index", "__newindex", "__add", "__sub", "__mul", "__div", "__mod", "__pow", "__unm", "__concat",
  "__eq", "__lt", "__le", "__call"} do mt[e] = function() print(e) levels(2) return true end end
local t, u = setmetatable({}, mt), setmetatable({}, mt)
local x = t.x
t.x = 1
x = t + 1
x = t - 1
x = t * 1
x = t / 1
x = t % 1
x = t ^ 1
x = -t
x = t .. "x"
x = t == u
x = t < u
x = t <= u
x = t()

print(pcall(function() levels(2) end))

local function f() levels(2) end
print(pcall(f)) print(xpcall(f, print))
print(xpcall(function() error("x") end, function(e) levels(2) return e end))
print(xpcall(function() local x = nil; x.y = 1 end, function(e) levels(2) return e end))

table.sort({1, 2}, function(a, b) levels(2) return a < b end)
local s = ("x"):gsub("x", function() levels(2) end)
for x in function() levels(2) end do end

local co = coroutine.create(function() levels(2) coroutine.yield() levels(2) end)
coroutine.resume(co) coroutine.resume(co)
coroutine.wrap(function() (function() levels(2) end)() end)()

local function body(a) local b = a + 1 coroutine.yield(b) local c = b + 1 coroutine.yield(c) error("end") end
local co = coroutine.create(body)
for i = 1, 4 do
  print(coroutine.status(co))
  for l = 0, 3 do print(l, info(debug.getinfo(co, l))) end
  print(debug.traceback(co)) print(debug.traceback(co, "m")) print(debug.traceback(co, nil))
  print(debug.traceback(co, "m", 1))
  for l = 0, 1 do
    for i = 1, 3 do if coroutine.status(co) == "suspended" then print(pcall(debug.getlocal, co, l, i)) end end
  end
  print(coroutine.resume(co, 1))
end

local function f(a, b, ...)
  local c, d = 5
  do local e = 6 end
  for i = 1, 1 do local g = 7
    for n = 1, 12 do if n ~= 3 then print(n, debug.getlocal(1, n)) else print((debug.getlocal(1, n))) end end
  end
end
f(1, 2, 3, 4)

local function f(a, b)
  print(debug.setlocal(1, 1, "x")) print(debug.setlocal(1, 2, "y")) print(debug.setlocal(1, 50, "z"))
  print(a, b)
end
f()
print(pcall(debug.getlocal, 100, 1)) print(pcall(debug.setlocal, 100, 1, 1)) print(pcall(debug.getlocal, 1))
print(debug.getlocal(1, 0)) print(debug.getlocal(1, -1)) print(debug.getlocal(1, -1000))

local a, b = 1, {id = 2}
local function f() return a, b, print end
print(debug.getupvalue(f, 1)) print((debug.getupvalue(f, 2))) print(debug.getupvalue(f, 3))
print(debug.getupvalue(f, 0)) print(debug.setupvalue(f, 1, "x")) print(a) print(debug.setupvalue(f, 9, "x"))
print(select("#", debug.getupvalue(f, 3)))
print(pcall(debug.getupvalue, 1, 1)) print(pcall(debug.getupvalue, f)) print(select("#", debug.getupvalue(tostring, 1)))

local t = setmetatable({}, {__metatable = "hidden"})
print(getmetatable(t), type(debug.getmetatable(t)), debug.getmetatable(t).__metatable)
print(debug.getmetatable({}), debug.getmetatable(5), type(debug.getmetatable("").__index))
print(debug.setmetatable(t, nil), getmetatable(t)) print(pcall(debug.getmetatable))
print(pcall(debug.setmetatable, 1, 1))

print(type(debug.getregistry()), debug.getregistry() == debug.getregistry())
print(debug.getregistry()._LOADED == package.loaded)
debug.getregistry().mine = 5
print(debug.getregistry().mine)

local function f(n) if n == 0 then print(debug.traceback("deep")) return end f(n - 1) end
for _, n in ipairs{3, 9, 18, 19, 20, 21, 22, 23, 30} do coroutine.wrap(f)(n) end

local function g()
  print(debug.traceback()) print(debug.traceback("m")) print(debug.traceback("m", 2)) print(debug.traceback("m", 0))
end
local function f() return g() end
local t = {f = f}
f() t.f() t:f() pcall(f)
print(debug.traceback({}) ~= nil, debug.traceback(nil), debug.traceback(5), debug.traceback("x", 50))

local function g() error("m") end
local function f() g() end
print(xpcall(f, debug.traceback)) print(xpcall(function() local x = nil; return x.y end, debug.traceback))
print(xpcall(function() string.rep() end, debug.traceback))

print(debug.gethook())
local lines = {}
local function f(a)
  local b = a
  return b
end
debug.sethook(function(event, line) lines[#lines + 1] = event .. line end, "l")
local x = 1
for i = 1, 3 do
  x = x + i
end
f(1)
pcall(f)
if x == 1 then
  x = 2
else
  x = 3
end
local mask = select(2, debug.gethook())
debug.sethook()
print(mask, table.concat(lines, " ")) print(debug.gethook())

local n = 0
debug.sethook(function(event, line) n = n + 1 assert(event == "count" and line == nil) end, "", 100)
for i = 1, 10000 do local x = i end
debug.sethook()
print(n > 90 and n < 1000)

local n = 0
debug.sethook(function() error("too long") end, "", 1000)
print(pcall(function() while true do end end))
debug.sethook()

debug.sethook(function() print(pcall(coroutine.yield)) debug.sethook() end, "l")
local x = 1
local co = coroutine.create(function()
  debug.sethook(function(e, l) print(e, l, debug.getinfo(2, "l").currentline) end, "l")
  local x = 1
  coroutine.yield()
  local y = 2
end)
coroutine.resume(co)
local z = 2
coroutine.resume(co)

print(pcall(debug.sethook, 1, "l")) print(pcall(debug.sethook, print))

print(pcall(table.foreach)) print(pcall(table.foreach, {})) print(pcall(table.foreachi, {}, 1))
print(pcall(table.foreachi))
print(table.foreach({1, 2, x = 3}, print))
print(table.foreach({1, 2}, function(k, v) return v == 2 and "found" or nil end))
print(table.foreachi({1, 2, nil, 4}, print))
print(table.foreachi({5, 6}, function(i, v) if i == 2 then return v end end))
print(table.foreach({}, print), table.foreachi({}, print), table.foreach({1}, function() return false end))

print(type(gcinfo()), gcinfo() % 1)

print(loadstring("return debug.getinfo(1, 'S').source, debug.getinfo(1, 'S').short_src", "@some/file.lua")())
print(loadstring("return debug.getinfo(1, 'S').source, debug.getinfo(1, 'S').short_src", "=name")())
print(loadstring("return debug.getinfo(1, 'S').source, debug.getinfo(1, 'S').short_src")())
print(loadstring("return (function() return debug.getinfo(1, 'S').source end)()", "text")())
print(load(function() local s = text text = nil return s end) ~= nil)
`

// What the metatables of a host's values are shows, and changes nothing; a registry of scripts is not the engine's.
func TestDebugAndHosts(t *testing.T) {
	s := newTestState(t)
	mt := s.L.NewTable()
	mt.RawSetString("__metatable", lua.LString("thing"))
	mt.RawSetString("__index", lua.LNumber(5))
	s.L.SetGlobal("thing", &lua.LUserData{Metatable: mt, Env: s.L.Env})
	out, err := run(s, `
		debug.getmetatable(thing).__index = nil
		for k, v in pairs(debug.getregistry()) do assert(k == "_LOADED") end
		return debug.getmetatable(thing).__index, debug.getregistry()._LOADED.string == string,
			debug.getinfo(1, "S").source, debug.getinfo(1, "S").short_src`, "a/file.lua")
	require.NoError(t, err)
	require.Equal(t, []lua.LValue{lua.LNumber(5), lua.LTrue, lua.LString("@a/file.lua"), lua.LString("a/file.lua")}, out)
	closed := New(Options{Sandbox: true})
	defer closed.L.Close()
	out, err = run(closed, `return debug, gcinfo(), string.dump`, "sandbox")
	require.NoError(t, err)
	require.Equal(t, []lua.LValue{lua.LNil, lua.LNumber(0), lua.LNil}, out)
}

// What string.dump gives is loaded as the function, without its variables; what is damaged is refused.
func TestDump(t *testing.T) {
	s := newTestState(t)
	out, err := run(s, `
		local up, f = 5, nil
		f = function(a, ...)
			local function inner(b) return (up or 1) + b end
			return select("#", ...), inner(a), debug.getinfo(1, "S").short_src, debug.getinfo(1, "l").currentline
		end
		local g = loadstring(string.dump(f), "other")
		assert(g ~= f and debug.setupvalue(g, 1, 7) == "up" and up == 5)
		local again = assert(load(function() local text = f and string.dump(g) f = nil return text end))
		local text = loadstring("return 1 + 2", "=named")
		local copy = loadstring(string.dump(text))
		assert(copy() == 3 and debug.getinfo(copy, "S").source == "=named")
		local path = os.tmpname()
		local file = io.open(path, "wb")
		file:write(string.dump(function(x) return x * 2 end))
		file:close()
		assert(loadfile(path)(21) == 42)
		os.remove(path)
		local dump = string.dump(text)
		for i = 1, #dump - 1 do -- each is refused, or a program
			local ok, e = loadstring(dump:sub(1, i))
			assert(type(ok) == "function" or type(e) == "string")
			loadstring(dump:sub(1, i - 1) .. "9" .. dump:sub(i + 1))
			loadstring(dump:sub(1, i - 1) .. dump:sub(i + 1))
		end
		assert(not pcall(string.dump, tostring) and not pcall(string.dump, 5))
		assert(string.dump(text):sub(1, 4) == "\27Lua")
		local n, sum, source, line = g(10, 1, 2)
		return n, sum, source, line, (select(2, again(1)))`, "dumps")
	require.NoError(t, err)
	require.Equal(t, []lua.LValue{lua.LNumber(2), lua.LNumber(17), lua.LString("dumps"), lua.LNumber(5), lua.LNumber(2)},
		out)
	closed := New(Options{Sandbox: true})
	defer closed.L.Close()
	closed.L.SetGlobal("dump", func() lua.LString {
		out, err := run(s, `return string.dump(loadstring("return 1"))`, "dumps")
		require.NoError(t, err)
		return out[0].(lua.LString)
	}())
	out, err = run(closed, `return loadstring(dump)`, "sandbox")
	require.NoError(t, err)
	require.Equal(t, lua.LNil, out[0])
}

// A hook of calls cannot be had, and says so; a hook ends with the call from the host.
func TestHooksOfHosts(t *testing.T) {
	s := newTestState(t)
	_, err := run(s, `debug.sethook() debug.sethook(print, "l")`, "chunk")
	require.ErrorContains(t, err, "there are no hooks where the host has called without a context that can end")
	SetContext(s.L, t.Context())
	_, err = run(s, `debug.sethook(print, "crl")`, "chunk")
	require.ErrorContains(t, err, "a hook sees lines and counts instructions, it does not see calls and returns")
	_, err = run(s, `debug.sethook(function() error("hooked") end, "", 5)`, "chunk")
	require.NoError(t, err)
	_, err = run(s, `for i = 1, 100 do local x = i end`, "chunk")
	require.NoError(t, err)
}

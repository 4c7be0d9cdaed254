package lua51

import (
	"strings"
	"testing"
)

// The engine's errors name what is wrong as those of Lua 5.1 do.
func TestMessages(t *testing.T) {
	var programs []string
	for _, text := range strings.Split(strings.TrimSpace(failing), "\n") {
		programs = append(programs, "print(pcall(function(...) "+strings.TrimSpace(text)+"\nend, nil))")
	}
	same(t, "messages", "", programs)
}

// failing are functions, a line each, that fail.
const failing = `
	local x = nil; return x.y
	return foo.bar
	foo.bar = 1
	foo()
	foo.bar.baz()
	string.nothing()
	local t = {} t.weights.x = 1
	local t = {} return t.weights.x
	local t = {} t.a.b.c = 1
	local t = {a = {}} t.a.b.c = 1
	local t = {} t[1].x = 2
	local t = {} local k = "key" return t[k].x
	local t = {} return t["a b"].x
	local t = {} t:bar()
	local t = {x = {}} t.x:bar(1, 2)
	local s = "text" s:nothing()
	("text"):nothing()
	local n = 5 n:foo()
	local n = 5 return n.foo
	local f = nil f()
	local f = 3 return f()
	return (nil)()
	return ({})()
	return (1).x
	local a = ... return a.b
	return (...).b
	return select(1, ...).b
	local u = nil return (function() return u.x end)()
	local u = nil return (function() u() end)()
	local u = nil return (function() return u + 1 end)()
	local u = nil return (function() return 1 .. u end)()
	local u = {} return (function() u.x.y = 1 end)()
	local a, b = 1, nil return a + b
	local a, b = 1, nil return b + a
	local a, b = {}, nil return a - b
	return foo * 2
	return 2 / foo
	local t = {} return t.x % 2
	local t = {} return 2 ^ t.x
	local t = {} return -t
	local t = {} return -t.x
	return -foo
	return -{}
	return {} + 1
	return 1 + {}
	return "abc" + 1
	return 1 + "abc"
	local s = "abc" return s + 1
	local s = "abc" return 1 - s
	local s = "abc" return s * nil
	local s = "abc" return -s
	local s = "5" return s + nil
	local s, n = "5" return s + n
	local s, n = "5" return n + s
	return "10" + {}
	return ("x").y.z
	return "a" .. nil
	return nil .. "a"
	return 1 .. {}
	local a = nil return a .. "x"
	local a = nil return "x" .. a
	local a = nil return "x" .. a .. "y"
	local a, b = "b", nil return "x" .. a .. b
	local a, b = "b", nil return b .. a .. "x"
	local t = {} return "x" .. t.name .. "y"
	return "x" .. foo
	return foo .. "x" .. bar
	local t = {} return t .. "x" .. "y"
	return 1 .. true .. 2
	return 1 < "2"
	return "2" < 1
	return {} < {}
	return {} < 1
	return 1 < {}
	return nil < 1
	return 1 > nil
	local a, b = 1, {} return a <= b
	local a, b = 1, {} return a >= b
	local a, b = 1, {} return a > b
	return {} <= {}
	return nil >= nil
	return print < print
	return true < false
	return #nil
	return #5
	return #foo
	local n = 5 return #n
	local t = {} return #t.x
	for i = nil, 2 do end
	for i = 1, nil do end
	for i = 1, 2, nil do end
	for i = {}, {}, {} do end
	for i = 1, {}, {} do end
	for i = 1, 2, {} do end
	for i = "a", 2 do end
	for x in nil do end
	for x in 5 do end
	for x in {} do end
	for x in foo do end
	local t = {} for x in t do end
	local t = {} for x in t.items do end
	for k, v in pairs(nil) do end
	for k, v in foo() do end
	for k, v in next, nil do end
	local t = {} t[nil] = 1
	local t = {} t[0/0] = 1
	return {[nil] = 1}
	local t = setmetatable({}, {__index = 5}) return t.x
	local t = setmetatable({}, {__newindex = 5}) t.x = 1
	local t = setmetatable({}, {__call = 5}) t()
	local t = setmetatable({}, {__index = function() error("inside") end}) return t.x
	local t = setmetatable({}, {__index = function() error("outside", 2) end}) return t.x
	local t = setmetatable({}, {__add = function() error("outside", 2) end}) return t + 1
	local t = setmetatable({}, {__lt = function() error("outside", 2) end}) return t < t
	local t = setmetatable({}, {__concat = function() error("outside", 2) end}) return t .. 1
	local t = setmetatable({}, {__call = function() error("outside", 2) end}) t()
	local t = setmetatable({}, {__newindex = function() error("outside", 2) end}) t.x = 1
	local t = {} t.x.y.z()
	local a = {b = {}} a.b.c.d()
	local a = {b = {}} a.b.c()
	local a = {b = {}} a.b["c"]()
	local a = {b = {}} local c = "c" a.b[c]()
	local a = {b = {}} a.b[1]()
	local a, b = {}, {} a[b]()
	local a = {} a.b.c = a.d.e
	local x = 1 x.y.z = 2
	local x = 1 do local y y.z() end
	do local a = 1 end do local b = nil b.x = 1 end
	do local a, b, c = 1 end local d = nil return d.x
	for i = 1, 1 do local z = nil z.x = 1 end
	for i = 1, 1 do i.x = 1 end
	for k, v in pairs{1} do v.x = 1 end
	for k, v in pairs{1} do local w = nil w.x = v end
	local a = true and nil return a.x
	local a = {} return (a.x or a.y).z
	local a = {} return (a.x and a.y).z
	local a = {b = 1} return (a.b and a.c).z
	local a if a.x then end
	local a while a.x do end
	local a repeat local b = a.x until b
	local a repeat local b until b.x
	if foo.bar then end
	if not foo.bar then end
	local t = {foo.bar}
	local t = {x = foo.bar}
	local t = {[foo.bar] = 1}
	print(foo.bar)
	print(1, foo.bar)
	print(1, 2, foo.bar.baz)
	local a = {} a.f(a.g.h)
	local a = {f = print} a.f(1, a.g(2))
	return foo.bar, 1
	return 1, foo.bar
	local f = function() return foo.x end f()
	local f = function(x) return x.y end f()
	local f = function(x) x = x.y.z end f({})
	local f = function(x) x = foo() end f({})
	local f = function(x, y) y = x.foo() end f({})
	local f = function(x, ...) return x.y end f(nil, 1, 2)
	local f = function(...) local a, b = ... return b.x end f(1)
	local x = setmetatable({}, {__tostring = function() return nil end}) return tostring(x)
	local a, b, c = 1, 2, nil; a, b = b, c.x
	local t = {} t.a, t.b = 1, t.c.d
	local t = {} t.a.b, t.c = 1, 2
	local i, a = 1, {} i, a[i].x = 2, 3
	local t = nil; t.x, t.y = 1, 2
	local a = {} ; a.b.c.d.e = 5
	local a; a = a.b
	local a; a = a + 1
	local a; a = a()
	local a = 1; a = a.b.c
	local a; local b = a.b
	local a; local b = a + 1
	local a; local b = a()
	local a; local b = #a
	local a; local b = -a
	local a; local b = a .. "x"
	local a, b; local c, d = a, b.x
	local s = "x" return s.y.z
	local s = "x" s.y = 1
	local f = print f.x = 1
	return print.x
	local co = coroutine.create(function() end) return co.x
	local co = coroutine.create(function() end) co()
	coroutine.wrap(function() local z = nil z.x = 1 end)()
	local function rec(n) if n == 0 then return foo.x end return rec(n - 1) end return rec(5)
	local function rec(n) if n == 0 then return foo.x end local r = rec(n - 1) return r end return rec(5)
	local t = {} function t.f(self) return self.x.y end t.f({})
	local t = {} function t:f() return self.x.y end t:f()
	local t = {} function t:f(a) return a.b end t:f()
	local t = {} function t.g.f() end
	function foo.bar() end
	goto_ = nil; return goto_.x
	math.floor.x = 1
	return math.floor.x
	return math.pi.x
	return math.pi()
	error()
	error(nil)
	error("m")
	error("m", 0)
	error("m", 1)
	error("m", 2)
	error("m", 3)
	error("m", 4)
	error("m", 50)
	error(5, 1)
	print(type(select(2, pcall(error, {}, 2))))
	local function f() error("m", 2) end f()
	local function f() error("m", 2) end local function g() f() end g()
	local function f() error("m", 3) end local function g() f() end g()
	local function f() error("m", 3) end local function g() return f() end g()
	local function f() error("m", 2) end local function g() return f() end g()
	local function f() return error("m", 2) end local function g() f() end g()
	local function f() return error("m", 1) end local function g() return f() end g()
	local function f() error("m", 2) end pcall(f) f()
	local function f() error("m", 2) end print(pcall(f))
	local function f() error("m", 3) end print(pcall(f))
	local function f() error("m", 2) end print(pcall(pcall, f))
	local function f() error("m", 2) end local g = function() f() end print(pcall(g))
	local function f() error("m", 2) end table.sort({1, 2}, f)
	local function f() error("m", 2) end local s = ("x"):gsub("x", f)
	local function f() error("m", 2) end for x in f do end
	local function f() error("m", 2) end coroutine.wrap(f)()
	local function f() error("m", 2) end print(coroutine.resume(coroutine.create(f)))
	local function f() error("m", 2) end print(coroutine.resume(coroutine.create(function() f() end)))
	local function f() error("m", 3) end print(coroutine.resume(coroutine.create(function() f() end)))
	local f = coroutine.wrap(function() error("m") end) f()
	local f = coroutine.wrap(function() error("m", 0) end) f()
	local f = coroutine.wrap(function() error({}) end) print(type(select(2, pcall(f))))
	local f = coroutine.wrap(function() end) f() f()
	print(pcall(error, "m")) print(pcall(error, "m", 1)) print(pcall(error, "m", 2)) print(pcall(error, " m", 0))
	print(pcall(error, "p:1: m", 0)) error("p:1: m", 0)
	local ok, e = pcall(error, "x") error(e, 0)
	local ok, e = pcall(function() error("x") end) error(e)
	print(xpcall(function() error("m", 2) end, function(e) return e end))
	print(xpcall(function() local x = nil x.y = 1 end, function(e) return "h " .. e end))
	print(pcall(nil)) print(pcall({})) print(pcall(5)) print(pcall("x"))
	print(pcall(function() nothing() end))
	print(xpcall(nil, function(e) return "h " .. e end))
	assert(false)
	assert(nil, "m")
	assert(false, {})
	assert(false, 5)
	assert(false, "bad argument #1 to f (x)")
	print(pcall(assert, false, "m")) print(pcall(assert))
	tostring()
	setmetatable(1, {})
	ipairs()
	ipairs(nil)
	local p = pairs p(nil)
	local t = {f = ipairs} t.f()
	local t = {f = ipairs} t:f()
	local t = {f = rawget} t:f()
	local t = {f = rawget} t.f(t)
	print(pcall(ipairs)) print(pcall(rawget, 1))
	coroutine.resume(1)
	coroutine.status()
	coroutine.create(1)
	coroutine.create(print)
	coroutine.create(string.rep)
	coroutine.wrap(nil)
	local s = "x" s:rep({})
	local s = "x" s:rep()
	("x"):rep({})
	("x").rep()
	("x").rep({}, 2)
	string.rep()
	string.rep("x", {})
	local f = string.rep f("x", "y")
	string.rep("x", {}, 3)
	(string.rep)()
	local t = {string.rep} t[1]()
	return string.rep()
	for x in string.rep do end
	local t = setmetatable({}, {__index = string.rep}) return t.x
	local t = setmetatable({}, {__call = string.rep}) t()
	local function f() return string.rep() end f()
	return (function(...) return string.rep(...) end)()
	table.concat({{}})
	table.concat({1, {}, 3})
	table.sort({1, "x"})
	table.sort({{}, {}})
	table.sort({1, 2, nil, 3})
	table.insert(nil, 1)
	unpack()
	local x = 5 x.y.z = 1
	loadstring()
	loadstring("x =")()
	local t = {1, 2, 3} for i, v in ipairs(t) do local s = v.x.y end
	local t = {} t.x = t.x + 1
	local t = {} t.x = t.x .. "s"
	local t = {n = 1} t.n = t.n + t.m
	x = y + 1
	x = 1 + y.z
	local a = {} return a.b + a.c
	local a = {b = 1} return a.b + a.c
	local a = {b = 1} return a.b .. a.c
	local a = {} return a.b < a.c
	local a = {b = 1} return a.b < a.c
	local a = {b = "x"} return a.b < 5
	local a = {b = "x"} return 5 <= a.b
	local a = {b = "x"} if a.b > 5 then end
	local a = {b = "x"} if not (a.b > 5) then end
	local a = {b = "x"} while a.b < 5 do end
`

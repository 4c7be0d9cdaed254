package reach_test

import (
	"context"
	"fmt"
	"slices"
	"strings"
	"testing"

	"github.com/stretchr/testify/require"
	lua "github.com/yuin/gopher-lua"

	"github.com/mlxlua/mlxlua/luabind/lua51"
	"github.com/mlxlua/mlxlua/luabind/reach"
)

// thing is what the tests' userdata hold: its name, or values of Lua.
type thing struct {
	name  string
	holds []lua.LValue
}

// state is a Lua state with functions of the tests: thing(name) makes a thing, holding(...) one that holds values;
// reached() gives the names of the things that can be reached, sorted, or "unknown"; sees(a, b) raises an error unless
// that is what is reached; opaque(f, ...) calls f from a Go function that holds its other arguments.
type state struct {
	*lua51.State
	w     reach.Walker
	names []string
}

func open(t testing.TB) *state {
	s := &state{State: lua51.New(lua51.Options{})}
	L := s.L
	t.Cleanup(L.Close)
	s.w = reach.Walker{Global: L.G.Global, Through: s.Passes,
		Leaf: func(ud *lua.LUserData) bool {
			v, ok := ud.Value.(*thing)
			if ok && v.holds == nil {
				s.names = append(s.names, v.name)
			}
			return ok && v.holds == nil
		},
		UserData: func(ud *lua.LUserData) {
			if v, ok := ud.Value.(*thing); ok {
				for _, h := range v.holds {
					s.w.Value(h)
				}
			}
		}}
	set := func(name string, f lua.LGFunction) { L.SetGlobal(name, s.Func(f)) }
	set("thing", func(L *lua.LState) int {
		L.Push(&lua.LUserData{Value: &thing{name: L.CheckString(1)}, Env: L.G.Global, Metatable: lua.LNil})
		return 1
	})
	set("holding", func(L *lua.LState) int {
		L.Push(&lua.LUserData{Value: &thing{holds: lua51.Args(L)}, Env: L.G.Global, Metatable: lua.LNil})
		return 1
	})
	set("reached", func(L *lua.LState) int {
		L.Push(lua.LString(s.reached()))
		return 1
	})
	set("sees", func(L *lua.LState) int {
		if want, got := strings.Join(stringsOf(L), " "), s.reached(); want != got {
			L.RaiseError("reached %q, not %q", got, want)
		}
		return 0
	})
	set("opaque", func(L *lua.LState) int {
		args := lua51.Args(L)
		L.SetTop(0)
		L.Push(args[0])
		L.Call(0, 0)
		for _, v := range args[1:] {
			L.Push(v)
		}
		return len(args) - 1
	})
	return s
}

func stringsOf(L *lua.LState) (out []string) {
	for i := 1; i <= L.GetTop(); i++ {
		out = append(out, L.CheckString(i))
	}
	slices.Sort(out)
	return out
}

// reached is the names of what is reached now.
func (s *state) reached() string {
	s.names = s.names[:0]
	s.w.Begin()
	known := s.w.Threads(s.Threads(nil))
	s.Roots(s.w.Value)
	if !s.w.End() || !known {
		return "unknown"
	}
	slices.Sort(s.names)
	return strings.Join(slices.Compact(s.names), " ")
}

// run runs a chunk in the state.
func (s *state) run(text string) error {
	proto, err := s.Compile(context.Background(), strings.NewReader(text), "test.lua")
	if err != nil {
		return err
	}
	lua51.SetContext(s.L, context.Background())
	_, err = s.Protect(nil, s.L.NewFunctionFromProto(proto))
	return err
}

// places are programs that keep things where they are hard to find, or let go of them. sees raises an error unless
// exactly those are reached that it names.
var places = []struct{ name, text string }{
	{"variables", `
		local a, b = thing"a", thing"b"
		do local c = thing"c"; sees("a", "b", "c") end
		b = nil
		sees("a")`},
	{"tables", `
		local t = {thing"array", key = thing"hash", [thing"as a key"] = 1, [1.5] = thing"number", [false] = thing"bool",
			[-3] = thing"negative", {nested = {thing"nested"}}}
		t.self = t
		sees("array", "hash", "as a key", "number", "bool", "negative", "nested")
		t[1], t.key, t[1.5], t[false], t[-3], t[2] = nil
		sees("as a key")
		t[100] = thing"sparse"
		sees("as a key", "sparse")`},
	{"removed elements", `
		local t = {}
		for i = 1, 40 do t[i] = thing(tostring(i)) end
		for i = 40, 3, -1 do table.remove(t) end
		sees("1", "2")
		table.remove(t, 1)
		sees("2")`},
	{"globals", `
		g = thing"g"; sees("g"); g = nil; sees()`},
	{"temporaries", `
		local function three() return 1, sees("a", "b"), 3 end
		local t = {thing"a", thing"b", three()}
		t = nil
		local function keep(...) sees("x", "y") return select("#", ...) end
		assert(keep(thing"x", thing"y") == 2)
		sees()`},
	{"operands of metamethods", `
		local mt = {__add = function(a, b) a, b = nil, nil; sees("l") return 1 end,
			__concat = function() sees("l", "m") return "" end, __index = function(t, k) sees("l") end}
		local o = setmetatable({thing"l"}, mt)
		local _ = o + setmetatable({}, mt)
		_ = o.x
		_ = o .. (setmetatable({thing"m"}, mt) .. setmetatable({}, mt))`},
	{"varargs", `
		local function f(n, ...) sees("a", "b") return (select("#", ...)) end
		f(1, thing"a", thing"b")
		local function g(...) local x = ...; x = nil; sees("a") return ... end
		g(thing"a")
		sees()`},
	{"arguments of functions below", `
		local function f(x) local function g() sees("x", "y") end g() return x end
		local y = thing"y"
		f(thing"x")`},
	{"upvalues", `
		local function counter() local x, y = thing"x", thing"y" return function(n) y = n return x, y end end
		local f = counter()
		sees("x", "y")
		f(nil)
		sees("x")
		f = nil
		sees()`},
	{"upvalues of a frame under way", `
		local x = thing"x"
		local function f() x = thing"z"; sees("z") end
		f()
		sees("z")`},
	{"environments", `
		local f = function() return x end
		setfenv(f, {x = thing"x"})
		sees("x")
		f = nil
		sees()
		setfenv(1, setmetatable({y = thing"y"}, {__index = _G}))
		sees("y")`},
	{"environments of threads", `
		local co = coroutine.create(function() coroutine.yield() end)
		coroutine.resume(co)
		debug.setfenv(co, {e = thing"e"})
		sees("e")
		co = nil
		sees()
		pcall(function() setfenv(0, {s = thing"s"}) end)
		sees("s")`},
	{"environments of userdata", `
		local p = thing"p"
		debug.setfenv(p, {e = thing"e"})
		sees("e", "p")`},
	{"environments of Go's functions", `
		assert(not pcall(debug.setfenv, print, {thing"e"}))
		sees()`},
	{"metatables", `
		local t = setmetatable({}, {__index = {thing"i"}, other = thing"o"})
		sees("i", "o")
		local u = setmetatable({}, {__metatable = "hidden", h = thing"h"})
		t = nil
		sees("h")
		local p = newproxy(true)
		getmetatable(p).x = thing"x"
		u = nil
		sees("x")`},
	{"metatables of basic types", `
		assert(not pcall(setmetatable, "", {thing"no"}))
		for _, v in ipairs{1, true, print, coroutine.create(function() end)} do
			debug.setmetatable(v, {__index = {t = thing(type(v))}, __metatable = "hidden"})
			local want = type(v)
			sees(want)
			debug.setmetatable(v, nil)
			sees()
		end
		debug.setmetatable(nil, {__index = {t = thing"nil"}})
		sees("nil")
		debug.setmetatable(nil, nil)
		local old = debug.getmetatable("")
		debug.setmetatable("", {__index = string, __unm = {thing"s"}, __metatable = old})
		sees("s")
		debug.setmetatable("", old)
		sees()`},
	{"weak tables are strong", `
		local t = setmetatable({}, {__mode = "kv"})
		t[1] = thing"x"
		sees("x")`},
	{"coroutines", `
		local co = coroutine.create(function(a)
			local b = thing"b"
			coroutine.yield(thing"y")
			sees("b", "c")
			return a, b
		end)
		sees()
		coroutine.resume(co, thing"a")
		sees("a", "b")
		coroutine.resume(co, thing"again")
		local function through(co)
			local c = thing"c"
			sees("c")
			coroutine.resume(co)
		end
		co = coroutine.wrap(function() local b = thing"b"; coroutine.yield() sees("b", "c") coroutine.yield() sees("b") end)
		co()
		local c = thing"c"
		co()
		c = nil
		co()
		co = nil
		sees()`},
	{"coroutines that have not begun", `
		local co
		do local x = thing"x"; co = coroutine.create(function() return x end) end
		sees("x")
		local w
		do local y = thing"y"; w = coroutine.wrap(function() return y end) end
		sees("x", "y")
		co, w = nil, nil
		sees()`},
	{"bodies of coroutines under way", `
		local w
		do local y = thing"y"; w = coroutine.wrap(function() coroutine.yield() return y end) end
		w()
		sees("y")
		w()
		w = nil
		sees()`},
	{"ended coroutines", `
		local co = coroutine.create(function() local x = thing"x" return 1 end)
		coroutine.resume(co)
		sees()
		co = coroutine.create(function() local x = thing"x" error(thing"e") end)
		local ok, e = coroutine.resume(co)
		sees("e")`},
	{"coroutines' parents", `
		local function deep(n)
			local mine = thing("p" .. n)
			if n == 0 then sees("p0", "p1", "p2", "p3") return end
			local co = coroutine.wrap(deep)
			co(n - 1)
		end
		deep(3)
		sees()`},
	{"protected calls", `
		local a = thing"a"
		pcall(function() local b = thing"b"; xpcall(function() local c = thing"c"; sees("a", "b", "c") end, print) end)
		sees("a")
		local x = thing"x"
		xpcall(function() x = thing"z" sees("a", "z") error() end, function() end)
		sees("a", "z")
		local co = coroutine.wrap(function() local d = thing"d"; pcall(function() sees("a", "d", "z") end) end)
		co()`},
	{"arguments of protected calls", `
		pcall(function(x) sees("x") end, thing"x")
		sees()
		local ok, x = pcall(function() return thing"r" end)
		sees("r")`},
	{"variables that an error ended", `
		local get
		xpcall(function() local x = thing"x"; get = function() return x end; error"end" end, function(e) return e end)
		sees("x")
		pcall(function() local y = thing"y"; get = function() return y end; error"end" end)
		sees("y")
		coroutine.resume(coroutine.create(function() local z = thing"z"; get = function() return z end; error"end" end))
		sees("z")`},
	{"error values", `
		local ok, e = pcall(error, thing"e")
		sees("e")
		local ok, e2 = pcall(function() local ok, e = pcall(error, thing"f"); error({e}) end)
		sees("e", "f")`},
	{"message handlers", `
		local said
		xpcall(function() local x = thing"x"; error(thing"e") end, function(e) said = reached() end)
		assert(said == "unknown", said)
		local handler = (function() local h = thing"h" return function() return h end end)()
		xpcall(function() handler = nil; sees("h") end, handler)`},
	{"tail calls", `
		local function loop(n, x)
			if n == 0 then local y = thing"y"; sees("x", "y") return x end
			return loop(n - 1, x)
		end
		local function outer() local z = loop(100000, thing"x") sees("x") return z end
		outer()
		local function last(x) return sees("x") end
		last(thing"x")
		sees()`},
	{"deep recursion", `
		local function down(n, x)
			if n == 0 then sees("x", "y") return 0 end
			local r = down(n - 1, n == 5000 and thing"y" or x)
			return r
		end
		down(9000, thing"x")`},
	{"functions that a metamethod called", `
		local function make()
			local secret = thing"secret"
			local mt = {}
			mt.__call = function(self, f) mt.__call, secret2 = nil; f(); return secret end
			return setmetatable({}, mt)
		end
		local o = make()
		local function look() sees("secret") end
		o(look)
		sees()
		local o = make()
		local function tail(f) return o(f) end
		tail(look)
		local co = coroutine.wrap(function() make()(function() coroutine.yield() end) end)
		co()
		sees("secret")
		o = make()
		local function again(n)
			if n == 0 then return look() end
			local f = make()
			f(function() again(n - 1) end)
		end
		again(10)`},
	{"callable objects", `
		local o = setmetatable({thing"state"}, {__call = function(self) self = nil; sees("f", "state") end})
		local f = thing"f"
		o()`},
	{"iterators", `
		for k, v in pairs{thing"a", thing"b"} do sees("a", "b") end
		local function over()
			local c = thing"c"
			return function(s, i) sees("c", "s") if i == nil then return c end end, thing"s"
		end
		for _, v in over() do
			sees("c", "s")
		end
		for w in ("x y"):gmatch("%S+") do sees() end
		sees()`},
	{"Go functions that hold values", `
		local said
		table.sort({thing"a", thing"b"}, function() said = reached() return false end)
		assert(said == "unknown", said)
		opaque(function() said = reached() end, thing"x")
		assert(said == "unknown", said)
		opaque(function() pcall(function() coroutine.wrap(function() said = reached() end)() end) end, thing"x")
		assert(said == "unknown", said)
		local _ = ("x"):gsub("x", function() said = reached() end)
		assert(said == "unknown", said)
		load(function() said = reached() end)
		assert(said == "unknown", said)
		sees()`},
	{"Go functions that hold none", `
		local x = thing"x"
		local o = setmetatable({}, {__tostring = function() sees("x") return "o" end})
		tostring(o)
		print((pcall(tostring, o)))
		package.preload.mine = function() local y = thing"y"; sees("x", "y") return y end
		require"mine"
		sees("x", "y")
		package.loaded.mine = nil
		sees("x")`},
	{"values that userdata hold", `
		local h = holding({thing"a"}, function() return h end)
		sees("a")
		h = holding(h, holding(thing"b"))
		sees("a", "b")`},
	{"libraries", `
		string.mine = thing"s"
		sees("s")
		local upper = string.upper
		string.upper = thing"u"
		sees("s", "u")
		string.upper, string.mine = upper, nil
		sees()
		math[1] = thing"m"; math[thing"key"] = 1
		sees("key", "m")
		setmetatable(table, {thing"t"})
		sees("key", "m", "t")
		package.loaded.math, math = nil, nil
		sees("t")`},
	{"long lists", `
		local list
		for i = 1, 200000 do list = {list} end
		list[2] = thing"last"
		local t, n = list, 0
		sees("last")
		list[2] = nil
		local first = list
		while first[1] do first = first[1] end
		first[1] = thing"first"
		sees("first")`},
}

func TestPlaces(t *testing.T) {
	for _, p := range places {
		t.Run(p.name, func(t *testing.T) {
			require.NoError(t, open(t).run(p.text))
			if p.name == "libraries" {
				return
			}
			s := open(t)
			for _, name := range []string{"string", "table", "math", "coroutine"} {
				s.w.Fix(s.L.GetGlobal(name).(*lua.LTable))
			}
			s.w.Fix(s.L.G.Global)
			require.NoError(t, s.run(p.text), "with fixed libraries")
		})
	}
}

// TestFixedLibraries: libraries whose entries are compared only are as good as those that are walked, as long as they
// are there.
func TestFixedLibraries(t *testing.T) {
	s := open(t)
	s.L.G.Global.RawSetString("lib", s.L.NewTable())
	lib := s.L.GetGlobal("lib").(*lua.LTable)
	lib.RawSetString("f", s.L.GetGlobal("print"))
	lib.RawSetString("n", lua.LNumber(1))
	inner := s.L.NewTable()
	lib.RawSetString("inner", inner)
	s.w.Fix(lib)
	s.w.Fix(s.L.G.Global)
	require.NoError(t, s.run(`
		sees()
		lib.f = thing"f"; lib.new = thing"new"; lib.inner.x = {thing"x"}; lib[1] = thing"1"
		sees("1", "f", "new", "x")
		lib.f = print; lib.new = nil; lib.inner = thing"inner"; lib[1] = nil
		sees("inner")
		lib.inner, lib.n, lib.new = nil, thing"n", thing"again"
		sees("again", "n")
		print = function() return lib end
		lib.n, lib.new = nil
		setmetatable(lib, {thing"mt"})
		sees("mt")
		setmetatable(lib, nil)
		local lib2 = lib
		g = thing"g"
		lib = nil
		sees("g")`))
}

// TestChannelsAreUnknown: what a channel holds nobody can see.
func TestChannelsAreUnknown(t *testing.T) {
	s := open(t)
	s.L.SetGlobal("c", lua.LChannel(make(chan lua.LValue)))
	require.Equal(t, "unknown", s.reached())
	s.L.SetGlobal("c", lua.LNil)
	require.Empty(t, s.reached())
}

// TestVisits: a walk's cost is counted, so that the same state costs the same, and grows with what there is.
func TestVisits(t *testing.T) {
	s := open(t)
	visits := func(text string) int64 {
		require.NoError(t, s.run(text))
		s.reached()
		n := s.w.Visits()
		s.reached()
		require.Equal(t, n, s.w.Visits())
		return n
	}
	before := visits("x = nil")
	require.Equal(t, before, visits("x = nil"))
	require.InDelta(t, 100_000/4, visits("x = {} for i = 1, 100000 do x[i] = i end")-before, 10)
	require.InDelta(t, 3000, visits("x = {} for i = 1, 1000 do x['k' .. i] = i end")-before, 10)
	require.InDelta(t, 24000, visits("for i = 1, 2000 do x['k' .. i] = i end")-before, 10)
	removed := visits("for i = 1, 2000 do x['k' .. i] = nil end") - before
	require.InDelta(t, 24000, removed, 10, "removed keys are passed over, which takes time too")
}

// TestClosedState: a state that was closed is not looked into, where something keeps a coroutine of it.
func TestClosedState(t *testing.T) {
	s := open(t)
	require.NoError(t, s.run("co = coroutine.create(function() end) coroutine.resume(co)"))
	co := s.L.GetGlobal("co")
	s.w.Begin()
	s.w.Value(co)
	require.True(t, s.w.End())
}

func BenchmarkWalk(b *testing.B) {
	for _, c := range []struct{ name, text string }{
		{"empty", ""},
		{"arrays", "x = {} for i = 1, 600 do x[i] = {weight = thing'w', bias = thing'b', name = 'linear', thing'c'} end"},
		{"numbers", "x = {} for i = 1, 100000 do x[i] = i end"},
		{"strings", "x = {} for i = 1, 100000 do x['k' .. i] = i end"},
		{"closures", "x = {} for i = 1, 10000 do x[i] = function() return x, i end end"},
		{"coroutines", "x = {} for i = 1, 1000 do x[i] = coroutine.wrap(function() coroutine.yield() end) x[i]() end"},
	} {
		for _, fixed := range []bool{false, true} {
			b.Run(fmt.Sprint(c.name, " fixed=", fixed), func(b *testing.B) {
				s := open(b)
				if fixed {
					for _, name := range []string{"string", "table", "math", "coroutine", "debug", "package"} {
						s.w.Fix(s.L.GetGlobal(name).(*lua.LTable))
					}
					s.w.Fix(s.L.G.Global)
				}
				require.NoError(b, s.run(c.text))
				b.ReportAllocs()
				for b.Loop() {
					s.names = s.names[:0]
					s.w.Begin()
					s.w.Threads(s.Threads(nil))
					s.Roots(s.w.Value)
					s.w.End()
				}
				b.ReportMetric(float64(s.w.Visits()), "visits")
			})
		}
	}
}

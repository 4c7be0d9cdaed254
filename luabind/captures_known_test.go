package luabind

import (
	"context"
	"strings"
	"testing"

	"github.com/stretchr/testify/require"
	lua "github.com/yuin/gopher-lua"
)

// knownWorld is a function that reaches all kinds of things, and random changes of them.
const knownWorld = `
	local mx, n = require("mx"), ...
	math.randomseed(n)
	local function new() return mx.array({math.random(), 2}) end
	local class = {} class.__index = class
	class.shift = new()
	local deep = {w = new(), b = new(), [true] = new(), [2.5] = "x", scale = 0}
	local object = setmetatable({deep = deep, list = {new(), new(), new(), new()}, name = "o"}, class)
	local keyed, key = {}, {}
	keyed[key], keyed[class] = new(), 1
	local single, count, text = new(), 1, "a"
	local function helper() return single, count end
	local custom = mx.custom_function(function(x) return x + object.list[1] end)
	local bare = function() return mx, text end
	local state = {p = new(), q = {r = new(), s = new()}}
	local fn = function(x) return x + deep.w + object.shift + single, helper, custom, keyed, bare, state end
	compiled = mx.compile(fn, {inputs = {state}, outputs = {state}})
	local given = {a = new(), b = {new(), new()}}
	local fixed = {class = class, x = new(), f = helper}
	function arguments(way)
		if way == 1 then return new() end
		if way == 2 then return given end
		if way == 3 then return {a = new(), b = {new(), new()}} end
		if way == 4 then return new(), fixed end
		return given, 3, helper
	end
	local function any(t)
		local keys = {}
		for k in pairs(t) do keys[#keys + 1] = k end
		table.sort(keys, function(a, b) return tostring(a) < tostring(b) end)
		return keys[math.random(#keys)]
	end
	local tables = {deep, object, object.list, state, state.q, class, keyed, given, given.b, fixed}
	local gone = {}
	local changes = {
		function() state.p, state.q.r, state.q.s = new(), new(), new() end, -- as a training step does
		function() local t = tables[math.random(#tables)] t[any(t)] = new() end,
		function() single = new() end,
		function() deep.w[0] = 5 end,
		function() local t = tables[math.random(#tables)] local k = any(t) gone[#gone + 1] = {t, k, t[k]} t[k] = nil end,
		function() local g = table.remove(gone) if g then g[1][g[2]] = g[3] end end,
		function() deep["k" .. math.random(4)] = new() end,
		function() deep["k" .. math.random(4)] = nil end,
		function() deep.scale = ({0, -0 * 1, 1, 0 / 0, "0"})[math.random(5)] end,
		function() count = count + 1 end,
		function() text = text == "a" and "b" or "a" end,
		function() state.p = state.q.r end,
		function() state.q.s = deep.b end,
		function() object.list[math.random(7)] = new() end,
		function() table.remove(object.list) end,
		function() table.insert(object.list, 1, new()) end,
		function() object.list[2] = nil end,
		function() setmetatable(object, math.random(2) == 1 and class or nil) end,
		function() setmetatable(deep, math.random(2) == 1 and {__index = class} or nil) end,
		function() local old = class.shift class.shift = class.other or new() class.other = old end,
		function() custom:vjp(function() return single end) end,
		function() keyed[{}] = new() end,
		function() local f = helper helper = bare bare = f end,
		function() fixed.x, given.a = new(), new() end,
		function() debug.setupvalue(fn, 1, debug.getupvalue and deep or deep) end,
		function() setfenv(bare, math.random(2) == 1 and {} or _G) end,
		function() object[3.5], object[-1], object[false] = new(), new(), 1 end,
	}
	function change(i)
		pcall(changes[i > 0 and i or math.random(#changes)]) -- what it changes may be gone
		for _, t in ipairs(tables) do
			if next(t) == nil then t.some = new() end
		end
	end
	return #changes
`

// TestKnownWalks: the list of a walk finds what another walk finds, whatever has changed in between, and it holds where
// only arrays have changed.
func TestKnownWalks(t *testing.T) {
	t.Parallel()
	for seed := range 6 {
		s := newTestState(t)
		out, err := s.Run(context.Background(), strings.NewReader(knownWorld), "world.lua", lua.LNumber(seed))
		require.NoError(t, err)
		changes := int(out[0].(lua.LNumber))
		k, _ := unwrap[*compiledFunction](s.L.GetGlobal("compiled"))
		run := func(name string, args ...lua.LValue) []lua.LValue {
			got, err := s.Protect(nil, s.L.GetGlobal(name), args...)
			require.NoError(t, err)
			return got
		}
		listed := 0
		look := func(way int) bool {
			k.args, k.listed = run("arguments", lua.LNumber(way)), nil
			in := k.find()
			require.Equal(t, s.flattenAll("compile", k.args), in)
			found, key := captures(s, k.fn, k.args, k.state.roots, nil, nil)
			require.Equal(t, key, k.key)
			require.Len(t, k.captured, len(found))
			for i := range found {
				require.Same(t, found[i].ud, k.captured[i].ud)
				require.Equal(t, found[i].at.String(), k.captured[i].at.String())
			}
			was := k.listed != nil
			if was {
				listed++
				k.listed.forget()
			}
			k.args, k.captured = nil, nil
			return was
		}
		for way := 1; way <= 5; way++ {
			for range 3 {
				run("change", lua.LNumber(1))
				look(way)
			}
			for range 3 { // only arrays change
				run("change", lua.LNumber(1))
				require.True(t, look(way), "way %d", way)
			}
			listed = 0
			for round := range 400 {
				run("change", lua.LNumber(0))
				for range 1 + round%4 {
					look(way)
				}
			}
			require.Greater(t, listed, 40, "way %d", way)
		}
		require.Greater(t, changes, 20)
	}
}

package mlxlua_test

import (
	"context"
	"fmt"
	"strings"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/mlxlua/mlxlua"
	"github.com/mlxlua/mlxlua/internal/brief"
)

// spoil is a script that puts a function into the place of everything that it can come to: globals, what is in
// libraries, their metatables, and that of strings. What it is given are that function, what makes up `begin`, and what
// it leaves alone. The names that the later scripts need are in keep.
const spoil = `
local begin, bad, loadAll = ...
local pairs, next, type, rawset, rawget, pcall, error = pairs, next, type, rawset, rawget, pcall, error
local ipairs, print = ipairs, print
local setmetatable, getmetatable, unpack = setmetatable, getmetatable, unpack
local debugMeta, debugSet = debug and debug.getmetatable, debug and debug.setmetatable
local mx, require, tostring, collectgarbage, globals = mx, require, tostring, collectgarbage, _G
if bad == "loops" then bad = function() while true do end end else bad = function() error("spoiled") end end
if loadAll then
	for _, name in ipairs{"nn", "optimizers", "utils", "data", "train"} do next(mx[name]) end
	require("lm") require("lm.text")
end
local keep = {mx = mx, require = require, pcall = pcall, next = next, pairs = pairs, type = type, tostring = tostring,
	unpack = unpack}
local todo, seen = {globals, getmetatable(""), package.loaded, package.preload, package.loaders}, {[keep] = true}
seen[seen], seen[todo] = true, true
local lazy = {}
for _, name in ipairs{"nn", "optimizers", "utils", "data", "train"} do lazy[mx[name]] = not loadAll end
lazy[mx], lazy[globals] = nil, nil
local events = {"__index", "__newindex", "__call", "__tostring", "__add", "__concat", "__len", "__eq", "__lt", "__le",
	"__metatable", "__mode", "__unm"}
local n = 0
while #todo > 0 do
	local t = todo[#todo]
	todo[#todo] = nil
	if type(t) == "table" and not seen[t] and not lazy[t] then
		seen[t], n = true, n + 1
		local keys = {}
		pcall(function() for k, v in next, t do keys[#keys + 1] = k end end)
		for _, k in ipairs(keys) do
			local v = rawget(t, k)
			if type(v) == "table" then todo[#todo + 1] = v
			else pcall(function() t[k] = bad end) pcall(rawset, t, k, bad) end
		end
		pcall(function() t.more = bad end) pcall(rawset, t, "more", bad)
		pcall(function() todo[#todo + 1] = getmetatable(t) end)
		if debugMeta then pcall(function() todo[#todo + 1] = debugMeta(t) end) end
		if t ~= globals then
			for _, e in ipairs(events) do pcall(rawset, t, e, bad) end
			local all = {}
			for _, e in ipairs(events) do all[e] = bad end
			pcall(setmetatable, t, all)
		end
	end
end
if debugSet then
	local all = {}
	for _, e in ipairs(events) do all[e] = bad end
	for _, v in ipairs{"", 1, true, print} do pcall(debugSet, v, all) end
end
pcall(setmetatable, globals, {__index = bad, __newindex = bad})
for k in pairs(globals) do rawset(globals, k, bad) end
rawset(globals, "keep", keep)
return n`

// touch calls what mx and its modules have under the names that it is given, in a few ways.
const touch = `
local module, from = ...
local keep = keep
local mx, pcall, next, pairs, type, tostring = keep.mx, keep.pcall, keep.next, keep.pairs, keep.type, keep.tostring
local t = mx
if module ~= "" then t = mx[module] end
local names, n = {}, 0
for name in next, t do n = n + 1 if n > from and n <= from + 10 then names[n - from] = name end end
local x = mx.array and mx.ones({2, 2})
for i = 1, 10 do
	local name = names[i]
	if name == nil then return false end
	if name ~= "exit" then
		pcall(function() return t[name] end)
		pcall(function() return tostring(t[name]) end)
		pcall(t[name])
		pcall(t[name], x)
		pcall(t[name], 2, 2)
		pcall(t[name], {x, x})
		pcall(t[name], {lr = 1, name = "x"})
		pcall(t[name], keep.pcall, x)
	end
end
return true`

// TestScriptsCannotSpoilLibraries: a script that puts endless or failing functions into the place of all that it can
// come to is ended by its limits, whatever it then uses of mx and lm, and so is what the host does with it.
func TestScriptsCannotSpoilLibraries(t *testing.T) {
	t.Parallel()
	for _, opt := range []mlxlua.Options{{Sandbox: true}, {}} {
		for _, bad := range []string{"loops", "fails"} {
			for _, loaded := range []bool{false, true} {
				t.Run(fmt.Sprintf("sandbox %v, %s, loaded %v", opt.Sandbox, bad, loaded), func(t *testing.T) {
					if brief.Run() && !(opt.Sandbox && loaded) {
						t.Skip("one goroutine runs each of these, and the race detector is slow")
					}
					opt.TimeLimit, opt.InstructionLimit, opt.MemoryLimit = 20*time.Second, 400_000, 256<<20
					opt.Stdout, opt.Stderr = &strings.Builder{}, &strings.Builder{}
					s := open(t, opt)
					out, err := s.Run(t.Context(), "spoil", spoil, "", bad, loaded)
					require.NoError(t, err)
					require.Greater(t, out[0], 10.0)
					use := func(source string, args ...any) (any, bool) {
						t.Helper()
						ctx, cancel := context.WithTimeout(context.Background(), time.Minute) // a bound for what hangs
						defer cancel()
						out, err := s.Run(ctx, "use", source, args...)
						require.NoError(t, ctx.Err(), source)
						if err != nil {
							require.NotContains(t, err.Error(), "BUG")
							return nil, false
						}
						return out[0], true
					}
					for _, module := range []string{"", "nn", "optimizers", "utils", "data", "train", "fast", "linalg", "random",
						"fft", "metal", "plot", "distributed"} {
						if !opt.Sandbox && module != "" {
							break // all of it is the script's own now
						}
						for from := 0; from < 500; from += 10 {
							if more, ok := use(touch, module, float64(from)); ok && more == false {
								break
							}
						}
					}
					for _, source := range []string{`return mx.nn.init`, `return mx.nn.Linear(2, 3)`, `return require("lm")`,
						`return require("lm.text")`, `return require("mx.optimizers").Adam(0.1)`, `return help(mx)`,
						`return mx.nn.Lineer`, `return tostring(mx.nn.Linear(2, 3))`, `return mx`, `return mx.nn`} {
						use("local mx, require, tostring = keep.mx, keep.require, keep.tostring " + source)
					}
					for _, name := range []string{"keep", "mx", "nn", "pairs", "string"} {
						_, _ = s.Get(name)
						_, _ = s.Call(t.Context(), name)
					}
				})
			}
		}
	}
}

// TestSpoiledGlobals: what a script sets Lua's functions to says nothing of what the library does.
func TestSpoiledGlobals(t *testing.T) {
	t.Parallel()
	const use = `
		local l = mx.nn.Sequential(mx.nn.Linear(2, 3), mx.nn.ReLU())
		local opt = mx.optimizers.Adam(0.1)
		local grad = mx.nn.value_and_grad(l, function(x) return l(x):sum() end)
		local _, g = grad(mx.ones({1, 2}))
		opt:update(l, g)
		mx.eval(l:parameters())
		local lm = require("lm")
		show(l)
		return l(mx.ones({4, 2})).shape[2], lm.models.llama`
	s := open(t, mlxlua.Options{Sandbox: true})
	want, err := s.Run(t.Context(), "use", "show = tostring "+use)
	require.NoError(t, err)
	for _, change := range []string{
		`pairs = bad`, `ipairs = bad`, `setmetatable = bad`, `getmetatable = bad`, `type = bad`, `tostring = bad`,
		`select = bad`, `unpack = bad`, `next = bad`, `rawget = bad`, `rawset = bad`, `error = bad`, `pcall = bad`,
		`string.format = bad`, `string.sub = nil`, `string = nil`,
		`table.concat = bad`, `table = nil`, `math.sqrt = bad`, `math = nil`,
		`getmetatable("").__index = bad`, `getmetatable("").__index = {}`, `package.loaded["lm.config"] = {}`,
		`package.loaded["mx"] = {}`, `package.loaded["mx.nn"] = {}`, `package.preload["lm.sample"] = bad`,
		`local mine = mx mx = nil nn = nil _G.mx = mine`,
		`for k in pairs(string) do string[k] = bad end`,
	} {
		t.Run(change, func(t *testing.T) {
			s := open(t, mlxlua.Options{Sandbox: true, TimeLimit: time.Minute, InstructionLimit: 10_000_000})
			out, err := s.Run(t.Context(), "use", `local bad, require = function() while true do end end, require
				local show = tostring `+change+use)
			require.NoError(t, err)
			require.Equal(t, want, out)
		})
	}
}

// TestLibrariesStayAsTheyAre: in a sandbox a script cannot change what belongs to the library, and may go on from it.
func TestLibrariesStayAsTheyAre(t *testing.T) {
	t.Parallel()
	s := open(t, mlxlua.Options{Sandbox: true})
	for _, change := range []string{
		`getmetatable(nn.Linear(2, 3)).forward = 1`, `nn.Linear.forward = 1`, `rawset(nn.Linear, "forward", 1)`,
		`getmetatable(nn.Linear).__call = 1`, `setmetatable(nn.Linear, nil)`, `nn.Module.parameters = 1`, `nn.mine = 1`,
		`mx.zeros = 1`, `mx.mine = 1`, `mx.fast.rope = 1`, `mx.optimizers.SGD = 1`,
		`getmetatable(mx.optimizers.SGD(1)).update = 1`, `nn.losses.mse_loss = 1`, `nn.init.mine = 1`,
		`getmetatable(mx).__index = 1`, `setmetatable(mx.nn, {})`, `require("lm").load = 1`, `require("lm.host").read = 1`,
		`require("lm").Config.read = 1`, `getmetatable(mx.zeros({1}).shape).__index = 1`,
		`assert(require("lm.host").list(nn.Linear))`, `mx.utils.tree_map = 1`, `table.insert(nn, 1)`,
	} {
		_, err := s.Run(t.Context(), "change", change)
		require.ErrorContains(t, err, "belongs to the library", change)
	}
	out, err := s.Run(t.Context(), "own", `
		local Mine = nn.class("Mine", nn.Linear)
		function Mine:init() nn.Linear.init(self, 2, 3) end
		function Mine:forward(x) return nn.Linear.forward(self, x) * 2 end
		Mine.more = 1
		local l = Mine()
		l.weight, l.extra = mx.ones({3, 2}), 1
		l.bias = mx.zeros({3})
		l.forward = nil
		local opt = mx.optimizers.Optimizer()
		function opt:apply_single(g, p) return p - g end
		function opt:init_single() end
		opt:update(l, l:parameters())
		local lm = require("lm")
		lm.register("mine", "my_model")
		lm.models.other = "other"
		return l(mx.ones({1, 2})):sum():item(), Mine.more, lm.models.mine, tostring(Mine)`)
	require.NoError(t, err)
	require.Equal(t, []any{0.0, 1.0, "my_model", "class Mine"}, out)
}

// TestLoadingCounts: a module that a script first uses is loaded under its limits, and whole the next time.
func TestLoadingCounts(t *testing.T) {
	t.Parallel()
	s := open(t, mlxlua.Options{Sandbox: true, InstructionLimit: 1000})
	_, err := s.Run(t.Context(), "short", `return nn.Linear`)
	require.ErrorIs(t, err, mlxlua.ErrLimit)
	require.ErrorContains(t, err, "1000 instructions")
	_, err = s.Run(t.Context(), "short", `return pcall(function() return nn.Linear end)`)
	require.ErrorIs(t, err, mlxlua.ErrLimit)
	s = open(t, mlxlua.Options{Sandbox: true, InstructionLimit: 50000})
	_, err = s.Run(t.Context(), "late", `for i = 1, 48000 do end return nn.Linear`)
	require.ErrorIs(t, err, mlxlua.ErrLimit)
	out, err := s.Run(t.Context(), "early", `return nn.Linear(2, 3).weight.ndim, nn.losses.mse_loss ~= nil`)
	require.NoError(t, err)
	require.Equal(t, []any{2.0, true}, out)
	ctx, cancel := context.WithCancel(t.Context())
	s = open(t, mlxlua.Options{Sandbox: true})
	require.NoError(t, s.Set("cancel", func(context.Context, []any) ([]any, error) {
		cancel()
		return nil, nil
	}))
	_, err = s.Run(ctx, "cancelled", `cancel() return nn.Linear`)
	require.ErrorIs(t, err, context.Canceled)
}

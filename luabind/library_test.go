package luabind

import (
	"context"
	"slices"
	"strings"
	"testing"

	"github.com/stretchr/testify/require"
	lua "github.com/yuin/gopher-lua"

	"github.com/mlxlua/mlxlua/luabind/lua51"
	"github.com/mlxlua/mlxlua/metal"
)

// Every function of the modules that are written in Lua comes from a description: it has parameters and help.
func TestLibraryHelp(t *testing.T) {
	t.Parallel()
	s := newTestState(t)
	for _, m := range library() {
		module := s.mx.inner[m.name]
		s.Unfold(module)
		names := keysOf(module)
		require.NotEmpty(t, names)
		for _, name := range names {
			var f *function
			switch v := module.RawGetString(name).(type) {
			case *lua.LFunction:
				f = s.mx.help[v]
			case *lua.LTable:
				if s.mx.inner[m.name+"."+name] == v {
					require.Contains(t, s.mx.helpText(v), "mx."+m.name+"."+name+".")
					continue
				}
				f = s.mx.classes[v]
			}
			require.NotNil(t, f, name)
			require.NotEmpty(t, f.help, name)
			require.Contains(t, s.mx.helpText(module.RawGetString(name)), f.usage())
		}
		require.Contains(t, s.mx.helpText(module), "mx."+m.name+".")
	}
	require.Equal(t, "mx.nn.leaky_relu(x, negative_slope=0.01)\nmax(negative_slope * x, x), element by element.\n\n"+
		"> nn.leaky_relu(mx.array({-2, 3}))\narray([-0.02, 3], dtype=float32)",
		s.mx.helpText(lua.LString("nn.leaky_relu")))
}

// firstUses are ways to use a module that is not loaded; each gives true.
var firstUses = []string{
	"return nn.relu(mx.array({-1, 2})):sum():item() == 2",
	"return require('mx.nn').Linear(2, 3).weight.ndim == 2",
	"return mx.nn.losses.mse_loss(mx.array(3), mx.array(1)):item() == 4",
	"return require('mx.nn.losses').mse_loss(mx.array(3), mx.array(1)):item() == 4",
	"return mx.nn.init.constant(3)(mx.zeros({2})):sum():item() == 6",
	"return mx.optimizers.SGD(0.5):apply_gradients({mx.array(1)}, {mx.array(1)})[1]:item() == 0.5",
	"return mx.data.DataLoader ~= nil and mx.data.load_csv ~= nil and mx.train.fit ~= nil and mx.utils.tree_map ~= nil",
	"return mx.utils.tree_map(function(x) return x + 1 end, {1})[1] == 2",
	"local n = 0 for name in pairs(nn) do n = n + 1 end return n > 100",
	"return next(mx.utils) ~= nil and next(nn.losses) ~= nil",
	"return rawget(mx.nn, 'Linear') == nn.Linear and rawget(nn, 'Lineer') == nil",
	"return not pcall(function() return nn.Lineer end) and nn.Linear ~= nil",
	"return coroutine.wrap(function() coroutine.yield(nn.Linear(2, 3)) end)().weight.ndim == 2",
	"return mx.vmap(function(x) return nn.relu(x) end)(mx.array({-1, 2})):sum():item() == 2",
	"return mx.compile(function(x) return nn.gelu(x) end)(mx.array(0)):item() == 0",
	// Calls that are nested too deep do not leave it half-loaded.
	`local failed = 0
	local function down(n)
		if not pcall(down, n + 1) and not pcall(function() return nn.Linear end) then failed = failed + 1 end
		error("up")
	end
	pcall(down, 0)
	assert(failed > 0)
	return nn.Linear(2, 3).weight.ndim == 2 and nn.Upsample ~= nil and nn.losses.l1_loss ~= nil`,
}

// firstWrites are ways to use a module that write into it. In a sandbox libraries stay as they are.
var firstWrites = []string{
	"nn.mine = 1 return nn.mine == 1 and nn.Linear ~= nil",
	"nn.relu = 1 return nn.relu == 1 and nn.ReLU()(mx.array(-1)):item() == 0",
	"rawset(nn.init, 'mine', 1) return nn.init.mine == 1 and nn.init.uniform ~= nil",
	"getmetatable(nn) nn[1] = 2 return nn[1] == 2 and nn.Linear ~= nil",
	"nn[1] = 2 return nn[1] == 2 and nn.Linear ~= nil",
	// What a script sets in mx is its own business, and no module of mx goes by it.
	`mx.nn, mx.utils = {}, nil
	local found = false
	for name in pairs(mx) do found = found or name == "optimizers" end
	local l = require("mx.nn").TransformerEncoder(1, 4, 2)
	require("mx.optimizers").SGD(1):update(l, l:parameters())
	return found and next(mx.nn) == nil and l(mx.ones({1, 2, 4})).ndim == 3`,
}

// The modules that are written in Lua are loaded when something of them is first used, by whatever means.
func TestLibraryIsLoadedWhenUsed(t *testing.T) {
	t.Parallel()
	loaded := func(s *State, name string) bool { return s.mx.funcs[name] != nil }
	for i, text := range slices.Concat(firstUses, firstWrites) {
		for _, o := range []Options{{Libraries: true},
			{Sandbox: true, Limits: Limits{Limits: lua51.Limits{Instructions: 20000, Memory: 1 << 26}}}} {
			s := New(o)
			require.False(t, loaded(s, "nn.Linear") || loaded(s, "optimizers.SGD") || loaded(s, "utils.tree_map"))
			if o.Sandbox && strings.Contains(text, "down") {
				continue // it takes more than 20000 instructions
			}
			out, err := s.Run(context.Background(), strings.NewReader(text), "first use")
			if o.Sandbox && i >= len(firstUses) {
				require.ErrorContains(t, err, "belongs to the library", text)
				s.Close()
				continue
			}
			require.NoError(t, err, text)
			require.Equal(t, []lua.LValue{lua.LTrue}, out, text)
			require.True(t, loaded(s, "nn.Linear") || loaded(s, "optimizers.SGD") || loaded(s, "utils.tree_map"), text)
			s.Close()
		}
	}
	s := newTestState(t)
	require.Equal(t, []string{"nn.Linear"}, s.mx.complete(s.State, "nn.Lin"))
	s = newTestState(t)
	require.Contains(t, s.mx.helpText(lua.LString("optimizers.SGD")), "mx.optimizers.SGD(learning_rate")
	s = newTestState(t)
	require.Contains(t, s.mx.helpText(s.mx.LTable), "mx.nn, ")
}

// A cancelled call that first uses a module loads it, and what a script puts into a loaded one stays reached.
func TestLibraryIsWhole(t *testing.T) {
	withDevice(t, metal.DeviceOptions{}) // mx.memory.live() tells of this test's arrays alone
	s := newTestState(t)
	ctx, cancel := context.WithCancel(context.Background())
	s.L.SetGlobal("cancel", s.L.NewFunction(func(*lua.LState) int {
		cancel()
		_ = s.Entry(s.mx.inner["nn"], "Linear")
		return 0
	}))
	_, err := s.Run(ctx, strings.NewReader("cancel() while true do end"), "cancelled")
	require.ErrorIs(t, err, context.Canceled)
	_, err = s.Run(context.Background(), strings.NewReader(`
		assert(nn.Linear(2, 3) and nn.Upsample)
		nn.kept, nn.losses.kept, nn.Linear.kept = mx.ones({3}) * 2, mx.ones({3}) * 3, mx.ones({3}) * 4
		mx.optimizers.Optimizer().kept = 5
		mx.optimizers.kept = mx.ones({3}) * 5
		for i = 1, 20 do local y = mx.exp(mx.ones({1000}) * i) mx.eval(y) collectgarbage() end
		same(nn.kept + nn.losses.kept + nn.Linear.kept + mx.optimizers.kept, {14, 14, 14})
		nn.kept = nil
		collectgarbage()
		for _, a in ipairs(mx.memory.live()) do assert(a.nbytes > 0) end`), "kept")
	require.NoError(t, err)
}

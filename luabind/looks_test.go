package luabind

import (
	"context"
	"encoding/binary"
	"math"
	"runtime"
	"strings"
	"testing"

	"github.com/stretchr/testify/require"
	lua "github.com/yuin/gopher-lua"

	"github.com/mlxlua/mlxlua/metal"
	"github.com/mlxlua/mlxlua/tensor"
)

// loops are programs that keep at most so many arrays of 16 MiB, for all that scripts can name.
var loops = []struct {
	name, text string
	most       float64 // at the peak
}{
	{"a result that is dropped", `for i = 1, 30 do local y = mx.exp(a) mx.eval(y) end`, 2},
	{"a running sum", `local s = a for i = 1, 30 do s = s * 0.5 + a mx.eval(s) end`, 3},
	{"an array that is written to", `local y = a * 1 for i = 1, 30 do y[0] = i mx.eval(y) end`, 2},
	{"a function of steps", `
		local function gelu(x) local u = x * 2 + 1 return 0.5 * u * (1 + mx.erf(u * 0.707)) end
		for i = 1, 30 do local y = gelu(a) mx.eval(y) end`, 2},
	{"an operation of operations", `for i = 1, 30 do local y = mx.var(a) mx.eval(y) end`, 2.1},
	{"values that are read", `for i = 1, 30 do assert(mx.sum(mx.exp(a) * 0.5):item() > 0) end`, 2.1},
	{"printing", `for i = 1, 30 do tostring(mx.exp(a) * 0.5) end`, 2},
	{"protected calls", `for i = 1, 30 do pcall(function() local y = mx.exp(a) mx.eval(y) error() end) end`, 3},
	{"coroutines", `
		local next = coroutine.wrap(function() while true do coroutine.yield(mx.exp(a)) end end)
		for i = 1, 30 do local y = next() mx.eval(y) end`, 2},
	{"coroutines that evaluate", `
		local step = coroutine.wrap(function() while true do local y = mx.exp(a) mx.eval(y) y = nil coroutine.yield() end end)
		for i = 1, 30 do step() end`, 2},
	{"a stream", `
		mx.stream(mx.default_stream(mx.cpu), function() for i = 1, 30 do local y = mx.exp(a) mx.eval(y) end end)`, 2},
	{"results that nobody asks for", `
		for i = 1, 30 do local y = mx.exp(a) local z = y * 2 local unused = mx.sum(y) mx.eval(z) end`, 3},
	{"gradients", `
		local f = mx.grad(function(x) return mx.sum(mx.exp(mx.sin(x) * 0.5)) end)
		for i = 1, 30 do local g = f(a) mx.eval(g) end`, 2},
	{"training", `
		local w = a * 0.5
		local f = mx.value_and_grad(function(w) return mx.sum((mx.sin(w) - a) ^ 2) end)
		for i = 1, 30 do local loss, g = f(w) w = w - g * 0.01 mx.eval(w, loss) end`, 5},
	{"batches", `
		local f = mx.vmap(function(x) return mx.exp(x) * 0.5 + mx.sum(x) end)
		for i = 1, 30 do local y = f(a) mx.eval(y) end`, 2.1},
	{"a compiled function", `
		local f = mx.compile(function(x) return mx.exp(x) * 0.5 end)
		for i = 1, 30 do local y = f(a) mx.eval(y) end`, 2},
	{"work that is not waited for", `for i = 1, 100 do local y = mx.exp(a) mx.async_eval(y) end mx.synchronize()`, 40},
	{"arrays from tables", `
		local t = {}
		for i = 1, 16384 do t[i] = i end
		for i = 1, 100 do local x = mx.array(t) mx.eval(mx.sum(x)) end`, 2.2},
	{"arrays that were used up", `local t = {} for i = 1, 20 do t[i] = mx.exp(a + i) end mx.eval(t) t = nil
		for i = 1, 4 do local y = a + i mx.eval(y) end mx.reset_peak_memory() mx.eval(a + 1)`, 3},
}

// TestLoops: what a script does not hold any more takes no memory, and collections are not what finds that out.
func TestLoops(t *testing.T) {
	onlyMemory(t)
	for _, l := range loops {
		t.Run(l.name, func(t *testing.T) {
			dev, _ := withDevice(t, metal.DeviceOptions{})
			require.NoError(t, runLua(t, `a = mx.arange(2048 * 2048):reshape({2048, 2048}) * 1e-6 mx.eval(a) `+l.text))
			m := dev.Memory()
			require.LessOrEqual(t, float64(m.Peak)/(16<<20), l.most+0.1)
			require.Zero(t, m.Collections)
		})
	}
}

// TestLooksAreTheSameEachTime: a program gives the device the same commands whenever it runs.
func TestLooksAreTheSameEachTime(t *testing.T) {
	for _, l := range loops {
		t.Run(l.name, func(t *testing.T) {
			var first int64
			for i := range 3 {
				_, drv := withDevice(t, metal.DeviceOptions{})
				require.NoError(t, runLua(t, `a = mx.arange(64 * 64):reshape({64, 64}) * 1e-6 mx.eval(a) `+l.text))
				require.NoError(t, tensor.Synchronize(context.Background()))
				if n := drv.dispatches.Load(); i == 0 {
					first = n
				} else {
					require.Equal(t, first, n)
				}
			}
		})
	}
}

// holders are programs whose arrays are held where no variable of the script shows it. look() finds out what is
// reached; what it misses is poisoned.
var holders = map[string]string{
	"x:at(i)":    `local p = mx.exp(a):at(0) look() assert(p:add(1).size == 4)`,
	"x:rows()":   `for row in mx.exp(a):rows() do look() assert(row.ndim == 1) mx.eval(row) end`,
	"mx.dims(x)": `local d = mx.dims({mx.exp(a), 1}, 3) look() assert(mx.zeros(d).size == 6)`,
	"an alias of an array that is written to": `
		local x = a + 1
		local y, p, d, r = x, x:at(0), mx.dims(x), x:rows()
		x[0] = 5
		look()
		assert(y == x and p:add(1).ndim == 2 and mx.zeros(d).size == 4 and r().ndim == 1)
		x[0] = 6; x[1] = 7
		assert(x.size == 4)`,
	"random keys": `mx.random.seed(3) for i = 1, 3 do local u = mx.random.normal({4}) look() mx.eval(u) look() end`,
	"a kernel's shape functions": `
		local k = mx.fast.metal_kernel("held", {"x"}, {"y"}, "y[thread_position_in_grid.x] = x[thread_position_in_grid.x];")
		local f
		do
			local extra = mx.exp(a)
			local sizes = function(s) assert(extra.size == 4) look() return s[1] end
			f = mx.compile(function(x) return k{inputs = {x}, grid = function(s) assert(extra.size == 4) return s[1] end,
				threadgroup = {1}, output_shapes = {sizes}, output_dtypes = {mx.float32}} end)
		end
		for i = 1, 3 do look() mx.eval(f(a:reshape({4}))) end`,
	"a compiled function's constants": `
		local f
		do
			local held = {c = mx.exp(a)}
			global = mx.sin(a)
			f = mx.compile(function(x) return x + global * 2 + mx.sum(held.c) end)
			mx.eval(f(a))
			global = nil
		end
		for i = 1, 3 do look() mx.eval(f(a)) end`,
	"a compiled function's trees": `
		local f = mx.compile(function(t) return {x = t.x + 1, y = {t.x * 2, "text"}} end)
		for i = 1, 3 do local r = f{x = a + i} look() mx.eval(r.x, r.y[1]) assert(r.y[2] == "text") end`,
	"a compiled function that was replaced while it ran": `
		local f
		f = mx.compile(function(x) f = nil return mx.exp(x) end)
		mx.eval(f(a)) look()`,
	"checkpoints": `
		local w = mx.exp(a)
		local f = mx.checkpoint(function(t) return mx.sin(t.x * w) end)
		local g = mx.grad(function(x) return mx.sum(f{x = x}) end)
		for i = 1, 2 do look() mx.eval(g(a)) end
		local compiled = mx.compile(function(x) return f{x = x} end)
		local outer = mx.grad(function(x) return mx.sum(compiled(x)) end)
		for i = 1, 3 do look() mx.eval(outer(a)) end`,
	"custom functions": `
		local make = function()
			local w = mx.exp(a)
			local f = mx.custom_function(function(x, y) return x * y + w end)
			f:vjp(function(p, cot, out) return p[2] * cot * w, p[1] * cot end)
			f:jvp(function(p, t) return t[1] * w end)
			f:vmap(function(p, axes) return p[1] * p[2] + 0, axes[1] or 0 end)
			return f
		end
		local f = make()
		local g = mx.grad(function(x) return mx.sum(f(x, a)) end)
		local compiled = mx.compile(function(x) return make()(x, a) end)
		local h = mx.grad(function(x) return mx.sum(compiled(x)) end)
		for i = 1, 3 do look() mx.eval(g(a), h(a)) end
		f = nil
		for i = 1, 2 do look() mx.eval(h(a)) end`,
	"evaluation inside of transforms": `
		local kept
		local g = mx.grad(function(x)
			local u = mx.exp(x)
			kept = u * 2
			mx.eval(kept) look()
			return mx.sum(u * kept)
		end)
		mx.eval(g(a)) look() assert(kept.size == 4)
		local v = mx.vmap(function(x) look() local y = mx.exp(a) mx.eval(y) look() return x + mx.sum(y) end)
		mx.eval(v(a)) look()
		mx.eval(mx.vjp(function(x) look() return mx.exp(x) end, {a}, {a})) look()
		mx.eval(mx.jvp(function(x) look() return mx.exp(x) end, {a}, {a}))`,
	"arguments that a transformed function replaces": `
		local t = {x = mx.exp(a)}
		local f = mx.grad(function(p) t.x = nil look() local u = p.x * 2 mx.eval(u) look() return mx.sum(u) end)
		mx.eval(f(t))`,
	"scopes": `
		local out = mx.scope(function()
			local x = mx.exp(a)
			look()
			local y = x + 1
			mx.eval(y) look()
			return y
		end)
		look() assert(out.size == 4)
		mx.scope(function() local x = mx.exp(a) x[0] = 1 look() mx.eval(x) x:free() end)
		local kept
		mx.scope(function() kept = mx.keep(mx.exp(a)) local b = kept kept[0] = 3 look() end)
		look()`,
	"freed arrays": `
		local x = mx.exp(a) local y = x x:free() look() collectgarbage() look()
		local z = mx.exp(a) local w = z[0] mx.eval(z, w) z:free() look() mx.eval(w + 1)`,
	"sorting": `
		local t = {}
		for i = 1, 8 do t[i] = {mx.exp(a * i)} end
		table.sort(t, function(p, q) t[9] = {} look() return mx.sum(p[1] - q[1]):item() < 0 end)`,
	"substituting": `("abc"):gsub("%w", function(c) local x = mx.exp(a) look() return mx.sum(x):item() .. "" end)`,
	"errors": `
		local ok, e = xpcall(function() local x = mx.exp(a) error({x}) end, function(e) look() return e end)
		look() assert(e[1].size == 4)
		local ok, e = pcall(mx.reshape, mx.exp(a), {3})
		look() assert(tostring(e):find"reshape" and e.message:find"reshape")
		local find = e.find
		string.find = nil
		look() assert(find(e, "reshape"))`,
	"a hundred coroutines": `
		local cos = {}
		for i = 1, 100 do
			local c = mx.exp(a + i)
			cos[i] = coroutine.wrap(function(x) while true do x = coroutine.yield(x + c) end end)
			if i % 10 == 0 then look() end
		end
		for i = 1, 100 do local y = cos[i](a) if i % 10 == 0 then look() end mx.eval(y) end`,
	"libraries that a script writes to": `
		mx.mine, mx.exp, nn.kept, math.held = mx.exp(a), mx.sin, mx.cos(a), mx.tan(a)
		look() mx.eval(mx.mine, nn.kept, math.held)`,
	"work that is not waited for": `
		for i = 1, 20 do local y = mx.exp(a * i) mx.async_eval(y) look() if i % 5 == 0 then y[0] = 3 mx.async_eval(y) end end
		mx.synchronize()`,
	"files": `
		local name = os.tmpname()
		mx.save(name .. ".npy", mx.exp(a)) look()
		local x = mx.load(name .. ".npy") look() assert(x.size == 4) mx.eval(x)
		os.remove(name .. ".npy") os.remove(name)`,
}

func TestHolders(t *testing.T) {
	for name, text := range holders {
		t.Run(name, func(t *testing.T) {
			withDevice(t, metal.DeviceOptions{})
			s := New(Options{Libraries: true, Stdout: &strings.Builder{}})
			defer s.Close()
			looked := 0
			s.L.SetGlobal("look", s.Through(func(*lua.LState) int {
				s.looks.now()
				looked++
				return 0
			}))
			run := func(text string) error {
				_, err := s.Run(context.Background(), strings.NewReader(text), "holder.lua")
				return err
			}
			require.NoError(t, run(`a = mx.array{{0.5, 1}, {1.5, 2}} mx.eval(a)`))
			require.NoError(t, run(text))
			require.Positive(t, looked)
			require.NoError(t, s.Finish(context.Background()))
			// Nothing of it is left that the script could not name.
			require.NoError(t, run(`look() collectgarbage() look()`))
		})
	}
}

// TestGoPrograms: what a Go program was given stays as long as it has it: values of Lua, what Lua puts into its tables
// later, functions and their variables, and arrays; and what it gave.
func TestGoPrograms(t *testing.T) {
	ctx := context.Background()
	withDevice(t, metal.DeviceOptions{})
	s := New(Options{})
	defer s.Close()
	run := func(text string, args ...lua.LValue) []lua.LValue {
		out, err := s.Run(ctx, strings.NewReader(text), "host.lua", args...)
		require.NoError(t, err)
		require.True(t, s.looks.now())
		return out
	}
	sum := func(x any) {
		t.Helper()
		require.True(t, s.looks.now())
		b, err := x.(*tensor.Array).Bytes(ctx)
		require.NoError(t, err)
		require.NotEmpty(t, b)
	}
	out := run(`local function f() return mx.exp(mx.ones({4})) end
		local hidden = f()
		local co = coroutine.create(function() local x = f() coroutine.yield() return x end)
		coroutine.resume(co)
		return f(), {f(), {x = f()}}, function() return hidden end, co, f()`)
	lists := toGo(s, out[1]).([]any)
	sum(lists[0])
	sum(lists[1].(map[string]any)["x"])
	sum(toGo(s, out[0]))
	sum(toGo(s, out[0]))
	got, err := toGo(s, out[2]).(Func)(ctx, nil)
	require.NoError(t, err)
	sum(got[0])
	co := run(`local ok, x = coroutine.resume(...) assert(ok) return x`, out[3])
	sum(toGo(s, co[0]))
	runtime.KeepAlive(out)

	// A table of the host's that Lua fills.
	table, err := s.ToLua(map[string]any{})
	require.NoError(t, err)
	run(`local t = ... t.x = mx.exp(mx.ones({4})) t.y = {mx.sin(t.x)}`, table)
	filled := toGo(s, table).(map[string]any)
	sum(filled["x"])
	sum(filled["y"].([]any)[0])
	require.NoError(t, s.SetGlobal("given", table))
	run(`given.z = mx.exp(mx.ones({4})) given = nil`)
	sum(toGo(s, table).(map[string]any)["z"])
	run(`held = {mx.exp(mx.ones({4}))}`)
	held := s.Global("held")
	run(`held = nil`)
	sum(toGo(s, held).([]any)[0])

	// Functions of the host's: what they are given, they may keep; what they give belongs to them too.
	var kept []any
	mine := tensor.FromBytes(nil, tensor.Spec{Shape: tensor.Shape{4}, DType: tensor.Float32}, make([]byte, 16))
	f, err := s.ToLua(Func(func(_ context.Context, args []any) ([]any, error) {
		kept = append(kept, args...)
		return []any{mine}, nil
	}))
	require.NoError(t, err)
	require.NoError(t, s.SetGlobal("f", f))
	run(`local x = f(mx.exp(mx.ones({4})), {mx.sin(mx.ones({4}))}) x[0] = 1 mx.eval(x)`)
	sum(kept[0])
	sum(kept[1].([]any)[0])
	sum(mine)

	// An array that a Go program evaluates: what led to it is not stored.
	dev, _ := withDevice(t, metal.DeviceOptions{})
	x := toGo(s, run(`local x = mx.ones({256, 1024}) * 1.5 return mx.exp(mx.sin(x) * 0.5)`)[0]).(*tensor.Array)
	dev.ResetPeak()
	require.NoError(t, tensor.Eval(ctx, x))
	require.LessOrEqual(t, dev.Memory().Peak, int64(1<<20+4096))
	require.NoError(t, tensor.Synchronize(ctx))
}

// TestCollectGarbage: collectgarbage means arrays too.
func TestCollectGarbage(t *testing.T) {
	withDevice(t, metal.DeviceOptions{})
	require.NoError(t, runLua(t, `
		local x = mx.ones({512, 1024}) * 2
		mx.eval(x)
		local before = collectgarbage("count")
		assert(before > 2048, before)
		x = nil
		collectgarbage()
		assert(mx.get_active_memory() == 0)
		assert(collectgarbage("count") < before - 1024)`))
}

// TestClosedStatesGiveBack: a closed state's arrays take no memory, though the program has the state yet, but for those
// that Go holds: arrays, what its tables hold, and what lazy arrays need.
func TestClosedStatesGiveBack(t *testing.T) {
	ctx := context.Background()
	dev, _ := withDevice(t, metal.DeviceOptions{})
	s := New(Options{})
	out, err := s.Run(ctx, strings.NewReader(`
		held = {}
		for i = 1, 8 do held[i] = mx.full({256, 256}, i) * 1 end
		mx.eval(held)
		local f = mx.custom_function(function(x) return x * held[3] end)
		waits = mx.exp(held[4])
		mx.async_eval(mx.sin(waits))
		local hidden = held[6] * 1
		mx.eval(hidden)
		given = function() return hidden end
		return held[1], {x = held[2]}, held[8] + 1, f(held[5])`), "closed.lua")
	require.NoError(t, err)
	x, lazy := toGo(s, out[0]).(*tensor.Array), toGo(s, out[2]).(*tensor.Array)
	f := s.Global("given")
	require.NoError(t, tensor.Synchronize(ctx))
	require.Positive(t, dev.Memory().Active)
	s.Close()
	runtime.KeepAlive(f)
	const one = 256 * 256 * 4
	require.EqualValues(t, 5*one, dev.Memory().Active, "held[1], [2], [3] and [5], and [8]; nobody asks for the others")
	first := func(x any, want float32) {
		t.Helper()
		b, err := x.(*tensor.Array).Bytes(ctx)
		require.NoError(t, err)
		require.Equal(t, want, math.Float32frombits(binary.LittleEndian.Uint32(b)))
	}
	first(x, 1)
	first(toGo(s, out[1]).(map[string]any)["x"], 2)
	first(lazy, 9)
	first(toGo(s, out[3]), 15)
	runtime.KeepAlive(s)
}

package mlxlua_test

import (
	"bytes"
	"fmt"
	"io"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/mlxlua/mlxlua"
	"github.com/mlxlua/mlxlua/internal/serial"
)

// observing is a script that prints what a sandbox lets it see of the program around it: figures, numbers, texts of
// objects and errors.
const observing = `
	local function figures(when)
		local function rounded(n) return ("%.2f MB"):format(n / 1e6) end -- Go's collector takes small arrays when it likes
		print(when, rounded(mx.get_active_memory()), mx.get_cache_memory(), mx.get_memory_limit(),
			rounded(mx.metal.get_active_memory()), mx.metal.get_cache_memory())
		local peak = mx.get_peak_memory() -- which follows from how much work is under way at a time, and so from time
		assert(peak >= mx.get_active_memory() and peak < 1e8 and mx.metal.get_peak_memory() <= peak)
		local cache = mx.metal.library_cache()
		for _, k in ipairs{"hits", "misses", "evictions", "size", "capacity", "pinned"} do print(k, cache[k]) end
		local info = mx.device_info()
		print(info.device_name, info.memory_size, info.threads, info.version)
	end
	figures("before")
	print(collectgarbage("count"), gcinfo(), collectgarbage(), collectgarbage("step"))
	print(mx.default_stream(mx.cpu), mx.default_stream(mx.cpu).index, mx.data.stream(), mx.default_device())
	mx.stream(mx.cpu, function() print(mx.default_stream(mx.cpu)) end)
	mx.set_default_device(mx.cpu)
	print(mx.default_stream(mx.cpu), mx.add(mx.array(1), 1, {stream = mx.cpu}))
	print({}, print, coroutine.create(function() end), mx.grad(function(x) return x end), mx.nn.Linear, string)
	print(tostring({}), ("%s %s"):format({}, print), pcall(error, {}), mx.nn.ReLU())
	print(pcall(function() return mx[{}] end), pcall(function() return mx.ones(2)[{print}] end))
	print(pcall(mx.sum, {}, print), pcall(mx.softmax, mx.ones(2), {[{}] = 1}), pcall(mx.sum, mx.ones(2), {[print] = 1}))
	print(pcall(mx.eval, print, {1, {}}), pcall(mx.utils.tree_map, print, {[{}] = 1}), pcall(mx.array, {{}, print}))
	local kernel = mx.fast.metal_kernel{name = "own", input_names = {"x"}, output_names = {"out"},
		source = "uint i = thread_position_in_grid.x; out[i] = x[i + 1000000];"}
	local function launch(k) return k{inputs = {mx.ones({64})}, grid = {64, 1, 1}, threadgroup = {32, 1, 1},
		output_shapes = {{64}}, output_dtypes = {mx.float32}} end
	print(pcall(function() mx.eval(launch(kernel)) end))
	print(pcall(function() mx.eval(launch(mx.fast.metal_kernel{name = "own", input_names = {"x"}, output_names = {"out"},
		source = "out[0] = y;"})) end))
	local x = mx.random.normal({1000, 1000}) mx.eval(x)
	print(x[0][0]:item(), math.random(), mx.random.split(mx.random.key(3)))
	figures("with an array")
	x = nil
	figures("without it")
	mx.reset_peak_memory() mx.clear_cache()
	figures("from there")
	print(pcall(mx.ones({2^20, 2^12}).item), pcall(function() mx.eval(mx.arange(2^29)) end))
	print(mx.compile(function(x) return x * 2 end):explain())
	for name, f in pairs(mx) do
		if type(f) == "function" and not name:find("help") and name ~= "clock" and not name:find("^get_") then
			for _, v in ipairs{{}, {x = {}}, print, mx.cpu, coroutine.create(function() end)} do
				print(name, pcall(f, v)) print(name, pcall(f, v, v))
			end
		end
	end`

// TestSandboxesSeeNothing: what a script in a sandbox sees of the program is the same whatever others do.
func TestSandboxesSeeNothing(t *testing.T) {
	t.Parallel()
	observe := func() string {
		var out bytes.Buffer
		s := open(t, mlxlua.Options{Sandbox: true, Stdout: &out})
		_, err := s.Run(t.Context(), "observer", observing)
		require.NoError(t, err)
		return out.String()
	}
	before := observe()
	require.NotRegexp(t, `0x[1-9a-f][0-9a-f]{6,}`, before, "an address")
	for i := range 3 { // others, of which some stay
		s := open(t, mlxlua.Options{Sandbox: i%2 == 0, Seed: uint64(i), Stdout: io.Discard})
		_, err := s.Run(t.Context(), "other", fmt.Sprintf(`
			kept, tables = mx.random.normal({%d, 1000}), {}
			for i = 1, 2e4 do tables[i] = {tostring({})} end
			mx.eval(kept, kept * 2, mx.fast.metal_kernel{name = "own", input_names = {"x"}, output_names = {"out"},
				source = "out[thread_position_in_grid.x] = x[0] + %d;"}{inputs = {kept}, grid = {64, 1, 1},
				threadgroup = {32, 1, 1}, output_shapes = {{64}}, output_dtypes = {mx.float32}})`, 1000+i, i))
		require.NoError(t, err)
		if i == 1 {
			s.Close()
		}
	}
	require.Equal(t, before, observe())
}

// TestSandboxesTouchNothing: what a sandbox may reset is its own.
func TestSandboxesTouchNothing(t *testing.T) {
	serial.Because(t, "it compares the peak of the device's memory")
	program := open(t, mlxlua.Options{})
	figures := func() []any {
		out, err := program.Run(t.Context(), "program", `return mx.get_peak_memory(), mx.get_memory_limit()`)
		require.NoError(t, err)
		return out
	}
	_, err := program.Run(t.Context(), "program", `mx.eval(mx.random.normal({20000, 1000})) collectgarbage()`)
	require.NoError(t, err)
	before := figures()
	s := open(t, mlxlua.Options{Sandbox: true})
	_, err = s.Run(t.Context(), "sandbox", `mx.reset_peak_memory() mx.metal.reset_peak_memory() mx.clear_cache()
		mx.metal.clear_cache() collectgarbage() collectgarbage("stop") gcinfo()
		assert(not pcall(mx.set_memory_limit, 1) and not pcall(mx.set_cache_limit, 1) and not pcall(mx.profile, print))
		assert(mx.get_active_memory() == 0 and mx.get_peak_memory() == 0)
		local x = mx.ones({1000, 1000}) + mx.arange(1000) mx.eval(x)
		local held = mx.get_active_memory()
		assert(held >= 4e6 and held < 4.2e6 and mx.get_peak_memory() >= held, held)
		x = nil
		assert(mx.get_active_memory() < 1e5 and mx.get_peak_memory() >= held)
		mx.reset_peak_memory()
		assert(mx.get_peak_memory() < 1e5)
		local t = {} for i = 1, 1000 do t[i] = {} end
		local with = collectgarbage("count")
		t = nil
		assert(with - collectgarbage("count") > 100 and with < 2^14)`)
	require.NoError(t, err)
	after := figures()
	require.GreaterOrEqual(t, after[0], before[0])
	require.Equal(t, before[1], after[1])
}

package luabind

import (
	"context"
	"encoding/json"
	"errors"
	"flag"
	"os"
	"path/filepath"
	"strings"
	"sync"
	"sync/atomic"
	"testing"

	"github.com/stretchr/testify/require"
	lua "github.com/yuin/gopher-lua"

	"github.com/mlxlua/mlxlua/internal/serial"
	"github.com/mlxlua/mlxlua/metal"
	"github.com/mlxlua/mlxlua/metal/soft"
	"github.com/mlxlua/mlxlua/metal/testdevice"
	"github.com/mlxlua/mlxlua/tensor"
)

// The device model under fire, from Lua: MLX's bug families by the numbers of their issues. Each test runs a program
// on a device that has all its defences, where it must be clean, and on one from which the test took a defence away,
// where it must fail every time.

// counter is a driver that counts what it is given.
type counter struct {
	metal.Driver
	dispatches atomic.Int64 // and copies and fills
	donated    atomic.Int64 // dispatches of donations: they write what they read, of leastDonated bytes or more
	texts      sync.Map     // of the libraries that were compiled
}

func (c *counter) Compile(ctx context.Context, src metal.Source) (metal.Module, error) {
	c.texts.Store(src.Text, true)
	return c.Driver.Compile(ctx, src)
}

func (c *counter) Submit(queue int, cb *metal.CommandBuffer, done func(metal.Result)) {
	for _, cmd := range cb.Commands() {
		if cmd.Kind != metal.CmdBarrier {
			c.dispatches.Add(1)
		}
		if cmd.Kind == metal.CmdDispatch {
			c.donated.Add(donations(&cmd))
		}
	}
	c.Driver.Submit(queue, cb, done)
}

const leastDonated = 64 << 10

// donations counts the buffers that a dispatch writes and has as another argument, too.
func donations(cmd *metal.Command) (n int64) {
	for i, p := range cmd.Pipeline.Params() {
		b := cmd.Args[i].Buffer
		if b.Buf == nil || !p.Write || b.Bytes < leastDonated {
			continue
		}
		for j := range cmd.Args {
			if j != i && cmd.Args[j].Buffer.Buf == b.Buf {
				n++
			}
		}
	}
	return n
}

// withDevice makes another device the default one until the test ends.
func withDevice(t testing.TB, opt metal.DeviceOptions) (*metal.Device, *counter) {
	t.Helper()
	serial.Because(t, "another device is the default one of the process")
	testdevice.NeedsCPU(t, "a device of its own takes the CPU's place")
	drv := &counter{Driver: soft.New(soft.Options{})}
	return openInPlace(t, drv, opt), drv
}

// withOwnDevice is withDevice for what runs on a discrete device, too.
func withOwnDevice(t testing.TB, opt metal.DeviceOptions) {
	t.Helper()
	if testdevice.Discrete() != nil {
		openInPlace(t, testdevice.NewDiscrete(0), opt)
		return
	}
	withDevice(t, opt)
}

// openInPlace opens a device in the place of the one that tests evaluate on.
func openInPlace(t testing.TB, drv metal.Driver, opt metal.DeviceOptions) *metal.Device {
	t.Helper()
	before, err := tensor.MetalDevice(tensor.DefaultDevice())
	require.NoError(t, err)
	dev, err := metal.NewDevice(drv, opt)
	require.NoError(t, err)
	dev.SetValidate(opt.Validate) // whatever the environment says
	tensor.SetDevice(dev)
	t.Cleanup(func() {
		require.NoError(t, tensor.Synchronize(context.Background()))
		tensor.SetDevice(before)
		require.NoError(t, dev.Close())
	})
	return dev
}

// runLua runs a script in a state of its own and gives its error.
func runLua(t testing.TB, text string, args ...lua.LValue) error {
	s := New(Options{Libraries: true, Stdout: &strings.Builder{}})
	defer s.Close()
	_, err := s.Run(context.Background(), strings.NewReader(fireHelpers+text), "fire.lua", args...)
	return err
}

// fireHelpers are on one line, so that scripts' lines count from 1.
const fireHelpers = `local function same(x, want) local got = x:tolist() for i = 1, #want do ` +
	`if got[i] ~= want[i] then error("element " .. i .. " is " .. got[i] .. ", want " .. want[i], 2) end end end; `

// paroQuant is one kernel name, called with float16 and float32 inputs in one graph: MLX's issues 3434 and 3347.
const paroQuant = `
local rotate = mx.fast.metal_kernel{name = "rotate", input_names = {"x", "angle"}, output_names = {"out"},
  source = "uint i = thread_position_in_grid.x; out[i] = x[i] * angle[0] + T(sizeof(x[0]));"}
local function call(x) return rotate{inputs = {x, mx.array({2}, x.dtype)}, template = {{"T", x.dtype}},
  grid = {8, 1, 1}, threadgroup = {8, 1, 1}, output_shapes = {x.shape}, output_dtypes = {x.dtype}} end
local x = mx.arange(8)
local half, single = call(x:astype(mx.float16)), call(x:astype(mx.float32))
local again = call(half)
mx.eval(half, single, again)
same(half, {2, 4, 6, 8, 10, 12, 14, 16})
same(single, {4, 6, 8, 10, 12, 14, 16, 18})
same(again, {6, 10, 14, 18, 22, 26, 30, 34})
`

// otherBody is one kernel name and signature with two bodies in one graph: MLX's issue 3263.
const otherBody = `
local function kernel(body) return mx.fast.metal_kernel{name = "layer", input_names = {"x"}, output_names = {"out"},
  source = "uint i = thread_position_in_grid.x; out[i] = " .. body .. ";"} end
local function call(k, x) return k{inputs = {x}, grid = {8, 1, 1}, threadgroup = {8, 1, 1}, output_shapes = {{8}},
  output_dtypes = {mx.float32}} end
local x = mx.arange(8):astype(mx.float32)
local plus, times = kernel("x[i] + 1"), kernel("x[i] * 3")
local a, b = call(plus, x), call(times, x)
local c = call(plus, call(times, call(plus, x)))
mx.eval(a, b, c)
same(a, {1, 2, 3, 4, 5, 6, 7, 8})
same(b, {0, 3, 6, 9, 12, 15, 18, 21})
same(c, {4, 7, 10, 13, 16, 19, 22, 25})
`

// variants are one name with other templates, headers and options.
const variants = `
local function kernel(header, mode) return mx.fast.metal_kernel{name = "v", input_names = {"x"}, output_names = {"out"},
  header = header, compile_options = mode and {math_mode = mode},
  source = "uint i = thread_position_in_grid.x; out[i] = x[i] * N + K;"} end
local x, sum, all = mx.arange(8):astype(mx.float32), 0, {}
for n = 1, 3 do for k = 1, 2 do for _, mode in ipairs({"safe", "relaxed", "fast"}) do
  all[#all + 1] = kernel("constant int K = " .. k .. ";", mode){inputs = {x}, template = {{"N", n}}, grid = {8, 1, 1},
    threadgroup = {8, 1, 1}, output_shapes = {{8}}, output_dtypes = {mx.float32}}
end end end
mx.eval(all)
local i = 0
for n = 1, 3 do for k = 1, 2 do for _ = 1, 3 do
  i = i + 1
  same(all[i], {k, n + k, 2 * n + k, 3 * n + k})
end end end
`

// joined are kernels whose name, parameters and body run together to the same text.
const joined = `
local function call(name, input, output, x) return mx.fast.metal_kernel{name = name, input_names = {input},
  output_names = {output},
  source = "uint i = thread_position_in_grid.x; " .. output .. "[i] = " .. input .. "[i] * 3;"}{
  inputs = {x}, grid = {8, 1, 1}, threadgroup = {8, 1, 1}, output_shapes = {{8}}, output_dtypes = {x.dtype}} end
local x = mx.arange(8)
local a, b, c = call("ka", "b", "c", x), call("k", "ab", "c", x + 1), call("k", "a", "bc", (x + 2):astype(mx.float32))
mx.eval(a, b, c)
same(a, {0, 3, 6, 9, 12, 15, 18, 21})
same(b, {3, 6, 9, 12, 15, 18, 21, 24})
same(c, {6, 9, 12, 15, 18, 21, 24, 27})
`

func TestFireIdentity(t *testing.T) {
	for name, c := range map[string]struct {
		program string
		misses  int64 // libraries of the program's own kernels
	}{
		"float16, then float32": {paroQuant, 2}, "another body": {otherBody, 2}, "variants": {variants, 18},
		"joined fields": {joined, 3},
	} {
		t.Run(name, func(t *testing.T) {
			dev, _ := withDevice(t, metal.DeviceOptions{Validate: true})
			require.NoError(t, runLua(t, c.program))
			first := dev.LibraryStats()
			require.NoError(t, runLua(t, c.program))
			second := dev.LibraryStats()
			require.Equal(t, first.Misses, second.Misses, "the second time everything is found")
			require.Greater(t, second.Hits, first.Hits)
			require.GreaterOrEqual(t, first.Misses, c.misses)
			require.Zero(t, second.Evictions)
			require.Zero(t, second.Pinned, "nothing runs any more")
			require.NoError(t, runLua(t, `local c, misses = mx.metal.library_cache(), ...
assert(c.misses == misses and c.size == misses and c.capacity == 1024 and c.evictions == 0)`,
				lua.LNumber(second.Misses)))

			// A cache with room for one library: those in use stay, and results are right.
			small, _ := withDevice(t, metal.DeviceOptions{Validate: true, LibraryCap: 1})
			require.NoError(t, runLua(t, c.program))
			require.Positive(t, small.LibraryStats().Evictions)
			require.LessOrEqual(t, small.LibraryStats().Size, 1)

			// All keys collide: the content tells.
			withDevice(t, metal.DeviceOptions{Validate: true, Ablate: metal.Ablations{
				Hash: func([]byte) metal.Key { return metal.Key{1} }}})
			require.NoError(t, runLua(t, c.program))

			for range 3 { // the bugs, brought back
				withDevice(t, metal.DeviceOptions{Ablate: metal.Ablations{KeyByName: true}})
				require.Error(t, runLua(t, c.program), "the name is the key")
				withDevice(t, metal.DeviceOptions{Validate: true, Ablate: metal.Ablations{KeyByName: true,
					ClearOnMismatch: true}})
				require.ErrorContains(t, runLua(t, c.program),
					"[validate] command buffer references deallocated object: library ")
			}
		})
	}
}

// TestFireFirstUse: many states need one kernel for the first time, at the same time.
func TestFireFirstUse(t *testing.T) {
	dev, _ := withDevice(t, metal.DeviceOptions{})
	require.NoError(t, inStates(16, func(int) error { return runLua(t, otherBody) }))
	want := dev.LibraryStats().Misses
	alone, _ := withDevice(t, metal.DeviceOptions{})
	require.NoError(t, runLua(t, otherBody))
	require.Equal(t, alone.LibraryStats().Misses, want, "each library is compiled once")
}

// inStates calls f on n goroutines at once.
func inStates(n int, f func(i int) error) error {
	errs := make([]error, n)
	var wg sync.WaitGroup
	for i := range n {
		wg.Go(func() { errs[i] = f(i) })
	}
	wg.Wait()
	return errors.Join(errs...)
}

// matmuls is eight rounds of matrix products whose intermediates are dropped before they are evaluated.
const matmuls = `
local seed, rounds = ...
local a = mx.arange(24 * 8):reshape({24, 8}):astype(mx.float32) % 7 - 3
local b = mx.arange(8 * 24):reshape({8, 24}):astype(mx.float32) % 5 - 2
for round = 1, rounds do
  local scale = seed % 4 + round
  local ab = mx.matmul(a, b)
  local scaled = ab * scale
  local out = mx.matmul(scaled, a)
  local total = mx.sum(out, 0)
  ab:free() scaled:free()
  mx.async_eval(out, total)
  out:free()
  local got = total:tolist()
  if round == 1 then first = {} for i = 1, 8 do first[i] = got[i] / scale end end
  for i = 1, 8 do assert(got[i] == first[i] * scale, got[i]) end
end
`

// dispatches is 64 rounds of a custom kernel of three inputs, all of which are dropped as soon as the work is handed
// over.
const dispatches = `
local seed, rounds = ...
local mix = mx.fast.metal_kernel{name = "mix", input_names = {"a", "b", "c"}, output_names = {"out"},
  source = "uint i = thread_position_in_grid.x; out[i] = a[i] * b[i] + c[i];"}
local function call(n, a, b, c) return mix{inputs = {a, b, c}, grid = {n, 1, 1}, threadgroup = {64, 1, 1},
  output_shapes = {{n}}, output_dtypes = {mx.float32}} end
for round = 1, rounds do
  local n = 1 + (seed * 677 + round * 131) % 4096
  local zero = mx.zeros({n}) * 1
  local a, b, c = zero + 2, zero + round, zero + seed
  local t = call(n, a, b, c)
  local y = call(n, t, b, c)
  local last = mx.sum(y)
  a:free() b:free() c:free() t:free() y:free()
  mx.async_eval(last)
  local want = ((2 * round + seed) * round + seed) * n
  assert(math.abs(last:item() - want) <= 1e-5 * want, last:item() .. " " .. want)
end
`

// The hybrid decode step joins these workloads by an entry of its own.
var workloads = []struct {
	name, program          string
	states, rounds         int
	longStates, longRounds int // with -fire
}{
	{"matmul and eval", matmuls, 16, 2, 16, 8},
	{"dispatch and drop", dispatches, 6, 2, 32, 64},
}

var fire = flag.Bool("fire", false, "run the tests of the device model at full length: minutes")

// TestFireLifetime is MLX's issue 3462: buffers that are dropped between encoding and completion. Ten runs are clean
// under validation, and with retention switched off each of ten runs is reported, naming buffer and kernel.
func TestFireLifetime(t *testing.T) {
	for _, w := range workloads {
		t.Run(w.name, func(t *testing.T) {
			runs := 10
			if testing.Short() {
				runs = 3
			}
			states, rounds := w.states, w.rounds
			if *fire {
				states, rounds = w.longStates, w.longRounds
			}
			once := func() error {
				return inStates(states, func(i int) error {
					return runLua(t, w.program, lua.LNumber(i), lua.LNumber(rounds))
				})
			}
			dev, _ := withDevice(t, metal.DeviceOptions{Validate: true})
			for range runs {
				require.NoError(t, once())
			}
			require.NoError(t, tensor.Synchronize(context.Background())) // who waits for an array goes on before the stream does
			dev.Collect(context.Background())
			require.Zero(t, dev.Memory().Buffers, "%v", dev.Live())
			withDevice(t, metal.DeviceOptions{Validate: true, Ablate: metal.Ablations{NoRetain: true}})
			for range runs {
				err := once()
				require.ErrorContains(t, err, "[validate] command buffer references deallocated object: buffer of ")
				require.Regexp(t, `buffer of (a temporary of )?\w+ made at fire.lua:\d+ \(#\d+, \d+ bytes\) `+
					`in kernel \w+ \[\w+ fire.lua:\d+\]`, err.Error())
			}
		})
	}
}

// TestFireRetentionByEnvironment: the switch that users have for bisection.
func TestFireRetentionByEnvironment(t *testing.T) {
	t.Setenv(metal.RetainEnv, "0")
	withDevice(t, metal.DeviceOptions{Validate: true})
	require.ErrorContains(t, runLua(t, dispatches, lua.LNumber(1), lua.LNumber(1)), "deallocated object")
}

// TestFireTimeline: the timeline of a function, which goes on as if it was not there.
func TestFireTimeline(t *testing.T) {
	withDevice(t, metal.DeviceOptions{})
	dir := t.TempDir()
	require.NoError(t, runLua(t, `
local dir = ...
local a, b = mx.timeline(dir .. "/good.json", function() return mx.exp(mx.zeros({4})):tolist()[1], "two" end)
assert(a == 1 and b == "two")
local ok, e = pcall(mx.timeline, dir .. "/bad.json", function() mx.eval(mx.ones({8}) + 1) error("inside") end)
assert(not ok and tostring(e):find("inside"), tostring(e))
local ok, e = pcall(mx.timeline, dir .. "/none/x.json", function() end)
assert(not ok and tostring(e):find("%[timeline%]"), tostring(e))
local ok, e = pcall(mx.timeline, dir .. "/x.json", function() mx.timeline(dir .. "/y.json", function() end) end)
assert(not ok and tostring(e):find("another timeline is being recorded"), tostring(e))
`, lua.LString(dir)))
	for _, name := range []string{"good.json", "bad.json", "x.json"} {
		text, err := os.ReadFile(filepath.Join(dir, name))
		require.NoError(t, err)
		require.True(t, json.Valid(text), name)
		require.Contains(t, string(text), `"cat":"Lua"`, name)
	}
	files, err := os.ReadDir(dir)
	require.NoError(t, err)
	require.Len(t, files, 3, "nothing unfinished is left")
	s := New(Options{})
	defer s.Close()
	_, err = s.Run(context.Background(), strings.NewReader("mx.timeline('x', function() end)"), "closed.lua")
	require.ErrorContains(t, err, "this state has no access to files")
}

// TestFireCheckNaN: the first operation that makes a NaN, with its line and the element's index.
func TestFireCheckNaN(t *testing.T) {
	serial.Because(t, "the search for NaNs is switched on for the process")
	withDevice(t, metal.DeviceOptions{})
	defer tensor.CheckNaN(false)
	require.NoError(t, runLua(t, `
assert(mx.check_nan() == false)
local x = mx.array({{1, 4}, {-1, 9}})
local masked = mx.where(mx.greater(x, 0), x, -mx.inf)
assert(mx.softmax(masked, -1):tolist()[2][2] == 1)
local ok, e = pcall(function()
  local y = mx.sqrt(x) + 1
  return mx.sum(y * 2):item()
end)
assert(not ok and tostring(e) == "fire.lua:7: [sqrt] the output has a NaN at index (1, 0), and its inputs have none",
  tostring(e))
assert(mx.check_nan(false) == true)
assert(mx.sum(mx.sqrt(x)):item() ~= 0)
`))
}

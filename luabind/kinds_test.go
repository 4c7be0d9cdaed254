package luabind

import (
	"flag"
	"fmt"
	"os"
	"os/exec"
	"runtime"
	"runtime/debug"
	"runtime/metrics"
	"strconv"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/mlxlua/mlxlua/internal/brief"
	"github.com/mlxlua/mlxlua/internal/serial"
	"github.com/mlxlua/mlxlua/luabind/lua51"
)

var kindsFor = flag.Duration("kinds", 0, "how long TestEveryKindCounts makes each kind of thing; 0: shortly")

// memoryKinds are what Go makes for scripts: each is made again and again, by an expression of the number i, and kept.
var memoryKinds = map[string]string{
	"kernels":           `mx.fast.metal_kernel{name = "k", input_names = {"x"}, output_names = {"o"}, source = "//" .. i}`,
	"kernels' sources":  `mx.fast.metal_kernel{name = "k", input_names = {"x"}, output_names = {"o"}, source = i .. long}`,
	"finfo":             `mx.finfo(mx.float32)`,
	"iinfo":             `mx.iinfo(mx.int8)`,
	"gmatch":            `("abc"):gmatch("b")`,
	"gmatch of texts":   `(i .. long):gmatch("b")`,
	"compiled":          `mx.compile(function(x) return x + i end)`,
	"compiled and run":  `called(mx.compile(function(x) return x + i end), x)`,
	"captured tables":   `mx.compile(captures({i, i, i, i, i, i}))`,
	"shapes":            `x.shape`,
	"keys":              `mx.random.key(i)`,
	"splits":            `mx.random.split(key)`,
	"the state's key":   `0, mx.random.split(mx.random.state[1])`,
	"gradients":         `mx.grad(f)`,
	"values, gradients": `mx.value_and_grad(f)`,
	"batches":           `mx.vmap(f)`,
	"checkpoints":       `mx.checkpoint(f)`,
	"run checkpoints":   `mx.checkpoint(captures({i, i, i, i}))(x)`,
	"custom functions":  `mx.custom_function(f)`,
	"coroutines":        `coroutine.create(f)`,
	"wrapped":           `coroutine.wrap(f)`,
	"stacks":            `stack(i)`,
	"texts":             `("x"):rep(1000) .. i`,
	"repeated":          `("x"):rep(i % 1000)`,
	"formatted":         `("%d %s"):format(i, "x")`,
	"numbers' texts":    `tostring(i)`,
	"parts":             `long:sub(i % 1000)`,
	"replaced":          `("xyz"):gsub("y", i)`,
	"joined":            `table.concat({i, "x"})`,
	"upper":             `("x" .. i):upper()`,
	"characters":        `string.char(65 + i % 26, 65, 66, 67, 68, 69, 70, 71, 72, 73)`,
	"rows":              `x:rows()`,
	"loaders":           `mx.data.DataLoader(x, 2)`,
	"loaders' batches":  `mx.data.DataLoader(x, 2)()`,
	"layers":            `mx.nn.Linear(2, 2)`,
	"models":            `mx.nn.Sequential(mx.nn.Linear(2, 2), mx.nn.ReLU())`,
	"optimizers":        `mx.optimizers.Adam(1e-3)`,
	"lists":             `{i, i + 1, i + 2}`,
	"first elements":    `first(i)`,
	"objects":           `{name = i, value = 2}`,
	"fields":            `field(i)`,
	"named lists":       `named({i})`,
	"mixed":             `{i, i, i, a = 1, b = {}, [i] = 2}`,
	"long lists":        `{` + strings.Repeat("i,", 500) + `}`,
	"unpacked":          `{unpack(list)}`,
	"numbers":           `i + 0.5`,
	"closures":          `function() return i end`,
	"errors":            `select(2, pcall(mx.reshape, x, {7}))`,
	"errors' tables":    `select(2, pcall(error, {}))`,
	"texts of errors":   `select(2, pcall(error, "e" .. i))`,
	"tracebacks":        `select(2, pcall(mx.reshape, x, {7})).traceback`,
	"printed arrays":    `tostring(x)`,
	"printed kernels":   `tostring(kernel)`,
	"explained":         `compiled:explain()`,
	"functions":         `mx.add`,
	"chunks":            `loadstring("return " .. i)`,
	"at":                `x:at(1)`,
	"dims":              `mx.dims(x, 0)`,
	"devices":           `mx.default_device()`,
	"lists of numbers":  `x:tolist()`,
	"complex numbers":   `z:item()`,
	"arrays":            `mx.ones({2})`,
	"arrays of lists":   `mx.array({i, i})`,
	"trees":             `mx.utils.tree_map(function(x) return x end, {x, x})`,
	"jvp":               `mx.jvp(f, {x}, {x})`,
}

const kindsPrelude = `
	local long, x, key, f = ("x"):rep(1e4), mx.ones({4}), mx.random.key(1), function(x) return x * 2 end
	local z, list, kept = mx.array(mx.complex(1, 2)), {}, {}
	for i = 1, 1000 do list[i] = i end
	mx.eval(x, key, z)
	local compiled = mx.compile(f)
	compiled(x)
	local kernel = mx.fast.metal_kernel{name = "k", input_names = {"x"}, output_names = {"o"}, source = "o[0] = x[0];"}
	local function called(f, ...) f(...) return f end
	local function captures(t) return function(x) return x * t[1] end end
	local function first(i) local t = {} t[1] = i return t end
	local function field(i) local t = {} t.a = i return t end
	local function named(t) t.name = 1 return t end
	local function stack(i)
		local co = coroutine.wrap(function()
			local function deep(...) return select("#", ...) end
			deep(unpack(list))
			deep(unpack(list), unpack(list))
			coroutine.yield()
		end)
		co()
		return co
	end
`

// alone runs the test in a process of its own, whose heap is small so that collections take no time, and reports
// whether this is another one.
func alone(t *testing.T) bool {
	const mark = "MLXLUA_TEST_ALONE"
	if os.Getenv(mark) != "" {
		return false
	}
	only := flag.Lookup("test.run").Value.String()
	if !strings.HasPrefix(only, t.Name()+"/") && !strings.HasPrefix(only, "^"+t.Name()+"$/") {
		only = "^" + t.Name() + "$"
	}
	cmd := exec.CommandContext(t.Context(), os.Args[0], "-test.v", "-test.run="+only, "-kinds="+kindsFor.String())
	cmd.Env = append(os.Environ(), mark+"=1")
	out, err := cmd.CombinedOutput()
	t.Logf("%s", out)
	require.NoError(t, err)
	return true
}

// resident is how much of the system's memory the process holds, in bytes.
func resident() int64 {
	if raw, err := os.ReadFile("/proc/self/statm"); err == nil {
		if f := strings.Fields(string(raw)); len(f) > 1 {
			if pages, err := strconv.ParseInt(f[1], 10, 64); err == nil {
				return pages * int64(os.Getpagesize())
			}
		}
	}
	s := []metrics.Sample{{Name: "/memory/classes/total:bytes"}, {Name: "/memory/classes/heap/released:bytes"}}
	metrics.Read(s)
	return int64(s[0].Value.Uint64() - s[1].Value.Uint64())
}

// kept is how much Go's collector has found alive.
func kept() int64 {
	s := []metrics.Sample{{Name: "/gc/heap/live:bytes"}}
	metrics.Read(s)
	return int64(s[0].Value.Uint64())
}

// collected is Go's heap without its garbage.
func collected() int64 {
	runtime.GC()
	runtime.GC()
	var m runtime.MemStats
	runtime.ReadMemStats(&m)
	return int64(m.HeapAlloc)
}

// growth is how much a figure grows while f runs, at most.
func growth(figure func() int64, f func()) int64 {
	debug.FreeOSMemory()
	before := figure()
	most := before
	var watching sync.WaitGroup
	done := make(chan struct{})
	watching.Add(1)
	go func() {
		defer watching.Done()
		for {
			most = max(most, figure())
			select {
			case <-done:
				return
			case <-time.After(5 * time.Millisecond):
			}
		}
	}()
	f()
	close(done)
	watching.Wait()
	return max(most, figure()) - before
}

// TestEveryKindCounts: whatever Go makes for a script counts as its memory: the process grows by the limit and 64 MiB
// at most, and the script ends with the limit's error. In the short form of CI, which most kinds end before they come
// to the limit, it is what Go's collector finds alive that may not grow beyond.
//
//	go test ./luabind -run TestEveryKindCounts -kinds 10s -v -timeout 30m
func TestEveryKindCounts(t *testing.T) {
	serial.Because(t, "it measures the process's memory")
	if alone(t) {
		return
	}
	const limit, beside = 32 << 20, 64 << 20
	long, figure := *kindsFor, resident
	if long == 0 {
		long, figure = 50*time.Millisecond, kept
	}
	for name, expr := range memoryKinds {
		t.Run(name, func(t *testing.T) {
			s := New(Options{Sandbox: true, Limits: Limits{Limits: lua51.Limits{Memory: limit}, Arrays: limit, Time: long}})
			defer s.Close()
			var err error
			begun := time.Now()
			grown := growth(figure, func() {
				_, err = s.Run(t.Context(), strings.NewReader(kindsPrelude+
					`local i = 0 while true do i = i + 1 kept[i] = `+expr+` end`), "kinds")
			})
			t.Logf("%d MiB in %v: %v", grown>>20, time.Since(begun).Round(time.Millisecond), err)
			require.ErrorIs(t, err, ErrLimit)
			require.Less(t, grown, int64(limit+beside))
			if *kindsFor >= 10*time.Second && name != "parts" { // which are parts of one text
				require.ErrorContains(t, err, "the script's memory is full")
			}
		})
	}
}

// TestKindsWeighWhatTheyTake: what is measured of each kind is what Go's heap grows by, within a factor of two.
func TestKindsWeighWhatTheyTake(t *testing.T) {
	serial.Because(t, "it measures the process's memory")
	if alone(t) {
		return
	}
	const many, noise = 1000, 300 << 10
	for name, expr := range memoryKinds {
		if name == "parts" { // of one text
			continue
		}
		s := New(Options{})
		run := func(source string) {
			_, err := s.Run(t.Context(), strings.NewReader(source), "kinds")
			require.NoError(t, err, name)
		}
		run(kindsPrelude + `function make(n) for i = 1, n do kept[i] = ` + expr + ` end end make(10)`)
		heapBefore, before := collected(), s.InUse()
		run(fmt.Sprintf("make(%d)", many))
		s.looks.now()
		took, measured := collected()-heapBefore, s.InUse()-before
		t.Logf("%-18s takes %6d bytes, measured %6d", name, took/many, measured/many)
		require.Less(t, took, 2*measured+noise, name)
		require.Less(t, measured, 2*took+noise, name)
		s.Close()
	}
}

// deepTexts are texts of up to a MiB that are nested so deep that the parser would take 400 bytes for each of theirs.
var deepTexts = map[string]string{
	"calls":       `"return " .. ("f("):rep(3e5) .. (")"):rep(3e5)`,
	"parentheses": `"return " .. ("("):rep(5e5) .. "1" .. (")"):rep(5e5)`,
	"tables":      `"return " .. ("{"):rep(5e5) .. ("}"):rep(5e5)`,
	"indices":     `"return " .. ("a["):rep(3e5) .. ("]"):rep(3e5)`,
	"concats":     `"return " .. ("a.."):rep(3e5) .. "a"`,
	"powers":      `"return " .. ("a^"):rep(5e5) .. "a"`,
	"lengths":     `"return " .. ("#"):rep(1e6) .. "a"`,
	"negations":   `"return " .. ("not - "):rep(1e5) .. "a"`,
	"blocks":      `("do "):rep(1.4e5) .. ("end "):rep(1.4e5)`,
	"loops":       `("while a do "):rep(6e4) .. ("end "):rep(6e4)`,
	"repeats":     `("repeat "):rep(6e4) .. ("until a "):rep(6e4)`,
	"conditions":  `("if a then "):rep(7e4) .. ("end "):rep(7e4)`,
	"functions":   `"return " .. ("function() return "):rep(4e4) .. ("end "):rep(4e4)`,
}

// TestCompilingCounts: what the parser makes of a text counts while it runs, and a text is not begun that is nested
// too deep.
func TestCompilingCounts(t *testing.T) {
	serial.Because(t, "it measures the process's memory")
	if alone(t) {
		return
	}
	const limit, beside = 96 << 20, 64 << 20
	run := func(memory int64, source string) error {
		s := New(Options{Sandbox: true, Limits: Limits{Limits: lua51.Limits{Memory: memory, Source: 1 << 20}}})
		defer s.Close()
		_, err := s.Run(t.Context(), strings.NewReader(source), "texts")
		return err
	}
	for name, text := range deepTexts {
		grown := growth(resident, func() {
			require.NoError(t, run(limit, `local nothing, why = loadstring(("\n"):rep(9) .. `+text+`, "=deep")
				assert(not nothing and why == "deep:10: chunk is nested more than 10000 levels deep", why)`), name)
		})
		t.Logf("%-12s %d MiB", name, grown>>20)
		require.Less(t, grown, int64(limit+beside), name)
	}
	const plain = `assert(loadstring(("a = b(1) "):rep(1e5)))`
	require.NoError(t, run(256<<20, plain))
	require.ErrorContains(t, run(limit/3, plain), "the script's memory is full")
}

// TestCompilingKernelsCounts: a kernel's text is not compiled that may take more than there is left of the script's
// memory, but for what the shortest take.
func TestCompilingKernelsCounts(t *testing.T) {
	serial.Because(t, "it measures the process's memory")
	if brief.Run() {
		t.Skip("the race detector keeps several bytes for each that is written")
	}
	if alone(t) {
		return
	}
	const limit, beside = 32 << 20, 64 << 20
	run := func(memory int64, functions int) error {
		s := New(Options{Sandbox: true, Limits: Limits{Limits: lua51.Limits{Memory: memory}}})
		defer s.Close()
		_, err := s.Run(t.Context(), strings.NewReader(fmt.Sprintf(`local header, body = {}, {}
			for i = 1, %d do
				header[i] = ("float f%%d(float x) { return x + %%d; }"):format(i, i)
				body[i] = ("out[0] += f%%d(x[0]);"):format(i)
			end
			local k = mx.fast.metal_kernel{name = "k", input_names = {"x"}, output_names = {"out"},
				header = table.concat(header), source = table.concat(body)}
			local y = k{inputs = {mx.zeros({1})}, grid = {1, 1, 1}, threadgroup = {1, 1, 1}, output_shapes = {{1}},
				output_dtypes = {mx.float32}, init_value = 0}
			assert(y:item() == #body * (#body + 1) / 2)`, functions)), "kernels")
		return err
	}
	grown := growth(resident, func() {
		require.NoError(t, run(limit, 1000))
		require.ErrorContains(t, run(limit, 20000), "the script's memory is full")
	})
	t.Logf("%d MiB", grown>>20)
	require.Less(t, grown, int64(limit+beside))
	require.NoError(t, run(256<<20, 3000))
}

package mlxlua_test

import (
	"bytes"
	"context"
	"os"
	"path/filepath"
	"strings"
	"testing"
	"testing/fstest"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/mlxlua/mlxlua"
	"github.com/mlxlua/mlxlua/internal/serial"
)

// endless is a kernel that never ends, and what calls it.
const endless = `local k = mx.fast.metal_kernel{name = "spin", input_names = {"x"}, output_names = {"out"},
	source = "float v = x[0]; while (v < 1.0f) { v = v * 0.5f; } out[thread_position_in_grid.x] = v;"}
	local y = k{inputs = {mx.zeros({64})}, grid = {64, 1, 1}, threadgroup = {32, 1, 1}, output_shapes = {{64}},
	output_dtypes = {mx.float32}}[1] `

// TestArrayLimits: what arrays take of the device's memory, and graphs of the host's, is bounded for each state.
func TestArrayLimits(t *testing.T) {
	t.Parallel()
	for _, c := range []struct{ name, source, want string }{
		{"kept arrays", `local t = {} while true do t[#t+1] = mx.eval(mx.ones({1e6})) or 1 t[#t] = mx.ones({1e6}) + #t
			mx.eval(t) end`, "the script's arrays take"},
		{"one array", `mx.eval(mx.random.normal({5e6}))`, "the script's arrays take"},
		{"arrays of data", `local t, s = {}, {} for i = 1, 1e5 do s[i] = i end
			while true do t[#t+1] = mx.array(s) end`, "the script's arrays take"},
		{"handed over", `kept = {} for i = 1, 20 do kept[i] = mx.random.normal({1e6}) mx.async_eval(kept[i]) end`,
			"the script's arrays take"},
		{"temporary memory", `mx.eval(mx.sort(mx.random.normal({4e6})))`, "the script's arrays take"},
		{"a graph", `local x = mx.ones({2}) while true do x = x + 1 end`, "the script's memory is full"},
		{"a wide graph", `local x = mx.ones({2}) local t = {} while true do t[#t % 10 + 1] = mx.sin(x) x = x + t[1] end`,
			"the script's memory is full"},
	} {
		t.Run(c.name, func(t *testing.T) {
			s := open(t, mlxlua.Options{Sandbox: true, ArrayLimit: 16 << 20, MemoryLimit: 16 << 20, TimeLimit: time.Minute})
			_, err := s.Run(t.Context(), "greedy", c.source)
			require.ErrorContains(t, err, c.want)
			require.ErrorIs(t, err, mlxlua.ErrLimit)
			out, err := s.Run(t.Context(), "after", `return mx.sum(mx.ones({1e6})):item()`)
			require.NoError(t, err)
			require.Equal(t, []any{1e6}, out)
		})
	}
}

// TestArrayGarbageIsNoMemory: arrays that a script drops do not count, however many it makes, and graphs that have run
// neither; nor do others' arrays.
func TestArrayGarbageIsNoMemory(t *testing.T) {
	t.Parallel()
	other := open(t, mlxlua.Options{})
	_, err := other.Run(t.Context(), "other", `kept = mx.ones({1e7}) + 1 mx.eval(kept)`)
	require.NoError(t, err)
	s := open(t, mlxlua.Options{Sandbox: true, ArrayLimit: 24 << 20, MemoryLimit: 4 << 20})
	out, err := s.Run(t.Context(), "garbage", `
		local x = mx.zeros({1e6})
		for i = 1, 100 do x = x + mx.ones({1e6}) mx.eval(x) end
		local y = mx.zeros({4})
		for i = 1, 30000 do y = y + 1 if i % 100 == 0 then mx.eval(y) end end
		return x:max():item(), y:max():item()`)
	require.NoError(t, err)
	require.Equal(t, []any{100.0, 30000.0}, out)
}

// TestArrayLimitIsCaught: a script that asks for too much may go on with less.
func TestArrayLimitIsCaught(t *testing.T) {
	t.Parallel()
	s := open(t, mlxlua.Options{ArrayLimit: 16 << 20})
	out, err := s.Run(t.Context(), "careful", `
		local ok, err = pcall(function() mx.eval(mx.ones({1e8}) + 1) end)
		return ok, tostring(err):match("%[limits%]"), mx.sum(mx.ones({1e6}) + 1):item()`)
	require.NoError(t, err)
	require.Equal(t, []any{false, "[limits]", 2e6}, out)
}

// TestKernelLimits: kernels end with the limit of their time, or with the call's, also those that are handed over and
// never looked at; then the device is free for others.
func TestKernelLimits(t *testing.T) {
	serial.Because(t, "it measures how long a call goes on after its end")
	for _, c := range []struct {
		name, source string
		opt          mlxlua.Options
	}{
		{"kernel time", endless + `mx.eval(y)`, mlxlua.Options{KernelTimeLimit: 100 * time.Millisecond}},
		{"kernel time, caught", endless + `while true do pcall(mx.eval, y) end`,
			mlxlua.Options{KernelTimeLimit: 100 * time.Millisecond}},
		{"kernel time, many small ones", `local x = mx.random.normal({200, 200})
			while true do x = mx.sin(mx.matmul(x, x)) mx.eval(x) end`, mlxlua.Options{KernelTimeLimit: 50 * time.Millisecond}},
		{"handed over", endless + `mx.async_eval(y)`, mlxlua.Options{KernelTimeLimit: 100 * time.Millisecond}},
		{"handed over, call's time", endless + `mx.async_eval(y)`, mlxlua.Options{TimeLimit: 100 * time.Millisecond}},
		{"handed over, then an error", endless + `mx.async_eval(y) while true do end`,
			mlxlua.Options{TimeLimit: 100 * time.Millisecond}},
		{"a decomposition", `mx.eval(mx.linalg.svd(mx.random.normal({1500, 1500})))`,
			mlxlua.Options{KernelTimeLimit: 50 * time.Millisecond}},
		{"a decomposition, call's time", `mx.eval(mx.linalg.svd(mx.random.normal({1500, 1500}, {stream = mx.cpu}),
			{stream = mx.cpu}))`, mlxlua.Options{TimeLimit: 50 * time.Millisecond}},
	} {
		t.Run(c.name, func(t *testing.T) {
			c.opt.Sandbox = true
			s := open(t, c.opt)
			ctx, cancel := context.WithTimeout(t.Context(), time.Minute)
			defer cancel()
			begun := time.Now()
			_, err := s.Run(ctx, "endless", c.source)
			t.Log(time.Since(begun))
			require.ErrorIs(t, err, mlxlua.ErrLimit)
			require.NoError(t, ctx.Err())
			s.Close()
			after := open(t, mlxlua.Options{})
			_, err = after.Run(ctx, "after", `mx.synchronize() assert(mx.sum(mx.ones({100})):item() == 100)`)
			require.NoError(t, err)
		})
	}
}

// TestDecompositionsAreLeft: a decomposition of seconds is left by whoever gives up, and the device is free for others
// at once.
func TestDecompositionsAreLeft(t *testing.T) {
	serial.Because(t, "it measures how long a call goes on after its end")
	s, other := open(t, mlxlua.Options{}), open(t, mlxlua.Options{})
	_, err := s.Run(t.Context(), "before", `x = mx.random.normal({300, 300}) mx.eval(x)`)
	require.NoError(t, err)
	const wanted = 100 * time.Millisecond
	for _, call := range []string{"svd(x)", "eigh(x)", "eig(x)", "pinv(x)"} {
		least := time.Hour
		for tries := 0; tries < 5 && least > wanted; tries++ {
			ctx, cancel := context.WithTimeout(t.Context(), 10*time.Millisecond)
			defer cancel()
			end, _ := ctx.Deadline()
			_, err = s.Run(ctx, "long", `mx.eval(mx.linalg.`+call+`)`)
			require.ErrorIs(t, err, context.DeadlineExceeded)
			_, err = other.Run(t.Context(), "other", `mx.synchronize() assert(mx.sum(mx.ones({100})):item() == 100)`)
			require.NoError(t, err)
			least = min(least, time.Since(end))
		}
		t.Log(call, least)
		require.Less(t, least, wanted, call)
	}
}

// TestAllowedFiles: scripts in a sandbox use the files and folders that they may, and no link leads out of these.
func TestAllowedFiles(t *testing.T) {
	t.Parallel()
	dir := t.TempDir()
	secret, data, results := filepath.Join(dir, "secret"), filepath.Join(dir, "data"), filepath.Join(dir, "results")
	for _, d := range []string{secret, data, results} {
		require.NoError(t, os.Mkdir(d, 0o755))
	}
	host := open(t, mlxlua.Options{Libraries: true})
	require.NoError(t, host.Set("dir", dir))
	_, err := host.Run(t.Context(), "host", `for _, d in ipairs{"secret", "data"} do
		mx.save(dir .. "/" .. d .. "/x.npy", mx.arange(3)) end`)
	require.NoError(t, err)
	require.NoError(t, os.Symlink(filepath.Join(secret, "x.npy"), filepath.Join(data, "link.npy")))
	require.NoError(t, os.Symlink(secret, filepath.Join(results, "out")))
	require.NoError(t, os.Symlink(filepath.Join(secret, "new.npy"), filepath.Join(results, "link.npy")))
	s := open(t, mlxlua.Options{Sandbox: true, ReadFiles: []string{data, filepath.Join(dir, "missing")},
		WriteFiles: []string{results}})
	require.NoError(t, s.Set("dir", dir))
	for _, c := range []struct{ source, want string }{
		{`return mx.load(dir .. "/data/x.npy"):tolist()`, ""},
		{`return mx.load(dir .. "/results/../data/x.npy"):tolist()`, ""},
		{`return mx.load(dir .. "/data/y.npy")`, "there is no file"},
		{`return mx.load(dir .. "/data")`, "is no file"},
		{`return mx.load(dir .. "/secret/x.npy")`, "may not read"},
		{`return mx.load(dir .. "/secret/y.npy")`, "may not read"},
		{`return mx.load(dir .. "/data/../secret/x.npy")`, "may not read"},
		{`return mx.load(dir .. "/data/link.npy")`, "may not read"},
		{`return mx.load(dir .. "/missing/x.npy")`, "may not read"},
		{`return mx.load("/etc/passwd", "npy")`, "may not read"},
		{`return mx.import_function("/etc/passwd")`, "may not read"},
		{`return mx.data.load_csv(dir .. "/secret/x.npy")`, "may not read"},
		{`return mx.data.load_idx("/etc/passwd")`, "may not read"},
		{`return mx.data.load_image(dir .. "/data/link.npy")`, "may not read"},
		{`return mx.data.load_image({dir .. "/data/x.npy", dir .. "/secret/x.npy"})`, "may not read"},
		{`return mx.train.load_checkpoint(dir .. "/secret/x.npy")`, "may not read"},
		{`for x in mx.data.DataLoader(mx.load(dir .. "/data/x.npy"), 2)() do mx.eval(x) end`, ""},
		{`mx.data.save_image(dir .. "/results/y", mx.ones({2, 2}))`, ""},
		{`mx.data.save_image(dir .. "/data/y", mx.ones({2, 2}))`, "may not write"},
		{`mx.train.save_checkpoint(dir .. "/data/y.safetensors", {})`, "may not write"},
		{`mx.save(dir .. "/results/y.npy", mx.ones({2}))`, ""},
		{`mx.save_safetensors(dir .. "/results/y", {x = mx.ones({2})})`, ""},
		{`mx.export_to_dot(dir .. "/results/y.dot", mx.ones({2}) + 1)`, ""},
		{`mx.export_function(dir .. "/results/f.mlxfn", mx.sin, mx.ones({2}))`, ""},
		{`mx.save(dir .. "/data/y.npy", mx.ones({2}))`, "may not write"},
		{`mx.save(dir .. "/results/out/y.npy", mx.ones({2}))`, "may not write"},
		{`mx.save(dir .. "/results/link.npy", mx.ones({2}))`, "may not write"},
		{`mx.savez(dir .. "/results/../data/y.npz", mx.ones({2}))`, "may not write"},
		{`mx.save_gguf("y", {x = mx.ones({2})})`, "may not write"},
		{`mx.export_to_dot("y.dot", mx.ones({2}) + 1)`, "may not write"},
		{`mx.export_function("f.mlxfn", mx.sin, mx.ones({2}))`, "may not write"},
		{`mx.exporter("f.mlxfn", mx.sin)`, "may not write"},
		{`mx.timeline(dir .. "/results/t.json", function() end)`, "sandbox"},
		{`mx.metal.start_capture(dir .. "/results/t.json")`, "sandbox"},
		{`return dofile(dir .. "/data/x.lua")`, "a nil value"},
	} {
		_, err := s.Run(t.Context(), "files", c.source)
		if c.want == "" {
			require.NoError(t, err, c.source)
		} else {
			require.ErrorContains(t, err, c.want, c.source)
		}
	}
	s = open(t, mlxlua.Options{Sandbox: true, ReadFiles: []string{results}, WriteFiles: []string{results}})
	require.NoError(t, s.Set("dir", dir))
	for epochs := range 3 { // a training that goes on where the last call left it
		out, err := s.Run(t.Context(), "train", `local epochs, steps = ..., 0
			local function loss(m, x) return mx.mean(m(x)) end
			local history = mx.train.fit(mx.nn.Linear(1, 1), mx.optimizers.SGD(0.1), loss,
				mx.data.DataLoader(mx.ones({4, 1}), 2), {epochs = epochs, checkpoint = dir .. "/results/c.safetensors",
				resume = true, callbacks = {step = function() steps = steps + 1 end}})
			return #history, steps`, float64(epochs+1))
		require.NoError(t, err)
		require.Equal(t, []any{float64(epochs + 1), 2.0}, out)
	}
	found, err := filepath.Glob(filepath.Join(secret, "*"))
	require.NoError(t, err)
	require.Len(t, found, 1)
}

// TestLongFilesAreRead: what the texts of a CSV file take counts as memory while it is read, and the time of the
// call ends that.
func TestLongFilesAreRead(t *testing.T) {
	t.Parallel()
	dir := t.TempDir()
	file := filepath.Join(dir, "long.csv")
	require.NoError(t, os.WriteFile(file, bytes.Repeat([]byte("1,2,3\n"), 1e6), 0o600))
	for want, opt := range map[string]mlxlua.Options{
		"the script's memory is full":  {MemoryLimit: 4 << 20},
		"the time of the call is over": {TimeLimit: 10 * time.Millisecond},
	} {
		opt.Sandbox, opt.ReadFiles = true, []string{dir}
		s := open(t, opt)
		took := stopwatch()
		_, err := s.Run(t.Context(), "long", `mx.data.load_csv(...)`, file)
		require.ErrorIs(t, err, mlxlua.ErrLimit)
		require.ErrorContains(t, err, want)
		require.Less(t, took(), time.Second)
	}
}

// TestDrawingsEndWithTheCall: however many bars or labels a drawing has.
func TestDrawingsEndWithTheCall(t *testing.T) {
	serial.Because(t, "it measures how long a call goes on after its end")
	dir := t.TempDir()
	for _, source := range []string{
		`mx.plot.hist({1, 2}, 2^20, {file = ... .. "/bars.png"})`,
		`local y, l = {}, {} for i = 1, 3000 do y[i], l[i] = {i}, ("long"):rep(100) end
			mx.plot.line(y, {labels = l, title = l[1]:rep(1000), file = ... .. "/labels.png"})`,
	} {
		s := open(t, mlxlua.Options{Sandbox: true, WriteFiles: []string{dir}, TimeLimit: 200 * time.Millisecond})
		took := stopwatch()
		_, err := s.Run(t.Context(), "drawing", source, dir)
		if err != nil { // else it was fast
			require.ErrorIs(t, err, mlxlua.ErrLimit)
		}
		require.Less(t, took(), 2*time.Second)
	}
}

// TestWriteLimit: the files that a state writes have so many bytes together; one that is too long is not there, and one
// that is replaced counts no more.
func TestWriteLimit(t *testing.T) {
	t.Parallel()
	dir := t.TempDir()
	s := open(t, mlxlua.Options{Sandbox: true, WriteFiles: []string{dir}, WriteLimit: 64 << 10})
	require.NoError(t, s.Set("dir", dir))
	run := func(source string) error {
		_, err := s.Run(t.Context(), "files", source)
		return err
	}
	for range 9 {
		require.NoError(t, run(`mx.save(dir .. "/a", mx.ones({5000}))`))
	}
	require.NoError(t, run(`mx.savez_compressed(dir .. "/b", mx.zeros({1e6}), mx.random.normal({9000}))`))
	names := func() (out []string) {
		entries, err := os.ReadDir(dir)
		require.NoError(t, err)
		for _, e := range entries {
			out = append(out, e.Name())
		}
		return out
	}
	before := names()
	for _, source := range []string{
		`mx.save(dir .. "/c", mx.ones({10000}))`, `mx.save(dir .. "/a", mx.ones({20000}))`,
		`mx.savez(dir .. "/c", mx.ones({10000}), mx.ones({10000}))`,
		`mx.savez_compressed(dir .. "/c", mx.random.normal({20000}))`,
		`mx.save_safetensors(dir .. "/c", {x = mx.ones({20000})})`, `mx.save_gguf(dir .. "/c", {x = mx.ones({20000})})`,
		`mx.export_function(dir .. "/c", function(x) return x + mx.arange(20000) end, mx.ones({20000}))`,
		`local x = mx.ones({2}) for i = 1, 3000 do x = x + i end mx.export_to_dot(dir .. "/c", x)`,
		`mx.data.save_image(dir .. "/c", mx.random.uniform(0, 1, {300, 300}))`,
		`local t = {} for i = 1, 20000 do t[i] = i * i % 7 end mx.plot.line(t, {file = dir .. "/c.svg"})`,
		`mx.train.save_checkpoint(dir .. "/c.safetensors", {step = 1, model = {x = mx.ones({20000})}})`,
	} {
		err := run(source)
		require.ErrorIs(t, err, mlxlua.ErrLimit, source)
		require.ErrorContains(t, err, "[limits]", source)
		require.Equal(t, before, names(), source)
	}
	require.ErrorIs(t, run(`for i = 1, 100 do mx.save(dir .. "/" .. i, mx.ones({1})) end`), mlxlua.ErrLimit)
	require.Less(t, len(names()), 20)
	require.NoError(t, run(`mx.save(dir .. "/a", mx.ones({5}))`))
	out, err := s.Run(t.Context(), "files", `mx.save(dir .. "/b1", mx.ones({2000})) `+
		`return pcall(mx.save, dir .. "/b2", mx.ones({20000}))`)
	require.NoError(t, err, "what was replaced has given room")
	require.Equal(t, false, out[0])
}

// TestWarningsHaveTheirWriter: a state warns of conditions that are arrays where the host says, also in texts that were
// compiled for many states, once for each line and a hundred times at most.
func TestWarningsHaveTheirWriter(t *testing.T) {
	t.Parallel()
	const text = "local x = mx.array({1, 2})\nif mx.any(x) then return 1 end"
	script, err := mlxlua.LoadScript(t.Context(), mlxlua.ScriptOptions{Name: "shared.lua",
		Files: fstest.MapFS{"shared.lua": {Data: []byte(text)}}})
	require.NoError(t, err)
	for name, run := range map[string]func(s *mlxlua.State) ([]any, error){
		"shared.lua:2": func(s *mlxlua.State) ([]any, error) { return script.Run(t.Context(), s) },
		"own:2":        func(s *mlxlua.State) ([]any, error) { return s.Run(t.Context(), "own", text) },
	} {
		var printed, warned, later bytes.Buffer
		s := open(t, mlxlua.Options{Stdout: &printed, Stderr: &warned})
		for range 2 {
			out, err := run(s)
			require.NoError(t, err)
			require.Equal(t, []any{1.0}, out)
		}
		require.Contains(t, warned.String(), "warning: "+name+": the condition is an array")
		require.Equal(t, 1, strings.Count(warned.String(), "\n"))
		require.Empty(t, printed.String())

		s = open(t, mlxlua.Options{Sandbox: true, Stdout: &printed})
		require.NoError(t, s.SetStdout(&later))
		_, err := run(s)
		require.NoError(t, err)
		require.Contains(t, later.String(), "warning: "+name)

		s = open(t, mlxlua.Options{Strict: true, Stderr: &warned})
		_, err = run(s)
		require.ErrorContains(t, err, "[condition]")
	}
	var warned bytes.Buffer
	s := open(t, mlxlua.Options{Sandbox: true, Stdout: &warned})
	_, err = s.Run(t.Context(), "many", `for i = 1, 1000 do
		loadstring("if mx.any(mx.zeros({2})) then end", "n" .. i)() end`)
	require.NoError(t, err)
	require.Equal(t, 101, strings.Count(warned.String(), "\n"))
}

// TestModulesAreNoFiles: without libraries require looks in Modules only, whatever a script says of paths.
func TestModulesAreNoFiles(t *testing.T) {
	dir := t.TempDir()
	require.NoError(t, os.WriteFile(filepath.Join(dir, "passwords.lua"), []byte("return 'secret'"), 0o600))
	t.Chdir(dir)
	for _, opt := range []mlxlua.Options{{}, {Sandbox: true}, {Sandbox: true, Libraries: true}} {
		s := open(t, opt)
		require.NoError(t, s.Set("dir", dir))
		for _, source := range []string{
			`return require("passwords")`,
			`package = package or {} package.path = dir .. "/?.lua;?.lua" return require("passwords")`,
			`package.cpath = dir .. "/?.lua" return require("passwords")`,
			`return require("./passwords")`, `return require(dir .. "/passwords")`,
			`return package.loaders[2]("passwords")()`,
			`return (loadfile or function() error("not found") end)("passwords.lua")()`,
		} {
			_, err := s.Run(t.Context(), "thief", source)
			require.Error(t, err, source)
			require.NotContains(t, err.Error(), "secret")
		}
	}
	s := open(t, mlxlua.Options{Libraries: true})
	out, err := s.Run(t.Context(), "friend", `return require("passwords")`)
	require.NoError(t, err)
	require.Equal(t, []any{"secret"}, out)
}

// TestSharedIsRefused: what a script in a sandbox has of the functions that concern all states says no.
func TestSharedIsRefused(t *testing.T) {
	t.Parallel()
	s := open(t, mlxlua.Options{Sandbox: true})
	for _, call := range []string{"mx.new_stream(mx.cpu)", "mx.set_cache_limit(0)",
		"mx.memory.live()", "mx.set_wired_limit(0)", "mx.metal.set_memory_limit(1)", "mx.metal.validate(true)",
		"mx.clear_streams()", "mx.timeline('t.json', function() end)"} {
		_, err := s.Run(t.Context(), "shared", call)
		require.ErrorContains(t, err, "cannot change or see what all scripts share", call)
	}
}

// TestOptionsThatCannotBe: limits below zero, and empty paths, which would be the working directory.
func TestOptionsThatCannotBe(t *testing.T) {
	t.Parallel()
	for want, o := range map[string]mlxlua.Options{
		"[options] MemoryLimit is -5":              {MemoryLimit: -5},
		"[options] TimeLimit is -1000000000":       {TimeLimit: -time.Second},
		"[options] KernelTimeLimit is -1":          {KernelTimeLimit: -1},
		"ReadFiles or WriteFiles has an empty":     {Sandbox: true, ReadFiles: []string{"a", ""}},
		"ReadFiles or WriteFiles has an empty pat": {WriteFiles: []string{""}},
	} {
		_, err := mlxlua.Open(o)
		require.ErrorContains(t, err, want)
	}
}

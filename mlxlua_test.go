package mlxlua_test

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"io"
	"io/fs"
	"math"
	"os"
	"path/filepath"
	"strings"
	"sync"
	"testing"
	"testing/fstest"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/mlxlua/mlxlua"
	"github.com/mlxlua/mlxlua/internal/serial"
	"github.com/mlxlua/mlxlua/tensor"
)

// TestMain has arrays poisoned that a look misses: a script or a program that uses one fails.
func TestMain(m *testing.M) {
	tensor.Poison(true)
	os.Exit(m.Run())
}

// A script defines a function, Go hands it an array and reads the result.
func Example() {
	state, err := mlxlua.Open(mlxlua.Options{})
	if err != nil {
		fmt.Println(err)
		return
	}
	defer state.Close()
	ctx := context.Background()
	if _, err := state.Run(ctx, "double", `
		local mx = require("mx")
		function double(x) return x * 2 end
	`); err != nil {
		fmt.Println(err)
		return
	}
	out, err := state.Call(ctx, "double", mlxlua.FromSlice([]float32{1, 2, 3}, 3))
	if err != nil {
		fmt.Println(err)
		return
	}
	v, err := mlxlua.ToSlice[float32](ctx, out[0].(*mlxlua.Array))
	if err != nil {
		fmt.Println(err)
		return
	}
	fmt.Println(v)
	// Output: [2 4 6]
}

func open(t *testing.T, opt mlxlua.Options) *mlxlua.State {
	t.Helper()
	s, err := mlxlua.Open(opt)
	require.NoError(t, err)
	t.Cleanup(s.Close)
	return s
}

// get is a global variable's value.
func get(t *testing.T, s *mlxlua.State, name string) any {
	t.Helper()
	v, err := s.Get(name)
	require.NoError(t, err)
	return v
}

// scriptFiles is a file a.lua with that text.
func scriptFiles(text string) fs.FS { return fstest.MapFS{"a.lua": {Data: []byte(text)}} }

// Go values go into a script and come back.
func TestValues(t *testing.T) {
	t.Parallel()
	s := open(t, mlxlua.Options{})
	ctx := t.Context()
	in := []any{nil, true, 2.5, "text", []any{1.0, "a"}, map[string]any{"k": []any{2.0}}}
	out, err := s.Run(ctx, "echo", "return ...", in...)
	require.NoError(t, err)
	require.Equal(t, in, out)
	out, err = s.Run(ctx, "ints", "return ...", 7, int32(-1), int64(1)<<40, float32(0.5))
	require.NoError(t, err)
	require.Equal(t, []any{7.0, -1.0, float64(int64(1) << 40), 0.5}, out)
	require.NoError(t, s.Set("x", mlxlua.FromSlice([]int64{1, math.MaxInt64}, 2)))
	out, err = s.Run(ctx, "int64", `return x:tolist("string"), tostring(x.dtype)`)
	require.NoError(t, err)
	require.Equal(t, []any{[]any{"1", "9223372036854775807"}, "int64"}, out)
	require.NoError(t, s.Set("config", map[string]any{"layers": 2, "name": "m"}))
	require.Equal(t, map[string]any{"layers": 2.0, "name": "m"}, get(t, s, "config"))
	require.Nil(t, get(t, s, "nothing"))
	require.ErrorContains(t, s.Set("bad", make(chan int)), "chan int")
	_, err = s.Run(ctx, "bad", "return 1", struct{}{})
	require.ErrorContains(t, err, "argument 1")
	_, err = s.Call(ctx, "nothing")
	require.ErrorContains(t, err, `no global function "nothing"`)
	require.ErrorContains(t, s.Set("bad", mlxlua.FromSlice([]float32{1}, 2)), "(mlxlua_test.go:")
}

// Lua functions are Go functions and the other way round, also within each other.
func TestFunctions(t *testing.T) {
	t.Parallel()
	s := open(t, mlxlua.Options{})
	ctx := t.Context()
	cause := errors.New("no such file")
	require.NoError(t, s.Set("load", mlxlua.Func(func(context.Context, []any) ([]any, error) { return nil, cause })))
	require.NoError(t, s.Set("panics", mlxlua.Func(func(context.Context, []any) ([]any, error) { panic("p") })))
	require.NoError(t, s.Set("apply", mlxlua.Func(func(ctx context.Context, args []any) ([]any, error) {
		return args[0].(mlxlua.Func)(ctx, args[1:])
	})))
	out, err := s.Run(ctx, "apply", "return apply(function(a, b) return a + b, a end, 3, 4)")
	require.NoError(t, err)
	require.Equal(t, []any{7.0, 3.0}, out)
	out, err = s.Run(ctx, "caught", "local ok, e = pcall(load) return ok, tostring(e), (pcall(panics))")
	require.NoError(t, err)
	require.Equal(t, []any{false, "caught:1: no such file", false}, out)
	_, err = s.Run(ctx, "uncaught", "load()")
	require.ErrorIs(t, err, cause)
	_, err = s.Run(ctx, "nested", "apply(function() local n = nil; return n.field end)")
	var se *mlxlua.ScriptError
	require.ErrorAs(t, err, &se)
	require.Contains(t, se.Message, "nested:1:")
	require.Contains(t, se.Traceback, "nested:1")
	_, err = s.Run(ctx, "step", "step = mx.compile(function(x) return x:sum() end)")
	require.NoError(t, err)
	out, err = s.Call(ctx, "step", mlxlua.FromSlice([]float32{1, 2}, 2))
	require.NoError(t, err)
	sum, err := mlxlua.ToSlice[float32](ctx, out[0].(*mlxlua.Array))
	require.NoError(t, err)
	require.Equal(t, []float32{3}, sum)
}

// An error says where, and the state goes on; a script without Libraries has no files.
func TestErrorsAndLibraries(t *testing.T) {
	t.Parallel()
	var out bytes.Buffer
	s := open(t, mlxlua.Options{Stdout: &out})
	ctx := t.Context()
	_, err := s.Run(ctx, "model", "local x = mx.ones({2})\nreturn x + mx.ones({3})")
	require.ErrorContains(t, err, "model:2: [add] shapes (2,) and (3,) cannot be broadcast")
	_, err = s.Run(ctx, "syntax", "return +")
	require.ErrorContains(t, err, "syntax")
	_, err = s.RunFile(ctx, filepath.Join(t.TempDir(), "none.lua"))
	require.ErrorContains(t, err, "none.lua")
	got, err := s.Run(ctx, "libraries", "print('hello') return io, os, dofile, loadfile, require('mx') == mx")
	require.NoError(t, err)
	require.Equal(t, []any{nil, nil, nil, nil, true}, got)
	require.Equal(t, "hello\n", out.String())
	with := open(t, mlxlua.Options{Libraries: true})
	path := filepath.Join(t.TempDir(), "mod.lua")
	require.NoError(t, os.WriteFile(path, []byte("return {answer = 42}"), 0o600))
	got, err = with.Run(ctx, "file", "return dofile(...).answer", path)
	require.NoError(t, err)
	require.Equal(t, []any{42.0}, got)
	_, err = mlxlua.Open(mlxlua.Options{Device: "nosuch"})
	require.ErrorContains(t, err, "nosuch")
}

// A context stops scripts and kernels, and the state goes on.
func TestCancel(t *testing.T) {
	serial.Because(t, "it measures how long a call goes on after its end")
	s := open(t, mlxlua.Options{})
	for _, src := range []string{
		"stop() while true do end",
		`local k = mx.fast.metal_kernel{name = "spin", input_names = {"x"}, output_names = {"out"},
			source = "float v = x[0]; while (v < 1.0f) { v = v * 0.5f; } out[thread_position_in_grid.x] = v;"}
		local y = k{inputs = {mx.zeros({64})}, grid = {64, 1, 1}, threadgroup = {32, 1, 1}, output_shapes = {{64}},
			output_dtypes = {mx.float32}}
		stop()
		mx.eval(y)`,
	} {
		ctx, cancel := context.WithCancel(t.Context())
		require.NoError(t, s.Set("stop", mlxlua.Func(func(context.Context, []any) ([]any, error) {
			cancel()
			return nil, nil
		})))
		_, err := s.Run(ctx, "endless", src)
		require.ErrorIs(t, err, context.Canceled)
		out, err := s.Run(t.Context(), "after", "return mx.ones({2}):sum():item()")
		require.NoError(t, err)
		require.Equal(t, []any{2.0}, out)
	}
}

// States share the device; each has its own globals and random numbers, and runs on its own goroutine.
func TestStatesSideBySide(t *testing.T) {
	t.Parallel()
	const states = 4
	results := make(chan string, states)
	for i := range states {
		go func() {
			s, err := mlxlua.Open(mlxlua.Options{Seed: uint64(i % 2)})
			if err != nil {
				results <- err.Error()
				return
			}
			defer s.Close()
			out, err := s.Run(context.Background(), "work", `
				assert(shared == nil)
				shared = mx.random.uniform({shape = {64}})
				local sum = mx.zeros({64})
				for i = 1, 20 do sum = sum + mx.exp(shared) end
				return tostring(sum:sum():item())`)
			if err != nil {
				results <- err.Error()
				return
			}
			results <- fmt.Sprint(i%2, " ", out[0])
		}()
	}
	seen := map[string]int{}
	for range states {
		seen[<-results]++
	}
	require.Len(t, seen, 2, "%v", seen)
	for text, n := range seen {
		require.Equal(t, states/2, n, text)
		require.NotContains(t, text, "error")
	}
}

// runPage runs the Lua blocks of a page as they stand, each after those before it, and gives what they print.
// Errors name the page's lines.
func runPage(t *testing.T, page string) string {
	t.Helper()
	text, err := os.ReadFile(page)
	require.NoError(t, err)
	var out, progress bytes.Buffer
	s := open(t, mlxlua.Options{Stdout: &out, Stderr: &progress, Libraries: true})
	source, inside, blocks := "", false, 0
	for line := range strings.Lines(string(text)) {
		switch {
		case strings.HasPrefix(line, "```"):
			inside = line == "```lua\n"
			if inside {
				blocks++
			}
			source += "\n"
		case inside:
			source += line
		default:
			source += "\n"
		}
	}
	require.NotZero(t, blocks)
	_, err = s.Run(t.Context(), page, source)
	require.NoError(t, err)
	require.Equal(t, strings.Contains(source, "train.fit"), strings.Contains(progress.String(), " steps in "))
	return out.String()
}

// The guide's blocks hold what its text says by assertions of their own.
func TestGuide(t *testing.T) {
	t.Parallel()
	out := runPage(t, "docs/lua.md")
	sum := "array([[3],\n       [12]], dtype=int32)"
	require.Contains(t, out, sum+"\t"+sum+"\t"+sum+"\n")
	require.Contains(t, out, "array([30, 10], dtype=float32)\n")
}

func TestGuideToNN(t *testing.T) {
	t.Parallel()
	require.Contains(t, runPage(t, "docs/nn.md"), "MLP(\n  (l1): Linear(input_dims=2, output_dims=32, bias=True)\n")
}

// The blocks train a model, and assert how good it is.
func TestGuideToTraining(t *testing.T) {
	t.Parallel()
	require.Contains(t, runPage(t, "docs/train.md"), "array([60, nan], dtype=float32)\tDoe, Jane\n")
}

// What the page says of differences from MLX is so.
func TestDifferences(t *testing.T) {
	t.Parallel()
	runPage(t, "docs/differences.md")
}

func TestREADME(t *testing.T) {
	t.Parallel()
	out := runPage(t, "README.md")
	// the fitted weights, to the two digits that 200 steps give
	require.Regexp(t, `array\(\[(1|1\.00\d*|0\.99\d*), (-2|-2\.00\d*|-1\.99\d*), (3|3\.00\d*|2\.99\d*)\], dtype=float32\)`,
		out)
	require.Contains(t, out, "array([1, 2, 5, 10], dtype=")
}

func TestClosedState(t *testing.T) {
	t.Parallel()
	ctx := context.Background()
	s, err := mlxlua.Open(mlxlua.Options{})
	require.NoError(t, err)
	out, err := s.Run(ctx, "before", `return mx.ones({2}) * 2, function() return 1 end`)
	require.NoError(t, err)
	var closing sync.WaitGroup
	for range 8 {
		closing.Go(s.Close)
	}
	closing.Wait()
	s.Close()

	_, err = s.Run(ctx, "after", `return 1`)
	require.ErrorIs(t, err, mlxlua.ErrClosed)
	_, err = s.Call(ctx, "print")
	require.ErrorIs(t, err, mlxlua.ErrClosed)
	_, err = out[1].(mlxlua.Func)(ctx, nil)
	require.ErrorIs(t, err, mlxlua.ErrClosed)
	require.ErrorIs(t, s.Set("x", 1), mlxlua.ErrClosed)
	_, err = s.Get("print")
	require.ErrorIs(t, err, mlxlua.ErrClosed)
	require.ErrorIs(t, s.SetStdout(io.Discard), mlxlua.ErrClosed)
	b, err := mlxlua.Bytes(ctx, out[0].(*mlxlua.Array))
	require.NoError(t, err, "arrays outlive the state")
	require.Equal(t, []byte{0, 0, 0, 64, 0, 0, 0, 64}, b)
}

// A script whose host closes the state under it runs to its end: Lua's stack is there as long as it is in use.
func TestCloseDuringACall(t *testing.T) {
	t.Parallel()
	s, err := mlxlua.Open(mlxlua.Options{})
	require.NoError(t, err)
	require.NoError(t, s.Set("close", mlxlua.Func(func(context.Context, []any) ([]any, error) {
		s.Close()
		return nil, nil
	})))
	out, err := s.Run(context.Background(), "script", `close() close() return (mx.ones({3}) + 1):sum():item()`)
	require.NoError(t, err)
	require.Equal(t, []any{6.0}, out)
	require.ErrorIs(t, s.Set("x", 1), mlxlua.ErrClosed)
}

func TestValuesWithoutCounterpart(t *testing.T) {
	t.Parallel()
	s := open(t, mlxlua.Options{})
	loop := map[string]any{}
	loop["list"] = []any{loop}
	require.ErrorContains(t, s.Set("x", loop),
		`[set] x: ["list"][0]: a Go value of type map[string]interface {} holds itself`)
	require.ErrorContains(t, s.Set("x", (*mlxlua.Array)(nil)), "[set] x: a nil *Array has no counterpart in Lua")
	require.ErrorContains(t, s.Set("x", mlxlua.Func(nil)), "[set] x: a nil Func has no counterpart in Lua")
	_, err := s.Run(context.Background(), "script", `return x`, loop)
	require.ErrorContains(t, err, `[run] argument 1["list"][0]: a Go value of type map`)
}

// Globals are read as they are: a script that makes unset ones an error does not reach into the host.
func TestGlobalsWithAMetatable(t *testing.T) {
	t.Parallel()
	s := open(t, mlxlua.Options{})
	_, err := s.Run(context.Background(), "strict", `setmetatable(_G, {
		__index = function(_, name) error("undefined " .. name) end,
		__newindex = function(_, name) error("undeclared " .. name) end,
	})`)
	require.NoError(t, err)
	require.Nil(t, get(t, s, "absent"))
	require.NoError(t, s.Set("given", 1))
	require.Equal(t, 1.0, get(t, s, "given"))
	_, err = s.Call(context.Background(), "absent")
	require.ErrorContains(t, err, `[call] there is no global function "absent"`)
}

func TestNilContext(t *testing.T) {
	t.Parallel()
	s := open(t, mlxlua.Options{})
	var none context.Context
	out, err := s.Run(none, "script", `return mx.array({1, 2}):sum():item()`)
	require.NoError(t, err)
	require.Equal(t, []any{3.0}, out)
}

// TestCloseAtAnyMoment: a state that another goroutine closes leaves what it gave to the program right, also what the
// program was converting then.
func TestCloseAtAnyMoment(t *testing.T) {
	t.Parallel()
	var mu sync.Mutex
	var got []any
	var wg sync.WaitGroup
	for i := range 24 {
		s, err := mlxlua.Open(mlxlua.Options{})
		require.NoError(t, err)
		wg.Go(func() {
			time.Sleep(time.Duration(i) * time.Millisecond)
			s.Close()
		})
		wg.Go(func() {
			for {
				out, err := s.Run(t.Context(), "closed.lua", `held = held or {}
					local x = mx.ones({64, 64}) * 2
					held[#held + 1] = x
					mx.async_eval(x + 1)
					return x, {x * 2, {y = mx.exp(x) * 0}}`)
				if errors.Is(err, mlxlua.ErrClosed) {
					return
				}
				if err == nil {
					err = s.Set("t", out[1])
				}
				if err != nil && !errors.Is(err, mlxlua.ErrClosed) {
					t.Error(err)
					return
				}
				list := out[1].([]any)
				mu.Lock()
				got = append(got, out[0], list[0], list[1].(map[string]any)["y"])
				mu.Unlock()
			}
		})
	}
	wg.Wait()
	require.NotEmpty(t, got)
	for i, x := range got {
		v, err := mlxlua.ToSlice[float32](t.Context(), x.(*mlxlua.Array))
		require.NoError(t, err)
		require.Equal(t, [...]float32{2, 4, 0}[i%3], v[77])
	}
}

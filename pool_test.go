package mlxlua_test

import (
	"context"
	"errors"
	"fmt"
	"io"
	"io/fs"
	"runtime"
	"sync"
	"testing"
	"testing/fstest"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/mlxlua/mlxlua"
	"github.com/mlxlua/mlxlua/internal/serial"
)

// Each user of a pool has a state that nobody had before.
func ExamplePool() {
	ctx := context.Background()
	pool, err := mlxlua.NewPool(ctx, mlxlua.PoolOptions{
		Options: mlxlua.Options{Sandbox: true, TimeLimit: time.Second},
		Prepare: func(ctx context.Context, s *mlxlua.State) error {
			_, err := s.Run(ctx, "prepare", `function twice(x) return x * 2 end`)
			return err
		},
		Most: 4,
	})
	if err != nil {
		fmt.Println(err)
		return
	}
	defer pool.Close()
	for range 2 {
		err := pool.Do(ctx, func(s *mlxlua.State) error {
			out, err := s.Run(ctx, "user", `visits = (visits or 0) + 1 return twice(21), visits`)
			fmt.Println(out)
			return err
		})
		if err != nil {
			fmt.Println(err)
		}
	}
	// Output:
	// [42 1]
	// [42 1]
}

// A script that has changed is compiled anew; a broken one is refused, and the version before runs on.
func ExampleScript() {
	ctx := context.Background()
	files := fstest.MapFS{"answer.lua": {Data: []byte("return 41")}} // os.DirFS("scripts") in a program
	script, err := mlxlua.LoadScript(ctx, mlxlua.ScriptOptions{Files: files, Name: "answer.lua"})
	if err != nil {
		fmt.Println(err)
		return
	}
	state, err := mlxlua.Open(mlxlua.Options{})
	if err != nil {
		fmt.Println(err)
		return
	}
	defer state.Close()
	for _, text := range []string{"return 41", "return 42", "return 4 +"} {
		files["answer.lua"] = &fstest.MapFile{Data: []byte(text)}
		changed, err := script.Refresh(ctx)
		out, _ := script.Run(ctx, state)
		fmt.Println(out, changed, err != nil)
	}
	// Output:
	// [41] false false
	// [42] true false
	// [42] false true
}

// What a script calls error with is the value of the error that Go sees.
func ExampleScriptError() {
	state, err := mlxlua.Open(mlxlua.Options{})
	if err != nil {
		fmt.Println(err)
		return
	}
	defer state.Close()
	_, err = state.Run(context.Background(), "shop.lua", `
		error({code = 5, message = "out of stock"})`)
	var failure *mlxlua.ScriptError
	if errors.As(err, &failure) {
		fmt.Println(failure.Value, failure.File, failure.Line)
	}
	fmt.Println(err)
	// Output:
	// map[code:5 message:out of stock] shop.lua 2
	// out of stock
}

// TestPoolStates: a user finds what Prepare made and nothing of the users before, whatever these have changed.
func TestPoolStates(t *testing.T) {
	t.Parallel()
	pool, err := mlxlua.NewPool(t.Context(), mlxlua.PoolOptions{Options: mlxlua.Options{Stdout: io.Discard}, Ready: 2})
	require.NoError(t, err)
	defer pool.Close()
	seeded := open(t, mlxlua.Options{})
	drawn, err := seeded.Run(t.Context(), "seeded", `mx.random.seed(5) return mx.random.uniform({}):item()`)
	require.NoError(t, err)
	for i, source := range []string{`leak = 1`, `string.leak = 1`, `mx.leak = 1`, `getmetatable("").leak = 1`,
		`package.loaded.leak = 1`, `mx.set_printoptions{precision = 1}`,
		`setmetatable(_G, {__index = function() return 1 end})`,
		`mx.random.seed(5)`, `print = nil`} {
		require.NoError(t, pool.Do(t.Context(), func(s *mlxlua.State) error {
			_, err := s.Run(t.Context(), "vandal", source)
			return err
		}))
		require.NoError(t, pool.Do(t.Context(), func(s *mlxlua.State) error {
			out, err := s.Run(t.Context(), "user", `return leak, string.leak, rawget(mx, "leak"), getmetatable("").leak,
				package.loaded.leak, print ~= nil, tostring(mx.array(1/3)), mx.random.uniform({}):item()`)
			require.NoError(t, err)
			require.Equal(t, []any{nil, nil, nil, nil, nil, true}, out[:6], i)
			require.Contains(t, out[6], "0.333333", i)
			require.NotContains(t, drawn, out[7], i)
			drawn = append(drawn, out[7])
			return err
		}))
	}
}

// TestPoolBounds: no more users than Most at once, who wait as long as their contexts allow; after Close there are
// none.
func TestPoolBounds(t *testing.T) {
	t.Parallel()
	pool, err := mlxlua.NewPool(t.Context(), mlxlua.PoolOptions{Most: 2, Ready: 1})
	require.NoError(t, err)
	first, err := pool.Get(t.Context())
	require.NoError(t, err)
	second, err := pool.Get(t.Context())
	require.NoError(t, err)
	ctx, cancel := context.WithTimeout(t.Context(), 20*time.Millisecond)
	defer cancel()
	_, err = pool.Get(ctx)
	require.ErrorIs(t, err, context.DeadlineExceeded)
	go pool.Put(first)
	third, err := pool.Get(t.Context())
	require.NoError(t, err)
	waiting := make(chan error)
	go func() {
		_, err := pool.Get(context.Background())
		waiting <- err
	}()
	pool.Close()
	pool.Close()
	require.ErrorIs(t, <-waiting, mlxlua.ErrPoolClosed)
	_, err = third.Run(t.Context(), "still", `return 1`)
	require.NoError(t, err)
	pool.Put(second)
	pool.Put(third)
	_, err = pool.Get(t.Context())
	require.ErrorIs(t, err, mlxlua.ErrPoolClosed)
	require.ErrorIs(t, pool.Renew(t.Context()), mlxlua.ErrPoolClosed)
}

// TestPoolPutTwice: a state that comes back twice, or is none, gives room for one user only; and so does one whose user
// panics.
func TestPoolPutTwice(t *testing.T) {
	t.Parallel()
	p, err := mlxlua.NewPool(t.Context(), mlxlua.PoolOptions{Most: 1})
	require.NoError(t, err)
	defer p.Close()
	require.Panics(t, func() { _ = p.Do(t.Context(), func(*mlxlua.State) error { panic("a user's") }) })
	s, err := p.Get(t.Context())
	require.NoError(t, err)
	for range 3 {
		p.Put(s)
		p.Put(nil)
	}
	_, err = p.Get(t.Context())
	require.NoError(t, err)
	ctx, cancel := context.WithTimeout(t.Context(), time.Millisecond)
	defer cancel()
	_, err = p.Get(ctx)
	require.ErrorIs(t, err, context.DeadlineExceeded)
}

// TestPoolRenew: users after Renew get states that begin with the new script; one that fails leaves the old.
func TestPoolRenew(t *testing.T) {
	t.Parallel()
	files := fstest.MapFS{"main.lua": {Data: []byte("answer = 1")}}
	var mu sync.Mutex
	write := func(text string) {
		mu.Lock()
		defer mu.Unlock()
		files["main.lua"] = &fstest.MapFile{Data: []byte(text)}
	}
	script, err := mlxlua.LoadScript(t.Context(), mlxlua.ScriptOptions{Files: files, Name: "main.lua"})
	require.NoError(t, err)
	pool, err := mlxlua.NewPool(t.Context(), mlxlua.PoolOptions{Ready: 2,
		Prepare: func(ctx context.Context, s *mlxlua.State) error {
			_, err := script.Run(ctx, s)
			return err
		}})
	require.NoError(t, err)
	defer pool.Close()
	answer := func() (out any) {
		require.NoError(t, pool.Do(t.Context(), func(s *mlxlua.State) error {
			var err error
			out, err = s.Get("answer")
			return err
		}))
		return out
	}
	require.Equal(t, 1.0, answer())
	write("answer = 2")
	_, err = script.Refresh(t.Context())
	require.NoError(t, err)
	require.NoError(t, pool.Renew(t.Context()))
	for range 4 {
		require.Equal(t, 2.0, answer())
	}
	_, err = mlxlua.NewPool(t.Context(), mlxlua.PoolOptions{
		Prepare: func(context.Context, *mlxlua.State) error { return errors.New("not prepared") }})
	require.EqualError(t, err, "not prepared")
	_, err = mlxlua.NewPool(t.Context(), mlxlua.PoolOptions{Most: -1})
	require.ErrorContains(t, err, "want 0 or more")
}

// TestScript: what is refused by the compiler or by Try is told again only after the text has changed, and the version
// before runs on; one compiled text runs in many states at once.
func TestScript(t *testing.T) {
	t.Parallel()
	files := fstest.MapFS{"s.lua": {Data: []byte("#!/usr/bin/env mlxlua\nlocal n = ... return n + 1")}}
	tries := 0
	opt := mlxlua.ScriptOptions{Files: files, Name: "s.lua", Try: func(ctx context.Context, c *mlxlua.Script) error {
		tries++
		s, err := mlxlua.Open(mlxlua.Options{Sandbox: true})
		if err != nil {
			return err
		}
		defer s.Close()
		_, err = c.Run(ctx, s, 1)
		return err
	}}
	script, err := mlxlua.LoadScript(t.Context(), opt)
	require.NoError(t, err)
	s := open(t, mlxlua.Options{})
	for _, c := range []struct {
		text    string
		want    any
		version int
		message string
	}{
		{"return (...) + 2", 3.0, 2, ""},
		{"return (...) +", 3.0, 2, "s.lua"},
		{"return (...) + nil", 3.0, 2, "s.lua:1:"},
		{"return (...) + 2", 3.0, 2, ""},
		{"return (...) + 4", 5.0, 3, ""},
	} {
		files["s.lua"] = &fstest.MapFile{Data: []byte(c.text)}
		for again := range 2 {
			before := tries
			changed, err := script.Refresh(t.Context())
			if c.message == "" {
				require.NoError(t, err)
			} else {
				var e *mlxlua.ScriptError
				require.ErrorAs(t, err, &e)
				require.ErrorContains(t, err, c.message)
			}
			if again == 1 {
				require.False(t, changed)
				require.Equal(t, before, tries)
			}
		}
		out, err := script.Run(t.Context(), s, 1)
		require.NoError(t, err)
		require.Equal(t, []any{c.want}, out)
		require.Equal(t, c.version, script.Version())
	}
	var users sync.WaitGroup
	for range 8 {
		users.Go(func() {
			s, err := mlxlua.Open(mlxlua.Options{})
			if err == nil {
				defer s.Close()
				_, err = script.Run(context.Background(), s, 1)
			}
			if err != nil {
				t.Error(err)
			}
		})
	}
	users.Wait()
	delete(files, "s.lua")
	_, err = script.Refresh(t.Context())
	require.ErrorContains(t, err, "s.lua")
	_, err = mlxlua.LoadScript(t.Context(), opt)
	require.Error(t, err)
	s.Close()
	_, err = script.Run(t.Context(), s)
	require.ErrorIs(t, err, mlxlua.ErrClosed)
}

// lockedFiles is a file system of one file, w.lua, that is written while others read it.
type lockedFiles struct {
	mu   sync.Mutex
	text string
}

func (f *lockedFiles) write(text string) {
	f.mu.Lock()
	defer f.mu.Unlock()
	f.text = text
}

// Open opens the file as it is now.
func (f *lockedFiles) Open(name string) (fs.File, error) {
	f.mu.Lock()
	defer f.mu.Unlock()
	return fstest.MapFS{"w.lua": {Data: []byte(f.text)}}.Open(name)
}

// TestScriptWatch: Watch tells of new versions, and once of each broken one.
func TestScriptWatch(t *testing.T) {
	t.Parallel()
	files := &lockedFiles{text: "return 1"}
	script, err := mlxlua.LoadScript(t.Context(), mlxlua.ScriptOptions{Files: files, Name: "w.lua"})
	require.NoError(t, err)
	ctx, cancel := context.WithCancel(t.Context())
	told, over := make(chan error), make(chan struct{})
	go func() {
		defer close(over)
		script.Watch(ctx, time.Millisecond, func(err error) { told <- err })
	}()
	files.write("return 2")
	require.NoError(t, <-told)
	require.Equal(t, 2, script.Version())
	files.write("return +")
	require.Error(t, <-told)
	files.write("return 3")
	require.NoError(t, <-told)
	require.Equal(t, 3, script.Version())
	cancel()
	<-over
}

// growingFiles is a file system of one file, w.lua, of which each look sees the next of some texts.
type growingFiles struct{ texts []string }

// Open opens the file as it is now.
func (f *growingFiles) Open(name string) (fs.File, error) {
	text := f.texts[0]
	if len(f.texts) > 1 {
		f.texts = f.texts[1:]
	}
	return fstest.MapFS{"w.lua": {Data: []byte(text)}}.Open(name)
}

// TestScriptHalfWritten: a file that is being written is no new version before it is whole, though its beginning is a
// program.
func TestScriptHalfWritten(t *testing.T) {
	t.Parallel()
	files := &growingFiles{texts: []string{"return 1"}}
	script, err := mlxlua.LoadScript(t.Context(), mlxlua.ScriptOptions{Files: files, Name: "w.lua"})
	require.NoError(t, err)
	files.texts = []string{"", "return 2", "return 2 + 3"}
	changed, err := script.Refresh(t.Context())
	require.NoError(t, err)
	require.True(t, changed)
	require.Equal(t, 2, script.Version())
	out, err := script.Run(t.Context(), open(t, mlxlua.Options{}))
	require.NoError(t, err)
	require.Equal(t, []any{5.0}, out)
	files.texts = []string{"", "return 2 + 3"}
	changed, err = script.Refresh(t.Context())
	require.NoError(t, err)
	require.False(t, changed, "it was written as it is")
	ctx, cancel := context.WithCancel(t.Context())
	cancel()
	files.texts = []string{"return 6"}
	_, err = script.Refresh(ctx)
	require.ErrorIs(t, err, context.Canceled)
	require.Equal(t, 2, script.Version())
}

type codeError struct{ code int }

func (e *codeError) Error() string { return fmt.Sprint("code ", e.code) }

// TestErrorsAcrossGo: the value that a script called error with, and the error that a Go function returned, pass
// through Go functions and scripts that call each other; the Go function's place is known.
func TestErrorsAcrossGo(t *testing.T) {
	t.Parallel()
	s := open(t, mlxlua.Options{})
	_, thisFile, line, _ := runtime.Caller(0)
	require.NoError(t, s.Set("refuse", func(context.Context, []any) ([]any, error) { return nil, &codeError{7} }))
	require.NoError(t, s.Set("crash", func(_ context.Context, args []any) ([]any, error) {
		return args[:9:9], nil // panics
	}))
	require.NoError(t, s.Set("through", func(ctx context.Context, args []any) ([]any, error) {
		return args[0].(mlxlua.Func)(ctx, nil)
	}))
	var e *mlxlua.ScriptError
	var code *codeError
	var g *mlxlua.GoError
	_, err := s.Run(t.Context(), "a.lua", "\nrefuse()")
	require.ErrorAs(t, err, &e)
	require.ErrorAs(t, err, &code)
	require.Equal(t, 7, code.code)
	require.Equal(t, "a.lua", e.File)
	require.Equal(t, 2, e.Line)
	require.ErrorAs(t, err, &g)
	require.Same(t, g, e.Go)
	require.Contains(t, thisFile, "pool_test.go")
	require.Contains(t, g.File, "pool_test.go")
	require.Equal(t, line+1, g.Line)
	require.Contains(t, g.Function, "TestErrorsAcrossGo")

	_, err = s.Run(t.Context(), "a.lua", "crash()")
	require.ErrorAs(t, err, &e)
	require.NotNil(t, e.Go)
	require.Equal(t, line+3, e.Go.Line)
	require.ErrorContains(t, err, "a Go function panicked")
	var bounds runtime.Error
	require.ErrorAs(t, err, &bounds)

	_, err = s.Run(t.Context(), "a.lua", `through(function() error({code = 5}) end)`)
	require.ErrorAs(t, err, &e)
	require.Equal(t, map[string]any{"code": 5.0}, e.Value)

	_, err = s.Run(t.Context(), "a.lua", `local ok, e = pcall(refuse) assert(not ok) error(e)`)
	require.ErrorAs(t, err, &code)
}

// TestThreads: the device has the threads that it was opened with, and other numbers are errors.
func TestThreads(t *testing.T) {
	serial.Because(t, "it counts on all processors")
	_, err := mlxlua.Open(mlxlua.Options{Threads: -1})
	require.ErrorContains(t, err, "-1 threads")
	_, err = mlxlua.Open(mlxlua.Options{Threads: 12345})
	require.ErrorContains(t, err, "12345 threads were asked for")
	s := open(t, mlxlua.Options{Threads: runtime.GOMAXPROCS(0)})
	_, err = s.Run(t.Context(), "threads", `return mx.ones({3}):sum():item()`)
	require.NoError(t, err)
}

// TestPoolSeeds: the n-th user's random numbers follow from the pool's seed and n alone, whoever has prepared the state
// and what that has drawn; no two users have the same.
func TestPoolSeeds(t *testing.T) {
	t.Parallel()
	draw := func(seed uint64, ready int) (out []any) {
		pool, err := mlxlua.NewPool(t.Context(), mlxlua.PoolOptions{Ready: ready, Options: mlxlua.Options{Seed: seed},
			Prepare: func(ctx context.Context, s *mlxlua.State) error {
				_, err := s.Run(ctx, "prepare", `prepared = mx.random.uniform():item() + math.random()`)
				return err
			}})
		require.NoError(t, err)
		defer pool.Close()
		prepared := map[any]bool{}
		for range 6 {
			require.NoError(t, pool.Do(t.Context(), func(s *mlxlua.State) error {
				drawn, err := s.Run(t.Context(), "draw", `return prepared, mx.random.uniform():item(), math.random()`)
				if err == nil {
					prepared[drawn[0]] = true
					out = append(out, drawn[1:]...)
				}
				return err
			}))
		}
		require.Len(t, prepared, 1)
		return out
	}
	first := draw(1, 1)
	require.Equal(t, first, draw(1, 4))
	seen := map[any]bool{}
	for _, x := range append(first, draw(2, 2)...) {
		require.False(t, seen[x], "%v is drawn twice", x)
		seen[x] = true
	}
}

package mlxlua_test

import (
	"context"
	"errors"
	"io"
	"sync"
	"sync/atomic"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/mlxlua/mlxlua"
)

// uses are all ways to use a state.
func uses(t *testing.T, s *mlxlua.State) map[string]func(ctx context.Context) error {
	out, err := s.Run(t.Context(), "f", `function f(...) return ... end return f, {f}`)
	require.NoError(t, err)
	script, err := mlxlua.LoadScript(t.Context(), mlxlua.ScriptOptions{Name: "a.lua", Files: scriptFiles("return 1")})
	require.NoError(t, err)
	return map[string]func(ctx context.Context) error{
		"Run": func(ctx context.Context) error {
			_, err := s.Run(ctx, "x", `local t = {} for i = 1, 20 do t[i] = {i} end`, 1, []any{2})
			return err
		},
		"RunFile": func(ctx context.Context) error {
			_, err := s.RunFile(ctx, "absent.lua", 1)
			if errors.Is(err, mlxlua.ErrBusy) {
				return err
			}
			return nil
		},
		"Script.Run": func(ctx context.Context) error { _, err := script.Run(ctx, s, []any{1}); return err },
		"Call":       func(ctx context.Context) error { _, err := s.Call(ctx, "f", []any{1}); return err },
		"Func":       func(ctx context.Context) error { _, err := out[0].(mlxlua.Func)(ctx, []any{[]any{1}}); return err },
		"Set":        func(context.Context) error { return s.Set("x", map[string]any{"a": []any{1}}) },
		"Get":        func(context.Context) error { _, err := s.Get("f"); return err },
		"SetStdout":  func(context.Context) error { return s.SetStdout(io.Discard) },
	}
}

// TestBusy: while a call is under way, whatever another goroutine asks of the state is an error at once, and what the
// call's own Go functions ask is none. Afterwards any goroutine may use it.
func TestBusy(t *testing.T) {
	t.Parallel()
	for name, opt := range map[string]mlxlua.Options{"program": {}, "sandbox": {Sandbox: true}} {
		t.Run(name, func(t *testing.T) {
			s := open(t, opt)
			all := uses(t, s)
			during := func(ctx context.Context, n int) { // in another goroutine
				for use, f := range all {
					var err error
					done := make(chan struct{})
					go func() {
						defer close(done)
						err = f(ctx)
					}()
					<-done
					require.ErrorIs(t, err, mlxlua.ErrBusy, "%s, %d", use, n)
					require.ErrorContains(t, err, "use a Pool", use)
				}
			}
			depth := 0
			require.NoError(t, s.Set("within", mlxlua.Func(func(ctx context.Context, _ []any) ([]any, error) {
				during(context.Background(), depth)
				during(t.Context(), depth)
				for use, f := range all {
					require.NoError(t, f(ctx), use)
					require.NoError(t, f(context.Background()), use)
				}
				if depth++; depth < 3 {
					_, err := s.Run(context.Background(), "inner", `within() coroutine.wrap(function() within() end)()`)
					return nil, err
				}
				return nil, nil
			})))
			_, err := s.Run(t.Context(), "outer", `within() return pcall(within)`)
			require.NoError(t, err)
			require.Greater(t, depth, 3)
			for use, f := range all {
				require.NoError(t, f(t.Context()), use)
			}
		})
	}
}

// writer is a function as an io.Writer.
type writer func(p []byte) (int, error)

// Write calls it.
func (w writer) Write(p []byte) (int, error) { return w(p) }

// TestBusyIsHandedOn: a Go function that a script calls may hand the state on by its context, to one goroutine at a
// time, and the script goes on when all have given it back.
func TestBusyIsHandedOn(t *testing.T) {
	t.Parallel()
	s := open(t, mlxlua.Options{})
	var others sync.WaitGroup
	var kept context.Context
	begun, finish := make(chan struct{}), make(chan struct{})
	require.NoError(t, s.SetStdout(writer(func(p []byte) (int, error) { // which is no function that hands anything on
		close(begun)
		<-finish
		return len(p), nil
	})))
	require.NoError(t, s.Set("hand_on", mlxlua.Func(func(ctx context.Context, _ []any) ([]any, error) {
		kept = ctx
		errs := make(chan error)
		go func() {
			_, err := s.Run(ctx, "other", `n = (n or 0) + 1`)
			errs <- err
		}()
		err := <-errs
		others.Go(func() { // goes on after the function has ended
			if _, err := s.Run(ctx, "late", `print("") n = n + 1`); err != nil {
				t.Error(err)
			}
		})
		<-begun
		if _, err := s.Run(ctx, "own", `n = n + 1`); !errors.Is(err, mlxlua.ErrBusy) {
			t.Error("the function's own goroutine does not have it meanwhile:", err)
		}
		close(finish)
		return nil, err
	})))
	out, err := s.Run(t.Context(), "outer", `hand_on() return n`)
	require.NoError(t, err)
	require.Equal(t, []any{2.0}, out)
	others.Wait()
	require.NoError(t, s.Set("inside", mlxlua.Func(func(context.Context, []any) ([]any, error) {
		done := make(chan error)
		go func() { // Get has no context: it is anybody
			_, err := s.Get("n")
			done <- err
		}()
		return nil, <-done
	})))
	_, err = s.Run(kept, "outer", `inside()`)
	require.ErrorIs(t, err, mlxlua.ErrBusy)
}

// TestBusyGoroutines: of goroutines that use one state at once each use either is whole or fails with ErrBusy: nothing
// is lost, and nothing races.
func TestBusyGoroutines(t *testing.T) {
	t.Parallel()
	s := open(t, mlxlua.Options{Sandbox: true})
	all := uses(t, s)
	require.NoError(t, s.Set("n", 0))
	require.NoError(t, s.Set("again", mlxlua.Func(func(ctx context.Context, _ []any) ([]any, error) {
		return s.Run(ctx, "again", `n = n + 1`)
	})))
	var goroutines sync.WaitGroup
	var added, refused atomic.Int64
	for range 8 {
		goroutines.Go(func() {
			for range 50 {
				_, err := s.Run(context.Background(), "add", `local x = mx.ones({3}) * 2 again() n = n + x[1]:item() / 2`)
				switch {
				case err == nil:
					added.Add(2)
				case errors.Is(err, mlxlua.ErrBusy):
					refused.Add(1)
				default:
					t.Error(err)
				}
				for use, f := range all {
					if err := f(context.Background()); err != nil && !errors.Is(err, mlxlua.ErrBusy) {
						t.Error(use, err)
					}
				}
			}
		})
	}
	goroutines.Wait()
	require.Equal(t, float64(added.Load()), get(t, s, "n"))
	require.Equal(t, int64(8*50), added.Load()/2+refused.Load())
}

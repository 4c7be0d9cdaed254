package mlxlua_test

import (
	"context"
	"errors"
	"runtime"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/mlxlua/mlxlua"
	"github.com/mlxlua/mlxlua/tensor"
)

// TestReturnedArraysAreComputed: what a script in a sandbox, or under limits of time, gives to Go is computed within
// the call that gives it, wherever it stands.
func TestReturnedArraysAreComputed(t *testing.T) {
	t.Parallel()
	for _, opt := range []mlxlua.Options{{Sandbox: true}, {TimeLimit: time.Hour}, {KernelTimeLimit: time.Hour}} {
		s := open(t, opt)
		var given []any
		require.NoError(t, s.Set("give", mlxlua.Func(func(_ context.Context, args []any) ([]any, error) {
			given = args
			return nil, nil
		})))
		out, err := s.Run(t.Context(), "lazy", `
			local function lazy(n) return mx.ones({2}) * n + 1 end
			kept, list = lazy(1), {lazy(2), {x = {lazy(3)}}}
			give(lazy(4), {{lazy(5)}})
			function made() return {lazy(8)} end
			return lazy(6), {a = {lazy(7)}}, made`)
		require.NoError(t, err)
		late, err := out[2].(mlxlua.Func)(t.Context(), nil)
		require.NoError(t, err)
		called, err := s.Call(t.Context(), "made")
		require.NoError(t, err)
		_, err = s.Run(t.Context(), "error", `error({mx.ones({2}) * 9 + 1})`)
		var failure *mlxlua.ScriptError
		require.ErrorAs(t, err, &failure)
		list := get(t, s, "list").([]any)
		for i, x := range []any{get(t, s, "kept"), list[0], list[1].(map[string]any)["x"].([]any)[0], given[0],
			given[1].([]any)[0].([]any)[0], out[0], out[1].(map[string]any)["a"].([]any)[0], late[0].([]any)[0],
			called[0].([]any)[0], failure.Value.([]any)[0]} {
			require.Equal(t, "ready", stateOf(x.(*mlxlua.Array)), "%d", i)
		}
		v, err := mlxlua.ToSlice[float32](t.Context(), out[0].(*mlxlua.Array))
		require.NoError(t, err)
		require.Equal(t, []float32{7, 7}, v)
	}
}

// TestLimitsHoldForWhatIsReturned: an array that takes longer, or more memory, than the call may take is the call's
// error, however Go would get it.
func TestLimitsHoldForWhatIsReturned(t *testing.T) {
	t.Parallel()
	const long, large, wide = endless + `local x = y `, `local x = mx.random.normal({1000, 10000}) `,
		`local x = mx.broadcast_to(mx.ones({1}), {1e9}) `
	opts := map[string]mlxlua.Options{
		long:  {Sandbox: true, TimeLimit: 100 * time.Millisecond},
		large: {Sandbox: true, ArrayLimit: 16 << 20},
		wide:  {Sandbox: true, ArrayLimit: 16 << 20},
	}
	give := mlxlua.Func(func(context.Context, []any) ([]any, error) { return nil, nil })
	for source, opt := range opts {
		for _, kernels := range []time.Duration{0, 100 * time.Millisecond} {
			if opt.KernelTimeLimit = kernels; kernels > 0 {
				if opt.TimeLimit = 0; source != long {
					continue
				}
			}
			for _, leave := range []string{`return x`, `return {{x}}, 1`, `give(x)`, `give({a = {x}})`, `kept = x`,
				`return function() return x end`, `function f() return x end`, `error({x})`} {
				s := open(t, opt)
				require.NoError(t, s.Set("give", give))
				ctx, cancel := context.WithTimeout(t.Context(), time.Minute)
				out, err := s.Run(ctx, "script", source+leave)
				switch leave {
				case `kept = x`:
					require.NoError(t, err)
					_, err = s.Get("kept")
				case `return function() return x end`:
					require.NoError(t, err)
					_, err = out[0].(mlxlua.Func)(ctx, nil)
				case `function f() return x end`:
					require.NoError(t, err)
					_, err = s.Call(ctx, "f")
				case `error({x})`: // the error is handed over, and what it holds has no value
					var failure *mlxlua.ScriptError
					require.ErrorAs(t, err, &failure)
					list, ok := failure.Value.([]any)
					if !ok { // a Lua value, which says nothing
						err = mlxlua.ErrLimit
						break
					}
					_, err = mlxlua.ToSlice[float32](ctx, list[0].(*mlxlua.Array))
				}
				require.ErrorIs(t, err, mlxlua.ErrLimit, "%s%s", source, leave)
				require.NoError(t, ctx.Err())
				cancel()
			}
		}
	}
}

// TestWhatCannotBeComputedIsReturned: arrays without a value hinder no call that hands them over.
func TestWhatCannotBeComputedIsReturned(t *testing.T) {
	t.Parallel()
	s := open(t, mlxlua.Options{Sandbox: true})
	calls := 0
	require.NoError(t, s.Set("give", mlxlua.Func(func(_ context.Context, args []any) ([]any, error) {
		calls++
		return args, nil
	})))
	out, err := s.Run(t.Context(), "script", `
		local x = mx.ones({2}) x:free()
		local y = mx.vmap(function(v) return give(v) * 2 end)(mx.ones({2, 3}))
		local z = mx.compile(function(v) return give(v) * 2 end)(mx.ones({2, 3}))
		local g = mx.grad(function(v) return give(v):sum() end)(mx.ones({3}))
		return x, y:sum():item(), z:sum():item(), g:sum():item()`)
	require.NoError(t, err)
	require.Equal(t, []any{12.0, 12.0, 3.0}, out[1:])
	require.Equal(t, 3, calls)
	_, err = mlxlua.ToSlice[float32](t.Context(), out[0].(*mlxlua.Array))
	require.ErrorContains(t, err, "freed")
}

// TestUnlimitedStatesStayLazy: a program's own scripts hand lazy arrays over, which Go may compute later, or never.
func TestUnlimitedStatesStayLazy(t *testing.T) {
	t.Parallel()
	s := open(t, mlxlua.Options{})
	out, err := s.Run(t.Context(), "lazy", `return mx.ones({2}) + 1`)
	require.NoError(t, err)
	require.Equal(t, "lazy", stateOf(out[0].(*mlxlua.Array)))
	runtime.KeepAlive(out)
}

// TestArraysOfOtherStates: a state in a sandbox computes what Go made under its own limits, and Go does with a script's
// arrays what it likes.
func TestArraysOfOtherStates(t *testing.T) {
	t.Parallel()
	a, b := open(t, mlxlua.Options{Sandbox: true}), open(t, mlxlua.Options{Sandbox: true})
	out, err := a.Run(t.Context(), "a", `return mx.arange(4) * 2`)
	require.NoError(t, err)
	out, err = b.Run(t.Context(), "b", `local x = ... return x + 1`, out...)
	require.NoError(t, err)
	a.Close()
	b.Close()
	v, err := mlxlua.ToSlice[int32](t.Context(), out[0].(*mlxlua.Array))
	require.NoError(t, err)
	require.Equal(t, []int32{1, 3, 5, 7}, v)
	require.False(t, errors.Is(err, mlxlua.ErrLimit))
}

func stateOf(x *mlxlua.Array) string {
	return map[tensor.State]string{tensor.Lazy: "lazy", tensor.Scheduled: "scheduled", tensor.Ready: "ready",
		tensor.Failed: "failed"}[x.State()]
}

// TestErrorsKeepTheirArrays: what error was called with has its value for Go, also where it is lazy.
func TestErrorsKeepTheirArrays(t *testing.T) {
	t.Parallel()
	s := open(t, mlxlua.Options{})
	_, err := s.Run(t.Context(), "error", `local x = mx.random.normal({300, 300}) mx.eval(x)
		for i = 1, 50 do mx.eval(mx.matmul(x, x)) end error({x[0] * 0 + 1})`)
	var failure *mlxlua.ScriptError
	require.ErrorAs(t, err, &failure)
	v, err := mlxlua.ToSlice[float32](t.Context(), failure.Value.([]any)[0].(*mlxlua.Array))
	require.NoError(t, err)
	require.Equal(t, float32(1), v[299])
}

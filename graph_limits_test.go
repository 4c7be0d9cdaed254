package mlxlua_test

import (
	"context"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/mlxlua/mlxlua"
	"github.com/mlxlua/mlxlua/internal/serial"
)

// graphAttacks are scripts of a few lines whose graphs grow without end while no line of a script runs.
var graphAttacks = map[string]string{
	"gradients of gradients": `local f = function(x) return mx.tanh(mx.sin(x) * x) end
		for i = 1, 30 do f = mx.grad(f) end return f(mx.array(0.5))`,
	"products of products": `local f = function(x) return mx.tanh(x) * x end
		for i = 1, 30 do local g = f
			f = function(x) local _, y = mx.jvp(g, {x}, {mx.ones({2})}) return y[1] end end
		return f(mx.ones({2}))`,
	"vector products": `local f = function(x) return mx.tanh(x) * x end
		for i = 1, 30 do local g = f
			f = function(x) local _, y = mx.vjp(g, {x}, {mx.ones({2})}) return y[1] end end
		return f(mx.ones({2}))`,
	"batches of batches": `local f = function(x) return mx.sin(x) * x end
		for i = 1, 30 do f = mx.vmap(f) local g = f f = function(x) return g(x) + g(x * 2) end end
		local s = {} for i = 1, 31 do s[i] = 1 end return f(mx.ones(s))`,
	"compiled functions within each other": `local f = function(x) return mx.sin(x) * x end
		for i = 1, 30 do local g = f f = mx.compile(function(x) return g(x) * g(g(x + 1)) end) end
		return f(mx.array(0.5))`,
	"compiled gradients": `local f = mx.tanh
		for i = 1, 30 do f = mx.compile(mx.grad(f)) end return f(mx.array(0.5))`,
	"checkpoints": `local f = function(x)
			for i = 1, 300 do x = mx.checkpoint(function(y) return mx.sin(y) * y end)(x) end return x end
		for i = 1, 30 do f = mx.grad(f) end return f(mx.array(0.5))`,
	"functions with transforms of their own": `local f = mx.tanh
		for i = 1, 30 do local g = mx.custom_function(f) local h = f
			g:vjp(function(x, c) return mx.grad(h)(x) * c end) f = mx.grad(g) end return f(mx.array(0.5))`,
	"a function of many outputs": `return mx.custom_function(function(x)
		local t = {} for i = 1, 30000 do t[i] = x end return t end)(mx.array(0.5))`,
	"an exported function": `local f = mx.tanh for i = 1, 30 do f = mx.grad(f) end
		mx.export_function(function() end, f, mx.array(0.5))`,
	"many operands": `local t = {} for i = 1, 20000 do t[i] = mx.ones({1}) end
		while true do mx.stack(t) mx.broadcast_arrays(unpack(t)) mx.meshgrid(unpack(t)) end`,
}

// TestGraphsEndWithTheCall: what builds graphs without a line of a script in between looks at the time of the call.
func TestGraphsEndWithTheCall(t *testing.T) {
	serial.Because(t, "it measures how long a call goes on after its end")
	for name, source := range graphAttacks {
		t.Run(name, func(t *testing.T) {
			s := open(t, mlxlua.Options{Sandbox: true, MemoryLimit: 1 << 40, TimeLimit: 200 * time.Millisecond})
			ctx, cancel := context.WithTimeout(t.Context(), 20*time.Second) // a bound for a hang
			defer cancel()
			begun := time.Now()
			_, err := s.Run(ctx, "graphs", source)
			t.Log(time.Since(begun))
			require.ErrorIs(t, err, mlxlua.ErrLimit)
			require.ErrorContains(t, err, "the time of the call is over")
			out, err := s.Run(t.Context(), "after", `return mx.grad(mx.sin)(mx.array(0)):item()`)
			require.NoError(t, err)
			require.Equal(t, []any{1.0}, out)
		})
	}
}

// TestGraphsCountAsTheyGrow: so do they look at the memory that they take.
func TestGraphsCountAsTheyGrow(t *testing.T) {
	t.Parallel()
	for name, source := range graphAttacks {
		t.Run(name, func(t *testing.T) {
			if name == "many operands" { // which are garbage at once
				t.Skip()
			}
			s := open(t, mlxlua.Options{Sandbox: true, MemoryLimit: 8 << 20})
			_, err := s.Run(t.Context(), "graphs", source)
			require.ErrorIs(t, err, mlxlua.ErrLimit)
			require.ErrorContains(t, err, "the script's memory is full")
			out, err := s.Run(t.Context(), "after", `return mx.grad(mx.sin)(mx.array(0)):item()`)
			require.NoError(t, err)
			require.Equal(t, []any{1.0}, out)
		})
	}
}

// TestContextsEndGraphs: without any limit a context ends the building of graphs, of the innermost call that has one.
func TestContextsEndGraphs(t *testing.T) {
	serial.Because(t, "it measures how long a call goes on after its end")
	s := open(t, mlxlua.Options{})
	inner := false
	require.NoError(t, s.Set("try", mlxlua.Func(func(ctx context.Context, args []any) ([]any, error) {
		ctx, cancel := context.WithTimeout(ctx, 100*time.Millisecond)
		defer cancel()
		_, err := args[0].(mlxlua.Func)(ctx, nil)
		require.ErrorIs(t, err, context.DeadlineExceeded)
		inner = true
		return nil, nil
	})))
	ctx, cancel := context.WithTimeout(t.Context(), time.Minute)
	defer cancel()
	out, err := s.Run(ctx, "graphs", `try(function() `+graphAttacks["gradients of gradients"]+` end)
		return mx.grad(mx.sin)(mx.array(0)):item()`)
	require.NoError(t, err)
	require.True(t, inner)
	require.Equal(t, []any{1.0}, out)
}

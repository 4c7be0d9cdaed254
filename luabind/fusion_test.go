package luabind

import (
	"bytes"
	"os"
	"strings"
	"testing"

	"github.com/stretchr/testify/require"
	lua "github.com/yuin/gopher-lua"

	"github.com/mlxlua/mlxlua/internal/serial"
	"github.com/mlxlua/mlxlua/metal"
	"github.com/mlxlua/mlxlua/tensor"
)

// fused runs f with fusion and without, and returns what it gave.
func fused(f func() []byte) (with, without []byte) {
	defer tensor.SetFusion(tensor.SetFusion(true))
	with = f()
	tensor.SetFusion(false)
	return with, f()
}

// TestFusionOfTheHybrid: the scores of the small hybrid model are the same bytes with a kernel for each op
// (MLXLUA_FUSE=0) as with fused ones, which are fewer, eager and compiled.
func TestFusionOfTheHybrid(t *testing.T) {
	text := hybridText(t, true)
	_, drv := withDevice(t, metal.DeviceOptions{})
	for _, mode := range []string{"", "--eager"} {
		args := hybridLayers(4)
		if mode != "" {
			args = append(args, lua.LString(mode))
		}
		var commands []int64
		with, without := fused(func() []byte {
			before := drv.dispatches.Load()
			s := hybridState(t, text, nil, args...)
			defer s.Close()
			x, err := callArray(s, "run", lua.LNumber(3), lua.LNumber(3))
			require.NoError(t, err)
			b, err := x.Bytes(t.Context())
			require.NoError(t, err)
			requireFinite(t, b)
			commands = append(commands, drv.dispatches.Load()-before)
			return b
		})
		require.Equal(t, with, without)
		require.Less(t, commands[0], commands[1], "nothing was fused")
	}
}

// TestExplainCountsKernels: f:explain() tells as many kernels, before and after fusion, as the device is given when f's
// ops take one kernel each. Of what a gradient knows only the shape nothing is computed, nor are empty arrays.
func TestExplainCountsKernels(t *testing.T) {
	for name, body := range map[string]string{
		"kernels of all kinds": `
  local y = mx.matmul(mx.exp(x * 2 + 1), w)
  local z = mx.softmax(mx.tanh(y) + y, -1)
  return z, mx.sum(mx.abs(z:reshape({-1})[":8"]) * 3)`,
		"a gradient": `
  return mx.grad(function(x) return mx.sum(mx.tanh(x) * x) end)(x)`,
		"empty arrays": `
  return (x["0:0"] + 1) * 2, mx.sum(x["0:0"] * 2, 0), mx.exp(x) + 1`,
	} {
		t.Run(name, func(t *testing.T) {
			_, drv := withDevice(t, metal.DeviceOptions{})
			s := New(Options{})
			defer s.Close()
			run := func(text string) []lua.LValue {
				results, err := s.Run(t.Context(), strings.NewReader(text), "script")
				require.NoError(t, err)
				return results
			}
			run("f = mx.compile(function(x, w)" + body + ` end)
x, w = mx.ones({4, 16}) + 0, mx.ones({16, 16}) + 0
mx.eval(x, w)
mx.eval(f(x, w)) -- constants are computed once`)
			var commands []string
			fused(func() []byte {
				before := drv.dispatches.Load()
				text := run("mx.eval(f(x, w)); return f:explain()")[0].String()
				n := drv.dispatches.Load() - before
				when := [2]string{"after", "before"}[len(commands)]
				commands = append(commands, tensor.Count(int(n), "kernel"))
				require.Contains(t, text, when+" fusion: "+commands[len(commands)-1]+",")
				return nil
			})
			require.NotEqual(t, commands[0], commands[1])
		})
	}
}

// TestExplainSource: the kernels that f:explain{source = true} shows are those that the device was given: in one line,
// strided, a reduction with what is computed on the way, of wide and of 64-bit elements, and over views.
func TestExplainSource(t *testing.T) {
	_, drv := withDevice(t, metal.DeviceOptions{})
	s := New(Options{})
	defer s.Close()
	got := asked(t, s, `local f = mx.compile(function(x, w)
		return mx.tanh(x) + 1, mx.exp(x.T * 2 + w), mx.sum(mx.abs(x.T["::-1"] - w), 0), mx.max(x * 2, 1),
			x:astype(mx.float64) * 2, (x["1:, ::2"] + 1):astype(mx.int64) * 2, mx.matmul(x, x.T)
	end)
	mx.eval(f(mx.ones({3, 40}) + 0, mx.ones({3}) + 0))
	return f:explain{source = true}`).String()
	shown, text := 0, ""
	for line := range strings.Lines(got + "end") {
		if part, ok := strings.CutPrefix(line, "      | "); ok {
			text += part
			continue
		}
		if text != "" {
			_, ran := drv.texts.Load(text)
			require.True(t, ran, "the device was not given\n%s", text)
			shown++
		}
		text = ""
	}
	require.GreaterOrEqual(t, shown, 6, got)
	plain := asked(t, s, `local f = mx.compile(mx.exp) f(mx.ones({2})) return f:explain()`)
	require.NotContains(t, plain.String(), "kernel]]")
	for _, call := range []string{"f:explain(1)", "f:explain{source = 1}", "f:explain{text = true}"} {
		got := asked(t, s, `local f = mx.compile(mx.exp) return tostring(select(2, pcall(function() return %s end)))`, call)
		require.Contains(t, got.String(), "[explain] got ", call)
	}
}

// TestFusionOfTheQuickstart: it prints the same, and what it computes are the same bytes.
func TestFusionOfTheQuickstart(t *testing.T) {
	serial.Because(t, "fusion is switched for the process")
	text, err := os.ReadFile("../examples/quickstart.lua")
	require.NoError(t, err)
	with, without := fused(func() []byte {
		var out bytes.Buffer
		s := New(Options{Libraries: true, Stdout: &out})
		defer s.Close()
		script := string(text) + "\nreturn c, w, my_gelu(c), out, dense"
		results, err := s.Run(t.Context(), strings.NewReader(script), "quickstart.lua")
		require.NoError(t, err)
		require.Len(t, results, 5)
		for _, r := range results {
			b, err := toGo(s, r).(*tensor.Array).Bytes(t.Context())
			require.NoError(t, err)
			require.NotEmpty(t, b)
			out.Write(b)
		}
		return out.Bytes()
	})
	require.Equal(t, with, without)
}

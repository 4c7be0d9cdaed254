package luabind

import (
	"context"
	"encoding/binary"
	"fmt"
	"math"
	"os"
	"slices"
	"strings"
	"testing"

	"github.com/stretchr/testify/require"
	lua "github.com/yuin/gopher-lua"

	"github.com/mlxlua/mlxlua/metal"
	"github.com/mlxlua/mlxlua/tensor"
)

// The hybrid model of examples/hybrid_moe.lua under fire. Tests run the example's own text, up to the headline of its
// last section, in front of functions of theirs.

// hybridMain is the headline of the example's last section.
const hybridMain = "-- Both, side by side ---"

// smaller makes the model small enough for validation, which executes kernels slowly.
var smaller = strings.NewReplacer(
	"local vocabulary, width = 512, 128\n", "local vocabulary, width = 96, 32\n",
	"local heads, kv_heads, head_size, rope_size = 4, 2, 32, 16 ",
	"local heads, kv_heads, head_size, rope_size = 4, 2, 8, 4 ",
	"local key_heads, value_heads, key_size, value_size = 2, 4, 64, 32 ",
	"local key_heads, value_heads, key_size, value_size = 1, 2, 32, 4 ",
	"local experts, chosen, hidden = 8, 3, 64\n", "local experts, chosen, hidden = 4, 2, 32\n",
	"{group_size = 64, bits = 4}", "{group_size = 32, bits = 4}",
	"group_size = 64, bits = 4})", "group_size = 32, bits = 4})",
)

// hybridText is the example without its last section. Small says that the model is to be a small one.
func hybridText(t testing.TB, small bool) string {
	t.Helper()
	b, err := os.ReadFile("../examples/hybrid_moe.lua")
	require.NoError(t, err)
	text, _, found := strings.Cut(string(b), hybridMain)
	require.True(t, found)
	if small {
		changed := smaller.Replace(text)
		require.Equal(t, 1, strings.Count(changed, "local vocabulary, width = 96, 32\n"))
		require.Equal(t, 1, strings.Count(changed, "head_size, rope_size = 4, 2, 8, 4 "))
		require.Equal(t, 1, strings.Count(changed, "key_size, value_size = 1, 2, 32, 4 "))
		require.Equal(t, 1, strings.Count(changed, "experts, chosen, hidden = 4, 2, 32\n"))
		require.Equal(t, 2, strings.Count(changed, "group_size = 32, bits = 4}"))
		require.NotContains(t, changed, "group_size = 64")
		text = changed
	}
	return text
}

// decoding are the functions of the tests: run decodes some steps and gives the last scores; start and forward do
// so one by one. build gives all that a step makes, as a list, and stays where it is in the sequence.
const decoding = `
local step = decode
if not options.eager then step = mx.compile(decode, {shapeless = true}) end
local tokens, place, state
function start(batch)
  tokens, place, state = mx.arange(batch) * 31 % vocabulary, mx.arange(batch), empty_state(batch)
end
function forward()
  local scores
  scores, tokens, place, state = step(tokens, place, state)
  return scores
end
function run(batch, steps)
  local scores
  start(batch)
  for _ = 1, steps do
    scores = forward()
    mx.async_eval(scores, tokens, place, state)
  end
  return scores
end
function build()
  local out, list = {step(tokens, place, state)}, {}
  for i = 1, 3 do list[i] = out[i] end
  for _, layer in ipairs(out[4]) do for _, x in pairs(layer) do list[#list + 1] = x end end
  return list
end
function weights_of() return model end
`

// hybridWeights are the model's weights outside of any device.
type hybridWeights struct {
	spec  tensor.Spec
	bytes []byte
}

// hybridModel makes the model's weights on the default device.
func hybridModel(t testing.TB, text string, args ...lua.LValue) any {
	t.Helper()
	s := New(Options{Libraries: true})
	defer s.Close()
	_, err := s.Run(t.Context(), strings.NewReader(text+decoding), "hybrid.lua", args...)
	require.NoError(t, err)
	out, err := s.Call(t.Context(), s.Global("weights_of"))
	require.NoError(t, err)
	return mapArrays(toGo(s, out[0]), func(v any) any {
		x, ok := v.(*tensor.Array)
		if !ok {
			return v
		}
		b, err := x.Bytes(t.Context())
		require.NoError(t, err)
		return hybridWeights{x.Spec(), b}
	})
}

// onDevice gives weights to the default device: no command runs.
func onDevice(weights any) any {
	return mapArrays(weights, func(v any) any {
		if w, ok := v.(hybridWeights); ok {
			return tensor.FromBytes(nil, w.spec, w.bytes)
		}
		return v
	})
}

// mapArrays is a tree with other leaves.
func mapArrays(v any, leaf func(any) any) any {
	switch v := v.(type) {
	case []any:
		out := slices.Clone(v)
		for i := range out {
			out[i] = mapArrays(v[i], leaf)
		}
		return out
	case map[string]any:
		out := map[string]any{}
		for k, x := range v {
			out[k] = mapArrays(x, leaf)
		}
		return out
	}
	return leaf(v)
}

// sharing is the text with a model that the global shared holds in place of one that it makes.
func sharing(t testing.TB, text string) string {
	t.Helper()
	before, rest, found := strings.Cut(text, "\nlocal model = {")
	require.True(t, found)
	_, after, found := strings.Cut(rest, "\nlocal function empty_state(")
	require.True(t, found)
	return before + "\nlocal model = shared\nlocal function empty_state(" + after
}

// hybridState is a Lua state with the example's functions.
func hybridState(t testing.TB, text string, model any, args ...lua.LValue) *State {
	t.Helper()
	s := New(Options{Libraries: true, Stdout: &strings.Builder{}})
	if model != nil {
		text = sharing(t, text)
		v, err := s.ToLua(model)
		require.NoError(t, err)
		s.SetGlobal("shared", v)
	}
	_, err := s.Run(context.Background(), strings.NewReader(text+decoding), "hybrid.lua", args...)
	require.NoError(t, err)
	return s
}

// callArray calls a function that gives an array first.
func callArray(s *State, name string, args ...lua.LValue) (*tensor.Array, error) {
	out, err := s.Call(context.Background(), s.Global(name), args...)
	if err != nil {
		return nil, err
	}
	return toGo(s, out[0]).(*tensor.Array), nil
}

func hybridLayers(n int) []lua.LValue {
	return []lua.LValue{lua.LString("--layers"), lua.LString(fmt.Sprint(n))}
}

// TestHybridLifetime is MLX's issue 3462 as its users met it: a hybrid model is decoded in several states at once. Ten
// of ten runs are clean under validation and give the bytes that each batch gives alone, without validation; with
// retention switched off each of ten runs is reported, naming buffer and kernel.
func TestHybridLifetime(t *testing.T) {
	const layers, rounds = 4, 2
	batches := []int{16, 17, 32}
	runs := 10
	if testing.Short() {
		batches, runs = []int{2, 3}, 2
	}
	text := hybridText(t, true)
	weights := hybridModel(t, text, hybridLayers(layers)...)
	want := make([][]byte, len(batches))
	withDevice(t, metal.DeviceOptions{})
	shared := onDevice(weights)
	for i, batch := range batches {
		s := hybridState(t, text, shared, hybridLayers(layers)...)
		x, err := callArray(s, "run", lua.LNumber(batch), lua.LNumber(rounds))
		require.NoError(t, err)
		want[i], err = x.Bytes(t.Context())
		require.NoError(t, err)
		require.Len(t, want[i], batch*96*4)
		requireFinite(t, want[i])
		s.Close()
	}
	once := func(shared any) error {
		return inStates(len(batches), func(i int) error {
			s := hybridState(t, text, shared, hybridLayers(layers)...)
			defer s.Close()
			x, err := callArray(s, "run", lua.LNumber(batches[i]), lua.LNumber(rounds))
			if err != nil {
				return err
			}
			got, err := x.Bytes(context.Background())
			if err == nil && !slices.Equal(got, want[i]) {
				err = fmt.Errorf("batch %d: the scores differ from those of the batch alone", batches[i])
			}
			return err
		})
	}
	dev, _ := withDevice(t, metal.DeviceOptions{Validate: true})
	shared = onDevice(weights)
	for range runs {
		require.NoError(t, once(shared))
	}
	require.Zero(t, dev.LibraryStats().Evictions)
	withDevice(t, metal.DeviceOptions{Validate: true, Ablate: metal.Ablations{NoRetain: true}})
	shared = onDevice(weights)
	for range runs {
		err := once(shared)
		require.ErrorContains(t, err, "[validate] command buffer references deallocated object: buffer of ")
		require.Regexp(t, `buffer of [\w ]+ made at hybrid.lua:\d+ \(#\d+, \d+ bytes\) in kernel \w+ \[\w+ hybrid.lua:\d+\]`,
			err.Error())
	}
}

func requireFinite(t testing.TB, b []byte) {
	t.Helper()
	for i := 0; i+4 <= len(b); i += 4 {
		v := float64(math.Float32frombits(binary.LittleEndian.Uint32(b[i:])))
		require.False(t, math.IsNaN(v) || math.IsInf(v, 0), "element %d is %v", i/4, v)
	}
}

// TestHybridMemory: sequences that end and begin again, of which only the scores are asked for. A period of them gives
// the device as many commands, and leaves as much memory, as every other.
func TestHybridMemory(t *testing.T) {
	onlyMemory(t)
	const (
		period = 25              // steps of a sequence
		most   = int64(16 << 20) // bytes: the limit, so that what comes back late comes back when it is reached
	)
	text := hybridText(t, true)
	for _, mode := range []string{"compiled", "eager"} {
		t.Run(mode, func(t *testing.T) {
			dev, drv := withDevice(t, metal.DeviceOptions{})
			dev.SetMemoryLimit(most)
			args := hybridLayers(4)
			if mode == "eager" {
				args = append(args, lua.LString("--eager"))
			}
			s := hybridState(t, text, nil, args...)
			defer s.Close()
			var commands, live int64
			var buffers int
			n := steps()
			if mode == "eager" && !*fire {
				n /= 4
			}
			for i := 1; i <= n; i++ {
				if i%period == 1 {
					_, err := s.Call(t.Context(), s.Global("start"), lua.LNumber(2))
					require.NoError(t, err)
				}
				x, err := callArray(s, "forward")
				require.NoError(t, err)
				require.True(t, s.looks.now()) // in each step, so that all are alike
				require.NoError(t, tensor.Eval(t.Context(), x))
				if i%period != 0 {
					continue
				}
				require.NoError(t, tensor.Synchronize(t.Context()))
				given := drv.dispatches.Swap(0)
				if i == 2*period {
					commands = given
				}
				if i > 2*period {
					require.Equal(t, commands, given, "commands of steps %d to %d", i-period+1, i)
				}
				if i != 4*period && i != n {
					continue
				}
				dev.Collect(context.Background())
				m := dev.Memory()
				if live == 0 {
					live, buffers = m.Active, m.Buffers
				}
				require.Equal(t, live, m.Active, "bytes after step %d", i)
				require.Equal(t, buffers, m.Buffers, "buffers after step %d", i)
			}
			require.LessOrEqual(t, dev.Memory().Peak, most)
			require.Zero(t, dev.LibraryStats().Evictions)
		})
	}
}

// TestHybridCheck: the example's own check finds what is wrong with a step, and its exit status says so.
func TestHybridCheck(t *testing.T) {
	t.Parallel()
	b, err := os.ReadFile("../examples/hybrid_moe.lua")
	require.NoError(t, err)
	exit := func(text string, args ...lua.LValue) (string, error) {
		var out strings.Builder
		s := New(Options{Libraries: true, Stdout: &out})
		defer s.Close()
		_, err := s.Run(t.Context(), strings.NewReader(text), "hybrid.lua",
			append(hybridLayers(4), args...)...)
		return out.String(), err
	}
	sizes := []lua.LValue{lua.LString("--batches"), lua.LString("3"), lua.LString("--steps"), lua.LString("3")}
	out, err := exit(string(b), sizes...)
	require.NoError(t, err, out)
	for name, c := range map[string]struct{ right, wrong string }{
		"the kernel's decay": {
			"s[i] = g[head] * memory[base + lane + 32 * i];",
			"s[i] = memory[base + lane + 32 * i];",
		},
		"the kernel's sum": {
			"v[head * Dv + row] - simd_sum(known)",
			"v[head * Dv + row] - known",
		},
		"the kernel's state": {
			"next[base + lane + 32 * i] = s[i];",
			"next[base + lane + 32 * i] = memory[base + lane + 32 * i];",
		},
		"heads' keys": {
			"head % Hv / (Hv / Hk)",
			"0 * Hk",
		},
		"rope of the keys": {
			"mx.fast.rope(k, rope_size, turn)",
			"mx.fast.rope(k, rope_size, {base = 10000, offset = 0})",
		},
		"no cache": {
			"{state.k, mx.fast.rope(k, rope_size, turn)}, 2)\n  v = mx.concatenate({state.v, v}, 2)",
			"{mx.fast.rope(k, rope_size, turn)}, 2)",
		},
		"the largest": {
			"mx.argpartition(-shares, ",
			"mx.argpartition(shares, ",
		},
		"shares": {
			"shares = shares / shares:sum(-1, true)\n  local each = x:expand_dims({1, 2})\n  local y = nn",
			"local each = x:expand_dims({1, 2})\n  local y = nn",
		},
		"an expert's gate": {
			"gathered(each, layer.gate, which)) * gathered(each, layer.up, which)",
			"gathered(each, layer.up, which)) * gathered(each, layer.gate, which)",
		},
		"a little": {
			"h = h + y\n    h = h + mixture(",
			"h = h + y * 1.01\n    h = h + mixture(",
		},
	} {
		t.Run(name, func(t *testing.T) {
			if testing.Short() && name != "a little" {
				t.Skip("one of ten")
			}
			require.Equal(t, 1, strings.Count(string(b), c.right))
			out, err := exit(strings.Replace(string(b), c.right, c.wrong, 1), sizes...)
			var failed *ScriptError
			require.ErrorAs(t, err, &failed, out)
			require.NotNil(t, failed.Exit, err)
			require.Equal(t, 1, *failed.Exit)
			require.Contains(t, out, "FAILED: the largest relative difference is ")
		})
	}
}

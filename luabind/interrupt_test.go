package luabind

import (
	"context"
	"errors"
	"fmt"
	"maps"
	"math/rand/v2"
	"slices"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/mlxlua/mlxlua/internal/serial"
	"github.com/mlxlua/mlxlua/tensor"
)

// interruptibles are scripts with a function that makes the state s[i + 1] of s[i], and evaluates it, and a number of
// steps. What a step leaves behind it makes before it evaluates: who is stopped there goes on with the next.
var interruptibles = map[string]struct {
	steps  int
	source string
}{
	"training": {25, `
		local x = mx.random.uniform({shape = {64, 16}, key = mx.random.key(0)})
		local y = mx.matmul(x, mx.arange(16) / 16)
		local g = mx.grad(function(w) return mx.mean(mx.square(mx.matmul(x, w) - y)) end)
		s = {mx.zeros({16})}
		function step(i) s[i + 1] = s[i] - 0.1 * g(s[i]) mx.eval(s[i + 1]) end`},
	"in place": {20, `
		s = {mx.zeros({64, 512})}
		function step(i)
		  local t = s[i] * 0.5
		  t[i % 64] = mx.arange(512) + i
		  s[i + 1] = t + 1
		  mx.eval(s[i + 1])
		end`},
	"a compiled function": {20, `
		local f = mx.compile(function(a) return mx.softmax(a * 2 + mx.sin(a), -1) * 3 end)
		s = {mx.arange(6000):reshape({20, 300}) / 6000}
		function step(i) s[i + 1] = f(s[i]) + s[i] * 0.1 mx.eval(s[i + 1]) end`},
	"a compiled function with state": {20, `
		local p = {{w = mx.arange(6000):reshape({20, 300}) / 6000}}
		local f = mx.compile(function() p[1].w = mx.softmax(p[1].w * 2 + mx.sin(p[1].w), -1) * 3 end, {outputs = p})
		s = {p[1].w}
		function step(i) p[1].w = s[i] f() s[i + 1] = p[1].w mx.eval(s[i + 1]) end`},
	"a user's kernel": {12, `
		local k = mx.fast.metal_kernel{name = "mix", input_names = {"a", "b"}, output_names = {"out"}, source = [[
		  uint i = thread_position_in_grid.x;
		  float v = a[i];
		  for (int n = 0; n < 200; n++) v = v * 0.99f + b[i] * 0.01f;
		  out[i] = v;]]}
		local b = mx.arange(4000)
		s = {mx.zeros({4000})}
		function step(i)
		  local y = k{inputs = {s[i], b}, grid = b, threadgroup = {256, 1, 1}, output_shapes = {b},
		    output_dtypes = {mx.float32}}[1]
		  s[i + 1] = y - s[i] * 0.5
		  mx.eval(s[i + 1])
		end`},
	"sorting and taking": {12, `
		s = {mx.random.uniform({shape = {3000}, key = mx.random.key(1)})}
		function step(i)
		  local order = mx.argsort(s[i])
		  s[i + 1] = mx.take(s[i], 2999 - order) * mx.cos(mx.arange(3000))
		  mx.eval(s[i + 1])
		end`},
	"linear algebra on the host": {8, `
		local b = mx.random.uniform({shape = {60, 60}, key = mx.random.key(2)})
		local c = mx.matmul(b, mx.transpose(b)) + mx.eye(60) * 60
		s = {c}
		function step(i)
		  local l = mx.linalg.cholesky(s[i], {stream = mx.cpu})
		  s[i + 1] = mx.matmul(l, mx.transpose(l)) * 0.5 + c
		  mx.eval(s[i + 1])
		end`},
	"quantized products": {10, `
		local w = mx.random.uniform({shape = {128, 128}, key = mx.random.key(3)})
		local q, scales, biases = mx.quantize(w, {group_size = 64, bits = 4})
		s = {mx.ones({4, 128})}
		function step(i)
		  local y = mx.quantized_matmul(s[i], q, scales, biases, {group_size = 64, bits = 4})
		  s[i + 1] = y / mx.max(mx.abs(y))
		  mx.eval(s[i + 1])
		end`},
	"work that is handed over": {24, `
		s = {mx.arange(20000) / 1000}
		function step(i)
		  s[i + 1] = mx.sin(s[i]) + mx.sqrt(mx.abs(s[i]))
		  if i % 6 == 0 then mx.eval(s[i + 1]) else mx.async_eval(s[i + 1]) end
		end`},
	"two streams": {12, `
		local other = mx.new_stream(mx.cpu)
		s = {mx.arange(9000) / 100}
		function step(i)
		  local u = mx.exp(-s[i], {stream = other})
		  local v = mx.cumsum(u)
		  s[i + 1] = mx.add(v, mx.log1p(s[i]), {stream = other}) * 0.01
		  mx.eval(s[i + 1], u)
		end`},
}

// walkOn runs a stepper, whose steps limit's contexts stop, and gives the last state's bytes, or an error.
func walkOn(name string, limit func() context.Context) ([]byte, int, error) {
	st := New(Options{})
	defer st.Close()
	w := interruptibles[name]
	run := func(c context.Context, source string) ([]any, error) {
		out, err := st.Run(c, strings.NewReader(source), name)
		return toGoAll(st, out), err
	}
	if _, err := run(context.Background(), "mx = require('mx')\n"+w.source); err != nil {
		return nil, 0, err
	}
	stops := 0
	for i := 1; i <= w.steps; i++ {
		c := limit()
		_, err := run(c, fmt.Sprintf("step(%d) if %d > 2 then s[%d] = nil end", i, i, i-1))
		if err == nil {
			continue
		}
		if c.Err() == nil {
			return nil, stops, err
		}
		stops++
		made, err := run(context.Background(), fmt.Sprintf("return s[%d] ~= nil", i+1))
		if err != nil {
			return nil, stops, err
		}
		if made[0] != true {
			i--
		}
	}
	last, err := run(context.Background(), fmt.Sprintf("return s[%d]", w.steps+1))
	if err != nil {
		return nil, stops, err
	}
	x, ok := last[0].(*tensor.Array)
	if !ok {
		return nil, stops, fmt.Errorf("no array but %v", last[0])
	}
	bytes, err := x.Bytes(context.Background())
	return bytes, stops, err
}

// ctrlC gives contexts that end at random, about one in three, within a time.
func ctrlC(r *rand.Rand, within time.Duration) func() context.Context {
	return func() context.Context {
		if r.IntN(3) > 0 {
			return context.Background()
		}
		c, cancel := context.WithCancelCause(context.Background())
		time.AfterFunc(time.Duration(r.Int64N(int64(within))), func() { cancel(errors.New("Ctrl-C")) })
		return c
	}
}

func unstopped() context.Context { return context.Background() }

// TestCtrlCLosesNothing: scripts that Ctrl-C stops at random moments, and that go on, come to the same values.
func TestCtrlCLosesNothing(t *testing.T) {
	serial.Because(t, "it stops work at moments that it measures")
	each := 500/len(interruptibles) + 1
	if testing.Short() {
		each = 5
	}
	for _, name := range slices.Sorted(maps.Keys(interruptibles)) {
		t.Run(name, func(t *testing.T) {
			_, _, err := walkOn(name, unstopped) // compiles its kernels
			require.NoError(t, err)
			start := time.Now()
			want, _, err := walkOn(name, unstopped)
			require.NoError(t, err)
			step := time.Since(start) / time.Duration(interruptibles[name].steps)
			stops := 0
			for seed := uint64(0); stops < each; seed++ {
				got, n, err := walkOn(name, ctrlC(rand.New(rand.NewPCG(seed, 1)), step))
				require.NoError(t, err, "seed %d", seed)
				require.True(t, slices.Equal(want, got), "seed %d", seed)
				stops += n
				require.Less(t, seed, uint64(50*each), "few were stopped")
			}
		})
	}
}

// TestFourStatesWithDeadlines: so do four states at once, each with deadlines of its own.
func TestFourStatesWithDeadlines(t *testing.T) {
	serial.Because(t, "it stops work at moments that it measures")
	rounds := 6
	if testing.Short() {
		rounds = 1
	}
	names := slices.Sorted(maps.Keys(interruptibles))
	want := map[string][]byte{}
	for _, name := range names {
		var err error
		want[name], _, err = walkOn(name, unstopped)
		require.NoError(t, err)
	}
	for round := range rounds {
		var wg sync.WaitGroup
		for k := range 4 {
			wg.Go(func() {
				name := names[(4*round+k)%len(names)]
				got, _, err := walkOn(name, ctrlC(rand.New(rand.NewPCG(uint64(round), uint64(k))), 3*time.Millisecond))
				if err != nil || !slices.Equal(want[name], got) {
					t.Errorf("%s differs, or %v", name, err)
				}
			})
		}
		wg.Wait()
	}
}

// TestCtrlCInTheTrainingLoop: the weights are there after Ctrl-C, each time, and the loop goes on.
func TestCtrlCInTheTrainingLoop(t *testing.T) {
	serial.Because(t, "it stops work at moments that it measures")
	st := New(Options{})
	defer st.Close()
	run := func(c context.Context, source string) ([]any, error) {
		out, err := st.Run(c, strings.NewReader(source), "train.lua")
		return toGoAll(st, out), err
	}
	_, err := run(context.Background(), `
		mx = require("mx")
		local x = mx.random.uniform({shape = {256, 32}, key = mx.random.key(0)})
		local truth = mx.arange(32) / 32
		local g = mx.grad(function(w) return mx.mean(mx.square(mx.matmul(x, w) - mx.matmul(x, truth))) end)
		w = mx.zeros({32})
		function train() while true do w = w - 0.1 * g(w) mx.eval(w) end end
		function loss() return (mx.mean(mx.square(w - truth))):item() end`)
	require.NoError(t, err)
	before := 1.0
	// Forty rounds reach it on an idle machine. A busy one makes fewer steps in the time of each.
	for round := 0; round < 40 || before >= 0.05; round++ {
		require.Less(t, round, 4000)
		c, cancel := context.WithCancelCause(context.Background())
		time.AfterFunc(4*time.Millisecond+time.Duration(rand.IntN(1000))*time.Microsecond, func() {
			cancel(errors.New("Ctrl-C"))
		})
		_, err := run(c, "train()")
		require.ErrorContains(t, err, "Ctrl-C")
		got, err := run(context.Background(), "return w[0]:item(), loss()")
		require.NoError(t, err)
		loss, ok := got[1].(float64)
		require.True(t, ok)
		require.LessOrEqual(t, loss, before)
		before = loss
	}
}

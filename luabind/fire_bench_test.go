package luabind

import (
	"context"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/stretchr/testify/require"
	lua "github.com/yuin/gopher-lua"

	"github.com/mlxlua/mlxlua/metal"
	"github.com/mlxlua/mlxlua/metal/soft"
	"github.com/mlxlua/mlxlua/tensor"
)

// thousand builds a graph of 1,000 nodes, and defines a busy one that keeps the stream at work for long.
const thousand = `
local x = mx.ones({8, 8})
local long = mx.ones({1024, 256})
mx.eval(x, long)
function build()
  local y = x
  for i = 1, 250 do
    local s = mx.sum(y, 1)
    local z = y + mx.reshape(s, {8, 1})
    y = -z
  end
  return y
end
function busy()
  local y = long
  for i = 1, 40 do y = mx.exp(y) - mx.sum(y, 1, true) * 0 end
  mx.async_eval(y)
  return y
end
`

// idleDriver compiles like soft and runs nothing: what is left is the engine.
type idleDriver struct{ metal.Driver }

func (idleDriver) Submit(_ int, _ *metal.CommandBuffer, done func(metal.Result)) {
	done(metal.Result{})
}

type benchState struct {
	s           *State
	build, busy lua.LValue
}

func newBenchState(b testing.TB, idle bool) *benchState {
	b.Helper()
	if idle {
		before, err := tensor.MetalDevice(tensor.DeviceID{Kind: tensor.CPU})
		require.NoError(b, err)
		dev, err := metal.NewDevice(idleDriver{soft.New(soft.Options{})}, metal.DeviceOptions{})
		require.NoError(b, err)
		tensor.SetDevice(dev)
		b.Cleanup(func() {
			tensor.SetDevice(before)
			require.NoError(b, dev.Close())
		})
	}
	s := New(Options{Stdout: &strings.Builder{}})
	b.Cleanup(s.Close)
	_, err := s.Run(context.Background(), strings.NewReader(thousand), "bench.lua")
	require.NoError(b, err)
	return &benchState{s, s.Global("build"), s.Global("busy")}
}

// call gives the array that a function makes, and how long that took.
func (p *benchState) call(b testing.TB, f lua.LValue) (*tensor.Array, time.Duration) {
	start := time.Now()
	out, err := p.s.Call(context.Background(), f)
	took := time.Since(start)
	require.NoError(b, err)
	x, ok := toGo(p.s, out[0]).(*tensor.Array)
	require.True(b, ok)
	return x, took
}

func median(d []time.Duration) time.Duration {
	slices.Sort(d)
	return d[len(d)/2]
}

func micros(d time.Duration) float64 { return float64(d.Nanoseconds()) / 1000 }

// BenchmarkFireBuild is the time that Lua takes to build 1,000 nodes: alone, and while the stream is at work.
func BenchmarkFireBuild(b *testing.B) {
	p := newBenchState(b, false)
	var alone, beside []time.Duration
	for b.Loop() {
		_, took := p.call(b, p.build)
		alone = append(alone, took)
		running, _ := p.call(b, p.busy)
		_, took = p.call(b, p.build)
		if running.State() == tensor.Scheduled {
			beside = append(beside, took)
		}
		require.NoError(b, running.Wait(context.Background()))
	}
	b.ReportMetric(micros(slices.Min(alone)), "us/best-build")
	b.ReportMetric(micros(median(alone)), "us/build")
	if len(beside) > 0 {
		b.ReportMetric(micros(median(beside)), "us/build-beside")
		b.ReportMetric(float64(median(beside))/float64(median(alone)), "ratio")
	}
}

// BenchmarkFireAsync is how long async_eval of 1,000 nodes takes to return, and async_eval and wait together in
// proportion to eval, on a device that runs nothing and on the processor.
func BenchmarkFireAsync(b *testing.B) {
	for _, idle := range []bool{true, false} {
		b.Run(map[bool]string{true: "engine", false: "cpu"}[idle], func(b *testing.B) {
			p := newBenchState(b, idle)
			var returns, together, eval []time.Duration
			for b.Loop() {
				x, _ := p.call(b, p.build)
				start := time.Now()
				require.NoError(b, tensor.AsyncEval(x))
				returns = append(returns, time.Since(start))
				require.NoError(b, x.Wait(context.Background()))
				together = append(together, time.Since(start))
				y, _ := p.call(b, p.build)
				start = time.Now()
				require.NoError(b, tensor.Eval(context.Background(), y))
				eval = append(eval, time.Since(start))
			}
			b.ReportMetric(micros(median(returns)), "us/async_eval")
			b.ReportMetric(micros(median(eval)), "us/eval")
			b.ReportMetric(float64(median(together))/float64(median(eval)), "async+wait/eval")
		})
	}
}

package luabind

import (
	"context"
	"runtime"
	"slices"
	"testing"
	"time"

	"github.com/stretchr/testify/require"
	lua "github.com/yuin/gopher-lua"

	"github.com/mlxlua/mlxlua/metal"
	"github.com/mlxlua/mlxlua/metal/soft"
	"github.com/mlxlua/mlxlua/tensor"
)

// What a step of the hybrid model costs, at 40 layers and one example. Where figures
// do not say p50 they are the best of all rounds: what else the machine does only adds to them.
//
//	go test ./luabind -run '^$' -bench Hybrid -benchtime 60x

// hybridModes are the ways to call the step, by the example's argument.
var hybridModes = []string{"compiled", "eager"}

// hybridStep is a state with the model, in the middle of a sequence.
type hybridStep struct{ s *State }

func newHybridStep(b *testing.B, mode string, batch int, model any) *hybridStep {
	b.Helper()
	args := hybridLayers(40)
	if mode == "eager" {
		args = append(args, lua.LString("--eager"))
	}
	h := &hybridStep{hybridState(b, hybridText(b, false), model, args...)}
	b.Cleanup(h.s.Close)
	_, err := h.s.Call(context.Background(), h.s.Global("run"), lua.LNumber(batch), lua.LNumber(3))
	require.NoError(b, err)
	for range 3 {
		require.NoError(b, tensor.Eval(context.Background(), h.build(b)...))
	}
	return h
}

// build is the graph of a step.
func (h *hybridStep) build(b *testing.B) []*tensor.Array {
	out, err := h.s.Call(context.Background(), h.s.Global("build"))
	require.NoError(b, err)
	list := out[0].(*lua.LTable)
	arrays := make([]*tensor.Array, list.Len())
	for i := range arrays {
		arrays[i] = toGo(h.s, list.RawGetInt(i+1)).(*tensor.Array)
	}
	return arrays
}

// nodesOf counts the calls of ops in a graph that was not evaluated.
func nodesOf(roots []*tensor.Array) int {
	n := 0
	for _, node := range tensor.Order(roots, func(n *tensor.Node) bool { return n.State() != tensor.Lazy }) {
		if !node.IsConstant() {
			n++
		}
	}
	return n
}

// fillDriver runs nothing but fills, and opens gates: what kernels note of wrong indices is then nothing.
type fillDriver struct{ metal.Driver }

func (fillDriver) Submit(_ int, cb *metal.CommandBuffer, done func(metal.Result)) {
	cmds := cb.Commands()
	for i := range cmds {
		if c := &cmds[i]; c.Kind == metal.CmdFill {
			dst := c.Dst.Buf.Host()[c.Dst.Offset : c.Dst.Offset+c.Dst.Bytes]
			for n := copy(dst, c.Pattern); n < len(dst); {
				n += copy(dst[n:], dst[:n])
			}
		} else if c.Kind == metal.CmdGate {
			clear(c.Dst.Buf.Host()[c.Dst.Offset:][:c.Dst.Bytes])
		}
	}
	done(metal.Result{})
}

func onIdleDevice(b *testing.B, opt metal.DeviceOptions) {
	before, err := tensor.MetalDevice(tensor.DeviceID{Kind: tensor.CPU})
	require.NoError(b, err)
	dev, err := metal.NewDevice(fillDriver{soft.New(soft.Options{})}, opt)
	require.NoError(b, err)
	tensor.SetDevice(dev)
	b.Cleanup(func() {
		tensor.SetDevice(before)
		require.NoError(b, dev.Close())
	})
}

// BenchmarkHybridAsync is how long it takes to build a step, also while the stream is at work; how long async_eval
// takes to return; and async_eval and wait together in proportion to eval. On a device that runs nothing eval is
// planning and recording: ns/node is of that.
func BenchmarkHybridAsync(b *testing.B) {
	for _, mode := range hybridModes {
		for _, idle := range []bool{true, false} {
			b.Run(mode+map[bool]string{true: "/engine", false: "/cpu"}[idle], func(b *testing.B) {
				if idle {
					onIdleDevice(b, metal.DeviceOptions{})
				}
				benchHybrid(b, newHybridStep(b, mode, 1, nil), idle)
			})
		}
	}
}

func benchHybrid(b *testing.B, h *hybridStep, idle bool) {
	ctx := context.Background()
	var alone, beside, returns, together, eval []time.Duration
	nodes := nodesOf(h.build(b))
	async := func() {
		start := time.Now()
		x := h.build(b)
		alone = append(alone, time.Since(start))
		start = time.Now()
		require.NoError(b, tensor.AsyncEval(x...))
		returns = append(returns, time.Since(start))
		waitAll(b, x)
		together = append(together, time.Since(start))
	}
	wait := func() {
		x := h.build(b)
		start := time.Now()
		require.NoError(b, tensor.Eval(ctx, x...))
		eval = append(eval, time.Since(start))
	}
	for i := 0; b.Loop(); i++ {
		first, second := async, wait // what came before is in the caches, and garbage: each has it alike
		if i%2 == 1 {
			first, second = wait, async
		}
		first()
		second()
		z := h.build(b)
		require.NoError(b, tensor.AsyncEval(z...))
		start := time.Now()
		h.build(b)
		took := time.Since(start)
		if z[0].State() == tensor.Scheduled {
			beside = append(beside, took)
		}
		waitAll(b, z)
		runtime.KeepAlive(z)
	}
	b.ReportMetric(0, "ns/op")
	b.ReportMetric(float64(nodes), "nodes")
	b.ReportMetric(micros(slices.Min(alone)), "us/build")
	b.ReportMetric(micros(slices.Min(returns)), "us/async_eval")
	b.ReportMetric(micros(slices.Min(eval)), "us/eval")
	b.ReportMetric(float64(slices.Min(together))/float64(slices.Min(eval)), "async+wait/eval")
	if idle {
		b.ReportMetric(1000*micros(slices.Min(eval))/float64(nodes), "ns/node")
	} else if len(beside) > 0 {
		b.ReportMetric(float64(slices.Min(beside))/float64(slices.Min(alone)), "build-beside/build")
		b.ReportMetric(float64(median(beside))/float64(median(alone)), "p50-beside/build")
	}
}

func waitAll(b *testing.B, xs []*tensor.Array) {
	for _, x := range xs {
		require.NoError(b, x.Wait(context.Background()))
	}
}

// BenchmarkHybridStep is a step from Lua to its scores, at several sizes of the batch.
func BenchmarkHybridStep(b *testing.B) {
	for _, batch := range []int{1, 16} {
		for _, mode := range hybridModes {
			b.Run(mode+"/batch="+map[int]string{1: "1", 16: "16"}[batch], func(b *testing.B) {
				h := newHybridStep(b, mode, batch, nil)
				var times []time.Duration
				for b.Loop() {
					start := time.Now()
					require.NoError(b, tensor.Eval(context.Background(), h.build(b)...))
					times = append(times, time.Since(start))
				}
				b.ReportMetric(0, "ns/op")
				b.ReportMetric(micros(slices.Min(times))/1000, "ms/step")
				b.ReportMetric(micros(median(times))/1000, "p50-ms/step")
			})
		}
	}
}

// BenchmarkHybridRetention is what retaining costs: the time of planning and recording a step with and without it, in
// turns on devices that run nothing, and the difference as a part of a step's time.
func BenchmarkHybridRetention(b *testing.B) {
	model := hybridModel(b, hybridText(b, false), hybridLayers(40)...)
	type subject struct {
		dev  *metal.Device
		step *hybridStep
		best time.Duration
	}
	ready := func() *subject {
		dev, err := tensor.MetalDevice(tensor.DefaultDevice())
		require.NoError(b, err)
		return &subject{dev, newHybridStep(b, "compiled", 1, onDevice(model)), time.Hour}
	}
	cpu := ready()
	onIdleDevice(b, metal.DeviceOptions{})
	with := ready()
	onIdleDevice(b, metal.DeviceOptions{Ablate: metal.Ablations{NoRetain: true}})
	without := ready()
	measure := func(s *subject) {
		tensor.SetDevice(s.dev)
		for i := range 6 {
			x := s.step.build(b)
			start := time.Now()
			require.NoError(b, tensor.Eval(context.Background(), x...))
			if i > 0 { // the first makes a stream
				s.best = min(s.best, time.Since(start))
			}
		}
	}
	for b.Loop() {
		for _, s := range []*subject{cpu, with, without, without, with} {
			measure(s)
		}
	}
	b.ReportMetric(0, "ns/op")
	b.ReportMetric(micros(cpu.best), "us/step")
	b.ReportMetric(micros(with.best), "us/record")
	b.ReportMetric(micros(without.best), "us/record-unretained")
	b.ReportMetric(100*float64(with.best-without.best)/float64(cpu.best), "%step")
}

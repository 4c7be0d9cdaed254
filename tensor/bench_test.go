package tensor_test

import (
	"slices"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/mlxlua/mlxlua/metal"
	"github.com/mlxlua/mlxlua/metal/soft"
	"github.com/mlxlua/mlxlua/tensor"
)

// idle compiles like soft and runs nothing: what is left is the engine.
type idle struct{ metal.Driver }

func (idle) Submit(_ int, _ *metal.CommandBuffer, done func(metal.Result)) { done(metal.Result{}) }

func idleStream(b *testing.B) *tensor.Stream { return idleStreamOf(b, metal.DeviceOptions{}) }

func idleStreamOf(b *testing.B, opt metal.DeviceOptions) *tensor.Stream {
	b.Helper()
	dev, err := metal.NewDevice(idle{soft.New(soft.Options{})}, opt)
	require.NoError(b, err)
	before := device
	tensor.SetDevice(dev)
	defer tensor.SetDevice(before)
	s, err := tensor.NewStream(tensor.DefaultDevice())
	require.NoError(b, err)
	return s
}

// graph is 1,000 calls that do not fuse to less than 500 kernels.
func graph(c *tensor.Ctx, x *tensor.Array, drop bool) *tensor.Array {
	y := x
	for range 250 {
		s := sumOp.One(c, axesAttrs{tensor.MakeInts([]int{1})}, y)
		v := reshapeOp.One(c, dimsAttrs{tensor.MakeDims(8, 1)}, s)
		z := addOp.One(c, tensor.None{}, y, v)
		w := negOp.One(c, tensor.None{}, z)
		if drop {
			tensor.Drop(s, v, z)
			if y != x {
				tensor.Drop(y)
			}
		}
		y = w
	}
	return y
}

// BenchmarkAsyncEval hands 1,000 calls over.
func BenchmarkAsyncEval(b *testing.B) {
	c := &tensor.Ctx{Stream: idleStream(b)}
	x := iota(8, 8)
	for b.Loop() {
		b.StopTimer()
		y := graph(c, x, false)
		b.StartTimer()
		if err := tensor.AsyncEval(y); err != nil {
			b.Fatal(err)
		}
		b.StopTimer()
		if err := y.Wait(background); err != nil {
			b.Fatal(err)
		}
		b.StartTimer()
	}
}

// BenchmarkRecord plans, records and settles 1,000 calls that were built before: it reports nanoseconds a call.
func BenchmarkRecord(b *testing.B) {
	for _, drop := range []bool{false, true} {
		b.Run(map[bool]string{false: "held", true: "dropped"}[drop], func(b *testing.B) {
			c := &tensor.Ctx{Stream: idleStream(b)}
			x := iota(8, 8)
			var took time.Duration
			for b.Loop() {
				y := graph(c, x, drop)
				start := time.Now()
				if err := tensor.Eval(background, y); err != nil {
					b.Fatal(err)
				}
				took += time.Since(start)
			}
			b.ReportMetric(float64(took.Nanoseconds())/float64(b.N)/1000, "ns/call")
		})
	}
}

// BenchmarkRetention is what the retention of bound buffers costs of planning and recording: nanoseconds a call with
// it, without it, and the difference in percent.
func BenchmarkRetention(b *testing.B) {
	var took [2][]time.Duration
	var ctxs [2]*tensor.Ctx
	for i := range ctxs {
		ctxs[i] = &tensor.Ctx{Stream: idleStreamOf(b, metal.DeviceOptions{Ablate: metal.Ablations{NoRetain: i == 1}})}
	}
	x := iota(8, 8)
	for b.Loop() {
		for i, c := range ctxs {
			y := graph(c, x, false)
			start := time.Now()
			if err := tensor.Eval(background, y); err != nil {
				b.Fatal(err)
			}
			took[i] = append(took[i], time.Since(start))
		}
	}
	var p50 [2]float64
	for i := range took {
		slices.Sort(took[i])
		p50[i] = float64(took[i][len(took[i])/2].Nanoseconds()) / 1000
	}
	b.ReportMetric(p50[0], "ns/call")
	b.ReportMetric(p50[1], "ns/call-without")
	b.ReportMetric(100*(p50[0]-p50[1])/p50[1], "%")
}

// BenchmarkEngine builds, plans, records and settles 1,000 calls.
func BenchmarkEngine(b *testing.B) {
	for _, drop := range []bool{false, true} {
		b.Run(map[bool]string{false: "held", true: "dropped"}[drop], func(b *testing.B) {
			c := &tensor.Ctx{Stream: idleStream(b)}
			x := iota(8, 8)
			b.ReportAllocs()
			for b.Loop() {
				if err := tensor.Eval(background, graph(c, x, drop)); err != nil {
					b.Fatal(err)
				}
			}
		})
	}
}

// BenchmarkBuild only builds the graph.
func BenchmarkBuild(b *testing.B) {
	c := &tensor.Ctx{Stream: idleStream(b)}
	x := iota(8, 8)
	b.ReportAllocs()
	for b.Loop() {
		graph(c, x, false)
	}
}

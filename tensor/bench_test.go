package tensor_test

import (
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/mlxlua/mlxlua/metal"
	"github.com/mlxlua/mlxlua/metal/soft"
	"github.com/mlxlua/mlxlua/tensor"
)

// idle compiles like soft and runs nothing: what is left is the engine.
type idle struct{ metal.Driver }

func (idle) Submit(_ int, _ *metal.CommandBuffer, done func(error)) { done(nil) }

func idleStream(b *testing.B) *tensor.Stream {
	b.Helper()
	dev, err := metal.NewDevice(idle{soft.New(soft.Options{})}, metal.DeviceOptions{})
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

// BenchmarkEngine builds, plans, encodes and settles 1,000 calls.
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

package tensor_test

import (
	"context"
	"errors"
	"math/rand/v2"
	"runtime"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/mlxlua/mlxlua/metal"
	"github.com/mlxlua/mlxlua/metal/soft"
	"github.com/mlxlua/mlxlua/tensor"
)

// TestStreamsMeetOnTheDevice: what reads another stream's value is handed to the device while that is being computed.
func TestStreamsMeetOnTheDevice(t *testing.T) {
	rec, _ := withDevice(t, metal.DeviceOptions{})
	a, b := newStream(t), newStream(t)
	x := iota(8)
	y := kernelOn(a, x, endless, "endless", 0)
	z := negOp.One(on(b), tensor.None{}, y)
	w := reshapeOp.One(on(a), dimsAttrs{tensor.MakeDims(2, 4)}, negOp.One(on(b), tensor.None{}, z)) // only a view
	u := negOp.One(on(b), tensor.None{}, w)
	before := rec.submitted.Load()
	c, stop := context.WithTimeout(background, 20*time.Second)
	defer stop()
	work, err := tensor.Submit(u, z)
	require.NoError(t, err)
	for rec.submitted.Load() < before+3 {
		require.NoError(t, c.Err(), "the other stream's commands wait for the host")
		runtime.Gosched()
	}
	require.Equal(t, tensor.Scheduled, y.State())
	enough := errors.New("enough")
	work.Stop(enough)
	require.NoError(t, tensor.Synchronize(c))
	for _, v := range []*tensor.Array{y, z, w, u} {
		require.Equal(t, tensor.Lazy, v.State(), "it is undone with what it reads")
	}
}

// slow is a kernel that computes its input in a while.
const slow = `[[kernel]] void slow(device const float* a [[buffer(0)]], device float* o [[buffer(1)]],
    constant int& n [[buffer(2)]], uint i [[thread_position_in_grid]]) {
  float x = a[i];
  for (int k = 0; k < n; k++) { x = x + 1.0f; if (x < -1.0f) break; }
  o[i] = x - x + a[i];
}`

// TestAMeetingWithTwoStreams: what reads two other streams' values comes after both, also where the second one's is
// recorded when its recorder has waited for that, and where memory is short meanwhile.
func TestAMeetingWithTwoStreams(t *testing.T) {
	a, b, c := newStream(t), newStream(t), newStream(t)
	for _, last := range []func(s *tensor.Stream, x, y *tensor.Array) *tensor.Array{
		func(s *tensor.Stream, x, y *tensor.Array) *tensor.Array { return addOp.One(on(s), tensor.None{}, x, y) },
		func(s *tensor.Stream, x, y *tensor.Array) *tensor.Array {
			view := reshapeOp.One(on(s), dimsAttrs{tensor.MakeDims(2, 4)}, x)
			return addOp.One(on(s), tensor.None{}, reshapeOp.One(on(s), dimsAttrs{tensor.MakeDims(8)}, view), y)
		},
		func(s *tensor.Stream, x, y *tensor.Array) *tensor.Array {
			view := reshapeOp.One(on(s), dimsAttrs{tensor.MakeDims(2, 4)}, x)
			require.NoError(t, tensor.AsyncEval(view)) // an evaluation of its own
			return addOp.One(on(s), tensor.None{}, reshapeOp.One(on(s), dimsAttrs{tensor.MakeDims(8)}, view), y)
		},
	} {
		first := kernelOn(a, iota(8), slow, "slow", 1<<24)
		ended := make(chan error)
		second := negOp.One(on(c), tensor.None{}, waits(on(c), iota(8), ended))
		z := last(b, first, second)
		require.NoError(t, tensor.AsyncEval(z))
		time.Sleep(10 * time.Millisecond) // z's recorder comes to where it waits
		ended <- nil
		require.Equal(t, make([]float32, 8), floats(t, z))
	}
}

// TestWhoGivesUpBlocksNoStream: an evaluation that comes after another stream's endless one is given up at once, and
// its stream goes on, while the other one does.
func TestWhoGivesUpBlocksNoStream(t *testing.T) {
	_, _ = withDevice(t, metal.DeviceOptions{})
	a, b := newStream(t), newStream(t)
	x := iota(8)
	y := kernelOn(a, x, endless, "endless", 0)
	require.NoError(t, tensor.AsyncEval(y))
	hold, release := context.WithCancelCause(background)
	defer release(nil)
	views := reshapeOp.One(on(b), dimsAttrs{tensor.MakeDims(2, 4)}, y)
	z := views
	for range 40 { // more than are handed over at once
		z = negOp.One(on(b), tensor.None{}, z)
		require.NoError(t, tensor.AsyncEval(z))
	}
	enough := errors.New("enough")
	c, cancel := context.WithCancelCause(background)
	time.AfterFunc(100*time.Millisecond, func() { cancel(enough) })
	waited := make(chan error, 1)
	go func() {
		err := tensor.Eval(hold, y)
		waited <- err
	}()
	require.ErrorIs(t, tensor.Eval(c, negOp.One(on(b), tensor.None{}, z)), enough)
	patience, stop := context.WithTimeout(background, 20*time.Second)
	defer stop()
	require.NoError(t, tensor.Eval(patience, negOp.One(on(b), tensor.None{}, x)))
	require.Equal(t, tensor.Scheduled, y.State())
	release(enough)
	require.ErrorIs(t, <-waited, enough)
	require.NoError(t, tensor.Synchronize(patience))
	require.Equal(t, tensor.Lazy, z.State())
	require.Equal(t, tensor.Lazy, views.State())
}

// TestStreamsThatFailTogether: what depends on another stream's failure, which is known when it is recorded or not, has
// the first error, and nothing else.
func TestStreamsThatFailTogether(t *testing.T) {
	a, b := newStream(t), newStream(t)
	x := iota(8)
	for range 20 {
		bad := kernelOn(a, x, faulty, "faulty", 1000)
		y := negOp.One(on(b), tensor.None{}, bad)
		z := addOp.One(on(a), tensor.None{}, y, x)
		good := addOp.One(on(b), tensor.None{}, x, x)
		err := tensor.Eval(background, z, good)
		require.ErrorContains(t, err, "[test_run]")
		require.Equal(t, err, bad.Err())
		require.Equal(t, err, y.Err())
		require.Equal(t, float32(14), floats(t, good)[7])
	}
}

// TestRandomStreams: graphs over four streams, some of whose evaluations are given up at any time, have the values that
// one stream gives.
func TestRandomStreams(t *testing.T) {
	randomStreams(t, []*tensor.Stream{newStream(t), newStream(t), newStream(t), newStream(t)},
		rand.New(rand.NewPCG(3, 4)))
}

func randomStreams(t *testing.T, streams []*tensor.Stream, r *rand.Rand) {
	rounds := 150
	if testing.Short() {
		rounds = 40
	}
	for round := range rounds {
		arrays := []*tensor.Array{iota(64, 16), iota(64, 16)}
		values := []float32{1, 1} // of element 1
		for range 40 {
			i, j := r.IntN(len(arrays)), r.IntN(len(arrays))
			c := on(streams[r.IntN(len(streams))])
			switch r.IntN(4) {
			case 0:
				arrays, values = append(arrays, negOp.One(c, tensor.None{}, arrays[i])), append(values, -values[i])
			case 1:
				flat := reshapeOp.One(c, dimsAttrs{tensor.MakeDims(1024)}, arrays[i])
				back := reshapeOp.One(on(streams[r.IntN(len(streams))]), dimsAttrs{tensor.MakeDims(64, 16)}, flat)
				arrays, values = append(arrays, back), append(values, values[i])
			default:
				if s := values[i] + values[j]; s < 1<<20 && s > -1<<20 {
					arrays, values = append(arrays, addOp.One(c, tensor.None{}, arrays[i], arrays[j])), append(values, s)
				}
			}
			if r.IntN(12) == 0 {
				c, cancel := context.WithCancel(background)
				if r.IntN(2) == 0 {
					cancel()
				} else {
					time.AfterFunc(time.Duration(r.IntN(100))*time.Microsecond, cancel)
				}
				err := tensor.Eval(c, arrays[len(arrays)-1])
				if err != nil {
					require.ErrorIs(t, err, context.Canceled)
				}
				cancel()
			}
		}
		last := len(arrays) - 1
		require.NoError(t, tensor.AsyncEval(arrays[r.IntN(last)], arrays[last]))
		for _, i := range r.Perm(last + 1)[:10] {
			require.Equal(t, values[i], floats(t, arrays[i])[1], "round %d, array %d", round, i)
		}
	}
	require.NoError(t, tensor.Synchronize(background))
}

// toldLate is a device from which the host hears 100 us after something has run, as from a GPU.
type toldLate struct{ metal.Driver }

func (l toldLate) Submit(queue int, cb *metal.CommandBuffer, done func(metal.Result)) {
	l.Driver.Submit(queue, cb, func(r metal.Result) { time.AfterFunc(100*time.Microsecond, func() { done(r) }) })
}

// BenchmarkStreamsInTurn has two streams compute a chain of small values in turns.
func BenchmarkStreamsInTurn(b *testing.B) {
	for _, c := range []struct {
		name   string
		driver func() metal.Driver
	}{
		{"cpu", func() metal.Driver { return soft.New(soft.Options{}) }},
		{"late", func() metal.Driver { return toldLate{soft.New(soft.Options{})} }},
	} {
		b.Run(c.name, func(b *testing.B) {
			dev, err := metal.NewDevice(c.driver(), metal.DeviceOptions{})
			require.NoError(b, err)
			before := device
			tensor.SetDevice(dev)
			defer tensor.SetDevice(before)
			var on2 [2]*tensor.Ctx
			for i := range on2 {
				s, err := tensor.NewStream(tensor.DefaultDevice())
				require.NoError(b, err)
				on2[i] = on(s)
			}
			x := iota(32)
			const turns = 200
			for b.Loop() {
				y := x
				for i := range turns {
					y = negOp.One(on2[i%2], tensor.None{}, y)
				}
				require.NoError(b, tensor.Eval(background, y))
			}
			b.ReportMetric(float64(b.Elapsed().Nanoseconds())/float64(b.N*turns), "ns/turn")
		})
	}
}

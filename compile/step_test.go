package compile_test

import (
	"context"
	"errors"
	"math"
	"math/rand/v2"
	"runtime"
	"strings"
	"sync/atomic"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/mlxlua/mlxlua/compile"
	"github.com/mlxlua/mlxlua/metal"
	"github.com/mlxlua/mlxlua/metal/testdevice"
	"github.com/mlxlua/mlxlua/tensor"
	"github.com/mlxlua/mlxlua/tensor/grad"
	"github.com/mlxlua/mlxlua/tensor/ops"
	"github.com/mlxlua/mlxlua/tensor/optest"
)

// chained is a function of several kernels, some of whose values are needed for a while only.
func chained(in []*array) *array { return chainedOn(nil)(in) }

// chainedOn is chained on a stream.
func chainedOn(s *tensor.Stream) func(in []*array) *array {
	var at []*tensor.Ctx
	if s != nil {
		at = []*tensor.Ctx{{Stream: s}}
	}
	return func(in []*array) *array {
		x, y := in[0], in[1]
		h := ops.Matmul(x, y, at...)
		s := ops.Sum(h, []int{-1}, true, at...)
		h = ops.Divide(h, ops.Add(ops.Square(s, at...), num(1), at...), at...)
		return ops.Add(h, ops.Transpose(y, nil, at...), at...)
	}
}

func square(n int, seed float32) *array {
	v := make([]float32, n*n)
	for i := range v {
		seed = seed*1.37 + 0.11
		seed -= float32(int(seed))
		v[i] = seed - 0.5
	}
	return ops.FromSlice(v, []int{n, n})
}

// bytesOf evaluates an array.
func bytesOf(t *testing.T, x *array) []byte {
	t.Helper()
	b, err := x.Bytes(context.Background())
	require.NoError(t, err)
	return b
}

// recorded is the line of Explain that says how a plan is recorded.
func recorded(fn *compile.Function) string {
	for line := range strings.Lines(fn.Explain(nil, false)) {
		if line = strings.TrimSpace(line); strings.HasPrefix(line, "recorded:") || strings.HasPrefix(line, "not recorded:") {
			return line
		}
	}
	return ""
}

// TestStepsHeld: the results of 100 calls that are held are all what the function gives without being compiled: outputs
// lie in memory of their own each time.
func TestStepsHeld(t *testing.T) {
	optest.Open(t)
	fn, _ := counted(compile.Options{}, chained)
	var got, want []*array
	for i := range 100 {
		x, y := square(9, float32(i)/100), square(9, float32(i)/77)
		got = append(got, call(t, fn, x, y))
		want = append(want, chained(arrays{x, y}))
		if i%3 == 0 {
			require.NoError(t, tensor.AsyncEval(got[i]))
		}
	}
	for i := range got {
		require.Equal(t, bytesOf(t, want[i]), bytesOf(t, got[i]), "call %d", i)
	}
	require.Regexp(t, `^recorded: 99 calls as one node, of \d commands, in 1 layout$`, recorded(fn))
}

// layouts are arrays of one spec that lie in different ways.
func layouts(t *testing.T, n int, seed float32) map[string]*array {
	wide := square(2*n, seed)
	columns := func(x *array, from int) *array {
		return ops.Slice(x, []ops.Part{ops.Whole(), ops.Span(from, from+n, 1)})
	}
	out := map[string]*array{
		"contiguous": square(n, seed),
		"transposed": ops.Transpose(square(n, seed+0.3), nil),
		"a slice":    columns(span(wide, 0, n), 0),
		"another":    columns(span(wide, n/2, n/2+n), n/2),
		"reversed":   ops.Slice(square(n, seed+0.2), []ops.Part{ops.Span(n-1, -n-1, -1)}),
		"one value":  ops.Full(tensor.Sizes(n, n), num(0.25), tensor.Float32),
		"broadcast":  columns(ops.BroadcastTo(span(wide, 0, min(n, 1)), tensor.Sizes(n, 2*n)), 0),
		"lazy":       ops.Sin(square(n, seed+0.5)),
	}
	for name, x := range out {
		require.NoError(t, x.Err(), name)
		if name != "lazy" {
			require.NoError(t, tensor.Eval(context.Background(), x))
		}
	}
	return out
}

// TestStepsLayouts: what a call gives does not depend on how its inputs lie, and calls whose inputs lie in one way
// share a list of commands, wherever in their memory they begin.
func TestStepsLayouts(t *testing.T) {
	optest.Open(t)
	for _, n := range []int{0, 1, 2, 5, 24} { // the elements of small ones lie in their nodes
		fn, _ := counted(compile.Options{}, chained)
		call(t, fn, square(n, 0.1), square(n, 0.2))
		for round := range 2 {
			for a, x := range layouts(t, n, 0.1+float32(round)) {
				for b, y := range layouts(t, n, 0.7+float32(round)) {
					want := bytesOf(t, chained(arrays{x, y}))
					require.Equal(t, want, bytesOf(t, call(t, fn, x, y)), "%d: %s, %s", n, a, b)
				}
				want := bytesOf(t, chained(arrays{x, x}))
				require.Equal(t, want, bytesOf(t, call(t, fn, x, x)), "%d: %s twice", n, a)
			}
		}
	}
	fn, _ := counted(compile.Options{}, chained)
	y, batches := square(16, 0.3), square(160, 0.4)
	batches = ops.Reshape(batches, tensor.Sizes(100, 16, 16))
	require.NoError(t, tensor.Eval(context.Background(), y, batches))
	for i := range 100 {
		x := ops.Squeeze(span(batches, i, i+1), []int{0})
		require.Equal(t, bytesOf(t, chained(arrays{x, y})), bytesOf(t, call(t, fn, x, y)), "batch %d", i)
	}
	require.Regexp(t, `in [1-3] layouts$`, recorded(fn))
}

// TestStepsInFlight: calls are handed over one after another, each on what the one before gives, and nothing is waited
// for.
func TestStepsInFlight(t *testing.T) {
	optest.Open(t)
	fn, _ := counted(compile.Options{}, chained)
	for range 3 {
		x, y := square(12, 0.3), square(12, 0.6)
		want := x
		for range 20 {
			x, want = call(t, fn, x, y), chained(arrays{want, y})
			require.NoError(t, tensor.AsyncEval(x))
		}
		require.Equal(t, bytesOf(t, want), bytesOf(t, x))
	}
}

// TestStepsPartly: of a call's outputs those that somebody has are there, and others are not computed.
func TestStepsPartly(t *testing.T) {
	optest.Open(t)
	fn := compile.New(func(in []*array) ([]*array, error) {
		a := chained(in)
		return arrays{a, ops.Sum(a, nil, false), in[0], ops.Transpose(a, nil), num(3)}, nil
	}, compile.Options{})
	for i := range 32 {
		x, y := square(9, float32(i)/100), square(9, float32(i)/77)
		out, err := fn.Call(nil, x, y)
		require.NoError(t, err)
		var left arrays
		for k, o := range out {
			if i>>k&1 != 0 && k != 2 {
				tensor.Drop(o)
			} else {
				left = append(left, o)
			}
		}
		require.NoError(t, tensor.Eval(context.Background(), left...))
		a := chained(arrays{x, y})
		want := arrays{a, ops.Sum(a, nil, false), x, ops.Transpose(a, nil), num(3)}
		for k, o := range out {
			if i>>k&1 == 0 {
				require.Equal(t, bytesOf(t, want[k]), bytesOf(t, o), "call %d, output %d", i, k)
			}
		}
	}
	require.Contains(t, recorded(fn), "recorded: 31 calls")
}

// TestStepsFail: what a call in the function fails with is the call's: its op and line; the next call is right again.
func TestStepsFail(t *testing.T) {
	optest.Open(t)
	at := tensor.Place{File: "model.lua", Line: 12}
	fn, _ := counted(compile.Options{}, func(in []*array) *array {
		axis := 0
		return ops.Add(ops.Take(in[0], in[1], &axis, &tensor.Ctx{Place: at}), num(1))
	})
	x := vec(1, 2, 3)
	index := func(i int32) *array { return ops.FromSlice([]int32{i}, []int{1}) }
	for i := range int32(3) {
		require.Equal(t, []float32{float32(i) + 2}, floats(t, call(t, fn, x, index(i))))
	}
	for range 2 {
		y := call(t, fn, x, index(7))
		_, err := ops.Multiply(y, num(2)).Bytes(context.Background())
		require.EqualError(t, err, "[take] index 7 is out of range for axis 0 with size 3 (model.lua:12)")
		require.Equal(t, []float32{4}, floats(t, call(t, fn, x, index(2))))
	}
	require.Contains(t, recorded(fn), "recorded: 6 calls")
}

// TestStepsInTransforms: a transform goes into a function, also when its calls are recorded.
func TestStepsInTransforms(t *testing.T) {
	optest.Open(t)
	fn, _ := counted(compile.Options{}, chained)
	x, y := square(6, 0.3), square(6, 0.6)
	total := func(f func(in []*array) *array) grad.Func {
		return func(in []*array) ([]*array, error) { return arrays{ops.Sum(f(in), nil, false)}, nil }
	}
	for range 4 {
		call(t, fn, x, y)
		_, got, err := grad.VJP(total(func(in []*array) *array { return call(t, fn, in...) }), arrays{x, y}, arrays{num(1)})
		require.NoError(t, err)
		_, want, err := grad.VJP(total(chained), arrays{x, y}, arrays{num(1)})
		require.NoError(t, err)
		for i := range want {
			require.Equal(t, bytesOf(t, want[i]), bytesOf(t, got[i]))
		}
		outer, _ := counted(compile.Options{}, func(in []*array) *array { return ops.Negative(call(t, fn, in...)) })
		for range 3 {
			require.Equal(t, bytesOf(t, ops.Negative(chained(arrays{x, y}))), bytesOf(t, call(t, outer, x, y)))
		}
	}
}

// TestStepsStopped: a call that is stopped at any moment is lazy again, with its inputs, and gives the same when it is
// asked for again; what is updated in place counts once.
func TestStepsStopped(t *testing.T) {
	optest.Open(t)
	fn := compile.New(func(in []*array) ([]*array, error) {
		x := in[0]
		for range 6 {
			x = ops.Add(ops.Matmul(x, in[1]), num(0.125))
		}
		return arrays{ops.Add(in[2], num(1)), ops.Add(ops.Sum(x, nil, false), in[3])}, nil
	}, compile.Options{})
	x, y := square(64, 0.3), square(64, 0.6)
	run := func(stop func() context.Context) (state, sum *array) {
		state, sum = ops.Zeros(tensor.Sizes(64, 64), tensor.Float32), num(0)
		for range 12 {
			out, err := fn.Call(nil, x, y, state, sum)
			require.NoError(t, err)
			tensor.Drop(state, sum)
			state, sum = out[0], out[1]
			_ = tensor.Eval(stop(), state, sum)
		}
		return state, sum
	}
	start := time.Now()
	state, sum := run(context.Background)
	took := time.Since(start) / 12
	s, n := bytesOf(t, state), bytesOf(t, sum)
	var stopped atomic.Int32
	seeds := uint64(20)
	if testing.Short() {
		seeds = 4
	}
	for seed := range seeds {
		r := rand.New(rand.NewPCG(seed, 1))
		state, sum := run(func() context.Context {
			if r.IntN(2) == 0 {
				return context.Background()
			}
			c, cancel := context.WithCancel(context.Background())
			time.AfterFunc(time.Duration(r.Int64N(int64(took))), func() {
				stopped.Add(1)
				cancel()
			})
			return c
		})
		require.Equal(t, s, bytesOf(t, state), "seed %d", seed)
		require.Equal(t, n, bytesOf(t, sum), "seed %d", seed)
	}
	require.Greater(t, stopped.Load(), int32(seeds)/2)
	require.Contains(t, recorded(fn), "as one node")
}

// TestStepsInPlace: an input that nobody holds any more gives its memory to an output of its spec, as between calls.
func TestStepsInPlace(t *testing.T) {
	optest.Open(t)
	dev, err := tensor.MetalDevice(tensor.DefaultDevice())
	require.NoError(t, err)
	fn := compile.New(func(in []*array) ([]*array, error) {
		m := ops.Add(ops.Multiply(in[1], num(0.9)), in[2])
		return arrays{ops.Subtract(in[0], ops.Multiply(m, num(0.01))), m}, nil
	}, compile.Options{})
	const n, bytes = 1 << 20, 4 << 20
	p, m := ops.Zeros(tensor.Sizes(n), tensor.Float32), ops.Zeros(tensor.Sizes(n), tensor.Float32)
	p, m = ops.Add(p, num(1)), ops.Add(m, num(1))
	g := ops.Add(ops.Zeros(tensor.Sizes(n), tensor.Float32), num(2))
	require.NoError(t, tensor.Eval(context.Background(), p, m, g))
	runtime.GC()
	for i := range 6 {
		if i == 3 {
			dev.Collect(context.Background())
			dev.ResetPeak()
		}
		before := dev.Memory().Active
		out, err := fn.Call(nil, p, m, g)
		require.NoError(t, err)
		tensor.Drop(p, m)
		p, m = out[0], out[1]
		require.NoError(t, tensor.Eval(context.Background(), p, m))
		if i >= 3 {
			require.LessOrEqual(t, dev.Memory().Active, before+bytes/8, "call %d", i)
			require.Less(t, dev.Memory().Peak, before+bytes, "call %d", i)
		}
	}
	require.Contains(t, recorded(fn), "recorded: 5 calls")
	require.InDelta(t, 2*(1+0.9+0.81+0.729+0.6561+0.59049)+0.531441, floats(t, m)[n-1], 1e-4)
}

// TestStepsNotRecorded: Explain says why a function's calls are not recorded.
func TestStepsNotRecorded(t *testing.T) {
	optest.Open(t)
	one, _ := counted(compile.Options{}, func(in []*array) *array { return ops.Sin(in[0]) })
	for range 3 {
		call(t, one, vec(1, 2))
	}
	require.Equal(t, "not recorded: it has 1 op", recorded(one))
	two, _ := counted(compile.Options{}, func(in []*array) *array { return ops.Sin(ops.Cos(in[0])) })
	for range 2 {
		call(t, two, vec(1, 2))
	}
	require.Contains(t, recorded(two), "recorded: 1 call as one node")
	defer tensor.CheckNaN(tensor.CheckNaN(true))
	_, err := call(t, two, vec(1, float32(math.Inf(1)))).Bytes(context.Background())
	require.ErrorContains(t, err, "[cos] the output has a NaN", "each op runs by itself")
	require.Equal(t, "not recorded: every result is searched for NaNs", recorded(two))
}

// span is the elements from start to before stop, along the first dimension.
func span(x *array, start, stop int) *array {
	return ops.Slice(x, []ops.Part{ops.Span(start, stop, 1)})
}

// TestStepsInLargerBuffers: a buffer that served something larger before serves a copy of an input.
func TestStepsInLargerBuffers(t *testing.T) {
	optest.Open(t)
	f := func(in []*array) *array {
		row := ops.Matmul(in[0], in[1]) // 8192 bytes, which nothing needs when it is added up
		return ops.SliceUpdate(in[2], ops.BroadcastTo(ops.Sum(row, nil, false), tensor.Sizes(3)),
			[]ops.Part{ops.Span(5, 8, 1)})
	}
	fn, _ := counted(compile.Options{}, f)
	x, w := ops.Reshape(vec(1, 2), tensor.Sizes(1, 2)), ops.Full(tensor.Sizes(2, 2048), num(0.5), tensor.Float32)
	kept := ops.Sin(ops.Arange(0, 2000, 1, tensor.Float32))
	require.NoError(t, tensor.Eval(context.Background(), kept))
	want := bytesOf(t, f(arrays{x, w, kept}))
	for range 4 {
		require.Equal(t, want, bytesOf(t, call(t, fn, x, w, kept)))
	}
	require.Contains(t, recorded(fn), "recorded: 3 calls")
}

// TestStepsInvariant: a call made under SetBatchInvariant has its order of sums, whatever calls before it had.
func TestStepsInvariant(t *testing.T) {
	optest.Open(t)
	product := func(in []*array) *array { return ops.Add(ops.Matmul(in[0], in[1]), num(1)) }
	fn, _ := counted(compile.Options{}, product)
	w := ops.Reshape(square(512, 0.2), tensor.Sizes(4096, 64))
	x := ops.Reshape(square(512, 0.7), tensor.Sizes(64, 4096))
	var of [2][]byte
	for i := range 6 {
		before := tensor.SetBatchInvariant(i%2 == 1)
		want, got := product(arrays{x, w}), call(t, fn, x, w)
		tensor.SetBatchInvariant(before)
		of[i%2] = bytesOf(t, want)
		require.Equal(t, of[i%2], bytesOf(t, got), "call %d", i)
	}
	require.NotEqual(t, of[0], of[1], "the switch makes no difference here")
}

// TestStepsShortOfMemory: a call that memory does not hold says which op asked for it, and is right when there is more;
// collections in between change nothing.
func TestStepsShortOfMemory(t *testing.T) {
	optest.Open(t)
	dev, err := tensor.MetalDevice(tensor.DefaultDevice())
	require.NoError(t, err)
	fn, _ := counted(compile.Options{}, chained)
	x, y := square(512, 0.3), square(512, 0.6)
	want := bytesOf(t, chained(arrays{x, y}))
	for i := range 6 {
		dev.Collect(context.Background())
		z := call(t, fn, x, y)
		if i > 1 {
			dev.ClearCache()
			before := dev.SetMemoryLimit(dev.Memory().Active + 256<<10)
			_, err := z.Bytes(context.Background())
			dev.SetMemoryLimit(before)
			require.ErrorIs(t, err, metal.ErrNoMemory)
			require.Regexp(t, `^\[(matmul|compiled)\] .*\(step_test.go:\d+\)$`, err.Error())
			require.Equal(t, tensor.Lazy, z.State())
		}
		require.Equal(t, want, bytesOf(t, z))
	}
	require.Contains(t, recorded(fn), "recorded: 5 calls")
}

// TestStepsKept: a driver that keeps forms of steps is given what it needs to run them: the discrete device, which
// makes each command of its own data and refuses those that were recorded otherwise. Forms go with their recordings.
func TestStepsKept(t *testing.T) {
	optest.Open(t)
	drv := testdevice.NewDiscrete(3)
	dev, err := metal.NewDevice(drv, metal.DeviceOptions{})
	require.NoError(t, err)
	s, err := tensor.NewStream(tensor.SetDevice(dev))
	require.NoError(t, err)
	func() {
		fn, _ := counted(compile.Options{}, chainedOn(s))
		for i := range 20 {
			x, y := square(9, float32(i)/20), square(9, float32(i)/13)
			if i%4 == 3 {
				y = ops.Transpose(y, nil)
			}
			got := call(t, fn, x, y)
			require.Equal(t, bytesOf(t, chainedOn(s)(arrays{x, y})), bytesOf(t, got), "call %d", i)
		}
		kept, parts := drv.Forms.Counts()
		require.Equal(t, 2, kept) // one for each way in which the inputs lie
		require.Greater(t, parts, 12)
		require.Greater(t, fn.Bytes(), int64(2000))
		runtime.KeepAlive(fn)
	}()
	require.Eventually(t, func() bool {
		runtime.GC()
		kept, _ := drv.Forms.Counts()
		return kept == 0
	}, 20*time.Second, 20*time.Millisecond)
}

// breaking is a driver whose kernels of one name have failed whenever broken is set.
type breaking struct {
	metal.Driver
	name   string
	broken atomic.Bool
}

// Submit has the commands run, and says that those have failed.
func (d *breaking) Submit(queue int, cb *metal.CommandBuffer, done func(metal.Result)) {
	var failed []*metal.CommandError
	for i, c := range cb.Commands() {
		if d.broken.Load() && c.Pipeline != nil && strings.Contains(c.Pipeline.Name(), d.name) {
			failed = append(failed, &metal.CommandError{Index: i, Err: errors.New("it broke")})
		}
	}
	d.Driver.Submit(queue, cb, func(r metal.Result) {
		r.Failed = append(r.Failed, failed...)
		done(r)
	})
}

// TestStepsBreak: a command that fails within a call is its op's, not that of the whole call.
func TestStepsBreak(t *testing.T) {
	optest.Open(t)
	other := testdevice.NewAs(func(info *metal.Info) { info.Index, info.ID = 4, "breaking" })
	drv := &breaking{name: "softmax", Driver: other}
	dev, err := metal.NewDevice(drv, metal.DeviceOptions{})
	require.NoError(t, err)
	s, err := tensor.NewStream(tensor.SetDevice(dev))
	require.NoError(t, err)
	at := func(line int) *tensor.Ctx {
		return &tensor.Ctx{Stream: s, Place: tensor.Place{File: "model.lua", Line: line}}
	}
	fn, _ := counted(compile.Options{}, func(in []*array) *array {
		h := ops.Matmul(in[0], in[1], at(1))
		h = ops.Softmax(h, []int{-1}, at(2))
		return ops.Matmul(h, in[1], at(3))
	})
	x, y := square(9, 0.4), square(9, 0.7)
	want := bytesOf(t, call(t, fn, x, y))
	for i := range 6 {
		drv.broken.Store(i%2 == 1)
		got, err := call(t, fn, x, y).Bytes(context.Background())
		if i%2 == 1 {
			require.EqualError(t, err, "[softmax] it broke (model.lua:2)")
			continue
		}
		require.NoError(t, err)
		require.Equal(t, want, got)
	}
	require.Contains(t, recorded(fn), "recorded: 6 calls")
}

package tensor_test

import (
	"context"
	"errors"
	"runtime"
	"sync"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/mlxlua/mlxlua/metal"
	"github.com/mlxlua/mlxlua/tensor"
)

func newStream(t *testing.T) *tensor.Stream {
	t.Helper()
	s, err := tensor.NewStream(tensor.DefaultDevice())
	require.NoError(t, err)
	return s
}

func on(s *tensor.Stream) *tensor.Ctx {
	return &tensor.Ctx{Stream: s, Place: tensor.Place{File: "test.lua", Line: 9}}
}

func TestAsyncEval(t *testing.T) {
	x := iota(1000)
	y := neg(add(x, x))
	require.ErrorContains(t, y.Wait(background), "[wait] float32 (1000,) made at test.lua:7 was not handed over")
	require.NoError(t, tensor.AsyncEval(y))
	require.NoError(t, tensor.AsyncEval(y), "again is nothing to do")
	require.NoError(t, y.Wait(background))
	require.Equal(t, tensor.Ready, y.State())
	require.Equal(t, float32(-1998), floats(t, y)[999])
	require.NoError(t, tensor.Synchronize(background))
}

func TestDeepChains(t *testing.T) {
	x := iota(2)
	y := x
	for range 100_000 {
		y = add(y, x)
	}
	require.Equal(t, []float32{0, 100_001}, floats(t, y))
}

func TestOneComputationForManyAskers(t *testing.T) {
	var calls int
	var mu sync.Mutex
	body := func(h *tensor.HostCall) error {
		mu.Lock()
		calls++
		mu.Unlock()
		copy(h.Out[0].Bytes, h.In[0].Bytes)
		return nil
	}
	y := hostOp.One(ctx(), hostAttrs{&body}, trans(iota(2, 3)))
	var wg sync.WaitGroup
	for range 16 {
		wg.Go(func() {
			z := neg(neg(y))
			if err := tensor.Eval(background, z, y); err != nil {
				t.Error(err)
			}
		})
	}
	wg.Wait()
	require.Equal(t, 1, calls)
	require.Equal(t, []float32{0, 3, 1, 4, 2, 5}, floats(t, y))
}

func TestGoroutinesShareOneDevice(t *testing.T) {
	x := iota(32, 32)
	var wg sync.WaitGroup
	for k := range 8 {
		wg.Go(func() {
			y := x
			for range 20 {
				y = add(trans(y), mul(array([]float32{float32(k)}, 1), x))
				s := sum(y)
				if err := tensor.Eval(background, y, s); err != nil {
					t.Error(err)
					return
				}
				s.Free(ctx())
			}
		})
	}
	wg.Wait()
}

func TestStreams(t *testing.T) {
	a, b := newStream(t), newStream(t)
	require.NotEqual(t, a.Index(), b.Index())
	require.Regexp(t, `^Stream\(Device\(cpu, 0\), \d+\)$`, a.String())
	x := iota(500)
	for range 10 {
		y := addOp.One(on(a), tensor.None{}, x, x)
		z := negOp.One(on(b), tensor.None{}, y)
		w := addOp.One(on(a), tensor.None{}, z, y)
		u := mulOp.One(on(b), tensor.None{}, w, z)
		tensor.Drop(y, w)
		got := floats(t, addOp.One(on(a), tensor.None{}, u, z))
		require.Equal(t, float32(-998), got[499])
	}
	require.NoError(t, tensor.Synchronize(background, a, b))
}

func TestFailuresAreTheFirstErrorOfTheOrigin(t *testing.T) {
	boom := errors.New("boom")
	x := iota(4)
	bad := run(x, func(*tensor.Run) error { return boom })
	y := neg(add(bad, x))
	good := mul(x, x)
	both := add(good, x) // in one kernel with what depends on bad, if the planner may
	err := tensor.Eval(background, add(y, both))
	require.ErrorIs(t, err, boom)
	require.Equal(t, "[test_run] boom (test.lua:7)", err.Error())
	require.Equal(t, err, tensor.Eval(background, y))
	require.Equal(t, err, bad.Err())
	require.Equal(t, []float32{0, 2, 6, 12}, floats(t, both))
	require.ErrorIs(t, neg(bad).Err(), boom, "later calls have the error at once")
}

func TestPanicsBecomeErrors(t *testing.T) {
	x := iota(4)
	y := run(x, func(*tensor.Run) error { panic("oops") })
	require.ErrorContains(t, tensor.Eval(background, neg(y)), "[test_run] BUG: executing the op panicked: oops")
	body := func(*tensor.HostCall) error { panic("ouch") }
	require.ErrorContains(t, tensor.Eval(background, hostOp.One(ctx(), hostAttrs{&body}, x)), "ouch")
	require.Equal(t, []float32{0, 1, 2, 3}, floats(t, neg(neg(x))), "the stream goes on")
}

const faulty = `[[kernel]] void faulty(device const float* a [[buffer(0)]], device float* o [[buffer(1)]],
    constant int& at [[buffer(2)]], uint i [[thread_position_in_grid]]) {
  o[i] = a[int(i) + at];
}`

// kernel runs an MSL kernel of an input, an output and an int over the input's elements.
func kernel(x *tensor.Array, text, entry string, n int32) *tensor.Array {
	return kernelOn(nil, x, text, entry, n)
}

// kernelOn is kernel on a stream.
func kernelOn(s *tensor.Stream, x *tensor.Array, text, entry string, n int32) *tensor.Array {
	body := func(r *tensor.Run) error {
		p, err := r.Kernel(metal.Source{Label: entry, Text: text}, entry)
		if err != nil {
			return err
		}
		in, err := r.Contiguous(0)
		if err != nil {
			return err
		}
		size := metal.Size{X: in.Shape.Size(), Y: 1, Z: 1}
		group := metal.Size{X: min(size.X, 256), Y: 1, Z: 1}
		return r.Dispatch(p, size, group, in.Arg(), r.Out[0].Arg(), tensor.Const(n))
	}
	c := ctx()
	c.Stream = s
	return runOp.One(c, runAttrs{&body}, x)
}

func TestAFaultyKernelFailsOnlyWhatDependsOnIt(t *testing.T) {
	x := iota(8)
	bad := kernel(x, faulty, "faulty", 1000)
	after := neg(bad)
	fine := kernel(x, faulty, "faulty", 0)
	err := tensor.Eval(background, after, fine)
	require.ErrorContains(t, err, "[test_run]")
	require.ErrorContains(t, err, "(test.lua:7)")
	require.Equal(t, []float32{0, 1, 2, 3, 4, 5, 6, 7}, floats(t, fine))
	require.Equal(t, err, bad.Err())
	require.Equal(t, err, after.Err())
}

func TestCompileErrorsAreTheNodes(t *testing.T) {
	err := tensor.Eval(background, kernel(iota(8), "[[kernel]] void k() { nonsense; }", "k", 0))
	require.ErrorContains(t, err, "[test_run]")
	require.ErrorContains(t, err, "nonsense")
}

const endless = `[[kernel]] void endless(device const float* a [[buffer(0)]], device float* o [[buffer(1)]],
    constant int& n [[buffer(2)]], uint i [[thread_position_in_grid]]) {
  float x = a[i];
  while (n == 0) { x = x + 1.0f; if (x < -1.0f) break; }
  o[i] = x;
}`

func TestCancel(t *testing.T) {
	x := iota(8)
	s := newStream(t)
	other := negOp.One(on(s), tensor.None{}, x)
	y := kernel(x, endless, "endless", 0)
	z := neg(y)
	require.NoError(t, tensor.AsyncEval(y)) // its own evaluation: z's waits for it
	c, cancel := context.WithCancelCause(background)
	stopped := errors.New("stopped by the user")
	time.AfterFunc(20*time.Millisecond, func() { cancel(stopped) })
	require.ErrorIs(t, tensor.Eval(c, z), stopped)
	patience, stop := context.WithTimeout(background, 5*time.Second)
	defer stop()
	require.ErrorIs(t, y.Wait(patience), stopped)
	require.EqualError(t, z.Wait(patience), "[wait] the evaluation of float32 (8,) made at test.lua:7 was stopped: "+
		"stopped by the user (test.lua:7)")
	require.NoError(t, y.Err())
	require.NoError(t, tensor.Synchronize(patience))
	require.Equal(t, tensor.Lazy, y.State())
	require.Equal(t, tensor.Lazy, z.State())
	eval(t, other)
	require.Equal(t, []float32{0, -1}, floats(t, neg(x))[:2], "the stream goes on")
}

func TestChecksRunAtCompletion(t *testing.T) {
	bad := errors.New("index 7 is out of range")
	x := iota(8)
	for _, want := range []error{nil, bad} {
		var seen []byte
		y := run(x, func(r *tensor.Run) error {
			flag, err := r.Temp(tensor.Spec{Shape: tensor.Shape{1}, DType: tensor.Uint32})
			if err != nil {
				return err
			}
			r.Check(flag, func(b []byte) error { seen = append(seen, b...); return want })
			if err := r.Fill(flag, []byte{7, 0, 0, 0}); err != nil {
				return err
			}
			return r.CopyTo(r.Out[0], r.In[0])
		})
		err := tensor.Eval(background, neg(y))
		require.ErrorIs(t, err, want)
		require.Equal(t, []byte{7, 0, 0, 0}, seen)
	}
}

func TestHostOps(t *testing.T) {
	body := func(h *tensor.HostCall) error {
		require.NoError(t, h.Context().Err())
		copy(h.Out[0].Bytes[4:], h.In[0].Bytes)
		return nil
	}
	shift := func(x *tensor.Array) *tensor.Array { return hostOp.One(ctx(), hostAttrs{&body}, x) }
	x := trans(neg(iota(2, 3)))
	y := add(shift(neg(shift(x))), shift(iota(0)))
	require.Error(t, y.Err())
	y = neg(shift(neg(shift(x))))
	require.Equal(t, []float32{0, 0, 0, -3, -1, -4}, floats(t, y))
}

func TestSpecOnlyInputsAreNotComputed(t *testing.T) {
	x := run(iota(3), func(*tensor.Run) error { return errors.New("computed") })
	y := likeOp.One(ctx(), tensor.None{}, x)
	require.Equal(t, []float32{1, 1, 1}, floats(t, y))
	require.Equal(t, tensor.Lazy, x.State())
}

// TestHostOpsThatReadNoElementsDoNotWait: one command buffer, though a host op lies in the middle of the graph.
func TestHostOpsThatReadNoElementsDoNotWait(t *testing.T) {
	for _, n := range []int{3, 500} {
		x := neg(iota(n))
		y := mul(neg(sum(add(x, x))), countOp.One(ctx(), tensor.None{}, x))
		before := recorded.submitted.Load()
		got := floats(t, y)
		require.Equal(t, int64(1), recorded.submitted.Load()-before)
		var want float32
		for i := range n {
			want += float32(2 * i * n)
		}
		require.Equal(t, []float32{want, want}, got[:2])
		require.Len(t, got, n)
	}
}

func TestFree(t *testing.T) {
	x := neg(iota(1000))
	y := slice(x, 0, 5, 1)
	eval(t, x)
	x.Free(&tensor.Ctx{Place: tensor.Place{File: "test.lua", Line: 12}})
	require.ErrorContains(t, neg(x).Err(), "the array made at test.lua:7 was freed at test.lua:12")
	_, err := x.Bytes(background)
	require.ErrorContains(t, err, "[item] the array made at test.lua:7 was freed at test.lua:12")
	require.Equal(t, float32(-4), floats(t, y)[4], "what was built from it keeps the bytes")
}

func TestFreeGivesMemoryBackAtOnce(t *testing.T) {
	_, dev := withDevice(t, metal.DeviceOptions{})
	x := neg(iota(100_000))
	eval(t, x)
	before := dev.Memory().Active
	x.Free(ctx())
	require.LessOrEqual(t, dev.Memory().Active, before-400_000)
}

func TestTracedInputsHaveNoValues(t *testing.T) {
	tr := tensor.NewTrace("compile", nil)
	p := tr.Placeholder(ctx(), tensor.Spec{Shape: tensor.Shape{3}, DType: tensor.Float32})
	_, err := p.Bytes(background)
	require.EqualError(t, err,
		"[item] float32 (3,) made at test.lua:7 is an input of compile: its values are not known while "+
			"f is traced (test.lua:7)")
	require.ErrorContains(t, tensor.Eval(background, neg(p)),
		"[eval] float32 (3,) made at test.lua:7 depends on an input of compile")
	tr.End()
	require.Error(t, neg(p).Err())
}

func TestOpenTracesKeepTheGraph(t *testing.T) {
	tr := tensor.NewTrace("grad", nil)
	x := iota(4)
	w := tr.Watch(ctx(), x)
	a := mul(w, w)
	y := neg(a)
	tensor.Drop(a)
	eval(t, y)
	nodes := tensor.Order([]*tensor.Array{y}, nil)
	require.Len(t, nodes, 4)
	again := nodes[2].Handle(nil, 0)
	require.Equal(t, []float32{0, 1, 4, 9}, floats(t, again), "a node on the tape is observable")
	tr.End()
	require.Len(t, tensor.Order([]*tensor.Array{y}, nil), 1, "after the trace the graph is let go")
	require.Equal(t, []float32{0, -1, -4, -9}, floats(t, y))
}

func TestMemoryLimitIsAnErrorThatNamesTheOp(t *testing.T) {
	_, dev := withDevice(t, metal.DeviceOptions{})
	dev.SetMemoryLimit(64 << 20)
	big := expand(iota(1), 1<<16, 1<<10)
	y := neg(big) // 256 MiB
	err := tensor.Eval(background, y)
	require.ErrorContains(t, err, "[test_neg] [alloc] 268 MB is more than the memory limit")
	require.Equal(t, []float32{0, -1}, floats(t, neg(iota(2))))
}

// TestWhatCannotFitFailsBeforeAnythingRuns: nobody waits for the inputs of an array that is larger than the limit.
func TestWhatCannotFitFailsBeforeAnythingRuns(t *testing.T) {
	_, dev := withDevice(t, metal.DeviceOptions{})
	dev.SetMemoryLimit(64 << 20)
	never := kernel(iota(8), endless, "endless", 0)
	small := neg(never)
	large := add(expand(reshape(never, 8, 1, 1), 8, 1<<12, 1<<10), iota(1))
	last := neg(large)
	c, stop := context.WithTimeout(background, 20*time.Second)
	defer stop()
	require.NoError(t, tensor.AsyncEval(small, last))
	require.ErrorContains(t, last.Wait(c), "[alloc] 134 MB is more than the memory limit")
	require.NoError(t, tensor.Synchronize(c))
	require.Equal(t, tensor.Lazy, small.State())
	require.ErrorContains(t, tensor.Eval(c, last), "[alloc] 134 MB is more than the memory limit")
}

// TestWhatHasNoRoomFailsWithoutItsSteps: the steps of a fused kernel that has no memory are not run by themselves.
// Those that someone may read are computed when they are read, and the whole when there is room.
func TestWhatHasNoRoomFailsWithoutItsSteps(t *testing.T) {
	rec, dev := withDevice(t, metal.DeviceOptions{})
	kept := neg(expand(iota(1), 1<<11, 1<<10)) // 8 MiB
	x, y := cast(iota(1<<11, 1), tensor.Int8), cast(iota(1, 1<<11), tensor.Int8)
	require.NoError(t, tensor.Eval(background, kept, x, y))
	limit := dev.SetMemoryLimit(dev.Memory().Active + 12<<20)
	for _, held := range []bool{false, true} {
		step := add(x, y)                   // 4 MiB
		large := cast(step, tensor.Float32) // 16 MiB
		if !held {
			tensor.Drop(step)
		}
		ran := rec.during(func() {
			require.ErrorContains(t, tensor.Eval(background, large), "[test_cast] [alloc]")
			require.NoError(t, tensor.Synchronize(background))
		})
		require.Empty(t, ran)
		require.Equal(t, tensor.Lazy, large.State())
		if held {
			got, err := step.Bytes(background)
			require.NoError(t, err)
			require.Equal(t, []byte{3, 4, 5}, got[3<<11:][:3])
			step.Free(ctx())
		}
		dev.SetMemoryLimit(limit)
		require.Equal(t, []float32{3, 4, 5}, floats(t, large)[3<<11:][:3])
		large.Free(ctx())
		dev.SetMemoryLimit(dev.Memory().Active + 12<<20)
	}
	runtime.KeepAlive(kept)
}

func TestLongEvaluationsRunInLittleMemory(t *testing.T) {
	_, dev := withDevice(t, metal.DeviceOptions{})
	const n = 1 << 16 // 256 KiB
	dev.SetMemoryLimit(6 << 20)
	x := iota(n)
	y := x
	for range 30 { // 15 MiB of intermediates, all unreachable once they are read
		y = add(trans(reshape(y, 256, 256)), array([]float32{1}, 1))
		y = reshape(y, n)
	}
	require.Equal(t, float32(30), floats(t, y)[0])
}

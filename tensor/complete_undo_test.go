package tensor_test

import (
	"context"
	"errors"
	"fmt"
	"maps"
	"math/rand/v2"
	"slices"
	"sync"
	"sync/atomic"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/mlxlua/mlxlua/metal"
	"github.com/mlxlua/mlxlua/tensor"
)

// interruptible is a program that evaluates with eval and goes on whether that was stopped or not. What it returns has
// the same values however often it was. Streams are two of its own.
type interruptible func(p *workloadRun) map[string]*tensor.Array

// workloadRun is a run of a workload.
type workloadRun struct {
	eval  func(xs ...*tensor.Array)
	async func(xs ...*tensor.Array)
	a, b  *tensor.Ctx
}

const longLoop = `[[kernel]] void long_loop(device const float* a [[buffer(0)]], device float* o [[buffer(1)]],
    constant int& n [[buffer(2)]], uint i [[thread_position_in_grid]]) {
  float x = a[i];
  for (int k = 0; k < n; k++) x = x * 0.999f + 0.5f;
  o[i] = x;
}`

const addBoth = `[[kernel]] void add_both(device const float* a [[buffer(0)]], device float* o [[buffer(1)]],
    constant int& n [[buffer(2)]], uint i [[thread_position_in_grid]]) {
  o[i] = o[i] + a[i] * float(n);
}`

// accumulate adds x to a copy of s, or to s itself, by several kernels.
func accumulate(c *tensor.Ctx, s, x *tensor.Array) *tensor.Array {
	body := func(r *tensor.Run) error {
		for n := range int32(4) {
			p, err := r.Kernel(metal.Source{Label: "add_both", Text: addBoth}, "add_both")
			if err != nil {
				return err
			}
			size := metal.Size{X: r.Out[0].Shape.Size(), Y: 1, Z: 1}
			group := metal.Size{X: min(size.X, 256), Y: 1, Z: 1}
			if err := r.Dispatch(p, size, group, r.In[1].Arg(), r.Out[0].Arg(), tensor.Const(n)); err != nil {
				return err
			}
		}
		return nil
	}
	return updateOp.One(c, runAttrs{&body}, s, x)
}

// rotate is a host op that turns its input's elements by one place.
func rotate(c *tensor.Ctx, x *tensor.Array) *tensor.Array {
	body := func(h *tensor.HostCall) error {
		n := copy(h.Out[0].Bytes, h.In[0].Bytes[4:])
		copy(h.Out[0].Bytes[n:], h.In[0].Bytes[:4])
		return h.Context().Err()
	}
	return hostOp.One(c, hostAttrs{&body}, x)
}

// number is an array of one element.
func number(v float32) *tensor.Array { return array([]float32{v}, 1) }

// linear is x scale + y, of which nobody holds the product.
func linear(c *tensor.Ctx, x *tensor.Array, scale float32, y *tensor.Array) *tensor.Array {
	product := mulOp.One(c, tensor.None{}, x, number(scale))
	defer tensor.Drop(product)
	return addOp.One(c, tensor.None{}, product, y)
}

// workloads are programs of different kinds. They drop what they do not need, as a script does that reaches it no more.
var workloads = map[string]interruptible{
	"an array that is updated in place": func(p *workloadRun) map[string]*tensor.Array {
		s, a := neg(iota(1<<17)), iota(1<<17)
		p.eval(s)
		for range 30 {
			old := s
			s = linear(ctx(), s, 0.5, a)
			tensor.Drop(old)
			p.eval(s)
		}
		return map[string]*tensor.Array{"s": s, "a": a}
	},
	"a training loop": func(p *workloadRun) map[string]*tensor.Array {
		w, rate := iota(128, 128), number(-1e-3)
		for range 20 {
			g := add(w, w)
			for range 4 {
				old, across := g, trans(g)
				rows := sum(old, 0)
				g = linear(ctx(), rows, -1e-3, across)
				tensor.Drop(old, across, rows)
			}
			step, old := mul(g, rate), w
			w = add(w, step)
			tensor.Drop(g, step, old)
			p.eval(w)
		}
		return map[string]*tensor.Array{"w": w}
	},
	"one large graph": func(p *workloadRun) map[string]*tensor.Array {
		x := iota(100, 100)
		xs := []*tensor.Array{x}
		for i := range 300 {
			old, across := x, trans(x)
			x = linear(ctx(), across, 0.5, xs[len(xs)*i/300])
			if tensor.Drop(across); i%40 != 1 {
				tensor.Drop(old)
			}
			if i%40 == 0 {
				xs = append(xs, x)
			}
		}
		p.eval(x)
		return map[string]*tensor.Array{"x": x, "first": xs[1], "last": xs[len(xs)-1]}
	},
	"kernels that update an input": func(p *workloadRun) map[string]*tensor.Array {
		s, x := neg(iota(100_000)), mul(iota(100_000), number(1e-3))
		for range 12 {
			old := s
			once := accumulate(ctx(), s, x)
			tensor.Drop(old)
			twice := accumulate(ctx(), once, x)
			small := mul(twice, number(0.01))
			tensor.Drop(once, twice)
			s = accumulate(ctx(), small, x)
			tensor.Drop(small)
			p.eval(s)
		}
		return map[string]*tensor.Array{"s": s, "x": x}
	},
	"host ops": func(p *workloadRun) map[string]*tensor.Array {
		x := neg(iota(30_000))
		for range 10 {
			old, minus := x, neg(x)
			l, r := rotate(ctx(), x), rotate(ctx(), minus)
			x = linear(ctx(), r, 0.5, l)
			tensor.Drop(old, minus, l, r)
			old, x = x, add(x, iota(30_000))
			tensor.Drop(old)
			p.eval(x)
		}
		return map[string]*tensor.Array{"x": x}
	},
	"two streams": func(p *workloadRun) map[string]*tensor.Array {
		x, y := iota(40_000), neg(iota(40_000))
		for range 15 {
			oldX, oldY := x, y
			u := addOp.One(p.a, tensor.None{}, x, y)
			v := mulOp.One(p.b, tensor.None{}, u, number(0.25))
			w := accumulate(p.a, v, u)
			x = linear(p.a, w, 0.001, v)
			y = linear(p.b, x, -1, v)
			tensor.Drop(oldX, oldY, u, v, w)
			p.eval(x, y)
		}
		return map[string]*tensor.Array{"x": x, "y": y}
	},
	"what runs while more is handed over": func(p *workloadRun) map[string]*tensor.Array {
		x, fixed := iota(10_000), iota(10_000)
		var behind *tensor.Array
		for i := range 40 {
			old := x
			if i%8 == 3 {
				behind = kernel(x, longLoop, "long_loop", 300)
				x = linear(ctx(), x, 0.1, behind) // over x, where nobody else reads that
			}
			x = linear(ctx(), x, 0.9, fixed)
			tensor.Drop(old)
			p.async(x)
			if i%8 == 7 { // more was handed over that needs it
				p.eval(behind)
			}
		}
		return map[string]*tensor.Array{"x": x, "behind": behind}
	},
	"kernels that take long": func(p *workloadRun) map[string]*tensor.Array {
		x := iota(4096)
		for range 6 {
			old := x
			y := kernel(x, longLoop, "long_loop", 400)
			z := kernel(neg(y), longLoop, "long_loop", 200)
			x = linear(ctx(), z, 0.5, x)
			tensor.Drop(old, y, z)
			p.eval(x)
		}
		return map[string]*tensor.Array{"x": x}
	},
	"reductions, views and traces": func(p *workloadRun) map[string]*tensor.Array {
		x := mul(iota(1, 300, 200), number(1e-5))
		tr := tensor.NewTrace("grad", nil)
		w := tr.Watch(ctx(), x)
		var kept *tensor.Array
		for i := range 12 {
			old, total, rows := w, sum(w), sum(w, 1)
			back := slice(trans(trans(w)), 199, -1, -1)
			w = linear(ctx(), total, 1e-6, expand(reshape(rows, 1, 1, 200), 1, 300, 200))
			w = linear(ctx(), w, 0.1, back)
			if tensor.Drop(total, back); i > 6 {
				tensor.Drop(old, rows)
			}
			p.eval(w)
			if i == 5 {
				kept = rows
				tr.End()
			}
		}
		return map[string]*tensor.Array{"w": w, "kept": kept}
	},
}

// stops counts evaluations that were stopped.
var stops atomic.Int32

// perform runs a workload, whose evaluations limit's contexts stop; nil stops none. It says how many evaluations there
// were, and how long they took together.
func perform(t testing.TB, f interruptible, a, b *tensor.Stream,
	limit func() context.Context) (values map[string][]byte, evals int, took time.Duration) {
	eval := func(xs ...*tensor.Array) {
		c := background
		if limit != nil {
			c = limit()
		}
		start := time.Now()
		err := tensor.Eval(c, xs...)
		evals, took = evals+1, took+time.Since(start)
		switch {
		case err == nil:
		case c.Err() == nil:
			t.Errorf("an evaluation failed: %v", err)
		default:
			stops.Add(1)
		}
	}
	async := func(xs ...*tensor.Array) {
		if err := tensor.AsyncEval(xs...); err != nil {
			t.Errorf("handing over failed: %v", err)
		}
	}
	values = map[string][]byte{}
	for name, x := range f(&workloadRun{eval, async, on(a), on(b)}) {
		bytes, err := x.Bytes(background)
		if err != nil {
			t.Errorf("%s cannot be read: %v", name, err)
		}
		values[name] = bytes
	}
	return values, evals, took
}

// moments gives contexts for so many evaluations, of which a few end while these take their time.
func moments(r *rand.Rand, evals int, took time.Duration) func() context.Context {
	var at []int
	for range 1 + r.IntN(4) {
		at = append(at, r.IntN(evals))
	}
	n := -1
	return func() context.Context {
		if n++; !slices.Contains(at, n) {
			return background
		}
		c, cancel := context.WithCancelCause(background)
		delay := time.Duration(r.Int64N(int64(took)/int64(evals) + 1))
		time.AfterFunc(delay, func() { cancel(errors.New("stopped by the test")) })
		return c
	}
}

// TestWhatWasInterruptedIsNotLost: programs whose evaluations are stopped at random moments, and that go on, have the
// same arrays in the end as if nothing had happened.
func TestWhatWasInterruptedIsNotLost(t *testing.T) {
	each := 500/len(workloads) + 1
	if testing.Short() {
		each = 6
	}
	a, b := newStream(t), newStream(t)
	for _, name := range slices.Sorted(maps.Keys(workloads)) {
		t.Run(name, func(t *testing.T) {
			perform(t, workloads[name], a, b, nil) // compiles its kernels
			want, evals, took := perform(t, workloads[name], a, b, nil)
			before := stops.Load()
			for seed := uint64(0); int(stops.Load()-before) < each; seed++ {
				r := rand.New(rand.NewPCG(seed, 3))
				got, _, _ := perform(t, workloads[name], a, b, moments(r, evals, took))
				for what := range want {
					require.True(t, slices.Equal(want[what], got[what]), "%s differs: seed %d", what, seed)
				}
				require.Less(t, seed, uint64(100*each), "few were stopped")
			}
		})
	}
}

// TestInterruptionsOfFour: four programs at once, each with its own deadlines, whose arrays depend on ones that all
// have, lose nothing either.
func TestInterruptionsOfFour(t *testing.T) {
	rounds := 8
	if testing.Short() {
		rounds = 2
	}
	a, b := newStream(t), newStream(t)
	names := slices.Sorted(maps.Keys(workloads))
	// sharing is a workload that begins and ends with arrays of all four.
	sharing := func(f interruptible, shared []*tensor.Array) interruptible {
		return func(p *workloadRun) map[string]*tensor.Array {
			p.eval(shared[0])
			out := f(p)
			for i, x := range shared {
				p.eval(x)
				out[fmt.Sprint("shared ", i)] = x
			}
			return out
		}
	}
	share := func() []*tensor.Array {
		x := kernel(iota(1000), longLoop, "long_loop", 2000)
		y := accumulate(ctx(), neg(x), kernel(x, longLoop, "long_loop", 1000))
		return []*tensor.Array{neg(y), addOp.One(on(a), tensor.None{}, x, y), add(y, y)}
	}
	want := make([]map[string][]byte, len(names))
	evals, took := make([]int, len(names)), make([]time.Duration, len(names))
	for i, name := range names {
		want[i], evals[i], took[i] = perform(t, sharing(workloads[name], share()), a, b, nil)
	}
	for round := range rounds {
		shared := share()
		var wg sync.WaitGroup
		for k := range 4 {
			wg.Go(func() {
				i := (4*round + k) % len(names)
				r := rand.New(rand.NewPCG(uint64(round), uint64(k)))
				got, _, _ := perform(t, sharing(workloads[names[i]], shared), a, b, moments(r, evals[i], 2*took[i]))
				for what := range want[i] {
					if !slices.Equal(want[i][what], got[what]) {
						t.Errorf("round %d: %s of %s differs", round, what, names[i])
					}
				}
			})
		}
		wg.Wait()
	}
}

// TestAnotherOnesDeadline: the deadline of one who waits for an array does not stop it for one who waits too, and what
// he has begun himself goes on for the other.
func TestAnotherOnesDeadline(t *testing.T) {
	var calls atomic.Int32
	gate := make(chan struct{})
	body := func(h *tensor.HostCall) error {
		calls.Add(1)
		select {
		case <-gate:
		case <-h.Context().Done():
			return context.Cause(h.Context())
		}
		copy(h.Out[0].Bytes, h.In[0].Bytes)
		return nil
	}
	y := hostOp.One(ctx(), hostAttrs{&body}, neg(iota(3)))
	first := make(chan error)
	go func() { first <- tensor.Eval(background, neg(y)) }()
	for calls.Load() == 0 {
		time.Sleep(time.Millisecond)
	}
	late, cancel := context.WithTimeout(background, 5*time.Millisecond)
	defer cancel()
	require.ErrorIs(t, tensor.Eval(late, add(y, y)), context.DeadlineExceeded)
	require.ErrorIs(t, tensor.Eval(late, y), context.DeadlineExceeded)
	close(gate)
	require.NoError(t, <-first)
	require.Equal(t, []float32{0, -1, -2}, floats(t, y))
	require.Equal(t, int32(1), calls.Load(), "it was not stopped")

	gate = make(chan struct{})
	calls.Store(0)
	y = hostOp.One(ctx(), hostAttrs{&body}, neg(iota(3)))
	late, cancel = context.WithTimeout(background, 20*time.Millisecond)
	defer cancel()
	stopped := make(chan error)
	go func() { stopped <- tensor.Eval(late, y) }()
	for calls.Load() == 0 {
		time.Sleep(time.Millisecond)
	}
	go func() { first <- tensor.Eval(background, neg(y)) }()
	require.ErrorIs(t, <-stopped, context.DeadlineExceeded)
	close(gate)
	require.NoError(t, <-first, "what one has begun is computed for the other")
	require.Equal(t, []float32{0, -1, -2}, floats(t, y))
}

// TestMemoryThatIsShortIsNoLoss: an evaluation that the memory limit stops leaves its arrays lazy and gives its memory
// back; with a higher limit they have their values.
func TestMemoryThatIsShortIsNoLoss(t *testing.T) {
	_, dev := withDevice(t, metal.DeviceOptions{})
	const n = 1 << 18 // 1 MiB
	x := mul(iota(n), array([]float32{0.5}, 1))
	eval(t, x)
	before := dev.Memory().Active
	limit := dev.SetMemoryLimit(before + 10<<20)
	parts := []*tensor.Array{neg(x)}
	for range 20 {
		parts = append(parts, trans(add(trans(reshape(parts[len(parts)-1], 512, 512)), array([]float32{1}, 1))))
	}
	err := tensor.Eval(background, parts...)
	require.ErrorIs(t, err, metal.ErrNoMemory)
	require.ErrorContains(t, err, "[test_add] [alloc] 1.05 MB is more than what is left of the memory limit")
	require.NoError(t, tensor.Synchronize(background))
	for _, p := range parts[10:] {
		require.NoError(t, p.Err())
	}
	require.Equal(t, float32(1.5), floats(t, x)[3])
	require.Equal(t, float32(-1.5), floats(t, parts[0])[3])
	for _, p := range parts {
		p.Free(ctx())
	}
	last := neg(x)
	require.Equal(t, float32(-1.5), floats(t, last)[3], "there is room again")
	dev.SetMemoryLimit(limit)
	last.Free(ctx())
}

// TestRefusedBesideUndone: what no buffer can hold has failed before anything runs, and stays so when the rest is given
// back because memory is short.
func TestRefusedBesideUndone(t *testing.T) {
	_, dev := withDevice(t, metal.DeviceOptions{})
	const n = 1 << 18 // 1 MiB
	x := mul(iota(n), array([]float32{0.5}, 1))
	eval(t, x)
	limit := dev.SetMemoryLimit(dev.Memory().Active + 4<<20)
	parts := []*tensor.Array{neg(x)}
	for range 8 {
		parts = append(parts, trans(add(trans(reshape(parts[len(parts)-1], 512, 512)), array([]float32{1}, 1))))
	}
	last := reshape(parts[len(parts)-1], n)
	huge := add(reshape(last, n, 1), reshape(x, 1, n)) // 256 GiB
	err := tensor.Eval(background, append(parts, huge)...)
	require.Error(t, err)
	require.NoError(t, tensor.Synchronize(background))
	require.ErrorContains(t, huge.Err(), "[test_add] [alloc] 275 GB is more than the largest buffer")
	dev.SetMemoryLimit(limit)
	require.Equal(t, float32(6.5), floats(t, last)[3], "the rest is computed when there is room")
	require.NoError(t, tensor.Synchronize(background))
}

// TestAKernelThatWasGivenItsInputIsLost: where it was stopped while it ran it cannot run again, and says so. One
// that has a copy, since somebody holds its input, is lazy again as any other.
func TestAKernelThatWasGivenItsInputIsLost(t *testing.T) {
	const scribble = `[[kernel]] void scribble(device float* x [[buffer(0)]], constant int& n [[buffer(1)]],
    uint i [[thread_position_in_grid]]) {
  x[i] = 7.0f;
  while (n == 0) { x[i] = x[i] + 1.0f; if (x[i] < -1.0f) break; }
}`
	stopped := errors.New("stopped by the user")
	// It may begin late.
	for _, begun := range []time.Duration{0, 0, 50 * time.Millisecond, 200 * time.Millisecond, 5 * time.Second} {
		for _, held := range []bool{true, false} {
			x := neg(iota(8))
			eval(t, x)
			y := changingKernel(x, scribble, "scribble")
			if !held {
				tensor.Drop(x)
			}
			z := neg(y)
			c, cancel := context.WithCancelCause(background)
			if begun > 0 {
				time.AfterFunc(begun, func() { cancel(stopped) })
			} else {
				cancel(stopped)
			}
			require.ErrorIs(t, tensor.Eval(c, z), stopped)
			require.NoError(t, tensor.Synchronize(background))
			if held {
				require.Equal(t, tensor.Lazy, y.State())
				require.Equal(t, tensor.Lazy, z.State())
				require.Equal(t, []float32{0, -1, -2}, floats(t, x)[:3])
				continue
			}
			if begun == 0 || y.Err() == nil && begun < time.Second { // the kernel had not begun
				require.NoError(t, y.Err())
				require.Equal(t, tensor.Lazy, y.State())
				require.Equal(t, tensor.Lazy, z.State())
				continue
			}
			require.EqualError(t, y.Err(), "[test_scribble] the kernel was stopped while it ran, and it changes an input whose "+
				"memory it was given: it cannot run again (stopped by the user) (test.lua:7)")
			require.Equal(t, y.Err(), tensor.Eval(background, z))
			return
		}
	}
}

// TestADeadContextBeginsNothing: an evaluation whose context is done gives the device nothing to do.
func TestADeadContextBeginsNothing(t *testing.T) {
	rec, _ := withDevice(t, metal.DeviceOptions{})
	c, cancel := context.WithCancel(background)
	cancel()
	x := iota(8)
	eval(t, neg(x))
	before := rec.submitted.Load()
	for range 300 {
		y := neg(x)
		require.ErrorIs(t, tensor.Eval(c, y), context.Canceled)
		require.NoError(t, tensor.Synchronize(background))
		require.Equal(t, tensor.Lazy, y.State())
	}
	require.Equal(t, before, rec.submitted.Load())
}

// TestWhatOthersHaveClaimedIsGivenUp: an evaluation whose context is done stops what another call has handed over,
// which needs all that it asks for itself.
func TestWhatOthersHaveClaimedIsGivenUp(t *testing.T) {
	s := newStream(t)
	c, cancel := context.WithCancelCause(background)
	stopped := errors.New("stopped by the user")
	cancel(stopped)
	y := negOp.One(on(s), tensor.None{}, iota(8))
	z := negOp.One(on(s), tensor.None{}, y)
	release := tensor.LeaveToCallers(s)
	w, err := tensor.Submit(z)
	require.NoError(t, err)
	require.ErrorIs(t, tensor.Eval(c, y), stopped)
	release()
	require.NoError(t, w.Wait(background))
	require.Equal(t, []float32{0, 1, 2}, floats(t, z)[:3])
}

// scribbleOp is an op whose kernel, a user's, changes its input.
var scribbleOp = tensor.Declare[runAttrs]("test_scribble")

func init() {
	scribbleOp.Define(tensor.Rules[runAttrs]{
		Shape: same[runAttrs], DType: first[runAttrs], Partial: true, Updates: tensor.UpdatesFirst[runAttrs],
		Run: func(r *tensor.Run, a runAttrs) error { return (*a.Body)(r) },
	})
}

func changingKernel(x *tensor.Array, text, entry string) *tensor.Array {
	body := func(r *tensor.Run) error {
		p, err := r.Kernel(metal.Source{Label: entry, Text: text}, entry)
		if err != nil {
			return err
		}
		size := metal.Size{X: r.In[0].Shape.Size(), Y: 1, Z: 1}
		return r.Dispatch(p, size, size, r.Out[0].Arg(), tensor.Const(0))
	}
	return scribbleOp.One(ctx(), runAttrs{&body}, x)
}

// TestInterruptionsKeepNothing: stopped evaluations leave no memory behind once their arrays are gone.
func TestInterruptionsKeepNothing(t *testing.T) {
	_, dev := withDevice(t, metal.DeviceOptions{})
	a, b := newStream(t), newStream(t)
	r := rand.New(rand.NewPCG(5, 5))
	for _, f := range workloads {
		for i := range 8 {
			abandon := i%2 == 1
			func() {
				defer func() {
					if r := recover(); r != nil && r != "abandoned" {
						panic(r)
					}
				}()
				limit := moments(r, 10, 20*time.Millisecond)
				perform(t, func(p *workloadRun) map[string]*tensor.Array {
					eval := p.eval
					p.eval = func(xs ...*tensor.Array) {
						before := stops.Load()
						if eval(xs...); abandon && stops.Load() > before {
							panic("abandoned") // what was stopped is never read
						}
					}
					return f(p)
				}, a, b, limit)
			}()
		}
	}
	require.NoError(t, tensor.Synchronize(background))
	collectTo(t, dev, 0)
}

// TestWorkThatNobodyAsksForAnyMore: a Work whose arrays were given up, and then found unreachable, is done without an
// error.
func TestWorkThatNobodyAsksForAnyMore(t *testing.T) {
	began := make(chan struct{})
	body := func(h *tensor.HostCall) error {
		close(began)
		<-h.Context().Done()
		return h.Context().Err()
	}
	x := hostOp.One(ctx(), hostAttrs{&body}, iota(64))
	c, cancel := context.WithCancelCause(background)
	ended := make(chan error)
	go func() { ended <- tensor.Eval(c, x) }()
	<-began
	h, of := holding()
	w, err := tensor.Submit(negOp.One(of, tensor.None{}, x))
	require.NoError(t, err)
	release := tensor.AboutToGiveUp(w)
	_, _ = w.Done() // claims it
	cancel(errors.New("stopped by the test"))
	require.ErrorContains(t, <-ended, "stopped by the test")
	require.Eventually(t, func() bool { done, _ := w.Done(); return done }, time.Minute, time.Millisecond)
	release()
	look(h)
	require.NoError(t, w.Wait(background))
	done, err := w.Done()
	require.NoError(t, err)
	require.True(t, done)
}

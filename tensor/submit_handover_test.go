package tensor_test

import (
	"context"
	"encoding/binary"
	"errors"
	"math"
	"math/rand/v2"
	"runtime"
	"sync"
	"sync/atomic"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/mlxlua/mlxlua/metal"
	"github.com/mlxlua/mlxlua/metal/soft"
	"github.com/mlxlua/mlxlua/tensor"
)

// TestAsyncEvalReturnsBeforeTheGraphIsWalked: it does so while nobody can walk it, and what the script does to its
// arrays before somebody does changes no value.
func TestAsyncEvalReturnsBeforeTheGraphIsWalked(t *testing.T) {
	x := iota(8, 8)
	want := floats(t, graph(ctx(), x, false))
	y := graph(ctx(), x, false)
	step := neg(x)
	z, dropped, freed := add(step, y), mul(step, y), neg(step)
	release := tensor.HoldClaims()
	require.NoError(t, tensor.AsyncEval(y))
	w, err := tensor.Submit(z, dropped, freed)
	require.NoError(t, err)
	require.False(t, tensor.Claimed(y))
	more := mul(z, y)
	step.Free(ctx())
	tensor.Drop(dropped)
	freed.Free(ctx())
	x.Free(ctx())
	require.NoError(t, tensor.AsyncEval(y, more), "part of it again")
	release()
	require.NoError(t, w.Wait(background))
	require.Equal(t, want, floats(t, y))
	sums, products := floats(t, z), floats(t, more)
	for i := range want {
		require.Equal(t, want[i]-float32(i), sums[i])
		require.Equal(t, sums[i]*want[i], products[i])
	}
	_, err = freed.Bytes(background)
	require.ErrorContains(t, err, "was freed at test.lua:7")
	require.Equal(t, tensor.Ready, freed.State())
}

// TestWhoeverAsksClaims: each way to learn how far an evaluation has come sees it as handed over at its call.
func TestWhoeverAsksClaims(t *testing.T) {
	s := newStream(t)
	other := newStream(t)
	x := iota(100)
	never, cancel := context.WithCancel(background)
	cancel()
	for name, ask := range map[string]func(y, z *tensor.Array, w *tensor.Work){
		"state": func(_, z *tensor.Array, _ *tensor.Work) { require.Equal(t, tensor.Scheduled, z.State()) },
		"node state": func(_, z *tensor.Array, _ *tensor.Work) {
			require.Equal(t, tensor.Scheduled, z.Value().Node.State())
		},
		"wait": func(_, z *tensor.Array, _ *tensor.Work) { require.ErrorIs(t, z.Wait(never), context.Canceled) },
		"order": func(y, _ *tensor.Array, _ *tensor.Work) {
			require.Len(t, tensor.Order([]*tensor.Array{y}, nil), 1, "its inputs were let go")
		},
		"synchronize": func(_, _ *tensor.Array, _ *tensor.Work) {
			require.ErrorIs(t, tensor.Synchronize(never, s), context.Canceled)
		},
		"work": func(_, _ *tensor.Array, w *tensor.Work) {
			done, err := w.Done()
			require.NoError(t, err)
			require.False(t, done)
		},
		"a work of nothing new": func(_, z *tensor.Array, _ *tensor.Work) {
			again, err := tensor.Submit(z)
			require.NoError(t, err)
			done, err := again.Done()
			require.NoError(t, err)
			require.True(t, done)
		},
		"eval on its stream": func(_, _ *tensor.Array, _ *tensor.Work) {
			require.ErrorIs(t, tensor.Eval(never, mulOp.One(on(s), tensor.None{}, x, x)), context.Canceled)
		},
		"eval on another stream": func(_, _ *tensor.Array, _ *tensor.Work) {
			require.Equal(t, float32(-99), floats(t, negOp.One(on(other), tensor.None{}, x))[99])
		},
		"closing": func(_, _ *tensor.Array, _ *tensor.Work) {
			tensor.UnsetDevice(device)
			tensor.SetDevice(device)
		},
	} {
		t.Run(name, func(t *testing.T) {
			z := negOp.One(on(s), tensor.None{}, x)
			y := addOp.One(on(s), tensor.None{}, z, x)
			release := tensor.LeaveToCallers(s)
			w, err := tensor.Submit(y)
			require.NoError(t, err)
			require.Equal(t, tensor.Scheduled, y.State(), "nobody has to look at the graph to know that")
			require.ErrorIs(t, y.Wait(never), context.Canceled)
			again, err := tensor.Submit(y)
			require.NoError(t, err)
			done, err := again.Done()
			require.NoError(t, err)
			require.True(t, done, "it is the work of the first call")
			require.False(t, tensor.Claimed(y))
			ask(y, z, w)
			require.True(t, tensor.Claimed(y))
			require.True(t, tensor.Claimed(z))
			release()
			require.NoError(t, w.Wait(background))
			require.Equal(t, make([]float32, 100), floats(t, y))
		})
	}
}

// TestTheHelperClaims: work for a stream that is idle starts although the evaluation's first stream is busy for long.
func TestTheHelperClaims(t *testing.T) {
	a, b := newStream(t), newStream(t)
	x := iota(10)
	inside, leave := make(chan struct{}), make(chan struct{})
	body := func(h *tensor.HostCall) error {
		close(inside)
		<-leave
		copy(h.Out[0].Bytes, h.In[0].Bytes)
		return nil
	}
	long := hostOp.One(on(a), hostAttrs{&body}, x)
	require.NoError(t, tensor.AsyncEval(long))
	<-inside
	onB := negOp.One(on(b), tensor.None{}, x)
	after := addOp.One(on(a), tensor.None{}, onB, long)
	w, err := tensor.Submit(after)
	require.NoError(t, err)
	v := tensor.Value{Node: onB.Value().Node}
	require.NoError(t, v.Node.Handle(nil, 0).Wait(background), "it is done while a is at work")
	require.NoError(t, tensor.Eval(background, mulOp.One(on(b), tensor.None{}, onB, onB)))
	done, err := w.Done()
	require.NoError(t, err)
	require.False(t, done)
	close(leave)
	require.NoError(t, w.Wait(background))
	require.Equal(t, make([]float32, 10), floats(t, after))
}

// TestCancelOfWhatIsPending: a cancelled evaluation stops what it waits for, also where nobody has claimed that yet.
// Who waits for it afterwards has it computed.
func TestCancelOfWhatIsPending(t *testing.T) {
	s := newStream(t)
	x := iota(8)
	var ends atomic.Bool
	body := func(r *tensor.Run) error {
		if !ends.Load() {
			<-r.Context().Done()
			return context.Cause(r.Context())
		}
		return r.CopyTo(r.Out[0], r.In[0])
	}
	y := runOp.One(on(s), runAttrs{&body}, x)
	z := negOp.One(on(s), tensor.None{}, y)
	apart := negOp.One(on(s), tensor.None{}, x)
	stopped := errors.New("stopped by the user")
	c, cancel := context.WithCancelCause(background)
	release := tensor.LeaveToCallers(s)
	w, err := tensor.Submit(y)
	require.NoError(t, err)
	require.NoError(t, tensor.AsyncEval(apart))
	cancel(stopped)
	require.ErrorIs(t, tensor.Eval(c, z), stopped)
	release()
	require.NoError(t, apart.Wait(background), "the rest goes on")
	require.NoError(t, w.Wait(background))
	require.ErrorIs(t, y.Wait(background), stopped)
	require.ErrorIs(t, z.Wait(background), stopped)
	require.Equal(t, tensor.Lazy, y.State())
	ends.Store(true)
	require.Equal(t, []float32{0, -1, -2}, floats(t, z)[:3])
}

// TestFailuresOfWhatIsPending: what was built on a pending evaluation fails with the evaluation's first error.
func TestFailuresOfWhatIsPending(t *testing.T) {
	boom := errors.New("boom")
	x := iota(4)
	bad := run(x, func(*tensor.Run) error { return boom })
	good := neg(x)
	release := tensor.HoldClaims()
	w, err := tensor.Submit(bad, good)
	require.NoError(t, err)
	later := add(bad, good)
	again, err := tensor.Submit(later)
	require.NoError(t, err)
	release()
	require.ErrorIs(t, w.Wait(background), boom)
	require.ErrorIs(t, again.Wait(background), boom)
	require.Equal(t, bad.Err(), later.Err())
	require.Equal(t, []float32{0, -1, -2, -3}, floats(t, good))
}

// TestADeviceClosesBesidePendingWork: all of it ends.
func TestADeviceClosesBesidePendingWork(t *testing.T) {
	for range 20 {
		dev, err := metal.NewDevice(soft.New(soft.Options{}), metal.DeviceOptions{})
		require.NoError(t, err)
		tensor.SetDevice(dev)
		s := newStream(t)
		x := iota(8, 8)
		var works []*tensor.Work
		for range 10 {
			w, err := tensor.Submit(graph(on(s), x, false))
			require.NoError(t, err)
			works = append(works, w)
		}
		tensor.UnsetDevice(dev)
		require.NoError(t, dev.Close())
		tensor.SetDevice(device)
		for _, w := range works {
			err := w.Wait(background)
			done, first := w.Done()
			require.True(t, done)
			require.Equal(t, first, err)
		}
	}
}

// TestTracesBesidePendingWork: a trace that is open when an evaluation is claimed keeps the graph, and one that has
// ended by then does not.
func TestTracesBesidePendingWork(t *testing.T) {
	for _, open := range []bool{true, false} {
		tr := tensor.NewTrace("grad", nil)
		y := neg(mul(tr.Watch(ctx(), iota(4)), iota(4)))
		release := tensor.HoldClaims()
		require.NoError(t, tensor.AsyncEval(y))
		if !open {
			tr.End()
		}
		release()
		require.NoError(t, y.Wait(background))
		if open {
			require.Len(t, tensor.Order([]*tensor.Array{y}, nil), 5)
			tr.End()
		}
		require.Len(t, tensor.Order([]*tensor.Array{y}, nil), 1)
		require.Equal(t, []float32{0, -1, -4, -9}, floats(t, y))
	}
}

// TestRunahead: a script that hands work over without end has at most sixteen command buffers of a stream pending.
func TestRunahead(t *testing.T) {
	g, a, _ := withGate(t)
	y := iota(16)
	for range 100 {
		y = negOp.One(on(a), tensor.None{}, y)
		require.NoError(t, tensor.AsyncEval(y))
	}
	for g.waiting(a) < 16 {
		runtime.Gosched()
	}
	require.NoError(t, tensor.AsyncEval(negOp.One(on(a), tensor.None{}, y)))
	require.Equal(t, 16, g.waiting(a))
	require.Equal(t, 16, a.Pending())
	g.open(a)
	require.Equal(t, float32(15), floats(t, y)[15])
}

// TestRunaheadOfLargeBatches: of calls that write much only three are pending, whose memory serves those that follow.
func TestRunaheadOfLargeBatches(t *testing.T) {
	g, a, _ := withGate(t)
	dev, err := tensor.MetalDevice(tensor.DefaultDevice())
	require.NoError(t, err)
	dev.SetValidate(false)
	x := expand(iota(1), 1<<10, 2<<10)
	base := dev.Memory().Active
	var ys []*tensor.Array
	for range 8 {
		y := negOp.One(on(a), tensor.None{}, x)
		require.NoError(t, tensor.AsyncEval(y))
		tensor.Drop(y)
		ys = append(ys, y)
	}
	for g.waiting(a) < 3 {
		runtime.Gosched()
	}
	require.NoError(t, tensor.AsyncEval(negOp.One(on(a), tensor.None{}, iota(10))))
	require.Equal(t, 3, g.waiting(a))
	require.LessOrEqual(t, dev.Memory().Active-base, int64(4*8<<20), "and one that waits to follow")
	g.open(a)
	require.NoError(t, tensor.Synchronize(background))
	require.Len(t, ys, 8)
}

// marked is a driver whose memory is not zero until somebody touches it.
type marked struct{ gated }

func (m *marked) Alloc(n int64) (metal.Memory, error) {
	mem, err := m.gated.Alloc(n)
	for i := range mem.Host {
		mem.Host[i] = 1
	}
	return mem, err
}

// TestFirstTouch: memory that was never used is touched while the device is at work, and not where it waits for it.
func TestFirstTouch(t *testing.T) {
	m := &marked{gated{Driver: soft.New(soft.Options{}), closed: map[int]bool{}, held: map[int][]func(){}}}
	useDevice(t, m, metal.DeviceOptions{})
	s := newStream(t)
	m.closed[s.Index()] = true
	touched := func() (pages int) {
		body := func(r *tensor.Run) error {
			for b := tensor.Host(r.Out[0].View); len(b) > 0; b = b[4<<10:] {
				pages += int(1 - b[0])
			}
			return nil
		}
		w, err := tensor.Submit(runOp.One(on(s), runAttrs{&body}, expand(iota(1), 2, 1<<19)))
		require.NoError(t, err)
		if m.waiting(s) == 0 {
			require.NoError(t, w.Wait(background))
		} else {
			for s.Pending() < 2 {
				runtime.Gosched()
			}
		}
		return pages
	}
	require.Zero(t, touched(), "nothing runs meanwhile")
	require.NoError(t, tensor.AsyncEval(negOp.One(on(s), tensor.None{}, iota(10))))
	for m.waiting(s) == 0 {
		runtime.Gosched()
	}
	require.Equal(t, 1<<10, touched())
	m.open(s)
	require.NoError(t, tensor.Synchronize(background))
}

// TestClaimsKeepLittle: after a deep graph, and after many evaluations that waited to be claimed, small ones have small
// lists again, and no list keeps a node alive.
func TestClaimsKeepLittle(t *testing.T) {
	few := func() {
		require.Equal(t, []float32{0, -1}, floats(t, neg(iota(2))))
		longest, limit, refer := tensor.Scratch()
		require.LessOrEqual(t, longest, limit)
		require.Zero(t, refer)
	}
	_, limit, _ := tensor.Scratch()
	deep := iota(1, 2)
	for range 2 * (limit + 1) {
		deep = transpose.One(ctx(), tensor.None{}, deep)
	}
	require.Equal(t, []float32{0, 1}, floats(t, deep))
	few()
	release := tensor.HoldClaims()
	for range limit + 1 {
		require.NoError(t, tensor.AsyncEval(transpose.One(ctx(), tensor.None{}, deep)))
	}
	release()
	few()
}

// TestPendingProgramsAreTheSame: random programs that build, hand over, evaluate, free and drop have the same values
// whether evaluations are claimed at their call, late, or by whoever comes first.
func TestPendingProgramsAreTheSame(t *testing.T) {
	rounds := 60
	if testing.Short() {
		rounds = 15
	}
	a, b := newStream(t), newStream(t)
	for seed := range uint64(rounds) {
		program := func(after func(x *tensor.Array), hold bool) [][]byte {
			r := rand.New(rand.NewPCG(seed, 7))
			arrays := []*tensor.Array{iota(6, 6), neg(iota(6, 6)), expand(iota(1), 6, 6)}
			pick := func() int { return r.IntN(len(arrays)) }
			var out [][]byte
			read := func(x *tensor.Array) {
				b, err := x.Bytes(background)
				require.NoError(t, err)
				out = append(out, b)
			}
			release := func() {}
			for range 80 {
				c := on([]*tensor.Stream{a, b}[r.IntN(2)])
				x, y := arrays[pick()], arrays[pick()]
				switch r.IntN(9) {
				case 0, 1:
					arrays = append(arrays, addOp.One(c, tensor.None{}, x, y))
				case 2:
					arrays = append(arrays, negOp.One(c, tensor.None{}, x))
				case 3:
					arrays = append(arrays, transpose.One(c, tensor.None{}, x))
				case 4:
					arrays = append(arrays, addOp.One(c, tensor.None{}, x, sumOp.One(c, axesAttrs{tensor.MakeInts([]int{0})}, y)))
				case 5, 6:
					if hold {
						release = tensor.HoldClaims()
					}
					require.NoError(t, tensor.AsyncEval(x, y))
					if i := pick(); i > 2 { // freed while nobody has claimed it
						arrays[i].Free(ctx())
						arrays = append(arrays[:i], arrays[i+1:]...)
					}
					arrays = append(arrays, mulOp.One(c, tensor.None{}, arrays[pick()], iota(1)))
					release()
					release = func() {}
					after(x)
				case 7:
					if i := pick(); i > 2 {
						tensor.Drop(arrays[i])
						arrays = append(arrays[:i], arrays[i+1:]...)
					}
				case 8:
					read(x)
				}
			}
			for _, x := range arrays {
				read(x)
			}
			return out
		}
		claimed := program(func(x *tensor.Array) { x.State() }, false)
		require.Equal(t, claimed, program(func(*tensor.Array) {}, false), "seed %d", seed)
		require.Equal(t, claimed, program(func(*tensor.Array) {}, true), "seed %d", seed)
	}
}

// TestManyGoroutinesOnSharedNodes: goroutines build on nodes that others hand over, evaluate, drop and free, and have
// the values that arithmetic gives.
func TestManyGoroutinesOnSharedNodes(t *testing.T) {
	const workers, rounds, width = 8, 25, 12
	s := newStream(t)
	x := iota(32)
	for range 4 {
		shared := make([]*tensor.Array, width) // shared[k] is (k + 1) x
		y := x
		for k := range shared {
			shared[k] = y
			y = add(y, x)
		}
		var wg sync.WaitGroup
		for g := range workers {
			wg.Go(func() {
				r := rand.New(rand.NewPCG(uint64(g), 11))
				for range rounds {
					i, k := r.IntN(width), r.IntN(width)
					c := ctx()
					if r.IntN(2) == 0 {
						c = on(s)
					}
					step := addOp.One(c, tensor.None{}, shared[i], shared[k])
					z := negOp.One(ctx(), tensor.None{}, step)
					w, err := tensor.Submit(shared[i], z)
					if err != nil {
						t.Error(err)
						return
					}
					switch r.IntN(4) {
					case 0:
						step.Free(ctx())
					case 1:
						tensor.Drop(step)
					case 2:
						err = tensor.Eval(background, step, shared[k])
					case 3:
						err = w.Wait(background)
					}
					b, readErr := z.Bytes(background)
					if err = errors.Join(err, readErr); err != nil {
						t.Error(err)
						return
					}
					want := -float32(31 * (i + k + 2))
					if got := math.Float32frombits(binary.LittleEndian.Uint32(b[4*31:])); got != want {
						t.Errorf("-(%d x + %d x) is %v at x = 31, not %v", i+1, k+1, got, want)
						return
					}
				}
			})
		}
		wg.Wait()
		require.Equal(t, float32(31*width), floats(t, shared[width-1])[31])
	}
}

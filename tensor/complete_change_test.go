package tensor_test

import (
	"context"
	"errors"
	"runtime"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/mlxlua/mlxlua/metal"
	"github.com/mlxlua/mlxlua/tensor"
)

// noHolder stands for programs that have none.
var noHolder *tensor.Holder

// errBad is the error of the calls that fail in these tests.
var errBad = errors.New("a bad batch")

// waits is x, after a call on the host that ends with an error when one comes from ended.
func waits(c *tensor.Ctx, x *tensor.Array, ended <-chan error) *tensor.Array {
	body := func(h *tensor.HostCall) error {
		copy(h.Out[0].Bytes, h.In[0].Bytes)
		return <-ended
	}
	return hostOp.One(c, hostAttrs{&body}, x)
}

// changed is a change of x into new ones. X is dropped, as by a script that holds the new ones in its place.
func changed(x *tensor.Array, new ...*tensor.Array) *tensor.Change {
	old := make([]*tensor.Array, len(new))
	for i := range old {
		old[i] = x
	}
	c := tensor.NewChange(nil, old, new, nil)
	tensor.Drop(x)
	return c
}

// requireUndone says that the change has failed and gives x back, which was iota.
func requireUndone(t *testing.T, c *tensor.Change) {
	t.Helper()
	failed, _ := c.Failed(background)
	require.True(t, failed)
	old, ok := c.Undo(background)
	require.True(t, ok, "what was there is gone")
	require.Equal(t, floats(t, iota(old[0].Spec().Shape.Size())), floats(t, old[0]))
}

// TestWhatMayFailIsKeptOnce: sixty evaluations, each of which waits for the two before it, keep what may fail in each
// of them once, and what may fail in the first is known to the last, so that it writes over nothing.
func TestWhatMayFailIsKeptOnce(t *testing.T) {
	withDevice(t, metal.DeviceOptions{})
	a, b := newStream(t), newStream(t)
	ended := make(chan error)
	x := neg(neg(iota(5000)))
	eval(t, x)
	y := []*tensor.Array{waits(on(b), iota(3), ended), negOp.One(on(b), tensor.None{}, iota(3))}
	for k := 2; k < 60; k++ {
		y = append(y, rotate(on(b), addOp.One(on(b), tensor.None{}, y[k-1], y[k-2])))
	}
	next, last := negOp.One(on(a), tensor.None{}, x), negOp.One(on(b), tensor.None{}, y[59])
	c := changed(x, next, last)
	for _, y := range y {
		w, err := tensor.Submit(y)
		require.NoError(t, err)
		_, err = w.Done() // claims it
		require.NoError(t, err)
		require.LessOrEqual(t, tensor.Unforeseen(w), 1)
	}
	w, err := tensor.Submit(next, last)
	require.NoError(t, err)
	require.NoError(t, next.Wait(background))
	require.False(t, c.Over())
	ended <- errBad
	require.ErrorIs(t, w.Wait(background), errBad)
	requireUndone(t, c)
}

// readOp is an op that reads no array.
var readOp = tensor.Declare[hostAttrs]("test_read")

func init() {
	readOp.Define(tensor.Rules[hostAttrs]{
		Shape: func(_ []tensor.Spec, _ hostAttrs, outs []tensor.Shape) ([]tensor.Shape, error) {
			return append(outs, tensor.Shape{3}), nil
		},
		DType: func(_ []tensor.Spec, _ hostAttrs, outs []tensor.DType) ([]tensor.DType, error) {
			return append(outs, tensor.Float32), nil
		},
		Host: func(h *tensor.HostCall, a hostAttrs) error { return (*a.Body)(h) },
	})
}

// late is the body of a call on the host that fails late.
func late(*tensor.HostCall) error {
	time.Sleep(20 * time.Millisecond)
	return errBad
}

// beyond is a kernel that writes out of the bounds of its output.
func beyond(x *tensor.Array) *tensor.Array {
	const text = `[[kernel]] void beyond(device const float* a [[buffer(0)]], device float* o [[buffer(1)]],
    constant int& n [[buffer(2)]], uint i [[thread_position_in_grid]]) { o[int(i) + n] = a[i]; }`
	body := func(r *tensor.Run) error {
		p, err := r.Kernel(metal.Source{Label: "beyond", Text: text}, "beyond")
		if err != nil {
			return err
		}
		n := x.Spec().Shape.Size()
		size := metal.Size{X: n, Y: 1, Z: 1}
		return r.Dispatch(p, size, size, r.In[0].Arg(), r.Out[0].Arg(), tensor.Const(n))
	}
	return partialOp.Call(ctx(), runAttrs{&body}, x)[0]
}

// TestWhatMayFailIsForeseen: the old value is not written over before any call of these kinds, which fails.
func TestWhatMayFailIsForeseen(t *testing.T) {
	withDevice(t, metal.DeviceOptions{})
	body := late
	for name, fails := range map[string]func() *tensor.Array{
		"a call on the host":                 func() *tensor.Array { return hostOp.One(ctx(), hostAttrs{&body}, iota(3)) },
		"a call on the host without inputs":  func() *tensor.Array { return readOp.One(ctx(), hostAttrs{&body}) },
		"a kernel that writes out of bounds": func() *tensor.Array { return beyond(iota(3)) },
	} {
		t.Run(name, func(t *testing.T) {
			x := neg(neg(iota(1 << 18)))
			eval(t, x)
			next, last := neg(x), neg(fails())
			c := changed(x, next, last)
			large := neg(iota(1 << 18)) // with which the first batch is handed over
			require.Error(t, tensor.Eval(background, next, large, last))
			requireUndone(t, c)
		})
	}
}

// TestPartsOfAStep: a step whose results are computed one after the other, by several evaluations, is undone as a
// whole.
func TestPartsOfAStep(t *testing.T) {
	body := late
	// eachFails calls f with a step that doubles x and fails in its other result.
	each := func(name string, f func(t *testing.T, x, next, last *tensor.Array)) {
		t.Run(name, func(t *testing.T) {
			withDevice(t, metal.DeviceOptions{})
			x := neg(neg(iota(5000)))
			eval(t, x)
			f(t, x, add(x, x), neg(neg(hostOp.One(ctx(), hostAttrs{&body}, iota(3)))))
		})
	}
	each("what fails was not asked for", func(t *testing.T, x, next, last *tensor.Array) {
		c := changed(x, next, last)
		eval(t, next)
		require.False(t, c.Over())
		noHolder.SettleChanges()
		require.False(t, c.Over())
		require.ErrorIs(t, tensor.Eval(background, last), errBad)
		requireUndone(t, c)
	})
	each("what fails reads what is asked for", func(t *testing.T, x, next, _ *tensor.Array) {
		last := hostOp.One(ctx(), hostAttrs{&body}, neg(next))
		c := changed(x, next, last)
		eval(t, next)
		require.False(t, c.Over())
		require.ErrorIs(t, tensor.Eval(background, last), errBad)
		requireUndone(t, c)
	})
	each("no new value was asked for", func(t *testing.T, _, _, last *tensor.Array) {
		x := neg(neg(iota(5000)))
		eval(t, x)
		loss := neg(x)
		c := changed(x, last)
		eval(t, loss)
		require.False(t, c.Over())
		require.ErrorIs(t, tensor.Eval(background, last), errBad)
		requireUndone(t, c)
	})
	each("what fails is another evaluation's", func(t *testing.T, x, next, first *tensor.Array) {
		ended := make(chan error)
		last := waits(on(newStream(t)), first, ended)
		c := changed(x, next, add(last, last))
		body = func(*tensor.HostCall) error { return nil }
		defer func() { body = late }()
		require.NoError(t, tensor.AsyncEval(last))
		eval(t, next)
		require.False(t, c.Over())
		ended <- errBad
		require.ErrorIs(t, tensor.Eval(background, last), errBad)
		requireUndone(t, c)
	})
	each("what another evaluation computes is stopped", func(t *testing.T, x, next, _ *tensor.Array) {
		began := make(chan struct{}, 2)
		body = func(h *tensor.HostCall) error {
			began <- struct{}{}
			if len(began) > 1 {
				return errBad
			}
			<-h.Context().Done()
			return h.Context().Err()
		}
		defer func() { body = late }()
		of := newStream(t)
		last := hostOp.One(on(of), hostAttrs{&body}, iota(3))
		c := changed(x, next, last)
		limited, cancel := context.WithCancel(background)
		ended := make(chan error)
		go func() { ended <- tensor.Eval(limited, last) }()
		<-began
		began <- struct{}{}
		cancel()
		eval(t, next)
		require.ErrorIs(t, <-ended, context.Canceled)
		require.False(t, c.Over())
		require.ErrorIs(t, tensor.Eval(background, last), errBad)
		requireUndone(t, c)
	})
}

// TestWhatCannotFailKeepsNothing: a new value that nobody asks for keeps no memory where nothing behind it may fail, be
// that computed by then or not.
func TestWhatCannotFailKeepsNothing(t *testing.T) {
	withDevice(t, metal.DeviceOptions{})
	x, counter := neg(neg(iota(5000))), iota(1)
	eval(t, x)
	for range 3 {
		old := x
		shared := neg(x)
		counter = add(counter, sum(shared))
		x = add(old, sum(shared))
		c := changed(old, x, counter)
		tensor.Drop(shared)
		eval(t, x)
		require.True(t, c.Over())
	}
}

// TestMovedValuesAreNotComputed: an array that only stands in another place does not make it seem as if somebody had
// asked for the step's new ones.
func TestMovedValuesAreNotComputed(t *testing.T) {
	withDevice(t, metal.DeviceOptions{})
	x, moved := neg(iota(5000)), neg(iota(3))
	eval(t, x, moved)
	c := changed(x, moved, neg(x))
	defer c.End() // later tests count what evaluations do while there are changes
	noHolder.SettleChanges()
	require.False(t, c.Over())
}

// TestUndoingWaits: while commands under way may write over old values, nothing is given back, and what they compute is
// computed anew from then on.
func TestUndoingWaits(t *testing.T) {
	g, a, b := withGate(t)
	dev, err := tensor.MetalDevice(tensor.DefaultDevice())
	require.NoError(t, err)
	dev.SetValidate(false)
	x := negOp.One(on(b), tensor.None{}, negOp.One(on(b), tensor.None{}, iota(5000)))
	eval(t, x)
	next := negOp.One(on(a), tensor.None{}, x)
	c := changed(x, next)
	w, err := tensor.Submit(next)
	require.NoError(t, err)
	defer g.open(a)
	for g.waiting(a) == 0 {
		runtime.Gosched()
	}
	never, cancel := context.WithCancel(background)
	cancel()
	require.False(t, c.Stop(never), "commands under way may write over it")
	require.False(t, c.Over())
	g.open(a)
	require.NoError(t, w.Wait(background))
	require.False(t, c.Over())
	old, ok := c.Undo(background)
	require.True(t, ok)
	require.Equal(t, floats(t, iota(5000)), floats(t, old[0]))
	require.Equal(t, floats(t, neg(iota(5000))), floats(t, next))
}

// TestOldValuesAreKeptForOthers: an evaluation that computes no new value writes over no old one, however it ends.
func TestOldValuesAreKeptForOthers(t *testing.T) {
	withDevice(t, metal.DeviceOptions{})
	body := late
	x := neg(neg(iota(5000)))
	eval(t, x)
	loss := sum(x)
	next := neg(hostOp.One(ctx(), hostAttrs{&body}, neg(x)))
	c := changed(x, next)
	large := neg(iota(5000)) // for which the memory of x would do
	eval(t, loss, large)
	require.Equal(t, []float32{12497500}, floats(t, loss))
	require.False(t, c.Over())
	require.ErrorIs(t, tensor.Eval(background, next), errBad)
	requireUndone(t, c)
}

// TestNothingIsWrittenBehindAShutGate: memory of an old value that was given away behind a gate which stays shut is not
// written to by later evaluations, though it is another value's for them.
func TestNothingIsWrittenBehindAShutGate(t *testing.T) {
	withDevice(t, metal.DeviceOptions{})
	x := neg(neg(iota(5000)))
	eval(t, x)
	same := transpose.One(ctx(), tensor.None{}, x)
	eval(t, same)
	next, last := neg(x), neg(beyond(iota(3)))
	c := changed(x, next, last)
	require.Error(t, tensor.Eval(background, last, next))
	other := neg(same)
	tensor.Drop(same)
	eval(t, other)
	requireUndone(t, c)
}

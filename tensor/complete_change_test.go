package tensor_test

import (
	"errors"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/mlxlua/mlxlua/metal"
	"github.com/mlxlua/mlxlua/tensor"
)

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
	c := tensor.NewChange(nil, old, new)
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

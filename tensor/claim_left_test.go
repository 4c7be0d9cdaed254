package tensor_test

import (
	"context"
	"errors"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/mlxlua/mlxlua/tensor"
)

// doneAfter is a context that is done after so many questions.
type doneAfter struct {
	context.Context
	cancel context.CancelCauseFunc
	asked  int
}

func (c *doneAfter) Err() error {
	if c.asked--; c.asked == 0 {
		c.cancel(errLeft)
	}
	return c.Context.Err()
}

var errLeft = errors.New("whoever waited has left")

// TestClaimingEndsWithTheWaiter: whoever leaves while the graph is gone over, at any point, has nothing of it run, and
// later has it computed.
func TestClaimingEndsWithTheWaiter(t *testing.T) {
	for _, asks := range []int{2, 3, 5, 8} {
		s := newStream(t)
		x := iota(4)
		y, z := x, neg(x)
		for range 5000 {
			y = negOp.One(on(s), tensor.None{}, y)
		}
		ctx, cancel := context.WithCancelCause(background)
		waiter := &doneAfter{Context: ctx, cancel: cancel, asked: asks}
		release := tensor.LeaveToCallers(s) // the caller goes over the graph itself
		err := tensor.Eval(waiter, y, z, negOp.One(on(s), tensor.None{}, y))
		require.ErrorIs(t, err, errLeft, "%d", asks)
		release()
		require.Equal(t, []float32{0, 1, 2, 3}, floats(t, y), "%d", asks)
		require.Equal(t, []float32{0, -1, -2, -3}, floats(t, z))
		require.NoError(t, tensor.Synchronize(background))
	}
}

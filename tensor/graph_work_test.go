package tensor_test

import (
	"errors"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/mlxlua/mlxlua/tensor"
)

// TestWorkOnGraphsIsAsked: whoever builds a graph is asked now and then whether it goes on; where it does not, calls of
// ops fail with the reason at once, and go on when they may again.
func TestWorkOnGraphsIsAsked(t *testing.T) {
	enough, asked, ended := errors.New("enough"), 0, false
	h := tensor.NewHolder(tensor.HolderLimits{Going: func(int64) error {
		asked++
		if ended {
			return enough
		}
		return nil
	}})
	c := ctx()
	c.Holder = h
	x := negOp.One(c, tensor.None{}, iota(3))
	for range 1000 {
		x = negOp.One(c, tensor.None{}, x)
	}
	require.NoError(t, x.Err())
	require.Greater(t, asked, 4)
	require.Less(t, asked, 100)
	require.GreaterOrEqual(t, h.Made(), int64(1000*400), "a node takes as much")
	ended = true
	y := x
	for range 1000 {
		y = negOp.One(c, tensor.None{}, y)
	}
	require.ErrorIs(t, y.Err(), enough)
	require.ErrorIs(t, negOp.One(c, tensor.None{}, x).Err(), enough)
	require.NoError(t, negOp.One(ctx(), tensor.None{}, x).Err(), "it is nobody else's end")
	_, err := c.Order([]*tensor.Array{x}, nil)
	require.ErrorIs(t, err, enough)
	ended = false
	require.Equal(t, []float32{0, 1, 2}, floats(t, negOp.One(c, tensor.None{}, x))[:3])
}

// TestGraphsAreMeasured: a graph counts once, whoever leads to it, as long as nobody has evaluated it; what is being
// built counts as a whole, and not twice.
func TestGraphsAreMeasured(t *testing.T) {
	h := tensor.NewHolder(tensor.HolderLimits{})
	c := ctx()
	c.Holder = h
	x := negOp.One(c, tensor.None{}, iota(3))
	for range 100 {
		x = negOp.One(c, tensor.None{}, x)
	}
	g := h.Graph(false)
	bytes := g.Behind(x)
	require.Greater(t, bytes, int64(100*400))
	require.Zero(t, g.Behind(x))
	require.Zero(t, h.UnderWay(false))
	done := c.Building()
	y := negOp.One(c, tensor.None{}, x)
	require.Greater(t, h.UnderWay(false), int64(400))
	require.Equal(t, bytes, h.Graph(false).Behind(y), "y itself is under way")
	done()
	require.Zero(t, h.UnderWay(false))
	require.NoError(t, tensor.Eval(background, y))
	require.Less(t, h.Graph(false).Behind(y), int64(2000))
	require.Eventually(t, func() bool { return h.UnderWay(false) == 0 }, 10*time.Second, time.Millisecond,
		"and nothing is being computed: the evaluation's job ends right after its values are there")
}

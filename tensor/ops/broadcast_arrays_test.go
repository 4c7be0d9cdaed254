package ops_test

import (
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/mlxlua/mlxlua/tensor"
	"github.com/mlxlua/mlxlua/tensor/ops"
	"github.com/mlxlua/mlxlua/tensor/optest"
)

func TestBroadcastArrays(t *testing.T) {
	t.Parallel()
	run := func(name, op string, f optest.Func, cases ...optest.Case) {
		optest.Run(t, optest.Subject{Name: name, Ops: []string{op}, Fn: f, Cases: cases, Second: true})
	}
	run("broadcast_arrays", "broadcast_arrays", func(in []*array) []*array { return ops.BroadcastArrays(in) },
		optest.Of("n,1", "m", ""), optest.Of("n,m"), optest.Of("0", "n,1"))
	for _, sparse := range []bool{false, true} {
		run("meshgrid", "broadcast_arrays", func(in []*array) []*array { return ops.Meshgrid(in, sparse, "xy") },
			optest.Of("n", "m", "2"), optest.Of("n"), optest.Of("n,2", ""))
	}
	run("meshgrid ij", "broadcast_arrays", func(in []*array) []*array { return ops.Meshgrid(in, false, "ij") },
		optest.Of("n", "m", "0"))
	run("atleast_3d", "expand_dims", func(in []*array) []*array { return ops.Atleast3D(in) },
		optest.Of("", "n", "n,m", "n,m,2"))
	run("atleast_2d", "expand_dims", func(in []*array) []*array { return ops.Atleast2D(in) }, optest.Of("", "n", "n,m"))
	run("atleast_1d", "expand_dims", func(in []*array) []*array { return ops.Atleast1D(in) }, optest.Of("", "n"))
}

func TestBroadcastShapes(t *testing.T) {
	t.Parallel()
	s, err := ops.BroadcastShapes([]tensor.Shape{{6, 7}, {5, 6, 1}, {}, {7}})
	require.NoError(t, err)
	require.Equal(t, tensor.Shape{5, 6, 7}, s)
	for want, shapes := range map[string][]tensor.Shape{
		"[broadcast_shapes] no shapes are given":                              nil,
		"[broadcast_shapes] shapes (2,) and (3,) cannot be broadcast":         {{2}, {3}},
		"[broadcast_shapes] negative dimension in shape (-1,)":                {{-1}},
		"[broadcast_shapes] dimension 4294967296 of shape (4294967296,) is o": {{1 << 32}},
	} {
		_, err := ops.BroadcastShapes(shapes)
		require.ErrorContains(t, err, want)
	}
}

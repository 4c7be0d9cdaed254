package luabind

import (
	"context"
	"strings"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/mlxlua/mlxlua/internal/serial"
	"github.com/mlxlua/mlxlua/tensor"
	"github.com/mlxlua/mlxlua/tensor/ops"
)

// TestUnfinishedWorkIsBounded: a script that hands over more than is computed waits for it, or until its context is
// done, and goes on when there is room.
func TestUnfinishedWorkIsBounded(t *testing.T) {
	serial.Because(t, "it counts what the device has ahead")
	s := New(Options{})
	defer s.Close()
	got, err := s.Run(context.Background(), strings.NewReader(`
		local mx = require "mx"
		local k = mx.fast.metal_kernel{name = "endless", input_names = {"x"}, output_names = {"o"},
		  source = "o[0] = 0; while (x[0] > 0) o[0] += 1;"}
		return k{inputs = {mx.ones({1})}, grid = {1, 1, 1}, threadgroup = {1, 1, 1}, output_shapes = {{1}},
		  output_dtypes = {mx.float32}}`), "bounded.lua")
	require.NoError(t, err)
	y, ok := unwrap[*tensor.Array](got[0])
	require.True(t, ok)
	done, cancel := context.WithCancel(context.Background())
	cancel()
	work := func() *tensor.Work {
		w, err := tensor.Submit(ops.Negative(y))
		require.NoError(t, err)
		return w
	}
	var h handedOver
	y0, err := s.Run(context.Background(), strings.NewReader(`return require("mx").ones({1})`), "room.lua")
	require.NoError(t, err)
	room, ok := unwrap[*tensor.Array](y0[0])
	require.True(t, ok)
	for range mostWork {
		require.NoError(t, h.add(done, work()), "there is no need to wait")
	}
	require.ErrorIs(t, h.add(done, work()), context.Canceled)
	require.Len(t, h.running, mostWork+1, "it was handed over all the same")
	require.ErrorIs(t, tensor.Eval(done, y), context.Canceled) // ends the kernel
	more, err := tensor.Submit(ops.Exp(room))
	require.NoError(t, err)
	require.NoError(t, h.add(context.Background(), more))
	require.LessOrEqual(t, len(h.running), mostWork/2+2)
	require.NoError(t, h.wait(context.Background(), len(h.running)))
	require.NoError(t, h.failure(), "what was stopped is no failure")
}

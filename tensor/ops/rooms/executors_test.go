package rooms_test

import (
	"context"
	"fmt"
	"math"
	"strings"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/mlxlua/mlxlua/internal/brief"
	"github.com/mlxlua/mlxlua/metal"
	"github.com/mlxlua/mlxlua/metal/soft"
	"github.com/mlxlua/mlxlua/metal/testdevice"
	"github.com/mlxlua/mlxlua/tensor"
	"github.com/mlxlua/mlxlua/tensor/ops"
	"github.com/mlxlua/mlxlua/tensor/ops/sig"
	"github.com/mlxlua/mlxlua/tensor/optest"
)

// TestExecutorsDoNotMatter: golden calls of the leaves' functions, Fourier transforms of sizes with large factors and
// sorts by digits give the same bytes on the interpreter and as machine code, with AVX2 and with AVX-512. The core's
// ops and the convolutions have such tests of their own, and linalg runs no kernels.
func TestExecutorsDoNotMatter(t *testing.T) {
	if testing.Short() {
		t.Skip("it takes the interpreter long")
	}
	brief.OnlyValues(t)
	testdevice.NeedsCPU(t, "it compares what runs kernels on the CPU")
	optest.Open(t)
	on := func(executor string) map[string][]uint64 {
		dev, err := metal.NewDevice(soft.New(soft.Options{Executor: executor}), metal.DeviceOptions{})
		require.NoError(t, err)
		before, err := tensor.MetalDevice(tensor.DefaultDevice())
		require.NoError(t, err)
		tensor.SetDevice(dev)
		defer func() {
			tensor.SetDevice(before)
			require.NoError(t, dev.Close())
		}()
		all := map[string][]uint64{}
		for name, outs := range executed(t) {
			for _, y := range outs {
				all[name] = append(all[name], bitsOf(t, y)...)
			}
		}
		return all
	}
	want := on("interp")
	require.Greater(t, len(want), 80)
	for _, executor := range []string{"avx2", "avx512"} {
		got := on(executor)
		require.Len(t, got, len(want))
		for name, bits := range want {
			require.Equal(t, bits, got[name], "%s on %s", name, executor)
		}
	}
}

// executed are results by names, of one call each.
func executed(t *testing.T) map[string][]*tensor.Array {
	t.Helper()
	all, calls := map[string][]*tensor.Array{}, map[string]int{}
	for _, c := range optest.GoldenCalls(t) {
		f := sig.Lookup(c.Fn)
		if f.Room == "ops" || f.Room == "conv" || f.Room == "linalg" || calls[c.Fn] == 2 {
			continue
		}
		for i := range c.Cases {
			if c.Cases[i].Refused || len(c.Cases[i].Out) == 0 || strings.HasSuffix(c.Cases[i].Out[0], "?") {
				continue
			}
			outs, err := c.Make(sig.Lookup, c.Inputs(t, i), false)
			require.NoError(t, err, c)
			all[fmt.Sprint(c.Family, " ", c, c.Cases[i].In)] = outs
			calls[c.Fn]++
			break
		}
	}
	call := func(name string, args ...any) {
		outs, err := optest.Invoke(sig.Lookup(name), args, nil)
		require.NoError(t, err, name)
		x := args[0].(*tensor.Array)
		all[fmt.Sprint(name, " of ", x.Spec(), args[1:])] = outs
	}
	for _, n := range []int{8, 60, 1000, 1031} { // by twos, by other small factors, by a prime
		x := optest.Noise(tensor.Float32, 3, n)
		for _, name := range []string{"fft", "ifft", "rfft", "irfft"} {
			call("fft."+name, x)
		}
		call("fft.fft2", optest.Noise(tensor.Float32, n, 6))
	}
	for _, d := range []tensor.DType{tensor.Uint8, tensor.Int16, tensor.BFloat16, tensor.Int64, tensor.Float64} {
		x := ops.AsType(ops.Multiply(optest.Noise(tensor.Float32, 10_000), ops.Number(40, tensor.Float32)), d)
		call("sort", x)
		call("argsort", x)
	}
	return all
}

// bitsOf are an array's elements, with one NaN in the place of all: kir leaves their sign and payload open.
func bitsOf(t *testing.T, x *tensor.Array) (bits []uint64) {
	t.Helper()
	b, err := x.Bytes(context.Background())
	require.NoError(t, err)
	if !x.DType().IsInexact() {
		for _, v := range b {
			bits = append(bits, uint64(v))
		}
		return bits
	}
	for size := x.DType().Size(); len(b) > 0; b = b[size:] {
		for _, v := range optest.Floats(b, x.DType()) {
			if math.IsNaN(v) {
				v = math.NaN()
			}
			bits = append(bits, math.Float64bits(v))
		}
	}
	return bits
}

package luabind

import (
	"strings"
	"testing"

	"github.com/stretchr/testify/require"
	lua "github.com/yuin/gopher-lua"

	"github.com/mlxlua/mlxlua/internal/serial"
	"github.com/mlxlua/mlxlua/luabind/lua51"
	"github.com/mlxlua/mlxlua/metal"
	"github.com/mlxlua/mlxlua/metal/testdevice"
	"github.com/mlxlua/mlxlua/tensor"
)

// runKernels runs so many kernels of different sources, from a number on.
func runKernels(t *testing.T, s *State, body string, from, n int) error {
	_, err := s.Run(t.Context(), strings.NewReader(`local body, from, n = ...
		for i = from, from + n - 1 do
			local k = mx.fast.metal_kernel{name = "k", input_names = {"x"}, output_names = {"o"},
				source = body:gsub("NUMBER", i)}
			mx.eval(k{inputs = {mx.ones({64})}, grid = {64, 1, 1}, threadgroup = {32, 1, 1}, output_shapes = {{64}},
				output_dtypes = {mx.float32}})
		end`), "kernels", lua.LString(body), lua.LNumber(from), lua.LNumber(n))
	return err
}

// kernelBodies are bodies of kernels that take memory in different ways.
var kernelBodies = map[string]string{
	"short":    `o[thread_position_in_grid.x] = x[thread_position_in_grid.x] + NUMBER;`,
	"comments": `o[thread_position_in_grid.x] = NUMBER;` + strings.Repeat("/* long */", 2000),
	"math": `float v = x[thread_position_in_grid.x] + NUMBER;
		v = exp(v) + tanh(v) + pow(v, 3.0f); o[thread_position_in_grid.x] = v;`,
}

// TestLibrariesWeighWhatTheyTake: what a device says that its kernels take is what Go's heap grows by, within a factor
// of two, and it comes back when the state is closed. Pages of machine code are beside the heap.
func TestLibrariesWeighWhatTheyTake(t *testing.T) {
	serial.Because(t, "it measures the process's memory")
	testdevice.NeedsCPU(t, "it is about machine code")
	if alone(t) {
		return
	}
	const many, noise, pages = 20, 200 << 10, 16 << 10
	dev, err := tensor.MetalDevice(tensor.DefaultDevice())
	require.NoError(t, err)
	for name, body := range kernelBodies {
		before, _ := dev.LibraryBytes()
		s := New(Options{Sandbox: true})
		require.NoError(t, runKernels(t, s, body, 0, 3))
		took, use := collected(), s.looks.holder.Libraries().Use()
		require.NoError(t, runKernels(t, s, body, 100, many))
		took = collected() - took
		now := s.looks.holder.Libraries().Use()
		require.Equal(t, use.Libraries+many, now.Libraries)
		weighed := now.Bytes - use.Bytes
		t.Logf("%-8s takes %6d bytes of Go's heap, measured %6d", name, took/many, weighed/many)
		require.Less(t, took, 2*weighed+noise, name)
		require.Less(t, weighed, 2*took+noise+many*pages, name)
		s.Close()
		require.Equal(t, metal.LibraryUse{}, s.looks.holder.Libraries().Use())
		after, _ := dev.LibraryBytes()
		require.Less(t, after-before, int64(300<<10), "but for built-in kernels nothing stays")
	}
}

// TestLibrariesCountForTheState: kernels count as the script's memory. Where that is full they are given up, which is
// no error: they are compiled again when they are needed.
func TestLibrariesCountForTheState(t *testing.T) {
	serial.Because(t, "other states take shares of the device's libraries")
	testdevice.NeedsCPU(t, "it is about machine code")
	const limit = 4 << 20
	s := New(Options{Sandbox: true, Limits: Limits{Limits: lua51.Limits{Memory: limit}}})
	defer s.Close()
	libraries := s.looks.holder.Libraries()
	for i := 0; libraries.Made() <= 2*limit; i++ { // the bytes of a kernel differ by executor
		require.Less(t, i, 100, "the kernels made do not count")
		require.NoError(t, runKernels(t, s, kernelBodies["comments"], 20*i, 20))
		require.Less(t, libraries.Use().Bytes, int64(limit))
	}
	require.NoError(t, runKernels(t, s, kernelBodies["comments"], 0, 3))
	_, err := s.Run(t.Context(), strings.NewReader(`local kept = {} for i = 1, 1e5 do kept[i] = {i} end`), "full")
	require.ErrorContains(t, err, "the script's memory is full")
	require.Zero(t, libraries.Use().Libraries, "first the kernels go")
}

// TestRecordingsCountForTheState: what compiled functions have recorded counts as the script's memory. Where that is
// full it is given up, which is no error: calls are recorded again.
func TestRecordingsCountForTheState(t *testing.T) {
	serial.Because(t, "other states take shares of the device's libraries")
	s := New(Options{Sandbox: true, Limits: Limits{Limits: lua51.Limits{Memory: 4 << 20}}})
	defer s.Close()
	run := func(text string) (string, error) {
		out, err := s.Run(t.Context(), strings.NewReader(text), "recorded")
		if err != nil || len(out) == 0 {
			return "", err
		}
		return out[0].String(), nil
	}
	const calls = `for _ = 1, 3 do mx.eval(f(mx.ones({8}))) end
		return tostring(f(mx.ones({8}))) .. f:explain():match("[^\n]*recorded: [^\n]*")`
	first, err := run(`f = mx.compile(function(x) for i = 1, 60 do x = mx.sum(x * 0.5, nil, true) + x end return x end)
		` + calls)
	require.NoError(t, err)
	require.Contains(t, first, "as one node")
	k, _ := unwrap[*compiledFunction](s.L.GetGlobal("f"))
	before := k.f.Bytes()
	_, err = run(`local kept = {} for i = 1, 1e5 do kept[i] = {i} end`)
	require.ErrorContains(t, err, "memory")
	require.False(t, k.f.Recorded())
	require.Less(t, k.f.Bytes(), before-20<<10)
	again, err := run(calls)
	require.NoError(t, err)
	require.Contains(t, again, "as one node")
	require.True(t, k.f.Recorded())
}

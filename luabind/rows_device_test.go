package luabind

import (
	"context"
	"encoding/json"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/stretchr/testify/require"
	lua "github.com/yuin/gopher-lua"

	"github.com/mlxlua/mlxlua/internal/serial"
	"github.com/mlxlua/mlxlua/metal/testdevice"
)

// Devices are counted and compared, streams are made on them.
func TestDevices(t *testing.T) {
	serial.Because(t, "it clears the streams of the process")
	testdevice.NeedsCPU(t, "it counts the devices of a program that has opened no other")
	s := newTestState(t)
	for script, want := range map[string]string{
		"mx.Device(mx.cpu)":                                 "Device(cpu, 0)",
		"mx.Device(mx.gpu, 3)":                              "Device(gpu, 3)",
		"mx.Device(mx.gpu, 3).type == mx.gpu":               "true",
		"mx.Device(mx.gpu, 3).index":                        "3",
		"mx.Device(mx.cpu) == mx.default_device()":          "true",
		"mx.device_count(mx.cpu)":                           "1",
		"mx.is_available(mx.Device(mx.cpu, 1))":             "false",
		"mx.ones({1}):astype(mx.int8, mx.cpu)":              "array([1], dtype=int8)",
		"mx.array({1, 2, 4}):std{correction = 1}":           "array(1.52753, dtype=float32)",
		"mx.array({1, 2, 4}):var{ddof = 2, correction = 0}": "array(1.55556, dtype=float32)",
		"mx.is_available(mx.cpu)":                           "true",
		"next(mx.device_info(mx.gpu))":                      "nil",
		"mx.device_info(mx.Device(mx.cpu, 1)).device_name == mx.device_info().device_name": "true",
		"mx.new_thread_local_stream(mx.cpu).device":                                        "Device(cpu, 0)",
		"mx.new_thread_unsafe_stream(mx.cpu).device":                                       "Device(cpu, 0)",
		"mx.new_stream(mx.cpu) == mx.default_stream(mx.cpu)":                               "false",
		"mx.set_wired_limit(100) + mx.metal.set_wired_limit(0)":                            "100",
		"mx.metal.get_peak_memory() == mx.get_peak_memory()":                               "true",
		"mx.asarray({1, 2}, mx.int32)":                                                     "array([1, 2], dtype=int32)",
		"mx.asarray(mx.ones({1}, mx.int8), {copy = true})":                                 "array([1], dtype=int8)",
		"mx.ones({2, 3}):view(mx.uint16).shape":                                            "(2, 6)",
		"mx.left_shift(mx.array({1, 2}, mx.uint8), 3)":                                     "array([8, 16], dtype=uint8)",
		"mx.add(mx.ones({1}), 1, mx.gpu)":                                                  "array([2], dtype=float32)",
		"mx.ones({2}, {stream = mx.gpu})":                                                  "array([1, 1], dtype=float32)",
		"mx.stream(mx.gpu, mx.default_device)":                                             "Device(cpu, 0)",
		"mx.synchronize(mx.gpu)":                                                           "nil",
		"mx.is_available(mx.gpu) or mx.device_count(mx.gpu)":                               "0",
		"(select(2, mx.divmod(mx.array({7, 8}), 4)))":                                      "array([3, 0], dtype=float32)",
		"mx.depends({mx.ones({1}), mx.zeros({1})}, mx.ones({2}))[2]":                       "array([0], dtype=float32)",
		"mx.array_equal(mx.ones({2}), 1) ":                                                 "array(False, dtype=bool)",
		"mx.array(2.55):round(1)":                                                          "array(2.6, dtype=float32)",
	} {
		require.Equal(t, want, asked(t, s, "return tostring((%s))", script).String(), script)
	}
	got := asked(t, s, `mx.set_default_stream(mx.new_stream(mx.cpu)) mx.clear_streams()
		return mx.default_stream(mx.cpu) == mx.default_stream(mx.default_device())`)
	require.Equal(t, lua.LTrue, got)
	for script, want := range map[string]string{
		"mx.add(mx.ones({1}), 1, 2)":               "[add] got 3 arguments, it takes 2: a, b, stream",
		"mx.dim(mx.ones({1}), 0, mx.cpu)":          "[dim] got 3 arguments, it takes 2: a, axis",
		"mx.ones({1}, nil, mx.Device(mx.cpu, 7))":  "[ones] stream is Device(cpu, 7): no device",
		"mx.Device('cpu')":                         `[Device] type is the string "cpu", want a device such as mx.cpu`,
		"mx.device_count(1)":                       "[device_count] device_type is the number 1, want a device",
		"mx.new_stream(mx.Device(mx.cpu, 9))":      "[new_stream] no device Device(cpu, 9) is open",
		"mx.set_default_device(mx.gpu)":            "[set_default_device] device is Device(gpu, 0): no device",
		"mx.new_stream(mx.gpu)":                    "[new_stream] no device Device(gpu, 0) is open",
		"mx.default_stream(mx.gpu)":                "[default_stream] no device Device(gpu, 0) is open",
		"mx.add(1, 1, mx.Device(mx.gpu, 1))":       "[add] stream is Device(gpu, 1): no device",
		"mx.set_wired_limit(-1)":                   "[set_wired_limit] limit is -1, want a number of bytes",
		"mx.asarray(mx.ones({1}), {copy = false})": "[asarray] a is an array float32 (1,): no array shares memory",
	} {
		_, err := s.Run(context.Background(), strings.NewReader("local mx = require('mx') "+script), "devices")
		require.ErrorContains(t, err, want, script)
	}
}

// A range may have its stop alone by name.
func TestArangeByName(t *testing.T) {
	t.Parallel()
	s := newTestState(t)
	for script, want := range map[string]string{
		"mx.arange{stop = 2, step = 0.5}":        "array([0, 0.5, 1, 1.5], dtype=float32)",
		"mx.arange{stop = 3}":                    "array([0, 1, 2], dtype=int32)",
		"mx.arange(-3, {step = -1})":             "array([0, -1, -2], dtype=int32)",
		"mx.arange{stop = 2, step = 2^40}":       "array([0], dtype=int64)",
		"mx.arange(0, -10, -math.huge)":          "array([0], dtype=float32)",
		"mx.arange{start = 1, stop = 3}":         "array([1, 2], dtype=int32)",
		"select(2, pcall(mx.arange, {step=1}))":  "asked:1: [arange] stop is missing",
		"select(2, pcall(mx.arange, {start=1}))": "asked:1: [arange] start is 1, and stop is missing",
	} {
		require.Equal(t, want, asked(t, s, "return tostring((%s))", script).String(), script)
	}
}

// NaN and infinities that are assigned to integers become what astype makes of them.
func TestAssignedNaN(t *testing.T) {
	t.Parallel()
	s := newTestState(t)
	for _, d := range []string{"int8", "uint8", "int32", "uint32", "int64", "uint64"} {
		got := asked(t, s, `local x = mx.zeros({4}, mx.%[1]s)
			x[0], x[1], x[2] = mx.nan, mx.inf, -mx.inf
			x = x:at(3):set(mx.nan)
			return mx.array_equal(x, mx.array({mx.nan, mx.inf, -mx.inf, mx.nan}):astype(mx.%[1]s)):item()`, d)
		require.Equal(t, lua.LTrue, got, d)
	}
}

// async_eval has no place in a function that a transform calls, as in MLX; eval may stand where it is differentiated.
func TestAsyncEvalInTransforms(t *testing.T) {
	t.Parallel()
	s := newTestState(t)
	for _, transform := range []string{"grad", "vmap", "compile"} {
		got := asked(t, s, `local ok, e = pcall(mx.%s(function(x) local y = x + 1 mx.async_eval(y) return y:sum() end),
			mx.ones({2})) return not ok and tostring(e)`, transform)
		require.Contains(t, got.String(), "[async_eval] not in a function that is differentiated, mapped or compiled")
	}
	got := asked(t, s, `local f = mx.grad(function(x) local y = x + 1 mx.eval(y) return (y * y):sum() end)
		return f(mx.array({2})):item()`)
	require.Equal(t, lua.LNumber(6), got)
}

// A function that is transformed and returns an argument that it is not differentiated by returns that very value: to
// free the one is to free the other, and neither by surprise.
func TestLentArgumentsStay(t *testing.T) {
	t.Parallel()
	s := newTestState(t)
	got := asked(t, s, `local x, y, seen = mx.ones({2}), mx.ones({2})
		local values = mx.value_and_grad(function(x, y) seen = y return (x * y):sum(), y, x end)(x, y)
		local free = values[3] x:free()
		return rawequal(values[2], y) and rawequal(seen, y) and mx.sum(free):item() == 2`)
	require.Equal(t, lua.LTrue, got)
}

// Each buffer counts once, whatever arrays lie in it.
func TestBufferSizes(t *testing.T) {
	t.Parallel()
	s := newTestState(t)
	require.Equal(t, lua.LNumber(12000), asked(t, s, `local x, y = mx.arange(1000) + 0.5, mx.arange(2000) + 0.5
		mx.eval(x, y)
		local z = x["::2"] mx.eval(z)
		return mx.get_array_buffer_size(x, {y, {a = z}, 3})`))
	_, err := s.Run(context.Background(), strings.NewReader("mx.get_array_buffer_size(mx.arange(1000) + 1)"), "sizes")
	require.ErrorContains(t, err, "[get_array_buffer_size]")
	require.ErrorContains(t, err, "is not evaluated")
}

// A capture is a timeline that ends with another call.
func TestCapture(t *testing.T) {
	serial.Because(t, "a capture is that of the process")
	s := newTestState(t)
	path := filepath.Join(t.TempDir(), "capture.json")
	asked(t, s, `mx.metal.start_capture(%q) mx.eval(mx.arange(3000) * 2)
		assert(not pcall(mx.metal.start_capture, "other")) mx.metal.stop_capture() return 1`, path)
	text, err := os.ReadFile(path)
	require.NoError(t, err)
	var timeline struct{ TraceEvents []struct{ Name string } }
	require.NoError(t, json.Unmarshal(text, &timeline))
	require.NotEmpty(t, timeline.TraceEvents)
	for script, want := range map[string]string{
		"mx.metal.stop_capture()":                "[metal.stop_capture] no capture is under way",
		"mx.metal.start_capture('" + path + "')": "exists",
	} {
		_, err := s.Run(context.Background(), strings.NewReader("local mx = require('mx') "+script), "capture")
		require.ErrorContains(t, err, want, script)
	}
}

// A mask without dimensions stands for all elements or none, as in MLX.
func TestMaskOfOneElement(t *testing.T) {
	t.Parallel()
	s := newTestState(t)
	for script, want := range map[string]string{
		"mx.array(false)] = 5":                      "array([[0, 0, 0],\n       [0, 0, 0]], dtype=float32)",
		"mx.array(true)] = mx.array({1, 2, 3})":     "array([[1, 2, 3],\n       [1, 2, 3]], dtype=float32)",
		"mx.array(true)] = mx.array({{{1, 2, 3}}})": "array([[1, 2, 3],\n       [1, 2, 3]], dtype=float32)",
	} {
		require.Equal(t, want, asked(t, s, "local x = mx.zeros({2, 3}) x[%s return tostring(x)", script).String())
	}
	script := "mx.zeros({2, 3})[mx.array(true)] = mx.zeros({2, 2, 3})"
	_, err := s.Run(context.Background(), strings.NewReader(script), "mask")
	require.ErrorContains(t, err, "updates are 2 for the one place of a mask without dimensions")
	_, err = s.Run(context.Background(), strings.NewReader("return mx.zeros({2, 3})[':4294967296']"), "slice")
	require.ErrorContains(t, err, "is no integer, slice")
}

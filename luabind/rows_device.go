package luabind

import (
	"os"
	"strings"

	lua "github.com/yuin/gopher-lua"

	"github.com/mlxlua/mlxlua/metal"
	"github.com/mlxlua/mlxlua/tensor"
)

// deviceRows are the functions that tell of devices, and further streams.
var deviceRows = []row{
	{name: "Device", sig: "type:value index:int=0", help: "The device of a type, that of mx.cpu or mx.gpu, with that " +
		"number. It has the fields type, which is the first device of its type, and index.",
		call: func(a *args) any {
			d := a.deviceArg(0)
			d.Index = a.Int(1)
			return a.s.userdata(deviceKind, d)
		}},
	{name: "device_count", sig: "device_type:value",
		help: "How many devices of a type, that of mx.cpu or mx.gpu, are open.",
		call: func(a *args) any {
			kind, n := a.deviceArg(0).Kind, 0
			for _, d := range tensor.Devices() {
				if d.Kind == kind {
					n++
				}
			}
			return lua.LNumber(n)
		}},
	{name: "is_available", sig: "device:value", help: "Whether a device is open.",
		call: func(a *args) any { return lua.LBool(isOpen(a.deviceArg(0))) }},
	{name: "new_thread_local_stream", sig: "device:value",
		help: "A new stream, as mx.new_stream makes: a Lua state is one " +
			"thread, so that each of its streams is its thread's own.", call: newStream},
	{name: "new_thread_unsafe_stream", sig: "device:value",
		help: "A new stream, as mx.new_stream makes: all streams may " +
			"be used by any thread.", call: newStream},
	{name: "clear_streams", sig: "", help: "Waits until all streams have done their work, and makes the default " +
		"device's default stream that of this Lua state's operations.",
		call: func(a *args) any {
			if err := tensor.Synchronize(a.s.Context()); err != nil {
				a.s.raise(err)
			}
			a.s.stream = nil
			return nil
		}},
	{name: "set_wired_limit", sig: "limit:number",
		help: "How many bytes of arrays the system is asked to keep in memory, " +
			"and gives the number before. Only Apple's GPUs have pages that can be kept: it changes nothing elsewhere.",
		call: func(a *args) any {
			n := a.Number(0)
			if !(n >= 0) {
				a.fail("limit is %v, want a number of bytes", n)
			}
			before := a.s.wired
			a.s.wired = n
			return lua.LNumber(before)
		}},
	{name: "get_array_buffer_size", sig: "args:tree...",
		help: "The bytes of the buffers that the arrays in any number of " +
			"trees lie in, each buffer counted once. An array that is not evaluated is an error. Small arrays that were made " +
			"from data have no buffer; their own bytes are counted.",
		call: func(a *args) any {
			n, err := tensor.BufferBytes(a.s.arraysIn("get_array_buffer_size", a.rest)...)
			if err != nil {
				a.s.raise(err)
			}
			return lua.LNumber(n)
		}},
	{name: "metal.start_capture", sig: "path:string",
		help: "Begins to record when calls were built, planned, compiled and " +
			"run, on every stream, until mx.metal.stop_capture: see mx.timeline. On a Mac's GPU a path that ends in " +
			".gputrace has Metal record, for Xcode, in a program that is started with MTL_CAPTURE_ENABLED=1.",
		call: startCapture},
	{name: "metal.stop_capture", sig: "", help: "Ends what mx.metal.start_capture began, and writes the file.",
		call: stopCapture},
}

// isOpen reports whether work can run on a device.
func isOpen(d tensor.DeviceID) bool {
	_, err := tensor.MetalDevice(d)
	return err == nil
}

// deviceArg is the device that argument i is.
func (a *args) deviceArg(i int) tensor.DeviceID {
	d, ok := unwrap[tensor.DeviceID](a.raw[i])
	if !ok {
		a.fail("%s is %s, want a device such as mx.cpu", a.f.params[i].Name, describe(a.raw[i]))
	}
	return d
}

// newStream makes a stream on the device that argument 0 is.
func newStream(a *args) any {
	st, err := tensor.NewStream(a.deviceArg(0))
	if err != nil {
		a.s.raise(err)
	}
	return a.s.userdata(streamKind, st)
}

// recording is a timeline, or a capture of the device's system, between start_capture and stop_capture.
type recording struct {
	path string
	end  func() error
}

func startCapture(a *args) any {
	if !a.s.files {
		a.fail("this state has no access to files")
	}
	if a.s.recording != nil {
		a.fail("a capture to %s is under way", quote(a.s.recording.path))
	}
	if _, err := os.Stat(a.Text(0)); err == nil {
		a.fail("the file %s exists", quote(a.Text(0)))
	}
	if c, ok := metal.Capability[metal.Capturer](a.device()); ok && strings.HasSuffix(a.Text(0), ".gputrace") {
		if err := c.StartCapture(a.Text(0)); err != nil {
			a.s.raise(err)
		}
		a.s.recording = &recording{path: a.Text(0), end: c.StopCapture}
		return nil
	}
	t, err := tensor.StartTimeline()
	if err != nil {
		a.s.raise(err)
	}
	path := a.Text(0)
	a.s.recording = &recording{path: path, end: func() error {
		t.Stop()
		return t.Save(path)
	}}
	return nil
}

func stopCapture(a *args) any {
	r := a.s.recording
	if r == nil {
		a.fail("no capture is under way: mx.metal.start_capture(path) begins one")
	}
	a.s.recording = nil
	_ = tensor.Synchronize(a.s.Context()) // a cancelled script's timeline ends early
	if err := r.end(); err != nil {
		a.s.raise(err)
	}
	return nil
}

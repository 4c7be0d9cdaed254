package luabind

import (
	lua "github.com/yuin/gopher-lua"
	"slices"

	"github.com/mlxlua/mlxlua/tensor"
)

// evalRows evaluate any number of trees.
var evalRows = []row{
	{name: "eval", sig: "args:tree...",
		help: "Computes the arrays in any number of trees, and what they depend on, and waits for them. The first " +
			"error is raised.",
		call: func(a *args) any {
			xs := a.s.arraysIn("eval", a.rest)
			a.s.looks.ifDue(xs...)
			if err := tensor.Eval(a.s.Context(), xs...); err != nil {
				a.s.raise(err)
			}
			return nil
		}},
	{name: "async_eval", sig: "args:tree...",
		help: "Hands the arrays in any number of trees over to their streams and returns at once, unless 128 earlier " +
			"calls are unfinished: then it waits for half of those. It has no place in a function that is differentiated, " +
			"mapped or compiled. Errors are raised where a value is read, and those of " +
			"values that nobody read by mx.synchronize or where the program ends.",
		call: func(a *args) any {
			xs := a.s.arraysIn("async_eval", a.rest)
			if slices.ContainsFunc(xs, tensor.Traced) {
				a.fail("not in a function that is differentiated, mapped or compiled: to have a value while a function is " +
					"differentiated, call mx.eval")
			}
			a.s.looks.ifDue(xs...)
			w, err := tensor.Submit(xs...)
			if err != nil {
				a.s.raise(err)
			}
			a.s.looks.holder.HandedOver()
			if err := a.s.work.add(a.s.Context(), w); err != nil {
				a.s.raise(err)
			}
			return nil
		}},
}

// streamRows are the functions of devices, streams and memory.
var streamRows = []row{
	{name: "default_device", sig: "",
		help: "The device where operations run that are given no stream.", call: func(a *args) any {
			if a.s.stream != nil {
				return a.s.userdata(deviceKind, a.s.stream.Device())
			}
			return a.s.userdata(deviceKind, tensor.DefaultDevice())
		}},
	{name: "default_stream", sig: "device:value",
		help: "The stream of operations that are given none, on that device.", call: func(a *args) any {
			d, ok := unwrap[tensor.DeviceID](a.raw[0])
			if !ok {
				a.fail("device is %s, want a device such as mx.cpu", describe(a.raw[0]))
			}
			if a.s.stream != nil && a.s.stream.Device() == d {
				return a.s.userdata(streamKind, a.s.stream)
			}
			st, err := deviceStream(a.s, d)
			if err != nil {
				a.fail("%w", err)
			}
			return a.s.userdata(streamKind, st)
		}},
	{name: "set_default_device", sig: "device:value",
		help: "Makes the default stream of a device the stream of this Lua " +
			"state's operations.", call: setStream},
	{name: "set_default_stream", sig: "stream:value",
		help: "Makes a stream, or a device's default stream, the stream of this " +
			"Lua state's operations.", call: setStream},
	{name: "new_stream", sig: "device:value",
		help: "A new stream on a device: a queue of work that runs beside that of other streams.",
		call: newStream},
	{name: "stream", sig: "s:value f:any",
		help: "Calls f with s, a stream or a device, as the default of its operations, gives its results, and puts " +
			"the old default back, also after an error. Where no GPU is open, work for mx.gpu runs on the default device, " +
			"here and wherever an operation is given a stream; mx.is_available(mx.gpu) tells.", call: withStream, through: true},
	{name: "synchronize", sig: "stream:value?",
		help: "Waits until a stream (none given: all, in a sandbox those of the script) has done the work that it was " +
			"given so far. " +
			"The first error of what this script handed over to mx.async_eval is raised, unless it was already.",
		call: func(a *args) any {
			var streams []*tensor.Stream
			if a.raw[0] != lua.LNil {
				st, err := toWorkStream(a.s, a.raw[0])
				if err != nil {
					a.fail("stream %v", err)
				}
				streams = append(streams, st)
			} else if a.s.own != nil { // others' work is none of its business
				streams = ownStreams(a.s)
			}
			if err := tensor.Synchronize(a.s.Context(), streams...); err != nil {
				a.s.raise(err)
			}
			if err := a.s.work.failure(); err != nil {
				a.s.raise(err)
			}
			return nil
		}},
}

// setStream sets the state's stream; nil stands for the default one of the default device.
func setStream(a *args) any {
	st, err := toStream(a.s, a.raw[0])
	if err != nil {
		a.fail("%s %w", a.f.params[0].Name, err)
	}
	if main, err := tensor.DefaultStream(tensor.DefaultDevice()); err == nil && main == st {
		st = nil
	}
	a.s.stream = st
	return nil
}

// withStream runs a function with a stream as the state's default, which is put back also after an error.
func withStream(a *args) any {
	s := a.s
	st, err := toWorkStream(a.s, a.raw[0])
	if err != nil {
		a.fail("s %v", err)
	}
	fn := a.callable(1)
	old := s.stream
	s.stream = st
	defer func() { s.stream = old }()
	return s.results(fn)
}

package luabind

import (
	"math"
	"strings"

	lua "github.com/yuin/gopher-lua"

	"github.com/mlxlua/mlxlua/metal"
	"github.com/mlxlua/mlxlua/tensor"
	"github.com/mlxlua/mlxlua/tensor/ops/sig"
)

// memoryRow is a row of a figure of the default device's memory, in bytes. A script in a sandbox has that of its own
// arrays, and the limit of these: it is not told what others hold, nor what is kept for all.
func memoryRow(name, help string, figure func(st metal.Stats) int64) row {
	return row{name: name, sig: "", help: help, call: func(a *args) any {
		if a.s.opt.Sandbox {
			// What is dead, and what work held that is done, counts no more, whenever the engine comes to it.
			if err := tensor.Synchronize(a.s.Context(), ownStreams(a.s)...); err != nil {
				a.s.raise(err)
			}
			a.s.looks.now()
			own := a.s.looks.holder.Account()
			return lua.LNumber(figure(metal.Stats{Active: own.Used(), Peak: own.Peak(), Limit: own.Limit()}))
		}
		return lua.LNumber(figure(a.device().Memory()))
	}}
}

// limitRow is a row of a limit in bytes; it gives the one before.
func limitRow(name, help string, set func(d *metal.Device, n int64) int64) row {
	return row{name: name, sig: "limit:number", help: help, call: func(a *args) any {
		n := a.Number(0)
		if !(n >= 0) {
			a.fail("limit is %v, want a number of bytes", n)
		}
		return lua.LNumber(set(a.device(), int64(min(n, math.MaxInt64/2))))
	}}
}

// memoryRows are the functions of memory and of the device's model.
var memoryRows = []row{
	memoryRow("get_active_memory", "The bytes that live arrays and queued work hold on the default device; in a "+
		"sandbox, those of the script.",
		func(st metal.Stats) int64 { return st.Active }),
	memoryRow("get_peak_memory", "The most that get_active_memory was since the start or the last reset_peak_memory.",
		func(st metal.Stats) int64 { return st.Peak }),
	memoryRow("get_cache_memory", "The bytes that are kept for reuse and that clear_cache gives back; in a sandbox 0, "+
		"as they are no script's own.",
		func(st metal.Stats) int64 { return st.Cache }),
	memoryRow("get_memory_limit", "The limit of active and cached bytes; in a sandbox, that of the script's arrays.",
		func(st metal.Stats) int64 { return st.Limit }),
	limitRow("set_memory_limit", "Limits the bytes held on the default device, and gives the limit before. An allocation "+
		"past the limit is an error that a script can catch.", (*metal.Device).SetMemoryLimit),
	limitRow("set_cache_limit", "Limits the bytes kept for reuse, and gives the limit before; 0 keeps none.",
		(*metal.Device).SetCacheLimit),
	{name: "set_threads", sig: "n:int", help: "Has kernels run on n threads of the processor, from the next one on, and " +
		"gives the number before: between 1 and device_info().threads at the start, as many as the process may use. No " +
		"result depends on it. A default device that is no processor is an error.", call: func(a *args) any {
		before, err := a.device().SetThreads(a.Int(0))
		if err != nil {
			return err
		}
		return lua.LNumber(before)
	}},
	{name: "reset_peak_memory", sig: "", help: "Starts the count of get_peak_memory anew.", call: func(a *args) any {
		if a.s.opt.Sandbox {
			a.s.looks.holder.Account().ResetPeak()
			return nil
		}
		a.device().ResetPeak()
		return nil
	}},
	{name: "clear_cache", sig: "", help: "Gives the bytes kept for reuse back to the system. A script in a " +
		"sandbox has none.", call: func(a *args) any {
		if !a.s.opt.Sandbox {
			a.device().ClearCache()
		}
		return nil
	}},
	{name: "metal.is_available", sig: "", help: "Whether kernels can run: true wherever a device is open, as all run " +
		"Metal source.", call: func(*args) any {
		_, err := tensor.MetalDevice(tensor.DefaultDevice())
		return lua.LBool(err == nil)
	}},
	{name: "metal.device_info", sig: "", help: "A table that describes the default device: device_name, architecture, " +
		"version, memory_size, threads, max_buffer_length, max_threadgroup_memory and " +
		"max_threads_per_threadgroup.", call: deviceInfo},
	{name: "device_info", sig: "d:value?", help: "The same as mx.metal.device_info, of a device if one is given: an " +
		"empty table of a GPU that is not there. There is one CPU, whatever its index.",
		call: func(a *args) any {
			if a.raw[0] == lua.LNil {
				return deviceInfo(a)
			}
			d, ok := unwrap[tensor.DeviceID](a.raw[0])
			if !ok {
				a.fail("d is %s, want a device such as mx.cpu", describe(a.raw[0]))
			}
			if d.Kind == tensor.CPU {
				d.Index = 0
			}
			device, err := tensor.MetalDevice(d)
			if err != nil {
				return a.s.NewTable(0, 0)
			}
			return a.infoOf(device)
		}},
	{name: "metal.library_cache", sig: "", help: "A table of the counters of compiled kernel libraries: hits, misses, " +
		"evictions, size, capacity, pinned. In a sandbox all are 0, as the libraries are no script's own.",
		call: libraryCache},
	{name: "metal.validate", sig: "on:bool=true", help: "Switches the validation of kernels on or off and says whether " +
		"it was on: uninitialised memory, races, lost references and missing barriers are then errors.",
		call: func(a *args) any {
			d := a.device()
			before := d.Validating()
			d.SetValidate(a.Bool(0))
			return lua.LBool(before)
		}},
	{name: "memory.live", sig: "", help: "A list of what holds memory on the default device, oldest first, after a " +
		"garbage collection: tables of op (the function that made it), line (of the script, where it is known), nbytes " +
		"(what it costs), and for arrays shape and dtype. Arrays of up to 64 bytes that were made from data are not among " +
		"them: they need no memory of the device.", call: liveMemory},
	{name: "check_nan", sig: "on:bool=true", help: "Switches the search for NaNs on or off and says whether it was on. " +
		"Each operation then runs by itself, and the first one whose output has a NaN where no input has one, or an " +
		"infinity where no input has that or a NaN, is an error with its line " +
		"and the element's index. Evaluation is slow meanwhile.",
		call: func(a *args) any { return lua.LBool(tensor.CheckNaN(a.Bool(0))) }},
	{name: "timeline", sig: "file:string f:any", help: "Calls f, gives its results, and writes to a file when calls " +
		"were built, claimed, planned, recorded, compiled, run and waited for, on every stream, also after an error. " +
		"Chrome's about:tracing and Perfetto show it. The file is there as a whole or not at all.",
		call: timelineCall, through: true},
	profileRow,
}

// metalMemory are the functions of memory under the names below mx.metal that they had first.
func metalMemory() []row {
	var out []row
	for _, r := range append(memoryRows[:len(memoryRows):len(memoryRows)], deviceRows...) {
		switch name := "metal." + r.name; {
		case r.name == "is_available" || r.name == "device_info": // others, of the same names
		case sig.MLXName(name) != nil && !strings.Contains(r.name, "."):
			r.name, r.help = name, "The same as mx."+r.name+"."
			out = append(out, r)
		}
	}
	return out
}

// liveMemory is mx.memory.live().
func liveMemory(a *args) any {
	d := a.device()
	if err := tensor.Synchronize(a.s.Context()); err != nil {
		a.s.raise(err)
	}
	a.s.looks.collect()
	live := d.Live()
	out := a.s.NewTable(len(live), 0)
	for _, b := range live {
		fields := map[string]any{"op": b.Origin.Op, "nbytes": b.Bytes}
		if place := b.Origin.Place.String(); place != "" {
			fields["line"] = place
		}
		if b.Origin.Shape != nil {
			fields["dtype"] = b.Origin.Type
		}
		of := a.s.record(fields)
		if b.Origin.Shape != nil {
			of.RawSetString("shape", a.s.shapeTable(b.Origin.Shape))
		}
		out.Append(of)
	}
	return out
}

// timelineCall is mx.timeline(file, f).
func timelineCall(a *args) any {
	s, fn := a.s, a.callable(1)
	if !s.files {
		a.fail("this state has no access to files")
	}
	t, err := tensor.StartTimeline()
	if err != nil {
		s.raise(err)
	}
	span := tensor.BeginSpan("Lua", "f")
	ended := false
	end := func() error {
		ended = true
		span.End(a.Ctx.Place)
		_ = tensor.Synchronize(s.Context()) // a cancelled script's timeline ends early
		t.Stop()
		return t.Save(a.Text(0))
	}
	defer func() {
		if !ended { // f's error is the one to tell
			_ = end()
		}
	}()
	out := s.results(fn)
	if err := end(); err != nil {
		s.raise(err)
	}
	return out
}

// device is the default device.
func (a *args) device() *metal.Device {
	d, err := tensor.MetalDevice(tensor.DefaultDevice())
	if err != nil {
		a.fail("%w", err)
	}
	return d
}

// record is a table of names and numbers or strings.
func (s *State) record(fields map[string]any) *lua.LTable {
	t := s.NewTable(0, len(fields))
	for name, v := range fields {
		x, err := s.ToLua(v)
		if err != nil {
			s.raise(err)
		}
		t.RawSetString(name, x)
	}
	return t
}

func deviceInfo(a *args) any { return a.infoOf(a.device()) }

func (a *args) infoOf(d *metal.Device) any {
	info := d.Info()
	return a.s.record(map[string]any{"device_name": info.Name, "architecture": info.Kind, "version": info.Version,
		"memory_size": info.Memory, "threads": info.Threads, "max_buffer_length": info.Limits.MaxBufferBytes,
		"max_threadgroup_memory":      info.Limits.ThreadgroupMemory,
		"max_threads_per_threadgroup": info.Limits.ThreadsPerGroup})
}

func libraryCache(a *args) any {
	var st metal.LibraryStats
	if !a.s.opt.Sandbox {
		st = a.device().LibraryStats()
	}
	return a.s.record(map[string]any{"hits": st.Hits, "misses": st.Misses, "evictions": st.Evictions, "size": st.Size,
		"capacity": st.Cap, "pinned": st.Pinned})
}

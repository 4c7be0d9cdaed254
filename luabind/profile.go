package luabind

import (
	lua "github.com/yuin/gopher-lua"

	"github.com/mlxlua/mlxlua/tensor"
)

// profileRow is mx.profile.
var profileRow = row{name: "profile", sig: "f:any rows:int=25",
	help: "Calls f, evaluates the arrays that it returns, and measures where the time goes meanwhile: a profile, and " +
		"behind it f's results. print(p) shows a table of the rows that took longest, as many as rows says. A row is an " +
		"op, or several that were fused into one kernel (the last one first), the kernel, and the line of the call; its " +
		"bytes are what the calls read and write (of an array that is changed in place, as by slice_update, the " +
		"part that changes), copied is how many calls could not change it in place and have copied it, since " +
		"something else may read it, its GFLOP/s count the operations on numbers of products, convolutions, " +
		"transforms, element-wise ops and reductions. p.rows lists all rows as tables with op, kernel, line, calls, " +
		"copied, time in seconds, bytes and flops; p.time is the time of it all. Each kernel is waited for by the next " +
		"one meanwhile, as always; mx.timeline shows when what happened.",
	call: profileCall, through: true}

func profileCall(a *args) any {
	s, fn, most := a.s, a.callable(0), a.Int(1)
	if most < 1 {
		a.fail("rows is %d, want 1 or more", most)
	}
	p, err := tensor.StartProfile()
	if err != nil {
		s.raise(err)
	}
	defer p.Stop()
	out := s.results(fn)
	xs := s.arraysIn("profile", out)
	if err := tensor.Eval(s.Context(), xs...); err != nil {
		s.raise(err)
	}
	if err := tensor.Synchronize(s.Context()); err != nil { // what f handed over to async_eval
		s.raise(err)
	}
	p.Stop()
	return append(values{profileTable(s, p, most)}, out...)
}

// profileTable is a profile as scripts have it.
func profileTable(s *State, p *tensor.Profile, most int) *lua.LTable {
	rows := p.Rows()
	list := s.NewTable(len(rows), 0)
	for _, r := range rows {
		fields := map[string]any{"op": r.Op, "kernel": r.Kernel, "calls": r.Calls, "copied": r.Copied,
			"time": r.Time.Seconds(), "bytes": r.Bytes, "flops": r.Flops}
		if line := r.Place.String(); line != "" {
			fields["line"] = line
		}
		list.Append(s.record(fields))
	}
	t := s.record(map[string]any{"time": p.Took().Seconds()})
	t.RawSetString("rows", list)
	mt := s.NewTable(0, 1)
	text := p.Text(most)
	s.Method(mt, "__tostring", func(L *lua.LState) int {
		L.Push(lua.LString(text))
		return 1
	})
	t.Metatable = mt
	return t
}

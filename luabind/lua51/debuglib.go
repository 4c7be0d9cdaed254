package lua51

import (
	"strings"

	lua "github.com/yuin/gopher-lua"
)

// debugLibrary is Lua's debug library, but for debug.debug.
type debugLibrary struct {
	s        *State
	registry *lua.LTable // what debug.getregistry gives: gopher-lua's own is the engine's
	yield    lua.LValue  // coroutine.yield, of which a coroutine that waits has no frame
}

// openDebug replaces the debug library, and string.dump. A script in a sandbox has neither.
func (s *State) openDebug() {
	d := &debugLibrary{s: s, registry: s.NewTable(0, 1), yield: s.library(lua.CoroutineLibName).RawGetString("yield")}
	d.registry.RawSetString("_LOADED", s.library(lua.LoadLibName).RawGetString("loaded"))
	s.L.G.Registry.RawSetString(registryKey, d.registry) // where State.Roots comes to it
	lib := s.library(lua.DebugLibName)
	for name, f := range map[string]lua.LGFunction{
		"getinfo": d.getInfo, "getlocal": d.getLocal, "setlocal": d.setLocal, "getupvalue": d.getUpvalue,
		"setupvalue": d.setUpvalue, "getmetatable": d.getMetatable, "traceback": d.traceback,
	} {
		s.Method(lib, name, f)
	}
	d.openHooks(lib)
	s.Method(s.library(lua.StringLibName), "dump", func(L *lua.LState) int { return dump(s, L) })
	s.Method(lib, "getregistry", func(L *lua.LState) int {
		L.Push(d.registry)
		return 1
	})
}

// registryKey is where gopher-lua's registry has that of scripts.
const registryKey = "lua51.registry"

// thread is the coroutine that the first argument may be, and how many arguments that took. It is nil for the one that
// runs.
func (d *debugLibrary) thread(L *lua.LState) (co *lua.LState, taken int) {
	th, ok := L.Get(1).(*lua.LState)
	if !ok {
		return nil, 0
	}
	if th == d.s.coroutine() {
		return nil, 1
	}
	return th, 1
}

// getInfo is debug.getinfo.
func (d *debugLibrary) getInfo(L *lua.LState) int {
	co, taken := d.thread(L)
	what := optional(L, 2+taken, textArg, "flnSu")
	var (
		f     *lua.LFunction
		l     level
		under bool // l is the level that is asked for
	)
	switch v := L.Get(1 + taken).(type) {
	case *lua.LFunction:
		f = v
	default:
		n, ok := operandNumber(v)
		if !ok {
			L.ArgError(1+taken, "function or level expected")
		}
		if l, under = d.s.level(co, int(n)); !under {
			L.Push(lua.LNil)
			return 1
		}
		f = d.function(l)
	}
	if strings.Trim(what, "SlnufL") != "" {
		L.ArgError(2+taken, "invalid option")
	}
	t := d.s.NewTable(0, 16)
	L.Push(t)
	for _, c := range what {
		switch c {
		case 'S':
			d.source(t, f, l.tail)
		case 'l':
			line := -1
			if under {
				line = l.line()
			}
			t.RawSetString("currentline", lua.LNumber(line))
		case 'u':
			ups := 0
			if f != nil {
				ups = len(f.Upvalues)
			}
			t.RawSetString("nups", lua.LNumber(ups))
		case 'n':
			as := variable{}
			if under {
				as = l.calledAs()
			}
			if as.kind != "" || l.tail {
				t.RawSetString("name", lua.LString(as.name))
			}
			t.RawSetString("namewhat", lua.LString(as.kind))
		case 'f':
			if f != nil {
				t.RawSetString("func", f)
			}
		case 'L':
			if lines := activeLines(d.s, f); lines != nil {
				t.RawSetString("activelines", lines)
			}
		}
	}
	return 1
}

// function is the function of a level; nil: it is gone.
func (d *debugLibrary) function(l level) *lua.LFunction {
	if l.yield {
		return d.yield.(*lua.LFunction)
	}
	return l.function()
}

// source sets the fields that tell where a function comes from.
func (d *debugLibrary) source(t *lua.LTable, f *lua.LFunction, tail bool) {
	source, short, what, from, to := "=[C]", "[C]", "C", -1, -1
	switch {
	case tail:
		source, short, what = "=(tail call)", "(tail call)", "tail"
	case f != nil && !f.IsG:
		source, short, what = sourceText(f.Proto), f.Proto.SourceName, "Lua"
		if strings.HasPrefix(source, "@") || strings.HasPrefix(source, "=") {
			short = chunkName(source)
		}
		if from, to = f.Proto.LineDefined, f.Proto.LastLineDefined; from == 0 {
			what, to = "main", 0
		}
	}
	t.RawSetString("source", lua.LString(source))
	t.RawSetString("short_src", lua.LString(short))
	t.RawSetString("linedefined", lua.LNumber(from))
	t.RawSetString("lastlinedefined", lua.LNumber(to))
	t.RawSetString("what", lua.LString(what))
}

// activeLines is the set of lines that a Lua function has code on; nil: of a function of Go's.
func activeLines(s *State, f *lua.LFunction) *lua.LTable {
	if f == nil || f.IsG {
		return nil
	}
	t := s.NewTable(len(f.Proto.DbgSourcePositions), 0)
	for _, line := range f.Proto.DbgSourcePositions {
		t.RawSetInt(line, lua.LTrue)
	}
	return t
}

// localAt is the level and the number of a local variable that arguments tell; with a level that there is not it is an
// error.
func (d *debugLibrary) localAt(L *lua.LState) (l level, no int) {
	co, taken := d.thread(L)
	n, no := integerArg(L, 1+taken), integerArg(L, 2+taken)
	l, ok := d.s.level(co, n)
	if !ok {
		L.ArgError(1+taken, "level out of range")
	}
	return l, no
}

// getLocal is debug.getlocal.
func (d *debugLibrary) getLocal(L *lua.LState) int {
	l, no := d.localAt(L)
	if !l.tail && !l.yield && no > 0 { // others are registers of other functions
		if dbg, ok := l.L.GetStack(l.no); ok {
			if name, v := l.L.GetLocal(dbg, no); name != "" {
				if v == nil { // a register that nothing was put into yet
					v = lua.LNil
				}
				L.Push(lua.LString(name))
				L.Push(v)
				return 2
			}
		}
	}
	L.Push(lua.LNil)
	return 1
}

// setLocal is debug.setlocal.
func (d *debugLibrary) setLocal(L *lua.LState) int {
	l, no := d.localAt(L)
	_, taken := d.thread(L)
	v := L.CheckAny(3 + taken)
	name := ""
	if !l.tail && !l.yield && no > 0 {
		if dbg, ok := l.L.GetStack(l.no); ok {
			name = l.L.SetLocal(dbg, no, v)
		}
	}
	if name == "" {
		L.Push(lua.LNil)
	} else {
		L.Push(lua.LString(name))
	}
	return 1
}

// upvalueAt is the variable of a function that arguments tell, and its name; nil: there is none.
func upvalueAt(L *lua.LState) (name string, up *lua.Upvalue) {
	no := integerArg(L, 2)
	f := L.CheckFunction(1)
	if f.IsG || no < 1 || no > len(f.Upvalues) {
		return "", nil
	}
	return f.Proto.DbgUpvalues[no-1], f.Upvalues[no-1]
}

// getUpvalue is debug.getupvalue.
func (d *debugLibrary) getUpvalue(L *lua.LState) int {
	name, up := upvalueAt(L)
	if up == nil {
		return 0
	}
	L.Push(lua.LString(name))
	L.Push(up.Value())
	return 2
}

// setUpvalue is debug.setupvalue.
func (d *debugLibrary) setUpvalue(L *lua.LState) int {
	v := L.CheckAny(3)
	name, up := upvalueAt(L)
	if up == nil {
		return 0
	}
	up.SetValue(v)
	L.Push(lua.LString(name))
	return 1
}

// getMetatable is debug.getmetatable: it passes over __metatable. The metatable of a host's values is shown as a copy,
// since the host relies on it.
func (d *debugLibrary) getMetatable(L *lua.LState) int {
	var mt lua.LValue
	switch v := L.CheckAny(1).(type) {
	case *lua.LTable:
		mt = v.Metatable
	case *lua.LUserData:
		mt = v.Metatable
		if t, ok := mt.(*lua.LTable); ok && t.RawGetString("__metatable") != lua.LNil {
			shown := d.s.NewTable(0, 32)
			t.ForEach(shown.RawSet)
			mt = shown
		}
	default:
		mt = d.s.basic[v.Type()]
	}
	if mt == nil {
		mt = lua.LNil
	}
	L.Push(mt)
	return 1
}

// traceback is debug.traceback.
func (d *debugLibrary) traceback(L *lua.LState) int {
	co, taken := d.thread(L)
	from := 1
	if co != nil {
		from = 0
	}
	if n, ok := operandNumber(L.Get(2 + taken)); ok {
		from = int(n)
	}
	begin := ""
	if L.GetTop() > taken {
		message := L.Get(1 + taken)
		t, ok := asText(message)
		if !ok {
			L.Push(message)
			return 1
		}
		begin = t + "\n"
	}
	L.Push(lua.LString(begin + d.s.traceback(co, from)))
	return 1
}

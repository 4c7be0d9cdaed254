package lua51

import (
	"reflect"
	"strings"

	lua "github.com/yuin/gopher-lua"
)

// openBase replaces the functions of Lua's basic library that gopher-lua has otherwise, but for those of loaders.go,
// protect.go and roots.go.
func (s *State) openBase() {
	L := s.L
	for name, f := range map[string]lua.LGFunction{ // which need no state
		"next": next, "select": selectValues, "rawset": rawSet, "tonumber": toNumber,
	} {
		L.SetGlobal(name, s.plain(f))
	}
	L.SetGlobal("unpack", s.Func(unpack))
	L.SetGlobal("getfenv", s.Func(with(s, getEnvironment)))
	L.SetGlobal("setfenv", s.Func(with(s, setEnvironment)))
	L.SetGlobal("newproxy", s.Func(with(s, newProxy)))
	L.SetGlobal("tostring", s.Through(func(L *lua.LState) int {
		L.Push(textOf(L, L.CheckAny(1)))
		return 1
	}))
	L.SetGlobal("print", printer(s, func() lua.LValue { return s.Entry(s.L.G.Global, "tostring") }))
}

// textOf is a value as tostring gives it: any value at all, if it has a metamethod.
func textOf(L *lua.LState, v lua.LValue) lua.LValue {
	if f, ok := L.GetMetaField(v, "__tostring").(*lua.LFunction); ok {
		L.Push(f)
		L.Push(v)
		L.Call(1, 1)
		v = L.Get(-1)
		L.Pop(1)
		return v
	}
	if n, ok := v.(lua.LNumber); ok {
		return lua.LString(numberText(n))
	}
	return lua.LString(plainly(L, v))
}

// printer is print. toString gives the function that makes texts of values: nil is tostring as it was.
func printer(s *State, toString func() lua.LValue) *lua.LFunction {
	keep(s, "tostring", s.L.G.Global.RawGetString("tostring"))
	return s.Through(func(L *lua.LState) int {
		line := s.longText("print")
		defer line.end()
		with := toString()
		for i, n := 1, L.GetTop(); i <= n; i++ {
			if i > 1 {
				line.addByte('\t')
			}
			var shown lua.LValue
			if with == nil || with == kept(s, "tostring") {
				shown = textOf(L, L.Get(i))
			} else {
				L.Push(with)
				L.Push(L.Get(i))
				L.Call(1, 1)
				shown = L.Get(-1)
				L.Pop(1)
			}
			t, ok := asText(shown)
			if !ok {
				s.fail("'tostring' must return a string to 'print'")
			}
			line.add(t)
		}
		line.addByte('\n')
		s.Write(line.text.String())
		return 0
	})
}

// next is Lua's next. A key that the table has had is one that it may have lost since.
func next(L *lua.LState) int {
	t, key := L.CheckTable(1), L.Get(2)
	if key != lua.LNil && t.RawGet(key) == lua.LNil && !hadKey(t, key) {
		stateOf(L).throw(L, lua.LString("invalid key to 'next'"))
	}
	k, v := t.Next(key)
	if k == lua.LNil {
		L.Push(lua.LNil)
		return 1
	}
	L.Push(k)
	L.Push(v)
	return 2
}

// hadKey reports whether a table has had a key, or has room for it in its list.
func hadKey(t *lua.LTable, key lua.LValue) bool {
	fields := reflect.ValueOf(t).Elem()
	if n, ok := key.(lua.LNumber); ok && n >= 1 && n <= lua.LNumber(fields.Field(frameFields.array).Cap()) {
		return n == lua.LNumber(int(n))
	}
	return fields.Field(frameFields.indices).MapIndex(reflect.ValueOf(key)).IsValid()
}

// selectValues is Lua's select.
func selectValues(L *lua.LState) int {
	if word, ok := L.Get(1).(lua.LString); ok && strings.HasPrefix(string(word), "#") {
		L.Push(lua.LNumber(L.GetTop() - 1))
		return 1
	}
	n, from := L.GetTop(), integerArg(L, 1)
	if from < 0 {
		from += n
	}
	if from < 1 {
		L.ArgError(1, "index out of range")
	}
	return n - min(from, n)
}

// rawSet is rawset, which gives the table.
func rawSet(L *lua.LState) int {
	t, key, v := L.CheckTable(1), L.CheckAny(2), L.CheckAny(3)
	if n, ok := key.(lua.LNumber); ok && n != n {
		stateOf(L).throw(L, lua.LString("table index is NaN"))
	}
	if key == lua.LNil {
		stateOf(L).throw(L, lua.LString("table index is nil"))
	}
	L.RawSet(t, key, v)
	L.SetTop(1)
	return 1
}

// unpack is Lua's unpack.
func unpack(L *lua.LState) int {
	t := L.CheckTable(1)
	first := optional(L, 2, integerArg, 1)
	last := optional(L, 3, integerArg, t.Len())
	if first > last {
		return 0
	}
	if n := last - first; n < 0 || n >= maxResults {
		L.RaiseError("too many results to unpack")
	}
	for i := first; i <= last; i++ {
		L.Push(t.RawGet(lua.LNumber(i)))
	}
	return last - first + 1
}

// withEnvironment is the function that getfenv or setfenv is asked about; nil: the thread, of level 0.
func withEnvironment(s *State, L *lua.LState, read func(L *lua.LState, n int) int) *lua.LFunction {
	if f, ok := L.Get(1).(*lua.LFunction); ok {
		return f
	}
	n := read(L, 1)
	if n < 0 {
		L.ArgError(1, "level must be non-negative")
	}
	if n == 0 {
		return nil
	}
	l, ok := s.level(nil, n)
	if !ok {
		L.ArgError(1, "invalid level")
	}
	f := l.function()
	if f == nil {
		s.fail("no function environment for tail call at level %d", n)
	}
	return f
}

// getEnvironment is getfenv.
func getEnvironment(s *State, L *lua.LState) int {
	f := withEnvironment(s, L, func(L *lua.LState, n int) int { return optional(L, n, integerArg, 1) })
	switch {
	case f == nil:
		L.Push(L.Env)
	case f.IsG:
		L.Push(L.G.Global)
	default:
		L.Push(f.Env)
	}
	return 1
}

// setEnvironment is setfenv.
func setEnvironment(s *State, L *lua.LState) int {
	env := L.CheckTable(2)
	f := withEnvironment(s, L, integerArg)
	if f == nil {
		L.Env = env
		return 0
	}
	if f.IsG {
		s.fail("'setfenv' cannot change environment of given object")
	}
	f.Env = env
	L.Push(f)
	return 1
}

// newProxy is newproxy: a userdata without a metatable, with a new one, or with that of another proxy.
func newProxy(s *State, L *lua.LState) int {
	type proxy struct{}
	ud := s.NewUserData(proxy{}, lua.LNil, 0)
	switch v := L.Get(1).(type) {
	case lua.LBool:
		if v {
			ud.Metatable = s.NewTable(0, 1)
		}
	case *lua.LUserData:
		if _, ok := v.Value.(proxy); !ok || v.Metatable == lua.LNil {
			L.ArgError(1, "boolean or proxy expected")
		}
		ud.Metatable = v.Metatable
	default:
		if v != lua.LNil {
			L.ArgError(1, "boolean or proxy expected")
		}
	}
	L.Push(ud)
	return 1
}

package lua51

import (
	"reflect"

	lua "github.com/yuin/gopher-lua"
)

// throughCaller is onCaller, with code of its own, by which Passes knows what it gave.
//
//go:noinline
func (s *State) throughCaller(f lua.LGFunction) lua.LGFunction {
	g := s.onCaller(f)
	return func(L *lua.LState) int { return g(L) }
}

// Passes reports whether the Go function with its code at that address keeps no Lua value in a variable of Go's while
// Lua code that it calls runs. Most functions do, or may.
func (s *State) Passes(code uintptr) bool { return s.passing[code] }

// openPassing notes which functions pass: those that Through makes, and the bottom of protected calls.
func (s *State) openPassing() {
	s.passing = map[uintptr]bool{reflect.ValueOf(s.throughCaller(nil)).Pointer(): true}
	s.bottom = s.L.NewFunction(s.protectedCall)
	s.passing[reflect.ValueOf(s.bottom.GFunction).Pointer()] = true
}

// keep keeps a value under a name in a table of gopher-lua's registry, where Roots comes to it and scripts do not.
func keep(s *State, name string, v lua.LValue) {
	own, ok := s.L.G.Registry.RawGetString(ownKey).(*lua.LTable)
	if !ok {
		own = s.NewTable(0, 8)
		s.L.G.Registry.RawSetString(ownKey, own)
	}
	own.RawSetString(name, v)
}

// kept is what keep keeps.
func kept(s *State, name string) lua.LValue {
	return s.L.G.Registry.RawGetString(ownKey).(*lua.LTable).RawGetString(name)
}

const ownKey = "lua51.own"

// Roots visits what scripts reach beside what the threads under way hold.
func (s *State) Roots(visit func(v lua.LValue)) {
	visit(s.L.G.Registry)
	visit(s.L.G.Global)
	for _, mt := range s.basic {
		visit(mt)
	}
	for _, th := range s.spares {
		visit(th.Env)
	}
	for _, a := range s.running {
		if a.message != nil {
			visit(a.message)
		}
	}
}

// setBasicMetatable sets the metatable of all values of v's type, which has no metatable for each.
func (s *State) setBasicMetatable(v lua.LValue, mt lua.LValue) {
	s.L.SetMetatable(v, mt)
	if s.basic == nil {
		s.basic = map[lua.LValueType]lua.LValue{}
	}
	s.basic[v.Type()] = mt
}

// openMetatables replaces the functions that set metatables and environments: setmetatable is for tables, as in Lua;
// what debug.setmetatable sets is known to Roots; and functions of Go keep their environments.
func (s *State) openMetatables() {
	plain := s.L.GetGlobal("setmetatable").(*lua.LFunction).GFunction
	s.L.SetGlobal("setmetatable", s.Func(func(L *lua.LState) int {
		L.CheckTable(1)
		checkMetatable(L)
		return plain(L)
	}))
	lib := s.library(lua.DebugLibName)
	s.Method(lib, "setmetatable", func(L *lua.LState) int {
		v, mt := L.CheckAny(1), checkMetatable(L)
		switch v.(type) {
		case *lua.LTable, *lua.LUserData:
			L.SetMetatable(v, mt)
		default:
			s.setBasicMetatable(v, mt)
		}
		L.Push(lua.LTrue)
		return 1
	})
	setEnv := lib.RawGetString("setfenv").(*lua.LFunction).GFunction
	s.Method(lib, "setfenv", func(L *lua.LState) int {
		if f, ok := L.Get(1).(*lua.LFunction); ok && f.IsG {
			L.RaiseError("'setfenv' cannot change environment of given object")
		}
		return setEnv(L)
	})
}

// checkMetatable is the second argument, which has to be a table or a nil that is written.
func checkMetatable(L *lua.LState) lua.LValue {
	mt := L.Get(2)
	if _, ok := mt.(*lua.LTable); !ok && (mt != lua.LNil || L.GetTop() < 2) {
		L.ArgError(2, "nil or table expected")
	}
	return mt
}

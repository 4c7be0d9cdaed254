package lua51

import (
	"os"
	"strings"

	lua "github.com/yuin/gopher-lua"
)

// openModules replaces require, module and package.loadlib.
func (s *State) openModules() {
	lib := s.library(lua.LoadLibName)
	keep(s, lua.LoadLibName, lib)
	s.L.SetGlobal("require", s.Through(with(s, requireModule)))
	s.L.SetGlobal("module", s.Func(with(s, enterModule)))
	preload := func(L *lua.LState) int {
		name := textArg(L, 1)
		from, ok := L.GetField(kept(s, lua.LoadLibName), "preload").(*lua.LTable)
		if !ok {
			s.throw(L, lua.LString("'package.preload' must be a table"))
		}
		loader := L.GetField(from, name)
		if loader == lua.LNil {
			loader = lua.LString("\n\tno field package.preload['" + name + "']")
		}
		L.Push(loader)
		return 1
	}
	if loaders, ok := lib.RawGetString("loaders").(*lua.LTable); ok {
		loaders.RawSetInt(1, s.Func(preload))
	}
	lib.RawSetString("config", lua.LString(string(os.PathSeparator)+"\n;\n?\n!\n-"))
	s.Method(lib, "loadlib", func(L *lua.LState) int {
		textArg(L, 1)
		textArg(L, 2)
		L.Push(lua.LNil)
		L.Push(lua.LString("dynamic libraries not enabled; check your Lua installation"))
		L.Push(lua.LString("absent"))
		return 3
	})
}

// underWay stands in package.loaded for a module whose loader runs, or has failed.
var underWay = &lua.LUserData{Metatable: lua.LNil}

// loadedModules is package.loaded as it was made.
func loadedModules(L *lua.LState) *lua.LTable {
	return L.G.Registry.RawGetString("_LOADED").(*lua.LTable)
}

// requireModule is Lua's require.
func requireModule(s *State, L *lua.LState) int {
	name := textArg(L, 1)
	if v := L.GetField(loadedModules(L), name); lua.LVAsBool(v) {
		if v == lua.LValue(underWay) {
			s.fail("loop or previous error loading module '%s'", name)
		}
		L.Push(v)
		return 1
	}
	L.SetTop(1)
	findLoader(s, L, name)
	L.SetField(loadedModules(L), name, underWay)
	L.Push(lua.LString(name))
	L.Call(1, 1)
	if v := L.Get(-1); v != lua.LNil {
		L.SetField(loadedModules(L), name, v)
	}
	if L.GetField(loadedModules(L), name) == lua.LValue(underWay) {
		L.SetField(loadedModules(L), name, lua.LTrue)
	}
	L.Push(L.GetField(loadedModules(L), name))
	return 1
}

// findLoader pushes the function that loads a module.
func findLoader(s *State, L *lua.LState, name string) {
	var tried strings.Builder
	for i := 1; ; i++ {
		loaders, ok := L.GetField(kept(s, lua.LoadLibName), "loaders").(*lua.LTable)
		if !ok {
			s.throw(L, lua.LString("'package.loaders' must be a table"))
		}
		loader := loaders.RawGetInt(i)
		if loader == lua.LNil {
			s.fail("module '%s' not found:%s", name, tried.String())
		}
		L.Push(loader)
		L.Push(lua.LString(name))
		L.Call(1, 1)
		switch found := L.Get(-1).(type) {
		case *lua.LFunction:
			return
		case lua.LString:
			tried.WriteString(string(found))
		}
		L.Pop(1)
	}
}

// enterModule is Lua's module.
func enterModule(s *State, L *lua.LState) int {
	name := textArg(L, 1)
	m, ok := L.GetField(loadedModules(L), name).(*lua.LTable)
	if !ok {
		if m, ok = L.FindTable(L.G.Global, name, 1).(*lua.LTable); !ok {
			s.fail("name conflict for module '%s'", name)
		}
		L.SetField(loadedModules(L), name, m)
	}
	if L.GetField(m, "_NAME") == lua.LNil {
		L.SetField(m, "_M", m)
		L.SetField(m, "_NAME", lua.LString(name))
		L.SetField(m, "_PACKAGE", lua.LString(name[:strings.LastIndexByte(name, '.')+1]))
	}
	l, ok := s.level(nil, 1)
	if !ok || l.tail || l.isGo() || IsEmbedded(s, l.function()) {
		s.fail("'module' not called from a Lua function")
	}
	l.function().Env = m
	for i := 2; i <= L.GetTop(); i++ {
		if option, ok := L.Get(i).(*lua.LFunction); ok {
			L.Push(option)
			L.Push(m)
			L.Call(1, 0)
		}
	}
	return 0
}

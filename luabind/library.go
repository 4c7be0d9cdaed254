package luabind

import (
	"path"
	"strings"
	"sync"

	lua "github.com/yuin/gopher-lua"

	"github.com/mlxlua/mlxlua/luabind/lua51"
	"github.com/mlxlua/mlxlua/scripts"
)

// libraryPrefix begins the names of the standard library's chunks. Errors name the lines that call the library, not its
// own.
const libraryPrefix = "mlxlua:"

// libraryModule is a module of mx that is written in Lua.
type libraryModule struct {
	name  string
	proto *lua.FunctionProto
}

// library is the modules of package scripts, compiled once for all states. It panics on a wrong one: they are part of
// the program.
var library = sync.OnceValue(func() []libraryModule {
	files, err := scripts.Files.ReadDir(".")
	if err != nil {
		panic("BUG: scripts: " + err.Error())
	}
	var out []libraryModule
	for _, f := range files {
		text, err := scripts.Files.ReadFile(f.Name())
		if err != nil {
			panic("BUG: scripts: " + err.Error())
		}
		proto, err := lua51.Compile(strings.NewReader(string(text)), libraryPrefix+f.Name())
		if err != nil {
			panic("BUG: scripts: " + err.Error())
		}
		out = append(out, libraryModule{strings.TrimSuffix(f.Name(), path.Ext(f.Name())), proto})
	}
	return out
})

// openLibrary runs the modules: each fills a table inside of mx, which is a global and what require("mx.name") gives.
func (s *State) openLibrary() {
	loaded := s.L.GetField(s.L.GetGlobal("package"), "loaded").(*lua.LTable)
	for _, m := range library() {
		module := s.mx.inner[m.name]
		s.L.Push(s.L.NewFunctionFromProto(m.proto))
		s.L.Push(s.mx.LTable)
		s.L.Push(s.Func(func(L *lua.LState) int {
			row, fn := s.libraryRow(m.name, L.CheckTable(1))
			s.define(s.mx.inner[m.name], newFunction(row), fn)
			return 0
		}))
		s.L.Push(s.Func(func(L *lua.LState) int {
			s.raise(s.call().Errorf(m.name+"."+L.CheckString(1), "%s", L.CheckString(2)))
			return 0
		}))
		s.L.Call(3, 0)
		loaded.RawSetString("mx."+m.name, module)
		if m.name == "nn" {
			s.L.SetGlobal(m.name, module)
		}
	}
}

// libraryRow is the row of a function that a module describes, and the function, its upvalue.
func (s *State) libraryRow(module string, t *lua.LTable) (row, lua.LValue) {
	text := func(key string) string { return lua.LVAsString(t.RawGetString(key)) }
	r := row{name: module + "." + text("name"), sig: text("sig"), help: text("help"), host: true,
		call: func(a *args) any {
			L := a.s.L
			L.Push(L.Get(lua.UpvalueIndex(1)))
			top := L.GetTop() - 1
			for i := range a.V {
				L.Push(a.lua(i))
			}
			n := len(a.V)
			if a.f.many >= 0 {
				L.SetTop(top + 1 + a.f.many)
				n = a.f.many + len(a.rest)
				for _, v := range a.rest {
					L.Push(v)
				}
			}
			L.Call(n, lua.MultRet)
			var out values
			for i := top + 1; i <= L.GetTop(); i++ {
				out = append(out, L.Get(i))
			}
			L.SetTop(top)
			return out
		}}
	return r, t.RawGetString("call")
}

// lua is argument i as Lua sees it: as given, or its default.
func (a *args) lua(i int) lua.LValue {
	if a.raw[i] != lua.LNil {
		return a.raw[i]
	}
	switch v := a.V[i].(type) {
	case bool:
		return lua.LBool(v)
	case int:
		return lua.LNumber(v)
	case float64:
		return lua.LNumber(v)
	case string:
		return lua.LString(v)
	case []int: // of an axis
		t := a.s.L.CreateTable(len(v), 0)
		for _, n := range v {
			t.Append(lua.LNumber(n))
		}
		return t
	}
	return lua.LNil
}

// libraryModules names the modules.
func libraryModules() []string {
	var names []string
	for _, m := range library() {
		names = append(names, m.name)
	}
	return names
}

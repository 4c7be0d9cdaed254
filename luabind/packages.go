package luabind

import (
	"io/fs"
	"strings"
	"sync"

	lua "github.com/yuin/gopher-lua"

	"github.com/mlxlua/mlxlua/luabind/lua51"
	"github.com/mlxlua/mlxlua/scripts"
)

// packages are the compiled files of scripts.Packages, by the names that require knows: they are compiled when they are
// first used, once for all states.
var packages sync.Map

// openPackages has require find the packages that come with the program before it looks for files.
func (s *State) openPackages() {
	loaders, ok := s.L.GetField(s.L.GetGlobal("package"), "loaders").(*lua.LTable)
	if !ok {
		return
	}
	loaders.Insert(2, s.Func(func(L *lua.LState) int {
		name := L.CheckString(1)
		if open := hostPackages[name]; open != nil {
			L.Push(s.Func(func(L *lua.LState) int {
				L.Push(open(s))
				return 1
			}))
			return 1
		}
		proto := packaged(name)
		if proto == nil {
			L.Push(lua.LString("no package '" + name + "' in the program"))
			return 1
		}
		L.Push(lua51.Main(L, proto, s.ownMethods))
		return 1
	}))
}

// hostPackages are the packages that are written in Go.
var hostPackages = map[string]func(*State) lua.LValue{"lm.host": openModelHost}

// packaged is the package a.b, which is a/b.lua or a/b/init.lua; nil: there is none. It panics on a wrong one: they are
// part of the program.
func packaged(name string) *lua.FunctionProto {
	if p, ok := packages.Load(name); ok {
		return p.(*lua.FunctionProto)
	}
	path := strings.ReplaceAll(name, ".", "/")
	for _, file := range []string{path + ".lua", path + "/init.lua"} {
		if !fs.ValidPath(file) {
			continue
		}
		text, err := scripts.Packages.ReadFile(file)
		if err != nil {
			continue
		}
		proto, err := lua51.CompileMethods(strings.NewReader(string(text)), file)
		if err != nil {
			panic("BUG: scripts: " + err.Error())
		}
		packages.Store(name, proto)
		return proto
	}
	return nil
}

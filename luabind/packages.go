package luabind

import (
	"fmt"
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

// programPackages are the packages that come with the program, in a state.
type programPackages struct {
	s      *State
	loaded *lua.LTable // by name; false: it is under way
}

// openPackages has require find the packages that come with the program before it looks for files. What they require
// themselves are the state's modules and packages, whatever a script has put into package.loaded; only a name that is
// none of these, such as that of a script of one's own for a family of models, goes to the script's require.
func openPackages(s *State) {
	p := &s.packages
	p.s, p.loaded = s, s.NewTable(0, 1)
	lua51.EmbeddedGlobals(s.State).RawSetString("require", s.Through(func(L *lua.LState) int {
		name := L.CheckString(1)
		if v := p.require(name); v != nil {
			L.Push(v)
			return 1
		}
		L.Push(L.Get(lua.UpvalueIndex(1)))
		L.Push(lua.LString(name))
		L.Call(1, 1)
		return 1
	}, s.L.GetGlobal("require")))
	loaders, ok := s.L.GetField(s.L.GetGlobal("package"), "loaders").(*lua.LTable)
	if !ok {
		return
	}
	loaders.Insert(2, s.Func(func(L *lua.LState) int {
		name := L.CheckString(1)
		if hostPackages[name] == nil && packaged(name) == nil {
			L.Push(lua.LString("\n\tno package '" + name + "' in the program"))
			return 1
		}
		L.Push(s.Through(func(L *lua.LState) int {
			L.Push(p.require(name))
			return 1
		}))
		return 1
	}))
}

// hostPackages are the packages that are written in Go.
var hostPackages = map[string]func(*State) lua.LValue{"lm.host": openModelHost}

// require is a module of mx, or a package that comes with the program, which it loads unless that was done before;
// nil: there is none of that name.
func (p *programPackages) require(name string) lua.LValue {
	s := p.s
	if name == "mx" {
		return s.mx.LTable
	}
	if module, ok := strings.CutPrefix(name, "mx."); ok && s.mx.inner[module] != nil {
		return s.mx.inner[module]
	}
	if v := p.loaded.RawGetString(name); v != lua.LNil {
		if v == lua.LFalse {
			s.raise(fmt.Errorf("[require] the package %s requires itself", name))
		}
		return v
	}
	var v lua.LValue
	if open := hostPackages[name]; open != nil {
		v = open(s)
	} else if proto := packaged(name); proto != nil {
		v = p.run(name, proto)
	} else {
		return nil
	}
	p.loaded.RawSetString(name, v)
	if t, ok := v.(*lua.LTable); ok {
		keep(s, t, name)
	}
	return v
}

// run runs the file of a package. What ends it half-way leaves nothing: the next use runs it again.
func (p *programPackages) run(name string, proto *lua.FunctionProto) lua.LValue {
	p.loaded.RawSetString(name, lua.LFalse)
	defer p.loaded.RawSetString(name, lua.LNil)
	L := p.s.L
	L.Push(lua51.Embedded(p.s.State, proto, p.s.ownMethods))
	L.Push(lua.LString(name))
	L.Call(1, 1)
	v := L.Get(-1)
	L.Pop(1)
	if v == lua.LNil {
		return lua.LTrue
	}
	return v
}

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
		proto, err := lua51.CompileEmbedded(strings.NewReader(string(text)), file)
		if err != nil {
			panic("BUG: scripts: " + err.Error())
		}
		packages.Store(name, proto)
		return proto
	}
	return nil
}

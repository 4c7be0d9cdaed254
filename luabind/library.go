package luabind

import (
	"io/fs"
	"path"
	"slices"
	"strings"
	"sync"

	lua "github.com/yuin/gopher-lua"

	"github.com/mlxlua/mlxlua/luabind/lua51"
	"github.com/mlxlua/mlxlua/scripts"
	"github.com/mlxlua/mlxlua/tensor"
)

// libraryPrefix begins the names of the standard library's chunks. Errors name the lines that call the library, not its
// own.
const libraryPrefix = "mlxlua:"

// libraryModule is a module of mx that is written in Lua.
type libraryModule struct {
	name  string
	files []libraryFile // in the order of their names
}

// libraryFile is a file of a module.
type libraryFile struct {
	name string
	// proto compiles it, once for all states, when the first of them uses the module: compiling all of them would be most
	// of what starting a program takes.
	proto func() *lua.FunctionProto
}

// library is the modules of package scripts.
var library = sync.OnceValue(func() []libraryModule {
	var out []libraryModule
	err := fs.WalkDir(scripts.Files, ".", func(file string, d fs.DirEntry, err error) error {
		if err != nil || d.IsDir() {
			return err
		}
		name := strings.TrimSuffix(file, path.Ext(file))
		module, inner, folder := strings.Cut(name, "/")
		if n := len(out); n == 0 || out[n-1].name != module {
			out = append(out, libraryModule{name: module})
		}
		if !folder {
			inner = module
		}
		m := &out[len(out)-1]
		m.files = append(m.files, libraryFile{inner, sync.OnceValue(func() *lua.FunctionProto { return libraryProto(file) })})
		return nil
	})
	if err != nil {
		panic("BUG: scripts: " + err.Error())
	}
	return out
})

// libraryProto is a file of package scripts, compiled. It panics on a wrong one: they are part of the program.
func libraryProto(file string) *lua.FunctionProto {
	text, err := scripts.Files.ReadFile(file)
	if err != nil {
		panic("BUG: scripts: " + err.Error())
	}
	proto, err := lua51.CompileEmbedded(strings.NewReader(string(text)), libraryPrefix+file)
	if err != nil {
		panic("BUG: scripts: " + err.Error())
	}
	return proto
}

// libraryModules are the names of the modules that are written in Lua.
func libraryModules() (names []string) {
	for _, m := range library() {
		names = append(names, m.name)
	}
	return names
}

// libraryInner are the modules inside of those that are written in Lua.
var libraryInner = map[string][]string{"nn": {"init", "losses"}}

// openLibrary makes the modules' tables inside of mx, which require("mx.name") gives; nn is a global too. What is in
// them is loaded when a script first uses something of it: all of it is half of what opening a state takes.
func (s *State) openLibrary() {
	loaded := s.L.GetField(s.L.GetGlobal("package"), "loaded").(*lua.LTable)
	for _, m := range library() {
		for _, inner := range libraryInner[m.name] {
			s.mx.addInner(m.name + "." + inner)
		}
		w := writtenModule{s, m}
		for name, module := range w.tables() {
			loaded.RawSetString("mx."+name, module)
		}
		w.delay()
	}
	s.L.SetGlobal("nn", s.mx.inner["nn"])
}

// writtenModule is a module that is written in Lua, in a state.
type writtenModule struct {
	s *State
	libraryModule
}

// tables are the module's table and those of the modules inside of it, by their names.
func (m writtenModule) tables() map[string]*lua.LTable {
	s := m.s
	tables := map[string]*lua.LTable{m.name: s.mx.inner[m.name]}
	for _, inner := range libraryInner[m.name] {
		tables[m.name+"."+inner] = s.mx.inner[m.name+"."+inner]
	}
	return tables
}

// delay has the module loaded when it is first used.
func (m writtenModule) delay() {
	for _, t := range m.tables() {
		m.s.Delay(t, m.load)
	}
}

// load fills the module's tables, under the limits of the script that first uses something of it. If these end it
// half-way, or calls that are nested too deep, the module is as it was before, and its next use loads it.
func (m writtenModule) load() {
	s, tables := m.s, m.tables()
	done, before := false, map[*lua.LTable][]string{} // functions of Go
	for _, t := range tables {
		s.Plain(t)
		before[t] = keysOf(t)
	}
	for _, inner := range libraryInner[m.name] {
		tables[m.name].RawSetString(inner, tables[m.name+"."+inner])
	}
	outer, quiet := s.mx.defining, s.Quiet
	s.mx.defining, s.Quiet = &defined{}, true
	defer func() {
		if !done {
			s.mx.forget(s.mx.defining)
			for _, t := range tables {
				for _, name := range keysOf(t) {
					if !slices.Contains(before[t], name) {
						t.RawSetString(name, lua.LNil)
					}
				}
			}
			m.delay()
		}
		s.mx.defining, s.Quiet = outer, quiet
	}()
	_, err := s.Protect(nil, s.Func(func(*lua.LState) int {
		m.run()
		return 0
	}))
	if err != nil {
		s.reraise(&luaFailure{err})
	}
	done = true
	for name, t := range tables {
		keep(s, t, "mx."+name)
		s.looks.library(t)
	}
}

// loadLibrary loads all modules.
func loadLibrary(s *State) {
	for _, m := range library() {
		s.Entry(s.mx.inner[m.name], "")
	}
}

// run runs the module's files. What they are run with is in a table, so that the state knows of it: mx, define, fail,
// use and core; and under a file's name what the file returned.
func (m writtenModule) run() {
	s := m.s
	with := s.NewTable(0, 1)
	with.Append(s.mx.LTable)
	with.Append(s.Func(func(L *lua.LState) int {
		L.Push(s.defineLibrary(m.name, L.CheckTable(1)))
		return 1
	}))
	with.Append(s.Func(func(L *lua.LState) int {
		s.raise(s.call().Errorf(m.name+"."+L.CheckString(1), "%s", L.CheckString(2)))
		return 0
	}))
	with.Append(s.Func(func(L *lua.LState) int {
		name := L.CheckString(1)
		if module, ok := strings.CutPrefix(name, "mx."); ok {
			L.Push(s.mx.inner[module])
		} else {
			L.Push(m.runFile(name, L.Get(lua.UpvalueIndex(1)).(*lua.LTable)))
		}
		return 1
	}, with))
	with.Append(libraryCore(s, m.name))
	for _, f := range m.files {
		m.runFile(f.name, with)
	}
}

// libraryCore is what the files of a module have beside what scripts have.
func libraryCore(s *State, module string) *lua.LTable {
	t := s.NewTable(0, 1)
	t.RawSetString("guarded", guarded(s, module))
	t.RawSetString("with_key", withKey(s))
	is := func(name string, f func(v lua.LValue) bool) {
		t.RawSetString(name, s.L.NewFunction(func(L *lua.LState) int {
			L.Push(lua.LBool(f(L.Get(1))))
			return 1
		}))
	}
	is("callable", func(v lua.LValue) bool { return callable(s, v) })
	is("is_array", isArray)
	is("is_module", isModule)
	is("is_tree", isTree)
	t.RawSetString("trees", treeFunctions(s))
	t.RawSetString("formula", openFormula(s, module))
	t.RawSetString("own", s.ownMethods)
	return t
}

// runFile runs a file of the module, unless it has run, and gives what it returned.
func (m writtenModule) runFile(name string, with *lua.LTable) lua.LValue {
	s := m.s
	if v := with.RawGetString(name); v != lua.LNil {
		return v
	}
	i := slices.IndexFunc(m.files, func(f libraryFile) bool { return f.name == name })
	if i < 0 {
		panic("BUG: scripts: " + m.name + " has no file " + name)
	}
	s.L.Push(lua51.Embedded(s.State, m.files[i].proto(), s.ownMethods))
	n := with.Len()
	for i := range n {
		s.L.Push(with.RawGetInt(i + 1))
	}
	s.L.Call(n, 1)
	v := s.L.Get(-1)
	s.L.Pop(1)
	if v == lua.LNil {
		v = lua.LTrue
	}
	with.RawSetString(name, v)
	return v
}

// defineLibrary makes a function that a module describes, and returns it. A description with a class describes the
// function that makes objects of it: the module's entry is the class.
func (s *State) defineLibrary(module string, t *lua.LTable) *lua.LFunction {
	row, fn := s.libraryRow(module, t)
	in := row.name[:strings.LastIndexByte(row.name, '.')]
	if s.mx.inner[in] == nil {
		panic("BUG: scripts: " + row.name + ": libraryInner has no module " + in)
	}
	f := newFunction(row)
	made := s.define(s.mx.inner[in], f, fn)
	note := s.mx.defining
	note.functions, note.names = append(note.functions, made), append(note.names, f.name)
	if class, ok := t.RawGetString("class").(*lua.LTable); ok {
		s.mx.classes[class] = f
		note.classes = append(note.classes, class)
		s.mx.inner[in].RawSetString(row.name[len(in)+1:], class)
	}
	return made
}

// defined is what a module that is being loaded has told the state of.
type defined struct {
	functions []*lua.LFunction
	names     []string
	classes   []*lua.LTable
}

// forget takes back what a module has told that could not be loaded.
func (m *module) forget(d *defined) {
	for i, f := range d.functions {
		delete(m.help, f)
		delete(m.funcs, d.names[i])
	}
	for _, c := range d.classes {
		delete(m.classes, c)
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
				if i != a.f.many {
					L.Push(a.lua(i))
					continue
				}
				for _, v := range a.rest {
					L.Push(v)
				}
			}
			L.Call(L.GetTop()-top-1, lua.MultRet)
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
	case tensor.DType:
		return a.s.dtype(v)
	case []int: // of axes, or of settings of which each has one
		if len(v) == 1 {
			return lua.LNumber(v[0])
		}
		t := a.s.NewTable(len(v), 0)
		for _, n := range v {
			t.Append(lua.LNumber(n))
		}
		return t
	}
	return lua.LNil
}

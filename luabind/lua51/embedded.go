package lua51

import (
	"context"
	"io"

	lua "github.com/yuin/gopher-lua"
	"github.com/yuin/gopher-lua/ast"
)

// Embedded code is Lua that comes with the Go program: libraries. Scripts call it, but do not decide what it does. Its
// globals are a table of their own, made before any script runs, which no script can come to: to scripts its functions
// are as functions of Go are, which getfenv and setfenv do not open. Methods of strings in it are Lua's own, whatever a
// script has set string.format to, or the __index of strings: see CompileEmbedded.

// embeddedGlobals are what embedded code has of Lua's own globals.
var embeddedGlobals = []string{"assert", "error", "getmetatable", "ipairs", "next", "pairs", "pcall", "print",
	"rawequal", "rawget", "rawset", "select", "setmetatable", "tonumber", "tostring", "type", "unpack", "xpcall",
	lua.CoroutineLibName, lua.IoLibName, lua.MathLibName, lua.OsLibName, lua.StringLibName, lua.TabLibName}

// stringMethods are the functions of Lua's string library, which are methods of strings.
var stringMethods = []string{"byte", "char", "dump", "find", "format", "gfind", "gmatch", "gsub", "len", "lower",
	"match", "rep", "reverse", "sub", "upper"}

// CompileEmbedded is Compile for embedded code: x:format(...) is string.format(x, ...) where x is a string, and what it
// is in Lua where x is something else. It does not look into the metatable of strings, which is a script's to change.
// Methods check what they are called on, see methods.go. Embedded makes the text's function.
func CompileEmbedded(src io.Reader, name string) (*lua.FunctionProto, error) {
	return compile(context.Background(), src, name, bounds{}, &mender{embedded: true})
}

// stringMethod is a call of a method that strings have as a call of what openEmbedded has put under its full name,
// which no variable can have.
func stringMethod(e *ast.FuncCallExpr) {
	e.Args = append([]ast.Expr{e.Receiver}, e.Args...)
	e.Func, e.Receiver, e.Method = identifier(stringMethodName(e.Method), e.Line()), nil, ""
}

func stringMethodName(name string) string { return lua.StringLibName + "." + name }

// embedded is the environment of a state's embedded code. What is in it is noted when the state is opened, and entered
// when embedded code is first used, because most of what opening a state takes is making tables.
type embedded struct {
	globals *lua.LTable
	noted   []globalEntry
}

// globalEntry is a global, or an entry of a library.
type globalEntry struct {
	library, name string
	v             lua.LValue
}

// openEmbedded notes the globals of embedded code. It is the last of what opens Lua's libraries.
func openEmbedded(s *State) {
	s.embedded.globals = s.NewTable(0, 32)
	s.embedded.noted = make([]globalEntry, 0, 128)
	note := func(library, name string, v lua.LValue) {
		s.embedded.noted = append(s.embedded.noted, globalEntry{library, name, v})
	}
	for _, name := range embeddedGlobals {
		v := s.L.G.Global.RawGetString(name)
		if name == "print" { // whatever a script has made of tostring
			v = printer(s, func() lua.LValue { return nil })
		}
		library, ok := v.(*lua.LTable)
		if !ok {
			note("", name, v)
			continue
		}
		library.ForEach(func(k, v lua.LValue) { note(name, k.String(), v) })
	}
	closeEnvironments(s)
}

// enter enters what was noted.
func (e *embedded) enter(L *lua.LState) {
	for _, n := range e.noted {
		if n.library == "" {
			e.globals.RawSetString(n.name, n.v)
			continue
		}
		own, ok := e.globals.RawGetString(n.library).(*lua.LTable)
		if !ok {
			own = L.CreateTable(0, 16)
			e.globals.RawSetString(n.library, own)
		}
		own.RawSetString(n.name, n.v)
		if f, ok := n.v.(*lua.LFunction); ok && n.library == lua.StringLibName {
			e.globals.RawSetString(stringMethodName(n.name), L.NewFunction(methodOf(n.name, f.GFunction)))
		}
	}
	e.noted = nil
}

// methodOf is a function of the string library as a method: of what is no string it is that value's own method.
func methodOf(name string, ofStrings lua.LGFunction) lua.LGFunction {
	return func(L *lua.LState) int {
		if L.Get(1).Type() == lua.LTString {
			return ofStrings(L)
		}
		arguments, object := L.GetTop(), L.Get(1)
		if _, ok := object.(*lua.LTable); !ok && L.GetMetaField(object, "__index") == lua.LNil {
			raiseAtCaller(L, "index", object, func(f frame) variable { return argumentOf(L, f) })
		}
		method := L.GetField(object, name)
		if _, ok := method.(*lua.LFunction); !ok && L.GetMetaField(method, "__call") == lua.LNil {
			raiseAtCaller(L, "call", method, func(frame) variable { return variable{"method", name} })
		}
		L.Insert(method, 1)
		L.Call(arguments, lua.MultRet)
		return L.GetTop()
	}
}

// Embedded is the function of a text that CompileEmbedded has compiled. Its methods call check.
func Embedded(s *State, proto *lua.FunctionProto, check *lua.LFunction) *lua.LFunction {
	s.embedded.enter(s.L)
	return main(s.L, proto, s.embedded.globals, check)
}

// IsEmbedded reports whether a function is embedded code.
func IsEmbedded(s *State, f *lua.LFunction) bool { return !f.IsG && f.Env == s.embedded.globals }

// EmbeddedGlobals is the table of embedded code's globals.
func EmbeddedGlobals(s *State) *lua.LTable { return s.embedded.globals }

// StringMethod is a function of Lua's own string library, whatever a script has made of that.
func StringMethod(s *State, name string) (*lua.LFunction, bool) {
	s.embedded.enter(s.L)
	library, ok := s.embedded.globals.RawGetString(lua.StringLibName).(*lua.LTable)
	if !ok {
		return nil, false
	}
	f, ok := library.RawGetString(name).(*lua.LFunction)
	return f, ok
}

// closeEnvironments has getfenv, setfenv and those of debug take functions of embedded code for functions of Go.
func closeEnvironments(s *State) {
	debugLibrary, _ := s.L.G.Global.RawGetString(lua.DebugLibName).(*lua.LTable)
	for _, lib := range []*lua.LTable{s.L.G.Global, debugLibrary} {
		if lib == nil { // in a sandbox there is no debug library
			continue
		}
		get := lib.RawGetString("getfenv").(*lua.LFunction).GFunction
		set := lib.RawGetString("setfenv").(*lua.LFunction).GFunction
		s.Method(lib, "getfenv", func(L *lua.LState) int {
			n := get(L)
			if L.Get(-1) == lua.LValue(s.embedded.globals) {
				L.Push(L.G.Global)
			}
			return n
		})
		s.Method(lib, "setfenv", func(L *lua.LState) int {
			top := L.GetTop()
			get(L) // of the same function, or level
			if L.Get(-1) == lua.LValue(s.embedded.globals) {
				L.RaiseError("'setfenv' cannot change environment of given object")
			}
			L.SetTop(top)
			return set(L)
		})
	}
}

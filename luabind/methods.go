package luabind

import (
	"strings"

	lua "github.com/yuin/gopher-lua"

	"github.com/mlxlua/mlxlua/luabind/lua51"
	"github.com/mlxlua/mlxlua/tensor"
)

// object is a kind of values that have methods.
type object struct {
	what string // "an array"
	call string // what a call of a method begins with: "x"
	is   func(v lua.LValue) bool
}

// is reports whether a userdata holds a T.
func is[T any](v lua.LValue) bool {
	_, ok := unwrap[T](v)
	return ok
}

// The kinds of objects that Go makes.
var (
	arrayObject    = object{"an array", "x", is[*tensor.Array]}
	atObject       = object{"x:at(...)", "x:at(...)", is[atRef]}
	customObject   = object{"a custom_function", "f", is[*customFunction]}
	compiledObject = object{"a compiled function", "f", is[*compiledFunction]}
	exporterObject = object{"an exporter", "e", is[*exporter]}
	groupObject    = object{"a group of mx.distributed.init", "g", is[group]}
)

// method enters a method of objects. Called of anything else it says so: somebody has written x.sum(1) for x:sum(1),
// which would take 1 for x.
func (s *State) method(methods *lua.LTable, of object, name string, f lua.LGFunction) *lua.LFunction {
	return s.Method(methods, name, func(L *lua.LState) int {
		if !of.is(L.Get(1)) {
			s.raise(s.call().Errorf(name, "%s", notOf(of.what, of.call+":"+name, lua51.Args(L))))
		}
		return f(L)
	})
}

// notOf says that the first argument of a method is no object of its kind, and how the call was meant: call is "x:sum".
func notOf(what, call string, args []lua.LValue) string {
	first := "missing"
	if len(args) > 0 {
		first = describe(args[0])
	}
	return "the first argument is " + first + ", want " + what + ": methods are called with a colon, " + call + "(" +
		inCall(args) + ")"
}

// inCall are the arguments of a call as a line of a script has them, as far as they are short.
func inCall(args []lua.LValue) string {
	texts := make([]string, len(args))
	for i, v := range args {
		switch v := v.(type) {
		case *lua.LNilType, lua.LBool, lua.LNumber:
			texts[i] = v.String()
		case lua.LString:
			texts[i] = quote(string(v))
		default:
			return "..."
		}
	}
	if text := strings.Join(texts, ", "); len(text) <= mostQuoted {
		return text
	}
	return "..."
}

// ownMethods makes the function that each method of scripts/** calls first, with self, the class that it is written
// for, and the names of class and method. It fails if self is no object of the class, nor of another one in its family:
// all modules are one.
func ownMethods(s *State) *lua.LFunction {
	return s.Func(func(L *lua.LState) int {
		class, _ := L.Get(2).(*lua.LTable)
		if !ofFamily(L.Get(1), class) {
			refuseSelf(s, L.Get(1), class, L.CheckString(3), L.CheckString(4))
		}
		return 0
	})
}

// refuseSelf raises what is wrong with the self of a method of a class, whose file calls it by that name.
func refuseSelf(s *State, self lua.LValue, class *lua.LTable, name, method string) {
	if class != nil {
		if own, ok := class.RawGetString("__name").(lua.LString); ok {
			name = string(own)
		}
		if f := s.mx.classes[class]; f != nil {
			name = f.name
		}
	}
	c := s.call()
	c.Place.File, c.Place.Line = s.LineAbove(1, libraryPrefix)
	last := name[strings.LastIndexByte(name, '.')+1:]
	var args []lua.LValue
	if self != lua.LNil {
		args = []lua.LValue{self}
	}
	s.raise(c.Errorf(name+"."+method, "%s", notOf("an object of class "+last, strings.ToLower(last)+":"+method, args)))
}

// mostClasses is how long the chain of an object's classes may be.
const mostClasses = 64

// ofFamily reports whether v is an object whose class is a class, or has a parent in common with it.
func ofFamily(v lua.LValue, class *lua.LTable) bool {
	t, ok := v.(*lua.LTable)
	if !ok || class == nil {
		return false
	}
	first := class
	for range mostClasses {
		above := parentClass(first)
		if above == nil {
			break
		}
		first = above
	}
	c, _ := t.Metatable.(*lua.LTable)
	for i := 0; c != nil && i < mostClasses; i++ {
		if c == class || c == first {
			return true
		}
		c = parentClass(c)
	}
	return false
}

// parentClass is the class that another one stands on, or nil.
func parentClass(class *lua.LTable) *lua.LTable {
	mt, ok := class.Metatable.(*lua.LTable)
	if !ok {
		return nil
	}
	parent, _ := mt.RawGetString("__index").(*lua.LTable)
	return parent
}

package reach

import (
	"reflect"

	lua "github.com/yuin/gopher-lua"
)

// layout says where the fields are that are read by number: of a frame, which gopher-lua hands out without its type, of
// functions and of tables. Reading a field that is not exported gives numbers and addresses only.
var layout = struct {
	frame                                  int // of a Debug
	fn, parent, base, localBase, tailCalls int // of a frame
	isGo, code                             int // of a function
	keys, places, array, strings, others   int // of a table
}{}

func init() {
	debug := reflect.TypeFor[lua.Debug]()
	layout.frame = field(debug, "frame")
	frame := debug.Field(layout.frame).Type.Elem()
	layout.fn, layout.parent = field(frame, "Fn"), field(frame, "Parent")
	layout.base, layout.localBase = field(frame, "Base"), field(frame, "LocalBase")
	layout.tailCalls = field(frame, "TailCall")
	function := reflect.TypeFor[lua.LFunction]()
	layout.isGo, layout.code = field(function, "IsG"), field(function, "GFunction")
	table := reflect.TypeFor[lua.LTable]()
	layout.keys, layout.places = field(table, "keys"), field(table, "k2i")
	layout.array, layout.strings, layout.others = field(table, "array"), field(table, "strdict"), field(table, "dict")
}

// field is the number of a field, which the pinned gopher-lua has.
func field(t reflect.Type, name string) int {
	f, ok := t.FieldByName(name)
	if !ok {
		panic("BUG: " + t.String() + " has no field " + name)
	}
	return f.Index[0]
}

// Keys is how many keys a table has behind its array, and had: those that were removed are among them. Where they are
// many, ForEach, which takes time for what there is, is faster than Next.
func Keys(t *lua.LTable) int { return reflect.ValueOf(t).Elem().Field(layout.keys).Len() }

// Sizes is how long a table's array is, and how many entries it has under strings and under other keys behind it. A
// table that has as many as before, and all of the keys that it had, has no others.
func Sizes(t *lua.LTable) (array, strings, others int) {
	v := reflect.ValueOf(t).Elem()
	return v.Field(layout.array).Len(), v.Field(layout.strings).Len(), v.Field(layout.others).Len()
}

// names walks what a table has under strings, and reports whether it has no other keys behind its array. Next looks for
// each key twice.
func names(t *lua.LTable, w *Walker) bool {
	v := reflect.ValueOf(t).Elem()
	if v.Field(layout.others).Len() > 0 {
		return false
	}
	keys := v.Field(layout.keys)
	for i := range keys.Len() {
		if k := keys.Index(i).Elem(); k.Kind() == reflect.String { // else it was removed
			w.Value(t.RawGetString(k.String()))
		}
	}
	return true
}

// Place is where a key that a table has behind its array stands among them, in the order in which they were first set.
func Place(t *lua.LTable, k lua.LValue) int {
	return int(reflect.ValueOf(t).Elem().Field(layout.places).MapIndex(reflect.ValueOf(&k).Elem()).Int())
}

// address is where an object is.
func address[T lua.LTable | lua.LFunction | lua.LState | lua.LUserData](p *T) uintptr {
	return reflect.ValueOf(p).Pointer()
}

// Code is the address of a Go function's code, by which Walker.Through knows it.
func Code(f lua.LGFunction) uintptr { return reflect.ValueOf(f).Pointer() }

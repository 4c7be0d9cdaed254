package luabind

import (
	"slices"
	"strings"

	lua "github.com/yuin/gopher-lua"
)

// plain are functions without a signature, because they read their arguments themselves; help knows them by this.
var plain = []*function{
	{name: "dims", written: "mx.dims(parts...)", help: "A shape of parts, none of which is read as a number: a size, " +
		"{x, axis} for one dimension of an array, x for its whole shape; of mx.dims(x, axis) that dimension. In a " +
		"compiled function it guards nothing, so that the function is replayed at other sizes. It stands wherever a shape " +
		"is wanted."},
	{name: "help", written: "help(what=nil)", help: "Prints what this manual says of a function, of the functions of a " +
		"module, or of an array; a name, as in help(\"softmax\"), serves too. In the REPL ?mx.softmax does the same."},
	{name: "array.at", written: "x:at(parts...)", help: "Updates of the elements that x:index(parts...) gives: " +
		"x:at(parts...):set(y), add, subtract, multiply, divide, maximum and minimum give a new array and leave x as it " +
		"is. An element whose index stands twice is updated twice, but by set."},
	{name: "array.index", written: "x:index(parts...)", help: "x[part], of several parts: integers, integer or bool " +
		"arrays, lists of integers, and slices as text (\"1:3\", \"::-1\", \"...\", \"None\"). Where all parts are " +
		"literal, one text says the same: x[\"0, 1:3\"]."},
	{name: "array.rows", written: "x:rows()", help: "An iterator over the first dimension: for row in x:rows() do ... " +
		"end."},
}

// addPlain tells help of the functions without a signature.
func (m *module) addPlain() {
	for _, f := range plain {
		in := m.LTable
		name, method := strings.CutPrefix(f.name, "array.")
		if method {
			in = m.methods
		}
		m.help[in.RawGetString(name).(*lua.LFunction)] = f
	}
}

// named is the function of that full name, "softmax" or "array.at", or nil.
func (m *module) named(name string) *function {
	if i := slices.IndexFunc(plain, func(f *function) bool { return f.name == name }); i >= 0 {
		return plain[i]
	}
	return m.funcs[name]
}

package reach

import (
	"slices"

	lua "github.com/yuin/gopher-lua"
)

// Fixed is a table that hardly ever changes and holds hardly anything but Go's functions: a library. Its entries are
// compared with what they were, which takes a fraction of the time that walking takes.
type Fixed struct {
	w      *Walker
	t      *lua.LTable
	names  []string     // to compare
	values []lua.LValue // what they stood for, nil where that has to be walked
	last   lua.LValue   // the last of the table's keys when it was fixed
	keys   int          // how many there were
}

// Fix has w know a table that every walk comes to, with entries that hold no array and lead to none as long as they are
// what they are now: functions of Go without upvalues, strings, numbers. Other entries, and changed and added ones, are
// walked. Gone are the names of entries that it had once. A table may be fixed again when it has other entries.
func (w *Walker) Fix(t *lua.LTable, gone ...string) *Fixed {
	w.fixed = slices.DeleteFunc(w.fixed, func(f *Fixed) bool { return f.t == t }) // as the table was
	f := &Fixed{w: w, t: t, keys: Keys(t), last: lua.LNil}
	known := true
	for k, v := t.Next(number(t.Len())); k != lua.LNil; k, v = t.Next(k) {
		name, ok := k.(lua.LString)
		known = known && ok
		f.last = k
		f.add(string(name), v)
	}
	for _, name := range gone {
		f.add(name, lua.LNil)
	}
	if known && len(f.names) == f.keys { // else it has other keys, or some were removed
		w.fixed = append(w.fixed, f)
	}
	return f
}

// Unfix has w walk all tables like any other, from the next walk on, and only where it comes to them.
func (w *Walker) Unfix() { w.fixed = nil }

// Hide says that the entries are gone until Show says otherwise.
func (f *Fixed) Hide() { f.names, f.values = nil, nil }

// Show says that an entry that Hide took away is there again, or another one in its place.
func (f *Fixed) Show(name string) { f.add(name, f.t.RawGetString(name)) }

func (f *Fixed) add(name string, v lua.LValue) {
	if !f.w.inert(v) {
		v = nil
	}
	f.names, f.values = append(f.names, name), append(f.values, v)
}

// inert reports whether nothing can be reached through v, whatever a script does.
func (w *Walker) inert(v lua.LValue) bool {
	switch v := v.(type) {
	case lua.LString, lua.LNumber, lua.LBool, *lua.LNilType:
		return true
	case *lua.LFunction:
		return v.IsG && len(v.Upvalues) == 0 && v.Env == w.Global
	}
	return false
}

// walk walks what has changed in the table.
func (f *Fixed) walk() {
	w := f.w
	w.visits += 1 + int64(len(f.names))
	if mt, ok := f.t.Metatable.(*lua.LTable); ok {
		w.table(mt)
	}
	for i, name := range f.names {
		if v := f.t.RawGetString(name); v != f.values[i] {
			w.Value(v)
		}
	}
	n := f.t.Len()
	w.visits += int64(n) / elementsAVisit
	for i := 1; i <= n; i++ {
		w.Value(f.t.RawGetInt(i))
	}
	if Keys(f.t) == f.keys {
		return
	}
	for k, v := f.t.Next(f.last); k != lua.LNil; k, v = f.t.Next(k) {
		w.visits += keyVisits
		w.entry(k, v)
	}
}

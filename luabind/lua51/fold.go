package lua51

import (
	"maps"
	"slices"

	lua "github.com/yuin/gopher-lua"
)

// Folds are the tables of a state that hide their entries.
type Folds struct {
	folds   map[*lua.LTable]*fold
	folding *lua.LTable // their metatable
	Quiet   bool        // what is read does not appear: libraries are being loaded, whose code is no script's
}

// fold is what a folded table hides.
type fold struct {
	hidden    map[string]lua.LValue
	metatable lua.LValue // that the table has for scripts
	used      func(name string)
	fill      func() // makes the entries before the first of them is used; nil: they are there
}

// Fold hides the entries of a library whose keys are strings until a script uses them, so that whoever looks at all
// that a script can change has little to look at. Scripts see no difference: what is read or written appears, and what
// goes over the table, such as pairs, finds all of it. Used is told of entries that appear, after they did.
func (s *Folds) Fold(t *lua.LTable, used func(name string)) {
	f := &fold{hidden: map[string]lua.LValue{}, metatable: t.Metatable, used: used}
	t.ForEach(func(k, v lua.LValue) {
		if name, ok := k.(lua.LString); ok {
			f.hidden[string(name)] = v
		}
	})
	for name := range f.hidden {
		t.RawSetString(name, lua.LNil)
	}
	if s.folds == nil {
		s.folds = map[*lua.LTable]*fold{}
	}
	s.folds[t] = f
	t.Metatable = s.folding
}

// Delay folds a table that fill will make entries of. It is called before anything is done with the table, which is as
// it was before Delay when Plain has been called; then it folds the table, or delays it again.
func (s *Folds) Delay(t *lua.LTable, fill func()) {
	s.Fold(t, func(string) {})
	s.folds[t].fill = fill
}

// Delayed reports whether a table's entries are still to be made.
func (s *Folds) Delayed(t *lua.LTable) bool {
	f := s.folds[t]
	return f != nil && f.fill != nil
}

// Hidden are the names that a table hides.
func (s *Folds) Hidden(t *lua.LTable) []string {
	if f := s.folds[t]; f != nil {
		return slices.Collect(maps.Keys(f.hidden))
	}
	return nil
}

// Plain ends what Delay began, without making the entries.
func (s *Folds) Plain(t *lua.LTable) {
	if f := s.folds[t]; f != nil {
		f.fill = nil
		s.Unfold(t)
	}
}

// folded is what a table hides, with its entries made; nil: it hides nothing.
func (s *Folds) folded(t *lua.LTable) *fold {
	if f := s.folds[t]; f != nil && f.fill != nil {
		f.fill()
	}
	return s.folds[t]
}

// Unfold ends what Fold began.
func (s *Folds) Unfold(t *lua.LTable) {
	f := s.folded(t)
	if f == nil {
		return
	}
	delete(s.folds, t)
	t.Metatable = f.metatable
	for _, name := range slices.Sorted(maps.Keys(f.hidden)) {
		t.RawSetString(name, f.hidden[name])
		f.used(name)
	}
}

// Entry is what a table has under a name, whether it shows or not.
func (s *Folds) Entry(t *lua.LTable, name string) lua.LValue {
	if f := s.folded(t); f != nil {
		if v, ok := f.hidden[name]; ok {
			return v
		}
	}
	return t.RawGetString(name)
}

// SetEntry sets what a table has under a name.
func (s *Folds) SetEntry(t *lua.LTable, name string, v lua.LValue) {
	f := s.folded(t)
	t.RawSetString(name, v)
	if f == nil {
		return
	}
	if _, ok := f.hidden[name]; ok {
		delete(f.hidden, name)
		f.used(name)
	}
}

// openFolding makes the metatable of folded tables, and has the functions that see tables as they are unfold them.
func (s *State) openFolding() {
	L := s.L
	mt := s.NewTable(0, 2)
	mt.RawSetString("__index", s.Func(s.foldedIndex))
	mt.RawSetString("__newindex", s.Func(s.foldedNewIndex))
	s.folding = mt
	unfolding := func(t *lua.LTable, names ...string) {
		for _, name := range names {
			plain := t.RawGetString(name).(*lua.LFunction)
			var up []lua.LValue
			for _, u := range plain.Upvalues {
				up = append(up, u.Value())
			}
			f := plain.GFunction
			t.RawSetString(name, L.NewClosure(func(L *lua.LState) int {
				if t, ok := L.Get(1).(*lua.LTable); ok && t.Metatable == s.folding {
					s.Unfold(t)
				}
				return f(L)
			}, up...))
		}
	}
	unfolding(L.G.Global, "next", "rawget", "rawset", "getmetatable", "setmetatable")
	unfolding(s.library(lua.DebugLibName), "getmetatable", "setmetatable")
	unfolding(s.library(lua.LoadLibName), "seeall") // writes into the metatable
	s.openPairs()
}

// openPairs makes pairs, whose iterator is next.
func (s *State) openPairs() {
	s.L.SetGlobal("pairs", s.L.NewClosure(func(L *lua.LState) int {
		t := L.CheckTable(1)
		if t.Metatable == s.folding {
			s.Unfold(t)
		}
		L.Push(L.Get(lua.UpvalueIndex(1)))
		L.Push(t)
		L.Push(lua.LNil)
		return 3
	}, s.L.GetGlobal("next")))
}

// foldedIndex reads what a folded table does not show.
func (s *Folds) foldedIndex(L *lua.LState) int {
	t, key := L.CheckTable(1), L.Get(2)
	f := s.folded(t)
	if name, ok := key.(lua.LString); ok && f != nil {
		if v, ok := f.hidden[string(name)]; ok {
			if !s.Quiet {
				s.SetEntry(t, string(name), v)
			}
			L.Push(v)
			return 1
		}
	}
	if f == nil {
		return 0
	}
	mt, ok := f.metatable.(*lua.LTable)
	if !ok {
		return 0
	}
	switch index := mt.RawGetString("__index").(type) {
	case *lua.LFunction:
		L.Push(index)
		L.Push(t)
		L.Push(key)
		L.Call(2, 1)
		return 1
	case *lua.LTable:
		L.Push(L.GetTable(index, key))
		return 1
	}
	return 0
}

// foldedNewIndex sets what a folded table does not show. Libraries have no __newindex of their own.
func (s *Folds) foldedNewIndex(L *lua.LState) int {
	t, key, v := L.CheckTable(1), L.Get(2), L.Get(3)
	if name, ok := key.(lua.LString); ok {
		s.SetEntry(t, string(name), v)
		return 0
	}
	s.folded(t)
	L.RawSet(t, key, v)
	return 0
}

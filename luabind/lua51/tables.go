package lua51

import (
	"sort"

	lua "github.com/yuin/gopher-lua"
)

// boundTables replaces the functions of the table library, and unpack, whose work or result has no bound.
func (s *State) boundTables() {
	lib := s.library(lua.TabLibName)
	s.Method(lib, "concat", s.tableConcat)
	s.Method(lib, "sort", s.tableSort)
	s.Method(lib, "remove", tableRemove)
	if s.opt.Limits.Memory > 0 {
		countEntries(s, lib, "insert")
		countEntries(s, s.L.G.Global, "rawset")
	}
	s.limitResults(s.L.G.Global, "unpack", "unpack", func(L *lua.LState) (int, int) {
		return L.OptInt(2, 1), L.OptInt(3, L.CheckTable(1).Len())
	}, nil)
}

// tableRemove is table.remove. gopher-lua's takes the last slot of a table's array, which may be an empty one, and it
// takes that for places before the first, too.
func tableRemove(L *lua.LState) int {
	t := L.CheckTable(1)
	last := t.Len()
	at := L.OptInt(2, last)
	if at < 1 || at > last {
		return 0
	}
	L.Push(t.Remove(at))
	return 1
}

// countEntries has a function that sets an entry of a table, by its first two arguments, counted.
func countEntries(s *State, lib *lua.LTable, name string) {
	plain := lib.RawGetString(name).(*lua.LFunction).GFunction
	s.Method(lib, name, func(L *lua.LState) int {
		if t, ok := L.Get(1).(*lua.LTable); ok {
			s.Charge(ElementBytes + entryBytes(t, L.Get(2)))
		}
		return plain(L)
	})
}

func (s *State) tableConcat(L *lua.LState) int {
	t, sep := L.CheckTable(1), L.OptString(2, "")
	first, last := L.OptInt(3, 1), L.OptInt(4, t.Len())
	out := s.longText("table.concat")
	defer out.end()
	for i := first; i <= last; i++ {
		v := t.RawGetInt(i)
		switch v.(type) {
		case lua.LString, lua.LNumber:
		default:
			s.fail("invalid value (%s) at index %d in table for 'concat'", v.Type(), i)
		}
		out.add(v.String())
		if i < last {
			out.add(sep)
		}
		if i%pollEvery == 0 {
			s.poll()
		}
	}
	L.Push(out.value())
	return 1
}

// tableSort is table.sort. A comparison that fails leaves the table as it was.
func (s *State) tableSort(L *lua.LState) int {
	t := L.CheckTable(1)
	var before *lua.LFunction
	if L.Get(2) != lua.LNil {
		before = L.CheckFunction(2)
	}
	defer hold(s, ElementBytes*int64(t.Len()))()
	list := make([]lua.LValue, t.Len())
	for i := range list {
		list[i] = t.RawGetInt(i + 1)
	}
	const beside = 256 // bytes that take as long to compare as all else does
	work := 0
	sort.Slice(list, func(i, j int) bool {
		x, _ := list[i].(lua.LString)
		y, _ := list[j].(lua.LString)
		if work += 1 + min(len(x), len(y))/beside; work >= pollEvery {
			work = 0
			s.poll()
		}
		if before == nil {
			return less(L, list[i], list[j])
		}
		L.Push(before)
		L.Push(list[i])
		L.Push(list[j])
		L.Call(2, 1)
		yes := lua.LVAsBool(L.Get(-1))
		L.Pop(1)
		return yes
	})
	for i, v := range list {
		t.RawSetInt(i+1, v)
	}
	return 0
}

// less is Lua's a < b.
func less(L *lua.LState, a, b lua.LValue) bool {
	if x, ok := a.(lua.LString); ok {
		if y, ok := b.(lua.LString); ok {
			return x < y
		}
	}
	return L.LessThan(a, b)
}

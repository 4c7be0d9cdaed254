package lua51

import (
	"math"
	"sort"

	lua "github.com/yuin/gopher-lua"
)

// openTables replaces the table library: gopher-lua's functions have work or results without bounds, take places for
// others, and no text for a number.
func (s *State) openTables() {
	lib := s.library(lua.TabLibName)
	s.Method(lib, "concat", with(s, tableConcat))
	s.Method(lib, "sort", with(s, tableSort))
	s.Method(lib, "remove", with(s, tableRemove))
	s.Method(lib, "insert", with(s, tableInsert))
	s.Method(lib, "maxn", tableMaxN)
	s.Method(lib, "getn", func(L *lua.LState) int {
		L.Push(lua.LNumber(L.CheckTable(1).Len()))
		return 1
	})
	s.Method(lib, "setn", func(L *lua.LState) int {
		L.CheckTable(1)
		s.fail("'setn' is obsolete")
		return 0
	})
	if s.opt.Limits.Memory > 0 {
		countEntries(s, s.L.G.Global, "rawset")
	}
}

// tableRemove is table.remove.
func tableRemove(s *State, L *lua.LState) int {
	t := L.CheckTable(1)
	last := t.Len()
	at := optional(L, 2, integerArg, last)
	if at < 1 || at > last {
		return 0
	}
	L.Push(t.Remove(at))
	return 1
}

// tableInsert is table.insert. Places before the first move all that there are from there to the last.
func tableInsert(s *State, L *lua.LState) int {
	t := L.CheckTable(1)
	end := t.Len() + 1
	at := end
	switch L.GetTop() {
	case 2:
	case 3:
		at = integerArg(L, 2)
	default:
		s.fail("wrong number of arguments to 'insert'")
	}
	v := L.Get(L.GetTop())
	if s.meter != nil {
		s.Charge(ElementBytes + entryBytes(t, lua.LNumber(max(at, end))))
	}
	if at >= 1 && at < end {
		t.Insert(at, v)
		return 0
	}
	for i := end; i > at; i-- {
		t.RawSet(lua.LNumber(i), t.RawGet(lua.LNumber(i-1)))
		s.pollAt(i)
	}
	t.RawSet(lua.LNumber(at), v)
	return 0
}

// pollAt polls at some of the steps of a loop.
func (s *State) pollAt(step int) {
	if step%pollEvery == 0 {
		s.poll()
	}
}

// tableMaxN is table.maxn: the largest number that is a key.
func tableMaxN(L *lua.LState) int {
	t := L.CheckTable(1)
	most := lua.LNumber(0)
	t.ForEach(func(k, _ lua.LValue) {
		if n, ok := k.(lua.LNumber); ok && n > most {
			most = n
		}
	})
	L.Push(most)
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

func tableConcat(s *State, L *lua.LState) int {
	sep := optional(L, 2, textArg, "")
	t := L.CheckTable(1)
	first := optional(L, 3, integerArg, 1)
	last := optional(L, 4, integerArg, t.Len())
	out := s.longText("table.concat")
	defer out.end()
	for i := first; i <= last; i++ {
		v := t.RawGet(lua.LNumber(i))
		piece, ok := asText(v)
		if !ok {
			s.fail("invalid value (%s) at index %d in table for 'concat'", typeName(s, v), i)
		}
		out.add(piece)
		if i < last {
			out.add(sep)
		}
		s.pollAt(i)
		if i == math.MaxInt {
			break
		}
	}
	L.Push(out.value())
	return 1
}

// tableSort is table.sort. A comparison that fails leaves the table as it was.
func tableSort(s *State, L *lua.LState) int {
	t := L.CheckTable(1)
	before := optional(L, 2, functionArg, nil)
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
			return less(s, L, list[i], list[j])
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
func less(s *State, L *lua.LState, a, b lua.LValue) bool {
	switch x := a.(type) {
	case lua.LString:
		if y, ok := b.(lua.LString); ok {
			return x < y
		}
	case lua.LNumber:
		if y, ok := b.(lua.LNumber); ok {
			return x < y
		}
	}
	if L.GetMetaField(a, "__lt") == lua.LNil || L.GetMetaField(b, "__lt") == lua.LNil {
		s.throw(L, lua.LString(compared(typeName(s, a), typeName(s, b))))
	}
	return L.LessThan(a, b)
}

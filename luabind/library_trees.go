package luabind

import (
	"fmt"
	"strings"

	lua "github.com/yuin/gopher-lua"

	"github.com/mlxlua/mlxlua/luabind/lua51"
)

// treeFunctions is a table of what modules written in Lua do with the trees of parameters in every training step. In
// Lua that took more instructions than all else in a step.
func treeFunctions(s *State) *lua.LTable {
	t := s.NewTable(0, 1)
	s.Method(t, "own", func(L *lua.LState) int { return ownParameters(s, L) })
	s.Method(t, "update", func(L *lua.LState) int {
		u := parameterUpdate{s, lua.LVAsBool(L.Get(3))}
		u.write(L.CheckTable(1), L.CheckTable(2), 0)
		return 0
	})
	s.Method(t, "map", func(L *lua.LState) int { return newTreeMap(s, L).run() })
	return t
}

// isModule reports whether a value is an object of one of the classes of mx.nn.
func isModule(v lua.LValue) bool {
	t, ok := v.(*lua.LTable)
	if !ok {
		return false
	}
	class, ok := classOf(t).(*lua.LTable)
	return ok && class.RawGetString("__module") == lua.LTrue
}

// classOf is what getmetatable gives of a table.
func classOf(t *lua.LTable) lua.LValue {
	meta, ok := t.Metatable.(*lua.LTable)
	if !ok {
		return lua.LNil
	}
	if v := meta.RawGetString("__metatable"); v != lua.LNil {
		return v
	}
	return meta
}

func isArray(v lua.LValue) bool {
	_, ok := array(v)
	return ok
}

// isTree reports whether a field of a module holds parameters or layers: tables of nothing but numbers and the like are
// settings, as Python's tuples are, and so are objects of other classes.
func isTree(v lua.LValue) bool {
	t, ok := v.(*lua.LTable)
	if !ok {
		return false
	}
	if classOf(t) != lua.LNil {
		return isModule(t)
	}
	k, e := t.Next(lua.LNil)
	if k == lua.LNil {
		return true
	}
	for ; k != lua.LNil; k, e = t.Next(k) {
		switch e.(type) {
		case *lua.LTable, *lua.LUserData:
			return true
		}
	}
	return false
}

// noGrad is the field of a module with the names of its frozen parameters.
const noGrad = lua.LString("_no_grad")

// ownParameters gives a table of a module's own arrays, and of its trees as they are, in the order of their making; and
// a list of the trees' keys and names, one after the other, or nothing where there are none. Names that begin with an
// underscore are left out, and those in a second table.
func ownParameters(s *State, L *lua.LState) int {
	module := L.CheckTable(1)
	frozen, _ := L.Get(2).(*lua.LTable)
	out := s.NewTable(0, 4)
	var nested *lua.LTable
	for k, v := module.Next(lua.LNil); k != lua.LNil; k, v = module.Next(k) {
		isArray := isArray(v)
		if !isArray && (k == noGrad || !isTree(v)) {
			continue
		}
		name, isName := k.(lua.LString)
		if !isName {
			name = lua.LString(elementName(L, k))
		}
		if strings.HasPrefix(string(name), "_") || frozen != nil && lua.LVAsBool(frozen.RawGetString(string(name))) {
			continue
		}
		out.RawSet(k, v)
		if !isArray {
			if nested == nil {
				nested = s.NewTable(8, 0)
			}
			nested.Append(k)
			nested.Append(name)
		}
	}
	L.Push(out)
	if nested == nil {
		return 1
	}
	L.Push(nested)
	return 2
}

// elementName is the part of a path that a key is: elements count from 0, as in MLX's names.
func elementName(L *lua.LState, k lua.LValue) string {
	if n, ok := k.(lua.LNumber); ok {
		k = n - 1
	}
	return lua51.Text(L, k)
}

// parameterUpdate replaces arrays of a module by those of a tree of parameters.
type parameterUpdate struct {
	s      *State
	strict bool // everything in the tree has a place
}

func (u *parameterUpdate) fail(format string, v ...any) {
	u.s.raise(u.s.call().Errorf("nn.Module.update", format, v...))
}

// write replaces arrays below a table.
func (u *parameterUpdate) write(dst, parameters *lua.LTable, depth int) {
	if depth == maxDepth {
		u.fail("a table is nested deeper than %d levels", maxDepth)
	}
	module := isModule(parameters)
	for k, v := parameters.Next(lua.LNil); k != lua.LNil; k, v = parameters.Next(k) {
		if module && (k == noGrad || !isArray(v) && !isTree(v)) {
			continue // it is a setting
		}
		u.entry(dst, k, v, depth)
	}
}

func (u *parameterUpdate) entry(dst *lua.LTable, k, v lua.LValue, depth int) {
	now := dst.RawGet(k)
	inside, isTable := v.(*lua.LTable)
	empty := isTable && isEmpty(inside) // it stands for what has no parameters
	into, hasTable := now.(*lua.LTable)
	switch {
	case isArray(now):
		if isArray(v) || !u.strict {
			dst.RawSet(k, v)
		} else if !empty {
			u.fail("%s is a %s, want an array", lua51.Text(u.s.L, k), typeName(v))
		}
	case hasTable && isTable:
		u.write(into, inside, depth+1)
	case !u.strict || now != lua.LNil && empty:
	case hasTable:
		u.fail("%s is a %s, want a table", lua51.Text(u.s.L, k), typeName(v))
	case k.Type() == lua.LTNumber:
		u.fail("the list has %d elements, not element %s", dst.Len(), lua51.Text(u.s.L, k))
	default:
		u.fail("the module has no parameter %s", quote(lua51.Text(u.s.L, k)))
	}
}

func isEmpty(t *lua.LTable) bool {
	k, _ := t.Next(lua.LNil)
	return k == lua.LNil
}

// treeMap makes a tree of what a function gives for each leaf of a tree and for what other trees have there.
type treeMap struct {
	s          *State
	L          *lua.LState
	op         string
	fn, isLeaf lua.LValue // isLeaf is false: tables are no leaves
	path       lua.LValue // what the leaves' paths, which fn is given first, begin with; false: it is not given them
	trees      []lua.LValue
	keys       []lua.LValue // that lead to where it is
	entries    int
}

// newTreeMap is the one that a call from Lua asks for: op, fn, is_leaf, path, and the trees.
func newTreeMap(s *State, L *lua.LState) *treeMap {
	m := &treeMap{s: s, L: L, op: L.CheckString(1), fn: L.Get(2), isLeaf: L.Get(3), path: L.Get(4)}
	for i := 5; i <= L.GetTop(); i++ {
		m.trees = append(m.trees, L.Get(i))
	}
	return m
}

func (m *treeMap) fail(format string, v ...any) {
	m.s.raise(m.s.call().Errorf("utils."+m.op, format, v...))
}

// run pushes what fn gives if the tree is a leaf, and else a tree.
func (m *treeMap) run() int {
	top := m.L.GetTop()
	if t, ok := m.table(m.trees[0]); ok {
		m.tree(t, m.trees[1:])
	} else {
		m.leaf(m.trees[0], m.trees[1:], lua.MultRet)
	}
	return m.L.GetTop() - top
}

// table is a value as a tree that is no leaf.
func (m *treeMap) table(v lua.LValue) (*lua.LTable, bool) {
	t, ok := v.(*lua.LTable)
	if !ok || m.isLeaf == lua.LFalse {
		return t, ok
	}
	m.L.Push(m.isLeaf)
	m.L.Push(t)
	m.L.Call(1, 1)
	leaf := lua.LVAsBool(m.L.Get(-1))
	m.L.Pop(1)
	return t, !leaf
}

// leaf pushes what fn gives.
func (m *treeMap) leaf(v lua.LValue, rest []lua.LValue, results int) {
	m.L.Push(m.fn)
	n := 1
	if m.path != lua.LFalse {
		m.L.Push(m.place())
		n++
	}
	m.L.Push(v)
	for _, w := range rest {
		m.L.Push(w)
	}
	m.L.Call(n+len(rest), results)
}

// place is the path to where it is: nil at the root, where paths begin with nothing.
func (m *treeMap) place() lua.LValue {
	if len(m.keys) == 0 && m.path.Type() != lua.LTString {
		return lua.LNil
	}
	path := lua.LVAsString(m.path)
	for _, k := range m.keys {
		if path != "" {
			path += "."
		}
		path += elementName(m.L, k)
	}
	return lua.LString(path)
}

// where is the path for messages.
func (m *treeMap) where() string {
	if p := m.place(); p != lua.LNil {
		return p.String()
	}
	return "its root"
}

// tree pushes a tree. It stays on the stack while it is made, where all that look for what a script reaches find it.
func (m *treeMap) tree(t *lua.LTable, rest []lua.LValue) {
	if len(m.keys) == maxDepth {
		m.fail("a table is nested deeper than %d levels", maxDepth)
	}
	var few [16]lua.LValue
	keys := orderedKeys(t, few[:0])
	list := t.Len()
	out := m.s.NewTable(list, len(keys)-min(list, len(keys)))
	m.L.Push(out)
	var fewer [4]lua.LValue
	inside := append(fewer[:0], rest...)
	m.keys = append(m.keys, lua.LNil)
	last := len(m.keys) - 1
	for _, k := range keys {
		m.keys[last] = k
		m.poll()
		for i, w := range rest {
			other, ok := w.(*lua.LTable)
			if !ok {
				m.keys = m.keys[:last]
				m.fail("tree %d has %s at %s, where the first tree has a table", i+2, typeName(w), m.where())
			}
			if inside[i] = m.at(other, k); inside[i] == lua.LNil {
				m.fail("tree %d has nothing at %s", i+2, m.where())
			}
		}
		v := t.RawGet(k)
		if inner, ok := m.table(v); ok {
			m.tree(inner, inside)
		} else {
			m.leaf(v, inside, 1)
		}
		if v := m.L.Get(-1); v != lua.LNil {
			out.RawSet(k, v)
		}
		m.L.Pop(1)
	}
	m.keys = m.keys[:last]
}

// at is t[k].
func (m *treeMap) at(t *lua.LTable, k lua.LValue) lua.LValue {
	if v := t.RawGet(k); v != lua.LNil || t.Metatable == lua.LNil {
		return v
	}
	return m.L.GetTable(t, k)
}

// poll ends a walk that has no end, or whose script was stopped.
func (m *treeMap) poll() {
	if m.entries++; m.entries > maxEntries {
		m.fail("a tree has more than %d entries: does it hold one table in many places?", maxEntries)
	}
	if m.entries%visitsPerPoll == 0 {
		if err := m.s.Context().Err(); err != nil {
			m.s.raise(fmt.Errorf("[utils.%s] %w", m.op, err))
		}
	}
}

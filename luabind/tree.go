package luabind

import (
	"cmp"
	"fmt"
	"slices"

	lua "github.com/yuin/gopher-lua"

	"github.com/mlxlua/mlxlua/tensor"
)

// maxDepth bounds the nesting of trees, so that a table that contains itself is an error.
const maxDepth = 200

// maxLeaves bounds the arrays of a tree: tables that hold one table twice, level upon level, have more than memory
// holds.
const maxLeaves = 1 << 20

// flatten lists the arrays of a tree in the order of its keys.
func flatten(v lua.LValue, depth int, out []*tensor.Array) ([]*tensor.Array, error) {
	if x, ok := array(v); ok {
		if len(out) == maxLeaves {
			return nil, fmt.Errorf("a tree has more than %d arrays: does it hold one table in many places?", maxLeaves)
		}
		return append(out, x), nil
	}
	t, ok := v.(*lua.LTable)
	if !ok {
		return out, nil
	}
	if depth == maxDepth {
		return nil, fmt.Errorf("a table is nested deeper than %d levels", maxDepth)
	}
	for _, k := range orderedKeys(t, nil) {
		var err error
		if out, err = flatten(t.RawGet(k), depth+1, out); err != nil {
			return nil, err
		}
	}
	return out, nil
}

// orderedKeys appends a table's keys in a tree's order: 1..n, other numbers, false and true, strings by bytes, and what
// has no order as the table has it.
func orderedKeys(t *lua.LTable, keys []lua.LValue) []lua.LValue {
	n := t.Len()
	for i := 1; i <= n; i++ {
		keys = append(keys, lua.LNumber(i))
	}
	names, strings := len(keys), true
	var last lua.LValue = lua.LNil // of the elements counted from 1
	if n > 0 {
		last = lua.LNumber(n)
	}
	for k, _ := t.Next(last); k != lua.LNil; k, _ = t.Next(k) {
		_, isString := k.(lua.LString)
		strings = strings && isString
		keys = append(keys, k)
	}
	if strings { // nearly always
		slices.SortFunc(keys[names:], func(a, b lua.LValue) int { return cmp.Compare(a.(lua.LString), b.(lua.LString)) })
	} else {
		slices.SortStableFunc(keys[names:], compareKeys)
	}
	return keys
}

// compareKeys is the order of keys beside 1..n.
func compareKeys(a, b lua.LValue) int {
	switch x := a.(type) {
	case lua.LString:
		if y, ok := b.(lua.LString); ok {
			return cmp.Compare(x, y)
		}
	case lua.LNumber:
		if y, ok := b.(lua.LNumber); ok {
			return cmp.Compare(x, y)
		}
	case lua.LBool:
		if y, ok := b.(lua.LBool); ok && x != y {
			if x {
				return 1
			}
			return -1
		}
	}
	return cmp.Compare(keyRank(a), keyRank(b))
}

func keyRank(k lua.LValue) int {
	switch k.(type) {
	case lua.LNumber:
		return 0
	case lua.LBool:
		return 1
	case lua.LString:
		return 2
	}
	return 3
}

// rebuild is the tree v with its arrays replaced by those of xs, in order, and the rest of xs. A nil array leaves the
// old one. value is wrap for results, or lend for a function's arguments.
func (s *State) rebuild(v lua.LValue, xs []*tensor.Array, value func(*tensor.Array) lua.LValue) (lua.LValue,
	[]*tensor.Array) {
	if _, ok := array(v); ok {
		if xs[0] == nil {
			return v, xs[1:]
		}
		return value(xs[0]), xs[1:]
	}
	t, ok := v.(*lua.LTable)
	if !ok {
		return v, xs
	}
	out := s.L.NewTable()
	out.Metatable = t.Metatable
	for _, k := range orderedKeys(t, nil) {
		var child lua.LValue
		child, xs = s.rebuild(t.RawGet(k), xs, value)
		out.RawSet(k, child)
	}
	return out, xs
}

// flattenAll is flatten over several values; an error is raised in the name of op.
func (s *State) flattenAll(op string, vs []lua.LValue) []*tensor.Array {
	var out []*tensor.Array
	for _, v := range vs {
		var err error
		if out, err = flatten(v, 0, out); err != nil {
			s.raise(s.call().Errorf(op, "%w", err))
		}
	}
	return out
}

// rebuildAll is rebuild over several results.
func (s *State) rebuildAll(vs []lua.LValue, xs []*tensor.Array) []lua.LValue {
	return s.fill(vs, xs, s.wrap)
}

// lendAll is rebuild over a function's arguments.
func (s *State) lendAll(vs []lua.LValue, xs []*tensor.Array) []lua.LValue {
	return s.fill(vs, xs, s.lend)
}

func (s *State) fill(vs []lua.LValue, xs []*tensor.Array, value func(*tensor.Array) lua.LValue) []lua.LValue {
	out := make([]lua.LValue, len(vs))
	for i, v := range vs {
		out[i], xs = s.rebuild(v, xs, value)
	}
	return out
}

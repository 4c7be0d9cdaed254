package luabind

import (
	"cmp"
	"fmt"
	"slices"
	"strconv"

	lua "github.com/yuin/gopher-lua"

	"github.com/mlxlua/mlxlua/tensor"
)

// maxDepth bounds the nesting of trees, so that a table that contains itself is an error.
const maxDepth = 200

// maxLeaves bounds the arrays of a tree: tables that hold one table twice, level upon level, have more than memory
// holds.
const maxLeaves = 1 << 20

// flatten lists the arrays of a tree in its order: 1..n, then string keys by bytes. What is no array or table stands
// in the tree's structure.
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

// orderedKeys appends a table's keys in a tree's order.
func orderedKeys(t *lua.LTable, keys []lua.LValue) []lua.LValue {
	n := t.Len()
	for i := 1; i <= n; i++ {
		keys = append(keys, lua.LNumber(i))
	}
	names := len(keys)
	var last lua.LValue = lua.LNil // of the elements counted from 1
	if n > 0 {
		last = lua.LNumber(n)
	}
	for k, _ := t.Next(last); k != lua.LNil; k, _ = t.Next(k) {
		if _, ok := k.(lua.LString); ok {
			keys = append(keys, k)
		}
	}
	slices.SortFunc(keys[names:], func(a, b lua.LValue) int { return cmp.Compare(a.(lua.LString), b.(lua.LString)) })
	return keys
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

// structure is a text that is equal for trees that differ in their arrays only: keys, and the values that are no
// arrays.
func structure(v lua.LValue, b []byte) []byte {
	if _, ok := array(v); ok {
		return append(b, '*')
	}
	switch v := v.(type) {
	case *lua.LTable:
		b = append(b, '{')
		for _, k := range orderedKeys(v, nil) {
			if name, ok := k.(lua.LString); ok {
				b = strconv.AppendQuote(b, string(name))
				b = append(b, '=')
			}
			b = append(structure(v.RawGet(k), b), ',')
		}
		return append(b, '}')
	case lua.LString:
		return strconv.AppendQuote(b, string(v))
	case lua.LNumber:
		return strconv.AppendFloat(b, float64(v), 'x', -1, 64)
	case lua.LBool, *lua.LNilType:
		return append(b, v.String()...)
	case *lua.LUserData:
		return fmt.Appendf(b, "%T:%v", v.Value, v.Value)
	}
	return fmt.Appendf(b, "%p", v)
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

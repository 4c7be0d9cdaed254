package luabind

import (
	"cmp"
	"context"
	"fmt"
	"slices"

	lua "github.com/yuin/gopher-lua"

	"github.com/mlxlua/mlxlua/luabind/reach"
	"github.com/mlxlua/mlxlua/tensor"
)

// maxDepth bounds the nesting of trees, so that a table that contains itself is an error.
const maxDepth = 200

// tooDeep is the error of a table at a depth that trees do not have.
func tooDeep(depth int) error {
	if depth < maxDepth {
		return nil
	}
	return fmt.Errorf("a table is nested deeper than %d levels", maxDepth)
}

// The bounds of a tree that is walked table by table as often as each occurs: tables that hold one table twice, level
// upon level, have more than memory holds.
const (
	maxLeaves  = 1 << 20 // arrays
	maxEntries = 1 << 22 // entries of tables
)

// treeWalk gathers the arrays of trees in the order of their keys.
type treeWalk struct {
	ctx     context.Context
	out     []*tensor.Array
	entries int
	once    bool // each table is walked once
	seen    map[*lua.LTable]bool
}

func (w *treeWalk) add(v lua.LValue, depth int) error {
	if x, ok := array(v); ok {
		if len(w.out) == maxLeaves && !w.once {
			return fmt.Errorf("a tree has more than %d arrays: does it hold one table in many places?", maxLeaves)
		}
		w.out = append(w.out, x)
		return nil
	}
	t, ok := v.(*lua.LTable)
	if !ok {
		if state, ok := unwrap[*randomState](v); ok && w.once { // to evaluate, not to pass on
			w.out = append(w.out, state.s.random.Key())
		}
		return nil
	}
	if err := tooDeep(depth); err != nil {
		return err
	}
	if w.once {
		return w.addOnce(t, depth)
	}
	for _, k := range orderedKeys(t, nil) {
		if w.entries++; w.entries > maxEntries {
			return fmt.Errorf("a tree has more than %d entries: does it hold one table in many places?", maxEntries)
		}
		if err := w.entry(t.RawGet(k), depth+1); err != nil {
			return err
		}
	}
	return nil
}

// addOnce is add for callers that do not care about the order: it walks each table once, however often it occurs.
func (w *treeWalk) addOnce(t *lua.LTable, depth int) error {
	if w.seen[t] {
		return nil
	}
	if w.seen == nil {
		w.seen = map[*lua.LTable]bool{}
	}
	w.seen[t] = true
	for k, v := t.Next(lua.LNil); k != lua.LNil; k, v = t.Next(k) {
		w.entries++
		if err := w.entry(v, depth+1); err != nil {
			return err
		}
	}
	return nil
}

// entry adds a table's entry, unless the script has been stopped.
func (w *treeWalk) entry(v lua.LValue, depth int) error {
	if w.entries%1024 == 0 && w.ctx.Err() != nil {
		return context.Cause(w.ctx)
	}
	return w.add(v, depth)
}

// flatten lists the arrays of trees: one that occurs twice is there twice.
func flatten(ctx context.Context, vs ...lua.LValue) ([]*tensor.Array, error) {
	w := treeWalk{ctx: ctx}
	for _, v := range vs {
		if err := w.add(v, 0); err != nil {
			return nil, err
		}
	}
	return w.out, nil
}

// arraysIn lists the arrays of trees. It lists a table that occurs twice only once, and raises errors in the name of
// op.
func (s *State) arraysIn(op string, vs []lua.LValue) []*tensor.Array {
	w := treeWalk{ctx: s.Context(), once: true}
	for _, v := range vs {
		if err := w.add(v, 0); err != nil {
			s.raise(s.call().Errorf(op, "%w", err))
		}
	}
	return w.out
}

// orderedKeys appends a table's keys in the order of trees: those of 1..n that hold something, other numbers, false and
// true, strings by bytes, and then keys without an order, as the table has them.
func orderedKeys(t *lua.LTable, keys []lua.LValue) []lua.LValue {
	n := t.Len()
	for i := 1; i <= n; i++ {
		if t.RawGetInt(i) != lua.LNil {
			keys = append(keys, lua.LNumber(i))
		}
	}
	names := len(keys)
	keys, strings := keysBehind(t, n, keys)
	if strings { // nearly always
		slices.SortFunc(keys[names:], func(a, b lua.LValue) int { return cmp.Compare(a.(lua.LString), b.(lua.LString)) })
	} else {
		slices.SortStableFunc(keys[names:], compareKeys)
	}
	return keys
}

// manyKeys are so many that a table is asked for those that it still has: Next passes over all that were removed too.
const manyKeys = 256

// keysBehind appends the keys of a table but 1..n; those that compareKeys does not order are in the order in which they
// were set first. Strings is whether there are no others than strings.
func keysBehind(t *lua.LTable, n int, keys []lua.LValue) (all []lua.LValue, strings bool) {
	strings = true
	add := func(k, _ lua.LValue) {
		_, isString := k.(lua.LString)
		strings = strings && isString
		keys = append(keys, k)
	}
	if reach.Keys(t) <= manyKeys {
		var last lua.LValue = lua.LNil
		if n > 0 {
			last = lua.LNumber(n)
		}
		for k, v := t.Next(last); k != lua.LNil; k, v = t.Next(k) {
			add(k, v)
		}
		return keys, strings
	}
	type placed struct {
		key   lua.LValue
		place int
	}
	var objects []placed
	t.ForEach(func(k, v lua.LValue) {
		switch i, number := k.(lua.LNumber); {
		case number && i >= 1 && i <= lua.LNumber(n) && i == lua.LNumber(int(i)):
		case keyRank(k) == objectKey:
			objects = append(objects, placed{k, reach.Place(t, k)})
		default:
			add(k, v)
		}
	})
	slices.SortFunc(objects, func(a, b placed) int { return cmp.Compare(a.place, b.place) })
	for _, o := range objects {
		add(o.key, nil)
	}
	return keys, strings
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
	return objectKey
}

// objectKey is the rank of keys without an order.
const objectKey = 3

// flattenAll is flatten; an error is raised in the name of op.
func (s *State) flattenAll(op string, vs []lua.LValue) []*tensor.Array {
	out, err := flatten(s.Context(), vs...)
	if err != nil {
		s.raise(s.call().Errorf(op, "%w", err))
	}
	return out
}

// rebuildAll are the trees vs, of results, with their arrays replaced by those of xs.
func (s *State) rebuildAll(vs []lua.LValue, xs []*tensor.Array) []lua.LValue {
	r := replacement{s: s, arrays: xs, value: s.wrap}
	return r.trees(vs)
}

// lendAll is rebuildAll for the arguments of a script's function. A value that holds its array already stays: the
// function gets what the script passed, and may return it.
func (s *State) lendAll(vs []lua.LValue, xs []*tensor.Array) []lua.LValue {
	r := replacement{s: s, arrays: xs, value: s.lend, same: true}
	return r.trees(vs)
}

// lendTrees is lendAll; a table of which nothing changes stays too: what the function writes there lasts, as in a call
// without a transform.
func (s *State) lendTrees(vs []lua.LValue, xs []*tensor.Array) []lua.LValue {
	r := replacement{s: s, arrays: xs, value: s.lend, same: true, tables: true}
	return r.trees(vs)
}

// replacement replaces the arrays of trees, in the order in which flatten lists them.
type replacement struct {
	s      *State
	arrays []*tensor.Array                // those that are left; a nil one leaves the old one
	value  func(*tensor.Array) lua.LValue // wrap for results, lend for a function's arguments
	same   bool                           // the old one stays also where it is the new one
	tables bool                           // and so do tables of which nothing changes
}

func (r *replacement) trees(vs []lua.LValue) []lua.LValue {
	out := make([]lua.LValue, len(vs))
	for i, v := range vs {
		out[i] = r.tree(v)
	}
	return out
}

func (r *replacement) tree(v lua.LValue) lua.LValue {
	if isLeaf(v) {
		x := r.arrays[0]
		if r.arrays = r.arrays[1:]; x == nil {
			return v
		}
		if old, ok := array(v); ok && r.same && old == x {
			return v
		}
		return r.value(x)
	}
	t, ok := v.(*lua.LTable)
	if !ok {
		return v
	}
	var few [16]lua.LValue
	keys, n := orderedKeys(t, few[:0]), t.Len()
	out, changed := r.s.NewTable(n, max(len(keys)-n, 0)), false
	out.Metatable = t.Metatable
	for _, k := range keys {
		old := t.RawGet(k)
		now := r.tree(old)
		changed = changed || !unchanged(old, now)
		out.RawSet(k, now)
	}
	if r.tables && !changed {
		return t
	}
	return out
}

// hole stands in an outline where a tree has an array.
type hole struct{}

// isLeaf reports whether v is an array of a tree, or stands for one.
func isLeaf(v lua.LValue) bool {
	if ud, ok := v.(*lua.LUserData); ok {
		switch ud.Value.(type) {
		case *tensor.Array, hole:
			return true
		}
	}
	return false
}

// outlines are trees without their arrays, to be filled with others later: what is kept keeps no array. The trees are
// known to be no deeper than flatten allows.
func outlines(s *State, vs []lua.LValue) []lua.LValue {
	r := outline{s: s, hole: s.NewUserData(hole{}, lua.LNil, 0)}
	out := make([]lua.LValue, len(vs))
	for i, v := range vs {
		out[i] = r.tree(v)
	}
	return out
}

type outline struct {
	s    *State
	hole *lua.LUserData
}

func (o *outline) tree(v lua.LValue) lua.LValue {
	if isLeaf(v) {
		return o.hole
	}
	t, ok := v.(*lua.LTable)
	if !ok {
		return v
	}
	out := o.s.NewTable(0, 1)
	out.Metatable = t.Metatable
	for k, e := t.Next(lua.LNil); k != lua.LNil; k, e = t.Next(k) {
		out.RawSet(k, o.tree(e))
	}
	return out
}

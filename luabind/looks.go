package luabind

import (
	"weak"

	lua "github.com/yuin/gopher-lua"

	"github.com/mlxlua/mlxlua/luabind/lua51"
	"github.com/mlxlua/mlxlua/luabind/reach"
	"github.com/mlxlua/mlxlua/tensor"
)

// looks is how a state finds out which arrays its scripts still reach: see tensor.Holder. It looks where a row hands
// something over or reads a value, and where a call of the host's ends, if that is worth its time. Then no Go function
// holds an array or a Lua value in a variable but those that are on its stack: the row that looks has begun with that,
// and where other Go functions are under way below it, but for those that pass (lua51.Through), there is no look.
//
// What Go holds beyond that is told here: values that a Go program was given, and what hangs on nodes of the graph.
type looks struct {
	s       *State
	holder  *tensor.Holder
	walker  reach.Walker
	look    tensor.Look // that is under way
	threads []*lua.LState
	dtypes  []*lua.LUserData
	tracing int // transforms and shapes' functions under way, which hold arrays

	// What Go programs were given, and may hold or have dropped:
	tables    weakSet[lua.LTable]
	functions weakSet[lua.LFunction]
	userdata  weakSet[lua.LUserData]
	coroutine weakSet[lua.LState]
	// What nodes refer to:
	traced weakSet[luaFunc]
	custom weakSet[customCall]
	shapes weakSet[shapeCall]
}

// holding is what userdata's values are that hold Lua values or arrays: all of them, arrays apart.
type holding interface {
	// reached tells h of the values and arrays.
	reached(h hearer)
}

// hearer is told what something holds: a look, or a measuring of memory.
type hearer interface {
	value(v lua.LValue) // which may be nil
	values(vs []lua.LValue)
	array(x *tensor.Array)
}

func (l *looks) open(s *State) {
	l.s, l.holder = s, tensor.NewHolder(s.bounds.holderLimits())
	l.walker = reach.Walker{Global: s.L.G.Global, Through: s.Passes, Leaf: l.leaf, UserData: l.holding}
}

// libraries has the walks find little of the libraries: what scripts cannot change is passed over, and of the rest is
// compared what they have used.
func (l *looks) libraries() {
	s := l.s
	tables := append([]*lua.LTable{s.mx.LTable}, s.standard...)
	written := map[*lua.LTable]bool{} // in Lua, and not loaded yet
	for _, m := range library() {
		for _, t := range (writtenModule{s, m}).tables() {
			written[t] = true
			l.walker.Fix(t, s.Hidden(t)...).Hide()
		}
	}
	for _, m := range s.mx.inner {
		if !written[m] {
			tables = append(tables, m)
		}
	}
	for _, t := range append(tables, s.L.G.Global) {
		if t == s.L.GetGlobal(lua.StringLibName) {
			l.library(t, "__index") // lua51 has taken it away
		} else {
			l.library(t)
		}
	}
	for kind, mt := range s.metas {
		if kind != shapeKind { // a script has that one by getmetatable
			l.walker.Skip(mt)
		}
	}
	l.walker.Skip(s.arrays.methods)
	l.walker.Skip(lua51.EmbeddedGlobals(s.State))
	l.walker.FixAll(func() {
		s.Roots(l.walker.Value)
		l.value(s.packages.loaded)
		l.value(s.metas[shapeKind])
	})
	l.walker.Plain = s.arrays.meta
	for _, d := range s.dtypes {
		l.dtypes = append(l.dtypes, d)
	}
}

// library has the walks compare what scripts have used of a table.
func (l *looks) library(t *lua.LTable, gone ...string) {
	f := l.walker.Fix(t, gone...)
	f.Hide()
	l.s.Fold(t, f.Show)
}

// leaf tells the look of an array, and reports whether the userdata holds no Lua values.
func (l *looks) leaf(ud *lua.LUserData) bool {
	switch x := ud.Value.(type) {
	case *tensor.Array:
		l.look.Reach(x)
	case holding:
		return false
	}
	return true
}

func (l *looks) holding(ud *lua.LUserData) { ud.Value.(holding).reached(l) }

// value tells that a Lua value is reached.
func (l *looks) value(v lua.LValue) {
	if v != nil {
		l.walker.Value(v)
	}
}

func (l *looks) values(vs []lua.LValue) {
	for _, v := range vs {
		l.value(v)
	}
}

// array tells that an array is reached.
func (l *looks) array(x *tensor.Array) { l.look.Reach(x) }

// ifDue looks if that is worth its time. The row that asks holds xs.
func (l *looks) ifDue(xs ...*tensor.Array) {
	if l.holder.Due() {
		l.run(true, xs)
	}
}

// now looks, whatever it takes, and reports whether it could.
func (l *looks) now() bool { return l.run(false, nil) }

// run looks and reports whether it could. The row that asks holds xs.
func (l *looks) run(due bool, xs []*tensor.Array) bool {
	s, w := l.s, &l.walker
	if s.L.IsClosed() {
		return false
	}
	w.Begin()
	l.threads = s.Threads(l.threads[:0])
	l.look = l.holder.BeginLook(due)
	for _, x := range xs {
		l.array(x)
	}
	known := w.Threads(l.threads)
	clear(l.threads)
	if known {
		s.Roots(w.Value)
		w.Value(s.packages.loaded)
		w.Value(s.metas[shapeKind])
		for _, d := range l.dtypes {
			if d.Env != w.Global || d.Metatable != s.metas[dtypeKind] {
				w.Value(d)
			}
		}
		l.array(s.random.Key())
		l.outside()
		known = w.End()
	}
	if !known {
		if due {
			l.holder.Missed(w.Visits())
		}
		return false
	}
	var at tensor.Place
	if tensor.Poisoning() {
		at = s.where()
	}
	l.look.End(w.Visits(), at)
	return true
}

// close is the last look, when the state is closed: only what Go programs hold, and what nodes refer to, can be reached
// from then on. What they hold may be read later; what scripts held is given back at once.
func (l *looks) close() {
	w := &l.walker
	w.Unfix()
	w.Begin()
	l.look = l.holder.BeginLook(false)
	l.functions = weakSet[lua.LFunction]{} // nobody can call them
	l.outside()
	if w.End() {
		l.look.End(w.Visits(), tensor.Place{})
	}
	l.holder.Close()
}

// protect calls a Lua function from Go code that holds arrays meanwhile.
func (l *looks) protect(fn lua.LValue, args ...lua.LValue) ([]lua.LValue, error) {
	l.tracing++
	defer func() { l.tracing-- }()
	return l.s.Protect(nil, fn, args...)
}

// outside tells of what is held beside the state.
func (l *looks) outside() {
	l.tables.each(func(t *lua.LTable) { l.value(t) })
	l.functions.each(func(f *lua.LFunction) { l.value(f) })
	l.userdata.each(func(u *lua.LUserData) { l.value(u) })
	l.coroutine.each(func(co *lua.LState) { l.value(co) })
	l.traced.each(func(f *luaFunc) { f.reached(l) })
	l.custom.each(func(c *customCall) { c.reached(l) })
	l.shapes.each(func(c *shapeCall) { c.reached(l) })
	l.s.changes.reached(l)
}

// give notes values that a Go program may hold from now on. What it reaches by a table or function that it was given is
// reached by those.
func (l *looks) give(vs ...lua.LValue) {
	for _, v := range vs {
		switch v := v.(type) {
		case *lua.LTable:
			l.tables.add(v)
		case *lua.LFunction:
			l.functions.add(v)
		case *lua.LUserData:
			l.userdata.add(v)
		case *lua.LState:
			l.coroutine.add(v)
		}
	}
}

// weakSet is a set of objects that forgets those that Go's collector has found unreachable.
type weakSet[T any] struct {
	list map[weak.Pointer[T]]struct{}
}

func (s *weakSet[T]) add(x *T) {
	if s.list == nil {
		s.list = map[weak.Pointer[T]]struct{}{}
	}
	s.list[weak.Make(x)] = struct{}{}
}

func (s *weakSet[T]) each(visit func(x *T)) {
	for w := range s.list {
		if x := w.Value(); x != nil {
			visit(x)
		} else {
			delete(s.list, w)
		}
	}
}

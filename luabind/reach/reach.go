// Package reach finds what a Lua state can still reach: everything that a script may come to by any means, now or when
// it goes on. It goes by gopher-lua's exported names, and by the layout of a frame, of which it reads numbers.
//
// Where values hide, beside globals and tables: in registers that no variable has, above those of variables and below
// the base of functions with ...; in coroutines that have not begun, whose body is in no register; in functions under
// way that were called by a metamethod, which are in no register either; in variables that only closures know, which
// may be nil pointers where an error has ended their function; in environments and metatables. What Go functions under
// way have taken off the stack nobody can know: see Walker.Threads.
package reach

import lua "github.com/yuin/gopher-lua"

// Walker walks the values of a state. It is used again for the next walk, and for one state only.
type Walker struct {
	// Global is the table of globals that nearly all functions have as their environment.
	Global *lua.LTable
	// Plain is the metatable of most userdata: one that Skip is told of.
	Plain *lua.LTable
	// Leaf is told of userdata that are reached, maybe more than once, and reports whether they hold no Lua values.
	// Environment and metatable are walked in any case.
	Leaf func(ud *lua.LUserData) bool
	// UserData is told of each of the other userdata that are reached. It hands on what the value holds by Value.
	UserData func(ud *lua.LUserData)
	// Through reports whether a Go function, known by the address of its code, keeps no values of its own while Lua code
	// that it calls runs.
	Through func(code uintptr) bool

	visits  int64
	seen    addresses
	todo    []lua.LValue // seen and not walked
	fixed   []*Fixed
	skipped []*lua.LTable
	each    func(k, v lua.LValue) // entry
	fixing  bool                  // FixAll is under way
	unknown bool                  // something was reached that nobody can look into
}

// Begin begins a walk.
func (w *Walker) Begin() {
	w.visits, w.unknown = 0, false
	w.seen.begin()
	w.todo = w.todo[:0]
	for _, f := range w.fixed {
		w.seen.add(address(f.t))
	}
	for _, t := range w.skipped {
		w.seen.add(address(t))
	}
}

// FixAll is Fix for all tables that a walk has come to: told is called between its Begin and its End.
func (w *Walker) FixAll(told func()) {
	w.fixing = true
	w.Begin()
	told()
	w.End()
	w.fixing = false
}

// Skip has walks pass over a table that no script can come to or change, and that leads to no array.
func (w *Walker) Skip(t *lua.LTable) { w.skipped = append(w.skipped, t) }

// Visits is how much the walk has looked at: about one for each look at something in memory.
func (w *Walker) Visits() int64 { return w.visits }

// End walks what is left and reports whether all of it is known. Values that were on the way are forgotten.
func (w *Walker) End() bool {
	for _, f := range w.fixed[:len(w.fixed):len(w.fixed)] {
		f.walk()
	}
	w.drain()
	return !w.unknown
}

// Value walks a value and what can be reached from it, not later than End does.
func (w *Walker) Value(v lua.LValue) {
	switch v := v.(type) {
	case *lua.LUserData:
		w.visits += userdataVisits
		if v.Env != w.Global && v.Env != nil {
			w.Value(v.Env)
		}
		if mt, ok := v.Metatable.(*lua.LTable); ok && mt != w.Plain {
			w.table(mt)
		}
		if !w.Leaf(v) && w.seen.add(address(v)) {
			w.todo = append(w.todo, v)
		}
	case *lua.LTable:
		w.table(v)
	case *lua.LFunction:
		if v == nil || len(v.Upvalues) == 0 && v.Env == w.Global {
			w.visits++
			return
		}
		if w.seen.add(address(v)) {
			w.todo = append(w.todo, v)
		}
	case *lua.LState:
		if v != nil && w.seen.add(address(v)) {
			w.todo = append(w.todo, v)
		}
	case lua.LChannel:
		w.unknown = true
	}
}

func (w *Walker) table(t *lua.LTable) {
	if t != nil && w.seen.add(address(t)) {
		w.todo = append(w.todo, t)
	}
}

// drain walks what was seen.
func (w *Walker) drain() {
	for len(w.todo) > 0 && !w.unknown {
		last := len(w.todo) - 1
		v := w.todo[last]
		w.todo[last] = nil
		w.todo = w.todo[:last]
		switch v := v.(type) {
		case *lua.LTable:
			if w.fixing {
				w.Fix(v)
			}
			w.entries(v)
		case *lua.LFunction:
			w.function(v)
		case *lua.LState:
			w.coroutine(v)
		case *lua.LUserData:
			w.UserData(v)
		}
	}
	w.forget()
}

// forget lets go of the values that are not walked.
func (w *Walker) forget() {
	clear(w.todo)
	w.todo = w.todo[:0]
}

// function walks what a function holds.
func (w *Walker) function(f *lua.LFunction) {
	w.visits += functionVisits + upvalueVisits*int64(len(f.Upvalues))
	if f.Env != w.Global {
		w.table(f.Env)
	}
	for _, up := range f.Upvalues {
		if up != nil {
			w.Value(up.Value())
		}
	}
}

// entries walks a table.
func (w *Walker) entries(t *lua.LTable) {
	if mt, ok := t.Metatable.(*lua.LTable); ok {
		w.table(mt)
	}
	n, keys := t.Len(), Keys(t)
	w.visits += tableVisits + int64(n)/elementsAVisit
	if keys > manyKeys { // out of the cache, where Next looks for each of them
		w.visits += manyKeyVisits * int64(keys)
		if w.each == nil {
			w.each = w.entry
		}
		t.ForEach(w.each)
		return
	}
	w.visits += keyVisits * int64(keys)
	for i := 1; i <= n; i++ {
		w.Value(t.RawGetInt(i))
	}
	if keys == 0 {
		return
	}
	if names(t, w) {
		return
	}
	for k, v := t.Next(number(n)); k != lua.LNil; k, v = t.Next(k) {
		w.entry(k, v)
	}
}

// What a walk takes, in visits.
const (
	userdataVisits = 2
	functionVisits = 2
	upvalueVisits  = 2
	tableVisits    = 4
	keyVisits      = 3
	manyKeyVisits  = 12 // where there are more than manyKeys
	elementsAVisit = 4
	threadVisits   = 16
	frameVisits    = 4

	manyKeys = 1 << 10
)

func (w *Walker) entry(k, v lua.LValue) {
	switch k.(type) {
	case lua.LString, lua.LNumber, lua.LBool:
	default:
		w.Value(k)
	}
	w.Value(v)
}

// number is n as a key, nil for 0: where Next goes on behind n elements.
func number(n int) lua.LValue {
	if n < len(numbers) {
		return numbers[n]
	}
	return lua.LNumber(n)
}

var numbers = func() (out [64]lua.LValue) {
	for i := range out {
		out[i] = lua.LNumber(i)
	}
	out[0] = lua.LNil
	return out
}()

// addresses is a set of addresses of objects that do not move while a walk is under way: an entry holds nothing alive.
type addresses struct {
	slots []slot
	round uint32
	count int
}

type slot struct {
	at    uintptr
	round uint32
}

func (a *addresses) begin() {
	if a.round++; a.round == 0 || a.slots == nil {
		a.slots, a.round = make([]slot, 1<<9), 1
	}
	a.count = 0
}

// add adds an address and reports whether it was new.
func (a *addresses) add(at uintptr) bool {
	mask := uintptr(len(a.slots) - 1)
	for i := a.hash(at) & mask; ; i = (i + 1) & mask {
		s := &a.slots[i]
		if s.round != a.round {
			*s = slot{at, a.round}
			if a.count++; 2*a.count > len(a.slots) {
				a.grow()
			}
			return true
		}
		if s.at == at {
			return false
		}
	}
}

func (a *addresses) hash(at uintptr) uintptr {
	h := uint64(at) * 0x9e3779b97f4a7c15
	return uintptr(h >> 24)
}

func (a *addresses) grow() {
	old := a.slots
	a.slots, a.count = make([]slot, 2*len(old)), 0
	for _, s := range old {
		if s.round == a.round {
			a.add(s.at)
		}
	}
}

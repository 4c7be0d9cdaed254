package luabind

import (
	"cmp"
	"context"
	"slices"

	lua "github.com/yuin/gopher-lua"

	"github.com/mlxlua/mlxlua/luabind/lua51"
	"github.com/mlxlua/mlxlua/tensor"
)

// changes are what compiled functions, optimizers and the like have written into tables, oldest first, as long as the
// arrays that stood there before can be had back: where what is there now cannot be computed, they are put back.
type changes struct {
	list []*stateChange
	// lent are the snapshots of functions under way in which tables hold something else for a time, outermost first:
	// nothing is put back meanwhile.
	lent []*snapshot
	// spare is a snapshot for the next such function.
	spare *snapshot
}

// stateChange is what one call has written.
type stateChange struct {
	entries []changedEntry
	of      *tensor.Change
	old     []*tensor.Array // in a stateChange that is being made
	new     []*tensor.Array
	results []*tensor.Array       // of the call, beside what it has written
	at      map[*tensor.Array]int // in old
	held    *lua51.Holding        // counts the tables that are looked through; nil: a trace has looked through them
	err     error                 // why they cannot be looked through
}

func (log *changes) reached(to hearer) {
	for _, c := range log.list {
		if !c.of.Over() {
			c.reached(to)
		}
	}
	for _, n := range log.lent {
		n.reached(to)
	}
}

func (c *stateChange) reached(h hearer) {
	for i := range c.entries {
		c.entries[i].reached(h)
	}
}

func (e *changedEntry) reached(h hearer) {
	h.value(e.key)
	h.value(e.was)
}

// changedEntry is an entry of a table, or where there is none a variable that holds an array (now), or where there is
// neither the random state.
type changedEntry struct {
	table    *lua.LTable
	key      lua.LValue
	was, now lua.LValue
	array    int // what was there, among the old arrays: was; notAnArray: it is no array
}

const notAnArray = -1

// mostChanges is how many calls may be remembered whose results nobody has had computed.
const mostChanges = 64

// array notes that an array takes another one's place, and gives the old one's number; same says that it is that.
func (c *stateChange) array(was, now *tensor.Array) (number int, same bool) {
	if was.Value() == now.Value() {
		return notAnArray, true
	}
	c.newArray(now)
	i, known := c.at[was]
	if !known {
		if c.at == nil {
			c.at = map[*tensor.Array]int{}
		}
		i = len(c.old)
		c.at[was] = i
		c.old = append(c.old, was)
	}
	return i, false
}

func (c *stateChange) newArray(x *tensor.Array) { c.new = append(c.new, x) }

// entry notes that now stands in the place of was.
func (c *stateChange) entry(t *lua.LTable, key, was, now lua.LValue) {
	if unchanged(was, now) {
		return
	}
	e := changedEntry{table: t, key: key, was: was, now: now, array: notAnArray}
	x, isArray := array(now)
	if before, ok := array(was); ok && isArray {
		var same bool
		if e.array, same = c.array(before, x); same {
			return
		}
		e.was = nil // the engine keeps it
	} else {
		c.value(now)
	}
	c.entries = append(c.entries, e)
}

// value notes the arrays in a value that a call has made.
func (c *stateChange) value(v lua.LValue) {
	if x, ok := array(v); ok {
		c.newArray(x)
	} else if made, ok := v.(*lua.LTable); ok {
		c.made(made, 0, map[*lua.LTable]bool{})
	}
}

// made notes the arrays in a table that was made.
func (c *stateChange) made(t *lua.LTable, depth int, seen map[*lua.LTable]bool) {
	if seen[t] || c.err != nil {
		return
	}
	if c.held != nil {
		if c.err = cmp.Or(tooDeep(depth), c.held.Add(shotBytes)); c.err != nil {
			return
		}
	}
	seen[t] = true
	t.ForEach(func(_, v lua.LValue) {
		if inner, ok := v.(*lua.LTable); ok {
			c.made(inner, depth+1, seen)
		} else if x, ok := array(v); ok {
			c.newArray(x)
		}
	})
}

// variable notes that the array which a variable holds is another one than it was.
func (c *stateChange) variable(ud *lua.LUserData, was *tensor.Array) {
	if i, same := c.array(was, ud.Value.(*tensor.Array)); !same {
		c.entries = append(c.entries, changedEntry{now: ud, array: i})
	}
}

// random notes that the random state's key is another one than it was.
func (c *stateChange) random(was, now *tensor.Array) {
	if i, same := c.array(was, now); !same {
		c.entries = append(c.entries, changedEntry{array: i})
	}
}

// reseeded says that the script has set the random state: what is undone from now on leaves that alone.
func (log *changes) reseeded() {
	for _, c := range log.list {
		c.entries = slices.DeleteFunc(c.entries, func(e changedEntry) bool { return e.table == nil && e.now == nil })
	}
}

// remember adds a change that has been written. One whose arrays are all there, as those of a file, cannot fail.
func (log *changes) remember(s *State, c *stateChange) {
	log.tidy(s)
	to := func(x *tensor.Array) bool { return x.Value().Node.State() != tensor.Ready }
	if len(c.entries) == 0 || !slices.ContainsFunc(c.new, to) && !slices.ContainsFunc(c.results, to) {
		return
	}
	if c.of = tensor.NewChange(s.looks.holder, c.old, c.new, c.results); c.of == nil {
		return
	}
	c.old, c.new, c.results, c.at, c.held = nil, nil, nil, nil, nil
	if len(log.list) == mostChanges {
		log.list[0].of.End()
		log.list = slices.Delete(log.list, 0, 1)
	}
	log.list = append(log.list, c)
}

// tidy drops the changes that need not be undone any more.
func (log *changes) tidy(s *State) {
	if len(log.list) > 0 {
		s.looks.holder.SettleChanges()
		log.list = slices.DeleteFunc(log.list, func(c *stateChange) bool { return c.of.Over() })
	}
}

// forget ends all changes: nobody will have anything put back.
func (log *changes) forget() {
	for _, c := range log.list {
		c.of.End()
	}
	log.list = nil
}

// rollBack is called when the script is about to learn of an error. Where the arrays that a call wrote into tables
// cannot be computed, the tables again have what they had before that call, and before whatever was built on it.
func (log *changes) rollBack(s *State) {
	if len(log.list) == 0 || len(log.lent) > 0 || s.looks.tracing > 0 || len(s.transforming) > 0 {
		return
	}
	ctx, bad := s.Context(), len(log.list)
	for {
		var first uint64 // of what has failed
		from := slices.IndexFunc(log.list[:bad], func(c *stateChange) bool {
			failed, since := c.of.Failed(ctx)
			first = since
			return failed
		})
		if from < 0 {
			break
		}
		for from > 0 && log.list[from-1].of.Made() >= first { // the same step's
			from--
		}
		// What is stopped with them may have failed on the way, for an earlier call.
		if slices.ContainsFunc(log.list[from:bad], func(c *stateChange) bool { return !c.of.Stop(ctx) }) {
			return // the next error finds it so
		}
		bad = from
	}
	if bad == len(log.list) {
		return
	}
	undone := log.list[bad:]
	log.list = log.list[:bad:bad]
	written := map[place]bool{} // by those calls, and nobody since
	for _, c := range slices.Backward(undone) {
		if old, ok := c.of.Undo(context.Background()); ok {
			c.restore(s, old, written)
		}
	}
}

// place is where something stands in a table.
type place struct {
	table *lua.LTable
	key   lua.LValue
}

// restore puts back what the call has written over, where nobody else has written since. What a script then writes into
// the array that a variable holds is made of what stood there, and cannot be computed either.
func (c *stateChange) restore(s *State, old []*tensor.Array, written map[place]bool) {
	boxes := make([]lua.LValue, len(old))
	for i, x := range old {
		if x != nil && x.Err() == nil { // else it was to be computed by an earlier call that is undone, too
			boxes[i] = owned(s, x)
		}
	}
	for _, e := range slices.Backward(c.entries) {
		at, was := place{e.table, e.key}, e.was
		if e.table != nil && !written[at] {
			if !e.stands() {
				continue
			}
			written[at] = true
		}
		if e.array != notAnArray {
			if was = boxes[e.array]; was == nil {
				continue
			}
		}
		switch {
		case e.table != nil:
			e.table.RawSet(e.key, was)
		case e.now != nil:
			e.now.(*lua.LUserData).Value = was.(*lua.LUserData).Value
		default:
			s.random.Set(was.(*lua.LUserData).Value.(*tensor.Array))
		}
	}
}

// stands reports whether what the call wrote is still there: also where a later call had written over it that has been
// undone since, which makes a handle of its own.
func (e *changedEntry) stands() bool {
	there := e.table.RawGet(e.key)
	x, ok := array(there)
	y, both := array(e.now)
	return unchanged(there, e.now) || ok && both && x.Value() == y.Value()
}

// snapshot is tables as they are before a function that may write into them.
type snapshot struct {
	key     *tensor.Array // the random state's
	tables  []tableShot
	entries []lua.LValue // keys and values of the tables, one after the other
	seen    map[*lua.LTable]bool
}

// tableShot is a table with the place of its keys and values in a snapshot's entries.
type tableShot struct {
	t           *lua.LTable
	first, last int
}

// What a snapshot takes, in bytes: for each table, and for each entry.
const (
	shotBytes  = 96
	entryBytes = 32
)

// mostSpare is how many keys and values a snapshot may have room for that is kept for the next function.
const mostSpare = 1 << 14

func (n *snapshot) reached(h hearer) {
	h.array(n.key)
	h.values(n.entries)
	for t := range n.seen {
		h.value(t)
	}
}

func (t *tableShot) reached(h hearer) { h.value(t.t) }

// take adds a table and those in it. It is an error where they are nested too deep, or the script is stopped.
func (n *snapshot) take(t *lua.LTable, depth int, held *lua51.Holding) error {
	if n.seen[t] {
		return nil
	}
	if err := tooDeep(depth); err != nil {
		return err
	}
	n.seen[t] = true
	shot := tableShot{t: t, first: len(n.entries)}
	t.ForEach(func(k, v lua.LValue) { n.entries = append(n.entries, k, v) })
	shot.last = len(n.entries)
	n.tables = append(n.tables, shot)
	if err := held.Add(shotBytes + entryBytes*int64(shot.last-shot.first)/2); err != nil {
		return err
	}
	for i := shot.first; i < shot.last; i += 2 {
		if inner, ok := n.entries[i+1].(*lua.LTable); ok {
			if err := n.take(inner, depth+1, held); err != nil {
				return err
			}
		}
	}
	return nil
}

// clear forgets the tables.
func (n *snapshot) clear() {
	clear(n.tables)
	clear(n.entries)
	clear(n.seen)
	n.key, n.tables, n.entries = nil, n.tables[:0], n.entries[:0]
}

// changes is what has been written into the tables since.
func (n *snapshot) changes(held *lua51.Holding) *stateChange {
	c := &stateChange{held: held}
	for _, shot := range n.tables {
		at := shot.first
		var before map[lua.LValue]lua.LValue // once keys come in another order
		shot.t.ForEach(func(k, v lua.LValue) {
			if before == nil && at < shot.last && n.entries[at] == k {
				c.entry(shot.t, k, n.entries[at+1], v)
				at += 2
				return
			}
			if before == nil {
				before = map[lua.LValue]lua.LValue{}
				for i := at; i < shot.last; i += 2 {
					before[n.entries[i]] = n.entries[i+1]
				}
			}
			was, known := before[k]
			if !known {
				was = lua.LNil
			}
			c.entry(shot.t, k, was, v)
		})
		for ; at < shot.last; at += 2 {
			if shot.t.RawGet(n.entries[at]) == lua.LNil {
				c.entry(shot.t, n.entries[at], n.entries[at+1], lua.LNil)
			}
		}
	}
	return c
}

// restore makes the tables what they were.
func (n *snapshot) restore() {
	for _, shot := range n.tables {
		b := tableBefore{t: shot.t, meta: shot.t.Metatable, entries: map[lua.LValue]lua.LValue{}}
		for i := shot.first; i < shot.last; i += 2 {
			b.keys = append(b.keys, n.entries[i])
			b.entries[n.entries[i]] = n.entries[i+1]
		}
		b.restore()
	}
}

// lend begins a function in which tables hold something else for a time; the snapshot is empty.
func (log *changes) lend(s *State) *snapshot {
	n := log.spare
	if log.spare = nil; n == nil {
		n = &snapshot{seen: map[*lua.LTable]bool{}}
	}
	n.key = s.random.Key()
	log.lent = append(log.lent, n)
	return n
}

// returned ends the function that began last. Where it has not done its work, the tables become what they were.
func (log *changes) returned(s *State, n *snapshot, done bool) {
	log.lent = slices.Delete(log.lent, len(log.lent)-1, len(log.lent))
	if !done {
		n.restore()
		log.rollBack(s)
	}
	if n.clear(); cap(n.entries) <= mostSpare {
		log.spare = n
	}
}

// guarded is for functions of the library that write into a script's tables, of which op is the one that errors name:
// guarded(op, fn, tables...) calls fn and gives its results. Should computing these fail, or what fn has written, the
// tables have what they had, and so does the random state. After an error of fn's the tables have that too, also after
// one that no pcall catches: the end of a host's call. In between nothing else is put back.
func guarded(s *State, module string) *lua.LFunction {
	return s.Through(func(L *lua.LState) int {
		held, top := lua51.Hold(s.State), L.GetTop()
		defer held.End()
		n, done := s.changes.lend(s), false
		defer func() { s.changes.returned(s, n, done) }()
		check := func(err error) {
			if err != nil {
				s.raise(s.call().Errorf(module+"."+L.CheckString(1), "%w", err))
			}
		}
		for i := 3; i <= top; i++ {
			if t, ok := L.Get(i).(*lua.LTable); ok {
				check(n.take(t, 0, held))
			}
		}
		L.Push(L.Get(2))
		L.Call(0, lua.MultRet)
		c := n.changes(held)
		written := len(c.new)
		for i := top + 1; i <= L.GetTop(); i++ {
			c.value(L.Get(i))
		}
		check(c.err)
		c.results, c.new = slices.Clone(c.new[written:]), c.new[:written:written]
		c.random(n.key, s.random.Key())
		s.changes.remember(s, c)
		done = true
		return L.GetTop() - top
	})
}

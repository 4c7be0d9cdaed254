package luabind

import (
	"slices"

	lua "github.com/yuin/gopher-lua"

	"github.com/mlxlua/mlxlua/luabind/lua51"
	"github.com/mlxlua/mlxlua/tensor"
)

// changes are what compiled functions, optimizers and the like have written into tables, oldest first, as long as the
// arrays that stood there before can be had back: where what is there now cannot be computed, they are put back.
type changes struct {
	list []*stateChange
	// lent are functions under way in which tables hold something else for a time: nothing is put back meanwhile.
	lent int
	// spare is a snapshot for the next such function.
	spare *snapshot
}

// stateChange is what one call has written.
type stateChange struct {
	entries []changedEntry
	of      *tensor.Change
	old     []*tensor.Array // in a stateChange that is being made
	new     []*tensor.Array
	at      map[*tensor.Array]int // in old
}

func (log *changes) reached(to *looks) {
	for _, c := range log.list {
		if !c.of.Over() {
			c.reached(to)
		}
	}
}

func (c *stateChange) reached(l *looks) {
	for i := range c.entries {
		c.entries[i].reached(l)
	}
}

func (e *changedEntry) reached(l *looks) {
	l.value(e.key)
	l.value(e.was)
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
		c.made(made, map[*lua.LTable]bool{})
	}
}

// made notes the arrays in a table that was made.
func (c *stateChange) made(t *lua.LTable, seen map[*lua.LTable]bool) {
	if seen[t] {
		return
	}
	seen[t] = true
	t.ForEach(func(_, v lua.LValue) {
		if inner, ok := v.(*lua.LTable); ok {
			c.made(inner, seen)
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

// remember adds a change that has been written.
func (log *changes) remember(s *State, c *stateChange) {
	log.tidy()
	if len(c.entries) == 0 {
		return
	}
	if c.of = tensor.NewChange(s.looks.holder, c.old, c.new); c.of == nil {
		return
	}
	c.old, c.new, c.at = nil, nil, nil
	if len(log.list) == mostChanges {
		log.list[0].of.End()
		log.list = slices.Delete(log.list, 0, 1)
	}
	log.list = append(log.list, c)
}

// tidy drops the changes that need not be undone any more. One that is in doubt, though its arrays were computed, is of
// a step that goes on, until a later change was right.
func (log *changes) tidy() {
	later := false
	for i := len(log.list) - 1; i >= 0; i-- {
		c := log.list[i].of
		if c.Settled() && (later || !c.Doubted()) {
			c.End()
		}
		if c.Over() {
			later = true
			log.list = slices.Delete(log.list, i, i+1)
		}
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
	if len(log.list) == 0 || log.lent > 0 || s.looks.tracing > 0 || len(s.transforming) > 0 {
		return
	}
	ctx := s.Context()
	var first uint64 // of what has failed
	bad := slices.IndexFunc(log.list, func(c *stateChange) bool {
		failed, since := c.of.Failed(ctx)
		first = since
		return failed
	})
	if bad < 0 {
		return
	}
	for bad > 0 && log.list[bad-1].of.Made() >= first { // the same step's
		bad--
	}
	undone := log.list[bad:]
	log.list = log.list[:bad:bad]
	written := map[place]bool{} // by those calls, and nobody since
	for _, c := range slices.Backward(undone) {
		if old, ok := c.of.Undo(ctx); ok {
			c.restore(s, old, written)
		}
	}
}

// place is where something stands in a table.
type place struct {
	table *lua.LTable
	key   lua.LValue
}

// restore puts back what the call has written over, where nobody else has written since.
func (c *stateChange) restore(s *State, old []*tensor.Array, written map[place]bool) {
	boxes := make([]lua.LValue, len(old))
	for i, x := range old {
		if x != nil && x.Err() == nil { // else it was to be computed by an earlier call that is undone, too
			boxes[i] = s.wrap(x)
		}
	}
	for _, e := range slices.Backward(c.entries) {
		at, was := place{e.table, e.key}, e.was
		if e.table != nil && !written[at] {
			if !unchanged(e.table.RawGet(e.key), e.now) {
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

const snapshotKind = "snapshot"

func (n *snapshot) reached(l *looks) {
	l.array(n.key)
	l.values(n.entries)
	for t := range n.seen {
		l.value(t)
	}
}

func (t *tableShot) reached(l *looks) { l.value(t.t) }

// take adds a table and those in it.
func (n *snapshot) take(t *lua.LTable) {
	if n.seen[t] {
		return
	}
	n.seen[t] = true
	shot := tableShot{t: t, first: len(n.entries)}
	t.ForEach(func(k, v lua.LValue) { n.entries = append(n.entries, k, v) })
	shot.last = len(n.entries)
	n.tables = append(n.tables, shot)
	for i := shot.first; i < shot.last; i += 2 {
		if inner, ok := n.entries[i+1].(*lua.LTable); ok {
			n.take(inner)
		}
	}
}

// clear forgets the tables.
func (n *snapshot) clear() {
	clear(n.tables)
	clear(n.entries)
	clear(n.seen)
	n.key, n.tables, n.entries = nil, n.tables[:0], n.entries[:0]
}

// changes is what has been written into the tables since.
func (n *snapshot) changes() *stateChange {
	c := &stateChange{}
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

// changing is for functions of the library that write into a script's tables. Given these it returns a function that is
// called when that is done: with true and what belongs to it, so that the tables have what they had should that fail,
// too; or after an error with false, which makes them what they were. In between nothing else is put back.
func changing(s *State) lua.LValue {
	return s.Func(func(L *lua.LState) int {
		n := s.changes.spare
		if s.changes.spare = nil; n == nil {
			n = &snapshot{seen: map[*lua.LTable]bool{}}
		}
		n.key = s.random.Key()
		for _, v := range lua51.Args(L) {
			if t, ok := v.(*lua.LTable); ok {
				n.take(t)
			}
		}
		s.changes.lent++
		L.Push(s.Func(func(L *lua.LState) int {
			n := L.Get(lua.UpvalueIndex(1)).(*lua.LUserData).Value.(*snapshot)
			s.changes.lent--
			args := lua51.Args(L)
			if args[0] != lua.LTrue {
				n.restore()
				s.changes.rollBack(s)
				return 0
			}
			c := n.changes()
			for _, v := range args[1:] {
				c.value(v)
			}
			c.random(n.key, s.random.Key())
			s.changes.remember(s, c)
			n.clear()
			s.changes.spare = n
			return 0
		}, s.userdata(snapshotKind, n)))
		return 1
	})
}

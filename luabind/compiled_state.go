package luabind

import (
	"fmt"
	"slices"

	lua "github.com/yuin/gopher-lua"

	"github.com/mlxlua/mlxlua/tensor"
	"github.com/mlxlua/mlxlua/tensor/ops"
)

// compiledState is what the trees of mx.compile's inputs and outputs are in a compiled function. What a trace writes
// into the tables of outputs is a program; it is run on the tables that outputs leads to when the trace is replayed.
type compiledState struct {
	roots   []lua.LValue // inputs and outputs, where they are given
	outputs lua.LValue   // nil: none

	// Of the call under way:
	led      *led           // nil: nobody has asked
	before   []*tableBefore // tables as they were before its trace; none: there was no trace
	globals  *tableBefore
	upvalues []reachedUpvalue
	late     []*tableBefore // tables that outputs does not lead to, as the trace left them
}

func (st *compiledState) reached(h hearer) {
	h.values(st.roots)
	h.value(st.outputs)
}

// undo puts back what a trace of the call under way wrote into tables.
func (st *compiledState) undo() {
	for _, b := range st.before {
		b.restore()
	}
}

// failed puts back what the trace that ends wrote without success: what undo does, and the globals and variables that
// hold arrays of the trace in the place of what they held. Other globals may be what libraries show of themselves, and
// other variables a count of the calls.
func (st *compiledState) failed() {
	st.undo()
	if st.globals == nil {
		return
	}
	for _, key := range st.globals.changed() {
		if x, ok := array(st.globals.t.RawGet(key)); ok && tensor.Traced(x) {
			st.globals.t.RawSet(key, st.globals.was(key))
		}
	}
	for _, u := range st.upvalues {
		if x, ok := array(u.up.Value()); ok && u.up.Value() != u.v && tensor.Traced(x) {
			u.up.SetValue(u.v)
		}
	}
}

// newCompiledState is the state of a function that is compiled with inputs and outputs.
func newCompiledState(inputs, outputs lua.LValue) compiledState {
	var st compiledState
	if _, ok := inputs.(*lua.LTable); ok {
		st.roots = append(st.roots, inputs)
	}
	if _, ok := outputs.(*lua.LTable); ok {
		st.roots, st.outputs = append(st.roots, outputs), outputs
	}
	return st
}

// traced is what a trace leaves for its replays beside the graph: the structure of its results, and what it wrote.
type traced struct {
	results []lua.LValue
	program stateProgram
}

func (t *traced) reached(h hearer) {
	h.values(t.results)
	for _, w := range t.program.writes {
		w.reached(h)
	}
	for _, m := range t.program.made {
		m.reached(h)
	}
}

// markerShape is a shape that no array of a script has.
var markerShape = []int{0, 1<<20 + 7}

// mark keeps what a trace leaves under an output of it, a marker, which each replay gives: traces of one key may differ
// where the function looked at shapes. What evicted traces left goes.
func (k *compiledFunction) mark(t *traced) *tensor.Array {
	marker := ops.FromSlice([]bool{}, markerShape, k.s.call())
	kept := map[*tensor.Array]*traced{marker: t}
	keep := func(x *tensor.Array) {
		if old := k.traces[x]; old != nil {
			kept[x] = old
		}
	}
	k.f.Constants(keep)
	for _, x := range k.recent { // they may serve the calls under way, and be in no cache
		keep(x)
	}
	k.traces, k.recent = kept, append(k.recent[max(0, len(k.recent)-3):], marker)
	return marker
}

// stateProgram says what a trace wrote into the tables that outputs leads to.
type stateProgram struct {
	arrays  int // how many of the trace's outputs are state
	writes  []stateWrite
	made    []madeTable // tables that the function made
	inPlace []inPlace
}

// stateWrite sets an entry of a table: of table number table of those that outputs leads to, or of one that was made.
type stateWrite struct {
	table int
	key   lua.LValue
	value stateValue
}

func (w *stateWrite) reached(h hearer) {
	h.value(w.key)
	w.value.reached(h)
}

// madeTable is a table that a trace made.
type madeTable struct {
	meta    lua.LValue
	entries []stateWrite
}

func (m *madeTable) reached(h hearer) {
	h.value(m.meta)
	for _, w := range m.entries {
		w.reached(h)
	}
}

// inPlace changes the array that a variable holds, as x[0] = y does.
type inPlace struct{ capture, array int }

// stateValue is what an entry is set to.
type stateValue struct {
	kind byte // 'a': array n of the state; 'c': capture n; 't': table n; 'm': table n of those made; 'v': v
	n    int
	v    lua.LValue
}

func (v *stateValue) reached(h hearer) { h.value(v.v) }

// led are the tables and the variables of arrays that outputs leads to, in the order of trees: calls that have one key
// have the same ones at the same places.
type led struct {
	s      *State
	tables []*lua.LTable
	paths  []trail
	number map[*lua.LTable]int
	arrays map[*lua.LUserData]bool
}

// follow lists what v leads to.
func (l *led) follow(v lua.LValue, at trail) {
	switch v := v.(type) {
	case *lua.LUserData:
		if _, ok := v.Value.(*tensor.Array); ok {
			l.arrays[v] = true
		}
	case *lua.LTable:
		if _, known := l.number[v]; known {
			return
		}
		l.number[v] = len(l.tables)
		l.tables, l.paths = append(l.tables, v), append(l.paths, at)
		for _, k := range orderedKeys(v, nil) {
			l.follow(v.RawGet(k), trail{&at, k, ownerOf(l.s, v)})
		}
	}
}

// leads lists what outputs leads to now.
func (st *compiledState) leads(s *State) *led {
	l := &led{s: s, number: map[*lua.LTable]int{}, arrays: map[*lua.LUserData]bool{}}
	if st.outputs != nil {
		l.follow(st.outputs, trail{key: lua.LString("outputs")})
	}
	return l
}

// outputTables are the tables that outputs leads to as the call under way began.
func (k *compiledFunction) outputTables() []*lua.LTable {
	st := &k.state
	if st.led == nil && k.listed != nil {
		st.led = k.listed.led
	}
	if st.led == nil {
		st.led = st.leads(k.s)
		if k.listed != nil && k.listed.covers(st.led.tables) {
			k.listed.led = st.led
		}
	}
	return st.led.tables
}

// tableBefore is a table as it was before a trace.
type tableBefore struct {
	at      trail
	t       *lua.LTable
	meta    lua.LValue
	keys    []lua.LValue
	entries map[lua.LValue]lua.LValue
}

func newTableBefore(r reachedTable) *tableBefore {
	b := &tableBefore{at: r.at, t: r.t, meta: r.t.Metatable, entries: map[lua.LValue]lua.LValue{}}
	r.t.ForEach(func(k, v lua.LValue) {
		b.keys = append(b.keys, k)
		b.entries[k] = v
	})
	return b
}

// was is what the table had under a key.
func (b *tableBefore) was(k lua.LValue) lua.LValue {
	if v, ok := b.entries[k]; ok {
		return v
	}
	return lua.LNil
}

// changed are the keys whose values are others than they were, or new.
func (b *tableBefore) changed() (keys []lua.LValue) {
	b.t.ForEach(func(k, v lua.LValue) {
		if !unchanged(v, b.was(k)) {
			keys = append(keys, k)
		}
	})
	slices.SortFunc(keys, compareKeys)
	return keys
}

// restore makes the table what it was.
func (b *tableBefore) restore() {
	var gone []lua.LValue
	b.t.ForEach(func(k, _ lua.LValue) {
		if _, ok := b.entries[k]; !ok {
			gone = append(gone, k)
		}
	})
	for _, k := range gone {
		b.t.RawSet(k, lua.LNil)
	}
	for _, k := range b.keys {
		if !unchanged(b.t.RawGet(k), b.entries[k]) {
			b.t.RawSet(k, b.entries[k])
		}
	}
	b.t.Metatable = b.meta
}

// unchanged reports whether two values are one; a NaN is itself.
func unchanged(a, b lua.LValue) bool {
	x, ok := a.(lua.LNumber)
	y, both := b.(lua.LNumber)
	return a == b || ok && both && x != x && y != y
}

// stateTrace is a trace of a function, as far as tables are concerned.
type stateTrace struct {
	k       *compiledFunction
	noted   *noted
	since   uint64 // the number of the trace's first node; 0: compiling is disabled
	before  []*tableBefore
	globals *tableBefore
	capture map[*lua.LUserData]int
	in      []*tensor.Array // that stand for the captures
	results []*tensor.Array

	program stateProgram
	arrays  map[*lua.LUserData]int
	made    map[*lua.LTable]int
	outs    []*tensor.Array
}

// beginState notes what the tables hold that a function reaches, before it is traced.
func (k *compiledFunction) beginState(n *noted, in []*tensor.Array) *stateTrace {
	t := &stateTrace{k: k, noted: n, capture: map[*lua.LUserData]int{}, in: in,
		arrays: map[*lua.LUserData]int{}, made: map[*lua.LTable]int{}}
	for i, c := range k.captured {
		t.capture[c.ud] = i
	}
	t.globals = newTableBefore(reachedTable{t: k.s.L.G.Global})
	k.noteGlobals(n)
	for _, r := range n.tables {
		t.before = append(t.before, newTableBefore(r))
	}
	k.state.before, k.state.globals, k.state.upvalues = t.before, t.globals, n.upvalues
	return t
}

// end says what the function wrote: the arrays of the state, and the program that writes them. The tables that outputs
// leads to are again as they were.
func (t *stateTrace) end() (outs []*tensor.Array, err error) {
	led := t.k.state.led
	byTable := map[*lua.LTable]*tableBefore{}
	for _, b := range t.before {
		byTable[b.t] = b
	}
	for i, table := range led.tables {
		if b := byTable[table]; b != nil {
			if err := t.writes(i, b, led.paths[i]); err != nil {
				return nil, err
			}
		}
	}
	for i, c := range t.k.captured {
		x := c.ud.Value.(*tensor.Array)
		if x == t.in[i] {
			continue
		}
		if !led.arrays[c.ud] {
			if t.ours(x) {
				return nil, t.astray(c.at, x)
			}
			continue
		}
		t.program.inPlace = append(t.program.inPlace, inPlace{i, len(t.outs)})
		t.outs = append(t.outs, x)
	}
	if err := t.elsewhere(); err != nil {
		return nil, err
	}
	t.program.arrays = len(t.outs)
	t.k.state.late = nil
	for _, b := range t.before {
		if _, ok := led.number[b.t]; ok {
			b.restore()
		} else {
			t.k.state.late = append(t.k.state.late, newTableBefore(reachedTable{b.at, b.t}))
		}
	}
	return t.outs, nil
}

// writes adds to the program what was written into table i of outputs.
func (t *stateTrace) writes(i int, b *tableBefore, at trail) error {
	for _, key := range orderedKeys(b.t, nil) {
		now, was := b.t.RawGet(key), b.was(key)
		if now == lua.LNil || unchanged(now, was) {
			continue
		}
		_, number := now.(lua.LNumber)
		if _, before := was.(lua.LNumber); number && before {
			return t.k.s.call().Errorf("compile", "%s changes from %s to %s%s: in a replay a number stands still; make it "+
				"an array", trail{&at, key, ownerOf(t.k.s, b.t)}.name(), was, now, t.setAt(key))
		}
		v, err := t.value(now, 0)
		if err != nil {
			return err
		}
		t.program.writes = append(t.program.writes, stateWrite{i, key, v})
	}
	for _, key := range b.keys {
		if b.t.RawGet(key) == lua.LNil {
			t.program.writes = append(t.program.writes, stateWrite{i, key, stateValue{kind: 'v', v: lua.LNil}})
		}
	}
	return nil
}

// value is a value that was written into a table of outputs.
func (t *stateTrace) value(v lua.LValue, depth int) (stateValue, error) {
	switch v := v.(type) {
	case *lua.LUserData:
		x, ok := v.Value.(*tensor.Array)
		if !ok {
			break
		}
		if i, ok := t.capture[v]; ok {
			return stateValue{kind: 'c', n: i}, nil
		}
		n, known := t.arrays[v]
		if !known {
			n = len(t.outs)
			t.arrays[v] = n
			t.outs = append(t.outs, x)
		}
		return stateValue{kind: 'a', n: n}, nil
	case *lua.LTable:
		if i, ok := t.k.state.led.number[v]; ok {
			return stateValue{kind: 't', n: i}, nil
		}
		n, known := t.made[v]
		if !known {
			if depth > maxReach {
				return stateValue{}, tooFar(t.k.s)
			}
			n = len(t.program.made)
			t.made[v] = n
			t.program.made = append(t.program.made, madeTable{meta: v.Metatable})
			var entries []stateWrite
			for _, k := range orderedKeys(v, nil) {
				e, err := t.value(v.RawGet(k), depth+1)
				if err != nil {
					return stateValue{}, err
				}
				entries = append(entries, stateWrite{key: k, value: e})
			}
			t.program.made[n].entries = entries
		}
		return stateValue{kind: 'm', n: n}, nil
	}
	return stateValue{kind: 'v', v: v}, nil
}

// ours reports whether x depends on what stands for inputs in the trace that ends.
func (t *stateTrace) ours(x *tensor.Array) bool {
	return t.since > 0 && tensor.Traced(x) && x.Value().Node.ID() >= t.since
}

// elsewhere is an error if the function has left an array of the trace where outputs does not lead. A function without
// inputs and outputs may add one, as to a table of what it has made: to use it after the trace is an error. But one
// that takes an array's place in a table, or is a global, is state that its author has forgotten to name. A variable,
// and a global that is returned too, may well be set to the results of the call.
func (t *stateTrace) elsewhere() error {
	led, named := t.k.state.led, len(t.k.state.roots) > 0
	if err := t.variables(named); err != nil {
		return err
	}
	for _, b := range t.before {
		if _, ok := led.number[b.t]; ok {
			continue
		}
		for _, key := range orderedKeys(b.t, nil) {
			now := b.t.RawGet(key)
			ud, ok := now.(*lua.LUserData)
			if !ok || unchanged(now, b.was(key)) {
				continue
			}
			_, replaced := array(b.was(key))
			if x, ok := ud.Value.(*tensor.Array); ok && (named || replaced) && t.ours(x) {
				return t.astray(trail{&b.at, key, ownerOf(t.k.s, b.t)}, x)
			}
		}
	}
	if !named {
		return nil
	}
	found, _ := t.k.look(nil)
	after := t.k.state.leads(t.k.s)
	for _, c := range found {
		x := c.ud.Value.(*tensor.Array)
		if _, captured := t.capture[c.ud]; !captured && !after.arrays[c.ud] && t.ours(x) {
			return t.astray(c.at, x)
		}
	}
	known := map[*lua.LTable]bool{}
	for _, b := range t.before {
		known[b.t] = true
	}
	now := &noted{protos: t.noted.protos}
	t.k.noteGlobals(now)
	for _, r := range now.tables {
		if _, ok := after.number[r.t]; ok || known[r.t] {
			continue
		}
		for _, key := range orderedKeys(r.t, nil) {
			if x, ok := array(r.t.RawGet(key)); ok && t.ours(x) {
				return t.astray(trail{&r.at, key, ownerOf(t.k.s, r.t)}, x)
			}
		}
	}
	return nil
}

// variables is elsewhere for globals and for the variables that functions share.
func (t *stateTrace) variables(named bool) error {
	for _, key := range t.globals.changed() {
		x, ok := array(t.globals.t.RawGet(key))
		if ok && t.ours(x) && (named || !slices.Contains(t.results, x)) {
			return t.astray(trail{key: key}, x)
		}
	}
	for _, u := range t.noted.upvalues {
		now := u.up.Value()
		if x, ok := array(now); named && ok && now != u.v && t.ours(x) {
			return t.astray(u.at, x)
		}
	}
	return nil
}

// astray is the error of an array that is left where outputs does not lead.
func (t *stateTrace) astray(at trail, x *tensor.Array) error {
	made := ""
	if where := x.Value().Node.Place().String(); where != "" {
		made = ", made at " + where
	}
	mend := "return the array, or keep it in a table that is among inputs and outputs"
	if table := at.table(); table != "" {
		mend = "put " + table + " into inputs and outputs, or return the array"
	}
	return t.k.s.call().Errorf("compile", "%s is set to an array of the trace%s: outputs does not lead there, and no "+
		"replay would set it; %s", at.name(), made, mend)
}

// setAt says at which line of the functions that were reached an entry of that name is set: "" if none is found.
func (t *stateTrace) setAt(key lua.LValue) string {
	protos := append([]*lua.FunctionProto{}, t.noted.protos...)
	for len(protos) > 0 {
		p := protos[0]
		protos = append(protos[1:], p.FunctionPrototypes...)
		loaded := map[int]int{} // constants in registers
		for pc, code := range p.Code {
			const constant = 1 << 8
			op, a, b := int(code>>26), int(code>>18)&0xff, int(code&0x1ff)
			if op == lua.OP_LOADK {
				loaded[a] = int(code & 0x3ffff)
			}
			if op != lua.OP_SETTABLE && op != lua.OP_SETTABLEKS || pc >= len(p.DbgSourcePositions) {
				continue
			}
			i, known := loaded[b]
			if b&constant != 0 {
				i, known = b&^constant, true
			}
			if known && i < len(p.Constants) && p.Constants[i] == key {
				return fmt.Sprintf(" at %s:%d", p.SourceName, p.DbgSourcePositions[pc])
			}
		}
	}
	return ""
}

// name is the path as a message has it.
func (t trail) name() string {
	if text := t.String(); text != "" {
		return text
	}
	return "a variable"
}

// write runs a program on what outputs leads to, with the arrays of a replay. It changes nothing before all arrays are
// known to be good. It notes in change what it changes.
func (k *compiledFunction) write(p *stateProgram, arrays []*tensor.Array, change *stateChange) {
	s, tables := k.s, k.outputTables()
	boxes := make([]lua.LValue, len(arrays))
	for i, x := range arrays {
		boxes[i] = s.wrap(x)
	}
	made := make([]*lua.LTable, len(p.made))
	for i, m := range p.made {
		made[i] = s.NewTable(0, 1)
		made[i].Metatable = m.meta
	}
	value := func(v stateValue) lua.LValue {
		switch v.kind {
		case 'a':
			return boxes[v.n]
		case 'c':
			return k.captured[v.n].ud
		case 't':
			return tables[v.n]
		case 'm':
			return made[v.n]
		}
		return v.v
	}
	for i, m := range p.made {
		for _, w := range m.entries {
			made[i].RawSet(w.key, value(w.value))
		}
	}
	for _, w := range p.writes {
		t, now := tables[w.table], value(w.value)
		change.entry(t, w.key, t.RawGet(w.key), now)
		t.RawSet(w.key, now)
	}
	for _, w := range p.inPlace {
		ud := k.captured[w.capture].ud
		was := ud.Value.(*tensor.Array)
		ud.Value = boxes[w.array].(*lua.LUserData).Value
		change.variable(ud, was)
	}
}

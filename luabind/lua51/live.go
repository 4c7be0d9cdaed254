package lua51

import (
	"reflect"

	lua "github.com/yuin/gopher-lua"
)

// Measure is a measuring of what a state's values take: all that globals, the registry, basic metatables and the
// threads under way reach, running among them, and what Options.Weigh adds. Elements of arrays are the device's.
type Measure struct {
	seen  map[any]struct{} // tables, functions, code, threads, userdata; of strings where their bytes are
	todo  []lua.LValue
	bytes int64
	spare []func()    // give back what is counted and not needed: there may be garbage too
	ours  *lua.LTable // the environment of code that comes with the program

	behind func(ud *lua.LUserData) // adds what hangs on userdata; nil: nothing
}

// live is what a state's values take. Where there is something to spare it may be less: see Measure.Spare.
func live(s *State, running *lua.LState) (bytes int64, spare []func()) {
	m := Measure{seen: map[any]struct{}{}, ours: s.embedded.globals}
	if s.opt.Weigh != nil {
		m.behind = s.opt.Weigh(&m)
	}
	m.Value(running)
	s.Roots(m.Value)
	for _, th := range s.Threads(nil) {
		m.Value(th)
	}
	for _, f := range s.folds {
		m.bytes += KeyBytes * int64(len(f.hidden))
	}
	m.bytes += s.numbered.bytes()
	for len(m.todo) > 0 {
		last := len(m.todo) - 1
		v := m.todo[last]
		m.todo = m.todo[:last]
		m.inside(v)
	}
	return m.bytes, m.spare
}

// InUse is what the state's values take in memory, in bytes, whether there is a limit or not.
func (s *State) InUse() int64 {
	bytes, _ := live(s, s.L)
	return bytes
}

// Add counts bytes that are no Lua values.
func (m *Measure) Add(bytes int64) { m.bytes += bytes }

// Spare says that f gives back what was counted and can be made again. Where memory is full it is called, and Go's
// collector finds out what else is garbage, before that is an error.
func (m *Measure) Spare(f func()) { m.spare = append(m.spare, f) }

// shortString is the length up to which a string counts wherever it stands, as if it had bytes of its own.
const shortString = 32

// Value counts a value, and all that it reaches, if that was not counted before.
func (m *Measure) Value(v lua.LValue) {
	switch v := v.(type) {
	case lua.LString:
		m.text(string(v))
		return
	case lua.LNumber:
		if v < 0 || v >= smallNumber || v != lua.LNumber(int(v)) {
			m.bytes += numberBytes
		}
		return
	case *lua.LTable, *lua.LFunction, *lua.LState, *lua.LUserData:
	default:
		return
	}
	if reflect.ValueOf(v).IsNil() {
		return
	}
	if m.first(v) {
		m.todo = append(m.todo, v)
	}
}

// smallNumber is the first integer that gopher-lua does not have at hand.
const smallNumber = 128

// first notes an object, and reports whether it was not noted before.
func (m *Measure) first(v any) bool {
	_, ok := m.seen[v]
	if !ok {
		m.seen[v] = struct{}{}
	}
	return !ok
}

// text counts a string: its header stands where it was made, and is about as often shared as not.
func (m *Measure) text(text string) {
	if len(text) <= shortString {
		m.bytes += stringBytes
	} else if m.first(reflect.ValueOf(text).Pointer()) {
		m.bytes += stringBytes + int64(len(text))
	} else {
		m.bytes += ElementBytes
	}
}

func (m *Measure) inside(v lua.LValue) {
	switch v := v.(type) {
	case *lua.LTable:
		t := reflect.ValueOf(v).Elem()
		m.bytes += TableBytes + ElementBytes*int64(t.Field(frameFields.array).Cap())
		if keys := t.Field(frameFields.keys); keys.Cap() > 0 || keys.Len() > 0 {
			names := roomyMap(keys.Len(), 32)
			if t.Field(frameFields.array).Cap() > 0 { // perhaps the table was a list first
				names = max(names, lateKeys)
			}
			m.bytes += names + roomyMap(keys.Len(), 24) + ElementBytes*int64(keys.Cap())
		}
		m.Value(v.Metatable)
		v.ForEach(func(k, x lua.LValue) {
			if _, number := k.(lua.LNumber); !number {
				m.Value(k)
			}
			m.Value(x)
		})
	case *lua.LFunction:
		m.bytes += functionBytes + upvalueBytes*int64(len(v.Upvalues))
		if v.IsG {
			m.bytes += closureBytes
		} else if v.Env != m.ours {
			m.code(v.Proto)
		}
		m.Value(v.Env)
		for _, up := range v.Upvalues {
			if up != nil {
				m.Value(up.Value())
			}
		}
	case *lua.LUserData:
		m.bytes += userdataBytes
		switch w := v.Value.(type) {
		case Weight:
			m.bytes += int64(w)
		case *handle:
			m.bytes += fileBytes
		default:
			if m.behind != nil {
				m.behind(v)
			}
		}
		m.Value(v.Env)
		m.Value(v.Metatable)
	case *lua.LState:
		m.thread(v)
	}
}

// lateKeys is what the first named key of a list takes: see clip.
const lateKeys = 2200

// What code takes, in bytes.
const (
	protoBytes       = 900
	instructionBytes = 4 + 8 // with its line
	constantBytes    = 48    // with a copy, and its text's header
	localBytes       = 40    // for messages
)

// code counts the code of a function, once.
func (m *Measure) code(p *lua.FunctionProto) {
	if p == nil || !m.first(p) {
		return
	}
	m.bytes += protoBytes + instructionBytes*int64(len(p.Code)) + constantBytes*int64(len(p.Constants)) +
		localBytes*int64(len(p.DbgLocals)+len(p.DbgCalls)+len(p.DbgUpvalues))
	for _, k := range p.Constants {
		if text, ok := k.(lua.LString); ok {
			m.bytes += int64(len(text))
		}
	}
	m.text(p.SourceName)
	for _, c := range p.DbgCalls {
		if c.Pc < 0 { // what string.dump needs
			m.text(c.Name)
		}
	}
	for _, inner := range p.FunctionPrototypes {
		m.code(inner)
	}
}

// thread measures a thread's registers.
func (m *Measure) thread(L *lua.LState) {
	m.bytes += coroutineBytes
	m.Value(L.Env)
	if L.IsClosed() {
		return
	}
	if more := registers(L) - startRegisters; more > 0 {
		m.bytes += ElementBytes * int64(more)
	}
	top, ok := L.GetStack(0)
	if !ok { // it has not begun, or has ended
		for no := L.GetTop(); no > 0; no-- {
			m.Value(L.Get(no))
		}
		return
	}
	base := frame{current(L).Elem()}.base()
	for no := L.GetTop(); no > -base; no-- {
		_, v := L.GetLocal(top, no) // any register of the thread, by a number that may be negative
		m.Value(v)
	}
}

// registers is how many registers a thread has room for: they never become fewer.
func registers(L *lua.LState) int {
	return reflect.ValueOf(L).Elem().Field(frameFields.registry).Elem().Field(frameFields.room).Len()
}

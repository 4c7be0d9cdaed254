package lua51

import (
	"reflect"

	lua "github.com/yuin/gopher-lua"
)

// live measures what a state's values take: all that globals, the registry, basic metatables and the threads under way
// reach, running among them, and what Options.Weigh says of userdata. Elements of arrays are the device's.
func live(s *State, running *lua.LState) int64 {
	m := measuring{seen: map[any]struct{}{}}
	if s.opt.Weigh != nil {
		m.behind, m.bytes = s.opt.Weigh()
	}
	m.value(running)
	s.Roots(m.value)
	for _, th := range s.Threads(nil) {
		m.value(th)
	}
	for _, f := range s.folds {
		m.bytes += KeyBytes * int64(len(f.hidden))
	}
	for len(m.todo) > 0 {
		last := len(m.todo) - 1
		v := m.todo[last]
		m.todo = m.todo[:last]
		m.inside(v)
	}
	return m.bytes
}

type measuring struct {
	seen  map[any]struct{} // tables, functions, threads, userdata; of strings where their bytes are
	todo  []lua.LValue
	bytes int64

	behind func(ud *lua.LUserData) int64 // what hangs on userdata; nil: nothing
}

// shortString is the length up to which a string counts wherever it stands, as if it had bytes of its own.
const shortString = 32

func (m *measuring) value(v lua.LValue) {
	switch v := v.(type) {
	case lua.LString:
		m.text(string(v))
		return
	case *lua.LTable, *lua.LFunction, *lua.LState, *lua.LUserData:
	default:
		return
	}
	if reflect.ValueOf(v).IsNil() {
		return
	}
	if _, ok := m.seen[v]; !ok {
		m.seen[v] = struct{}{}
		m.todo = append(m.todo, v)
	}
}

func (m *measuring) text(text string) {
	if len(text) > shortString {
		at := reflect.ValueOf(text).Pointer()
		if _, ok := m.seen[at]; ok {
			return
		}
		m.seen[at] = struct{}{}
	}
	m.bytes += int64(len(text))
}

func (m *measuring) inside(v lua.LValue) {
	switch v := v.(type) {
	case *lua.LTable:
		t := reflect.ValueOf(v).Elem()
		keys := t.Field(frameFields.keys).Len()
		m.bytes += TableBytes + ElementBytes*int64(t.Field(frameFields.array).Cap()) + KeyBytes*int64(keys)
		m.value(v.Metatable)
		v.ForEach(func(k, x lua.LValue) {
			m.value(k)
			m.value(x)
		})
	case *lua.LFunction:
		m.bytes += functionBytes + upvalueBytes*int64(len(v.Upvalues))
		m.value(v.Env)
		for _, up := range v.Upvalues {
			if up != nil {
				m.value(up.Value())
			}
		}
	case *lua.LUserData:
		if m.bytes += userdataBytes; m.behind != nil {
			m.bytes += m.behind(v)
		}
		m.value(v.Env)
		m.value(v.Metatable)
	case *lua.LState:
		m.thread(v)
	}
}

// thread measures a thread's registers.
func (m *measuring) thread(L *lua.LState) {
	m.bytes += coroutineBytes
	m.value(L.Env)
	if L.IsClosed() {
		return
	}
	top, ok := L.GetStack(0)
	if !ok { // it has not begun, or has ended
		for no := L.GetTop(); no > 0; no-- {
			m.value(L.Get(no))
		}
		return
	}
	base := frame{current(L).Elem()}.base()
	m.bytes += ElementBytes * int64(base+L.GetTop())
	for no := L.GetTop(); no > -base; no-- {
		_, v := L.GetLocal(top, no) // any register of the thread, by a number that may be negative
		m.value(v)
	}
}

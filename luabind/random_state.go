package luabind

import (
	lua "github.com/yuin/gopher-lua"

	"github.com/mlxlua/mlxlua/luabind/lua51"
	"github.com/mlxlua/mlxlua/tensor"
)

// randomState is mx.random.state: a list of one array, the key that the random functions take the next ones from.
type randomState struct{ s *State }

const randomStateKind = "random_state"

// String is what scripts call it: its key may be unknown in a trace.
func (*randomState) String() string { return "mx.random.state" }

// openRandomState makes mx.random.state: state[1] reads the key, state[1] = key sets it, #state is 1.
func (m *module) openRandomState() {
	s := m.s
	mt := s.meta(randomStateKind)
	s.setToString(mt, randomStateKind)
	first := func(L *lua.LState) {
		if n, ok := L.Get(2).(lua.LNumber); !ok || n != 1 {
			s.raise(s.call().Errorf("random.state", "there is no element %s: it has one, state[1]", L.Get(2).String()))
		}
	}
	s.Method(mt, "__len", func(L *lua.LState) int {
		L.Push(lua.LNumber(1))
		return 1
	})
	s.Method(mt, "__index", func(L *lua.LState) int {
		first(L)
		L.Push(s.wrap(s.random.Key().Own())) // the state's own handle: what the script gets is another one
		return 1
	})
	s.Method(mt, "__newindex", func(L *lua.LState) int {
		first(L)
		s.random.Set(randomKey(s, L.Get(3)))
		s.changes.reseeded()
		return 0
	})
	m.inner["random"].RawSetString("state", s.userdata(randomStateKind, &randomState{s}))
}

// randomKey is a key that a script gives.
func randomKey(s *State, v lua.LValue) *tensor.Array {
	key, ok := array(v)
	if !ok {
		s.raise(s.call().Errorf("random.state", "a key is an array, not a %s", typeName(v)))
	}
	if err := key.Err(); err != nil {
		s.raise(err)
	}
	if spec := key.Spec(); len(spec.Shape) != 1 || spec.Shape[0] != 2 || spec.DType != tensor.Uint32 {
		s.raise(s.call().Errorf("random.state", "key is %v, want uint32 (2,)", spec))
	}
	return key.Own()
}

// withKey is for functions of the library: with_key(key, f, ...) gives f(...), which has the random state begin with
// the key. However f ends, the state then has the key that it had before.
func withKey(s *State) *lua.LFunction {
	return s.Through(func(L *lua.LState) int {
		args, key, before := lua51.Args(L)[1:], randomKey(s, L.Get(1)), s.random.Key()
		L.Push(s.lend(before)) // which keeps it
		top := L.GetTop()
		s.random.Set(key)
		defer s.random.Set(before)
		for _, v := range args {
			L.Push(v)
		}
		L.Call(len(args)-1, lua.MultRet)
		return L.GetTop() - top
	})
}

// isRandomState reports whether v is mx.random.state.
func isRandomState(v lua.LValue) bool {
	_, ok := unwrap[*randomState](v)
	return ok
}

package luabind

import (
	"fmt"
	"strconv"
	"strings"

	lua "github.com/yuin/gopher-lua"

	"github.com/mlxlua/mlxlua/tensor"
)

// meta is the metatable of a kind of userdata, made on first use.
func (s *State) meta(kind string) *lua.LTable {
	mt := s.metas[kind]
	if mt == nil {
		mt = s.NewTable(0, 1)
		mt.RawSetString("__name", lua.LString(kind))
		mt.RawSetString("__metatable", lua.LString(kind))
		s.metas[kind] = mt
	}
	return mt
}

// userdata wraps a Go value.
func (s *State) userdata(kind string, v any) *lua.LUserData {
	bytes := int64(boxBytes)
	if w, ok := v.(weighed); ok {
		bytes = w.weight()
	}
	return s.NewUserData(v, s.meta(kind), bytes)
}

// unwrap is the Go value of a userdata.
func unwrap[T any](v lua.LValue) (T, bool) {
	if ud, ok := v.(*lua.LUserData); ok {
		x, ok := ud.Value.(T)
		return x, ok
	}
	var zero T
	return zero, false
}

// wrap makes the Lua value of a result. The value gets an array of its own, even where an operation returned its
// argument, so that freeing one leaves the other. wrap raises the error of an array that carries one.
func (s *State) wrap(x *tensor.Array) lua.LValue {
	if err := x.Err(); err != nil {
		s.raise(err)
	}
	if err := s.bounds.chargeNodes(0); err != nil {
		s.raise(err)
	}
	return owned(s, x)
}

// owned is wrap of an array that carries no error, and was charged for: it raises none.
func owned(s *State, x *tensor.Array) lua.LValue {
	own := x.Own()
	if own != x {
		s.scopes.note(own)
	}
	s.scopes.watch(own)
	return s.arrays.box(own)
}

// lend makes the Lua value of an array that is passed to a script's function. The caller keeps the array.
func (s *State) lend(x *tensor.Array) lua.LValue {
	if err := x.Err(); err != nil {
		s.raise(err)
	}
	s.scopes.watch(x)
	x.Share()
	return s.arrays.box(x)
}

// array is the array that v wraps.
func array(v lua.LValue) (*tensor.Array, bool) { return unwrap[*tensor.Array](v) }

// typeName is what mx.type says of a value.
func typeName(v lua.LValue) string {
	ud, ok := v.(*lua.LUserData)
	if !ok {
		return v.Type().String()
	}
	switch ud.Value.(type) {
	case *tensor.Array:
		return "array"
	case tensor.DType:
		return "dtype"
	case tensor.DeviceID:
		return "device"
	case *tensor.Stream:
		return "stream"
	case group:
		return groupKind
	case *randomState:
		return randomStateKind
	}
	return "userdata"
}

// describe names a value in messages: its type, and for arrays dtype and shape.
func describe(v lua.LValue) string {
	if x, ok := array(v); ok {
		return "an array " + x.Spec().String()
	}
	if _, ok := unwrap[atRef](v); ok {
		return "x:at(...), which has only updates such as x:at(...):add(y); x[i] and x:index(i, j) read elements"
	}
	switch v := v.(type) {
	case *lua.LNilType:
		return "nil"
	case lua.LNumber:
		return "the number " + v.String()
	case lua.LString:
		return "the string " + quote(string(v))
	case lua.LBool:
		return v.String()
	}
	return "a " + typeName(v)
}

// mostQuoted is how many bytes of a string a message shows.
const mostQuoted = 80

// quote puts a script's string into quotes for a message: on one line, and cut where it is long.
func quote(text string) string {
	if len(text) <= mostQuoted {
		return strconv.Quote(text)
	}
	return fmt.Sprintf("%s... of %d bytes", strconv.Quote(strings.ToValidUTF8(text[:mostQuoted], "")), len(text))
}

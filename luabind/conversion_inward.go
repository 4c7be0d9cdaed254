package luabind

import (
	"context"
	"errors"
	"fmt"
	"reflect"
	"slices"
	"strconv"

	lua "github.com/yuin/gopher-lua"

	"github.com/mlxlua/mlxlua/tensor"
)

// ToLua turns a Go value into a Lua value: nil, bools, numbers of every type (complex ones rounded to complex64),
// strings, *tensor.Array, tensor.DType, functions of any type (see anyFunction); []byte, as a string; other slices and
// arrays, as tables; maps with keys that are strings or integers; structs, as tables of their exported fields by name,
// or by the name of a `lua:"name"` tag, "-" for none, with their methods; pointers to any of these.
// An integer that float64 cannot hold is an error. A slice, map or pointer that occurs in many places is one
// table in all of them; one that holds itself is an error.
func (s *State) ToLua(v any) (lua.LValue, error) {
	if err := s.life.hold(context.Background()); err != nil {
		return nil, err
	}
	defer s.life.leave()
	c := inward{s: s, ctx: context.Background()}
	out, err := c.any(v)
	s.looks.give(out)
	return out, err
}

// ToLuaAll is ToLua for several values, which its errors number; a done context stops it.
func (s *State) ToLuaAll(ctx context.Context, vs []any) ([]lua.LValue, error) {
	if err := s.life.hold(ctx); err != nil {
		return nil, err
	}
	defer s.life.leave()
	c := inward{s: s, ctx: ctx}
	out := make([]lua.LValue, len(vs))
	for i, v := range vs {
		var err error
		if out[i], err = c.any(v); err != nil {
			return nil, under(strconv.Itoa(i+1), err)
		}
	}
	s.looks.give(out...)
	return out, nil
}

// inward turns values of Go into values of Lua.
type inward struct {
	s       *State
	ctx     context.Context
	depth   int // of slices, maps and structs around the value
	entries int
	made    map[reference]*lua.LTable // of what is shared; nil: it is under way
}

// reference is what tells shared values of Go from equal ones.
type reference struct {
	kind reflect.Type
	at   uintptr
	n    int // of a slice
}

// any turns a value of a known type; value does the others by reflection.
func (c *inward) any(v any) (lua.LValue, error) {
	if err := stopped(c.ctx, c.entries); err != nil {
		return nil, err
	}
	c.entries++
	switch v := v.(type) {
	case nil:
		return lua.LNil, nil
	case lua.LValue:
		return v, nil
	case float64:
		return lua.LNumber(v), nil
	case string:
		return lua.LString(v), nil
	case []byte:
		return lua.LString(v), nil
	case tensor.DType:
		return c.s.dtype(v), nil
	case *tensor.Array:
		if v == nil {
			return nil, errors.New("a nil *Array has no counterpart in Lua: want an array, or nil itself")
		}
		if err := v.Err(); err != nil {
			return nil, err
		}
		x := v.Own()
		x.Share()
		return c.s.arrays.box(x), nil
	case Func:
		if v == nil {
			return nil, errors.New("a nil Func has no counterpart in Lua: want a function, or nil itself")
		}
		return goFunction(c.s, v), nil
	}
	return c.value(reflect.ValueOf(v))
}

func (c *inward) value(v reflect.Value) (lua.LValue, error) {
	switch v.Kind() {
	case reflect.Bool:
		return lua.LBool(v.Bool()), nil
	case reflect.Int, reflect.Int8, reflect.Int16, reflect.Int32, reflect.Int64:
		n := v.Int()
		return exactly(v, lua.LNumber(n), n >= -mostExact && n <= mostExact || int64(float64(n)) == n && n != maxInt)
	case reflect.Uint, reflect.Uint8, reflect.Uint16, reflect.Uint32, reflect.Uint64, reflect.Uintptr:
		n := v.Uint()
		return exactly(v, lua.LNumber(n), n <= mostExact || n < 1<<63 && uint64(float64(n)) == n)
	case reflect.Float32, reflect.Float64:
		return lua.LNumber(v.Float()), nil
	case reflect.Complex64, reflect.Complex128:
		return c.s.userdata(complexKind, complexNumber(v.Complex())), nil
	case reflect.String:
		return lua.LString(v.String()), nil
	case reflect.Interface:
		if v.IsNil() {
			return lua.LNil, nil
		}
		return c.any(v.Interface())
	case reflect.Slice:
		if v.Type().Elem() == reflect.TypeFor[byte]() {
			return lua.LString(v.Bytes()), nil
		}
		return c.shared(v, v.Len(), c.list)
	case reflect.Array:
		return c.list(v)
	case reflect.Map:
		return c.shared(v, 1, c.table)
	case reflect.Struct:
		p := reflect.New(v.Type())
		p.Elem().Set(v)
		return c.fields(p, v.Type())
	case reflect.Pointer:
		if v.IsNil() {
			return lua.LNil, nil
		}
		if v.Elem().Kind() == reflect.Struct {
			return c.shared(v, 1, func(p reflect.Value) (lua.LValue, error) {
				return c.deeper(func() (lua.LValue, error) { return c.fields(p, p.Type()) })
			})
		}
		return c.element(v.Elem())
	case reflect.Func:
		return anyFunction(c.s, v)
	}
	return nil, without(v)
}

const (
	mostExact = 1 << 53 // up to this float64 holds every integer
	maxInt    = 1<<63 - 1
)

// exactly is a number, if that is what the Go integer is.
func exactly(v reflect.Value, n lua.LNumber, exact bool) (lua.LValue, error) {
	if !exact {
		return nil, fmt.Errorf("the %s %v is no number of Lua, which has float64 only: "+
			"pass it as a string, or in an array of that dtype", v.Type(), v)
	}
	return n, nil
}

func without(v reflect.Value) error {
	return fmt.Errorf("a Go value of type %s has no counterpart in Lua: want an array, a dtype, a number, a string, "+
		"a bool, a function, or slices, maps and structs of such", v.Type())
}

// element turns a value into which another leads.
func (c *inward) element(v reflect.Value) (lua.LValue, error) {
	return c.deeper(func() (lua.LValue, error) {
		if !v.CanInterface() {
			return nil, without(v)
		}
		return c.any(v.Interface())
	})
}

// deeper turns what a value leads to.
func (c *inward) deeper(turn func() (lua.LValue, error)) (lua.LValue, error) {
	if c.depth == maxDepth {
		return nil, fmt.Errorf("a Go value is nested deeper than %d levels", maxDepth)
	}
	c.depth++
	defer func() { c.depth-- }()
	return turn()
}

// shared makes the table of a slice, map or pointer, once for all places where it occurs.
func (c *inward) shared(v reflect.Value, n int, fill func(v reflect.Value) (lua.LValue, error)) (lua.LValue, error) {
	if v.IsNil() || n == 0 {
		return fill(v)
	}
	key := reference{v.Type(), v.Pointer(), n}
	if t, ok := c.made[key]; ok {
		if t == nil {
			return nil, fmt.Errorf("a Go value of type %s holds itself", v.Type())
		}
		return t, nil
	}
	if c.made == nil {
		c.made = map[reference]*lua.LTable{}
	}
	c.made[key] = nil
	out, err := fill(v)
	if err != nil {
		return nil, err
	}
	if t, ok := out.(*lua.LTable); ok {
		c.made[key] = t
	} else {
		delete(c.made, key)
	}
	return out, nil
}

func (c *inward) list(v reflect.Value) (lua.LValue, error) {
	t := c.s.NewTable(v.Len(), 0)
	for i := range v.Len() {
		item, err := c.element(v.Index(i))
		if err != nil {
			return nil, under(fmt.Sprintf("[%d]", i), err)
		}
		t.RawSetInt(i+1, item)
	}
	return t, nil
}

func (c *inward) table(v reflect.Value) (lua.LValue, error) {
	t := c.s.NewTable(0, v.Len())
	for each := v.MapRange(); each.Next(); {
		key, err := c.key(each.Key())
		if err != nil {
			return nil, err
		}
		item, err := c.element(each.Value())
		if err != nil {
			return nil, under("["+keyText(key)+"]", err)
		}
		if t.RawGet(key) != lua.LNil { // of a map[any]any
			return nil, fmt.Errorf("two keys of a Go map are %s in Lua", keyText(key))
		}
		t.RawSet(key, item)
	}
	return t, nil
}

// key turns a map's key, which is a string or an integer.
func (c *inward) key(v reflect.Value) (lua.LValue, error) {
	if v.Kind() == reflect.Interface {
		v = v.Elem()
	}
	switch v.Kind() {
	case reflect.String, reflect.Int, reflect.Int8, reflect.Int16, reflect.Int32, reflect.Int64, reflect.Uint,
		reflect.Uint8, reflect.Uint16, reflect.Uint32, reflect.Uint64:
		return c.value(v)
	case reflect.Invalid:
		return nil, errors.New("a Go map has the key nil: want strings or integers")
	}
	return nil, fmt.Errorf("a Go map has keys of type %s: want strings or integers", v.Type())
}

// missing reports whether a field holds no array or no function: a layer's bias, say. An argument that is nil is an
// error instead, as it is a mistake of the caller's more often than not.
func missing(field reflect.Value) bool {
	return (field.Type() == typeOfArray || field.Kind() == reflect.Func) && field.IsNil()
}

// fields is the table of the exported fields of the struct that p points to, with its methods. Fields of an embedded
// struct are its own, as in Go, and a field that is nil is nil in Lua. Given is the type of what Go gave: that of the
// pointer, or of the struct.
func (c *inward) fields(p reflect.Value, given reflect.Type) (lua.LValue, error) {
	v := p.Elem()
	t := c.s.NewTable(0, v.NumField())
	for _, f := range luaFields(v.Type()) {
		field, err := v.FieldByIndexErr(f.Index)
		if err != nil {
			continue // of an embedded pointer that is nil
		}
		if missing(field) {
			continue
		}
		item, err := c.element(field)
		if err != nil {
			return nil, under("."+f.Name, err)
		}
		if t.RawGetString(f.name) != lua.LNil {
			return nil, fmt.Errorf("two fields of a Go value of type %s have the name %s in Lua", v.Type(),
				quote(f.name))
		}
		t.RawSetString(f.name, item)
	}
	if !exports(v.Type()) && p.NumMethod() == 0 {
		return nil, fmt.Errorf("a Go value of type %s has no counterpart in Lua: it has no exported fields and no methods",
			v.Type())
	}
	c.object(t, p, given)
	return t, nil
}

// exports reports whether a struct has exported fields, whatever their tags say.
func exports(t reflect.Type) bool {
	return slices.ContainsFunc(reflect.VisibleFields(t), func(f reflect.StructField) bool { return f.IsExported() })
}

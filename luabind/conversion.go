package luabind

import (
	"context"
	"errors"
	"fmt"

	lua "github.com/yuin/gopher-lua"

	"github.com/mlxlua/mlxlua/luabind/lua51"
	"github.com/mlxlua/mlxlua/tensor"
)

// ToLua turns a Go value into a Lua value: nil, bool, integers, floats, string, *tensor.Array, tensor.DType, Func,
// []any and map[string]any of such, nested as deep as maxDepth.
func (s *State) ToLua(v any) (lua.LValue, error) {
	defer s.life.hold()()
	out, err := conversion{s: s}.toLua(v)
	s.looks.give(out)
	return out, err
}

// ToGo turns a Lua value into a Go value: nil, bool, float64, string, *tensor.Array, tensor.DType; a table into []any
// if it is a sequence, else into map[string]any of its string keys; a Lua function into a Func, which is for the
// state's goroutine; anything else stays a Lua value.
func (s *State) ToGo(v lua.LValue) any {
	defer s.life.hold()()
	return conversion{s: s}.toGo(v)
}

// ToGoAll is ToGo for several values.
func (s *State) ToGoAll(vs []lua.LValue) []any {
	if vs == nil {
		return nil
	}
	out := make([]any, len(vs))
	for i, v := range vs {
		out[i] = s.ToGo(v)
	}
	return out
}

// conversion turns values of Go into values of Lua, and back.
type conversion struct {
	s     *State
	depth int // of tables, or of Go's lists and maps, around the value
}

// deeper is the conversion of what a table, a list or a map holds.
func (c conversion) deeper() conversion { return conversion{c.s, c.depth + 1} }

func (c conversion) toLua(v any) (lua.LValue, error) {
	s := c.s
	if c.depth > maxDepth {
		return nil, fmt.Errorf("a Go value is nested deeper than %d levels: does it hold itself?", maxDepth)
	}
	switch v := v.(type) {
	case nil:
		return lua.LNil, nil
	case lua.LValue:
		return v, nil
	case bool:
		return lua.LBool(v), nil
	case int:
		return lua.LNumber(v), nil
	case int32:
		return lua.LNumber(v), nil
	case int64:
		return lua.LNumber(v), nil
	case float32:
		return lua.LNumber(v), nil
	case float64:
		return lua.LNumber(v), nil
	case string:
		return lua.LString(v), nil
	case tensor.DType:
		return s.dtype(v), nil
	case *tensor.Array:
		if v == nil {
			return nil, errors.New("a nil *Array has no counterpart in Lua: want an array, or nil itself")
		}
		if err := v.Err(); err != nil {
			return nil, err
		}
		x := v.Own()
		x.Share()
		return s.arrays.box(x), nil
	case Func:
		if v == nil {
			return nil, errors.New("a nil Func has no counterpart in Lua: want a function, or nil itself")
		}
		return goFunction(s, v), nil
	case []any:
		t := s.L.CreateTable(len(v), 0)
		for i, x := range v {
			item, err := c.deeper().toLua(x)
			if err != nil {
				return nil, err
			}
			t.RawSetInt(i+1, item)
		}
		return t, nil
	case map[string]any:
		t := s.L.CreateTable(0, len(v))
		for k, x := range v {
			item, err := c.deeper().toLua(x)
			if err != nil {
				return nil, err
			}
			t.RawSetString(k, item)
		}
		return t, nil
	}
	return nil, fmt.Errorf("a Go value of type %T has no counterpart in Lua: "+
		"want an array, a dtype, a number, a string, a bool, a Func, []any or map[string]any", v)
}

func (c conversion) toGo(v lua.LValue) any {
	switch v := v.(type) {
	case *lua.LNilType:
		return nil
	case lua.LBool:
		return bool(v)
	case lua.LNumber:
		return float64(v)
	case lua.LString:
		return string(v)
	case *lua.LUserData:
		switch x := v.Value.(type) {
		case *tensor.Array:
			x.Escape()
			return x
		case tensor.DType:
			return x
		}
		c.s.looks.give(v)
		return v
	case *lua.LFunction:
		c.s.looks.give(v)
		return Func(func(ctx context.Context, args []any) ([]any, error) {
			in := make([]lua.LValue, len(args))
			for i, a := range args {
				var err error
				if in[i], err = c.s.ToLua(a); err != nil {
					return nil, err
				}
			}
			out, err := c.s.Call(ctx, v, in...)
			return c.s.ToGoAll(out), err
		})
	case *lua.LTable:
		return c.table(v)
	}
	c.s.looks.give(v)
	return v
}

func (c conversion) table(t *lua.LTable) any {
	if c.depth == maxDepth {
		c.s.looks.give(t)
		return t
	}
	c.s.Unfold(t)
	if n := t.Len(); n > 0 {
		out := make([]any, n)
		for i := range out {
			out[i] = c.deeper().toGo(t.RawGetInt(i + 1))
		}
		return out
	}
	out := map[string]any{}
	t.ForEach(func(k, v lua.LValue) {
		if name, ok := k.(lua.LString); ok {
			out[string(name)] = c.deeper().toGo(v)
		}
	})
	return out
}

// goFunction is a Go function as Lua sees it. Its errors and panics become Lua errors.
func goFunction(s *State, f Func) *lua.LFunction {
	return s.Func(func(L *lua.LState) int {
		out, err := callGo(s.Context(), f, s.ToGoAll(lua51.Args(L)))
		if err != nil {
			s.raise(err)
		}
		for _, x := range out {
			v, err := s.ToLua(x)
			if err != nil {
				s.raise(err)
			}
			L.Push(v)
		}
		return len(out)
	})
}

func callGo(ctx context.Context, f Func, args []any) (out []any, err error) {
	defer func() {
		if p := recover(); p != nil {
			err = fmt.Errorf("a Go function panicked: %v", p)
		}
	}()
	return f(ctx, args)
}

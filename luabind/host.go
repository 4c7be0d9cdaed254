package luabind

import (
	"context"
	"errors"
	"fmt"

	lua "github.com/yuin/gopher-lua"

	"github.com/mlxlua/mlxlua/luabind/lua51"
	"github.com/mlxlua/mlxlua/tensor"
)

// Value is a Lua value, for hosts that do not know the Lua implementation.
type Value = lua.LValue

// Func is a Go function that scripts call: it takes and gives values as ToGo makes them.
type Func = func(ctx context.Context, args []any) ([]any, error)

// ToLua turns a Go value into a Lua value: nil, bool, integers, floats, string, *tensor.Array, tensor.DType, Func,
// []any and map[string]any of such, nested as deep as maxDepth.
func (s *State) ToLua(v any) (lua.LValue, error) { return s.toLua(v, 0) }

func (s *State) toLua(v any, depth int) (lua.LValue, error) {
	if depth > maxDepth {
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
		return &lua.LUserData{Value: v.Own(), Env: s.L.Env, Metatable: s.arrays}, nil
	case Func:
		if v == nil {
			return nil, errors.New("a nil Func has no counterpart in Lua: want a function, or nil itself")
		}
		return s.goFunction(v), nil
	case []any:
		t := s.L.CreateTable(len(v), 0)
		for i, x := range v {
			item, err := s.toLua(x, depth+1)
			if err != nil {
				return nil, err
			}
			t.RawSetInt(i+1, item)
		}
		return t, nil
	case map[string]any:
		t := s.L.CreateTable(0, len(v))
		for k, x := range v {
			item, err := s.toLua(x, depth+1)
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

// ToGo turns a Lua value into a Go value: nil, bool, float64, string, *tensor.Array, tensor.DType; a table into []any
// if it is a sequence, else into map[string]any of its string keys; a Lua function into a Func, which is for the
// state's goroutine; anything else stays a Lua value.
func (s *State) ToGo(v lua.LValue) any { return s.toGo(v, 0) }

func (s *State) toGo(v lua.LValue, depth int) any {
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
		case *tensor.Array, tensor.DType:
			return x
		}
		return v
	case *lua.LFunction:
		return Func(func(ctx context.Context, args []any) ([]any, error) {
			in := make([]lua.LValue, len(args))
			for i, a := range args {
				var err error
				if in[i], err = s.ToLua(a); err != nil {
					return nil, err
				}
			}
			out, err := s.Call(ctx, v, in...)
			return s.ToGoAll(out), err
		})
	case *lua.LTable:
		return s.tableToGo(v, depth)
	}
	return v
}

func (s *State) tableToGo(t *lua.LTable, depth int) any {
	if depth == maxDepth {
		return t
	}
	if n := t.Len(); n > 0 {
		out := make([]any, n)
		for i := range out {
			out[i] = s.toGo(t.RawGetInt(i+1), depth+1)
		}
		return out
	}
	out := map[string]any{}
	t.ForEach(func(k, v lua.LValue) {
		if name, ok := k.(lua.LString); ok {
			out[string(name)] = s.toGo(v, depth+1)
		}
	})
	return out
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

// goFunction is a Go function as Lua sees it. Its errors and panics become Lua errors.
func (s *State) goFunction(f Func) *lua.LFunction {
	return s.Func(func(L *lua.LState) int {
		out, err := s.callGo(f, s.ToGoAll(lua51.Args(L)))
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

func (s *State) callGo(f Func, args []any) (out []any, err error) {
	defer func() {
		if p := recover(); p != nil {
			err = fmt.Errorf("a Go function panicked: %v", p)
		}
	}()
	return f(s.Context(), args)
}

// Global is a global variable's value: nil after Close. A script's metatable for globals has no say.
func (s *State) Global(name string) lua.LValue {
	if s.enter() != nil {
		return lua.LNil
	}
	defer s.leave()
	return s.L.G.Global.RawGetString(name)
}

// SetGlobal sets a global variable. After Close it is ErrClosed.
func (s *State) SetGlobal(name string, v lua.LValue) error {
	if err := s.enter(); err != nil {
		return err
	}
	defer s.leave()
	s.L.G.Global.RawSetString(name, v)
	return nil
}

// Eval compiles and runs a line of a REPL: as an expression if it is one, whose values it gives, else as statements.
// incomplete says that the text is the beginning of something longer.
func (s *State) Eval(ctx context.Context, src string) (out []lua.LValue, incomplete bool, err error) {
	const name = "stdin"
	proto, err := s.Compile(newReader("return "+src), name)
	if err != nil {
		begun := isIncomplete(err) // of an expression: x +
		if proto, err = s.Compile(newReader(src), name); err != nil {
			return nil, begun || isIncomplete(err), &ScriptError{Message: err.Error()}
		}
	}
	out, err = s.Call(ctx, s.L.NewFunctionFromProto(proto))
	return out, false, err
}

// Text is a value as print shows it; reading an array evaluates it.
func (s *State) Text(ctx context.Context, v lua.LValue) (string, error) {
	out, err := s.Call(ctx, s.Global("tostring"), v)
	if err != nil {
		return "", err
	}
	if len(out) != 1 {
		return "", errors.New("tostring gave no value")
	}
	return out[0].String(), nil
}

// Require loads a module and makes it a global of its name, as lua -l does.
func (s *State) Require(ctx context.Context, name string) error {
	out, err := s.Call(ctx, s.Global("require"), lua.LString(name))
	if err == nil && len(out) > 0 {
		err = s.SetGlobal(name, out[0])
	}
	return err
}

// Names lists what could follow a prefix in a REPL: globals, and the entries of tables and methods of arrays after a
// dot or colon.
func (s *State) Names(prefix string) []string { return s.complete(prefix) }

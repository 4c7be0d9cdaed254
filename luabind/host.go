package luabind

import (
	"context"
	"errors"

	lua "github.com/yuin/gopher-lua"
)

// Value is a Lua value, for hosts that do not know the Lua implementation.
type Value = lua.LValue

// Func is a Go function that scripts call: it takes and gives values as ToGo makes them.
type Func = func(ctx context.Context, args []any) ([]any, error)

// Global is a global variable's value: nil after Close, and where another goroutine uses the state. A script's
// metatable for globals has no say.
func (s *State) Global(name string) lua.LValue {
	if s.life.enter(context.Background()) != nil {
		return lua.LNil
	}
	defer s.life.leave()
	v := s.Entry(s.L.G.Global, name)
	s.looks.give(v)
	return v
}

// Function is what a global variable holds that can be called: a function, a compiled one, a layer; nil if there is no
// such.
func (s *State) Function(name string) Func {
	if s.life.enter(context.Background()) != nil {
		return nil
	}
	defer s.life.leave()
	if v := s.Global(name); callable(s, v) {
		return luaFunction(s, v)
	}
	return nil
}

// callable reports whether a script can call v: a function, what mx.compile and the like give, a layer, a class.
func callable(s *State, v lua.LValue) bool {
	_, ok := v.(*lua.LFunction)
	return ok || s.L.GetMetaField(v, "__call") != lua.LNil
}

// SetGlobal sets a global variable. After Close it is ErrClosed.
func (s *State) SetGlobal(name string, v lua.LValue) error {
	if err := s.life.enter(context.Background()); err != nil {
		return err
	}
	defer s.life.leave()
	s.looks.give(v)
	s.SetEntry(s.L.G.Global, name, v)
	return nil
}

// Eval compiles and runs a line of a REPL. If the line is an expression, Eval returns its values, else it runs the line
// as statements. incomplete says that the text is the beginning of something longer.
func (s *State) Eval(ctx context.Context, src string) (out []lua.LValue, incomplete bool, err error) {
	const name = "stdin"
	if err := s.life.enter(ctx); err != nil {
		return nil, false, err
	}
	defer s.life.leave()
	proto, err := s.Compile(ctx, newReader("return "+src), name)
	if err != nil {
		begun := isIncomplete(err) // of an expression: x +
		if proto, err = s.Compile(ctx, newReader(src), name); err != nil {
			return nil, begun || isIncomplete(err), syntaxFailure(err)
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

// IsBegun reports whether a text is the beginning of a line of a REPL which goes on in the next one: see Eval.
func IsBegun(s *State, src string) bool {
	_, err := s.Compile(context.Background(), newReader("return "+src), "stdin")
	if err == nil {
		return false
	}
	begun := isIncomplete(err)
	_, err = s.Compile(context.Background(), newReader(src), "stdin")
	return err != nil && (begun || isIncomplete(err))
}

package luabind

import (
	"context"
	"errors"
	"strings"
	"time"

	lua "github.com/yuin/gopher-lua"

	"github.com/mlxlua/mlxlua/luabind/lua51"
	"github.com/mlxlua/mlxlua/tensor"
)

// ScriptError is an error that a script did not catch.
type ScriptError struct {
	Message string // with the op, the values and the line
	Value   any    // what error was called with, as ToGo makes it; of what has no Go value, the Lua value
	File    string // the script's line that raised it, or where a text is no Lua: "" if there is none
	Line    int
	// Column and Length say what on the line is wrong, in bytes, where a text is no Lua: Column counts from 1; 0:
	// nobody knows.
	Column, Length int
	Traceback      string   // Lua's, innermost call first; "" for what is not a run-time error
	Exit           *int     // the status of an os.exit that was called
	Go             *GoError // the Go function that the script called and that has failed, if that was it
	Cause          error    // the engine's error or the context's, if there is one

	bytes int64 // that Value takes
}

// Error is the message.
func (e *ScriptError) Error() string { return e.Message }

// Unwrap is the cause.
func (e *ScriptError) Unwrap() error { return e.Cause }

// luaError is the value of a Lua error that a binding raises: an object with message, op and traceback, which behaves
// as its text where scripts expect a string.
type luaError struct {
	message, op, traceback string
	cause                  error
	value                  lua.LValue // what a script called error with; nil: a binding raised it
	place                  tensor.Place
}

func (e *luaError) reached(h hearer) { h.value(e.value) }

const errorKind = "error"

// raise raises err as a Lua error; it does not return.
func (s *State) raise(err error) {
	e := &luaError{message: tensor.Brief(err.Error()), cause: err, traceback: s.Traceback(), place: s.where()}
	s.work.tell(err)
	s.changes.rollBack(s)
	var oe *tensor.OpError
	if errors.As(err, &oe) {
		e.op = oe.Op
		if w := oe.Place.String(); w != "" {
			e.message = w + ": " + strings.TrimSuffix(e.message, " ("+w+")")
		}
	}
	if e.op == "" || !strings.Contains(e.message, ":") {
		if w := s.where().String(); w != "" && !strings.HasPrefix(e.message, w) {
			e.message = w + ": " + e.message
		}
	}
	s.L.Error(s.userdata(errorKind, e), 0)
}

// traceback is the message handler of Call: it keeps an error's value and notes where it was raised.
func (s *State) traceback(L *lua.LState) int {
	v := L.Get(1)
	if _, ok := unwrap[*luaError](v); !ok {
		if _, exits := lua51.ExitStatus(v); !exits {
			v = s.userdata(errorKind, &luaError{message: errorText(s, v), traceback: s.Traceback(), value: v,
				place: s.where()})
		}
	}
	L.Push(v)
	return 1
}

// errorText is the text of the value that error was called with.
func errorText(s *State, v lua.LValue) string {
	if t, ok := v.(*lua.LTable); ok && s.L.GetMetaField(v, "__tostring") == lua.LNil {
		if text, ok := t.RawGetString("message").(lua.LString); ok {
			return string(text)
		}
		return noText(v)
	}
	return safeText(s, v)
}

// noText stands for an error's value that has no text.
func noText(v lua.LValue) string { return "(error object is a " + v.Type().String() + " value)" }

// safeText is the text of a value whose __tostring may fail.
func safeText(s *State, v lua.LValue) string {
	out, err := s.Protect(nil, s.Func(func(L *lua.LState) int {
		L.Push(lua.LString(lua51.Text(L, L.Get(1))))
		return 1
	}), v)
	if err != nil || len(out) != 1 {
		return noText(v)
	}
	return out[0].String()
}

// scriptError turns what PCall gives into a ScriptError.
func (s *State) scriptError(err error) *ScriptError {
	var api *lua.ApiError
	if !errors.As(err, &api) {
		return &ScriptError{Message: err.Error(), Cause: err}
	}
	if status, exits := lua51.ExitStatus(api.Object); exits {
		return &ScriptError{Message: "os.exit was called", Exit: &status}
	}
	if e, ok := unwrap[*luaError](api.Object); ok {
		out := &ScriptError{Message: e.message, Traceback: e.traceback, Cause: e.cause,
			File: e.place.File, Line: e.place.Line}
		var inner *ScriptError
		switch {
		case e.value != nil:
			out.Value, out.bytes = errorValue(s, e.value)
		case errors.As(e.cause, &inner): // of a script that a Go function has called
			out.Value, out.bytes = inner.Value, inner.bytes
		}
		var g *GoError
		if errors.As(e.cause, &g) {
			out.Go = g
		}
		return out
	}
	msg := api.Error()
	if api.Object != nil && api.Object != lua.LNil {
		msg = safeText(s, api.Object)
	}
	return &ScriptError{Message: msg, Traceback: api.StackTrace}
}

// errorValue is an error's value as a Go value, or itself, and the bytes that it takes. It is wanted after a deadline
// too: it takes a time of its own, which is short. Arrays of a confined state that are not computed by then have no
// value for Go.
func errorValue(s *State, v lua.LValue) (any, int64) {
	ctx, cancel := context.WithTimeout(context.Background(), 50*time.Millisecond)
	defer cancel()
	if s.life.hold(ctx) == nil {
		defer s.life.leave()
	}
	c := outward{s: s, ctx: ctx}
	out, err := c.value(v, 0)
	if err != nil {
		s.looks.give(v)
		return v, lua51.ElementBytes
	}
	_ = c.compute()
	return out, c.bytes
}

// syntaxFailure is a text that does not compile as a ScriptError.
func syntaxFailure(err error) *ScriptError {
	e := &ScriptError{Message: err.Error(), Cause: err}
	if errors.Is(err, lua51.ErrLimit) {
		return e
	}
	var se *lua51.SyntaxError
	if errors.As(err, &se) {
		e.File, e.Line, e.Column, e.Length = se.Chunk, se.Line, se.Column, len(se.Token)
	}
	return e
}

// openErrors makes the metatable of error objects.
func (s *State) openErrors() {
	mt := s.meta(errorKind)
	text := func(v lua.LValue) string {
		if e, ok := unwrap[*luaError](v); ok {
			return e.message
		}
		return lua51.Text(s.L, v)
	}
	s.Method(mt, "__tostring", func(L *lua.LState) int {
		L.Push(lua.LString(text(L.Get(1))))
		return 1
	})
	s.Method(mt, "__concat", func(L *lua.LState) int {
		L.Push(lua.LString(text(L.Get(1)) + text(L.Get(2))))
		return 1
	})
	s.Method(mt, "__len", func(L *lua.LState) int {
		L.Push(lua.LNumber(len(text(L.Get(1)))))
		return 1
	})
	s.Method(mt, "__index", func(L *lua.LState) int {
		e, ok := unwrap[*luaError](L.Get(1))
		if !ok {
			return 0
		}
		switch key := L.Get(2).String(); key {
		case "message":
			L.Push(lua.LString(e.message))
		case "op":
			L.Push(lua.LString(e.op))
		case "traceback":
			L.Push(lua.LString(e.traceback))
		default: // string methods, on the text
			f, ok := lua51.StringMethod(s.State, key)
			if !ok {
				return 0
			}
			L.Push(s.Func(func(L *lua.LState) int {
				n := L.GetTop()
				L.Push(L.Get(lua.UpvalueIndex(1)))
				L.Push(lua.LString(text(L.Get(1))))
				for i := 2; i <= n; i++ {
					L.Push(L.Get(i))
				}
				L.Call(n, lua.MultRet)
				return L.GetTop() - n
			}, f))
		}
		return 1
	})
}

package luabind

import (
	"context"
	"errors"
	"fmt"
	"reflect"

	lua "github.com/yuin/gopher-lua"

	"github.com/mlxlua/mlxlua/luabind/lua51"
	"github.com/mlxlua/mlxlua/tensor"
)

// ToGo turns a Lua value into a Go value: nil, bool, float64, complex64, string, *tensor.Array, tensor.DType; a table
// into []any if it has items, else into map[string]any of its names, and that of a struct with methods into what Go
// gave; a Lua function, and what mx.compile and the like give, into a Func, which is for the state's goroutine; an
// error that pcall gave into what error was called with, or its message; anything else stays a Lua value. A table in
// many places is one Go value in all of them. A table that holds itself, that has items and names, or keys that are
// neither, is an error, and so is a done context. Where Limits.Memory is given, what would take more bytes than that
// if nothing were shared is an error that wraps ErrLimit.
//
// In a sandbox, or under limits of time, arrays are computed, under the limits of the call from the host that is under
// way, or else of this one. So Go gets no array that would take time or memory later.
func (s *State) ToGo(ctx context.Context, v lua.LValue) (any, error) {
	out, err := s.ToGoAll(ctx, "", []lua.LValue{v})
	if err != nil {
		return nil, err
	}
	return out[0], nil
}

// ToGoAll is ToGo for several values, which are numbered in its errors: what is what one of them is.
func (s *State) ToGoAll(ctx context.Context, what string, vs []lua.LValue) ([]any, error) {
	if vs == nil {
		return nil, nil
	}
	if err := s.life.hold(ctx); err != nil {
		return nil, err
	}
	defer s.life.leave()
	ctx, end := s.bounds.begin(ctx)
	defer end()
	c := outward{s: s, ctx: ctx}
	out := make([]any, len(vs))
	for i, v := range vs {
		var err error
		if out[i], err = c.value(v, 0); err == nil {
			continue
		}
		if what != "" {
			err = under(fmt.Sprintf("%s %d", what, i+1), err)
		}
		return nil, err
	}
	if err := c.compute(); err != nil {
		return nil, err
	}
	return out, nil
}

// compute computes the arrays that Go gets of a confined state.
func (c *outward) compute() error {
	if len(c.arrays) == 0 {
		return nil
	}
	c.s.looks.ifDue(c.arrays...)
	if err := tensor.Eval(c.ctx, c.arrays...); err != nil {
		if cause := context.Cause(c.ctx); cause != nil && !errors.Is(err, ErrLimit) {
			err = fmt.Errorf("interrupted: %w", cause)
		}
		return err
	}
	return nil
}

// array notes an array that Go gets. Copies of the elements may not be larger than what the state's arrays may take: an
// array that is broadcast takes hardly any memory itself.
func (c *outward) array(x *tensor.Array) error {
	x.Escape()
	if !c.s.opt.confined() || x.Readable() != nil {
		return nil
	}
	c.arrays = append(c.arrays, x)
	return c.countElements(x.Spec().NBytes())
}

// countElements is count for bytes of arrays' elements.
func (c *outward) countElements(n int64) error {
	c.elements += n
	return c.s.looks.holder.Account().Check(c.elements)
}

// carryError is an error of a conversion, with the way to the value.
type carryError struct {
	way   string // such as result 1.layers[2]
	cause error
}

// Error names the value and what is wrong.
func (e *carryError) Error() string { return e.way + ": " + e.cause.Error() }

// Unwrap is what is wrong.
func (e *carryError) Unwrap() error { return e.cause }

// under puts a key in front of the way to a value.
func under(key string, err error) error {
	if e, ok := err.(*carryError); ok {
		return &carryError{key + e.way, e.cause}
	}
	return &carryError{key, err}
}

// pollConversions is how many entries are converted between two looks at the context.
const pollConversions = 1024

// stopped is the error of a conversion whose context is done.
func stopped(ctx context.Context, entries int) error {
	if entries%pollConversions != 0 || ctx == nil || ctx.Err() == nil {
		return nil
	}
	return fmt.Errorf("interrupted: %w", context.Cause(ctx))
}

// outward turns values of Lua into values of Go.
type outward struct {
	s       *State
	ctx     context.Context
	entries int
	tables  map[*lua.LTable]any // what each became; nil: it is under way
	copies  map[*lua.LTable]carried
	arrays  []*tensor.Array // to compute
	carried
}

// carried is how much was carried, if each place had a copy of its own.
type carried struct {
	bytes    int64 // of values
	elements int64 // of confined arrays, in bytes
}

// count counts n bytes. Hosts walk what they get as a tree, to write JSON for instance: a script under a limit must not
// hand over one that is larger than the limit, by a table that stands in 2^n places.
func (c *outward) count(n int64) error {
	c.bytes += n
	if most := c.s.opt.Limits.Memory; most > 0 && c.bytes > most {
		return fmt.Errorf("[limits] Go would get more than %d bytes, counting what stands in many places in each: %w",
			most, ErrLimit)
	}
	return nil
}

func (c *outward) value(v lua.LValue, depth int) (any, error) {
	if err := c.count(lua51.ElementBytes); err != nil {
		return nil, err
	}
	switch v := v.(type) {
	case *lua.LNilType:
		return nil, nil
	case lua.LBool:
		return bool(v), nil
	case lua.LNumber:
		return float64(v), nil
	case lua.LString:
		return string(v), c.count(int64(len(v)))
	case *lua.LUserData:
		switch x := v.Value.(type) {
		case *tensor.Array:
			return x, c.array(x)
		case tensor.DType:
			return x, nil
		case complexNumber:
			return complex64(x), nil
		case *luaError:
			return c.caught(x, depth)
		}
		c.s.looks.give(v)
		if callable(c.s, v) {
			return luaFunction(c.s, v), nil
		}
		return v, nil
	case *lua.LFunction:
		c.s.looks.give(v)
		return luaFunction(c.s, v), nil
	case *lua.LTable:
		return c.table(v, depth)
	}
	c.s.looks.give(v)
	return v, nil
}

// caught is an error that a script caught: what error was called with, also in a script that a Go function has called,
// else the message.
func (c *outward) caught(e *luaError, depth int) (any, error) {
	var inner *ScriptError
	switch {
	case e.value != nil:
		return c.value(e.value, depth)
	case errors.As(e.cause, &inner) && inner.Value != nil:
		return inner.Value, c.count(inner.bytes)
	}
	return e.message, c.count(int64(len(e.message)))
}

// table is a table's list or map, made once.
func (c *outward) table(t *lua.LTable, depth int) (any, error) {
	if o, _ := objectOf(t); o != nil {
		return o.value(c.s, t)
	}
	if made, ok := c.tables[t]; ok {
		if made == nil {
			return nil, errors.New("the table holds itself: Go's lists and maps are trees")
		}
		copied := c.copies[t]
		if err := c.countElements(copied.elements); err != nil {
			return nil, err
		}
		return made, c.count(copied.bytes)
	}
	if depth == maxDepth {
		return nil, fmt.Errorf("tables are nested deeper than %d levels", maxDepth)
	}
	if c.tables == nil {
		c.tables, c.copies = map[*lua.LTable]any{}, map[*lua.LTable]carried{}
	}
	c.tables[t] = nil
	before := c.carried
	if err := c.unfold(t); err != nil {
		return nil, err
	}
	var made any
	var err error
	if n := t.Len(); n > 0 {
		made, err = c.list(t, n, depth)
	} else {
		made, err = c.names(t, depth)
	}
	c.tables[t], c.copies[t] = made, carried{c.bytes - before.bytes, c.elements - before.elements}
	return made, err
}

// unfold shows all entries of a library's table. Where that loads a module which is written in Lua, outside of a call
// from the host, it is a call of its own, with a call's limits.
func (c *outward) unfold(t *lua.LTable) error {
	s := c.s
	if !s.Idle() || !s.Delayed(t) {
		s.Unfold(t)
		return nil
	}
	_, err := s.Call(c.ctx, s.Func(func(L *lua.LState) int {
		s.Unfold(L.CheckTable(1))
		return 0
	}), t)
	return err
}

func (c *outward) list(t *lua.LTable, n, depth int) (any, error) {
	out := make([]any, n)
	for k, v := t.Next(lua.LNil); k != lua.LNil; k, v = t.Next(k) {
		if err := stopped(c.ctx, c.entries); err != nil {
			return nil, err
		}
		c.entries++
		i := 0
		if f, ok := k.(lua.LNumber); ok && float64(f) == float64(int(f)) {
			i = int(f)
		}
		if i < 1 || i > n {
			return nil, fmt.Errorf("a table has the items 1 to %d and the key %s: Go gets a list or a map", n, keyText(k))
		}
		x, err := c.value(v, depth+1)
		if err != nil {
			return nil, under(fmt.Sprintf("[%d]", i), err)
		}
		out[i-1] = x
	}
	return out, nil
}

func (c *outward) names(t *lua.LTable, depth int) (any, error) {
	out := map[string]any{}
	for k, v := t.Next(lua.LNil); k != lua.LNil; k, v = t.Next(k) {
		if err := stopped(c.ctx, c.entries); err != nil {
			return nil, err
		}
		c.entries++
		name, ok := k.(lua.LString)
		if !ok {
			return nil, fmt.Errorf("a table has the key %s: Go gets lists of items from 1 on, and maps of names", keyText(k))
		}
		if err := c.count(lua51.ElementBytes + int64(len(name))); err != nil {
			return nil, err
		}
		x, err := c.value(v, depth+1)
		if err != nil {
			return nil, under("["+quote(string(name))+"]", err)
		}
		out[string(name)] = x
	}
	return out, nil
}

// keyText is a table's key in messages.
func keyText(k lua.LValue) string {
	switch k := k.(type) {
	case lua.LString:
		return quote(string(k))
	case lua.LNumber, lua.LBool:
		return k.String()
	}
	return describe(k)
}

// luaFunction is a Lua function, or another value that can be called, as Go sees it.
func luaFunction(s *State, f lua.LValue) Func {
	return func(ctx context.Context, args []any) ([]any, error) {
		if err := s.life.enter(ctx); err != nil {
			return nil, fmt.Errorf("[call] %w", err)
		}
		defer s.life.leave()
		in, err := s.ToLuaAll(ctx, args)
		if err != nil {
			return nil, fmt.Errorf("[call] argument %w", err)
		}
		return Results(ctx, s, func(ctx context.Context) ([]lua.LValue, error) { return s.Call(ctx, f, in...) })
	}
}

// Results runs a call, Run or Call, and turns what it gives into Go values, which belongs to the call: its limits hold
// for both. Its errors are *ScriptError.
func Results(ctx context.Context, s *State, run func(ctx context.Context) ([]lua.LValue, error)) ([]any, error) {
	if err := s.life.enter(ctx); err != nil {
		return nil, err
	}
	defer s.life.leave()
	ctx, end := s.bounds.begin(ctx)
	defer end()
	vs, err := run(ctx)
	if err != nil {
		return nil, err
	}
	out, err := s.ToGoAll(ctx, "result", vs)
	if err == nil {
		return out, nil
	}
	return nil, interrupted(ctx, &ScriptError{Message: err.Error(), Cause: err})
}

// goFunction is a Go function as Lua sees it. Its errors and panics become Lua errors.
func goFunction(s *State, f Func) *lua.LFunction {
	return s.Func(func(L *lua.LState) int {
		args, err := s.ToGoAll(s.Context(), "argument", lua51.Args(L))
		if err != nil {
			s.raise(err)
		}
		ctx, takeBack := s.life.lend(s.Context())
		out, err := callGo(ctx, f, args)
		takeBack()
		if err != nil {
			s.raise(err)
		}
		results, err := s.ToLuaAll(s.Context(), out)
		if err != nil {
			s.raise(fmt.Errorf("a Go function's result %w", err))
		}
		for _, v := range results {
			L.Push(v)
		}
		return len(results)
	})
}

func callGo(ctx context.Context, f Func, args []any) ([]any, error) {
	return callSafely(reflect.ValueOf(f).Pointer(), func() ([]any, error) { return f(ctx, args) })
}

// callSafely is call, a call of the Go function with its code there, with its errors and panics as errors of that.
func callSafely(code uintptr, call func() ([]any, error)) (out []any, err error) {
	defer func() {
		if p := recover(); p != nil {
			e := goError(code, fmt.Errorf("a Go function panicked: %v", p))
			if cause, ok := p.(error); ok {
				e.Err = fmt.Errorf("a Go function panicked: %w", cause)
			}
			e.panicked()
			err = e
		}
	}()
	out, err = call()
	if bad := (badArgument{}); errors.As(err, &bad) {
		return nil, bad.error
	}
	if err != nil {
		return nil, goError(code, err)
	}
	return out, nil
}

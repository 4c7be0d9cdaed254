package luabind

import (
	"fmt"

	lua "github.com/yuin/gopher-lua"

	"github.com/mlxlua/mlxlua/luabind/lua51"
	"github.com/mlxlua/mlxlua/tensor"
	"github.com/mlxlua/mlxlua/tensor/grad"
)

// vmapCall is mx.vmap(fun, in_axes, out_axes): it returns a function. An axis given as a number holds for every array
// in its place, also for all those in a tree.
func vmapCall(a *args) any {
	s := a.s
	a.callable(0)
	return s.transform(a.f.name, func(L *lua.LState) int {
		c, inAxes, outAxes := s.call(), transformed(L, 1), transformed(L, 2)
		args := lua51.Args(L)
		in := s.flattenAll("vmap", args)
		axes, err := argumentAxes(inAxes, args)
		if err != nil {
			s.raise(c.Errorf("vmap", "in_axes %w", err))
		}
		f := &luaFunc{s: s, op: "vmap", fn: transformed(L, 0), args: args}
		to := func() ([]int, error) {
			axes, err := resultAxes(outAxes, f.results)
			if err != nil {
				return nil, c.Errorf("vmap", "out_axes %w", err)
			}
			return axes, nil
		}
		outs, err := grad.VMapTo(f.call, axes, to, c)(in)
		if err != nil {
			s.reraise(err)
		}
		results := s.rebuildAll(f.results, outs)
		for _, v := range results {
			L.Push(v)
		}
		return len(results)
	}, a.raw...)
}

// oneAxis is a batch axis: a number, nil for 0, false for none.
func oneAxis(v lua.LValue) (int, error) {
	switch v := v.(type) {
	case *lua.LNilType:
		return 0, nil
	case lua.LBool:
		if !bool(v) {
			return grad.NoAxis, nil
		}
	case lua.LNumber:
		return toInt(v)
	}
	return 0, fmt.Errorf("is %s, want an axis, or false for none", describe(v))
}

// argumentAxes spreads in_axes over the leaves of the arguments.
func argumentAxes(axes lua.LValue, args []lua.LValue) ([]int, error) {
	out := []int{}
	for i, arg := range args {
		of := axes
		if t, ok := axes.(*lua.LTable); ok {
			if t.Len() != len(args) {
				return nil, fmt.Errorf("has %d entries for %s", t.Len(),
					tensor.Count(len(args), "value"))
			}
			of = t.RawGetInt(i + 1)
		}
		var err error
		if out, err = spreadAxes(of, arg, out); err != nil {
			return nil, err
		}
	}
	return out, nil
}

// resultAxes spreads out_axes over the leaves of the results: a table has an entry for each result, or is like the only
// one.
func resultAxes(axes lua.LValue, results []lua.LValue) ([]int, error) {
	list, ok := axes.(*lua.LTable)
	if !ok || len(results) != 1 {
		return argumentAxes(axes, results)
	}
	_, tree := results[0].(*lua.LTable)
	_, inner := list.RawGetInt(1).(*lua.LTable)
	if !tree || inner && list.Len() == 1 && len(keysOf(list)) == 0 {
		return argumentAxes(axes, results)
	}
	return spreadAxes(axes, results[0], []int{})
}

// spreadAxes appends the axes of a tree's arrays to out. Where axes is a table, it has entries of the tree's.
func spreadAxes(axes, tree lua.LValue, out []int) ([]int, error) {
	if _, ok := array(tree); ok {
		axis, err := oneAxis(axes)
		return append(out, axis), err
	}
	t, ok := tree.(*lua.LTable)
	if !ok {
		return out, nil
	}
	if list, ok := axes.(*lua.LTable); ok {
		for _, k := range orderedKeys(list, nil) {
			if t.RawGet(k) == lua.LNil {
				return nil, fmt.Errorf("has an entry %s, and the table that it is for has none", quote(k.String()))
			}
		}
	}
	for _, k := range orderedKeys(t, nil) {
		of := axes
		if list, ok := axes.(*lua.LTable); ok {
			of = list.RawGet(k)
		}
		var err error
		if out, err = spreadAxes(of, t.RawGet(k), out); err != nil {
			return nil, err
		}
	}
	return out, nil
}

// checkpointCall is mx.checkpoint(fun): a function whose intermediate values are computed again for its gradient.
func checkpointCall(a *args) any {
	s, fn := a.s, a.callable(0)
	return s.transform(a.f.name, func(L *lua.LState) int {
		args := lua51.Args(L)
		in := s.flattenAll("checkpoint", args)
		f := &luaFunc{s: s, op: "checkpoint", fn: transformed(L, 0), args: outlines(s, args), kept: true}
		s.looks.traced.add(f)
		outs, err := grad.Checkpoint(f.call, s.call())(in)
		return f.push(outs, err)
	}, fn)
}

// push pushes what the function returned last, with its arrays replaced by outs.
func (f *luaFunc) push(outs []*tensor.Array, err error) int {
	s := f.s
	if err != nil {
		s.reraise(err)
	}
	results := s.rebuildAll(f.results, outs)
	for _, v := range results {
		s.L.Push(v)
	}
	return len(results)
}

// customFunction is mx.custom_function(fn): callable, with setters of its transforms.
type customFunction struct{ fn, vjp, jvp, vmap lua.LValue }

// fields are its functions: nil where there is none.
func (k *customFunction) fields() [4]lua.LValue {
	list := [...]lua.LValue{k.fn, k.vjp, k.jvp, k.vmap}
	for i, f := range list {
		if f == nil {
			list[i] = lua.LNil
		}
	}
	return list
}

func (k *customFunction) reached(h hearer) { h.values([]lua.LValue{k.fn, k.vjp, k.jvp, k.vmap}) }

// customCall is a call of a custom function. The nodes that stand for its results refer to it.
type customCall struct {
	k *customFunction
	f *luaFunc
}

func (c *customCall) reached(h hearer) {
	c.k.reached(h)
	c.f.reached(h)
}

const customKind = "custom_function"

// openCustom makes the metatable of custom functions.
func (s *State) openCustom() {
	mt := s.meta(customKind)
	methods := s.NewTable(0, 1)
	mt.RawSetString("__index", methods)
	setter := func(name string, set func(k *customFunction, fn lua.LValue)) {
		s.method(methods, customObject, name, func(L *lua.LState) int {
			k, _ := unwrap[*customFunction](L.Get(1))
			fn, isFn := L.Get(2).(*lua.LFunction)
			if !isFn {
				s.raise(s.call().Errorf("custom_function", "call it as f:%s(function(...) ... end)", name))
			}
			set(k, fn)
			L.Push(L.Get(1))
			return 1
		})
	}
	setter("vjp", func(k *customFunction, fn lua.LValue) { k.vjp = fn })
	setter("jvp", func(k *customFunction, fn lua.LValue) { k.jvp = fn })
	setter("vmap", func(k *customFunction, fn lua.LValue) { k.vmap = fn })
	s.Method(mt, "__call", func(L *lua.LState) int {
		k, _ := unwrap[*customFunction](L.Get(1))
		args := lua51.Args(L)[1:]
		in := s.flattenAll("custom_function", args)
		call := &customCall{k, &luaFunc{s: s, op: "custom_function", fn: k.fn, args: outlines(s, args), kept: true}}
		s.looks.custom.add(call)
		outs, err := call.rules().Call(in, s.call())
		return call.f.push(outs, err)
	})
}

// rules returns what the transforms need of the call. Its Lua functions get trees like those of the call: bare for one
// argument or result, in a table for several.
func (call *customCall) rules() *grad.Custom {
	k, f := call.k, call.f
	s, c := f.s, &grad.Custom{F: func(in []*tensor.Array) ([]*tensor.Array, error) { return call.f.call(in) }}
	bare := func(vs []lua.LValue) lua.LValue {
		if len(vs) == 1 {
			return vs[0]
		}
		t := s.NewTable(len(vs), 0)
		for _, v := range vs {
			t.Append(v)
		}
		return t
	}
	primals := func(xs []*tensor.Array) lua.LValue { return bare(s.lendAll(call.f.args, xs)) }
	outputs := func(xs []*tensor.Array) lua.LValue { return bare(s.lendAll(call.f.results, xs)) }
	if k.vjp != nil {
		c.VJP = func(in, cots, outs []*tensor.Array) ([]*tensor.Array, error) {
			g := &luaFunc{s: s, op: "custom_function", fn: k.vjp}
			return g.derivatives("vjp", "a gradient for each primal", primals(in), outputs(cots), outputs(outs))
		}
	}
	if k.jvp != nil {
		c.JVP = func(in, tans []*tensor.Array) ([]*tensor.Array, error) {
			g := &luaFunc{s: s, op: "custom_function", fn: k.jvp}
			return g.derivatives("jvp", "a tangent for each output", primals(in), primals(tans))
		}
	}
	if k.vmap != nil {
		c.VMap = func(in []*tensor.Array, axes []int) ([]*tensor.Array, []int, error) {
			list := make([]lua.LValue, len(axes))
			for i, axis := range axes {
				if list[i] = lua.LNumber(axis); axis == grad.NoAxis || axis < 0 {
					list[i] = lua.LFalse
				}
			}
			g := &luaFunc{s: s, op: "custom_function", fn: k.vmap}
			if _, err := g.apply(primals(in), bare(list)); err != nil {
				return nil, nil, err
			}
			return g.batched()
		}
	}
	return c
}

// apply calls the function on Lua values as they are.
func (f *luaFunc) apply(args ...lua.LValue) ([]*tensor.Array, error) {
	f.args = args
	in, err := flatten(f.s.Context(), args...)
	if err != nil {
		return nil, f.s.call().Errorf(f.op, "%w", err)
	}
	return f.call(in)
}

// derivatives is apply for a rule of that name, which may give arrays, and trees of them, only.
func (f *luaFunc) derivatives(rule, want string, args ...lua.LValue) ([]*tensor.Array, error) {
	out, err := f.apply(args...)
	if err != nil {
		return nil, err
	}
	for i, v := range f.results {
		_, isArray := array(v)
		if _, isTree := v.(*lua.LTable); !isArray && !isTree {
			return nil, f.s.call().Errorf(f.op, "result %d of its %s is %s, want %s, arrays", i+1, rule, describe(v), want)
		}
	}
	return out, nil
}

// batched returns what a custom vmap returned: the outputs, and their axes.
func (f *luaFunc) batched() ([]*tensor.Array, []int, error) {
	results := f.results
	if len(results) != 2 {
		return nil, nil, fmt.Errorf("a custom vmap returned %s, want two: outputs and their axes",
			tensor.Count(len(results), "value"))
	}
	outs, err := flatten(f.s.Context(), results[0])
	if err != nil {
		return nil, nil, err
	}
	axes, err := spreadAxes(results[1], results[0], nil)
	return outs, axes, err
}

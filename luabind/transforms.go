package luabind

import (
	"errors"
	"fmt"
	"slices"

	lua "github.com/yuin/gopher-lua"

	"github.com/mlxlua/mlxlua/luabind/lua51"
	"github.com/mlxlua/mlxlua/tensor"
	"github.com/mlxlua/mlxlua/tensor/grad"
)

// luaFunc is a Lua function as a function of arrays. call fills the trees of args with the arrays, calls fn, keeps what
// it returned in results, and returns the arrays in there.
type luaFunc struct {
	s       *State
	op      string // the transform, for errors
	fn      lua.LValue
	args    []lua.LValue
	results []lua.LValue
	kept    bool // by nodes, after the call: args are outlines, and so are results
}

func (f *luaFunc) reached(h hearer) {
	h.value(f.fn)
	h.values(f.args)
	h.values(f.results)
}

// call is a grad.Func. Lua errors keep their value: they pass through the transform as luaFailure.
func (f *luaFunc) call(in []*tensor.Array) ([]*tensor.Array, error) {
	f.s.transforming = append(f.s.transforming, f.op)
	defer func() { f.s.transforming = f.s.transforming[:len(f.s.transforming)-1] }()
	lend := f.s.lendTrees
	if f.kept || f.op == "compile" { // args are not the script's, or writes happen at trace time only
		lend = f.s.lendAll
	}
	results, err := f.s.looks.protect(f.fn, lend(f.args, in)...)
	if err != nil {
		return nil, &luaFailure{err}
	}
	f.results = results
	out, err := flatten(f.s.Context(), results...)
	if err != nil {
		return nil, f.s.call().Errorf(f.op, "%w", err)
	}
	if f.kept {
		f.results = outlines(f.s, results)
	}
	return out, nil
}

// luaFailure carries a Lua error through Go code that knows only Go's errors.
type luaFailure struct{ err error }

// Error is the Lua error's text.
func (e *luaFailure) Error() string { return e.err.Error() }

// reraise raises an error that came out of a transform: a Lua error with its own value, any other one by raise.
func (s *State) reraise(err error) {
	if f, ok := err.(*luaFailure); ok {
		if api, ok := f.err.(*lua.ApiError); ok && api.Object != nil && api.Object != lua.LNil {
			s.changes.rollBack(s)
			s.L.Error(api.Object, 0)
		}
		s.raise(f.err)
	}
	s.raise(err)
}

// transformRows are the rows of the transforms.
var transformRows = []row{
	{name: "grad", sig: "fun:any argnums:list? argnames:list=[]",
		help: "The function that gives the gradient of fun's result, a scalar array, by its first argument, or by " +
			"those of argnums (a number, or a table for a table of gradients; they count from 0) and argnames " +
			"(of a trailing table). Arguments are arrays or trees of them, and a gradient has its argument's " +
			"structure.", call: func(a *args) any {
			return gradient(a, false)
		}},
	{name: "value_and_grad", sig: "fun:any argnums:list? argnames:list=[]",
		help: "As grad, but the function gives fun's result and then the gradients. Of several results the first " +
			"is the loss, and the value is the table of all.",
		call: func(a *args) any { return gradient(a, true) }},
	{name: "vjp", sig: "fun:any primals:arrays cotangents:arrays",
		help: "Calls fun with the primals, a table of arrays, and gives two tables: its outputs, and for each " +
			"primal the cotangents, one for each output, times its Jacobian.", call: func(a *args) any {
			return products(a, grad.VJP)
		}},
	{name: "jvp", sig: "fun:any primals:arrays tangents:arrays",
		help: "Calls fun with the primals, a table of arrays, and gives two tables: its outputs, and for each of " +
			"them its Jacobian times the tangents, one for each primal.", call: func(a *args) any {
			return products(a, grad.JVP)
		}},
	{name: "vmap", sig: "fun:any in_axes:list=0 out_axes:list=0",
		help: "fun over a batch: the function takes arrays with a batch axis more (in_axes: an axis, or a table of " +
			"one for each argument, false for none; nil: 0; for the arrays of a tree one axis, or a table like the tree), " +
			"fun sees them without it, and the results have it at out_axes, which is like in_axes, or like the only result.",
		call: vmapCall},
	{name: "checkpoint", sig: "fun:any",
		help: "fun, whose intermediate values are not kept for its gradient but computed again there.",
		call: checkpointCall},
	{name: "custom_function", sig: "fun:any",
		help: "fun with transforms of its own: f:vjp(function(primals, cotangents, outputs) ... end) gives a " +
			"gradient for each primal, f:jvp(function(primals, tangents) ... end), f:vmap(function(inputs, axes) " +
			"... end) gives outputs and their axes. One argument or output is an array, several are a table. " +
			"This is how a metal_kernel gets a gradient.", call: func(a *args) any {
			return a.s.userdata(customKind, &customFunction{fn: a.callable(0)})
		}},
}

// callable checks that an argument can be called.
func (a *args) callable(i int) lua.LValue {
	v := a.raw[i]
	if callable(a.s, v) {
		return v
	}
	a.fail("%s is %s, want a function", a.f.params[i].Name, describe(v))
	return nil
}

// products is vjp or jvp: two tables.
func products(a *args, f func(grad.Func, []*tensor.Array, []*tensor.Array, ...*tensor.Ctx) ([]*tensor.Array,
	[]*tensor.Array, error)) any {
	s, primals := a.s, a.Arrays(1)
	fn := &luaFunc{s: s, op: a.f.name, fn: a.callable(0)}
	for _, x := range primals {
		fn.args = append(fn.args, s.lend(x))
	}
	outs, products, err := f(fn.call, primals, a.Arrays(2), a.Ctx)
	if err != nil {
		s.reraise(err)
	}
	return values{s.arrayTable(outs), s.arrayTable(products)}
}

// arrayTable is a table of arrays.
func (s *State) arrayTable(xs []*tensor.Array) *lua.LTable {
	t := s.NewTable(len(xs), 0)
	for _, x := range xs {
		t.Append(s.wrap(x))
	}
	return t
}

// gradient is grad or value_and_grad: a function.
func gradient(a *args, withValue bool) any {
	a.callable(0)
	g := &gradCall{s: a.s, name: a.f.name, withValue: withValue}
	switch v := a.raw[1].(type) {
	case *lua.LNilType:
		if a.raw[2] == lua.LNil {
			g.argnums, g.bare = []int{0}, true
		}
	case lua.LNumber:
		n, err := toInt(v)
		if err != nil {
			a.fail("argnums %v", err)
		}
		g.argnums, g.bare = []int{n}, true
	case *lua.LTable:
		n, err := intList(v)
		if err != nil {
			a.fail("argnums%v", err)
		}
		g.argnums = n
	default:
		a.fail("argnums is %s, want an integer or a table of integers", describe(v))
	}
	switch v := a.raw[2].(type) {
	case *lua.LNilType:
	case lua.LString:
		g.argnames = []string{string(v)}
	case *lua.LTable:
		for i := 1; i <= v.Len(); i++ {
			name, ok := v.RawGetInt(i).(lua.LString)
			if !ok {
				a.fail("argnames[%d] is %s, want a string", i, describe(v.RawGetInt(i)))
			}
			g.argnames = append(g.argnames, string(name))
		}
	default:
		a.fail("argnames is %s, want a string or a table of strings", describe(v))
	}
	if len(g.argnums)+len(g.argnames) == 0 {
		a.fail("argnums and argnames are empty: name what to differentiate by")
	}
	return a.s.transform(a.f.name, g.call, a.raw...)
}

// transformOf names a transform. It is the first upvalue of a function that a transform returned; the others are the
// transform's arguments, so that captures finds what they reach.
type transformOf string

const transformKind = "transform"

// transform makes a Lua function of f, a transform of a function that is among args.
func (s *State) transform(name string, f lua.LGFunction, args ...lua.LValue) *lua.LFunction {
	up := append([]lua.LValue{s.userdata(transformKind, transformOf(name))}, args...)
	return s.Func(f, up...)
}

// transformed is argument i of the transform whose function runs.
func transformed(L *lua.LState, i int) lua.LValue { return L.Get(lua.UpvalueIndex(i + 2)) }

// isTransform reports whether a function comes from transform.
func isTransform(f *lua.LFunction) bool {
	if !f.IsG || len(f.Upvalues) == 0 {
		return false
	}
	_, ok := unwrap[transformOf](f.Upvalues[0].Value())
	return ok
}

// gradCall is what grad and value_and_grad return.
type gradCall struct {
	s         *State
	name      string
	argnums   []int
	bare      bool // argnums was a number: the gradient is not in a table
	argnames  []string
	withValue bool
}

func (g *gradCall) call(L *lua.LState) int {
	s := g.s
	c := s.call()
	args := lua51.Args(L)
	in := s.flattenAll(g.name, args)
	by, err := g.chosen(args)
	if err == nil && len(in) == 0 {
		err = errors.New("the arguments have no arrays to differentiate by")
	}
	if err != nil {
		s.raise(c.Errorf(g.name, "%w", err))
	}
	f := &luaFunc{s: s, op: g.name, fn: transformed(L, 0), args: args}
	_, grads, err := grad.ValueAndGrad(func(in []*tensor.Array) ([]*tensor.Array, error) {
		outs, err := f.call(in)
		if err == nil && len(f.results) > 0 {
			if _, isArray := array(f.results[0]); !isArray {
				return nil, fmt.Errorf("the function must return a scalar array first, it returned %s", describe(f.results[0]))
			}
		}
		return outs, err
	}, by.leaves, c)(in)
	if err != nil {
		var op *tensor.OpError
		var own *luaFailure
		if !errors.As(err, &op) && !errors.As(err, &own) {
			err = c.Errorf(g.name, "%w", err)
		}
		s.reraise(err)
	}
	return g.push(&by, grads, f.results)
}

// choice is what to differentiate by. It holds places, not arrays: two arguments may be the same array.
type choice struct {
	positional, named []lua.LValue
	leaves            []int // the numbers of their arrays among all that the arguments have
}

// trees are the arguments chosen, in the order of their leaves.
func (c *choice) trees() []lua.LValue { return slices.Concat(c.positional, c.named) }

// add counts the arrays of v, of which the first has the number from.
func (c *choice) add(v lua.LValue, from int) {
	for i := range leafCount(v) {
		c.leaves = append(c.leaves, from+i)
	}
}

// chosen are the arguments to differentiate by. They are known to be trees.
func (g *gradCall) chosen(args []lua.LValue) (c choice, err error) {
	first := make([]int, len(args)+1) // the number of an argument's first array
	for i, v := range args {
		first[i+1] = first[i] + leafCount(v)
	}
	for _, n := range g.argnums {
		i := n
		if i < 0 {
			i += len(args)
		}
		if i < 0 || i >= len(args) {
			return c, fmt.Errorf("argnums has %d, but the function was called with %s", n, tensor.Count(len(args), "argument"))
		}
		if _, isTable := args[i].(*lua.LTable); !isTable && first[i+1] == first[i] {
			return c, fmt.Errorf("argument %d is %s, want an array or a table of arrays", i, describe(args[i]))
		}
		c.positional = append(c.positional, args[i])
		c.add(args[i], first[i])
	}
	if len(g.argnames) == 0 {
		return c, nil
	}
	var table *lua.LTable
	places := map[string]int{}
	if len(args) > 0 {
		if table, _ = args[len(args)-1].(*lua.LTable); table != nil {
			at := first[len(args)-1]
			for _, k := range orderedKeys(table, nil) {
				if name, ok := k.(lua.LString); ok {
					places[string(name)] = at
				}
				at += leafCount(table.RawGet(k))
			}
		}
	}
	for _, name := range g.argnames {
		at, ok := places[name]
		if !ok {
			return c, fmt.Errorf("argnames has %q, but the call has no such keyword in its last argument", name)
		}
		v := table.RawGetString(name)
		c.named = append(c.named, v)
		c.add(v, at)
	}
	return c, nil
}

func (g *gradCall) push(by *choice, grads []*tensor.Array, results []lua.LValue) int {
	s := g.s
	trees := s.rebuildAll(by.trees(), grads)
	var byPosition lua.LValue = lua.LNil
	if g.bare {
		byPosition = trees[0]
	} else if len(by.positional) > 0 {
		t := s.NewTable(len(by.positional), 0)
		for _, v := range trees[:len(by.positional)] {
			t.Append(v)
		}
		byPosition = t
	}
	out := []lua.LValue{byPosition}
	if len(by.named) > 0 {
		t := s.NewTable(0, len(g.argnames))
		for i, name := range g.argnames {
			t.RawSetString(name, trees[len(by.positional)+i])
		}
		out = append(out, t)
	}
	if g.withValue {
		value := results[0]
		if len(results) > 1 {
			t := s.NewTable(len(results), 0)
			for i, v := range results {
				t.RawSetInt(i+1, v)
			}
			value = t
		}
		out = append([]lua.LValue{value}, out...)
	}
	for _, v := range out {
		s.L.Push(v)
	}
	return len(out)
}

// leafCount is how many arrays a tree has, as flatten counts them.
func leafCount(v lua.LValue) (n int) {
	if _, ok := array(v); ok {
		return 1
	}
	if t, ok := v.(*lua.LTable); ok {
		for k, e := t.Next(lua.LNil); k != lua.LNil; k, e = t.Next(k) {
			n += leafCount(e)
		}
	}
	return n
}

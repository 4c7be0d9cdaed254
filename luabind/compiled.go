package luabind

import (
	"errors"
	"fmt"
	"maps"
	"slices"
	"strings"

	lua "github.com/yuin/gopher-lua"

	"github.com/mlxlua/mlxlua/compile"
	"github.com/mlxlua/mlxlua/luabind/lua51"
	"github.com/mlxlua/mlxlua/tensor"
)

// compiledFunction is what mx.compile returns. Its traced function's inputs are the arrays of the call's arguments,
// then the captures, then the random state's key; its outputs are the arrays of the results, then those that it writes
// into the trees of outputs, a marker, and the new key.
type compiledFunction struct {
	s  *State
	fn lua.LValue
	f  *compile.Function

	// The call under way.
	args     []lua.LValue
	captured []capture
	key      string // the structure of arguments, captures and scalars
	state    compiledState
	listed   *knownWalk // that captured is of; nil: it is of a walk

	// What a call need not look for again:
	known  *knownWalk // nil: there is none
	walked string     // the key of the last walk
	alike  bool       // and of the one before it

	traces map[*tensor.Array]*traced // replays do not run the function
	recent []*tensor.Array           // the markers of the traces made last

	// settled maps the key that holds after a trace to the trace's own, where the function changed scalars that are
	// guards: such writes happen at trace time only, so that the next call finds what the trace left.
	settled map[string]string
	// held keeps alive the objects that a trace's key names by their addresses.
	held map[string][]any
	// plain says what the arguments that are no arrays were in the last trace, and before; numbers are those that the
	// function reached by names.
	plain, plainBefore     []string
	numbers, numbersBefore []namedNumber
}

const compiledKind = "compiled"

func (k *compiledFunction) reached(h hearer) {
	h.value(k.fn)
	h.values(k.args)
	for _, c := range k.captured {
		h.value(c.ud)
	}
	for _, t := range k.traces {
		t.reached(h)
	}
	k.state.reached(h)
	k.f.Constants(h.array)
}

// compileRows are the row of mx.compile.
var compileRows = []row{
	{name: "compile", sig: "fun:any inputs:list? outputs:list? shapeless:bool=false check:bool=false",
		help: "The compiled fun: traced when it is called, replayed where a call's dtypes and structure are those " +
			"of a trace, and with shapeless at other shapes too. Arrays that fun reaches through its upvalues " +
			"and the random state are inputs by themselves; numbers, functions and kernels there are part of a " +
			"trace's key. inputs are tables of arrays that fun reaches in another way, such as globals; outputs are " +
			"tables, such as a model and an optimizer's state, that fun changes: what it writes there is written at each " +
			"call. Other assignments happen when fun is traced only. A size read by x.shape " +
			"is a guard: where it differs, fun is traced again. f:explain() tells captures, traces and their " +
			"reasons, whether calls are recorded as one node, and the kernels before and after fusion; " +
			"f:explain{source = true} also the text of those that are printed for fused " +
			"operations. check runs both ways and compares.",
		call: func(a *args) any {
			for i := 1; i <= 2; i++ {
				if _, ok := a.raw[i].(*lua.LTable); !ok && a.raw[i] != lua.LNil && !isRandomState(a.raw[i]) {
					a.fail("%s is %s, want a table of arrays, or of tables of them", a.f.params[i].Name, describe(a.raw[i]))
				}
			}
			k := &compiledFunction{s: a.s, fn: a.callable(0), traces: map[*tensor.Array]*traced{},
				settled: map[string]string{}, held: map[string][]any{}, state: newCompiledState(a.raw[1], a.raw[2])}
			k.f = compile.New(k.trace, compile.Options{Shapeless: a.Bool(3), Check: a.Bool(4),
				Captures: k.captures, CaptureNames: k.captureNames, Key: func() string { return k.key }, Forget: k.forget,
				Place: a.s.where, Context: a.s.Context, Warn: a.s.warnings.give,
				InputName: k.inputName, KeyChange: k.keyChange})
			return a.s.userdata(compiledKind, k)
		}},
	{name: "disable_compile", sig: "", help: "Makes all compiled functions run as if they were not compiled.",
		call: func(a *args) any { compile.Disable(); return nil }},
	{name: "enable_compile", sig: "", help: "Undoes disable_compile.",
		call: func(a *args) any { compile.Enable(); return nil }},
	{name: "set_batch_invariant", sig: "on:bool", help: "Says whether the products that this script builds from now on " +
		"(matrix products, gathered and packed ones, attention) add up in one order for any number of rows, and " +
		"gives what was said before. A row of a result then has the same bytes alone and in any batch. Products of " +
		"more than 16 rows take longer: see performance.md. Convolutions add up in one order without it.",
		call: func(a *args) any { return a.s.looks.holder.SetBatchInvariant(a.Bool(0)) }},
}

// captures lists the captured arrays and the random key: the inputs beside the arguments.
func (k *compiledFunction) captures() []*tensor.Array {
	out := make([]*tensor.Array, 0, len(k.captured)+1)
	for _, c := range k.captured {
		out = append(out, c.ud.Value.(*tensor.Array))
	}
	return append(out, k.s.random.Key())
}

// captureNames says where each capture comes from, and which line made it.
func (k *compiledFunction) captureNames() []string {
	var out []string
	for _, c := range k.captured {
		name := c.at.String()
		if where := c.ud.Value.(*tensor.Array).Value().Node.Place().String(); where != "" {
			name += ", made at " + where
		}
		out = append(out, name)
	}
	return append(out, "mx.random's key")
}

// trace runs the Lua function with its captured objects holding the inputs of the trace.
func (k *compiledFunction) trace(in []*tensor.Array) ([]*tensor.Array, error) {
	s := k.s
	met := &noted{}
	k.look(met)
	n := len(in) - len(k.captured) - 1
	old := k.captures()
	swap := func(xs []*tensor.Array) {
		for i, c := range k.captured {
			c.ud.Value = xs[i]
		}
		s.random.Set(xs[len(xs)-1])
	}
	swap(in[n:])
	defer swap(old)
	k.plainBefore, k.plain = k.plain, nil
	for _, v := range k.args {
		text := "an array" // of whatever shape and dtype: those are no part of the key
		if _, ok := array(v); !ok {
			text = describe(v)
		}
		k.plain = append(k.plain, text)
	}
	k.state.led = k.state.leads(s)
	k.numbersBefore, k.numbers = k.numbers, met.numbers(k.args)
	st := k.beginState(met, in[n:len(in)-1])
	if last := len(in) - 1; in[last] != old[len(old)-1] { // not disabled
		st.since = in[0].Value().Node.ID()
	}
	f := &luaFunc{s: s, op: "compile", fn: k.fn, args: k.args}
	outs, err := f.call(in[:n])
	if err != nil {
		k.state.failed()
		return nil, err
	}
	st.results = outs
	state, err := st.end()
	if err != nil {
		k.state.failed()
		return nil, err
	}
	marker := k.mark(&traced{results: outlines(s, f.results), program: st.program})
	if _, after := k.look(met); after != k.key {
		k.settled[after] = k.key
	}
	k.state.undo() // what late has comes when the call has succeeded: f may run again, to be compared
	k.held[k.key] = met.objects
	return append(append(slices.Clone(outs), state...), marker, s.random.Key()), nil
}

// inputName names an input of the call under way as a script does.
func (k *compiledFunction) inputName(i int) string {
	for n, v := range k.args {
		count := leafCount(v)
		if i < count {
			if count == 1 && typeName(v) == "array" {
				return fmt.Sprintf("argument %d", n+1)
			}
			return fmt.Sprintf("array %d in argument %d", i+1, n+1)
		}
		i -= count
	}
	if i < len(k.captured) {
		return "the captured array " + k.captured[i].at.String()
	}
	return "mx.random's key"
}

// keyChange says which argument that is no array, or which number, differs from that of the trace before, and its name
// where it is a number.
func (k *compiledFunction) keyChange() (why, number string) {
	for i, now := range k.plain {
		if i < len(k.plainBefore) && k.plainBefore[i] != now {
			if _, ok := k.args[i].(lua.LNumber); ok {
				number = string(argumentName(i))
			}
			return fmt.Sprintf("argument %d is %s, not %s", i+1, now, k.plainBefore[i]), number
		}
	}
	before := k.numbersBefore // in the same order, but for those that have come or gone
	for _, now := range k.numbers {
		i := slices.IndexFunc(before, func(was namedNumber) bool { return was.name == now.name })
		if i < 0 {
			continue
		}
		if text, was := describe(now.n), describe(before[i].n); text != was { // NaNs are alike
			return fmt.Sprintf("%s is %s, not %s", now.name, text, was), now.name
		}
		before = before[i+1:]
	}
	return "what stands in tables, its own or its arguments', or in upvalues changed", ""
}

// namedNumber is a number that a function reaches, or that stands in a table among its arguments.
type namedNumber struct {
	name string
	n    lua.LNumber
}

// mostNamed bounds the numbers of which a function knows the names.
const mostNamed = 256

// numbers are those in tables of the arguments and those that a walk has met, as far as they have names.
func (n *noted) numbers(args []lua.LValue) (out []namedNumber) {
	add := func(at trail, v lua.LValue) {
		x, ok := v.(lua.LNumber)
		if name := at.String(); ok && name != "" && len(out) < mostNamed {
			out = append(out, namedNumber{name, x})
		}
	}
	var entries func(at trail, t *lua.LTable, deep bool)
	entries = func(at trail, t *lua.LTable, deep bool) {
		if len(out) == mostNamed {
			return
		}
		for _, key := range orderedKeys(t, nil) {
			v, to := t.RawGet(key), trail{&at, key, ofScript}
			add(to, v)
			if inner, ok := v.(*lua.LTable); ok && deep {
				entries(to, inner, true)
			}
		}
	}
	for i, v := range args {
		if t, ok := v.(*lua.LTable); ok { // without cycles
			entries(trail{key: argumentName(i)}, t, true)
		}
	}
	for _, u := range n.upvalues {
		add(u.at, u.v)
	}
	for _, r := range n.tables {
		entries(r.at, r.t, false)
	}
	return out
}

// forget drops what is kept for a key whose traces have been evicted.
func (k *compiledFunction) forget(key string) {
	delete(k.held, key)
	maps.DeleteFunc(k.settled, func(_, traced string) bool { return traced == key })
}

// look finds the captures as they are now, and the key: the structure of the arguments, all scalars and all code.
func (k *compiledFunction) look(n *noted) ([]capture, string) {
	return captures(k.s, k.fn, k.args, k.state.roots, n, nil)
}

// call calls the compiled function with the arguments on the stack.
func (k *compiledFunction) call(L *lua.LState) int {
	s := k.s
	saved := *k
	defer func() {
		if k.listed != nil {
			k.listed.forget()
		}
		k.args, k.captured, k.key, k.listed = saved.args, saved.captured, saved.key, saved.listed
		k.state = saved.state
	}()
	k.args, k.listed = lua51.Args(L)[1:], nil
	in := k.find()
	if traced, ok := k.settled[k.key]; ok {
		k.key = traced
	}
	k.state = compiledState{roots: k.state.roots, outputs: k.state.outputs}
	outs, err := k.f.Call(s.call(), in...)
	if err != nil {
		k.state.undo()
		var own *luaFailure
		if errors.As(err, &own) {
			err = own
		}
		s.reraise(err)
	}
	last := len(outs) - 1
	t := k.traces[outs[last-1]]
	first := last - 1 - t.program.arrays // of the state
	results := s.rebuildAll(t.results, outs[:first])
	change := &stateChange{results: slices.Clone(outs[:first])}
	k.write(&t.program, outs[first:last-1], change)
	for _, b := range k.state.late {
		b.restore()
	}
	change.random(s.random.Key(), outs[last])
	s.random.Set(outs[last])
	s.changes.remember(s, change)
	for _, v := range results {
		L.Push(v)
	}
	return len(results)
}

// wantsSource reads the arguments of explain.
func wantsSource(s *State, args []lua.LValue) bool {
	if len(args) == 0 {
		return false
	}
	t, ok := args[0].(*lua.LTable)
	if !ok || len(args) > 1 {
		s.raise(s.call().Errorf("explain", "got %s, it takes {source = true} or nothing", describe(args[0])))
	}
	source := false
	t.ForEach(func(k, v lua.LValue) {
		flag, ok := v.(lua.LBool)
		if k != lua.LString("source") || !ok {
			s.raise(s.call().Errorf("explain", "got %s = %s, it takes source = true or false", k, describe(v)))
		}
		source = bool(flag)
	})
	return source
}

// openCompiled makes the metatable of compiled functions.
func (s *State) openCompiled() {
	mt := s.meta(compiledKind)
	methods := s.NewTable(0, 1)
	mt.RawSetString("__index", methods)
	s.Method(mt, "__call", func(L *lua.LState) int {
		k, _ := unwrap[*compiledFunction](L.Get(1))
		return k.call(L)
	})
	s.method(methods, compiledObject, "explain", func(L *lua.LState) int {
		k, _ := unwrap[*compiledFunction](L.Get(1))
		text := k.f.Explain(s.call(), wantsSource(s, lua51.Args(L)[1:]))
		for _, name := range frozenGlobals(s, k.fn) {
			text += "frozen: global " + name + ", read when a trace is made\n"
		}
		L.Push(lua.LString(strings.Clone(text))) // which has room behind it
		return 1
	})
}

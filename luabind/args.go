package luabind

import (
	"fmt"
	"math"
	"slices"
	"strings"

	lua "github.com/yuin/gopher-lua"

	"github.com/mlxlua/mlxlua/tensor"
	"github.com/mlxlua/mlxlua/tensor/ops"
	"github.com/mlxlua/mlxlua/tensor/ops/sig"
)

// row describes a function of mx that is no op: what the rooms declare with sig.Def is described there.
type row struct {
	name string // "grad", "metal.validate"
	sig  string // the parameters, as package sig reads them
	// call makes the result: an array, a list of arrays (several values), a Lua value, values, or nil for none.
	call func(a *args) any
	// host says that the call makes no graph, so that the keyword stream has no meaning.
	host bool
	// keeps says that what the call makes may refer to its args later: they are not used again for another call.
	keeps bool
	// through says that the call keeps no Lua value in a variable of Go's while Lua code that it calls runs, so that the
	// state may look meanwhile: see lua51.Through.
	through bool
	help    string
}

// values are several results.
type values []lua.LValue

// function is a row, or what a room declares, made callable.
type function struct {
	name    string
	params  []param
	op      *sig.Func         // of a room
	call    func(a *args) any // of a row
	many    int               // which parameter takes any number of arguments; -1: none
	help    string
	written string // the usage, if the parameters do not say it
	host    bool
	keeps   bool
	through bool
}

// param is a parameter. What every call reads of it stands together, before the rest.
type param struct {
	kind           sig.Kind
	optional, made bool // made: its default is made for each call
	convert        converter
	value          any // the default's
	sig.Param
}

// newFunction makes a function of a row.
func newFunction(r row) *function {
	f := &function{name: r.name, call: r.call, help: r.help, host: r.host, keeps: r.keeps,
		through: r.through}
	f.setParams(sig.MustParse(r.sig))
	return f
}

// opFunction makes a function of what a room declares.
func opFunction(op *sig.Func) *function {
	f := &function{name: op.Name, op: op}
	f.setParams(op.Params)
	return f
}

func (f *function) setParams(params []sig.Param) {
	f.many = -1
	for i, p := range params {
		q := param{Param: p, kind: p.Kind(), optional: p.Optional, value: p.Value, convert: converterOf(p)}
		_, number := p.Value.(float64)
		q.made = q.kind == sig.KindKey || number && q.kind != sig.KindNumber
		if p.Many {
			f.many = i
		}
		f.params = append(f.params, q)
	}
}

// args are the arguments of a call, converted.
type args struct {
	sig.Args
	s    *State
	f    *function
	raw  []lua.LValue // as given, by parameter
	rest []lua.LValue // as given, of the parameter that takes any number

	// What Ctx and the first shape among V point at: no objects of their own.
	call  tensor.Ctx
	first tensor.ShapeArg
}

// newArgs are the arguments of a call of f from the line of the script that runs. Give them back with done.
func (s *State) newArgs(f *function) *args {
	var a *args
	if n := len(s.spareArgs); n > 0 {
		a = s.spareArgs[n-1]
		s.spareArgs[n-1] = nil // it may keep its arguments
		s.spareArgs = s.spareArgs[:n-1]
	} else {
		a = &args{s: s}
	}
	a.f, a.call = f, tensor.Ctx{Stream: s.stream, Place: s.where(), Holder: s.looks.holder}
	a.Ctx = &a.call
	s.looks.holder.Called()
	a.V = cleared(a.V, len(f.params))
	return a
}

// cleared is n zeros, in s where it has room.
func cleared[T any](s []T, n int) []T {
	if cap(s) < n {
		return make([]T, n)
	}
	s = s[:n]
	clear(s)
	return s
}

// done ends the use of the arguments of a call that raised no error, so that the next call may have their memory: one
// object for each call that a script makes would otherwise be garbage.
func (a *args) done() {
	if a.f.keeps {
		return
	}
	clear(a.V)
	clear(a.raw)
	a.V, a.raw, a.rest, a.first = a.V[:0], a.raw[:0], nil, tensor.ShapeArg{}
	a.s.spareArgs = append(a.s.spareArgs, a)
}

// fail raises an error of the call.
func (a *args) fail(format string, v ...any) {
	a.s.raise(a.Ctx.Errorf(a.f.name, format, v...))
}

func (a *args) table(i int) *lua.LTable {
	t, _ := a.V[i].(*lua.LTable)
	return t
}

// wrong raises what is wrong with an argument: "shape is ..." or "shape[2] is ...".
func (a *args) wrong(name string, err error) {
	if text := err.Error(); strings.HasPrefix(text, "[") {
		a.fail("%s%w", name, err)
	}
	a.fail("%s %w", name, err)
}

// define puts a function into its module's table, and returns it as Lua has it. A row finds its upvalues on the stack
// of the running thread.
func (s *State) define(module *lua.LTable, f *function, upvalues ...lua.LValue) *lua.LFunction {
	make := s.Func
	if f.through {
		make = s.Through
	}
	fn := make(func(*lua.LState) int { return s.invoke(f) }, upvalues...)
	s.mx.funcs[f.name] = f
	s.mx.help[fn] = f
	module.RawSetString(f.name[strings.LastIndexByte(f.name, '.')+1:], fn)
	return fn
}

// invoke runs a function on the arguments on the stack.
func (s *State) invoke(f *function) int {
	a := s.newArgs(f)
	a.collect()
	a.convert()
	n := 1
	result := f.run(a)
	if x, ok := result.(*tensor.Array); ok {
		s.L.Push(s.wrap(x))
	} else {
		n = a.push(result)
	}
	a.done()
	return n
}

// run makes the result of a call.
func (f *function) run(a *args) any {
	if f.op != nil {
		return f.op.Call(&a.Args)
	}
	return f.call(a)
}

// push pushes a result.
func (a *args) push(result any) int {
	L := a.s.L
	switch r := result.(type) {
	case nil:
		return 0
	case *tensor.Array:
		L.Push(a.s.wrap(r))
	case []*tensor.Array:
		for _, x := range r {
			L.Push(a.s.wrap(x))
		}
		return len(r)
	case values:
		for _, v := range r {
			L.Push(v)
		}
		return len(r)
	case sig.Several:
		n := 0
		for _, v := range r {
			n += a.push(v)
		}
		return n
	case sig.Table:
		L.Push(a.s.arrayTable(r))
	case sig.Lists:
		list := a.s.NewTable(len(r), 0)
		for _, v := range r {
			list.Append(a.s.shapeTable(v))
		}
		L.Push(list)
	case lua.LValue:
		L.Push(r)
	case bool:
		L.Push(lua.LBool(r))
	case int:
		L.Push(lua.LNumber(r))
	case float64:
		L.Push(lua.LNumber(r))
	case string:
		L.Push(lua.LString(r))
	case tensor.DType:
		L.Push(a.s.dtype(r))
	case tensor.Shape:
		L.Push(a.s.shapeTable(r))
	case error:
		a.fail("%w", r)
	default:
		panic(fmt.Sprintf("BUG: %s gives a %T", a.f.name, result))
	}
	return 1
}

// collect sorts positional and keyword arguments into raw, by parameter.
func (a *args) collect() {
	L, f := a.s.L, a.f
	n := L.GetTop()
	var keywords *lua.LTable
	if n > 0 {
		if t, ok := L.Get(n).(*lua.LTable); ok && a.isKeywords(t, n-1) {
			keywords = t
			n--
		}
	}
	most := len(f.params)
	if f.many >= 0 {
		most = f.many
		for i := most; i < n; i++ {
			a.rest = append(a.rest, L.Get(i+1))
		}
		n = min(n, most)
	}
	for n > most && L.Get(n) == lua.LNil {
		n--
	}
	if n == most+1 && !f.host && f.many < 0 { // MLX's last parameter is the stream
		if k := typeName(L.Get(n)); k == "stream" || k == "device" {
			a.stream(L.Get(n))
			n--
		}
	}
	var list *lua.LTable
	if n > most && f.spread() {
		if list = numbersFrom(a.s, most, n); list != nil {
			n = most
		}
	}
	if n > most {
		a.fail("got %s, it takes %d: %s", tensor.Count(n, "argument"), most, a.names())
	}
	a.Positional = n
	a.raw = cleared(a.raw, len(f.params))
	for i := range a.raw {
		a.raw[i] = lua.LNil
		if i < n {
			a.raw[i] = L.Get(i + 1)
		}
	}
	if list != nil {
		a.raw[n-1] = list
	}
	if keywords != nil {
		a.keywords(keywords, n)
	}
}

// spread reports whether the last parameter's numbers may be written without a table: x:reshape(2, 3).
func (f *function) spread() bool { return len(f.params) > 0 && f.params[len(f.params)-1].Spread }

// numbersFrom is a table of the arguments from the first to the last one (counted from 1), or nil if one is no number.
func numbersFrom(s *State, first, last int) *lua.LTable {
	L, list := s.L, s.NewTable(last-first+1, 0)
	for i := first; i <= last; i++ {
		if _, ok := L.Get(i).(lua.LNumber); !ok {
			return nil
		}
		list.Append(L.Get(i))
	}
	return list
}

// isKeywords reports whether t, argument i, holds keywords: all its keys are strings, and the parameter in its place
// does not take such a table itself, or takes anything while the table names what the call lacks.
func (a *args) isKeywords(t *lua.LTable, i int) bool {
	var p *param
	if a.f.many >= 0 && i > a.f.many {
		i = a.f.many
	}
	if i < len(a.f.params) {
		p = &a.f.params[i]
	}
	if t.Metatable != lua.LNil || t.Len() > 0 {
		return false
	}
	key, _ := t.Next(lua.LNil)
	if key == lua.LNil { // {}: the shape of a scalar, an empty list; nothing, where a table has no place
		return p == nil || !p.takesTable()
	}
	if _, ok := key.(lua.LString); !ok {
		return false
	}
	return p == nil || !p.takesTree() || a.f.lacks(t, i)
}

// lacks reports whether the table in the place of argument i says what the arguments before it leave open: each of its
// keys is the name of a parameter from there on, and no parameter without a default is missing. That is how a table of
// keywords is told from a value where the parameter may be any value. A table is no less one where it is all that the
// function takes; and what is a tree has names of its own.
func (f *function) lacks(t *lua.LTable, i int) bool {
	p := &f.params[i]
	value := t.RawGetString(p.Name)
	switch {
	case p.Many, p.Is(sig.KindTree), len(f.params) == 1:
		return false
	case p.Is(sig.KindTable) && (!p.optional || value != lua.LNil && value.Type() != lua.LTTable):
		return false
	}
	names := 0
	for j := i; j < len(f.params); j++ {
		q := &f.params[j]
		switch given := t.RawGetString(q.Name) != lua.LNil; {
		case given && !q.Many:
			names++
		case !q.optional && !q.Many:
			return false
		}
	}
	if !f.host && t.RawGetString("stream") != lua.LNil {
		names++
	}
	t.ForEach(func(lua.LValue, lua.LValue) { names-- })
	return names == 0
}

// keywords puts the entries of a keyword table in their places.
func (a *args) keywords(t *lua.LTable, positional int) {
	ddof := slices.IndexFunc(a.f.params, func(p param) bool { return p.Name == "ddof" })
	if v := t.RawGetString("correction"); v != lua.LNil && ddof >= 0 { // Python's standard for arrays has that name
		defer func() { a.raw[ddof] = v }()
	}
	t.ForEach(func(k, v lua.LValue) {
		name := k.String()
		if name == "correction" && ddof >= 0 {
			return
		}
		if name == "stream" && !a.f.host {
			a.stream(v)
			return
		}
		i := slices.IndexFunc(a.f.params, func(p param) bool { return p.Name == name })
		if i < 0 || i == a.f.many {
			a.fail("unknown keyword %s; it takes %s", quote(name), a.names())
		}
		if i < positional && a.raw[i] != lua.LNil {
			a.fail("%s is given twice", name)
		}
		a.raw[i] = v
	})
}

// names lists the parameters for messages.
func (a *args) names() string {
	var names []string
	for _, p := range a.f.params {
		names = append(names, p.Name)
	}
	if !a.f.host {
		names = append(names, "stream")
	}
	if len(names) == 0 {
		return "no arguments"
	}
	return strings.Join(names, ", ")
}

// stream makes the call run on the stream or device given by keyword.
func (a *args) stream(v lua.LValue) {
	st, err := toWorkStream(a.s, v)
	if err != nil {
		a.fail("stream %v", err)
	}
	a.Ctx.Stream = st
}

// convert turns the raw arguments into Go values by the kinds of their parameters.
func (a *args) convert() {
	late := false // some wait for the other arguments
	for i := range a.f.params {
		p := &a.f.params[i]
		v := a.raw[i]
		if i == a.f.many {
			a.V[i] = a.convertRest(p)
			continue
		}
		if v == lua.LNil {
			if !p.optional {
				a.fail("%s is missing; it takes %s", p.Name, a.names())
			}
			a.V[i] = p.value
			late = late || p.made
			continue
		}
		switch p.kind {
		case sig.KindOperand:
			if x, ok := array(v); ok {
				a.V[i] = x
				continue
			}
			if _, ok := v.(lua.LBool); !ok || takesBool(p.Param) {
				late = true
				continue
			}
		case sig.KindFill:
			late = true
			continue
		}
		x, err := p.convert(a, v)
		if err != nil {
			if s := a.shapeMeant(i); s != "" {
				err = fmt.Errorf("%w; a shape goes by name: {shape = %s}", err, s)
			}
			a.wrong(p.Name, err)
		}
		a.V[i] = x
	}
	if late {
		a.complete()
	}
}

// complete makes the arguments that depend on others, and defaults that are arrays.
func (a *args) complete() {
	for i := range a.f.params {
		p := &a.f.params[i]
		v := a.raw[i]
		if v == lua.LNil {
			n, _ := p.Value.(float64)
			switch {
			case !p.made:
			case p.kind == sig.KindKey:
				a.V[i] = a.s.random.Next(a.Ctx)
			case p.kind == sig.KindOperand:
				a.V[i] = a.weak(i, lua.LNumber(n))
			default:
				a.V[i], _ = p.convert(a, lua.LNumber(n)) // a number
			}
			continue
		}
		switch {
		case p.kind == sig.KindOperand && a.V[i] == nil:
			a.V[i] = a.weak(i, v)
		case p.kind == sig.KindFill:
			a.V[i] = a.fill(i)
		}
	}
}

// convertRest converts the arguments of a parameter that takes any number.
func (a *args) convertRest(p *param) any {
	if p.kind == sig.KindTree { // the call reads them itself
		return nil
	}
	arrays, others := []*tensor.Array{}, []any{}
	for i, v := range a.rest {
		x, err := p.convert(a, v)
		if err != nil {
			a.wrong(fmt.Sprintf("%s[%d]", p.Name, i+1), err)
		}
		if y, ok := x.(*tensor.Array); ok {
			arrays = append(arrays, y)
		}
		others = append(others, x)
	}
	if len(p.Kinds) == 1 && p.kind == sig.KindArray {
		return arrays
	}
	return others
}

// shapeMeant is argument i as a text where it is a list of numbers and a later parameter takes a shape, which some of
// NumPy's functions take first; else "".
func (a *args) shapeMeant(i int) string {
	list, ok := a.raw[i].(*lua.LTable)
	if !ok || !slices.ContainsFunc(a.f.params[i+1:], func(p param) bool { return p.kind == sig.KindShape }) {
		return ""
	}
	var dims []string
	for j := range list.Len() {
		n, ok := list.RawGetInt(j + 1).(lua.LNumber)
		if !ok {
			return ""
		}
		dims = append(dims, n.String())
	}
	return "{" + strings.Join(dims, ", ") + "}"
}

// weak converts a number among operands: it takes the dtype that MLX's Python scalars take beside arrays.
func (a *args) weak(i int, v lua.LValue) *tensor.Array {
	if b, ok := v.(lua.LBool); ok {
		return ops.FromSlice([]bool{bool(b)}, []int{}, a.Ctx)
	}
	n, ok := v.(lua.LNumber)
	if !ok {
		if c, ok := unwrap[complexNumber](v); ok {
			return ops.FromSlice([]complex64{complex64(c)}, []int{}, a.Ctx)
		}
		a.fail("%s is %s, want an array or a number", a.f.params[i].Name, describe(v))
	}
	for j, p := range a.f.params {
		if like, ok := a.V[j].(*tensor.Array); ok && p.kind == sig.KindOperand && j != i {
			if _, given := array(a.raw[j]); given {
				return ops.Scalar(float64(n), like, a.Ctx)
			}
		}
	}
	return number(a.Ctx, float64(n))
}

// fill is what argument i fills an array with: a number as it is, a table as an array of the dtype that the call names.
func (a *args) fill(i int) *sig.Fill {
	switch v := a.raw[i].(type) {
	case lua.LNumber:
		return &sig.Fill{Number: float64(v)}
	case lua.LBool:
		return &sig.Fill{Array: ops.FromSlice([]bool{bool(v)}, []int{}, a.Ctx)}
	}
	if x, ok := array(a.raw[i]); ok {
		return &sig.Fill{Array: x}
	}
	d := tableDType(a.raw[i])
	for j := range a.f.params {
		if a.f.params[j].kind == sig.KindDType {
			d = a.DTypeOr(j, d)
		}
	}
	x, err := arrayOf(a.s.Context(), a.Ctx, a.raw[i], d, false)
	if err != nil {
		a.fail("%s %v", a.f.params[i].Name, err)
	}
	return &sig.Fill{Array: x}
}

// number is a number alone: int32 if it is integral, float32 if not.
func number(c *tensor.Ctx, v float64) *tensor.Array {
	d := tensor.Float32
	if ops.IsIntegral(v) && v >= math.MinInt32 && v <= math.MaxInt32 {
		d = tensor.Int32
	}
	return ops.Number(v, d, c)
}

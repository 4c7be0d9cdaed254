package luabind

import (
	"fmt"
	"math"
	"slices"
	"strconv"
	"strings"

	lua "github.com/yuin/gopher-lua"

	"github.com/mlxlua/mlxlua/tensor"
	"github.com/mlxlua/mlxlua/tensor/ops"
)

// row describes a function of mx: one row yields the checks of its arguments, its help and its reference.
type row struct {
	name string // "softmax", "random.uniform"
	// sig is the parameters: "a axis:axes? keepdims:bool=false". The kind is array where none is given; ? makes a
	// parameter optional, with nil (false for kinds of tables) for none; = gives a default. See kinds for the kinds.
	sig string
	// call makes the result: an array, a list of arrays (several values), a Lua value, values, or nil for none.
	call func(a *args) any
	// many says that the last parameter stands for any number of arguments, which call finds in raw. There are no
	// keywords then: a table with string keys is a tree.
	many bool
	// spread says that the last parameter's numbers may be written without a table: x:reshape(2, 3).
	spread bool
	// host says that the call makes no graph, so that the keyword stream has no meaning.
	host bool
	// keeps says that what the call makes may refer to its args later: they are not used again for another call.
	keeps bool
	// doc is the exported Go function of package ops whose comment is the help, if it is not named like the row.
	doc string
	// help is the help where no Go function's comment is.
	help string
}

// values are several results.
type values []lua.LValue

// function is a row made callable.
type function struct {
	row
	params []param
}

type param struct {
	name     string
	kind     string
	convert  converter // of kind
	optional bool
	def      string // "" if none
	value    any    // what def stands for: nobody may change it
}

// parseSig turns a signature into parameters. It panics on a wrong one: rows are part of the program.
func parseSig(sig string) []param {
	var out []param
	for _, field := range strings.Fields(sig) {
		var p param
		if f, ok := strings.CutSuffix(field, "?"); ok {
			field, p.optional = f, true
		}
		if f, def, ok := strings.Cut(field, "="); ok {
			field, p.def, p.optional = f, def, true
		}
		p.name, p.kind, _ = strings.Cut(field, ":")
		if p.kind == "" {
			p.kind = "array"
		}
		if p.convert = kinds[p.kind]; p.convert == nil {
			panic("BUG: unknown kind in signature " + sig)
		}
		if p.def != "" {
			p.value = defaultValue(p)
		}
		out = append(out, p)
	}
	return out
}

// args are the arguments of a call, converted.
type args struct {
	s   *State
	f   *function
	ctx *tensor.Ctx
	v   []any        // by parameter; nil where an optional one was not given
	raw []lua.LValue // as given

	// What ctx and the first shape among v point at: no objects of their own.
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
	a.f, a.call = f, tensor.Ctx{Stream: s.stream, Place: s.where()}
	a.ctx = &a.call
	a.v = cleared(a.v, len(f.params))
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
	clear(a.v)
	clear(a.raw)
	a.v, a.raw, a.first = a.v[:0], a.raw[:0], tensor.ShapeArg{}
	a.s.spareArgs = append(a.s.spareArgs, a)
}

// fail raises an error of the call.
func (a *args) fail(format string, v ...any) {
	a.s.raise(a.ctx.Errorf(a.f.name, format, v...))
}

func get[T any](a *args, i int) T {
	v, _ := a.v[i].(T)
	return v
}

func (a *args) array(i int) *tensor.Array    { return get[*tensor.Array](a, i) }
func (a *args) arrays(i int) []*tensor.Array { return get[[]*tensor.Array](a, i) }
func (a *args) ints(i int) []int             { return get[[]int](a, i) }
func (a *args) int(i int) int                { return get[int](a, i) }
func (a *args) flag(i int) bool              { return get[bool](a, i) }
func (a *args) number(i int) float64         { return get[float64](a, i) }
func (a *args) text(i int) string            { return get[string](a, i) }
func (a *args) shape(i int) tensor.ShapeArg {
	if p := get[*tensor.ShapeArg](a, i); p != nil {
		return *p
	}
	return tensor.ShapeArg{}
}
func (a *args) table(i int) *lua.LTable { return get[*lua.LTable](a, i) }
func (a *args) given(i int) bool        { return a.v[i] != nil }
func (a *args) dtype(i int, def tensor.DType) tensor.DType {
	if d, ok := a.v[i].(tensor.DType); ok {
		return d
	}
	return def
}

// wrong raises what is wrong with an argument: "shape is ..." or "shape[2] is ...".
func (a *args) wrong(name string, err error) {
	if text := err.Error(); strings.HasPrefix(text, "[") {
		a.fail("%s%w", name, err)
	}
	a.fail("%s %w", name, err)
}

// define makes a function of mx from a row and puts it into its module's table.
func (s *State) define(module *lua.LTable, r row) {
	f := &function{r, parseSig(r.sig)}
	fn := s.Func(func(*lua.LState) int { return s.invoke(f) })
	s.mx.funcs[r.name] = f
	s.mx.help[fn] = f
	module.RawSetString(r.name[strings.LastIndexByte(r.name, '.')+1:], fn)
}

// invoke runs a function on the arguments on the stack.
func (s *State) invoke(f *function) int {
	a := s.newArgs(f)
	a.collect()
	a.convert()
	n := s.push(f.call(a))
	a.done()
	return n
}

// push pushes a result.
func (s *State) push(result any) int {
	switch r := result.(type) {
	case nil:
		return 0
	case *tensor.Array:
		s.L.Push(s.wrap(r))
	case []*tensor.Array:
		for _, x := range r {
			s.L.Push(s.wrap(x))
		}
		return len(r)
	case values:
		for _, v := range r {
			s.L.Push(v)
		}
		return len(r)
	case lua.LValue:
		s.L.Push(r)
	default:
		panic(fmt.Sprintf("result of type %T", result))
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
	for n > len(f.params) && L.Get(n) == lua.LNil {
		n--
	}
	var list *lua.LTable
	if f.spread && n > len(f.params) {
		if list = numbersFrom(L, len(f.params), n); list != nil {
			n = len(f.params)
		}
	}
	if n > len(f.params) && !f.many {
		a.fail("got %s, it takes %d: %s", tensor.Count(n, "argument"), len(f.params), a.names())
	}
	a.raw = cleared(a.raw, max(len(f.params), n))
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

// numbersFrom is a table of the arguments from the first to the last one (counted from 1), or nil if one is no number.
func numbersFrom(L *lua.LState, first, last int) *lua.LTable {
	list := L.CreateTable(last-first+1, 0)
	for i := first; i <= last; i++ {
		if _, ok := L.Get(i).(lua.LNumber); !ok {
			return nil
		}
		list.Append(L.Get(i))
	}
	return list
}

// isKeywords says whether t, argument i, holds keywords: all its keys are strings, and the parameter in its place
// does not take such a table itself.
func (a *args) isKeywords(t *lua.LTable, i int) bool {
	if a.f.many || t.Metatable != lua.LNil || t.Len() > 0 {
		return false
	}
	key, _ := t.Next(lua.LNil)
	if key == lua.LNil { // {}: the shape of a scalar, an empty list; nothing, where a table has no place
		return i >= len(a.f.params) || !takesTable(a.f.params[i].kind)
	}
	if _, ok := key.(lua.LString); !ok {
		return false
	}
	return i >= len(a.f.params) || !takesTree(a.f.params[i].kind)
}

// keywords puts the entries of a keyword table in their places.
func (a *args) keywords(t *lua.LTable, positional int) {
	t.ForEach(func(k, v lua.LValue) {
		name := k.String()
		if name == "stream" && !a.f.host {
			a.stream(v)
			return
		}
		i := slices.IndexFunc(a.f.params, func(p param) bool { return p.name == name })
		if i < 0 {
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
		names = append(names, p.name)
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
	st, err := toStream(v)
	if err != nil {
		a.fail("stream %v", err)
	}
	a.ctx.Stream = st
}

// convert turns the raw arguments into Go values by the kinds of their parameters.
func (a *args) convert() {
	numbers := false // there are some among operands
	for i := range a.f.params {
		p := &a.f.params[i]
		v := a.raw[i]
		if v == lua.LNil {
			if !p.optional {
				a.fail("%s is missing; it takes %s", p.name, a.names())
			}
			a.v[i] = p.value
			continue
		}
		if p.kind == "operand" {
			if x, ok := array(v); ok {
				a.v[i] = x
			} else {
				numbers = true
			}
			continue
		}
		x, err := p.convert(a, v)
		if err != nil {
			a.wrong(p.name, err)
		}
		a.v[i] = x
	}
	for i := range a.f.params {
		if numbers && a.f.params[i].kind == "operand" && a.v[i] == nil && a.raw[i] != lua.LNil {
			a.v[i] = a.weak(i)
		}
	}
}

// weak converts a number among operands: it takes the dtype that MLX's Python scalars take beside arrays.
func (a *args) weak(i int) *tensor.Array {
	v := a.raw[i]
	if b, ok := v.(lua.LBool); ok {
		return ops.FromSlice([]bool{bool(b)}, []int{}, a.ctx)
	}
	n, ok := v.(lua.LNumber)
	if !ok {
		if c, ok := unwrap[complexNumber](v); ok {
			return ops.FromSlice([]complex64{complex64(c)}, []int{}, a.ctx)
		}
		a.fail("%s is %s, want an array or a number", a.f.params[i].name, describe(v))
	}
	for j, p := range a.f.params {
		if like, ok := a.v[j].(*tensor.Array); ok && p.kind == "operand" && j != i {
			if _, given := array(a.raw[j]); given {
				return ops.Scalar(float64(n), like, a.ctx)
			}
		}
	}
	return number(a.ctx, float64(n))
}

// number is a number alone: int32 if it is integral, float32 if not.
func number(c *tensor.Ctx, v float64) *tensor.Array {
	d := tensor.Float32
	if ops.IsIntegral(v) && v >= math.MinInt32 && v <= math.MaxInt32 {
		d = tensor.Int32
	}
	return ops.Number(v, d, c)
}

// defaultValue is a default as it stands in a signature.
func defaultValue(p param) any {
	switch p.kind {
	case "bool":
		return p.def == "true"
	case "int", "axis":
		n, err := strconv.Atoi(p.def)
		if err != nil {
			panic("BUG: default of " + p.name)
		}
		return n
	case "number":
		f, err := strconv.ParseFloat(p.def, 64)
		if err != nil {
			panic("BUG: default of " + p.name)
		}
		return f
	case "string":
		return p.def
	case "axes", "ints":
		n, err := strconv.Atoi(p.def)
		if err != nil {
			panic("BUG: default of " + p.name)
		}
		return []int{n}
	}
	panic("BUG: kind " + p.kind + " has no default")
}

package luabind

import (
	"math"
	"reflect"
	"slices"

	lua "github.com/yuin/gopher-lua"

	"github.com/mlxlua/mlxlua/luabind/reach"
	"github.com/mlxlua/mlxlua/tensor"
)

// knownWalk is a walk over what a compiled function reaches, as a list of all that it looked at: where that is what it
// was, another walk would find the same, but for arrays, each of which may be another one. To look at a list takes a
// fraction of the time of a walk. It holds nothing of what hangs on arrays.
type knownWalk struct {
	looks   []knownLook
	tables  []knownTable
	upvalue []*lua.Upvalue
	custom  []*customFunction
	known   knownModules

	args   int   // how many arguments there were
	inputs int   // arrays in them
	split  parts // what is theirs
	apart  bool  // they led to no object that something else may lead to, too
	key    string
	found  []capture // without the arrays, between calls
	last   []uintptr // where the arrays of the captures were: all different
	busy   bool      // a call under way has found
	led    *led      // the tables of outputs; nil: nobody has asked
}

// knownLook is one value that a walk looked at.
type knownLook struct {
	from  lookFrom
	wants lookWants
	at    int32      // which table, upvalue, argument ...
	array int32      // which of the captures, or of a custom function's functions
	key   lua.LValue // in a table
	was   lua.LValue // nil where an array was
}

// parts is how far a walk had come when it had walked the arguments.
type parts struct{ looks, tables, key int }

type lookFrom uint8

// Where a value is looked at.
const (
	fromName        lookFrom = iota // in a table, under a string
	fromElement                     // and under a number that may be one of its array's
	fromKey                         // and under another key
	fromUpvalue                     // in a variable of a function's
	fromArgument                    // in an argument of the call
	fromCustom                      // in a field of a custom function
	fromEnvironment                 // the environment of the function that was
)

type lookWants uint8

// What it has to be.
const (
	wantsSame  lookWants = iota // what it was
	wantsNew                    // an array that is not met before
	wantsAgain                  // an array that was met before
	wantsInput                  // an array, whichever
)

// knownTable is what is known of a table beside its values.
type knownTable struct {
	t                      *lua.LTable
	meta                   lua.LValue
	array, strings, others int
}

// knownModules changes where a table or function becomes one of the library's.
type knownModules struct{ help, classes, inner, standard int }

func modulesNow(s *State) knownModules {
	return knownModules{len(s.mx.help), len(s.mx.classes), len(s.mx.inner), len(s.standard)}
}

// lookBytes is what a knownLook takes, and a knownTable.
const lookBytes = 64

func (w *knownWalk) weight() int64 {
	return lookBytes*int64(len(w.looks)+len(w.tables)+len(w.found)) + int64(len(w.key))
}

// table notes the shape of a table, and gives its number.
func (w *knownWalk) table(t *lua.LTable) int32 {
	k := knownTable{t: t, meta: t.Metatable}
	k.array, k.strings, k.others = reach.Sizes(t)
	w.tables = append(w.tables, k)
	number := int32(len(w.tables) - 1)
	for i := 1; i <= k.array; i++ {
		if t.RawGetInt(i) == lua.LNil { // which a walk passes over
			w.looks = append(w.looks, knownLook{from: fromElement, at: number, key: lua.LNumber(i), was: lua.LNil})
		}
	}
	return number
}

// look notes a value that the walk is about to visit. Which objects it has met the walk knows.
func (w *knownWalk) look(by *capturer, l knownLook, v lua.LValue, argument bool) {
	l.was = v
	if _, ok := array(v); ok {
		l.was = nil
		switch l.array = int32(len(by.found)); {
		case argument:
			l.wants = wantsInput
			w.inputs++
		case !by.met(v):
			l.wants = wantsNew
		default:
			l.wants = wantsAgain
			for i := range by.found {
				if by.found[i].ud == v {
					l.array = int32(i)
				}
			}
		}
	}
	w.looks = append(w.looks, l)
}

// entry notes an entry of a table.
func (w *knownWalk) entry(by *capturer, table int32, key, v lua.LValue, argument bool) {
	l := knownLook{from: fromKey, at: table, key: key}
	switch key.(type) {
	case lua.LString:
		l.from = fromName
	case lua.LNumber:
		l.from = fromElement
	}
	w.look(by, l, v, argument)
}

// variable notes a variable of a function's.
func (w *knownWalk) variable(by *capturer, up *lua.Upvalue) {
	w.look(by, knownLook{from: fromUpvalue, at: int32(len(w.upvalue))}, up.Value(), false)
	w.upvalue = append(w.upvalue, up)
}

// field notes a field of a custom function. Functions stand there, and no arrays.
func (w *knownWalk) field(f *customFunction, number int, v lua.LValue) {
	w.looks = append(w.looks, knownLook{from: fromCustom, at: int32(len(w.custom)), array: int32(number), was: v})
	w.custom = append(w.custom, f)
}

// now is the value that stands where a look was.
func (w *knownWalk) now(l *knownLook, args []lua.LValue) lua.LValue {
	switch l.from {
	case fromName:
		return w.tables[l.at].t.RawGetString(string(l.key.(lua.LString)))
	case fromElement, fromKey:
		return w.tables[l.at].t.RawGet(l.key)
	case fromUpvalue:
		return w.upvalue[l.at].Value()
	case fromArgument:
		return args[l.at]
	case fromEnvironment:
		return l.key.(*lua.LFunction).Env
	}
	return w.custom[l.at].fields()[l.array]
}

// shaped reports whether tables have the keys and metatables that they had. That there are as many keys as before, and
// all that there were, says that there are no others.
func (w *knownWalk) shaped(from, to int) bool {
	for i := from; i < to; i++ {
		k := &w.tables[i]
		array, strings, others := reach.Sizes(k.t)
		if array != k.array || strings != k.strings || others != k.others || k.t.Metatable != k.meta {
			return false
		}
	}
	return true
}

// holds reports whether looks find what they found, and notes the arrays that are there: captures in found, inputs in
// in.
func (w *knownWalk) holds(looks []knownLook, args []lua.LValue, in []*tensor.Array) ([]*tensor.Array, bool) {
	for i := range looks {
		l := &looks[i]
		v := w.now(l, args)
		if l.wants == wantsSame {
			if !identical(v, l.was) {
				return in, false
			}
			continue
		}
		ud, ok := v.(*lua.LUserData)
		if !ok {
			return in, false
		}
		x, ok := ud.Value.(*tensor.Array)
		switch {
		case !ok, l.wants == wantsAgain && w.found[l.array].ud != ud:
			return in, false
		case l.wants == wantsNew:
			w.found[l.array].ud = ud
		case l.wants == wantsInput:
			in = append(in, x)
		}
	}
	return in, true
}

// identical reports whether two values are written alike in a key: 0 and -0 are not.
func identical(a, b lua.LValue) bool {
	if x, ok := b.(lua.LNumber); ok {
		y, ok := a.(lua.LNumber)
		return ok && math.Float64bits(float64(x)) == math.Float64bits(float64(y))
	}
	return a == b
}

// distinct reports whether the captures are different arrays.
func (w *knownWalk) distinct() bool {
	changed := false
	for i := range w.found {
		if p := reflect.ValueOf(w.found[i].ud).Pointer(); p != w.last[i] {
			w.last[i], changed = p, true
		}
	}
	if !changed {
		return true
	}
	seen := make(map[uintptr]struct{}, len(w.last))
	for _, p := range w.last {
		seen[p] = struct{}{}
	}
	return len(seen) == len(w.last)
}

// covers reports whether the list says how all of these tables are.
func (w *knownWalk) covers(tables []*lua.LTable) bool {
	known := make(map[*lua.LTable]bool, len(w.tables))
	for i := range w.tables {
		known[w.tables[i].t] = true
	}
	return !slices.ContainsFunc(tables, func(t *lua.LTable) bool { return !known[t] })
}

// forget lets go of the arrays of a call.
func (w *knownWalk) forget() {
	for i := range w.found {
		w.found[i].ud = nil
	}
	w.busy = false
}

// find gives the arrays of the arguments, and sets the captures and the key of a call: by the list of an earlier walk
// where that holds, or by a walk. A list is made where two walks have had one key.
func (k *compiledFunction) find() []*tensor.Array {
	s, w := k.s, k.known
	if w == nil || w.busy {
		in := s.flattenAll("compile", k.args)
		k.walkAnew(w == nil)
		return in
	}
	in, ok := make([]*tensor.Array, 0, w.inputs), false
	if len(k.args) == w.args && w.known == modulesNow(s) {
		if ok = w.shaped(0, w.split.tables); ok {
			in, ok = w.holds(w.looks[:w.split.looks], k.args, in)
		}
		if !ok && w.apart {
			in = s.flattenAll("compile", k.args)
			ok = k.sameArguments()
		}
		if ok = ok && w.shaped(w.split.tables, len(w.tables)); ok {
			_, ok = w.holds(w.looks[w.split.looks:], nil, nil)
		}
		if ok && w.distinct() {
			w.busy = true
			k.captured, k.key, k.listed = w.found, w.key, w
			return in
		}
	}
	k.known = nil
	w.forget()
	in = s.flattenAll("compile", k.args)
	k.walkAnew(true)
	return in
}

// sameArguments reports whether the arguments of a call, in other tables than before, are alike.
func (k *compiledFunction) sameArguments() bool {
	w := k.s.takeCapturer()
	defer w.end()
	for _, v := range k.args {
		w.argument(v, trail{})
		w.key = append(w.key, ';')
	}
	return len(w.seen) == 0 && string(w.key) == k.known.key[:k.known.split.key]
}

// walkAnew sets the captures and the key by a walk.
func (k *compiledFunction) walkAnew(list bool) {
	var w *knownWalk
	if list && k.alike {
		w = &knownWalk{known: modulesNow(k.s), args: len(k.args)}
	}
	before := k.walked
	k.captured, k.walked = captures(k.s, k.fn, k.args, k.state.roots, nil, w)
	k.key, k.alike = k.walked, k.walked == before
	if w != nil && k.alike {
		w.key, w.found, w.last = k.walked, slices.Clone(k.captured), make([]uintptr, len(k.captured))
		w.forget()
		k.known = w
	}
}

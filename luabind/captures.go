package luabind

import (
	"fmt"
	"reflect"
	"slices"
	"strconv"
	"strings"

	lua "github.com/yuin/gopher-lua"

	"github.com/mlxlua/mlxlua/luabind/lua51"
	"github.com/mlxlua/mlxlua/tensor"
)

// capture is an array that a function reaches through its upvalues: the Lua object that holds it, and the path by
// which it was found. The path is followed anew at each call.
type capture struct {
	at trail
	ud *lua.LUserData
}

// trail is the last step of a path, and the path before it: nil for the function itself. Paths are followed at each
// call of a compiled function, so a path becomes text only where somebody asks for it.
type trail struct {
	from  *trail
	key   lua.LValue // of a table; the name of an upvalue
	owner owner      // of the table, or of the function
}

// owner is what the step of a path leads from, as far as its name depends on that.
type owner uint8

const (
	ofScript  owner = iota // a table or function of the script
	ofObject               // an object of the library, such as a layer: its fields with "_" are its own business
	ofLibrary              // a function of the library: so are its variables
)

// stateField is the field of an optimizer or loader that scripts know as its state.
const stateField = "_state"

// String is the path as Lua writes it, from an upvalue on, without what only the library knows.
func (t *trail) String() string {
	if t == nil || t.key == nil {
		return ""
	}
	path := t.from.String()
	name, named := t.key.(lua.LString)
	if t.owner == ofObject && name == stateField {
		name = "state"
	}
	switch {
	case t.owner == ofLibrary, t.owner == ofObject && strings.HasPrefix(string(name), "_"):
		return path
	case !named:
		return path + "[" + t.key.String() + "]"
	case path == "":
		return string(name)
	}
	return path + "." + string(name)
}

// table is what a script has to name for what the last step leads to: the state of the outermost object of the library
// on the path, or else the table itself. "" where it is in none.
func (t *trail) table() string {
	if t == nil || t.from == nil {
		return ""
	}
	for step := t; step != nil; step = step.from {
		if step.owner == ofObject {
			if outer := step.from.table(); strings.HasSuffix(outer, ".state") {
				return outer
			}
			return step.from.String() + ".state"
		}
	}
	return t.from.String()
}

// maxReach bounds how deep the tables and functions that a compiled function reaches may be nested.
const maxReach = 10_000

// reachedTable is a table that a function reaches, and the path by which it was found.
type reachedTable struct {
	at trail
	t  *lua.LTable
}

// noted is what a walk meets beside arrays.
type noted struct {
	objects  []any // that the key names by address: while they live, no other object can have it
	tables   []reachedTable
	upvalues []reachedUpvalue
	protos   []*lua.FunctionProto
}

// reachedUpvalue is a variable that a function reaches, and what it held.
type reachedUpvalue struct {
	at trail
	up *lua.Upvalue
	v  lua.LValue
}

// captures walks the upvalues of a function, the functions and tables in them, what those hold, and the roots. Arrays
// become captures; scalars, the functions' code and the structure become the key. It walks the functions among the
// call's arguments too; the arrays there are inputs already. The order depends on the structure only. What else it
// meets it adds to n, and what it looks at to list, if there are such.
func captures(s *State, fn lua.LValue, args, roots []lua.LValue, n *noted, list *knownWalk) (found []capture,
	key string) {
	w := s.takeCapturer()
	w.found, w.noted, w.list = make([]capture, 0, w.expected), n, list
	for i, v := range args {
		if list != nil {
			list.look(w, knownLook{from: fromArgument, at: int32(i)}, v, true)
		}
		w.argument(v, trail{key: argumentName(i)})
		w.key = append(w.key, ';')
	}
	if list != nil {
		list.split, list.apart = parts{len(list.looks), len(list.tables), len(w.key)}, len(w.seen) == 0
	}
	w.walk(fn, trail{}, 0)
	for _, v := range roots {
		w.walk(v, trail{key: lua.LString("state")}, 0)
	}
	found, key = w.found, string(w.key)
	if n != nil {
		n.protos = append(n.protos, w.protos...)
	}
	w.expected = len(found)
	w.end()
	return found, key
}

// argumentName begins the names of what is in an argument of a call.
func argumentName(i int) lua.LString { return lua.LString("argument " + strconv.Itoa(i+1)) }

// takeCapturer gives the state's capturer, or a new one where a walk is under way, or has ended with an error.
func (s *State) takeCapturer() *capturer {
	w := s.capturer
	if s.capturer = nil; w == nil {
		w = &capturer{s: s, seen: map[lua.LValue]int{}}
	}
	return w
}

// capturer is one walk over what a function reaches. Its maps and slices serve the next walk.
type capturer struct {
	s        *State
	protos   []*lua.FunctionProto // of the functions that were walked
	seen     map[lua.LValue]int   // an object met again is named by its number
	modules  []*lua.LTable        // what isModule is true of
	keys     []lua.LValue         // of the tables under way
	found    []capture
	expected int // how many were found the last time
	key      []byte
	noted    *noted
	list     *knownWalk
	shallow  bool // what is nested too deep is passed over
}

// end forgets all objects, and gives the capturer back.
func (w *capturer) end() {
	clear(w.seen)
	clear(w.protos)
	clear(w.modules)
	clear(w.keys[:cap(w.keys)])
	w.protos, w.modules, w.keys, w.key = w.protos[:0], w.modules[:0], w.keys[:0], w.key[:0]
	w.found, w.noted, w.list = nil, nil, nil
	w.s.capturer = w
}

// argument writes the structure of an argument, and walks the functions in it. Its tables contain no cycles.
func (w *capturer) argument(v lua.LValue, at trail) {
	if _, ok := array(v); ok {
		w.key = append(w.key, '*')
		return
	}
	t, ok := v.(*lua.LTable)
	if !ok {
		w.walk(v, at, 0)
		return
	}
	w.entries(t, at, 0, true)
}

// entries writes a table's keys, but those that go on from the one before; walks its values, or writes them as an
// argument's; and walks its metatable.
func (w *capturer) entries(t *lua.LTable, at trail, depth int, argument bool) {
	w.key = append(w.key, '{')
	number := int32(0)
	if w.list != nil {
		number = w.list.table(t)
	}
	from := new(trail)
	*from = at
	of := ownerOf(w.s, t)
	first := len(w.keys)
	w.keys = orderedKeys(t, w.keys)
	next := lua.LNumber(1) // of the elements counted from 1, which need no keys
	for i, last := first, len(w.keys); i < last; i++ {
		k := w.keys[i]
		if n, ok := k.(lua.LNumber); ok && n == next {
			next++
		} else {
			w.scalar(k)
		}
		v := t.RawGet(k)
		if w.list != nil {
			w.list.entry(w, number, k, v, argument)
		}
		if argument {
			w.argument(v, trail{from, k, of})
		} else {
			w.walk(v, trail{from, k, of}, depth)
		}
		w.key = append(w.key, ',')
	}
	w.keys = w.keys[:first]
	if mt, ok := t.Metatable.(*lua.LTable); ok {
		w.walk(mt, at, depth)
	}
	w.key = append(w.key, '}')
}

// ownerOf says whether a table is an object of the library: a layer, also of a script's class, an optimizer, a loader.
func ownerOf(s *State, t *lua.LTable) owner {
	if mt, ok := t.Metatable.(*lua.LTable); ok {
		if f, ok := mt.RawGetString("__index").(*lua.LFunction); ok && lua51.IsEmbedded(s.State, f) {
			return ofObject
		}
	}
	return ofScript
}

// scalar writes the value of something that holds no arrays, or which object it is where it has no value.
func (w *capturer) scalar(v lua.LValue) {
	switch v := v.(type) {
	case lua.LString:
		w.key = append(strconv.AppendInt(w.key, int64(len(v)), 10), ':')
		w.key = append(w.key, v...)
	case lua.LNumber:
		w.key = strconv.AppendFloat(w.key, float64(v), 'x', -1, 64)
	case lua.LBool, *lua.LNilType:
		w.key = append(w.key, v.String()...)
	default:
		w.object(v)
		return
	}
	w.key = append(w.key, ';')
}

// object writes which object p, a pointer, points at.
func (w *capturer) object(p any) {
	w.key = append(w.key, '@')
	w.key = append(strconv.AppendUint(w.key, uint64(reflect.ValueOf(p).Pointer()), 16), ';')
	if w.noted != nil {
		w.noted.objects = append(w.noted.objects, p)
	}
}

// tooFar is the error of a table at a depth to which compile does not follow.
func tooFar(s *State) error {
	return s.call().Errorf("compile", "what the function reaches is nested deeper than %d levels", maxReach)
}

func (w *capturer) walk(v lua.LValue, at trail, depth int) {
	if depth > maxReach {
		if w.shallow {
			return
		}
		w.s.raise(tooFar(w.s))
	}
	switch v := v.(type) {
	case *lua.LUserData:
		w.userdata(v, at, depth)
	case *lua.LTable:
		w.table(v, at, depth)
	case *lua.LFunction:
		w.function(v, at, depth)
	default:
		w.scalar(v)
	}
}

func (w *capturer) userdata(v *lua.LUserData, at trail, depth int) {
	switch x := v.Value.(type) {
	case tensor.DType:
		w.key = append(append(w.key, x.String()...), ';')
		return
	case tensor.DeviceID:
		w.key = append(append(w.key, x.String()...), ';')
		return
	case complexNumber:
		w.key = fmt.Appendf(w.key, "%x;", x)
		return
	case *tensor.Stream:
		w.object(x)
		return
	case *luaKernel:
		w.object(x)
		return
	}
	if w.again(v) {
		return
	}
	switch x := v.Value.(type) {
	case *tensor.Array:
		w.key = append(w.key, '*')
		w.found = append(w.found, capture{at, v})
	case transformOf:
		w.key = append(append(w.key, x...), ';')
	case *compiledFunction:
		w.key = append(w.key, 'c')
		w.walk(x.fn, at, depth+1)
		for _, v := range x.state.roots {
			w.walk(v, at, depth+1)
		}
	case *customFunction:
		w.key = append(w.key, 'u')
		for i, f := range x.fields() {
			if w.list != nil {
				w.list.field(x, i, f)
			}
			w.walk(f, at, depth+1)
		}
	default:
		w.object(v)
	}
}

// function walks what a function holds. It names a function of Go by its address, unless that is a transform of another
// function.
func (w *capturer) function(v *lua.LFunction, at trail, depth int) {
	if w.again(v) {
		return
	}
	if w.s.mx.help[v] != nil || v.IsG && !isTransform(v) {
		w.object(v)
		return
	}
	if v.IsG {
		for _, up := range v.Upvalues {
			if w.list != nil {
				w.list.variable(w, up)
			}
			w.walk(up.Value(), at, depth+1)
		}
		return
	}
	if w.list != nil {
		w.list.look(w, knownLook{from: fromEnvironment, key: v}, v.Env, false)
	}
	w.key = append(w.key, 'f')
	w.object(v.Proto)
	of := ofScript
	if lua51.IsEmbedded(w.s.State, v) { // whose globals are no script's
		of = ofLibrary
	} else {
		w.protos = append(w.protos, v.Proto)
	}
	from := new(trail)
	*from = at
	// What the library's functions hold comes last: the script has names of its own for most of it.
	for _, last := range []bool{false, true} {
		for i, up := range v.Upvalues {
			f, ok := up.Value().(*lua.LFunction)
			if (ok && lua51.IsEmbedded(w.s.State, f)) != last {
				continue
			}
			name := "upvalue " + strconv.Itoa(i+1)
			if i < len(v.Proto.DbgUpvalues) {
				name = v.Proto.DbgUpvalues[i]
			}
			at := trail{from, lua.LString(name), of}
			if w.list != nil {
				w.list.variable(w, up)
			}
			if w.noted != nil {
				w.noted.upvalues = append(w.noted.upvalues, reachedUpvalue{at, up, up.Value()})
			}
			w.walk(up.Value(), at, depth+1)
		}
	}
}

// met reports whether an object was met before.
func (w *capturer) met(v lua.LValue) bool {
	_, seen := w.seen[v]
	return seen
}

// again reports whether an object was met before, and notes which it is.
func (w *capturer) again(v lua.LValue) bool {
	n, seen := w.seen[v]
	if seen {
		w.key = append(strconv.AppendInt(append(w.key, '#'), int64(n), 10), ';')
		return true
	}
	w.seen[v] = len(w.seen)
	return false
}

// table walks a table's entries and its metatable. A call captures nothing of the modules of mx and of the globals.
func (w *capturer) table(t *lua.LTable, at trail, depth int) {
	if w.isModule(t) {
		w.object(t)
		return
	}
	if w.again(t) {
		return
	}
	if w.noted != nil {
		w.noted.tables = append(w.noted.tables, reachedTable{at, t})
	}
	w.entries(t, at, depth+1, false)
}

// isModule reports whether t is mx, one of its modules or the classes there, a library of Lua, or the table of globals.
func (w *capturer) isModule(t *lua.LTable) bool {
	if w.s.mx.classes[t] != nil {
		return true
	}
	if len(w.modules) == 0 {
		w.findModules()
	}
	return slices.Contains(w.modules, t)
}

// findModules notes mx, its modules, Lua's libraries and the table of globals.
func (w *capturer) findModules() {
	s := w.s
	w.modules = append(w.modules, s.mx.LTable, s.L.G.Global)
	for _, m := range s.mx.inner {
		w.modules = append(w.modules, m)
	}
	w.modules = append(w.modules, s.standard...)
}

// libraryNames are Lua's libraries. A script's own modules hold its state, as other tables do.
var libraryNames = []string{lua.LoadLibName, lua.TabLibName, lua.StringLibName, lua.MathLibName, lua.CoroutineLibName,
	lua.DebugLibName, lua.IoLibName, lua.OsLibName}

// globalName is the global that an instruction reads; "" if it reads none.
func globalName(p *lua.FunctionProto, code uint32) string {
	const opcodeShift, constantBits = 26, 1<<18 - 1
	if int(code>>opcodeShift) != lua.OP_GETGLOBAL {
		return ""
	}
	return p.Constants[code&constantBits].String()
}

// noteGlobals adds to n the tables and the variables of functions that its functions reach through globals: they are
// no captures, but what is written there is put back or refused as elsewhere.
func (k *compiledFunction) noteGlobals(n *noted) {
	found := &noted{}
	w := capturer{s: k.s, seen: map[lua.LValue]int{}, protos: slices.Clone(n.protos), noted: found, shallow: true}
	for _, r := range n.tables {
		w.seen[r.t] = len(w.seen)
	}
	done := map[string]bool{}
	for len(w.protos) > 0 {
		p := w.protos[0]
		w.protos = append(w.protos[1:], p.FunctionPrototypes...)
		for _, code := range p.Code {
			name := globalName(p, code)
			if name == "" || done[name] {
				continue
			}
			done[name] = true
			switch v := k.s.L.G.Global.RawGetString(name).(type) {
			case *lua.LTable:
				w.walk(v, trail{key: lua.LString(name)}, 0)
			case *lua.LFunction:
				if !v.IsG {
					w.walk(v, trail{key: lua.LString(name)}, 0)
				}
			}
		}
	}
	n.tables, n.upvalues = append(n.tables, found.tables...), append(n.upvalues, found.upvalues...)
}

// frozenGlobals names the globals that a function reads, or one that it captures: a trace keeps the values they had
// when it was made. Lua's libraries and their functions do not count, but os and io do.
func frozenGlobals(s *State, fn lua.LValue) []string {
	w := capturer{s: s, seen: map[lua.LValue]int{}}
	w.walk(fn, trail{}, 0)
	var names []string
	for len(w.protos) > 0 {
		p := w.protos[0]
		w.protos = append(w.protos[1:], p.FunctionPrototypes...)
		for _, code := range p.Code {
			name := globalName(p, code)
			if name == "" {
				continue
			}
			switch v := s.L.GetGlobal(name).(type) {
			case *lua.LFunction:
				if v.IsG {
					continue
				}
			case *lua.LTable: // the clock and files may give something else each time
				if w.isModule(v) && name != lua.OsLibName && name != lua.IoLibName {
					continue
				}
			}
			names = append(names, name)
		}
	}
	slices.Sort(names)
	return slices.Compact(names)
}

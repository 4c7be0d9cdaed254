package luabind

import (
	"slices"
	"strconv"

	lua "github.com/yuin/gopher-lua"

	"github.com/mlxlua/mlxlua/tensor"
)

// capture is an array that a function reaches through its upvalues: the Lua object that holds it, and the path by
// which it was found. The path is followed anew at each call.
type capture struct {
	at trail
	ud *lua.LUserData
}

// trail is the last step of a path, and what it is taken from: nil for the function itself. A path becomes text only
// where someone asks for it, because it is walked at each call of a compiled function.
type trail struct {
	from *trail
	key  lua.LValue // of a table; the name of an upvalue
}

// String is the path as Lua writes it, from an upvalue on.
func (t *trail) String() string {
	if t == nil || t.key == nil {
		return ""
	}
	path := t.from.String()
	name, named := t.key.(lua.LString)
	switch {
	case !named:
		return path + "[" + t.key.String() + "]"
	case path == "":
		return string(name)
	}
	return path + "." + string(name)
}

// captures walks a function's upvalues, the functions and tables they hold, and what those hold: arrays become
// captures, scalars and the shape of what was walked become key. The order depends on the objects' structure only.
func (s *State) captures(fn lua.LValue) (found []capture, key string) {
	w := s.walker
	if s.walker = nil; w == nil {
		w = &capturer{s: s, seen: map[lua.LValue]int{}}
	}
	w.found, w.key = make([]capture, 0, w.expected), w.key[:0]
	w.walk(fn, trail{}, 0)
	found, key = w.found, string(w.key)
	w.expected = len(found)
	w.end()
	s.walker = w
	return found, key
}

// capturer is a walk. Its maps and slices serve the next one.
type capturer struct {
	s        *State
	protos   []*lua.FunctionProto // of the functions that were walked
	seen     map[lua.LValue]int   // an object met again is named by its number
	modules  []*lua.LTable        // what isModule says yes to
	keys     []lua.LValue         // of the tables under way
	found    []capture
	expected int // how many were found the last time
	key      []byte
}

// end forgets all objects.
func (w *capturer) end() {
	clear(w.seen)
	clear(w.protos)
	clear(w.modules)
	clear(w.keys[:cap(w.keys)])
	w.protos, w.modules, w.keys, w.found = w.protos[:0], w.modules[:0], w.keys[:0], nil
}

func (w *capturer) walk(v lua.LValue, at trail, depth int) {
	switch v := v.(type) {
	case *lua.LUserData:
		if w.again(v) {
			return
		}
		switch x := v.Value.(type) {
		case *tensor.Array:
			w.key = append(w.key, '*')
			w.found = append(w.found, capture{at, v})
		case tensor.DType:
			w.key = append(w.key, x.String()...)
		case *customFunction:
			for _, f := range []lua.LValue{x.fn, x.vjp, x.jvp, x.vmap} {
				if f != nil {
					w.walk(f, at, depth+1)
				}
			}
		}
	case *lua.LTable:
		w.table(v, at, depth)
	case *lua.LFunction:
		if w.s.help[v] != nil || w.again(v) || depth > maxDepth {
			return
		}
		if v.IsG {
			return
		}
		w.key = append(w.key, 'f')
		w.protos = append(w.protos, v.Proto)
		from := new(trail)
		*from = at
		for i, up := range v.Upvalues {
			name := "upvalue " + strconv.Itoa(i+1)
			if i < len(v.Proto.DbgUpvalues) {
				name = v.Proto.DbgUpvalues[i]
			}
			w.walk(up.Value(), trail{from, lua.LString(name)}, depth+1)
		}
	default:
		w.key = append(structure(v, w.key), ';')
	}
}

// again says whether an object was met before, and notes which it is.
func (w *capturer) again(v lua.LValue) bool {
	n, seen := w.seen[v]
	if seen {
		w.key = append(strconv.AppendInt(append(w.key, '#'), int64(n), 10), ';')
		return true
	}
	w.seen[v] = len(w.seen)
	return false
}

// table walks a table's entries and its metatable. The modules of mx and the globals hold nothing that a call captures.
func (w *capturer) table(t *lua.LTable, at trail, depth int) {
	if depth > maxDepth || w.isModule(t) || w.again(t) {
		return
	}
	w.key = append(w.key, '{')
	from := new(trail)
	*from = at
	first := len(w.keys)
	w.keys = orderedKeys(t, w.keys)
	for i, last := first, len(w.keys); i < last; i++ {
		k := w.keys[i]
		if text, ok := k.(lua.LString); ok {
			w.key = append(strconv.AppendInt(w.key, int64(len(text)), 10), ':')
			w.key = append(w.key, text...)
		}
		w.walk(t.RawGet(k), trail{from, k}, depth+1)
		w.key = append(w.key, ',')
	}
	w.keys = w.keys[:first]
	if mt, ok := t.Metatable.(*lua.LTable); ok {
		w.walk(mt, at, depth+1)
	}
	w.key = append(w.key, '}')
}

// isModule says whether t is mx, one of its modules, a library of Lua, or the table of globals.
func (w *capturer) isModule(t *lua.LTable) bool {
	if len(w.modules) == 0 {
		w.modules = w.s.modules(w.modules)
	}
	return slices.Contains(w.modules, t)
}

// modules appends mx, its modules, Lua's libraries and the table of globals.
func (s *State) modules(out []*lua.LTable) []*lua.LTable {
	out = append(out, s.mx, s.L.G.Global)
	for _, name := range moduleNames {
		if m, ok := s.mx.RawGetString(name).(*lua.LTable); ok {
			out = append(out, m)
		}
	}
	if loaded, ok := s.L.GetField(s.L.GetGlobal("package"), "loaded").(*lua.LTable); ok {
		loaded.ForEach(func(_, v lua.LValue) {
			if m, ok := v.(*lua.LTable); ok {
				out = append(out, m)
			}
		})
	}
	return out
}

// frozenGlobals names the globals that a function, or one that it captures, reads, libraries and their functions
// apart: a trace keeps what they held when it was made.
func (s *State) frozenGlobals(fn lua.LValue) []string {
	w := capturer{s: s, seen: map[lua.LValue]int{}}
	w.walk(fn, trail{}, 0)
	var names []string
	for len(w.protos) > 0 {
		p := w.protos[0]
		w.protos = append(w.protos[1:], p.FunctionPrototypes...)
		for _, code := range p.Code {
			const opcodeShift, constantBits = 26, 1<<18 - 1
			if int(code>>opcodeShift) != lua.OP_GETGLOBAL {
				continue
			}
			name := p.Constants[code&constantBits].String()
			switch v := s.L.GetGlobal(name).(type) {
			case *lua.LFunction:
				if v.IsG {
					continue
				}
			case *lua.LTable:
				if w.isModule(v) {
					continue
				}
			}
			names = append(names, name)
		}
	}
	slices.Sort(names)
	return slices.Compact(names)
}

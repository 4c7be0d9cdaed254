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
	path string
	ud   *lua.LUserData
}

// captures walks a function's upvalues, the functions and tables they hold, and what those hold: arrays become
// captures, scalars and the shape of what was walked become key. The order depends on the objects' structure only.
func (s *State) captures(fn lua.LValue) (found []capture, key []byte) {
	w := capturer{s: s, seen: map[lua.LValue]int{}}
	w.walk(fn, "", 0)
	return w.found, w.key
}

type capturer struct {
	s      *State
	protos []*lua.FunctionProto // of the functions that were walked
	seen   map[lua.LValue]int   // an object met again is named by its number
	found  []capture
	key    []byte
}

func (w *capturer) walk(v lua.LValue, path string, depth int) {
	switch v := v.(type) {
	case *lua.LUserData:
		if w.again(v) {
			return
		}
		switch x := v.Value.(type) {
		case *tensor.Array:
			w.key = append(w.key, '*')
			w.found = append(w.found, capture{path, v})
		case tensor.DType:
			w.key = append(w.key, x.String()...)
		case *customFunction:
			for _, f := range []lua.LValue{x.fn, x.vjp, x.jvp, x.vmap} {
				if f != nil {
					w.walk(f, path, depth+1)
				}
			}
		}
	case *lua.LTable:
		w.table(v, path, depth)
	case *lua.LFunction:
		if w.s.help[v] != nil || w.again(v) || depth > maxDepth {
			return
		}
		if v.IsG {
			return
		}
		w.key = append(w.key, 'f')
		w.protos = append(w.protos, v.Proto)
		for i, up := range v.Upvalues {
			name := "upvalue " + strconv.Itoa(i+1)
			if i < len(v.Proto.DbgUpvalues) {
				name = v.Proto.DbgUpvalues[i]
			}
			if path != "" {
				name = path + "." + name
			}
			w.walk(up.Value(), name, depth+1)
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
func (w *capturer) table(t *lua.LTable, path string, depth int) {
	if w.s.isModule(t) || depth > maxDepth || w.again(t) {
		return
	}
	w.key = append(w.key, '{')
	for _, k := range orderedKeys(t) {
		name := path + "[" + k.String() + "]"
		if text, ok := k.(lua.LString); ok {
			w.key = strconv.AppendQuote(w.key, string(text))
			name = path + "." + string(text)
		}
		w.walk(t.RawGet(k), name, depth+1)
		w.key = append(w.key, ',')
	}
	if mt, ok := t.Metatable.(*lua.LTable); ok {
		w.walk(mt, path, depth+1)
	}
	w.key = append(w.key, '}')
}

// isModule says whether t is mx, one of its modules, a library of Lua, or the table of globals.
func (s *State) isModule(t *lua.LTable) bool {
	if t == s.mx || t == s.L.G.Global {
		return true
	}
	if loaded, ok := s.L.GetField(s.L.GetGlobal("package"), "loaded").(*lua.LTable); ok {
		found := false
		loaded.ForEach(func(_, v lua.LValue) { found = found || v == t })
		if found {
			return true
		}
	}
	for _, name := range moduleNames {
		if s.mx.RawGetString(name) == t {
			return true
		}
	}
	return false
}

// frozenGlobals names the globals that a function, or one that it captures, reads, libraries and their functions
// apart: a trace keeps what they held when it was made.
func (s *State) frozenGlobals(fn lua.LValue) []string {
	w := capturer{s: s, seen: map[lua.LValue]int{}}
	w.walk(fn, "", 0)
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
				if s.isModule(v) {
					continue
				}
			}
			names = append(names, name)
		}
	}
	slices.Sort(names)
	return slices.Compact(names)
}

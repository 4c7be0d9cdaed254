package luabind

import (
	"slices"
	"strings"

	lua "github.com/yuin/gopher-lua"
)

// moduleNames are the modules inside of mx.
var moduleNames = []string{"fast", "random", "linalg", "fft", "metal", "memory", "nn"}

// openUnknown makes a name that mx or a module inside of it does not have an error, as it is in Python: otherwise it is
// nil, which Lua reports as a call of something that is no function, and which says "no dtype" for a misspelled one.
// rawget asks without an error.
func (s *State) openUnknown() {
	s.refuseUnknown(s.mx, "")
	for _, name := range moduleNames {
		s.refuseUnknown(s.mx.RawGetString(name).(*lua.LTable), name+".")
	}
}

// refuseUnknown does this for one module, whose names begin with prefix.
func (s *State) refuseUnknown(module *lua.LTable, prefix string) {
	mt := s.L.NewTable()
	s.method(mt, "__index", func(L *lua.LState) int {
		name, ok := L.Get(2).(lua.LString)
		if !ok {
			return 0
		}
		hint := suggest(string(name), keysOf(module))
		s.raise(s.call().Errorf("mx", "there is no mx.%s%s%s", prefix, string(name), hint))
		return 0
	})
	s.L.SetMetatable(module, mt)
}

// keysOf is a table's keys that are strings, in no order.
func keysOf(t *lua.LTable) []string {
	var keys []string
	t.ForEach(func(k, _ lua.LValue) {
		if text, ok := k.(lua.LString); ok {
			keys = append(keys, string(text))
		}
	})
	return keys
}

// suggest is a hint at the known name that was meant, or "".
func suggest(name string, known []string) string {
	best, distance := "", 3
	if len(name) < 4 { // two of three letters are another word
		distance = 2
	}
	for _, k := range known {
		d := editDistance(strings.ToLower(name), strings.ToLower(k))
		if d < distance || d == distance && best != "" && k < best {
			best, distance = k, d
		}
	}
	if best == "" {
		return ""
	}
	return "; did you mean " + best + "?"
}

// editDistance is how many letters must be put in, left out, replaced or swapped with their neighbour to make b of a.
func editDistance(a, b string) int {
	var before []int
	last := make([]int, len(b)+1)
	for j := range last {
		last[j] = j
	}
	for i := range len(a) {
		row := make([]int, len(b)+1)
		row[0] = i + 1
		for j := range len(b) {
			row[j+1] = min(last[j+1], row[j]) + 1
			if a[i] == b[j] {
				row[j+1] = min(row[j+1], last[j])
			} else {
				row[j+1] = min(row[j+1], last[j]+1)
			}
			if i > 0 && j > 0 && a[i] == b[j-1] && a[i-1] == b[j] {
				row[j+1] = min(row[j+1], before[j-1]+1)
			}
		}
		before, last = last, row
	}
	return last[len(b)]
}

// nameCalls adds to an error of gopher-lua's that does not say which call failed what the line calls.
func nameCalls(L *lua.LState, v lua.LValue) lua.LValue {
	text, ok := v.(lua.LString)
	if !ok || !strings.HasSuffix(string(text), ": attempt to call a non-function object") {
		return v
	}
	for level := 0; ; level++ {
		dbg, ok := L.GetStack(level)
		if !ok {
			return v
		}
		fn, err := L.GetInfo("fl", dbg, lua.LNil)
		if f, ok := fn.(*lua.LFunction); err == nil && ok && !f.IsG {
			if names := callsIn(f.Proto, dbg.CurrentLine); len(names) > 0 {
				return text + lua.LString("; the line calls "+strings.Join(names, ", "))
			}
			return v
		}
	}
}

// callsIn are the names of what a line of a function calls, without those that have none.
func callsIn(p *lua.FunctionProto, line int) []string {
	var names []string
	for _, c := range p.DbgCalls {
		known := c.Name != "" && c.Name != "?" && !slices.Contains(names, c.Name)
		if known && c.Pc < len(p.DbgSourcePositions) && p.DbgSourcePositions[c.Pc] == line {
			names = append(names, c.Name)
		}
	}
	return names
}

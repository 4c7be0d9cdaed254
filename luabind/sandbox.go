package luabind

import (
	"slices"
	"strings"

	lua "github.com/yuin/gopher-lua"
)

// shared are the functions of mx that change what all states of the program share, or tell of what others have in it.
var shared = []string{
	"check_nan", "clear_streams", "disable_compile", "enable_compile", "memory.live",
	"metal.set_cache_limit", "metal.set_memory_limit", "metal.start_capture",
	"metal.stop_capture", "metal.validate", "new_stream", "new_thread_local_stream", "new_thread_unsafe_stream",
	"profile", "set_cache_limit", "set_memory_limit", "set_threads", "set_wired_limit",
	"timeline",
}

// refuseShared has the functions that change the process refuse their calls.
func refuseShared(s *State) {
	for _, full := range shared {
		f := s.mx.funcs[full]
		if f == nil {
			panic("BUG: there is no function mx." + full)
		}
		refuse := s.Func(func(L *lua.LState) int {
			L.RaiseError("[%s] a script in a sandbox cannot change or see what all scripts share", full)
			return 0
		})
		last := full[strings.LastIndexByte(full, '.')+1:]
		s.mx.within(full).RawSetString(last, refuse)
	}
}

// registries are the tables of libraries that are for scripts to write into.
var registries = []string{"lm.models"}

// keep keeps a library's table as it is where the state is in a sandbox: see lua51's Freeze. So are the tables in it,
// such as classes, metatables, and those that the library's functions give to what they make. The objects that scripts
// make, and their classes, are their own.
func keep(s *State, t *lua.LTable, name string) {
	if s.opt.Sandbox {
		k := keeper{s: s, seen: map[lua.LValue]bool{}}
		k.table(t, name)
	}
}

// keeper is a walk over what belongs to a library.
type keeper struct {
	s    *State
	seen map[lua.LValue]bool
}

// again reports whether an object was met before, and notes it.
func (k *keeper) again(v lua.LValue) bool {
	seen := k.seen[v]
	k.seen[v] = true
	return seen
}

// table freezes a table and goes on to what is in it.
func (k *keeper) table(t *lua.LTable, name string) {
	if k.again(t) || slices.Contains(registries, name) {
		return
	}
	k.s.Freeze(t, name)
	k.entries(t, name, true)
}

// entries goes over a table and its metatable. What is in a table that is itself no script's to come to is frozen only
// if objects may have it as their metatable.
func (k *keeper) entries(t *lua.LTable, name string, freeze bool) {
	if mt, ok := t.Metatable.(*lua.LTable); ok {
		k.table(mt, "the metatable of "+name)
	}
	t.ForEach(func(key, v lua.LValue) { k.value(v, name+"."+key.String(), freeze) })
}

func (k *keeper) value(v lua.LValue, name string, freeze bool) {
	switch v := v.(type) {
	case *lua.LTable:
		if k.s.Frozen(v) != "" {
			return
		}
		if freeze || isMetatable(v) {
			k.table(v, name)
		} else if !k.again(v) {
			k.entries(v, name, false)
		}
	case *lua.LFunction:
		if len(v.Upvalues) == 0 || k.again(v) {
			return
		}
		for i, up := range v.Upvalues {
			inner := name
			if !v.IsG && i < len(v.Proto.DbgUpvalues) {
				inner += "." + v.Proto.DbgUpvalues[i]
			}
			k.value(up.Value(), inner, false)
		}
	}
}

// isMetatable reports whether a table has an entry that a metatable has.
func isMetatable(t *lua.LTable) bool {
	for _, event := range []string{"__index", "__newindex", "__call", "__tostring"} {
		if t.RawGetString(event) != lua.LNil {
			return true
		}
	}
	return false
}

// keepLibraries keeps mx, its modules and the metatables as they are.
func keepLibraries(s *State) {
	keep(s, s.mx.LTable, "mx")
	for kind, mt := range s.metas {
		keep(s, mt, "the metatable of "+kind)
	}
}

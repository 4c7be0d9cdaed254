package lua51

import (
	"reflect"

	lua "github.com/yuin/gopher-lua"
)

// Freezer is the tables of a state in a sandbox that stay as they are: those of libraries, which scripts have by names
// and as metatables. The virtual machine writes into a table whatever that is, so the meter looks at the instructions
// that do before they run; the functions of Lua's libraries that do ask here.
type Freezer struct {
	on     bool
	names  map[uintptr]string // by the tables' addresses
	tables []*lua.LTable      // which keeps the addresses theirs
}

// Freeze keeps a table as it is from now on, if the state is in a sandbox: what would change it is an error with that
// name, in a script and in embedded code. Functions of Go that change a table that a script hands over ask Frozen.
func (z *Freezer) Freeze(t *lua.LTable, name string) {
	if !z.on {
		return
	}
	if z.names == nil {
		z.names = map[uintptr]string{}
	}
	at := reflect.ValueOf(t).Pointer()
	if _, ok := z.names[at]; !ok {
		z.names[at] = name
		z.tables = append(z.tables, t)
	}
}

// Frozen is the name of a table that Freeze keeps; "": it may change.
func (z *Freezer) Frozen(t *lua.LTable) string {
	if z.names == nil {
		return ""
	}
	return z.names[reflect.ValueOf(t).Pointer()]
}

// target is the name of the frozen table that an assignment to v[key] would change; "": it changes none. Lua's
// metamethod __newindex leads from one table to the next.
func (z *Freezer) target(v, key lua.LValue) string {
	for range lua.MaxTableGetLoop {
		t, ok := v.(*lua.LTable)
		if !ok {
			return ""
		}
		if name := z.Frozen(t); name != "" {
			return name
		}
		mt, ok := t.Metatable.(*lua.LTable)
		if !ok {
			return ""
		}
		if v = mt.RawGetString("__newindex"); v == lua.LNil || t.RawGet(key) != lua.LNil {
			return ""
		}
	}
	return ""
}

// refuse raises the error of what would change a frozen table, if name is one's.
func refuse(L *lua.LState, name string) {
	if name != "" {
		L.RaiseError("[sandbox] %s belongs to the library: a script in a sandbox cannot change it", name)
	}
}

// writes refuses an instruction that would change a frozen table.
func (p *stepper) writes(f frame, op, a, b int) {
	s := p.m.s
	if s.Freezer.names == nil {
		return
	}
	switch op {
	case lua.OP_SETTABLE, lua.OP_SETTABLEKS:
		refuse(p.L, s.target(p.L.Get(a+1), p.operand(f, b)))
	case lua.OP_SETGLOBAL:
		env := p.L.G.Global
		if f.function().Field(frameFields.env).Pointer() != reflect.ValueOf(env).Pointer() {
			env = environment(p.L)
		}
		refuse(p.L, s.target(env, f.constant(f.global())))
	}
}

// environment is that of the function which a thread runs.
func environment(L *lua.LState) *lua.LTable {
	dbg, _ := L.GetStack(0)
	f, err := L.GetInfo("f", dbg, lua.LNil)
	if err != nil {
		return nil
	}
	return f.(*lua.LFunction).Env
}

// openFrozen has the functions of Lua's libraries that change the table which they are given refuse frozen ones.
func openFrozen(s *State) {
	if s.Freezer.on = s.opt.Sandbox; !s.Freezer.on {
		return
	}
	guard := func(lib *lua.LTable, name string, of func(L *lua.LState) string) {
		if f, ok := lib.RawGetString(name).(*lua.LFunction); ok {
			call := f.GFunction
			var up []lua.LValue
			for _, u := range f.Upvalues {
				up = append(up, u.Value())
			}
			lib.RawSetString(name, s.Through(func(L *lua.LState) int {
				refuse(L, of(L))
				return call(L)
			}, up...))
		}
	}
	first := func(L *lua.LState) string {
		t, _ := L.Get(1).(*lua.LTable)
		return s.Frozen(t)
	}
	for _, name := range []string{"rawset", "setmetatable"} {
		guard(s.L.G.Global, name, first)
	}
	for _, name := range []string{"insert", "remove", "setn", "sort"} {
		guard(s.library(lua.TabLibName), name, first)
	}
	guard(s.L.G.Global, "require", func(L *lua.LState) string {
		return s.target(L.GetField(L.Get(lua.RegistryIndex), "_LOADED"), L.Get(1))
	})
}

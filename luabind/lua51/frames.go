package lua51

import (
	"fmt"
	"reflect"

	lua "github.com/yuin/gopher-lua"
)

// frameFields is where gopher-lua keeps a thread's frames, and what an instruction works on. Its API shows frames one
// at a time and counts them from the top; this reads them in place. Fields that are not exported give numbers only.
var frameFields = func() (f struct {
	current, parent, fn, idx, pc, localBase, tailCalls, isGo, env, proto, code int
	constants, source, lines, defined, array, keys, indices, registry, room    int
}) {
	at := func(t reflect.Type, name string) int {
		field, ok := t.FieldByName(name)
		if !ok {
			panic("BUG: " + t.String() + " has no field " + name)
		}
		return field.Index[0]
	}
	state, function := reflect.TypeFor[lua.LState](), reflect.TypeFor[lua.LFunction]()
	proto := reflect.TypeFor[lua.FunctionProto]()
	f.current = at(state, "currentFrame")
	frame := state.Field(f.current).Type.Elem()
	f.parent, f.fn, f.pc, f.localBase = at(frame, "Parent"), at(frame, "Fn"), at(frame, "Pc"), at(frame, "LocalBase")
	f.idx, f.tailCalls = at(frame, "Idx"), at(frame, "TailCall")
	f.isGo, f.env, f.proto = at(function, "IsG"), at(function, "Env"), at(function, "Proto")
	f.code, f.constants = at(proto, "Code"), at(proto, "Constants")
	f.source, f.lines = at(proto, "SourceName"), at(proto, "DbgSourcePositions")
	f.defined = at(proto, "LineDefined")
	table := reflect.TypeFor[lua.LTable]()
	f.array, f.keys, f.indices = at(table, "array"), at(table, "keys"), at(table, "k2i")
	f.registry = at(state, "reg")
	f.room = at(state.Field(f.registry).Type.Elem(), "array")
	return f
}()

// frame is a frame of a thread.
type frame struct{ v reflect.Value }

// current is the variable in which a thread has its running frame.
func current(L *lua.LState) reflect.Value {
	return reflect.ValueOf(L).Elem().Field(frameFields.current)
}

// frameIn is the frame that a variable has now; false: none.
func frameIn(v reflect.Value) (frame, bool) {
	if v.IsNil() {
		return frame{}, false
	}
	return frame{v.Elem()}, true
}

// parent is the frame that called this one; false: none.
func (f frame) parent() (frame, bool) { return frameIn(f.v.Field(frameFields.parent)) }

// base is the number of the frame's first register, counted from the thread's first.
func (f frame) base() int { return int(f.v.Field(frameFields.localBase).Int()) }

func (f frame) function() reflect.Value { return f.v.Field(frameFields.fn).Elem() }

func (f frame) isGo() bool { return f.function().Field(frameFields.isGo).Bool() }

// tailCalls is how many functions have ended in a tail call that led to the frame's function, which is Lua's.
func (f frame) tailCalls() int { return int(f.v.Field(frameFields.tailCalls).Int()) }

// lineIn is the line that the frame's function, whose prototype it is told, runs; 0: it has not begun.
func (f frame) lineIn(proto reflect.Value) int {
	pc := int(f.v.Field(frameFields.pc).Int())
	if pc == 0 {
		return 0
	}
	return int(proto.Field(frameFields.lines).Index(pc - 1).Int())
}

// lineOf is the line of an instruction of the frame's function, which is Lua's.
func (f frame) lineOf(pc int) int { return int(f.proto().Field(frameFields.lines).Index(pc).Int()) }

// depth is how many frames are below this one.
func (f frame) depth() int { return int(f.v.Field(frameFields.idx).Int()) }

// frameCount is how many frames a thread has.
func frameCount(L *lua.LState) int {
	f, ok := frameIn(current(L))
	if !ok {
		return 0
	}
	return f.depth() + 1
}

// resultsWanted is how many results the call wants that the frame, which is Lua's, has made.
func (f frame) resultsWanted() int {
	_, _, _, c := f.instruction()
	return c - 1
}

// place is how an error message begins that tells where a frame is: "" for a function of Go's.
func (f frame) place() string {
	if f.isGo() {
		return ""
	}
	proto := f.proto()
	if line := f.lineIn(proto); line > 0 {
		return fmt.Sprintf("%s:%d: ", sourceOf(proto), line)
	}
	return ""
}

// place is where a thread's running function is.
func place(L *lua.LState) string {
	if f, ok := frameIn(current(L)); ok {
		return f.place()
	}
	return ""
}

// sourceOf is the name of the chunk that a prototype is of.
func sourceOf(proto reflect.Value) string { return proto.Field(frameFields.source).String() }

// proto is the prototype of the frame's function, which is Lua's.
func (f frame) proto() reflect.Value { return f.function().Field(frameFields.proto).Elem() }

// pc is the place of the instruction that the frame runs.
func (f frame) pc() int { return int(f.v.Field(frameFields.pc).Int()) - 1 }

// instruction is the one that the frame runs, or is about to run: the operation is the highest 6 of its 32 bits.
func (f frame) instruction() (op, a, b, c int) {
	in := decode(uint32(f.proto().Field(frameFields.code).Index(f.pc()).Uint()))
	return in.op, in.a, in.b, in.c
}

// placeOfCaller is where the function is that has called a thread's running one.
func placeOfCaller(L *lua.LState) string {
	if f, ok := frameIn(current(L)); ok {
		if f, ok = f.parent(); ok {
			return f.place()
		}
	}
	return ""
}

// clearRegisters sets all registers of a thread to nil.
func clearRegisters(L *lua.LState) {
	top, ok := L.GetStack(0)
	if !ok {
		L.SetTop(0)
		return
	}
	base := frame{current(L).Elem()}.base()
	for no := L.GetTop(); no > -base; no-- {
		L.SetLocal(top, no, lua.LNil) // any register of the thread, by a number that may be negative
	}
}

// global is the number of the constant that names the global which the frame reads or sets, or is about to.
func (f frame) global() int {
	pc := int(f.v.Field(frameFields.pc).Int()) - 1
	return int(f.proto().Field(frameFields.code).Index(pc).Uint() & (1<<18 - 1))
}

// constant is a constant of the frame's function that is a number or a string; others are nil.
func (f frame) constant(i int) lua.LValue {
	switch k := f.proto().Field(frameFields.constants).Index(i).Elem(); k.Kind() {
	case reflect.Float64:
		return lua.LNumber(k.Float())
	case reflect.String:
		return lua.LString(k.String())
	}
	return lua.LNil
}

// Indexed is the value whose field a thread's Lua function, the one that runs or has called the Go functions that do,
// reads or sets just now, and the name of the parameter that holds it, if one does; nil: it does neither.
func Indexed(L *lua.LState) (v lua.LValue, parameter string) {
	return worksOn(L, func(op, a, b int) int {
		switch op {
		case lua.OP_GETTABLE, lua.OP_GETTABLEKS, lua.OP_SELF:
			return b
		case lua.OP_SETTABLE, lua.OP_SETTABLEKS:
			return a
		}
		return -1
	})
}

// Iterated is the value that a thread's Lua function calls just now to go through a generic loop; nil: it does not.
func Iterated(L *lua.LState) lua.LValue {
	v, _ := worksOn(L, func(op, a, _ int) int {
		if op == lua.OP_TFORLOOP {
			return a
		}
		return -1
	})
	return v
}

// worksOn is the value in a register of a thread's innermost Lua function, which an instruction tells, and the name of
// the parameter that lies there, if one does; nil: in none.
func worksOn(L *lua.LState, register func(op, a, b int) int) (v lua.LValue, parameter string) {
	f, ok := frameIn(current(L))
	level := 0
	for ; ok && f.isGo(); level++ {
		f, ok = f.parent()
	}
	if !ok {
		return nil, ""
	}
	op, a, b, _ := f.instruction()
	no := register(op, a, b)
	dbg, ok := L.GetStack(level)
	if no < 0 || !ok {
		return nil, ""
	}
	_, v = L.GetLocal(dbg, no+1)
	fn, err := L.GetInfo("f", dbg, lua.LNil)
	if fn, ok := fn.(*lua.LFunction); err == nil && ok && no < int(fn.Proto.NumParameters) {
		parameter = fn.Proto.DbgLocals[no].Name
	}
	return v, parameter
}

package lua51

import (
	"reflect"

	lua "github.com/yuin/gopher-lua"
)

// frameFields is where gopher-lua keeps a thread's frames, and what an instruction works on. Its API shows frames one
// at a time and counts them from the top; this reads them in place. Fields that are not exported give numbers only.
var frameFields = func() (f struct {
	current, parent, fn, pc, localBase, tailCalls, isGo, proto, code, constants, source, lines, array, keys int
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
	f.tailCalls = at(frame, "TailCall")
	f.isGo, f.proto = at(function, "IsG"), at(function, "Proto")
	f.code, f.constants = at(proto, "Code"), at(proto, "Constants")
	f.source, f.lines = at(proto, "SourceName"), at(proto, "DbgSourcePositions")
	table := reflect.TypeFor[lua.LTable]()
	f.array, f.keys = at(table, "array"), at(table, "keys")
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

// sourceOf is the name of the chunk that a prototype is of.
func sourceOf(proto reflect.Value) string { return proto.Field(frameFields.source).String() }

// proto is the prototype of the frame's function, which is Lua's.
func (f frame) proto() reflect.Value { return f.function().Field(frameFields.proto).Elem() }

// instruction is the one that the frame runs, or is about to run: the operation is the highest 6 of its 32 bits.
func (f frame) instruction() (op, a, b, c int) {
	pc := int(f.v.Field(frameFields.pc).Int()) - 1 // of the instruction behind it
	inst := uint32(f.proto().Field(frameFields.code).Index(pc).Uint())
	return int(inst >> 26), int(inst>>18) & 0xff, int(inst & 0x1ff), int(inst>>9) & 0x1ff
}

// Indexed is the value whose field a thread's Lua function, the one that runs or has called the Go functions that do,
// reads or sets just now; nil: it does neither.
func Indexed(L *lua.LState) lua.LValue {
	f, ok := frameIn(current(L))
	level := 0
	for ; ok && f.isGo(); level++ {
		f, ok = f.parent()
	}
	if !ok {
		return nil
	}
	op, a, b, _ := f.instruction()
	switch op {
	case lua.OP_GETTABLE, lua.OP_GETTABLEKS, lua.OP_SELF:
		a = b
	case lua.OP_SETTABLE, lua.OP_SETTABLEKS:
	default:
		return nil
	}
	dbg, ok := L.GetStack(level)
	if !ok {
		return nil
	}
	_, v := L.GetLocal(dbg, a+1)
	return v
}

package reach

import (
	"reflect"

	lua "github.com/yuin/gopher-lua"
)

// Threads walks the threads under way, the running one first, and reports whether that says all: it does not where a Go
// function is under way below them, other than the one that asks, that may hold values which it took off the stack.
func (w *Walker) Threads(running []*lua.LState) bool {
	for i, L := range running {
		w.seen.add(address(L))
		if !w.thread(L, i == 0) {
			w.forget()
			return false
		}
	}
	return true
}

// coroutine walks a thread that some value is.
func (w *Walker) coroutine(L *lua.LState) {
	if !w.thread(L, false) {
		w.unknown = true
	}
}

// thread walks a thread's environment, frames and registers. The Go function on top may be any that asks for the walk.
func (w *Walker) thread(L *lua.LState, asks bool) bool {
	w.visits += threadVisits
	if L.Env != w.Global {
		w.table(L.Env)
	}
	if L.IsClosed() {
		return true
	}
	top, ok := L.GetStack(0)
	if !ok { // it has not begun, or has no frame left
		for no := L.GetTop(); no > 0; no-- {
			w.Value(L.Get(no))
		}
		return true
	}
	frame := reflect.ValueOf(top).Elem().Field(layout.frame).Elem()
	base := int(frame.Field(layout.localBase).Int())
	// Any register of the thread is a local of any of its frames, by a number that may be negative.
	for no := L.GetTop(); no > -base; no-- {
		_, v := L.GetLocal(top, no)
		w.Value(v)
	}
	w.visits += int64(base + L.GetTop())
	level := 0
	for f := frame; f.IsValid(); f = f.Field(layout.parent).Elem() {
		w.visits += frameVisits
		fn := f.Field(layout.fn)
		isGo := fn.Elem().Field(layout.isGo).Bool()
		if isGo && !asks && !L.Dead && !w.Through(fn.Elem().Field(layout.code).Pointer()) {
			return false
		}
		asks = false
		_, called := L.GetLocal(top, int(f.Field(layout.base).Int())+1-base)
		if c, ok := called.(*lua.LFunction); !ok || address(c) != fn.Pointer() {
			w.hidden(L, f, level, called)
		}
		level++
		if !isGo {
			level += int(f.Field(layout.tailCalls).Int())
		}
	}
	return true
}

// hidden walks the function of a frame that is not in the register for it: that of a metamethod, for which the called
// object stands there, or the body of a coroutine.
func (w *Walker) hidden(L *lua.LState, f reflect.Value, level int, called lua.LValue) {
	if called != nil && L.GetMetatable(called) != lua.LNil {
		call, ok := L.GetMetaField(called, "__call").(*lua.LFunction)
		if ok && address(call) == f.Field(layout.fn).Pointer() {
			w.Value(call)
			return
		}
	}
	if f.Field(layout.parent).IsNil() {
		level = -1
	}
	if dbg, ok := L.GetStack(level); ok {
		w.visits += int64(max(level, 0))
		w.functionOf(L, dbg)
	}
}

// functionOf walks the function of a frame.
func (w *Walker) functionOf(L *lua.LState, dbg *lua.Debug) {
	if f, err := L.GetInfo("f", dbg, lua.LNil); err == nil {
		w.Value(f)
	}
}

package lua51

import (
	"math/bits"

	lua "github.com/yuin/gopher-lua"
)

// What Go makes for scripts is made here, and so charged when it is made: tables, functions, userdata, and the texts
// that functions of Go return. Instructions of the virtual machine are charged by the meter, and what functions hold
// while they run, or make in large pieces, by Charge and Hold. What of it is garbage is given back by the next
// measuring (live.go), which has to come to all that was made: where Go's values hang on a function or a userdata,
// these say how much that is (Weight, Options.Weigh).

// What things take, in bytes and rather more than less: Go's allocator rounds up, and its maps keep room.
const (
	TableBytes     = 136 // of an empty table
	ElementBytes   = 16  // of a value in a list
	KeyBytes       = 160 // of a key and its value, on average
	mapBytes       = 48  // of an empty map
	firstElement   = 512 // of a list whose length nobody knew
	firstKey       = 600 // of the maps of a table with a key
	functionBytes  = 120
	closureBytes   = 128 // of a function of Go's, beside
	upvalueBytes   = 56
	userdataBytes  = 72
	stringBytes    = 32
	numberBytes    = 16 // of a number that is no small integer: most stand beside others that are garbage
	coroutineBytes = 44 << 10
)

// maker makes what Go makes for the scripts of a state.
type maker struct {
	s     *State
	meter *meter // nil: there are no limits
}

// made counts bytes that were made, or are just being made. Where that is too much the call ends at the next
// instruction.
func (k *maker) made(bytes int64) {
	if m := k.meter; m != nil && m.calls > 0 {
		m.charge(k.s.L, bytes)
	}
}

// NewTable makes a table with room for so many elements and keys.
func (k *maker) NewTable(elements, keys int) *lua.LTable {
	k.made(tableRoom(elements, keys))
	return k.s.L.CreateTable(elements, keys)
}

// tableRoom is what a new table takes.
func tableRoom(elements, keys int) int64 {
	bytes := int64(TableBytes) + ElementBytes*int64(elements)
	if keys > 0 {
		bytes += mapBytes
	}
	if keys > 1 {
		bytes += KeyBytes * int64(keys)
	}
	return bytes
}

// NewUserData makes a userdata of a Go value that takes so many bytes beside.
func (k *maker) NewUserData(v any, mt lua.LValue, beside int64) *lua.LUserData {
	k.made(userdataBytes + beside)
	return &lua.LUserData{Value: v, Env: k.s.L.Env, Metatable: mt}
}

// Func makes a Lua function of f with upvalues. It runs on the thread that calls it, which may be a coroutine's: s.L is
// that thread meanwhile. Go's run-time errors in it become Lua errors that say BUG.
func (k *maker) Func(f lua.LGFunction, upvalues ...lua.LValue) *lua.LFunction {
	return k.closure(k.s.onCaller(f), upvalues)
}

// Through is Func for a function that keeps no Lua value in a variable of Go's while Lua code that it calls runs, but
// for those that are on its stack: see Passes.
func (k *maker) Through(f lua.LGFunction, upvalues ...lua.LValue) *lua.LFunction {
	return k.closure(k.s.throughCaller(f), upvalues)
}

// plain makes a function of Lua's libraries, once, that makes nothing and needs no state: it is called as it is.
func (k *maker) plain(f lua.LGFunction) *lua.LFunction { return k.s.L.NewFunction(f) }

func (k *maker) closure(f lua.LGFunction, upvalues []lua.LValue) *lua.LFunction {
	k.made(functionBytes + closureBytes + upvalueBytes*int64(len(upvalues)))
	return k.s.L.NewClosure(f, upvalues...)
}

// Weight is a value of Go's that a function holds and that takes so many bytes. One of its upvalues tells it:
// see Weigh.
type Weight int64

// Weigh is the upvalue for a function of Go's that holds so many bytes.
func (k *maker) Weigh(bytes int64) *lua.LUserData {
	return k.NewUserData(Weight(bytes), lua.LNil, bytes)
}

// texts charges the texts among the last n values on a thread's stack, which a function of Go returns. Others' texts
// may be among them: they cost a measuring now and then.
func (m *meter) texts(L *lua.LState, n int) {
	if m.calls == 0 || m.limits.Memory == 0 {
		return
	}
	for i := 1; i <= n; i++ {
		if text, ok := L.Get(-i).(lua.LString); ok {
			m.charge(L, stringBytes+int64(len(text)))
		}
	}
}

// roomyMap is how many bytes a map of n entries takes.
func roomyMap(n int, slot int64) int64 {
	const group = 8 // slots
	switch {
	case n == 0:
		return mapBytes
	case n <= group:
		return mapBytes + group*(slot+4)
	}
	slots := int64(1) << bits.Len(uint(n*8/7))
	if most := int64(n) * 3 / 2; slots > 1024 && slots > most { // in several tables
		slots = most
	}
	return 2*mapBytes + slots*(slot+1)
}

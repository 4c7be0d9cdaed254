package lua51

import (
	"math"
	"reflect"
	"unsafe"

	lua "github.com/yuin/gopher-lua"
)

// The instructions of arithmetic, for numbers. gopher-lua v1.1.2 keeps one object for each small whole number, and
// takes that of 0 for -0; and its % is not that of Lua 5.1's manual. Its table of instructions is a variable, in which
// those here stand from the start of the program on, if they fit: see fits. They leave all to gopher-lua's that is not
// two numbers. WHY.md says why they reach into it.

// executor executes one instruction of a function; the last argument is gopher-lua's business.
type executor func(L *lua.LState, code uint32, base unsafe.Pointer) int

// jumpTable is gopher-lua's table. Where a version of it has no such variable, this is one of nils.
//
//go:linkname jumpTable github.com/yuin/gopher-lua.jumpTable
var jumpTable [lua.OP_NOP + 1]executor

// plain are gopher-lua's own instructions.
var plain [lua.OP_NOP + 1]executor

// machine is how gopher-lua's LState begins.
type machine struct {
	G            *lua.Global
	Parent       *lua.LState
	Env          *lua.LTable
	Panic        func(*lua.LState)
	Dead         bool
	Options      lua.Options
	stop         int32
	reg          *registry
	stack        any
	alloc        *allocator
	currentFrame *callFrame
}

// registry is how its own begins: those of all calls, one after the other.
type registry struct {
	array []lua.LValue
	top   int
	_, _  int
	alloc *allocator
}

// callFrame is how its callFrame, the state of a call, begins.
type callFrame struct {
	Idx       int
	Fn        *lua.LFunction
	Parent    *callFrame
	Pc        int
	Base      int
	LocalBase int
}

// allocator is how its own begins: numbers lie in pages, which values point into.
type allocator struct {
	size  int
	fptrs []float64
}

// value is how Go holds an LValue.
type value struct{ kind, data unsafe.Pointer }

// numberKind is the kind of a value that is a number.
var numberKind = func() unsafe.Pointer {
	var v lua.LValue = lua.LNumber(0.5)
	return (*value)(unsafe.Pointer(&v)).kind
}()

// smallNumbers are the numbers that need no memory each.
var smallNumbers = func() (values [128]lua.LValue) {
	for i := range values {
		values[i] = lua.LNumber(i)
	}
	return values
}()

func init() { install() }

// install puts the instructions into gopher-lua's table, if they fit and work.
func install() {
	if !fits(reflect.TypeFor[lua.LState](), jumpTable[:]) {
		return
	}
	plain = jumpTable
	jumpTable[lua.OP_ADD], jumpTable[lua.OP_SUB] = add, sub
	jumpTable[lua.OP_MUL], jumpTable[lua.OP_DIV] = mul, div
	jumpTable[lua.OP_MOD], jumpTable[lua.OP_POW] = mod, pow
	if !works() {
		jumpTable = plain
	}
}

// fits reports whether gopher-lua's state begins as machine does, and its table is there.
func fits(state reflect.Type, table []executor) bool {
	for _, f := range table {
		if f == nil {
			return false
		}
	}
	return begins(state, reflect.TypeFor[machine]())
}

// begins reports whether values of one type begin as those of another, which is one of this file and leaves fields that
// it does not use without names.
func begins(theirs, ours reflect.Type) bool {
	if theirs.Kind() != reflect.Struct || theirs.NumField() < ours.NumField() {
		return false
	}
	for i := range ours.NumField() {
		a, b := theirs.Field(i), ours.Field(i)
		if b.Name != "_" && a.Name != b.Name || a.Offset != b.Offset || a.Type.Kind() != b.Type.Kind() {
			return false
		}
		switch {
		case a.Type == b.Type, b.Type.Kind() == reflect.Interface:
		case b.Type.Kind() != reflect.Pointer:
			return false
		case b.Type.Elem() == ours: // a list
		case !begins(a.Type.Elem(), b.Type.Elem()):
			return false
		}
	}
	return true
}

// works reports whether the instructions in the table give what they shall.
func works() (does bool) {
	defer func() { does = recover() == nil && does }()
	L := lua.NewState(lua.Options{SkipOpenLibs: true, RegistrySize: 256})
	defer L.Close()
	f, err := L.LoadString(`
		local a, b, zero, n, list = ..., -1, 0, 0.5, {}
		local minus = zero * b
		for i = 1, 999 do
			n = n + a
			list[i] = n
		end
		for i = 1, 999 do
			if list[i] ~= i * 1.5 + 0.5 then return false end
		end
		return 1 / minus == b / zero and 1 / (minus + minus) == b / zero and 1 / (minus - zero) == b / zero and
			1 / (minus / 3) == b / zero and 1 / minus ^ 3 == b / zero and 1 / (b * 6 % 3) == a / zero and
			a - 200 == -198.5 and b * 7 % 3 == 2 and b * 7 % -3 == b and a ^ 2 == 2.25`)
	if err != nil {
		return false
	}
	L.Push(f)
	L.Push(lua.LNumber(1.5))
	L.Call(1, 1)
	return L.Get(-1) == lua.LTrue
}

// operand is what an instruction's field means: a constant or a register.
func (m *machine) operand(field uint32) lua.LValue {
	const constant = 1 << 8
	if field&constant != 0 {
		return m.currentFrame.Fn.Proto.Constants[field&^constant]
	}
	return m.reg.array[m.currentFrame.LocalBase+int(field)]
}

// operands are the two of an instruction, with the register for its result, if both are numbers; else that is nil.
func operands(L *lua.LState, code uint32) (to *lua.LValue, from *allocator, a, b lua.LNumber) {
	const field = 1<<9 - 1
	m := (*machine)(unsafe.Pointer(L))
	a, first := m.operand(code & field).(lua.LNumber)
	b, second := m.operand(code >> 9 & field).(lua.LNumber)
	at := m.currentFrame.LocalBase + int(code>>18&0xff)
	if !first || !second || at >= len(m.reg.array) {
		return nil, nil, 0, 0
	}
	m.reg.top = max(m.reg.top, at+1)
	return &m.reg.array[at], m.reg.alloc, a, b
}

// value is a number as a value.
func (n *allocator) value(v lua.LNumber) (out lua.LValue) {
	if i := int(v); uint(i) < uint(len(smallNumbers)) && math.Float64bits(float64(i)) == math.Float64bits(float64(v)) {
		return smallNumbers[i]
	}
	if len(n.fptrs) == cap(n.fptrs) {
		n.fptrs = make([]float64, 0, n.size)
	}
	n.fptrs = append(n.fptrs, float64(v))
	*(*value)(unsafe.Pointer(&out)) = value{numberKind, unsafe.Pointer(&n.fptrs[len(n.fptrs)-1])}
	return out
}

func add(L *lua.LState, code uint32, base unsafe.Pointer) int {
	if to, from, a, b := operands(L, code); to != nil {
		*to = from.value(a + b)
		return 0
	}
	return plain[lua.OP_ADD](L, code, base)
}

func sub(L *lua.LState, code uint32, base unsafe.Pointer) int {
	if to, from, a, b := operands(L, code); to != nil {
		*to = from.value(a - b)
		return 0
	}
	return plain[lua.OP_SUB](L, code, base)
}

func mul(L *lua.LState, code uint32, base unsafe.Pointer) int {
	if to, from, a, b := operands(L, code); to != nil {
		*to = from.value(a * b)
		return 0
	}
	return plain[lua.OP_MUL](L, code, base)
}

func div(L *lua.LState, code uint32, base unsafe.Pointer) int {
	if to, from, a, b := operands(L, code); to != nil {
		*to = from.value(a / b)
		return 0
	}
	return plain[lua.OP_DIV](L, code, base)
}

func mod(L *lua.LState, code uint32, base unsafe.Pointer) int {
	if to, from, a, b := operands(L, code); to != nil {
		*to = from.value(lua.LNumber(modulo(float64(a), float64(b))))
		return 0
	}
	return plain[lua.OP_MOD](L, code, base)
}

func pow(L *lua.LState, code uint32, base unsafe.Pointer) int {
	if to, from, a, b := operands(L, code); to != nil {
		*to = from.value(lua.LNumber(math.Pow(float64(a), float64(b))))
		return 0
	}
	return plain[lua.OP_POW](L, code, base)
}

package lua51

import (
	"fmt"
	"regexp"
	"strconv"
	"strings"

	lua "github.com/yuin/gopher-lua"
)

// worded is the text of an error as Lua 5.1 words it: gopher-lua's machine says neither which variable was nil nor
// where a Go function's caller is. It is asked while the frames of the failed call are there.
func worded(s *State, L *lua.LState, text string) string {
	f, ok := frameIn(current(L))
	if !ok {
		return text
	}
	if !f.isGo() {
		if message, ok := strings.CutPrefix(text, f.place()); ok {
			e := &engineError{s: s, L: L, p: functionAt(L, 0).Proto, pc: f.pc()}
			return f.place() + e.worded(message)
		}
		return text
	}
	message, ok := strings.CutPrefix(text, placeGiven(L))
	if !ok {
		return text
	}
	caller, called := f.parent()
	if m := badArgument.FindStringSubmatch(message); m != nil {
		n, _ := strconv.Atoi(m[1])
		as := variable{}
		if called {
			as = calledBy(L, caller)
		}
		message = argumentError(as, n, got(s, L, n, m[2]))
	} else if message, ok := wordedInGo(s, L, message); ok {
		return message
	}
	if called {
		return caller.place() + message
	}
	return message
}

// placeGiven is how gopher-lua begins the message of an error that a Go function raises: with the innermost line that
// it finds on the thread.
func placeGiven(L *lua.LState) string {
	for no := 0; ; no++ {
		dbg, ok := L.GetStack(no)
		if !ok {
			return " "
		}
		fn, err := L.GetInfo("fl", dbg, lua.LNil)
		if f, ok := fn.(*lua.LFunction); err == nil && ok && !f.IsG {
			return fmt.Sprintf("%s:%d: ", f.Proto.SourceName, dbg.CurrentLine)
		}
	}
}

// badArgument is what gopher-lua says of an argument.
var badArgument = regexp.MustCompile(`(?s)^bad argument #(\d+) to .*? \((.*)\)$`)

// argumentError says what is wrong with an argument of a function that was called as something.
func argumentError(as variable, n int, message string) string {
	if as.name == "" {
		as.name = "?"
	}
	if as.kind == "method" {
		if n--; n == 0 {
			return fmt.Sprintf("calling '%s' on bad self (%s)", as.name, message)
		}
	}
	return fmt.Sprintf("bad argument #%d to '%s' (%s)", n, as.name, message)
}

// got is what is wrong with an argument, with the type that a host calls it.
func got(s *State, L *lua.LState, n int, message string) string {
	expected, _, ok := strings.Cut(message, " expected, got ")
	switch {
	case !ok:
		return message
	case n >= L.GetTop(): // the message is on top
		return expected + " expected, got no value"
	}
	return expected + " expected, got " + typeName(s, L.Get(n))
}

// typeName is the name of a value's type in messages.
func typeName(s *State, v lua.LValue) string {
	if ud, ok := v.(*lua.LUserData); ok && s.opt.TypeName != nil {
		if name := s.opt.TypeName(ud); name != "" {
			return name
		}
	}
	return v.Type().String()
}

// value is what messages call a value of a type.
func aValue(typeName string) string {
	if strings.ContainsAny(typeName[:1], "aeiou") && typeName != lua.LTUserData.String() { // which Lua speaks with a y
		return "an " + typeName + " value"
	}
	return "a " + typeName + " value"
}

// What gopher-lua's machine says of operations that cannot be.
var (
	cannotIndex   = regexp.MustCompile(`(?s)^attempt to index a non-table object\((\w+)\) with key '.*'$`)
	cannotCompute = regexp.MustCompile(`^cannot perform (\w+) operation between (\w+) and (\w+)$`)
	cannotCompare = regexp.MustCompile(`^attempt to compare (\w+) with (\w+)$`)
	others        = map[string]string{
		"registry overflow":               "stack overflow",
		"too many recursions in gettable": "loop in gettable",
		"too many recursions in settable": "loop in settable",
	}
)

const (
	cannotCall   = "attempt to call a non-function object"
	cannotNegate = "__unm undefined"
	hasNoLength  = "__len undefined"
	forStatement = "for statement "
)

// raiseAtCaller raises the error of an operation that a Go function does for the Lua function that has called it: that
// something cannot be done with a value, which the program calls as tells.
func raiseAtCaller(L *lua.LState, what string, v lua.LValue, as func(caller frame) variable) {
	s := stateOf(L)
	e := &engineError{s: s, L: L}
	f, _ := frameIn(current(L))
	if caller, ok := f.parent(); ok && !caller.isGo() {
		s.throw(L, lua.LString(caller.place()+e.say(what, v, as(caller))))
	}
	s.throw(L, lua.LString(e.say(what, v, variable{})))
}

// argumentOf is what a program calls the first argument of the call that is under way in a Lua function's frame.
func argumentOf(L *lua.LState, f frame) variable {
	p, pc := functionOf(L, f).Proto, f.pc()
	return variableIn(p, decode(p.Code[pc]).a+1, pc)
}

// wordedInGo words what the machine says of an operation that a Go function does: it knows only the types, and no line;
// false: it is no such message.
func wordedInGo(s *State, L *lua.LState, message string) (string, bool) {
	if m := cannotIndex.FindStringSubmatch(message); m != nil {
		return "attempt to index " + aValue(m[1]), true
	}
	if m := cannotCompute.FindStringSubmatch(message); m != nil {
		wrong := m[2]
		if wrong == "number" || m[1] == "concat" && wrong == "string" {
			wrong = m[3]
		}
		return "attempt to " + verbOf(m[1]) + " " + aValue(wrong), true
	}
	if m := cannotCompare.FindStringSubmatch(message); m != nil {
		return compared(m[1], m[2]), true
	}
	if message == cannotCall && functionAt(L, 0) == s.bottom {
		return "attempt to call " + aValue(typeName(s, L.Get(1))), true
	}
	text, ok := others[message]
	return text, ok
}

func verbOf(operation string) string {
	if operation == "concat" {
		return "concatenate"
	}
	return "perform arithmetic on"
}

func compared(a, b string) string {
	if a == b {
		return "attempt to compare two " + a + " values"
	}
	return "attempt to compare " + a + " with " + b
}

// engineError words an error of the instruction that a Lua function runs.
type engineError struct {
	s  *State
	L  *lua.LState
	p  *lua.FunctionProto
	pc int
}

func (e *engineError) worded(message string) string {
	in := decode(e.p.Code[e.pc])
	switch {
	case cannotIndex.MatchString(message):
		return e.index(in)
	case message == cannotCall:
		return e.call(in)
	case cannotCompute.MatchString(message) && in.op == lua.OP_CONCAT:
		return e.concatenation(in, message)
	case cannotCompute.MatchString(message):
		return e.arithmetic(in.b, in.c)
	case message == cannotNegate:
		return e.arithmetic(in.b, in.b)
	case message == hasNoLength:
		return e.operand("get length of", in.b)
	case cannotCompare.MatchString(message) && (in.op == lua.OP_LT || in.op == lua.OP_LE):
		a, _ := e.value(in.b)
		b, _ := e.value(in.c)
		return compared(typeName(e.s, a), typeName(e.s, b))
	case strings.HasPrefix(message, forStatement):
		return e.loop(in)
	}
	if text, ok := others[message]; ok {
		return text
	}
	return message
}

// value is an operand, and what the program calls it.
func (e *engineError) value(operand int) (lua.LValue, variable) {
	if v := constantOf(e.p, operand); v != nil {
		return v, variable{}
	}
	return e.L.Get(operand + 1), e.variable(operand)
}

// variable is what the program calls an operand.
func (e *engineError) variable(operand int) variable {
	if constantOf(e.p, operand) != nil {
		return variable{}
	}
	return variableIn(e.p, operand, e.pc)
}

// operand says that something cannot be done with an operand.
func (e *engineError) operand(what string, operand int) string {
	v, as := e.value(operand)
	return e.say(what, v, as)
}

func (e *engineError) say(what string, v lua.LValue, as variable) string {
	value := aValue(typeName(e.s, v))
	if as.kind == "" {
		return "attempt to " + what + " " + value
	}
	return fmt.Sprintf("attempt to %s %s '%s' (%s)", what, as.kind, as.name, value)
}

// index is of reading or setting a field.
func (e *engineError) index(in instruction) string {
	object, event := in.b, "__index"
	var v lua.LValue
	var as variable
	switch in.op {
	case lua.OP_SETTABLE, lua.OP_SETTABLEKS:
		object, event = in.a, "__newindex"
		fallthrough
	case lua.OP_GETTABLE, lua.OP_GETTABLEKS, lua.OP_SELF:
		v, as = e.value(object)
	case lua.OP_SETGLOBAL:
		event = "__newindex"
		fallthrough
	default:
		v = functionAt(e.L, 0).Env
	}
	for range lua.MaxTableGetLoop { // through metatables: what these lead to has no name
		next := e.L.GetMetaField(v, event)
		if next == lua.LNil {
			break
		}
		v, as = next, variable{}
	}
	return e.say("index", v, as)
}

// call is of a call, or of the iterator of a loop.
func (e *engineError) call(in instruction) string {
	as := variable{}
	if in.op == lua.OP_CALL || in.op == lua.OP_TAILCALL {
		as = setIn(e.p, in.a, e.pc)
	}
	return e.say("call", e.L.Get(in.a+1), as)
}

// arithmetic names the first operand that is no number.
func (e *engineError) arithmetic(b, c int) string {
	x, as := e.value(b)
	if isNumber(x) {
		x, as = e.value(c)
	}
	return e.say("perform arithmetic on", x, as)
}

// arithmeticError is the message of a metamethod of strings, which the instruction of its caller's has called.
func arithmeticError(s *State, L *lua.LState, a, b lua.LValue) string {
	e := &engineError{s: s, L: L}
	as, operand := variable{}, 0
	f, _ := frameIn(current(L))
	caller, ok := f.parent()
	if ok && !caller.isGo() {
		e.p, e.pc = functionOf(L, caller).Proto, caller.pc()
		in := decode(e.p.Code[e.pc])
		operand = in.b
		if isNumber(a) {
			operand = in.c
		}
		switch in.op {
		case lua.OP_ADD, lua.OP_SUB, lua.OP_MUL, lua.OP_DIV, lua.OP_MOD, lua.OP_POW, lua.OP_UNM:
			as = e.variable(operand)
		}
	}
	if isNumber(a) {
		a = b
	}
	message := e.say("perform arithmetic on", a, as)
	if ok {
		return caller.place() + message
	}
	return message
}

func isNumber(v lua.LValue) bool {
	_, ok := operandNumber(v)
	return ok
}

// concatenation finds the operand that is neither text nor number, from the right, past those with a metamethod.
func (e *engineError) concatenation(in instruction, message string) string {
	joins := func(v lua.LValue) bool { return lua.LVCanConvToString(v) }
	right := in.c
	for left := in.c - 1; left >= in.b; left-- {
		x, _ := e.value(left)
		y, _ := e.value(right)
		if joins(x) && (joins(y) || right != left+1) { // what was joined is text
			continue
		}
		if e.L.GetMetaField(x, "__concat") != lua.LNil || e.L.GetMetaField(y, "__concat") != lua.LNil {
			break
		}
		if joins(x) {
			return e.operand("concatenate", right)
		}
		return e.operand("concatenate", left)
	}
	m := cannotCompute.FindStringSubmatch(message)
	wrong := m[2]
	if wrong == "string" || wrong == "number" {
		wrong = m[3]
	}
	return "attempt to concatenate " + aValue(wrong)
}

// loop is of the numbers of a loop.
func (e *engineError) loop(in instruction) string {
	for i, what := range []string{"initial value", "limit", "step"} {
		if v := e.L.Get(in.a + i + 1); v.Type() != lua.LTNumber {
			return "'for' " + what + " must be a number"
		}
	}
	return "'for' step must be a number"
}

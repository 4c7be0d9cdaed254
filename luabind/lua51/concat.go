package lua51

import (
	"math"

	lua "github.com/yuin/gopher-lua"
	"github.com/yuin/gopher-lua/ast"
)

// gopher-lua's machine writes numbers as Go does when it joins texts: 1e+08 for a hundred million and a half. So what
// is joined passes a function first, which makes texts of numbers that Lua writes otherwise.

// What stands for functions in a chunk until it is compiled. No text that is source is equal.
const (
	joinsNumber = "(joins\x00number)"
	loopsNumber = "(loops\x00number)" // makes numbers of texts, which gopher-lua's loops refuse
)

// joined is an operand of `..`.
func (m *mender) joined(e ast.Expr) ast.Expr {
	switch e := e.(type) {
	case *ast.StringExpr, *ast.StringConcatOpExpr:
		return e
	case *ast.NumberExpr:
		if n, ok := readNumber(e.Value, 10); ok && n != 0 { // 0 and -0 are one constant
			text := &ast.StringExpr{Value: numberText(n)}
			text.SetLine(e.Line())
			return text
		}
	}
	m.calls = true
	return calling(joinsNumber, e)
}

// bound is the first value of a loop over numbers, its limit or its step.
func (m *mender) bound(e ast.Expr) ast.Expr {
	switch e.(type) {
	case *ast.NumberExpr, *ast.ArithmeticOpExpr, *ast.UnaryMinusOpExpr, *ast.UnaryLenOpExpr:
		return e
	}
	m.calls = true
	return calling(loopsNumber, e)
}

// calling is a call of a function, for which a text stands, with one value.
func calling(name string, e ast.Expr) ast.Expr {
	e = oneValue(e)
	function := &ast.StringExpr{Value: name}
	function.SetLine(e.Line())
	call := &ast.FuncCallExpr{Func: function, Args: []ast.Expr{e}, AdjustRet: true}
	call.SetLine(e.Line())
	return call
}

// putFunctions puts functions of all states into a chunk, where texts stand for them.
func putFunctions(p *lua.FunctionProto) {
	for i, v := range p.Constants {
		switch v {
		case lua.LString(seesCall):
			p.Constants[i] = callSeer
		case lua.LString(seesName):
			p.Constants[i] = nameSeer
		case lua.LString(joinsNumber):
			p.Constants[i] = joiner
		case lua.LString(loopsNumber):
			p.Constants[i] = looper
		}
	}
	for _, inner := range p.FunctionPrototypes {
		putFunctions(inner)
	}
}

// joiner is the function that what is joined passes.
var joiner = &lua.LFunction{IsG: true, Env: &lua.LTable{}, GFunction: func(L *lua.LState) int {
	if n, ok := L.Get(1).(lua.LNumber); ok && !alike(float64(n)) {
		L.Push(lua.LString(numberText(n)))
	}
	return 1
}}

// looper is the function that bounds of loops pass.
var looper = &lua.LFunction{IsG: true, Env: &lua.LTable{}, GFunction: func(L *lua.LState) int {
	if text, ok := L.Get(1).(lua.LString); ok {
		if n, ok := readNumber(string(text), 10); ok {
			L.Push(n)
		}
	}
	return 1
}}

// alike reports whether Go and Lua write a number alike, as they do short whole ones.
func alike(v float64) bool {
	const few = 1e14
	return v > -few && v < few && v == math.Trunc(v) && (v != 0 || !math.Signbit(v))
}

// passed is the register that the value was in which joiner has given in another, by a call; -1: it was another
// function's call.
func passed(p *lua.FunctionProto, register, call int) int {
	for pc := call - 1; pc >= 0; pc-- {
		in := decode(p.Code[pc])
		if in.op == lua.OP_LOADK && in.a == register {
			if p.Constants[in.bx] == lua.LValue(joiner) {
				return register + 1
			}
			return -1
		}
		if in.a == register && in.sets(register) {
			return -1
		}
	}
	return -1
}

package lua51

import (
	lua "github.com/yuin/gopher-lua"
	"github.com/yuin/gopher-lua/ast"
)

// The methods of embedded code check what they are called on: the body of function C:f(...) begins with a call of a
// function of the host, with self, C, and the names C and f. That function is a local variable around the chunk that no
// program can name.
const checkName = "(check)"

// main is the function of a text that was compiled so, whose methods call check.
func main(L *lua.LState, proto *lua.FunctionProto, env *lua.LTable, check *lua.LFunction) *lua.LFunction {
	around := L.NewFunctionFromProto(proto)
	around.Env = env
	L.Push(around)
	L.Push(check)
	L.Call(1, 1)
	chunk := L.Get(-1).(*lua.LFunction)
	L.Pop(1)
	return chunk
}

// withCheck makes of a chunk
//
//	local check = ...; return function(...) chunk end
func withCheck(chunk []ast.Stmt) []ast.Stmt {
	all := &ast.Comma3Expr{}
	main := &ast.FunctionExpr{ParList: &ast.ParList{HasVargs: true}, Stmts: chunk}
	return []ast.Stmt{
		&ast.LocalAssignStmt{Names: []string{checkName}, Exprs: []ast.Expr{all}},
		&ast.ReturnStmt{Exprs: []ast.Expr{main}},
	}
}

// checkSelf puts the call of the check before the body of function C:f(...).
func checkSelf(s *ast.FuncDefStmt) {
	line := s.Line()
	class := "self"
	if v, ok := s.Name.Receiver.(*ast.IdentExpr); ok {
		class = v.Value
	}
	text := func(v string) ast.Expr {
		e := &ast.StringExpr{Value: v}
		e.SetLine(line)
		return e
	}
	call := &ast.FuncCallExpr{Func: identifier(checkName, line),
		Args: []ast.Expr{identifier("self", line), s.Name.Receiver, text(class), text(s.Name.Method)}}
	call.SetLine(line)
	first := &ast.FuncCallStmt{Expr: call}
	first.SetLine(line)
	s.Func.Stmts = append([]ast.Stmt{first}, s.Func.Stmts...)
}

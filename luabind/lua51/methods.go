package lua51

import (
	"context"
	"io"

	lua "github.com/yuin/gopher-lua"
	"github.com/yuin/gopher-lua/ast"
)

// The check of methods is a local variable around the chunk that no program can name.
const checkName = "(check)"

// CompileMethods is Compile of a text whose methods check what they are called on: the body of function C:f(...) begins
// with a call of a function of the host, with self, C, and the names C and f. Main makes the text's function.
func CompileMethods(src io.Reader, name string) (*lua.FunctionProto, error) {
	return compile(context.Background(), src, name, 0, &mender{methods: true})
}

// Main is the function of a text that CompileMethods has compiled, whose methods call check.
func Main(L *lua.LState, proto *lua.FunctionProto, check *lua.LFunction) *lua.LFunction {
	L.Push(L.NewFunctionFromProto(proto))
	L.Push(check)
	L.Call(1, 1)
	main := L.Get(-1).(*lua.LFunction)
	L.Pop(1)
	return main
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

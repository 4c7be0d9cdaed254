package lua51

import (
	"slices"

	"github.com/yuin/gopher-lua/ast"
)

// contains reports whether a statement or expression, or one within it, is what is asked for.
func contains(n any, is func(any) bool) bool {
	if n == nil {
		return false
	}
	return is(n) || slices.ContainsFunc(children(n), func(p any) bool { return contains(p, is) })
}

// children are the statements and expressions of which a statement or an expression consists.
func children(n any) (out []any) {
	exprs := func(list ...ast.Expr) {
		for _, e := range list {
			if e != nil {
				out = append(out, e)
			}
		}
	}
	block := func(list []ast.Stmt) {
		for _, s := range list {
			out = append(out, s)
		}
	}
	switch n := n.(type) {
	case *ast.AssignStmt:
		exprs(n.Lhs...)
		exprs(n.Rhs...)
	case *ast.LocalAssignStmt:
		exprs(n.Exprs...)
	case *ast.FuncCallStmt:
		exprs(n.Expr)
	case *ast.DoBlockStmt:
		block(n.Stmts)
	case *ast.WhileStmt:
		exprs(n.Condition)
		block(n.Stmts)
	case *ast.RepeatStmt:
		block(n.Stmts)
		exprs(n.Condition)
	case *ast.IfStmt:
		exprs(n.Condition)
		block(n.Then)
		block(n.Else)
	case *ast.NumberForStmt:
		exprs(n.Init, n.Limit, n.Step)
		block(n.Stmts)
	case *ast.GenericForStmt:
		exprs(n.Exprs...)
		block(n.Stmts)
	case *ast.FuncDefStmt:
		exprs(n.Name.Func, n.Name.Receiver, n.Func)
	case *ast.ReturnStmt:
		exprs(n.Exprs...)
	case *ast.FunctionExpr:
		block(n.Stmts)
	case *ast.AttrGetExpr:
		exprs(n.Object, n.Key)
	case *ast.TableExpr:
		for _, f := range n.Fields {
			exprs(f.Key, f.Value)
		}
	case *ast.FuncCallExpr:
		exprs(n.Func, n.Receiver)
		exprs(n.Args...)
	case *ast.LogicalOpExpr:
		exprs(n.Lhs, n.Rhs)
	case *ast.RelationalOpExpr:
		exprs(n.Lhs, n.Rhs)
	case *ast.StringConcatOpExpr:
		exprs(n.Lhs, n.Rhs)
	case *ast.ArithmeticOpExpr:
		exprs(n.Lhs, n.Rhs)
	case *ast.UnaryMinusOpExpr:
		exprs(n.Expr)
	case *ast.UnaryNotOpExpr:
		exprs(n.Expr)
	case *ast.UnaryLenOpExpr:
		exprs(n.Expr)
	}
	return out
}

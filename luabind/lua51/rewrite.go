package lua51

import (
	"fmt"
	"slices"

	"github.com/yuin/gopher-lua/ast"
)

// assignment mends an assignment. gopher-lua computes a value in the register of the local variable that gets it; there
// the values after it, and the rest of a chain of `and` and `or`, find it in place of the old value (440), and a call
// in parentheses lays its arguments there. It also miscounts registers where fields and other variables get values at
// once. So every assignment but that of one plain value goes through locals of its own.
func assignment(a *ast.AssignStmt) ast.Stmt {
	if len(a.Lhs) > 1 || len(a.Rhs) > 1 {
		return together(a)
	}
	if _, ok := a.Lhs[0].(*ast.IdentExpr); !ok {
		return a
	}
	switch value := a.Rhs[0].(type) {
	case *ast.LogicalOpExpr:
		return together(a)
	case *ast.FuncCallExpr:
		value.AdjustRet = false // one value it is without parentheses, too
	}
	return a
}

// together makes of `a, t[i()] = 1, 2`
//
//	do local k, v, w = i(), 1, 2; t[k] = w; a = v end
func together(a *ast.AssignStmt) ast.Stmt {
	assigned := map[string]bool{}
	for _, l := range a.Lhs {
		if v, ok := l.(*ast.IdentExpr); ok {
			assigned[v.Value] = true
		}
	}
	quiet := !slices.ContainsFunc(a.Rhs, calls)
	first := &ast.LocalAssignStmt{}
	first.SetLine(a.Line())
	local := func(e ast.Expr, line int) ast.Expr {
		name := fmt.Sprintf("(value %d)", len(first.Names)+1)
		first.Names = append(first.Names, name)
		if e != nil {
			first.Exprs = append(first.Exprs, e)
		}
		return identifier(name, line)
	}
	early := func(e ast.Expr) ast.Expr {
		if v, ok := e.(*ast.IdentExpr); ok && quiet && !assigned[v.Value] {
			return e
		}
		if _, constant := constantTruth(e); constant {
			return e
		}
		return local(e, e.Line())
	}
	for _, l := range a.Lhs {
		if get, ok := l.(*ast.AttrGetExpr); ok {
			get.Object, get.Key = early(get.Object), early(get.Key)
		}
	}
	do := &ast.DoBlockStmt{Stmts: []ast.Stmt{first}}
	for _, l := range a.Lhs {
		set := &ast.AssignStmt{Lhs: []ast.Expr{l}, Rhs: []ast.Expr{local(nil, l.Line())}}
		set.SetLine(l.Line())
		do.Stmts = append(do.Stmts, set)
	}
	slices.Reverse(do.Stmts[1:])
	first.Exprs = append(first.Exprs, a.Rhs...)
	do.SetLine(a.Line())
	do.SetLastLine(a.LastLine())
	return do
}

// outsideItself hides the variable of `local f = function ... end` from the function: gopher-lua compiles it as it does
// `local function f`. Only the parser's last line tells the two apart.
func outsideItself(a *ast.LocalAssignStmt) {
	if len(a.Names) != 1 || len(a.Exprs) != 1 || a.LastLine() != 0 {
		return
	}
	if f, ok := a.Exprs[0].(*ast.FunctionExpr); ok && mentions(f, a.Names[0]) {
		a.Names = append(a.Names, "(not used)") // its single variable is what makes it one
	}
}

// iterators computes the start values of a loop over an iterator in locals of their own, unless they come from a call
// of a named function: gopher-lua has reserved the loop's registers by then, and lays the arguments over a function
// that is itself the result of a call.
func iterators(s *ast.GenericForStmt) ast.Stmt {
	first := s.Exprs[0]
	if call, ok := first.(*ast.FuncCallExpr); ok {
		if call.Func != nil && !calls(call.Func) || call.Func == nil && !calls(call.Receiver) {
			return s
		}
	}
	if !calls(first) {
		return s
	}
	start := &ast.LocalAssignStmt{Names: []string{"(generator)", "(state)", "(control)"}, Exprs: s.Exprs}
	start.SetLine(s.Line())
	s.Exprs = nil
	for _, name := range start.Names {
		s.Exprs = append(s.Exprs, identifier(name, s.Line()))
	}
	s.Names = iteratorNames(s)
	do := &ast.DoBlockStmt{Stmts: []ast.Stmt{start, s}}
	do.SetLine(s.Line())
	do.SetLastLine(s.LastLine())
	return do
}

// closedByBreak makes `break` close the captured variables of the blocks it leaves. gopher-lua looks at the loop's own
// block only; so that block gets a captured variable.
func closedByBreak(body []ast.Stmt, line int) []ast.Stmt {
	if !slices.ContainsFunc(body, func(s ast.Stmt) bool { return breaks(s) && contains(s, isFunction) }) {
		return body
	}
	return append(captured(line), body...)
}

// leaving makes `goto` close the captured variables of the blocks it leaves, and no others. gopher-lua closes all
// variables of the function, unless the block of the goto, or one around it, has a captured variable.
func leaving(s *ast.GotoStmt) ast.Stmt {
	do := &ast.DoBlockStmt{Stmts: append(captured(s.Line()), s)}
	do.SetLine(s.Line())
	do.SetLastLine(s.Line())
	return do
}

// captured is `local v; if false then local f = function() return v end end`: a variable of its block for which
// gopher-lua closes the block's variables.
func captured(line int) []ast.Stmt {
	const name = "(captured)"
	variable := &ast.LocalAssignStmt{Names: []string{name}}
	variable.SetLine(line)
	get := &ast.ReturnStmt{Exprs: []ast.Expr{identifier(name, line)}}
	get.SetLine(line)
	fn := &ast.FunctionExpr{ParList: &ast.ParList{}, Stmts: []ast.Stmt{get}}
	fn.SetLine(line)
	capture := &ast.LocalAssignStmt{Names: []string{"(capture)"}, Exprs: []ast.Expr{fn}}
	capture.SetLine(line)
	never := &ast.IfStmt{Condition: boolean(false, line), Then: []ast.Stmt{capture}}
	never.SetLine(line)
	return []ast.Stmt{variable, never}
}

// breaks reports whether a statement of a loop's body holds a `break` of that loop in a block of its own.
func breaks(s ast.Stmt) bool {
	in := func(block []ast.Stmt) bool {
		return slices.ContainsFunc(block, func(s ast.Stmt) bool {
			_, ok := s.(*ast.BreakStmt)
			return ok || breaks(s)
		})
	}
	switch s := s.(type) {
	case *ast.DoBlockStmt:
		return in(s.Stmts)
	case *ast.IfStmt:
		return in(s.Then) || in(s.Else)
	}
	return false
}

// itemsPerFlush is how many positional items of a table constructor gopher-lua keeps in registers, then stores.
const itemsPerFlush = 50

// betweenFlushes orders the fields of a table constructor so that a positional item follows each full batch. After a
// field with a key gopher-lua stores the last batch again, from registers that the field's value has overwritten, and
// it stores the results of a last call over the batch. So fields with keys come before the item that fills a batch, and
// a last call gets that item as its first result.
func betweenFlushes(in []*ast.Field) []*ast.Field {
	out := make([]*ast.Field, 0, len(in))
	items, full := 0, -1 // full: where the item is that filled a batch, if only fields with keys came after it
	for i, f := range in {
		switch {
		case f.Key != nil && full >= 0:
			out = slices.Insert(out, full, f)
			full++
			continue
		case f.Key != nil:
		case full >= 0 && i == len(in)-1 && manyValues(f.Value):
			out[full].Value = prepended(out[full].Value, f.Value)
			continue
		default:
			full = -1
			if items++; items%itemsPerFlush == 0 {
				full = len(out)
			}
		}
		out = append(out, f)
	}
	return out
}

// prepended is (function(...) return ... end)(first, rest).
func prepended(first, rest ast.Expr) ast.Expr {
	all := &ast.Comma3Expr{}
	all.SetLine(first.Line())
	give := &ast.ReturnStmt{Exprs: []ast.Expr{all}}
	give.SetLine(first.Line())
	fn := &ast.FunctionExpr{ParList: &ast.ParList{HasVargs: true}, Stmts: []ast.Stmt{give}}
	fn.SetLine(first.Line())
	call := &ast.FuncCallExpr{Func: fn, Args: []ast.Expr{first, rest}}
	call.SetLine(first.Line())
	return call
}

func identifier(name string, line int) ast.Expr {
	e := &ast.IdentExpr{Value: name}
	e.SetLine(line)
	return e
}

func isFunction(n any) bool { _, ok := n.(*ast.FunctionExpr); return ok }

// calls reports whether computing e calls a function or takes `...`.
func calls(e ast.Expr) bool {
	return contains(e, func(n any) bool {
		switch n.(type) {
		case *ast.FuncCallExpr, *ast.Comma3Expr:
			return true
		}
		return false
	})
}

// mentions reports whether a function names a variable, its own of that name included.
func mentions(f *ast.FunctionExpr, name string) bool {
	return contains(f, func(n any) bool {
		v, ok := n.(*ast.IdentExpr)
		return ok && v.Value == name
	})
}

package lua51

import (
	"context"

	lua "github.com/yuin/gopher-lua"
	"github.com/yuin/gopher-lua/ast"
)

// What stands for the functions that see conditions, in a chunk until it is compiled. No text that is source is equal.
const (
	seesCall = "(sees\x00call)"
	seesName = "(sees\x00name)"
)

// conditions makes a chunk show what its conditions are. Only those can be what the host looks for that are calls, or
// names and fields that the chunk gives the result of a call somewhere: the others stay as quick as they are.
type conditions struct {
	fromCalls map[string]bool // names and fields
	sure      string          // the module whose functions never give nil
}

// newConditions looks where the names and fields of a chunk get their values, until the context is done. The chunk
// may be nested deeper than the stack reaches.
func newConditions(ctx context.Context, chunk []ast.Stmt, sure string) *conditions {
	c := &conditions{map[string]bool{}, sure}
	var left []any
	for _, s := range chunk {
		left = append(left, s)
	}
	for seen := 0; len(left) > 0; seen++ {
		if seen%pollEvery == 0 && ctx.Err() != nil {
			break // which the compiler says
		}
		n := left[len(left)-1]
		left = append(left[:len(left)-1], children(n)...)
		c.note(n)
	}
	return c
}

// note notes the names that a statement or constructor gives values of calls.
func (c *conditions) note(n any) {
	switch n := n.(type) {
	case *ast.AssignStmt:
		for i, l := range n.Lhs {
			if name := nameOf(l); name != "" {
				c.given(name, n.Rhs, i)
			}
		}
	case *ast.LocalAssignStmt:
		for i, name := range n.Names {
			c.given(name, n.Exprs, i)
		}
	case *ast.TableExpr:
		for _, f := range n.Fields {
			if key, ok := f.Key.(*ast.StringExpr); ok {
				c.given(key.Value, []ast.Expr{f.Value}, 0)
			}
		}
	}
}

// given notes that a name gets value i of a list of expressions, if that comes from a call.
func (c *conditions) given(name string, values []ast.Expr, i int) {
	if len(values) == 0 {
		return
	}
	if fromCall(values[min(i, len(values)-1)]) {
		c.fromCalls[name] = true
	}
}

// fromCall reports whether a value is that of a call, or may be.
func fromCall(e ast.Expr) bool {
	switch e.(type) {
	case *ast.FuncCallExpr, *ast.LogicalOpExpr:
		return true
	}
	return false
}

// nameOf is the name of a variable or field, or "".
func nameOf(e ast.Expr) string {
	switch e := e.(type) {
	case *ast.IdentExpr:
		return e.Value
	case *ast.AttrGetExpr:
		if key, ok := e.Key.(*ast.StringExpr); ok {
			return key.Value
		}
	}
	return ""
}

// operand is the left operand of `and` or `or`, which shows itself.
func (c *conditions) operand(of *ast.LogicalOpExpr) ast.Expr {
	if c == nil {
		return of.Lhs
	}
	switch left := of.Lhs.(type) {
	case *ast.LogicalOpExpr:
		return left // its own operands show themselves
	case *ast.FuncCallExpr:
		if of.Operator == "or" && root(left.Func) != c.sure {
			return c.showing(seesName, left)
		}
	}
	return c.shown(of.Lhs)
}

// root is the name that a function's expression begins with: mx of mx.fast.f.
func root(e ast.Expr) string {
	for {
		switch x := e.(type) {
		case *ast.AttrGetExpr:
			e = x.Object
		case *ast.IdentExpr:
			return x.Value
		default:
			return ""
		}
	}
}

// shown is a condition that shows itself. Of `and` and `or` the operands are conditions of their own; a comparison
// gives nothing to look at.
func (c *conditions) shown(e ast.Expr) ast.Expr {
	if c == nil {
		return e
	}
	sees := seesName
	switch e := e.(type) {
	case *ast.FuncCallExpr:
		if seen, ok := e.Func.(*ast.StringExpr); ok && (seen.Value == seesCall || seen.Value == seesName) {
			return e
		}
		sees = seesCall
	case *ast.LogicalOpExpr:
		if left, ok := e.Lhs.(*ast.LogicalOpExpr); ok {
			e.Lhs = c.shown(left)
		}
		e.Rhs = c.shown(e.Rhs) // a left side that is no `and` or `or` is shown, as that of any
		return e
	case *ast.IdentExpr, *ast.AttrGetExpr:
		if !c.fromCalls[nameOf(e)] {
			return e
		}
	default:
		return e
	}
	return c.showing(sees, e)
}

// showing is a call that gives one value of a condition, and shows it.
func (c *conditions) showing(sees string, e ast.Expr) ast.Expr {
	return calling(sees, e)
}

// The functions that see conditions, of all states: a chunk may be run by any.
var callSeer, nameSeer = seer(true), seer(false)

// seer is the function that sees conditions of a kind, and gives them back. What is no userdata it lets pass at once.
func seer(call bool) *lua.LFunction {
	return &lua.LFunction{IsG: true, Env: &lua.LTable{}, GFunction: func(L *lua.LState) int {
		if _, ok := L.Get(1).(*lua.LUserData); !ok {
			return 1
		}
		s := stateOf(L)
		if s == nil || s.opt.Condition == nil {
			return 1
		}
		return s.onCaller(func(L *lua.LState) int {
			s.opt.Condition(L.Get(1), call)
			return 1
		})(L)
	}}
}

// stateKey is where the registry of a state of gopher-lua has the State.
const stateKey = "lua51.State"

// stateOf is the State of a thread, or nil.
func stateOf(L *lua.LState) *State {
	ud, ok := L.G.Registry.RawGetString(stateKey).(*lua.LUserData)
	if !ok {
		return nil
	}
	s, _ := ud.Value.(*State)
	return s
}

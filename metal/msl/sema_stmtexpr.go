package msl

import "github.com/mlxlua/mlxlua/metal/kir"

// stmtExpr runs the statements of ({ ... }) and returns the value of the last one, if that is an expression. What jumps
// out of it leaves what it stands in.
func (g *gen) stmtExpr(x *StmtExpr) value {
	if g.em.unevaluated && g.fr != nil { // a return in what is not evaluated does not return
		fr := *g.fr
		saved := g.fr
		g.fr = &fr
		defer func() { g.fr = saved }()
	}
	list := x.Body.List
	var last *ExprStmt
	if n := len(list); n > 0 {
		if last, _ = list[n-1].(*ExprStmt); last != nil {
			list = list[:n-1]
		}
	}
	v, fl := voidValue, fNext
	body := g.em.inBlock(func() {
		defer g.push()()
		if fl = g.stmts(list, false); last == nil {
			return
		}
		value := func() {
			if v = g.expr(last.X); v.k != vVoid && v.k != vFuncs && !v.bad() {
				v = g.mem.rvalue(v)
			}
		}
		if fl == fNext {
			g.c.spend(last.Pos(), 1)
			value()
		} else {
			g.em.discard(value)
		}
	})
	g.em.at(x.Pos())
	if fl == fNext {
		if !g.em.exec {
			g.em.blk.Instrs = append(g.em.blk.Instrs, body.Instrs...)
		}
		return v
	}
	if g.em.exec {
		g.em.notConst("a jump out of statements in parentheses")
	}
	// What follows is never reached, but stands in one block with them.
	g.em.structured(&kir.Instr{Op: kir.If, Args: []*kir.Instr{g.em.instr(boolConst(true))}, Body: body})
	if v.k == vVoid || v.bad() {
		return v
	}
	return g.mem.zero(v.q.T)
}

package msl

import "github.com/mlxlua/mlxlua/metal/kir"

// stmtExpr runs the statements of ({ ... }) and returns the value of the last one, if that is an expression. What jumps
// out of it leaves what it stands in.
func (xs *expressions) stmtExpr(x *StmtExpr) value {
	if xs.em.unevaluated && xs.stmts.fr != nil { // a return in what is not evaluated does not return
		fr := *xs.stmts.fr
		saved := xs.stmts.fr
		xs.stmts.fr = &fr
		defer func() { xs.stmts.fr = saved }()
	}
	list := x.Body.List
	var last *ExprStmt
	if n := len(list); n > 0 {
		if last, _ = list[n-1].(*ExprStmt); last != nil {
			list = list[:n-1]
		}
	}
	v, fl := voidValue, fNext
	body := xs.em.inBlock(func() {
		defer xs.stmts.push()()
		if fl = xs.stmts.stmts(list, false); last == nil {
			return
		}
		value := func() {
			if v = xs.expr(last.X); v.k != vVoid && v.k != vFuncs && !v.bad() {
				v = xs.mem.rvalue(v)
			}
		}
		if fl == fNext {
			xs.c.spend(last.Pos(), 1)
			value()
		} else {
			xs.em.discard(value)
		}
	})
	xs.em.at(x.Pos())
	if fl == fNext {
		if !xs.em.exec {
			xs.em.blk.Instrs = append(xs.em.blk.Instrs, body.Instrs...)
		}
		return v
	}
	if xs.em.exec {
		xs.em.notConst("a jump out of statements in parentheses")
	}
	// What follows is never reached, but stands in one block with them.
	xs.em.structured(&kir.Instr{Op: kir.If, Args: []*kir.Instr{xs.em.instr(boolConst(true))}, Body: body})
	if v.k == vVoid || v.bad() {
		return v
	}
	return xs.mem.zero(v.q.T)
}

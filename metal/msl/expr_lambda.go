package msl

import (
	"reflect"

	"github.com/mlxlua/mlxlua/metal/kir"
)

// lambdaExpr makes a lambda's object. Captures by reference see the enclosing scope itself; by value, copies.
func (xs *expressions) lambdaExpr(x *LambdaExpr) value {
	xs.c.apple.refuse(x.Pos(), "lambdas are Metal 3.2's, and texts are Metal 3.1")
	e := &env{kind: envBlock, up: xs.res.env}
	for i := range x.Captures {
		c := &x.Captures[i]
		if c.Name == "this" {
			continue
		}
		var v value
		if c.Init != nil {
			v = xs.expr(c.Init)
		} else {
			ent := xs.res.lookup(c.Name)
			if ent == nil {
				xs.c.errorf(Undeclared, c.At, "'%s' is not declared", c.Name)
				continue
			}
			v = xs.entityValue(ent, &NameExpr{exprNode{Base{c.At}}, &Name{Base: Base{c.At}, NamePart: NamePart{Ident: c.Name}}})
			if c.ByRef {
				continue
			}
		}
		if v.bad() || c.ByRef {
			if !v.bad() {
				e.put(&entity{kind: eVar, name: c.Name, local: true, val: xs.mem.placed(v), isRef: true})
			}
			continue
		}
		xs.captureCopy(e, c.Name, v, !x.Mutable)
	}
	if x.ByValue {
		xs.captureUsed(e, x)
	}
	li := &lambdaInfo{x: x, env: e}
	decl := &FuncDecl{declNode: declNode{x.Base}, Name: &Name{Base: x.Base, NamePart: NamePart{Ident: "lambda"}}}
	decl.Params, decl.Body, decl.Ret = x.Params, x.Body, x.Ret
	li.fn = &funcEnt{decl: decl, env: e, lambda: li, ofUnit: true}
	cls := &classInfo{name: "lambda", lambda: li, state: 2, declared: true}
	cls.typ = &ctype{kind: tClass, class: cls, size: 1, align: 1}
	return value{k: vRight, q: qt(cls.typ)}
}

func (xs *expressions) captureCopy(e *env, name string, v value, fixed bool) {
	x := xs.mem.load(v)
	if x.k == vVoid || x.k == vFuncs {
		return
	}
	t := x.q.bare()
	t.Const = fixed
	e.put(&entity{kind: eVar, name: name, local: true, val: xs.mem.newLocal(name, t, x)})
}

// captureUsed copies the local variables that the body of a [=] lambda names.
func (xs *expressions) captureUsed(e *env, x *LambdaExpr) {
	seen := map[string]bool{}
	walkNames(reflect.ValueOf(x.Body), func(n string) {
		if seen[n] || e.own(n) != nil {
			return
		}
		seen[n] = true
		ent := xs.res.lookup(n)
		if ent == nil || ent.kind != eVar || !ent.local || !ent.val.isLvalue() || ent.val.q.Space.normal() != SpaceNone {
			return
		}
		if ent.val.k == vSlot && ent.val.obj.fixed || ent.val.q.T.kind == tArray {
			return
		}
		xs.captureCopy(e, n, ent.val, !x.Mutable)
	})
}

// stmtExpr runs the statements of ({ ... }) and returns the value of the last one, if that is an expression. What jumps
// out of it leaves what it stands in.
func (xs *expressions) stmtExpr(x *StmtExpr) value {
	if xs.em.unevaluated && xs.stmts.frame != nil { // a return in what is not evaluated does not return
		fr := *xs.stmts.frame
		saved := xs.stmts.frame
		xs.stmts.frame = &fr
		defer func() { xs.stmts.frame = saved }()
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

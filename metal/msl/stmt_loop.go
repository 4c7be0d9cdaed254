package msl

import (
	"github.com/mlxlua/mlxlua/metal/kir"
)

type loopParts struct {
	cond Expr
	v    *VarDecl
	post Expr
	body Stmt
	do   bool
	wish uint8
}

func (ss *statements) forStmt(s *ForStmt) flow {
	defer ss.push()()
	if s.Init != nil {
		ss.stmt(s.Init, false)
	}
	return ss.loop(loopParts{cond: s.Cond, v: s.Var, post: s.Post, body: s.Body, wish: s.Unroll})
}

// loop emits a loop, or in a constant evaluation runs it.
func (ss *statements) loop(p loopParts) flow {
	if ss.em.exec {
		return ss.execLoop(p)
	}
	defer ss.push()()
	ss.em.loops++
	defer func() { ss.em.loops-- }()
	in := &kir.Instr{Op: kir.Loop}
	if p.wish != wishNone {
		ss.em.hints.Unroll[in] = p.wish == wishUnroll
	}
	inner := &kir.Instr{Op: kir.BlockOp} // continue leaves it, to reach what follows the body
	js := &jumpScope{brk: in, cont: inner}
	if p.post == nil && !p.do {
		js.cont = in
	}
	endless := false
	kp := ss.em.kirPos
	test := func() {
		var c operand
		switch {
		case p.v != nil:
			c = ss.condVar(p.v)
		case p.cond != nil:
			c = ss.conv.condition(ss.exprs.expr(p.cond), p.cond.Pos())
		default:
			c = boolConst(true)
		}
		if c.isConst() && c.bits != 0 {
			endless = true
			return
		}
		if c.isConst() {
			ss.em.breakTo(in)
			return
		}
		out := ss.em.inBlock(func() { ss.em.breakTo(in) })
		ss.em.structured(&kir.Instr{Op: kir.If, Args: []*kir.Instr{ss.em.instr(ss.em.not(c))}, Body: out})
	}
	in.Body = ss.nested(func() {
		if !p.do {
			test()
		}
		ss.labels = append(ss.labels, js)
		body := ss.nested(func() { ss.scoped(p.body, false) })
		ss.labels = ss.labels[:len(ss.labels)-1]
		if js.contd && js.cont == inner {
			inner.Body = body
			ss.em.structured(inner)
		} else {
			ss.em.blk.Instrs = append(ss.em.blk.Instrs, body.Instrs...)
		}
		if p.post != nil {
			ss.exprs.expr(p.post)
		}
		if p.do {
			test()
		}
	})
	ss.em.kirPos = kp
	ss.em.structured(in)
	ss.em.pos = 0
	if endless && !js.broke {
		return fReturn
	}
	return fNext
}

func (ss *statements) execLoop(p loopParts) flow {
	js := &jumpScope{}
	ss.labels = append(ss.labels, js)
	defer func() { ss.labels = ss.labels[:len(ss.labels)-1] }()
	for first := true; ; first = false {
		ss.em.step()
		pop := ss.push()
		if !p.do || !first {
			ok := true
			if p.v != nil {
				ok = ss.condVar(p.v).bits != 0
			} else if p.cond != nil {
				ok = ss.conv.condition(ss.exprs.expr(p.cond), p.cond.Pos()).bits != 0
			}
			if !ok {
				pop()
				return fNext
			}
		}
		fl := ss.scoped(p.body, false)
		if fl == fBreak || fl == fReturn {
			pop()
			if fl == fReturn {
				return fReturn
			}
			return fNext
		}
		if p.post != nil {
			ss.exprs.expr(p.post)
		}
		pop()
		if ss.c.full() {
			panic(notConstant{reported: true})
		}
	}
}

// Names that no source can write, for what for (T x : range) declares beside x.
const (
	rangeName = "(range)"
	stepName  = "(step)"
	endName   = "(end)"
)

// rangeForStmt runs for (T x : range) as the loop that C++ says it stands for: over the elements of an array, of a
// metal::array or of a braced list, or from begin() to end().
func (ss *statements) rangeForStmt(s *RangeForStmt) flow {
	defer ss.push()()
	r := ss.rangeValue(s)
	if r.bad() {
		return fNext
	}
	ss.res.env.put(&entity{kind: eVar, name: rangeName, local: true, val: r, at: s.Pos()})
	at := Base{s.Pos()}
	name := func(n string) Expr { return &NameExpr{exprNode{at}, &Name{Base: at, NamePart: NamePart{Ident: n}}} }
	step := name(stepName)
	loop := &ForStmt{stmtNode: stmtNode{at}, Unroll: s.Unroll, Post: &UnaryExpr{exprNode{at}, OperatorInc, step}}
	v := *s.Var
	v.Style = InitCopy
	switch r.q.T.kind {
	case tArray:
		o := ss.mem.newObject(stepName, qt(typeInt))
		ss.mem.store(objVal(o), intVal(typeInt, 0))
		ss.res.env.put(&entity{kind: eVar, name: stepName, local: true, val: objVal(o), at: s.Pos()})
		end := &IntLit{exprNode: exprNode{at}, Value: uint64(r.q.T.n), Decimal: true}
		loop.Cond = &BinaryExpr{exprNode{at}, OperatorLt, step, end}
		v.Init = &IndexExpr{exprNode{at}, name(rangeName), step}
	case tClass:
		for i, m := range [2]string{"begin", "end"} {
			f := &MemberExpr{exprNode: exprNode{at}, X: name(rangeName), Name: &Name{Base: at, NamePart: NamePart{Ident: m}}}
			p := ss.mem.rvalue(ss.exprs.expr(&CallExpr{exprNode: exprNode{at}, Fun: f}))
			if p.bad() {
				return fNext
			}
			n := [2]string{stepName, endName}[i]
			home := ss.mem.newLocal(n, p.q.bare(), ss.mem.load(p))
			ss.res.env.put(&entity{kind: eVar, name: n, local: true, val: home, at: s.Pos()})
		}
		loop.Cond = &BinaryExpr{exprNode{at}, OperatorNe, step, name(endName)}
		v.Init = &UnaryExpr{exprNode{at}, OperatorDeref, step}
	default:
		ss.c.errorf(BadOperands, s.Range.Pos(), "for cannot run over a value of type %s", r.q)
		return fNext
	}
	decl := &DeclStmt{stmtNode: stmtNode{at}, Decls: []Decl{&v}}
	if len(s.Names) > 0 {
		decl.Decls[0] = &BindingDecl{declNode: declNode{at}, Names: s.Names, Var: &v}
	}
	loop.Body = &BlockStmt{stmtNode: stmtNode{at}, List: []Stmt{decl, s.Body}}
	return ss.forStmt(loop)
}

// rangeValue evaluates what a range-based for runs over, once.
func (ss *statements) rangeValue(s *RangeForStmt) value {
	if list, ok := s.Range.(*InitList); ok {
		if len(list.Elems) == 0 {
			ss.c.errorf(BadType, list.Pos(), "an empty list does not say what it is a list of")
			return badValue
		}
		t, ok := ss.exprs.lvalueType(list.Elems[0])
		if !ok {
			return badValue
		}
		v := ss.lists.initList(list, qt(ss.c.types.arrayOf(t.bare(), len(list.Elems))), list.Pos())
		if v.bad() {
			return badValue
		}
		return ss.mem.temp(v)
	}
	v := ss.exprs.expr(s.Range)
	if v.bad() {
		return badValue
	}
	if v.q.T.kind == tClass {
		ss.c.complete(v.q.T.class)
		if path := v.q.T.class.fieldPath("__elems", nil); path != nil {
			v = ss.mem.member(v, path)
		}
	}
	if !v.isLvalue() {
		v = ss.mem.temp(ss.mem.load(v))
	}
	return ss.mem.stableRef(ss.mem.placed(v))
}

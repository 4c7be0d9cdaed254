package msl

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
	loop := &ForStmt{stmtNode: stmtNode{at}, Unroll: s.Unroll, Post: &UnaryExpr{exprNode{at}, OpInc, step}}
	v := *s.Var
	v.Style = InitCopy
	switch r.q.T.kind {
	case tArray:
		o := ss.mem.newObject(stepName, qt(typeInt))
		ss.mem.store(objVal(o), intVal(typeInt, 0))
		ss.res.env.put(&entity{kind: eVar, name: stepName, local: true, val: objVal(o), at: s.Pos()})
		end := &IntLit{exprNode: exprNode{at}, Value: uint64(r.q.T.n), Decimal: true}
		loop.Cond = &BinaryExpr{exprNode{at}, OpLt, step, end}
		v.Init = &IndexExpr{exprNode{at}, name(rangeName), step}
	case tStruct:
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
		loop.Cond = &BinaryExpr{exprNode{at}, OpNe, step, name(endName)}
		v.Init = &UnaryExpr{exprNode{at}, OpDeref, step}
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
	if v.q.T.kind == tStruct {
		ss.c.complete(v.q.T.st)
		if path := v.q.T.st.fieldPath("__elems", nil); path != nil {
			v = ss.mem.member(v, path)
		}
	}
	if !v.isLvalue() {
		v = ss.mem.temp(ss.mem.load(v))
	}
	return ss.mem.stableRef(ss.mem.placed(v))
}

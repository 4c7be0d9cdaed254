package msl

// Names that no source can write, for what for (T x : range) declares beside x.
const (
	rangeName = "(range)"
	stepName  = "(step)"
	endName   = "(end)"
)

// rangeForStmt runs for (T x : range) as the loop that C++ says it stands for: over the elements of an array, of a
// metal::array or of a braced list, or from begin() to end().
func (g *gen) rangeForStmt(s *RangeForStmt) flow {
	defer g.push()()
	r := g.rangeValue(s)
	if r.bad() {
		return fNext
	}
	g.res.env.put(&entity{kind: eVar, name: rangeName, local: true, val: r, at: s.Pos()})
	at := Base{s.Pos()}
	name := func(n string) Expr { return &NameExpr{exprNode{at}, &Name{Base: at, NamePart: NamePart{Ident: n}}} }
	step := name(stepName)
	loop := &ForStmt{stmtNode: stmtNode{at}, Unroll: s.Unroll, Post: &UnaryExpr{exprNode{at}, OpInc, step}}
	v := *s.Var
	v.Style = InitCopy
	switch r.q.T.kind {
	case tArray:
		o := g.mem.newObject(stepName, qt(typeInt))
		g.mem.store(objVal(o), intVal(typeInt, 0))
		g.res.env.put(&entity{kind: eVar, name: stepName, local: true, val: objVal(o), at: s.Pos()})
		end := &IntLit{exprNode: exprNode{at}, Value: uint64(r.q.T.n), Decimal: true}
		loop.Cond = &BinaryExpr{exprNode{at}, OpLt, step, end}
		v.Init = &IndexExpr{exprNode{at}, name(rangeName), step}
	case tStruct:
		for i, m := range [2]string{"begin", "end"} {
			f := &MemberExpr{exprNode: exprNode{at}, X: name(rangeName), Name: &Name{Base: at, NamePart: NamePart{Ident: m}}}
			p := g.mem.rvalue(g.expr(&CallExpr{exprNode: exprNode{at}, Fun: f}))
			if p.bad() {
				return fNext
			}
			n := [2]string{stepName, endName}[i]
			home := g.mem.newLocal(n, p.q.bare(), g.mem.load(p))
			g.res.env.put(&entity{kind: eVar, name: n, local: true, val: home, at: s.Pos()})
		}
		loop.Cond = &BinaryExpr{exprNode{at}, OpNe, step, name(endName)}
		v.Init = &UnaryExpr{exprNode{at}, OpDeref, step}
	default:
		g.c.errorf(BadOperands, s.Range.Pos(), "for cannot run over a value of type %s", r.q)
		return fNext
	}
	decl := &DeclStmt{stmtNode: stmtNode{at}, Decls: []Decl{&v}}
	if len(s.Names) > 0 {
		decl.Decls[0] = &BindingDecl{declNode: declNode{at}, Names: s.Names, Var: &v}
	}
	loop.Body = &BlockStmt{stmtNode: stmtNode{at}, List: []Stmt{decl, s.Body}}
	return g.forStmt(loop)
}

// rangeValue evaluates what a range-based for runs over, once.
func (g *gen) rangeValue(s *RangeForStmt) value {
	if list, ok := s.Range.(*InitList); ok {
		if len(list.Elems) == 0 {
			g.c.errorf(BadType, list.Pos(), "an empty list does not say what it is a list of")
			return badValue
		}
		t, ok := g.lvalueType(list.Elems[0])
		if !ok {
			return badValue
		}
		v := g.initList(list, qt(g.c.types.arrayOf(t.bare(), len(list.Elems))), list.Pos())
		if v.bad() {
			return badValue
		}
		return g.mem.temp(v)
	}
	v := g.expr(s.Range)
	if v.bad() {
		return badValue
	}
	if v.q.T.kind == tStruct {
		g.c.complete(v.q.T.st)
		if path := v.q.T.st.fieldPath("__elems", nil); path != nil {
			v = g.mem.member(v, path)
		}
	}
	if !v.isLvalue() {
		v = g.mem.temp(g.mem.load(v))
	}
	return g.mem.stableRef(g.mem.placed(v))
}

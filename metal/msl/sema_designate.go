package msl

// leftOut stands for a part of an aggregate that designators pass over: it has its default value.
type leftOut struct{ exprNode }

func hasDesignators(l *InitList) bool {
	for _, x := range l.Elems {
		if _, ok := x.(*DesignatedExpr); ok {
			return true
		}
	}
	return false
}

// maxDesignated bounds the parts of a list with designators, which are all written out.
const maxDesignated = 1 << 14

// placeDesignated returns a list in the order of the parts of t, with what its designators pass over left out; nil
// after an error. Elements without a designator follow the one before, as in C.
func (g *gen) placeDesignated(l *InitList, t *ctype, at Pos) *InitList {
	most := 0
	switch {
	case t.kind == tArray && t.n < 0:
		most = maxDesignated + 1
	case t.kind == tArray:
		most = t.n
	case t.kind == tStruct && !t.st.userCtor && t.st.lambda == nil:
		most = len(t.st.fields)
	default:
		g.c.errorf(BadInit, at, "designators need an aggregate, not %s", t)
		return nil
	}
	var out []Expr
	next := 0
	for _, x := range l.Elems {
		last := next
		if d, ok := x.(*DesignatedExpr); ok {
			if next, last = g.designatedParts(d, t); next < 0 {
				return nil
			}
			x = d.X
			if _, list := x.(*InitList); last > next && !list { // evaluated once
				x = &heldExpr{exprNode{Base{x.Pos()}}, g.expr(x)}
			}
		}
		if last >= most {
			g.c.errorf(TooManyInits, x.Pos(), "%s has no part %d", t, last)
			return nil
		}
		if last > maxDesignated {
			g.c.errorf(TooLarge, x.Pos(), "a designator of part %d: at most %d", last, maxDesignated)
			return nil
		}
		for ; next <= last; next++ {
			for len(out) <= next {
				out = append(out, &leftOut{exprNode{Base{x.Pos()}}})
			}
			out[next] = x
		}
	}
	return &InitList{l.exprNode, out}
}

// designatedParts returns the first and the last index of the parts that a designator names, -1 after an error.
func (g *gen) designatedParts(d *DesignatedExpr, t *ctype) (first, last int) {
	if first = g.designatedPart(d, t); first < 0 || d.Last == nil {
		return first, first
	}
	if last = g.designatedPart(&DesignatedExpr{exprNode: d.exprNode, Index: d.Last}, t); last < 0 {
		return -1, -1
	}
	if last < first {
		g.c.errorf(BadArraySize, d.Pos(), "the designator's range [%d ... %d] is empty", first, last)
		return -1, -1
	}
	return first, last
}

// designatedPart returns the index of the part that a designator names, -1 after an error.
func (g *gen) designatedPart(d *DesignatedExpr, t *ctype) int {
	if d.Index != nil {
		if t.kind != tArray {
			g.c.errorf(BadInit, d.Pos(), "[i] = needs an array, not %s", t)
			return -1
		}
		n, ok := g.constInt(d.Index, "the index of a designator")
		if ok && (n < 0 || t.n >= 0 && n >= int64(t.n) || n > maxBytes) {
			g.c.errorf(BadArraySize, d.Pos(), "%s has no element %d", t, n)
			ok = false
		}
		if !ok {
			return -1
		}
		return int(n)
	}
	if t.kind == tStruct {
		for i := range t.st.fields {
			if t.st.fields[i].name == d.Field {
				return i
			}
		}
	}
	g.c.errorf(NoMember, d.Pos(), "%s has no field '%s' of its own", t, d.Field)
	return -1
}

// designatedUnion makes a union whose one named field has a value.
func (g *gen) designatedUnion(l *InitList, t qtype, at Pos) value {
	d, _ := l.Elems[0].(*DesignatedExpr)
	if d == nil || len(l.Elems) > 1 {
		g.c.errorf(TooManyInits, at, "a union has one value, of one field")
		return badValue
	}
	i := g.designatedPart(d, t.T)
	if i < 0 {
		return badValue
	}
	lv := objVal(g.mem.newObject("list", t.bare()))
	g.mem.clearMem(lv)
	f := g.mem.member(lv, []*field{&t.T.st.fields[i]})
	one := &InitList{l.exprNode, []Expr{d.X}}
	if inner, ok := d.X.(*InitList); ok {
		one = inner
	}
	x := g.initList(one, f.q.bare(), at)
	if x.bad() {
		return badValue
	}
	g.mem.store(f, g.mem.load(x))
	lv.tmp = true
	return lv
}

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
func (li *listInit) placeDesignated(l *InitList, t *ctype, at Pos) *InitList {
	most := 0
	switch {
	case t.kind == tArray && t.n < 0:
		most = maxDesignated + 1
	case t.kind == tArray:
		most = t.n
	case t.kind == tClass && !t.class.userCtor && t.class.lambda == nil:
		most = len(t.class.fields)
	default:
		li.c.errorf(BadInit, at, "designators need an aggregate, not %s", t)
		return nil
	}
	var out []Expr
	next := 0
	for _, x := range l.Elems {
		last := next
		if d, ok := x.(*DesignatedExpr); ok {
			if next, last = li.designatedParts(d, t); next < 0 {
				return nil
			}
			x = d.X
			if _, list := x.(*InitList); last > next && !list { // evaluated once
				x = &heldExpr{exprNode{Base{x.Pos()}}, li.exprs.expr(x)}
			}
		}
		if last >= most {
			li.c.errorf(TooManyInits, x.Pos(), "%s has no part %d", t, last)
			return nil
		}
		if last > maxDesignated {
			li.c.errorf(TooLarge, x.Pos(), "a designator of part %d: at most %d", last, maxDesignated)
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
func (li *listInit) designatedParts(d *DesignatedExpr, t *ctype) (first, last int) {
	if first = li.designatedPart(d, t); first < 0 || d.Last == nil {
		return first, first
	}
	if last = li.designatedPart(&DesignatedExpr{exprNode: d.exprNode, Index: d.Last}, t); last < 0 {
		return -1, -1
	}
	if last < first {
		li.c.errorf(BadArraySize, d.Pos(), "the designator's range [%d ... %d] is empty", first, last)
		return -1, -1
	}
	return first, last
}

// designatedPart returns the index of the part that a designator names, -1 after an error.
func (li *listInit) designatedPart(d *DesignatedExpr, t *ctype) int {
	if d.Index != nil {
		if t.kind != tArray {
			li.c.errorf(BadInit, d.Pos(), "[i] = needs an array, not %s", t)
			return -1
		}
		n, ok := li.consts.constInt(d.Index, "the index of a designator")
		if ok && (n < 0 || t.n >= 0 && n >= int64(t.n) || n > maxBytes) {
			li.c.errorf(BadArraySize, d.Pos(), "%s has no element %d", t, n)
			ok = false
		}
		if !ok {
			return -1
		}
		return int(n)
	}
	if t.kind == tClass {
		for i := range t.class.fields {
			if t.class.fields[i].name == d.Field {
				return i
			}
		}
	}
	li.c.errorf(NoMember, d.Pos(), "%s has no field '%s' of its own", t, d.Field)
	return -1
}

// designatedUnion makes a union whose one named field has a value.
func (li *listInit) designatedUnion(l *InitList, t qtype, at Pos) value {
	d, _ := l.Elems[0].(*DesignatedExpr)
	if d == nil || len(l.Elems) > 1 {
		li.c.errorf(TooManyInits, at, "a union has one value, of one field")
		return badValue
	}
	i := li.designatedPart(d, t.T)
	if i < 0 {
		return badValue
	}
	lv := objVal(li.mem.newObject("list", t.bare()))
	li.mem.clearMem(lv)
	f := li.mem.member(lv, []*field{&t.T.class.fields[i]})
	one := &InitList{l.exprNode, []Expr{d.X}}
	if inner, ok := d.X.(*InitList); ok {
		one = inner
	}
	x := li.initList(one, f.q.bare(), at)
	if x.bad() {
		return badValue
	}
	li.mem.store(f, li.mem.load(x))
	lv.tmp = true
	return lv
}

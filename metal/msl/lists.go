package msl

// initList makes a value of type t from a braced list.
func (li *listInit) initList(l *InitList, t qtype, at Pos) value {
	li.nest.enter(li.c, "braced lists", at)
	defer li.nest.leave()
	if t.T.kind == tBad {
		return badValue
	}
	if e := li.expandElems(l.Elems); e != nil {
		l = &InitList{l.exprNode, e}
	}
	if hasDesignators(l) {
		if !li.c.isComplete(t.T) && t.T.kind != tArray {
			li.c.errorf(Incomplete, at, "an object of the incomplete type %s", t)
			return badValue
		}
		if t.T.kind == tClass && t.T.class.union {
			return li.designatedUnion(l, t, at)
		}
		if l = li.placeDesignated(l, t.T, at); l == nil {
			return badValue
		}
	}
	if t.T.kind == tArray && t.T.n < 0 {
		t.T = li.c.types.arrayOf(t.T.elem, max(len(l.Elems), 1))
	}
	if !li.c.isComplete(t.T) {
		li.c.errorf(Incomplete, at, "an object of the incomplete type %s", t)
		return badValue
	}
	if t.T.kind == tClass && !t.T.class.union {
		if r, done := li.listConstruct(l, t.T, at); done {
			return r
		}
	}
	if len(l.Elems) == 0 {
		return li.ctor.defaultInit(t.T, at)
	}
	switch t.T.kind {
	case tScalar, tEnum, tPtr, tNull, tAtomic:
		if len(l.Elems) > 1 {
			li.c.errorf(TooManyInits, at, "%d values for one %s", len(l.Elems), t)
			return badValue
		}
		return li.listScalar(l.Elems[0], t, at)
	case tVec:
		return li.listVec(l, t.T, at)
	case tClass, tArray:
		return li.listAggregate(l, t, at)
	}
	li.c.errorf(TypeMismatch, at, "a braced list is no value of type %s", t)
	return badValue
}

// expandElems returns the elements of a braced list with its packs expanded, nil if it has none.
func (li *listInit) expandElems(elems []Expr) []Expr {
	for i, x := range elems {
		p, ok := x.(*PackExpr)
		if !ok {
			continue
		}
		out := append([]Expr{}, elems[:i]...)
		li.res.expandPack(p.X, func() { out = append(out, &heldExpr{exprNode{Base{x.Pos()}}, li.exprs.expr(p.X)}) })
		if rest := li.expandElems(elems[i+1:]); rest != nil {
			return append(out, rest...)
		}
		return append(out, elems[i+1:]...)
	}
	return nil
}

// listConstruct tries the constructors of a class for the elements of a list, and copies.
func (li *listInit) listConstruct(l *InitList, t *ctype, at Pos) (value, bool) {
	fs := li.c.methods(t, "(constructor)")
	if t.class.userCtor || len(fs) > 0 && len(l.Elems) == 0 {
		args, ok := li.exprs.args(l.Elems)
		if !ok {
			return badValue, true
		}
		return li.ctor.constructFrom(t, args, at), true
	}
	if len(l.Elems) == 1 {
		if _, isList := l.Elems[0].(*InitList); !isList {
			if et, ok := li.exprs.quietType(l.Elems[0]); ok && et.T.kind == tClass {
				if _, base := derivesFrom(et.T, t); base {
					return li.conv.convertTo(li.exprs.expr(l.Elems[0]), qt(t), at, "a braced list"), true
				}
			}
		}
	}
	return value{}, false
}

// listScalar converts a list's only element, refusing to narrow.
func (li *listInit) listScalar(x Expr, t qtype, at Pos) value {
	if inner, ok := x.(*InitList); ok {
		return li.initList(inner, t, at)
	}
	v := li.mem.rvalue(li.exprs.expr(x))
	if v.bad() {
		return badValue
	}
	li.conv.checkNarrowing(v, t.T, x.Pos())
	return li.conv.convertTo(v, t, x.Pos(), "a braced list")
}

// listVec makes a vector from a list: its components or parts, missing ones are zero.
func (li *listInit) listVec(l *InitList, t *ctype, at Pos) value {
	args, ok := li.exprs.args(l.Elems)
	if !ok {
		return badValue
	}
	total := 0
	for i := range args {
		if args[i].k == vList {
			args[i] = li.initList(args[i].list, t.elem, at)
			if args[i].bad() {
				return badValue
			}
		}
		if args[i].q.T.kind == tClass {
			args[i] = li.conv.toArith(args[i])
		}
		_, n := args[i].q.T.shape()
		total += n
	}
	if len(args) == 1 && total == t.n && total > 1 {
		return li.conv.convertTo(args[0], qt(t), at, "a braced list")
	}
	if len(args) == 1 && total == 1 { // float4{1} spreads, as float4(1) does
		return li.conv.explicitConv(args[0], qt(t), true, at)
	}
	for ; total < t.n; total++ {
		args = append(args, value{k: vRight, q: t.elem, comps: []operand{{ty: t.elem.T.kt}}})
	}
	return li.ctor.makeVec(t, args, at)
}

// listAggregate fills the fields or elements of an aggregate in order; braces around inner aggregates may be left
// out.
func (li *listInit) listAggregate(l *InitList, t qtype, at Pos) value {
	cur := &listCursor{elems: l.Elems}
	if t.T.comps >= 0 && !li.mem.inMemory(t.T) && !li.c.needsInit(t.T) {
		li.em.charge(t.T.comps)
		r := value{k: vRight, q: t.bare()}
		ok := li.fillAggregate(cur, t, at, func(comps []operand) { r.comps = append(r.comps, comps...) })
		if cur.i < len(cur.elems) && ok {
			li.c.errorf(TooManyInits, cur.elems[cur.i].Pos(), "%d values are too many for %s", len(l.Elems), t)
			return badValue
		}
		if !ok {
			return badValue
		}
		return r
	}
	o := li.mem.newObject("list", t.bare())
	lv := objVal(o)
	if o.mem {
		li.mem.clearMem(lv)
	}
	if !li.fillObject(cur, lv, at) {
		return badValue
	}
	if cur.i < len(cur.elems) {
		li.c.errorf(TooManyInits, cur.elems[cur.i].Pos(), "%d values are too many for %s", len(l.Elems), t)
		return badValue
	}
	if !o.mem {
		return li.mem.load(lv)
	}
	lv.tmp = true
	return lv
}

type listCursor struct {
	elems []Expr
	i     int
}

// parts calls f for each field or element of an aggregate until it returns false.
func (t *ctype) parts(f func(q qtype, comp, off int, fd *field) bool) {
	if t.kind == tArray {
		for i := range t.n {
			if !f(t.elem, i*t.elem.T.comps, i*t.elem.T.size, nil) {
				return
			}
		}
		return
	}
	for i := range t.class.fields {
		fd := &t.class.fields[i]
		if !f(fd.q, fd.comp, fd.off, fd) || t.class.union {
			return
		}
	}
}

// element evaluates the next initialiser for a part of type q of the object whole, which is bad where no part has a
// default one. descend says that it starts an aggregate without braces of its own.
func (li *listInit) element(cur *listCursor, whole value, q qtype, fd *field, at Pos) (v value, descend bool) {
	left := false // out by designators
	if cur.i < len(cur.elems) {
		_, left = cur.elems[cur.i].(*leftOut)
	}
	if cur.i >= len(cur.elems) || left {
		cur.i++
		if fd != nil && fd.decl != nil && fd.decl.Init != nil {
			return li.ctor.defaultMember(whole, fd), false
		}
		if q.T.kind == tRef {
			li.c.errorf(Uninitialised, at, "the reference '%s' is not bound to an object", fd.name)
			return badValue, false
		}
		return li.ctor.defaultInit(q.T, at), false
	}
	x := cur.elems[cur.i]
	if q.T.kind == tRef {
		cur.i++
		return li.ctor.fieldInit(fd, x, x.Pos(), "a braced list"), false
	}
	if inner, ok := x.(*InitList); ok {
		cur.i++
		return li.initList(inner, q.bare(), inner.Pos()), false
	}
	if q.T.kind == tArray || q.T.kind == tClass && !q.T.class.userCtor && q.T.class.lambda == nil {
		et, ok := li.exprs.quietType(x)
		if q.T.kind == tArray || !ok || et.T != q.T && !li.choose.convertsTo(x, et, q) {
			return value{}, true
		}
	}
	cur.i++
	v = li.choose.functionObject(li.exprs.expr(x))
	if v.k != vVoid && v.k != vFuncs {
		v = li.mem.rvalue(v)
	}
	if v.bad() {
		return badValue, false
	}
	if q.T.kind == tScalar {
		li.conv.checkNarrowing(v, q.T, x.Pos())
	}
	return li.conv.convertTo(v, q.bare(), x.Pos(), "a braced list"), false
}

func (li *listInit) fillAggregate(cur *listCursor, t qtype, at Pos, put func([]operand)) bool {
	ok := true
	t.T.parts(func(q qtype, _, _ int, fd *field) bool {
		v, descend := li.element(cur, badValue, q, fd, at)
		if descend {
			ok = li.fillAggregate(cur, q, at, put) && ok
			return ok
		}
		if v.bad() {
			ok = false
			return cur.i < len(cur.elems)
		}
		put(li.mem.load(v).comps)
		return true
	})
	return ok
}

// fillObject initialises the parts of an object, which is zero if it is in memory.
func (li *listInit) fillObject(cur *listCursor, lv value, at Pos) bool {
	ok := true
	lv.q.T.parts(func(q qtype, comp, off int, fd *field) bool {
		if lv.k == vMem && cur.i >= len(cur.elems) && (fd == nil || fd.decl == nil || fd.decl.Init == nil) &&
			!li.c.needsInit(q.T) {
			return fd != nil
		}
		q.Const = false
		p := li.mem.part(lv, q, comp, off)
		if fd != nil && fd.bits.width > 0 {
			p.k, p.bits = vBits, fd.bits
		}
		v, descend := li.element(cur, lv, q, fd, at)
		if descend {
			ok = li.fillObject(cur, p, at) && ok
			return ok
		}
		if v.bad() {
			ok = false
			return cur.i < len(cur.elems)
		}
		li.mem.store(p, li.mem.load(v))
		return true
	})
	return ok
}

// listInit initialises objects from braced lists.
type listInit struct {
	c      *compiler
	choose *chooser
	consts *constants
	conv   *converter
	ctor   *constructor
	em     *emitter
	exprs  *expressions
	mem    *memory
	nest   *nesting
	res    *resolver
}

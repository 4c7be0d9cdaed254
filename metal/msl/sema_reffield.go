package msl

// A field that is a reference is kept as the pointer to what it refers to; member follows it. It is bound once, where
// its object is made.

// bindField makes what a field that is a reference keeps of the object that it refers to.
func (ct *constructor) bindField(q qtype, v value, at Pos) value {
	if v.bad() {
		return badValue
	}
	if v.k == vList {
		if len(v.list.Elems) != 1 {
			ct.c.errorf(BadInit, at, "a reference is bound to one object, not to a list")
			return badValue
		}
		v = ct.exprs.place(v.list.Elems[0])
	}
	r := ct.conv.bindRef(qt(q.T), v, at)
	if r.bad() {
		return badValue
	}
	p := ct.mem.addressOf(r, at)
	if p.bad() {
		return badValue
	}
	return rval(q.T, p.comps...)
}

// fieldInit evaluates an initialiser of a field.
func (ct *constructor) fieldInit(f *field, x Expr, at Pos, what string) value {
	if f.q.T.kind != tRef {
		return ct.conv.convertTo(ct.exprs.expr(x), f.q.bare(), at, what)
	}
	if l, ok := x.(*InitList); ok {
		return ct.bindField(f.q, value{k: vList, q: qt(typeVoid), list: l}, at)
	}
	return ct.bindField(f.q, ct.exprs.place(x), at)
}

// referent is what a field that is a reference refers to.
func (mem *memory) referent(v value) value {
	p := mem.load(v)
	if p.bad() {
		return badValue
	}
	return value{k: vMem, q: v.q.T.elem, ptr: p.comps[0]}
}

// unassignable names a field that keeps objects of a class from being assigned to as a whole, "" if none does.
func (c *compiler) unassignable(t *ctype) string {
	for t.kind == tArray {
		t = t.elem.T
	}
	if t.kind != tStruct {
		return ""
	}
	for i := range t.st.fields {
		f := &t.st.fields[i]
		switch {
		case f.q.T.kind == tRef:
			return "the reference '" + f.name + "'"
		case f.q.Const:
			return "the constant '" + f.name + "'"
		}
		if s := c.unassignable(f.q.T); s != "" {
			return s
		}
	}
	return ""
}

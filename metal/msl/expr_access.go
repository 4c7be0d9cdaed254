package msl

import (
	"strconv"

	"github.com/mlxlua/mlxlua/metal/kir"
)

// indexExpr evaluates X[Index].
func (xs *expressions) indexExpr(x *IndexExpr) value {
	v := xs.expr(x.X)
	i := xs.expr(x.Index)
	xs.em.at(x.Pos())
	if v.bad() || i.bad() {
		return badValue
	}
	if v.q.T.kind == tClass {
		if r, ok := xs.calls.operatorCall(OperatorIndex, []value{v, i}, x.Pos(), true); ok {
			return r
		}
		v = xs.conv.toPointer(xs.mem.rvalue(v))
	}
	if i.k == vList {
		xs.c.errorf(BadOperands, x.Index.Pos(), "[] takes a list in braces only where a class defines it so: %s does not",
			v.q.T)
		return badValue
	}
	switch v.q.T.kind {
	case tPtr:
		v = xs.mem.rvalue(v)
		e := v.q.T.elem
		if e.T.kind == tVoid || !xs.c.isComplete(e.T) {
			xs.c.errorf(Incomplete, x.Pos(), "a pointer to %s cannot be indexed", e)
			return badValue
		}
		off, ok := xs.arith.index(xs.conv.toArith(xs.mem.rvalue(i)), e.T.size, x.Index.Pos())
		if !ok {
			return badValue
		}
		return memAt(v.comps[0], off, 0, e)
	case tArray:
		return xs.arrayElem(v, i, x)
	case tVec:
		return xs.vecElem(v, i, x.Index.Pos())
	}
	if i.q.T.kind == tPtr || i.q.T.kind == tArray {
		return xs.indexExpr(&IndexExpr{x.exprNode, x.Index, x.X})
	}
	if v.k == vFuncs {
		xs.c.errorf(BadOperands, x.Pos(), "[] is not defined on the function '%s': no input has that name", v.fn.name)
		return badValue
	}
	xs.c.errorf(BadOperands, x.Pos(), "[] is not defined on %s", v.q.T)
	return badValue
}

// arrayElem returns an element of an array.
func (xs *expressions) arrayElem(v, i value, x *IndexExpr) value {
	t := v.q.T
	e := t.elem
	e.Space, e.Const, e.Vol = v.q.Space, e.Const || v.q.Const, e.Vol || v.q.Vol
	off, ok := xs.arith.index(xs.conv.toArith(xs.mem.rvalue(i)), e.T.size, x.Index.Pos())
	if !ok {
		return badValue
	}
	if !off.isConst() {
		v = xs.mem.placed(v)
	}
	if off.isConst() && e.T.size > 0 && v.k != vMem {
		n := int64(off.bits) / int64(e.T.size)
		if n >= 0 && n < int64(t.n) {
			return xs.mem.part(v, e, int(n)*e.T.comps, int(n)*e.T.size)
		}
		if xs.em.exec {
			xs.em.notConst("element " + strconv.FormatInt(n, 10) + " of " + t.String())
		}
	}
	switch v.k {
	case vRight:
		v = xs.mem.temp(v)
		v = xs.mem.toMemory(v)
	case vSlot:
		if v.obj.fixed && !v.obj.mem {
			return memAt(xs.mem.constRegion(v.obj), off, slotOffset(v), e)
		}
		v = xs.mem.toMemory(v)
	case vSel:
		v = xs.mem.toMemory(v)
	}
	if v.k != vMem {
		return badValue
	}
	p := v.ptr
	if v.idx.in != nil { // an element of an element
		p = xs.em.ptrAdd(v.ptr, v.idx, v.imm)
		v.imm = 0
	}
	return memAt(p, off, v.imm, e)
}

// vecElem returns a component of a vector by index.
func (xs *expressions) vecElem(v, i value, at Pos) value {
	e := v.q.T.elem
	e.Space, e.Const = v.q.Space, v.q.Const
	i = xs.conv.toArith(xs.mem.rvalue(i))
	if i.bad() {
		return badValue
	}
	if !i.q.T.intLike() {
		xs.c.errorf(BadOperands, at, "an index of type %s%s", i.q.T, indexHint(i.q.T))
		return badValue
	}
	n := xs.em.convert(xs.arith.promote(i).comps[0], kir.I64)
	if n.isConst() {
		if n.int() < 0 || n.int() >= int64(v.q.T.n) {
			xs.c.errorf(BadSwizzle, at, "%s has no component %d", v.q.T, n.int())
			return badValue
		}
		return xs.mem.component(v, int(n.bits))
	}
	switch v.k {
	case vMem:
		xs.mem.within(n, vectorName(v), v.q.T.n, false)
		off := xs.em.op(kir.Mul, kir.I64, n, i64(int64(e.T.size)))
		p := v.ptr
		if v.idx.in != nil {
			p = xs.em.ptrAdd(v.ptr, v.idx, v.imm)
			v.imm = 0
		}
		return memAt(p, off, v.imm, e)
	case vRight:
		xs.mem.within(n, vectorName(v), v.q.T.n, false)
		r := rval(e.T, xs.em.pick(v.comps, n))
		if v.chosen != nil {
			r = chosenFrom(r, e, false, func() value { return xs.vecElem(xs.mem.placed(v), i, at) })
		}
		return r
	}
	base := v
	return value{k: vDyn, q: e, base: &base, idx: n}
}

// memberExpr evaluates X.Name and X->Name.
func (xs *expressions) memberExpr(x *MemberExpr) value {
	var v value
	_, isThis := stripParens(x.X).(*ThisExpr)
	if isThis && x.Arrow {
		this, ok := xs.res.thisObject()
		if !ok {
			return xs.thisExpr(&ThisExpr{exprNode{Base{x.X.Pos()}}})
		}
		v = this
	} else {
		v = xs.expr(x.X)
		xs.em.at(x.Pos())
		if v.bad() {
			return badValue
		}
		if x.Arrow {
			if v.q.T.kind == tClass {
				if r, ok := xs.calls.operatorCall(OperatorArrow, []value{v}, x.Pos(), true); ok {
					v = r
				}
			}
			v = xs.mem.rvalue(v)
			if v.bad() {
				return badValue
			}
			if v.q.T.kind != tPtr {
				xs.c.errorf(BadOperands, x.Pos(), "-> needs a pointer, not %s: use .", v.q.T)
				return badValue
			}
			v = xs.mem.deref(v, operand{}, x.Pos())
		}
	}
	if v.bad() {
		return badValue
	}
	return xs.selectMember(v, x)
}

func (xs *expressions) selectMember(v value, x *MemberExpr) value {
	name := x.Name.Ident
	switch v.q.T.kind {
	case tVec:
		return xs.swizzle(v, name, x.Name.Pos())
	case tSimdMat:
		if name == "thread_elements" {
			return value{k: vFuncs, q: qt(typeVoid), fn: &overload{name: name, this: &v, builtin: threadElements}}
		}
	case tClass:
		return xs.classMember(v, x)
	case tPtr:
		if v.q.T.elem.T.kind == tClass {
			xs.c.errorf(NoMember, x.Pos(), "%s is a pointer: use -> instead of .", v.q.T)
			return badValue
		}
	}
	if v.k == vFuncs || v.k == vVoid || v.k == vType || v.k == vList {
		xs.c.errorf(NoMember, x.Pos(), "what stands before .%s has no members", name)
		return badValue
	}
	hint := ""
	switch {
	case v.q.T.kind == tPtr:
		hint = ": a pointer has none. Index it; metal_kernel declares x_shape, x_strides and x_ndim for an input x"
	case v.q.T.isScalar():
		hint = ": it is one number"
	}
	xs.c.errorf(NoMember, x.Pos(), "%s has no member '%s'%s", v.q.T, name, hint)
	return badValue
}

func (xs *expressions) classMember(v value, x *MemberExpr) value {
	cls := v.q.T.class
	xs.c.declareMembers(cls)
	xs.c.complete(cls)
	n := x.Name
	name := n.Ident
	if n.Conv == nil && n.Operator == NoOperator {
		if path := cls.fieldPath(name, nil); path != nil {
			return xs.mem.member(v, path)
		}
	}
	key := name
	switch {
	case n.Conv != nil:
		key = "(conversion)"
	case n.Operator != NoOperator:
		key = operatorKey(n.Operator)
	}
	if cls.scope != nil {
		if ent := xs.c.find(cls.scope, key, 0); ent != nil {
			if ent.kind == eFunc {
				fn := &overload{name: key, funcs: ent.funcs, this: &v}
				if n.HasArgs {
					args, ok := xs.res.templateArgs(n.Args)
					if !ok {
						return badValue
					}
					fn.args, fn.hasArgs = args, true
				}
				return value{k: vFuncs, q: qt(typeVoid), fn: fn}
			}
			saved := xs.res.env
			xs.res.env = cls.scope
			r := xs.entityValue(ent, &NameExpr{exprNode{Base{x.Pos()}}, &Name{Base: n.Base, NamePart: n.NamePart}})
			xs.res.env = saved
			return r
		}
	}
	best, bestD := "", 1+len(name)/3
	for i := range cls.fields {
		if d := editDistance(name, cls.fields[i].name, bestD); d < bestD {
			best, bestD = cls.fields[i].name, d
		}
	}
	if best != "" {
		xs.c.errorf(NoMember, n.Pos(), "%s has no member '%s': did you mean '%s'?", v.q.T, name, best)
	} else {
		xs.c.errorf(NoMember, n.Pos(), "%s has no member '%s'", v.q.T, name)
	}
	return badValue
}

// swizzle selects components by name: xyzw or rgba.
func (xs *expressions) swizzle(v value, name string, at Pos) value {
	if name == "" { // a syntax error has been reported
		return badValue
	}
	var sel []uint8
	set := 0
	for i := range len(name) {
		k, s := -1, 0
		for j := range 4 {
			switch name[i] {
			case "xyzw"[j]:
				k, s = j, 1
			case "rgba"[j]:
				k, s = j, 2
			}
		}
		if k < 0 || k >= v.q.T.n || len(name) > 4 || set != 0 && set != s {
			xs.c.errorf(BadSwizzle, at, "%s has no component '%s': it has .%s%s", v.q.T, name, "xyzw"[:min(v.q.T.n, 4)],
				wideHint(v.q.T))
			return badValue
		}
		set = s
		sel = append(sel, uint8(k))
	}
	if len(sel) == 1 {
		return xs.mem.component(v, int(sel[0]))
	}
	if v.k == vRight {
		r := value{k: vRight, q: qt(vecOf(v.q.T.elem.T, len(sel)))}
		for _, s := range sel {
			r.comps = append(r.comps, v.comps[s])
		}
		if v.chosen != nil {
			q := qtype{T: r.q.T, Const: v.q.Const, Space: v.q.Space}
			r = chosenFrom(r, q, false, func() value { return xs.swizzle(xs.mem.placed(v), name, at) })
		}
		return r
	}
	base := v
	if v.k == vSwz {
		base = *v.base
		for i := range sel {
			sel[i] = v.sel[sel[i]]
		}
	}
	t := qtype{T: vecOf(v.q.T.elem.T, len(sel)), Const: v.q.Const, Space: v.q.Space}
	return value{k: vSwz, q: t, base: &base, sel: sel}
}

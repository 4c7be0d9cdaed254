package msl

import (
	"github.com/mlxlua/mlxlua/metal/kir"
)

// castExpr evaluates the casts that name their type.
func (xs *expressions) castExpr(x *CastExpr) value {
	t := xs.res.typeOf(x.Type)
	if list, ok := x.X.(*InitList); ok {
		if t.T.kind == tBad {
			return badValue
		}
		return xs.lists.initList(list, t.bare(), x.Pos())
	}
	v := xs.expr(x.X)
	xs.em.at(x.Pos())
	if v.bad() || t.T.kind == tBad {
		return badValue
	}
	switch x.Kind {
	case CastAsType:
		return xs.arith.asType(xs.conv.toArith(xs.mem.rvalue(v)), t.T, x.Pos())
	case CastReinterpret:
		return xs.conv.reinterpret(v, t, x.Pos())
	case CastConst:
		if t.T.kind == tRef && v.isLvalue() && v.q.T == t.T.elem.T {
			v.q.Const, v.q.Vol = t.T.elem.Const, t.T.elem.Vol
			return v
		}
		v = xs.mem.rvalue(v)
		if t.T.kind == tPtr && v.q.T.kind == tPtr && t.T.elem.T == v.q.T.elem.T {
			return xs.conv.castPointer(v, t.T, x.Pos())
		}
		xs.c.errorf(BadCast, x.Pos(), "const_cast from %s to %s changes more than const and volatile", v.q.T, t)
		return badValue
	}
	return xs.conv.explicitConv(v, t, x.Kind == CastC, x.Pos())
}

// explicitConv converts as static_cast does, and with cStyle as a C cast does.
func (cv *converter) explicitConv(v value, t qtype, cStyle bool, at Pos) value {
	if v.k == vFuncs || v.k == vType {
		cv.noConversion(&v, t, at, "a cast")
		return badValue
	}
	to := t.T
	if to.kind == tVoid {
		return voidValue
	}
	if to.kind == tRef {
		return cv.castRef(v, t, cStyle, at)
	}
	if v.k == vVoid {
		cv.noConversion(&v, t, at, "a cast")
		return badValue
	}
	if v.q.T.kind == tClass {
		if v.q.T == to {
			return cv.mem.load(v)
		}
		if r := cv.choose.convRank(&v, t.bare()); r != rankNone {
			return cv.convertTo(v, t.bare(), at, "a cast")
		}
		if inst := cv.choose.explicitConversion(&v, to); inst != nil {
			r := cv.mem.rvalue(cv.calls.call(inst, nil, &v, at))
			if r.bad() || r.q.T == to {
				return r
			}
			return cv.explicitConv(r, t, cStyle, at)
		}
	}
	if to.kind == tClass {
		return cv.ctor.constructFrom(to, []value{v}, at)
	}
	v = cv.mem.rvalue(v)
	if v.bad() {
		return badValue
	}
	from := v.q.T
	switch {
	case to.isScalar() && from.isScalar():
		r := rval(to, cv.em.convert(v.comps[0], to.kt))
		return r
	case to.kind == tVec && from.kind == tVec && to.n == from.n:
		r := value{k: vRight, q: qt(to)}
		for _, c := range v.comps {
			r.comps = append(r.comps, cv.em.convert(c, to.elem.T.kt))
		}
		return r
	case to.kind == tVec && from.isScalar() && (from.kind != tEnum || from.isUnscopedEnum()):
		r := cv.arith.convStd(v, to.unpacked())
		r.q.T = to
		return r
	case to.kind == tPtr && from.kind == tPtr:
		if !cStyle && cv.choose.ptrRank(from.elem, to.elem) == rankNone && from.elem.T.kind != tVoid &&
			!related(from.elem.T, to.elem.T) {
			cv.c.errorf(BadCast, at, "static_cast from %s to %s: use reinterpret_cast", from, to)
			return badValue
		}
		if !cStyle && !cv.keepsCV("static_cast", from, to, at) {
			return badValue
		}
		return cv.castPointer(v, to, at)
	case to.kind == tPtr && (from.kind == tNull || isNullConst(&v)):
		return rval(to, operand{ty: to.kirScalar()})
	case cStyle && (to.kind == tPtr && from.isInt() || to.isInt() && (from.kind == tPtr || from.kind == tNull)):
		return cv.addressCast(v, to, at)
	case to.isBool() && (from.kind == tPtr || from.kind == tNull):
		return rval(to, cv.em.convert(v.comps[0], kir.Bool))
	case from == to:
		return v
	}
	hint := vectorHint(from, t.T)
	if from.kind == tPtr && to.isScalar() {
		hint = pointerHint
	}
	cv.c.errorf(BadCast, at, "a cast from %s to %s%s", from, t, hint)
	return badValue
}

// addressCast converts between a pointer and an integer, which must have room for it.
func (cv *converter) addressCast(v value, to *ctype, at Pos) value {
	from := v.q.T
	if to.isInt() && to.size < typeUlong.size {
		hint := ""
		if from.kind == tPtr {
			hint = pointerHint
		}
		cv.c.errorf(BadCast, at, "a cast from %s to %s loses bits of the address%s", from, to, hint)
		return badValue
	}
	return rval(to, cv.em.convert(v.comps[0], to.kirScalar()))
}

// keepsCV reports whether a cast of pointers leaves what they point to const and volatile, with an error if not: for
// that there is const_cast.
func (cv *converter) keepsCV(cast string, from, to *ctype, at Pos) bool {
	for a, b := from, to; a.kind == tPtr && b.kind == tPtr; a, b = a.elem.T, b.elem.T {
		if a.elem.Const && !b.elem.Const || a.elem.Vol && !b.elem.Vol {
			cv.c.errorf(BadCast, at, "%s from %s to %s would drop const or volatile", cast, from, to)
			return false
		}
	}
	return true
}

func related(a, b *ctype) bool {
	_, x := derivesFrom(a, b)
	_, y := derivesFrom(b, a)
	return x || y
}

// castPointer changes what a pointer points to. The address space must stay.
func (cv *converter) castPointer(v value, to *ctype, at Pos) value {
	from := v.q.T
	a, b := from.elem.Space, to.elem.Space
	if a.normal() != b.normal() {
		cv.c.errorf(AddressSpace, at, "a cast from a pointer to %s memory (%s) to a pointer to %s memory (%s)",
			spaceName(a), from, spaceName(b), to)
		return badValue
	}
	p := v.comps[0]
	if path, ok := derivesFrom(from.elem.T, to.elem.T); ok {
		for _, f := range path {
			p = cv.em.ptrAdd(p, operand{}, int64(f.off))
		}
	} else if path, ok := derivesFrom(to.elem.T, from.elem.T); ok {
		for _, f := range path {
			p = cv.em.ptrAdd(p, operand{}, -int64(f.off))
		}
	}
	return rval(to, p)
}

func (cv *converter) castRef(v value, t qtype, cStyle bool, at Pos) value {
	e := t.T.elem
	if v.isLvalue() {
		if v.q.T == e.T && v.q.Space.normal() == e.Space.normal() {
			if !cStyle && (v.q.Const && !e.Const || v.q.Vol && !e.Vol) {
				cv.c.errorf(BadCast, at, "static_cast from %s to %s would drop const or volatile", v.q, t)
				return badValue
			}
			v.q.Const, v.q.Vol = e.Const, e.Vol
			return v
		}
		if path, ok := derivesFrom(v.q.T, e.T); ok {
			return cv.mem.member(v, path)
		}
		if cStyle {
			return cv.reinterpret(v, t, at)
		}
	}
	if e.Const || t.T.rvalueRef() {
		return cv.convertTo(v, e.bare(), at, "a cast to a reference")
	}
	cv.c.errorf(BadCast, at, "a cast from %s to %s", v.q, t)
	return badValue
}

func (cv *converter) reinterpret(v value, t qtype, at Pos) value {
	if t.T.kind == tRef { // the object's bytes seen as another type
		if !v.isLvalue() {
			cv.c.errorf(NotLvalue, at, "reinterpret_cast to %s needs an object", t)
			return badValue
		}
		e := t.T.elem
		if e.Space.normal() != v.q.Space.normal() {
			cv.c.errorf(AddressSpace, at, "a cast from an object in %s memory to %s", spaceName(v.q.Space), t)
			return badValue
		}
		if v = cv.mem.placed(v); v.k == vSwz || v.k == vDyn || v.isBits() {
			return cv.mem.addressOf(v, at)
		}
		m := cv.mem.toMemory(v)
		m.q = e
		return m
	}
	v = cv.mem.rvalue(v)
	if v.bad() {
		return badValue
	}
	from, to := v.q.T, t.T
	switch {
	case from.kind == tPtr && to.kind == tPtr:
		if !cv.keepsCV("reinterpret_cast", from, to, at) {
			return badValue
		}
		return cv.castPointer(v, to, at)
	case from.kind == tPtr && to.isInt(), to.kind == tPtr && from.isInt(), from.kind == tNull && to.isInt():
		return cv.addressCast(v, to, at)
	case from == to && (to.isInt() || to.isBool() || to.kind == tEnum):
		return v
	}
	cv.c.errorf(BadCast, at, "reinterpret_cast from %s to %s: use as_type for values", from, t)
	return badValue
}

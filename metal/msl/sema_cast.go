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
	if v.q.T.kind == tStruct {
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
	if to.kind == tStruct {
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
	case to.kind == tVec && from.isScalar():
		r := cv.arith.convStd(v, to.unpacked())
		r.q.T = to
		return r
	case to.kind == tPtr && from.kind == tPtr:
		if !cStyle && cv.choose.ptrRank(from.elem, to.elem) == rankNone && from.elem.T.kind != tVoid &&
			!related(from.elem.T, to.elem.T) {
			cv.c.errorf(BadCast, at, "static_cast from %s to %s: use reinterpret_cast", from, to)
			return badValue
		}
		return cv.castPointer(v, to, at)
	case to.kind == tPtr && (from.kind == tNull || isNullConst(&v)):
		return rval(to, operand{ty: to.kirScalar()})
	case cStyle && (to.kind == tPtr && from.isInt() || to.isInt() && from.kind == tPtr):
		return rval(to, cv.em.convert(v.comps[0], to.kirScalar()))
	case to.isBool() && (from.kind == tPtr || from.kind == tNull):
		return rval(to, cv.em.convert(v.comps[0], kir.Bool))
	case from == to:
		return v
	}
	cv.c.errorf(BadCast, at, "a cast from %s to %s%s", from, t, vectorHint(from, t.T))
	return badValue
}

func related(a, b *ctype) bool {
	_, x := derivesFrom(a, b)
	_, y := derivesFrom(b, a)
	return x || y
}

// explicitConversion finds a conversion function, explicit ones included.
func (ch *chooser) explicitConversion(v *value, to *ctype) *funcInst {
	var near *funcInst
	for _, f := range ch.c.methods(v.q.T, "(conversion)") {
		inst := ch.instConversion(f, v, to)
		if inst == nil || !ch.methodFits(inst, v) {
			continue
		}
		if inst.ret.noRef().T == to {
			return inst
		}
		if inst.ret.noRef().T.isScalar() && to.isScalar() && near == nil {
			near = inst
		}
	}
	return near
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
		return cv.explicitConv(v, e.bare(), cStyle, at)
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
		return cv.castPointer(v, to, at)
	case from.kind == tPtr && to.isInt(), to.kind == tPtr && from.isInt():
		return rval(to, cv.em.convert(v.comps[0], to.kirScalar()))
	case from == to:
		return v
	}
	cv.c.errorf(BadCast, at, "reinterpret_cast from %s to %s: use as_type for values", from, t)
	return badValue
}

// asType reinterprets the bits of a scalar or vector: both sides have the same size.
func (ar *arithmetic) asType(v value, to *ctype, at Pos) value {
	v = ar.mem.rvalue(v)
	if v.bad() {
		return badValue
	}
	from := v.q.T.unpacked()
	to = to.unpacked()
	ef, nf := from.shape()
	et, nt := to.shape()
	if from.kind == tEnum {
		ef, nf = scalarTypes[from.kt], 1
	}
	if nf == 0 || nt == 0 || ef.isBool() || et.isBool() || from.size != to.size {
		ar.c.errorf(BadCast, at, "as_type from %s to %s: both must be scalars or vectors of one size", from, to)
		return badValue
	}
	r := value{k: vRight, q: qt(to)}
	if ef.size == et.size {
		for i := range nt {
			c := operand{ty: et.kt} // the fourth component of a 3-component vector
			if i < nf {
				c = ar.em.bitcast(v.comps[i], et.kt)
			}
			r.comps = append(r.comps, c)
		}
		return r
	}
	if ef.size > et.size { // cut each component into pieces
		k := ef.size / et.size
		wide, narrow := uintOf(ef.size), uintOf(et.size)
		for i := range nt {
			w := ar.em.bitcast(v.comps[i/k], wide)
			w = ar.em.op(kir.Shr, wide, w, constant(wide, uint64(i%k*et.size*8)))
			r.comps = append(r.comps, ar.em.bitcast(ar.em.convert(w, narrow), et.kt))
		}
		return r
	}
	k := et.size / ef.size
	wide, narrow := uintOf(et.size), uintOf(ef.size)
	for i := range nt {
		acc := operand{ty: wide}
		for j := range k {
			if i*k+j >= nf {
				break
			}
			p := ar.em.convert(ar.em.bitcast(v.comps[i*k+j], narrow), wide)
			acc = ar.em.op(kir.Or, wide, acc, ar.em.op(kir.Shl, wide, p, constant(wide, uint64(j*ef.size*8))))
		}
		r.comps = append(r.comps, ar.em.bitcast(acc, et.kt))
	}
	return r
}

func uintOf(size int) kir.Type {
	switch size {
	case 1:
		return kir.U8
	case 2:
		return kir.U16
	case 4:
		return kir.U32
	}
	return kir.U64
}

func (em *emitter) bitcast(o operand, t kir.Type) operand {
	if o.ty == t {
		return o
	}
	return em.op(kir.Bitcast, t, o)
}

// constructExpr evaluates T(args) and T{args}.
func (xs *expressions) constructExpr(x *ConstructExpr) value {
	var t qtype
	if tm := xs.res.placeholder(x.Type); tm != nil {
		x, t = xs.vars.deduceConstruct(x, tm)
	} else {
		t = xs.res.typeOf(x.Type)
	}
	if t.T.kind == tBad {
		for _, a := range x.Args {
			xs.expr(a)
		}
		return badValue
	}
	t = t.bare()
	if t.T.kind == tAuto {
		xs.c.errorf(BadType, x.Pos(), "auto is no type to construct")
		return badValue
	}
	if x.Braced {
		return xs.lists.initList(&InitList{x.exprNode, x.Args}, t, x.Pos())
	}
	args, ok := xs.args(x.Args)
	xs.em.at(x.Pos())
	if !ok {
		return badValue
	}
	return xs.ctor.constructParen(t, args, x.Pos())
}

// constructParen makes a T from (args).
func (ct *constructor) constructParen(t qtype, args []value, at Pos) value {
	if t.T.kind == tVoid && len(args) <= 1 {
		return voidValue
	}
	if !ct.c.isComplete(t.T) {
		ct.c.errorf(Incomplete, at, "an object of the incomplete type %s", t)
		return badValue
	}
	switch t.T.kind {
	case tStruct:
		return ct.constructFrom(t.T, args, at)
	case tVec:
		if len(args) == 1 && args[0].q.T.kind != tVec && args[0].q.T.kind != tStruct && args[0].k != vList {
			return ct.conv.explicitConv(args[0], t, true, at)
		}
		return ct.makeVec(t.T, args, at)
	case tSimdMat:
		if len(args) == 1 {
			if args[0].q.T == t.T {
				return ct.mem.load(args[0])
			}
			x := ct.conv.convertTo(args[0], t.T.elem, at, "the diagonal of a matrix")
			if x.bad() {
				return badValue
			}
			return diagonalMatrix(ct.em, t.T, x.comps[0])
		}
	}
	switch len(args) {
	case 0:
		return ct.mem.zero(t.T)
	case 1:
		return ct.conv.explicitConv(args[0], t, true, at)
	}
	ct.c.errorf(ArgCount, at, "%s is made from one value, not %d", t, len(args))
	return badValue
}

// makeVec assembles a vector from scalars and vectors that have its number of components together.
func (ct *constructor) makeVec(t *ctype, args []value, at Pos) value {
	if len(args) == 0 {
		return ct.mem.zero(t)
	}
	r := value{k: vRight, q: qt(t)}
	for _, a := range args {
		if a.q.T.kind == tStruct {
			a = ct.conv.toArith(a)
		}
		a = ct.mem.rvalue(a)
		if a.bad() {
			return badValue
		}
		if _, n := a.q.T.shape(); n == 0 && a.q.T.kind != tEnum {
			ct.c.errorf(TypeMismatch, at, "%s cannot be made from a value of type %s", t, a.q.T)
			return badValue
		}
		for _, c := range a.comps {
			r.comps = append(r.comps, ct.em.convert(c, t.elem.T.kt))
		}
	}
	if len(r.comps) == t.n {
		return r
	}
	if len(args) == 1 && len(r.comps) > 1 {
		ct.c.errorf(TypeMismatch, at, "%s cannot be made from a vector of %d components", t, len(r.comps))
		return badValue
	}
	ct.c.errorf(ArgCount, at, "%s has %d components, but %d are given", t, t.n, len(r.comps))
	return badValue
}

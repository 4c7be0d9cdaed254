package msl

import (
	"github.com/mlxlua/mlxlua/metal/kir"
)

// converter converts values, implicitly and by casts, and binds references.
type converter struct {
	c      *compiler
	arith  *arithmetic
	calls  *caller
	choose *chooser
	ctor   *constructor
	em     *emitter
	lists  *listInit
	mem    *memory
}

// bindRef binds a reference: to the object itself, or for const references to a temporary.
func (cv *converter) bindRef(t qtype, v value, at Pos) value {
	e := t.T.elem
	if e.T.kind == tAuto {
		if v.k == vList || v.k == vVoid || v.k == vFuncs {
			cv.noConversion(&v, t, at, "a reference")
			return badValue
		}
		e.T = v.q.T
		e.Const = e.Const || v.q.Const
		e.Vol = e.Vol || v.q.Vol
		if e.Space == SpaceNone || v.q.Space == SpaceConstant && e.Const {
			e.Space = v.q.Space
		}
		t = qt(cv.c.types.derived(tRef, e, t.T.n))
	}
	r := cv.choose.refRank(&v, t.T)
	if r == rankNone {
		cv.refError(&v, t, at)
		return badValue
	}
	cv.c.apple.reference(&v, e, at)
	same := v.q.T == e.T || v.q.T.kind == tArray && e.T.kind == tArray
	if v.isLvalue() && v.q.Space.normal() == e.Space.normal() && v.k != vSwz && !v.isBits() {
		if v = cv.mem.placed(v); same {
			v.q.Const, v.q.Vol = e.Const, e.Vol
			return v
		}
		if path, ok := derivesFrom(v.q.T, e.T); ok {
			b := cv.mem.member(v, path)
			b.q.Const = e.Const
			return b
		}
	}
	x := cv.convertTo(v, e.bare(), at, "a reference")
	if x.bad() {
		return badValue
	}
	b := cv.mem.temp(cv.mem.load(x))
	b.q.Const = e.Const
	if e.Space == SpaceConstant {
		b.q.Space = SpaceNone
	}
	return b
}

func (cv *converter) refError(v *value, t qtype, at Pos) {
	e := t.T.elem
	switch {
	case v.k == vFuncs || v.k == vVoid:
		cv.noConversion(v, t, at, "a reference")
	case v.isLvalue() && v.q.T == e.T && v.q.Space.normal() != e.Space.normal():
		cv.c.errorf(AddressSpace, at, "an object in %s memory cannot be bound to %s", spaceName(v.q.Space), t)
	case v.isBits() && v.q.T == e.T && !e.Const:
		cv.c.errorf(NotLvalue, at, "a bit-field has no address: it cannot be bound to %s", t)
	case v.k == vSwz && v.q.T == e.T && !e.Const:
		cv.c.errorf(NotLvalue, at, "several components of a vector have no address: they cannot be bound to %s", t)
	case v.isLvalue() && v.q.T == e.T:
		cv.c.errorf(TypeMismatch, at, "%s to %s would drop const", v.q, t)
	default:
		cv.c.errorf(TypeMismatch, at, "a value of type %s cannot be bound to %s", v.q, t)
	}
}

// deduceAuto replaces auto in a declared type by what the initialiser has.
func (cv *converter) deduceAuto(t qtype, v *value, at Pos) qtype {
	switch t.T.kind {
	case tAuto:
		if v.k == vList || v.k == vVoid || v.k == vFuncs || v.k == vType {
			if !v.bad() {
				cv.c.errorf(BadType, at, "auto cannot be deduced from %s", argText(v))
			}
			return badType
		}
		r := cv.c.types.decayed(v)
		if v.q.T.kind == tVec {
			r.T = v.q.T // a copy of a packed vector is packed
		}
		r.Const, r.Vol, r.Space = t.Const, t.Vol, t.Space
		return r
	case tPtr:
		if t.T.elem.T.kind == tAuto {
			p := cv.c.types.decayed(v)
			if p.T.kind != tPtr {
				cv.c.errorf(TypeMismatch, at, "auto* cannot be deduced from %s", p)
				return badType
			}
			e := p.T.elem
			e.Const = e.Const || t.T.elem.Const
			return qtype{T: cv.c.types.ptrTo(e), Const: t.Const}
		}
	case tRef:
		if t.T.elem.T.kind == tAuto {
			e := t.T.elem
			e.T = v.q.T
			if v.k == vList || v.k == vVoid || v.k == vFuncs {
				return badType
			}
			e.Const = e.Const || v.q.Const
			e.Vol = e.Vol || v.q.Vol
			if v.isLvalue() && (e.Space == SpaceNone || v.q.Space == SpaceConstant) {
				e.Space = v.q.Space
			}
			return qt(cv.c.types.derived(tRef, e, t.T.n))
		}
	}
	return t
}

// convertTo converts a value implicitly, reporting what does not convert. what says for which purpose.
func (cv *converter) convertTo(v value, to qtype, at Pos, what string) value {
	if v.bad() || to.T.kind == tBad {
		return badValue
	}
	if v.k == vList {
		return cv.lists.initList(v.list, to.bare(), at)
	}
	if v.k == vFuncs || v.k == vVoid || v.k == vType {
		cv.noConversion(&v, to, at, what)
		return badValue
	}
	from := cv.c.types.decayed(&v)
	if r := cv.choose.stdRank(&v, from.T, to.T); r != rankNone {
		return cv.arith.convStd(v, to.T)
	}
	if to.T.kind == tClass {
		if inst := cv.choose.convertingCtor(&v, to.T); inst != nil {
			return cv.ctor.construct(to.T, inst, []value{v}, at)
		}
	}
	if from.T.kind == tClass {
		if inst := cv.choose.conversionFunc(&v, to.T); inst != nil {
			r := cv.calls.call(inst, []value{}, &v, at)
			if r.bad() {
				return r
			}
			return cv.arith.convStd(r, to.T)
		}
	}
	cv.noConversion(&v, to, at, what)
	return badValue
}

// directInit makes the value of a variable that is no class and no vector from the argument in T x(v): what converts
// implicitly, what an explicit conversion of a class gives, and the null pointer for bool.
func (cv *converter) directInit(v value, to qtype, at Pos, what string) value {
	if v.k == vList || v.k == vFuncs || v.k == vVoid || v.k == vType {
		return cv.convertTo(v, to, at, what)
	}
	if v.q.T.kind == tNull && to.T.isBool() {
		return rval(to.T, boolConst(false))
	}
	if v.q.T.kind == tClass && cv.choose.convRank(&v, to.bare()) == rankNone {
		if inst := cv.choose.explicitConversion(&v, to.T); inst != nil {
			return cv.convertTo(cv.calls.call(inst, nil, &v, at), to, at, what)
		}
	}
	return cv.convertTo(v, to, at, what)
}

func (cv *converter) noConversion(v *value, to qtype, at Pos, what string) {
	if v.k == vFuncs {
		cv.c.errorf(TypeMismatch, at, "the function '%s' is not called: %s", v.fn.name, what)
		return
	}
	if v.k == vVoid {
		cv.c.errorf(TypeMismatch, at, "an expression of type void has no value: %s", what)
		return
	}
	from := cv.c.types.decayed(v)
	if from.T.kind == tPtr && to.T.kind == tPtr {
		a, b := from.T.elem, to.T.elem
		if a.Space.normal() != b.Space.normal() {
			cv.c.errorf(AddressSpace, at, "%s: a pointer to %s memory (%s) is no pointer to %s memory (%s)%s", what,
				spaceName(a.Space), from, spaceName(b.Space), to, spaceHint(a.Space))
			return
		}
		if a.T == b.T && a.Const && !b.Const {
			cv.c.errorf(TypeMismatch, at, "%s: %s to %s would drop const", what, from, to)
			return
		}
	}
	if from.T.isFloat() && to.T.isFloat() {
		cv.c.errorf(TypeMismatch, at, "%s: Metal converts %s to %s by a cast only: write %s(x)", what, from, to, to.T)
		return
	}
	hint := vectorHint(from.T, to.T)
	if from.T.kind == tPtr && (to.T.isScalar() || to.T.kind == tVec) {
		hint = pointerHint
	}
	cv.c.errorf(TypeMismatch, at, "%s: %s does not convert to %s%s", what, from, to, hint)
}

// condition converts a value to bool.
func (cv *converter) condition(v value, at Pos) operand {
	if v.bad() {
		return boolConst(false)
	}
	if v.q.T.kind == tVec {
		cv.c.errorf(TypeMismatch, at, "a condition of type %s: use any() or all()", v.q.T)
		return boolConst(false)
	}
	if v.q.T.kind == tEnum && v.q.T.enum.scoped {
		cv.c.errorf(TypeMismatch, at, "a condition of type %s", v.q.T)
		return boolConst(false)
	}
	r := cv.directInit(v, qt(typeBool), at, "a condition")
	if r.bad() || len(r.comps) != 1 {
		return boolConst(false)
	}
	return r.comps[0]
}

// toArith turns a class object into the number it converts to, and an enumerator into its integer.
func (cv *converter) toArith(v value) value {
	if v.bad() {
		return v
	}
	if v.q.T.kind == tClass {
		var best *funcInst
		for _, f := range cv.c.methods(v.q.T, "(conversion)") {
			if f.tmpl != nil || f.decl.Specs.Explicit {
				continue
			}
			inst := cv.choose.instFor(f, nil)
			if inst == nil || !cv.choose.methodFits(inst, &v) {
				continue
			}
			if best == nil || cv.choose.thisRank(inst, &v) < cv.choose.thisRank(best, &v) {
				best = inst
			}
		}
		if best == nil {
			for _, f := range cv.c.methods(v.q.T, "(conversion)") { // a template converts to what it is asked for: float
				if f.tmpl == nil || f.decl.Specs.Explicit {
					continue
				}
				if inst := cv.choose.instConversion(f, &v, typeFloat); inst != nil && cv.choose.methodFits(inst, &v) {
					best = inst
					break
				}
			}
		}
		if best != nil {
			return cv.mem.rvalue(cv.calls.call(best, nil, &v, cv.em.pos))
		}
	}
	return v
}

func (cv *converter) toPointer(v value) value {
	if v.q.T.kind == tClass {
		return cv.toArith(v)
	}
	return v
}

// backTo converts the result of a compound assignment to the type of its left side.
func (cv *converter) backTo(v value, to qtype, at Pos) value {
	if v.bad() {
		return badValue
	}
	if to.T.kind == tVec {
		e := to.T.elem.T
		if _, n := v.q.T.shape(); n == to.T.n && v.q.T != to.T {
			r := value{k: vRight, q: to.bare()}
			for _, c := range v.comps {
				r.comps = append(r.comps, cv.em.convert(c, e.kt))
			}
			return r
		}
	}
	if v.q.T.isFloat() && to.T.isFloat() { // as Clang, which asks here for two numbers, whatever their ranks
		return cv.arith.convStd(v, to.T)
	}
	return cv.convertTo(v, to.bare(), at, "the result of a compound assignment")
}

// checkNarrowing reports conversions that C++ forbids in braces: those that may lose a value, unless a constant fits.
func (cv *converter) checkNarrowing(v value, to *ctype, at Pos) {
	from := v.q.T
	if from.kind == tPtr && to.isBool() {
		cv.c.errorf(Narrowing, at, "in braces %s does not convert to bool: compare it with nullptr", from)
		return
	}
	if !from.isScalar() || to.kind != tScalar || len(v.comps) != 1 || from == to || to.isBool() && from.isBool() {
		return
	}
	c := v.comps[0]
	fk, tk := from.kt, to.kt
	fits := func() bool {
		if !c.isConst() {
			return false
		}
		back := convertConst(convertConst(c, tk), fk)
		if fk.IsFloat() && tk.IsFloat() { // a constant may lose precision, but not its range
			return kir.ToFloat64(tk, convertConst(c, tk).bits) == kir.ToFloat64(fk, c.bits) || back.bits == c.bits ||
				!isInf(convertConst(c, tk))
		}
		if fk.IsSigned() && c.int() < 0 && !tk.IsSigned() && !fk.IsFloat() {
			return false
		}
		if fk == kir.U64 && c.bits>>63 != 0 && tk.IsSigned() && !tk.IsFloat() {
			return false
		}
		return back.bits == c.bits
	}
	narrow := false
	switch {
	case fk.IsFloat() && tk.IsFloat():
		narrow = tk.Size() < fk.Size() || tk != fk && tk.Size() == fk.Size()
	case fk.IsFloat():
		cv.narrowing(from, to, at)
		return
	case tk.IsFloat():
		narrow = true
	case fk == kir.Bool:
		return
	case tk == kir.Bool:
		narrow = true
	default:
		narrow = tk.Size() < fk.Size() || tk.Size() == fk.Size() && tk != fk || fk.IsSigned() && !tk.IsSigned()
	}
	if narrow && !fits() {
		cv.narrowing(from, to, at)
	}
}

func (cv *converter) narrowing(from, to *ctype, at Pos) {
	if cv.c.inPrelude(at) {
		return
	}
	cv.c.errorf(Narrowing, at, "in braces %s does not convert to %s: it may lose its value. Cast it", from, to)
}

func spaceName(s Space) string {
	if s.normal() == SpaceNone {
		return "thread"
	}
	return s.String()
}

func isInf(o operand) bool {
	f := kir.ToFloat64(o.ty, o.bits)
	return f > 1e308 || f < -1e308
}

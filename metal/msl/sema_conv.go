package msl

import (
	"github.com/mlxlua/mlxlua/metal/kir"
)

// rank orders implicit conversions: smaller is better, rankNone is none.
type rank uint8

const (
	rankExact rank = iota
	rankQual       // adds const or volatile
	rankPromotion
	rankConversion
	rankSplat // a scalar becomes a vector
	rankUser
	rankNone
)

// isNullConst reports whether a value is a null pointer constant.
func isNullConst(v *value) bool {
	return v.q.T.kind == tNull || v.lit && v.q.T.isInt() && len(v.comps) == 1 && isZero(v.comps[0])
}

// convRank says how well a value converts to a parameter's type.
func (ch *chooser) convRank(v *value, to qtype) rank {
	if v.bad() || to.T.kind == tBad {
		return rankExact
	}
	if ch.isFunctionFor(v, to) {
		return rankExact
	}
	if to.T.kind == tRef {
		return ch.refRank(v, to.T)
	}
	if v.k == vList {
		return ch.listRank(v, to)
	}
	if v.k == vFuncs || v.k == vVoid || v.k == vType {
		return rankNone
	}
	from := ch.c.types.decayed(v)
	if r := ch.stdRank(v, from.T, to.T); r != rankNone {
		return r
	}
	return ch.userRank(v, from.T, to.T)
}

// stdRank is the rank of a standard conversion between unqualified types.
func (ch *chooser) stdRank(v *value, from, to *ctype) rank {
	if from == to {
		return rankExact
	}
	switch to.kind {
	case tScalar:
		switch from.kind {
		case tScalar:
			return arithRank(from.kt, to.kt)
		case tEnum:
			if from.en.scoped {
				return rankNone
			}
			if to.kt == from.kt {
				return rankPromotion
			}
			return rankConversion
		case tPtr, tNull:
			if to.kt == kir.Bool {
				return rankConversion
			}
		}
	case tVec:
		if to.packed && from == to.unpacked() {
			return rankQual
		}
		if _, n := from.shape(); n == 1 { // a scalar spreads over a vector
			return rankSplat
		}
	case tPtr:
		if isNullConst(v) {
			return rankConversion
		}
		if from.kind == tPtr {
			return ch.ptrRank(from.elem, to.elem)
		}
	case tStruct:
		if from.kind == tStruct {
			if _, ok := derivesFrom(from, to); ok {
				return rankConversion
			}
		}
	case tNull:
		if isNullConst(v) {
			return rankConversion
		}
	}
	return rankNone
}

// arithRank: promotions are those of C++; from half to float is a conversion like any other. Other floats become bfloat
// by a cast only, and bfloat half.
func arithRank(from, to kir.Type) rank {
	switch {
	case from == to:
		return rankExact
	case to == kir.BF16 && from.IsFloat(), from == kir.BF16 && to == kir.F16:
		return rankNone
	}
	if to == kir.I32 && (from == kir.Bool || from.IsInt() && from.Size() < 4) {
		return rankPromotion
	}
	if from == kir.F32 && to == kir.F64 {
		return rankPromotion
	}
	return rankConversion
}

func (ch *chooser) ptrRank(from, to qtype) rank {
	if from.Space.normal() != to.Space.normal() {
		return rankNone
	}
	if from.Const && !to.Const || from.Vol && !to.Vol {
		return rankNone
	}
	r := rankExact
	if !from.sameCV(to) {
		r = rankQual
	}
	switch {
	case from.T == to.T:
		return r
	case to.T.kind == tVoid:
		return rankConversion
	case from.T.kind == tStruct && to.T.kind == tStruct:
		if _, ok := derivesFrom(from.T, to.T); ok {
			return rankConversion
		}
	case from.T.kind == tArray && to.T.kind == tArray && from.T.elem.T == to.T.elem.T && to.T.n < 0:
		return rankConversion
	}
	return rankNone
}

// refRank says how well a reference binds to a value.
func (ch *chooser) refRank(v *value, to *ctype) rank {
	e := to.elem
	if v.k == vList {
		if e.Const {
			return ch.listRank(v, e.bare())
		}
		return rankNone
	}
	lv := v.isLvalue()
	same := v.q.T == e.T || e.T.kind == tArray && v.q.T.kind == tArray && v.q.T.elem.T == e.T.elem.T && e.T.n < 0
	if !same && v.q.T.kind == tStruct && e.T.kind == tStruct {
		_, same = derivesFrom(v.q.T, e.T)
	}
	if same && lv && to.rvalueRef() {
		return rankNone
	}
	if same && lv {
		if v.q.Space.normal() != e.Space.normal() {
			// a value in another address space can be copied for a const reference to thread memory
			if e.Const && e.Space.normal() == SpaceNone && v.q.T.kind != tArray {
				return rankConversion
			}
			return rankNone
		}
		if v.q.Const && !e.Const || v.q.Vol && !e.Vol {
			return rankNone
		}
		if (v.k == vSwz || v.isBits()) && !e.Const { // it would be bound to a copy
			return rankNone
		}
		if !v.q.sameCV(e) {
			return rankQual
		}
		return rankExact
	}
	// a temporary is made
	if !e.Const && !to.rvalueRef() || e.Space.normal() != SpaceNone && e.Space != SpaceConstant {
		return rankNone
	}
	if same {
		return rankQual
	}
	return max(ch.convRank(v, e.bare()), rankQual)
}

func (t *ctype) rvalueRef() bool { return t.n == 1 }

// listRank says how well a braced list initialises a type.
func (ch *chooser) listRank(v *value, to qtype) rank {
	t := to.T
	n := len(v.list.Elems)
	switch t.kind {
	case tScalar, tPtr, tEnum:
		if n <= 1 {
			return rankConversion
		}
	case tVec, tArray:
		return rankConversion
	case tStruct:
		ch.c.complete(t.st)
		if t.st.userCtor || n <= len(t.st.fields) {
			return rankUser
		}
	}
	return rankNone
}

// userRank looks for a conversion by constructor or conversion function.
func (ch *chooser) userRank(v *value, from, to *ctype) rank {
	if ch.inUserConv {
		return rankNone
	}
	if to.kind == tStruct && ch.convertingCtor(v, to) != nil {
		return rankUser
	}
	if from.kind == tStruct && ch.conversionFunc(v, to) != nil {
		return rankUser
	}
	return rankNone
}

// convertingCtor finds the constructor that converts a value to a class, nil if there is none or no single best one.
func (ch *chooser) convertingCtor(v *value, to *ctype) *funcInst {
	fs := ch.c.methods(to, "(constructor)")
	if len(fs) == 0 {
		return nil
	}
	ch.inUserConv = true
	defer func() { ch.inUserConv = false }()
	var usable []*funcEnt
	for _, f := range fs {
		if !f.decl.Specs.Explicit {
			usable = append(usable, f)
		}
	}
	self := value{k: vSlot, q: qt(to), obj: &object{q: qt(to)}}
	inst, _ := ch.resolve(usable, nil, []value{*v}, &self, true)
	return inst
}

// conversionFunc finds the conversion function of a class object to a type.
func (ch *chooser) conversionFunc(v *value, to *ctype) *funcInst {
	fs := ch.c.methods(v.q.T, "(conversion)")
	if len(fs) == 0 {
		return nil
	}
	ch.inUserConv = true
	defer func() { ch.inUserConv = false }()
	var best *funcInst
	bestRank := rankNone
	for _, f := range fs {
		inst := ch.instConversion(f, v, to)
		if inst == nil || !ch.methodFits(inst, v) {
			continue
		}
		ret := value{k: vRight, q: inst.ret.noRef().bare()}
		r := ch.stdRank(&ret, ret.q.T, to)
		if f.decl.Specs.Explicit && r != rankExact {
			continue
		}
		if r < bestRank || r == bestRank && r != rankNone && best != nil && ch.thisRank(inst, v) < ch.thisRank(best, v) {
			best, bestRank = inst, r
		}
	}
	return best
}

// instConversion returns a conversion function, deducing the parameters of a template from the type asked for.
func (ch *chooser) instConversion(f *funcEnt, v *value, to *ctype) *funcInst {
	if f.tmpl == nil {
		return ch.instFor(f, nil)
	}
	d := newDeduction(ch.c, f.tmpl.Params, f.env)
	if !d.typ(f.decl.Name.Conv, qt(to), false) {
		return nil
	}
	var inst *funcInst
	ok := ch.c.trial(func() {
		if _, full := ch.res.fill(d, f.decl.Pos()); full {
			inst = ch.instFor(f, d.got)
		}
	})
	if !ok {
		return nil
	}
	return inst
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
	if to.T.kind == tStruct {
		if inst := cv.choose.convertingCtor(&v, to.T); inst != nil {
			return cv.ctor.construct(to.T, inst, []value{v}, at)
		}
	}
	if from.T.kind == tStruct {
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
	cv.c.errorf(TypeMismatch, at, "%s: %s does not convert to %s%s", what, from, to, vectorHint(from.T, to.T))
}

func spaceName(s Space) string {
	if s.normal() == SpaceNone {
		return "thread"
	}
	return s.String()
}

// convStd carries out a standard conversion that is known to exist.
func (ar *arithmetic) convStd(v value, to *ctype) value {
	lit := v.lit
	v = ar.mem.rvalue(v)
	if v.bad() || v.q.T == to {
		return v
	}
	switch to.kind {
	case tScalar, tEnum:
		if len(v.comps) != 1 {
			return badValue
		}
		r := rval(to, ar.em.convert(v.comps[0], to.kt))
		r.lit = lit
		return r
	case tVec:
		if v.q.T == to.unpacked() {
			v.q.T = to
			return v
		}
		x := ar.em.convert(v.comps[0], to.elem.T.kt)
		r := value{k: vRight, q: qt(to), comps: make([]operand, to.n)}
		for i := range r.comps {
			r.comps[i] = x
		}
		return r
	case tPtr:
		if v.q.T.kind != tPtr {
			return rval(to, operand{ty: to.kirScalar()})
		}
		p := v.comps[0]
		if v.q.T.elem.T.kind == tStruct && to.elem.T.kind == tStruct {
			if path, ok := derivesFrom(v.q.T.elem.T, to.elem.T); ok {
				off := 0
				for _, f := range path {
					off += f.off
				}
				p = ar.em.ptrAdd(p, operand{}, int64(off))
			}
		}
		return rval(to, p)
	case tStruct:
		path, ok := derivesFrom(v.q.T, to)
		if !ok {
			return badValue
		}
		return ar.mem.load(ar.mem.member(v, path))
	}
	v.q.T = to
	return v
}

// rvalue reads an lvalue; arrays become pointers to their first elements.
func (mem *memory) rvalue(v value) value {
	if v.q.T.kind == tArray && (v.isLvalue() || v.k == vMem) {
		return mem.decay(v)
	}
	return mem.load(v)
}

// decay turns an array into a pointer to its first element.
func (mem *memory) decay(v value) value {
	t := mem.c.types.decayed(&v)
	if v.k == vSlot && v.q.Space == SpaceConstant {
		p := mem.constRegion(v.obj)
		return rval(t.T, mem.em.ptrAdd(p, operand{}, slotOffset(v)))
	}
	m := mem.toMemory(v)
	if m.k != vMem {
		return badValue
	}
	return rval(t.T, mem.addr(m))
}

func slotOffset(v value) int64 {
	if v.off == 0 {
		return 0
	}
	return int64(v.obj.q.T.compOffsets(nil, 0)[v.off])
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
	if v.q.T.kind == tEnum && v.q.T.en.scoped {
		cv.c.errorf(TypeMismatch, at, "a condition of type %s", v.q.T)
		return boolConst(false)
	}
	r := cv.convertTo(v, qt(typeBool), at, "a condition")
	if r.bad() || len(r.comps) != 1 {
		return boolConst(false)
	}
	return r.comps[0]
}

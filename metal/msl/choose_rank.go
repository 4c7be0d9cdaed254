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
			if from.enum.scoped {
				return rankNone
			}
			if to.kt == from.kt {
				return rankPromotion
			}
			return rankConversion
		case tPtr:
			if to.kt == kir.Bool {
				return rankConversion
			}
		}
	case tVec:
		if to.packed && from == to.unpacked() {
			return rankQual
		}
		if e, n := from.shape(); n == 1 && arithRank(e.kt, to.elem.T.kt) != rankNone { // a scalar spreads over a vector
			return rankSplat
		}
	case tPtr:
		if isNullConst(v) {
			return rankConversion
		}
		if from.kind == tPtr {
			return ch.ptrRank(from.elem, to.elem)
		}
	case tClass:
		if from.kind == tClass {
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
	case from.T.kind == tClass && to.T.kind == tClass:
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
	if !same && v.q.T.kind == tClass && e.T.kind == tClass {
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
	case tClass:
		ch.c.complete(t.class)
		if t.class.userCtor || n <= len(t.class.fields) {
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
	if to.kind == tClass && ch.convertingCtor(v, to) != nil {
		return rankUser
	}
	if from.kind == tClass && ch.conversionFunc(v, to) != nil {
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
		if f.decl.Specs.Explicit {
			continue
		}
		inst := ch.instConversion(f, v, to)
		if inst == nil || !ch.methodFits(inst, v) {
			continue
		}
		ret := value{k: vRight, q: inst.ret.noRef().bare()}
		r := ch.stdRank(&ret, ret.q.T, to)
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

// condType is the common type of the sides of ?:, nil if there is none.
func (ch *chooser) condType(a, b value) *ctype {
	ta, tb := a.q.T, b.q.T
	switch {
	case a.k == vList || b.k == vList:
		return nil
	case ta == tb:
		return ta
	case (ta.isArith() || ta.isUnscopedEnum()) && (tb.isArith() || tb.isUnscopedEnum()):
		return usualType(ta, tb)
	case ta.kind == tPtr && isNullConst(&b):
		return ta
	case tb.kind == tPtr && isNullConst(&a):
		return tb
	case ta.kind == tPtr && tb.kind == tPtr:
		return ch.c.types.commonPointer(ta, tb)
	case ta.kind == tPtr && tb.kind != tClass, tb.kind == tPtr && ta.kind != tClass:
		return nil
	}
	ra, rb := ch.convRank(&a, qt(tb)), ch.convRank(&b, qt(ta))
	switch {
	case ra != rankNone && (rb == rankNone || tb.kind == tVec):
		return tb
	case rb != rankNone:
		return ta
	}
	return nil
}

func (ch *chooser) convertsTo(x Expr, et qtype, q qtype) bool {
	v := value{k: vRight, q: et}
	return ch.convRank(&v, q.bare()) != rankNone
}

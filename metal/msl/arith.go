package msl

import (
	"github.com/mlxlua/mlxlua/metal/kir"
)

// arithmetic computes with numbers, vectors and pointers by the operators of the language.
type arithmetic struct {
	c        *compiler
	em       *emitter
	mem      *memory
	contract bool // multiply and add may become fma
}

// arithContracted is arith with contraction: a product that is an operand of + or - in the same expression becomes an
// fma.
func (ar *arithmetic) arithContracted(op Operator, a, b value, xa, xb Expr, at Pos) value {
	if a.bad() || b.bad() {
		return badValue
	}
	if ar.contract && (op == OperatorAdd || op == OperatorSub) {
		if isMulExpr(xa) || isMulExpr(xb) {
			if r, ok := ar.fmaOf(op, a, b, isMulExpr(xa), isMulExpr(xb)); ok {
				return r
			}
		}
	}
	return ar.arith(op, a, b, at)
}

// fmaOf forms a*b+c per component where an operand is a product of the result's type.
func (ar *arithmetic) fmaOf(op Operator, a, b value, ma, mb bool) (value, bool) {
	t, a, b, ok := ar.common(a, b)
	if !ok {
		return badValue, false
	}
	e, _ := t.shape()
	if e == nil || !e.isFloat() {
		return badValue, false
	}
	product := func(o operand) bool { return o.in != nil && o.in.Op == kir.Mul && o.in.Type == e.kt }
	all := func(v value) bool {
		for _, c := range v.comps {
			if !product(c) {
				return false
			}
		}
		return true
	}
	r := value{k: vRight, q: qt(t)}
	neg := func(o operand) operand { return ar.em.op(kir.Neg, e.kt, o) }
	of := func(in *kir.Instr) operand {
		if in.Op == kir.Const {
			return operand{ty: in.Type, bits: in.Imm}
		}
		return operand{in: in, ty: in.Type}
	}
	switch {
	case ma && all(a):
		for i, c := range a.comps {
			z := b.comps[i]
			if op == OperatorSub {
				z = neg(z)
			}
			r.comps = append(r.comps, ar.em.op(kir.Fma, e.kt, of(c.in.Args[0]), of(c.in.Args[1]), z))
		}
	case mb && all(b):
		for i, c := range b.comps {
			x := of(c.in.Args[0])
			if op == OperatorSub {
				x = neg(x)
			}
			r.comps = append(r.comps, ar.em.op(kir.Fma, e.kt, x, of(c.in.Args[1]), a.comps[i]))
		}
	default:
		return badValue, false
	}
	return r, true
}

// arith evaluates a builtin binary operator on rvalues.
func (ar *arithmetic) arith(op Operator, a, b value, at Pos) value {
	if a.bad() || b.bad() {
		return badValue
	}
	if a.q.T.kind == tPtr || b.q.T.kind == tPtr || a.q.T.kind == tNull || b.q.T.kind == tNull {
		return ar.pointerOperator(op, a, b, at)
	}
	if op == OperatorShl || op == OperatorShr {
		return ar.shift(op, a, b, at)
	}
	isCmp := op >= OperatorEq && op <= OperatorGe
	if isCmp && a.q.T == b.q.T && a.q.T.kind == tEnum {
		return rval(typeBool, ar.em.op(arithOps[op], kir.Bool, a.comps[0], b.comps[0]))
	}
	t, ca, cb, ok := ar.common(a, b)
	if !ok {
		ar.badOperands(op, a, b, at)
		return badValue
	}
	e, n := t.shape()
	switch op {
	case OperatorRem, OperatorAnd, OperatorOr, OperatorXor:
		ea, _ := a.q.T.unpacked().shape() // nil: of an enumeration
		eb, _ := b.q.T.unpacked().shape()
		ok = !e.isFloat() && (ea == nil || !ea.isFloat()) && (eb == nil || !eb.isFloat())
	}
	if !ok || e.isBool() && n > 1 && !isCmp && op != OperatorAnd && op != OperatorOr && op != OperatorXor {
		ar.badOperands(op, a, b, at)
		return badValue
	}
	if (op == OperatorDiv || op == OperatorRem) && e.isInt() && n == 1 && isZero(cb.comps[0]) {
		if ar.em.exec {
			ar.em.notConst("a division by zero")
		}
	}
	rt, rk := t, e.kt
	if isCmp {
		rt, rk = vecOf(typeBool, n), kir.Bool
	}
	r := value{k: vRight, q: qt(rt), comps: make([]operand, n)}
	for i := range r.comps {
		r.comps[i] = ar.em.op(arithOps[op], rk, ca.comps[i], cb.comps[i])
	}
	return r
}

func (ar *arithmetic) badOperands(op Operator, a, b value, at Pos) {
	hint, ta, tb := "", a.q.T, b.q.T
	e, _ := ta.shape()
	f, _ := tb.shape()
	switch {
	case ta.kind == tPtr && tb.isScalar() && (op == OperatorAdd || op == OperatorSub):
		hint = ": index the pointer, or write uint(...) around the offset"
	case ta.kind == tPtr && f != nil || tb.kind == tPtr && e != nil:
		hint = pointerHint
	case op == OperatorRem:
		hint = ": write fmod(a, b)"
	case op == OperatorXor && e != nil && f != nil:
		hint = ": ^ works on the bits of integers; a power is pow(a, b)"
	}
	ar.c.errorf(BadOperands, at, "%s is not defined on %s and %s%s", op, a.q.T, b.q.T, hint)
}

// shift evaluates << and >>: the operands are promoted separately, the result has the type of the left one.
func (ar *arithmetic) shift(op Operator, a, b value, at Pos) value {
	ta, tb := a.q.T.unpacked(), b.q.T.unpacked()
	ea, na := ta.shape()
	eb, nb := tb.shape()
	if ta.isUnscopedEnum() {
		ea, na = promoted(ta), 1
	}
	if tb.isUnscopedEnum() {
		eb, nb = promoted(tb), 1
	}
	if ea == nil || eb == nil || ea.isFloat() || eb.isFloat() || nb > 1 && na != nb && na > 1 {
		ar.badOperands(op, a, b, at)
		return badValue
	}
	if na == 1 && nb > 1 {
		a = ar.convStd(a, vecOf(ea, nb))
		na = nb
	}
	if na == 1 {
		a = ar.promote(a)
		ea = a.q.T
	}
	if na > 1 && ea.isBool() {
		ar.badOperands(op, a, b, at)
		return badValue
	}
	r := value{k: vRight, q: qt(vecOf(ea, na)), comps: make([]operand, na)}
	for i := range r.comps {
		y := b.comps[0]
		if nb > 1 {
			y = b.comps[i]
		}
		// A count past the left type's width is taken modulo it: cutting it to that type first changes nothing.
		r.comps[i] = ar.em.op(arithOps[op], ea.kt, a.comps[i], ar.em.convert(y, ea.kt))
	}
	return r
}

// index converts an index to a byte offset: extended by its own type, so that a uint wraps at 32 bits first.
func (ar *arithmetic) index(v value, size int, at Pos) (operand, bool) {
	v = ar.mem.rvalue(v)
	if v.bad() {
		return operand{}, false
	}
	if !v.q.T.intLike() {
		ar.c.errorf(BadOperands, at, "an index of type %s%s", v.q.T, indexHint(v.q.T))
		return operand{}, false
	}
	i := ar.em.convert(ar.promote(v).comps[0], kir.I64)
	return ar.em.op(kir.Mul, kir.I64, i, i64(int64(size))), true
}

// pointerHint says how to come to the value that a pointer was taken for.
const pointerHint = ": index the pointer, as in p[0]; an input array of no dimensions is a number"

// pointerOperator evaluates + - and comparisons of pointers.
func (ar *arithmetic) pointerOperator(op Operator, a, b value, at Pos) value {
	ta, tb := a.q.T, b.q.T
	switch {
	case op == OperatorAdd && ta.kind == tPtr && tb.intLike():
		return ar.pointerAdd(a, b, false, at)
	case op == OperatorAdd && tb.kind == tPtr && ta.intLike():
		return ar.pointerAdd(b, a, false, at)
	case op == OperatorSub && ta.kind == tPtr && tb.intLike():
		return ar.pointerAdd(a, b, true, at)
	case op == OperatorSub && ta.kind == tPtr && tb.kind == tPtr && ta.elem.T == tb.elem.T && ta.elem.T.size > 0 &&
		ta.kirScalar() == tb.kirScalar():
		d := ar.em.op(kir.PtrDiff, kir.I64, a.comps[0], b.comps[0])
		return rval(typeLong, ar.em.op(kir.Div, kir.I64, d, i64(int64(ta.elem.T.size))))
	case op >= OperatorEq && op <= OperatorGe:
		return ar.comparePointers(op, a, b, at)
	}
	ar.badOperands(op, a, b, at)
	return badValue
}

// comparePointers evaluates == and its like of two pointers to objects of one type, and == and != of a pointer and the
// null pointer.
func (ar *arithmetic) comparePointers(op Operator, a, b value, at Pos) value {
	ta, tb := a.q.T, b.q.T
	equality := op == OperatorEq || op == OperatorNe
	switch {
	case ta.kind == tPtr && tb.kind == tPtr:
		if ta.kirScalar() != tb.kirScalar() {
			ar.c.errorf(AddressSpace, at, "%s compares pointers to different address spaces: %s and %s", op, ta, tb)
			return badValue
		}
		if t := ar.c.types.commonPointer(ta, tb); t != nil {
			a, b = ar.convStd(a, t), ar.convStd(b, t)
			return rval(typeBool, ar.em.op(arithOps[op], kir.Bool, a.comps[0], b.comps[0]))
		}
	case !equality:
	case ta.kind == tPtr && isNullConst(&b):
		return rval(typeBool, ar.em.op(arithOps[op], kir.Bool, a.comps[0], operand{ty: a.comps[0].ty}))
	case tb.kind == tPtr && isNullConst(&a):
		return rval(typeBool, ar.em.op(arithOps[op], kir.Bool, operand{ty: b.comps[0].ty}, b.comps[0]))
	case isNullConst(&a) && isNullConst(&b):
		return rval(typeBool, boolConst(op == OperatorEq))
	}
	ar.badOperands(op, a, b, at)
	return badValue
}

func (ar *arithmetic) pointerAdd(p, i value, minus bool, at Pos) value {
	e := p.q.T.elem.T
	if !ar.c.isComplete(e) {
		ar.c.errorf(Incomplete, at, "arithmetic on a pointer to %s", e)
		return badValue
	}
	off, ok := ar.index(i, e.size, at)
	if !ok {
		return badValue
	}
	if minus {
		off = ar.em.op(kir.Neg, kir.I64, off)
	}
	return rval(p.q.T, ar.em.ptrAdd(p.comps[0], off, 0))
}

func (ar *arithmetic) vecLogical(x *BinaryExpr, a, b value) value {
	if a.bad() || b.bad() {
		return badValue
	}
	_, n := a.q.T.shape()
	if _, m := b.q.T.shape(); m != n {
		ar.badOperands(x.Operator, a, b, x.Pos())
		return badValue
	}
	op := kir.Or
	if x.Operator == OperatorLAnd {
		op = kir.And
	}
	r := value{k: vRight, q: qt(vecOf(typeBool, n))}
	for i := range n {
		p, q := ar.em.convert(a.comps[i], kir.Bool), ar.em.convert(b.comps[i], kir.Bool)
		r.comps = append(r.comps, ar.em.op(op, kir.Bool, p, q))
	}
	return r
}

func (ar *arithmetic) arithUnary(op Operator, v value, at Pos) value {
	if v.bad() {
		return badValue
	}
	t := v.q.T
	if op == OperatorPlus && t.kind == tPtr {
		return v
	}
	if t.isUnscopedEnum() {
		v = ar.promote(v)
		t = v.q.T
	}
	e, n := t.shape()
	if n == 0 || op == OperatorNot && e.isFloat() {
		hint := ""
		if t.kind == tPtr {
			hint = pointerHint
		}
		ar.c.errorf(BadOperands, at, "%s is not defined on %s%s", op, t, hint)
		return badValue
	}
	if n == 1 {
		v = ar.promote(v)
		e = v.q.T
	}
	r := value{k: vRight, q: qt(v.q.T)}
	for _, c := range v.comps {
		switch op {
		case OperatorNeg:
			c = ar.em.op(kir.Neg, e.kt, c)
		case OperatorNot:
			c = ar.em.op(kir.Not, e.kt, c)
		}
		r.comps = append(r.comps, c)
	}
	return r
}

var arithOps = map[Operator]kir.Op{
	OperatorAdd: kir.Add, OperatorSub: kir.Sub, OperatorMul: kir.Mul, OperatorDiv: kir.Div, OperatorRem: kir.Rem,
	OperatorAnd: kir.And, OperatorOr: kir.Or, OperatorXor: kir.Xor, OperatorShl: kir.Shl, OperatorShr: kir.Shr,
	OperatorEq: kir.Eq, OperatorNe: kir.Ne, OperatorLt: kir.Lt, OperatorLe: kir.Le, OperatorGt: kir.Gt,
	OperatorGe: kir.Ge,
}

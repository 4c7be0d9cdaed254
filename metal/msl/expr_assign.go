package msl

import (
	"github.com/mlxlua/mlxlua/metal/kir"
)

// unary evaluates a prefix operator.
func (xs *expressions) unary(x *UnaryExpr) value {
	switch x.Operator {
	case OperatorInc, OperatorDec:
		return xs.incDec(x.X, x.Operator, false, x.Pos())
	case OperatorDeref:
		if _, ok := stripParens(x.X).(*ThisExpr); ok {
			if v, ok := xs.res.thisObject(); ok {
				return v
			}
		}
	}
	var v value
	if x.Operator == OperatorAddrOf {
		v = xs.place(x.X)
	} else {
		v = xs.expr(x.X)
	}
	xs.em.at(x.Pos())
	if x.Operator == OperatorDeref || x.Operator == OperatorAddrOf {
		if v = xs.choose.functionObject(v); v.isFunction() {
			return v
		}
	}
	if v.bad() {
		return badValue
	}
	if v.q.T.kind == tClass {
		if r, ok := xs.calls.operatorCall(x.Operator, []value{v}, x.Pos(), x.Operator == OperatorAddrOf); ok {
			return r
		}
	}
	switch x.Operator {
	case OperatorAddrOf:
		return xs.mem.addressOf(v, x.Pos())
	case OperatorDeref:
		p := xs.conv.toPointer(xs.mem.rvalue(v))
		if p.bad() {
			return badValue
		}
		if p.q.T.kind != tPtr {
			hint := ""
			if t := xs.c.file.token(x.Pos() - 1); t != nil && t.kind == tMul {
				hint = ": there is no operator **: write pow(a, b), or a * a"
			}
			xs.c.errorf(BadOperands, x.Pos(), "* needs a pointer, not %s%s", p.q.T, hint)
			return badValue
		}
		return xs.mem.deref(p, operand{}, x.Pos())
	case OperatorLNot:
		if e, n := v.q.T.shape(); n > 1 {
			v = xs.mem.rvalue(v)
			r := value{k: vRight, q: qt(vecOf(typeBool, n))}
			for _, c := range v.comps {
				r.comps = append(r.comps, xs.em.op(kir.Eq, kir.Bool, c, operand{ty: e.kt}))
			}
			return r
		}
		return rval(typeBool, xs.em.not(xs.conv.condition(v, x.Pos())))
	}
	return xs.arith.arithUnary(x.Operator, xs.conv.toArith(xs.mem.rvalue(v)), x.Pos())
}

// incDec evaluates ++ and --.
func (xs *expressions) incDec(x Expr, op Operator, post bool, at Pos) value {
	v := xs.place(x)
	xs.em.at(at)
	if v.bad() {
		return badValue
	}
	if v.q.T.kind == tClass {
		args := []value{v}
		if post {
			args = append(args, intVal(typeInt, 0))
		}
		if r, ok := xs.calls.operatorCall(op, args, at, false); ok {
			return r
		}
	}
	if !xs.mem.assignable(v, at) {
		return badValue
	}
	old := xs.mem.rvalue(v)
	if old.bad() {
		return badValue
	}
	one := intVal(typeInt, 1)
	bop := OperatorAdd
	if op == OperatorDec {
		bop = OperatorSub
	}
	if old.q.T.isBool() {
		xs.c.errorf(BadOperands, at, "%s is not defined on bool", op)
		return badValue
	}
	nv := xs.arith.arith(bop, old, one, at)
	nv = xs.conv.backTo(nv, v.q, at)
	if nv.bad() {
		return badValue
	}
	xs.mem.store(v, nv)
	if post {
		return old
	}
	return v
}

// assign evaluates = and the compound assignments.
func (xs *expressions) assign(x *AssignExpr) value {
	l := xs.place(x.X)
	if l.bad() {
		xs.expr(x.Y)
		return badValue
	}
	if l.q.T.kind == tClass {
		r := xs.expr(x.Y)
		xs.em.at(x.Pos())
		if r.bad() {
			return badValue
		}
		if v, ok := xs.calls.operatorCall(assignOperators[x.Operator], []value{l, r}, x.Pos(), x.Operator == NoOperator); ok {
			return v
		}
		if x.Operator == NoOperator {
			return xs.assignTo(l, r, x.Pos())
		}
		xs.c.errorf(BadOperands, x.Pos(), "%s= is not defined on %s and %s", x.Operator, l.q.T, r.q.T)
		return badValue
	}
	if x.Operator == NoOperator {
		r := xs.expr(x.Y)
		xs.em.at(x.Pos())
		return xs.assignTo(l, r, x.Pos())
	}
	r := xs.expr(x.Y)
	xs.em.at(x.Pos())
	if r.bad() || !xs.mem.assignable(l, x.Pos()) {
		return badValue
	}
	if r.q.T.kind == tClass {
		if v, ok := xs.calls.operatorCall(assignOperators[x.Operator], []value{l, r}, x.Pos(), true); ok {
			return v
		}
	}
	r = xs.conv.toArith(xs.mem.rvalue(r))
	old := xs.mem.rvalue(l)
	nv := xs.conv.backTo(xs.arith.arithContracted(x.Operator, old, r, nil, x.Y, x.Pos()), l.q, x.Pos())
	if nv.bad() {
		return badValue
	}
	xs.mem.store(l, nv)
	return l
}

// assignOperators maps the operation of a compound assignment to its operator function.
var assignOperators = [...]Operator{
	NoOperator: OperatorAssign, OperatorAdd: OperatorAddAssign, OperatorSub: OperatorSubAssign,
	OperatorMul: OperatorMulAssign, OperatorDiv: OperatorDivAssign, OperatorRem: OperatorRemAssign,
	OperatorAnd: OperatorAndAssign, OperatorOr: OperatorOrAssign, OperatorXor: OperatorXorAssign,
	OperatorShl: OperatorShlAssign, OperatorShr: OperatorShrAssign,
}

func (xs *expressions) assignTo(l, r value, at Pos) value {
	if l.bad() || r.bad() || !xs.mem.assignable(l, at) {
		return badValue
	}
	nv := xs.conv.convertTo(r, l.q.bare(), at, "an assignment")
	if nv.bad() {
		return badValue
	}
	if nv.isLvalue() {
		nv = xs.mem.load(nv)
	}
	xs.mem.store(l, nv)
	return l
}

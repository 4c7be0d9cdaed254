package msl

import (
	"github.com/mlxlua/mlxlua/metal/kir"
)

// binary evaluates X op Y.
func (xs *expressions) binary(x *BinaryExpr) value {
	switch x.Operator {
	case OperatorComma:
		xs.expr(x.X)
		return xs.expr(x.Y)
	case OperatorLAnd, OperatorLOr:
		return xs.logical(x)
	}
	a := xs.expr(x.X)
	b := xs.expr(x.Y)
	xs.em.at(x.Pos())
	if a.bad() || b.bad() {
		return badValue
	}
	return xs.binaryOperator(x.Operator, a, b, x.X, x.Y, x.Pos())
}

func (xs *expressions) binaryOperator(op Operator, a, b value, xa, xb Expr, at Pos) value {
	if a.q.T.kind == tClass || b.q.T.kind == tClass || a.q.T.kind == tEnum || b.q.T.kind == tEnum {
		if r, ok := xs.calls.operatorCall(op, []value{a, b}, at, true); ok {
			return r
		}
		if a.q.T.kind == tClass {
			a = xs.conv.toArith(a)
		}
		if b.q.T.kind == tClass {
			b = xs.conv.toArith(b)
		}
	}
	for _, v := range []*value{&a, &b} {
		if v.k == vFuncs {
			xs.c.errorf(BadOperands, at, "%s has the function '%s' as an operand: it is not called", op, v.fn.name)
			return badValue
		}
	}
	if op == OperatorMul && a.q.T.kind == tSimdMat && b.q.T.kind == tSimdMat {
		return matrixProduct(xs.mem, a, b)
	}
	if a.k == vList || b.k == vList {
		xs.c.errorf(BadOperands, at, "a braced list is no operand of %s", op)
		return badValue
	}
	return xs.arith.arithContracted(op, xs.mem.rvalue(a), xs.mem.rvalue(b), xa, xb, at)
}

// isMulExpr reports whether an operand is written as a product, so that an addition may contract it to fma.
func isMulExpr(x Expr) bool {
	if x == nil {
		return false
	}
	b, ok := stripParens(x).(*BinaryExpr)
	return ok && b.Operator == OperatorMul
}

// logical evaluates && and ||: the right side only if the left does not decide, unless it has no effect and cannot
// fail.
func (xs *expressions) logical(x *BinaryExpr) value {
	av := xs.expr(x.X)
	if av.q.T.kind == tVec { // vectors: component by component, both sides
		bv := xs.expr(x.Y)
		return xs.arith.vecLogical(x, xs.mem.rvalue(av), xs.mem.rvalue(bv))
	}
	if av.q.T.kind == tClass {
		if r, ok := xs.calls.tryOperator(x.Operator, av, x.Y, x.Pos()); ok {
			return r
		}
	}
	a := xs.conv.condition(av, x.X.Pos())
	isAnd := x.Operator == OperatorLAnd
	if a.isConst() {
		if (a.bits != 0) != isAnd {
			if !xs.em.exec {
				xs.em.discard(func() { xs.conv.condition(xs.expr(x.Y), x.Y.Pos()) })
			}
			return rval(typeBool, a)
		}
		return rval(typeBool, xs.conv.condition(xs.expr(x.Y), x.Y.Pos()))
	}
	var b operand
	vecRight := false
	blk := xs.em.inBlock(func() {
		v := xs.expr(x.Y)
		vecRight = v.q.T.kind == tVec
		if !vecRight {
			b = xs.conv.condition(v, x.Y.Pos())
		}
	})
	xs.em.at(x.Pos())
	if vecRight {
		xs.c.errorf(BadOperands, x.Pos(), "%s is not defined on %s and a vector", x.Operator, av.q.T)
		return badValue
	}
	op := kir.Or
	if isAnd {
		op = kir.And
	}
	if speculable(blk) {
		xs.em.blk.Instrs = append(xs.em.blk.Instrs, blk.Instrs...)
		return rval(typeBool, xs.em.op(op, kir.Bool, a, b))
	}
	v := xs.em.newVar("logical", kir.Bool)
	xs.em.varSet(v, a)
	saved := xs.em.blk
	xs.em.blk = blk
	xs.em.varSet(v, b)
	xs.em.blk = saved
	cond := a
	if !isAnd {
		cond = xs.em.not(a)
	}
	xs.em.structured(&kir.Instr{Op: kir.If, Args: []*kir.Instr{xs.em.instr(cond)}, Body: blk})
	return rval(typeBool, xs.em.varGet(v))
}

// speculable reports whether code may run although the program would skip it: it is short, pure and reads no memory.
func speculable(b *kir.Block) bool {
	if len(b.Instrs) > 12 {
		return false
	}
	for _, in := range b.Instrs {
		if !in.Op.Pure() && in.Op != kir.VarGet {
			return false
		}
	}
	return true
}

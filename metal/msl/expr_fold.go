package msl

import (
	"github.com/mlxlua/mlxlua/metal/kir"
)

// foldExpr evaluates a fold over a pack.
func (xs *expressions) foldExpr(x *FoldExpr) value {
	pack, init, left := x.X, x.Y, false
	if x.X == nil { // (... op pack)
		pack, init, left = x.Y, nil, true
	} else if x.Y != nil { // (a op ... op b): the side with the packs
		if p, _ := xs.res.packsIn(x.X); len(p) == 0 {
			pack, init, left = x.Y, x.X, true
		}
	}
	var elems []Expr
	var envs []*env
	xs.res.expandPack(pack, func() {
		elems = append(elems, pack)
		envs = append(envs, xs.res.env)
	})
	saved := xs.res.env
	defer func() { xs.res.env = saved }()
	type item struct {
		x Expr
		e *env
	}
	var items []item
	if init != nil && left {
		items = append(items, item{init, saved})
	}
	for i := range elems {
		items = append(items, item{elems[i], envs[i]})
	}
	if init != nil && !left {
		items = append(items, item{init, saved})
	}
	if len(items) == 0 {
		switch x.Operator {
		case OperatorLAnd:
			return rval(typeBool, boolConst(true))
		case OperatorLOr:
			return rval(typeBool, boolConst(false))
		case OperatorComma:
			return voidValue
		}
		xs.c.errorf(BadTemplateArgs, x.Pos(), "a fold over an empty pack has no value for %s", x.Operator)
		return badValue
	}
	eval := func(i int) value {
		xs.res.env = items[i].e
		v := xs.expr(items[i].x)
		xs.res.env = saved
		return v
	}
	apply := func(a, b value) value {
		switch x.Operator {
		case OperatorComma:
			return b
		case OperatorLAnd, OperatorLOr:
			op := kir.And
			if x.Operator == OperatorLOr {
				op = kir.Or
			}
			return rval(typeBool, xs.em.op(op, kir.Bool, xs.conv.condition(a, x.Pos()), xs.conv.condition(b, x.Pos())))
		}
		if a.bad() || b.bad() {
			return badValue
		}
		return xs.binaryOperator(x.Operator, a, b, nil, nil, x.Pos())
	}
	vals := make([]value, len(items))
	for i := range items {
		vals[i] = eval(i)
	}
	if left || x.Operator == OperatorComma {
		r := vals[0]
		for _, v := range vals[1:] {
			r = apply(r, v)
		}
		return r
	}
	r := vals[len(vals)-1]
	for i := len(vals) - 2; i >= 0; i-- {
		r = apply(vals[i], r)
	}
	return r
}

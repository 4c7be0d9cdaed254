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
		switch x.Op {
		case OpLAnd:
			return rval(typeBool, boolConst(true))
		case OpLOr:
			return rval(typeBool, boolConst(false))
		case OpComma:
			return voidValue
		}
		xs.c.errorf(BadTemplateArgs, x.Pos(), "a fold over an empty pack has no value for %s", x.Op)
		return badValue
	}
	eval := func(i int) value {
		xs.res.env = items[i].e
		v := xs.expr(items[i].x)
		xs.res.env = saved
		return v
	}
	apply := func(a, b value) value {
		switch x.Op {
		case OpComma:
			return b
		case OpLAnd, OpLOr:
			op := kir.And
			if x.Op == OpLOr {
				op = kir.Or
			}
			return rval(typeBool, xs.em.op(op, kir.Bool, xs.conv.condition(a, x.Pos()), xs.conv.condition(b, x.Pos())))
		}
		if a.bad() || b.bad() {
			return badValue
		}
		return xs.binaryOp(x.Op, a, b, nil, nil, x.Pos())
	}
	vals := make([]value, len(items))
	for i := range items {
		vals[i] = eval(i)
	}
	if left || x.Op == OpComma {
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

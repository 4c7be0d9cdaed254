package msl

import (
	"github.com/mlxlua/mlxlua/metal/kir"
)

// enumFor returns the type of an enumeration declared in e.
func (c *compiler) enumFor(d *EnumDecl, e *env) *ctype {
	if t := c.enums[enumKey{d, e}]; t != nil {
		return t
	}
	en := &enumInfo{name: "(unnamed enum)", scoped: d.Scoped}
	if d.Name != nil {
		en.name = d.Name.Ident
	}
	t := &ctype{kind: tEnum, kt: kir.I32, enum: en, comps: 1}
	c.enums[enumKey{d, e}] = t
	if d.Underlying != nil {
		u := c.resolverIn(e).typeOf(d.Underlying)
		if u.T.isInt() || u.T.isBool() {
			t.kt = u.T.kt
		} else if u.T.kind != tBad {
			c.errorf(BadType, d.Underlying.Pos(), "an enumeration cannot have the underlying type %s", u)
		}
	} else {
		c.chooseUnderlying(t, d, e)
	}
	t.size, t.align = t.kt.Size(), t.kt.Size()
	en.scope = &env{kind: envClass, up: e}
	for i := range d.Values {
		en.scope.put(&entity{kind: eConst, name: d.Values[i].Name, enum: d, at: d.Values[i].At})
	}
	return t
}

type enumKey struct {
	d *EnumDecl
	e *env
}

// chooseUnderlying gives an enumeration without an underlying type one that holds its values.
func (c *compiler) chooseUnderlying(t *ctype, d *EnumDecl, e *env) {
	if d.Scoped {
		return
	}
	for i := range d.Values {
		v := c.enumValue(t, d, e, i)
		if v.ty == kir.U64 && v.bits>>32 != 0 || v.ty == kir.I64 && v.int() != int64(int32(v.int())) {
			t.kt = v.ty
			return
		}
		if (v.ty == kir.U32 || v.ty == kir.U64) && v.bits > 1<<31-1 {
			t.kt = kir.U32
		}
	}
}

// enumValue evaluates an enumerator.
func (c *compiler) enumValue(t *ctype, d *EnumDecl, e *env, i int) operand {
	key := enumValKey{d, e, i}
	if v, ok := c.enumVals[key]; ok {
		return v
	}
	c.enumVals[key] = operand{ty: kir.I32}
	var v operand
	rs := c.resolverIn(e)
	switch {
	case d.Values[i].X != nil:
		// earlier enumerators are in scope
		rs.env = &env{kind: envBlock, up: e}
		for j := range i {
			rs.env.put(&entity{kind: eConst, name: d.Values[j].Name, local: true, val: rval(typeInt, c.enumValue(t, d, e, j))})
		}
		x, ok := rs.eval().consts.constExpr(d.Values[i].X, "the value of an enumerator")
		if ok && len(x.comps) == 1 && x.q.T.isScalar() && !x.q.T.isFloat() {
			v = x.comps[0]
		} else {
			v = operand{ty: kir.I32}
		}
	case i == 0:
		v = operand{ty: kir.I32}
	default:
		prev := c.enumValue(t, d, e, i-1)
		v, _ = fold(kir.Add, prev.ty, []operand{prev, {ty: prev.ty, bits: 1}})
	}
	c.enumVals[key] = v
	return v
}

type enumValKey struct {
	d *EnumDecl
	e *env
	i int
}

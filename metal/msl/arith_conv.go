package msl

import (
	"github.com/mlxlua/mlxlua/metal/kir"
)

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
		if v.q.T.elem.T.kind == tClass && to.elem.T.kind == tClass {
			if path, ok := derivesFrom(v.q.T.elem.T, to.elem.T); ok {
				off := 0
				for _, f := range path {
					off += f.off
				}
				p = ar.em.ptrAdd(p, operand{}, int64(off))
			}
		}
		return rval(to, p)
	case tClass:
		path, ok := derivesFrom(v.q.T, to)
		if !ok {
			return badValue
		}
		return ar.mem.load(ar.mem.member(v, path))
	}
	v.q.T = to
	return v
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

// common applies the usual arithmetic conversions: promotion and the wider type for scalars, spreading a scalar
// over a vector; two vectors must be of one type.
func (ar *arithmetic) common(a, b value) (*ctype, value, value, bool) {
	a, b = ar.promoteBits(a), ar.promoteBits(b)
	ta, tb := a.q.T.unpacked(), b.q.T.unpacked()
	a.q.T, b.q.T = ta, tb
	if ta.kind == tVec || tb.kind == tVec {
		if ta.kind == tVec && tb.kind == tVec {
			return ta, a, b, ta == tb
		}
		if ta.kind == tVec {
			if !tb.isArith() && !tb.isUnscopedEnum() {
				return nil, a, b, false
			}
			return ta, a, ar.convStd(b, ta), true
		}
		if !ta.isArith() && !ta.isUnscopedEnum() {
			return nil, a, b, false
		}
		return tb, ar.convStd(a, tb), b, true
	}
	if !ta.isArith() && !ta.isUnscopedEnum() || !tb.isArith() && !tb.isUnscopedEnum() {
		return nil, a, b, false
	}
	t := usualType(ta, tb)
	return t, ar.convStd(a, t), ar.convStd(b, t), true
}

// promote applies the integer promotions to a scalar.
func (ar *arithmetic) promote(v value) value {
	v = ar.promoteBits(v)
	t := v.q.T
	if t.kind == tEnum && !t.enum.scoped || t.isBool() || t.isInt() && t.size < 4 {
		to := typeInt
		if t.kind == tEnum && t.size >= 4 {
			to = scalarTypes[t.kt]
		}
		r := rval(to, ar.em.convert(v.comps[0], to.kt))
		r.lit = v.lit
		return r
	}
	return v
}

// usualType is the type that two scalars of different types are computed in.
func usualType(a, b *ctype) *ctype {
	a, b = promoted(a), promoted(b)
	if a == b {
		return a
	}
	if a.isFloat() || b.isFloat() {
		switch {
		case !a.isFloat():
			return b
		case !b.isFloat():
			return a
		case a.size == b.size: // half and bfloat
			return typeFloat
		case a.size > b.size:
			return a
		}
		return b
	}
	switch {
	case a.size > b.size:
		return a
	case b.size > a.size:
		return b
	case a.kt.IsSigned():
		return b
	}
	return a
}

func promoted(t *ctype) *ctype {
	if t.kind == tEnum {
		if t.size >= 4 {
			return scalarTypes[t.kt]
		}
		return typeInt
	}
	if t.isBool() || t.isInt() && t.size < 4 {
		return typeInt
	}
	return t
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

package msl

import (
	"github.com/mlxlua/mlxlua/metal/kir"
)

// loadBits reads a bit-field: cut out and, if its type is signed, extended by its sign.
func (mem *memory) loadBits(v value) value {
	b := v.bits
	x := mem.loadAt(b.unit, mem.addr(v), v.q.Vol)
	kt := v.q.T.kt
	wide := kir.U32
	if b.unit == kir.U64 || kt.Size() == 8 {
		wide = kir.U64
	}
	signed := kir.I32
	if wide == kir.U64 {
		signed = kir.I64
	}
	if !kt.IsSigned() {
		signed = wide
	}
	n := 8 * wide.Size()
	shift := func(op kir.Op, t kir.Type, x operand, by int) operand {
		return mem.em.op(op, t, x, constant(t, uint64(by)))
	}
	x = shift(kir.Shl, wide, mem.em.convert(x, wide), n-b.shift-b.width)
	x = shift(kir.Shr, signed, mem.em.convert(x, signed), n-b.width)
	r := rval(v.q.T, mem.em.convert(x, kt))
	r.bits.width = b.width
	return r
}

// storeBits writes a bit-field and keeps the bits around it.
func (mem *memory) storeBits(v value, x operand) {
	b := v.bits
	p := mem.addr(v)
	mask := uint64(1)<<b.width - 1
	if b.width == 64 {
		mask = ^uint64(0)
	}
	x = mem.em.convert(x, b.unit)
	if 8*b.unit.Size() > b.width {
		unit := func(n uint64) operand { return constant(b.unit, n) }
		x = mem.em.op(kir.Shl, b.unit, mem.em.op(kir.And, b.unit, x, unit(mask)), unit(uint64(b.shift)))
		old := mem.loadAt(b.unit, p, v.q.Vol)
		x = mem.em.op(kir.Or, b.unit, mem.em.op(kir.And, b.unit, old, unit(^(mask<<b.shift))), x)
	}
	mem.storeAt(p, x)
}

// promoteBits promotes what a bit-field held to int if int has all its values, whatever the field's type; to uint if
// that has.
func (ar *arithmetic) promoteBits(v value) value {
	w := v.bits.width
	v.bits = bitField{}
	if w == 0 || v.k != vRight || !v.q.T.isInt() || w > 32 {
		return v
	}
	t := typeInt
	if w == 32 && !v.q.T.kt.IsSigned() {
		t = typeUint
	}
	v.q.T, v.comps = t, []operand{ar.em.convert(v.comps[0], t.kt)}
	return v
}

// addBits places a bit-field: at the next bit, but never across a multiple of its type's size. A class with
// bit-fields lives in memory, as a union does: its fields share bytes.
func (l *layout) addBits(rs *resolver, f field) {
	t, ft := l.st.typ, f.q.T
	at := f.decl.Pos()
	n, ok := rs.eval().consts.constInt(f.decl.Bits, "the width of a bit-field")
	switch {
	case !ok:
		return
	case !ft.isInt() && !ft.isBool() && ft.kind != tEnum:
		rs.c.errorf(BadType, at, "a bit-field of type %s: it must be an integer, bool or an enumeration", f.q)
		return
	case n < 0 || n > int64(8*ft.size) || n == 0 && f.name != "":
		rs.c.errorf(BadType, at, "a bit-field of %d bits: %s has 1 to %d", n, f.q, 8*ft.size)
		return
	}
	width, size := int(n), 8*ft.size
	t.comps = -1
	bit := l.bits
	if bit == 0 && !l.st.union {
		bit = 8 * t.size
	}
	if width == 0 || bit%size+width > size {
		bit = alignUp(bit, size)
	}
	end := bit + width
	if f.name != "" {
		f.bits.width = width
		unit := 8 // the fewest bytes that hold the field
		for bit/unit != (end-1)/unit {
			unit *= 2
		}
		f.off, f.bits.shift = bit/unit*unit/8, bit%unit
		f.bits.unit = map[int]kir.Type{8: kir.U8, 16: kir.U16, 32: kir.U32, 64: kir.U64}[unit]
		l.st.fields = append(l.st.fields, f)
		t.align = max(t.align, ft.align, l.align)
	}
	t.size = max(t.size, (end+7)/8)
	if !l.st.union {
		l.bits = end
	}
}

// bitField says which bits of memory a field is: width bits from bit shift on of the integer of type unit that stands
// at the field's offset. The zero value stands for an ordinary field.
type bitField struct {
	shift, width int
	unit         kir.Type
}

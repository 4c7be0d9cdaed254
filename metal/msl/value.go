package msl

import (
	"math"
	"strconv"

	"github.com/mlxlua/mlxlua/metal/kir"
)

// operand is a scalar: a constant if in is nil, else the result of an instruction. The zero operand is no value.
type operand struct {
	in   *kir.Instr
	ty   kir.Type
	bits uint64
}

func (o operand) isConst() bool { return o.in == nil && o.ty != kir.Void }

// int returns a constant integer's or bool's value, extended by its type.
func (o operand) int() int64 {
	if o.ty.IsInt() && o.ty.IsSigned() {
		s := 64 - o.ty.Bits()
		return int64(o.bits<<s) >> s
	}
	return int64(o.bits)
}

// text writes a constant of type t for messages.
func (o operand) text(t *ctype) string {
	switch {
	case t == typeBool:
		return strconv.FormatBool(o.bits != 0)
	case o.ty.IsFloat():
		return strconv.FormatFloat(kir.ToFloat64(o.ty, o.bits), 'g', -1, 32)
	case o.ty == kir.U64:
		return strconv.FormatUint(o.bits, 10)
	}
	return strconv.FormatInt(o.int(), 10)
}

func constant(t kir.Type, bits uint64) operand { return operand{ty: t, bits: bits & t.Mask()} }
func boolConst(b bool) operand {
	if b {
		return operand{ty: kir.Bool, bits: 1}
	}
	return operand{ty: kir.Bool}
}
func i64(v int64) operand  { return operand{ty: kir.I64, bits: uint64(v)} }
func u32(v uint32) operand { return operand{ty: kir.U32, bits: uint64(v)} }
func fconst(t kir.Type, v float64) operand {
	return operand{ty: t, bits: kir.FromFloat64(t, v) & t.Mask()}
}

func isZero(o operand) bool { return o.isConst() && o.bits == 0 }
func isOne(o operand) bool  { return o.isConst() && o.bits == 1 }

// floatBits returns the constant of a floating literal: rounded once.
func floatBits(t kir.Type, l *FloatLit) uint64 {
	switch t {
	case kir.F32:
		if v, err := strconv.ParseFloat(l.Text, 32); err == nil {
			return uint64(math.Float32bits(float32(v)))
		}
		return uint64(math.Float32bits(float32(l.Value)))
	case kir.F64:
		return math.Float64bits(l.Value)
	}
	return kir.FromFloat64(t, l.Value) & t.Mask()
}

func convertConst(o operand, t kir.Type) operand {
	if o.ty == t {
		return o
	}
	if r, ok := fold(kir.Convert, t, []operand{o}); ok {
		return r
	}
	return o
}

// vkind says what a value is.
type vkind uint8

const (
	vBad   vkind = iota // an error has been reported
	vVoid               // no value
	vRight              // comps: its scalars
	vSlot               // an lvalue: part of obj from component off on
	vMem                // an lvalue in memory: ptr + idx + imm
	vSwz                // an lvalue: components sel of the vector base
	vDyn                // an lvalue: component idx of the vector base
	vBits               // an lvalue: the bits of a bit-field in memory at ptr + idx + imm
	vSel                // an lvalue: one of the two of choice
	vFuncs              // a set of functions, with the object for methods
	vType               // a type where an expression may stand
	vList               // a braced list
)

// value is the value of an expression: what it holds depends on k.
type value struct {
	k   vkind
	tmp bool // vMem: a temporary, an rvalue too large to be taken apart
	lit bool // vRight: the literal 0, which is a null pointer
	// component says of an lvalue that it is a component of a vector.
	component bool
	q         qtype
	comps     []operand
	obj       *object
	off       int
	ptr       operand
	idx       operand // I64 byte offset, or none
	imm       int64
	base      *value
	sel       []uint8
	fn        *overload
	list      *InitList
	bits      bitField // vBits: where it is; of a value read from a bit-field its width
	// choice is what vSel chooses between; chosen says of a vRight which object it was read from.
	choice *selection
	chosen *chosen
}

func (v *value) bad() bool { return v.k == vBad || v.q.T == nil || v.q.T.kind == tBad }
func (v *value) isLvalue() bool {
	switch v.k {
	case vSlot, vSwz, vDyn, vBits, vSel:
		return true
	case vMem:
		return !v.tmp
	}
	return v.chosen != nil
}

// isBits reports whether an lvalue is a bit-field.
func (v *value) isBits() bool {
	return v.k == vBits || v.chosen != nil && v.chosen.bits || v.k == vSel && (v.choice.a.isBits() || v.choice.b.isBits())
}

// inSlots reports whether an lvalue is a variable that is not in memory, or one of two such.
func (v *value) inSlots() bool {
	return v.k == vSlot && !v.obj.mem || v.k == vSel && v.choice.a.inSlots() && v.choice.b.inSlots()
}

var (
	badValue  = value{k: vBad, q: qtype{T: typeBad}}
	voidValue = value{k: vVoid, q: qtype{T: typeVoid}}
)

// object is a variable: its scalars in slots, or memory.
type object struct {
	name  string
	q     qtype
	slots []slot
	mem   bool
	ptr   operand
	imm   int64
	// fixed says that the slots are constants that never change, special that a function constant decides them.
	fixed, special bool
	// image is the constant pointer to the bytes of a constant that has no slots.
	image uint64
}

// slot is one scalar of an object: variable v of the kernel, or the value val if v is negative.
type slot struct {
	v   int
	val operand
}

// maxSlots is the largest number of scalars that a variable is taken apart into; larger ones live in memory.
const maxSlots = 64

// stringName is the name of the objects that string literals make.
const stringName = "string literal"

func rval(t *ctype, comps ...operand) value { return value{k: vRight, q: qt(t), comps: comps} }

func intVal(t *ctype, v int64) value { return rval(t, constant(t.kirScalar(), uint64(v))) }

// objVal returns the lvalue of a whole object.
func objVal(o *object) value {
	if o.mem && o.image == 0 {
		return value{k: vMem, q: o.q, ptr: o.ptr, imm: o.imm}
	}
	return value{k: vSlot, q: o.q, obj: o}
}

// memAt makes the lvalue at ptr + idx + imm; constant offsets gather in imm.
func memAt(p, idx operand, imm int64, e qtype) value {
	if idx.isConst() {
		imm += int64(idx.bits)
		idx = operand{}
	}
	return value{k: vMem, q: e, ptr: p, idx: idx, imm: imm}
}

func slotOffset(v value) int64 {
	if v.off == 0 {
		return 0
	}
	return int64(v.obj.q.T.compOffsets(nil, 0)[v.off])
}

func anyFixed(o *object) bool {
	for _, s := range o.slots {
		if s.v < 0 {
			return true
		}
	}
	return false
}

func allConst(comps []operand) bool {
	for _, c := range comps {
		if c.in != nil {
			return false
		}
	}
	return true
}

func repeats(sel []uint8) bool {
	var seen uint
	for _, s := range sel {
		if seen>>s&1 != 0 {
			return true
		}
		seen |= 1 << s
	}
	return false
}

// hasParts says that an object, or an element of an array, has scalars that may be set one by one.
func hasParts(t *ctype) bool {
	for t.kind == tArray {
		t = t.elem.T
	}
	return t.kind == tClass || t.kind == tVec || t.kind == tSimdMat
}

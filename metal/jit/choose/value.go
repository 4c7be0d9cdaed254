package choose

import (
	"math/bits"

	"github.com/mlxlua/mlxlua/metal/jit/code"
	"github.com/mlxlua/mlxlua/metal/kir"
)

// How values live in registers.
//
// Lanes that run together (emitter.group) are divided into parts of emitter.per lanes: as many as a vector
// register has 32-bit elements (16 with AVX-512, 8 with AVX2).
//
//   - A number of up to 32 bits takes one vector register a part. Integers are kept extended to 32 bits by their type's
//     sign; F16 and BF16 as the F32 of the same value (exact).
//   - A number of 64 bits (and a pointer) takes two vector registers a part: the lower half of its lanes first.
//   - A Bool takes one mask register a part (AVX-512; bits above the part's lanes are unspecified, but zero in exec),
//     or one vector register with all bits of a 32-bit lane set or clear (AVX2).
//   - A uniform integer, Bool or pointer takes one general register: up to 32 bits extended to 32 by its type's sign
//     with the upper half zero; a Bool is 0 or 1.
//   - A uniform float is a splat: one vector register, all lanes equal (32-bit lanes, or 64-bit ones for F64).
//   - A pointer whose object is known is its byte offset (signed, 64 bits) alone; otherwise kir's 64 bits.

// maxRegs is the most vector registers a value takes: 32 lanes of 64 bits with AVX2.
const maxRegs = 8

// operand is an operand of one register's lanes: a register, or a constant that every lane has.
type operand struct {
	r    code.R // 0 if only the constant is known
	bits uint64 // the constant as a lane holds it
	k    bool   // there is a constant
}

// val is where a value is.
type val struct {
	typ  kir.Type
	base code.R          // the uniform value, or the base of a Based one, in a general register, 0 if not there
	vec  [maxRegs]code.R // its lanes (vec[0] == 0 if not there)
	// splat: vec[0] alone holds every lane (uniform values).
	splat bool
}

// unit is one part of a value in registers: r[1] is used for 64-bit lanes only.
type unit struct {
	r [2]code.R
}

// operandOf returns half h of operand n.
func operandOf(t kir.Type, args []unit, consts []*uint64, n, h int) operand {
	o := operand{r: args[n].r[h]}
	if n < len(consts) && consts[n] != nil {
		o.bits, _ = laneBits(t, *consts[n])
		o.k = true
	}
	return o
}

// operandUnit returns both halves of operand 0.
func operandUnit(t kir.Type, args []unit, consts []*uint64) [2]operand {
	return [2]operand{operandOf(t, args, consts, 0, 0), operandOf(t, args, consts, 0, 1)}
}

// inReg makes an operand of a register.
func inReg(r code.R) operand { return operand{r: r} }

// konst makes an operand of a constant, given as lanes hold it.
func konst(bits uint64) operand { return operand{bits: bits, k: true} }

// by chooses between the forms of an operation for 32- and for 64-bit lanes.
func by(big bool, d, q code.Opcode) code.Opcode {
	if big {
		return q
	}
	return d
}

// isPow2 reports whether n is a power of two.
func isPow2(n uint64) bool { return n != 0 && n&(n-1) == 0 }

// registers returns the vector registers of all lanes of a value, in the order of lanes.
func (v val) registers(parts int) []code.R {
	var r []code.R
	for p := range parts {
		u := v.unitOf(p)
		r = append(r, u.r[0])
		if wide(v.typ) {
			r = append(r, u.r[1])
		}
	}
	return r
}

// value makes a value of its registers.
func value(t kir.Type, r []code.R) val {
	v := val{typ: t}
	copy(v.vec[:], r)
	return v
}

// appendBits appends the low bytes of v, little-endian.
func appendBits(b []byte, v uint64, size int) []byte {
	for range size {
		b = append(b, byte(v))
		v >>= 8
	}
	return b
}

// unitOf returns one part of a value. Splats serve every part.
func (v val) unitOf(p int) unit {
	switch {
	case v.splat && wide(v.typ):
		return unit{r: [2]code.R{v.vec[0], v.vec[0]}}
	case v.splat:
		return unit{r: [2]code.R{v.vec[0]}}
	case wide(v.typ):
		return unit{r: [2]code.R{v.vec[2*p], v.vec[2*p+1]}}
	}
	return unit{r: [2]code.R{v.vec[p]}}
}

// setUnit stores one part.
func (v *val) setUnit(p int, u unit) {
	if wide(v.typ) {
		v.vec[2*p], v.vec[2*p+1] = u.r[0], u.r[1]
		return
	}
	v.vec[p] = u.r[0]
}

// laneBits returns a constant as its lane holds it: narrow integers extended, half types as float32.
func laneBits(t kir.Type, bits uint64) (lane uint64, size int) {
	switch t {
	case kir.I8:
		return uint64(uint32(int32(int8(bits)))), 4
	case kir.I16:
		return uint64(uint32(int32(int16(bits)))), 4
	case kir.F16:
		f, _ := kir.Eval(kir.Convert, kir.F32, t, bits)
		return f, 4
	case kir.BF16:
		return bits & t.Mask() << 16, 4
	}
	if wide(t) {
		return bits, 8
	}
	return bits & t.Mask(), 4
}

// wide reports whether lanes of the type have 64 bits.
func wide(t kir.Type) bool { return t.Size() == 8 }

// log2 returns the exponent of a power of two.
func log2[T int | int64 | uint64](n T) int { return bits.Len64(uint64(n)) - 1 }

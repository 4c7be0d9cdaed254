package jit

import (
	"github.com/mlxlua/mlxlua/metal/jit/amd64"
	"github.com/mlxlua/mlxlua/metal/kir"
)

// How values live in registers.
//
// Lanes that run together (selector.group) are divided into parts of selector.per lanes: as many as a vector
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

// val is where a value is.
type val struct {
	typ  kir.Type
	base amd64.R          // the uniform value, or the base of a Based one, in a general register, 0 if not there
	vec  [maxRegs]amd64.R // its lanes (vec[0] == 0 if not there)
	// splat: vec[0] alone holds every lane (uniform values).
	splat bool
}

// unit is one part of a value in registers: r[1] is used for 64-bit lanes only.
type unit struct {
	r [2]amd64.R
}

// wide reports whether lanes of the type have 64 bits.
func wide(t kir.Type) bool { return t.Size() == 8 }

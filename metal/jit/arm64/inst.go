package arm64

import (
	"strings"

	"github.com/mlxlua/mlxlua/metal/jit/code"
)

// inst is one instruction of the processor, on registers of the classes code.GPR and code.Vec: 31 general ones, and 32
// of 16 bytes. Fields are called after their places in the word.
type inst struct {
	op         opcode
	d, n, m, a code.R // Rd or Rt, Rn, Rm, Ra or Rt2; 0: the operation has none
	imm        uint32 // what else is in the word: constants in their places, bit 31 for 64 bits
	label      code.Label
	konst      code.ConstID // with disp: an address in the pool
	disp       int32
	point      int32 // of saveLive and loadLive
}

// flags is what an operation does with its operands beyond reading n, m and a and writing d.
type flags uint8

const (
	tied     flags = 1 << iota // d is read, too
	usesD                      // d is read, not written
	definesA                   // a is written, not read
	effect                     // more happens than that a register is written
	copies                     // d becomes n
	made                       // d is made of constants alone
)

// spec is how an operation is written: in a word, and as an assembler reads it. In text, {d} and so on are numbers of
// registers, r is w or x by bit 31, and {name} a constant (see the test).
type spec struct {
	text  string
	word  uint32
	flags flags
}

// sf is the bit for operands of 64 bits.
const sf = 1 << 31

// readsD reports whether an instruction reads its d.
func (i *inst) readsD() bool { return specs[i.op].flags&(tied|usesD) != 0 }

// writesD reports whether it writes it.
func (i *inst) writesD() bool { return i.d != 0 && specs[i.op].flags&usesD == 0 }

// writesLow reports whether the instruction writes a general register whose upper 32 bits become zeros.
func (i *inst) writesLow() bool {
	text := specs[i.op].text
	return strings.Contains(text, " w{d}") || strings.Contains(text, " r{d}") && i.imm&sf == 0
}

// visit calls f with each register and whether it is read and written.
func (i *inst) visit(f func(r *code.R, use, def bool)) {
	if i.n != 0 {
		f(&i.n, true, false)
	}
	if i.m != 0 {
		f(&i.m, true, false)
	}
	if i.a != 0 {
		def := specs[i.op].flags&definesA != 0
		f(&i.a, !def, def)
	}
	if i.d != 0 {
		f(&i.d, i.readsD(), i.writesD())
	}
}

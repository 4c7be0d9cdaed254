package amd64

import (
	"fmt"

	"github.com/mlxlua/mlxlua/metal/jit/code"
)

// fixup is a 32-bit displacement relative to the end of its instruction, to a constant or a label.
type fixup struct {
	pos, end int32 // of the displacement, and of the instruction's end
	konst    code.ConstID
	label    code.Label
	disp     int32
}

// jump is a jump to a label, whose size is chosen at the end. It takes no bytes in the section.
type jump struct {
	pos   int32 // where it stands
	label code.Label
	cond  int8 // -1: always
	size  int8
}

// section is code that stays together: the hot or the cold part.
type section struct {
	buf    []byte
	fixups []fixup
	jumps  []jump
}

// encoder writes instructions to a section.
type encoder struct {
	s      *section
	i      *code.Inst
	r      *row
	err    error
	level  Level
	consts int
	labels int
}

// fail records the first thing wrong.
func (e *encoder) fail(what string, args ...any) {
	if e.err == nil {
		e.err = fmt.Errorf("[amd64] %s: %s", fmt.Sprintf(what, args...), text(e.i))
	}
}

func (e *encoder) byte(b ...byte) { e.s.buf = append(e.s.buf, b...) }

func (e *encoder) imm8(v int64) {
	if v < -128 || v > 255 {
		e.fail("constant of more than 8 bits")
	}
	e.byte(byte(v))
}

func (e *encoder) imm32(v int64) { e.byte(byte(v), byte(v>>8), byte(v>>16), byte(v>>24)) }

// num returns the number of a register that has to be a real one of the class.
func (e *encoder) num(r code.R, c code.Class) int {
	n := r.Num()
	limit := 16
	switch c {
	case code.Vec:
		limit = 32
	case code.Mask:
		limit = 8
	}
	if r.Class() != c || n >= limit {
		e.fail("wrong operand %s", r)
		return 0
	}
	return n
}

// none checks that operands an instruction does not have are not there.
func (e *encoder) none(regs ...code.R) {
	for _, r := range regs {
		if r != 0 {
			e.fail("operand %s has no place", r)
		}
	}
}

// avx512 checks that the code is for processors with AVX-512.
func (e *encoder) avx512() {
	if e.level < AVX512 {
		e.fail("not with %s", e.level)
	}
}

// noMem checks that there is no memory operand.
func (e *encoder) noMem() {
	if e.i.Mem.Valid() {
		e.fail("memory operand has no place")
	}
}

// memRegs returns the numbers of base and index, -1 for one that is not there.
func (e *encoder) memRegs(m *code.Mem, vsib bool) (base, index int) {
	base, index = -1, -1
	if m.Base != 0 {
		base = e.num(m.Base, code.GPR)
	}
	if m.Index != 0 {
		if vsib {
			index = e.num(m.Index, code.Vec)
		} else if index = e.num(m.Index, code.GPR); index == 4 {
			e.fail("rsp as an index")
		}
	} else if vsib {
		e.fail("no vector index")
	}
	if m.Const != 0 && (base >= 0 || index >= 0 || m.Const < 0 || int(m.Const) > e.consts) {
		e.fail("wrong constant operand")
	}
	return base, index
}

// modReg writes ModRM for two registers.
func (e *encoder) modReg(reg, rm int) { e.byte(0xc0 | byte(reg&7)<<3 | byte(rm&7)) }

// rip writes ModRM and the displacement of a place relative to the instruction pointer.
func (e *encoder) rip(reg int, f fixup) {
	e.byte(byte(reg&7)<<3 | 5)
	f.pos = int32(len(e.s.buf))
	e.s.fixups = append(e.s.fixups, f)
	e.byte(0, 0, 0, 0)
}

// modMem writes ModRM, SIB and displacement of a memory operand; n is the unit of one-byte displacements.
func (e *encoder) modMem(reg int, m *code.Mem, n int) {
	if m.Const != 0 {
		e.rip(reg, fixup{konst: m.Const, disp: m.Disp})
		return
	}
	rb := byte(reg&7) << 3
	vsib := m.Index.Class() == code.Vec
	base, index := e.memRegs(m, vsib)
	scale := byte(0)
	switch m.Scale {
	case 0, 1:
	case 2:
		scale = 1 << 6
	case 4:
		scale = 2 << 6
	case 8:
		scale = 3 << 6
	default:
		e.fail("scale %d", m.Scale)
	}
	if base < 0 { // index alone
		e.byte(rb|4, scale|byte(index&7)<<3|5)
		e.imm32(int64(m.Disp))
		return
	}
	var mod byte
	disp8 := int(m.Disp) / n
	switch {
	case m.Disp == 0 && base&7 != 5:
	case disp8*n == int(m.Disp) && disp8 >= -128 && disp8 <= 127:
		mod = 0x40
	default:
		mod = 0x80
	}
	switch {
	case index >= 0:
		e.byte(mod|rb|4, scale|byte(index&7)<<3|byte(base&7))
	case base&7 == 4:
		e.byte(mod|rb|4, 0x24)
	default:
		e.byte(mod | rb | byte(base&7))
	}
	switch mod {
	case 0x40:
		e.byte(byte(disp8))
	case 0x80:
		e.imm32(int64(m.Disp))
	}
}

// inst writes one instruction that has bytes of its own.
func (e *encoder) inst(i *code.Inst) {
	e.i = i
	e.r = rowOf(i.Op)
	start := len(e.s.fixups)
	switch f := e.r.form; {
	case f == formNone:
		e.fail("no such operation %d", i.Op)
	case f < formKMov:
		e.vector()
	case f < formALU:
		e.mask()
	default:
		e.general()
	}
	for k := start; k < len(e.s.fixups); k++ {
		e.s.fixups[k].end = int32(len(e.s.buf))
	}
}

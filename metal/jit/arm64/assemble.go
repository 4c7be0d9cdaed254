package arm64

import (
	"encoding/binary"
	"errors"
	"fmt"

	"github.com/mlxlua/mlxlua/metal/jit/code"
)

// assembler is the memory of assemble, kept for the next code.
type assembler struct {
	parts   [][]inst // the hot code, and cold code by how deep it is in other
	labels  []int32  // by label: its instruction, -1 if it has none
	depths  []int32  // and the part that it is in
	offsets []int    // of the constants
}

// num returns the number of a register.
func num(r code.R) (uint32, error) {
	if r == 0 {
		return 0, nil
	}
	if r.Virtual() || r.Num() > 31 || r.Class() != code.GPR && r.Class() != code.Vec {
		return 0, fmt.Errorf("[arm64] no such register: %s", r)
	}
	return uint32(r.Num()), nil
}

// word is an instruction's word, without what depends on its place.
func (i *inst) word() (uint32, error) {
	s := &specs[i.op]
	w := s.word | i.imm
	for _, o := range [...]struct {
		r  code.R
		at int
	}{{i.d, 0}, {i.n, 5}, {i.a, 10}, {i.m, 16}} {
		n, err := num(o.r)
		if err != nil {
			return 0, err
		}
		switch {
		case o.at != 5 || s.flags&copies == 0:
			w |= n << o.at
		case i.op == movV: // d = n or n
			w |= n<<5 | n<<16
		default: // d = 0 or n
			w |= n << 16
		}
	}
	return w, nil
}

// assemble makes bytes of the instructions, with the constants at their end.
func (p *program) assemble() (code.Code, error) {
	p.far = false
	c, err := p.link()
	if errors.Is(err, code.ErrTooLong) {
		p.far = true
		c, err = p.link()
	}
	return c, err
}

// link is assemble for jumps that reach 1 MiB, or farther.
func (p *program) link() (c code.Code, err error) {
	a := &p.asm
	for k := range a.parts {
		a.parts[k] = a.parts[k][:0]
	}
	n := p.f.NumLabels() + 1
	a.labels, a.depths = append(a.labels[:0], make([]int32, n)...), append(a.depths[:0], make([]int32, n)...)
	for k := range a.labels {
		a.labels[k] = -1
	}
	if err := p.divide(); err != nil {
		return c, err
	}
	starts, total := make([]int32, len(a.parts)), int32(0)
	for k, part := range a.parts {
		starts[k] = total
		total += int32(len(part))
	}
	for k := range a.labels {
		if a.labels[k] >= 0 {
			a.labels[k] = 4 * (a.labels[k] + starts[a.depths[k]])
		}
	}
	end := p.layPool(int(4*total+63) &^ 63)
	c = code.Code{Bytes: make([]byte, end), Labels: append([]int32(nil), a.labels...)}
	at := int32(0)
	for _, part := range a.parts {
		for k := range part {
			w, err := p.placed(&part[k], at)
			if err != nil {
				return c, err
			}
			binary.LittleEndian.PutUint32(c.Bytes[at:], w)
			at += 4
		}
	}
	for k, x := range p.f.Pool() {
		copy(c.Bytes[a.offsets[k]:], x.Data)
	}
	return c, nil
}

// divide puts the instructions into their parts, and notes where labels are.
func (p *program) divide() error {
	a, depth := &p.asm, 0
	for k := range p.insts {
		for len(a.parts) <= depth {
			a.parts = append(a.parts, nil)
		}
		i := &p.insts[k]
		switch i.op {
		case place:
			if a.labels[i.label] >= 0 {
				return fmt.Errorf("[arm64] label %d is in two places", i.label)
			}
			a.labels[i.label], a.depths[i.label] = int32(len(a.parts[depth])), int32(depth)
		case coldBegin:
			depth++
		case coldEnd:
			if depth--; depth < 0 {
				return fmt.Errorf("[arm64] end of cold code without its beginning")
			}
		case loopBegin, loopEnd:
		case branchIf, cbz, cbnz, ldrLitQ, adr, adrPool:
			if !p.far {
				a.parts[depth] = append(a.parts[depth], *i)
				break
			}
			a.parts[depth] = i.reachFar(a.parts[depth])
		case branch:
			if k+1 < len(p.insts) && p.insts[k+1].op == place && p.insts[k+1].label == i.label {
				continue // to the next instruction
			}
			a.parts[depth] = append(a.parts[depth], *i)
		default:
			a.parts[depth] = append(a.parts[depth], *i)
		}
	}
	if depth != 0 {
		return fmt.Errorf("[arm64] cold code without an end")
	}
	return nil
}

// reachFar appends what does the same as an instruction and reaches more than 1 MiB.
func (i *inst) reachFar(to []inst) []inst {
	const over = 2 << 5 // the next instruction is left out
	b := *i
	b.label = 0
	switch i.op {
	case branchIf:
		b.imm = i.imm ^ 1 | over
		return append(to, b, inst{op: branch, label: i.label})
	case cbz, cbnz:
		b.op, b.imm = cbz+cbnz-i.op, i.imm|over
		return append(to, b, inst{op: branch, label: i.label})
	case ldrLitQ:
		return append(to, inst{op: adrp, d: spillAddress, konst: i.konst, disp: i.disp},
			inst{op: addI, d: spillAddress, n: spillAddress, imm: sf, konst: i.konst, disp: i.disp},
			inst{op: ldrQ, d: i.d, n: spillAddress, imm: scaled(0, 16)})
	}
	return append(to, inst{op: adrp, d: i.d, konst: i.konst, disp: i.disp, label: i.label},
		inst{op: addI, d: i.d, n: i.d, imm: sf, konst: i.konst, disp: i.disp, label: i.label})
}

// placed is the word of an instruction at an offset.
func (p *program) placed(i *inst, at int32) (uint32, error) {
	w, err := i.word()
	if err != nil || i.label == 0 && i.konst == 0 {
		return w, err
	}
	var to int32
	if i.konst != 0 {
		to = int32(p.asm.offsets[i.konst-1]) + i.disp
	} else if to = p.asm.labels[i.label]; to < 0 {
		return 0, fmt.Errorf("[arm64] label %d is nowhere", i.label)
	}
	d := to - at
	bits, words := 19, d>>2
	switch i.op {
	case addI: // with adrp: the place in its page
		return w | uint32(to&0xfff)<<10, nil
	case adrp:
		bits, words = 21, to>>12-at>>12
	case branch:
		bits = 26
	case tbz:
		bits = 14
	case adr, adrPool:
		bits, words = 21, d
	}
	if words < -1<<(bits-1) || words >= 1<<(bits-1) {
		return 0, code.ErrTooLong
	}
	n := uint32(words) & (1<<bits - 1)
	switch i.op {
	case branch:
		return w | n, nil
	case adr, adrPool, adrp:
		return w | n&3<<29 | n>>2<<5, nil
	}
	if i.konst != 0 && d&3 != 0 {
		return 0, fmt.Errorf("[arm64] a constant that is not aligned")
	}
	return w | n<<5, nil
}

// layPool gives the constants their places from an offset on, those of the largest alignment first, and returns the
// end.
func (p *program) layPool(at int) int {
	pool := p.f.Pool()
	p.asm.offsets = append(p.asm.offsets[:0], make([]int, len(pool))...)
	for a := 64; a > 0; a /= 2 {
		for k := range pool {
			if c := &pool[k]; max(c.Align, 4) == a || a < 4 && c.Align == a {
				at = (at + a - 1) &^ (a - 1)
				p.asm.offsets[k] = at
				at += len(c.Data)
			}
		}
	}
	return at
}

package amd64

import (
	"encoding/binary"
	"fmt"

	"github.com/mlxlua/mlxlua/metal/jit/code"
)

// assembler is the memory of Assemble, kept for the next code.
type assembler struct {
	parts  []section // the hot one, and the cold ones by how deep they are in others; in the end all in the first
	labels []place
	sizes  []int32 // by jump: bytes of all jumps before it
	// offsets are those of the constants.
	offsets []int
}

// place is where a label is: an offset in a section without its jumps, and the jumps before it.
type place struct {
	pos, jumps int32
	bound      bool
	part       int
}

func (s *section) reset() { s.buf, s.fixups, s.jumps = s.buf[:0], s.fixups[:0], s.jumps[:0] }

// Assemble turns the instructions into bytes for processors of a level. It fails if an instruction is malformed, needs
// a higher level, holds a virtual register, or jumps to a label that is not bound. Its result shares no memory with the
// Func.
func (f *Program) Assemble(level Level) (code.Code, error) {
	a := &f.asm
	for k := range a.parts {
		a.parts[k].reset()
	}
	a.labels = append(a.labels[:0], make([]place, f.NumLabels()+1)...)
	if err := f.encode(level); err != nil {
		return code.Code{}, err
	}
	a.join()
	hot := &a.parts[0]
	for _, j := range hot.jumps {
		if !a.labels[j.label].bound {
			return code.Code{}, fmt.Errorf("[amd64] jump to label %d, which is nowhere", j.label)
		}
	}
	for _, x := range hot.fixups {
		if x.konst == 0 && !a.labels[x.label].bound {
			return code.Code{}, fmt.Errorf("[amd64] address of label %d, which is nowhere", x.label)
		}
	}
	a.relax()
	return f.link(), nil
}

// part returns the section of code that is cold in depth others.
func (a *assembler) part(depth int) *section {
	for len(a.parts) <= depth {
		a.parts = append(a.parts, section{})
	}
	return &a.parts[depth]
}

// join puts all sections into the first.
func (a *assembler) join() {
	hot := &a.parts[0]
	for p := 1; p < len(a.parts); p++ {
		cold := &a.parts[p]
		n, jumps := int32(len(hot.buf)), int32(len(hot.jumps))
		for _, j := range cold.jumps {
			j.pos += n
			hot.jumps = append(hot.jumps, j)
		}
		for k := range a.labels {
			if l := &a.labels[k]; l.part == p {
				l.pos += n
				l.jumps += jumps
			}
		}
		for _, x := range cold.fixups {
			x.pos += n
			x.end += n
			hot.fixups = append(hot.fixups, x)
		}
		hot.buf = append(hot.buf, cold.buf...)
	}
}

// encode writes all instructions to their sections.
func (f *Program) encode(level Level) error {
	a := &f.asm
	e := encoder{s: a.part(0), level: level, consts: len(f.Pool()), labels: f.NumLabels()}
	depth := 0
	insts := f.Insts()
	for k := range insts {
		i := &insts[k]
		switch i.Op {
		case code.BindLabel:
			e.i = i
			e.checkLabel()
			if e.err != nil {
				return e.err
			}
			l := &a.labels[i.Label]
			if l.bound {
				return fmt.Errorf("[amd64] label %d is in two places", i.Label)
			}
			*l = place{pos: int32(len(e.s.buf)), jumps: int32(len(e.s.jumps)), bound: true, part: depth}
		case code.ColdBegin:
			depth++
			e.s = a.part(depth)
		case code.ColdEnd:
			if depth--; depth < 0 {
				return fmt.Errorf("[amd64] end of cold code without its beginning")
			}
			e.s = a.part(depth)
		case code.LoopBegin, code.LoopEnd:
		case code.SaveLive, code.LoadLive:
			return fmt.Errorf("[amd64] %s before register allocation", text(i))
		case code.Jmp:
			if i.Label != 0 && k+1 < len(insts) && insts[k+1].Op == code.BindLabel && insts[k+1].Label == i.Label {
				continue // to the next instruction
			}
			e.inst(i)
		default:
			e.inst(i)
		}
		if e.err != nil {
			return e.err
		}
	}
	if depth != 0 {
		return fmt.Errorf("[amd64] cold code without an end")
	}
	return nil
}

// long is the size of a jump that reaches everywhere.
func (j *jump) long() int8 {
	if j.cond < 0 {
		return 5
	}
	return 6
}

// relax chooses the size of each jump: short ones that do not reach are made long until all do.
func (a *assembler) relax() {
	jumps := a.parts[0].jumps
	for k := range jumps {
		jumps[k].size = 2
	}
	a.sizes = append(a.sizes[:0], make([]int32, len(jumps)+1)...)
	for changed := true; changed; {
		changed = false
		for k := range jumps {
			a.sizes[k+1] = a.sizes[k] + int32(jumps[k].size)
		}
		for k := range jumps {
			j := &jumps[k]
			if j.size != 2 {
				continue
			}
			l := &a.labels[j.label]
			d := l.pos + a.sizes[l.jumps] - (j.pos + a.sizes[k+1])
			if d < -128 || d > 127 {
				j.size = j.long()
				changed = true
			}
		}
	}
}

// link puts everything together.
func (f *Program) link() code.Code {
	a := &f.asm
	jumps := a.parts[0].jumps
	size := len(a.parts[0].buf) + int(a.sizes[len(jumps)])
	poolAt, total := size, size
	pool := f.Pool()
	if len(pool) > 0 {
		poolAt = (size + 63) &^ 63
		total = f.layPool(poolAt)
	}
	out := make([]byte, total)
	labels := make([]int32, len(a.labels))
	for k := range a.labels {
		l := &a.labels[k]
		labels[k] = -1
		if l.bound {
			labels[k] = l.pos + a.sizes[l.jumps]
		}
	}
	at, from := 0, 0
	k := 0 // the next fixup
	for n := 0; n <= len(jumps); n++ {
		to := len(a.parts[0].buf)
		if n < len(jumps) {
			to = int(jumps[n].pos)
		}
		copy(out[at:], a.parts[0].buf[from:to])
		for ; k < len(a.parts[0].fixups) && int(a.parts[0].fixups[k].pos) < to; k++ {
			x := &a.parts[0].fixups[k]
			target := int32(0)
			if x.konst != 0 {
				target = int32(a.offsets[x.konst-1]) + x.disp
			} else {
				target = labels[x.label]
			}
			shift := int32(at - from)
			binary.LittleEndian.PutUint32(out[x.pos+shift:], uint32(target-(x.end+shift)))
		}
		at += to - from
		from = to
		if n < len(jumps) {
			at = jumps[n].write(out, at, labels)
		}
	}
	for i := size; i < poolAt; i++ {
		out[i] = 0xcc
	}
	for k, c := range pool {
		copy(out[a.offsets[k]:], c.Data)
	}
	return code.Code{Bytes: out, Labels: labels}
}

// write writes the jump at an offset and returns where it ends.
func (j *jump) write(out []byte, at int, labels []int32) int {
	end := at + int(j.size)
	d := labels[j.label] - int32(end)
	switch {
	case j.size == 2 && j.cond < 0:
		out[at], out[at+1] = 0xeb, byte(d)
	case j.size == 2:
		out[at], out[at+1] = 0x70|byte(j.cond), byte(d)
	case j.cond < 0:
		out[at] = 0xe9
		binary.LittleEndian.PutUint32(out[at+1:], uint32(d))
	default:
		out[at], out[at+1] = 0x0f, 0x80|byte(j.cond)
		binary.LittleEndian.PutUint32(out[at+2:], uint32(d))
	}
	return end
}

// layPool gives the constants their places from an offset on, those of the largest alignment first, and returns
// the end.
func (f *Program) layPool(at int) int {
	pool := f.Pool()
	f.asm.offsets = append(f.asm.offsets[:0], make([]int, len(pool))...)
	for a := 64; a > 0; a /= 2 {
		for k := range pool {
			if c := &pool[k]; c.Align == a {
				at = (at + a - 1) &^ (a - 1)
				f.asm.offsets[k] = at
				at += len(c.Data)
			}
		}
	}
	return at
}

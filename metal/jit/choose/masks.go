package choose

import (
	"slices"

	"github.com/mlxlua/mlxlua/metal/jit/code"
	"github.com/mlxlua/mlxlua/metal/kir"
)

// masks combines and moves masks of lanes. A mask is a register for each part, or one that is good for every part.
type masks struct{ e *emitter }

// combine combines two masks of one part: with a mask instruction, or with AVX2's logic.
func (s masks) combine(k, v code.Opcode, a, b code.R) code.R {
	if s.e.avx512() {
		d := s.e.reg(code.Mask)
		s.e.emit(code.Inst{Op: k, W: 2, Dst: d, A: a, B: b})
		return d
	}
	d := s.e.reg(code.Vec)
	s.e.emit(code.Inst{Op: v, W: s.e.w, Dst: d, A: a, B: b})
	return d
}

// and returns a and b.
func (s masks) and(a, b code.R) code.R { return s.combine(code.KAnd, code.VPAnd, a, b) }

// or returns a or b.
func (s masks) or(a, b code.R) code.R { return s.combine(code.KOr, code.VPOr, a, b) }

// xor returns a xor b.
func (s masks) xor(a, b code.R) code.R { return s.combine(code.KXor, code.VPXor, a, b) }

// andNot returns a and not b.
func (s masks) andNot(a, b code.R) code.R { return s.combine(code.KAndN, code.VPAndN, b, a) }

// not returns not a.
func (s masks) not(a code.R) code.R {
	if s.e.avx512() {
		d := s.e.reg(code.Mask)
		s.e.emit(code.Inst{Op: code.KNot, W: 2, Dst: d, A: a})
		return d
	}
	d, ones := s.e.reg(code.Vec), s.e.reg(code.Vec)
	s.e.emit(code.Inst{Op: code.VPCmpEqD, W: s.e.w, Dst: ones, A: a, B: a})
	s.e.emit(code.Inst{Op: code.VPXor, W: s.e.w, Dst: d, A: a, B: ones})
	return d
}

// test sets the zero flag if no lane of a mask is on.
func (s masks) test(mask []code.R) {
	if s.e.avx512() {
		last := mask[len(mask)-1]
		s.e.emit(code.Inst{Op: code.KOrTest, W: 2, A: mask[0], B: last})
		return
	}
	m := mask[0]
	for _, r := range mask[1:] {
		m = s.or(m, r)
	}
	s.e.emit(code.Inst{Op: code.VPTest, W: s.e.w, A: m, B: m})
}

// jumpIfNone jumps if no lane of a mask (of all parts) is on.
func (s masks) jumpIfNone(mask []code.R, l code.Label) {
	s.test(mask)
	s.e.jcc(code.CondE, l)
}

// jumpIfAny jumps if a lane of a mask (of all parts) is on.
func (s masks) jumpIfAny(mask []code.R, l code.Label) {
	s.test(mask)
	s.e.jcc(code.CondNE, l)
}

// bits returns a mask (of all parts) as bits in a general register, lane 0 lowest; the bits above the lanes are
// 0.
func (s masks) bits(mask []code.R) code.R {
	r := s.e.reg(code.GPR)
	if s.e.avx512() {
		if len(mask) == 1 {
			s.e.emit(code.Inst{Op: code.KMov, W: 2, Dst: r, A: mask[0]})
			return r
		}
		k := s.e.reg(code.Mask)
		s.e.emit(code.Inst{Op: code.KUnpck, W: 4, Dst: k, A: mask[1], B: mask[0]})
		s.e.emit(code.Inst{Op: code.KMov, W: 4, Dst: r, A: k})
		return r
	}
	s.e.emit(code.Inst{Op: code.VMovMskPS, W: s.e.w, Dst: r, A: mask[0]})
	for p, m := range mask[1:] {
		t := s.e.reg(code.GPR)
		s.e.emit(code.Inst{Op: code.VMovMskPS, W: s.e.w, Dst: t, A: m})
		s.e.emit(code.Inst{Op: code.Shl, W: 4, Dst: t, Imm: int64((p + 1) * s.e.per)})
		s.e.emit(code.Inst{Op: code.Or, W: 4, Dst: r, A: t})
	}
	return r
}

// fromBits makes a mask (of all parts) of the bits in a general register. Bits above a part's lanes are 0.
func (s masks) fromBits(r code.R) []code.R {
	mask := make([]code.R, s.e.parts)
	if s.e.avx512() {
		for p := range mask {
			mask[p] = s.e.reg(code.Mask)
			if p > 0 {
				t := s.e.reg(code.GPR)
				s.e.emit(code.Inst{Op: code.Mov, W: 4, Dst: t, A: r})
				s.e.emit(code.Inst{Op: code.Shr, W: 4, Dst: t, Imm: int64(p * s.e.per)})
				r = t
			}
			s.e.emit(code.Inst{Op: code.KMov, W: 2, Dst: mask[p], A: r})
		}
		return mask
	}
	all := s.e.scalarToSplat(r, kir.U32)
	for p := range mask {
		var table []byte
		for l := range s.e.per {
			table = appendBits(table, 1<<(p*s.e.per+l), 4)
		}
		bit, on := code.Mem{Const: s.e.f.Const(table)}, s.e.reg(code.Vec)
		mask[p] = s.e.reg(code.Vec)
		s.e.emit(code.Inst{Op: code.VPAnd, W: s.e.w, Dst: on, A: all, Mem: bit})
		s.e.emit(code.Inst{Op: code.VPCmpEqD, W: s.e.w, Dst: mask[p], A: on, Mem: bit})
	}
	return mask
}

// fromBool returns a mask (one register, good for every part) of a Bool in a general register.
func (s masks) fromBool(r code.R) code.R {
	t := s.e.reg(code.GPR)
	s.e.emit(code.Inst{Op: code.Mov, W: 4, Dst: t, A: r})
	s.e.emit(code.Inst{Op: code.Neg, W: 4, Dst: t})
	if !s.e.avx512() {
		return s.e.scalarToSplat(t, kir.U32)
	}
	k := s.e.reg(code.Mask)
	s.e.emit(code.Inst{Op: code.KMov, W: 2, Dst: k, A: t})
	return k
}

// toBool returns a mask that is the same in all lanes as a Bool in a general register.
func (s masks) toBool(m code.R) code.R {
	r := s.e.reg(code.GPR)
	if s.e.avx512() {
		s.e.emit(code.Inst{Op: code.KMov, W: 2, Dst: r, A: m})
	} else {
		s.e.emit(code.Inst{Op: code.VMovD, W: 16, Dst: r, A: m})
	}
	s.e.emit(code.Inst{Op: code.And, W: 4, Dst: r, Imm: 1})
	return r
}

// perRegister returns the masks of the registers of a type's lanes from those of the parts.
func (s masks) perRegister(t kir.Type, mask []code.R) []code.R {
	if !wide(t) {
		return mask
	}
	var r []code.R
	for _, m := range mask {
		r = append(r, s.half(m, 0), s.half(m, 1))
	}
	return r
}

// jumpIfAnyOf jumps if any lane of the masks is on.
func (s masks) jumpIfAnyOf(bad []code.R, to code.Label) {
	all := bad[0]
	for _, b := range bad[1:] {
		d := s.e.reg(b.Class())
		if s.e.avx512() {
			s.e.emit(code.Inst{Op: code.KOr, W: 2, Dst: d, A: all, B: b})
		} else {
			s.e.emit(code.Inst{Op: code.VPOr, W: s.e.w, Dst: d, A: all, B: b})
		}
		all = d
	}
	if s.e.avx512() {
		s.e.emit(code.Inst{Op: code.KOrTest, W: 2, A: all, B: all})
	} else {
		s.e.emit(code.Inst{Op: code.VPTest, W: s.e.w, A: all, B: all})
	}
	s.e.jcc(code.CondNE, to)
}

// copyAll returns registers of a mask's own.
func (s masks) copyAll(m []code.R) []code.R {
	c := make([]code.R, len(m))
	for p := range m {
		c[p] = s.e.copyReg(m[p])
	}
	return c
}

// each combines two masks part by part.
func (s masks) each(op func(a, b code.R) code.R, a, b []code.R) []code.R {
	c := make([]code.R, len(a))
	for p := range a {
		c[p] = op(a[p], b[p])
	}
	return c
}

// set writes a mask's registers.
func (s masks) set(dst, src []code.R) {
	for p := range dst {
		s.e.moveReg(dst[p], src[p])
	}
}

// empty returns an empty mask.
func (s masks) empty() []code.R {
	m := make([]code.R, s.e.parts)
	for p := range m {
		m[p] = s.e.reg(s.e.classOf(kir.Bool))
		s.e.zeroReg(m[p])
	}
	return m
}

// full returns a mask of all lanes.
func (s masks) full() []code.R {
	if s.e.avx512() {
		return s.fromBits(s.e.gload(4, 1<<s.e.group-1))
	}
	m, ones := make([]code.R, s.e.parts), s.e.table(slices.Repeat([]int32{-1}, s.e.per), 4)
	for p := range m {
		m[p] = s.e.reg(code.Vec)
		s.e.emit(code.Inst{Op: code.VMovUPS, W: s.e.w, Dst: m[p], Mem: ones})
	}
	return m
}

// half returns the mask of half h of a part's lanes, for 64-bit lanes.
func (s masks) half(m code.R, h int) code.R {
	if s.e.avx512() {
		if h == 0 {
			return m
		}
		r := s.e.reg(code.Mask)
		s.e.emit(code.Inst{Op: code.KShiftR, W: 2, Dst: r, A: m, Imm: 8})
		return r
	}
	r := s.e.reg(code.Vec)
	if h == 1 {
		top := s.e.reg(code.Vec)
		s.e.emit(code.Inst{Op: code.VExtractI128, W: 32, Dst: top, A: m, Imm: 1})
		m = top
	}
	s.e.emit(code.Inst{Op: code.VPMovSXDQ, W: 32, Dst: r, A: m})
	return r
}

// split returns the masks of the two halves of a part's 64-bit lanes.
func (s masks) split(m code.R) [2]code.R {
	return [2]code.R{s.half(m, 0), s.half(m, 1)}
}

// unpack joins two masks of 8 lanes.
func (s masks) unpack(hi, lo code.R) code.R {
	d := s.e.reg(code.Mask)
	s.e.emit(code.Inst{Op: code.KUnpck, W: 2, Dst: d, A: hi, B: lo})
	return d
}

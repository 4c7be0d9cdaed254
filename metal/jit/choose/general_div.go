package choose

import (
	"math/bits"

	"github.com/mlxlua/mlxlua/metal/jit/code"
	"github.com/mlxlua/mlxlua/metal/kir"
)

// divide computes RAX = RAX / RCX or RAX % RCX; it changes RCX and RDX. Types of up to 32 bits have 32 valid bits.
func (s general) divide(op kir.Op, t kir.Type) {
	w := uint8(4)
	if wide(t) {
		w = 8
	}
	end, zero := s.e.label(), s.e.label()
	s.e.emit(code.Inst{Op: code.Test, W: w, A: code.RCX, B: code.RCX})
	s.e.jcc(code.CondE, zero)
	if t.IsSigned() {
		minus1 := s.e.label()
		s.e.emit(code.Inst{Op: code.Cmp, W: w, A: code.RCX, Imm: -1})
		s.e.jcc(code.CondE, minus1)
		s.e.emit(code.Inst{Op: code.Cdq, W: w})
		s.e.emit(code.Inst{Op: code.IDiv, W: w, A: code.RCX})
		s.remainder(op, end)
		s.e.bind(minus1) // apart, as MIN / -1 traps
		if op == kir.Div {
			s.e.emit(code.Inst{Op: code.Neg, W: w, Dst: code.RAX})
		} else {
			s.e.emit(code.Inst{Op: code.Mov, W: 4, Dst: code.RAX, Imm: 0})
		}
		s.e.jump(end)
	} else {
		s.e.emit(code.Inst{Op: code.Mov, W: 4, Dst: code.RDX, Imm: 0})
		s.e.emit(code.Inst{Op: code.Div, W: w, A: code.RCX})
		s.remainder(op, end)
	}
	s.e.bind(zero)
	if op == kir.Div {
		s.e.emit(code.Inst{Op: code.Mov, W: 4, Dst: code.RAX, Imm: 0})
	}
	s.e.bind(end)
}

// remainder takes what is wanted of a division and leaves for end.
func (s general) remainder(op kir.Op, end code.Label) {
	if op == kir.Rem {
		s.e.emit(code.Inst{Op: code.Mov, W: 8, Dst: code.RAX, A: code.RDX})
	}
	s.e.jump(end)
}

// div computes Div and Rem.
func (s general) div(op kir.Op, t kir.Type, a, b operand) code.R {
	w := gprWidth(t)
	p := s.in(a, t)
	if b.k {
		if d, ok := s.divConst(op, t, p, b.bits); ok {
			return d
		}
	}
	q := s.in(b, t)
	s.e.emit(code.Inst{Op: code.Mov, W: w, Dst: code.RAX, A: p})
	s.e.emit(code.Inst{Op: code.Mov, W: w, Dst: code.RCX, A: q})
	s.divide(op, t)
	return s.canonMoved(t, code.RAX)
}

// canonMoved is gcanon, in a register of its own.
func (s general) canonMoved(t kir.Type, r code.R) code.R {
	if d := s.canon(t, r); d != r {
		return d
	}
	return s.e.gmove(gprWidth(t), r)
}

// divConst divides by a constant without a division, if it knows how.
func (s general) divConst(op kir.Op, t kir.Type, p code.R, c uint64) (d code.R, ok bool) {
	w := gprWidth(t)
	limit := uint64(1) << (t.Bits() - 1)
	switch {
	case c == 0 && op == kir.Rem:
		return s.e.gmove(w, p), true
	case c == 0:
		return s.e.gload(w, 0), true
	case isPow2(c) && (!t.IsSigned() || c < limit):
		return s.divPow2(op, t, p, log2(c)), true
	case wide(t):
		return 0, false
	}
	q := s.quotient(t, p, c)
	if op == kir.Div {
		return s.canon(t, q), true
	}
	m := s.e.reg(code.GPR)
	s.e.emit(code.Inst{Op: code.IMul3, W: 4, Dst: m, A: q, Imm: int64(int32(c))})
	d = s.e.gmove(4, p)
	s.e.emit(code.Inst{Op: code.Sub, W: 4, Dst: d, A: m})
	return s.canon(t, d), true
}

// divPow2 divides by 1<<n.
func (s general) divPow2(op kir.Op, t kir.Type, p code.R, n int) code.R {
	w := gprWidth(t)
	d := s.e.gmove(w, p)
	if !t.IsSigned() {
		if op == kir.Rem {
			s.withImm(code.And, w, d, 1<<n-1)
		} else if n > 0 {
			s.e.emit(code.Inst{Op: code.Shr, W: w, Dst: d, Imm: int64(n)})
		}
		return d
	}
	if n > 0 {
		// Negative numbers get c-1 added, so that the shift truncates.
		width := int64(w) * 8
		s.e.emit(code.Inst{Op: code.Sar, W: w, Dst: d, Imm: width - 1})
		s.e.emit(code.Inst{Op: code.Shr, W: w, Dst: d, Imm: width - int64(n)})
		s.e.emit(code.Inst{Op: code.Add, W: w, Dst: d, A: p})
		s.e.emit(code.Inst{Op: code.Sar, W: w, Dst: d, Imm: int64(n)})
	}
	if op == kir.Div {
		return d
	}
	if n > 0 {
		s.e.emit(code.Inst{Op: code.Shl, W: w, Dst: d, Imm: int64(n)})
	}
	r := s.e.gmove(w, p)
	s.e.emit(code.Inst{Op: code.Sub, W: w, Dst: r, A: d})
	return r
}

// quotient divides 32-bit numbers (or narrower ones, extended) by a constant: the high half of the product with
// ceil(2^64/c), whose error, less than 2^-32, is too small to reach the next integer.
func (s general) quotient(t kir.Type, p code.R, c uint64) code.R {
	abs, negative := c, false
	if t.IsSigned() && int32(c) < 0 {
		abs, negative = uint64(-int64(int32(c))), true
	}
	if isPow2(abs) { // of negative constants: the product below would be exact, and then not rounded down
		q := s.divPow2(kir.Div, t, p, log2(abs))
		s.e.emit(code.Inst{Op: code.Neg, W: 4, Dst: q})
		return q
	}
	d := s.extend(t, p)
	m, _ := bits.Div64(1, 0, abs)
	if m*abs != 0 {
		m++
	}
	s.e.emit(code.Inst{Op: code.Mov, W: 8, Dst: code.RAX, Imm: int64(m)})
	if !t.IsSigned() {
		s.e.emit(code.Inst{Op: code.Mul, W: 8, A: d})
		return s.e.gmove(4, code.RDX)
	}
	s.e.emit(code.Inst{Op: code.IMul1, W: 8, A: d})
	s.e.emit(code.Inst{Op: code.Sar, W: 8, Dst: d, Imm: 63}) // the product was rounded down: one more if negative
	s.e.emit(code.Inst{Op: code.Sub, W: 8, Dst: code.RDX, A: d})
	q := s.e.gmove(4, code.RDX)
	if negative {
		s.e.emit(code.Inst{Op: code.Neg, W: 4, Dst: q})
	}
	return q
}

package jit

import (
	"math/bits"

	"github.com/mlxlua/mlxlua/metal/jit/amd64"
	"github.com/mlxlua/mlxlua/metal/kir"
)

// scalarDiv computes Div and Rem.
func (s *selector) scalarDiv(op kir.Op, t kir.Type, a, b operand) amd64.R {
	w := gprWidth(t)
	p := s.gin(a, t)
	if b.k {
		if d, ok := s.scalarDivConst(op, t, p, b.bits); ok {
			return d
		}
	}
	q := s.gin(b, t)
	s.emit(amd64.Inst{Op: amd64.Mov, W: w, Dst: amd64.RAX, A: p})
	s.emit(amd64.Inst{Op: amd64.Mov, W: w, Dst: amd64.RCX, A: q})
	s.divide(op, t)
	return s.gcanonMoved(t, amd64.RAX)
}

// gcanonMoved is gcanon, in a register of its own.
func (s *selector) gcanonMoved(t kir.Type, r amd64.R) amd64.R {
	if d := s.gcanon(t, r); d != r {
		return d
	}
	return s.gmove(gprWidth(t), r)
}

// scalarDivConst divides by a constant without a division, if it knows how.
func (s *selector) scalarDivConst(op kir.Op, t kir.Type, p amd64.R, c uint64) (d amd64.R, ok bool) {
	w := gprWidth(t)
	limit := uint64(1) << (t.Bits() - 1)
	switch {
	case c == 0 && op == kir.Rem:
		return s.gmove(w, p), true
	case c == 0:
		return s.gload(w, 0), true
	case isPow2(c) && (!t.IsSigned() || c < limit):
		return s.scalarDivPow2(op, t, p, log2u(c)), true
	case wide(t):
		return 0, false
	}
	q := s.quotient(t, p, c)
	if op == kir.Div {
		return s.gcanon(t, q), true
	}
	m := s.reg(amd64.GPR)
	s.emit(amd64.Inst{Op: amd64.IMul3, W: 4, Dst: m, A: q, Imm: int64(int32(c))})
	d = s.gmove(4, p)
	s.emit(amd64.Inst{Op: amd64.Sub, W: 4, Dst: d, A: m})
	return s.gcanon(t, d), true
}

func (s *selector) scalarDivPow2(op kir.Op, t kir.Type, p amd64.R, n int) amd64.R {
	w := gprWidth(t)
	d := s.gmove(w, p)
	if !t.IsSigned() {
		if op == kir.Rem {
			s.gimm(amd64.And, w, d, 1<<n-1)
		} else if n > 0 {
			s.emit(amd64.Inst{Op: amd64.Shr, W: w, Dst: d, Imm: int64(n)})
		}
		return d
	}
	if n > 0 {
		// Negative numbers get c-1 added, so that the shift truncates.
		width := int64(w) * 8
		s.emit(amd64.Inst{Op: amd64.Sar, W: w, Dst: d, Imm: width - 1})
		s.emit(amd64.Inst{Op: amd64.Shr, W: w, Dst: d, Imm: width - int64(n)})
		s.emit(amd64.Inst{Op: amd64.Add, W: w, Dst: d, A: p})
		s.emit(amd64.Inst{Op: amd64.Sar, W: w, Dst: d, Imm: int64(n)})
	}
	if op == kir.Div {
		return d
	}
	if n > 0 {
		s.emit(amd64.Inst{Op: amd64.Shl, W: w, Dst: d, Imm: int64(n)})
	}
	r := s.gmove(w, p)
	s.emit(amd64.Inst{Op: amd64.Sub, W: w, Dst: r, A: d})
	return r
}

// quotient divides 32-bit numbers (or narrower ones, extended) by a constant: the high half of the product with
// ceil(2^64/c), whose error, less than 2^-32, is too small to reach the next integer.
func (s *selector) quotient(t kir.Type, p amd64.R, c uint64) amd64.R {
	abs, negative := c, false
	if t.IsSigned() && int32(c) < 0 {
		abs, negative = uint64(-int64(int32(c))), true
	}
	if isPow2(abs) { // of negative constants: the product below would be exact, and then not rounded down
		q := s.scalarDivPow2(kir.Div, t, p, log2u(abs))
		s.emit(amd64.Inst{Op: amd64.Neg, W: 4, Dst: q})
		return q
	}
	d := s.gextend(t, p)
	m, _ := bits.Div64(1, 0, abs)
	if m*abs != 0 {
		m++
	}
	s.emit(amd64.Inst{Op: amd64.Mov, W: 8, Dst: amd64.RAX, Imm: int64(m)})
	if !t.IsSigned() {
		s.emit(amd64.Inst{Op: amd64.Mul, W: 8, A: d})
		return s.gmove(4, amd64.RDX)
	}
	s.emit(amd64.Inst{Op: amd64.IMul1, W: 8, A: d})
	s.emit(amd64.Inst{Op: amd64.Sar, W: 8, Dst: d, Imm: 63}) // the product was rounded down: one more if negative
	s.emit(amd64.Inst{Op: amd64.Sub, W: 8, Dst: amd64.RDX, A: d})
	q := s.gmove(4, amd64.RDX)
	if negative {
		s.emit(amd64.Inst{Op: amd64.Neg, W: 4, Dst: q})
	}
	return q
}

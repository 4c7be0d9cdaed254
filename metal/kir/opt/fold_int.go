package opt

import (
	"math/big"
	"math/bits"

	"github.com/mlxlua/mlxlua/metal/kir"
)

// foldInt is an operation on an integer and a constant. Constants gather at the end of sums and products, and go
// outward: neighbouring elements differ in them alone.
func (r *rewriter) foldInt(op kir.Op, t kir.Type, pos kir.Pos, x, y *kir.Instr) *kir.Instr {
	c, ones := y.Imm, y.Imm == t.Mask()
	count := c & uint64(t.Bits()-1)
	switch op {
	case kir.Add, kir.Or, kir.Xor:
		switch {
		case c == 0:
			return x
		case op == kir.Or && ones:
			return y
		case op == kir.Add:
			if d, ok := operand(kir.Add, x); ok {
				return r.op(op, t, pos, x.Args[0], r.constant(t, d+c, pos))
			}
		}
	case kir.Sub:
		return r.op(kir.Add, t, pos, x, r.constant(t, -c, pos))
	case kir.And:
		if c == 0 {
			return y
		}
		if ones {
			return x
		}
	case kir.Mul:
		switch c {
		case 0:
			return y
		case 1:
			return x
		}
		if d, ok := operand(kir.Mul, x); ok {
			return r.op(op, t, pos, x.Args[0], r.constant(t, d*c, pos))
		}
		if d, ok := operand(kir.Add, x); ok {
			return r.op(kir.Add, t, pos, r.op(op, t, pos, x.Args[0], y), r.constant(t, d*c, pos))
		}
	case kir.Shl, kir.Shr:
		if count == 0 {
			return x
		}
		if d, ok := operand(kir.Add, x); ok && op == kir.Shl {
			return r.op(kir.Add, t, pos, r.op(op, t, pos, x.Args[0], y), r.constant(t, d<<count, pos))
		}
	case kir.Div, kir.Rem:
		return r.foldDiv(op, t, pos, x, c)
	}
	return nil
}

// operand returns the constant operand of an operation with one.
func operand(op kir.Op, x *kir.Instr) (uint64, bool) {
	if x.Op != op || x.Args[1].Op != kir.Const {
		return 0, false
	}
	return x.Args[1].Imm, true
}

// foldDiv divides integers by a constant without a division: by shifts, or by the high half of a product.
func (r *rewriter) foldDiv(op kir.Op, t kir.Type, pos kir.Pos, x *kir.Instr, y uint64) *kir.Instr {
	width := t.Bits()
	if y == 0 || t.IsSigned() && y>>(width-1) != 0 {
		return nil
	}
	k := bits.Len64(y) - 1
	pow2 := y&(y-1) == 0
	do := func(op kir.Op, a, b *kir.Instr) *kir.Instr { return r.op(op, t, pos, a, b) }
	by := func(n uint64) *kir.Instr { return r.constant(t, n, pos) }
	shift := func(v *kir.Instr, n int) *kir.Instr { return do(kir.Shr, v, by(uint64(n))) }
	var q *kir.Instr
	switch {
	case pow2 && !t.IsSigned():
		if op == kir.Rem {
			return do(kir.And, x, by(y-1))
		}
		return shift(x, k)
	case y == 1:
		if op == kir.Rem {
			return r.constant(t, 0, pos)
		}
		return x
	case !r.limits.divide:
		return nil
	case pow2: // rounding to zero: add y-1 to a negative x
		sum := do(kir.Add, x, do(kir.And, shift(x, width-1), by(y-1)))
		if op == kir.Rem {
			return do(kir.Sub, x, do(kir.And, sum, by(-y)))
		}
		return shift(sum, k)
	case width != 32:
		return nil
	case t.IsSigned():
		// Hacker's method: with m = ceil(2^(32+s) / y) less than 2^31, x * m >> (32+s) is floor(x / y) for x >= 0, and one
		// less than the quotient for x < 0. k bits of y make s = k enough.
		m := ceilDiv(32+k, y)
		q = do(kir.MulHi, x, by(m))
		if m>>31 != 0 { // m - 2^32 was multiplied by
			q = do(kir.Add, q, x)
		}
		q = do(kir.Sub, shift(q, k), shift(x, 31))
	default:
		// m = ceil(2^(33+k) / y) has 33 bits: x * m >> (33+k) is exact for every x.
		h := do(kir.MulHi, x, by(ceilDiv(33+k, y)-1<<32))
		q = shift(do(kir.Add, shift(do(kir.Sub, x, h), 1), h), k)
	}
	if op == kir.Rem {
		return do(kir.Sub, x, do(kir.Mul, q, by(y)))
	}
	return q
}

// ceilDiv is 2^n / y rounded up, for quotients below 2^34.
func ceilDiv(n int, y uint64) uint64 {
	p := new(big.Int).Lsh(big.NewInt(1), uint(n))
	p.Add(p, new(big.Int).SetUint64(y-1))
	return p.Div(p, new(big.Int).SetUint64(y)).Uint64()
}

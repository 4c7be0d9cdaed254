package msl

import (
	"math/big"
	"math/bits"

	"github.com/mlxlua/mlxlua/metal/kir"
)

// fold computes an operation on constants, or puts a cheaper one in its place. If a value that exists already takes
// its place, in is dropped and fold reports true.
func (c *cleaner) fold(in *kir.Instr) bool {
	var args [3]operand
	all := true
	for i, a := range in.Args {
		args[i] = asOperand(a)
		all = all && a.Op == kir.Const
	}
	list := args[:len(in.Args)]
	if all {
		if o, ok := fold(in.Op, in.Type, list); ok {
			in.Target = c.em.instrAt(o)
			return true
		}
		return false
	}
	if o, ok := simplify(in.Op, in.Type, list); ok {
		in.Target = c.em.instrAt(o)
		return true
	}
	if x := c.rewrite(in); x != nil && x != in {
		in.Target = x
		return true
	}
	return false
}

func asOperand(in *kir.Instr) operand {
	if in.Op == kir.Const {
		return operand{ty: in.Type, bits: in.Imm}
	}
	return operand{in: in, ty: in.Type}
}

func (c *cleaner) constant(t kir.Type, bits uint64) *kir.Instr {
	return c.em.instrAt(operand{ty: t, bits: bits & t.Mask()})
}

func commutes(op kir.Op) bool {
	switch op {
	case kir.Add, kir.Mul, kir.Min, kir.Max, kir.MulHi, kir.And, kir.Or, kir.Xor, kir.Eq, kir.Ne:
		return true
	}
	return false
}

// rewrite changes an operation into an equal one that is cheaper or easier to recognise, or returns the value that
// replaces it; nil if there is nothing to do. Everything holds for all operands by kir's semantics.
func (c *cleaner) rewrite(in *kir.Instr) *kir.Instr {
	if commutes(in.Op) && in.Args[0].Op == kir.Const {
		in.Args[0], in.Args[1] = in.Args[1], in.Args[0]
	}
	a := in.Args[0]
	switch in.Op {
	case kir.Add, kir.Sub, kir.Mul:
		if in.Type.IsFloat() {
			return c.floatSum(in)
		}
		return c.intSum(in)
	case kir.Div, kir.Rem:
		if y := in.Args[1]; y.Op == kir.Const {
			if in.Type.IsInt() {
				return c.divide(in, y.Imm)
			}
			return c.floatDiv(in, y.Imm)
		}
	case kir.And, kir.Or, kir.Min, kir.Max:
		if a == in.Args[1] {
			return a
		}
		if in.Op == kir.And && in.Args[1].Op == kir.Const && in.Args[1].Imm == in.Type.Mask() {
			return a
		}
	case kir.Xor:
		if a == in.Args[1] {
			return c.constant(in.Type, 0)
		}
	case kir.Neg:
		if a.Op == kir.Neg {
			return a.Args[0]
		}
	case kir.Abs:
		if a.Op == kir.Abs {
			return a
		}
		if a.Op == kir.Neg {
			in.Args[0] = a.Args[0]
		}
	case kir.Not:
		return c.invert(in, a)
	case kir.Eq, kir.Ne, kir.Lt, kir.Le, kir.Gt, kir.Ge:
		return c.comparison(in)
	case kir.Select:
		return c.selectInstr(in)
	case kir.Convert:
		return c.convertInstr(in)
	case kir.Bitcast:
		if a.Op == kir.Bitcast {
			if a.Args[0].Type == in.Type {
				return a.Args[0]
			}
			if in.Type.IsArith() && a.Args[0].Type.IsArith() {
				in.Args[0] = a.Args[0]
			}
		}
	}
	return nil
}

// intSum gathers constants: x - 3 is x + -3, (x + 1) + 2 is x + 3, (x * 2) * 3 is x * 6.
func (c *cleaner) intSum(in *kir.Instr) *kir.Instr {
	a, b := in.Args[0], in.Args[1]
	if in.Op == kir.Sub && a == b {
		return c.constant(in.Type, 0)
	}
	if b.Op != kir.Const {
		return nil
	}
	if in.Op == kir.Sub {
		in.Op = kir.Add
		b = c.constant(in.Type, -b.Imm)
		in.Args[1] = b
	}
	if a.Op == in.Op && a.Args[1].Op == kir.Const {
		sum := a.Args[1].Imm + b.Imm
		if in.Op == kir.Mul {
			sum = a.Args[1].Imm * b.Imm
		}
		in.Args[0], in.Args[1] = a.Args[0], c.constant(in.Type, sum)
		if in.Op == kir.Add && in.Args[1].Imm == 0 {
			return in.Args[0]
		}
	}
	return nil
}

// floatSum uses the identities that keep every number, zero's sign and infinity: x * 1, x - 0, x + -y.
func (c *cleaner) floatSum(in *kir.Instr) *kir.Instr {
	a, b := in.Args[0], in.Args[1]
	if b.Op == kir.Const {
		negZero := kir.FromFloat64(in.Type, 0) | 1<<(in.Type.Bits()-1)
		switch {
		case in.Op == kir.Mul && b.Imm == kir.FromFloat64(in.Type, 1),
			in.Op == kir.Add && b.Imm == negZero, in.Op == kir.Sub && b.Imm == 0:
			return a
		}
	}
	switch {
	case in.Op == kir.Add && b.Op == kir.Neg:
		in.Op, in.Args[1] = kir.Sub, b.Args[0]
	case in.Op == kir.Sub && b.Op == kir.Neg:
		in.Op, in.Args[1] = kir.Add, b.Args[0]
	}
	return nil
}

// floatDiv multiplies by the reciprocal of a power of two, which is exact.
func (c *cleaner) floatDiv(in *kir.Instr, y uint64) *kir.Instr {
	mant := map[kir.Type]int{kir.F16: 10, kir.BF16: 7, kir.F32: 23, kir.F64: 52}[in.Type]
	exps := in.Type.Bits() - 1 - mant
	bias := uint64(1)<<(exps-1) - 1
	e := y >> mant & (1<<exps - 1)
	if in.Op != kir.Div || y&(1<<mant-1) != 0 || e == 0 || e >= 2*bias {
		return nil
	}
	in.Op = kir.Mul
	in.Args[1] = c.constant(in.Type, y&^((1<<exps-1)<<mant)|(2*bias-e)<<mant)
	return c.floatSum(in)
}

// divide divides integers by a constant without a division: by shifts, or by the high half of a product.
func (c *cleaner) divide(in *kir.Instr, y uint64) *kir.Instr {
	t, x, pos := in.Type, in.Args[0], in.Pos
	width := t.Bits()
	neg := t.IsSigned() && y>>(width-1) != 0
	if y == 0 || neg {
		return nil
	}
	k := bits.Len64(y) - 1
	pow2 := y&(y-1) == 0
	shift := func(op kir.Op, v *kir.Instr, n int) *kir.Instr {
		if n == 0 {
			return v
		}
		return c.make(op, t, pos, v, c.constant(t, uint64(n)))
	}
	var q *kir.Instr
	switch {
	case pow2 && !t.IsSigned():
		if in.Op == kir.Rem {
			return c.make(kir.And, t, pos, x, c.constant(t, y-1))
		}
		return shift(kir.Shr, x, k)
	case pow2 && k > 0: // rounding to zero: add y-1 to a negative x
		low := c.make(kir.And, t, pos, shift(kir.Shr, x, width-1), c.constant(t, y-1))
		sum := c.make(kir.Add, t, pos, x, low)
		if in.Op == kir.Rem {
			return c.make(kir.Sub, t, pos, x, c.make(kir.And, t, pos, sum, c.constant(t, -y)))
		}
		return shift(kir.Shr, sum, k)
	case pow2 || width != 32:
		return nil
	case t.IsSigned():
		// Hacker's method: with m = ceil(2^(32+s) / y) less than 2^31, x * m >> (32+s) is floor(x / y) for x >= 0, and one
		// less than the quotient for x < 0. k bits of y make s = k enough.
		m := ceilDiv(32+k, y)
		hi := uint64(m)
		q = c.make(kir.MulHi, t, pos, x, c.constant(t, hi))
		if hi>>31 != 0 { // m - 2^32 was multiplied by
			q = c.make(kir.Add, t, pos, q, x)
		}
		q = c.make(kir.Sub, t, pos, shift(kir.Shr, q, k), shift(kir.Shr, x, 31))
	default:
		// m = ceil(2^(33+k) / y) has 33 bits: x * m >> (33+k) is exact for every x.
		m := ceilDiv(33+k, y) - 1<<32
		h := c.make(kir.MulHi, t, pos, x, c.constant(t, m))
		q = c.make(kir.Add, t, pos, shift(kir.Shr, c.make(kir.Sub, t, pos, x, h), 1), h)
		q = shift(kir.Shr, q, k)
	}
	if in.Op == kir.Rem {
		return c.make(kir.Sub, t, pos, x, c.make(kir.Mul, t, pos, q, c.constant(t, y)))
	}
	return q
}

// ceilDiv is 2^n / y rounded up, for quotients below 2^34.
func ceilDiv(n int, y uint64) uint64 {
	p := new(big.Int).Lsh(big.NewInt(1), uint(n))
	p.Add(p, new(big.Int).SetUint64(y-1))
	return p.Div(p, new(big.Int).SetUint64(y)).Uint64()
}

var inverse = map[kir.Op]kir.Op{kir.Eq: kir.Ne, kir.Ne: kir.Eq, kir.Lt: kir.Ge, kir.Ge: kir.Lt,
	kir.Le: kir.Gt, kir.Gt: kir.Le}

// invert negates a comparison by its opposite; those of floats that order are true for no NaN and have none.
func (c *cleaner) invert(in, a *kir.Instr) *kir.Instr {
	op, ok := inverse[a.Op]
	if in.Type != kir.Bool || !ok || a.Args[0].Type.IsFloat() && a.Op != kir.Eq && a.Op != kir.Ne {
		return nil
	}
	return c.make(op, kir.Bool, in.Pos, a.Args[0], a.Args[1])
}

// comparison simplifies comparisons of Bools with constants, and of equal integers.
func (c *cleaner) comparison(in *kir.Instr) *kir.Instr {
	a, b := in.Args[0], in.Args[1]
	if a == b && !a.Type.IsFloat() {
		same := in.Op == kir.Eq || in.Op == kir.Le || in.Op == kir.Ge
		if same {
			return c.constant(kir.Bool, 1)
		}
		return c.constant(kir.Bool, 0)
	}
	if b.Op != kir.Const || in.Op != kir.Eq && in.Op != kir.Ne {
		return nil
	}
	if a.Op == kir.Convert && a.Args[0].Type == kir.Bool && b.Imm == 0 {
		a = a.Args[0]
	} else if a.Type != kir.Bool {
		return nil
	}
	if (in.Op == kir.Ne) == (b.Imm == 0) {
		return a
	}
	return c.make(kir.Not, kir.Bool, in.Pos, a)
}

// selectInstr simplifies selections by an inverted condition, and of Bools.
func (c *cleaner) selectInstr(in *kir.Instr) *kir.Instr {
	if in.Args[0].Op == kir.Not {
		in.Args[0] = in.Args[0].Args[0]
		in.Args[1], in.Args[2] = in.Args[2], in.Args[1]
	}
	cond, x, y := in.Args[0], in.Args[1], in.Args[2]
	if in.Type != kir.Bool {
		return nil
	}
	switch {
	case x.Op == kir.Const && x.Imm != 0:
		return c.make(kir.Or, kir.Bool, in.Pos, cond, y)
	case y.Op == kir.Const && y.Imm == 0:
		return c.make(kir.And, kir.Bool, in.Pos, cond, x)
	case x.Op == kir.Const:
		return c.make(kir.And, kir.Bool, in.Pos, c.make(kir.Not, kir.Bool, in.Pos, cond), y)
	case y.Op == kir.Const:
		return c.make(kir.Or, kir.Bool, in.Pos, c.make(kir.Not, kir.Bool, in.Pos, cond), x)
	}
	return nil
}

// convertInstr joins conversions where the one in the middle loses nothing that the last one keeps.
func (c *cleaner) convertInstr(in *kir.Instr) *kir.Instr {
	mid := in.Args[0]
	if mid.Op != kir.Convert {
		return nil
	}
	x := mid.Args[0]
	from, via, to := x.Type, mid.Type, in.Type
	switch {
	case from == kir.Bool:
		if to != kir.Bool && !via.IsArith() {
			return nil
		}
	case from.IsInt() && via.IsInt():
		// What via holds exactly is converted from there as from the start; else only its low bits are the same.
		exact := via.Bits() > from.Bits() && (via.IsSigned() || !from.IsSigned())
		low := to.IsInt() && to.Bits() <= via.Bits() || to == kir.Bool && via.Bits() >= from.Bits()
		if !exact && !low {
			return nil
		}
	case from.IsFloat() && via.IsFloat():
		if via.Bits() <= from.Bits() {
			return nil
		}
	default:
		return nil
	}
	if from == to {
		return x
	}
	in.Args[0] = x
	return nil
}

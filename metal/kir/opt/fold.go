package opt

import "github.com/mlxlua/mlxlua/metal/kir"

// fold returns what a pure operation comes to if no instruction is needed, or if a cheaper one does the same; else nil.
// Everything holds for all operands by kir's semantics, NaNs (but for their payload) and signed zeros included.
func (r *rewriter) fold(op kir.Op, t kir.Type, imm uint64, pos kir.Pos, args []*kir.Instr) *kir.Instr {
	if len(args) == 0 {
		return nil
	}
	if op == kir.PtrAdd {
		return r.foldPtr(t, imm, pos, args)
	}
	if bits, ok := evalConst(op, t, args); ok {
		return r.constant(t, bits, pos)
	}
	x := args[0]
	switch op {
	case kir.Not:
		return r.foldNot(t, pos, x)
	case kir.Convert:
		return r.foldConvert(t, pos, x)
	case kir.Bitcast:
		return r.foldBitcast(t, pos, x)
	case kir.Select:
		return r.foldSelect(t, pos, args)
	case kir.Neg:
		if x.Op == kir.Neg {
			return x.Args[0]
		}
	case kir.Abs:
		switch {
		case x.Op == kir.Abs, t.IsInt() && !t.IsSigned():
			return x
		case x.Op == kir.Neg:
			return r.op(op, t, pos, x.Args[0])
		}
	}
	if len(args) != 2 {
		return nil
	}
	if args[1] == x {
		if y := r.foldEqual(op, t, pos, x); y != nil {
			return y
		}
	}
	c := args[1].Op == kir.Const
	switch {
	case t.IsInt() && c:
		return r.foldInt(op, t, pos, x, args[1])
	case t.IsFloat():
		return r.foldFloat(op, t, pos, x, args[1])
	case c && x.Type == kir.Bool:
		return r.foldBool(op, pos, x, args[1].Imm&1 != 0)
	case c && x.Op == kir.Convert && x.Args[0].Type == kir.Bool && args[1].Imm == 0 && (op == kir.Eq || op == kir.Ne):
		return r.foldBool(op, pos, x.Args[0], false)
	}
	return nil
}

func evalConst(op kir.Op, t kir.Type, args []*kir.Instr) (uint64, bool) {
	var bits [3]uint64
	for i, a := range args {
		if a.Op != kir.Const || i == len(bits) {
			return 0, false
		}
		bits[i] = a.Imm
	}
	in := kir.Instr{Op: op, Type: t, Args: args}
	return in.Eval(bits[:len(args)]...)
}

// foldNot negates a comparison by its opposite; those of floats that order are true for no NaN and have none.
func (r *rewriter) foldNot(t kir.Type, pos kir.Pos, x *kir.Instr) *kir.Instr {
	if x.Op == kir.Not {
		return x.Args[0]
	}
	opposite := x.Op.Opposite()
	if opposite == kir.Invalid || x.Args[0].Type.IsFloat() && x.Op != kir.Eq && x.Op != kir.Ne {
		return nil
	}
	return r.share(opposite, t, 0, 0, pos, x.Args)
}

// foldConvert joins conversions where the one in the middle loses nothing that the last one keeps.
func (r *rewriter) foldConvert(t kir.Type, pos kir.Pos, mid *kir.Instr) *kir.Instr {
	via := mid.Type
	if t == via {
		return mid
	}
	if mid.Op != kir.Convert {
		return nil
	}
	x := mid.Args[0]
	from := x.Type
	switch {
	case from == kir.Bool:
		if t != kir.Bool && !via.IsArith() {
			return nil
		}
	case from.IsInt() && via.IsInt():
		// What via holds exactly is converted from there as from the start; else only its low bits are the same.
		exact := via.Bits() > from.Bits() && (via.IsSigned() || !from.IsSigned())
		low := t.IsInt() && t.Bits() <= via.Bits() || t == kir.Bool && via.Bits() >= from.Bits()
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
	return r.op(kir.Convert, t, pos, x)
}

func (r *rewriter) foldBitcast(t kir.Type, pos kir.Pos, mid *kir.Instr) *kir.Instr {
	switch {
	case t == mid.Type:
		return mid
	case mid.Op != kir.Bitcast:
	case mid.Args[0].Type == t:
		return mid.Args[0]
	case t.IsArith() && mid.Args[0].Type.IsArith():
		return r.op(kir.Bitcast, t, pos, mid.Args[0])
	}
	return nil
}

// foldSelect simplifies selections by what is known, or inverted, and of Bools.
func (r *rewriter) foldSelect(t kir.Type, pos kir.Pos, args []*kir.Instr) *kir.Instr {
	c, x, y := args[0], args[1], args[2]
	not := func() *kir.Instr { return r.op(kir.Not, kir.Bool, pos, c) }
	switch {
	case c.Op == kir.Const && c.Imm&1 != 0 || x == y:
		return x
	case c.Op == kir.Const:
		return y
	case c.Op == kir.Not:
		return r.op(kir.Select, t, pos, c.Args[0], y, x)
	case t != kir.Bool:
	case x.Op == kir.Const && x.Imm != 0:
		return r.op(kir.Or, t, pos, c, y)
	case y.Op == kir.Const && y.Imm == 0:
		return r.op(kir.And, t, pos, c, x)
	case x.Op == kir.Const:
		return r.op(kir.And, t, pos, not(), y)
	case y.Op == kir.Const:
		return r.op(kir.Or, t, pos, not(), x)
	}
	return nil
}

// foldEqual is an operation on one value twice.
func (r *rewriter) foldEqual(op kir.Op, t kir.Type, pos kir.Pos, x *kir.Instr) *kir.Instr {
	switch op {
	case kir.And, kir.Or, kir.Min, kir.Max:
		return x
	}
	if x.Type.IsFloat() { // it may be NaN
		return nil
	}
	switch op {
	case kir.Sub, kir.Xor:
		return r.constant(t, 0, pos)
	case kir.Eq, kir.Le, kir.Ge:
		return r.constant(t, 1, pos)
	case kir.Ne, kir.Lt, kir.Gt:
		return r.constant(t, 0, pos)
	}
	return nil
}

func (r *rewriter) foldBool(op kir.Op, pos kir.Pos, x *kir.Instr, c bool) *kir.Instr {
	switch {
	case op == kir.And && c || op == kir.Or && !c || op == kir.Xor && !c || op == kir.Eq && c || op == kir.Ne && !c:
		return x
	case op == kir.And || op == kir.Or:
		return r.constant(kir.Bool, uint64(op-kir.And)&1, pos)
	case op == kir.Xor || op == kir.Eq || op == kir.Ne:
		return r.op(kir.Not, kir.Bool, pos, x)
	}
	return nil
}

// foldFloat uses the identities that keep every number, zero's sign and infinity: x * 1, x - 0, x + -y; and divides by
// powers of two by multiplying, which is exact.
func (r *rewriter) foldFloat(op kir.Op, t kir.Type, pos kir.Pos, x, y *kir.Instr) *kir.Instr {
	if y.Op == kir.Neg {
		switch op {
		case kir.Add:
			return r.op(kir.Sub, t, pos, x, y.Args[0])
		case kir.Sub:
			return r.op(kir.Add, t, pos, x, y.Args[0])
		}
	}
	if y.Op != kir.Const {
		return nil
	}
	one, _ := kir.Identity(kir.ModeMul, t)
	negZero, _ := kir.Identity(kir.ModeAdd, t)
	switch {
	case (op == kir.Mul || op == kir.Div) && y.Imm == one, op == kir.Add && y.Imm == negZero, op == kir.Sub && y.Imm == 0:
		return x
	case op == kir.Div:
		if inverse, ok := reciprocal(t, y.Imm); ok {
			return r.op(kir.Mul, t, pos, x, r.constant(t, inverse, pos))
		}
	}
	return nil
}

// reciprocal returns 1 / y of a power of two, if neither is denormal.
func reciprocal(t kir.Type, y uint64) (uint64, bool) {
	mant := map[kir.Type]int{kir.F16: 10, kir.BF16: 7, kir.F32: 23, kir.F64: 52}[t]
	exps := t.Bits() - 1 - mant
	bias := uint64(1)<<(exps-1) - 1
	e := y >> mant & (1<<exps - 1)
	if y&(1<<mant-1) != 0 || e == 0 || e >= 2*bias {
		return 0, false
	}
	return y&^((1<<exps-1)<<mant) | (2*bias-e)<<mant, true
}

// foldPtr joins a move of a pointer to the one that makes its pointer, where one of the offsets is constant. The
// constant part is in Imm: the address of a constant distance from another is that other's with a larger Imm.
func (r *rewriter) foldPtr(t kir.Type, imm uint64, pos kir.Pos, args []*kir.Instr) *kir.Instr {
	p, by := args[0], args[1]
	moved := imm
	c, fixed := by.Int()
	moved += uint64(c)
	if p.Op == kir.PtrAdd {
		if d, ok := p.Args[1].Int(); ok {
			moved += p.Imm + uint64(d)
			p = p.Args[0]
		} else if fixed {
			moved += p.Imm
			p, by, fixed = p.Args[0], p.Args[1], false
		}
	}
	switch {
	case fixed && moved == 0:
		return p
	case p == args[0] && moved == imm:
		return nil
	case fixed:
		by = r.constant(kir.I64, 0, pos)
	}
	return r.share(kir.PtrAdd, t, 0, moved, pos, []*kir.Instr{p, by})
}

package choose

import (
	"github.com/mlxlua/mlxlua/metal/jit/code"
	"github.com/mlxlua/mlxlua/metal/kir"
)

// lanewise computes pure operations on lanes, a part at a time. value.go says how lanes are kept, kir/semantics.go what
// must come out.
type lanewise struct{ v vector }

// pure computes one part of a pure operation, Add to Bitcast, PtrAdd or PtrDiff, from one part of its
// operands. t is the result's type, argT that of args[0] (of args[1] for Select, whose args[0] is a mask). consts
// has, for each operand that is a constant, its bits; such an operand need not be in a register (its unit may be
// zero). consts may be nil. Of splats a value takes one register whatever its type, and so does the result. The result
// never shares a register with an operand.
func (x lanewise) pure(op kir.Op, t, argT kir.Type, args []unit, consts []*uint64) unit {
	switch {
	case op >= kir.Eq && op <= kir.Ge:
		return unit{r: [2]code.R{x.v.comparisons().compare(op, argT, args, consts)}}
	case op == kir.Select:
		return x.v.comparisons().choose(t, args, consts)
	case op == kir.Convert:
		return x.v.conversions().convert(t, argT, operandUnit(argT, args, consts))
	case op == kir.Bitcast:
		return x.v.conversions().bitcast(t, argT, operandUnit(argT, args, consts))
	case t == kir.Bool:
		return unit{r: [2]code.R{x.boolOp(op, args, consts)}}
	}
	if op == kir.PtrDiff {
		t = argT
	}
	var u unit
	for h := range x.v.halves(t) {
		var a [3]operand
		for n := range args {
			ta := t
			if op == kir.PtrAdd && n == 1 {
				ta = kir.I64
			}
			a[n] = operandOf(ta, args, consts, n, h)
		}
		u.r[h] = x.op(op, t, a)
	}
	return u
}

// op computes an operation whose operands and result have one type, on one register of lanes.
func (x lanewise) op(op kir.Op, t kir.Type, a [3]operand) code.R {
	switch {
	case t.IsPtr():
		return x.ptrOp(op, a)
	case t.IsFloat():
		return x.v.floats().op(op, t, a)
	case wide(t):
		return x.v.integers().op64(op, t, a)
	}
	return x.v.integers().op32(op, t, a)
}

// ptrOp computes PtrAdd and PtrDiff on full pointers.
func (x lanewise) ptrOp(op kir.Op, a [3]operand) code.R {
	if op == kir.PtrDiff {
		p, q := x.sext48(x.v.in(a[0], true)), x.sext48(x.v.in(a[1], true))
		return x.v.op2(code.VPSubQ, p, q)
	}
	p := x.v.in(a[0], true)
	sum := x.v.opX(code.VPAddQ, p, a[1], true)
	mask := x.v.constMem(kir.PtrOffsetMask, true)
	if x.v.avx512() {
		// Where the mask has ones the sum, else the pointer.
		d := x.v.move(sum)
		x.v.emit(code.Inst{Op: code.VPTernLogQ, W: x.v.w, Dst: d, A: p, Mem: mask, Imm: 0xe4})
		return d
	}
	return x.v.op2(code.VPXor, x.v.op2Mem(code.VPAnd, x.v.op2(code.VPXor, sum, p), mask), p)
}

// sext48 extends the low 48 bits of 64-bit lanes by their sign.
func (x lanewise) sext48(r code.R) code.R {
	if x.v.extras() {
		return x.v.shift(code.VPSraQ, x.v.shift(code.VPSllQ, r, 16), 16)
	}
	const sign = 1 << (kir.PtrObjectShift - 1)
	r = x.v.op2Mem(code.VPAnd, r, x.v.constMem(kir.PtrOffsetMask, true))
	m := x.v.load(sign, true)
	return x.v.op2(code.VPSubQ, x.v.op2(code.VPXor, r, m), m)
}

// boolOp computes And, Or, Xor and Not on Bools.
func (x lanewise) boolOp(op kir.Op, args []unit, consts []*uint64) code.R {
	a := x.mask(args, consts, 0)
	if op == kir.Not {
		return x.v.masks().not(a)
	}
	b := x.mask(args, consts, 1)
	switch op {
	case kir.And:
		return x.v.masks().and(a, b)
	case kir.Or:
		return x.v.masks().or(a, b)
	}
	return x.v.masks().xor(a, b)
}

// mask returns a Bool operand in a register.
func (x lanewise) mask(args []unit, consts []*uint64, n int) code.R {
	if r := args[n].r[0]; r != 0 {
		return r
	}
	return x.v.constant(kir.Bool, *consts[n])
}

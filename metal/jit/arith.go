package jit

import (
	"github.com/mlxlua/mlxlua/metal/jit/amd64"
	"github.com/mlxlua/mlxlua/metal/kir"
)

// Pure operations on lanes. value.go says how lanes are kept; kir/semantics.go says what must come out.

// lane emits code that works on vector registers of one width.
type lane struct {
	*selector
	w     uint8 // bytes of a register that count (16, 32 or 64); hides selector.w
	splat bool  // all lanes are equal, so that lane 0 stands for all of them
}

// operand is an operand of one register's lanes: a register, or a constant that every lane has.
type operand struct {
	r    amd64.R // 0 if only the constant is known
	bits uint64  // the constant as a lane holds it
	k    bool    // there is a constant
}

// pureConst computes one part of a pure operation, Add to Bitcast, PtrAdd or PtrDiff, from one part of its
// operands. t is the result's type, argT that of args[0] (of args[1] for Select, whose args[0] is a mask). consts
// has, for each operand that is a constant, its bits; such an operand need not be in a register (its unit may be
// zero). consts may be nil. If splat is set, all lanes are equal: a value takes one register whatever its type, and
// so does the result. The result never shares a register with an operand.
func (s *selector) pureConst(op kir.Op, t, argT kir.Type, args []unit, consts []*uint64, splat bool) unit {
	x := lane{selector: s, w: s.w, splat: splat}
	switch {
	case op >= kir.Eq && op <= kir.Ge:
		return unit{r: [2]amd64.R{x.compare(op, argT, args, consts)}}
	case op == kir.Select:
		return x.choose(t, args, consts)
	case op == kir.Convert:
		return x.convert(t, argT, operandUnit(argT, args, consts))
	case op == kir.Bitcast:
		return x.bitcast(t, argT, operandUnit(argT, args, consts))
	case t == kir.Bool:
		return unit{r: [2]amd64.R{x.boolOp(op, args, consts)}}
	}
	if op == kir.PtrDiff {
		t = argT
	}
	var u unit
	for h := range x.halves(t) {
		var a [3]operand
		for n := range args {
			ta := t
			if op == kir.PtrAdd && n == 1 {
				ta = kir.I64
			}
			a[n] = operandOf(ta, args, consts, n, h)
		}
		u.r[h] = x.lanewise(op, t, a)
	}
	return u
}

// halves is how many registers a part of a type takes.
func (x lane) halves(t kir.Type) int {
	if wide(t) && !x.splat {
		return 2
	}
	return 1
}

// operandOf returns half h of operand n.
func operandOf(t kir.Type, args []unit, consts []*uint64, n, h int) operand {
	o := operand{r: args[n].r[h]}
	if n < len(consts) && consts[n] != nil {
		o.bits, _ = laneBits(t, *consts[n])
		o.k = true
	}
	return o
}

// operandUnit returns both halves of operand 0.
func operandUnit(t kir.Type, args []unit, consts []*uint64) [2]operand {
	return [2]operand{operandOf(t, args, consts, 0, 0), operandOf(t, args, consts, 0, 1)}
}

// lanewise computes an operation whose operands and result have one type, on one register of lanes.
func (x lane) lanewise(op kir.Op, t kir.Type, a [3]operand) amd64.R {
	switch {
	case t.IsPtr():
		return x.ptrOp(op, a)
	case t.IsFloat():
		return x.floatOp(op, t, a)
	case wide(t):
		return x.int64Op(op, t, a)
	}
	return x.int32Op(op, t, a)
}

// ptrOp computes PtrAdd and PtrDiff on full pointers.
func (x lane) ptrOp(op kir.Op, a [3]operand) amd64.R {
	if op == kir.PtrDiff {
		p, q := x.sext48(x.in(a[0], true)), x.sext48(x.in(a[1], true))
		return x.op2(amd64.VPSubQ, p, q)
	}
	p := x.in(a[0], true)
	sum := x.opX(amd64.VPAddQ, p, a[1], true)
	mask := x.constMem(kir.PtrOffsetMask, true)
	if x.level == amd64.AVX512 {
		// Where the mask has ones the sum, else the pointer.
		d := x.move(sum)
		x.emit(amd64.Inst{Op: amd64.VPTernLogQ, W: x.w, Dst: d, A: p, Mem: mask, Imm: 0xe4})
		return d
	}
	return x.op2(amd64.VPXor, x.op2m(amd64.VPAnd, x.op2(amd64.VPXor, sum, p), mask), p)
}

// sext48 extends the low 48 bits of 64-bit lanes by their sign.
func (x lane) sext48(r amd64.R) amd64.R {
	if x.level == amd64.AVX512 {
		return x.shift(amd64.VPSraQ, x.shift(amd64.VPSllQ, r, 16), 16)
	}
	const sign = 1 << (kir.PtrObjectShift - 1)
	r = x.op2m(amd64.VPAnd, r, x.constMem(kir.PtrOffsetMask, true))
	m := x.load(sign, true)
	return x.op2(amd64.VPSubQ, x.op2(amd64.VPXor, r, m), m)
}

// boolOp computes And, Or, Xor and Not on Bools.
func (x lane) boolOp(op kir.Op, args []unit, consts []*uint64) amd64.R {
	a := x.mask(args, consts, 0)
	if op == kir.Not {
		return x.maskNot(a)
	}
	b := x.mask(args, consts, 1)
	switch op {
	case kir.And:
		return x.maskAnd(a, b)
	case kir.Or:
		return x.maskOr(a, b)
	}
	return x.maskXor(a, b)
}

// mask returns a Bool operand in a register.
func (x lane) mask(args []unit, consts []*uint64, n int) amd64.R {
	if r := args[n].r[0]; r != 0 {
		return r
	}
	return x.constant(kir.Bool, *consts[n])
}

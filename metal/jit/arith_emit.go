package jit

import "github.com/mlxlua/mlxlua/metal/jit/amd64"

// The pieces that arithmetic is written with. Each emits an instruction or a few and returns a new register.

func (x lane) op1(op amd64.Opcode, a amd64.R) amd64.R {
	d := x.reg(amd64.Vec)
	x.emit(amd64.Inst{Op: op, W: x.w, Dst: d, A: a})
	return d
}

func (x lane) op1i(op amd64.Opcode, a amd64.R, imm int64) amd64.R {
	d := x.reg(amd64.Vec)
	x.emit(amd64.Inst{Op: op, W: x.w, Dst: d, A: a, Imm: imm})
	return d
}

// shift shifts by a constant.
func (x lane) shift(op amd64.Opcode, a amd64.R, n int) amd64.R { return x.op1i(op, a, int64(n)) }

func (x lane) op2(op amd64.Opcode, a, b amd64.R) amd64.R {
	d := x.reg(amd64.Vec)
	x.emit(amd64.Inst{Op: op, W: x.w, Dst: d, A: a, B: b})
	return d
}

func (x lane) op2m(op amd64.Opcode, a amd64.R, m amd64.Mem) amd64.R {
	d := x.reg(amd64.Vec)
	x.emit(amd64.Inst{Op: op, W: x.w, Dst: d, A: a, Mem: m})
	return d
}

func (x lane) op2i(op amd64.Opcode, a, b amd64.R, imm int64) amd64.R {
	d := x.reg(amd64.Vec)
	x.emit(amd64.Inst{Op: op, W: x.w, Dst: d, A: a, B: b, Imm: imm})
	return d
}

// opX computes op(a, b); a constant b comes from memory. big: lanes of 64 bits.
func (x lane) opX(op amd64.Opcode, a amd64.R, b operand, big bool) amd64.R {
	if b.k {
		return x.op2m(op, a, x.constMem(b.bits, big))
	}
	return x.op2(op, a, b.r)
}

// op2x computes op(a, b) with any operands; comm says that they may change places.
func (x lane) op2x(op amd64.Opcode, a, b operand, big, comm bool) amd64.R {
	if comm && a.k && !b.k {
		a, b = b, a
	}
	return x.opX(op, x.in(a, big), b, big)
}

// masked is op2 in the lanes of k; the others are d's. It changes d.
func (x lane) masked(op amd64.Opcode, d, a, b, k amd64.R) {
	x.emit(amd64.Inst{Op: op, W: x.w, Dst: d, A: a, B: b, KM: k})
}

// in returns an operand in a register.
func (x lane) in(o operand, big bool) amd64.R {
	if o.r != 0 {
		return o.r
	}
	return x.load(o.bits, big)
}

// load returns a register with a constant in all lanes.
func (x lane) load(bits uint64, big bool) amd64.R {
	r := x.reg(amd64.Vec)
	x.loadTo(r, bits, big)
	return r
}

func (x lane) loadTo(r amd64.R, bits uint64, big bool) {
	switch {
	case bits == 0:
		x.zeroReg(r)
	case big:
		x.emit(amd64.Inst{Op: amd64.VPBroadcastQ, W: x.w, Dst: r, Mem: x.pool(bits, 8)})
	default:
		x.emit(amd64.Inst{Op: amd64.VPBroadcastD, W: x.w, Dst: r, Mem: x.pool(bits, 4)})
	}
}

// pool puts one number of size bytes into the pool of constants.
func (x lane) pool(bits uint64, size int) amd64.Mem {
	return amd64.Mem{Const: x.f.Const(appendBits(nil, bits, size))}
}

// constMem is a memory operand with a constant for every lane.
func (x lane) constMem(bits uint64, big bool) amd64.Mem {
	size := 4
	if big {
		size = 8
	}
	if x.level == amd64.AVX512 {
		m := x.pool(bits, size)
		m.Bcast = true
		return m
	}
	var b []byte
	for len(b) < int(x.selector.w) {
		b = appendBits(b, bits, size)
	}
	return amd64.Mem{Const: x.f.Const(b)}
}

// pattern is a memory operand of a whole register that repeats bytes; for instructions that cannot broadcast.
func (x lane) pattern(bytes []byte) amd64.Mem {
	var b []byte
	for len(b) < int(x.selector.w) {
		b = append(b, bytes...)
	}
	return amd64.Mem{Const: x.f.Const(b)}
}

// move returns a copy.
func (x lane) move(a amd64.R) amd64.R { return x.op1(amd64.VMovAPS, a) }

// moveTo changes d to a, in the lanes of the mask k if it is not 0.
func (x lane) moveTo(d, a, k amd64.R) {
	x.emit(amd64.Inst{Op: amd64.VMovAPS, W: x.w, Dst: d, A: a, KM: k})
}

// Logic on all bits of a register. Size matters to constants only.
func (x lane) and(a amd64.R, b operand, big bool) amd64.R {
	return x.opX(x.logic(amd64.VPAnd, amd64.VPAndD, amd64.VPAndQ, big), a, b, big)
}

func (x lane) or(a amd64.R, b operand, big bool) amd64.R {
	return x.opX(x.logic(amd64.VPOr, amd64.VPOrD, amd64.VPOrQ, big), a, b, big)
}

func (x lane) xor(a amd64.R, b operand, big bool) amd64.R {
	return x.opX(x.logic(amd64.VPXor, amd64.VPXorD, amd64.VPXorQ, big), a, b, big)
}

// andNot computes b &^ a.
func (x lane) andNot(a amd64.R, b operand, big bool) amd64.R {
	return x.opX(x.logic(amd64.VPAndN, amd64.VPAndND, amd64.VPAndNQ, big), a, b, big)
}

func (x lane) logic(avx2, d, q amd64.Opcode, big bool) amd64.Opcode {
	switch {
	case x.level == amd64.AVX2:
		return avx2
	case big:
		return q
	}
	return d
}

// inReg makes an operand of a register.
func inReg(r amd64.R) operand { return operand{r: r} }

// konst makes an operand of a constant, given as lanes hold it.
func konst(bits uint64) operand { return operand{bits: bits, k: true} }

// by chooses between the forms of an operation for 32- and for 64-bit lanes.
func by(big bool, d, q amd64.Opcode) amd64.Opcode {
	if big {
		return q
	}
	return d
}

// upper returns the upper half of a register's bytes as the lower half of another.
func (x lane) upper(r amd64.R) amd64.R {
	d := x.reg(amd64.Vec)
	switch {
	case x.w == 64:
		x.emit(amd64.Inst{Op: amd64.VExtractI64X4, W: 64, Dst: d, A: r, Imm: 1})
	case x.w == 32 && x.level == amd64.AVX512:
		x.emit(amd64.Inst{Op: amd64.VExtractI32X4, W: 32, Dst: d, A: r, Imm: 1})
	case x.w == 32:
		x.emit(amd64.Inst{Op: amd64.VExtractI128, W: 32, Dst: d, A: r, Imm: 1})
	default:
		x.emit(amd64.Inst{Op: amd64.VPShufD, W: 16, Dst: d, A: r, Imm: 0xee})
	}
	return d
}

// join puts the lower halves of two registers side by side.
func (x lane) join(lo, hi amd64.R) amd64.R {
	op := amd64.VInsertI128
	if x.level == amd64.AVX512 {
		op = amd64.VInsertI64X4
	}
	return x.op2i(op, lo, hi, 1)
}

// first returns a register whose lanes all are lane 0 of r.
func (x lane) first(r amd64.R, big bool) amd64.R {
	return x.op1(by(big, amd64.VPBroadcastD, amd64.VPBroadcastQ), r)
}

// wider calls f on the lower and the upper half of 32-bit lanes to make 64-bit lanes of them. A splat has one half.
func (x lane) wider(r amd64.R, f func(half amd64.R) amd64.R) [2]amd64.R {
	u := [2]amd64.R{f(r)}
	if !x.splat {
		u[1] = f(x.upper(r))
	}
	return u
}

// narrower calls f, which makes 32-bit lanes in the lower half of a register of 64-bit lanes, on both halves of a
// part.
func (x lane) narrower(u [2]amd64.R, f func(amd64.R) amd64.R) amd64.R {
	lo := f(u[0])
	if x.splat {
		return x.first(lo, false)
	}
	return x.join(lo, f(u[1]))
}

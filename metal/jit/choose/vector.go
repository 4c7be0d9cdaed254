package choose

import (
	"github.com/mlxlua/mlxlua/metal/jit/code"
	"github.com/mlxlua/mlxlua/metal/kir"
)

// vector emits the instructions that arithmetic on lanes is written with, on registers of one width. Each method
// returns a new register unless it says something else.
type vector struct {
	e     *emitter
	w     uint8 // bytes of a register that count: 16, 32 or 64
	splat bool  // all lanes are equal, so that lane 0 stands for all of them
}

// emit appends an instruction.
func (x vector) emit(i code.Inst) { x.e.emit(i) }

// reg returns a new register.
func (x vector) reg(c code.Class) code.R { return x.e.reg(c) }

// avx512 reports whether the code is for processors with AVX-512.
func (x vector) avx512() bool { return x.e.avx512() }

// extras reports whether there are operations of AVX-512 that need no mask.
func (x vector) extras() bool { return x.e.extras() }

// masks is what combines masks for this code.
func (x vector) masks() masks { return masks{x.e} }

// The kinds of arithmetic on these lanes.
func (x vector) integers() integers       { return integers{x} }
func (x vector) divisions() divisions     { return divisions{x} }
func (x vector) floats() floats           { return floats{x} }
func (x vector) comparisons() comparisons { return comparisons{x} }
func (x vector) conversions() conversions { return conversions{x} }
func (x vector) lanewise() lanewise       { return lanewise{x} }

// ofSplats is the vector for values that are the same in all lanes.
func (x vector) ofSplats() vector {
	x.splat = true
	return x
}

// halves is how many registers a part of a type takes.
func (x vector) halves(t kir.Type) int {
	if wide(t) && !x.splat {
		return 2
	}
	return 1
}

// op1 computes op(a).
func (x vector) op1(op code.Opcode, a code.R) code.R {
	d := x.reg(code.Vec)
	x.emit(code.Inst{Op: op, W: x.w, Dst: d, A: a})
	return d
}

// op1Imm computes op(a, imm).
func (x vector) op1Imm(op code.Opcode, a code.R, imm int64) code.R {
	d := x.reg(code.Vec)
	x.emit(code.Inst{Op: op, W: x.w, Dst: d, A: a, Imm: imm})
	return d
}

// op2 computes op(a, b).
func (x vector) op2(op code.Opcode, a, b code.R) code.R {
	d := x.reg(code.Vec)
	x.emit(code.Inst{Op: op, W: x.w, Dst: d, A: a, B: b})
	return d
}

// op2Imm computes op(a, b, imm).
func (x vector) op2Imm(op code.Opcode, a, b code.R, imm int64) code.R {
	d := x.reg(code.Vec)
	x.emit(code.Inst{Op: op, W: x.w, Dst: d, A: a, B: b, Imm: imm})
	return d
}

// op2Mem computes op(a, memory); a may be 0.
func (x vector) op2Mem(op code.Opcode, a code.R, m code.Mem) code.R {
	d := x.reg(code.Vec)
	x.emit(code.Inst{Op: op, W: x.w, Dst: d, A: a, Mem: m})
	return d
}

// opX computes op(a, b); a constant b comes from memory. big: lanes of 64 bits.
func (x vector) opX(op code.Opcode, a code.R, b operand, big bool) code.R {
	if b.k {
		return x.op2Mem(op, a, x.constMem(b.bits, big))
	}
	return x.op2(op, a, b.r)
}

// op2X computes op(a, b) with any operands; comm says that they may change places.
func (x vector) op2X(op code.Opcode, a, b operand, big, comm bool) code.R {
	if comm && a.k && !b.k {
		a, b = b, a
	}
	return x.opX(op, x.in(a, big), b, big)
}

// masked is op2 in the lanes of k; the others are d's. It changes d.
func (x vector) masked(op code.Opcode, d, a, b, k code.R) {
	x.emit(code.Inst{Op: op, W: x.w, Dst: d, A: a, B: b, KM: k})
}

// shift shifts by a constant.
func (x vector) shift(op code.Opcode, a code.R, n int) code.R { return x.op1Imm(op, a, int64(n)) }

// and, or, xor and andNot work on all bits of a register. The lanes' size, 64 bits if big, matters to constants only.
func (x vector) and(a code.R, b operand, big bool) code.R {
	return x.opX(x.logic(code.VPAnd, code.VPAndD, code.VPAndQ, big), a, b, big)
}

func (x vector) or(a code.R, b operand, big bool) code.R {
	return x.opX(x.logic(code.VPOr, code.VPOrD, code.VPOrQ, big), a, b, big)
}

func (x vector) xor(a code.R, b operand, big bool) code.R {
	return x.opX(x.logic(code.VPXor, code.VPXorD, code.VPXorQ, big), a, b, big)
}

// andNot computes b &^ a.
func (x vector) andNot(a code.R, b operand, big bool) code.R {
	return x.opX(x.logic(code.VPAndN, code.VPAndND, code.VPAndNQ, big), a, b, big)
}

// logic chooses between AVX2's operation on all bits and AVX-512's two, by the size of lanes.
func (x vector) logic(avx2, d, q code.Opcode, big bool) code.Opcode {
	switch {
	case !x.avx512():
		return avx2
	case big:
		return q
	}
	return d
}

// move returns a copy.
func (x vector) move(a code.R) code.R { return x.op1(code.VMovAPS, a) }

// moveTo changes d to a, in the lanes of the mask k if it is not 0.
func (x vector) moveTo(d, a, k code.R) {
	x.emit(code.Inst{Op: code.VMovAPS, W: x.w, Dst: d, A: a, KM: k})
}

// moveUnit copies both registers of a part.
func (x vector) moveUnit(r [2]code.R) (u unit) {
	for h := range r {
		if r[h] != 0 {
			u.r[h] = x.move(r[h])
		}
	}
	return u
}

// in returns an operand in a register.
func (x vector) in(o operand, big bool) code.R {
	if o.r != 0 {
		return o.r
	}
	return x.load(o.bits, big)
}

// load returns a register with a constant in all lanes.
func (x vector) load(bits uint64, big bool) code.R {
	r := x.reg(code.Vec)
	x.loadTo(r, bits, big)
	return r
}

// loadTo puts a constant into all lanes of r.
func (x vector) loadTo(r code.R, bits uint64, big bool) {
	switch {
	case bits == 0:
		x.e.zeroReg(r)
	case big:
		x.emit(code.Inst{Op: code.VPBroadcastQ, W: x.w, Dst: r, Mem: x.pool(bits, 8)})
	default:
		x.emit(code.Inst{Op: code.VPBroadcastD, W: x.w, Dst: r, Mem: x.pool(bits, 4)})
	}
}

// pool puts one number of size bytes into the pool of constants.
func (x vector) pool(bits uint64, size int) code.Mem {
	return code.Mem{Const: x.e.f.Const(appendBits(nil, bits, size))}
}

// constMem is a memory operand with a constant for every lane.
func (x vector) constMem(bits uint64, big bool) code.Mem {
	size := 4
	if big {
		size = 8
	}
	if x.avx512() {
		m := x.pool(bits, size)
		m.Bcast = true
		return m
	}
	var b []byte
	for len(b) < int(x.e.w) {
		b = appendBits(b, bits, size)
	}
	return code.Mem{Const: x.e.f.Const(b)}
}

// repeated is a memory operand of a whole register that repeats bytes; for instructions that cannot broadcast.
func (x vector) repeated(bytes []byte) code.Mem {
	var b []byte
	for len(b) < int(x.e.w) {
		b = append(b, bytes...)
	}
	return code.Mem{Const: x.e.f.Const(b)}
}

// constLanes is a memory operand with a 32-bit constant for each lane of a register.
func (x vector) constLanes(f func(l int) uint64) code.Mem {
	var b []byte
	for l := range x.e.per {
		b = appendBits(b, f(l), 4)
	}
	return code.Mem{Const: x.e.f.Const(b)}
}

// constBytes is a memory operand that repeats n bytes.
func (x vector) constBytes(n int, f func(n int) uint64) code.Mem {
	var b []byte
	for k := range n {
		b = appendBits(b, f(k), 1)
	}
	return x.repeated(b)
}

// loadLanes returns a register with a constant of 32 bits for each lane.
func (x vector) loadLanes(words []int32) code.R {
	return x.op2Mem(code.VMovUPS, 0, x.e.table(words, 4))
}

// constant returns a splat of a constant's bits (a mask if it is a Bool).
func (x vector) constant(t kir.Type, bits uint64) code.R {
	if t == kir.Bool {
		r := x.reg(code.GPR)
		x.emit(code.Inst{Op: code.Mov, W: 4, Dst: r, Imm: int64(bits & 1)})
		return x.masks().fromBool(r)
	}
	r := x.reg(code.Vec)
	lane, size := laneBits(t, bits)
	switch {
	case lane == 0:
		x.emit(code.Inst{Op: code.VXorPS, W: x.e.w, Dst: r, A: r, B: r})
	case size == 8:
		x.emit(code.Inst{Op: code.VPBroadcastQ, W: x.e.w, Dst: r,
			Mem: code.Mem{Const: x.e.f.Const(appendBits(nil, lane, 8))}})
	default:
		x.emit(code.Inst{Op: code.VPBroadcastD, W: x.e.w, Dst: r,
			Mem: code.Mem{Const: x.e.f.Const(appendBits(nil, lane, 4))}})
	}
	return r
}

// upper returns the upper half of a register's bytes as the lower half of another.
func (x vector) upper(r code.R) code.R {
	d := x.reg(code.Vec)
	switch {
	case x.w == 64:
		x.emit(code.Inst{Op: code.VExtractI64X4, W: 64, Dst: d, A: r, Imm: 1})
	case x.w == 32 && x.avx512():
		x.emit(code.Inst{Op: code.VExtractI32X4, W: 32, Dst: d, A: r, Imm: 1})
	case x.w == 32:
		x.emit(code.Inst{Op: code.VExtractI128, W: 32, Dst: d, A: r, Imm: 1})
	default:
		x.emit(code.Inst{Op: code.VPShufD, W: 16, Dst: d, A: r, Imm: 0xee})
	}
	return d
}

// join puts the lower halves of two registers side by side.
func (x vector) join(lo, hi code.R) code.R {
	op := code.VInsertI128
	if x.avx512() {
		op = code.VInsertI64X4
	}
	return x.op2Imm(op, lo, hi, 1)
}

// first returns a register whose lanes all are lane 0 of r.
func (x vector) first(r code.R, big bool) code.R {
	return x.op1(by(big, code.VPBroadcastD, code.VPBroadcastQ), r)
}

// wider calls f on the lower and the upper half of 32-bit lanes to make 64-bit lanes of them. A splat has one half.
func (x vector) wider(r code.R, f func(half code.R) code.R) [2]code.R {
	u := [2]code.R{f(r)}
	if !x.splat {
		u[1] = f(x.upper(r))
	}
	return u
}

// narrower calls f, which makes 32-bit lanes in the lower half of a register of 64-bit lanes, on both halves of a
// part.
func (x vector) narrower(u [2]code.R, f func(code.R) code.R) code.R {
	lo := f(u[0])
	if x.splat {
		return x.first(lo, false)
	}
	return x.join(lo, f(u[1]))
}

// evenDwords takes the low halves of the 64-bit lanes of two AVX2 registers.
func (x vector) evenDwords(lo, hi code.R) code.R {
	return x.op1Imm(code.VPermQ, x.op2Imm(code.VShufPS, lo, hi, 0x88), 0xd8)
}

// evens takes the dwords first, first+2, ... of two AVX-512 registers.
func (x vector) evens(lo, hi code.R, first int) code.R {
	var table []byte
	for l := range 16 {
		table = appendBits(table, uint64(2*l+first), 4)
	}
	d := x.reg(code.Vec)
	x.emit(code.Inst{Op: code.VMovUPS, W: 64, Dst: d, Mem: x.repeated(table)})
	x.emit(code.Inst{Op: code.VPermI2D, W: 64, Dst: d, A: lo, B: hi})
	return d
}

// extend makes 64-bit lanes of the lower half of 32-bit integer lanes.
func (x vector) extend(from kir.Type, r code.R) code.R {
	if from.IsSigned() {
		return x.op1(code.VPMovSXDQ, r)
	}
	return x.op1(code.VPMovZXDQ, r)
}

// lowHalves makes 32-bit lanes of the lower halves of 64-bit ones.
func (x vector) lowHalves(r [2]code.R) code.R {
	switch {
	case x.splat:
		return x.first(r[0], false)
	case !x.avx512():
		return x.evenDwords(r[0], r[1])
	}
	return x.evens(r[0], r[1], 0)
}

// lowWords packs 16-bit integers into the lower half of a register.
func (x vector) lowWords(from kir.Type, v code.R) code.R {
	if x.extras() {
		return x.op1(code.VPMovDW, v)
	}
	pack := code.VPackUSDW
	if from.IsSigned() {
		pack = code.VPackSSDW
	}
	return x.op1Imm(code.VPermQ, x.op2(pack, v, v), 0x08)
}

// blend takes b where the AVX2 mask k has ones, else a.
func (x vector) blend(a, b, k code.R, big bool) code.R {
	d := x.reg(code.Vec)
	x.emit(code.Inst{Op: by(big, code.VBlendVPS, code.VBlendVPD), W: x.w, Dst: d, A: a, B: b, C: k})
	return d
}

// cmpK compares floats to a mask register.
func (x vector) cmpK(op code.Opcode, a, b code.R, predicate int64) code.R {
	k := x.reg(code.Mask)
	x.emit(code.Inst{Op: op, W: x.w, Dst: k, A: a, B: b, Imm: predicate})
	return k
}

// nonzero makes a mask of the 32-bit lanes that are not zero; they must not be negative.
func (x vector) nonzero(r code.R) code.R {
	if x.avx512() {
		k := x.reg(code.Mask)
		x.emit(code.Inst{Op: code.VPTestMD, W: x.e.w, Dst: k, A: r, B: r})
		return k
	}
	z := x.reg(code.Vec)
	x.e.zeroReg(z)
	return x.op2(code.VPCmpGtD, r, z)
}

// perLane computes a binary operation on one register by code that handles one lane of size bytes in memory.
func (x vector) perLane(size int, a, b code.R, body func(a, b, result code.Mem)) code.R {
	x.emit(code.Inst{Op: code.VMovUPS, W: x.w, Mem: x.e.scratchMem(scratchPtr), A: a})
	x.emit(code.Inst{Op: code.VMovUPS, W: x.w, Mem: x.e.scratchMem(scratchVal), A: b})
	d := x.reg(code.Vec)
	if x.splat {
		body(x.e.scratchMem(scratchPtr), x.e.scratchMem(scratchVal), x.e.scratchMem(scratchVal2))
		x.emit(code.Inst{Op: by(size == 8, code.VPBroadcastD, code.VPBroadcastQ), W: x.w, Dst: d,
			Mem: x.e.scratchMem(scratchVal2)})
		return d
	}
	x.e.laneLoop(int(x.w)/size, size, func(at code.R) {
		mem := func(off int) code.Mem {
			m := x.e.scratchMem(off)
			m.Index, m.Scale = at, 1
			return m
		}
		body(mem(scratchPtr), mem(scratchVal), mem(scratchVal2))
	})
	x.emit(code.Inst{Op: code.VMovUPS, W: x.w, Dst: d, Mem: x.e.scratchMem(scratchVal2)})
	return d
}

package arm64

import (
	"math/bits"

	"github.com/mlxlua/mlxlua/metal/jit/code"
)

// conditions are the processor's numbers of conditions. A subtraction that borrows clears its carry, where amd64 sets
// it; code looks at carries only after subtractions and comparisons.
var conditions = map[code.Cond]uint32{code.CondE: 0, code.CondNE: 1, code.CondAE: 2, code.CondB: 3, code.CondS: 4,
	code.CondNS: 5, code.CondA: 8, code.CondBE: 9, code.CondGE: 10, code.CondL: 11, code.CondG: 12, code.CondLE: 13}

// wide is the bit for an operand of w bytes.
func wide(w uint8) uint32 {
	if w == 8 {
		return sf
	}
	return 0
}

// load loads w bytes, zero-extended, to a general register.
func (l *writer) load(r code.R, m code.Mem, off int64, w uint8) {
	switch w {
	case 1:
		l.loadStore(ldrbW, r, m, off, 1)
	case 2:
		l.loadStore(ldrhW, r, m, off, 2)
	case 4:
		l.loadStore(ldrW, r, m, off, 4)
	default:
		l.loadStore(ldrX, r, m, off, 8)
	}
}

// store stores the low w bytes of one.
func (l *writer) store(r code.R, m code.Mem, w uint8) {
	switch w {
	case 1:
		l.loadStore(strbW, r, m, 0, 1)
	case 2:
		l.loadStore(strhW, r, m, 0, 2)
	case 4:
		l.loadStore(strW, r, m, 0, 4)
	default:
		l.loadStore(strX, r, m, 0, 8)
	}
}

// source returns operand r, or the memory operand, or the constant, in a register.
func (l *lowerer) source(r code.R) code.R {
	switch {
	case r != 0:
		return l.g(r)
	case l.i.Mem.Valid():
		l.load(temp2, l.i.Mem, 0, l.i.W)
	default:
		l.constant(temp2, uint64(l.i.Imm), l.i.W == 8)
	}
	return temp2
}

// general lowers an instruction on general registers, or of control.
func (l *lowerer) general() {
	i, w := l.i, wide(l.i.W)
	d := l.g(i.Dst)
	switch i.Op {
	case code.Mov:
		l.mov()
	case code.MovZXB, code.MovZXW, code.MovSXB, code.MovSXW, code.MovSXD:
		l.extend()
	case code.Lea:
		l.lea()
	case code.Add, code.Or, code.And, code.Sub, code.Xor:
		l.alu()
	case code.Cmp, code.Test:
		l.compare()
	case code.IMul:
		l.op2i(mulG, d, d, l.source(i.A), w)
	case code.IMul3:
		a := d
		if i.A != 0 {
			a = l.g(i.A)
		} else {
			l.load(temp1, i.Mem, 0, i.W)
			a = temp1
		}
		l.constant(temp2, uint64(i.Imm), i.W == 8)
		l.op2i(mulG, d, a, temp2, w)
	case code.Not:
		l.op2i(mvnG, d, 0, d, w)
	case code.Neg:
		op := negG
		if l.flags {
			op = negsG
		}
		l.op2i(op, d, 0, d, w)
	case code.Mul, code.IMul1:
		l.multiply()
	case code.Div, code.IDiv:
		l.divide()
	case code.Cdq, code.Nop:
		// Division takes one register.
	case code.Shl, code.Shr, code.Sar, code.ShlX, code.ShrX, code.SarX:
		l.shift()
	case code.BZHi: // the bits below the number B
		l.constant(temp1, 1, false)
		l.op2i(lslV, temp1, temp1, l.g(i.B), w)
		l.op1i(subI, temp1, temp1, w|1<<10)
		l.op2i(andG, d, l.source(i.A), temp1, w)
	case code.BlsR, code.BlsMsk:
		a := l.source(i.A)
		l.op1i(subI, temp1, a, w|1<<10)
		l.op2i(map[bool]opcode{true: andG, false: eorG}[i.Op == code.BlsR], d, a, temp1, w)
	case code.BlsI:
		a := l.source(i.A)
		l.op2i(negG, temp1, 0, a, w)
		l.op2i(andG, d, a, temp1, w)
	case code.Bsr:
		l.op1i(clzG, temp1, l.source(i.A), w)
		l.constant(temp2, uint64(8*i.W-1), false)
		l.op2i(subG, d, temp2, temp1, 0)
	case code.TZCnt:
		l.op1i(rbitG, temp1, l.source(i.A), w)
		l.op1i(clzG, d, temp1, w)
	case code.LZCnt:
		l.op1i(clzG, d, l.source(i.A), w)
	case code.PopCnt:
		if a := l.source(i.A); i.W == 8 {
			l.op1(fMovFromGX, vec1, a)
		} else {
			l.op1(fMovFromG, vec1, a)
		}
		l.op1(cntB, vec1, vec1)
		l.op1(addVB, vec1, vec1)
		l.op1(fMovToG, d, vec1)
	case code.BSwap:
		l.op1(map[uint8]opcode{4: revW, 8: revX}[i.W], d, d)
	case code.SetCC:
		l.op0(cSet, d, (conditions[i.Cond]^1)<<12)
	case code.CMov:
		l.op2i(cSel, d, l.source(i.A), d, w|conditions[i.Cond]<<12)
	default:
		l.other()
	}
}

// mov lowers Mov.
func (l *lowerer) mov() {
	i := l.i
	switch d := l.g(i.Dst); {
	case d == 0:
		r := temp2
		if i.A != 0 {
			r = l.g(i.A)
		} else {
			l.constant(r, uint64(i.Imm), true)
		}
		l.store(r, i.Mem, i.W)
	case i.W < 4:
		l.fail("a move of a part of a register")
	case i.Mem.Valid():
		l.load(d, i.Mem, 0, i.W)
	case i.A == 0:
		l.constant(d, uint64(i.Imm), i.W == 8)
	case i.W == 8:
		l.op1(movG, d, l.g(i.A))
	default:
		l.op2(movW, d, 0, l.g(i.A))
	}
}

// extend lowers moves that extend.
func (l *lowerer) extend() {
	i := l.i
	d, x := l.g(i.Dst), i.W == 8
	size, signed := int32(1), true
	load := map[bool]opcode{false: ldrsbW, true: ldrsbX}[x]
	switch i.Op {
	case code.MovZXB:
		load, signed = ldrbW, false
	case code.MovZXW:
		load, size, signed = ldrhW, 2, false
	case code.MovSXW:
		load, size = map[bool]opcode{false: ldrshW, true: ldrshX}[x], 2
	case code.MovSXD:
		load, size, x = ldrswX, 4, true
	}
	imms := uint32(8*size-1) << 10
	switch {
	case i.A == 0:
		l.loadStore(load, d, i.Mem, 0, size)
	case !signed:
		l.op1i(uBfm, d, l.g(i.A), imms)
	case x:
		l.op1i(sBfm, d, l.g(i.A), sf|1<<22|imms)
	default:
		l.op1i(sBfm, d, l.g(i.A), imms)
	}
}

// lea lowers Lea.
func (l *lowerer) lea() {
	i := l.i
	d := l.g(i.Dst)
	if i.Label != 0 {
		l.put(inst{op: adr, d: d, label: i.Label})
		return
	}
	m := i.Mem
	shift := uint32(bits.TrailingZeros8(max(m.Scale, 1)))
	switch {
	case m.Index != 0 && m.Disp == 0 && m.Base != 0:
		l.op2i(addG, d, l.g(m.Base), l.g(m.Index), wide(i.W)|shift<<10)
		return
	default:
		l.address(d, m, 0)
	}
	if i.W == 4 {
		l.op2(movW, d, 0, d)
	}
}

// aluOps are operations of two registers; with flags; with a constant.
var aluOps = map[code.Opcode]struct{ reg, flags, imm opcode }{
	code.Add: {addG, addsG, addI}, code.Sub: {subG, subsG, subI}, code.And: {andG, andsG, andI},
	code.Or: {orrG, orrG, orrI}, code.Xor: {eorG, eorG, eorI},
}

// alu lowers arithmetic whose destination is a source.
func (l *lowerer) alu() {
	i, w, ops := l.i, wide(l.i.W), aluOps[l.i.Op]
	if l.flags && (i.Op == code.Or || i.Op == code.Xor) {
		l.fail("it sets no flags")
		return
	}
	d := l.g(i.Dst)
	if i.Dst == 0 {
		d = temp1
		l.load(d, i.Mem, 0, i.W)
	}
	var b code.R
	switch {
	case i.A != 0:
		b = l.g(i.A)
	case i.Dst != 0 && i.Mem.Valid():
		l.load(temp2, i.Mem, 0, i.W)
		b = temp2
	default:
		if op, imm, ok := l.withConstant(ops.imm); ok {
			l.op1i(op, d, d, w|imm)
			break
		}
		l.constant(temp2, uint64(i.Imm), i.W == 8)
		b = temp2
	}
	if b != 0 {
		op := ops.reg
		if l.flags {
			op = ops.flags
		}
		l.op2i(op, d, d, b, w)
	}
	if i.Dst == 0 {
		l.store(d, i.Mem, i.W)
	}
}

// withConstant is an operation with the instruction's constant in its word, if it has room for that.
func (l *lowerer) withConstant(op opcode) (o opcode, imm uint32, ok bool) {
	n := l.i.Imm
	if l.i.W == 4 {
		n = int64(int32(n))
	}
	switch op {
	case addI, subI, subsI:
		if n < 0 && n > -1<<12 && (op != subsI) {
			op, n = addI+subI-op, -n
		}
		if n < 0 || n >= 1<<12 {
			return 0, 0, false
		}
		if l.flags {
			op = map[opcode]opcode{addI: addsI, subI: subsI, subsI: subsI}[op]
		}
		return op, uint32(n) << 10, true
	case andI, orrI, eorI:
		if l.flags && op == andI {
			op = andsI
		}
		imm, ok = bitmask(uint64(n), l.i.W == 8)
		return op, imm, ok
	}
	return 0, 0, false
}

// bitmask is how a constant of logic stands in a word: a run of ones in each of equal parts, turned.
func bitmask(n uint64, wide bool) (imm uint32, ok bool) {
	if !wide {
		n = n<<32 | n&(1<<32-1)
	}
	if n == 0 || n == 1<<64-1 {
		return 0, false
	}
	size := 64
	for size > 2 {
		h := size / 2
		m := uint64(1)<<h - 1
		if n&m != n>>h&m {
			break
		}
		size = h
	}
	m := uint64(1<<63-1)<<1 | 1
	if size < 64 {
		m = 1<<size - 1
	}
	part := n & m
	ones := bits.OnesCount64(part)
	run := uint64(1)<<ones - 1
	for turn := range size {
		if (run>>turn|run<<(size-turn))&m != part {
			continue
		}
		imms := uint32(ones-1) | uint32(0x3f&^(2*size-1))
		imm = uint32(turn)<<16 | imms<<10
		if size == 64 {
			imm |= 1 << 22
		}
		return imm, true
	}
	return 0, false
}

// compare lowers Cmp and Test.
func (l *lowerer) compare() {
	i, w := l.i, wide(l.i.W)
	if !l.flags {
		return
	}
	var a, b code.R
	switch {
	case i.A != 0:
		a = l.g(i.A)
	case i.Mem.Base == code.RBP && i.W == 8: // a word of the block, which may be wanted again
		a = l.f.NewReg(code.GPR)
		l.load(a, i.Mem, 0, i.W)
	default:
		l.load(temp1, i.Mem, 0, i.W)
		a = temp1
	}
	switch {
	case i.B != 0:
		b = l.g(i.B)
	case i.A != 0 && i.Mem.Valid():
		b = temp2
		if i.A.Virtual() { // a value that may be wanted again
			b = l.f.NewReg(code.GPR)
		}
		l.load(b, i.Mem, 0, i.W)
	}
	if i.Op == code.Test {
		switch {
		case b == a: // as a comparison with 0, whose carry is amd64's after a test
			l.op1i(subsI, zero, a, w)
			return
		case b == 0:
			if imm, ok := bitmask(uint64(i.Imm), i.W == 8); ok {
				l.op1i(andsI, zero, a, w|imm)
				return
			}
			l.constant(temp2, uint64(i.Imm), i.W == 8)
			b = temp2
		}
		l.op2i(andsG, zero, a, b, w)
		return
	}
	if b == 0 {
		if op, imm, ok := l.withConstant(subsI); ok {
			l.op1i(op, zero, a, w|imm)
			return
		}
		if n := -i.Imm; n > 0 && n < 1<<12 {
			l.op1i(addsI, zero, a, w|uint32(n)<<10)
			return
		}
		l.constant(temp2, uint64(i.Imm), i.W == 8)
		b = temp2
	}
	l.op2i(subsG, zero, a, b, w)
}

// multiply lowers the multiplication of RAX to RDX and RAX.
func (l *lowerer) multiply() {
	i, ax, dx := l.i, l.g(code.RAX), l.g(code.RDX)
	if i.W != 8 {
		l.fail("a short product")
	}
	a := l.source(i.A)
	l.op2(map[bool]opcode{true: uMulH, false: sMulH}[i.Op == code.Mul], temp1, ax, a)
	l.op2i(mulG, ax, ax, a, sf)
	l.op1(movG, dx, temp1)
}

// divide lowers the division of RAX, extended to RDX, to RAX and RDX.
func (l *lowerer) divide() {
	i, w, ax, dx := l.i, wide(l.i.W), l.g(code.RAX), l.g(code.RDX)
	a := l.source(i.A)
	l.op2i(map[bool]opcode{true: uDiv, false: sDiv}[i.Op == code.Div], temp1, ax, a, w)
	l.put(inst{op: mSub, d: dx, n: temp1, m: a, a: ax, imm: w})
	l.op1(movG, ax, temp1)
}

// shift lowers shifts.
func (l *lowerer) shift() {
	i, w, d := l.i, wide(l.i.W), l.g(l.i.Dst)
	op, imm := map[code.Opcode]opcode{code.Shl: lslV, code.ShlX: lslV, code.Shr: lsrV, code.ShrX: lsrV, code.Sar: asrV,
		code.SarX: asrV}[i.Op], uint32(0)
	width := uint32(i.W) * 8
	n := uint32(i.Imm) & (width - 1)
	switch {
	case i.Op >= code.ShlX:
		l.op2i(op, d, l.source(i.A), l.g(i.B), w)
	case i.A != 0:
		l.op2i(op, d, d, l.g(i.A), w)
	case i.Dst == 0:
		l.fail("a shift in memory")
	default:
		bfm := uBfm
		switch op {
		case lslV:
			imm = (width-n)&(width-1)<<16 | (width-1-n)<<10
		case lsrV:
			imm = n<<16 | (width-1)<<10
		default:
			bfm, imm = sBfm, n<<16|(width-1)<<10
		}
		if w != 0 {
			imm |= sf | 1<<22
		}
		l.op1i(bfm, d, d, imm)
	}
	if l.flags {
		l.op1i(subsI, zero, d, w)
	}
}

// other lowers control, and what concerns other processors.
func (l *lowerer) other() {
	i := l.i
	switch i.Op {
	case code.Jcc:
		l.put(inst{op: branchIf, label: i.Label, imm: conditions[i.Cond]})
	case code.Jmp:
		switch {
		case i.Label != 0:
			l.put(inst{op: branch, label: i.Label})
		case i.Mem.Valid():
			l.load(temp1, i.Mem, 0, 8)
			l.put(inst{op: branchTo, n: temp1})
		default:
			l.put(inst{op: branchTo, n: l.g(i.A)})
		}
	case code.Ret:
		l.put(inst{op: ret})
	case code.MFence:
		l.put(inst{op: dmb})
	case code.PrefetchT0, code.PrefetchW:
		hint := uint32(0) // to be read, to the first cache, to stay
		if i.Op == code.PrefetchW {
			hint = 16
		}
		if m := i.Mem; m.Const == 0 && fits(m.Disp, 8) {
			l.put(inst{op: prfm, n: l.base(m), imm: scaled(m.Disp, 8) | hint})
			break
		}
		l.address(tempAt, i.Mem, 0)
		l.put(inst{op: prfm, n: tempAt, imm: 1<<24 | hint})
	case code.Xchg, code.LockXAdd, code.LockCmpXchg, code.LockAdd, code.LockOr, code.LockAnd, code.LockSub, code.LockXor:
		l.atomic()
	default:
		l.fail("no such operation")
	}
}

// atomic lowers what happens to memory at once: it is tried until no other processor came between. Nothing else touches
// memory meanwhile, and only registers that are never spilled are named.
func (l *lowerer) atomic() {
	i, w := l.i, wide(l.i.W)
	size := uint32(bits.TrailingZeros8(i.W)) << 30
	at := l.plain(i.Mem)
	if at != tempAt {
		l.op1(movG, tempAt, at)
	}
	r := i.Dst
	if r == 0 {
		r = i.A
	}
	const given = 17
	arg := x(given)
	if r != 0 {
		l.op1(movG, arg, l.g(r))
	} else {
		l.constant(arg, uint64(i.Imm), true)
	}
	again, over := l.f.NewLabel(), l.f.NewLabel()
	l.put(inst{op: place, label: again})
	l.op1i(ldaxr, temp1, tempAt, size)
	next := temp2
	switch i.Op {
	case code.Xchg:
		next = arg
	case code.LockXAdd, code.LockAdd:
		l.op2i(addG, next, temp1, arg, w)
	case code.LockSub:
		l.op2i(subG, next, temp1, arg, w)
	case code.LockAnd:
		l.op2i(andG, next, temp1, arg, w)
	case code.LockOr:
		l.op2i(orrG, next, temp1, arg, w)
	case code.LockXor:
		l.op2i(eorG, next, temp1, arg, w)
	case code.LockCmpXchg:
		next = arg
		l.op2i(subsG, zero, temp1, l.g(code.RAX), w)
		l.put(inst{op: branchIf, label: over, imm: conditions[code.CondNE]})
	}
	l.put(inst{op: stlxr, d: next, n: tempAt, m: temp3, imm: size})
	l.put(inst{op: cbnz, d: temp3, label: again})
	l.put(inst{op: place, label: over})
	switch i.Op {
	case code.LockCmpXchg:
		l.op1(movG, l.g(code.RAX), temp1)
	case code.Xchg, code.LockXAdd:
		l.op1(movG, l.g(i.Dst), temp1)
	}
}

package arm64

import (
	"bytes"

	"github.com/mlxlua/mlxlua/metal/jit/code"
)

// pair is both halves of a vector, in registers.
type pair [2]code.R

// newVec returns a virtual register of 16 bytes that was not used before.
func (l *writer) newVec() code.R {
	l.vecs++
	return code.Reg(code.Vec, code.FirstVirtual+l.vecs-1)
}

// of is both halves of a register.
func (l *writer) of(r code.R) pair {
	if !r.Virtual() {
		return pair{l.half(r, 0)}
	}
	return pair{l.half(r, 0), l.half(r, 1)}
}

// to is the destination.
func (l *lowerer) to() pair { return l.of(l.i.Dst) }

// last is the last source: register r, or the memory operand, loaded.
func (l *lowerer) last(r code.R) pair {
	if r != 0 {
		return l.of(r)
	}
	m := l.i.Mem
	if m.Const != 0 && l.i.W == 32 {
		if b := l.f.Pool()[m.Const-1].Data[m.Disp:]; len(b) >= 32 && bytes.Equal(b[:16], b[16:32]) {
			c := l.newVec()
			l.literal(c, m, 0)
			return pair{c, c}
		}
	}
	p := pair{l.newVec()}
	if l.i.W == 32 {
		p[1] = l.newVec()
	}
	l.loadVec(p[0], p[1], m)
	return p
}

// number returns a register with a constant of 32 bits in all lanes.
func (l *writer) number(n uint32) code.R {
	b := make([]byte, 16)
	for k := range b {
		b[k] = byte(n >> (8 * (k % 4)))
	}
	return l.bytes(b)
}

// bytes returns a register with a constant of 16 bytes.
func (l *writer) bytes(b []byte) code.R {
	c := l.newVec()
	l.literal(c, code.Mem{Const: l.f.Const(b)}, 0)
	return c
}

// each3 emits an operation with two sources on each half.
func (l *lowerer) each3(op opcode, a, b code.R) {
	d, n, m := l.to(), l.of(a), l.last(b)
	for h := range l.halves() {
		l.op2(op, d[h], n[h], m[h])
	}
	l.upper()
}

// each2 emits one with one source.
func (l *lowerer) each2(op opcode, a code.R) {
	d, n := l.to(), l.last(a)
	for h := range l.halves() {
		l.op1(op, d[h], n[h])
	}
	l.upper()
}

// upper clears the upper half of the destination if the instruction is for the lower one.
func (l *lowerer) upper() {
	if l.i.W == 16 {
		l.clearUpper(l.i.Dst)
	}
}

// three are operations of the processor that do what those of package code do, with two sources on each half; two those
// with one.
var three = map[code.Opcode]opcode{
	code.VAddPS: fAddS, code.VAddPD: fAddD, code.VMulPS: fMulS, code.VMulPD: fMulD, code.VSubPS: fSubS, code.VSubPD: fSubD,
	code.VDivPS: fDivS, code.VDivPD: fDivD, code.VPAddB: addB, code.VPAddD: addS, code.VPAddQ: addD, code.VPSubD: subS,
	code.VPSubQ: subD, code.VPMulLD: mulS, code.VPMinSD: sMinS, code.VPMinUD: uMinS, code.VPMaxSD: sMaxS,
	code.VPMaxUD: uMaxS, code.VPAnd: andV, code.VPOr: orrV, code.VPXor: eorV, code.VPCmpEqD: cmEqS, code.VPCmpEqQ: cmEqD,
	code.VPCmpGtD: cmGtS, code.VPCmpGtQ: cmGtD, code.VUnpckLPS: zip1S, code.VUnpckHPS: zip2S, code.VUnpckLPD: zip1D,
	code.VUnpckHPD: zip2D, code.VPUnpckLDQ: zip1S, code.VPUnpckHDQ: zip2S, code.VPSllVD: uShlS, code.VPSllVQ: uShlD,
	addPH: fAddH, subPH: fSubH, mulPH: fMulH, divPH: fDivH,
}

var two = map[code.Opcode]opcode{
	code.VSqrtPS: fSqrtS, code.VSqrtPD: fSqrtD, code.VCvtDQ2PS: sCvtFS, code.VCvtUDQ2PS: uCvtFS, code.VCvtQQ2PD: sCvtFD,
	code.VCvtUQQ2PD: uCvtFD, code.VCvtTPS2DQ: fCvtZSS, code.VCvtTPS2UDQ: fCvtZUS, code.VCvtTPD2QQ: fCvtZSD,
	code.VCvtTPD2UQQ: fCvtZUD, code.VPAbsD: absS, code.VPAbsQ: absD, code.VPLZCntD: clzS, sqrtPH: fSqrtH,
}

// float lowers arithmetic, comparisons and rounding of floats, and what has one operation of the processor.
func (l *lowerer) float() bool {
	i := l.i
	if op, ok := three[i.Op]; ok {
		if (i.Op == code.VPXor || i.Op == code.VPSubD) && i.A == i.B {
			l.zeros()
			return true
		}
		if i.Op == code.VMulPS && i.B == 0 && l.quiet(i.A, code.Mem{})&quiet32 != 0 && l.one(i.Mem, false) ||
			i.Op == code.VMulPD && i.B == 0 && l.quiet(i.A, code.Mem{})&quiet64 != 0 && l.one(i.Mem, true) {
			l.each2(movV, i.A) // the product is there to quieten NaNs
			return true
		}
		l.each3(op, i.A, i.B)
		return true
	}
	if op, ok := two[i.Op]; ok {
		l.each2(op, i.A)
		return true
	}
	switch i.Op {
	case code.VXorPS:
		if i.A != i.B {
			l.each3(eorV, i.A, i.B)
		} else {
			l.zeros()
		}
	case code.VAddSS, code.VSubSS:
		b := vec1
		if i.B != 0 {
			b = l.half(i.B, 0)
		} else {
			l.loadStore(ldrS, b, i.Mem, 0, 4)
		}
		l.op2(map[bool]opcode{true: fAddOne, false: fSubOne}[i.Op == code.VAddSS], l.half(i.Dst, 0), l.half(i.A, 0), b)
	case code.VMinPS, code.VMinPD, code.VMaxPS, code.VMaxPD:
		l.extreme()
	case code.VRangePS, code.VRangePD:
		op := map[[2]bool]opcode{{false, false}: fMinNMS, {false, true}: fMinNMD, {true, false}: fMaxNMS,
			{true, true}: fMaxNMD}[[2]bool{i.Imm&1 != 0, i.Op == code.VRangePD}]
		l.each3(op, i.A, i.B)
	case code.VFMAdd231PS, code.VFMAdd231PD, code.VFNMAdd231PS, code.VFNMAdd231PD:
		l.each3(map[code.Opcode]opcode{code.VFMAdd231PS: fMlaS, code.VFMAdd231PD: fMlaD, code.VFNMAdd231PS: fMlsS,
			code.VFNMAdd231PD: fMlsD}[i.Op], i.A, i.B)
	case mlaPH:
		d, c, n, m := l.to(), l.of(i.C), l.half(i.A, 0), l.half(i.B, 0)
		for h, op := range [...]opcode{fMlaL, fMlaL2} {
			if d[h] != c[h] {
				l.op1(movV, d[h], c[h])
			}
			l.op2(op, d[h], n, m)
		}
	case code.VFMAdd213PS, code.VFMAdd213PD, code.VFMSub213PD:
		d, n, m := l.to(), l.of(i.A), l.last(i.B)
		mla := map[bool]opcode{true: fMlaS, false: fMlaD}[i.Op == code.VFMAdd213PS]
		for h := range l.halves() {
			t := l.newVec()
			if i.Op == code.VFMSub213PD {
				l.op1(fNegD, t, m[h])
			} else {
				l.op1(movV, t, m[h])
			}
			l.op2(mla, t, n[h], d[h])
			l.op1(movV, d[h], t)
		}
		l.upper()
	case code.VCmpPS, code.VCmpPD:
		l.compareFloats()
	case code.VRoundPS, code.VRoundPD:
		ops := map[int64][2]opcode{8: {fRintNS, fRintND}, 9: {fRintMS, fRintMD}, 10: {fRintPS, fRintPD},
			11: {fRintZS, fRintZD}}[i.Imm]
		l.each2(ops[map[bool]int{true: 1}[i.Op == code.VRoundPD]], i.A)
	default:
		return false
	}
	return true
}

// zeros clears the destination.
func (l *lowerer) zeros() {
	for h, d := range l.to() {
		if d != 0 && (h == 0 || !l.twin(l.i.Dst)) {
			l.op0(movi2d, d, 0)
		}
	}
}

var extremes = map[code.Opcode][2]opcode{code.VMinPS: {fMinS, fMinNMS}, code.VMinPD: {fMinD, fMinNMD},
	code.VMaxPS: {fMaxS, fMaxNMS}, code.VMaxPD: {fMaxD, fMaxNMD}}

// extreme lowers the smaller or larger of two: the second unless the first is smaller, or larger.
func (l *lowerer) extreme() {
	i := l.i
	gt, quiet, big := fCmGtS, quiet32, i.Op == code.VMinPD || i.Op == code.VMaxPD
	if big {
		gt, quiet = fCmGtD, quiet64
	}
	// Beside a constant that is neither a zero nor a NaN the processor's own operation differs for signalling NaNs only:
	// that which a NaN passes where it would be the second, and that which prefers the number.
	ops := extremes[i.Op]
	switch {
	case l.ordinary(i.A, code.Mem{}, big) && l.quiet(i.B, i.Mem)&quiet != 0:
		l.each3(ops[0], i.A, i.B)
		return
	case l.ordinary(i.B, i.Mem, big) && l.quiet(i.A, code.Mem{})&quiet != 0:
		l.each3(ops[1], i.A, i.B)
		return
	}
	d, a, b := l.to(), l.of(i.A), l.last(i.B)
	for h := range l.halves() {
		t := l.newVec()
		if i.Op == code.VMinPS || i.Op == code.VMinPD {
			l.op2(gt, t, b[h], a[h])
		} else {
			l.op2(gt, t, a[h], b[h])
		}
		l.op2(bslV, t, a[h], b[h])
		l.op1(movV, d[h], t)
	}
	l.upper()
}

// compareFloats lowers comparisons that make lanes of ones or zeros.
func (l *lowerer) compareFloats() {
	i := l.i
	k := 0
	if i.Op == code.VCmpPD {
		k = 1
	}
	eq, ge, gt := [2]opcode{fCmEqS, fCmEqD}[k], [2]opcode{fCmGeS, fCmGeD}[k], [2]opcode{fCmGtS, fCmGtD}[k]
	d, a, b := l.to(), l.of(i.A), l.last(i.B)
	for h := range l.halves() {
		d, a, b := d[h], a[h], b[h]
		switch i.Imm {
		case 0x00: // equal
			l.op2(eq, d, a, b)
		case 0x04: // not equal
			l.op2(eq, d, a, b)
			l.op1(notV, d, d)
		case 0x11: // less
			l.op2(gt, d, b, a)
		case 0x12: // less or equal
			l.op2(ge, d, b, a)
		case 0x1d: // greater or equal
			l.op2(ge, d, a, b)
		case 0x1e: // greater
			l.op2(gt, d, a, b)
		case 0x07, 0x03: // ordered, or not: both are no NaN
			t := l.newVec()
			l.op2(eq, t, a, a)
			if a != b {
				u := l.newVec()
				l.op2(eq, u, b, b)
				l.op2(andV, t, t, u)
			}
			if i.Imm == 0x03 {
				l.op1(notV, d, t)
			} else {
				l.op1(movV, d, t)
			}
		default:
			l.fail("no such comparison")
		}
	}
	l.upper()
}

// convert lowers conversions to lanes of another size.
func (l *lowerer) convert() bool {
	i := l.i
	switch i.Op {
	case code.VCvtDQ2PD, code.VCvtUDQ2PD, code.VCvtPS2PD, code.VCvtPH2PS:
		l.widen(map[code.Opcode][3]opcode{code.VCvtDQ2PD: {sXtlS, sXtl2S, sCvtFD}, code.VCvtUDQ2PD: {uXtlS, uXtl2S, uCvtFD},
			code.VCvtPS2PD: {fCvtLS, fCvtL2S}, code.VCvtPH2PS: {fCvtLH, fCvtL2H}}[i.Op])
	case code.VCvtTPD2DQ, code.VCvtTPD2UDQ, code.VCvtPD2PS:
		ops := map[code.Opcode][3]opcode{code.VCvtTPD2DQ: {fCvtZSD, xtnD, xtn2D}, code.VCvtPD2PS: {none, fCvtND, fCvtN2D},
			code.VCvtTPD2UDQ: {fCvtZUD, xtnD, xtn2D}}[i.Op]
		l.narrow(l.last(i.A), ops)
		l.clearUpper(i.Dst)
	case code.VCvtPS2PH:
		if i.Mem.Valid() {
			a, t := l.of(i.A), vec1
			l.op1(fCvtNS, t, a[0])
			if i.W == 16 {
				l.loadStore(strD, t, i.Mem, 0, 8)
				break
			}
			l.op1(fCvtN2S, t, a[1])
			l.loadStore(strQ, t, i.Mem, 0, 16)
			break
		}
		l.narrow(l.of(i.A), [3]opcode{none, fCvtNS, fCvtN2S})
		l.clearUpper(i.Dst)
	case code.VCvtNEPS2BF16:
		l.narrow(l.of(i.A), [3]opcode{none, bfCvtNS, bfCvtN2S})
		l.clearUpper(i.Dst)
	default:
		return false
	}
	return true
}

// widen makes lanes twice as wide of those in the lower half of the source: ops are for the lower and the upper half of
// them, and what is done to the result.
func (l *lowerer) widen(ops [3]opcode) {
	i, d := l.i, l.to()
	var a code.R
	if i.A != 0 {
		a = l.half(i.A, 0)
	} else {
		a = l.newVec()
		if i.W == 32 {
			l.loadVec(a, 0, i.Mem)
		} else {
			l.loadStore(ldrD, a, i.Mem, 0, 8)
		}
	}
	t := a
	if i.W == 32 && d[0] == a { // the lower result is not to take the source's place
		t = l.newVec()
		l.op1(movV, t, a)
	}
	for h := range l.halves() {
		l.op1(ops[h], d[h], t)
		if ops[2] != none {
			l.op1(ops[2], d[h], d[h])
		}
	}
	l.upper()
}

// narrow makes lanes half as wide, in the lower half of the destination: ops are what is done before, and for the lower
// and the upper half.
func (l *lowerer) narrow(a pair, ops [3]opcode) {
	t := l.newVec()
	for h := range l.halves() {
		r := a[h]
		if ops[0] != none {
			r = l.newVec()
			l.op1(ops[0], r, a[h])
		}
		l.op1(ops[1+h], t, r)
	}
	l.op1(movV, l.to()[0], t)
}

// integer lowers what is left of arithmetic on integers: products, shifts, tests, counts.
func (l *lowerer) integer() bool {
	i := l.i
	switch i.Op {
	case code.VPAndN:
		d, a, b := l.to(), l.of(i.A), l.last(i.B)
		for h := range l.halves() {
			l.op2(bicV, d[h], b[h], a[h])
		}
		l.upper()
	case code.VPMulDQ, code.VPMulUDQ:
		mul := map[bool]opcode{true: sMullS, false: uMullS}[i.Op == code.VPMulDQ]
		d, a, b := l.to(), l.of(i.A), l.last(i.B)
		for h := range l.halves() {
			p, q := l.newVec(), l.newVec()
			l.op1(xtnD, p, a[h])
			l.op1(xtnD, q, b[h])
			l.op2(mul, d[h], p, q)
		}
		l.upper()
	case code.VPopCntD, code.VPopCntQ:
		d, a := l.to(), l.last(i.A)
		for h := range l.halves() {
			l.op1(cntB, d[h], a[h])
			l.op1(uAddLPB, d[h], d[h])
			l.op1(uAddLPH, d[h], d[h])
			if i.Op == code.VPopCntQ {
				l.op1(uAddLPS, d[h], d[h])
			}
		}
		l.upper()
	case code.VPSllD, code.VPSllQ, code.VPSrlD, code.VPSrlQ, code.VPSraD, code.VPSraQ:
		l.shiftLanes()
	case code.VPSrlVD, code.VPSrlVQ, code.VPSraVD, code.VPSraVQ:
		ops := map[code.Opcode][2]opcode{code.VPSrlVD: {negS, uShlS}, code.VPSrlVQ: {negD, uShlD},
			code.VPSraVD: {negS, sShlS}, code.VPSraVQ: {negD, sShlD}}[i.Op]
		d, a, b := l.to(), l.of(i.A), l.last(i.B)
		for h := range l.halves() {
			n := l.newVec()
			l.op1(ops[0], n, b[h])
			l.op2(ops[1], d[h], a[h], n)
		}
		l.upper()
	case code.VPTest:
		if !l.flags {
			break
		}
		t, a, b := vec1, l.of(i.A), l.last(i.B)
		all := a[0]
		if i.A != i.B {
			l.op2(andV, t, a[0], b[0])
			all = t
		}
		if i.W == 32 {
			u := a[1]
			if i.A != i.B {
				u = vec2
				l.op2(andV, u, a[1], b[1])
			}
			l.op2(orrV, t, all, u)
			all = t
		}
		l.op2(uMaxPS, t, all, all)
		l.op1(fMovToGX, temp1, t)
		l.op1i(subsI, zero, temp1, sf)
	case code.VMovMskPS, code.VMovMskPD:
		l.maskBits(temp1, l.of(i.A), i.Op == code.VMovMskPD)
		l.op2(movW, l.g(i.Dst), 0, temp1)
	default:
		return false
	}
	return true
}

// maskBits puts a bit for each lane of a mask, 8 of 32 bits or 4 of 64, or half as many, into a general register.
func (l *lowerer) maskBits(d code.R, a pair, big bool) {
	hi, n := a[0], 4
	if l.i.W == 32 {
		hi, n = a[1], 8
	}
	bit := make([]byte, 16)
	if big {
		for k := range n / 2 {
			bit[4*k] = 1 << k
		}
		l.op2(uzp2S, vec1, a[0], hi)
		l.op2(andV, vec1, vec1, l.bytes(bit))
		l.op1(addVS, vec1, vec1)
	} else {
		for k := range n {
			bit[2*k] = 1 << k
		}
		l.op2(uzp2H, vec1, a[0], hi)
		l.op2(andV, vec1, vec1, l.bytes(bit))
		l.op1(addVH, vec1, vec1)
	}
	l.op1(fMovToG, d, vec1)
}

// shiftLanes lowers shifts by a constant.
func (l *lowerer) shiftLanes() {
	i := l.i
	if i.B != 0 || i.Mem.Valid() {
		l.fail("a shift of all lanes by a register")
		return
	}
	d, a, n := l.to(), l.of(i.A), uint32(i.Imm)
	width, op, right := uint32(32), none, true
	switch i.Op {
	case code.VPSllD:
		op, right = shlS, false
	case code.VPSllQ:
		op, right, width = shlD, false, 64
	case code.VPSrlD:
		op = uShrS
	case code.VPSrlQ:
		op, width = uShrD, 64
	case code.VPSraD:
		op, n = sShrS, min(n, 31)
	case code.VPSraQ:
		op, n, width = sShrD, min(n, 63), 64
	}
	for h := range l.halves() {
		switch {
		case n == 0:
			l.op1(movV, d[h], a[h])
		case n >= width:
			l.op0(movi2d, d[h], 0)
		case right:
			l.op1i(op, d[h], a[h], (2*width-n)<<16)
		default:
			l.op1i(op, d[h], a[h], (width+n)<<16)
		}
	}
	l.upper()
}

// widths lowers moves between lanes of different sizes.
func (l *lowerer) widths() bool {
	i := l.i
	switch i.Op {
	case code.VPMovSXBD, code.VPMovZXBD:
		ops := [3]opcode{sXtlB, sXtlH, sXtl2H}
		if i.Op == code.VPMovZXBD {
			ops = [3]opcode{uXtlB, uXtlH, uXtl2H}
		}
		t := vec1
		switch {
		case i.A != 0:
			l.op1(ops[0], t, l.half(i.A, 0))
		case i.W == 32:
			l.loadStore(ldrD, t, i.Mem, 0, 8)
			l.op1(ops[0], t, t)
		default:
			l.loadStore(ldrS, t, i.Mem, 0, 4)
			l.op1(ops[0], t, t)
		}
		d := l.to()
		for h := range l.halves() {
			l.op1(ops[1+h], d[h], t)
		}
		l.upper()
	case code.VPMovSXWD:
		l.widen([3]opcode{sXtlH, sXtl2H})
	case code.VPMovZXWD:
		l.widen([3]opcode{uXtlH, uXtl2H})
	case code.VPMovSXDQ:
		l.widen([3]opcode{sXtlS, sXtl2S})
	case code.VPMovZXDQ:
		l.widen([3]opcode{uXtlS, uXtl2S})
	case code.VPMovDW, code.VPMovDB:
		d, a := l.newVec(), l.of(i.A)
		l.op2(uzp1H, d, a[0], a[1])
		size := int32(16)
		if i.Op == code.VPMovDB {
			size = 8
			l.op1(xtnH, d, d)
		}
		switch {
		case !i.Mem.Valid():
			l.op1(movV, l.to()[0], d)
			l.clearUpper(i.Dst)
		case size == 8:
			l.loadStore(strD, d, i.Mem, 0, size)
		default:
			l.loadStore(strQ, d, i.Mem, 0, size)
		}
	case code.VPackSSDW, code.VPackUSDW:
		ops := [2]opcode{sQXtnS, sQXtn2S}
		if i.Op == code.VPackUSDW {
			ops = [2]opcode{sQXtunS, sQXtun2S}
		}
		d, a, b := l.to(), l.of(i.A), l.last(i.B)
		for h := range l.halves() {
			t := l.newVec()
			l.op1(ops[0], t, a[h])
			l.op1(ops[1], t, b[h])
			l.op1(movV, d[h], t)
		}
		l.upper()
	default:
		return false
	}
	return true
}

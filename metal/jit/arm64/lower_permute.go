package arm64

import "github.com/mlxlua/mlxlua/metal/jit/code"

// permute lowers permutations.
func (l *lowerer) permute() bool {
	i := l.i
	switch i.Op {
	case code.VPermD, code.VPermPS:
		l.permuteWords()
	case code.VPermQ:
		d, a := l.to(), l.last(i.A)
		t := pair{l.newVec(), l.newVec()}
		for h := range 2 {
			p, q := int(i.Imm)>>(4*h)&3, int(i.Imm)>>(4*h+2)&3
			l.twoOf(t[h], a[p/2], p%2, a[q/2], q%2)
		}
		l.op1(movV, d[0], t[0])
		l.op1(movV, d[1], t[1])
	case code.VPermilVPS:
		d, a, b := l.to(), l.of(i.A), l.last(i.B)
		for h := range l.halves() {
			t := l.wordIndex(b[h], 3)
			l.op2(tbl1, d[h], a[h], t)
		}
		l.upper()
	case code.VPShufB:
		d, a, b := l.to(), l.of(i.A), l.last(i.B)
		for h := range l.halves() {
			t := l.newVec()
			l.op2(andV, t, b[h], l.bytes(repeat(0x8f)))
			l.op2(tbl1, d[h], a[h], t)
		}
		l.upper()
	case code.VShufPS:
		d, a, b := l.to(), l.of(i.A), l.last(i.B)
		for h := range l.halves() {
			l.fourOf(d[h], a[h], b[h], int(i.Imm))
		}
		l.upper()
	case code.VPShufD:
		d, a := l.to(), l.last(i.A)
		for h := range l.halves() {
			l.fourOf(d[h], a[h], a[h], int(i.Imm))
		}
		l.upper()
	case code.VPAlignR:
		d, a, b := l.to(), l.of(i.A), l.last(i.B)
		for h := range l.halves() {
			l.op2i(extV, d[h], b[h], a[h], uint32(i.Imm&15)<<11)
		}
		l.upper()
	default:
		return false
	}
	return true
}

func repeat(b byte) []byte {
	l := make([]byte, 16)
	for k := range l {
		l[k] = b
	}
	return l
}

// wordIndex turns numbers of words, of which the bits in mask count, into those of their bytes.
func (l *lowerer) wordIndex(idx code.R, mask uint32) code.R {
	t := l.newVec()
	l.op2(andV, t, idx, l.number(mask))
	l.op2(mulS, t, t, l.number(0x04040404))
	l.op2(addS, t, t, l.number(0x03020100))
	return t
}

// permuteWords lowers VPermD and VPermPS: words of B, of all 8, by the numbers in A.
func (l *lowerer) permuteWords() {
	d, a, b := l.to(), l.of(l.i.A), l.last(l.i.B)
	t := pair{l.wordIndex(a[0], 7), l.wordIndex(a[1], 7)}
	l.op1(movV, tableLow, b[0])
	l.op1(movV, tableHigh, b[1])
	for h := range 2 {
		l.op2(tbl2, d[h], tableLow, t[h])
	}
}

// twoOf puts lane p of a and lane q of b, of 64 bits, side by side.
func (l *lowerer) twoOf(d, a code.R, p int, b code.R, q int) {
	switch {
	case a == b && p == q:
		l.op1i(dupD, d, a, laneD(p))
	case a == b && p == 0:
		l.op1(movV, d, a)
	case p == 1 && q == 0:
		l.op2i(extV, d, a, b, 8<<11)
	case p == 0 && q == 0:
		l.op2(zip1D, d, a, b)
	case p == 1 && q == 1:
		l.op2(zip2D, d, a, b)
	default:
		t := l.newVec()
		l.op1(movV, t, a)
		l.op1i(insD, t, b, laneD(1)|fromD(1))
		l.op1(movV, d, t)
	}
}

// fourOf puts two words of a and two of b side by side, by two bits each of order.
func (l *lowerer) fourOf(d, a, b code.R, order int) {
	w := func(n int) int { return order >> (2 * n) & 3 }
	switch {
	case a == b && w(0) == w(1) && w(1) == w(2) && w(2) == w(3):
		l.op1i(dupS, d, a, laneS(w(0)))
	case order == 0x88:
		l.op2(uzp1S, d, a, b)
	case order == 0xdd:
		l.op2(uzp2S, d, a, b)
	case w(0)%2 == 0 && w(1) == w(0)+1 && w(2)%2 == 0 && w(3) == w(2)+1:
		l.twoOf(d, a, w(0)/2, b, w(2)/2)
	default:
		t := l.newVec()
		l.op1i(dupS, t, a, laneS(w(0)))
		for n := 1; n < 4; n++ {
			from := a
			if n > 1 {
				from = b
			}
			l.op1i(insS, t, from, laneS(n)|fromS(w(n)))
		}
		l.op1(movV, d, t)
	}
}

package arm64

import (
	"math/bits"

	"github.com/mlxlua/mlxlua/metal/jit/code"
)

// scaled is the place of an offset that is a multiple of size, in loads and stores.
func scaled(off, size int32) uint32 {
	return 1<<24 | uint32(off/size)<<10
}

// fits reports whether it has one.
func fits(off, size int32) bool { return off >= 0 && off%size == 0 && off/size < 4096 }

// constant puts a number into a general register.
func (l *writer) constant(d code.R, n uint64, wide bool) {
	if !wide {
		n &= 1<<32 - 1
	}
	for _, i := range constantInsts(d, n, wide) {
		l.put(i)
	}
}

// constantInsts are the instructions that make a number.
func constantInsts(d code.R, n uint64, wide bool) (list []inst) {
	parts, w := 2, uint32(0)
	if wide && n>>32 != 0 {
		parts, w = 4, sf
	}
	zeros, ones := 0, 0
	for p := range parts {
		switch n >> (16 * p) & 0xffff {
		case 0:
			zeros++
		case 0xffff:
			ones++
		}
	}
	first, skip := movZ, uint64(0)
	if ones > zeros {
		first, skip = movN, 0xffff
	}
	for p := range parts {
		part := n >> (16 * p) & 0xffff
		if part == skip {
			continue
		}
		i := inst{op: movK, d: d, imm: w | uint32(part)<<5 | uint32(p)<<21}
		if len(list) == 0 {
			i.op = first
			if first == movN {
				i.imm = w | uint32(^part&0xffff)<<5 | uint32(p)<<21
			}
		}
		list = append(list, i)
	}
	if len(list) == 0 {
		list = append(list, inst{op: first, d: d, imm: w})
	}
	return list
}

// addTo emits d = n + off, in 64 bits.
func (l *writer) addTo(d, n code.R, off int64) {
	op := addI
	if off < 0 {
		op, off = subI, -off
	}
	switch {
	case off == 0:
		l.op1(movG, d, n)
	case off < 1<<12:
		l.op1i(op, d, n, sf|uint32(off)<<10)
	case off < 1<<24 && off&0xfff == 0:
		l.op1i(op, d, n, sf|1<<22|uint32(off>>12)<<10)
	case off < 1<<24:
		l.op1i(op, d, n, sf|1<<22|uint32(off>>12)<<10)
		l.op1i(op, d, d, sf|uint32(off&0xfff)<<10)
	default:
		t := temp3
		l.constant(t, uint64(off), true)
		if op == subI {
			l.op2i(subG, d, n, t, sf)
		} else {
			l.op2i(addG, d, n, t, sf)
		}
	}
}

// base makes one register of base and index of a memory operand.
func (l *writer) base(m code.Mem) code.R {
	shift, t := uint32(bits.TrailingZeros8(max(m.Scale, 1))), tempAt
	if m.Base.Virtual() || m.Index.Virtual() && m.Index.Class() == code.GPR { // a value that may be wanted again
		t = l.f.NewReg(code.GPR)
	}
	switch {
	case m.Const != 0:
		l.put(inst{op: adrPool, d: tempAt, konst: m.Const})
		return tempAt
	case m.Index == 0 || m.Index.Class() == code.Vec:
		return l.g(m.Base)
	case m.Base == 0:
		l.op2i(addG, t, zero, l.g(m.Index), sf|shift<<10)
	default:
		l.op2i(addG, t, l.g(m.Base), l.g(m.Index), sf|shift<<10)
	}
	return t
}

// address puts a memory operand's address plus off into d.
func (l *writer) address(d code.R, m code.Mem, off int64) {
	if m.Const != 0 {
		l.put(inst{op: adrPool, d: d, konst: m.Const, disp: m.Disp + int32(off)})
		return
	}
	b := l.base(m)
	l.addTo(d, b, int64(m.Disp)+off)
}

// plain returns a register with a memory operand's address: its base, or tempAt.
func (l *writer) plain(m code.Mem) code.R {
	if m.Const == 0 && m.Disp == 0 {
		return l.base(m)
	}
	l.address(tempAt, m, 0)
	return tempAt
}

// loadStore emits a load or store of size bytes at m + off.
func (l *writer) loadStore(op opcode, r code.R, m code.Mem, off int64, size int32) {
	disp := int64(m.Disp) + off
	switch {
	case m.Const != 0:
		l.put(inst{op: adrPool, d: tempAt, konst: m.Const, disp: int32(disp)})
		l.op1i(op, r, tempAt, scaled(0, size))
	case m.Index != 0 && m.Base != 0 && disp == 0 && m.Index.Class() == code.GPR &&
		(m.Scale <= 1 || int32(m.Scale) == size):
		s := uint32(0x6800)
		if m.Scale > 1 {
			s = 0x7800
		}
		l.op2i(op, r, l.g(m.Base), l.g(m.Index), 1<<21|s)
	default:
		l.loadStoreAt(op, r, l.base(m), disp, size)
	}
}

// loadStoreAt is loadStore at a register plus a constant.
func (l *writer) loadStoreAt(op opcode, r, b code.R, disp int64, size int32) {
	switch {
	case disp == int64(int32(disp)) && fits(int32(disp), size):
		l.op1i(op, r, b, scaled(int32(disp), size))
	case disp >= -256 && disp < 256:
		l.op1i(op, r, b, uint32(disp&0x1ff)<<12)
	default:
		l.addTo(tempAt, b, disp)
		l.op1i(op, r, tempAt, scaled(0, size))
	}
}

// loadVec loads w bytes, 32 or 16, to two registers or one.
func (l *writer) loadVec(lo, hi code.R, m code.Mem) { l.vec(ldrQ, ldpQ, lo, hi, m) }

// storeVec stores them.
func (l *writer) storeVec(lo, hi code.R, m code.Mem) { l.vec(strQ, stpQ, lo, hi, m) }

func (l *writer) vec(one, pair opcode, lo, hi code.R, m code.Mem) {
	switch {
	case m.Const != 0 && one == ldrQ:
		l.literal(lo, m, 0)
		if hi != 0 {
			l.literal(hi, m, 16)
		}
	case hi == 0:
		l.loadStore(one, lo, m, 0, 16)
	default:
		b, disp := l.base(m), int64(m.Disp)
		if disp%16 != 0 || disp < -1024 || disp > 1008 {
			t := tempAt
			if b.Virtual() {
				t = l.f.NewReg(code.GPR)
			}
			l.addTo(t, b, disp)
			b, disp = t, 0
		}
		l.put(inst{op: pair, d: lo, a: hi, n: b, imm: uint32(disp/16&0x7f) << 15})
	}
}

// literal loads 16 bytes of the pool.
func (l *writer) literal(d code.R, m code.Mem, off int32) {
	b := l.f.Pool()[m.Const-1].Data
	at := int(m.Disp + off)
	if at+16 <= len(b) {
		if i, ok := immediate(b[at : at+16]); ok {
			i.d = d
			l.put(i)
			return
		}
		l.put(inst{op: ldrLitQ, d: d, konst: m.Const, disp: int32(at)})
		return
	}
	l.fail("a constant is too short")
}

// immediate is the instruction that makes 16 bytes of a constant of its own.
func immediate(b []byte) (i inst, ok bool) {
	same := func(n int) bool {
		for k := n; k < len(b); k++ {
			if b[k] != b[k-n] {
				return false
			}
		}
		return true
	}
	bits8 := func(n byte) uint32 { return uint32(n>>5)<<16 | uint32(n&31)<<5 }
	if same(1) {
		return inst{op: movi16b, imm: bits8(b[0])}, true
	}
	bytes := byte(0)
	if same(8) {
		all := true
		for k := range 8 {
			all = all && (b[k] == 0 || b[k] == 0xff)
			bytes |= b[k] & 1 << k
		}
		if all {
			return inst{op: movi2d, imm: bits8(bytes)}, true
		}
	}
	if same(2) && (b[0] == 0 || b[1] == 0) {
		if b[0] != 0 {
			return inst{op: movi8h, imm: bits8(b[0])}, true
		}
		return inst{op: movi8h, imm: bits8(b[1]) | 1<<13}, true
	}
	if !same(4) {
		return inst{}, false
	}
	w := uint32(b[0]) | uint32(b[1])<<8 | uint32(b[2])<<16 | uint32(b[3])<<24
	for k := range uint32(4) {
		switch m := uint32(0xff) << (8 * k); {
		case w&^m == 0:
			return inst{op: movi4s, imm: bits8(byte(w>>(8*k))) | k<<13}, true
		case w|m == 1<<32-1:
			return inst{op: mvni4s, imm: bits8(byte(^w>>(8*k))) | k<<13}, true
		}
	}
	// A float with a sign, three bits of exponent and four of fraction.
	if e := w >> 25 & 0x3f; w&0x7ffff == 0 && (e == 0x20 || e == 0x1f) {
		return inst{op: fMovI4s, imm: bits8(byte(w>>31<<7 | w>>19&0x7f))}, true
	}
	return inst{}, false
}

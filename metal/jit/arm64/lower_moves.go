package arm64

import "github.com/mlxlua/mlxlua/metal/jit/code"

// The places of lanes in words: laneS and laneD of the destination, fromS and fromD of the source.
func laneS(n int) uint32 { return uint32(n<<3|4) << 16 }
func laneD(n int) uint32 { return uint32(n<<4|8) << 16 }
func fromS(n int) uint32 { return uint32(n<<2) << 11 }
func fromD(n int) uint32 { return uint32(n<<3) << 11 }

// ld1Lane is the place of a lane of 32 or 64 bits in loads and stores of one.
func ld1Lane(n int, big bool) uint32 {
	if big {
		return uint32(n) << 30
	}
	return uint32(n>>1)<<30 | uint32(n&1)<<12
}

// move lowers moves of vectors, broadcasts, blends, and halves put together.
func (l *lowerer) move() bool {
	i := l.i
	switch i.Op {
	case code.VMovUPS, code.VMovAPS, code.VMovAPD, code.VMovDQU, code.VMovNTPS:
		l.moveVec()
	case code.VZeroUpper: // nothing slows down by what is in upper halves
	case code.VMovD, code.VMovQ:
		l.moveLow(i.Op == code.VMovQ)
	case code.VBroadcastSS, code.VBroadcastSD, code.VPBroadcastB, code.VPBroadcastW, code.VPBroadcastD, code.VPBroadcastQ,
		code.VPBroadcastGD, code.VPBroadcastGQ:
		l.broadcast()
	case code.VPMaskMovD, code.VPMaskMovQ:
		l.maskedLoad(i.Op == code.VPMaskMovQ)
	case code.VPMaskMovDSt, code.VPMaskMovQSt:
		l.maskedStore(i.Op == code.VPMaskMovQSt)
	case code.VBlendVPS, code.VBlendVPD: // masks have ones in all bits of a lane, or none
		d, a, b, c := l.to(), l.of(i.A), l.last(i.B), l.of(i.C)
		for h := range l.halves() {
			if d[h] == a[h] {
				l.op2(bitV, d[h], b[h], c[h])
				continue
			}
			t := l.newVec()
			l.op1(movV, t, c[h])
			l.op2(bslV, t, b[h], a[h])
			l.op1(movV, d[h], t)
		}
		l.upper()
	case code.VBlendPS, code.VPBlendD:
		d, a, b := l.to(), l.of(i.A), l.last(i.B)
		for h := range l.halves() {
			l.choose(d[h], a[h], b[h], int(i.Imm)>>(4*h)&15)
		}
		l.upper()
	case code.VInsertF128, code.VInsertI128:
		d, a := l.to(), l.of(i.A)
		b := l.newVec()
		if i.B != 0 {
			l.op1(movV, b, l.half(i.B, 0))
		} else {
			l.loadVec(b, 0, i.Mem)
		}
		l.op1(movV, d[1-i.Imm&1], a[1-i.Imm&1])
		l.op1(movV, d[i.Imm&1], b)
	case code.VExtractF128, code.VExtractI128:
		a := l.of(i.A)[i.Imm&1]
		if i.Mem.Valid() {
			l.storeVec(a, 0, i.Mem)
			break
		}
		l.op1(movV, l.to()[0], a)
		l.clearUpper(i.Dst)
	default:
		return false
	}
	return true
}

// moveVec lowers moves of whole vectors.
func (l *lowerer) moveVec() {
	i := l.i
	switch {
	case i.Dst == 0:
		a := l.of(i.A)
		if i.W == 16 {
			a[1] = 0
		}
		l.storeVec(a[0], a[1], i.Mem)
		return
	case i.A != 0:
		d, a := l.to(), l.of(i.A)
		for h := range l.halves() {
			l.op1(movV, d[h], a[h])
		}
	default:
		d := l.to()
		if i.W == 16 || d[1] == d[0] {
			d[1] = 0
		}
		l.loadVec(d[0], d[1], i.Mem)
	}
	l.upper()
}

// moveLow lowers moves of the lowest 4 or 8 bytes.
func (l *lowerer) moveLow(big bool) {
	i := l.i
	load, store, size, low := ldrS, strS, int32(4), movLowS
	from, to := fMovFromG, fMovToG
	if big {
		load, store, size, low, from, to = ldrD, strD, 8, movLow, fMovFromGX, fMovToGX
	}
	switch {
	case i.Dst == 0:
		l.loadStore(store, l.half(i.A, 0), i.Mem, 0, size)
		return
	case i.Dst.Class() == code.GPR:
		l.op1(to, l.g(i.Dst), l.half(i.A, 0))
		return
	case i.A == 0:
		l.loadStore(load, l.half(i.Dst, 0), i.Mem, 0, size)
	case i.A.Class() == code.GPR:
		l.op1(from, l.half(i.Dst, 0), l.g(i.A))
	default:
		l.op1(low, l.half(i.Dst, 0), l.half(i.A, 0))
	}
	l.clearUpper(i.Dst)
}

// broadcast lowers broadcasts of one element.
func (l *lowerer) broadcast() {
	i, d := l.i, l.to()
	kinds := map[code.Opcode]struct {
		dup, load opcode
		lane      uint32
		size      int
	}{
		code.VBroadcastSS: {dupS, ld1rS, laneS(0), 4}, code.VPBroadcastD: {dupS, ld1rS, laneS(0), 4},
		code.VBroadcastSD: {dupD, ld1rD, laneD(0), 8}, code.VPBroadcastQ: {dupD, ld1rD, laneD(0), 8},
		code.VPBroadcastB: {dupB, ld1rB, 1 << 16, 1}, code.VPBroadcastW: {dupH, ld1rH, 2 << 16, 2},
		code.VPBroadcastGD: {dupGS, 0, 0, 4}, code.VPBroadcastGQ: {dupGD, 0, 0, 8},
	}
	k := kinds[i.Op]
	switch {
	case i.A.Class() == code.GPR:
		l.op1(k.dup, d[0], l.g(i.A))
	case i.A != 0:
		l.op1i(k.dup, d[0], l.half(i.A, 0), k.lane)
	case i.Mem.Const != 0:
		part := l.f.Pool()[i.Mem.Const-1].Data[i.Mem.Disp:][:k.size]
		var b []byte
		for len(b) < 16 {
			b = append(b, part...)
		}
		l.literal(d[0], code.Mem{Const: l.f.Const(b)}, 0)
		if i.W == 32 && d[1] != d[0] {
			l.literal(d[1], code.Mem{Const: l.f.Const(b)}, 0)
		}
		if i.W == 32 {
			return
		}
	default:
		l.op1(k.load, d[0], l.plain(i.Mem))
	}
	if i.W == 32 && d[1] != d[0] {
		l.op1(movV, d[1], d[0])
	}
	l.upper()
}

// choose takes the lanes of b whose bits are set, and a's.
func (l *lowerer) choose(d, a, b code.R, lanes int) {
	switch lanes {
	case 0:
		l.op1(movV, d, a)
	case 15:
		l.op1(movV, d, b)
	default:
		t := l.newVec()
		l.op1(movV, t, a)
		for n := range 4 {
			if lanes>>n&1 != 0 {
				l.op1i(insS, t, b, laneS(n)|fromS(n))
			}
		}
		l.op1(movV, d, t)
	}
}

// eachOn calls f with each lane of a mask, jumping over those that are off. n lanes; f may not change temp1.
func (l *lowerer) eachOn(mask pair, big bool, n int, f func(lane int)) {
	l.maskBits(temp1, mask, big)
	for lane := range n {
		next := l.f.NewLabel()
		l.put(inst{op: tbz, d: temp1, imm: uint32(lane) << 19, label: next})
		f(lane)
		l.put(inst{op: place, label: next})
	}
}

// lanesIn is how many lanes of 32 or 64 bits an instruction works on, and how many there are in a half.
func (l *lowerer) lanesIn(big bool) (all, half int) {
	half = 4
	if big {
		half = 2
	}
	return half * l.halves(), half
}

// maskedLoad lowers loads of lanes whose mask is on; the others become 0.
func (l *lowerer) maskedLoad(big bool) {
	i, d := l.i, l.to()
	mask := l.of(i.A)
	n, half := l.lanesIn(big)
	l.address(tempAt, i.Mem, 0)
	t := pair{l.newVec(), l.newVec()}
	for h := range t {
		l.op0(movi2d, t[h], 0)
	}
	op := map[bool]opcode{false: ld1S, true: ld1D}[big]
	l.eachOn(mask, big, n, func(lane int) {
		l.addTo(temp2, tempAt, int64(lane*16/half))
		l.op1i(op, t[lane/half], temp2, ld1Lane(lane%half, big))
	})
	for h := range l.halves() {
		l.op1(movV, d[h], t[h])
	}
	l.upper()
}

// maskedStore lowers stores of lanes whose mask is on.
func (l *lowerer) maskedStore(big bool) {
	i := l.i
	a, mask := l.of(i.A), l.of(i.B)
	n, half := l.lanesIn(big)
	l.address(tempAt, i.Mem, 0)
	op := map[bool]opcode{false: st1S, true: st1D}[big]
	l.eachOn(mask, big, n, func(lane int) {
		l.addTo(temp2, tempAt, int64(lane*16/half))
		l.op1i(op, a[lane/half], temp2, ld1Lane(lane%half, big))
	})
}

// gather lowers gathers: the lanes whose mask, A, is on are loaded one after the other.
func (l *lowerer) gather() bool {
	i := l.i
	var bigIndex, big bool
	switch i.Op {
	case code.VPGatherDD:
	case code.VPGatherDQ:
		big = true
	case code.VPGatherQD:
		bigIndex = true
	case code.VPGatherQQ:
		bigIndex, big = true, true
	default:
		return false
	}
	d, idx, mask := l.to(), l.of(i.Mem.Index), l.of(i.A)
	n, _ := l.lanesIn(big || bigIndex)
	m := i.Mem
	m.Index, m.Scale = 0, 0
	l.address(tempAt, m, 0)
	shift := map[uint8]uint32{0: 0, 1: 0, 2: 1, 4: 2, 8: 3}[i.Mem.Scale] << 10
	op := map[bool]opcode{false: ld1S, true: ld1D}[big]
	t := pair{l.newVec(), l.newVec()}
	dataHalf := 4
	if big {
		dataHalf = 2
	}
	for h := range t {
		if h*dataHalf < n {
			l.op1(movV, t[h], d[h])
		}
	}
	one := func(lane int) {
		switch {
		case bigIndex:
			l.op1i(uMovD, temp2, idx[lane/2], laneD(lane%2))
		default:
			l.op1i(sMovS, temp2, idx[lane/4], laneS(lane%4))
		}
		l.op2i(addG, temp2, tempAt, temp2, sf|shift)
		l.op1i(op, t[lane/dataHalf], temp2, ld1Lane(lane%dataHalf, big))
	}
	switch {
	case l.full[i.A]:
		for lane := range n {
			one(lane)
		}
	case big == bigIndex || big:
		l.eachOn(mask, big, n, one)
	default: // masks of data: 4 lanes in one half
		w := l.i.W
		l.i.W = 16
		l.maskBits(temp1, mask, false)
		l.i.W = w
		for lane := range n {
			next := l.f.NewLabel()
			l.put(inst{op: tbz, d: temp1, imm: uint32(lane) << 19, label: next})
			one(lane)
			l.put(inst{op: place, label: next})
		}
	}
	for h := range t {
		if h*dataHalf < n {
			l.op1(movV, d[h], t[h])
		}
	}
	return true
}

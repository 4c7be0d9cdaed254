package jit

import (
	"github.com/mlxlua/mlxlua/metal/jit/amd64"
	"github.com/mlxlua/mlxlua/metal/jit/lanes"
	"github.com/mlxlua/mlxlua/metal/kir"
)

// maxScale bounds the scales of indices that are multiplied in 32 bits.
const maxScale = 1 << 20

// gathers reports whether an access with an index of its own in each lane has a fast way.
func (s *selector) gathers(x *access, store bool) bool {
	switch {
	case x.a.Object == 0:
		return false
	case x.a.Mode == lanes.AccessDynamic:
		if store {
			return x.size >= 4 && s.level == amd64.AVX512
		}
		return x.size >= 4 || !s.isThread(x.a.Object)
	}
	return x.a.Index.Scale > 0 && x.a.Index.Scale <= maxScale
}

// limit returns what the lanes may add at most to the uniform part of x's address so that size bytes there are
// inside the object, shifted right; at most 2^31-1. It goes to slow if that is less than nothing, or the uniform
// part is negative.
func (s *selector) limit(x *access, size, shift int64, slow amd64.Label) amd64.R {
	room := s.reg(amd64.GPR)
	exact, _ := s.lenOf(x.a.Object)
	if exact >= 0 {
		s.gopI(amd64.Mov, 8, room, exact)
	} else {
		s.loadR(8, room, s.objectWord(x.a.Object, objectLen))
	}
	if x.l.idx == 0 && x.l.disp >= 0 {
		s.gopI(amd64.Sub, 8, room, size+x.l.disp)
		s.jcc(amd64.CondB, slow)
	} else {
		s.gopI(amd64.Sub, 8, room, size)
		s.jcc(amd64.CondB, slow)
		s.gop(amd64.Sub, 8, room, s.value(x.l, 0))
		s.jcc(amd64.CondB, slow)
	}
	if shift > 0 {
		s.gopI(amd64.Shr, 8, room, shift)
	}
	// Gathers extend indices by their sign; where lanes are done one by one, byte offsets are kept in 32 bits.
	s.atMost(room, min(1<<31-1, int64(1<<32-1)>>shift))
	return room
}

// atMost makes an unsigned number no larger than a limit.
func (s *selector) atMost(r amd64.R, limit int64) {
	s.gopI(amd64.Mov, 4, amd64.RAX, limit)
	s.emit(amd64.Inst{Op: amd64.Cmp, W: 8, A: r, B: amd64.RAX})
	s.emit(amd64.Inst{Op: amd64.CMov, W: 8, Cond: amd64.CondA, Dst: r, A: amd64.RAX})
}

// above jumps if an active lane's index, unsigned, is above the limit.
func (s *selector) above(idx []amd64.R, limit amd64.R, to amd64.Label) {
	s.anyBad(s.beyond(nil, idx, s.splatGPR(limit)), to)
}

// beyond adds to bad, a mask for each part, the active lanes whose index, unsigned, is above lim.
func (s *selector) beyond(bad, idx []amd64.R, lim amd64.R) []amd64.R {
	for p, r := range idx {
		if s.level == amd64.AVX512 {
			k := s.reg(amd64.Mask)
			i := amd64.Inst{Op: amd64.VPCmpUD, W: s.w, Dst: k, A: r, B: lim, Imm: 6}
			if !s.allActive {
				i.KM = s.exec[p]
			}
			s.emit(i)
			bad = append(bad, k)
			continue
		}
		ok := s.vop(amd64.VPCmpEqD, s.vop(amd64.VPMinUD, r, lim), r)
		bad = append(bad, s.vop(amd64.VPAndN, ok, s.exec[p]))
	}
	return bad
}

// anyBad jumps if any lane of the masks is on.
func (s *selector) anyBad(bad []amd64.R, to amd64.Label) {
	all := bad[0]
	for _, b := range bad[1:] {
		d := s.reg(b.Class())
		if s.level == amd64.AVX512 {
			s.emit(amd64.Inst{Op: amd64.KOr, W: 2, Dst: d, A: all, B: b})
		} else {
			s.emit(amd64.Inst{Op: amd64.VPOr, W: s.w, Dst: d, A: all, B: b})
		}
		all = d
	}
	if s.level == amd64.AVX512 {
		s.emit(amd64.Inst{Op: amd64.KOrTest, W: 2, A: all, B: all})
	} else {
		s.emit(amd64.Inst{Op: amd64.VPTest, W: s.w, A: all, B: all})
	}
	s.jcc(amd64.CondNE, to)
}

// gathered prepares an access by 32-bit indices: it checks the range and returns the operand without index, its
// scale, and the index of each part. narrow holds what words of elements of 1 and 2 bytes have to be shifted by, if
// words are loaded.
func (s *selector) gathered(x *access, load bool) (m amd64.Mem, idx, narrow []amd64.R) {
	scale := x.a.Index.Scale
	for p := range s.parts {
		idx = append(idx, x.idx.unitOf(p).r[0])
	}
	direct := scale <= 8 && scale&(scale-1) == 0 && !s.isThread(x.a.Object) && x.size >= 4
	if direct {
		s.above(idx, s.limit(x, x.size, int64(log2(int(scale))), x.slow), x.slow)
		m = s.plainBase(s.place(x, 0))
		m.Scale = uint8(scale)
		return m, idx, nil
	}
	lim := s.splatGPR(s.limit(x, x.size, 0, x.slow))
	var bad []amd64.R
	if scale > 1 {
		most := s.vopM(amd64.VPBroadcastD, 0,
			amd64.Mem{Const: s.f.Const(appendBits(nil, uint64((1<<31-1)/scale), 4))})
		bad = s.beyond(bad, idx, most)
		for p, r := range idx {
			if scale&(scale-1) == 0 {
				idx[p] = s.vopI(amd64.VPSllD, r, int64(log2(int(scale))))
			} else {
				idx[p] = s.vopM(amd64.VPMulLD, r, s.splatConst(uint32(scale)))
			}
		}
	}
	s.anyBad(s.beyond(bad, idx, lim), x.slow)
	if s.isThread(x.a.Object) {
		m, idx = s.threadIndex(x, idx)
		return m, idx, nil
	}
	if x.size < 4 && load {
		idx, narrow = s.words4(x, idx)
	}
	m = s.plainBase(s.place(x, 0))
	m.Scale = 1
	return m, idx, narrow
}

// words4 moves the offsets of elements of 1 and 2 bytes so that words of 4 bytes there are in range, and returns
// what the words must be shifted by.
func (s *selector) words4(x *access, idx []amd64.R) (from, shift []amd64.R) {
	lim := s.splatGPR(s.limit(x, 4, 0, x.slow))
	for _, r := range idx {
		f := s.vop(amd64.VPMinUD, r, lim)
		from = append(from, f)
		shift = append(shift, s.vopI(amd64.VPSllD, s.vop(amd64.VPSubD, r, f), 3))
	}
	return from, shift
}

// threadIndex turns offsets in a Thread region into offsets from the region's place in the frame.
func (s *selector) threadIndex(x *access, idx []amd64.R) (amd64.Mem, []amd64.R) {
	_, n := s.region(x.a.Object)
	step, lane := s.lay.regionStep[n], int32(s.lay.regionLane[n])
	base, disp := s.objectBase(x.a.Object)
	out := make([]amd64.R, len(idx))
	for p, r := range idx {
		if step > 1 {
			r = s.vopI(amd64.VPSllD, r, int64(log2(step)))
		}
		own := make([]int32, s.per)
		for l := range own {
			own[l] = int32(p*s.per+l) * lane
		}
		out[p] = s.vopM(amd64.VPAddD, r, s.table(own, 4))
	}
	at := s.reg(amd64.GPR)
	s.gop(amd64.Mov, 8, at, s.value(x.l, 0))
	if step > 1 {
		s.gopI(amd64.Shl, 8, at, int64(log2(step)))
	}
	return amd64.Mem{Base: s.lea(amd64.Mem{Base: base, Index: at, Scale: 1, Disp: disp}), Scale: 1}, out
}

// gatherLoad loads by a 32-bit index in each lane.
func (s *selector) gatherLoad(x *access) val {
	m, idx, narrow := s.gathered(x, true)
	v := val{typ: x.t}
	for p, r := range idx {
		mask := s.exec[p]
		if s.allActive {
			mask = 0
		}
		if wide(x.t) {
			v.setUnit(p, unit{r: [2]amd64.R{s.gatherWide(m, r, 0, mask), s.gatherWide(m, r, 1, mask)}})
			continue
		}
		w := s.gatherWords(m, r, mask)
		if narrow != nil {
			w = s.vop(amd64.VPSrlVD, w, narrow[p])
		}
		v.setUnit(p, unit{r: [2]amd64.R{s.fromRaw(x.t, w)}})
	}
	s.coldLoad(x, v)
	return v
}

// coldLoad emits the lane-by-lane load out of line, into the registers of v.
func (s *selector) coldLoad(x *access, v val) {
	s.f.ColdBegin()
	s.bind(x.cold)
	s.bind(x.slow)
	s.lanePointers(x)
	s.laneCall(x, subLoad)
	s.moveVal(v, s.laneResult(x))
	s.jump(x.done)
	s.f.ColdEnd()
}

// gatherStore stores by a 32-bit index in each lane; of lanes with one index the last one's value stays.
func (s *selector) gatherStore(x *access) {
	m, idx, _ := s.gathered(x, false)
	if s.level == amd64.AVX512 && x.size >= 4 {
		for p, r := range idx {
			s.scatterPart(x.t, m, r, x.v.unitOf(p), p)
		}
	} else {
		m, idx = s.inBytes(m, idx)
		s.storeAt(x, m, idx)
	}
	s.coldStore(x, nil)
}

// inBytes multiplies indices by the scale of the operand.
func (s *selector) inBytes(m amd64.Mem, idx []amd64.R) (amd64.Mem, []amd64.R) {
	if m.Scale > 1 {
		for p, r := range idx {
			idx[p] = s.vopI(amd64.VPSllD, r, int64(log2(int(m.Scale))))
		}
	}
	m.Scale = 0
	return m, idx
}

// storeAt stores lane by lane at byte offsets that have been checked, where there is no scatter.
func (s *selector) storeAt(x *access, m amd64.Mem, idx []amd64.R) {
	s.storeR(8, s.scratchMem(wordAddr), s.lea(m))
	s.laneValues(x.t, x.v, scratchVal)
	s.callAt(subroutine{kind: subStoreAt, size: int(x.size)}, idx)
}

// callAt calls a subroutine for addresses that have been checked: wordAddr plus each active lane's index.
func (s *selector) callAt(k subroutine, idx []amd64.R) {
	for p, r := range idx {
		s.emit(amd64.Inst{Op: amd64.VMovUPS, W: s.w, Mem: s.scratchMem(wordIndex + p*int(s.w)), A: r})
	}
	s.activeBits(amd64.RAX)
	s.callSub(k)
}

// gatherMask returns a copy of a mask, which a gather clears; all lanes if it is 0.
func (s *selector) gatherMask(mask amd64.R) amd64.R {
	if mask != 0 {
		return s.copyReg(mask)
	}
	if s.level == amd64.AVX512 {
		k := s.reg(amd64.Mask)
		s.emit(amd64.Inst{Op: amd64.KXNor, W: 2, Dst: k, A: k, B: k})
		return k
	}
	r := s.reg(amd64.Vec)
	s.emit(amd64.Inst{Op: amd64.VPCmpEqD, W: s.w, Dst: r, A: r, B: r})
	return r
}

// gatherWords loads a word of 4 bytes for each lane of a part by a 32-bit index.
func (s *selector) gatherWords(m amd64.Mem, idx, mask amd64.R) amd64.R {
	d := s.reg(amd64.Vec)
	k := s.gatherMask(mask)
	s.zeroReg(d)
	m.Index = idx
	if s.level == amd64.AVX512 {
		s.emit(amd64.Inst{Op: amd64.VPGatherDDK, W: s.w, Dst: d, Mem: m, KM: k})
	} else {
		s.emit(amd64.Inst{Op: amd64.VPGatherDD, W: s.w, Dst: d, A: k, Mem: m})
	}
	return d
}

// upper returns the upper half of a vector register.
func (s *selector) upper(r amd64.R) amd64.R {
	d := s.reg(amd64.Vec)
	s.emit(amd64.Inst{Op: s.pick(amd64.VExtractI32X8, amd64.VExtractI128), W: s.w, Dst: d, A: r, Imm: 1})
	return d
}

// join returns a vector register of two halves.
func (s *selector) join(lo, hi amd64.R) amd64.R {
	d := s.reg(amd64.Vec)
	s.emit(amd64.Inst{Op: s.pick(amd64.VInsertI32X8, amd64.VInsertI128), W: s.w, Dst: d, A: lo, B: hi, Imm: 1})
	return d
}

// gatherWide loads 8 bytes for each lane of half h of a part by a 32-bit index.
func (s *selector) gatherWide(m amd64.Mem, idx amd64.R, h int, mask amd64.R) amd64.R {
	if h == 1 {
		idx = s.upper(idx)
	}
	if mask != 0 {
		mask = s.halfMask(mask, h)
	}
	d := s.reg(amd64.Vec)
	k := s.gatherMask(mask)
	s.zeroReg(d)
	m.Index = idx
	if s.level == amd64.AVX512 {
		s.emit(amd64.Inst{Op: amd64.VPGatherDQK, W: s.w, Dst: d, Mem: m, KM: k})
	} else {
		s.emit(amd64.Inst{Op: amd64.VPGatherDQ, W: s.w, Dst: d, A: k, Mem: m})
	}
	return d
}

// scatterPart stores one part's active lanes by 32-bit indices (AVX-512).
func (s *selector) scatterPart(t kir.Type, m amd64.Mem, idx amd64.R, u unit, p int) {
	mask := s.exec[p]
	if s.allActive {
		mask = 0
	}
	if !wide(t) {
		k := s.gatherMask(mask)
		m.Index = idx
		s.emit(amd64.Inst{Op: amd64.VPScatterDD, W: s.w, Mem: m, A: u.r[0], KM: k})
		return
	}
	for h := range 2 {
		half := mask
		if half != 0 {
			half = s.halfMask(mask, h)
		}
		k := s.gatherMask(half)
		if m.Index = idx; h == 1 {
			m.Index = s.upper(idx)
		}
		s.emit(amd64.Inst{Op: amd64.VPScatterDQ, W: s.w, Mem: m, A: u.r[h], KM: k})
	}
}

// dynamicCheck checks the 64-bit offsets of an access and returns, for each part, offsets from the operand. Those of
// elements of 1 and 2 bytes fit 31 bits.
func (s *selector) dynamicCheck(x *access) (m amd64.Mem, idx []unit) {
	room := s.reg(amd64.GPR)
	exact, _ := s.lenOf(x.a.Object)
	if exact >= 0 {
		s.gopI(amd64.Mov, 8, room, exact)
	} else {
		s.loadR(8, room, s.objectWord(x.a.Object, objectLen))
	}
	s.gopI(amd64.Sub, 8, room, x.size)
	s.jcc(amd64.CondB, x.slow)
	if x.size < 4 { // offsets will have 32 bits
		s.atMost(room, 1<<31-1)
	}
	lim := s.scalarToSplat(room, kir.I64)
	var bad []amd64.R
	for p := range s.parts {
		u := x.idx.unitOf(p)
		idx = append(idx, u)
		for h, r := range u.r {
			mask := s.halfMask(s.exec[p], h)
			if s.level == amd64.AVX512 {
				k := s.reg(amd64.Mask)
				s.emit(amd64.Inst{Op: amd64.VPCmpUQ, W: s.w, Dst: k, A: r, B: lim, KM: mask, Imm: 6})
				bad = append(bad, k)
				continue
			}
			neg := s.vop(amd64.VPOr, s.vop(amd64.VPCmpGtQ, r, lim), r)
			bad = append(bad, s.vopI(amd64.VPSrlQ, s.vop(amd64.VPAnd, neg, mask), 63))
		}
	}
	s.anyBad(bad, x.slow)
	base, disp := s.objectBase(x.a.Object)
	m = amd64.Mem{Base: base, Disp: disp, Scale: 1}
	if !s.isThread(x.a.Object) {
		return m, idx
	}
	_, n := s.region(x.a.Object)
	step, lane := s.lay.regionStep[n], int32(s.lay.regionLane[n])
	half := s.per / 2
	for p := range idx {
		for h := range 2 {
			r := idx[p].r[h]
			if step > 1 {
				r = s.vopI(amd64.VPSllQ, r, int64(log2(step)))
			}
			own := make([]int32, half)
			for l := range own {
				own[l] = int32(p*s.per+h*half+l) * lane
			}
			idx[p].r[h] = s.vopM(amd64.VPAddQ, r, s.table(own, 8))
		}
	}
	return m, idx
}

// dynamicLoad loads by a 64-bit offset in each lane.
func (s *selector) dynamicLoad(x *access) val {
	m, idx := s.dynamicCheck(x)
	v := val{typ: x.t}
	if x.size < 4 {
		s.dynamicWords(x, m, idx, &v)
		s.coldLoad(x, v)
		return v
	}
	for p, u := range idx {
		var got [2]amd64.R
		for h := range 2 {
			m.Index = u.r[h]
			d := s.reg(amd64.Vec)
			mask := s.exec[p]
			switch {
			case s.level == amd64.AVX512 || wide(x.t):
				mask = s.halfMask(mask, h)
			case h == 1:
				mask = s.upper(mask)
			}
			k := s.gatherMask(mask)
			s.zeroReg(d)
			i := amd64.Inst{W: s.w, Dst: d, Mem: m}
			if s.level == amd64.AVX512 {
				i.Op, i.KM = amd64.VPGatherQDK, k
				if wide(x.t) {
					i.Op = amd64.VPGatherQQK
				}
			} else {
				i.Op, i.A = amd64.VPGatherQD, k
				if wide(x.t) {
					i.Op = amd64.VPGatherQQ
				}
			}
			s.emit(i)
			got[h] = d
		}
		if !wide(x.t) {
			got = [2]amd64.R{s.join(got[0], got[1])}
		}
		v.setUnit(p, unit{r: got})
	}
	s.coldLoad(x, v)
	return v
}

// dynamicWords loads elements of 1 and 2 bytes by offsets that have been checked, as parts of words.
func (s *selector) dynamicWords(x *access, m amd64.Mem, idx []unit, v *val) {
	offsets := make([]amd64.R, len(idx))
	for p, u := range idx {
		offsets[p] = s.pureConst(kir.Convert, kir.U32, kir.U64, []unit{u}, make([]*uint64, 1), false).r[0]
	}
	from, shift := s.words4(x, offsets)
	for p, r := range from {
		mask := s.exec[p]
		if s.allActive {
			mask = 0
		}
		w := s.vop(amd64.VPSrlVD, s.gatherWords(m, r, mask), shift[p])
		v.setUnit(p, unit{r: [2]amd64.R{s.fromRaw(x.t, w)}})
	}
}

// dynamicStore stores by a 64-bit offset in each lane (AVX-512).
func (s *selector) dynamicStore(x *access) {
	m, idx := s.dynamicCheck(x)
	for p, u := range idx {
		from := x.v.unitOf(p)
		for h := range 2 {
			k := s.gatherMask(s.halfMask(s.exec[p], h))
			m.Index = u.r[h]
			i := amd64.Inst{Op: amd64.VPScatterQQ, W: s.w, Mem: m, KM: k}
			switch {
			case wide(x.t):
				i.A = from.r[h]
			case h == 0:
				i.Op, i.A = amd64.VPScatterQD, from.r[0]
			default:
				i.Op, i.A = amd64.VPScatterQD, s.upper(from.r[0])
			}
			s.emit(i)
		}
	}
	s.coldStore(x, nil)
}

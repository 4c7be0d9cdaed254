package choose

import (
	"github.com/mlxlua/mlxlua/metal/jit/code"
	"github.com/mlxlua/mlxlua/metal/kir"
)

// dynamicCheck checks the 64-bit offsets of an access and returns, for each part, offsets from the operand. Those of
// elements of 1 and 2 bytes fit 31 bits.
func (s *gathers) dynamicCheck(x *access) (m code.Mem, idx []unit) {
	room := s.addr.length(x.a.Object)
	s.e.gopImm(code.Sub, 8, room, x.size)
	s.e.jcc(code.CondB, x.slow)
	if x.size < 4 { // offsets will have 32 bits
		s.mem.atMost(room, 1<<31-1)
	}
	lim := s.e.scalarToSplat(room, kir.I64)
	var bad []code.R
	for p := range s.e.parts {
		u := x.idx.unitOf(p)
		idx = append(idx, u)
		for h, r := range u.r {
			mask := s.m.half(s.on.exec[p], h)
			if s.e.avx512() {
				k := s.e.reg(code.Mask)
				s.e.emit(code.Inst{Op: code.VPCmpUQ, W: s.e.w, Dst: k, A: r, B: lim, KM: mask, Imm: 6})
				bad = append(bad, k)
				continue
			}
			neg := s.v.op2(code.VPOr, s.v.op2(code.VPCmpGtQ, r, lim), r)
			bad = append(bad, s.v.op1Imm(code.VPSrlQ, s.v.op2(code.VPAnd, neg, mask), 63))
		}
	}
	s.m.jumpIfAnyOf(bad, x.slow)
	base, disp := s.addr.objectBase(x.a.Object)
	m = code.Mem{Base: base, Disp: disp, Scale: 1}
	if !s.addr.isThread(x.a.Object) {
		return m, idx
	}
	_, n := s.addr.region(x.a.Object)
	step, lane := s.lay.RegionStep[n], int32(s.lay.RegionLane[n])
	half := s.e.per / 2
	for p := range idx {
		for h := range 2 {
			r := idx[p].r[h]
			if step > 1 {
				r = s.v.op1Imm(code.VPSllQ, r, int64(log2(step)))
			}
			own := make([]int32, half)
			for l := range own {
				own[l] = int32(p*s.e.per+h*half+l) * lane
			}
			idx[p].r[h] = s.v.op2Mem(code.VPAddQ, r, s.e.table(own, 8))
		}
	}
	return m, idx
}

// dynamicLoad loads by a 64-bit offset in each lane.
func (s *gathers) dynamicLoad(x *access) val {
	m, idx := s.dynamicCheck(x)
	v := val{typ: x.t}
	if x.size < 4 {
		s.dynamicWords(x, m, idx, &v)
		s.mem.coldLoad(x, v, nil)
		return v
	}
	for p, u := range idx {
		var got [2]code.R
		for h := range 2 {
			m.Index = u.r[h]
			d := s.e.reg(code.Vec)
			mask := s.on.exec[p]
			switch {
			case s.e.avx512() || wide(x.t):
				mask = s.m.half(mask, h)
			case h == 1:
				mask = s.v.upper(mask)
			}
			k := s.el.gatherMask(mask)
			s.e.zeroReg(d)
			i := code.Inst{W: s.e.w, Dst: d, Mem: m}
			if s.e.avx512() {
				i.Op, i.KM = code.VPGatherQDK, k
				if wide(x.t) {
					i.Op = code.VPGatherQQK
				}
			} else {
				i.Op, i.A = code.VPGatherQD, k
				if wide(x.t) {
					i.Op = code.VPGatherQQ
				}
			}
			s.e.emit(i)
			got[h] = d
		}
		if !wide(x.t) {
			got = [2]code.R{s.v.join(got[0], got[1])}
		}
		v.setUnit(p, unit{r: got})
	}
	s.mem.coldLoad(x, v, nil)
	return v
}

// dynamicWords loads elements of 1 and 2 bytes by offsets that have been checked, as parts of words.
func (s *gathers) dynamicWords(x *access, m code.Mem, idx []unit, v *val) {
	offsets := make([]code.R, len(idx))
	for p, u := range idx {
		offsets[p] = s.v.lanewise().pure(kir.Convert, kir.U32, kir.U64, []unit{u}, make([]*uint64, 1)).r[0]
	}
	from, shift := s.wordsOf(x, offsets)
	for p, r := range from {
		mask := s.on.exec[p]
		if s.on.all {
			mask = 0
		}
		w := s.v.op2(code.VPSrlVD, s.el.gatherWords(m, r, mask), shift[p])
		v.setUnit(p, unit{r: [2]code.R{s.el.fromRaw(x.t, w)}})
	}
}

// dynamicStore stores by a 64-bit offset in each lane (AVX-512).
func (s *gathers) dynamicStore(x *access) {
	m, idx := s.dynamicCheck(x)
	for p, u := range idx {
		from := x.v.unitOf(p)
		for h := range 2 {
			k := s.el.gatherMask(s.m.half(s.on.exec[p], h))
			m.Index = u.r[h]
			i := code.Inst{Op: code.VPScatterQQ, W: s.e.w, Mem: m, KM: k}
			switch {
			case wide(x.t):
				i.A = from.r[h]
			case h == 0:
				i.Op, i.A = code.VPScatterQD, from.r[0]
			default:
				i.Op, i.A = code.VPScatterQD, s.v.upper(from.r[0])
			}
			s.e.emit(i)
		}
	}
	s.mem.coldStore(x, nil)
}

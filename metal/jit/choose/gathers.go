package choose

import (
	"github.com/mlxlua/mlxlua/metal/jit/arena"
	"github.com/mlxlua/mlxlua/metal/jit/code"
	"github.com/mlxlua/mlxlua/metal/jit/lanes"
	"github.com/mlxlua/mlxlua/metal/kir"
)

// maxScale bounds the scales of indices that are multiplied in 32 bits.
const maxScale = 1 << 20

// gathers selects accesses with an index or an offset of its own in each lane.
type gathers struct {
	e    *emitter
	v    vector
	m    masks
	el   elements
	on   *active
	addr *addresses
	mem  *memory
	lay  *arena.Layout
}

// possible reports whether an access with an index of its own in each lane has a fast way.
func (s *gathers) possible(x *access, store bool) bool {
	switch {
	case x.a.Object == 0:
		return false
	case x.a.Mode == lanes.AccessDynamic:
		if store {
			return x.size >= 4 && s.e.avx512()
		}
		return x.size >= 4 || !s.addr.isThread(x.a.Object)
	}
	return x.a.Index.Scale > 0 && x.a.Index.Scale <= maxScale
}

// prepare prepares an access by 32-bit indices: it checks the range and returns the operand without index, its
// scale, and the index of each part. narrow holds what words of elements of 1 and 2 bytes have to be shifted by, if
// words are loaded.
func (s *gathers) prepare(x *access, load bool) (m code.Mem, idx, narrow []code.R) {
	scale := x.a.Index.Scale
	for p := range s.e.parts {
		idx = append(idx, x.idx.unitOf(p).r[0])
	}
	direct := scale <= 8 && scale&(scale-1) == 0 && !s.addr.isThread(x.a.Object) && x.size >= 4
	if direct {
		s.mem.above(idx, s.mem.limit(x, x.size, int64(log2(int(scale))), x.slow), x.slow)
		m = s.e.plainBase(s.mem.place(x, 0))
		m.Scale = uint8(scale)
		return m, idx, nil
	}
	lim := s.e.scalarToSplat(s.mem.limit(x, x.size, 0, x.slow), kir.U32)
	var bad []code.R
	if scale > 1 {
		most := s.v.op2Mem(code.VPBroadcastD, 0,
			code.Mem{Const: s.e.f.Const(appendBits(nil, uint64((1<<31-1)/scale), 4))})
		bad = s.mem.beyond(bad, idx, most)
		for p, r := range idx {
			if scale&(scale-1) == 0 {
				idx[p] = s.v.op1Imm(code.VPSllD, r, int64(log2(int(scale))))
			} else {
				idx[p] = s.v.op2Mem(code.VPMulLD, r, s.v.constMem(uint64(scale), false))
			}
		}
	}
	s.m.jumpIfAnyOf(s.mem.beyond(bad, idx, lim), x.slow)
	if s.addr.isThread(x.a.Object) {
		m, idx = s.threadIndex(x, idx)
		return m, idx, nil
	}
	if x.size < 4 && load {
		idx, narrow = s.wordsOf(x, idx)
	}
	m = s.e.plainBase(s.mem.place(x, 0))
	m.Scale = 1
	return m, idx, narrow
}

// wordsOf moves the offsets of elements of 1 and 2 bytes so that words of 4 bytes there are in range, and returns
// what the words must be shifted by.
func (s *gathers) wordsOf(x *access, idx []code.R) (from, shift []code.R) {
	lim := s.e.scalarToSplat(s.mem.limit(x, 4, 0, x.slow), kir.U32)
	for _, r := range idx {
		f := s.v.op2(code.VPMinUD, r, lim)
		from = append(from, f)
		shift = append(shift, s.v.op1Imm(code.VPSllD, s.v.op2(code.VPSubD, r, f), 3))
	}
	return from, shift
}

// threadIndex turns offsets in a Thread region into offsets from the region's place in the frame.
func (s *gathers) threadIndex(x *access, idx []code.R) (code.Mem, []code.R) {
	_, n := s.addr.region(x.a.Object)
	step, lane := s.lay.RegionStep[n], int32(s.lay.RegionLane[n])
	base, disp := s.addr.objectBase(x.a.Object)
	out := make([]code.R, len(idx))
	for p, r := range idx {
		if step > 1 {
			r = s.v.op1Imm(code.VPSllD, r, int64(log2(step)))
		}
		own := make([]int32, s.e.per)
		for l := range own {
			own[l] = int32(p*s.e.per+l) * lane
		}
		out[p] = s.v.op2Mem(code.VPAddD, r, s.e.table(own, 4))
	}
	at := s.e.reg(code.GPR)
	s.e.gop(code.Mov, 8, at, s.addr.value(x.l, 0))
	if step > 1 {
		s.e.gopImm(code.Shl, 8, at, int64(log2(step)))
	}
	return code.Mem{Base: s.e.lea(code.Mem{Base: base, Index: at, Scale: 1, Disp: disp}), Scale: 1}, out
}

// load loads by a 32-bit index in each lane.
func (s *gathers) load(x *access) val {
	m, idx, narrow := s.prepare(x, true)
	v := val{typ: x.t}
	for p, r := range idx {
		mask := s.on.exec[p]
		if s.on.all {
			mask = 0
		}
		if wide(x.t) {
			v.setUnit(p, unit{r: [2]code.R{s.el.gatherWide(m, r, 0, mask), s.el.gatherWide(m, r, 1, mask)}})
			continue
		}
		w := s.el.gatherWords(m, r, mask)
		if narrow != nil {
			w = s.v.op2(code.VPSrlVD, w, narrow[p])
		}
		v.setUnit(p, unit{r: [2]code.R{s.el.fromRaw(x.t, w)}})
	}
	s.mem.coldLoad(x, v, nil)
	return v
}

// store stores by a 32-bit index in each lane; of lanes with one index the last one's value stays.
func (s *gathers) store(x *access) {
	m, idx, _ := s.prepare(x, false)
	if s.e.avx512() && x.size >= 4 {
		for p, r := range idx {
			s.scatterPart(x.t, m, r, x.v.unitOf(p), p)
		}
	} else {
		m, idx = s.inBytes(m, idx)
		s.mem.storeAt(x, m, idx)
	}
	s.mem.coldStore(x, nil)
}

// inBytes multiplies indices by the scale of the operand.
func (s *gathers) inBytes(m code.Mem, idx []code.R) (code.Mem, []code.R) {
	if m.Scale > 1 {
		for p, r := range idx {
			idx[p] = s.v.op1Imm(code.VPSllD, r, int64(log2(int(m.Scale))))
		}
	}
	m.Scale = 0
	return m, idx
}

// scatterPart stores one part's active lanes by 32-bit indices (AVX-512).
func (s *gathers) scatterPart(t kir.Type, m code.Mem, idx code.R, u unit, p int) {
	mask := s.on.exec[p]
	if s.on.all {
		mask = 0
	}
	if !wide(t) {
		k := s.el.gatherMask(mask)
		m.Index = idx
		s.e.emit(code.Inst{Op: code.VPScatterDD, W: s.e.w, Mem: m, A: u.r[0], KM: k})
		return
	}
	for h := range 2 {
		half := mask
		if half != 0 {
			half = s.m.half(mask, h)
		}
		k := s.el.gatherMask(half)
		if m.Index = idx; h == 1 {
			m.Index = s.v.upper(idx)
		}
		s.e.emit(code.Inst{Op: code.VPScatterDQ, W: s.e.w, Mem: m, A: u.r[h], KM: k})
	}
}

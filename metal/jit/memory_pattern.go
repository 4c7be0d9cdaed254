package jit

import (
	"github.com/mlxlua/mlxlua/metal/jit/amd64"
	"github.com/mlxlua/mlxlua/metal/jit/lanes"
	"github.com/mlxlua/mlxlua/metal/kir"
)

// maxSpan bounds the spans of patterns that are touched as a whole.
const maxSpan = 1 << 28

// patternPlace returns where the lanes of a uniform or pattern access are: the operand of the uniform part of the
// address, and what each lane adds to it in bytes. It emits the range check of all lanes.
func (s *selector) patternPlace(x *access) (m amd64.Mem, offs []int32) {
	a := x.a
	if a.Span > maxSpan {
		s.jump(x.slow)
	}
	s.checkWraps(a, x.slow)
	s.check(a.Object, x.l, min(a.Span, maxSpan)+x.size, x.cold)
	offs = make([]int32, s.group)
	if a.Mode == lanes.AccessOffsets {
		copy(offs, a.Offsets[:s.group])
	}
	if !s.isThread(a.Object) {
		return s.place(x, 0), offs
	}
	_, n := s.region(a.Object)
	step, lane := int64(s.lay.regionStep[n]), int32(s.lay.regionLane[n])
	for l := range offs {
		offs[l] = offs[l]*int32(step) + int32(l)*lane
	}
	base, disp := s.objectBase(a.Object)
	if step == 1 {
		return x.l.mem(base, disp, 0), offs
	}
	if x.l.idx == 0 {
		return linear{disp: x.l.disp * step}.mem(base, disp, 0), offs
	}
	at := s.reg(amd64.GPR)
	s.gop(amd64.Mov, 8, at, s.value(x.l, 0))
	s.gopI(amd64.Shl, 8, at, int64(log2(int(step))))
	return amd64.Mem{Base: base, Index: at, Scale: 1, Disp: disp}, offs
}

// consecutive reports whether lanes touch elements one after the other.
func consecutive(offs []int32, size int64) bool {
	for l, o := range offs {
		if int64(o-offs[0]) != int64(l)*size {
			return false
		}
	}
	return true
}

// sameOffset reports whether all lanes touch one element.
func sameOffset(offs []int32) bool {
	for _, o := range offs {
		if o != offs[0] {
			return false
		}
	}
	return true
}

// plus adds to a memory operand's displacement.
func plus(m amd64.Mem, d int32) amd64.Mem {
	m.Disp += d
	return m
}

// patternLoad loads from a uniform address plus constant offsets.
func (s *selector) patternLoad(x *access) val {
	m, offs := s.patternPlace(x)
	end := int32(0)
	for _, o := range offs {
		end = max(end, o+int32(x.size))
	}
	s.prefetch(x.i, m, int64(end))
	v := s.loadOffsets(newWords(m, end), x.t, offs)
	s.f.ColdBegin()
	s.bind(x.cold)
	if s.masks(x, offs) {
		s.checkActive(x)
		m := s.place(x, 0) // the other one's base is loaded after the check
		c := val{typ: x.t}
		for p := range s.parts {
			c.setUnit(p, s.loadPart(x.t, plus(m, offs[p*s.per]), s.exec[p]))
		}
		s.moveVal(v, c)
		s.jump(x.done)
	}
	s.bind(x.slow)
	s.lanePointers(x)
	s.laneCall(x, subLoad)
	s.moveVal(v, s.laneResult(x))
	s.jump(x.done)
	s.f.ColdEnd()
	return v
}

// masks reports whether the access can be done under the mask of active lanes where some lanes are out of range.
func (s *selector) masks(x *access, offs []int32) bool {
	return !s.isThread(x.a.Object) && consecutive(offs, x.size) && (s.level == amd64.AVX512 || x.size >= 4)
}

// checkActive goes to the lane-by-lane code unless the bytes that active lanes touch are in range.
func (s *selector) checkActive(x *access) {
	room := s.limit(x, x.size, 0, x.slow)
	offs := make([]int32, s.group)
	if x.a.Offsets != nil {
		copy(offs, x.a.Offsets[:s.group])
	}
	idx := make([]amd64.R, s.parts)
	for p := range idx {
		idx[p] = s.vopM(amd64.VMovUPS, 0, s.table(offs[p*s.per:(p+1)*s.per], 4))
	}
	s.above(idx, room, x.slow)
}

// loadOffsets loads each lane's element at its offset in the words.
func (s *selector) loadOffsets(g *wordLoad, t kir.Type, offs []int32) val {
	v := val{typ: t}
	m := g.m
	for p := range s.parts {
		o := offs[p*s.per : (p+1)*s.per]
		var u unit
		switch {
		case consecutive(o, int64(t.Size())):
			u = s.loadPart(t, plus(m, o[0]), 0)
		case sameOffset(o):
			u = s.loadSame(t, plus(m, o[0]))
		case wide(t):
			u = s.loadWideAt(m, o)
		default:
			u = s.loadAt(g, t, p, o)
		}
		v.setUnit(p, u)
	}
	return v
}

// loadSame loads one element for all lanes of a part.
func (s *selector) loadSame(t kir.Type, m amd64.Mem) unit {
	switch {
	case wide(t):
		r := s.vopM(amd64.VPBroadcastQ, 0, m)
		return unit{r: [2]amd64.R{r, r}}
	case t.IsFloat():
		return unit{r: [2]amd64.R{s.loadSplat(t, m)}}
	}
	op := amd64.VPBroadcastD
	switch t.Size() {
	case 1:
		op = amd64.VPBroadcastB
	case 2:
		op = amd64.VPBroadcastW
	}
	return unit{r: [2]amd64.R{s.fromRaw(t, s.vopM(op, 0, m))}}
}

// loadWideAt loads one part of elements of 8 bytes at constant offsets.
func (s *selector) loadWideAt(m amd64.Mem, o []int32) unit {
	idx := s.vopM(amd64.VMovUPS, 0, s.table(o, 4))
	base := s.plainBase(m)
	return unit{r: [2]amd64.R{s.gatherWide(base, idx, 0, 0), s.gatherWide(base, idx, 1, 0)}}
}

// plainBase makes an address that leaves the index of a memory operand free.
func (s *selector) plainBase(m amd64.Mem) amd64.Mem {
	if m.Index == 0 {
		return m
	}
	return amd64.Mem{Base: s.lea(m)}
}

// loadAt loads one part of elements of up to 4 bytes at constant offsets.
func (s *selector) loadAt(g *wordLoad, t kir.Type, part int, o []int32) unit {
	size := int32(t.Size())
	if size == 4 {
		return unit{r: [2]amd64.R{s.pickWords(g, part, o)}}
	}
	from, shift := make([]int32, len(o)), make([]int32, len(o))
	whole, shifted := true, false // elements lie in whole words, at multiples of 4
	for l, x := range o {
		from[l] = x &^ 3
		whole = whole && x&3+size <= 4
	}
	if _, ok := s.windowsOf(g, from); !whole || !ok { // words end where the range ends at the latest
		for l, x := range o {
			from[l] = max(min(x, g.end-4), 0)
		}
	}
	for l, x := range o {
		shift[l] = 8 * (x - from[l])
		shifted = shifted || shift[l] != 0
	}
	var r amd64.R
	if g.end < 4 {
		r = s.fewBytes(g)
	} else {
		r = s.pickWords(g, part, from)
	}
	if shifted {
		r = s.vopM(amd64.VPSrlVD, r, s.table(shift, 4))
	}
	return unit{r: [2]amd64.R{s.fromRaw(t, r)}}
}

// fewBytes puts fewer bytes than a word together, in every lane.
func (s *selector) fewBytes(g *wordLoad) amd64.R {
	s.gopM(amd64.MovZXB, 4, amd64.RAX, g.m)
	for b := int32(1); b < g.end; b++ {
		s.gopM(amd64.MovZXB, 4, amd64.RCX, plus(g.m, b))
		s.gopI(amd64.Shl, 4, amd64.RCX, int64(8*b))
		s.gop(amd64.Or, 4, amd64.RAX, amd64.RCX)
	}
	return s.splatGPR(amd64.RAX)
}

// splatGPR broadcasts the low 32 bits of a general register.
func (s *selector) splatGPR(r amd64.R) amd64.R {
	d := s.reg(amd64.Vec)
	if s.level == amd64.AVX512 {
		s.emit(amd64.Inst{Op: amd64.VPBroadcastGD, W: s.w, Dst: d, A: r})
		return d
	}
	x := s.reg(amd64.Vec)
	s.emit(amd64.Inst{Op: amd64.VMovD, W: 16, Dst: x, A: r})
	s.emit(amd64.Inst{Op: amd64.VPBroadcastD, W: s.w, Dst: d, A: x})
	return d
}

// patternStore stores to a uniform address plus constant offsets.
func (s *selector) patternStore(x *access) {
	m, offs := s.patternPlace(x)
	switch {
	case !consecutive(offs, x.size):
		s.scatterOffsets(x, m, offs)
		return
	case s.level == amd64.AVX512 || s.allActive:
		if s.goesPast(x) {
			ordinary := s.label()
			s.storePast(x, plus(m, offs[0]), ordinary)
			s.f.ColdBegin()
			s.bind(ordinary)
			s.storeParts(x, m, offs, false)
			s.jump(x.done)
			s.f.ColdEnd()
		} else {
			s.prefetch(x.i, plus(m, offs[0]), int64(s.group)*int64(x.size))
			s.storeParts(x, m, offs, !s.allActive)
		}
		var edge func()
		if s.masks(x, offs) {
			edge = func() {
				s.checkActive(x)
				s.storeParts(x, s.place(x, 0), offs, true)
				s.jump(x.done)
			}
		}
		s.coldStore(x, edge)
		return
	}
	// AVX2 stores whole registers where all lanes are active.
	some := s.label()
	all := s.exec[0]
	for _, e := range s.exec[1:] {
		all = s.vop(amd64.VPAnd, all, e)
	}
	s.emit(amd64.Inst{Op: amd64.VMovMskPS, W: s.w, Dst: amd64.RAX, A: all})
	s.emit(amd64.Inst{Op: amd64.Cmp, W: 4, A: amd64.RAX, Imm: 0xff})
	s.jcc(amd64.CondNE, some)
	s.storeParts(x, m, offs, false)
	s.f.ColdBegin()
	s.bind(x.cold)
	switch {
	case s.masks(x, offs):
		s.checkActive(x)
		s.bind(some)
		s.storeParts(x, s.place(x, 0), offs, true)
		s.jump(x.done)
		s.bind(x.slow)
	default:
		s.bind(some)
		s.bind(x.slow)
	}
	s.slowStore(x)
	s.jump(x.done)
	s.f.ColdEnd()
}

// storeParts stores every part to consecutive elements.
func (s *selector) storeParts(x *access, m amd64.Mem, offs []int32, masked bool) {
	for p := range s.parts {
		mask := s.exec[p]
		if !masked {
			mask = 0
		}
		s.storePart(x.t, x.v.unitOf(p), plus(m, offs[p*s.per]), mask)
	}
}

// scatterOffsets stores to constant offsets that are not consecutive.
func (s *selector) scatterOffsets(x *access, m amd64.Mem, offs []int32) {
	idx := make([]amd64.R, s.parts)
	for p := range idx {
		idx[p] = s.vopM(amd64.VMovUPS, 0, s.table(offs[p*s.per:(p+1)*s.per], 4))
	}
	if s.level == amd64.AVX512 && x.size >= 4 {
		base := s.plainBase(m)
		for p, r := range idx {
			s.scatterPart(x.t, base, r, x.v.unitOf(p), p)
		}
	} else {
		s.storeAt(x, m, idx)
	}
	s.coldStore(x, nil)
}

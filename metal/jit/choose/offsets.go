package choose

import (
	"slices"

	"github.com/mlxlua/mlxlua/metal/jit/arena"
	"github.com/mlxlua/mlxlua/metal/jit/code"
	"github.com/mlxlua/mlxlua/metal/jit/lanes"
	"github.com/mlxlua/mlxlua/metal/kir"
)

// maxSpan bounds the spans of patterns that are touched as a whole.
const maxSpan = 1 << 28

// offsets selects accesses to a uniform address plus constant offsets of the lanes.
type offsets struct {
	e    *emitter
	v    vector
	el   elements
	on   *active
	addr *addresses
	each *laneByLane
	mem  *memory
	gath *gathers
	lay  *arena.Layout
}

// place returns where the lanes of a uniform or pattern access are: the operand of the uniform part of the
// address, and what each lane adds to it in bytes. It emits the range check of all lanes.
func (s *offsets) place(x *access) (m code.Mem, offs []int32) {
	a := x.a
	if a.Span > maxSpan {
		s.e.jump(x.slow)
	}
	s.addr.checkWraps(a, x.slow)
	s.addr.check(a.Object, x.l, min(a.Span, maxSpan)+x.size, x.cold)
	offs = make([]int32, s.e.group)
	if a.Mode == lanes.AccessOffsets {
		copy(offs, a.Offsets[:s.e.group])
	}
	if !s.addr.isThread(a.Object) {
		return s.mem.place(x, 0), offs
	}
	_, n := s.addr.region(a.Object)
	step, lane := int64(s.lay.RegionStep[n]), int32(s.lay.RegionLane[n])
	for l := range offs {
		offs[l] = offs[l]*int32(step) + int32(l)*lane
	}
	base, disp := s.addr.objectBase(a.Object)
	if step == 1 {
		return x.l.mem(base, disp, 0), offs
	}
	if x.l.idx == 0 {
		return linear{disp: x.l.disp * step}.mem(base, disp, 0), offs
	}
	at := s.e.reg(code.GPR)
	s.e.gop(code.Mov, 8, at, s.addr.value(x.l, 0))
	s.e.gopImm(code.Shl, 8, at, int64(log2(int(step))))
	return code.Mem{Base: base, Index: at, Scale: 1, Disp: disp}, offs
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

// load loads from a uniform address plus constant offsets.
func (s *offsets) load(x *access) val {
	m, offs := s.place(x)
	end := int32(0)
	for _, o := range offs {
		end = max(end, o+int32(x.size))
	}
	s.mem.prefetch(x.i, m, int64(end))
	v := s.loadOffsets(newWords(s.v, m, end), x.t, offs)
	s.mem.coldLoad(x, v, func() {
		if !s.maskable(x, offs) {
			return
		}
		s.checkActive(x)
		m := s.mem.place(x, 0) // the other one's base is loaded after the check
		c := val{typ: x.t}
		for p := range s.e.parts {
			c.setUnit(p, s.el.loadPart(x.t, plus(m, offs[p*s.e.per]), s.on.exec[p]))
		}
		s.e.moveVal(v, c)
		s.e.jump(x.done)
	})
	return v
}

// maskable reports whether the access can be done under the mask of active lanes where some lanes are out of range.
func (s *offsets) maskable(x *access, offs []int32) bool {
	return !s.addr.isThread(x.a.Object) && consecutive(offs, x.size) && (s.e.avx512() || x.size >= 4)
}

// checkActive goes to the lane-by-lane code unless the bytes that active lanes touch are in range.
func (s *offsets) checkActive(x *access) {
	room := s.mem.limit(x, x.size, 0, x.slow)
	offs := make([]int32, s.e.group)
	if x.a.Offsets != nil {
		copy(offs, x.a.Offsets[:s.e.group])
	}
	idx := make([]code.R, s.e.parts)
	for p := range idx {
		idx[p] = s.v.loadLanes(offs[p*s.e.per : (p+1)*s.e.per])
	}
	s.mem.above(idx, room, x.slow)
}

// loadOffsets loads each lane's element at its offset in the words.
func (s *offsets) loadOffsets(g *wordLoad, t kir.Type, offs []int32) val {
	v := val{typ: t}
	m := g.m
	for p := range s.e.parts {
		o := offs[p*s.e.per : (p+1)*s.e.per]
		var u unit
		switch {
		case consecutive(o, int64(t.Size())):
			u = s.el.loadPart(t, plus(m, o[0]), 0)
		case sameOffset(o):
			u = s.el.loadSame(t, plus(m, o[0]))
		case wide(t):
			u = s.loadWideAt(m, o)
		default:
			u = s.loadAt(g, t, p, o)
		}
		v.setUnit(p, u)
	}
	return v
}

// loadWideAt loads one part of elements of 8 bytes at constant offsets.
func (s *offsets) loadWideAt(m code.Mem, o []int32) unit {
	idx := s.v.loadLanes(o)
	base := s.e.plainBase(m)
	return unit{r: [2]code.R{s.el.gatherWide(base, idx, 0, 0), s.el.gatherWide(base, idx, 1, 0)}}
}

// loadAt loads one part of elements of up to 4 bytes at constant offsets.
func (s *offsets) loadAt(g *wordLoad, t kir.Type, part int, o []int32) unit {
	size := int32(t.Size())
	if size == 4 {
		return unit{r: [2]code.R{g.pick(part, o)}}
	}
	from, shift := make([]int32, len(o)), make([]int32, len(o))
	whole, shifted := true, false // elements lie in whole words, at multiples of 4
	for l, x := range o {
		from[l] = x &^ 3
		whole = whole && x&3+size <= 4
	}
	if _, ok := g.windowsOf(from); !whole || !ok { // words end where the range ends at the latest
		for l, x := range o {
			from[l] = max(min(x, g.end-4), 0)
		}
	}
	for l, x := range o {
		shift[l] = 8 * (x - from[l])
		shifted = shifted || shift[l] != 0
	}
	var r code.R
	if g.end < 4 {
		r = g.fewBytes()
	} else {
		r = g.pick(part, from)
	}
	if shifted {
		r = s.v.op2Mem(code.VPSrlVD, r, s.e.table(shift, 4))
	}
	return unit{r: [2]code.R{s.el.fromRaw(t, r)}}
}

// store stores to a uniform address plus constant offsets.
func (s *offsets) store(x *access) {
	m, offs := s.place(x)
	switch {
	case !consecutive(offs, x.size):
		s.scatterOffsets(x, m, offs)
		return
	case s.e.avx512() || s.on.all:
		if s.mem.isNonTemporal(x) {
			ordinary := s.e.label()
			s.mem.storeNonTemporal(x, plus(m, offs[0]), ordinary)
			s.e.f.ColdBegin()
			s.e.bind(ordinary)
			s.storeParts(x, m, offs, false)
			s.e.jump(x.done)
			s.e.f.ColdEnd()
		} else {
			s.mem.prefetch(x.i, plus(m, offs[0]), int64(s.e.group)*int64(x.size))
			s.storeParts(x, m, offs, !s.on.all)
		}
		var edge func()
		if s.maskable(x, offs) {
			edge = func() {
				s.checkActive(x)
				s.storeParts(x, s.mem.place(x, 0), offs, true)
				s.e.jump(x.done)
			}
		}
		s.mem.coldStore(x, edge)
		return
	}
	// AVX2 stores whole registers where all lanes are active.
	some := s.e.label()
	all := s.on.exec[0]
	for _, e := range s.on.exec[1:] {
		all = s.v.op2(code.VPAnd, all, e)
	}
	s.e.emit(code.Inst{Op: code.VMovMskPS, W: s.e.w, Dst: code.RAX, A: all})
	s.e.emit(code.Inst{Op: code.Cmp, W: 4, A: code.RAX, Imm: 0xff})
	s.e.jcc(code.CondNE, some)
	s.storeParts(x, m, offs, false)
	s.e.f.ColdBegin()
	s.e.bind(x.cold)
	switch {
	case s.maskable(x, offs):
		s.checkActive(x)
		s.e.bind(some)
		s.storeParts(x, s.mem.place(x, 0), offs, true)
		s.e.jump(x.done)
		s.e.bind(x.slow)
	default:
		s.e.bind(some)
		s.e.bind(x.slow)
	}
	s.mem.slowStore(x)
	s.e.jump(x.done)
	s.e.f.ColdEnd()
}

// storeParts stores every part to consecutive elements.
func (s *offsets) storeParts(x *access, m code.Mem, offs []int32, masked bool) {
	for p := range s.e.parts {
		mask := s.on.exec[p]
		if !masked {
			mask = 0
		}
		s.el.storePart(x.t, x.v.unitOf(p), plus(m, offs[p*s.e.per]), mask)
	}
}

// scatterOffsets stores to constant offsets that are not consecutive.
func (s *offsets) scatterOffsets(x *access, m code.Mem, offs []int32) {
	if s.on.all && x.size == 4 && s.storeSpread(x, m, offs) {
		s.mem.coldStore(x, nil)
		return
	}
	idx := make([]code.R, s.e.parts)
	for p := range idx {
		idx[p] = s.v.loadLanes(offs[p*s.e.per : (p+1)*s.e.per])
	}
	if s.e.avx512() && x.size >= 4 {
		base := s.e.plainBase(m)
		for p, r := range idx {
			s.gath.scatterPart(x.t, base, r, x.v.unitOf(p), p)
		}
	} else {
		s.mem.storeAt(x, m, idx)
	}
	s.mem.coldStore(x, nil)
}

// storeSpread stores the words of all lanes to constant offsets that are near each other: vectors under masks.
// It does nothing and returns false where the offsets are too far apart, or two lanes' are the same.
func (s *offsets) storeSpread(x *access, m code.Mem, offs []int32) bool {
	type window struct {
		from int32
		lane []int32 // of each word
		on   int64   // words that lanes store
	}
	parts := make([][]window, s.e.parts)
	for p := range parts {
		o := offs[p*s.e.per : (p+1)*s.e.per]
		low := slices.Min(o)
		byPlace := make([]window, (slices.Max(o)-low)/int32(s.e.w)+1)
		if len(byPlace) > maxWindows {
			return false
		}
		for l, at := range o {
			k, word := (at-low)/int32(s.e.w), (at-low)%int32(s.e.w)/4
			w := &byPlace[k]
			if w.lane == nil {
				w.from, w.lane = low+k*int32(s.e.w), make([]int32, s.e.per)
			}
			if at%4 != low%4 || w.on>>word&1 != 0 {
				return false
			}
			w.lane[word] = int32(l)
			w.on |= 1 << word
		}
		parts[p] = slices.DeleteFunc(byPlace, func(w window) bool { return w.on == 0 })
	}
	for p, windows := range parts {
		for _, w := range windows {
			idx := s.v.op2Mem(code.VMovUPS, 0, s.e.table(w.lane, 4))
			r := s.v.op2(code.VPermPS, idx, x.v.unitOf(p).r[0])
			s.el.storeFull(code.VMovUPS, code.VPMaskMovDSt, plus(m, w.from), r, s.wordsOn(w.on))
		}
	}
	return true
}

// wordsOn makes the mask of the words whose bits are set.
func (s *offsets) wordsOn(bits int64) code.R {
	if s.e.avx512() {
		k := s.e.reg(code.Mask)
		s.e.gopImm(code.Mov, 4, code.RAX, bits)
		s.e.emit(code.Inst{Op: code.KMov, W: 2, Dst: k, A: code.RAX})
		return k
	}
	on := make([]int32, s.e.per)
	for l := range on {
		on[l] = -int32(bits >> l & 1)
	}
	return s.v.op2Mem(code.VMovUPS, 0, s.e.table(on, 4))
}

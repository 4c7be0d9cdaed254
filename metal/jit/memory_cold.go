package jit

import (
	"encoding/binary"

	"github.com/mlxlua/mlxlua/metal/jit/amd64"
	"github.com/mlxlua/mlxlua/metal/jit/lanes"
	"github.com/mlxlua/mlxlua/metal/kir"
)

// The lane-by-lane way, which every access can fall back on: the lanes' pointers go to the block's scratch table,
// values to another, and a subroutine shared by all accesses of a kind follows them one after the other. It decides
// what is a fault.

// Words of the scratch area.
const (
	wordSI    = scratchWords + 8*iota // registers that subroutines save
	wordDI                            //
	wordScale                         // of subAdd: what indices are multiplied by
	wordMask                          // lanes still to do
	wordLane                          // the lane at work
	wordAddr                          // its address
	wordDesc                          // the description
	// wordIndex begins a table of 32 indices of 4 bytes.
	wordIndex
)

// A description tells a subroutine about the access: Instr.ID, 1 + the address space, and what to keep of a pointer
// and what to put in its place: pointers into a known object come as offsets.
const (
	descID    = 0
	descSpace = 4
	descKeep  = 8
	descPut   = 16
	descBytes = 24
)

// subroutine names one: what it does to each lane's memory, with elements of that size.
type subroutine struct {
	kind subKind
	t    kir.Type // subAdd: the index's; atomics: the element's
	size int
	op   kir.Op // atomics
	mode kir.Mode
}

type subKind uint8

const (
	subLoad subKind = iota
	subStore
	subAtomic
	subAtomicAt // the lanes' addresses are wordAddr plus the indices, and are in range and aligned
	subStoreAt  // the same for a store
	subAdd      // scratchPtr[lane] += scale * (index base + table[lane])
)

// memory is what the selector knows of the memory of the kernel besides.
type memory struct {
	streams []int64 // lanes.Streams, when first wanted
	subs    map[subroutine]amd64.Label
	order   []subroutine
	groups  groups
}

// sub returns the label of a subroutine, which emitSubroutines will place.
func (s *selector) sub(k subroutine) amd64.Label {
	if s.memory.subs == nil {
		s.memory.subs = map[subroutine]amd64.Label{}
	}
	l, ok := s.memory.subs[k]
	if !ok {
		l = s.label()
		s.memory.subs[k] = l
		s.memory.order = append(s.memory.order, k)
	}
	return l
}

// lanePointers writes each lane's pointer (its offset, if the object is known) to the scratch table.
func (s *selector) lanePointers(x *access) {
	a := x.a
	if a.Mode == lanes.AccessDynamic {
		v := x.idx
		if s.info.Patterns[x.i.Args[0].ID].Kind == lanes.Uniform {
			v.splat = true
		}
		v.typ = kir.U64
		s.laneValues(kir.U64, v, scratchPtr)
		return
	}
	// The uniform part without the bases of patterns, which may wrap.
	rest := lanes.Access{Terms: a.Terms, Disp: a.Disp}
	var wrapping []lanes.Scaled
	offs := make([]int64, s.group)
	if a.Mode == lanes.AccessOffsets {
		for l := range offs {
			offs[l] = int64(a.Offsets[l])
		}
	}
	for _, b := range a.Bases {
		if b.Span <= 0 || b.Value.Op == kir.Const {
			rest.Bases = append(rest.Bases, b)
			continue
		}
		wrapping = append(wrapping, b)
		for l, o := range s.indexOffsets(b) {
			offs[l] -= b.Scale * int64(o)
		}
	}
	l := s.linear(&rest)
	all := s.scalarToSplat(s.value(l, 0), kir.I64)
	per := int(s.w) / 8
	for p := 0; p < s.group/per; p++ {
		r := all
		if o := offs[p*per : (p+1)*per]; !zeros(o) {
			b := make([]byte, 0, s.w)
			for _, n := range o {
				b = appendBits(b, uint64(n), 8)
			}
			r = s.vopM(amd64.VPAddQ, all, amd64.Mem{Const: s.f.Const(b)})
		}
		s.emit(amd64.Inst{Op: amd64.VMovUPS, W: s.w, Mem: s.scratchMem(scratchPtr + p*int(s.w)), A: r})
	}
	for _, b := range wrapping {
		s.gop(amd64.Mov, 4, amd64.RAX, s.base(b.Value))
		s.gopM(amd64.Lea, 8, amd64.RCX, s.table(s.indexOffsets(b), 4))
		s.addIndex(b)
	}
	if a.Mode == lanes.AccessGather {
		for p := range s.parts {
			s.emit(amd64.Inst{Op: amd64.VMovUPS, W: s.w, Mem: s.scratchMem(wordIndex + p*int(s.w)),
				A: x.idx.unitOf(p).r[0]})
		}
		s.gopI(amd64.Mov, 4, amd64.RAX, 0)
		s.gopM(amd64.Lea, 8, amd64.RCX, s.scratchMem(wordIndex))
		s.addIndex(a.Index)
	}
}

// indexOffsets returns what the lanes add to the base of an index that may wrap: its pattern, and the constant by
// which Span is larger than the pattern's.
func (s *selector) indexOffsets(b lanes.Scaled) []int32 {
	o := make([]int32, s.group)
	span := int32(0)
	if sh := s.info.Patterns[b.Value.ID]; sh.Kind == lanes.Based {
		copy(o, sh.Offsets[:s.group])
		for _, n := range o {
			span = max(span, n)
		}
	}
	for l := range o {
		o[l] += int32(b.Span) - span
	}
	return o
}

func zeros(o []int64) bool {
	for _, n := range o {
		if n != 0 {
			return false
		}
	}
	return true
}

// addIndex calls subAdd; RAX and RCX are set.
func (s *selector) addIndex(b lanes.Scaled) {
	s.gopI(amd64.Mov, 8, amd64.RDX, b.Scale)
	s.storeR(8, s.scratchMem(wordScale), amd64.RDX)
	s.callSub(subroutine{kind: subAdd, t: b.Value.Type})
}

// callSub calls a subroutine, which returns to the address in RDX.
func (s *selector) callSub(k subroutine) {
	back := s.label()
	s.leaLabel(amd64.RDX, back)
	s.jump(s.sub(k))
	s.bind(back)
}

// laneValues writes each lane's value, as raw lanes, to a scratch table.
func (s *selector) laneValues(t kir.Type, v val, table int) {
	w := int(s.w)
	for p := range s.parts {
		u := v.unitOf(p)
		if wide(t) {
			s.emit(amd64.Inst{Op: amd64.VMovUPS, W: s.w, Mem: s.scratchMem(table + 2*p*w), A: u.r[0]})
			s.emit(amd64.Inst{Op: amd64.VMovUPS, W: s.w, Mem: s.scratchMem(table + (2*p+1)*w), A: u.r[1]})
			continue
		}
		s.emit(amd64.Inst{Op: amd64.VMovUPS, W: s.w, Mem: s.scratchMem(table + p*w), A: s.toRaw(t, u.r[0])})
	}
}

// laneResult returns what a subroutine loaded.
func (s *selector) laneResult(x *access) val {
	v := val{typ: x.t}
	w := int(s.w)
	for p := range s.parts {
		if wide(x.t) {
			v.setUnit(p, unit{r: [2]amd64.R{s.vopM(amd64.VMovUPS, 0, s.scratchMem(scratchVal+2*p*w)),
				s.vopM(amd64.VMovUPS, 0, s.scratchMem(scratchVal+(2*p+1)*w))}})
			continue
		}
		r := s.vopM(amd64.VMovUPS, 0, s.scratchMem(scratchVal+p*w))
		v.setUnit(p, unit{r: [2]amd64.R{s.fromRaw(x.t, r)}})
	}
	return v
}

// desc is the description of an access.
func (s *selector) desc(x *access) amd64.Mem {
	space, _ := x.i.Args[0].Type.Space()
	b := binary.LittleEndian.AppendUint32(nil, uint32(x.i.ID))
	b = binary.LittleEndian.AppendUint32(b, uint32(space)+1)
	keep, put := ^uint64(0), uint64(0)
	if x.a.Object != 0 {
		keep, put = kir.PtrOffsetMask, uint64(x.a.Object)<<kir.PtrObjectShift
	}
	b = binary.LittleEndian.AppendUint64(b, keep)
	return amd64.Mem{Const: s.f.Const(binary.LittleEndian.AppendUint64(b, put))}
}

// laneCall follows the pointers of all active lanes.
func (s *selector) laneCall(x *access, kind subKind) {
	s.activeBits(amd64.RAX)
	s.laneCallBits(x, subroutine{kind: kind, size: int(x.size)})
}

// laneCallFirst follows the first active lane's; RCX is then its number.
func (s *selector) laneCallFirst(x *access, kind subKind) {
	s.activeBits(amd64.RAX)
	s.emit(amd64.Inst{Op: amd64.BlsI, W: 4, Dst: amd64.RAX, A: amd64.RAX})
	s.laneCallBits(x, subroutine{kind: kind, size: int(x.size)})
}

// laneCallBits follows the pointers of the lanes in RAX.
func (s *selector) laneCallBits(x *access, k subroutine) {
	s.gopM(amd64.Lea, 8, amd64.RCX, s.desc(x))
	s.callSub(k)
}

func (s *selector) leaLabel(dst amd64.R, l amd64.Label) {
	s.emit(amd64.Inst{Op: amd64.Lea, W: 8, Dst: dst, Label: l})
}

// emitSubroutines places the subroutines that were called. Code does not fall into them.
func (s *selector) emitSubroutines() {
	for n := 0; n < len(s.memory.order); n++ {
		k := s.memory.order[n]
		s.bind(s.memory.subs[k])
		switch k.kind {
		case subAdd:
			s.emitAdd(k.t)
		case subAtomicAt, subStoreAt:
			s.emitAt(k)
		default:
			s.emitFollow(k)
		}
	}
}

// emitAdd emits subAdd: RAX is the base of 32 bits, RCX the table of 32-bit offsets. Sums wrap in the index's type.
func (s *selector) emitAdd(t kir.Type) {
	const lane, sum = amd64.R10, amd64.R11
	again := s.label()
	s.gopI(amd64.Mov, 4, lane, 0)
	s.bind(again)
	s.gopM(amd64.Mov, 4, sum, amd64.Mem{Base: amd64.RCX, Index: lane, Scale: 4})
	s.gop(amd64.Add, 4, sum, amd64.RAX)
	switch t {
	case kir.I8:
		s.gop(amd64.MovSXB, 8, sum, sum)
	case kir.U8, kir.Bool:
		s.gop(amd64.MovZXB, 4, sum, sum)
	case kir.I16:
		s.gop(amd64.MovSXW, 8, sum, sum)
	case kir.U16:
		s.gop(amd64.MovZXW, 4, sum, sum)
	case kir.I32:
		s.gop(amd64.MovSXD, 8, sum, sum)
	}
	s.gopM(amd64.IMul, 8, sum, s.scratchMem(wordScale))
	m := s.scratchMem(scratchPtr)
	m.Index, m.Scale = lane, 8
	s.emit(amd64.Inst{Op: amd64.Add, W: 8, Mem: m, A: sum})
	s.gopI(amd64.Add, 4, lane, 1)
	s.emit(amd64.Inst{Op: amd64.Cmp, W: 4, A: lane, Imm: int64(s.group)})
	s.jcc(amd64.CondB, again)
	s.emit(amd64.Inst{Op: amd64.Jmp, A: amd64.RDX})
}

// emitFollow emits a subroutine that touches memory: RAX holds the lanes, RCX the description. RCX is the last lane
// afterwards. Only RAX, RCX, RDX, R10 and R11 change.
func (s *selector) emitFollow(k subroutine) {
	const mask, lane, ptr, entry, desc, tmp = amd64.RAX, amd64.RCX, amd64.R10, amd64.R11, amd64.RSI, amd64.RDI
	again, fault := s.label(), s.label()
	s.storeR(8, s.scratchMem(wordSI), amd64.RSI)
	s.storeR(8, s.scratchMem(wordDI), amd64.RDI)
	s.gop(amd64.Mov, 8, desc, amd64.RCX)
	slot := s.scratchMem(scratchPtr)
	slot.Index, slot.Scale = lane, 8
	s.bind(again)
	s.emit(amd64.Inst{Op: amd64.TZCnt, W: 4, Dst: lane, A: mask})
	s.loadR(8, ptr, slot)
	s.gopM(amd64.And, 8, ptr, amd64.Mem{Base: desc, Disp: descKeep})
	s.gopM(amd64.Or, 8, ptr, amd64.Mem{Base: desc, Disp: descPut})
	s.storeR(8, slot, ptr)
	// The object's entry, and whether it is in the right space.
	s.gop(amd64.Mov, 8, entry, ptr)
	s.gopI(amd64.Shr, 8, entry, kir.PtrObjectShift)
	s.emit(amd64.Inst{Op: amd64.Cmp, W: 4, A: entry, Imm: int64(s.lay.numObjects)})
	s.jcc(amd64.CondAE, fault)
	s.gopI(amd64.Shl, 4, entry, int64(log2(objectBytes)))
	s.gopM(amd64.Lea, 8, entry, amd64.Mem{Base: regBlock, Index: entry, Scale: 1, Disp: int32(s.lay.objects)})
	word := func(off int32) amd64.Mem { return amd64.Mem{Base: entry, Disp: off} }
	s.loadR(4, tmp, word(objectSpace))
	s.emit(amd64.Inst{Op: amd64.Cmp, W: 4, A: tmp, Mem: amd64.Mem{Base: desc, Disp: descSpace}})
	s.jcc(amd64.CondNE, fault)
	// The range.
	s.gopI(amd64.Shl, 8, ptr, 64-kir.PtrObjectShift)
	s.gopI(amd64.Sar, 8, ptr, 64-kir.PtrObjectShift)
	s.loadR(8, tmp, word(objectLen))
	s.gopI(amd64.Sub, 8, tmp, int64(k.size))
	s.jcc(amd64.CondB, fault)
	s.emit(amd64.Inst{Op: amd64.Cmp, W: 8, A: ptr, B: tmp})
	s.jcc(amd64.CondA, fault)
	// The address.
	s.loadR(4, tmp, word(objectStep))
	s.gop(amd64.IMul, 8, ptr, tmp)
	s.gopM(amd64.Add, 8, ptr, word(objectBase))
	s.loadR(8, tmp, word(objectLane))
	s.gop(amd64.IMul, 8, tmp, lane)
	s.gop(amd64.Add, 8, ptr, tmp)
	own := s.label()
	s.emit(amd64.Inst{Op: amd64.Cmp, W: 4, Mem: amd64.Mem{Base: desc, Disp: descSpace}, Imm: int64(kir.Thread) + 1})
	s.jcc(amd64.CondNE, own)
	s.gop(amd64.Add, 8, ptr, regFrame)
	s.bind(own)
	val := s.valueSlot(k, lane)
	switch k.kind {
	case subLoad:
		s.followLoad(k.size, tmp, amd64.Mem{Base: ptr}, val)
	case subStore:
		s.followStore(k.size, val, amd64.Mem{Base: ptr})
	default:
		if k.size > 1 {
			s.emit(amd64.Inst{Op: amd64.Test, W: 8, A: ptr, Imm: int64(k.size - 1)})
			s.jcc(amd64.CondNE, fault)
		}
		s.followAtomic(k, val)
	}
	s.emit(amd64.Inst{Op: amd64.BlsR, W: 4, Dst: mask, A: mask})
	s.emit(amd64.Inst{Op: amd64.Test, W: 4, A: mask, B: mask})
	s.jcc(amd64.CondNE, again)
	s.loadR(8, amd64.RSI, s.scratchMem(wordSI))
	s.loadR(8, amd64.RDI, s.scratchMem(wordDI))
	s.emit(amd64.Inst{Op: amd64.Jmp, A: amd64.RDX})

	s.bind(fault)
	s.loadR(8, ptr, slot)
	s.storeR(8, block(blockFaultPtr), ptr)
	s.storeR(8, block(blockFaultLn), lane)
	s.loadR(4, tmp, amd64.Mem{Base: desc, Disp: descID})
	s.storeR(8, block(blockFault), tmp)
	s.ret(exitFault)
}

// valueSlot is a lane's place in the table of values.
func (s *selector) valueSlot(k subroutine, lane amd64.R) amd64.Mem {
	m := s.scratchMem(scratchVal)
	m.Index, m.Scale = lane, 4
	if k.size == 8 {
		m.Scale = 8
	}
	return m
}

// followStore stores an element from its slot.
func (s *selector) followStore(size int, slot, m amd64.Mem) {
	s.loadR(uint8(max(size, 4)), amd64.RDI, slot)
	s.storeR(uint8(size), m, amd64.RDI)
}

// followLoad loads an element, zero-extended, to its slot.
func (s *selector) followLoad(size int, tmp amd64.R, m, slot amd64.Mem) {
	w := uint8(4)
	switch size {
	case 1:
		s.gopM(amd64.MovZXB, 4, tmp, m)
	case 2:
		s.gopM(amd64.MovZXW, 4, tmp, m)
	case 4:
		s.loadR(4, tmp, m)
	default:
		s.loadR(8, tmp, m)
		w = 8
	}
	s.storeR(w, slot, tmp)
}

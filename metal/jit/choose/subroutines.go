package choose

import (
	"github.com/mlxlua/mlxlua/metal/jit/arena"
	"github.com/mlxlua/mlxlua/metal/jit/code"
	"github.com/mlxlua/mlxlua/metal/kir"
)

// subroutine names one: what it does to each lane's memory, with elements of that size.
type subroutine struct {
	kind subKind
	t    kir.Type // subAdd: the index's; atomics: the element's
	size int
	op   kir.Op // atomics
	mode kir.Mode
}

// subKind is what a subroutine does.
type subKind uint8

// The kinds.
const (
	subLoad subKind = iota
	subStore
	subAtomic
	subAtomicAt // the lanes' addresses are wordAddr plus the indices, and are in range and aligned
	subStoreAt  // the same for a store
	subAdd      // scratchPtr[lane] += scale * (index base + table[lane])
)

// writes reports whether a subroutine that follows pointers may change what they point to.
func (k subroutine) writes() bool {
	return k.kind == subStore || k.kind == subAtomic && k.op != kir.AtomicLoad
}

// subroutines makes the code that accesses of a kind share: it follows the pointers of lanes one after the other. A
// subroutine is emitted once, after all that calls it.
type subroutines struct {
	e      *emitter
	out    *leaver
	lay    *arena.Layout
	labels map[subroutine]code.Label
	order  []subroutine
}

// label returns the label of a subroutine, which emitAll will place.
func (s *subroutines) label(k subroutine) code.Label {
	if s.labels == nil {
		s.labels = map[subroutine]code.Label{}
	}
	l, ok := s.labels[k]
	if !ok {
		l = s.e.label()
		s.labels[k] = l
		s.order = append(s.order, k)
	}
	return l
}

// emitAll places the subroutines that were called. Code does not fall into them.
func (s *subroutines) emitAll() {
	for n := 0; n < len(s.order); n++ {
		k := s.order[n]
		s.e.bind(s.labels[k])
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

// emitFollow emits a subroutine that touches memory: RAX holds the lanes, RCX the description. RCX is the last lane
// afterwards. Only RAX, RCX, RDX, R10 and R11 change.
func (s *subroutines) emitFollow(k subroutine) {
	const mask, lane, ptr, entry, desc, tmp = code.RAX, code.RCX, code.R10, code.R11, code.RSI, code.RDI
	again, fault := s.e.label(), s.e.label()
	s.save()
	s.e.gop(code.Mov, 8, desc, code.RCX)
	slot := s.e.scratchMem(scratchPtr)
	slot.Index, slot.Scale = lane, 8
	s.e.bind(again)
	s.e.emit(code.Inst{Op: code.TZCnt, W: 4, Dst: lane, A: mask})
	s.e.loadReg(8, ptr, slot)
	s.e.gopMem(code.And, 8, ptr, code.Mem{Base: desc, Disp: descKeep})
	s.e.gopMem(code.Or, 8, ptr, code.Mem{Base: desc, Disp: descPut})
	s.e.storeReg(8, slot, ptr)
	// The object's entry, and whether it is in the right space and may be written.
	s.e.gop(code.Mov, 8, entry, ptr)
	s.e.gopImm(code.Shr, 8, entry, kir.PtrObjectShift)
	s.e.emit(code.Inst{Op: code.Cmp, W: 4, A: entry, Imm: int64(s.lay.NumObjects)})
	s.e.jcc(code.CondAE, fault)
	s.e.gopImm(code.Shl, 4, entry, int64(log2(arena.ObjectBytes)))
	s.e.gopMem(code.Lea, 8, entry, code.Mem{Base: regArena, Index: entry, Scale: 1, Disp: int32(s.lay.Objects)})
	word := func(off int32) code.Mem { return code.Mem{Base: entry, Disp: off} }
	space := int32(arena.ObjectSpace)
	if k.writes() {
		space = arena.ObjectWrite
	}
	s.e.loadReg(4, tmp, word(space))
	s.e.emit(code.Inst{Op: code.Cmp, W: 4, A: tmp, Mem: code.Mem{Base: desc, Disp: descSpace}})
	s.e.jcc(code.CondNE, fault)
	// The range.
	s.e.gopImm(code.Shl, 8, ptr, 64-kir.PtrObjectShift)
	s.e.gopImm(code.Sar, 8, ptr, 64-kir.PtrObjectShift)
	s.e.loadReg(8, tmp, word(arena.ObjectLen))
	s.e.gopImm(code.Sub, 8, tmp, int64(k.size))
	s.e.jcc(code.CondB, fault)
	s.e.emit(code.Inst{Op: code.Cmp, W: 8, A: ptr, B: tmp})
	s.e.jcc(code.CondA, fault)
	// The address.
	s.e.loadReg(4, tmp, word(arena.ObjectStep))
	s.e.gop(code.IMul, 8, ptr, tmp)
	s.e.gopMem(code.Add, 8, ptr, word(arena.ObjectBase))
	s.e.loadReg(4, tmp, word(arena.ObjectLane))
	s.e.gop(code.IMul, 8, tmp, lane)
	s.e.gop(code.Add, 8, ptr, tmp)
	own := s.e.label()
	s.e.emit(code.Inst{Op: code.Cmp, W: 4, Mem: code.Mem{Base: desc, Disp: descSpace}, Imm: int64(kir.Thread) + 1})
	s.e.jcc(code.CondNE, own)
	s.e.gop(code.Add, 8, ptr, regFrame)
	s.e.bind(own)
	val := s.valueSlot(k, lane)
	switch k.kind {
	case subLoad:
		s.followLoad(k.size, tmp, code.Mem{Base: ptr}, val)
	case subStore:
		s.followStore(k.size, val, code.Mem{Base: ptr})
	default:
		if k.size > 1 {
			s.e.emit(code.Inst{Op: code.Test, W: 8, A: ptr, Imm: int64(k.size - 1)})
			s.e.jcc(code.CondNE, fault)
		}
		s.followAtomic(k, val)
	}
	s.nextLane(mask, again)

	s.e.bind(fault)
	s.e.loadReg(8, ptr, slot)
	s.e.storeReg(8, inArena(arena.FaultPointer), ptr)
	s.e.storeReg(8, inArena(arena.FaultLane), lane)
	s.e.loadReg(4, tmp, code.Mem{Base: desc, Disp: descID})
	s.e.storeReg(8, inArena(arena.FaultInstr), tmp)
	s.out.leave(arena.ExitFault)
}

// emitAt emits subAtomicAt and subStoreAt for the lanes in RAX. Only RAX, RCX, RDX, R10 and R11 change.
func (s *subroutines) emitAt(k subroutine) {
	const mask, lane, ptr = code.RAX, code.RCX, code.R10
	again := s.e.label()
	s.save()
	idx := s.e.scratchMem(wordIndex)
	idx.Index, idx.Scale = lane, 4
	s.e.bind(again)
	s.e.emit(code.Inst{Op: code.TZCnt, W: 4, Dst: lane, A: mask})
	s.e.loadReg(4, ptr, idx)
	s.e.gopMem(code.Add, 8, ptr, s.e.scratchMem(wordAddr))
	if k.kind == subStoreAt {
		s.followStore(k.size, s.valueSlot(k, lane), code.Mem{Base: ptr})
	} else {
		s.followAtomic(k, s.valueSlot(k, lane))
	}
	s.nextLane(mask, again)
}

// save puts the registers that belong to the caller aside.
func (s *subroutines) save() {
	s.e.storeReg(8, s.e.scratchMem(wordSI), code.RSI)
	s.e.storeReg(8, s.e.scratchMem(wordDI), code.RDI)
}

// nextLane takes the lowest lane out of the mask, goes to again while others are left, and then returns.
func (s *subroutines) nextLane(mask code.R, again code.Label) {
	s.e.emit(code.Inst{Op: code.BlsR, W: 4, Dst: mask, A: mask})
	s.e.emit(code.Inst{Op: code.Test, W: 4, A: mask, B: mask})
	s.e.jcc(code.CondNE, again)
	s.e.loadReg(8, code.RSI, s.e.scratchMem(wordSI))
	s.e.loadReg(8, code.RDI, s.e.scratchMem(wordDI))
	s.e.emit(code.Inst{Op: code.Jmp, A: code.RDX})
}

// emitAdd emits subAdd: RAX is the base of 32 bits, RCX the table of 32-bit offsets. Sums wrap in the index's type.
func (s *subroutines) emitAdd(t kir.Type) {
	const lane, sum = code.R10, code.R11
	again := s.e.label()
	s.e.gopImm(code.Mov, 4, lane, 0)
	s.e.bind(again)
	s.e.gopMem(code.Mov, 4, sum, code.Mem{Base: code.RCX, Index: lane, Scale: 4})
	s.e.gop(code.Add, 4, sum, code.RAX)
	switch t {
	case kir.I8:
		s.e.gop(code.MovSXB, 8, sum, sum)
	case kir.U8, kir.Bool:
		s.e.gop(code.MovZXB, 4, sum, sum)
	case kir.I16:
		s.e.gop(code.MovSXW, 8, sum, sum)
	case kir.U16:
		s.e.gop(code.MovZXW, 4, sum, sum)
	case kir.I32:
		s.e.gop(code.MovSXD, 8, sum, sum)
	}
	s.e.gopMem(code.IMul, 8, sum, s.e.scratchMem(wordScale))
	m := s.e.scratchMem(scratchPtr)
	m.Index, m.Scale = lane, 8
	s.e.emit(code.Inst{Op: code.Add, W: 8, Mem: m, A: sum})
	s.e.gopImm(code.Add, 4, lane, 1)
	s.e.emit(code.Inst{Op: code.Cmp, W: 4, A: lane, Imm: int64(s.e.group)})
	s.e.jcc(code.CondB, again)
	s.e.emit(code.Inst{Op: code.Jmp, A: code.RDX})
}

// valueSlot is a lane's place in the table of values.
func (s *subroutines) valueSlot(k subroutine, lane code.R) code.Mem {
	m := s.e.scratchMem(scratchVal)
	m.Index, m.Scale = lane, 4
	if k.size == 8 {
		m.Scale = 8
	}
	return m
}

// followLoad loads an element, zero-extended, to its slot.
func (s *subroutines) followLoad(size int, tmp code.R, m, slot code.Mem) {
	w := uint8(4)
	switch size {
	case 1:
		s.e.gopMem(code.MovZXB, 4, tmp, m)
	case 2:
		s.e.gopMem(code.MovZXW, 4, tmp, m)
	case 4:
		s.e.loadReg(4, tmp, m)
	default:
		s.e.loadReg(8, tmp, m)
		w = 8
	}
	s.e.storeReg(w, slot, tmp)
}

// followStore stores an element from its slot.
func (s *subroutines) followStore(size int, slot, m code.Mem) {
	s.e.loadReg(uint8(max(size, 4)), code.RDI, slot)
	s.e.storeReg(uint8(size), m, code.RDI)
}

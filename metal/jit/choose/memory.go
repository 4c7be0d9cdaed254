package choose

import (
	"github.com/mlxlua/mlxlua/metal/jit/code"
	"github.com/mlxlua/mlxlua/metal/jit/lanes"
	"github.com/mlxlua/mlxlua/metal/kir"
)

// access is one Load, Store or atomic while it is selected.
type access struct {
	i    *kir.Instr
	a    *lanes.Access
	t    kir.Type // of the element
	l    linear   // the uniform part of the offset; unset for AccessDynamic
	idx  val      // AccessGather: the index; AccessDynamic: the pointer
	v    val      // of a Store: the lanes to store, made before the first check; unset for one address
	size int64
	// slow: lane by lane; cold: the range check of all lanes at once failed; done: the access is over.
	slow, cold, done code.Label
}

// memory is what all ways to select an access share: its description, its place, and the code for when the check of all
// lanes at once fails.
type memory struct {
	e           *emitter
	v           vector
	el          elements
	vals        *values
	ptrs        *pointers
	on          *active
	addr        *addresses
	each        *laneByLane
	k           *kir.Kernel
	info        *lanes.Info
	nonTemporal bool        // see isNonTemporal
	inLoop      func() bool // reports whether a Loop is being selected
	streams     []int64     // lanes.Streams, when first wanted
}

// newAccess describes the access of i, of elements of type t. It emits the uniform part of the address.
func (s *memory) newAccess(i *kir.Instr, t kir.Type) *access {
	x := &access{i: i, a: s.info.Access[i.ID], t: t, size: int64(t.Size()), slow: s.e.label(), cold: s.e.label(),
		done: s.e.label()}
	switch x.a.Mode {
	case lanes.AccessDynamic:
		x.idx = s.vals.laneVal(i.Args[0])
		return x
	case lanes.AccessGather:
		x.idx = s.vals.laneVal(x.a.Index.Value)
	}
	x.l = s.addr.linear(x.a)
	return x
}

// place is the memory operand of the uniform part of an access's address plus add bytes.
func (s *memory) place(x *access, add int64) code.Mem {
	base, disp := s.addr.objectBase(x.a.Object)
	return x.l.mem(base, disp, add)
}

// stored returns the lanes of the value that x stores, pointers in full.
func (s *memory) stored(x *access) val {
	if x.v.vec[0] != 0 {
		return x.v
	}
	arg := x.i.Args[1]
	v := s.vals.laneVal(arg)
	if arg.Type.IsPtr() && s.info.Object[arg.ID] != 0 {
		return s.ptrs.full(v, s.info.Object[arg.ID])
	}
	return v
}

// loadOne loads the element at m for all lanes, as users of i want it.
func (s *memory) loadOne(i *kir.Instr, m code.Mem) val {
	if t := i.Type; s.info.NeedBase[i.ID] || t.Size() < 4 || t.IsFloat() {
		return s.el.loadScalar(t, m)
	}
	v := val{typ: i.Type, splat: true}
	op := code.VPBroadcastD
	if wide(i.Type) {
		op = code.VPBroadcastQ
	}
	v.vec[0] = s.v.op2Mem(op, 0, m)
	return v
}

// slowStore stores lane by lane.
func (s *memory) slowStore(x *access) {
	s.each.pointers(x)
	s.each.putValues(x.t, s.stored(x), scratchVal)
	s.each.follow(x, subStore)
}

// coldLoad emits the lane-by-lane load out of line, into the registers of v, with what begin emits before it.
func (s *memory) coldLoad(x *access, v val, begin func()) {
	s.e.f.ColdBegin()
	s.e.bind(x.cold)
	if begin != nil {
		begin()
	}
	s.e.bind(x.slow)
	s.each.pointers(x)
	s.each.follow(x, subLoad)
	s.e.moveVal(v, s.each.result(x))
	s.e.jump(x.done)
	s.e.f.ColdEnd()
}

// coldStore emits the lane-by-lane store out of line, with what begin emits before it.
func (s *memory) coldStore(x *access, begin func()) {
	s.e.f.ColdBegin()
	s.e.bind(x.cold)
	if begin != nil {
		begin()
	}
	s.e.bind(x.slow)
	s.slowStore(x)
	s.e.jump(x.done)
	s.e.f.ColdEnd()
}

// coldOne loads one element for the first active lane, with a check of its own, and returns where it is.
func (s *memory) coldOne(x *access) code.Mem {
	s.each.pointers(x)
	s.each.followFirst(x, subLoad)
	slot := s.e.scratchMem(scratchVal)
	slot.Index, slot.Scale = code.RCX, 4
	if wide(x.t) {
		slot.Scale = 8
	}
	return slot
}

// storeAt stores lane by lane at byte offsets that have been checked, where there is no scatter.
func (s *memory) storeAt(x *access, m code.Mem, idx []code.R) {
	s.e.storeReg(8, s.e.scratchMem(wordAddr), s.e.lea(m))
	s.each.putValues(x.t, x.v, scratchVal)
	s.each.callAt(subroutine{kind: subStoreAt, size: int(x.size)}, idx)
}

// limit returns what the lanes may add at most to the uniform part of x's address so that size bytes there are
// inside the object, shifted right; at most 2^31-1. It goes to slow if that is less than nothing, or the uniform
// part is negative.
func (s *memory) limit(x *access, size, shift int64, slow code.Label) code.R {
	room := s.addr.length(x.a.Object)
	if x.l.idx == 0 && x.l.disp >= 0 {
		s.e.gopImm(code.Sub, 8, room, size+x.l.disp)
		s.e.jcc(code.CondB, slow)
	} else {
		s.e.gopImm(code.Sub, 8, room, size)
		s.e.jcc(code.CondB, slow)
		s.e.gop(code.Sub, 8, room, s.addr.value(x.l, 0))
		s.e.jcc(code.CondB, slow)
	}
	if shift > 0 {
		s.e.gopImm(code.Shr, 8, room, shift)
	}
	// Gathers extend indices by their sign; where lanes are done one by one, byte offsets are kept in 32 bits.
	s.atMost(room, min(1<<31-1, int64(1<<32-1)>>shift))
	return room
}

// atMost makes an unsigned number no larger than a limit.
func (s *memory) atMost(r code.R, limit int64) {
	s.e.gopImm(code.Mov, 4, code.RAX, limit)
	s.e.emit(code.Inst{Op: code.Cmp, W: 8, A: r, B: code.RAX})
	s.e.emit(code.Inst{Op: code.CMov, W: 8, Cond: code.CondA, Dst: r, A: code.RAX})
}

// above jumps if an active lane's index, unsigned, is above the limit.
func (s *memory) above(idx []code.R, limit code.R, to code.Label) {
	masks{s.e}.jumpIfAnyOf(s.beyond(nil, idx, s.e.scalarToSplat(limit, kir.U32)), to)
}

// beyond adds to bad, a mask for each part, the active lanes whose index, unsigned, is above lim.
func (s *memory) beyond(bad, idx []code.R, lim code.R) []code.R {
	for p, r := range idx {
		if s.e.avx512() {
			k := s.e.reg(code.Mask)
			i := code.Inst{Op: code.VPCmpUD, W: s.e.w, Dst: k, A: r, B: lim, Imm: 6}
			if !s.on.all {
				i.KM = s.on.exec[p]
			}
			s.e.emit(i)
			bad = append(bad, k)
			continue
		}
		ok := s.v.op2(code.VPCmpEqD, s.v.op2(code.VPMinUD, r, lim), r)
		bad = append(bad, s.v.op2(code.VPAndN, ok, s.on.exec[p]))
	}
	return bad
}

package jit

import (
	"github.com/mlxlua/mlxlua/metal/jit/amd64"
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
	slow, cold, done amd64.Label
}

// newAccess describes the access of i, of elements of type t. It emits the uniform part of the address.
func (s *selector) newAccess(i *kir.Instr, t kir.Type) *access {
	x := &access{i: i, a: s.info.Access[i.ID], t: t, size: int64(t.Size()), slow: s.label(), cold: s.label(),
		done: s.label()}
	switch x.a.Mode {
	case lanes.AccessDynamic:
		x.idx = s.laneVal(i.Args[0])
		return x
	case lanes.AccessGather:
		x.idx = s.laneVal(x.a.Index.Value)
	}
	x.l = s.linear(x.a)
	return x
}

// load selects a Load.
func (s *selector) load(i *kir.Instr) {
	if !s.info.NeedBase[i.ID] && !s.info.NeedVec[i.ID] || s.inGroups(i) {
		return
	}
	if g := s.memory.groups.loads[i.ID]; g != nil {
		s.groupLoad(g)
		return
	}
	if v, ok := s.uniformGroup(i); ok {
		s.result(i, v)
		return
	}
	x := s.newAccess(i, i.Type)
	a := x.a
	var v val
	switch {
	case a.Object == 0 && s.info.Patterns[i.ID].Kind == lanes.Uniform:
		s.jump(x.cold)
		v = s.uniformLoad(x, amd64.Mem{Base: regBlock})
	case a.Mode == lanes.AccessUniform && !s.isThread(a.Object):
		s.checkWraps(a, x.slow)
		s.check(a.Object, x.l, x.size, x.cold)
		v = s.uniformLoad(x, s.place(x, 0))
	case a.Mode == lanes.AccessUniform || a.Mode == lanes.AccessOffsets:
		v = s.patternLoad(x)
	case a.Mode == lanes.AccessGather && s.gathers(x, false):
		v = s.gatherLoad(x)
	case a.Mode == lanes.AccessDynamic && s.gathers(x, false):
		v = s.dynamicLoad(x)
	default:
		s.lanePointers(x)
		s.laneCall(x, subLoad)
		v = s.laneResult(x)
	}
	s.bind(x.done)
	s.result(i, v)
}

// place is the memory operand of the uniform part of an access's address plus add bytes.
func (s *selector) place(x *access, add int64) amd64.Mem {
	base, disp := s.objectBase(x.a.Object)
	return x.l.mem(base, disp, add)
}

// uniformLoad loads one element for all lanes; the range check is done.
func (s *selector) uniformLoad(x *access, m amd64.Mem) val {
	v := s.loadOne(x.i, m)
	s.f.ColdBegin()
	s.bind(x.cold)
	s.bind(x.slow)
	slot := s.coldOne(x)
	switch {
	case v.base != 0:
		s.moveVal(v, s.loadScalar(x.t, slot))
	case x.t.IsFloat():
		s.moveVal(v, val{typ: x.t, splat: true, vec: [maxRegs]amd64.R{s.loadSplat(x.t, slot)}})
	case wide(x.t):
		s.emit(amd64.Inst{Op: amd64.VPBroadcastQ, W: s.w, Dst: v.vec[0], Mem: slot})
	default:
		s.emit(amd64.Inst{Op: amd64.VPBroadcastD, W: s.w, Dst: v.vec[0], Mem: slot})
	}
	s.jump(x.done)
	s.f.ColdEnd()
	return v
}

// loadOne loads the element at m for all lanes, as users of i want it.
func (s *selector) loadOne(i *kir.Instr, m amd64.Mem) val {
	if t := i.Type; s.info.NeedBase[i.ID] || t.Size() < 4 || t.IsFloat() {
		return s.loadScalar(t, m)
	}
	v := val{typ: i.Type, splat: true}
	op := amd64.VPBroadcastD
	if wide(i.Type) {
		op = amd64.VPBroadcastQ
	}
	v.vec[0] = s.vopM(op, 0, m)
	return v
}

// coldOne loads one element for the first active lane, with a check of its own, and returns where it is.
func (s *selector) coldOne(x *access) amd64.Mem {
	s.lanePointers(x)
	s.laneCallFirst(x, subLoad)
	slot := amd64.Mem{Base: regBlock, Index: amd64.RCX, Scale: 4, Disp: int32(s.lay.scratch + scratchVal)}
	if wide(x.t) {
		slot.Scale = 8
	}
	return slot
}

// moveVal copies the registers of src to those of dst.
func (s *selector) moveVal(dst, src val) {
	if dst.base != 0 {
		s.gop(amd64.Mov, 8, dst.base, src.base)
	}
	for n, d := range dst.vec {
		if d != 0 && src.vec[n] != 0 {
			s.moveReg(d, src.vec[n])
		}
	}
}

// store selects a Store.
func (s *selector) store(i *kir.Instr) {
	if s.inGroups(i) {
		return
	}
	if g := s.memory.groups.stores[i.ID]; g != nil {
		s.groupStore(g)
		return
	}
	x := s.newAccess(i, i.Args[1].Type)
	a := x.a
	switch {
	case a.Object != 0 && a.Mode == lanes.AccessUniform && !s.isThread(a.Object):
		s.uniformStore(x)
	case a.Object != 0 && (a.Mode == lanes.AccessUniform || a.Mode == lanes.AccessOffsets):
		x.v = s.stored(x)
		s.patternStore(x)
	case a.Mode == lanes.AccessGather && s.gathers(x, true):
		x.v = s.stored(x)
		s.gatherStore(x)
	case a.Mode == lanes.AccessDynamic && s.gathers(x, true):
		x.v = s.stored(x)
		s.dynamicStore(x)
	default:
		s.slowStore(x)
	}
	s.bind(x.done)
}

// stored returns the lanes of the value that x stores, pointers in full.
func (s *selector) stored(x *access) val {
	if x.v.vec[0] != 0 {
		return x.v
	}
	arg := x.i.Args[1]
	v := s.laneVal(arg)
	if arg.Type.IsPtr() && s.info.Object[arg.ID] != 0 {
		return s.fullPointer(v, s.info.Object[arg.ID])
	}
	return v
}

// slowStore stores lane by lane.
func (s *selector) slowStore(x *access) {
	s.lanePointers(x)
	s.laneValues(x.t, s.stored(x), scratchVal)
	s.laneCall(x, subStore)
}

// coldStore emits the lane-by-lane store out of line, with what begin emits before it.
func (s *selector) coldStore(x *access, begin func()) {
	s.f.ColdBegin()
	s.bind(x.cold)
	if begin != nil {
		begin()
	}
	s.bind(x.slow)
	s.slowStore(x)
	s.jump(x.done)
	s.f.ColdEnd()
}

// uniformStore stores to one address: of several lanes the last one's value stays.
func (s *selector) uniformStore(x *access) {
	arg := x.i.Args[1]
	s.checkWraps(x.a, x.slow)
	s.check(x.a.Object, x.l, x.size, x.cold)
	m := s.place(x, 0)
	isPtr := arg.Type.IsPtr() && s.info.Object[arg.ID] != 0
	switch {
	case s.info.Patterns[arg.ID].Kind == lanes.Uniform && arg.Type.IsFloat():
		s.storeScalar(x.t, m, s.laneVal(arg))
	case s.info.Patterns[arg.ID].Kind == lanes.Uniform && isPtr:
		s.storeScalar(x.t, m, s.fullPointer(val{typ: x.t, base: s.base(arg)}, s.info.Object[arg.ID]))
	case s.info.Patterns[arg.ID].Kind == lanes.Uniform:
		s.storeScalar(x.t, m, val{typ: x.t, base: s.base(arg)})
	default:
		s.storeLast(x, m)
	}
	s.coldStore(x, nil)
}

// storeLast stores the value of the last active lane at m. It takes it from the block's scratch tables.
func (s *selector) storeLast(x *access, m amd64.Mem) {
	s.laneValues(x.t, s.stored(x), scratchVal)
	last := s.reg(amd64.GPR)
	s.activeBits(amd64.RAX)
	s.emit(amd64.Inst{Op: amd64.Bsr, W: 4, Dst: last, A: amd64.RAX})
	slot := amd64.Mem{Base: regBlock, Index: last, Scale: 4, Disp: int32(s.lay.scratch + scratchVal)}
	w := uint8(4)
	if wide(x.t) {
		slot.Scale, w = 8, 8
	}
	r := s.reg(amd64.GPR)
	s.loadR(w, r, slot)
	s.storeR(uint8(x.t.Size()), m, r)
}

// activeBits puts the active lanes' bits into a general register.
func (s *selector) activeBits(r amd64.R) {
	if s.allActive {
		s.gopI(amd64.Mov, 4, r, int64(int32(uint32(1<<s.group-1))))
		return
	}
	s.gop(amd64.Mov, 4, r, s.maskBits(s.exec))
}

// fence selects a Fence or a SimdBarrier: lanes of a group run in step, so only the order that other processors see
// matters.
func (s *selector) fence(i *kir.Instr) {
	if i.Op == kir.Fence && i.Mode&kir.MemDevice != 0 {
		s.emit(amd64.Inst{Op: amd64.MFence})
	}
}

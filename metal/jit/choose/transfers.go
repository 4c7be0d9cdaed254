package choose

import (
	"github.com/mlxlua/mlxlua/metal/jit/code"
	"github.com/mlxlua/mlxlua/metal/jit/lanes"
	"github.com/mlxlua/mlxlua/metal/kir"
)

// transfers selects Loads, Stores and Fences: it chooses the way for each.
type transfers struct {
	e    *emitter
	el   elements
	vals *values
	ptrs *pointers
	on   *active
	addr *addresses
	each *laneByLane
	mem  *memory
	gath *gathers
	offs *offsets
	grp  *groups
	info *lanes.Info
}

// load selects a Load.
func (s *transfers) load(i *kir.Instr) {
	if !s.info.NeedBase[i.ID] && !s.info.NeedVec[i.ID] || s.grp.has(i) {
		return
	}
	if g := s.grp.loads[i.ID]; g != nil {
		s.grp.load(g)
		return
	}
	if v, ok := s.grp.loadChecked(i); ok {
		s.vals.result(i, v)
		return
	}
	x := s.mem.newAccess(i, i.Type)
	a := x.a
	var v val
	switch {
	case a.Object == 0 && s.info.Patterns[i.ID].Kind == lanes.Uniform:
		s.e.jump(x.cold)
		v = s.uniformLoad(x, code.Mem{Base: regArena})
	case a.Mode == lanes.AccessUniform && !s.addr.isThread(a.Object):
		s.addr.checkWraps(a, x.slow)
		s.addr.check(a.Object, x.l, x.size, x.cold)
		v = s.uniformLoad(x, s.mem.place(x, 0))
	case a.Mode == lanes.AccessUniform || a.Mode == lanes.AccessOffsets:
		v = s.offs.load(x)
	case a.Mode == lanes.AccessGather && s.gath.possible(x, false):
		v = s.gath.load(x)
	case a.Mode == lanes.AccessDynamic && s.gath.possible(x, false):
		v = s.gath.dynamicLoad(x)
	default:
		s.each.pointers(x)
		s.each.follow(x, subLoad)
		v = s.each.result(x)
	}
	s.e.bind(x.done)
	s.vals.result(i, v)
}

// uniformLoad loads one element for all lanes; the range check is done.
func (s *transfers) uniformLoad(x *access, m code.Mem) val {
	v := s.mem.loadOne(x.i, m)
	s.e.f.ColdBegin()
	s.e.bind(x.cold)
	s.e.bind(x.slow)
	slot := s.mem.coldOne(x)
	switch {
	case v.base != 0:
		s.e.moveVal(v, s.el.loadScalar(x.t, slot))
	case x.t.IsFloat():
		s.e.moveVal(v, val{typ: x.t, splat: true, vec: [maxRegs]code.R{s.el.loadSplat(x.t, slot)}})
	case wide(x.t):
		s.e.emit(code.Inst{Op: code.VPBroadcastQ, W: s.e.w, Dst: v.vec[0], Mem: slot})
	default:
		s.e.emit(code.Inst{Op: code.VPBroadcastD, W: s.e.w, Dst: v.vec[0], Mem: slot})
	}
	s.e.jump(x.done)
	s.e.f.ColdEnd()
	return v
}

// store selects a Store.
func (s *transfers) store(i *kir.Instr) {
	if s.grp.has(i) {
		return
	}
	if g := s.grp.stores[i.ID]; g != nil {
		s.grp.store(g)
		return
	}
	x := s.mem.newAccess(i, i.Args[1].Type)
	a := x.a
	switch {
	case s.addr.refuses(a.Object):
		s.mem.slowStore(x)
	case a.Object != 0 && a.Mode == lanes.AccessUniform && !s.addr.isThread(a.Object):
		s.uniformStore(x)
	case a.Object != 0 && (a.Mode == lanes.AccessUniform || a.Mode == lanes.AccessOffsets):
		x.v = s.mem.stored(x)
		s.offs.store(x)
	case a.Mode == lanes.AccessGather && s.gath.possible(x, true):
		x.v = s.mem.stored(x)
		s.gath.store(x)
	case a.Mode == lanes.AccessDynamic && s.gath.possible(x, true):
		x.v = s.mem.stored(x)
		s.gath.dynamicStore(x)
	default:
		s.mem.slowStore(x)
	}
	s.e.bind(x.done)
}

// uniformStore stores to one address: of several lanes the last one's value stays.
func (s *transfers) uniformStore(x *access) {
	arg := x.i.Args[1]
	s.addr.checkWraps(x.a, x.slow)
	s.addr.check(x.a.Object, x.l, x.size, x.cold)
	m := s.mem.place(x, 0)
	isPtr := arg.Type.IsPtr() && s.info.Object[arg.ID] != 0
	switch {
	case s.info.Patterns[arg.ID].Kind == lanes.Uniform && arg.Type.IsFloat():
		s.el.storeScalar(x.t, m, s.vals.laneVal(arg))
	case s.info.Patterns[arg.ID].Kind == lanes.Uniform && isPtr:
		s.el.storeScalar(x.t, m, s.ptrs.full(val{typ: x.t, base: s.vals.base(arg)}, s.info.Object[arg.ID]))
	case s.info.Patterns[arg.ID].Kind == lanes.Uniform:
		s.el.storeScalar(x.t, m, val{typ: x.t, base: s.vals.base(arg)})
	default:
		s.storeLast(x, m)
	}
	s.mem.coldStore(x, nil)
}

// storeLast stores the value of the last active lane at m. It takes it from the arena's scratch tables.
func (s *transfers) storeLast(x *access, m code.Mem) {
	s.each.putValues(x.t, s.mem.stored(x), scratchVal)
	last := s.e.reg(code.GPR)
	s.on.bits(code.RAX)
	s.e.emit(code.Inst{Op: code.Bsr, W: 4, Dst: last, A: code.RAX})
	slot := s.e.scratchMem(scratchVal)
	slot.Index, slot.Scale = last, 4
	w := uint8(4)
	if wide(x.t) {
		slot.Scale, w = 8, 8
	}
	r := s.e.reg(code.GPR)
	s.e.loadReg(w, r, slot)
	s.e.storeReg(uint8(x.t.Size()), m, r)
}

// fence selects a Fence or a SimdBarrier: lanes of a group run in step, so only the order that other processors see
// matters.
func (s *transfers) fence(i *kir.Instr) {
	if i.Op == kir.Fence && i.Mode&kir.MemDevice != 0 {
		s.e.emit(code.Inst{Op: code.MFence})
	}
}

package choose

import (
	"github.com/mlxlua/mlxlua/metal/jit/code"
	"github.com/mlxlua/mlxlua/metal/jit/lanes"
	"github.com/mlxlua/mlxlua/metal/kir"
)

// atomics selects atomic operations. They act lane by lane, in the order of lanes.
type atomics struct {
	e    *emitter
	v    vector
	vals *values
	on   *active
	addr *addresses
	each *laneByLane
	mem  *memory
	gath *gathers
	offs *offsets
	subs *subroutines
	info *lanes.Info
}

// operation selects an AtomicLoad, AtomicStore, AtomicRMW or AtomicCAS.
func (s *atomics) operation(i *kir.Instr) {
	t := i.Type
	if i.Op == kir.AtomicStore {
		t = i.Args[1].Type
	}
	x := s.mem.newAccess(i, t)
	used := i.Op != kir.AtomicStore && (s.info.NeedBase[i.ID] || s.info.NeedVec[i.ID])
	if !used && s.mergeable(x) {
		s.merged(x)
		return
	}
	if i.Op != kir.AtomicLoad {
		s.each.putValues(t, s.vals.laneVal(i.Args[1]), scratchVal)
	}
	if i.Op == kir.AtomicCAS {
		s.each.putValues(t, s.vals.laneVal(i.Args[2]), scratchVal2)
	}
	k := subroutine{kind: subAtomic, t: t, size: int(x.size), op: i.Op, mode: i.Mode}
	if s.atAddress(x, k) {
		s.e.f.ColdBegin()
		s.e.bind(x.cold)
		s.e.bind(x.slow)
		s.each.pointers(x)
		s.on.bits(code.RAX)
		s.each.followBits(x, k)
		s.e.jump(x.done)
		s.e.f.ColdEnd()
	} else {
		s.each.pointers(x)
		s.on.bits(code.RAX)
		s.each.followBits(x, k)
	}
	s.e.bind(x.done)
	if used {
		s.vals.result(i, s.each.result(x))
	}
}

// atAddress does an atomic where the range of all lanes can be checked at once. It reports whether it could.
func (s *atomics) atAddress(x *access, k subroutine) bool {
	a := x.a
	if k.op != kir.AtomicLoad && s.addr.refuses(a.Object) {
		return false
	}
	if a.Object == 0 || a.Mode == lanes.AccessDynamic || a.Mode == lanes.AccessGather && !s.gath.possible(x, false) {
		return false
	}
	if a.Mode == lanes.AccessOffsets {
		for _, o := range a.Offsets[:s.e.group] {
			if int64(o)%x.size != 0 {
				return false
			}
		}
	}
	var m code.Mem
	idx := make([]code.R, s.e.parts)
	if a.Mode == lanes.AccessGather {
		if a.Index.Scale%x.size != 0 {
			return false
		}
		m, idx, _ = s.gath.prepare(x, false)
		m, idx = s.gath.inBytes(m, idx)
	} else {
		var offs []int32
		m, offs = s.offs.place(x)
		for p := range idx {
			idx[p] = s.v.loadLanes(offs[p*s.e.per : (p+1)*s.e.per])
		}
	}
	at := s.e.lea(m)
	if x.size > 1 {
		s.e.emit(code.Inst{Op: code.Test, W: 4, A: at, Imm: x.size - 1})
		s.e.jcc(code.CondNE, x.slow)
	}
	s.e.storeReg(8, s.e.scratchMem(wordAddr), at)
	k.kind = subAtomicAt
	s.each.callAt(k, idx)
	return true
}

// mergeable reports whether the lanes' operations on one address may be one, as their results are not used: integer
// operations whose order does not matter.
func (s *atomics) mergeable(x *access) bool {
	if x.i.Op != kir.AtomicRMW || x.t.IsFloat() || x.a.Object == 0 || x.a.Mode != lanes.AccessUniform ||
		s.addr.refuses(x.a.Object) {
		return false
	}
	switch x.i.Mode {
	case kir.ModeAdd, kir.ModeSub, kir.ModeAnd, kir.ModeOr, kir.ModeXor, kir.ModeMin, kir.ModeMax:
		return true
	}
	return false
}

// merged combines the lanes' values and does one operation.
func (s *atomics) merged(x *access) {
	arg := x.i.Args[1]
	s.addr.checkWraps(x.a, x.slow)
	s.addr.check(x.a.Object, x.l, x.size, x.cold)
	at := s.e.lea(s.mem.place(x, 0))
	s.e.emit(code.Inst{Op: code.Test, W: 4, A: at, Imm: x.size - 1})
	s.e.jcc(code.CondNE, x.slow)
	w := uint8(x.size)
	k := subroutine{kind: subAtomic, t: x.t, size: int(x.size), op: kir.AtomicRMW, mode: x.i.Mode}
	// The lanes' values into one.
	sum := s.e.reg(code.GPR)
	if s.info.Patterns[arg.ID].Kind == lanes.Uniform {
		v := s.vals.base(arg)
		s.on.bits(code.RAX)
		s.timesLanes(k, w, sum, v)
	} else {
		s.each.putValues(x.t, s.vals.laneVal(arg), scratchVal)
		s.on.bits(code.RAX)
		s.mergeLanes(k, w, sum)
	}
	m := code.Mem{Base: at}
	switch k.mode {
	case kir.ModeAdd:
		s.e.emit(code.Inst{Op: code.LockAdd, W: w, Mem: m, A: sum})
	case kir.ModeSub:
		s.e.emit(code.Inst{Op: code.LockSub, W: w, Mem: m, A: sum})
	case kir.ModeAnd:
		s.e.emit(code.Inst{Op: code.LockAnd, W: w, Mem: m, A: sum})
	case kir.ModeOr:
		s.e.emit(code.Inst{Op: code.LockOr, W: w, Mem: m, A: sum})
	case kir.ModeXor:
		s.e.emit(code.Inst{Op: code.LockXor, W: w, Mem: m, A: sum})
	default:
		again, next := s.e.label(), s.e.reg(code.GPR)
		s.e.loadReg(w, code.RAX, m)
		s.e.f.Loop()
		s.e.bind(again)
		s.e.gop(code.Mov, 8, next, code.RAX)
		s.subs.take(k, w, next, sum)
		s.e.emit(code.Inst{Op: code.LockCmpXchg, W: w, Mem: m, A: next})
		s.e.jcc(code.CondNE, again)
		s.e.f.EndLoop()
	}
	s.e.f.ColdBegin()
	s.e.bind(x.cold)
	s.e.bind(x.slow)
	s.each.pointers(x)
	s.each.putValues(x.t, s.vals.laneVal(arg), scratchVal)
	s.on.bits(code.RAX)
	s.each.followBits(x, k)
	s.e.jump(x.done)
	s.e.f.ColdEnd()
	s.e.bind(x.done)
}

// timesLanes sets sum to what all lanes in RAX (at least one) make of one value.
func (s *atomics) timesLanes(k subroutine, w uint8, sum, v code.R) {
	switch k.mode {
	case kir.ModeAdd, kir.ModeSub, kir.ModeXor:
		s.e.emit(code.Inst{Op: code.PopCnt, W: 4, Dst: sum, A: code.RAX})
		if k.mode == kir.ModeXor {
			s.e.gopImm(code.And, 4, sum, 1)
		}
		s.e.gop(code.IMul, w, sum, v)
	default:
		s.e.gop(code.Mov, 8, sum, v)
	}
}

// mergeLanes sets sum to what the values of the lanes in RAX come to.
func (s *atomics) mergeLanes(k subroutine, w uint8, sum code.R) {
	again, over := s.e.label(), s.e.label()
	slot := s.subs.valueSlot(k, code.RCX)
	s.e.emit(code.Inst{Op: code.TZCnt, W: 4, Dst: code.RCX, A: code.RAX})
	s.e.loadReg(w, sum, slot)
	s.e.f.Loop()
	s.e.bind(again)
	s.e.emit(code.Inst{Op: code.BlsR, W: 4, Dst: code.RAX, A: code.RAX})
	s.e.emit(code.Inst{Op: code.Test, W: 4, A: code.RAX, B: code.RAX})
	s.e.jcc(code.CondE, over)
	s.e.emit(code.Inst{Op: code.TZCnt, W: 4, Dst: code.RCX, A: code.RAX})
	s.e.loadReg(w, code.RDX, slot)
	s.subs.take(k, w, sum, code.RDX)
	s.e.jump(again)
	s.e.f.EndLoop()
	s.e.bind(over)
}

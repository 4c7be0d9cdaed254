package choose

import (
	"fmt"

	"github.com/mlxlua/mlxlua/metal/jit/arena"
	"github.com/mlxlua/mlxlua/metal/jit/lanes"
	"github.com/mlxlua/mlxlua/metal/kir"
)

// Unsupported is the error of a kernel that cannot become machine code; interp can run it.
type Unsupported struct {
	Kernel string
	Op     kir.Op
	Why    string
}

// Error returns "[kernel] no machine code for op: why".
func (u *Unsupported) Error() string {
	return fmt.Sprintf("[%s] no machine code for %s: %s", u.Kernel, u.Op, u.Why)
}

// selector turns one kernel into instructions on virtual registers. It hands each instruction of kir to the part that
// selects such ones. Parts hold those that they need (newSelector says which); what has no state of its own, like
// vector or floats, is made where it is needed.
type selector struct {
	e          *emitter
	values     *values
	operations *operations
	pointers   *pointers
	variables  *variables
	builtins   *builtins
	crossing   *crossing
	transfers  *transfers
	atomics    *atomics
	polls      *polls
	control    *control
	entry      *entry
}

// newSelector makes the parts for a kernel and a kind of launch; nonTemporal says that such launches write past the
// cache.
func newSelector(
	e *emitter, k *kir.Kernel, info *lanes.Info, lay *arena.Layout, geo lanes.Geometry, nonTemporal bool,
) *selector {
	v, m, g := vector{e: e, w: e.w}, masks{e}, general{e}
	el := elements{v}
	s := &selector{e: e}
	on := &active{e: e, m: m, all: geo.Full}
	vals := &values{e: e, v: v, m: m, g: g, info: info, byID: make([]val, k.NumInstrs)}
	ops := &operations{e: e, v: v, vals: vals, info: info}
	ptrs := &pointers{e: e, v: v, g: g, ops: ops, vals: vals, k: k, info: info}
	vars := &variables{e: e, m: m, vals: vals, ptrs: ptrs, on: on, k: k, info: info}
	out := &leaver{e: e, lay: lay, nonTemporal: nonTemporal}
	pol := &polls{e: e, out: out, info: info}
	ctrl := &control{e: e, m: m, g: g, vals: vals, on: on, polls: pol, info: info, block: s.block}

	addr := &addresses{e: e, vals: vals, k: k, lay: lay}
	subs := &subroutines{e: e, out: out, lay: lay}
	each := &laneByLane{e: e, v: v, el: el, vals: vals, on: on, addr: addr, subs: subs, info: info}
	mem := &memory{e: e, v: v, el: el, vals: vals, ptrs: ptrs, on: on, addr: addr, each: each, k: k, info: info,
		nonTemporal: nonTemporal, inLoop: ctrl.inLoop}
	gath := &gathers{e: e, v: v, m: m, el: el, on: on, addr: addr, mem: mem, lay: lay}
	offs := &offsets{e: e, v: v, el: el, on: on, addr: addr, each: each, mem: mem, gath: gath, lay: lay}
	grp := &groups{e: e, v: v, m: m, el: el, on: on, vals: vals, addr: addr, each: each, mem: mem, offs: offs, k: k,
		info: info, lay: lay}

	s.values, s.operations, s.pointers, s.variables, s.polls, s.control = vals, ops, ptrs, vars, pol, ctrl
	s.builtins = &builtins{e: e, vals: vals, info: info}
	s.crossing = &crossing{e: e, v: v, m: m, g: g, on: on, info: info}
	s.transfers = &transfers{e: e, el: el, vals: vals, ptrs: ptrs, on: on, addr: addr, each: each, mem: mem,
		gath: gath, offs: offs, grp: grp, info: info}
	s.atomics = &atomics{e: e, v: v, vals: vals, on: on, addr: addr, each: each, mem: mem, gath: gath, offs: offs,
		subs: subs, info: info}
	s.entry = &entry{e: e, m: m, vars: vars, on: on, polls: pol, out: out, ctrl: ctrl, subs: subs, block: s.block, k: k,
		info: info, lay: lay, step: 1}
	if geo.Pair != 0 {
		s.entry.step = 2
	}
	return s
}

// block selects the instructions of a block. It reports whether its end cannot be reached.
func (s *selector) block(b *kir.Block) (ends bool) {
	if b == nil {
		return false
	}
	for n, i := range b.Instrs {
		if n+1 < len(b.Instrs) && s.control.decides(i, b.Instrs[n+1]) {
			s.control.compare = i
			continue
		}
		if s.e.err != nil || s.instr(i) {
			return true
		}
	}
	return false
}

// instr selects one instruction. It reports whether nothing after it in its block can be reached.
func (s *selector) instr(i *kir.Instr) (ends bool) {
	switch i.Op {
	case kir.Const:
		// Users take constants as they need them.
	case kir.Builtin:
		s.builtins.builtin(i)
	case kir.VarGet:
		s.variables.get(i)
	case kir.VarSet:
		s.variables.set(i)
	case kir.ParamAddr, kir.RegionAddr, kir.PtrAdd, kir.PtrDiff:
		s.pointers.operation(i)
	case kir.Load:
		s.transfers.load(i)
	case kir.Store:
		s.transfers.store(i)
	case kir.AtomicLoad, kir.AtomicStore, kir.AtomicRMW, kir.AtomicCAS:
		s.atomics.operation(i)
	case kir.Fence, kir.SimdBarrier:
		s.transfers.fence(i)
	case kir.Barrier:
		s.transfers.fence(i)
		s.polls.barrier()
	case kir.Reduce:
		s.values.result(i, s.crossing.reduce(i, s.values.laneVal(i.Args[0])))
	case kir.ScanInclusive, kir.ScanExclusive:
		s.values.result(i, s.crossing.scan(i, s.values.laneVal(i.Args[0])))
	case kir.Shuffle:
		s.values.result(i, s.crossing.shuffle(i, s.values.laneVal(i.Args[0]), s.values.laneVal(i.Args[1])))
	case kir.Ballot:
		s.values.result(i, s.crossing.ballot(i, s.values.laneVal(i.Args[0])))
	case kir.BroadcastFirst:
		s.values.result(i, s.crossing.broadcastFirst(i, s.values.laneVal(i.Args[0])))
	case kir.If:
		return s.control.ifInstr(i)
	case kir.Loop:
		return s.control.loop(i)
	case kir.BlockOp:
		return s.control.blockOp(i)
	case kir.Break, kir.Continue, kir.Return:
		s.control.escape(i)
		return true
	default:
		switch {
		case involves(i, kir.Type.IsPtr):
			s.pointers.operation(i)
		case i.Op.Pure():
			s.operations.compute(i)
		default:
			s.e.unsupported(i, "unknown operation")
		}
	}
	return false
}

package interp

import (
	"math/bits"

	"github.com/mlxlua/mlxlua/metal/kir"
	"github.com/mlxlua/mlxlua/metal/launch"
)

// unset is the validating executor's knowledge of registers that hold what the source never set: variables before
// their first assignment, a lane's own memory before its first write, and what is computed from either. To copy such a
// value is no fault, since whoever copies a structure or joins two branches does. It is one to let a branch, an address
// or an atomic operation depend on it, or to write it to memory that others read; of structures and vectors the parts
// that are unset count as unwritten there.
type unset struct {
	lanes []uint32 // by register: the lanes that hold nothing
	why   []reason // by register, where lanes are set
	load  uint32   // of the load going on
	from  reason
}

// reason is what to say of an unset value.
type reason struct {
	fault *launch.Fault // of the read, if it was one of memory
	name  string        // or the variable
	part  bool          // of a structure or vector, and as it is there
}

type unsetVar struct {
	slot uint32
	why  reason
}

// forget readies the frame's knowledge for another SIMD-group.
func (f *frame) forget() {
	n := f.exe.regBytes/8 + 1
	if f.unset == nil {
		f.unset = &unset{lanes: make([]uint32, n), why: make([]reason, n)}
	}
	clear(f.unset.lanes)
	for _, v := range f.exe.unset {
		f.unset.lanes[v.slot/8], f.unset.why[v.slot/8] = allLanes, v.why
	}
}

// loaded notes that a lane's load found nothing.
func (u *unset) loaded(lane int, why reason) {
	if u.load == 0 {
		u.from = why
	}
	u.load |= 1 << lane
}

// pure notes what an operation on lanes makes, before it runs.
func (u *unset) pure(f *frame, in *inst) {
	if in.op == kir.MatMulAcc {
		u.matMulAcc(f, in)
		return
	}
	var un [3]uint32
	from := -1 // the first unset operand
	regs := [...]uint32{in.a, in.b, in.c}
	for i, r := range regs[:in.args] {
		if un[i] = u.lanes[r/8]; un[i] != 0 && from < 0 {
			from = i
		}
	}
	d := in.d / 8
	if in.op == kir.VarSet {
		u.lanes[d] = u.lanes[d]&^f.mask | un[0]&f.mask
		if un[0]&f.mask != 0 {
			u.why[d] = u.why[in.a/8]
		}
		return
	}
	all := un[0] | un[1] | un[2]
	if all == 0 {
		u.lanes[d] = 0
		return
	}
	why := u.why[regs[from]/8]
	switch in.op {
	case kir.Select:
		c := *boolAt(f, in.a)
		all = un[0] | un[1]&c | un[2]&^c
		switch {
		case un[1]&c&f.mask != 0:
			why = u.why[in.b/8]
		case un[2]&^c&f.mask != 0:
			why = u.why[in.c/8]
		}
	case kir.Shuffle:
		all = un[1] | u.shuffled(f, in, un[0]&f.mask)
	case kir.BroadcastFirst, kir.Ballot, kir.Reduce, kir.ScanInclusive, kir.ScanExclusive:
		all = u.together(f, in, un[0])
	case kir.VarGet, kir.Convert, kir.Invalid:
	default:
		why.part = false
	}
	if in.logical {
		a, b := *boolAt(f, in.a), *boolAt(f, in.b)
		if in.op == kir.And {
			a, b = ^a, ^b
		}
		all &^= a&^un[0] | b&^un[1]
	}
	u.lanes[d], u.why[d] = all, why
}

// shuffled returns the lanes that get an unset value from another.
func (u *unset) shuffled(f *frame, in *inst, from uint32) (out uint32) {
	index, g := at[uint32](f, in.b), in.c-1
	for i := range index {
		out |= from >> ((uint32(i)&^g | index[i]&g) % lanes) & 1 << i
	}
	return out
}

// matMulAcc notes an element of a product of matrices, which is unset where an element of its row or column is.
func (u *unset) matMulAcc(f *frame, in *inst) {
	regs := [...]uint32{in.a, in.b, in.c, uint32(in.imm)}
	var un [4]uint32
	d, from := in.d/8, -1
	for i, r := range regs {
		if un[i] = u.lanes[r/8]; i < 3 {
			un[i] &= f.mask
		}
		if un[i] != 0 && from < 0 {
			from = i
		}
	}
	all := un[3]
	for i := range lanes {
		row, col := kir.MatrixPlace(i)
		for k := range 8 {
			all |= (un[k%2]>>kir.MatrixLane(row, k) | un[2]>>kir.MatrixLane(k, col)) & 1 << i
		}
	}
	u.lanes[d] = all
	if from >= 0 {
		u.why[d] = u.why[regs[from]/8]
		u.why[d].part = false
	}
}

// together returns the lanes that an operation of the whole group makes unset: all of those where one active lane is,
// or for BroadcastFirst where the first is.
func (u *unset) together(f *frame, in *inst, un uint32) (out uint32) {
	group := allLanes >> (lanes - in.c)
	for base := uint32(0); base < lanes; base += in.c {
		active := f.mask >> base & group
		if in.op == kir.BroadcastFirst {
			active &= -active
		}
		if un>>base&active != 0 {
			out |= group << base
		}
	}
	return out
}

// depends fails the frame if an active lane's register is unset.
func (u *unset) depends(f *frame, in *inst, reg uint32) bool {
	if u.lanes[reg/8]&f.mask == 0 {
		return false
	}
	why := u.why[reg/8]
	if why.fault != nil {
		f.fault = why.fault
		return true
	}
	f.fail(in, why.name, 0, 1, "read of the variable %s before anything was assigned to it", why.name)
	return true
}

// decides fails the frame if a branch depends on an unset value.
func (u *unset) decides(f *frame, in *inst) bool {
	if !u.depends(f, in, in.a) {
		return false
	}
	f.state = stopped
	return true
}

// memory does an access.
func (u *unset) memory(f *frame, in *inst) {
	var parts uint32
	regs := [...]uint32{in.a, in.b, in.c}
	for i, r := range regs[:in.args] {
		if i == 1 && in.op == kir.Store && (in.space == kir.Thread || u.why[r/8].part) {
			parts = u.lanes[r/8] & f.mask
		} else if u.depends(f, in, r) {
			return
		}
	}
	pointers := *at[uint64](f, in.a) // the result's register may be the pointer's
	u.load = 0
	in.fn(f, in)
	switch in.op {
	case kir.Load, kir.AtomicLoad, kir.AtomicRMW, kir.AtomicCAS:
		u.lanes[in.d/8], u.why[in.d/8] = u.load, u.from
	}
	if f.fault != nil {
		return
	}
	for ; parts != 0; parts &= parts - 1 {
		i := bits.TrailingZeros32(parts) % lanes
		clear(f.shadow.written(f, kir.PtrObject(pointers[i]), i, uint64(kir.PtrOffset(pointers[i])), in.imm))
	}
}

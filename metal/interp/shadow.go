package interp

import (
	"math/bits"
	"unsafe"

	"github.com/mlxlua/mlxlua/metal/kir"
	"github.com/mlxlua/mlxlua/metal/launch"
)

// shadow is the validating executor's knowledge of memory: which bytes were written, and in races who touched each
// last.
type shadow struct {
	races
	// device says which bytes of the buffers were ever written, see Launch.Written.
	device [][]bool
}

func newShadow(p *Executable) *shadow { return &shadow{races: newRaces(p)} }

// check notes the accesses of one instruction, before it runs; it returns false after recording a fault. Pointers that
// are out of range, and writes to what is read-only, are left to the access itself. v holds what a write stores, lane
// after lane. It is stored lane by lane here already, so that each lane finds what those before it left.
//
//go:norace
func (s *shadow) check(f *frame, in *inst, p *[lanes]uint64, size uint64, acc launch.AccessKind, v []byte) bool {
	if acc.IsAtomic() {
		defer s.met(f, in)
	}
	for m := f.mask; m != 0; m &= m - 1 {
		i := bits.TrailingZeros32(m) % lanes
		ob, off := kir.PtrObject(p[i]), uint64(kir.PtrOffset(p[i]))
		if ob >= len(f.objs) {
			return true
		}
		o := &f.objs[ob]
		if o.space != in.space || acc.Writes() && o.write != in.space {
			return true
		}
		if off > o.size || o.size-off < size {
			return true
		}
		if !s.initialised(f, in, ob, i, off, size, acc) {
			return false
		}
		if o.space != kir.Threadgroup && o.space != kir.Device {
			continue
		}
		a := touch{f: f, in: in, ob: ob, lane: i, off: off, acc: acc, now: unsafe.Slice((*byte)(o.base), o.size)[off:][:size]}
		if acc == launch.Write {
			a.v = v[uint64(i)*size:][:size]
		}
		if !s.ordered(&a) {
			return false
		}
		copy(a.now, a.v)
	}
	return true
}

// written says of the bytes of an access by lane i whether they were written; nil if nobody knows.
func (s *shadow) written(f *frame, ob, i int, off, size uint64) []bool {
	o := &f.objs[ob]
	switch o.space {
	case kir.Threadgroup:
		off += uint64(uintptr(o.base) - uintptr(unsafe.Pointer(&f.group.mem[0])))
		return f.group.inited[off : off+size]
	case kir.Thread:
		off += uint64(uintptr(o.base)-uintptr(unsafe.Pointer(&f.thread[0]))) + uint64(i)*uint64(o.stride)
		return f.inited[off : off+size]
	}
	if ob-1 >= len(s.device) || uint64(len(s.device[ob-1])) < off+size {
		return nil
	}
	return s.device[ob-1][off : off+size]
}

// parts says that an object consists of structures or vectors, of which parts may be set.
func (f *frame) parts(ob int) bool {
	k := f.exe.kernel
	if i := ob - 1 - len(k.Params); i >= 0 {
		return k.Regions[i].Part
	}
	return k.Params[ob-1].Part
}

// initialised notes what a lane writes. Reading what nothing wrote is a fault once something depends on what was read;
// for an atomic operation, at once.
func (s *shadow) initialised(f *frame, in *inst, ob, i int, off, size uint64, acc launch.AccessKind) bool {
	onlyWrites := acc == launch.Write || in.op == kir.AtomicStore || in.op == kir.AtomicRMW && in.mode == kir.ModeExchange
	w := s.written(f, ob, i, off, size)
	for j := range w {
		if w[j] {
			continue
		}
		if onlyWrites { // others may read it at the same time
			w[j] = true
			continue
		}
		o := &f.objs[ob]
		name, elem := f.describe(ob)
		index := kir.PtrOffset(at[uint64](f, in.a)[i]) / elem
		f.fail(in, name, index, int64(o.size)/elem, "%s of %s memory %s[%d] before anything was written to it",
			acc, o.space, name, index)
		f.fault.Unwritten = o.space == kir.Device || o.space == kir.Constant
		f.concerns(ob)
		if in.op == kir.Load {
			f.unset.loaded(i, reason{fault: f.fault, part: f.parts(ob)})
			f.fault = nil
			return true
		}
		return false
	}
	return true
}

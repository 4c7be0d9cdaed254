package interp

import (
	"bytes"
	"math/bits"
	"unsafe"

	"github.com/mlxlua/mlxlua/metal/kir"
)

// shadow is the validating executor's knowledge of who touched which byte. A race is two accesses to one byte, at
// least
// one a write, from two SIMD-groups with no barrier between them that orders that memory; from two threadgroups,
// no barrier ever does. Lanes of one SIMD-group go in step, so their accesses have an order. Two writes of equal
// bytes are not
// reported: they do no harm and kernels rely on it. Kernels with atomics or fences order memory by
// means that this check does not follow, so it leaves them out; reads of uninitialised memory are found in all
// kernels.
type shadow struct {
	prog  *Program
	pages map[uint64]*[pageSize]lastUsers // device memory: by object and page
	// device says which bytes of the buffers were ever written, see Launch.Written.
	device [][]bool
}

const pageSize = 4096

// user is a SIMD-group at a time; the zero user is nobody.
type user struct {
	group int64 // threadgroup's index + 1
	epoch uint32
	sg    int32 // severalGroups if several SIMD-groups did
}

// severalGroups stands for more than one SIMD-group: in conflict with any.
const severalGroups = -1

// lastUsers is who wrote and who read a byte last.
type lastUsers struct{ writer, reader user }

func newShadow(p *Program) *shadow {
	return &shadow{prog: p, pages: map[uint64]*[pageSize]lastUsers{}}
}

// unordered says that b may run at the same time as a, which came first here.
func unordered(a, b user) bool {
	return a.group != 0 && (a.group != b.group || a.epoch == b.epoch && a.sg != b.sg)
}

// check notes the accesses of one instruction, before it runs; it returns false after recording a fault. Pointers
// that are out of
// range are left to the access itself.
func (s *shadow) check(f *frame, in *inst, p *[lanes]uint64, size uint64, acc access) bool {
	for m := f.mask; m != 0; m &= m - 1 {
		i := bits.TrailingZeros32(m) % lanes
		ob, off := kir.PtrObject(p[i]), uint64(kir.PtrOffset(p[i]))
		if ob >= len(f.objs) || f.objs[ob].space != in.space {
			return true
		}
		o := &f.objs[ob]
		if off > o.size || o.size-off < size {
			return true
		}
		if !s.initialised(f, in, ob, i, off, size, acc) || !s.ordered(f, in, ob, i, off, size, acc) {
			return false
		}
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
	k := f.prog.kernel
	if i := ob - 1 - len(k.Params); i >= 0 {
		return k.Regions[i].Part
	}
	return k.Params[ob-1].Part
}

// initialised notes what a lane writes. Reading what nothing wrote is a fault once something depends on what was read;
// for an atomic operation, at once.
func (s *shadow) initialised(f *frame, in *inst, ob, i int, off, size uint64, acc access) bool {
	onlyWrites := acc == accWrite || in.op == kir.AtomicStore || in.op == kir.AtomicRMW && in.mode == kir.ModeExchange
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
			accessName[acc], o.space, name, index)
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

func (s *shadow) ordered(f *frame, in *inst, ob, i int, off, size uint64, acc access) bool {
	o := &f.objs[ob]
	if s.prog.racy || o.space != kir.Threadgroup && o.space != kir.Device {
		return true
	}
	me := user{group: f.group.index + 1, epoch: f.group.epochs[0], sg: int32(f.sg)}
	if o.space == kir.Threadgroup {
		me.epoch = f.group.epochs[1]
	}
	for j := off; j < off+size; j++ {
		c := s.cell(f, ob, o, j)
		other, did := user{}, ""
		switch {
		case unordered(c.writer, me) && !(acc == accWrite && s.sameByte(f, in, o, i, j, j-off, size)):
			other, did = c.writer, "wrote"
		case acc == accWrite && unordered(c.reader, me) && !s.sameByte(f, in, o, i, j, j-off, size):
			other, did = c.reader, "read"
		}
		if other.group != 0 {
			name, elem := f.describe(ob)
			index := int64(off) / elem
			f.fail(in, name, index, int64(o.size)/elem,
				"race on %s memory: %s of %s[%d], which %s %s with no barrier between them",
				o.space, accessName[acc], name, index, whichUser(other, me), did)
			f.concerns(ob)
			return false
		}
		if acc == accWrite {
			c.writer = me
			continue
		}
		if unordered(c.reader, me) {
			c.reader = user{group: me.group, epoch: me.epoch, sg: severalGroups}
		} else {
			c.reader = me
		}
	}
	return true
}

func whichUser(u, me user) string {
	if u.group != me.group {
		return "another threadgroup"
	}
	return "another SIMD-group"
}

func (s *shadow) cell(f *frame, ob int, o *object, off uint64) *lastUsers {
	if o.space == kir.Threadgroup {
		return &f.group.cells[off+uint64(uintptr(o.base)-uintptr(unsafe.Pointer(&f.group.mem[0])))]
	}
	key := uint64(ob)<<kir.PtrObjectShift | off/pageSize
	page := s.pages[key]
	if page == nil {
		page = new([pageSize]lastUsers)
		s.pages[key] = page
	}
	return &page[off%pageSize]
}

// sameByte says that the store leaves the byte at off as it is; n is the byte's place in the stored value.
func (s *shadow) sameByte(f *frame, in *inst, o *object, i int, off, n, size uint64) bool {
	now := unsafe.Slice((*byte)(o.base), o.size)[off : off+1]
	v := unsafe.Slice((*byte)(unsafe.Add(f.base, in.b)), lanes*size)[uint64(i)*size+n:]
	return bytes.Equal(now, v[:1])
}

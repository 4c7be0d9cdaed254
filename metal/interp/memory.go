package interp

import (
	"math/bits"
	"runtime"
	"unsafe"

	"github.com/mlxlua/mlxlua/metal/kir"
	"github.com/mlxlua/mlxlua/metal/launch"
)

// object is one piece of addressable memory: what a pointer's high 16 bits name.
type object struct {
	base   unsafe.Pointer
	size   uint64 // bytes a lane may touch
	stride uintptr
	space  kir.Space
	// write is the space that pointers must be of that it is written through: noSpace if it is read-only.
	write kir.Space
}

// strictAlign says that unaligned plain accesses may trap here; they then go byte by byte.
const strictAlign = runtime.GOARCH != "amd64" && runtime.GOARCH != "arm64" && runtime.GOARCH != "386"

// The accessors below touch memory that kernels may share between threadgroups without order: what a racy kernel
// reads is then unspecified, as on a GPU, but the process must not stop. Hence go:norace: the race detector watches
// mlxlua, not the kernels that it runs.

//go:norace
func load[T unsignedInt](f *frame, in *inst) {
	p, d := at[uint64](f, in.a), at[T](f, in.d)
	size := uint64(unsafe.Sizeof(d[0]))
	if f.shadow != nil && !f.shadow.check(f, in, p, size, launch.Read, nil) {
		return
	}
	m := f.mask
	if m != allLanes {
		*d = [lanes]T{}
	}
	ob, o := -1, object{}
	for ; m != 0; m &= m - 1 {
		i := bits.TrailingZeros32(m) % lanes
		q := p[i]
		if int(q>>kir.PtrObjectShift) != ob {
			ob = int(q >> kir.PtrObjectShift)
			if ob >= len(f.objs) {
				f.badAccess(in, q, size, launch.Read)
				return
			}
			o = f.objs[ob]
			if o.space != in.space {
				f.badAccess(in, q, size, launch.Read)
				return
			}
		}
		off := uint64(kir.PtrOffset(q))
		if off > o.size || o.size-off < size {
			f.badAccess(in, q, size, launch.Read)
			return
		}
		d[i] = peek[T](unsafe.Add(o.base, uintptr(i)*o.stride+uintptr(off)))
	}
}

//go:norace
func store[T unsignedInt](f *frame, in *inst) {
	p, v := at[uint64](f, in.a), at[T](f, in.b)
	size := uint64(unsafe.Sizeof(v[0]))
	if f.shadow != nil && !f.shadow.check(f, in, p, size, launch.Write, bytesOf(v)) {
		return
	}
	ob, o := -1, object{}
	for m := f.mask; m != 0; m &= m - 1 {
		i := bits.TrailingZeros32(m) % lanes
		q := p[i]
		if int(q>>kir.PtrObjectShift) != ob {
			ob = int(q >> kir.PtrObjectShift)
			if ob >= len(f.objs) {
				f.badAccess(in, q, size, launch.Write)
				return
			}
			o = f.objs[ob]
			if o.write != in.space {
				f.badAccess(in, q, size, launch.Write)
				return
			}
		}
		off := uint64(kir.PtrOffset(q))
		if off > o.size || o.size-off < size {
			f.badAccess(in, q, size, launch.Write)
			return
		}
		poke(unsafe.Add(o.base, uintptr(i)*o.stride+uintptr(off)), v[i])
	}
}

// bytesOf returns the bytes of a register, lane after lane.
func bytesOf[T unsignedInt](v *[lanes]T) []byte {
	return unsafe.Slice((*byte)(unsafe.Pointer(v)), unsafe.Sizeof(*v))
}

//go:norace
func peek[T unsignedInt](p unsafe.Pointer) T {
	if strictAlign && uintptr(p)&(unsafe.Sizeof(T(0))-1) != 0 {
		var v T
		b := (*[8]byte)(unsafe.Pointer(&v))
		for i := uintptr(0); i < unsafe.Sizeof(v); i++ {
			b[i] = *(*byte)(unsafe.Add(p, i))
		}
		return v
	}
	return *(*T)(p)
}

//go:norace
func poke[T unsignedInt](p unsafe.Pointer, v T) {
	if strictAlign && uintptr(p)&(unsafe.Sizeof(v)-1) != 0 {
		b := unsafe.Slice((*byte)(unsafe.Pointer(&v)), unsafe.Sizeof(v))
		for i := range b {
			*(*byte)(unsafe.Add(p, i)) = b[i]
		}
		return
	}
	*(*T)(p) = v
}

// resolve returns the address that lane i means by q, or nil after recording the fault. It is load's and store's
// check for one lane.
func (f *frame) resolve(in *inst, i int, q, size uint64, acc launch.AccessKind) unsafe.Pointer {
	ob := kir.PtrObject(q)
	if ob >= len(f.objs) {
		f.badAccess(in, q, size, acc)
		return nil
	}
	o := &f.objs[ob]
	if o.space != in.space || acc.Writes() && o.write != in.space {
		f.badAccess(in, q, size, acc)
		return nil
	}
	off := uint64(kir.PtrOffset(q))
	if off > o.size || o.size-off < size {
		f.badAccess(in, q, size, acc)
		return nil
	}
	return unsafe.Add(o.base, uintptr(i)*o.stride+uintptr(off))
}

// loadBool and storeBool: one byte in memory, one bit in registers.
//
//go:norace
func loadBool(f *frame, in *inst) {
	p := at[uint64](f, in.a)
	if f.shadow != nil && !f.shadow.check(f, in, p, 1, launch.Read, nil) {
		return
	}
	var d uint32
	for m := f.mask; m != 0; m &= m - 1 {
		i := bits.TrailingZeros32(m) % lanes
		q := f.resolve(in, i, p[i], 1, launch.Read)
		if q == nil {
			return
		}
		d |= bit(*(*byte)(q) != 0) << i
	}
	*boolAt(f, in.d) = d
}

//go:norace
func storeBool(f *frame, in *inst) {
	p, v := at[uint64](f, in.a), *boolAt(f, in.b)
	if f.shadow != nil {
		var b [lanes]byte
		for i := range b {
			b[i] = byte(v >> i & 1)
		}
		if !f.shadow.check(f, in, p, 1, launch.Write, b[:]) {
			return
		}
	}
	for m := f.mask; m != 0; m &= m - 1 {
		i := bits.TrailingZeros32(m) % lanes
		q := f.resolve(in, i, p[i], 1, launch.Write)
		if q == nil {
			return
		}
		*(*byte)(q) = byte(v >> i & 1)
	}
}

package interp

import (
	"math"
	"math/bits"
	"sync/atomic"
	"unsafe"

	"github.com/mlxlua/mlxlua/metal/kir"
	"github.com/mlxlua/mlxlua/metal/launch"
)

// word is what an atomic operation works on: the bits of I32, U32, F32 (uint32), I64, U64 (uint64) or U8.
type word interface{ uint8 | uint32 | uint64 }

func loadWord[T word](p unsafe.Pointer) T {
	switch unsafe.Sizeof(T(0)) {
	case 1:
		q, i := wordOf(p)
		w := atomic.LoadUint32(q)
		return T((*[4]byte)(unsafe.Pointer(&w))[i])
	case 4:
		return T(atomic.LoadUint32((*uint32)(p)))
	}
	return T(atomic.LoadUint64((*uint64)(p)))
}

func casWord[T word](p unsafe.Pointer, old, new T) bool {
	switch unsafe.Sizeof(T(0)) {
	case 1:
		q, i := wordOf(p)
		for {
			w := atomic.LoadUint32(q)
			next := w
			b := (*[4]byte)(unsafe.Pointer(&next))
			if b[i] != byte(old) {
				return false
			}
			if b[i] = byte(new); atomic.CompareAndSwapUint32(q, w, next) {
				return true
			}
		}
	case 4:
		return atomic.CompareAndSwapUint32((*uint32)(p), uint32(old), uint32(new))
	}
	return atomic.CompareAndSwapUint64((*uint64)(p), uint64(old), uint64(new))
}

// wordOf returns the four bytes that a byte is one of, and which. Go has no atomic operations on bytes; all memory that
// kernels see begins and ends on multiples of four bytes, whatever its length.
func wordOf(p unsafe.Pointer) (*uint32, uintptr) {
	i := uintptr(p) & 3
	return (*uint32)(unsafe.Add(p, -int(i))), i
}

func swapWord[T word](p unsafe.Pointer, new T) T {
	switch unsafe.Sizeof(T(0)) {
	case 1:
		for {
			if old := loadWord[T](p); casWord(p, old, new) {
				return old
			}
		}
	case 4:
		return T(atomic.SwapUint32((*uint32)(p), uint32(new)))
	}
	return T(atomic.SwapUint64((*uint64)(p), uint64(new)))
}

// eachAtomic calls op with the address of every active lane, in lane order; it returns after the first fault.
func eachAtomic(f *frame, in *inst, size uint64, op func(i int, p unsafe.Pointer)) {
	ptrs, acc := at[uint64](f, in.a), launch.Atomic
	if in.op == kir.AtomicLoad {
		acc = launch.AtomicRead
	}
	if f.shadow != nil && !f.shadow.check(f, in, ptrs, size, acc, nil) {
		return
	}
	for m := f.mask; m != 0; m &= m - 1 {
		i := bits.TrailingZeros32(m) % lanes
		p := f.resolve(in, i, ptrs[i], size, acc)
		if p == nil {
			return
		}
		if uintptr(p)&uintptr(size-1) != 0 {
			f.badAccess(in, ptrs[i], size, acc)
			return
		}
		op(i, p)
	}
}

func atomicLoad[T word](f *frame, in *inst) {
	var d [lanes]T // the result's register may be the pointer's
	eachAtomic(f, in, uint64(unsafe.Sizeof(T(0))), func(i int, p unsafe.Pointer) { d[i] = loadWord[T](p) })
	*at[T](f, in.d) = d
}

func atomicStore[T word](f *frame, in *inst) {
	v := at[T](f, in.b)
	eachAtomic(f, in, uint64(unsafe.Sizeof(T(0))), func(i int, p unsafe.Pointer) { swapWord(p, v[i]) })
}

func atomicExchange[T word](f *frame, in *inst) {
	v := *at[T](f, in.b)
	var d [lanes]T
	eachAtomic(f, in, uint64(unsafe.Sizeof(T(0))), func(i int, p unsafe.Pointer) { d[i] = swapWord(p, v[i]) })
	*at[T](f, in.d) = d
}

func atomicCAS[T word](f *frame, in *inst) {
	want, v := *at[T](f, in.b), *at[T](f, in.c)
	var d [lanes]T
	eachAtomic(f, in, uint64(unsafe.Sizeof(T(0))), func(i int, p unsafe.Pointer) {
		for {
			d[i] = loadWord[T](p)
			if d[i] != want[i] || casWord(p, want[i], v[i]) {
				return
			}
		}
	})
	*at[T](f, in.d) = d
}

// atomicRMW makes the function of an AtomicRMW with that operation.
func atomicRMW[T word](op func(a, b T) T) laneFunc {
	return func(f *frame, in *inst) {
		v := *at[T](f, in.b)
		var d [lanes]T
		eachAtomic(f, in, uint64(unsafe.Sizeof(T(0))), func(i int, p unsafe.Pointer) {
			for {
				d[i] = loadWord[T](p)
				if casWord(p, d[i], op(d[i], v[i])) {
					return
				}
			}
		})
		*at[T](f, in.d) = d
	}
}

func bitsF32(op func(a, b float32) float32) func(a, b uint32) uint32 {
	return func(a, b uint32) uint32 {
		return math.Float32bits(op(math.Float32frombits(a), math.Float32frombits(b)))
	}
}

// atomicFunc returns the function of an atomic operation on a type, nil if it has none.
func atomicFunc(op kir.Op, mode kir.Mode, t kir.Type) laneFunc {
	switch t.Size() {
	case 1:
		return atomicWord[uint8](op, mode, false, nil)
	case 8:
		return atomicWord[uint64](op, mode, t == kir.I64, func(a, b uint64) bool { return int64(a) < int64(b) })
	}
	if t == kir.F32 && op == kir.AtomicRMW {
		switch mode {
		case kir.ModeAdd:
			return atomicRMW(bitsF32(func(a, b float32) float32 { return a + b }))
		case kir.ModeSub:
			return atomicRMW(bitsF32(func(a, b float32) float32 { return a - b }))
		case kir.ModeMin:
			return atomicRMW(bitsF32(fmin[float32]))
		case kir.ModeMax:
			return atomicRMW(bitsF32(fmax[float32]))
		}
	}
	return atomicWord[uint32](op, mode, t == kir.I32, func(a, b uint32) bool { return int32(a) < int32(b) })
}

func atomicWord[T word](op kir.Op, mode kir.Mode, signed bool, less func(a, b T) bool) laneFunc {
	if !signed {
		less = func(a, b T) bool { return a < b }
	}
	switch op {
	case kir.AtomicLoad:
		return atomicLoad[T]
	case kir.AtomicStore:
		return atomicStore[T]
	case kir.AtomicCAS:
		return atomicCAS[T]
	}
	switch mode {
	case kir.ModeAdd:
		return atomicRMW(func(a, b T) T { return a + b })
	case kir.ModeSub:
		return atomicRMW(func(a, b T) T { return a - b })
	case kir.ModeAnd:
		return atomicRMW(func(a, b T) T { return a & b })
	case kir.ModeOr:
		return atomicRMW(func(a, b T) T { return a | b })
	case kir.ModeXor:
		return atomicRMW(func(a, b T) T { return a ^ b })
	case kir.ModeExchange:
		return atomicExchange[T]
	case kir.ModeMin:
		return atomicRMW(func(a, b T) T {
			if less(b, a) {
				return b
			}
			return a
		})
	case kir.ModeMax:
		return atomicRMW(func(a, b T) T {
			if less(a, b) {
				return b
			}
			return a
		})
	}
	return nil
}

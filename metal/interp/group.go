package interp

import (
	"math/bits"

	"github.com/mlxlua/mlxlua/metal/kir"
)

// Convergent operations: they read other lanes, so their result never shares a register with an operand. in.c is the
// group's size, 32 or 4.

func shuffle[T unsignedInt](f *frame, in *inst) {
	d, a, l := at[T](f, in.d), at[T](f, in.a), at[uint32](f, in.b)
	m, g := f.mask, in.c-1
	for i := range d {
		j := (uint32(i)&^g | l[i]&g) % lanes
		d[i] = a[j] & -T(m>>j&1)
	}
}

func shuffleBool(f *frame, in *inst) {
	a, l, g := *boolAt(f, in.a)&f.mask, at[uint32](f, in.b), in.c-1
	var d uint32
	for i := range l {
		d |= a >> (uint32(i)&^g | l[i]&g) & 1 << i
	}
	*boolAt(f, in.d) = d
}

func broadcastFirst[T unsignedInt](f *frame, in *inst) {
	d, a := at[T](f, in.d), at[T](f, in.a)
	for base := 0; base < lanes; base += int(in.c) {
		first := base + bits.TrailingZeros32(f.mask>>base)
		var v T
		if first < base+int(in.c) {
			v = a[first%lanes]
		}
		for i := base; i < base+int(in.c); i++ {
			d[i%lanes] = v
		}
	}
}

func broadcastFirstBool(f *frame, in *inst) {
	var d uint32
	a, group := *boolAt(f, in.a)&f.mask, allLanes>>(lanes-in.c)
	for base := 0; base < lanes; base += int(in.c) {
		active := f.mask >> base & group
		if active != 0 && a>>base&(active&-active) != 0 {
			d |= group << base
		}
	}
	*boolAt(f, in.d) = d
}

func ballot(f *frame, in *inst) {
	d, a := at[uint64](f, in.d), *boolAt(f, in.a)&f.mask
	if in.c == lanes {
		for i := range d {
			d[i] = uint64(a)
		}
		return
	}
	for i := range d {
		d[i] = uint64(a >> (i &^ 3) & 15)
	}
}

// reduceBool makes Reduce on Bool; bits of inactive lanes count as the identity.
func reduceBool(mode kir.Mode) laneFunc {
	return func(f *frame, in *inst) {
		a, group := *boolAt(f, in.a)&f.mask, allLanes>>(lanes-in.c)
		if mode == kir.ModeAnd {
			a |= ^f.mask
		}
		var d uint32
		for base := 0; base < lanes; base += int(in.c) {
			v := a >> base & group
			switch mode {
			case kir.ModeAnd:
				v = bit(v == group)
			case kir.ModeOr:
				v = bit(v != 0)
			default:
				v = uint32(bits.OnesCount32(v)) & 1
			}
			d |= group & -v << base
		}
		*boolAt(f, in.d) = d
	}
}

// reduce makes Reduce by kir's tree; id is the identity.
func reduce[T number](op func(a, b T) T, id T) laneFunc {
	return func(f *frame, in *inst) {
		v := withIdentity(f, in, id)
		n := int(in.c)
		for base := 0; base < lanes; base += n {
			g := v[base : base+n]
			for d := n / 2; d > 0; d /= 2 {
				for i := range g[:d] {
					g[i] = op(g[i], g[i+d])
				}
			}
			for i := range g {
				g[i] = g[0]
			}
		}
		*at[T](f, in.d) = v
	}
}

// scan makes both scans by kir's steps; first is what an exclusive scan yields in the lowest active lane.
func scan[T number](op func(a, b T) T, id, first T, exclusive bool) laneFunc {
	return func(f *frame, in *inst) {
		v := withIdentity(f, in, id)
		n := int(in.c)
		for base := 0; base < lanes; base += n {
			g := v[base : base+n]
			for d := 1; d < n; d *= 2 {
				for i := n - 1; i >= d; i-- {
					g[i] = op(g[i-d], g[i])
				}
			}
			if !exclusive {
				continue
			}
			copy(g[1:], g[:n-1])
			for i := range g {
				g[i] = first
				if f.mask>>(base+i)&1 != 0 {
					break
				}
			}
		}
		*at[T](f, in.d) = v
	}
}

func withIdentity[T any](f *frame, in *inst, id T) [lanes]T {
	v := *at[T](f, in.a)
	if f.mask != allLanes {
		for i := range v {
			if f.mask>>i&1 == 0 {
				v[i] = id
			}
		}
	}
	return v
}

// overHalf lifts an operation on float32 to a half type.
func overHalf(
	op func(a, b float32) float32, wide func(uint16) float32, narrow func(float32) uint16,
) func(a, b uint16) uint16 {
	return func(a, b uint16) uint16 { return narrow(op(wide(a), wide(b))) }
}

// matMulAcc makes MatMulAcc by kir's order; see preparer.matMulAcc for its operands.
func matMulAcc[T float](fma func(a, b, c T) T) laneFunc {
	return func(f *frame, in *inst) {
		a := [2][lanes]T{active[T](f, in.a), active[T](f, in.b)}
		b, c, d := active[T](f, in.c), at[T](f, uint32(in.imm)), at[T](f, in.d)
		for i := range d {
			row, col := kir.MatrixPlace(i)
			sum := c[i]
			for k := range 8 {
				sum = fma(a[k%2][kir.MatrixLane(row, k)%lanes], b[kir.MatrixLane(k, col)%lanes], sum)
			}
			d[i] = sum
		}
	}
}

// active returns a value with zeros in the lanes that are not active.
func active[T float](f *frame, off uint32) [lanes]T {
	v := *at[T](f, off)
	if f.mask != allLanes {
		for i := range v {
			if f.mask>>i&1 == 0 {
				v[i] = 0
			}
		}
	}
	return v
}

// groupFunc returns the function of Reduce or a scan on a type, nil if it has none.
func groupFunc(op kir.Op, mode kir.Mode, t kir.Type) laneFunc {
	switch t {
	case kir.Bool:
		return reduceBool(mode)
	case kir.I8:
		return groupInt[int8](op, mode, t)
	case kir.U8:
		return groupInt[uint8](op, mode, t)
	case kir.I16:
		return groupInt[int16](op, mode, t)
	case kir.U16:
		return groupInt[uint16](op, mode, t)
	case kir.I32:
		return groupInt[int32](op, mode, t)
	case kir.U32:
		return groupInt[uint32](op, mode, t)
	case kir.I64:
		return groupInt[int64](op, mode, t)
	case kir.U64:
		return groupInt[uint64](op, mode, t)
	case kir.F64:
		return groupOf(op, mode, t, floatOp[float64](mode), func(b uint64) float64 { return kir.ToFloat64(t, b) })
	}
	f := floatOp[float32](mode)
	if f == nil {
		return nil
	}
	half := func(b uint64) uint16 { return uint16(b) }
	switch t {
	case kir.F32:
		return groupOf(op, mode, t, f, func(b uint64) float32 { return float32(kir.ToFloat64(t, b)) })
	case kir.F16:
		return groupOf(op, mode, t, overHalf(f, kir.F16ToF32, kir.F32ToF16), half)
	case kir.BF16:
		return groupOf(op, mode, t, overHalf(f, kir.BF16ToF32, kir.F32ToBF16), half)
	}
	return nil
}

func groupInt[T integer](op kir.Op, mode kir.Mode, t kir.Type) laneFunc {
	var f func(a, b T) T
	switch mode {
	case kir.ModeAdd:
		f = func(a, b T) T { return a + b }
	case kir.ModeMul:
		f = func(a, b T) T { return a * b }
	case kir.ModeMin:
		f = func(a, b T) T { return min(a, b) }
	case kir.ModeMax:
		f = func(a, b T) T { return max(a, b) }
	case kir.ModeAnd:
		f = func(a, b T) T { return a & b }
	case kir.ModeOr:
		f = func(a, b T) T { return a | b }
	case kir.ModeXor:
		f = func(a, b T) T { return a ^ b }
	}
	return groupOf(op, mode, t, f, func(b uint64) T { return T(b) })
}

func floatOp[T float](mode kir.Mode) func(a, b T) T {
	switch mode {
	case kir.ModeAdd:
		return func(a, b T) T { return a + b }
	case kir.ModeMul:
		return func(a, b T) T { return a * b }
	case kir.ModeMin:
		return fmin[T]
	case kir.ModeMax:
		return fmax[T]
	}
	return nil
}

func groupOf[T number](op kir.Op, mode kir.Mode, t kir.Type, f func(a, b T) T, from func(uint64) T) laneFunc {
	id, ok := kir.Identity(mode, t)
	if !ok || f == nil {
		return nil
	}
	if op == kir.Reduce {
		return reduce(f, from(id))
	}
	first := id
	if mode == kir.ModeAdd {
		first = 0
	}
	return scan(f, from(id), from(first), op == kir.ScanExclusive)
}

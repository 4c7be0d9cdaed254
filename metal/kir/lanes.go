package kir

// Lanes is the number of lanes of a SIMD-group.
const Lanes = 32

// Identity returns the bits that leave every value of the type as it is under Reduce's or a scan's operation, and
// whether there is one: see semantics.go. For float Add it is -0.
func Identity(mode Mode, t Type) (uint64, bool) {
	m := t.Mask()
	switch mode {
	case ModeAdd:
		if t.IsFloat() {
			return m ^ m>>1, true
		}
		return 0, t.IsInt()
	case ModeMul:
		if t.IsFloat() {
			return FromFloat64(t, 1), true
		}
		return 1, t.IsInt()
	case ModeMin, ModeMax:
		switch {
		case t.IsFloat():
			return quietNaN(t), true
		case !t.IsInt():
			return 0, false
		}
		lo, hi := uint64(0), m
		if t.IsSigned() {
			lo, hi = m^m>>1, m>>1
		}
		if mode == ModeMin {
			return hi, true
		}
		return lo, true
	case ModeAnd:
		return m, t.IsInt() || t == Bool
	case ModeOr, ModeXor:
		return 0, t.IsInt() || t == Bool
	}
	return 0, false
}

func quietNaN(t Type) uint64 {
	switch t {
	case F16:
		return 0x7e00
	case BF16:
		return 0x7fc0
	case F32:
		return 0x7fc00000
	}
	return 0x7ff8 << 48
}

// Op returns the scalar operation behind a mode of Reduce, a scan or AtomicRMW; Invalid for ModeExchange and others.
func (m Mode) Op() Op {
	switch m {
	case ModeAdd:
		return Add
	case ModeSub:
		return Sub
	case ModeMul:
		return Mul
	case ModeMin:
		return Min
	case ModeMax:
		return Max
	case ModeAnd:
		return And
	case ModeOr:
		return Or
	case ModeXor:
		return Xor
	}
	return Invalid
}

// ReduceLanes does Reduce on the lanes of one SIMD-group: v[i] of lanes in active becomes the result, others become 0.
// group is 32 or 4. It reports false if the mode is not defined on the type.
func ReduceLanes(mode Mode, t Type, group int, active uint32, v *[Lanes]uint64) bool {
	if !fillIdentity(mode, t, group, active, v) {
		return false
	}
	op := mode.Op()
	for base := 0; base < Lanes; base += group {
		g := v[base : base+group]
		for d := group / 2; d > 0; d /= 2 {
			for i := 0; i < d; i++ {
				g[i], _ = Eval(op, t, t, g[i], g[i+d])
			}
		}
		for i := range g {
			g[i] = g[0]
		}
	}
	clearInactive(active, v)
	return true
}

// ScanLanes does ScanInclusive or ScanExclusive on the lanes of one SIMD-group: see ReduceLanes.
func ScanLanes(op Op, mode Mode, t Type, group int, active uint32, v *[Lanes]uint64) bool {
	if op != ScanInclusive && op != ScanExclusive || !fillIdentity(mode, t, group, active, v) {
		return false
	}
	first, _ := Identity(mode, t)
	if mode == ModeAdd {
		first = 0 // +0 for floats
	}
	for base := 0; base < Lanes; base += group {
		g := v[base : base+group]
		for d := 1; d < group; d *= 2 {
			for i := group - 1; i >= d; i-- { // downwards: lane i-d still holds the last step's value
				g[i], _ = Eval(mode.Op(), t, t, g[i-d], g[i])
			}
		}
		if op == ScanInclusive {
			continue
		}
		copy(g[1:], g[:group-1])
		for i := range g { // the lowest active lane, and those below it
			g[i] = first
			if active>>(base+i)&1 != 0 {
				break
			}
		}
	}
	clearInactive(active, v)
	return true
}

func fillIdentity(mode Mode, t Type, group int, active uint32, v *[Lanes]uint64) bool {
	id, ok := Identity(mode, t)
	if !ok || group != Lanes && group != 4 {
		return false
	}
	for i := range v {
		if active>>i&1 == 0 {
			v[i] = id
		}
	}
	return true
}

func clearInactive(active uint32, v *[Lanes]uint64) {
	for i := range v {
		if active>>i&1 == 0 {
			v[i] = 0
		}
	}
}

// MatrixPlace returns which elements of an 8 by 8 matrix a lane holds: those of a row, in two columns, from col on. It
// is Metal's layout, which kernels rely on.
func MatrixPlace(lane int) (row, col int) {
	return lane/16*4 + lane/2%4, lane/8%2*4 + lane%2*2
}

// MatrixLane returns the lane that holds the element at a row and column: its element col % 2.
func MatrixLane(row, col int) int {
	return row/4*16 + row%4*2 + col/4*8 + col/2%2
}

// MatMulLanes does MatMulAcc of an element on the lanes of one SIMD-group: a and b hold both elements of each lane, c
// the sums, which it replaces. Lanes that are not active hold zeros.
func MatMulLanes(t Type, element int, a, b *[2][Lanes]uint64, c *[Lanes]uint64) {
	for lane := range c {
		row, col := MatrixPlace(lane)
		for k := range 8 {
			c[lane], _ = Eval(Fma, t, t, a[k%2][MatrixLane(row, k)], b[element][MatrixLane(k, col)], c[lane])
		}
	}
}

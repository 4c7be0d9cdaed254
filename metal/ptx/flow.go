package ptx

import (
	"math/bits"
	"slices"

	"github.com/mlxlua/mlxlua/metal/kir"
)

// flow is what is known of a kernel's values before it is printed.
type flow struct {
	k     *kir.Kernel
	uses  []int // by ID
	sets  [][]*kir.Instr
	loops []*kir.Instr
	first []int // by ID: its place in textual order
	last  []int // by ID, of constructs: the place of the last instruction inside
	order []*kir.Instr

	zeros    []int8 // by ID: trailing zero bits that a value has at least, -1: not asked yet
	varZeros []int8
	most     []int64 // by ID: 1 + the most that a value can be, 0: not asked yet, -1: unknown
	objects  []origins
	varObjs  []origins
}

// origins are the objects that a pointer may point into; all of its space, if it may come from anywhere. Null and
// pointers to nothing are always possible.
type origins struct {
	all bool
	set []int
}

func (o *origins) add(p origins) (more bool) {
	if p.all && !o.all {
		o.all, more = true, true
	}
	for _, x := range p.set {
		if i, there := slices.BinarySearch(o.set, x); !there {
			o.set, more = slices.Insert(o.set, i, x), true
		}
	}
	return more
}

func newFlow(k *kir.Kernel) *flow {
	n := k.NumInstrs
	f := &flow{k: k, uses: make([]int, n), sets: make([][]*kir.Instr, len(k.Vars)), first: make([]int, n),
		last: make([]int, n), zeros: make([]int8, n), varZeros: make([]int8, len(k.Vars)), most: make([]int64, n),
		objects: make([]origins, n), varObjs: make([]origins, len(k.Vars))}
	f.walk(k.Body)
	f.alignments()
	f.pointers()
	return f
}

func (f *flow) walk(b *kir.Block) {
	if b == nil {
		return
	}
	for _, in := range b.Instrs {
		f.first[in.ID] = len(f.order)
		f.order = append(f.order, in)
		for _, a := range in.Args {
			f.uses[a.ID]++
		}
		switch in.Op {
		case kir.VarSet:
			f.sets[in.Imm] = append(f.sets[in.Imm], in)
		case kir.Loop:
			f.loops = append(f.loops, in)
		}
		f.walk(in.Body)
		f.walk(in.Else)
		f.last[in.ID] = len(f.order) - 1
	}
}

// inside reports whether an instruction is in a construct.
func (f *flow) inside(in, construct *kir.Instr) bool {
	return f.first[in.ID] > f.first[construct.ID] && f.first[in.ID] <= f.last[construct.ID]
}

// alignments finds out how aligned values are. Variables begin as zero, and are as aligned as the least aligned value
// that they are set to; those may depend on variables, so it begins with the best and goes on until nothing changes.
func (f *flow) alignments() {
	for i := range f.varZeros {
		f.varZeros[i] = 63
	}
	for again := true; again; {
		again = false
		for i := range f.zeros {
			f.zeros[i] = -1
		}
		for v, sets := range f.sets {
			for _, s := range sets {
				if z := f.trailing(s.Args[0]); z < f.varZeros[v] {
					f.varZeros[v], again = z, true
				}
			}
		}
	}
}

// trailing returns how many trailing zero bits a value, or the offset of a pointer, has at least.
func (f *flow) trailing(v *kir.Instr) int8 {
	if z := f.zeros[v.ID]; z >= 0 {
		return z
	}
	z := f.trailingOf(v)
	f.zeros[v.ID] = z
	return z
}

func (f *flow) trailingOf(v *kir.Instr) int8 {
	arg := func(i int) int8 { return f.trailing(v.Args[i]) }
	switch v.Op {
	case kir.Const:
		return trailing(v.Imm)
	case kir.ParamAddr, kir.RegionAddr:
		return 63
	case kir.VarGet:
		return f.varZeros[v.Imm]
	case kir.PtrAdd:
		return min(arg(0), arg(1), trailing(v.Imm))
	}
	if !v.Type.IsInt() && !v.Type.IsPtr() {
		return 0
	}
	switch v.Op {
	case kir.Add, kir.Sub, kir.Or, kir.Xor:
		return min(arg(0), arg(1))
	case kir.And:
		return max(arg(0), arg(1))
	case kir.Mul:
		return min(63, arg(0)+min(arg(1), 63-arg(0)))
	case kir.Shl:
		if c := v.Args[1]; c.Op == kir.Const {
			return min(63, arg(0)+int8(c.Imm%uint64(v.Type.Bits())))
		}
		return arg(0)
	case kir.Select:
		return min(arg(1), arg(2))
	case kir.Convert:
		if v.Args[0].Type.IsInt() {
			return arg(0)
		}
	}
	return 0
}

func trailing(bits64 uint64) int8 { return int8(min(63, bits.TrailingZeros64(bits64))) }

// upTo returns the most that an integer can be if it is known not to be negative; below 2^47.
func (f *flow) upTo(v *kir.Instr) (most int64, ok bool) {
	if f.most[v.ID] == 0 {
		f.most[v.ID] = -1
		if m, ok := f.upToOf(v); ok && m < 1<<47 {
			f.most[v.ID] = m + 1
		}
	}
	return f.most[v.ID] - 1, f.most[v.ID] > 0
}

func (f *flow) upToOf(v *kir.Instr) (int64, bool) {
	t := v.Type
	if !t.IsInt() {
		return 0, false
	}
	top := int64(-1) // the most that the type holds, -1: too much
	switch {
	case t.IsSigned() && t.Bits() < 64:
		top = int64(t.Mask() >> 1)
	case t.Bits() < 64:
		top = int64(t.Mask())
	case t == kir.I64:
		top = 1<<63 - 1
	}
	fits := func(m int64) (int64, bool) { // what is more wraps
		if top >= 0 && m <= top && m >= 0 {
			return m, true
		}
		return top, !t.IsSigned() && top >= 0
	}
	arg := func(i int) (int64, bool) { return f.upTo(v.Args[i]) }
	switch v.Op {
	case kir.Const:
		if v.Imm < 1<<47 && (!t.IsSigned() || v.Imm <= uint64(top)) {
			return int64(v.Imm), true
		}
		return 0, false
	case kir.Builtin:
		switch v.Mode {
		case kir.ThreadIndexInSimdgroup:
			return kir.Lanes - 1, true
		case kir.ThreadPositionInThreadgroup, kir.ThreadIndexInThreadgroup:
			return maxThreads - 1, true
		}
	case kir.Convert:
		if v.Args[0].Type == kir.Bool {
			return 1, true
		}
		if m, ok := arg(0); ok && v.Args[0].Type.IsInt() {
			return fits(m)
		}
	case kir.Add, kir.Mul, kir.Select, kir.Max:
		i := len(v.Args) - 2
		a, ok := arg(i)
		b, ok2 := arg(i + 1)
		if !ok || !ok2 {
			break
		}
		switch v.Op {
		case kir.Add:
			return fits(a + b)
		case kir.Mul:
			if hi, lo := bits.Mul64(uint64(a), uint64(b)); hi == 0 && lo < 1<<47 {
				return fits(int64(lo))
			}
		default:
			return max(a, b), true
		}
	case kir.And, kir.Min, kir.Rem, kir.Div, kir.Shr:
		if m, ok := f.smaller(v); ok {
			return m, true
		}
	}
	return fits(-1)
}

// smaller is upTo of operations whose result is no larger than an operand.
func (f *flow) smaller(v *kir.Instr) (int64, bool) {
	a, ok := f.upTo(v.Args[0])
	b, ok2 := f.upTo(v.Args[1])
	switch {
	case v.Op == kir.Min && ok && ok2 || v.Op == kir.And && ok && ok2:
		return min(a, b), true
	case v.Op == kir.And && ok2:
		return b, true
	case v.Op == kir.Rem && ok && ok2 && b > 0:
		return a, true
	case ok && v.Op == kir.And, ok && (v.Op == kir.Shr || v.Op == kir.Div) && (ok2 || !v.Type.IsSigned()):
		return a, true
	}
	return 0, false
}

// pointers finds out what pointers may point into.
func (f *flow) pointers() {
	for again := true; again; {
		again = false
		for _, in := range f.order {
			if in.Op == kir.VarSet && in.Args[0].Type.IsPtr() {
				again = f.varObjs[in.Imm].add(f.objects[in.Args[0].ID]) || again
			}
			if in.Type.IsPtr() {
				again = f.originsOf(in) || again
			}
		}
	}
}

func (f *flow) originsOf(in *kir.Instr) (more bool) {
	o := &f.objects[in.ID]
	switch in.Op {
	case kir.ParamAddr:
		return o.add(origins{set: []int{int(in.Imm) + 1}})
	case kir.RegionAddr:
		return o.add(origins{set: []int{int(in.Imm) + 1 + len(f.k.Params)}})
	case kir.Const:
		return o.add(origins{set: []int{kir.PtrObject(in.Imm)}})
	case kir.VarGet:
		return o.add(f.varObjs[in.Imm])
	case kir.PtrAdd, kir.Shuffle, kir.BroadcastFirst:
		return o.add(f.objects[in.Args[0].ID])
	case kir.Select:
		more = o.add(f.objects[in.Args[1].ID])
		return o.add(f.objects[in.Args[2].ID]) || more
	}
	return o.add(origins{all: true})
}

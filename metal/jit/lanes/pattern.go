package lanes

import (
	"math/bits"

	"github.com/mlxlua/mlxlua/metal/kir"
)

const (
	maxOffset = 1 << 20 // values whose lanes are further apart than this are Varying
	maxAlign  = 1 << 30 // the alignment of zero
)

// align returns the largest power of two, up to maxAlign, that divides v.
func align(v uint64) uint32 {
	if v == 0 {
		return maxAlign
	}
	return uint32(min(uint64(maxAlign), v&-v))
}

// alignLimit is the largest alignment that means anything for values of a type: narrow integers wrap, so that even the
// multiples of a larger power of two, zero alone, plus an offset below it need not stay in the type.
func alignLimit(t kir.Type) uint32 {
	switch t {
	case kir.Bool:
		return 1
	case kir.I8:
		return 1 << 7
	case kir.U8:
		return 1 << 8
	case kir.I16:
		return 1 << 15
	case kir.U16:
		return 1 << 16
	}
	return maxAlign
}

func uniformPattern(al uint32) Pattern { return Pattern{Kind: Uniform, Align: al} }

// span is the largest offset of a Based value.
func (a *analysis) span(s Pattern) int64 {
	if s.Offsets == nil {
		return 0
	}
	top := int32(0)
	for _, o := range s.Offsets[:a.group] {
		top = max(top, o)
	}
	return int64(top)
}

// disjoint reports whether every lane's value is its offset in bits that are zero in the base: then nothing wraps.
func (a *analysis) disjoint(s Pattern) bool { return a.span(s) < int64(s.Align) }

// laneAlign is the alignment of the lanes' values.
func (a *analysis) laneAlign(s Pattern) uint32 {
	al := s.Align
	if s.Offsets != nil {
		for _, o := range s.Offsets[:a.group] {
			al = min(al, align(uint64(o)))
		}
	}
	return al
}

// varying forgets all but the alignment.
func (a *analysis) varying(s Pattern) Pattern { return Pattern{Kind: Varying, Align: a.laneAlign(s)} }

// meet is what is known of a value that has one pattern or the other.
func (a *analysis) meet(s, t Pattern) Pattern {
	if s.Kind == t.Kind && s.Offsets == t.Offsets {
		s.Align = min(s.Align, t.Align)
		return s
	}
	return Pattern{Kind: Varying, Align: min(a.laneAlign(s), a.laneAlign(t))}
}

// based makes the pattern of a base with an alignment plus off(lane), and the bias of its base.
func (a *analysis) based(al uint32, off func(l int) int64) (Pattern, int32) {
	lo, hi := off(0), off(0)
	for l := 1; l < a.group; l++ {
		o := off(l)
		lo, hi = min(lo, o), max(hi, o)
	}
	if hi > maxOffset || lo < -maxOffset {
		s := Pattern{Kind: Varying, Align: al}
		for l := range a.group {
			s.Align = min(s.Align, align(uint64(off(l))))
		}
		return s, 0
	}
	s := Pattern{Kind: Uniform, Align: min(al, align(uint64(lo)))}
	if lo != hi {
		var t [MaxLanes]int32
		for l := range a.group {
			t[l] = int32(off(l) - lo)
		}
		s.Kind, s.Offsets = Based, a.intern(&t)
	}
	return s, int32(lo)
}

// intern returns the one table with these offsets.
func (a *analysis) intern(t *[MaxLanes]int32) *[MaxLanes]int32 {
	if p := a.offsets[*t]; p != nil {
		return p
	}
	p := new([MaxLanes]int32)
	*p = *t
	a.offsets[*t] = p
	return p
}

// log2 returns the exponent of a positive power of two, and whether v is one.
func log2(v int64) (uint, bool) {
	return uint(bits.TrailingZeros64(uint64(v))), v > 0 && v&(v-1) == 0
}

func isIndex(t kir.Type) bool { return t.IsInt() || t.IsPtr() }

// pure finds the pattern of a pure operation on values.
func (a *analysis) pure(in *kir.Instr) (Pattern, int32) {
	uniform, varying := true, false
	for _, x := range in.Args {
		k := a.info.Patterns[x.ID].Kind
		uniform = uniform && k == Uniform
		varying = varying || k == Varying
	}
	switch {
	case uniform:
		return uniformPattern(a.alignOf(in)), 0
	case in.Type == kir.Bool:
		if !varying && a.sameInAll(in) {
			return uniformPattern(1), 0
		}
		return Pattern{Kind: Varying, Align: 1}, 0
	case varying || !isIndex(in.Type):
		return Pattern{Kind: Varying, Align: a.alignOf(in)}, 0
	}
	if s, bias, ok := a.basedOp(in); ok {
		return s, bias
	}
	return Pattern{Kind: Varying, Align: a.alignOf(in)}, 0
}

// alignOf is the alignment of the lanes of a pure operation's value; of its base if the value is Uniform.
func (a *analysis) alignOf(in *kir.Instr) uint32 {
	if !isIndex(in.Type) {
		return 1
	}
	al := func(i int) uint32 { return a.laneAlign(a.info.Patterns[in.Args[i].ID]) }
	switch in.Op {
	case kir.Add, kir.Sub, kir.Or, kir.Xor, kir.Min, kir.Max, kir.Rem:
		return min(al(0), al(1))
	case kir.Select:
		return min(al(1), al(2))
	case kir.PtrAdd:
		return min(al(0), al(1), align(in.Imm))
	case kir.Neg, kir.Abs:
		return al(0)
	case kir.Convert, kir.Bitcast:
		if isIndex(in.Args[0].Type) && in.Type.IsInt() && in.Args[0].Type.IsInt() {
			return al(0)
		}
	case kir.And:
		return max(al(0), al(1))
	case kir.Mul:
		return uint32(min(uint64(al(0))*uint64(al(1)), maxAlign))
	case kir.Shl:
		if c, ok := in.Args[1].Int(); ok {
			return uint32(min(uint64(al(0))<<min(a.count(in, c), 30), maxAlign))
		}
		return al(0)
	case kir.Shr:
		if c, ok := in.Args[1].Int(); ok {
			return max(1, al(0)>>a.count(in, c))
		}
	case kir.Div:
		c, ok := in.Args[1].Int()
		if n, pow := log2(c); ok && pow {
			return max(1, al(0)>>n)
		}
	}
	return 1
}

// count is what a shift by the constant c really shifts by.
func (a *analysis) count(in *kir.Instr, c int64) uint {
	return uint(c) & uint(in.Type.Bits()-1)
}

// basedOp finds the pattern of an operation on Based and Uniform values; false if it is neither.
func (a *analysis) basedOp(in *kir.Instr) (Pattern, int32, bool) {
	x := a.info.Patterns[in.Args[0].ID]
	xo := func(l int) int64 { return offset(x, l) }
	done := func(s Pattern, bias int32) (Pattern, int32, bool) { return s, bias, s.Kind != Varying }
	switch in.Op {
	case kir.Add, kir.PtrAdd:
		y := a.info.Patterns[in.Args[1].ID]
		al := min(x.Align, y.Align)
		if in.Op == kir.PtrAdd {
			al = min(al, align(in.Imm))
		}
		if y.Offsets == nil {
			return Pattern{Based, x.Offsets, al}, 0, true
		}
		if x.Offsets == nil {
			return Pattern{Based, y.Offsets, al}, 0, true
		}
		return done(a.based(al, func(l int) int64 { return xo(l) + offset(y, l) }))
	case kir.Sub:
		y := a.info.Patterns[in.Args[1].ID]
		al := min(x.Align, y.Align)
		if y.Offsets == nil {
			return Pattern{Based, x.Offsets, al}, 0, true
		}
		return done(a.based(al, func(l int) int64 { return xo(l) - offset(y, l) }))
	case kir.Neg:
		return done(a.based(x.Align, func(l int) int64 { return -xo(l) }))
	case kir.Not:
		return done(a.based(1, func(l int) int64 { return -xo(l) }))
	case kir.Mul:
		y, other := in.Args[1], x
		c, ok := y.Int()
		if !ok {
			c, ok = in.Args[0].Int()
			other = a.info.Patterns[y.ID]
		}
		if !ok || c > maxOffset || c < -maxOffset {
			return Pattern{}, 0, false
		}
		al := uint32(min(uint64(other.Align)*uint64(align(uint64(c))), maxAlign))
		return done(a.based(al, func(l int) int64 { return offset(other, l) * c }))
	case kir.Shl:
		c, ok := in.Args[1].Int()
		n := a.count(in, c)
		if !ok || n > 20 {
			return Pattern{}, 0, false
		}
		al := uint32(min(uint64(x.Align)<<n, maxAlign))
		return done(a.based(al, func(l int) int64 { return xo(l) << n }))
	case kir.Select:
		y, z := a.info.Patterns[in.Args[1].ID], a.info.Patterns[in.Args[2].ID]
		if x.Kind != Uniform || y.Kind != z.Kind || y.Offsets != z.Offsets {
			return Pattern{}, 0, false
		}
		return a.meet(y, z), 0, true
	case kir.Convert:
		from := in.Args[0].Type
		if !from.IsInt() || in.Type.Size() > from.Size() && !a.disjoint(x) {
			return Pattern{}, 0, false
		}
		return x, 0, true
	case kir.Bitcast:
		return x, 0, in.Type.IsInt() && in.Args[0].Type.IsInt()
	case kir.Shr, kir.Div, kir.Rem, kir.And, kir.Or, kir.Xor:
		return a.basedBits(in)
	}
	return Pattern{}, 0, false
}

// basedBits does operations that keep the bits of the base and of the offsets apart.
func (a *analysis) basedBits(in *kir.Instr) (Pattern, int32, bool) {
	p, q := in.Args[0], in.Args[1]
	if (in.Op == kir.And || in.Op == kir.Or || in.Op == kir.Xor) && a.info.Patterns[p.ID].Kind == Uniform {
		p, q = q, p
	}
	x, y := a.info.Patterns[p.ID], a.info.Patterns[q.ID]
	if x.Offsets == nil || !a.disjoint(x) {
		return Pattern{}, 0, false
	}
	c, ok := q.Int()
	done := func(al uint32, off func(o int64) int64) (Pattern, int32, bool) {
		s, bias := a.based(al, func(l int) int64 { return off(int64(x.Offsets[l])) })
		return s, bias, s.Kind != Varying
	}
	switch {
	case in.Op == kir.Or && y.Kind == Uniform && a.span(x) < int64(y.Align): // an addition
		return Pattern{Based, x.Offsets, min(x.Align, y.Align)}, 0, true
	case in.Op == kir.Div || in.Op == kir.Rem:
		return a.division(in, x, y, p, c, ok)
	case !ok:
		return Pattern{}, 0, false
	case in.Op == kir.Shr:
		n := a.count(in, c)
		return done(max(1, x.Align>>n), func(o int64) int64 { return o >> n })
	case in.Op == kir.And:
		al := max(x.Align, align(uint64(c)))
		if c >= 0 && c < int64(x.Align) {
			al = maxAlign // the base becomes zero
		}
		return done(al, func(o int64) int64 { return o & c })
	case in.Op == kir.Or:
		return done(min(x.Align, align(uint64(c))), func(o int64) int64 { return o &^ c })
	case in.Op == kir.Xor:
		low := c & int64(x.Align-1)
		return done(min(x.Align, align(uint64(c))), func(o int64) int64 { return (o ^ low) - low })
	}
	return Pattern{}, 0, false
}

// division does a Div or Rem of the Based value p by y; x is p's pattern, whose offsets are bits that are zero in its
// base, and c is y's value if it is a constant.
func (a *analysis) division(in *kir.Instr, x, y Pattern, p *kir.Instr, c int64, constant bool) (Pattern, int32, bool) {
	if in.Type.IsSigned() && !a.positive(p) {
		return Pattern{}, 0, false
	}
	n, pow := log2(c)
	switch {
	case constant && pow && in.Op == kir.Div:
		s, bias := a.based(max(1, x.Align>>n), func(l int) int64 { return int64(x.Offsets[l]) >> n })
		return s, bias, s.Kind != Varying
	case constant && pow:
		al := x.Align
		if c <= int64(x.Align) {
			al = maxAlign
		}
		s, bias := a.based(al, func(l int) int64 { return int64(x.Offsets[l]) & (c - 1) })
		return s, bias, s.Kind != Varying
	case y.Kind != Uniform || a.span(x) >= int64(y.Align):
		return Pattern{}, 0, false
	case in.Op == kir.Div: // of multiples of a power of two that the offsets are less than
		return uniformPattern(1), 0, true
	}
	return Pattern{Based, x.Offsets, min(x.Align, y.Align)}, 0, true
}

func offset(s Pattern, l int) int64 {
	if s.Offsets == nil {
		return 0
	}
	return int64(s.Offsets[l])
}

// sameInAll reports whether a comparison of Based and Uniform values has one result, which is that of the bases.
func (a *analysis) sameInAll(in *kir.Instr) bool {
	if in.Op < kir.Eq || in.Op > kir.Ge || !in.Args[0].Type.IsInt() {
		return false
	}
	x, y, op := in.Args[0], in.Args[1], in.Op
	s, t := a.info.Patterns[x.ID], a.info.Patterns[y.ID]
	if s.Kind == Based && t.Kind == Based {
		return s.Offsets == t.Offsets && a.disjoint(s) && a.disjoint(t)
	}
	if s.Kind == Uniform {
		s, t, y, op = t, s, x, op.Mirrored()
	}
	block := int64(1) << bits.Len64(uint64(a.span(s)))
	if block > int64(s.Align) {
		return false
	}
	switch op {
	case kir.Lt, kir.Ge:
		return int64(t.Align) >= block
	case kir.Le, kir.Gt:
		c, ok := y.Int()
		return ok && (c+1)&(block-1) == 0
	}
	return false
}

// positive reports whether a signed value is never negative.
func (a *analysis) positive(in *kir.Instr) bool { return int(a.bits[in.ID]) < in.Type.Bits() }

// width bounds the number of significant bits (zero-extended) of a pure operation's value.
func (a *analysis) width(in *kir.Instr) uint8 {
	if in.Type == kir.Bool {
		return 1
	}
	w := uint8(in.Type.Bits())
	if !in.Type.IsInt() {
		return w
	}
	b := func(i int) uint8 { return a.bits[in.Args[i].ID] }
	plain := func() bool { // operands are what they are unsigned
		for _, x := range in.Args {
			if in.Type.IsSigned() && !a.positive(x) {
				return false
			}
		}
		return true
	}
	switch in.Op {
	case kir.Add:
		return min(w, max(b(0), b(1))+1)
	case kir.Mul:
		return min(w, b(0)+b(1))
	case kir.And:
		return min(b(0), b(1))
	case kir.Or, kir.Xor:
		return max(b(0), b(1))
	case kir.Select:
		return max(b(1), b(2))
	case kir.Shl:
		if c, ok := in.Args[1].Int(); ok {
			return uint8(min(uint(w), uint(b(0))+a.count(in, c)))
		}
	case kir.Shr:
		if c, ok := in.Args[1].Int(); ok && (!in.Type.IsSigned() || a.positive(in.Args[0])) {
			return uint8(max(0, int(b(0))-int(a.count(in, c))))
		}
	case kir.Div:
		if c, ok := in.Args[1].Int(); ok && c > 0 && plain() {
			return uint8(max(0, int(b(0))-bits.Len64(uint64(c))+1))
		}
		if plain() {
			return b(0)
		}
	case kir.Rem:
		if c, ok := in.Args[1].Int(); ok && c > 0 && plain() {
			return min(b(0), uint8(bits.Len64(uint64(c-1))))
		}
		if plain() {
			return b(0)
		}
	case kir.Min:
		if plain() {
			return min(b(0), b(1))
		}
	case kir.Max:
		if plain() {
			return max(b(0), b(1))
		}
	case kir.Popcount, kir.Clz, kir.Ctz:
		return min(w, 7)
	case kir.Convert:
		from := in.Args[0].Type
		if from == kir.Bool {
			return 1
		}
		if from.IsInt() && (!from.IsSigned() || a.positive(in.Args[0])) {
			return min(w, b(0))
		}
	case kir.Bitcast:
		if in.Args[0].Type.IsInt() {
			return b(0)
		}
	}
	return w
}

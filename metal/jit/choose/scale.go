package choose

import (
	"math"

	"github.com/mlxlua/mlxlua/metal/jit/code"
	"github.com/mlxlua/mlxlua/metal/kir"
)

// Scale, a * 2^n. AVX-512 has an instruction for it. AVX2 multiplies by powers of two, whose bits it makes: the fewer,
// the better n is known.

// span is what is known of a float: its bounds, and whether it may be a NaN instead. A value that has no bounds is
// taken to be infinite where it might be.
type span struct {
	lo, hi float64
	nan    bool
}

// known is what scale is told of n.
type known struct {
	finite bool // n is finite or a NaN
	number bool // n is no NaN
	whole  bool // n is a whole number
	near   bool // two normal powers of two make 2^n
	biased bool // what is given instead is n + bias(), which is a number, whole and near
}

// anything is the span of an unknown float.
func anything() span { return span{math.Inf(-1), math.Inf(1), true} }

// maxSpanDepth is how many operations back spanOf looks.
const maxSpanDepth = 8

// spanOf finds bounds of a float from the constants that it was made with.
func spanOf(i *kir.Instr, depth int) span {
	if i.Op == kir.Const {
		f := kir.ToFloat64(i.Type, i.Imm)
		return span{f, f, f != f}
	}
	if depth == 0 || i.Type != kir.F32 && i.Type != kir.F64 {
		return anything()
	}
	of := func(n int) span { return spanOf(i.Args[n], depth-1) }
	switch i.Op {
	case kir.Select:
		if op, ok := extreme(i); ok {
			// The second stands for all cases in which the comparison is false, NaNs among them.
			a, b := of(1), of(2)
			return extremeOf(op == code.VMinPS || op == code.VMinPD, a, b, b.nan)
		}
	case kir.Min, kir.Max:
		a, b := of(0), of(1)
		return extremeOf(i.Op == kir.Min, a, b, a.nan && b.nan)
	case kir.Add, kir.Sub, kir.Fma:
		return shifted(i, of(0))
	case kir.Rint, kir.Floor, kir.Ceil, kir.Trunc:
		a := of(0)
		return span{math.Floor(a.lo), math.Ceil(a.hi), a.nan}
	}
	return anything()
}

// extremeOf is the span of the smaller or the larger of two values. Where one may be a NaN the other may be the result,
// so that only its own bounds hold.
func extremeOf(smaller bool, a, b span, nan bool) span {
	r := span{math.Max(a.lo, b.lo), math.Max(a.hi, b.hi), nan}
	if smaller {
		r = span{math.Min(a.lo, b.lo), math.Min(a.hi, b.hi), nan}
	}
	for _, s := range [2][2]span{{a, b}, {b, a}} {
		if s[0].nan {
			r.lo, r.hi = math.Min(r.lo, s[1].lo), math.Max(r.hi, s[1].hi)
		}
	}
	return r
}

// shifted is the span of x + c, x - c and x * f + c for constants c and f, x being within s.
func shifted(i *kir.Instr, s span) span {
	f, last := 1.0, i.Args[len(i.Args)-1]
	for _, a := range i.Args[1:] {
		if a.Op != kir.Const {
			return anything()
		}
	}
	c := kir.ToFloat64(last.Type, last.Imm)
	switch i.Op {
	case kir.Sub:
		c = -c
	case kir.Fma:
		f = kir.ToFloat64(i.Type, i.Args[1].Imm)
	}
	if math.IsInf(c, 0) || c != c || math.IsInf(f, 0) || f != f || f == 0 {
		return anything()
	}
	at := func(x float64) float64 { // rounding keeps order, so that bounds rounded alike are bounds
		if i.Type == kir.F32 {
			return float64(kir.FMA32(float32(x), float32(f), float32(c)))
		}
		return math.FMA(x, f, c)
	}
	lo, hi := at(s.lo), at(s.hi)
	return span{math.Min(lo, hi), math.Max(lo, hi), s.nan}
}

// whole reports whether a float with a span is surely a whole number: the difference of a number too large for
// anything else and such a constant.
func whole(i *kir.Instr) bool {
	switch i.Op {
	case kir.Rint, kir.Floor, kir.Ceil, kir.Trunc:
		return true
	case kir.Sub:
		c := i.Args[1]
		if c.Op != kir.Const {
			return false
		}
		f, s := kir.ToFloat64(c.Type, c.Imm), spanOf(i.Args[0], maxSpanDepth)
		least := float64(1 << 23)
		if i.Type == kir.F64 {
			least = 1 << 52
		}
		return f == math.Trunc(f) && s.lo >= least && !s.nan
	}
	return false
}

// powers are the exponents of the normal numbers.
func powers(big bool) (least, most float64) {
	if big {
		return -1022, 1023
	}
	return -126, 127
}

// bias is what leaves a whole number, biased as an exponent is, in the low bits of a sum.
func bias(big bool) float64 {
	if big {
		return 1.5*(1<<52) + 1023
	}
	return 1.5*(1<<23) + 127
}

// scaled computes a Scale that is not uniform.
func (s *operations) scaled(i *kir.Instr) val {
	n := i.Args[1]
	big := i.Type == kir.F64
	least, most := powers(big)
	sp := spanOf(n, maxSpanDepth)
	k := known{finite: !math.IsInf(sp.lo, 0) && !math.IsInf(sp.hi, 0), number: !sp.nan, whole: whole(n),
		near: sp.lo >= 2*least && sp.hi <= 2*most}
	if !s.e.avx512() && k.number && k.whole && k.near && n.Op == kir.Sub && n.Args[1].Op == kir.Const &&
		n.Args[1].Imm == floatLane(bias(big), big) {
		n, k.biased = n.Args[0], true
	}
	x, v, consts := s.v, val{typ: i.Type}, constsOf(i)
	a, b := s.vals.laneVal(i.Args[0]), s.vals.laneVal(n)
	for p := range s.e.parts {
		var u unit
		args := []unit{a.unitOf(p), b.unitOf(p)}
		for h := range x.halves(i.Type) {
			f, e := operandOf(i.Type, args, consts, 0, h), operandOf(i.Type, args, consts, 1, h)
			u.r[h] = x.floats().rounded(i.Type, x.floats().scale(x.in(f, big), x.in(e, big), k, big))
		}
		v.setUnit(p, u)
	}
	return v
}

// scale computes a * 2^n.
func (x floats) scale(a, n code.R, k known, big bool) code.R {
	if x.v.avx512() {
		if !k.finite { // the instruction makes NaNs of 0 * 2^inf and others; minimum and maximum leave NaNs alone
			const most = 4096
			n = x.v.op2(by(big, code.VMinPS, code.VMinPD), x.v.load(floatLane(most, big), big), n)
			n = x.v.op2(by(big, code.VMaxPS, code.VMaxPD), x.v.load(floatLane(-most, big), big), n)
		}
		return x.v.op2(by(big, code.VScaleFPS, code.VScaleFPD), a, n)
	}
	// n is the sum of two or three exponents of normal numbers, the last one what is left. Multiplied in the opposite
	// order only the last product is rounded: if an earlier one falls below the normal numbers, the result is 0.
	add, sub := by(big, code.VAddPS, code.VAddPD), by(big, code.VSubPS, code.VSubPD)
	least, most := powers(big)
	shift, bits := code.VPSllD, 23
	if big {
		shift, bits = code.VPSllQ, 52
	}
	factors, rest, above := 3, n, 0.0 // above: what rest is more than it should be
	if k.near {
		factors = 2
	}
	if k.biased {
		above = bias(big)
	}
	if !k.whole {
		rest = x.toIntegral(n, roundDown, big)
	}
	var power [3]code.R
	for f := range factors {
		part := rest
		if f+1 < factors || !k.near {
			part = x.v.opX(by(big, code.VMinPS, code.VMinPD), rest, konst(floatLane(most+above, big)), big)
			part = x.v.opX(by(big, code.VMaxPS, code.VMaxPD), part, konst(floatLane(least+above, big)), big)
		}
		if f+1 < factors {
			rest = x.v.op2(sub, rest, part)
		}
		if above == 0 {
			part = x.v.opX(add, part, konst(floatLane(bias(big), big)), big)
		}
		power[f], above = x.v.shift(shift, part, bits), 0
	}
	r := a
	for f := factors - 1; f >= 0; f-- {
		r = x.v.op2(by(big, code.VMulPS, code.VMulPD), r, power[f])
	}
	if k.number {
		return r
	}
	return x.v.blend(r, n, x.v.op2Imm(by(big, code.VCmpPS, code.VCmpPD), n, n, cmpUnord), big)
}

package msl

import (
	"slices"
	"strings"

	"github.com/mlxlua/mlxlua/metal/kir"
)

// Metal's headers declare a function of the library once for each type of a set, without templates, and C++ chooses
// between them argument by argument. Here a function stands once, so the choice is made first, over the sets below, and
// the arguments arrive in the type chosen. The sets are those of the tables of the Metal specification, with the
// overloads for bfloat that MLX puts in front of kernels.

// declSet says for which element types T a function is declared, and how many of its first parameters are of type T or
// vectors of it; what follows them has a type of its own.
type declSet struct {
	elems  []*ctype
	params int
}

var (
	setFloats = kinds(kir.F16, kir.F32, kir.BF16)
	setInts   = kinds(kir.I8, kir.U8, kir.I16, kir.U16, kir.I32, kir.U32, kir.I64, kir.U64)
	setBoth   = append(append([]*ctype{}, setInts...), setFloats...)
)

func kinds(ks ...kir.Type) []*ctype {
	var out []*ctype
	for _, k := range ks {
		out = append(out, scalarTypes[k])
	}
	return out
}

// declSets are the sets by name. Functions that are not here are declared for all they take, or are templates.
var declSets = makeSets()

func makeSets() map[string]declSet {
	m := map[string]declSet{}
	add := func(elems []*ctype, params int, names string) {
		for _, name := range strings.Fields(names) {
			m[name] = declSet{elems, params}
		}
	}
	add(setBoth, 1, "abs")
	add(setBoth, 2, "min max select")
	add(setBoth, 3, "clamp min3 max3 median3")
	add(setFloats, 1, `acos acosh asin asinh atan atanh ceil cos cosh cospi exp exp10 exp2 fabs floor fract log log10
		log2 rint round rsqrt sin sinh sinpi sqrt tan tanh tanpi trunc saturate sign isnan isinf isfinite isnormal
		signbit ilogb ldexp frexp modf sincos`)
	add(setFloats, 2, `atan2 copysign divide fdim fmax fmin fmod nextafter pow powr step isordered isunordered`)
	add(setFloats, 3, "fma fmax3 fmin3 fmedian3 mix smoothstep")
	add(setInts, 1, "popcount clz ctz reverse_bits extract_bits")
	add(setInts, 2, "absdiff addsat subsat hadd rhadd mulhi rotate insert_bits")
	add(setInts, 3, "madhi madsat")
	return m
}

// setRank says how well an element type converts to a parameter's.
func setRank(from *ctype, to *ctype) rank {
	if from.kind == tEnum {
		if to.kt == promoted(scalarTypes[from.kt]).kt {
			return rankPromotion
		}
		return rankConversion
	}
	// A number that is no integer becomes one only if no float type takes it: Metal's text has bfloat convert to wider
	// floats alone.
	if from.kt == kir.BF16 && to.isInt() {
		return rankNone
	}
	return arithRank(from.kt, to.kt)
}

// setChoice is the outcome of choosing from a declared set.
type setChoice struct {
	elem *ctype   // the element type chosen; nil: several are best
	best []*ctype // these then
	n    int      // components
}

// chooseSet chooses the overload of a library's function. ok is false where sets do not decide: other functions, class
// objects, vectors that do not match.
func (ch *chooser) chooseSet(fn *overload, args []value) (c setChoice, ok bool) {
	set, known := declSets[fn.name]
	if !known || fn.hasArgs || fn.this != nil || len(args) < set.params || !fn.ofLibrary() {
		return c, false
	}
	c.n = 1
	var vector, first *ctype
	same := true // all are of one type: no other fits as well
	for i := range args[:set.params] {
		a := &args[i]
		if a.bad() || a.k == vList || a.k == vFuncs || a.k == vVoid || a.k == vType {
			return c, false
		}
		e, n := a.q.T.shape()
		switch {
		case a.q.T.isUnscopedEnum():
		case n == 0:
			return c, false
		case e.kt == kir.F64: // beyond Metal: built-ins say themselves what they mean
			return c, false
		case n > 1 && vector != nil && (vector != e || c.n != n):
			return c, false
		case n > 1:
			vector, c.n = e, n
		}
		if i == 0 {
			first = e
		}
		same = same && e == first
	}
	elems := set.elems
	if fn.fast > 0 && len(elems) > len(setFloats) {
		elems = setFloats
	}
	if vector != nil { // no vector converts to another, and a number spreads over any
		c.elem = vector
		return c, slices.Contains(elems, vector)
	}
	if same && slices.Contains(elems, first) {
		c.elem = first
		return c, true
	}
	c.best = bestOf(elems, args[:set.params])
	switch {
	case len(c.best) == 0:
		return c, false
	case len(c.best) == 1:
		c.elem = c.best[0]
	case fn.fast > 0: // these namespaces are for single precision
		c.elem = typeFloat
	}
	return c, true
}

// bestOf returns the element types that no other is better than.
func bestOf(elems []*ctype, args []value) []*ctype {
	var ranks [][]rank
	var fit []*ctype
next:
	for _, e := range elems {
		rs := make([]rank, len(args))
		for i := range args {
			if rs[i] = setRank(args[i].q.T, e); rs[i] == rankNone {
				continue next
			}
		}
		ranks = append(ranks, rs)
		fit = append(fit, e)
	}
	var best []*ctype
	for i, e := range fit {
		beaten := false
		for _, other := range ranks {
			beaten = beaten || compareRanks(other, ranks[i]) < 0
		}
		if !beaten {
			best = append(best, e)
		}
	}
	return best
}

// compareRanks returns -1 if a is nowhere worse than b and somewhere better, 1 for the reverse, 0 if neither.
func compareRanks(a, b []rank) int {
	better, worse := false, false
	for i := range a {
		better = better || a[i] < b[i]
		worse = worse || a[i] > b[i]
	}
	switch {
	case better && !worse:
		return -1
	case worse && !better:
		return 1
	}
	return 0
}

// ofLibrary reports whether a set holds functions of namespace metal.
func (fn *overload) ofLibrary() bool {
	if fn.builtin != nil {
		return true
	}
	for _, f := range fn.funcs {
		if !f.ofUnit && f.class == nil && inMetal(f.env) {
			return true
		}
	}
	return false
}

// forWide returns what a set has for vectors of more than four components: not what Metal declares type by type.
func (fn *overload) forWide() *overload {
	if !fn.ofLibrary() || fn.name == "as_type" {
		return fn
	}
	own := *fn
	own.builtin, own.funcs = nil, slices.DeleteFunc(slices.Clone(fn.funcs), func(f *funcEnt) bool { return !f.ofUnit })
	return &own
}

// ofUnit reports whether a set holds functions of the unit.
func (fn *overload) ofUnit() bool {
	return slices.ContainsFunc(fn.funcs, func(f *funcEnt) bool { return f.ofUnit })
}

// asChosen converts arguments to the parameters of the overload chosen.
func (cs *caller) asChosen(c setChoice, fn *overload, args []value) (out []value, ok bool) {
	out = args
	copied := false
	for i := range args[:declSets[fn.name].params] {
		if e, _ := args[i].q.T.shape(); e == c.elem {
			continue
		}
		if !copied {
			out, copied = slices.Clone(args), true
		}
		v := &out[i]
		r := cs.mem.rvalue(*v)
		if r.bad() {
			return nil, false
		}
		*v = cs.arith.convStd(r, c.elem)
	}
	return out, true
}

// ambiguousCall reports a call that several functions of a set fit equally well, and says what to write instead.
func (ch *chooser) ambiguousCall(c setChoice, fn *overload, args []value, at Pos) {
	n := declSets[fn.name].params
	types, ints := make([]string, len(args)), true
	for i := range args {
		types[i] = argText(&args[i])
		ints = ints && (i >= n || !args[i].q.T.isFloat())
	}
	var cands []string
	for _, e := range c.best {
		cands = append(cands, fn.name+"("+strings.Join(repeatText(e.String(), n), ", ")+")")
	}
	last := len(cands) - 1
	why := strings.Join(cands[:last], ", ") + " and " + cands[last] + " fit equally well"
	if ints && c.best[0].isFloat() {
		why += ", for '" + fn.name + "' takes no integers"
	}
	ch.c.errorf(Ambiguous, at, "the call %s(%s) is ambiguous: %s; write %s", fn.name, strings.Join(types, ", "), why,
		ch.unambiguous(c, fn, args))
}

func repeatText(s string, n int) []string {
	out := make([]string, n)
	for i := range out {
		out[i] = s
	}
	return out
}

// unambiguous is how a call could be written: in the type that the arguments have together, in float where that is none
// of the function's. Letters stand for the arguments that are no literals.
func (ch *chooser) unambiguous(c setChoice, fn *overload, args []value) string {
	n := declSets[fn.name].params
	t := args[0].q.T
	for i := range args[:n] {
		a := args[i].q.T
		if a.kind == tEnum {
			a = typeInt
		}
		if t.kind == tEnum {
			t = typeInt
		}
		t = usualType(t, a)
	}
	if !t.isFloat() && c.best[0].isFloat() {
		t = typeFloat
	}
	out := make([]string, len(args))
	for i := range args {
		a := &args[i]
		out[i] = string(rune('a' + i))
		if i >= n {
			continue
		}
		if a.lit && a.q.T.isInt() && len(a.comps) == 1 && a.comps[0].isConst() {
			out[i] = itoa(int(int64(a.comps[0].bits)))
		}
		if a.q.T == t {
			continue
		}
		if a.lit && out[i][0] < 'a' && t == typeFloat {
			out[i] += ".0f"
		} else {
			out[i] = t.String() + "(" + out[i] + ")"
		}
	}
	return fn.name + "(" + strings.Join(out, ", ") + ")"
}

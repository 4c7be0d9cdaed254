package msl

import (
	"strings"

	"github.com/mlxlua/mlxlua/metal/kir"
)

// What this front end takes and Apple's compiler refuses, for a text whose language is Metal 3.1: an error under
// Options.Apple, and of built-in kernels always, whose text Apple's GPUs get as it is. Facts are of Apple's
// specification, and for bfloat of what MLX adds to Apple's headers (metal/prelude/bfloat.metal).

// dialect is what Apple's compiler takes of a text.
type dialect struct{ c *compiler }

// asked reports whether what stands at a place has to be what Apple's compiler takes: that is so of the text, not of
// the library, which Apple's compiler brings.
func (d dialect) asked(at Pos) bool { return (d.c.opt.Apple || d.c.opt.Portable) && !d.c.inPrelude(at) }

// refuse reports what Apple's compiler refuses.
func (d dialect) refuse(at Pos, format string, args ...any) {
	if d.asked(at) {
		d.c.errorf(NotMetal, at, format, args...)
	}
}

// later are functions of Metal's library that are newer than 3.1, by the version that has them.
var later = map[string]string{"atomic_thread_fence": "3.2"}

// bfloats are the functions that MLX adds for bfloat.
var bfloats = setOf(`abs acos acosh asin asinh atan atan2 atanh ceil cos cosh cospi divide exp exp10 exp2 fabs fdim
	floor fma fmax fmax3 fmedian3 fmin fmin3 fmod fract frexp ldexp log log10 log2 max max3 median3 min min3 pow powr rint
	round rsqrt sin sinh sinpi sqrt tan tanh tanpi trunc simd_broadcast simd_shuffle simd_shuffle_down simd_shuffle_up
	simd_shuffle_xor simd_shuffle_rotate_down simd_shuffle_rotate_up simd_shuffle_and_fill_down simd_shuffle_and_fill_up
	simd_max simd_min simd_sum simd_product simd_prefix_exclusive_sum simd_prefix_exclusive_product
	simd_prefix_inclusive_sum simd_prefix_inclusive_product`)

// asFloat are those that take a bfloat as float, and do not give it back.
var asFloat = setOf("isfinite isinf isnan isnormal signbit isordered isunordered as_type ilogb")

func setOf(names string) map[string]bool {
	m := map[string]bool{}
	for name := range strings.FieldsSeq(names) {
		m[name] = true
	}
	return m
}

// call reports a call of the library that Apple's compiler refuses. None of the functions is the text's own.
func (d dialect) call(fn *overload, args []value, at Pos) {
	if !d.asked(at) || fn.ofUnit() || !fn.ofLibrary() {
		return
	}
	if version := later[fn.name]; version != "" {
		d.refuse(at, "'%s' is Metal %s's, and texts are Metal 3.1", fn.name, version)
	}
	if d.c.opt.Apple && strings.HasPrefix(fn.name, internalPrefix+"pair_dot") {
		d.refuse(at, "'%s' is this compiler's own", fn.name)
	}
	for i := range args {
		t := args[i].q.T
		e, n := t.shape()
		switch {
		case t.kind == tEnum && t.enum.name == "memory_order":
			if !args[i].bad() && (len(args[i].comps) != 1 || !isZero(args[i].comps[0])) {
				d.refuse(at, "'%s' takes memory_order_relaxed only before Metal 3.2", fn.name)
			}
		case e == nil || e.kt != kir.BF16 || asFloat[fn.name] && n == 1 || strings.HasPrefix(fn.name, "atomic_") ||
			strings.HasPrefix(fn.name, "simdgroup_"):
		case n > 1 && fn.name != "as_type":
			d.refuse(at, "there is no '%s' of %s: Metal's library has none of bfloat, and MLX adds those of scalars",
				fn.name, t)
			return
		case n == 1 && !bfloats[fn.name]:
			d.refuse(at, "there is no '%s' of bfloat: write %s(float(x)), whose result is float", fn.name, fn.name)
			return
		}
	}
}

// reference reports a reference to a component of a vector, which has no address.
func (d dialect) reference(v *value, e qtype, at Pos) {
	if v.component && v.isLvalue() && !e.Const {
		d.refuse(at, "a component of a vector has no address: it cannot be bound to a reference")
	}
}

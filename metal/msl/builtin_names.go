package msl

import (
	"maps"
	"strings"

	"github.com/mlxlua/mlxlua/metal/kir"
)

// Apple's headers define the functions of the math and SIMD-group libraries by compiler builtins of the name
// __metal_ and the function's; headers of kernel collections call them directly. They name the same functions here.

// mathWithMode are those of the math library. Apple's take one argument more, which says which arithmetic is meant.
var mathWithMode = map[string]int{
	"fabs": 1, "acos": 1, "acosh": 1, "asin": 1, "asinh": 1, "atan": 1, "atan2": 2, "atanh": 1, "ceil": 1, "cos": 1,
	"cosh": 1, "cospi": 1, "divide": 2, "exp": 1, "exp10": 1, "exp2": 1, "floor": 1, "fmax": 2, "fmax3": 3,
	"fmedian3": 3, "fmin": 2, "fmin3": 3, "fmod": 2, "fract": 1, "ldexp": 2, "log": 1, "log10": 1, "log2": 1, "pow": 2,
	"powr": 2, "rint": 1, "round": 1, "rsqrt": 1, "sin": 1, "sinh": 1, "sinpi": 1, "sqrt": 1, "tan": 1, "tanh": 1,
	"tanpi": 1, "trunc": 1, "clamp": 3, "saturate": 1, "sign": 1, "fdim": 2, "mix": 3, "step": 2, "smoothstep": 3,
	"isnan": 1, "isinf": 1, "isfinite": 1, "isnormal": 1, "dot": 2,
}

// mathWithout are those without such an argument.
var mathWithout = map[string]int{
	"fma": 3, "nextafter": 2, "copysign": 2, "popcount": 1, "clz": 1, "ctz": 1, "reverse_bits": 1, "mulhi": 2, "abs": 1,
	"absdiff": 2, "addsat": 2, "subsat": 2, "madhi": 3, "madsat": 3, "hadd": 2, "rhadd": 2, "rotate": 2, "mad24": 3,
	"mul24": 2, "signbit": 1, "ilogb": 1,
}

const internalPrefix = "__metal_"

func internalNames() {
	for name, n := range mathWithMode {
		internalMath(name, n, n+1)
	}
	for name, n := range mathWithout {
		internalMath(name, n, n)
	}
	// frexp returns the exponent through a pointer
	addBuiltin(internalPrefix+"frexp", 2, 2, func(c *builtinCall) value {
		p := c.mem.rvalue(c.args[1])
		if p.bad() {
			return badValue
		}
		if p.q.T.kind != tPtr || p.q.T.elem.Space.normal() != SpaceNone {
			return c.mismatch()
		}
		return c.callMetal("frexp", []value{c.args[0], {k: vMem, q: p.q.T.elem, ptr: p.comps[0]}})
	}).accept = anyArgs
	for name, b := range maps.Clone(builtins) {
		if strings.HasPrefix(name, "simd_") || strings.HasPrefix(name, "quad_") {
			alias := *b
			alias.name = internalPrefix + name
			builtins[alias.name] = &alias
		}
	}
	// Apple's and, or and xor take floats too: their bits.
	for name, mode := range map[string]kir.Mode{"and": kir.ModeAnd, "or": kir.ModeOr, "xor": kir.ModeXor} {
		public := builtins["simd_"+name]
		addBuiltin(internalPrefix+"simd_"+name, 1, 1, func(c *builtinCall) value {
			v := c.mem.rvalue(c.args[0])
			if e, n := v.q.T.shape(); v.k != vRight || n == 0 || !e.isFloat() {
				return public.run(c)
			}
			r := value{k: vRight, q: v.q.bare()}
			for _, x := range v.comps {
				bits := rval(scalarTypes[uintOf(x.ty.Size())], c.em.bitcast(x, uintOf(x.ty.Size())))
				r.comps = append(r.comps, c.em.bitcast(lanewise(c.em, kir.Reduce, mode, 32, bits).comps[0], x.ty))
			}
			return r
		}).accept = anyArgs
	}
	addBuiltin(internalPrefix+"get_thread_index_in_simdgroup", 1, 1, func(c *builtinCall) value {
		return c.likeArg(lane(c.em, 32))
	})
	addBuiltin(internalPrefix+"get_simdgroup_size", 1, 1, func(c *builtinCall) value {
		return c.likeArg(u32(32))
	})
}

// internalMath adds a name that calls the function of namespace metal with its first n arguments.
func internalMath(name string, n, most int) {
	addBuiltin(internalPrefix+name, n, most, func(c *builtinCall) value {
		return c.callMetal(name, c.args[:n])
	})
}

// callMetal calls a function of the library.
func (c *builtinCall) callMetal(name string, args []value) value {
	for i := range args {
		if args[i].bad() {
			return badValue
		}
	}
	ns := c.c.find(c.c.root, "metal", 0)
	if ns == nil || ns.kind != eNamespace {
		return c.mismatch()
	}
	ent := c.c.find(ns.ns, name, 0)
	if ent == nil || ent.kind != eFunc {
		return c.mismatch()
	}
	fn := &overload{name: name, builtin: ent.builtin}
	for _, f := range ent.funcs { // a unit's own overloads would lead back here
		if !f.ofUnit {
			fn.funcs = append(fn.funcs, f)
		}
	}
	return c.calls.callOverload(fn, args, c.at)
}

// likeArg returns a number in the type of the call's argument.
func (c *builtinCall) likeArg(x operand) value {
	t := c.args[0].q.T
	if t.kind != tScalar || !t.isInt() {
		return c.mismatch()
	}
	return rval(t, c.em.convert(x, t.kt))
}

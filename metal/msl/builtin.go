package msl

import (
	"github.com/mlxlua/mlxlua/metal/kir"
)

// builtin is a function that kir has as an operation, or that no MSL text can express. Everything else in Metal's
// library is MSL of ours, in lib.
type builtin struct {
	name     string
	min, max int // numbers of arguments
	// accept says whether the function takes such arguments; nil: numbers and vectors.
	accept func(args []value, fn *overload) bool
	run    func(c *builtinCall) value
}

// builtinCall is the call of a builtin, with what it is made of.
type builtinCall struct {
	c     *compiler
	em    *emitter
	mem   *memory
	arith *arithmetic
	conv  *converter
	calls *caller

	b    *builtin
	fn   *overload
	args []value // lvalues stay lvalues
	at   Pos
}

// builtins are all builtins by name. An entry of namespace metal, and of metal::fast and metal::precise alike.
var builtins = map[string]*builtin{}

func addBuiltin(name string, nmin, nmax int, run func(c *builtinCall) value) *builtin {
	b := &builtin{name: name, min: nmin, max: nmax, run: run}
	builtins[name] = b
	return b
}

// accepts reports whether the arguments are of a kind that the builtin takes.
func (b *builtin) accepts(args []value, fn *overload) bool {
	if len(args) < b.min || len(args) > b.max {
		return false
	}
	if b.accept != nil {
		return b.accept(args, fn)
	}
	for i := range args {
		if _, n := args[i].q.T.shape(); n == 0 && args[i].q.T.kind != tEnum {
			return false
		}
	}
	return true
}

func anyArgs([]value, *overload) bool { return true }

// callBuiltin checks the number of arguments and runs a builtin.
func (cs *caller) callBuiltin(fn *overload, args []value, at Pos) value {
	b := fn.builtin
	if len(args) < b.min || len(args) > b.max {
		cs.c.errorf(ArgCount, at, "'%s' takes %s, not %d%s", b.name, countText(b.min, b.max), len(args), usageOf(b.name))
		return badValue
	}
	cs.em.at(at)
	return b.run(&builtinCall{
		c: cs.c, em: cs.em, mem: cs.mem, arith: cs.arith, conv: cs.conv, calls: cs, b: b, fn: fn, args: args, at: at,
	})
}

func countText(lo, hi int) string {
	switch {
	case lo != hi:
		return itoa(lo) + " to " + itoa(hi) + " arguments"
	case lo == 1:
		return "1 argument"
	}
	return itoa(lo) + " arguments"
}

// mismatch reports arguments that a builtin does not take.
func (c *builtinCall) mismatch() value {
	var types string
	for i := range c.args {
		if i > 0 {
			types += ", "
		}
		types += argText(&c.args[i])
	}
	c.c.errorf(NoMatch, c.at, "'%s' does not take (%s)", c.b.name, types)
	return badValue
}

// numberKind says which scalar types a builtin works on.
type numberKind uint8

const (
	anyNumber    numberKind = iota // integers, floats
	integersOnly                   // integers
	floatsOnly                     // floats; integers convert to float
	withBool                       // integers, floats and bool
)

// unify reads arguments and brings them to one type: the usual arithmetic conversions without promotion of equal
// small types, scalars spread over vectors. It returns the type and the values, ok false after an error.
func (c *builtinCall) unify(args []value, kind numberKind) (*ctype, []value, bool) {
	vals := make([]value, len(args))
	n := 1
	var e *ctype
	for i := range args {
		v := c.conv.toArith(c.mem.rvalue(args[i]))
		if v.bad() {
			return nil, nil, false
		}
		if v.q.T.kind == tEnum && !v.q.T.enum.scoped {
			v = c.arith.promote(v)
		}
		et, en := v.q.T.shape()
		if en == 0 || en > 1 && n > 1 && en != n {
			c.mismatch()
			return nil, nil, false
		}
		if en > 1 && n == 1 { // vectors decide the element type
			n = en
			e = et
		} else if en > 1 && et != e {
			c.mismatch()
			return nil, nil, false
		}
		vals[i] = v
	}
	if n == 1 {
		for i := range vals {
			t := vals[i].q.T
			if e == nil {
				e = t
			} else if e != t {
				e = usualType(e, t)
			}
		}
	}
	switch kind {
	case floatsOnly:
		if !e.isFloat() {
			if n > 1 {
				c.mismatch()
				return nil, nil, false
			}
			e = typeFloat
		}
	case integersOnly:
		if e.isBool() {
			e = typeInt
		}
		if !e.isInt() {
			c.mismatch()
			return nil, nil, false
		}
	case anyNumber:
		if e.isBool() {
			e = typeInt
		}
	}
	t := vecOf(e, n)
	for i := range vals {
		v := vals[i]
		if _, m := v.q.T.shape(); m > 1 {
			v.q.T = v.q.T.unpacked()
			vals[i] = v
			continue
		}
		vals[i] = c.arith.convStd(value{k: vRight, q: v.q.bare(), comps: v.comps}, t)
	}
	return t, vals, true
}

// compwise applies f to the components of values of one type.
func compwise(t *ctype, vals []value, f func(e kir.Type, x []operand) operand) value {
	e, n := t.shape()
	r := value{k: vRight, q: qt(t), comps: make([]operand, n)}
	x := make([]operand, len(vals))
	for i := range n {
		for j := range vals {
			x[j] = vals[j].comps[i]
		}
		r.comps[i] = f(e.kt, x)
	}
	return r
}

// directBuiltin adds a builtin that is one operation of kir on each component.
func directBuiltin(name string, nargs int, kind numberKind, op kir.Op) {
	addBuiltin(name, nargs, nargs, func(c *builtinCall) value {
		t, vals, ok := c.unify(c.args, kind)
		if !ok {
			return badValue
		}
		return compwise(t, vals, func(e kir.Type, x []operand) operand {
			if e.IsInt() && isIdentityOnInts(op) {
				return x[0]
			}
			return c.em.op(op, e, x...)
		})
	})
}

func isIdentityOnInts(op kir.Op) bool {
	switch op {
	case kir.Floor, kir.Ceil, kir.Trunc, kir.Rint:
		return true
	}
	return false
}

// applyBuiltin adds a builtin made of several operations on each component.
func applyBuiltin(name string, nargs int, kind numberKind, f func(em *emitter, e kir.Type, x []operand) operand) {
	addBuiltin(name, nargs, nargs, func(c *builtinCall) value {
		t, vals, ok := c.unify(c.args, kind)
		if !ok {
			return badValue
		}
		return compwise(t, vals, func(e kir.Type, x []operand) operand { return f(c.em, e, x) })
	})
}

// predicateBuiltin adds a builtin from numbers to bool.
func predicateBuiltin(name string, f func(em *emitter, e kir.Type, x operand) operand) {
	addBuiltin(name, 1, 1, func(c *builtinCall) value {
		t, vals, ok := c.unify(c.args, floatsOnly)
		if !ok {
			return badValue
		}
		r := compwise(t, vals, func(e kir.Type, x []operand) operand { return f(c.em, e, x[0]) })
		_, n := t.shape()
		r.q.T = vecOf(typeBool, n)
		return r
	})
}

func init() {
	mathBuiltins()
	intBuiltins()
	simdBuiltins()
	atomicBuiltins()
	matrixBuiltins()
	barrierBuiltins()
	internalNames()
}

func mathBuiltins() {
	directBuiltin("sqrt", 1, floatsOnly, kir.Sqrt)
	directBuiltin("fma", 3, floatsOnly, kir.Fma)
	directBuiltin("floor", 1, floatsOnly, kir.Floor)
	directBuiltin("ceil", 1, floatsOnly, kir.Ceil)
	directBuiltin("trunc", 1, floatsOnly, kir.Trunc)
	directBuiltin("rint", 1, floatsOnly, kir.Rint)
	directBuiltin(internalPrefix+"scale", 2, floatsOnly, kir.Scale) // for the library
	// c + a.high * b.high + a.low * b.low, of floats a and b that hold two bfloats each; for metal.Info.PairDots
	addBuiltin(internalPrefix+"pair_dot", 3, 3, func(c *builtinCall) value {
		t, vals, ok := c.unify(c.args, floatsOnly)
		if !ok {
			return badValue
		}
		if e, _ := t.shape(); e != typeFloat {
			return c.mismatch()
		}
		return compwise(t, vals, func(e kir.Type, x []operand) operand { return c.em.op(kir.PairDot, e, x...) })
	})
	directBuiltin("fabs", 1, floatsOnly, kir.Abs)
	directBuiltin("fmod", 2, floatsOnly, kir.Rem)
	directBuiltin("fmin", 2, floatsOnly, kir.Min)
	directBuiltin("fmax", 2, floatsOnly, kir.Max)
	directBuiltin("min", 2, anyNumber, kir.Min)
	directBuiltin("max", 2, anyNumber, kir.Max)
	applyBuiltin("abs", 1, anyNumber, func(em *emitter, e kir.Type, x []operand) operand {
		if !e.IsSigned() {
			return x[0]
		}
		return em.op(kir.Abs, e, x[0])
	})
	applyBuiltin("clamp", 3, anyNumber, func(em *emitter, e kir.Type, x []operand) operand {
		return em.op(kir.Min, e, em.op(kir.Max, e, x[0], x[1]), x[2])
	})
	applyBuiltin("saturate", 1, floatsOnly, func(em *emitter, e kir.Type, x []operand) operand {
		return em.op(kir.Min, e, em.op(kir.Max, e, x[0], fconst(e, 0)), fconst(e, 1))
	})
	predicateBuiltin("isnan", func(em *emitter, e kir.Type, x operand) operand { return em.op(kir.Ne, kir.Bool, x, x) })
	inf := func(em *emitter, e kir.Type) operand { return em.op(kir.Div, e, fconst(e, 1), fconst(e, 0)) }
	predicateBuiltin("isinf", func(em *emitter, e kir.Type, x operand) operand {
		return em.op(kir.Eq, kir.Bool, em.op(kir.Abs, e, x), inf(em, e))
	})
	predicateBuiltin("isfinite", func(em *emitter, e kir.Type, x operand) operand {
		return em.op(kir.Lt, kir.Bool, em.op(kir.Abs, e, x), inf(em, e))
	})
	predicateBuiltin("signbit", func(em *emitter, e kir.Type, x operand) operand {
		u := uintOf(e.Size())
		sign := em.op(kir.Shr, u, em.bitcast(x, u), constant(u, uint64(e.Bits()-1)))
		return em.op(kir.Ne, kir.Bool, sign, operand{ty: u})
	})
	addBuiltin("select", 3, 3, selectBuiltin)
	addBuiltin("as_type", 1, 1, func(c *builtinCall) value {
		if len(c.fn.args) != 1 || c.fn.args[0].q.T == nil {
			return c.mismatch()
		}
		return c.arith.asType(c.conv.toArith(c.mem.rvalue(c.args[0])), c.fn.args[0].q.T, c.at)
	}).accept = anyArgs
	for _, name := range []string{"any", "all"} {
		op := kir.Or
		if name == "all" {
			op = kir.And
		}
		addBuiltin(name, 1, 1, func(c *builtinCall) value {
			v := c.mem.rvalue(c.args[0])
			if v.bad() {
				return badValue
			}
			if e, n := v.q.T.shape(); n == 0 || !e.isBool() {
				return c.mismatch()
			}
			r := v.comps[0]
			for _, x := range v.comps[1:] {
				r = c.em.op(op, kir.Bool, r, x)
			}
			return rval(typeBool, r)
		})
	}
}

// selectBuiltin is select(a, b, c): b where c is true. For an integer c its sign bit decides.
func selectBuiltin(c *builtinCall) value {
	t, vals, ok := c.unify(c.args[:2], withBool)
	if !ok {
		return badValue
	}
	cond := c.mem.rvalue(c.args[2])
	ce, cn := cond.q.T.shape()
	_, n := t.shape()
	if cn == 0 || cn != n && cn != 1 || ce.isFloat() {
		return c.mismatch()
	}
	r := value{k: vRight, q: qt(t), comps: make([]operand, n)}
	for i := range n {
		x := cond.comps[min(i, cn-1)]
		switch {
		case ce.isBool():
		case n > 1 && ce.kt.IsSigned():
			x = c.em.op(kir.Lt, kir.Bool, x, operand{ty: ce.kt})
		default:
			x = c.em.op(kir.Ne, kir.Bool, x, operand{ty: ce.kt})
		}
		r.comps[i] = c.em.op(kir.Select, t.kirElem(), x, vals[1].comps[i], vals[0].comps[i])
	}
	return r
}

func (t *ctype) kirElem() kir.Type {
	e, _ := t.shape()
	return e.kt
}

func intBuiltins() {
	directBuiltin("popcount", 1, integersOnly, kir.Popcount)
	directBuiltin("clz", 1, integersOnly, kir.Clz)
	directBuiltin("ctz", 1, integersOnly, kir.Ctz)
	directBuiltin("reverse_bits", 1, integersOnly, kir.BitReverse)
	directBuiltin("mulhi", 2, integersOnly, kir.MulHi)
	// Clang's names, which some headers use.
	builtins["__builtin_ctz"], builtins["__builtin_clz"] = builtins["ctz"], builtins["clz"]
	builtins["__builtin_popcount"] = builtins["popcount"]
}

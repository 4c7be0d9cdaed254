package msl

import (
	"github.com/mlxlua/mlxlua/metal/kir"
)

// lanewise emits a convergent operation on each scalar of a value: of any type, vectors and classes too. kir's
// shuffles take every scalar type; reductions are defined on what kir reduces.
func lanewise(em *emitter, op kir.Op, mode kir.Mode, group int, v value, extra ...operand) value {
	r := value{k: vRight, q: v.q.bare(), comps: make([]operand, len(v.comps))}
	for i, c := range v.comps {
		in := &kir.Instr{Op: op, Type: c.ty, Mode: mode, Imm: uint64(group), Args: []*kir.Instr{em.instr(c)}}
		for _, x := range extra {
			in.Args = append(in.Args, em.instr(x))
		}
		r.comps[i] = em.emit(in)
	}
	return r
}

// laneValue reads the value that a SIMD function moves or reduces.
func (c *builtinCall) laneValue(i int, reduce bool) (value, bool) {
	v := c.mem.rvalue(c.args[i])
	if v.bad() {
		return badValue, false
	}
	if v.k != vRight || len(v.comps) == 0 {
		c.mismatch()
		return badValue, false
	}
	if !reduce {
		return v, true
	}
	if v.q.T.kind == tClass {
		v = c.conv.toArith(v)
	}
	e, n := v.q.T.shape()
	if n == 0 {
		if v.q.T.isUnscopedEnum() {
			return c.arith.promote(v), true
		}
		c.mismatch()
		return badValue, false
	}
	if e.isBool() && n == 1 {
		return rval(typeInt, c.em.convert(v.comps[0], kir.I32)), true
	}
	return v, true
}

// wideReduce reduces half and bfloat in float and rounds once, as the sums of those types do.
func wideReduce(em *emitter, op kir.Op, mode kir.Mode, group int, v value) value {
	e, n := v.q.T.shape()
	if (e.kt == kir.F16 || e.kt == kir.BF16) && (mode == kir.ModeAdd || mode == kir.ModeMul) {
		wide := vecOf(typeFloat, n)
		w := value{k: vRight, q: qt(wide)}
		for _, c := range v.comps {
			w.comps = append(w.comps, em.convert(c, kir.F32))
		}
		w = lanewise(em, op, mode, group, w)
		r := value{k: vRight, q: v.q.bare()}
		for _, c := range w.comps {
			r.comps = append(r.comps, em.convert(c, e.kt))
		}
		return r
	}
	return lanewise(em, op, mode, group, v)
}

// laneIndex reads a lane number or distance as U32.
func (c *builtinCall) laneIndex(i int) (operand, bool) {
	v := c.conv.toArith(c.mem.rvalue(c.args[i]))
	if v.bad() {
		return operand{}, false
	}
	if !v.q.T.intLike() {
		c.mismatch()
		return operand{}, false
	}
	return c.em.convert(c.arith.promote(v).comps[0], kir.U32), true
}

func lane(em *emitter, group int) operand {
	mode := kir.ThreadIndexInSimdgroup
	if group == 4 {
		mode = kir.ThreadIndexInQuadgroup
	}
	return em.leaf(kir.Builtin, kir.U32, mode, 0)
}

// shuffle moves a value from the lane that from computes out of this lane's number and the distance.
func shuffle(name string, group int, from func(em *emitter, lane, d operand) operand) {
	addBuiltin(name, 2, 2, func(c *builtinCall) value {
		v, ok := c.laneValue(0, false)
		if !ok {
			return badValue
		}
		d, ok := c.laneIndex(1)
		if !ok {
			return badValue
		}
		return lanewise(c.em, kir.Shuffle, 0, group, v, from(c.em, lane(c.em, group), d))
	}).accept = anyArgs
}

func simdBuiltins() {
	for _, grp := range []struct {
		prefix string
		n      int
	}{{"simd_", 32}, {"quad_", 4}} {
		groupBuiltins(grp.prefix, grp.n)
	}
}

func groupBuiltins(p string, n int) {
	reduce := func(name string, op kir.Op, mode kir.Mode, ints bool) {
		addBuiltin(p+name, 1, 1, func(c *builtinCall) value {
			v, ok := c.laneValue(0, true)
			if !ok {
				return badValue
			}
			if e, _ := v.q.T.shape(); ints && !e.isInt() {
				return c.mismatch()
			}
			return wideReduce(c.em, op, mode, n, v)
		}).accept = numericArgs
	}
	reduce("sum", kir.Reduce, kir.ModeAdd, false)
	reduce("product", kir.Reduce, kir.ModeMul, false)
	reduce("min", kir.Reduce, kir.ModeMin, false)
	reduce("max", kir.Reduce, kir.ModeMax, false)
	reduce("and", kir.Reduce, kir.ModeAnd, true)
	reduce("or", kir.Reduce, kir.ModeOr, true)
	reduce("xor", kir.Reduce, kir.ModeXor, true)
	reduce("prefix_inclusive_sum", kir.ScanInclusive, kir.ModeAdd, false)
	reduce("prefix_exclusive_sum", kir.ScanExclusive, kir.ModeAdd, false)
	reduce("prefix_inclusive_product", kir.ScanInclusive, kir.ModeMul, false)
	reduce("prefix_exclusive_product", kir.ScanExclusive, kir.ModeMul, false)

	mask := uint32(n - 1)
	shuffle(p+"shuffle", n, func(em *emitter, _, d operand) operand { return d })
	shuffle(p+"broadcast", n, func(em *emitter, _, d operand) operand { return d })
	shuffle(p+"shuffle_xor", n, func(em *emitter, l, d operand) operand { return em.op(kir.Xor, kir.U32, l, d) })
	// past the ends a lane keeps its own value
	shuffle(p+"shuffle_up", n, func(em *emitter, l, d operand) operand {
		return em.op(kir.Select, kir.U32, em.op(kir.Ge, kir.Bool, l, d), em.op(kir.Sub, kir.U32, l, d), l)
	})
	shuffle(p+"shuffle_down", n, func(em *emitter, l, d operand) operand {
		to := em.op(kir.Add, kir.U32, l, d)
		low, near := em.op(kir.Le, kir.Bool, to, u32(mask)), em.op(kir.Le, kir.Bool, d, u32(mask))
		inside := em.op(kir.And, kir.Bool, low, near)
		return em.op(kir.Select, kir.U32, inside, to, l)
	})
	shuffle(p+"shuffle_rotate_up", n, func(em *emitter, l, d operand) operand {
		return em.op(kir.And, kir.U32, em.op(kir.Sub, kir.U32, l, d), u32(mask))
	})
	shuffle(p+"shuffle_rotate_down", n, func(em *emitter, l, d operand) operand {
		return em.op(kir.And, kir.U32, em.op(kir.Add, kir.U32, l, d), u32(mask))
	})
	for _, up := range []bool{true, false} {
		fillShuffle(p, n, up)
	}
	addBuiltin(p+"broadcast_first", 1, 1, func(c *builtinCall) value {
		v, ok := c.laneValue(0, false)
		if !ok {
			return badValue
		}
		return lanewise(c.em, kir.BroadcastFirst, 0, n, v)
	}).accept = anyArgs
	voteBuiltins(p, n)
}

func numericArgs(args []value, _ *overload) bool {
	_, n := args[0].q.T.shape()
	return n > 0 || args[0].q.T.kind == tEnum
}

// fillShuffle adds shuffle_and_fill_up and _down: lanes past the end take their value from the fill data, in
// windows of modulo lanes.
func fillShuffle(p string, n int, up bool) {
	name := p + "shuffle_and_fill_down"
	if up {
		name = p + "shuffle_and_fill_up"
	}
	addBuiltin(name, 3, 4, func(c *builtinCall) value {
		v, ok1 := c.laneValue(0, false)
		fill, ok2 := c.laneValue(1, false)
		d, ok3 := c.laneIndex(2)
		if !ok1 || !ok2 || !ok3 {
			return badValue
		}
		fill = c.conv.convertTo(fill, v.q.bare(), c.at, "the filling data")
		if fill.bad() {
			return badValue
		}
		mod := u32(uint32(n))
		if len(c.args) == 4 {
			if mod, ok3 = c.laneIndex(3); !ok3 {
				return badValue
			}
		}
		l := lane(c.em, n)
		in := c.em.op(kir.Rem, kir.U32, l, mod) // place within the window
		var from, inside operand
		if up {
			inside = c.em.op(kir.Ge, kir.Bool, in, d)
			from = c.em.op(kir.Sub, kir.U32, l, d)
		} else {
			inside = c.em.op(kir.Lt, kir.Bool, c.em.op(kir.Add, kir.U32, in, d), mod)
			from = c.em.op(kir.Add, kir.U32, l, d)
		}
		// the fill data slides in behind: its window continues the value's
		wrap := c.em.op(kir.Sub, kir.U32, from, mod)
		if up {
			wrap = c.em.op(kir.Add, kir.U32, from, mod)
		}
		a := lanewise(c.em, kir.Shuffle, 0, n, v, c.em.op(kir.Select, kir.U32, inside, from, l))
		b := lanewise(c.em, kir.Shuffle, 0, n, fill, c.em.op(kir.Select, kir.U32, inside, l, wrap))
		r := value{k: vRight, q: v.q.bare()}
		for i := range a.comps {
			r.comps = append(r.comps, c.em.op(kir.Select, a.comps[i].ty, inside, a.comps[i], b.comps[i]))
		}
		return r
	}).accept = anyArgs
}

// voteBuiltins adds all, any, ballot, active_threads_mask and is_first.
func voteBuiltins(p string, n int) {
	ballot := func(em *emitter, x operand) operand {
		bits := em.emit(&kir.Instr{Op: kir.Ballot, Type: kir.U64, Imm: 32, Args: []*kir.Instr{em.instr(x)}})
		if n == 4 { // this lane's quad
			first := em.op(kir.And, kir.U32, lane(em, 32), u32(28))
			bits = em.op(kir.Shr, kir.U64, bits, em.convert(first, kir.U64))
			bits = em.op(kir.And, kir.U64, bits, constant(kir.U64, 15))
		}
		return bits
	}
	test := func(name string, f func(em *emitter, x operand) operand) {
		addBuiltin(p+name, 1, 1, func(c *builtinCall) value {
			if c.args[0].bad() {
				return badValue
			}
			return rval(typeBool, f(c.em, c.conv.condition(c.args[0], c.at)))
		})
	}
	test("all", func(em *emitter, x operand) operand {
		return em.op(kir.Eq, kir.Bool, ballot(em, em.not(x)), operand{ty: kir.U64})
	})
	test("any", func(em *emitter, x operand) operand {
		return em.op(kir.Ne, kir.Bool, ballot(em, x), operand{ty: kir.U64})
	})
	addBuiltin(p+"ballot", 1, 1, func(c *builtinCall) value {
		if c.args[0].bad() {
			return badValue
		}
		return c.vote(n, ballot(c.em, c.conv.condition(c.args[0], c.at)))
	})
	addBuiltin(p+"active_threads_mask", 0, 0, func(c *builtinCall) value {
		return c.vote(n, ballot(c.em, boolConst(true)))
	})
	addBuiltin(p+"is_first", 0, 0, func(c *builtinCall) value {
		l := lane(c.em, n)
		args := []*kir.Instr{c.em.instr(l)}
		first := c.em.emit(&kir.Instr{Op: kir.BroadcastFirst, Type: kir.U32, Imm: uint64(n), Args: args})
		return rval(typeBool, c.em.op(kir.Eq, kir.Bool, l, first))
	})
}

// vote wraps a ballot's bits in the library's simd_vote or quad_vote, classes that convert to their number.
func (c *builtinCall) vote(group int, bits operand) value {
	name, num := "simd_vote", kir.U64
	if group == 4 {
		name, num = "quad_vote", kir.U32
	}
	bits = c.em.convert(bits, num)
	ns := c.c.find(c.c.root, "metal", 0)
	if ns == nil || ns.kind != eNamespace {
		return rval(scalarTypes[num], bits)
	}
	ent := c.c.find(ns.ns, name, 0)
	if ent == nil || ent.kind != eType {
		return rval(scalarTypes[num], bits)
	}
	t := c.c.typeEntity(ent)
	if !c.c.isComplete(t.T) || t.T.comps != 1 {
		return rval(scalarTypes[num], bits)
	}
	return value{k: vRight, q: t.bare(), comps: []operand{bits}}
}

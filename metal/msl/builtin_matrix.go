package msl

import (
	"github.com/mlxlua/mlxlua/metal/kir"
)

// A simdgroup_matrix holds 64 elements, two in each lane, as kir.MatrixPlace says. Kernels rely on that through
// thread_elements.

// matrixPlace emits kir.MatrixPlace: this lane's row and first column, as I64.
func matrixPlace(em *emitter) (row, col operand) {
	l := em.convert(lane(em, 32), kir.I64)
	bits := func(shift, mask int64) operand {
		return em.op(kir.And, kir.I64, em.op(kir.Shr, kir.I64, l, i64(shift)), i64(mask))
	}
	row = em.op(kir.Add, kir.I64, em.op(kir.Mul, kir.I64, bits(4, 1), i64(4)), bits(1, 3))
	half := em.op(kir.Mul, kir.I64, bits(3, 1), i64(4))
	col = em.op(kir.Add, kir.I64, half, em.op(kir.Mul, kir.I64, bits(0, 1), i64(2)))
	return row, col
}

// threadElements is the method that gives a lane's two elements as a vector; init makes it, as it leads to all that the
// generator does.
var threadElements *builtin

// diagonalMatrix makes a matrix of type t with x on its diagonal.
func diagonalMatrix(em *emitter, t *ctype, x operand) value {
	row, col := matrixPlace(em)
	r := value{k: vRight, q: qt(t)}
	for i := range int64(2) {
		on := em.op(kir.Eq, kir.Bool, row, em.op(kir.Add, kir.I64, col, i64(i)))
		r.comps = append(r.comps, em.op(kir.Select, t.elem.T.kt, on, x, operand{ty: t.elem.T.kt}))
	}
	return r
}

// matrixArg reads a matrix argument.
func (c *builtinCall) matrixArg(i int) (value, bool) {
	v := c.mem.rvalue(c.args[i])
	if v.bad() {
		return badValue, false
	}
	if v.q.T.kind != tSimdMat {
		c.mismatch()
		return badValue, false
	}
	return v, true
}

// matrixDest checks the matrix that a function writes.
func (c *builtinCall) matrixDest() (value, bool) {
	d := c.args[0]
	if d.bad() {
		return badValue, false
	}
	if d.q.T.kind != tSimdMat || !c.mem.assignable(d, c.at) {
		if d.q.T.kind != tSimdMat {
			c.mismatch()
		}
		return badValue, false
	}
	return d, true
}

func matrixBuiltins() {
	threadElements = &builtin{name: "thread_elements", accept: anyArgs, run: func(c *builtinCall) value {
		v := *c.fn.this
		t := v.q
		t.T = vecOf(v.q.T.elem.T, 2)
		return c.mem.part(v, t, 0, 0)
	}}
	addBuiltin("simdgroup_load", 2, 5, func(c *builtinCall) value { return c.matrixMove(true) }).accept = anyArgs
	addBuiltin("simdgroup_store", 2, 5, func(c *builtinCall) value { return c.matrixMove(false) }).accept = anyArgs
	addBuiltin("simdgroup_multiply", 3, 3, func(c *builtinCall) value { return c.matrixMul(false) }).accept = anyArgs
	acc := func(c *builtinCall) value { return c.matrixMul(true) }
	addBuiltin("simdgroup_multiply_accumulate", 4, 4, acc).accept = anyArgs
	addBuiltin("make_filled_simdgroup_matrix", 1, 1, func(c *builtinCall) value {
		e := typeFloat
		if len(c.fn.args) > 0 && c.fn.args[0].q.T != nil {
			e = c.fn.args[0].q.T
		} else if et, n := c.args[0].q.T.shape(); n == 1 && et.isFloat() {
			e = et
		}
		t := simdMats[e]
		if t == nil {
			return c.mismatch()
		}
		x := c.conv.convertTo(c.args[0], qt(e), c.at, "an element")
		if x.bad() {
			return badValue
		}
		return value{k: vRight, q: qt(t), comps: []operand{x.comps[0], x.comps[0]}}
	}).accept = anyArgs
}

// matrixMove loads or stores a matrix: (matrix, pointer, elements_per_row = 8, origin = 0, transpose = false).
func (c *builtinCall) matrixMove(load bool) value {
	var m value
	var ok bool
	if load {
		m, ok = c.matrixDest()
	} else {
		m, ok = c.matrixArg(0)
	}
	p := c.mem.rvalue(c.args[1])
	if !ok || p.bad() {
		return badValue
	}
	e := m.q.T.elem.T
	if p.q.T.kind != tPtr || p.q.T.elem.T != e {
		c.c.errorf(TypeMismatch, c.at, "'%s' of a matrix of %s needs a pointer to %s, not %s", c.b.name, e, e, p.q.T)
		return badValue
	}
	if sp := p.q.T.elem.Space.normal(); sp == SpaceNone || !load && (p.q.T.elem.Const || sp == SpaceConstant) {
		c.c.errorf(AddressSpace, c.at, "'%s' cannot use a pointer of type %s", c.b.name, p.q.T)
		return badValue
	}
	stride := i64(8)
	var ox, oy operand
	ox, oy = i64(0), i64(0)
	trans := boolConst(false)
	num := func(i int) (operand, bool) {
		v := c.conv.toArith(c.mem.rvalue(c.args[i]))
		if v.bad() || !v.q.T.intLike() {
			return operand{}, false
		}
		return c.em.convert(c.arith.promote(v).comps[0], kir.I64), true
	}
	if len(c.args) > 2 {
		if stride, ok = num(2); !ok {
			return c.mismatch()
		}
	}
	if len(c.args) > 3 {
		o := c.args[3]
		if o.k == vList {
			o = c.conv.convertTo(o, qt(vecOf(typeUlong, 2)), c.at, "an offset")
		}
		o = c.mem.rvalue(o)
		if o.bad() {
			return badValue
		}
		if et, n := o.q.T.shape(); n == 0 || n > 2 || et.isFloat() {
			return c.mismatch()
		}
		ox = c.em.convert(o.comps[0], kir.I64)
		oy = c.em.convert(o.comps[len(o.comps)-1], kir.I64)
	}
	if len(c.args) > 4 {
		trans = c.conv.condition(c.args[4], c.at)
	}
	row, col := matrixPlace(c.em)
	vals := make([]operand, 2)
	for i := range int64(2) {
		cc := c.em.op(kir.Add, kir.I64, col, i64(i))
		r := c.em.op(kir.Select, kir.I64, trans, cc, row)
		k := c.em.op(kir.Select, kir.I64, trans, row, cc)
		r, k = c.em.op(kir.Add, kir.I64, r, oy), c.em.op(kir.Add, kir.I64, k, ox)
		idx := c.em.op(kir.Add, kir.I64, c.em.op(kir.Mul, kir.I64, r, stride), k)
		at := memAt(p.comps[0], c.em.op(kir.Mul, kir.I64, idx, i64(int64(e.size))), 0, qt(e))
		if load {
			vals[i] = c.mem.loadComps(at)[0]
		} else {
			c.mem.storeComps(at, m.comps[i:i+1])
		}
	}
	if load {
		c.mem.store(m, value{k: vRight, q: m.q.bare(), comps: vals})
	}
	return voidValue
}

// matrixMul computes d = a * b, or a * b + c: in float, products added in the order of the inner dimension.
func (c *builtinCall) matrixMul(acc bool) value {
	d, ok := c.matrixDest()
	if !ok {
		return badValue
	}
	a, ok1 := c.matrixArg(1)
	b, ok2 := c.matrixArg(2)
	if !ok1 || !ok2 {
		return badValue
	}
	var z *value
	if acc {
		c3, ok := c.matrixArg(3)
		if !ok {
			return badValue
		}
		z = &c3
	}
	c.mem.store(d, matrixSum(c.em, d.q.T, a, b, z))
	return voidValue
}

// matrixProduct is a * b, of the type of a.
func matrixProduct(mem *memory, a, b value) value {
	a, b = mem.rvalue(a), mem.rvalue(b)
	return matrixSum(mem.em, a.q.T, a, b, nil)
}

// matrixSum computes a * b + z as a matrix of type t: exactly as kir says, so that no device rounds otherwise.
func matrixSum(em *emitter, t *ctype, a, b value, z *value) value {
	wide := kir.F32
	if t.elem.T.kt == kir.F64 {
		wide = kir.F64
	}
	sums := []operand{{ty: wide}, {ty: wide}}
	if z != nil {
		sums[0], sums[1] = em.convert(z.comps[0], wide), em.convert(z.comps[1], wide)
	}
	args := make([]*kir.Instr, 0, 4)
	for _, x := range [...]operand{a.comps[0], a.comps[1], b.comps[0], b.comps[1]} {
		args = append(args, em.instr(em.convert(x, wide)))
	}
	c := []*kir.Instr{em.instr(sums[0]), em.instr(sums[1])}
	for i := range sums {
		sums[i] = em.emit(&kir.Instr{Op: kir.MatMulAcc, Type: wide, Mode: kir.ModeExact, Imm: uint64(i),
			Args: append(args[:4:4], c[i])})
	}
	e := t.elem.T.kt
	return value{k: vRight, q: qt(t), comps: []operand{em.convert(sums[0], e), em.convert(sums[1], e)}}
}
